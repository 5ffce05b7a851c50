"""Exchanges a partition of a table for another table, by metadata alone: what a `switch` task does."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, Final

from headrace.errors import CancelledError, HeadraceError, TargetBusyError, TargetError
from headrace.planning import DefaultRule, ListRule, PartitionRule, RangeRule, refuse_cut_name
from headrace.targets.base import Notice
from headrace.targets.partition_exchange import (
    ExchangedPartition,
    Notes,
    name_taken,
    no_incoming,
    no_partition,
    not_partitioned,
    partition_exists,
    row_in_default,
)
from headrace.targets.postgres import ddl
from headrace.targets.postgres.bounds import for_values, implies, read_bound
from headrace.targets.postgres.capabilities import MAXIMUM_NAME_BYTES
from headrace.targets.postgres.catalog import Relation, find_relation, names_in_schema, own_comparison
from headrace.targets.postgres.connection import BEGIN, Row, one_value, roll_back, sql, texts
from headrace.targets.postgres.control import Control
from headrace.targets.postgres.failures import explained, fields_of, is_connection_lost, server_words, sqlstate
from headrace.targets.postgres.foreign_keys import foreign_keys_of
from headrace.targets.postgres.incoming import Incoming, first_row
from headrace.targets.postgres.index_names import server_name
from headrace.targets.postgres.indexes import indexes_of
from headrace.targets.postgres.ledger import Ledger
from headrace.targets.postgres.locks import SwitchLock, lock_for_switch, table_lock
from headrace.targets.postgres.names import TableName, literal, quote
from headrace.targets.postgres.refusals import hanging_on_partition, refuse_another_owner

NOTHING_EXCHANGED: Final = "; nothing was exchanged"
_HINT_CHANGED: Final = "Run again, and change the table before or after this task."
_DEFAULT: Final = "DEFAULT"
_DATA_EXCEPTION: Final = "22"
_FOREIGN_KEY_VIOLATION: Final = "23503"
_RESTART_SECONDS: Final = 3.0
_STEP_SECONDS: Final = 0.05
# Whom the lock of the table, and those of tables that share foreign keys with it, keep out.
_READERS_GO_ON: Final = "ONLY {table} IN SHARE UPDATE EXCLUSIVE"
_NOBODY: Final = "ONLY {table} IN ACCESS EXCLUSIVE"
_REFERRED_READERS: Final = "ONLY {table} IN SHARE ROW EXCLUSIVE"


@dataclass(frozen=True)
class NamedExchange:
    """A `PartitionExchange` whose tables have their schemas. `partition` and `outgoing` are in that of the table."""

    task: str
    table: TableName
    partition: TableName
    incoming: TableName | None
    outgoing: TableName | None
    rule: PartitionRule | None


@dataclass(frozen=True)
class _Before:
    """The table as it was when the exchange began. `old`: the partition, as `partitions.sql` has it."""

    whole: Relation
    partitions: list[Row]
    old: Row | None
    old_relation: Relation | None
    incoming: Incoming | None

    @property
    def default(self) -> Row | None:
        """The default partition, unless it is the one that is exchanged."""
        return next((row for row in self.partitions if row[2] == _DEFAULT and row is not self.old), None)


class Exchange:
    """One exchange. Whatever fails before its commit leaves the table as it was; what the incoming table was given by
    then, but for the condition of its keys, it keeps.
    """

    def __init__(
        self,
        control: Control,
        ledger: Ledger | None,
        run_id: str,
        named: NamedExchange,
        notes: Notes,
        lock_timeout_seconds: float,
        notice: Notice,
        is_cancelled: Callable[[], bool],
    ) -> None:
        self._control = control
        self._ledger = ledger
        self._run_id = run_id
        self._named = named
        self._notes = notes
        self._lock_timeout_seconds = lock_timeout_seconds
        self._notice = notice
        self._is_cancelled = is_cancelled
        self._what = f"exchanging partition {named.partition} of {named.table}"
        self._warnings: list[str] = []
        self._proved: Incoming | None = None

    def run(self) -> ExchangedPartition:
        """All of it. Raises TargetError for what stands in the way."""
        try:
            with self._locked():
                try:
                    return self._exchange()
                except BaseException:
                    self._clean_up()
                    raise
        except HeadraceError as error:
            if fields_of(error) is None:
                raise
            raise explained(error, self._what, NOTHING_EXCHANGED) from error

    @contextmanager
    def _locked(self) -> Iterator[None]:
        timeout = self._lock_timeout_seconds
        with table_lock(self._control, self._named.table, timeout, self._notice, self._is_cancelled):
            yield

    def _exchange(self) -> ExchangedPartition:
        if self._was_done(self._notes.remembered()):
            return ExchangedPartition(was_done=True)
        with self._control.cancellable(self._is_cancelled):
            before = self._look()
            self._refuse(before)
            made: tuple[str, ...] = ()
            if before.incoming is not None:
                made = before.incoming.give_missing(self._key_columns(before))
                self._prove(before, before.incoming)
            if self._ledger is None:
                self._notes.remember(self._note(before))
            self._control.execute(BEGIN)
            self._control.execute(ddl.DURABLE)
            self._lock(before)
            started = time.monotonic()
            self._refuse_changed(before)
            for statement in self._statements(before):
                self._execute(statement)
            if self._ledger is not None:
                self._ledger.mark_task(self._run_id, self._named.task)
        self._commit(before)
        self._warn_of_subscribers(before)
        return ExchangedPartition(False, made, time.monotonic() - started, tuple(self._warnings))

    # --- what is there ------------------------------------------------------------------------------------------------

    def _was_done(self, notes: Sequence[Mapping[str, Any]]) -> bool:
        """By an earlier attempt, or by a commit whose answer was lost. `notes`: where there is no ledger."""
        if self._ledger is not None:
            return self._ledger.finished_task(self._run_id, self._named.task) is not None
        return any(self._is_as_noted(note) for note in notes)

    def _note(self, before: _Before) -> Mapping[str, Any]:
        """What tells, without a ledger, whether the exchange was committed."""
        incoming = None if before.incoming is None else before.incoming.relation.oid
        return {"incoming": incoming, "outgoing": None if before.old is None else before.old[3]}

    def _is_as_noted(self, note: Mapping[str, Any]) -> bool:
        whole = find_relation(self._control, self._named.table)
        members = [] if whole is None else [row[3] for row in self._control.query(sql("partitions"), (whole.oid,)).rows]
        if note["incoming"] is not None:
            return note["incoming"] in members
        name = self._named.outgoing
        out = None if name is None else find_relation(self._control, name)
        return out is not None and out.oid == note["outgoing"] and out.oid not in members

    def _look(self) -> _Before:
        named = self._named
        whole = find_relation(self._control, named.table)
        if whole is None or not whole.partitioned:
            raise not_partitioned(
                str(named.table),
                "no such table" if whole is None else f"a {whole.kind} without partitions",
                "a table with PARTITION BY",
                "Correct the name of the table.",
            )
        if not whole.is_owner:
            raise TargetError(
                f"the user is not the owner of {named.table}",
                found=f"it belongs to {whole.owner}",
                hint=f"Run as a member of role {whole.owner}.",
            )
        rows = self._control.query(sql("partitions"), (whole.oid,)).rows
        old = next((row for row in rows if tuple(row[:2]) == (named.partition.schema, named.partition.name)), None)
        if old is None and named.rule is None:
            present = [row[1] if row[0] == named.table.schema else f"{row[0]}.{row[1]}" for row in rows]
            raise no_partition(str(named.table), named.partition.name, [name or "" for name in present])
        if old is not None and named.rule is not None:
            raise partition_exists(str(named.table), named.partition.name)
        old_relation = None if old is None else find_relation(self._control, named.partition)
        incoming = None
        if named.incoming is not None:
            relation = find_relation(self._control, named.incoming)
            if relation is None:
                raise no_incoming(str(named.incoming))
            pattern = (named.table, whole)
            incoming = Incoming(self._control, named.incoming, relation, pattern, named.partition, old_relation)
        return _Before(whole, rows, old, old_relation, incoming)

    # --- what is refused ----------------------------------------------------------------------------------------------

    def _refuse(self, before: _Before) -> None:
        self._refuse_names(before)
        if before.incoming is not None:
            before.incoming.check()
            self._refuse_hanging(before)
            refuse_another_owner(self._control, self._named.table, before.old_relation or before.whole)
        if self._named.rule is not None:
            self._refuse_rule(before, self._named.rule)

    def _refuse_names(self, before: _Before) -> None:
        named = self._named
        for name in (named.partition, named.outgoing):
            if name is not None:
                refuse_cut_name("a table that the switch makes", name.name, MAXIMUM_NAME_BYTES)
        taken = names_in_schema(self._control, named.table.schema)
        if named.outgoing is not None and named.outgoing != named.incoming and named.outgoing.name in taken:
            raise name_taken(str(named.outgoing), "the rows that go out")
        if before.old is None and named.partition != named.incoming and named.partition.name in taken:
            raise name_taken(str(named.partition), "the new partition")
        comes = named.incoming if named.incoming and named.incoming.schema != named.table.schema else None
        if comes is not None and comes.name != named.partition.name and comes.name in taken:
            raise name_taken(str(TableName(named.table.schema, comes.name)), f"{comes} on its way")

    def _refuse_hanging(self, before: _Before) -> None:
        """What hangs on the partition would go with its rows, and stay away from those that come."""
        if before.old_relation is None:
            return
        referring = self._control.query(sql("referring"), (before.old_relation.oid,)).rows
        hanging = [*hanging_on_partition(self._control, self._named.partition)]
        hanging += [f"foreign key of {TableName(row[0] or '', row[1] or '')}" for row in referring]
        if hanging:
            raise TargetError(
                f"partition {self._named.partition} cannot be exchanged: another table would take its place",
                found=", ".join(hanging),
                hint="Remove what stands in the way, or put it on the whole table.",
            )

    def _refuse_rule(self, before: _Before, rule: PartitionRule) -> None:
        key = self._control.query(sql("partitioning"), (before.whole.oid,)).rows
        columns = self._key_columns(before)
        strategy = {RangeRule: "range", ListRule: "list"}.get(type(rule), key[0][0])
        if columns is None or len(columns) != 1 or key[0][0] != strategy:
            shown = ", ".join(row[1] or "" for row in key)
            raise TargetError(
                f"partition {self._named.partition} cannot be made by its keys",
                found=f"{self._named.table} is divided by {key[0][0]} ({shown})",
                expected="`from` and `to` for ranges, `values` for lists, of one column",
                hint="Attach this partition by a `sql` task: ALTER TABLE ... ATTACH PARTITION.",
            )
        if isinstance(rule, DefaultRule) and before.default is not None:
            raise TargetError(
                f"table {self._named.table} has a default partition already", found=str(before.default[1])
            )
        signature = self._control.query(sql("signature"), (before.whole.oid,)).rows
        kind = next(row[1] or "" for row in signature if row[0] == columns[0])
        for value in _values(rule):
            try:
                self._control.query(f"SELECT {literal(value)}::{kind}")
            except HeadraceError as error:
                if not sqlstate(error).startswith(_DATA_EXCEPTION):
                    raise
                raise TargetError(
                    f"the new partition {self._named.partition} cannot have these keys",
                    found=f"`{value}`, which is no value of column {columns[0]}",
                    expected=f"keys of type {kind}",
                ) from error

    def _key_columns(self, before: _Before) -> list[str] | None:
        """Of the key; None if it has an expression."""
        names = [row[1] or "" for row in self._control.query(sql("partitioning"), (before.whole.oid,)).rows]
        columns = {row[0] for row in self._control.query(sql("signature"), (before.whole.oid,)).rows}
        return names if set(names) <= columns else None

    def _prove(self, before: _Before, incoming: Incoming) -> None:
        condition = self._condition(before)
        keys = self._key_columns(before)
        if condition is not None:
            self._proved = incoming
            incoming.prove(condition, keys)
        if condition is None or before.default is None or before.old is not None:
            return
        default = TableName(before.default[0] or "", before.default[1] or "")
        found = first_row(self._control, default, condition, keys)
        if found is not None:
            raise row_in_default(str(default), str(self._named.partition), found)

    def _condition(self, before: _Before) -> str | None:
        """What is true for the rows of the partition, in words by which the server recognises it; None if there is
        nothing, or if only the server knows how it compares the keys.
        """
        if before.old is not None:
            return self._definition(before.old[3])
        assert self._named.rule is not None
        columns = self._key_columns(before) or [""]
        if own_comparison(self._control, before.whole.oid) is not None:
            return None
        others = [rule for row in before.partitions if (rule := read_bound(row[2] or "")) is not None]
        own = implies(self._named.rule, quote(columns[0]), others, None)
        # A table that is itself a partition has a condition of its own.
        conditions = [text for text in (self._definition(before.whole.oid), own) if text is not None]
        return " AND ".join(f"({text})" for text in conditions) or None

    def _definition(self, oid: str | None) -> str | None:
        text = "SELECT pg_catalog.pg_get_partition_constraintdef($1::pg_catalog.oid)"
        return one_value(self._control, text, (oid,))

    # --- the exchange -------------------------------------------------------------------------------------------------

    def _lock(self, before: _Before) -> None:
        """Tables of foreign keys come first: who reads the table may want them next, while we wait for it."""
        takes_out = before.old is not None
        mode = _NOBODY if takes_out else _REFERRED_READERS
        locks = []
        for key in foreign_keys_of(self._control, before.whole.oid):
            referred = find_relation(self._control, key.refers_to) if key.may_lock else None
            if referred is not None:
                locks.append(SwitchLock(key.refers_to, referred.oid, mode))
        for schema, name, oid, may_lock in self._control.query(sql("referring"), (before.whole.oid,)).rows:
            if may_lock == "t":
                locks.append(SwitchLock(TableName(schema or "", name or ""), oid or "", mode))
        locks.append(SwitchLock(self._named.table, before.whole.oid, _NOBODY if takes_out else _READERS_GO_ON))
        if before.old is not None:
            locks.append(SwitchLock(self._named.partition, before.old[3] or ""))
        if before.default is not None:
            schema, name, _, oid = before.default
            locks.append(SwitchLock(TableName(schema or "", name or ""), oid or ""))
        if before.incoming is not None:
            locks.append(SwitchLock(before.incoming.table, before.incoming.relation.oid))
        lock_for_switch(self._control, locks, self._lock_timeout_seconds, self._pause)

    def _pause(self, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            if self._is_cancelled():
                raise CancelledError(f"{self._what} was cancelled while it waited for locks")
            time.sleep(_STEP_SECONDS)

    def _refuse_changed(self, before: _Before) -> None:
        """Behind the locks everything must be as it was when it was looked at."""
        whole = find_relation(self._control, self._named.table)
        if whole is None or whole.oid != before.whole.oid:
            raise self._changed(self._named.table, "it was dropped, or is another table")
        rows = self._control.query(sql("partitions"), (whole.oid,)).rows
        if any(row is not None and row not in rows for row in (before.old, before.default)):
            raise self._changed(self._named.table, "its partitions")
        self._refuse_names(before)
        if before.incoming is None:
            return
        relation = find_relation(self._control, before.incoming.table)
        if relation is None or relation.oid != before.incoming.relation.oid:
            raise self._changed(before.incoming.table, "it was dropped, or is another table")
        before.incoming.check()
        self._refuse_hanging(before)
        missing = before.incoming.missing()
        if missing:
            raise self._changed(before.incoming.table, ", ".join(gift.name for gift in missing))

    def _changed(self, table: TableName, found: str) -> TargetError:
        return TargetError(f"table {table} was changed during the exchange", found=found, hint=_HINT_CHANGED)

    def _statements(self, before: _Before) -> Sequence[str]:
        named, incoming, old = self._named, before.incoming, before.old
        statements: list[str] = []
        appearance: Sequence[str] = ()
        behind: list[str] = []
        if old is not None and before.old_relation is not None:
            statements.append(ddl.detach(named.table, named.partition))
            if incoming is not None:
                values = (before.old_relation.oid, named.partition.sql, incoming.relation.oid)
                appearance = texts(self._control, sql("appearance"), values)
            if named.outgoing is None:
                statements.append(f"DROP TABLE {named.partition.sql}")
            elif named.outgoing == named.incoming:  # its name is free when that one has left it
                away = TableName(named.table.schema, self._free_name())
                statements.append(_rename(named.partition, away))
                behind.append(_rename(away, named.outgoing))
            else:
                statements.append(_rename(named.partition, named.outgoing))
        if incoming is not None:
            bound = (old[2] or "") if old is not None else for_values(_rule(named))
            if incoming.table != named.partition:
                statements += self._index_renames(before, incoming)
                statements += ddl.take_place(incoming.table, named.partition)
            # A partition keeps its owner and grants; a new one gets its owner from the table, whose they both are.
            statements += appearance
            if old is None and incoming.relation.owner != before.whole.owner:
                statements.append(f"ALTER TABLE {named.partition.sql} OWNER TO {quote(before.whole.owner)}")
            statements.append(ddl.attach_as(named.table, named.partition, bound))
            statements += [ddl.drop_bounds(named.partition)] * incoming.has_proof
        return [*statements, *behind]

    def _index_renames(self, before: _Before, incoming: Incoming) -> list[str]:
        """Indexes move with their table into the other schema, where their names may be taken."""
        if incoming.table.schema == self._named.table.schema:
            return []
        taken = set(names_in_schema(self._control, self._named.table.schema))
        if before.old_relation is not None and self._named.outgoing is None:
            taken -= {index.name for index in indexes_of(self._control, before.old_relation.oid)}
        taken_there = names_in_schema(self._control, incoming.table.schema)
        statements = []
        for index in indexes_of(self._control, incoming.relation.oid):
            if index.name in taken:
                name = server_name(self._named.partition.name, index.columns, index.label, {*taken, *taken_there})
                statements.append(index.rename(incoming.table, index.name, name))
                taken.add(name)
        return statements

    def _free_name(self) -> str:
        taken = names_in_schema(self._control, self._named.table.schema)
        return server_name(self._named.partition.name, "", "out", taken)

    def _execute(self, statement: str) -> None:
        try:
            self._control.execute(statement)
        except HeadraceError as error:
            if sqlstate(error) != _FOREIGN_KEY_VIOLATION:
                raise
            raise TargetError(
                f"partition {self._named.partition} cannot be taken out: rows of other tables refer to its rows",
                found=server_words(fields_of(error) or {}),
                hint="Delete or move the rows that refer to them before this task.",
            ) from error

    def _commit(self, before: _Before) -> None:
        """If the answer is lost, the ledger or the tables say what became of it."""
        try:
            self._control.execute("COMMIT")
        except HeadraceError as error:
            if not is_connection_lost(error):
                raise
            try:
                self._control.reopen(_RESTART_SECONDS)
                with self._locked():  # free when the server has ended the old session
                    committed = self._was_done([self._note(before)])
            except HeadraceError:
                raise TargetBusyError(
                    f"{self._what}: the connection was lost in the moment of the commit",
                    found=error.what,
                    hint=f"Look at the partitions of {self._named.table}, or resume the run: it finds out.",
                ) from error
            if not committed:
                raise
            self._warnings.append(f"{self._what}: the connection was lost in the moment of the commit; it is committed")

    def _warn_of_subscribers(self, before: _Before) -> None:
        """What a table holds that becomes a partition was not written to the published table."""
        if before.incoming is None:
            return
        with suppress(HeadraceError):
            publications = texts(self._control, sql("published"), (before.whole.oid,))
            if publications:
                self._warnings.append(
                    f"the rows of {self._named.partition} are not sent to the subscribers of publication "
                    f"{', '.join(publications)}: they were written to another table"
                )

    def _clean_up(self) -> None:
        """Ends the transaction, and takes away what would surprise whoever finds the incoming table."""
        with suppress(HeadraceError):
            with self._control.impatient():
                roll_back(self._control)
            if self._control.state in ("lost", "cancelled"):
                self._control.reopen(_RESTART_SECONDS)
            if self._proved is not None:
                with self._control.impatient():
                    self._proved.forget_proof()


def _rename(table: TableName, to: TableName) -> str:
    return f"ALTER TABLE {table.sql} RENAME TO {quote(to.name)}"


def _rule(named: NamedExchange) -> PartitionRule:
    assert named.rule is not None  # without one the partition exists
    return named.rule


def _values(rule: PartitionRule) -> list[str]:
    """The keys that a rule names."""
    values: Sequence[str | None] = ()
    if isinstance(rule, RangeRule):
        values = (rule.minimum, rule.end)
    elif isinstance(rule, ListRule):
        values = rule.values
    return [value for value in values if value is not None]
