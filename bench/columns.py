"""What a table declares, and every reader's form of it: one declaration, no copy per reader.

A type is written as a Headrace layout writes it (`decimal(15,2)`); the other readers' types follow from that text.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

# Behind the last delimiter of a row, where rows end with one: a column without values that no reader converts.
END_OF_ROW = "end_of_row"


@dataclass(frozen=True)
class Column:
    """A column; none of the bench's columns may be null."""

    name: str
    type: str

    @property
    def kind(self) -> str:
        """int32, decimal, varchar, ..."""
        return self.type.partition("(")[0]

    @property
    def numbers(self) -> tuple[int, ...]:
        """Precision and scale, or the length."""
        return tuple(int(number) for number in re.findall(r"[0-9]+", self.type.partition("(")[2]))


@dataclass(frozen=True)
class Dialect:
    """How fields and rows are told apart. Rows end with a line feed."""

    delimiter: str = ","
    trailing_delimiter: bool = False
    qualifier: str | None = None
    # Of fixed width, in bytes, in place of a delimiter.
    widths: tuple[int, ...] = ()
    # Further settings of Headrace's layout, which the peers have not.
    more: tuple[tuple[str, Any], ...] = ()


def duckdb_type(column: Column) -> str:
    """DuckDB has no char(n) and varchar(n)."""
    if column.kind == "decimal":
        return "DECIMAL({}, {})".format(*column.numbers)
    names = {"int32": "INTEGER", "int64": "BIGINT", "float64": "DOUBLE", "date": "DATE"}
    return names.get(column.kind, "VARCHAR")


def postgres_columns(columns: tuple[Column, ...]) -> str:
    """The columns of CREATE TABLE; decimals, char(n) and varchar(n) are written there as a layout writes them."""
    names = {"int32": "integer", "int64": "bigint", "float64": "double precision"}
    return ", ".join(f"{column.name} {names.get(column.kind, column.type)} NOT NULL" for column in columns)


def pyarrow_type(column: Column) -> Any:
    """pyarrow.csv makes neither 64-bit decimals nor string views: it gets the types that it can make."""
    import pyarrow

    if column.kind == "decimal":
        return pyarrow.decimal128(*column.numbers)
    types = {"int32": pyarrow.int32, "int64": pyarrow.int64, "float64": pyarrow.float64, "date": pyarrow.date32}
    return types.get(column.kind, pyarrow.string)()


def pyarrow_type_of_headrace(column: Column) -> Any:
    """The type of Headrace's own batches: 64-bit decimals up to 18 digits, string views."""
    import pyarrow

    if column.kind == "decimal" and column.numbers[0] <= 18:
        return pyarrow.decimal64(*column.numbers)
    return pyarrow.string_view() if column.kind in ("char", "varchar", "string") else pyarrow_type(column)


def polars_type(column: Column) -> Any:
    """polars has no char(n) and varchar(n)."""
    import polars

    if column.kind == "decimal":
        return polars.Decimal(*column.numbers)
    types = {"int32": polars.Int32, "int64": polars.Int64, "float64": polars.Float64, "date": polars.Date}
    return types.get(column.kind, polars.String)


def headrace_layout(columns: tuple[Column, ...], dialect: Dialect) -> dict[str, Any]:
    """The layout as a package writes it."""
    if dialect.widths:
        places = zip(columns, dialect.widths, strict=True)
        declared = [{"name": item.name, "type": item.type, "nullable": False, "width": width} for item, width in places]
        return {"shape": "fixed_width", "trim": "both", "columns": declared}
    layout: dict[str, Any] = {"delimiter": dialect.delimiter, "trailing_delimiter": dialect.trailing_delimiter}
    if dialect.qualifier is not None:
        layout["qualifier"] = dialect.qualifier
    declared = [{"name": item.name, "type": item.type, "nullable": False} for item in columns]
    return layout | dict(dialect.more) | {"columns": declared}
