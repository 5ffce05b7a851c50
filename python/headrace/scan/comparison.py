"""The whole comparison: look at the tables, make the queries, compare the answers, measure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from headrace import units
from headrace.errors import DifferenceError, TargetError
from headrace.scan.measure import Measured, measure
from headrace.scan.queries import Chosen, QueryMaker, ScanQuery, told
from headrace.scan.spread import Part, Spread
from headrace.targets import Answer, ScannedTable, ScanSession, count_rows

# What may stand beside a table with partitions.
_SCANNED = ("table", "materialized view", "foreign table")


@dataclass(frozen=True, slots=True)
class ScanRequest:
    """`whole`: the table that is not divided, `divided` the other one."""

    whole: str
    divided: str
    repetitions: int
    chosen: Chosen = field(default_factory=Chosen)


@dataclass(frozen=True, slots=True)
class ScanComparison:
    """What was found. `notes`: what was left out, a sentence each."""

    whole: ScannedTable
    divided: ScannedTable
    rows: int
    spread: Spread
    queries: tuple[Measured, ...]
    notes: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready form."""
        return {
            "whole": {"table": self.whole.name, "rows": self.rows, "bytes": self.whole.bytes},
            "divided": {
                "table": self.divided.name,
                "rows": sum(part.rows for part in self.spread.parts),
                "bytes": self.divided.bytes,
                "strategy": self.divided.strategy,
                "key": list(self.divided.key),
                "spread": self.spread.to_dict(),
            },
            "queries": [query.to_dict() for query in self.queries],
            "notes": list(self.notes),
        }


def compare(session: ScanSession, request: ScanRequest, tell: Callable[[str], None]) -> ScanComparison:
    """Raises TargetError for tables that cannot be compared, DifferenceError where answers differ, SqlError for a query
    that is refused, CancelledError. `tell` gets a sentence before each longer step.
    """
    whole, divided = _tables(session, request)
    tell("counting rows")
    count = ScanQuery("count", ("SELECT count(*) FROM ", ""))
    with told(count, whole):
        rows = count_rows(session.answer, whole.sql)
    with told(count, divided):
        spread = _spread(session, divided)
    if not rows:
        raise TargetError(
            f"table {whole.name} is empty", expected="a loaded table", hint="Load both tables from the same rows."
        )
    maker = QueryMaker((whole, divided), session.answer, session.literal, _quote)
    queries = maker.queries(request.chosen, rows)
    measured = []
    for query in queries:
        tell(f"{query.name}: {request.repetitions} times on each table")
        size = _answers(session, query, (whole, divided))
        measured.append(measure(session, query, (whole, divided), request.repetitions, size))
    return ScanComparison(whole, divided, rows, spread, tuple(measured), tuple(maker.notes))


def _tables(session: ScanSession, request: ScanRequest) -> tuple[ScannedTable, ScannedTable]:
    whole, divided = _table(session, request.whole), _table(session, request.divided)
    if whole.strategy is not None:
        swap = divided.strategy is None
        raise TargetError(
            f"table {whole.name} is divided",
            found=_division(whole),
            expected="first a table that is not divided, then one that is",
            hint="Exchange the two names." if swap else "Name the table that was loaded without partitions first.",
        )
    if whole.kind not in _SCANNED:
        raise TargetError(
            f"{whole.name} is {'an' if whole.kind[0] in 'aeiou' else 'a'} {whole.kind}",
            expected="a table that is not divided",
            hint="Name the table itself: a view may stand for anything, also for the table with partitions.",
        )
    if divided.strategy is None:
        raise TargetError(
            f"table {divided.name} is not divided",
            found="a table without partitions, or a view that no load has made",
            expected="a table with partitions; in DuckDB a view over a table for each (`load: view`)",
            hint="Load it with a `partition` clause, such as `partition: {hash: {column: KEY}}`.",
        )
    if not divided.parts:
        raise TargetError(
            f"table {divided.name} has no partitions yet", expected="a loaded table", hint="Load it first."
        )
    return whole, divided


def _table(session: ScanSession, name: str) -> ScannedTable:
    found = session.table(name)
    if found is None:
        raise TargetError(
            f"there is no table {name}",
            hint="Check the name; a table outside of the default schema is written SCHEMA.TABLE.",
        )
    return found


def _division(table: ScannedTable) -> str:
    by = f" of {', '.join(table.key)}" if table.key else ""
    return f"by {table.strategy}{by}, into {len(table.parts):,} partitions"


def _spread(session: ScanSession, divided: ScannedTable) -> Spread:
    rows = session.part_rows(divided)
    return Spread.of([Part(part.name, own, part.bytes) for part, own in zip(divided.parts, rows, strict=True)])


def _answers(session: ScanSession, query: ScanQuery, tables: Sequence[ScannedTable]) -> int:
    """How many rows the query has given. Both tables are read once: what can be in memory is there from now on."""
    answers = []
    for table in tables:
        with told(query, table):
            answers.append(session.answer(query.on(table)))
    whole, divided = answers
    if Counter(whole) != Counter(divided):
        raise DifferenceError(
            f"query `{query.name}` gives different answers on {tables[0].name} and {tables[1].name}",
            at={"query": query.text},
            found=f"{_shown(divided, whole)} on {tables[1].name}",
            expected=f"{_shown(whole, divided)}, as on {tables[0].name}",
            hint="Load both from the same rows. Sums of floats depend on the order of rows: CAST them to a decimal.",
        )
    return len(whole)


def _shown(answer: Answer, other: Answer) -> str:
    """The first row that the other answer lacks, or has less often."""
    rows, others = Counter(answer), Counter(other)
    row = next(iter(sorted(rows - others, key=repr)), None)
    if row is None:
        return f"no such row, and {units.plural(len(answer), 'row')} in all"
    times = f", {units.plural(rows[row], 'time')}" if others[row] else ""
    return " | ".join("NULL" if value is None else value for value in row) + times


def _quote(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
