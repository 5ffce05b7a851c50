"""What one of several destinations cannot hold is checked at the end of its way."""

from __future__ import annotations

from headrace.model import ComputedColumn, DataType
from headrace.planning.column_mapping import ColumnMapping
from headrace.planning.plan import OutputColumn
from headrace.planning.shared import fit_columns


def fit(*columns: tuple[str, str, bool]) -> list[tuple[str, str, bool]]:
    """Of a text and a number that may be NULL, and of one that is not: what goes into columns as these."""
    text = ComputedColumn("text", DataType.parse("string"), True, "")
    number = ComputedColumn("number", DataType.parse("int64"), True, "")
    key = ComputedColumn("key", DataType.parse("int64"), False, "")
    mapping = ColumnMapping()
    for name, data_type, nullable in columns:
        mapping.columns.append(OutputColumn(name, f"of_{len(mapping.columns)}", DataType.parse(data_type), nullable))
    return [(own.name, str(own.type), own.nullable) for own in fit_columns([text, number, key], mapping)]


def test_what_fits_as_it_is_needs_no_look() -> None:
    assert (
        fit(("text", "string", True), ("number", "int64", True), ("key", "int64", False), ("key", "int64", True)) == []
    )


def test_lengths_and_nulls_are_looked_at() -> None:
    assert fit(("text", "varchar(5)", True), ("number", "int64", False)) == [
        ("text", "varchar(5)", True),
        ("number", "int64", False),
    ]


def test_of_several_columns_that_one_goes_into_the_narrowest_counts() -> None:
    several = [("text", "varchar(9)", True), ("text", "varchar(5)", False), ("text", "string", True)]
    assert fit(*several) == fit(*reversed(several)) == [("text", "varchar(5)", False)]
