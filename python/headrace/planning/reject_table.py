"""The table of rejects that a data flow fills in its destination: its columns, and whether one that exists is such."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NoReturn

from headrace.errors import TargetError
from headrace.model import DataFlowTask
from headrace.planning.capabilities import Capabilities
from headrace.planning.catalog import CatalogTable
from headrace.planning.long_names import refuse_cut_name
from headrace.planning.target_table import display_name


@dataclass(frozen=True)
class RejectColumn:
    """One column. `kind` is the kind of its type; `of_load`: one value for all rejects of a load."""

    name: str
    kind: str
    nullable: bool = False
    of_load: bool = False


REJECT_COLUMNS: Final = (
    RejectColumn("run_id", "string", of_load=True),
    RejectColumn("task", "string", of_load=True),
    RejectColumn("number", "int64"),
    RejectColumn("file", "string"),
    RejectColumn("row", "int64"),
    RejectColumn("byte", "int64"),
    RejectColumn("column_name", "string", nullable=True),
    RejectColumn("column_number", "int64", nullable=True),
    RejectColumn("type", "string", nullable=True),
    RejectColumn("value", "string", nullable=True),
    RejectColumn("rule", "string"),
    RejectColumn("code", "string"),
    RejectColumn("message", "string"),
    RejectColumn("also", "json", nullable=True),
    RejectColumn("row_byte", "int64"),
    RejectColumn("row_bytes", "int64"),
    RejectColumn("original", "bytes", nullable=True),
    RejectColumn("rejected_at", "timestamptz", of_load=True),
)
REJECT_KEY: Final = ("run_id", "task", "number")
REJECT_KINDS: Final = tuple(dict.fromkeys(column.kind for column in REJECT_COLUMNS))


@dataclass(frozen=True)
class RejectTable:
    """Where rejects go. `schema` is None for targets without schemas; `shown` is for messages: `warehouse.bad_sales`;
    `exists`: it was there when the run was planned.
    """

    schema: str | None
    name: str
    shown: str
    exists: bool


def plan_reject_table(
    task: DataFlowTask,
    name: str,
    catalog: CatalogTable | None,
    capabilities: Capabilities,
    default_schema: str | None,
) -> RejectTable:
    """The table `name` of a task that asks for it. `catalog`: as it is, None if there is none.

    Raises TargetError if it cannot take rejects exactly once, or not all of their columns.
    """
    destination = task.destination
    shown = display_name(destination, default_schema, name)
    if not capabilities.stores_tables or not capabilities.ledger:
        found = "`ledger: off`" if capabilities.stores_tables else f"type {capabilities.target_type}"
        raise TargetError(
            f"rejects of task `{task.flow or task.id}` cannot be stored in a table",
            found=f"connection `{destination.connection.name}`: {found}",
            expected="a destination with a ledger, which tells a second time from a first",
            hint="Leave `table` of `rejects` out: the run folder has the rejects in any case.",
        )
    refuse_cut_name(f"table {shown}", name, capabilities.maximum_name_bytes)
    if catalog is not None:
        check_reject_table(shown, catalog, capabilities)
    schema = destination.schema or default_schema
    return RejectTable(schema, name if catalog is None else catalog.name, shown, catalog is not None)


def check_reject_table(shown: str, catalog: CatalogTable, capabilities: Capabilities) -> None:
    """Raises TargetError unless the table takes rejects as they are."""

    def refused(found: str, expected: str) -> TargetError:
        return TargetError(
            f"table {shown} is no table of rejects",
            found=found,
            expected=expected,
            hint="Name another table in `rejects`, or drop or rename this one: it is made anew then.",
        )

    if catalog.kind != "table":
        raise refused(f"a {catalog.kind}", "a table, or nothing of that name")
    columns = {capabilities.name_key(column.name): column for column in catalog.columns}
    for own in REJECT_COLUMNS:
        native = capabilities.reject_types[own.kind]
        column = columns.pop(capabilities.name_key(own.name), None)
        if column is None:
            raise refused(f"no column `{own.name}`", f"column `{own.name}` of type {native}")
        if column.native_type != native:
            raise refused(f"column `{column.name}` of type {column.native_type}", f"type {native}")
        if column.generated or column.identity:
            raise refused(f"column `{column.name}`, which gets its values from the table", "a column without them")
        if own.nullable and not column.nullable:
            raise refused(f"column `{column.name}`, which may not be NULL", "a column that may be NULL")
    for column in columns.values():
        if not (column.nullable or column.has_default or column.generated):
            raise refused(
                f"column `{column.name}`, which rejects do not have and which may not be NULL",
                "no further columns, or such as may be NULL",
            )


def refuse_loaded(task: str, shown: str) -> NoReturn:
    """Raises TargetError for a table of rejects that the run loads, too."""
    raise TargetError(
        f"rejects of task `{task}` cannot be stored in table {shown}: the run loads it, too",
        hint="Name another table in `rejects`.",
    )
