"""Makes hidden tables (part of) the target. All of it happens in one transaction, which the caller holds open.

What could have changed since the plan was made is looked at again, behind the lock of the table.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from headrace.errors import AccountsError, InternalError, TargetError
from headrace.planning import DataFlowPlan, counted
from headrace.targets.base import LoadedPartition
from headrace.targets.postgres import ddl
from headrace.targets.postgres.catalog import Relation, find_relation
from headrace.targets.postgres.connection import Connection, one_value, sql, texts
from headrace.targets.postgres.locks import SwitchLock, lock_for_switch
from headrace.targets.postgres.moving import move
from headrace.targets.postgres.names import TableName, quote
from headrace.targets.postgres.partition_switch import PartitionSwitch, give, triggers_of
from headrace.targets.postgres.rename import rename_statements
from headrace.targets.postgres.staging import TableStaging


class Switch:
    """The switch of one task. `rows_by_partition`: what is committed, as the ledger calls partitions.

    `warnings`: where it had to do otherwise than planned; `partitions`: what became of them.
    """

    def __init__(
        self,
        connection: Connection,
        plan: DataFlowPlan,
        staging: TableStaging,
        rows_by_partition: Mapping[str, int],
        lock_timeout_seconds: float,
    ) -> None:
        self._connection = connection
        self._plan = plan
        self._staging = staging
        self._target = staging.target
        self._rows_by_partition = rows_by_partition
        self._rows = sum(rows_by_partition.values())
        self._lock_timeout_seconds = lock_timeout_seconds
        self.warnings: list[str] = []
        self.partitions: tuple[LoadedPartition, ...] = ()

    def run(self) -> None:
        """Executes the switch that the plan names. Raises TargetError if the table is no longer as planned."""
        self._run(ddl.vacuum(staging.table, own=True) for staging in self._staging.tables if staging.is_quiet)
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
                self._move(self._locked() if self._plan.target == "replace" else self._relation(self._target))
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
        triggers = triggers_of(self._connection, old.oid) if self._plan.options.disable_triggers else []
        self._run(f"ALTER TABLE {self._target.sql} DISABLE TRIGGER {quote(name)}" for name, _ in triggers)
        if self._plan.target == "replace":
            self._run([f"TRUNCATE TABLE {self._target.sql}"])
        moved = move(self._connection, self._plan, hidden, self._target)
        if moved != self._rows:
            raise AccountsError(
                f"table {self._target} did not take all rows",
                found=counted(moved, "row"),
                expected=counted(self._rows, "row"),
                hint="A trigger or a rule of the table leaves rows out; drop it, or load another table.",
            )
        self._run(f"ALTER TABLE {self._target.sql} ENABLE {kind}TRIGGER {quote(name)}" for name, kind in triggers)
        self._run([f"DROP TABLE {hidden.sql}"])

    def _attach(self) -> None:
        switch = PartitionSwitch(
            self._connection, self._plan, self._staging, self._rows_by_partition, self._lock_timeout_seconds
        )
        switch.run()
        self.partitions = switch.loaded
        if self._staging.relation is not None and any(part.action != "insert" for part in switch.loaded):
            self._warn_of_partitions(self._staging.relation)

    def _view(self) -> None:
        hidden = [staging.table for staging in self._staging.tables]
        relation = find_relation(self._connection, self._target)
        old: list[TableName] = []
        columns: Sequence[str] = [column.target for column in self._plan.columns]
        options = ""
        if relation is not None:
            lock_for_switch(self._connection, [SwitchLock(self._target, relation.oid)], self._lock_timeout_seconds)
            members = texts(self._connection, sql("view_tables"), (relation.oid,))
            old = [TableName(self._target.schema, name) for name in members]
            columns = texts(self._connection, sql("columns"), (relation.oid,))
            options = one_value(self._connection, sql("storage"), (relation.oid,)) or ""
        is_append = self._plan.target == "append"
        self._run([ddl.create_view(self._target, [*old, *hidden] if is_append else hidden, columns, options)])
        if not is_append:
            self._run(f"DROP TABLE {table.sql}" for table in old)
        for staging in self._staging.tables:
            self._run(ddl.take_place(staging.table, TableName(self._target.schema, staging.shown)))
        parts = [TableName(self._target.schema, staging.shown) for staging in self._staging.tables]
        give(self._connection, parts, relation, self._run)

    def _locked(self) -> Relation:
        """Keeps everybody out of the target until the commit, readers too: for the moment of the switch."""
        found = self._relation(self._target)
        lock_for_switch(self._connection, [SwitchLock(self._target, found.oid)], self._lock_timeout_seconds)
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

    def _only_hidden(self) -> TableName:
        if len(self._staging.tables) != 1:
            raise InternalError(f"the switch `{self._plan.switch}` needs one hidden table")
        return self._staging.tables[0].table

    def _run(self, statements: Iterable[str]) -> None:
        text = ";\n".join(statements)
        if text:
            self._connection.execute(text)
