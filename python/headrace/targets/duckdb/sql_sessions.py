"""The SQL of users' tasks in the user's file: one cursor for each task, while nothing else uses the instance."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

import duckdb

from headrace.errors import (
    CancelledError,
    HeadraceError,
    InternalError,
    LedgerError,
    MemoryLimitError,
    SqlError,
    TargetBusyError,
)
from headrace.targets.base import FinishedTask
from headrace.targets.duckdb.ddl import DATABASE, quote
from headrace.targets.duckdb.failures import NEEDS_TRUST, disk_full, first_paragraph, is_disk_full, needs_trust
from headrace.targets.duckdb.ledger import Ledger, roll_back
from headrace.targets.duckdb.sql_values import RowReader
from headrace.targets.duckdb.statement_result import StatementResult, described_result, expected_result
from headrace.targets.sql import Command, SqlNotice, interrupted, taken_over

_PORTION_ROWS: Final = 1_000
_CURRENT_TRANSACTION: Final = "SELECT txid_current()"
# Of what a load needs otherwise: the order of rows, and all ways to make a query fast.
_SETTINGS: Final = ("SET disabled_optimizers = ''", "SET preserve_insertion_order = true")
_LOG: Final = "enable_logging"
_NAME: Final = duckdb.token_type.identifier
_NO_VALUES: Final = "DuckDB takes no values in this statement. Where a name is meant, put it under `identifiers`."
_DATABASES: Final = "SELECT database_name FROM duckdb_databases()"


class DuckdbSqlSessions:
    """See `SqlSessions`. `prepare` gives the instance all the memory of the run, which a load may have used otherwise;
    `restore` the settings that loads need.
    """

    keeps_marks = True

    def __init__(
        self,
        connection: duckdb.DuckDBPyConnection,
        path: Path,
        run_id: str,
        prepare: Callable[[], None],
        restore: Callable[[], None],
        *,
        is_trusted: bool,
    ) -> None:
        self._connection = connection
        self._path = path
        self._run_id = run_id
        self._prepare = prepare
        self._restore = restore
        self._is_trusted = is_trusted
        self._own = self._databases()

    def finished_task(self, task: str) -> FinishedTask | None:
        return Ledger(self._connection, self._path).finished_task(self._run_id, task)

    @contextmanager
    def session(self, task: str, is_cancelled: Callable[[], bool]) -> Iterator[DuckdbSqlSession]:
        self._prepare()
        cursor = self._connection.cursor()
        try:
            session = DuckdbSqlSession(cursor, self._path, self._run_id, task, is_trusted=self._is_trusted)
            session.prepare()
            try:
                with interrupted(is_cancelled, cursor.interrupt):
                    yield session
            finally:
                session.roll_back()
        finally:
            cursor.close()
            self._forget_attached()
            self._restore()

    def quote(self, name: str) -> str:
        return ".".join(map(quote, name.split(".")))

    def parameter(self, number: int, sql_type: str, value: object) -> str:
        # A text is one already, and some statements take a bare parameter only.
        return f"${number}" if isinstance(value, str) else f"CAST(${number} AS {sql_type})"

    def close(self) -> None:
        return None

    def _databases(self) -> set[str]:
        return {str(name) for (name,) in self._connection.execute(_DATABASES).fetchall()}

    def _forget_attached(self) -> None:
        """Databases that a script has attached are gone behind its task."""
        for name in self._databases() - self._own:
            with suppress(duckdb.Error):
                self._connection.execute(f"DETACH {quote(name)}")


class DuckdbSqlSession:
    """See `SqlSession`."""

    def __init__(
        self, cursor: duckdb.DuckDBPyConnection, path: Path, run_id: str, task: str, *, is_trusted: bool
    ) -> None:
        self.cursor = self._cursor = cursor
        self._path = path
        self._ledger = Ledger(cursor, path)
        self._run_id = run_id
        self._task = task
        self._is_trusted = is_trusted
        self._is_open = False
        self._transaction: object = None  # since there is a mark

    def begin(self, *, only_reads: bool = False) -> None:
        self._execute(f"BEGIN TRANSACTION{' READ ONLY' if only_reads else ''}")
        self._is_open = True

    def stand_alone(self) -> None:
        return None

    def mark(self) -> None:
        self._ledger.mark_task(self._run_id, self._task)
        self._transaction = self._current()

    def set_result(self, result: str) -> None:
        self._ledger.set_task_result(self._run_id, self._task, result)

    def has_changed(self) -> bool:
        return False

    def run(self, command: Command) -> int | None:
        rows = self._rows(command)
        for _ in rows.drained():
            pass
        return rows.changed

    def query(self, command: Command) -> DuckdbRows | None:
        rows = self._rows(command)
        return rows if rows.result in ("rows", "changed rows") else None

    def fetch(self, command: Command) -> list[tuple[Any, ...]]:
        """All rows of a statement, as the client has them, in no transaction."""
        self._refuse_log(command.text)
        rows: list[tuple[Any, ...]] = self._call(
            lambda: self._cursor.execute(command.text, list(command.values) or None).fetchall()
        )
        return rows

    def commit(self) -> None:
        marked = self._transaction is not None
        if marked and self._current() != self._transaction:
            raise taken_over(self._run_id)
        self._execute("COMMIT")
        self._is_open = False
        # COMMIT behind a failed statement reports success and keeps nothing.
        if marked and self._ledger.finished_task(self._run_id, self._task) is None:
            raise LedgerError(
                f"the commit of {self._task} was not kept",
                at={"file": str(self._path)},
                hint="This is a defect of Headrace or DuckDB. Keep the run folder and report it.",
            )

    def prepare(self) -> None:
        """Sets what the statements of users count on."""
        for setting in (f"USE {DATABASE}", *_SETTINGS):
            self._execute(setting)

    def roll_back(self) -> None:
        if self._is_open:
            self._is_open = False
            roll_back(self._cursor)

    def notices(self) -> Sequence[SqlNotice]:
        return ()

    def _current(self) -> object:
        row = self._execute(_CURRENT_TRANSACTION).fetchone()
        return None if row is None else row[0]

    def _rows(self, command: Command) -> DuckdbRows:
        statements = self._call(lambda: self._cursor.extract_statements(command.text))
        # The client would execute all of them.
        if len(statements) != 1 or statements[0].type == duckdb.StatementType.TRANSACTION:
            raise InternalError(
                "a script was not cut into its statements as DuckDB reads it",
                found=command.text,
                expected="one statement",
                hint="Report it; until then, write the statement in another way.",
            )
        self._refuse_log(command.text)
        (statement,) = statements
        expected = expected_result(self._cursor, statement)
        self._call(lambda: self._cursor.execute(command.text, list(command.values) or None))
        return DuckdbRows(self._cursor, expected or described_result(self._cursor, statement), self._call)

    def _refuse_log(self, text: str) -> None:
        """A log in a file that it may not write ends the whole process (DuckDB 2.0), once the instance is closed."""
        if not self._is_trusted and _LOG in _names(text):
            raise SqlError("DuckDB may not log for this package", found=f"`{_LOG}`", hint=NEEDS_TRUST)

    def _execute(self, text: str) -> duckdb.DuckDBPyConnection:
        cursor: duckdb.DuckDBPyConnection = self._call(lambda: self._cursor.execute(text))
        return cursor

    def _call(self, call: Callable[[], Any]) -> Any:
        try:
            return call()
        except duckdb.Error as error:
            raise statement_failure(error, self._path) from error


class DuckdbRows:
    """See `SqlRows`."""

    def __init__(
        self, cursor: duckdb.DuckDBPyConnection, result: StatementResult, call: Callable[[Callable[[], Any]], Any]
    ) -> None:
        self._cursor = cursor
        self._call = call
        self.columns: Sequence[str] = [str(column[0]) for column in cursor.description or ()]
        self._types = [str(column[1]) for column in cursor.description or ()]
        self.result = result
        self.changed: int | None = None

    def portions(self) -> Iterator[Sequence[Sequence[object]]]:
        reader = RowReader(self.columns, self._types)
        for rows in self.drained():
            yield [reader.row(row) for row in rows]

    def drained(self) -> Iterator[Sequence[Sequence[object]]]:
        """All rows, as the client has them."""
        count = 0
        while rows := self._call(lambda: self._cursor.fetchmany(_PORTION_ROWS)):
            count += len(rows)
            if self.result == "count":
                self.changed = int(rows[0][0])
            yield rows
        if self.result == "changed rows":
            self.changed = count


def _names(text: str) -> set[str]:
    """What DuckDB takes for names in a statement."""
    tokens = duckdb.tokenize(text)
    ends = [*(begin for begin, _ in tokens[1:]), len(text.encode())]
    content = text.encode()
    found = (content[begin:end] for (begin, kind), end in zip(tokens, ends, strict=True) if kind == _NAME)
    return {name.decode(errors="replace").strip().strip('"').lower() for name in found}


def statement_failure(error: duckdb.Error, path: Path) -> HeadraceError:
    """The error of a statement, whose reason completes the sentence of whoever knows which statement it was."""
    text = first_paragraph(error)
    if isinstance(error, duckdb.InterruptException):
        return CancelledError("the statement was interrupted")
    if isinstance(error, duckdb.OutOfMemoryException):
        return MemoryLimitError(
            "DuckDB needs more memory than its part of the budget", found=text, hint="Raise `memory` of the package."
        )
    if is_disk_full(error):
        return disk_full(error, "a statement was executed", path)
    if isinstance(error, duckdb.TransactionException):
        # The class has no other sign of those that are gone when the other transaction has ended.
        if "onflict" in text:
            return TargetBusyError("another transaction has changed the same", found=text, hint="Run again.")
        hint = "If it cannot be part of a transaction, write `transaction: false`."
        return SqlError("DuckDB refused", found=text, hint=hint)
    takes_none = "prepared parameter" in text
    return SqlError("DuckDB refused", found=text, hint=_NO_VALUES if takes_none else needs_trust(error))
