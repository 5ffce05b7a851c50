"""core.plan_slices, where files have to be read to be cut."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from headrace import core
from headrace.errors import CancelledError

LAYOUT = {
    "delimiter": ",",
    "qualifier": '"',
    "columns": [{"name": "id", "type": {"kind": "string"}, "nullable": True}],
}


@pytest.fixture
def spec(tmp_path: Path) -> dict[str, Any]:
    """64 MB without a qualifier: whether a place is inside of a field is known from the front only."""
    file = tmp_path / "rows"
    file.write_bytes(b"0123456789abcde\n" * (4 << 20))
    return {"files": [str(file)], "slice_bytes": 8 << 20, "layout": LAYOUT}


def test_cutting_is_cancelled(spec: dict[str, Any]) -> None:
    assert len(core.plan_slices(spec)["slices"]) == 8
    with pytest.raises(CancelledError, match="cutting the files was cancelled"):
        core.plan_slices(spec, lambda: True)


def test_what_the_question_raises_goes_through(spec: dict[str, Any]) -> None:
    def interrupted() -> bool:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        core.plan_slices(spec, interrupted)
