"""Exchanges a table that a divided view shows for another one, by names alone: what a `switch` task does."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import duckdb

from headrace.errors import CancelledError, HeadraceError, LedgerError, TargetError
from headrace.model.literals import canonical_text
from headrace.planning import (
    CatalogColumn,
    CatalogPartition,
    CatalogPartitioning,
    CatalogTable,
    DefaultRule,
    HashRule,
    ListRule,
    PartitionRule,
    RangeRule,
)
from headrace.targets.duckdb import ddl
from headrace.targets.duckdb.catalog import names_in_schema, read_table, refuse_ledger_schema
from headrace.targets.duckdb.divided_views import keep_divided_view
from headrace.targets.duckdb.failures import disk_full, first_paragraph, is_disk_full
from headrace.targets.duckdb.ledger import Ledger, roll_back
from headrace.targets.duckdb.rules import belongs, overlap
from headrace.targets.partition_exchange import (
    ExchangedPartition,
    PartitionExchange,
    described,
    name_taken,
    no_incoming,
    no_partition,
    not_partitioned,
    other_columns,
    partition_exists,
    row_in_default,
    row_outside,
)

_STEP_SECONDS: Final = 0.05
_SHOWN_KEY_CHARACTERS: Final = 200
NOTHING_EXCHANGED: Final = "; nothing was exchanged"


@dataclass(frozen=True)
class _View:
    """A divided view: its tables in their order, and how it is divided."""

    table: CatalogTable
    partitioning: CatalogPartitioning

    @property
    def key(self) -> CatalogColumn:
        """The column by whose values rows have their table."""
        name = self.partitioning.key[0].casefold()
        return next(column for column in self.table.columns if column.name.casefold() == name)


class Exchange:
    """One exchange. The file is ours alone, so nothing changes between a look and what follows from it."""

    def __init__(
        self,
        connection: duckdb.DuckDBPyConnection,
        path: Path,
        ledger: Ledger,
        run_id: str,
        exchange: PartitionExchange,
        is_cancelled: Callable[[], bool],
    ) -> None:
        self._connection = connection
        self._path = path
        self._ledger = ledger
        self._run_id = run_id
        self._exchange = exchange
        self._schema = exchange.table.schema or "main"
        self._is_cancelled = is_cancelled
        self._what = f"exchanging partition {exchange.partition} of {exchange.table.name}"

    def run(self) -> ExchangedPartition:
        """All of it. Raises TargetError for what stands in the way."""
        if self._ledger.finished_task(self._run_id, self._exchange.task) is not None:
            return ExchangedPartition(was_done=True)
        try:
            with self._cancellable():
                view = self._look()
                new = self._checked(view)
                started = time.monotonic()
                self._connection.execute("BEGIN TRANSACTION")
                try:
                    self._switch(view, new)
                    self._ledger.mark_task(self._run_id, self._exchange.task)
                    self._stop_if_cancelled()
                except BaseException:
                    roll_back(self._connection)
                    raise
            self._connection.execute("COMMIT")
        except duckdb.Error as error:
            roll_back(self._connection)
            raise self._failure(error) from error
        # A COMMIT behind a failed statement reports success and keeps nothing.
        if self._ledger.finished_task(self._run_id, self._exchange.task) is None:
            raise LedgerError(
                f"{self._what}: the commit was not kept",
                at={"file": str(self._path)},
                hint="This is a defect of Headrace or DuckDB. Keep the run folder and report it.",
            )
        return ExchangedPartition(switch_seconds=time.monotonic() - started)

    # --- what is there ------------------------------------------------------------------------------------------------

    def _look(self) -> _View:
        refuse_ledger_schema(self._schema)
        table = read_table(self._connection, self._schema, self._exchange.table.name)
        if table is None or table.partitioning is None:
            raise not_partitioned(
                self._exchange.table.name,
                "no such table" if table is None else f"a {table.kind} that no load has divided",
                "a view that `load: view` has made",
                "Load the table with `load: view` and `partition`: DuckDB itself has no partitions.",
            )
        if table.partitioning.strategy == "hash":
            raise TargetError(
                f"partitions by hash of {table.name} cannot be exchanged",
                found="DuckDB does not know the hash by which rows have their table",
                expected="a view that is divided by ranges or lists",
            )
        return _View(table, table.partitioning)

    def _checked(self, view: _View) -> CatalogPartition:
        """What stands in the way of the exchange raises TargetError. Replies with the partition, old or new."""
        asked, schema = self._exchange, view.table.schema
        names = view.partitioning.partitions
        old = next((part for part in names if part.name.casefold() == asked.partition.casefold()), None)
        if asked.rule is None and old is None:
            raise no_partition(view.table.name, asked.partition, [part.name for part in names])
        if asked.rule is not None and old is not None:
            raise partition_exists(view.table.name, old.name)
        if asked.incoming is None and len(names) == 1:
            raise TargetError(
                f"partition {asked.partition} is the only one of {view.table.name}",
                expected="a view shows at least one table",
                hint="Put an empty table in its place: `in`.",
            )
        comes = None if asked.incoming is None else asked.incoming.name.casefold()
        taken = {name.casefold() for name in names_in_schema(self._connection, schema)}
        if asked.outgoing is not None and asked.outgoing.casefold() in taken - {comes}:
            raise name_taken(asked.outgoing, "the rows that go out")
        if old is None and asked.partition.casefold() in taken - {comes}:
            raise name_taken(asked.partition, "the new partition")
        part = old or CatalogPartition(asked.partition, self._canonical(view, asked.rule))
        if old is None:
            self._refuse_overlap(view, part)
        if comes is not None:
            self._refuse_incoming(view)
            self._refuse_rows(view, part, is_new=old is None)
        return part

    def _canonical(self, view: _View, rule: PartitionRule | None) -> PartitionRule:
        """The keys as the core writes them: it reads them with the next load."""
        key = view.key
        try:
            match rule:
                case RangeRule(minimum, end) if view.partitioning.strategy == "range":
                    return RangeRule(_canonical(minimum, key), _canonical(end, key))
                case ListRule(values) if view.partitioning.strategy == "list":
                    return ListRule(tuple(_canonical(value, key) for value in values))
                case DefaultRule():
                    return rule
        except ValueError as error:
            raise TargetError(
                f"the new partition {self._exchange.partition} cannot have these keys",
                found=", ".join(str(value) for value in _values(rule)),
                expected=f"keys of column {key.name}: {error}",
            ) from error
        raise TargetError(
            f"partition {self._exchange.partition} cannot be made by its keys",
            found=f"{view.table.name} is divided by {view.partitioning.strategy} ({key.name})",
            expected="`from` and `to` for ranges, `values` for lists",
        )

    # --- what is refused ----------------------------------------------------------------------------------------------

    def _refuse_overlap(self, view: _View, new: CatalogPartition) -> None:
        assert new.rule is not None  # its keys are given
        if not self._is_true(overlap(new.rule, new.rule, view.key.native_type)):
            raise TargetError(
                f"the new partition {new.name} takes no key", found=described(new.rule), hint="Correct `for`."
            )
        for part in view.partitioning.partitions:
            if part.rule is not None and self._is_true(overlap(new.rule, part.rule, view.key.native_type)):
                raise TargetError(
                    f"the keys of the new partition {new.name} overlap those of {part.name}",
                    found=f"{described(part.rule)} in {part.name}",
                    expected="keys that no other partition takes",
                    hint="Correct `for`.",
                )

    def _refuse_incoming(self, view: _View) -> None:
        comes = self._exchange.incoming
        assert comes is not None
        schema = comes.schema or "main"
        incoming = read_table(self._connection, schema, comes.name)
        if incoming is None:
            raise no_incoming(comes.name)
        members = {part.name.casefold() for part in view.partitioning.partitions}
        found = None
        if incoming.kind != "table":
            found = f"a {incoming.kind}"
        elif schema.casefold() != view.table.schema.casefold():
            found = f"a table of schema {incoming.schema}: DuckDB moves no table into another schema"
        elif incoming.name.casefold() in members:
            found = f"a partition of {view.table.name} already"
        if found is not None:
            raise TargetError(
                f"{incoming.name} cannot become a partition of {view.table.name}",
                found=found,
                expected=f"a table of schema {view.table.schema} that is no partition",
            )
        ours = {column.name.casefold(): column for column in incoming.columns}
        theirs = {column.name.casefold(): column for column in view.table.columns}
        differences = [f"no column {column.name}" for name, column in theirs.items() if name not in ours]
        differences += [f"additional column {column.name}" for name, column in ours.items() if name not in theirs]
        differences += [
            f"column {column.name} is {ours[name].native_type} instead of {column.native_type}"
            for name, column in theirs.items()
            if name in ours and ours[name].native_type != column.native_type
        ]
        if differences:
            like = f"CREATE TABLE ... AS FROM {ddl.quote(view.table.name)} LIMIT 0"
            raise other_columns(incoming.name, view.table.name, differences, like)

    def _refuse_rows(self, view: _View, part: CatalogPartition, *, is_new: bool) -> None:
        asked, schema, key = self._exchange, view.table.schema, view.key
        assert asked.incoming is not None
        others = [other.rule for other in view.partitioning.partitions if other.name != part.name and other.rule]
        if part.rule is None:
            return
        condition = belongs(part.rule, key, others)
        found = self._first_row(ddl.full_name(schema, asked.incoming.name), key, f"({condition}) IS NOT TRUE")
        if found is not None:
            raise row_outside(asked.incoming.name, part.name, found, condition)
        for other in view.partitioning.partitions if is_new else ():
            if isinstance(other.rule, DefaultRule):
                found = self._first_row(ddl.full_name(schema, other.name), key, condition)
                if found is not None:
                    raise row_in_default(other.name, part.name, found)

    def _first_row(self, table: str, key: CatalogColumn, condition: str) -> str | None:
        row = self._connection.execute(
            f"SELECT CAST({ddl.quote(key.name)} AS VARCHAR) FROM {table} WHERE {condition} LIMIT 1"
        ).fetchone()
        if row is None:
            return None
        return f"{key.name} = {'NULL' if row[0] is None else str(row[0])[:_SHOWN_KEY_CHARACTERS]}"

    # --- the exchange -------------------------------------------------------------------------------------------------

    def _switch(self, view: _View, part: CatalogPartition) -> None:
        asked, schema = self._exchange, view.table.schema
        present = list(view.partitioning.partitions)
        is_there = part in present
        behind = None
        if is_there:
            name = ddl.full_name(schema, part.name)
            if asked.outgoing is None:
                self._connection.execute(ddl.drop_table(name))
            elif asked.incoming is not None and asked.outgoing.casefold() == asked.incoming.name.casefold():
                away = self._free_name(schema, part.name)  # that name is free when the incoming table has left it
                self._connection.execute(ddl.rename_table(name, away))
                behind = ddl.rename_table(ddl.full_name(schema, away), asked.outgoing)
            else:
                self._connection.execute(ddl.rename_table(name, asked.outgoing))
        if asked.incoming is None:
            present.remove(part)
        else:
            if asked.incoming.name != part.name:
                self._connection.execute(ddl.rename_table(ddl.full_name(schema, asked.incoming.name), part.name))
            present += [] if is_there else [part]
        if behind is not None:
            self._connection.execute(behind)
        columns = [column.name for column in view.table.columns]
        self._connection.execute(ddl.create_view(schema, view.table.name, columns, [item.name for item in present]))
        key = (view.partitioning.strategy, view.partitioning.key[0])
        keep_divided_view(self._connection, (schema, view.table.name), key, present)

    def _free_name(self, schema: str, name: str) -> str:
        taken = {name.casefold() for name in names_in_schema(self._connection, schema)}
        away = f"{name}_out"
        while away.casefold() in taken:
            away += "_"
        return away

    def _is_true(self, condition: str) -> bool:
        row = self._connection.execute(f"SELECT {condition}").fetchone()
        return row is not None and bool(row[0])

    @contextmanager
    def _cancellable(self) -> Iterator[None]:
        """Ends the statement that runs when the task is cancelled."""
        stop = threading.Event()

        def watch() -> None:
            while not stop.wait(_STEP_SECONDS):
                if self._is_cancelled():
                    self._connection.interrupt()  # again with every step: it ends one statement only

        thread = threading.Thread(target=watch, name="cancelling of an exchange", daemon=True)
        thread.start()
        try:
            yield
        finally:
            stop.set()
            thread.join()

    def _stop_if_cancelled(self) -> None:
        """The last look before the commit: statements may be faster than the steps in which others look."""
        if self._is_cancelled():
            raise CancelledError(f"{self._what} was cancelled")

    def _failure(self, error: duckdb.Error) -> HeadraceError:
        if isinstance(error, duckdb.InterruptException):
            return CancelledError(f"{self._what} was cancelled")
        if is_disk_full(error):
            return disk_full(error, self._what, self._path, NOTHING_EXCHANGED)
        hint = None
        if isinstance(error, duckdb.DependencyException):
            hint = "Drop the indexes of these tables before this task, and make them again behind it."
        return TargetError(f"{self._what}: DuckDB refused{NOTHING_EXCHANGED}", found=first_paragraph(error), hint=hint)


def _canonical(value: str | None, key: CatalogColumn) -> str | None:
    """Raises ValueError if it is no value of the column."""
    if value is None:
        return None
    if key.type is None:
        raise ValueError(f"a type that Headrace loads, not {key.native_type}")
    return canonical_text(value, key.type)


def _values(rule: PartitionRule | None) -> Sequence[str | None]:
    match rule:
        case RangeRule(minimum, end):
            return [value for value in (minimum, end) if value is not None]
        case ListRule(values):
            return values
        case HashRule() | DefaultRule() | None:
            return ()
