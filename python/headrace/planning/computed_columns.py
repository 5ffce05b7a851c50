"""Whether a column behind a query, or of one of several destinations, fits the column of a table that it goes into."""

from __future__ import annotations

from headrace.model import ComputedColumn, DataType, native_type
from headrace.planning.catalog import CatalogColumn
from headrace.planning.column_mapping import ColumnMapping, Differences
from headrace.planning.plan import OutputColumn
from headrace.planning.types_match import is_lossless

# Kinds of texts whose length no query can promise.
_TEXTS = frozenset({"string", "varchar"})


def check_computed(
    column: ComputedColumn, target: CatalogColumn, mapping: ColumnMapping, differences: Differences
) -> None:
    """It goes there without loss, or with texts that are counted, one by one; NULL where none may be is a reject."""
    loaded_as = _loaded_as(column, target, mapping, differences)
    mapping.columns.append(OutputColumn(column.name, target.name, loaded_as, column.nullable and target.nullable))
    if target.nullable or not column.nullable:
        return
    given = f"that {column.kind} `{column.transform}` gives for" if column.transform else "in"
    mapping.notes.append(f"a NULL {given} `{column.name}` is a reject, because `{target.name}` is NOT NULL")


def _loaded_as(
    column: ComputedColumn, target: CatalogColumn, mapping: ColumnMapping, differences: Differences
) -> DataType:
    whose = f"the {column.kind} `{column.transform}` gives" if column.transform else "the rows have"
    if column.lookup:
        whose = f"the lookup `{column.lookup}` adds"
    found = f"`{target.name}`: {whose} {column.type}, the table has {target.native_type}"
    if target.generated:
        differences.add(
            f"`{target.name}`: the table computes it", f"Leave `{column.name}` out with `columns` of the destination."
        )
    elif target.type is None:
        differences.add(
            found, f"{target.native_type} cannot be loaded; leave `{target.name}` out or load another table."
        )
    elif is_lossless(column.type, target.type):
        if target.alters is not None:
            mapping.notes.append(f"`{target.name}` is {target.native_type}, which {target.alters}")
    elif target.type.kind == "varchar" and column.type.kind in _TEXTS:
        mapping.notes.append(f"a text of `{column.name}` with more than {target.type.length} characters is a reject")
        return target.type
    elif target.type.kind in ("char", "varchar"):
        differences.add(found, f"Make `{target.name}` of the table a text without a length, or leave it out.")
    else:
        where = "the query" if column.kind == "query" else f"a query behind the {column.kind}"
        hint = f"Write CAST(... AS {native_type(target.type)}) AS {column.name} in {where} if it may round and fail"
        if column.lookup:
            hint = f"Let the lookup `{column.lookup}` read `{column.name}` as {target.type}, by its layout or a CAST"
        elif not column.transform:
            hint = f"Declare `{column.name}` as {target.type} in the layout, which holds for all destinations"
        differences.add(found, f"{hint}, or change the table.")
    return column.type
