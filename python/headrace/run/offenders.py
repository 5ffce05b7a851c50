"""Names the row that a destination has refused without saying which one it was: the first in file order that breaks one
of the constraints in question.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Final

import duckdb

from headrace.errors import HeadraceError, on_one_line
from headrace.executors import Cancel, RowsOf, build_lookups
from headrace.model.load import usable_cpus
from headrace.planning import DataFlowPlan
from headrace.planning.wording import stream_name
from headrace.run import constraint_sql
from headrace.run.folder import RunFolder
from headrace.run.second_pass import SecondPass
from headrace.targets import Constraint, OpenOptions, RowSearch, Target, open_engine

# It groups what the parser gives; more threads would only need more memory.
_MOST_THREADS: Final = 4
_HINT: Final = (
    "Correct the row in the source, or change the constraint. Loading again without that gives the same answer."
)


@dataclass(frozen=True)
class _Offender:
    """A row by its position in the source; `first`: that of the row whose key it repeats."""

    position: int
    first: int | None
    values: Sequence[str]
    constraint: Constraint


def _stands_in_files(plan: DataFlowPlan) -> bool:
    return plan.source.generate is None and plan.gather is None


def name_offender(
    error: BaseException,
    plan: DataFlowPlan,
    target: Target,
    folder: RunFolder,
    notice: Callable[[str], None],
    cancel: Cancel,
    rows_of: RowsOf,
) -> None:
    """Writes file, row, byte and key into the error of a load that has failed, if it is about a row that reading the
    source again can find. The load has given back what it held.

    Whatever goes wrong meanwhile, also that `cancel` is set, leaves the error as it is.
    """
    if not isinstance(error, HeadraceError) or error.at is not None or not _stands_in_files(plan):
        return
    plan = plan.alone
    if not plan.lookups:  # those of other ways of its flow take nothing now
        plan = replace(plan, memory=plan.memory.with_lookups(0))
    try:
        search = None if cancel.is_set() else target.row_search(plan, error)
        if search is None or not search.constraints:
            return
        if plan.join is not None:
            notice("the row is not looked for: joined rows stand in several files")
            return
        if plan.source.streams:
            notice(f"the row is not looked for: {stream_name(plan.source.streams[0])} cannot be read again")
            return
        notice("looking for the row with a second pass over the source")
        built = build_lookups(plan, cancel.is_set, rows_of)
        with _opened(search, built.plan, folder) as (plan_with_engine, engine), _scratch(folder) as rejects_folder:
            source = SecondPass(plan_with_engine, built.lookups, search.place, engine, rejects_folder, cancel)
            offender = _first_offender(source, search, engine)
            if offender is None:
                notice("the second pass found no such row")
                return
            places = source.places([row for row in (offender.position, offender.first) if row is not None])
    except (Exception, KeyboardInterrupt) as problem:  # whatever it is, what made the load fail matters more
        was_cancelled = cancel.is_set() or isinstance(problem, KeyboardInterrupt)
        notice("the second pass " + ("was cancelled" if was_cancelled else f"failed: {_first_line(problem)}"))
    else:
        error.at, error.found, error.hint = dict(places[0]), _found(offender, places), _HINT


def _first_offender(source: SecondPass, search: RowSearch, engine: duckdb.DuckDBPyConnection) -> _Offender | None:
    offenders = [
        _Offender(position, first, values, constraint)
        for constraint in search.constraints
        for position, first, values in _offending_rows(source, search, constraint, engine)
    ]
    return min(offenders, key=lambda offender: offender.position, default=None)


def _offending_rows(
    source: SecondPass, search: RowSearch, constraint: Constraint, engine: duckdb.DuckDBPyConnection
) -> list[tuple[Any, ...]]:
    """The first row for each way in which the constraint can be broken."""
    sources = [column.source for column in constraint.columns]
    if constraint.condition is not None:
        return source.query(constraint_sql.first_breach(constraint, source.rows, search.table), sources)
    rows = []
    try:
        ((repeated,),) = source.query(constraint_sql.collect_repeated(constraint, source.rows), sources)
        if repeated:
            rows += source.query(constraint_sql.first_repeat(constraint, source.rows), sources)
    finally:
        engine.execute(constraint_sql.DROP_REPEATED)
    if search.rows_before is not None:
        rows += source.query(constraint_sql.first_known(constraint, source.rows, search.rows_before), sources)
    return rows


@contextmanager
def _opened(
    search: RowSearch, plan: DataFlowPlan, folder: RunFolder
) -> Iterator[tuple[DataFlowPlan, duckdb.DuckDBPyConnection]]:
    """The engine for the search, and the plan with room for it in the memory budget."""
    if search.engine is not None:  # that of the destination, for which there is room already
        yield plan, search.engine
        return
    threads = min(usable_cpus(), _MOST_THREADS)
    memory = plan.memory.with_engine(threads)
    options = OpenOptions(
        engine_bytes=memory.engine_bytes,
        threads=threads,
        spill_folder=str(folder.spill),
        read_only=False,
        notice=lambda _text: None,
        is_cancelled=lambda: False,
    )
    with open_engine(options) as engine:
        yield replace(plan, memory=memory), engine


@contextmanager
def _scratch(folder: RunFolder) -> Iterator[str]:
    """Where the rejects are written once more, to be forgotten."""
    with tempfile.TemporaryDirectory(prefix="second-pass-", dir=folder.path) as path:
        yield path


def _found(offender: _Offender, places: Sequence[Mapping[str, object]]) -> str:
    constraint = offender.constraint
    names = ", ".join(column.name for column in constraint.columns)
    values = on_one_line(", ".join(offender.values))
    kind = "Key" if constraint.condition is None else "Row with"
    text = f"{kind} ({names})=({values})"
    if len(places) > 1:
        text += f", first in {_short(places[1], places[0])}"
    elif constraint.condition is None:
        text += ", which the table has already"
    return f"{text}\nbreaks {constraint.text}"


def _short(place: Mapping[str, object], other: Mapping[str, object]) -> str:
    """Without the folder, if that is the same as that of the other place."""
    path, other_path = str(place["file"]), str(other["file"])
    is_beside = os.path.dirname(path) == os.path.dirname(other_path)
    return f"{os.path.basename(path) if is_beside else path}, row {place['row']}"


def _first_line(problem: BaseException) -> str:
    found = problem.found if isinstance(problem, HeadraceError) else None
    return (str(problem) + (f" ({found})" if found else "")).split("\n", 1)[0]
