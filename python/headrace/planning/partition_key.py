"""The column by which a table is divided: whether it can be that, in the layout and in the existing table."""

from __future__ import annotations

from headrace.errors import TargetError
from headrace.model import (
    AddedColumn,
    ComputedColumn,
    DataFlowTask,
    DataType,
    Destination,
    FirstColumn,
    PartitionClause,
    RangePartition,
    strategy_of,
)
from headrace.model.key_values import key_type
from headrace.planning.capabilities import Capabilities
from headrace.planning.catalog import CatalogTable
from headrace.planning.existing import foreign_view
from headrace.planning.types_match import INTEGER_DIGITS, TEXT_KINDS


def is_partitioned(task: DataFlowTask, capabilities: Capabilities) -> bool:
    """Whether the rows of a task are loaded into partitions, if its files have any rows."""
    return task.destination.partition is not None and task.destination.load in capabilities.partition_loads


def is_enforced(task: DataFlowTask, capabilities: Capabilities) -> bool:
    """Whether a task's partitions only say which rows are outside of its one table."""
    destination = task.destination
    is_declared = destination.partition is not None and destination.load == "staged"
    return is_declared and capabilities.partitions and not is_partitioned(task, capabilities)


def key_column(task: DataFlowTask, capabilities: Capabilities, table_name: str) -> FirstColumn:
    """The column of the rows of a partitioned task that is its key. Raises TargetError if it cannot be one.

    Asked before keys are looked at, which depend on it.
    """
    destination, layout = task.destination, task.source.layout
    clause = destination.partition
    assert clause is not None
    refused = f"table {table_name} cannot be partitioned by `{clause.column}`"
    wanted = capabilities.name_key(clause.column)
    chosen = destination.columns or {column.name: column.name for column in task.columns}
    source = next((source for target, source in chosen.items() if capabilities.name_key(target) == wanted), None)
    column = next((column for column in task.columns if column.name == source), None)
    if column is None:
        raise TargetError(
            refused,
            found="no source column goes into it",
            expected=f"one of: {', '.join(chosen)}",
            hint=f"Correct `partition` of destination `{destination.name}`.",
        )
    # Of transforms behind a table that was not looked at before, nobody has known until now.
    own = next((own for own in task.rows if own.name == source), None)
    if isinstance(own, AddedColumn) or (isinstance(own, ComputedColumn) and own.field != source):
        whose = own.lookup if isinstance(own, AddedColumn) else own.transform
        raise TargetError(
            refused,
            found=f"`{source}` comes from the transform `{whose}`",
            expected="a column that is read from the file, by its own name",
            hint="Choose another key, or leave `partition` out.",
        )
    strategy = strategy_of(clause)
    kinds = capabilities.partition_key_kinds.get(strategy, frozenset())
    if column.type.kind not in kinds or (strategy == "range" and key_type(column.type) is None):
        what = "whose values follow each other" if strategy == "range" else f"that can be divided by {strategy}"
        raise TargetError(
            refused,
            found=f"type {column.type}",
            expected=f"a type {what}: {', '.join(sorted(kinds))}",
            hint="Choose another key, or leave `partition` out.",
        )
    if column.name in task.ignoring:
        raise TargetError(
            refused,
            found=f"`on_error: ignore` of column `{column.name}`",
            expected="rows that go where the key of their file says",
            hint=f"Set `on_error: redirect` for `{column.name}`.",
        )
    other_rows = layout.hidden_row_ends()
    if bounds_of_files(destination) and other_rows:
        raise TargetError(
            refused,
            found=f"a layout with {', '.join(f'`{name}`' for name in other_rows)}",
            expected="files whose last row can be found without reading all of them",
            hint="Set `every`, `parts` or `bounds` as keys.",
        )
    return column


def bounds_of_files(destination: Destination) -> bool:
    """Whether every file becomes a partition of its own."""
    clause = destination.partition
    is_by_files = isinstance(clause, RangePartition) and clause.bounds == "files"
    return is_by_files and not (destination.partitions or destination.takes_back)


def check_partitioning(
    catalog: CatalogTable,
    clause: PartitionClause,
    key: FirstColumn,
    capabilities: Capabilities,
    names: tuple[str, str],
) -> None:
    """Raises TargetError unless the existing table is divided by the same strategy and by the column alone.

    `key` is the source column; `names` are those of the table and of the destination, for messages.
    """
    table_name, destination = names
    found, strategy = catalog.partitioning, strategy_of(clause)
    remedy = "set `load: single`" if catalog.kind == "table" else "drop the view: it is made anew then"
    if found is None and catalog.kind == "view":
        raise foreign_view(table_name)
    if found is None:
        raise TargetError(
            f"table {table_name} exists and has no partitions",
            expected=f"a table partitioned by {strategy} ({clause.column})",
            hint=f"Set `load: single` for destination `{destination}`, or drop the table: it is made anew then.",
        )
    column = capabilities.name_key(clause.column)
    if (found.strategy, [capabilities.name_key(name) for name in found.key]) != (strategy, [column]):
        raise TargetError(
            f"table {table_name} is partitioned in another way",
            found=f"{found.strategy} ({', '.join(found.key)})",
            expected=f"{strategy} ({clause.column})",
            hint=f"Correct `partition` of destination `{destination}`, or {remedy}.",
        )
    native = next((item for item in catalog.columns if capabilities.name_key(item.name) == column), None)
    if strategy == "hash" or native is None:
        return
    if native.type is None or _family(native.type) != _family(key.type):
        raise TargetError(
            f"keys of type {key.type} cannot be compared with the partitions of table {table_name}",
            found=f"`{native.name}` of type {native.native_type}",
            hint=f"{remedy[:1].upper()}{remedy[1:]}."
            if native.type is None
            else f"Declare `{key.name}` as {native.type} in the layout, or {remedy}.",
        )


def _family(data_type: DataType) -> str:
    """Equal for types whose key values compare."""
    if data_type.kind in TEXT_KINDS:
        return "text"
    return "integer" if data_type.kind in INTEGER_DIGITS else data_type.kind
