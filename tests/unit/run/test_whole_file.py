"""What a file becomes that is written whole or not at all."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from headrace.run.whole_file import written_whole
from tests.patience import HANG_SECONDS


def write(path: Path, text: str) -> None:
    with written_whole(path) as unfinished:
        unfinished.write_text(text)


def test_a_file_is_replaced_when_all_is_written(tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    path.write_text("before")
    with written_whole(path) as unfinished:
        unfinished.write_text("after")
        assert path.read_text() == "before"
    assert path.read_text() == "after"
    assert os.listdir(tmp_path) == ["report.html"]


def test_nothing_is_left_of_what_failed(tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    with pytest.raises(ZeroDivisionError), written_whole(path) as unfinished:
        unfinished.write_text("half")
        raise ZeroDivisionError
    assert os.listdir(tmp_path) == []


def test_a_link_points_where_it_did(tmp_path: Path) -> None:
    link, target = tmp_path / "link", tmp_path / "target"
    target.write_text("before")
    link.symlink_to(target)
    write(link, "after")
    assert link.is_symlink()
    assert target.read_text() == "after"


def test_a_pipe_gets_what_is_written(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    found: list[str] = []
    reader = threading.Thread(target=lambda: found.append(path.read_text()))
    reader.start()
    write(path, "all")
    reader.join(HANG_SECONDS)
    assert found == ["all"]
    assert path.is_fifo()


def test_a_folder_is_none(tmp_path: Path) -> None:
    with pytest.raises(IsADirectoryError):
        write(tmp_path, "all")
