"""Which columns are keys, proved: different values are counted exactly, in an engine that may spill to disk."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from itertools import combinations
from typing import Any, Final

from headrace import core
from headrace.errors import CancelledError, TargetError, on_one_line
from headrace.infer.inferred import Inferred
from headrace.model import new_instance

# Of so many columns pairs are tried.
_MOST_COLUMNS_OF_PAIRS: Final = 5
_ROWS: Final = "headrace_rows"
_STEP_SECONDS: Final = 0.05
_MEMORY: Final = "1GB"

Key = tuple[str, ...]
ArrowFlow = Callable[[Sequence[str]], core.Flow]


def proved_keys(flow_of: ArrowFlow, inferred: Inferred, is_cancelled: Callable[[], bool]) -> list[Key]:
    """The candidates that are keys; if none is, pairs of columns that are.

    `flow_of`: a flow that gives these columns of all rows as an Arrow stream.
    """
    found = _keys_among(flow_of, inferred.keys, is_cancelled)
    return found or _keys_among(flow_of, pairs_to_try(inferred), is_cancelled)


def pairs_to_try(inferred: Inferred) -> list[Key]:
    """Pairs of the columns without null that have the most different values."""
    facts = inferred.facts
    never_null = {column.name for column in inferred.columns if not column.nulls}
    whole = [own for own in facts if own.name in never_null and not own.empty and (own.distinct or 0) > 1]
    # Of columns with as many values the first ones.
    most = sorted(whole, key=lambda own: -(own.distinct or 0))[:_MOST_COLUMNS_OF_PAIRS]
    names = [own.name for own in facts if own in most]
    return list(combinations(names, 2))


def _keys_among(flow_of: ArrowFlow, keys: Sequence[Key], is_cancelled: Callable[[], bool]) -> list[Key]:
    if not keys:
        return []
    columns = list(dict.fromkeys(name for key in keys for name in key))
    counts = [f"count(DISTINCT {_tuple(key)})" for key in keys]
    rows, *distinct = _query(flow_of(columns), f"SELECT count(*), {', '.join(counts)} FROM {_ROWS}", is_cancelled)
    return [key for key, own in zip(keys, distinct, strict=True) if own == rows]


def _tuple(key: Key) -> str:
    quoted = ['"' + name.replace('"', '""') + '"' for name in key]
    return quoted[0] if len(quoted) == 1 else f"({', '.join(quoted)})"


def _query(flow: core.Flow, sql: str, is_cancelled: Callable[[], bool]) -> tuple[Any, ...]:
    with tempfile.TemporaryDirectory(prefix="headrace-keys-") as folder, new_instance() as engine:
        engine.execute(f"SET memory_limit = '{_MEMORY}'")
        engine.execute("SET temp_directory = $1", [folder])
        engine.register(_ROWS, flow.arrow_stream())
        flow.start()
        with ThreadPoolExecutor(1) as worker:
            answer = worker.submit(lambda: engine.execute(sql).fetchone())
            while not wait([answer], _STEP_SECONDS).done:
                if is_cancelled():
                    flow.cancel("cancelled by the user")
                    engine.interrupt()
        while (report := flow.join(_STEP_SECONDS)) is None:
            pass
        if is_cancelled():
            raise CancelledError("cancelled while keys were proved")
        if (failure := answer.exception()) is not None:
            # The flow only says that nobody takes its rows any more.
            raise TargetError(
                "keys cannot be proved",
                found=on_one_line(str(failure)),
                hint="Free memory, or room in the temporary folder, or leave out --exact-keys.",
            )
        core.raise_for_error(report)
        row = answer.result()
    return () if row is None else tuple(row)


def arrow_flow(sliced: Mapping[str, Any], layout: Mapping[str, Any], streams: int, columns: Sequence[str]) -> core.Flow:
    """A flow of these slices that gives columns as an Arrow stream; rejects are counted only."""
    return core.Flow(
        {
            "name": "keys",
            "layout": layout,
            "source": {"files": sliced["files"], "slices": sliced["slices"]},
            "sink": {"kind": "arrow", "columns": list(columns)},
            "streams": streams,
            "memory": {"block_bytes": 512 * 1024, "blocks": 4 * streams, "max_row_bytes": 64 << 20},
            "rejects": {"limit": None, "keep": "examples"},
        }
    )
