"""Files against a layout: what a load would reject, counted; nothing is loaded."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

from headrace import core
from headrace.model import Layout
from headrace.planning.slicing import slice_bytes

_BLOCK_BYTES: Final = 512 * 1024
# As the core has it for a look through files.
MAXIMUM_ROW_BYTES: Final = 64 << 20
_STEP_SECONDS: Final = 0.05


def check_files(
    paths: Sequence[Path], layout: Layout, streams: int, is_cancelled: Callable[[], bool] = lambda: False
) -> dict[str, Any]:
    """The report of a flow of these files into nothing: slices, and `rejects`, with examples of each kind.

    Raises SourceError for files that cannot be read, or whose header is another one.
    """
    own = layout.to_core()
    files = [str(path.absolute()) for path in paths]
    total = sum(path.stat().st_size for path in paths if path.is_file())
    sliced = core.plan_slices(
        {"files": files, "slice_bytes": slice_bytes(total, streams), "layout": own, "compression": "auto"}, is_cancelled
    )
    flow = core.Flow(
        {
            "name": "check",
            "layout": own,
            "source": {"files": sliced["files"], "slices": sliced["slices"]},
            "sink": {"kind": "null"},
            "streams": streams,
            "memory": {"block_bytes": _BLOCK_BYTES, "blocks": 2 * streams, "max_row_bytes": MAXIMUM_ROW_BYTES},
            "rejects": {"limit": None, "keep": "examples"},
        }
    )
    flow.start()
    while (report := flow.join(_STEP_SECONDS)) is None:
        if is_cancelled():
            flow.cancel("the check was cancelled")
    core.raise_for_error(report)
    return report
