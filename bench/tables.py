"""The tables: each is declared once, by its columns, its dialect and what writes its rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random

import yaml

from bench import texts
from bench.columns import Column, Dialect

LAYOUTS = Path(__file__).resolve().parent.parent / "examples" / "tpch" / "layouts"
WIDE_KINDS = ("int32", "int64", "decimal(12,2)", "date", "varchar(24)")


@dataclass(frozen=True)
class Table:
    """A table of the bench.

    `scale`: TPC-H scale of the large set, for tables that Headrace's generator writes. `megabytes`: size of the large
    set, for tables whose rows `rows` makes, line by line with its row end, always the same for the same seed.
    """

    name: str
    what: str
    columns: tuple[Column, ...]
    dialect: Dialect
    scale: float | None = None
    megabytes: float = 0
    rows: Callable[[Random], Iterator[str]] | None = None

    def can_be_read_by(self, peer: str) -> bool:
        """pyarrow and polars cannot cut rows of fixed width."""
        return not self.dialect.widths or peer in ("headrace", "duckdb")


def tpch(name: str, what: str, scale: float) -> Table:
    """A TPC-H table; the example's layout declares its columns."""
    layout = yaml.safe_load((LAYOUTS / f"{name}.yaml").read_text(encoding="utf-8"))
    columns = tuple(Column(column["name"], column["type"]) for column in layout["columns"])
    return Table(name, what, columns, Dialect(layout["delimiter"], layout["trailing_delimiter"]), scale=scale)


LINEITEM = tpch("lineitem", "TPC-H: 4 integers, 4 decimals, 3 dates, 5 texts", 1)
ORDERS = tpch("orders", "TPC-H: 3 integers, 1 decimal, 1 date, 4 texts", 2.5)
PART = tpch("part", "TPC-H: 2 integers, 1 decimal, 6 texts", 16)
CUSTOMER = tpch("customer", "TPC-H: 2 integers, 1 decimal, 5 texts", 16)

_WIDE_COLUMNS = tuple(
    Column(f"c{number + 1:03}_{(kind := WIDE_KINDS[number % len(WIDE_KINDS)]).partition('(')[0]}", kind)
    for number in range(200)
)
WIDE = Table(
    "wide",
    "200 columns: int32, int64, decimal(12,2), date, varchar(24) in turn",
    _WIDE_COLUMNS,
    Dialect(),
    megabytes=400,
    rows=lambda random: texts.mixed_rows(random, [column.type for column in _WIDE_COLUMNS]),
)
NARROW = Table(
    "narrow",
    "2 int32",
    (Column("id", "int32"), Column("quantity", "int32")),
    Dialect(),
    megabytes=400,
    rows=texts.narrow_rows,
)
FLOATS = Table(
    "floats",
    "8 float64 of 6 to 17 significant digits, one in ten with an exponent",
    tuple(Column(f"x{number}", "float64") for number in range(1, 9)),
    Dialect(),
    megabytes=400,
    rows=lambda random: texts.float_rows(random, columns=8),
)
QUOTED = Table(
    "quoted",
    "LINEITEM with commas and qualified texts; some hold commas, doubled qualifiers, line feeds",
    LINEITEM.columns,
    Dialect(delimiter=",", qualifier='"'),
    megabytes=400,
    rows=lambda random: texts.quoted_rows(random, [column.type for column in LINEITEM.columns]),
)
# Widths as a description of such a file would have them: numbers stand at the right, texts at the left.
_FIXED_WIDTHS = (12, 10, 10, 4, 12, 12, 12, 12, 1, 1, 10, 10, 10, 25, 10, 44)
FIXED = Table(
    "fixed",
    "LINEITEM in fixed width: numbers behind blanks, texts before them",
    LINEITEM.columns,
    Dialect(widths=_FIXED_WIDTHS),
    megabytes=400,
    rows=lambda random: texts.fixed_rows(random, [column.type for column in LINEITEM.columns], _FIXED_WIDTHS),
)

TABLES = {table.name: table for table in (LINEITEM, ORDERS, PART, CUSTOMER, WIDE, NARROW, FLOATS, QUOTED, FIXED)}
