"""Files and folders of which others than their owner see nothing, whatever the umask."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from headrace.private_files import make_folder, open_file, write_text


@pytest.fixture(params=[0o000, 0o022, 0o077])
def umask(request: pytest.FixtureRequest) -> Iterator[int]:
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.usefixtures("umask")
def test_modes(tmp_path: Path) -> None:
    make_folder(tmp_path / "runs" / "one", parents=True)
    make_folder(tmp_path / "runs" / "one", exist_ok=True)
    write_text(tmp_path / "runs" / "one" / "text", "ä", encoding="utf-8")
    with open_file(tmp_path / "added", "ab") as file:
        file.write(b"1")
    assert mode(tmp_path / "runs" / "one") == 0o700
    assert [mode(path) for path in (tmp_path / "runs" / "one" / "text", tmp_path / "added")] == [0o600, 0o600]
    assert (tmp_path / "runs" / "one" / "text").read_bytes() == "ä".encode()


def test_a_folder_that_exists_is_an_error_unless_it_may(tmp_path: Path) -> None:
    with pytest.raises(FileExistsError):
        make_folder(tmp_path)
