"""The live measurement of a flow through the binding."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from headrace import core
from tests.patience import HANG_SECONDS

LAYOUT = {"delimiter": "|", "columns": [{"name": "id", "type": {"kind": "int32"}, "nullable": False}]}
MEMBERS = {
    *("bytes_read", "source_bytes_read", "counted_bytes", "rows_read", "rows_out", "rows_rejected"),
    *("slices_done", "slices_total", "streams_active"),
    *("streams", "writers", "sink", "blocks_used", "blocks_total"),
}
STREAM_MEMBERS = {
    *("number", "ended", "slice", "file", "slice_bytes", "slice_bytes_total", "slices", "rows", "bytes"),
    *("cpu_seconds", "run_queue_seconds", "wait_slice_seconds", "doing", "stages"),
}
STAGE_MEMBERS = {"rows", "bytes", "busy_seconds", "wait_input_seconds", "wait_output_seconds"}


@pytest.fixture
def flow(tmp_path: Path) -> core.Flow:
    """A thousand rows into nothing."""
    (tmp_path / "rows").write_text("".join(f"{number}\n" for number in range(1000)))
    slicing = core.plan_slices({"files": [str(tmp_path / "rows")], "slice_bytes": 1 << 20, "layout": LAYOUT})
    spec: dict[str, Any] = {
        "name": "numbers",
        "layout": LAYOUT,
        "source": slicing,
        "sink": {"kind": "null"},
        "streams": 1,
        "memory": {"block_bytes": 65536, "blocks": 2, "max_row_bytes": 65536},
        "rejects": {"limit": 0, "folder": str(tmp_path), "file_stem": "rejected"},
    }
    return core.Flow(spec)


def test_before_the_start(flow: core.Flow) -> None:
    measured = flow.measure()
    assert set(measured) == MEMBERS
    assert (measured["streams"], measured["writers"], measured["sink"]) == ([], [], None)
    assert (measured["slices_total"], measured["blocks_total"]) == (1, 2)


def test_after_the_end(flow: core.Flow) -> None:
    flow.start()
    report = flow.join(HANG_SECONDS)
    assert report is not None and report["status"] == "ok"
    measured = flow.measure()
    assert set(measured) == MEMBERS
    (stream,) = measured["streams"]
    assert set(stream) == STREAM_MEMBERS
    assert set(stream["stages"]) == {"read", "parse", "transform", "write"}
    assert all(set(stage) == STAGE_MEMBERS for stage in stream["stages"].values())
    assert (stream["doing"], stream["ended"], stream["slice"], stream["rows"]) == ("ended", True, None, 1000)
    (reported,) = report["streams"]
    assert {name: stream[name] for name in reported} == reported
