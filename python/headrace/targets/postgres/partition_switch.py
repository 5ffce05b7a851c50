"""Makes hidden tables partitions of a table, in the transaction that the caller holds open."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Final

from headrace.errors import AccountsError, TargetError
from headrace.planning import STRAYS, DataFlowPlan, DefaultRule, Partition, counted
from headrace.targets.base import LoadedPartition
from headrace.targets.postgres import ddl
from headrace.targets.postgres.catalog import Relation, find_relation, names_in_schema
from headrace.targets.postgres.connection import Connection, sql, texts
from headrace.targets.postgres.foreign_keys import foreign_keys_of
from headrace.targets.postgres.hidden_tables import Staging, replaces_all
from headrace.targets.postgres.index_names import server_name
from headrace.targets.postgres.indexes import Index, built, built_on, hidden_index_name, indexes_of
from headrace.targets.postgres.locks import SwitchLock, lock_for_switch
from headrace.targets.postgres.moving import CHANGED_MEANWHILE, move, refuse_other_types
from headrace.targets.postgres.names import TableName, quote
from headrace.targets.postgres.refusals import refuse_exchange
from headrace.targets.postgres.rename import rename_statements
from headrace.targets.postgres.staging import TableStaging

# What others may do meanwhile. Readers go on while partitions are attached. A plan of theirs that was made before must
# not meet rows that came since into partitions which it knows, but not the new partitions: then nobody is let in.
_READERS_GO_ON: Final = "ONLY {table} IN SHARE UPDATE EXCLUSIVE"
_NOBODY: Final = "ONLY {table} IN ACCESS EXCLUSIVE"
# Of tables to which foreign keys refer: what the server takes itself when it attaches and when it drops a partition.
_REFERRED_READERS: Final = "ONLY {table} IN SHARE ROW EXCLUSIVE"
# The bound of a default partition, as the server writes it.
_DEFAULT: Final = "DEFAULT"


class PartitionSwitch:
    """`rows`: committed rows by partition, as the ledger calls them. `loaded`: what became of each."""

    def __init__(
        self,
        connection: Connection,
        plan: DataFlowPlan,
        staging: TableStaging,
        rows: Mapping[str, int],
        lock_timeout_seconds: float,
    ) -> None:
        self._connection = connection
        self._plan = plan
        self._planned = ddl.partitioning_of(plan)
        self._staging = staging
        self._target = staging.target
        self._rows = rows
        self._lock_timeout_seconds = lock_timeout_seconds
        self._strays: dict[str, int] = {}
        self._seconds: dict[str, float] = {}
        self._taken: set[str] | None = None

    @property
    def loaded(self) -> tuple[LoadedPartition, ...]:
        """The partitions of the plan, in its order."""
        return tuple(
            LoadedPartition(
                part.table,
                part.action,
                self._rows.get(part.name, 0) + self._strays.get(part.table, 0),
                self._strays.get(part.table, 0),
                self._seconds.get(part.name, 0.0),
            )
            for part in self._planned.partitions
            if part.action != "discard"
        )

    def run(self) -> None:
        """Raises TargetError if the table is no longer as it was when the load began."""
        by_action: dict[str, list[tuple[Staging, Partition]]] = {
            "attach": [],
            "insert": [],
            "exchange": [],
            "discard": [],
        }
        for staging in self._staging.tables:
            if staging.part is not None:
                by_action[staging.part.action].append((staging, staging.part))
        # A default partition has to be there before the others: to an empty one the server adds them without a look.
        by_action["attach"].sort(key=lambda item: not isinstance(item[1].rule, DefaultRule))
        old = self._staging.relation
        if old is None:
            self._make_table(by_action["attach"])
        else:
            self._change_table(old, by_action)
        for staging, part in by_action["discard"]:
            self._check_moved(str(self._target), 0, self._rows.get(part.name, 0))
            self._run([f"DROP TABLE {staging.table.sql}"])
        self._move_strays(old)

    def _make_table(self, new: Sequence[tuple[Staging, Partition]]) -> None:
        """The hidden partitioned table becomes the target."""
        assert self._staging.parent is not None  # a new table has one
        self._run(ddl.take_place(self._staging.parent, self._target))
        self._grant(self._target)
        for staging, part in new:
            with self._timed(part):
                self._run(self._attached(staging, part, is_attached=self._staging.is_divided_by_server))
        self._give([TableName(self._target.schema, part.table) for _, part in new], None)

    def _change_table(self, old: Relation, by_action: Mapping[str, Sequence[tuple[Staging, Partition]]]) -> None:
        self._detach_from_hidden_parent()
        # A default partition takes no row of a partition that is still there.
        waiting = [
            item for item in by_action["insert"] if self._planned.drops and isinstance(item[1].rule, DefaultRule)
        ]
        moved = self._insert_all(item for item in by_action["insert"] if item not in waiting)
        new, exchanged = by_action["attach"], by_action["exchange"]
        self._lock(old, is_new=bool(new), is_moved=moved > 0, is_exchanged=bool(exchanged))
        self._refuse_changed(old)
        if replaces_all(self._plan):
            self._refuse_hanging(old)
            self._run(f"DROP TABLE {TableName(row[0] or '', row[1] or '').sql}" for row in self._staging.partitions)
        self._run(f"DROP TABLE {TableName(self._target.schema, name).sql}" for name in self._planned.drops)
        self._insert_all(waiting)
        if new:
            self._refuse_other_indexes(old, new[0][0])
        for staging, part in new:
            with self._timed(part):
                self._run(self._attached(staging, part, is_attached=False))
        for staging, part in exchanged:
            with self._timed(part):
                self._exchange(staging, part)
        self._give([TableName(self._target.schema, part.table) for _, part in new], old)

    def _attached(self, staging: Staging, part: Partition, *, is_attached: bool) -> list[str]:
        """Statements that make a hidden table a partition under its own name, or that of one which is a partition."""
        partition = TableName(self._target.schema, part.table)
        attach = [] if is_attached else [ddl.attach(self._target, partition, part.rule)]
        return [
            *ddl.take_place(staging.table, partition),
            *attach,
            *[ddl.drop_bounds(partition)] * staging.has_condition,
            *(
                index.rename(partition, hidden_index_name(staging.table, number), self._free_name(partition, index))
                for number, index in enumerate(staging.indexes, start=1)
            ),
        ]

    def _free_name(self, partition: TableName, index: Index) -> str:
        """As the server would call the index, had it made it for the partition."""
        if self._taken is None:  # behind the drop of old partitions, whose names are free
            coming = (part.table for part in self._planned.partitions)
            self._taken = {*names_in_schema(self._connection, self._target.schema), *coming}
        name = server_name(partition.name, index.columns, index.label, self._taken)
        self._taken.add(name)
        return name

    def _exchange(self, staging: Staging, part: Partition) -> None:
        old_name = TableName(self._target.schema, part.replaces or part.table)
        refuse_exchange(self._connection, self._target, part)
        old, new = (find_relation(self._connection, name) for name in (old_name, staging.table))
        if old is None or new is None:
            raise self._changed(f"partition {old_name} is gone")
        self._run([ddl.detach(self._target, old_name)])
        self._run(rename_statements(self._connection, self._plan, old_name, old, staging.table, new))
        self._run([ddl.attach_as(self._target, old_name, self._bound(old_name))])
        self._run([ddl.drop_bounds(old_name)] * staging.has_condition)

    def _bound(self, partition: TableName) -> str:
        """Of a partition that exists, in the server's words: the source's type may be coarser than its bounds."""
        names = (partition.schema, partition.name)
        return next(bound or "" for schema, name, bound, _ in self._staging.partitions if (schema, name) == names)

    def _insert_all(self, items: Iterable[tuple[Staging, Partition]]) -> int:
        """Moves rows into partitions that exist; how many."""
        moved = 0
        for staging, part in items:
            with self._timed(part):
                moved += self._insert(staging, part)
        return moved

    def _insert(self, staging: Staging, part: Partition) -> int:
        """Moves rows into a partition that exists; how many."""
        partition = TableName(self._target.schema, part.table)
        relation = find_relation(self._connection, partition)
        if relation is None:
            raise self._changed(f"partition {partition} is gone")
        with self._without_triggers(partition, relation.oid):
            moved = move(self._connection, self._plan, staging.table, partition)
        self._check_moved(str(partition), moved, self._rows.get(part.name, 0))
        self._run([f"DROP TABLE {staging.table.sql}"])
        return moved

    def _move_strays(self, old: Relation | None) -> None:
        strays = next((item for item in self._staging.tables if item.partition == STRAYS), None)
        if strays is None:
            return
        expected = self._rows.get(STRAYS, 0)
        if expected:
            relation = old or find_relation(self._connection, self._target)
            assert relation is not None  # this switch has made it
            with self._without_triggers(self._target, relation.oid):
                text = ddl.count_moved(self._target, strays.table, self._plan)
                rows = self._connection.query(text).rows
            refuse_other_types(self._connection, self._plan, strays.table, self._target)
            self._strays = {name or "": int(count or 0) for name, count in rows}
            self._check_moved(str(self._target), sum(self._strays.values()), expected)
        self._run([f"DROP TABLE {strays.table.sql}"])

    def _check_moved(self, table: str, found: int, expected: int) -> None:
        if found != expected:
            raise AccountsError(
                f"table {table} did not take all rows",
                found=counted(found, "row"),
                expected=counted(expected, "row"),
                hint="A trigger or a rule of the table leaves rows out; drop it, or load another table.",
            )

    def _lock(self, old: Relation, *, is_new: bool, is_moved: bool, is_exchanged: bool) -> None:
        """Tables to which foreign keys refer come first. They belong to the others: somebody who reads the target may
        want them next, while we wait for the target.
        """
        drops = is_exchanged or replaces_all(self._plan) or bool(self._planned.drops)
        if not (is_new or drops):
            return
        locks = []
        for key in foreign_keys_of(self._connection, old.oid):
            referred = find_relation(self._connection, key.refers_to) if key.may_lock else None
            if referred is not None:
                mode = _NOBODY if drops else _REFERRED_READERS
                locks.append(SwitchLock(key.refers_to, referred.oid, mode))
        mode = _NOBODY if drops or is_moved else _READERS_GO_ON
        locks.append(SwitchLock(self._target, old.oid, mode))
        locks += [SwitchLock(name, oid) for name, oid in self._closed(is_new=is_new).items()]
        lock_for_switch(self._connection, locks, self._lock_timeout_seconds)

    def _closed(self, *, is_new: bool) -> dict[TableName, str]:
        """Partitions that exist and from which the server keeps everybody out: those that go, and a default partition
        while new ones come. By name, their oids.
        """
        going = {part.replaces for part in self._planned.partitions} | set(self._planned.drops)
        return {
            TableName(schema or "", name or ""): oid or ""
            for schema, name, bound, oid in self._staging.partitions
            if replaces_all(self._plan)
            or (is_new and bound == _DEFAULT)
            or (schema == self._target.schema and name in going)
        }

    def _refuse_changed(self, old: Relation) -> None:
        """Behind the lock: the table and its partitions must be those for which the load was planned."""
        now = find_relation(self._connection, self._target)
        if now is None or now.oid != old.oid:
            raise self._changed("it was dropped, or is another table")
        rows = self._connection.query(sql("partitions"), (old.oid,)).rows
        gone = [f"{row[1]} is gone" for row in self._staging.partitions if row not in rows]
        came = [f"{row[1]} is new" for row in rows if row not in self._staging.partitions]
        if gone or came:
            raise self._changed(", ".join([*gone, *came]))
        referring = texts(self._connection, sql("referenced_by"), (old.oid,))
        if referring and self._plan.target == "replace":
            raise TargetError(
                f"table {self._target} cannot be replaced: other tables refer to its rows",
                found=f"foreign keys of {', '.join(referring)}, made after the load was planned",
                hint="Drop them, or use `target: append`.",
            )

    def _refuse_hanging(self, old: Relation) -> None:
        hanging = texts(self._connection, sql("hanging_on_partitions"), (old.oid,))
        if hanging:
            raise self._changed(", ".join(hanging))

    def _refuse_other_indexes(self, old: Relation, first: Staging) -> None:
        """Raises TargetError unless the hidden tables have the indexes that the target has now."""
        indexes = indexes_of(self._connection, old.oid)
        hidden = find_relation(self._connection, first.table)
        there = {} if hidden is None else built_on(self._connection, hidden.oid)
        if built(indexes, first.table).keys() != there.keys():
            raise self._changed("its indexes")

    def _changed(self, found: str) -> TargetError:
        return TargetError(f"table {self._target} was changed while it was loaded", found=found, hint=CHANGED_MEANWHILE)

    def _detach_from_hidden_parent(self) -> None:
        parent = self._staging.parent
        if parent is not None:
            self._run(ddl.detach(parent, staging.table) for staging in self._staging.tables)
            self._run([f"DROP TABLE {parent.sql}"])

    @contextmanager
    def _without_triggers(self, table: TableName, oid: str) -> Iterator[None]:
        """Rows that come as partitions fire none, and so none of the load does."""
        triggers = triggers_of(self._connection, oid) if self._plan.options.disable_triggers else []
        self._run(f"ALTER TABLE {table.sql} DISABLE TRIGGER {quote(name)}" for name, _ in triggers)
        yield
        self._run(f"ALTER TABLE {table.sql} ENABLE {kind}TRIGGER {quote(name)}" for name, kind in triggers)

    def _grant(self, table: TableName) -> bool:
        """Gives a new table what default privileges say; False if they say nothing."""
        grants = texts(self._connection, sql("default_grants"), (table.schema, table.sql))
        self._run(grants)
        return bool(grants)

    def _give(self, parts: Sequence[TableName], whole: Relation | None) -> None:
        give(self._connection, parts, whole, self._run)

    @contextmanager
    def _timed(self, part: Partition) -> Iterator[None]:
        started = time.monotonic()
        yield
        self._seconds[part.name] = time.monotonic() - started

    def _run(self, statements: Iterable[str]) -> None:
        text = ";\n".join(statements)
        if text:
            self._connection.execute(text)


def triggers_of(connection: Connection, oid: str) -> list[tuple[str, str]]:
    """Triggers that fire for inserted rows, and the word that switches each on again as it was."""
    rows = connection.query(sql("triggers"), (oid,)).rows
    return [(name or "", {"A": "ALWAYS ", "R": "REPLICA "}.get(fires or "", "")) for name, fires in rows]


def give(
    connection: Connection, parts: Sequence[TableName], whole: Relation | None, run: Callable[[Iterable[str]], None]
) -> None:
    """New parts get what default privileges give, which is the same for all, and the owner of the whole."""
    for part in parts:
        grants = texts(connection, sql("default_grants"), (part.schema, part.sql))
        if not grants:
            break
        run(grants)
    if whole is not None and connection.query(sql("ownership"), (whole.oid,)).rows:
        run(f"ALTER TABLE {part.sql} OWNER TO {quote(whole.owner)}" for part in parts)
