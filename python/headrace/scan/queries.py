"""The queries of a comparison: a table of them, filled with the columns that the tables have.

In their texts `{table}` stands for either table. Sums are of whole and exact numbers alone: those of floats depend on
the order of rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from fractions import Fraction
from typing import Final

from headrace.errors import CommandLineError, SqlError, TargetError
from headrace.model import DataType
from headrace.model.suggest import did_you_mean, one_of
from headrace.targets import NUMBERS, Answer, ScannedTable

TABLE: Final = "{table}"
_TEXTS: Final = ("string", "varchar", "char")
_GROUPED: Final = (*NUMBERS, *_TEXTS, "date", "bool")
_KEYS: Final = (*NUMBERS, *_TEXTS, "date")
_RANGED: Final = (*NUMBERS, "date")
# Rows of which the number of different values of each column is counted, and most groups of a good one.
_LOOKED_AT: Final = 10_000
_MOST_GROUPS: Final = 1_000
# The range query takes about this share of the keys, from the middle of all.
_RANGE_SHARE: Final = 100
Ask = Callable[[str], Answer]


@dataclass(frozen=True, slots=True)
class ScanQuery:
    """A query by its name; `pieces` are what stands between the names of the table: `{table}` may be a column, too."""

    name: str
    pieces: tuple[str, ...]

    @property
    def text(self) -> str:
        """The query over whatever table."""
        return TABLE.join(self.pieces)

    def on(self, table: ScannedTable) -> str:
        """The query over one of the tables."""
        return table.sql.join(self.pieces)


@dataclass(frozen=True, slots=True)
class Chosen:
    """What the user has said: the columns that are summed and grouped by, and queries of their own."""

    column: str | None = None
    group: str | None = None
    texts: tuple[str, ...] = ()


class QueryMaker:
    """Makes the queries for two tables. `notes` gets a sentence for each query that cannot be made."""

    def __init__(
        self,
        tables: tuple[ScannedTable, ScannedTable],
        ask: Ask,
        literal: Callable[[str, DataType], str],
        quote: Callable[[str], str],
    ) -> None:
        self._whole, self._divided = tables
        self._ask = ask
        self._literal = literal
        self._quote = quote
        self._columns = {
            name: kind
            for name, kind in self._whole.columns.items()
            if kind is not None and name in self._divided.columns
        }
        self.notes: list[str] = []

    def queries(self, chosen: Chosen, rows: int) -> list[ScanQuery]:
        """All queries, those of the user last. `rows`: of the table that is not divided."""
        made = [ScanQuery("count", ("SELECT count(*) FROM ", ""))]
        summed = self._summed(chosen.column)
        aggregates = "count(*)" if summed is None else f"count(*), sum({self._quote(summed)})"
        if summed is not None:
            made.append(ScanQuery("sum", (f"SELECT {aggregates} FROM ", "")))
        group = self._group(chosen.group)
        if group is not None:
            made.append(ScanQuery("group by", (f"SELECT {self._quote(group)}, {aggregates} FROM ", " GROUP BY 1")))
        made += self._by_key(aggregates, rows)
        return [*made, *_own(chosen.texts)]

    def _summed(self, wanted: str | None) -> str | None:
        if wanted is not None:
            return self._named(wanted, "--column", NUMBERS, "a whole or exact number")
        key = self._divided.key
        numbers = [name for name, kind in self._columns.items() if kind.kind in NUMBERS]
        best = sorted(numbers, key=lambda name: (name in key, self._columns[name].kind != "decimal"))
        if not best:
            self.notes.append("no sum: both tables have no column of whole or exact numbers in common")
        return best[0] if best else None

    def _group(self, wanted: str | None) -> str | None:
        """The column with the fewest different values among the first rows, but more than one."""
        if wanted is not None:
            return self._named(wanted, "--group", _GROUPED, "a number, a text, a date or true and false")
        names = [name for name, kind in self._columns.items() if kind.kind in _GROUPED]
        if names:
            counts = ", ".join(f"count(DISTINCT {self._quote(name)})" for name in names)
            [found] = self._ask(
                f"SELECT {counts} FROM (SELECT * FROM {self._whole.sql} LIMIT {_LOOKED_AT}) AS first_rows"
            )
            several = [
                (int(count or 0), place) for place, count in enumerate(found) if 1 < int(count or 0) <= _MOST_GROUPS
            ]
            if several:
                return names[min(several)[1]]
        self.notes.append(f"no group by: no column has 2 to {_MOST_GROUPS:,} values; name one with --group")
        return None

    def _by_key(self, aggregates: str, rows: int) -> Iterator[ScanQuery]:
        """The rows of one key, which one partition has; and those of a range of keys."""
        key = self._divided.key
        kinds = [self._columns.get(name) for name in key]
        known = [kind for kind in kinds if kind is not None and kind.kind in _KEYS]
        if not key or len(known) != len(key):
            self.notes.append("no queries by key: the table is not divided by columns of numbers, texts or dates")
            return
        quoted = [self._quote(name) for name in key]
        there = " AND ".join(f"{name} IS NOT NULL" for name in quoted)
        found = self._ask(
            f"SELECT {', '.join(quoted)} FROM {self._whole.sql} WHERE {there} LIMIT 1 OFFSET {rows // 2}"
        ) or self._ask(f"SELECT {', '.join(quoted)} FROM {self._whole.sql} WHERE {there} LIMIT 1")
        if not found:
            self.notes.append("no queries by key: all keys are NULL")
            return
        same = [
            f"{name} = {self._literal(value or '', kind)}"
            for name, value, kind in zip(quoted, found[0], known, strict=True)
        ]
        yield ScanQuery("one key", (f"SELECT {aggregates} FROM ", f" WHERE {' AND '.join(same)}"))
        if len(known) == 1 and known[0].kind in _RANGED:
            [(least, greatest)] = self._ask(f"SELECT min({quoted[0]}), max({quoted[0]}) FROM {self._whole.sql}")
            ends = _middle(least or "", greatest or "", known[0])
            if ends is None:
                self.notes.append("no range of keys: the least or the greatest key is no finite number or date")
                return
            low, high = (self._literal(text, known[0]) for text in ends)
            where = f" WHERE {quoted[0]} BETWEEN {low} AND {high}"
            yield ScanQuery("range of keys", (f"SELECT {aggregates} FROM ", where))

    def _named(self, wanted: str, option: str, kinds: Sequence[str], expected: str) -> str:
        by_lower_case = {name.lower(): name for name in self._columns}
        name = wanted if wanted in self._columns else by_lower_case.get(wanted.lower())
        if name is None:
            raise CommandLineError(
                f"both tables have no column `{wanted}` in common",
                at={"option": f"{option} {wanted}"},
                expected=one_of(self._columns),
                hint=did_you_mean(wanted, self._columns),
            )
        if self._columns[name].kind not in kinds:
            raise CommandLineError(
                f"column `{name}` cannot be used for {option}",
                at={"option": f"{option} {wanted}"},
                found=f"type {self._columns[name]}",
                expected=expected,
                hint="Name another column, or write a query with --sql.",
            )
        return name


def _own(texts: Sequence[str]) -> Iterator[ScanQuery]:
    for number, text in enumerate(texts, 1):
        if TABLE not in text:
            raise CommandLineError(
                "a query names no table",
                at={"option": "--sql"},
                found=text,
                expected=f"`{TABLE}` where the name of the table belongs",
                hint=f'Write for example --sql "SELECT count(*) FROM {TABLE}".',
            )
        yield ScanQuery(f"sql {number}", tuple(text.split(TABLE)))


def _middle(least: str, greatest: str, kind: DataType) -> tuple[str, str] | None:
    """The first and the last key of a range in the middle of all; None if one of the ends is no finite value."""
    # The scale of a type says nothing where PostgreSQL stores numbers of any scale.
    scale = max(len(text.partition(".")[2]) for text in (least, greatest))
    try:
        first, last = _number(least, kind, scale), _number(greatest, kind, scale)
    except ValueError:
        return None
    low = first + (last - first) // 2
    high = low + max(1, (last - first) // _RANGE_SHARE) - 1
    return _written(low, kind, scale), _written(high, kind, scale)


def _number(text: str, kind: DataType, scale: int) -> int:
    """A key as a whole number: days, or units of the last decimal. Decimals themselves would round what is longer than
    28 digits. Raises ValueError for what is none, such as `infinity`.
    """
    return date.fromisoformat(text).toordinal() if kind.kind == "date" else int(Fraction(text) * 10**scale)


def _written(number: int, kind: DataType, scale: int) -> str:
    if kind.kind == "date":
        return date.fromordinal(number).isoformat()
    digits = tuple(map(int, str(abs(number))))
    return format(Decimal((int(number < 0), digits, -scale)), "f")


@contextmanager
def told(query: ScanQuery, table: ScannedTable) -> Iterator[None]:
    """Errors of a database say which query has failed, and on which table."""
    try:
        yield
    except (SqlError, TargetError) as error:
        error.what = f"query `{query.name}` on {table.name}: {error.what}"
        error.args = (error.what,)
        error.at = {"query": query.on(table)}
        raise
