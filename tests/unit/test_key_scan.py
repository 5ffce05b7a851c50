"""The scan of keys through the binding: what goes in, what comes back, and how it ends early."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from headrace import core
from headrace.errors import CancelledError, FileChangedError, InternalError

LAYOUT = {
    "delimiter": "|",
    "qualifier": '"',
    "columns": [
        {"name": "id", "type": {"kind": "int32"}, "nullable": False},
        {"name": "day", "type": {"kind": "date"}, "nullable": True},
        {"name": "note", "type": {"kind": "string"}, "nullable": True},
    ],
}


@pytest.fixture
def spec(tmp_path: Path) -> dict[str, Any]:
    """Two files; of the last two rows of the second one the first has no key and the other one field too few."""
    days = [f"2024-{month:02}-{day:02}" for month in (1, 2, 5) for day in (3, 4, 29)]
    for name, part in (("a", days[:4]), ("b", days[4:])):
        rows = [f'{number}|{day}|"two\nlines"' for number, day in enumerate(part)]
        (tmp_path / name).write_text("\n".join([*rows, "7||", "8|2030-01-01"] if name == "b" else rows) + "\n")
    files = [str(tmp_path / name) for name in "ab"]
    slicing = core.plan_slices({"files": files, "slice_bytes": 50, "layout": LAYOUT})
    return {**slicing, "layout": LAYOUT, "column": "day", "streams": 2}


FOUND = {"minimum": "2024-01-03", "maximum": "2024-05-29", "rows": 10, "nulls": 1}


def test_periods(spec: dict[str, Any]) -> None:
    found = core.key_scan({**spec, "want": {"periods": {"unit": "month"}}})
    assert found == {**FOUND, "periods": ["2024-01-01", "2024-02-01", "2024-05-01"]}


def test_quantiles(spec: dict[str, Any]) -> None:
    found = core.key_scan({**spec, "want": {"quantiles": 3}})
    assert found == {**FOUND, "quantiles": ["2024-02-03", "2024-05-03"]}


def test_what_cannot_be_scanned(spec: dict[str, Any]) -> None:
    with pytest.raises(InternalError, match="`note` is not a column whose values can be keys"):
        core.key_scan({**spec, "column": "note", "want": {"quantiles": 3}})
    with pytest.raises(InternalError, match="key scan"):
        core.key_scan({**spec, "want": {"periods": {"step": "7"}}})


def test_a_changed_file(spec: dict[str, Any]) -> None:
    Path(spec["files"][1]["path"]).write_text("1|2024-01-01|\n")
    with pytest.raises(FileChangedError):
        core.key_scan({**spec, "want": {"quantiles": 3}})


def test_a_scan_is_cancelled(spec: dict[str, Any]) -> None:
    with pytest.raises(CancelledError):
        core.key_scan({**spec, "want": {"quantiles": 3}}, lambda: True)


def test_what_the_question_raises_goes_through(spec: dict[str, Any]) -> None:
    def interrupted() -> bool:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        core.key_scan({**spec, "want": {"quantiles": 3}}, interrupted)
