"""Makes hidden tables (part of) the target. All of it happens in one transaction, which the caller holds open.

What could have changed since the plan was made is looked at again, behind the lock of the table.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from headrace.errors import AccountsError, InternalError, TargetError
from headrace.planning import DataFlowPlan, counted
from headrace.targets.postgres import ddl
from headrace.targets.postgres.catalog import Relation, find_relation
from headrace.targets.postgres.connection import Connection, one_row, one_value, rows_done, sql, texts
from headrace.targets.postgres.indexes import (
    Index,
    built,
    built_on,
    hidden_index_name,
    indexes_of,
    partition_index_name,
)
from headrace.targets.postgres.locks import lock_for_switch
from headrace.targets.postgres.names import TableName, quote
from headrace.targets.postgres.rename import rename_statements
from headrace.targets.postgres.staging import TableStaging


class Switch:
    """The switch of one task. `warnings`: where it had to do otherwise than planned."""

    def __init__(
        self,
        connection: Connection,
        plan: DataFlowPlan,
        staging: TableStaging,
        rows: int,
        lock_timeout_seconds: float,
    ) -> None:
        self._connection = connection
        self._plan = plan
        self._staging = staging
        self._target = staging.target
        self._rows = rows
        self._lock_timeout_seconds = lock_timeout_seconds
        self.warnings: list[str] = []

    def run(self) -> None:
        """Executes the switch that the plan names. Raises TargetError if the table is no longer as planned."""
        if self._staging.keeps_vacuum_away:
            self._run(ddl.vacuum(staging.table, own=True) for staging in self._staging.tables)
        match self._plan.switch:
            case "none":
                return
            case "schema":
                self._run(ddl.take_place(self._only_hidden(), self._target))
                self._run(texts(self._connection, sql("default_grants"), (self._target.schema, self._target.sql)))
                self._warn_of_subscribers()
            case "rename":
                self._rename()
            case "move":
                self._move(self._locked())
            case "attach":
                self._attach()
            case "view":
                self._view()

    def _rename(self) -> None:
        old = self._locked()
        hidden = self._only_hidden()
        hanging = texts(self._connection, sql("hanging"), (old.oid,))
        if hanging:
            self.warnings.append(
                f"the rows of {self._target} were moved instead of the table renamed, because of {', '.join(hanging)}"
            )
            self._move(old)
            return
        new = self._relation(hidden)
        self._run(rename_statements(self._connection, self._plan, self._target, old, hidden, new))
        self._warn_of_subscribers()

    def _move(self, old: Relation) -> None:
        hidden = self._only_hidden()
        triggers = self._triggers(old) if self._plan.options.disable_triggers else []
        self._run(f"ALTER TABLE {self._target.sql} DISABLE TRIGGER {quote(name)}" for name, _ in triggers)
        if self._plan.target == "replace":
            self._run([f"TRUNCATE TABLE {self._target.sql}"])
        done = self._connection.query(ddl.move_rows(self._target, hidden, self._plan))
        if rows_done(done.tag) != self._rows:
            raise AccountsError(
                f"table {self._target} did not take all rows",
                found=counted(rows_done(done.tag), "row"),
                expected=counted(self._rows, "row"),
                hint="A trigger or a rule of the table leaves rows out; drop it, or load another table.",
            )
        self._run(f"ALTER TABLE {self._target.sql} ENABLE {kind}TRIGGER {quote(name)}" for name, kind in triggers)
        self._run([f"DROP TABLE {hidden.sql}"])

    def _attach(self) -> None:
        relation = find_relation(self._connection, self._target)
        if relation is None:
            self._run([ddl.create_parent(self._target, self._plan)])
            indexes: tuple[Index, ...] = ()
        else:
            relation = self._locked()
            indexes = indexes_of(self._connection, relation.oid)
            self._refuse_other_indexes(indexes)
            if self._plan.target == "replace":
                rows = self._connection.query(sql("partitions"), (relation.oid,)).rows
                self._run(f"DROP TABLE {TableName(row[0] or '', row[1] or '').sql}" for row in rows)
        for staging in self._staging.tables:
            partition = TableName(self._target.schema, staging.planned.table)
            bounds = staging.planned.bounds
            if bounds is None:
                raise InternalError(f"partition {staging.planned.partition} of {self._target} has no bounds")
            self._run(ddl.take_place(staging.table, partition))
            self._run([ddl.attach(self._target, partition, bounds)])
            self._run([f"ALTER TABLE {partition.sql} DROP CONSTRAINT {quote(ddl.BOUNDS_CONSTRAINT)}"])
            self._run(
                index.rename(
                    partition, hidden_index_name(staging.table, number), partition_index_name(partition, number)
                )
                for number, index in enumerate(indexes, start=1)
            )
        self._give(
            [TableName(self._target.schema, staging.planned.table) for staging in self._staging.tables], relation
        )
        if relation is not None:
            self._warn_of_partitions(relation)

    def _refuse_other_indexes(self, indexes: Sequence[Index]) -> None:
        """Raises TargetError unless the hidden tables have the indexes that the target has now."""
        first = self._staging.tables[0].table
        if built(indexes, first).keys() != built_on(self._connection, self._relation(first).oid).keys():
            raise TargetError(
                f"table {self._target} was changed while it was loaded",
                found="its indexes",
                hint="Run again, and change the table before or after the load.",
            )

    def _view(self) -> None:
        hidden = [staging.table for staging in self._staging.tables]
        relation = find_relation(self._connection, self._target)
        old: list[TableName] = []
        columns: Sequence[str] = [column.target for column in self._plan.columns]
        options = ""
        if relation is not None:
            lock_for_switch(self._connection, self._target, relation.oid, self._lock_timeout_seconds)
            members = texts(self._connection, sql("view_tables"), (relation.oid,))
            old = [TableName(self._target.schema, name) for name in members]
            columns = texts(self._connection, sql("columns"), (relation.oid,))
            options = one_value(self._connection, sql("storage"), (relation.oid,)) or ""
        is_append = self._plan.target == "append"
        self._run([ddl.create_view(self._target, [*old, *hidden] if is_append else hidden, columns, options)])
        if not is_append:
            self._run(f"DROP TABLE {table.sql}" for table in old)
        for staging in self._staging.tables:
            self._run(ddl.take_place(staging.table, TableName(self._target.schema, staging.planned.table)))
        self._give(
            [TableName(self._target.schema, staging.planned.table) for staging in self._staging.tables], relation
        )

    def _give(self, parts: Sequence[TableName], whole: Relation | None) -> None:
        """New parts get what default privileges give, which is the same for all, and the owner of the whole."""
        for part in parts:
            grants = texts(self._connection, sql("default_grants"), (part.schema, part.sql))
            if not grants:
                break
            self._run(grants)
        if whole is not None and one_row(self._connection, sql("ownership"), (whole.oid,)) is not None:
            self._run(f"ALTER TABLE {part.sql} OWNER TO {quote(whole.owner)}" for part in parts)

    def _locked(self) -> Relation:
        """Keeps everybody out of the target until the commit, readers too: for the moment of the switch."""
        found = self._relation(self._target)
        lock_for_switch(self._connection, self._target, found.oid, self._lock_timeout_seconds)
        relation = self._relation(self._target)
        referring = texts(self._connection, sql("referenced_by"), (relation.oid,))
        children = () if relation.partitioned else texts(self._connection, sql("children"), (relation.oid,))
        if children and self._plan.target == "replace":
            raise TargetError(
                f"table {self._target} cannot be replaced: other tables inherit from it and would be emptied too",
                found=f"{', '.join(children)}, inheriting since the load was planned",
                hint="End the inheritance: ALTER TABLE ... NO INHERIT; or use `target: append`.",
            )
        if referring and self._plan.target == "replace":
            raise TargetError(
                f"table {self._target} cannot be replaced: other tables refer to its rows",
                found=f"foreign keys of {', '.join(referring)}, made after the load was planned",
                hint="Drop them, or use `target: append`.",
            )
        return relation

    def _relation(self, table: TableName) -> Relation:
        found = find_relation(self._connection, table)
        if found is None:
            raise TargetError(f"table {table} is gone", hint="Find out who has dropped it, and run again.")
        return found

    def _warn_of_subscribers(self) -> None:
        """To them it is another table, whatever its name: its rows were written before it was published."""
        publications = texts(self._connection, sql("publications"), (self._target.schema,))
        if publications:
            self.warnings.append(
                f"{self._target} is a new table for the subscribers of publication {', '.join(publications)}: they get "
                "its rows with ALTER SUBSCRIPTION ... REFRESH PUBLICATION"
            )

    def _warn_of_partitions(self, relation: Relation) -> None:
        """What a partition holds when it is attached was not written to the published table."""
        publications = texts(self._connection, sql("published"), (relation.oid,))
        if publications:
            self.warnings.append(
                f"the rows of the new partitions of {self._target} are not sent to the subscribers of publication "
                f"{', '.join(publications)}; with `load: single` they are"
            )

    def _triggers(self, relation: Relation) -> list[tuple[str, str]]:
        """Triggers that fire for inserted rows, and the word that switches each on again as it was."""
        rows = self._connection.query(sql("triggers"), (relation.oid,)).rows
        return [(name or "", {"A": "ALWAYS ", "R": "REPLICA "}.get(fires or "", "")) for name, fires in rows]

    def _only_hidden(self) -> TableName:
        if len(self._staging.tables) != 1:
            raise InternalError(f"the switch `{self._plan.switch}` needs one hidden table")
        return self._staging.tables[0].table

    def _run(self, statements: Iterable[str]) -> None:
        for text in statements:
            self._connection.execute(text)
