"""Names that a target would cut: refused, wherever they come from. What a package says is checked with the package;
here come names that are known later, such as those of the columns of a query.
"""

from __future__ import annotations

from collections.abc import Iterable

from headrace.errors import TargetError
from headrace.model import cut_name
from headrace.planning.target_table import TargetTable


def refuse_cut_name(thing: str, name: str, maximum_bytes: int | None) -> None:
    """Raises TargetError if `name`, that of `thing`, is longer than a target takes."""
    cut = cut_name(name, maximum_bytes)
    if cut is not None:
        raise TargetError(f"the name of {thing} is too long", found=cut.found, expected=cut.expected, hint=cut.hint)


def refuse_cut_names(table: TargetTable, columns: Iterable[str]) -> None:
    """The same for schema, name and columns of a table that a load fills."""
    destination, maximum = table.destination, table.capabilities.maximum_name_bytes
    refuse_cut_name(f"the schema of table {table.name}", destination.schema or "", maximum)
    refuse_cut_name(f"table {table.name}", destination.table, maximum)
    for column in columns:
        refuse_cut_name(f"a column of table {table.name}", column, maximum)
