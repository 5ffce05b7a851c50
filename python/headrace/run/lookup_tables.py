"""What lookups read of databases: looked at when their flow is planned, opened when it starts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from headrace.errors import SqlError, TargetError
from headrace.executors.lookups import RowsOf
from headrace.model import (
    Connection,
    DatabaseQuerySource,
    DatabaseSource,
    DataFlowTask,
    Destination,
    LookupTable,
    TableColumn,
    TableSource,
)
from headrace.planning import CatalogColumn, CatalogTable, DataFlowPlan, LookupPlan
from headrace.planning.lookup_reading import DatabaseReading
from headrace.run.reject_tables import TableKey, table_key
from headrace.targets import GroupTransaction, RowStream, Target, target_key

if TYPE_CHECKING:
    from headrace.run.preparation import OpenTargets

# Of a table that is not there yet: what it is worth is decided when it is read.
_MOST_PARTS: Final = 16
Reading = Callable[[Connection], AbstractContextManager[Target]]

_STAGED_FIRST: Final = "the rows of flows travel before the transaction begins"
_BESIDE_TABLES: Final = (
    "what stands behind a query over all rows that has tables beside it reads tables as they are before the transaction"
)


def described(
    task: DataFlowTask, targets: OpenTargets, after: Mapping[TableKey, CatalogTable | None]
) -> tuple[DataFlowTask, Mapping[str, str]]:
    """The task with the tables and queries of its lookups, and what is to be said of them by the lookup's name.
    `after`: tables as flows before it will have left them.

    Raises BindingError for columns that are not there or do not fit, TargetError for a table that is not there,
    SqlError for a query that is refused.
    """
    if task.describe is None:
        return task, {}
    found: dict[str, LookupTable] = {}
    notes: dict[str, str] = {}
    for source in database_sources(task):
        with targets.reading(source.connection) as target:
            target.recover()
            if isinstance(source, TableSource):
                own, is_changed_before = _table(task, source, target, targets, after)
            else:
                own, is_changed_before = _query(source, target), False
            is_remote = target.capabilities.memory_share == 0
        if is_changed_before:
            notes[source.name] = "a task before may change its table: it is read as it is when the flow starts"
        found[source.name] = replace(own, is_remote=is_remote)
    known = task.describe(found)
    own_notes = {lookup.name: notes[lookup.name] for lookup in task.lookups if lookup.name in notes}
    together = known.together or task.together
    return replace(task, transforms=known.transforms, others=known.others, together=together), own_notes


def database_sources(task: DataFlowTask) -> list[DatabaseSource]:
    """What the lookups of a task read of databases, and those of the other destinations of its flow."""
    lookups = (*task.lookups, *task.lookups_beside)
    return [lookup.source for lookup in lookups if isinstance(lookup.source, DatabaseSource)]


def _table(
    task: DataFlowTask,
    source: TableSource,
    target: Target,
    targets: OpenTargets,
    after: Mapping[TableKey, CatalogTable | None],
) -> tuple[LookupTable, bool]:
    """What it is, and whether a flow before may change it."""
    key = table_key(target, source, source.table)
    _refuse_own(task, source, key, targets)
    present = target.lookup_table(source.schema, source.table)
    if key not in after:
        if present is None:
            raise _missing(source, target)
        return present, False
    later = after[key]
    if later is None:
        raise _missing(source, target)
    known = {} if present is None else {column.name: column for column in present.columns}
    columns = tuple(known.get(column.name) or _column(column) for column in later.columns)
    # What a flow makes stands in one table.
    is_plain = later.partitioning is None if present is None else present.is_plain
    # How large it will be nobody knows; who reads it with several sessions has a server.
    is_divided = is_plain and target.capabilities.memory_share == 0
    return LookupTable(columns, None, is_plain=is_plain, parts=_MOST_PARTS if is_divided else 1), True


def _query(source: DatabaseQuerySource, target: Target) -> LookupTable:
    try:
        return target.lookup_query(source.query)
    except SqlError as error:
        what = f"the query of lookup `{source.name}`: {error.what}"
        refused = SqlError(what, at=source.query.at, found=error.found, expected=error.expected, hint=error.hint)
        refused.server = error.server
        raise refused from error


def committed_rows(reading: Reading) -> RowsOf:
    """Opens what lookups read as everybody sees it."""

    @contextmanager
    def opened(plan: LookupPlan) -> Iterator[RowStream]:
        own = _reading(plan)
        with reading(own.of.connection) as target, target.lookup_rows(own.of, own.columns, own.sessions) as rows:
            yield rows

    return opened


def rows_in_group(group: GroupTransaction, connection: Connection, others: RowsOf) -> RowsOf:
    """Opens what lookups read as a transaction of `connection` sees it, and with `others` what is in other places."""

    def opened(plan: LookupPlan) -> AbstractContextManager[RowStream]:
        own = _reading(plan)
        if target_key(own.of.connection) != target_key(connection):
            return others(plan)
        return group.lookup_rows(own.of, own.columns)

    return opened


@dataclass(frozen=True)
class MemberOfTransaction:
    """A task of a transaction; `plan`: of a data flow, None for one that executes SQL."""

    name: str
    plan: DataFlowPlan | None


def refuse_unseen(
    members: Sequence[MemberOfTransaction], connection: Connection, target: Target, *, stages_first: bool
) -> None:
    """Of a transaction of `connection`: raises TargetError for a lookup of what a member before may change, if it would
    not see that. `stages_first`: none does, because the flows are staged before the transaction begins; else those
    behind a query over all rows beside tables do not.
    """
    for number, member in enumerate(members):
        plan = member.plan
        if plan is None or not (stages_first or (plan.feeds and plan.gather is not None)):
            continue
        for lookup in plan.lookups:
            source = lookup.lookup.source
            if not isinstance(source, DatabaseSource) or target_key(source.connection) != target_key(connection):
                continue
            before = (other for other in members[:number] if other.name != member.name)
            changing = (other for other in before if _may_change(other, source, target))
            other = next(changing, None)
            if other is not None:
                raise _unseen(member, source, other, _STAGED_FIRST if stages_first else _BESIDE_TABLES)


def _may_change(member: MemberOfTransaction, source: DatabaseSource, target: Target) -> bool:
    is_plain = isinstance(source, TableSource) and source.found is not None and source.found.is_plain
    if member.plan is None or not is_plain:
        return True  # nobody knows what it changes, or what is read
    assert isinstance(source, TableSource)
    schema, name_key = target.default_schema or "", target.capabilities.name_key
    names = ((own.schema or schema, own.table) for own in (member.plan, source))
    loaded, read = (tuple(map(name_key, own)) for own in names)
    return loaded == read


def _unseen(member: MemberOfTransaction, source: DatabaseSource, other: MemberOfTransaction, why: str) -> TargetError:
    what = "a query"
    if isinstance(source, TableSource):
        is_plain = source.found is not None and source.found.is_plain
        what = f"table {source.table}" if is_plain else f"`{source.table}`, whose rows may be those of other tables"
    does = "executes SQL" if other.plan is None else f"loads {other.plan.table}"
    return TargetError(
        f"lookup `{source.name}` of task {member.name} would not see what task {other.name} of its transaction changes",
        found=f"{what}, behind a task that {does}: {why}",
        expected="a table that no task before it in the transaction may change",
        hint=f"Take task {other.name} out of the transaction, and let it run before.",
    )


def _reading(plan: LookupPlan) -> DatabaseReading:
    assert isinstance(plan.reading, DatabaseReading)
    return plan.reading


def _column(column: CatalogColumn) -> TableColumn:
    return TableColumn(column.name, column.type, column.native_type, column.nullable)


def _refuse_own(task: DataFlowTask, source: TableSource, key: TableKey, targets: OpenTargets) -> None:
    destinations = (task.destination, *task.beside)
    places = {target_key(destination.connection) for destination in destinations}
    for destination in destinations:
        own = table_key(targets[destination.connection], destination, destination.table)
        if own != key:
            continue
        if len(places) > 1:
            raise _changed_between(source, destination)
        if destination.target != "append":
            continue
        whose = f"rows of its own data flow are appended, by `{destination.name}`" if task.beside else ""
        raise TargetError(
            f"lookup `{source.name}` reads the table to which {whose or 'its own rows are appended'}",
            found=f"table {source.table}, and `target: append`",
            expected="another table, or rows that replace those of the table",
            hint="Look rows up in a copy of the table, which a task before makes.",
        )


def _changed_between(source: TableSource, destination: Destination) -> TargetError:
    return TargetError(
        f"lookup `{source.name}` reads a table that `{destination.name}` of its own data flow loads",
        found=f"table {source.table}, and destinations of several connections: one that is filled by `headrace resume` "
        "would find other rows than those before it",
        expected="another table, or destinations of one connection",
        hint="Look rows up in a copy of the table, which a task before makes.",
    )


def _missing(source: TableSource, target: Target) -> TargetError:
    schema = source.schema or target.default_schema
    return TargetError(
        f"lookup `{source.name}` reads a table that does not exist",
        found=f"no table or view `{schema}.{source.table}` in `{source.connection.name}`",
        hint="Check the name, or load the table by a task before.",
    )
