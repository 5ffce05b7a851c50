"""What an existing table or view forbids, before row 1."""

from __future__ import annotations

from collections.abc import Collection

from headrace.errors import TargetError
from headrace.planning.catalog import CatalogTable
from headrace.planning.column_mapping import ColumnMapping
from headrace.planning.target_table import TargetTable
from headrace.planning.wording import counted


def check_existing(table: TargetTable, load: str) -> None:
    """Raises TargetError unless the table that exists can be loaded as the package says."""
    destination, catalog = table.destination, table.catalog
    if catalog is None:
        return
    if load == "view":
        _check_view(table, catalog)
    elif catalog.kind != "table":
        raise TargetError(
            f"{table.name} is a {catalog.kind}, not a table",
            hint=f"Drop the {catalog.kind} or load another table.",
        )
    if destination.target == "create":
        raise TargetError(
            f"{catalog.kind} {table.name} exists already, and destination `{destination.name}` says `target: create`",
            found=f"a {catalog.kind} with {counted(len(catalog.columns), 'column')}",
            hint=f"Use `target: append` to add rows, `target: replace` to replace them, or drop the {catalog.kind}.",
        )
    if destination.target == "replace" and catalog.referenced_by:
        raise TargetError(
            f"table {table.name} cannot be replaced: other tables refer to its rows",
            found=f"foreign keys of {', '.join(catalog.referenced_by)}",
            hint="Empty those tables first, or use `target: append`.",
        )
    if destination.partitions:
        check_dropped(table, destination.partitions, "loaded anew", "leave it out of `partitions`")
    elif destination.target == "replace" and catalog.prevents_replace:
        raise TargetError(
            f"table {table.name} cannot be replaced",
            found=", ".join(catalog.prevents_replace),
            hint="Remove what stands in the way, or use `target: append`.",
        )


def check_dropped(table: TargetTable, names: Collection[str], what: str, otherwise: str) -> None:
    """Raises TargetError if something hangs on one of these partitions of the existing table.

    `what`: what becomes of it; `otherwise`: what to do if the thing has to stay.
    """
    partitioning = table.catalog.partitioning if table.catalog else None
    name_key = table.capabilities.name_key
    going = {name_key(name) for name in names}
    for part in partitioning.partitions if partitioning else ():
        if name_key(part.name) in going and part.prevents_drop:
            raise TargetError(
                f"partition {part.name} of table {table.name} cannot be {what}",
                found=", ".join(part.prevents_drop),
                hint=f"Remove what stands in the way, or {otherwise}.",
            )


def foreign_view(table_name: str) -> TargetError:
    """For a view that is no union of tables of earlier loads."""
    return TargetError(
        f"{table_name} is a view that no load has made",
        hint="Load another table, or drop the view.",
    )


def check_view_columns(table: TargetTable, load: str, mapping: ColumnMapping) -> None:
    """Raises TargetError if a view would show a column that the new tables behind it do not have."""
    if load != "view" or table.catalog is None:
        return
    filled = {column.target for column in mapping.columns}
    missing = [column.name for column in table.catalog.columns if column.name not in filled]
    if missing:
        raise TargetError(
            f"view {table.name} has columns that the source does not fill",
            found=", ".join(missing),
            hint="Load them too, or drop the view: it is made anew then.",
        )


def _check_view(table: TargetTable, catalog: CatalogTable) -> None:
    """Raises TargetError unless what exists is a view over the tables of earlier loads."""
    if catalog.kind != "view":
        raise TargetError(
            f"{table.name} is a {catalog.kind}, and `load: view` makes a view",
            hint=f"Set `load: single` for destination `{table.destination.name}`, or drop the {catalog.kind}.",
        )
    if not catalog.view_tables:
        raise foreign_view(table.name)
