"""A hidden table takes the place of an existing one and keeps what belonged to it: owner, grants, comments, indexes,
constraints, sequences. If there is anything else, which `hanging.sql` finds, nothing is renamed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from headrace.errors import TargetError
from headrace.planning import DataFlowPlan
from headrace.targets.postgres import ddl
from headrace.targets.postgres.catalog import Relation
from headrace.targets.postgres.connection import Connection, Row, sql, texts
from headrace.targets.postgres.indexes import Index, built, built_on, hidden_index_name, indexes_of
from headrace.targets.postgres.moving import CHANGED_MEANWHILE
from headrace.targets.postgres.names import TableName, quote, short_name
from headrace.targets.postgres.sequences import sequences_of

# Its place in `signature.sql`.
_IDENTITY: Final = 4


def rename_statements(
    connection: Connection, plan: DataFlowPlan, target: TableName, old: Relation, hidden: TableName, new: Relation
) -> list[str]:
    """The statements, in order. `old` is the target, locked; `new` is the hidden table, complete with its indexes.

    Raises TargetError if the target is no longer what the hidden table was made like.
    """
    indexes = indexes_of(connection, old.oid)
    _refuse_changed(connection, plan, target, hidden, old, new, indexes)
    away = TableName(target.schema, short_name(hidden.name, "_old"))
    sequences = sequences_of(connection, old.oid)
    identities = {sequence.column: sequence.name for sequence in sequences if sequence.is_identity}
    checks: Sequence[str] = ()
    if not plan.options.check_constraints:
        checks = texts(connection, sql("unchecked"), (old.oid, target.sql))
    return [
        *[
            identity.go_on_from(of_old)
            for of_old in sequences
            for identity in sequences_of(connection, new.oid)
            if of_old.is_identity and identity.is_identity and identity.column == of_old.column
        ],
        f"ALTER TABLE {target.sql} RENAME TO {quote(away.name)}",
        *ddl.take_place(hidden, target),
        *texts(connection, sql("appearance"), (old.oid, target.sql, new.oid)),
        # Before the old table is dropped, or its sequences would go with it.
        *[sequence.give_to(target) for sequence in sequences if not sequence.is_identity],
        f"DROP TABLE {away.sql}",
        *checks,
        *[
            index.rename(target, hidden_index_name(hidden, number), index.name)
            for number, index in enumerate(indexes, start=1)
        ],
        *[
            f"ALTER SEQUENCE {quote(target.schema)}.{quote(sequence.name.name)} "
            f"RENAME TO {quote(identities[sequence.column].name)}"
            for sequence in sequences_of(connection, new.oid)
            if sequence.is_identity and sequence.name.name != identities[sequence.column].name
        ],
    ]


def _refuse_changed(
    connection: Connection,
    plan: DataFlowPlan,
    target: TableName,
    hidden: TableName,
    old: Relation,
    new: Relation,
    indexes: Sequence[Index],
) -> None:
    """Whatever the hidden table was given when it was made must be what the target has now."""
    is_now, was = (_columns(connection, table, plan) for table in (old, new))
    changed = [f"column {row[0]}" for row in is_now if row not in was]
    gone = sorted({f"column {row[0]}" for row in was} - {f"column {row[0]}" for row in is_now})
    rules_now, rules_before = (_rules(connection, table, plan) for table in (old, new))
    changed += [f"constraint {name}" for name in sorted({str(row[0]) for row in rules_now ^ rules_before})]
    if built(indexes, hidden) != built_on(connection, new.oid):
        changed.append("its indexes")
    if len({tuple(connection.query(sql("storage"), (table.oid,)).rows[0]) for table in (old, new)}) > 1:
        changed.append("its storage parameters")
    if changed or gone:
        raise TargetError(
            f"table {target} was changed while it was loaded",
            found=", ".join([*changed, *gone]),
            hint=CHANGED_MEANWHILE,
        )


def _rules(connection: Connection, table: Relation, plan: DataFlowPlan) -> set[tuple[str | None, ...]]:
    """The constraints that `LIKE` copies; those that are added to the new table later are left out."""
    rows = connection.query(sql("constraints"), (table.oid,)).rows
    kept = (row for row in rows if row[0] != ddl.BOUNDS_CONSTRAINT)
    return {tuple(row) for row in kept if plan.options.check_constraints or row[3] != "t"}


def _columns(connection: Connection, table: Relation, plan: DataFlowPlan) -> list[Row]:
    """What must be the same; a partition gets its identity from the table that it is part of."""
    rows = connection.query(sql("signature"), (table.oid,)).rows
    return [[*row[:_IDENTITY], *row[_IDENTITY + 1 :]] if plan.switch == "attach" else row for row in rows]
