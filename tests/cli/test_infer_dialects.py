"""`headrace infer` where another dialect than the right one is tempting."""

from __future__ import annotations

from pathlib import Path

import pytest

from headrace.model.layout_text import read_layout
from tests.cli.conftest import CommandLine
from tests.cli.infer_dialect_files import DIALECT_FILES
from tests.cli.test_infer import assert_every_row_fits
from tests.snapshots import assert_snapshot


@pytest.mark.parametrize("name", DIALECT_FILES)
def test_a_file(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, headrace: CommandLine) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / name).write_bytes(DIALECT_FILES[name])
    outcome = headrace("infer", name, "--quiet")
    if outcome.exit_code == 0:
        read_layout(outcome.stdout.encode(), name)
        assert_every_row_fits(tmp_path / name, outcome.stdout, headrace)
    assert_snapshot(f"infer_dialect_{name.replace('.', '_')}", outcome.text())


def test_rows_far_behind_the_sample_are_looked_at(tmp_path: Path, headrace: CommandLine) -> None:
    lines = [f"{number},text {number}\n" for number in range(150_000)]
    for name, row, expected in (
        ("escape.csv", "7,a\\, b\n", 'escape: "\\\\"'),
        ("single.csv", "7,'a, b'\n", 'qualifier: "\'"'),
        ("double.csv", '7,"a, b"\n', "qualifier: '\"'"),
    ):
        path = tmp_path / name
        path.write_text("id,text\n" + "".join(lines) + row + "".join(lines[:20_000]))
        text = headrace("infer", path, "--quiet").stdout
        assert expected in text
        assert "# doubt: too " not in text
        assert ("vanishes from values, because of rows such as escape.csv, row 150,002" in text) == (
            name == "escape.csv"
        )


def test_a_row_that_no_dialect_reads_is_a_doubt(tmp_path: Path, headrace: CommandLine) -> None:
    lines = [f"{number},text {number}\n" for number in range(150_000)]
    path = tmp_path / "late.csv"
    path.write_text("id,text\n" + "".join(lines) + "7,a,b\n" + "".join(lines[:20_000]))
    text = headrace("infer", path, "--quiet").stdout
    assert "# doubt: too many fields: 1 of 170,001 rows" in text
    assert "qualifier" not in text
    assert "escape" not in text
