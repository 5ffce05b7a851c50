"""What stands behind the rows of a file: totals, notes, broken data."""

from __future__ import annotations

from pathlib import Path

import pytest

from headrace.infer import InferOptions, Inferred, infer_files, layout_text
from headrace.infer.checking import check_files
from headrace.model.layout import MAXIMUM_FOOTER_ROWS
from headrace.model.layout_text import read_layout

# Of the longer file the beginning and the end are looked at, each for itself.
_ROWS = (300, 100_000)


def inferred_of(path: Path, rows: int, footer: str) -> Inferred:
    """What a file is inferred to hold; a load rejects as many rows as are told not to fit."""
    data = "".join(f"{number};n{number};{number}.5\n" for number in range(rows))
    path.write_text(f"id;name;value\n{data}{footer}")
    inferred = infer_files([path], InferOptions(streams=1))
    report = check_files([path], read_layout(layout_text(inferred).encode(), "layout"), 1)
    assert report["rejects"]["count"] == inferred.misfits["count"]
    return inferred


def lines(count: int) -> str:
    return "".join(f"Total of region {number}\n" for number in range(count))


@pytest.mark.parametrize("rows", _ROWS)
@pytest.mark.parametrize("length", [1, 29, 30, 31, MAXIMUM_FOOTER_ROWS - 1, MAXIMUM_FOOTER_ROWS])
def test_lines_behind_are_skipped(length: int, rows: int, tmp_path: Path) -> None:
    inferred = inferred_of(tmp_path / "file.csv", rows, lines(length))
    assert inferred.dialect == {"delimiter": ";", "header": "check", "footer_rows": length}
    assert (inferred.rows, inferred.misfits["count"]) == (rows, 0)
    (doubt,) = [doubt.text for doubt in inferred.doubts if doubt.topic == "rows behind"]
    assert doubt.startswith(f"{length} row") and '"Total of region 0"' in doubt


@pytest.mark.parametrize("rows", _ROWS)
def test_more_than_a_layout_can_skip_do_not_fit(rows: int, tmp_path: Path) -> None:
    length = MAXIMUM_FOOTER_ROWS + 1
    inferred = inferred_of(tmp_path / "file.csv", rows, lines(length))
    assert inferred.dialect == {"delimiter": ";", "header": "check"}
    assert (inferred.rows, inferred.misfits["count"]) == (rows, length)


@pytest.mark.parametrize("rows", _ROWS)
def test_broken_data_behind_does_not_fit(rows: int, tmp_path: Path) -> None:
    broken = "".join(f"{number};cut\n" for number in range(40))
    inferred = inferred_of(tmp_path / "file.csv", rows, broken)
    assert inferred.dialect == {"delimiter": ";", "header": "check"}
    assert inferred.misfits["count"] == 40
