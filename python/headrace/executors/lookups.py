"""Reads the lookups of a planned data flow, before its own rows move."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from typing import Any, Final

from headrace import core
from headrace.errors import CancelledError, HeadraceError, MemoryLimitError, SourceError
from headrace.model import EmbeddedQuery, EmbeddedQueryError, FileSource, embedded_database, message_of, row_stream
from headrace.planning import DataFlowPlan, LookupPlan, alike, memory_for_lookups
from headrace.targets import RowStream
from headrace.targets.sql import interrupted

# Told of each lookup that is to be read now, and of each that was read, with the report of the core.
Starts = Callable[[LookupPlan], None]
Ended = Callable[[LookupPlan, dict[str, Any]], None]
# Opens the table of a lookup.
RowsOf = Callable[[LookupPlan], AbstractContextManager[RowStream]]
# How DuckDB begins to say so.
_OUT_OF_MEMORY: Final = "Out of Memory Error"


@dataclass(frozen=True)
class BuiltLookups:
    """The lookups of a flow, in the order of its transforms, and its plan with the memory that they leave. Those that
    are alike are one.
    """

    plan: DataFlowPlan
    lookups: tuple[core.Lookup, ...]
    seconds: float

    def reports(self) -> dict[str, dict[str, Any]]:
        """What the core says of each, by its name. `shared_with`: the name of the one whose rows it has, too."""
        named = list(zip(self.plan.lookups, self.lookups, strict=True))
        return {
            own.name: {**lookup.report(), "shared_with": None if named[first][0] is own else named[first][0].name}
            for (own, lookup), first in zip(named, alike(self.plan.lookups), strict=True)
        }


def build_lookups(
    plan: DataFlowPlan,
    is_cancelled: Callable[[], bool],
    rows_of: RowsOf,
    starts: Starts = lambda _plan: None,
    ended: Ended = lambda _plan, _report: None,
) -> BuiltLookups:
    """Reads one after the other; each may take what those before it have left. Raises what reading them raises.
    `rows_of` opens tables.
    """
    if not plan.lookups:
        return BuiltLookups(plan, (), 0.0)
    started = time.monotonic()
    lookups: list[core.Lookup] = []
    left = plan.memory.lookup_bytes
    for own, first in zip(plan.lookups, alike(plan.lookups), strict=True):
        if first < len(lookups):
            lookups.append(lookups[first])
            continue
        starts(own)
        try:
            lookup = _read(own, own.core_spec(max(0, left), plan.run), is_cancelled, rows_of)
        except MemoryLimitError as error:
            raise _with_memory_to_set(error, plan, own, left) from None
        report = lookup.report()
        left -= int(report["bytes"])
        lookups.append(lookup)
        ended(own, report)
    taken = plan.memory.lookup_bytes - left
    plan = replace(plan, memory=plan.memory.with_lookups(taken))
    return BuiltLookups(plan, tuple(lookups), time.monotonic() - started)


def _read(own: LookupPlan, spec: dict[str, Any], is_cancelled: Callable[[], bool], rows_of: RowsOf) -> core.Lookup:
    if isinstance(own.lookup.source, FileSource):
        return core.Lookup(spec, is_cancelled)
    opened = rows_of(own) if own.reading.query is None else _answered(own, own.reading.query)
    try:
        with opened as stream, interrupted(is_cancelled, stream.interrupt):
            return core.Lookup(spec, is_cancelled, stream.rows())
    except EmbeddedQueryError as error:
        failed = SourceError(f"reading lookup `{own.name}` failed", found=error.text, hint=error.hint)
        raise _failure(own, failed, is_cancelled) from None
    except SourceError as error:
        raise _failure(own, error, is_cancelled) from None


@contextmanager
def _answered(own: LookupPlan, query: EmbeddedQuery) -> Iterator[RowStream]:
    """The rows of a query without a connection."""
    with embedded_database(query, own.reading.engine_bytes) as database:
        yield RowStream(lambda: row_stream(database, query), database.interrupt)


def _failure(own: LookupPlan, error: SourceError, is_cancelled: Callable[[], bool]) -> HeadraceError:
    """With DuckDB's message as people read it."""
    if is_cancelled():
        return CancelledError("building a lookup was cancelled")
    error.found = None if error.found is None else message_of(error.found)
    if not (error.found or "").startswith(_OUT_OF_MEMORY):
        return error
    what = f"reading lookup `{own.name}` needs more memory than its part of the budget"
    return MemoryLimitError(what, found=error.found)


def _with_memory_to_set(error: MemoryLimitError, plan: DataFlowPlan, own: LookupPlan, left: int) -> MemoryLimitError:
    """With a budget that is enough by the estimate of the plan, or twice of what was too little."""
    needed = plan.memory.lookup_bytes - left + max(own.bytes, 2 * left)
    megabytes = -(-memory_for_lookups(plan.memory, needed) // 1_000_000)
    error.hint = f"Set `memory: {megabytes} MB` in the package, or leave rows and columns out of the lookup."
    return error
