"""The column by whose ranges a table is partitioned: whether it can be one, in the layout and in the existing table."""

from __future__ import annotations

from headrace.errors import TargetError
from headrace.model import Column, DataFlowTask, DataType
from headrace.planning.capabilities import Capabilities
from headrace.planning.catalog import CatalogTable
from headrace.planning.key_values import key_type
from headrace.planning.plan import OutputColumn
from headrace.planning.types_match import INTEGER_DIGITS


def is_partitioned(task: DataFlowTask, capabilities: Capabilities) -> bool:
    """Whether the rows of a task are loaded into partitions, if its files have any rows."""
    return task.destination.partition is not None and task.destination.load == "staged" and capabilities.partitions


def key_column(task: DataFlowTask, capabilities: Capabilities, table_name: str) -> Column:
    """The source column of a partitioned task's key. Raises TargetError if it cannot be one.

    Asked before the files' keys are looked at, which depend on it.
    """
    destination, layout = task.destination, task.source.layout
    assert destination.partition is not None
    refused = f"table {table_name} cannot be partitioned by `{destination.partition.column}`"
    wanted = capabilities.name_key(destination.partition.column)
    chosen = destination.columns or {name: name for name in layout.column_names()}
    source = next((source for target, source in chosen.items() if capabilities.name_key(target) == wanted), None)
    column = next((column for column in layout.columns if column.name == source), None)
    if column is None:
        raise TargetError(
            refused,
            found="no source column goes into it",
            expected=f"one of: {', '.join(chosen)}",
            hint=f"Correct `partition` of destination `{destination.name}`.",
        )
    if column.type.kind not in capabilities.partition_key_kinds or key_type(column.type) is None:
        raise TargetError(
            refused,
            found=f"type {column.type}",
            expected=f"a type whose values follow each other: {', '.join(sorted(capabilities.partition_key_kinds))}",
            hint="Choose another key, or leave `partition` out.",
        )
    if column.nullable:
        raise TargetError(
            refused,
            found="the layout lets it be null",
            hint=f"Set `nullable: false` for column `{column.name}` of the layout.",
        )
    if layout.qualifier is not None:
        raise TargetError(
            refused,
            found="a layout with a qualifier",
            expected="files whose last row can be found without reading all of them",
            hint="Leave `partition` out, or the qualifier if the files do without.",
        )
    return column


def check_partitioning(catalog: CatalogTable, key: OutputColumn, table_name: str, destination: str) -> None:
    """Raises TargetError unless the existing table is partitioned by ranges of the key's column alone."""
    found, column = catalog.partitioning, key.target
    if found is None:
        raise TargetError(
            f"table {table_name} exists and has no partitions",
            expected=f"a table partitioned by range ({column})",
            hint=f"Set `load: single` for destination `{destination}`, or drop the table: it is made anew then.",
        )
    if (found.strategy, found.key) != ("range", (column,)):
        raise TargetError(
            f"table {table_name} is partitioned in another way",
            found=f"{found.strategy} ({', '.join(found.key)})",
            expected=f"range ({column})",
            hint=f"Correct `partition` of destination `{destination}`, or set `load: single`.",
        )
    native = next(item for item in catalog.columns if item.name == column)
    if native.type is None or _family(native.type) != _family(key.type):
        raise TargetError(
            f"keys of type {key.type} cannot be compared with the partitions of table {table_name}",
            found=f"`{column}` of type {native.native_type}",
            hint=f"Declare `{key.source}` as {native.type} in the layout, or set `load: single`.",
        )


def _family(data_type: DataType) -> str:
    """Equal for types whose key values compare."""
    return "integer" if data_type.kind in INTEGER_DIGITS else data_type.kind
