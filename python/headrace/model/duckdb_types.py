"""Type kinds and their DuckDB types, both ways."""

from __future__ import annotations

import re
from typing import Final

from headrace.model.data_type import DataType

# char(n) and varchar(n) are VARCHAR: DuckDB has no length check of its own. The parser checks the length, and cuts the
# trailing blanks of char(n), because DuckDB compares them.
_NATIVE: Final = {
    "int16": "SMALLINT",
    "int32": "INTEGER",
    "int64": "BIGINT",
    "float32": "FLOAT",
    "float64": "DOUBLE",
    "bool": "BOOLEAN",
    "date": "DATE",
    "time": "TIME",
    "timestamp": "TIMESTAMP",
    "timestamptz": "TIMESTAMP WITH TIME ZONE",
    "string": "VARCHAR",
    "char": "VARCHAR",
    "varchar": "VARCHAR",
    "bytes": "BLOB",
    "uuid": "UUID",
    "json": "JSON",
}
STORED_KINDS: Final = frozenset({*_NATIVE, "decimal"})

# Where several kinds share a native type, the widest one stands for it.
_KIND_OF_NATIVE: Final = {native: kind for kind, native in _NATIVE.items() if kind not in ("char", "varchar")}


def native_type(data_type: DataType) -> str:
    """The DuckDB type in which a column of this type is stored."""
    if data_type.kind == "decimal":
        return f"DECIMAL({data_type.precision},{data_type.scale})"
    return _NATIVE[data_type.kind]


def data_type(native: str, precision: int | None, scale: int | None) -> DataType | None:
    """The type of an existing column, as `duckdb_columns()` describes it; None if it has no counterpart."""
    if native.startswith("DECIMAL("):
        return DataType.parse(f"decimal({precision},{scale})")
    if native == "HUGEINT":
        return DataType.parse("decimal(38,0)")  # every value of which HUGEINT holds
    kind = _KIND_OF_NATIVE.get(native)
    return None if kind is None else DataType.parse(kind)


_DECIMAL: Final = re.compile(r"DECIMAL\((\d+),(\d+)\)")


def described_type(native: str) -> DataType | None:
    """The type of a column of a query, as DESCRIBE writes it; None if none has just its values."""
    decimal = _DECIMAL.fullmatch(native)
    if decimal is not None:
        return data_type(native, int(decimal[1]), int(decimal[2]))
    return None if native == "HUGEINT" else data_type(native, None, None)
