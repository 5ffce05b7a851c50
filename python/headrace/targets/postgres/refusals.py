"""What is refused before the first row: it would fail only behind the last one, or could not be kept."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from headrace.errors import TargetError
from headrace.planning import DataFlowPlan, DefaultRule, Partition, counted
from headrace.targets.postgres.advice import LOCKS_PER_PARTITION
from headrace.targets.postgres.bounds import implies
from headrace.targets.postgres.catalog import Relation, find_relation, own_comparison
from headrace.targets.postgres.connection import Connection, Row, one_row, one_value, sql, texts
from headrace.targets.postgres.hidden_tables import Staging, replaces_all
from headrace.targets.postgres.names import TableName, quote


class _Load(Protocol):
    """What is known of a load before it begins."""

    target: TableName
    relation: Relation | None
    is_direct: bool
    hidden_schema: str
    tables: tuple[Staging, ...]
    partitions: list[Row]


def check_before_load(connection: Connection, plan: DataFlowPlan, load: _Load) -> None:
    """Raises TargetError for what stands in the way of a load."""
    relation = load.relation
    if not load.is_direct:
        _refuse_published(connection, load)
    if plan.switch in ("attach", "view") and relation is not None and relation.is_owner and makes_parts(plan):
        refuse_another_owner(connection, load.target, relation)
    if plan.switch == "attach":
        _refuse_too_many_partitions(connection, plan, load)
        _refuse_other_partitions(plan, load)
        _refuse_other_comparison(connection, plan, load)
        _refuse_rows_without_partition(connection, plan, load)
        for part in plan.partitioning.partitions if plan.partitioning else ():
            if part.action == "exchange":
                refuse_exchange(connection, load.target, part)
    fills_partitions = relation is not None and relation.partitioned and plan.switch in ("move", "none")
    if fills_partitions and not load.partitions:
        raise TargetError(
            f"table {load.target} is partitioned, but has no partition that could take a row",
            hint="Create its partitions first.",
        )
    triggers = [] if relation is None else texts(connection, sql("triggers"), (relation.oid,))
    if load.is_direct and plan.options.disable_triggers and triggers:
        raise TargetError(
            f"the triggers of table {load.target} cannot be kept from firing while rows are appended to it",
            found=", ".join(triggers),
            expected="`disable_triggers` only where all rows arrive in one transaction",
            hint="Leave `disable_triggers` out, or switch them off yourself: ALTER TABLE ... DISABLE TRIGGER.",
        )


def makes_parts(plan: DataFlowPlan) -> bool:
    """False if rows only go into partitions that exist, and none of these is dropped."""
    planned = plan.partitioning
    return (
        planned is None
        or bool(planned.drops)
        or replaces_all(plan)
        or any(part.becomes_partition for part in planned.partitions)
    )


def refuse_exchange(connection: Connection, target: TableName, part: Partition) -> None:
    """Raises TargetError if another table cannot take the place of a partition, because of what hangs on that one."""
    old = TableName(target.schema, part.replaces or part.table)
    in_the_way = hanging_on_partition(connection, old)
    if in_the_way:
        raise TargetError(
            f"partition {old} cannot be loaded anew: another table would take its place",
            found=", ".join(in_the_way),
            hint="Remove what stands in the way, or load all of the table.",
        )


def hanging_on_partition(connection: Connection, partition: TableName) -> tuple[str, ...]:
    """What would be lost if another table took its place; nothing of a partition that does not exist."""
    relation = find_relation(connection, partition)
    hanging = () if relation is None else texts(connection, sql("hanging"), (relation.oid,))
    # A partition is known to belong to its table.
    return tuple(name for name in hanging if not name.startswith("inheritance from "))


def _refuse_published(connection: Connection, load: _Load) -> None:
    publications = texts(connection, sql("publications"), (load.hidden_schema,))
    if publications:
        raise TargetError(
            f"rows of table {load.target} that nobody may see yet would be published",
            found=f"publication {', '.join(publications)} takes every table of schema `{load.hidden_schema}`, "
            "hidden ones too",
            hint="Let it name its tables or other schemas: ALTER PUBLICATION; keep the ledger in a schema of its "
            "own: `ledger: {schema: NAME}`; or use `target: append` with `load: single`, which hides nothing.",
        )


def refuse_another_owner(connection: Connection, target: TableName, relation: Relation) -> None:
    """What becomes part of a table belongs to its owner, who could not use or change the table otherwise. Raises
    TargetError if it cannot be given to that one.
    """
    ownership = one_row(connection, sql("ownership"), (relation.oid,))
    if ownership is not None and ownership != ["t", "t"]:
        raise TargetError(
            f"the new parts of {target} cannot be given to its owner {relation.owner}",
            found=(
                f"the role may not have tables in schema `{target.schema}`"
                if ownership[0] == "t"
                else "the user may not give tables to that role"
            ),
            hint=f"Load as {relation.owner}, or GRANT {quote(relation.owner)} TO the user of the connection, and "
            f"CREATE ON SCHEMA {quote(target.schema)} TO {quote(relation.owner)}",
        )


def _refuse_too_many_partitions(connection: Connection, plan: DataFlowPlan, load: _Load) -> None:
    going = len(load.partitions) if replaces_all(plan) else len(plan.partitioning.drops) if plan.partitioning else 0
    going += sum(item.part is not None and item.part.action == "exchange" for item in load.tables)
    count = len(load.tables) + going
    needed, places = count * LOCKS_PER_PARTITION, int(one_value(connection, sql("lock_places")) or 0)
    if places and needed > places:
        raise TargetError(
            f"the server cannot switch {counted(count, 'partition')} of table {load.target} in one transaction",
            found=f"room for {places} locks (max_locks_per_transaction * (max_connections + "
            "max_prepared_transactions))",
            expected=f"about {needed}",
            hint="Raise max_locks_per_transaction and restart the server, or load fewer partitions at a time.",
        )


def _refuse_other_partitions(plan: DataFlowPlan, load: _Load) -> None:
    """Partitions that are filled, exchanged or dropped have to be there."""
    planned = plan.partitioning
    if planned is None:
        return
    filled = [part.table for part in planned.partitions if part.action == "insert"]
    exchanged = [part.replaces or part.table for part in planned.partitions if part.action == "exchange"]
    # Whatever has the name in another schema is another table.
    present = {name for schema, name, *_ in load.partitions if schema == load.target.schema}
    missing = sorted({*filled, *exchanged, *planned.drops} - present)
    if missing:
        raise TargetError(
            f"table {load.target} was changed after the load was planned",
            found=f"no partition {', '.join(missing)} in schema `{load.target.schema}`",
            hint="Run again.",
        )


def _refuse_other_comparison(connection: Connection, plan: DataFlowPlan, load: _Load) -> None:
    """The core compares keys as the server does for everybody; of hashes the server is asked by samples."""
    planned = plan.partitioning
    if load.relation is None or planned is None or planned.strategy == "hash":
        return
    own = own_comparison(connection, load.relation.oid)
    # Lists go by the server. Bounds were compared when the load was planned.
    if own is not None and (planned.strategy == "range" or planned.way != "server"):
        raise TargetError(
            f"keys of table {load.target} are not compared as Headrace would",
            found=f"`{planned.column}` is compared by {own}",
            expected="an operator class of the server",
            hint="Set `load: single`: then the server finds the partition of each row.",
        )


def _refuse_rows_without_partition(connection: Connection, plan: DataFlowPlan, load: _Load) -> None:
    """Rows of a default partition that stays must not belong into a new one: the server would refuse that one."""
    planned = plan.partitioning
    new = [part for part in planned.partitions if part.action == "attach"] if planned else []
    if planned is None or not new or replaces_all(plan) or load.relation is None:
        return
    if own_comparison(connection, load.relation.oid) is not None:
        return  # only the server knows, and says so at the switch
    for schema, name, bound, _ in load.partitions:
        if bound != "DEFAULT":
            continue
        default = TableName(schema or "", name or "")
        if any(isinstance(part.rule, DefaultRule) for part in new):
            raise TargetError(
                f"table {load.target} has a default partition already",
                found=str(default),
                hint="Run again.",
            )
        belongs = {part.table: implies(part.rule, quote(planned.column), (), _oid(load)) or "true" for part in new}
        anywhere = " OR ".join(f"({condition})" for condition in belongs.values())
        # One look for all of them: an index of the key may be missing.
        if _has_row(connection, default, anywhere):
            raise _rows_in_default(connection, load.target, default, belongs)


def _rows_in_default(
    connection: Connection, target: TableName, default: TableName, belongs: Mapping[str, str]
) -> TargetError:
    """`belongs`: by new partition what is true for its rows."""
    name, condition = next(
        ((name, condition) for name, condition in belongs.items() if _has_row(connection, default, condition)),
        next(iter(belongs.items())),
    )
    return TargetError(
        f"rows of table {target} are in its default partition and belong into a new one",
        found=f"rows in {default} for {name}",
        expected=f"none WHERE {condition}",
        hint=f"Make that partition yourself: move the rows there with DELETE FROM {default.sql} WHERE ... RETURNING, "
        "ATTACH it in the same transaction, and run again; or use `load: single`.",
    )


def _has_row(connection: Connection, table: TableName, condition: str) -> bool:
    return one_value(connection, f"SELECT EXISTS (SELECT FROM {table.sql} WHERE {condition})") == "t"


def _oid(load: _Load) -> str | None:
    return None if load.relation is None else f"{load.relation.oid}::pg_catalog.oid"
