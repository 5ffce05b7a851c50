"""Executes the steps of a plan in one DuckDB transaction."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol

import duckdb

from headrace.errors import InternalError
from headrace.planning import DataFlowPlan
from headrace.targets.base import Flow, LoadTimes, Settle
from headrace.targets.duckdb import ddl
from headrace.targets.duckdb.failures import first_paragraph, load_failure
from headrace.targets.duckdb.filling import Filling
from headrace.targets.duckdb.ledger import Ledger, roll_back
from headrace.targets.duckdb.reject_table import fill_reject_table


class Rows(Protocol):
    """Where the rows of a load go, inside its transaction."""

    @property
    def filling(self) -> Filling:
        """The table that takes rows now; that of the plan if it is none in particular."""

    def step(self, kind: str, result: dict[str, Any] | None) -> bool:
        """Does a step of the plan; False if it has no such step. `result`: that of the flow, once its accounts are
        checked.
        """

    def insert(self) -> int:
        """Takes the registered stream; the number of rows."""


class TableLoad:
    """One load: tables, rows of the flow's Arrow stream, accounts, ledger, commit. `rows` says where they go.

    Any exception before the commit, whoever raised it, rolls everything back before it goes on. Behind the commit only
    the ledger's word that the rows are not there makes the load a failure.
    """

    def __init__(
        self,
        connection: duckdb.DuckDBPyConnection,
        path: Path,
        ledger: Ledger,
        run_id: str,
        plan: DataFlowPlan,
        rows: Rows,
        is_cancelled: Callable[[], bool],
    ) -> None:
        self._connection = connection
        self._path = path
        self._ledger = ledger
        self._run_id = run_id
        self._plan = plan
        self._rows = rows
        self._is_cancelled = is_cancelled
        self._is_storing_rejects = False
        self._rows_inserted = 0
        self._result: dict[str, Any] | None = None
        self._seconds = {"prepare": 0.0, "insert": 0.0, "commit": 0.0}

    def run(self, flow: Flow, settle: Settle) -> LoadTimes:
        """Follows the plan's steps. `settle` balances the accounts and raises if they do not."""
        flow.start()  # at once: the streams fill their blocks while the table is made
        try:
            self._connection.execute("BEGIN TRANSACTION")
        except duckdb.Error as error:
            raise load_failure(error, self._what(), self._path) from error
        self._follow([step.kind for step in self._plan.steps], flow, settle)
        return self.verified()

    def run_inside(self, flow: Flow, settle: Settle) -> LoadTimes:
        """The load in the open transaction, without its end: `verified` belongs behind that."""
        flow.start()
        self._follow([step.kind for step in self._plan.steps if step.kind != "commit"], flow, settle)
        return self._times(())

    def verified(self) -> LoadTimes:
        """Raises LedgerError if the commit has kept nothing."""
        started = time.monotonic()
        warnings = self._verify()
        self._seconds["commit"] += time.monotonic() - started
        return self._times(warnings)

    def _follow(self, steps: Sequence[str], flow: Flow, settle: Settle) -> None:
        """Steps of the plan. Whatever fails ends the transaction."""
        try:
            try:
                for kind in steps:
                    self._step(kind, flow, settle)
            except BaseException:
                roll_back(self._connection)
                raise
            finally:
                self._drop_stream()
        except duckdb.Error as error:
            raise load_failure(error, self._what(), self._path) from error

    def _times(self, warnings: tuple[str, ...]) -> LoadTimes:
        seconds = self._seconds
        return LoadTimes(seconds["prepare"], seconds["insert"], seconds["commit"], self._rows_inserted, warnings)

    def _step(self, kind: str, flow: Flow, settle: Settle) -> None:
        started = time.monotonic()
        match kind:
            case "insert":
                phase = "insert"
                self._rows_inserted = self._insert(flow)
            case "check_accounts":
                phase = "insert"
                self._result = settle(self._rows_inserted)
            case "store_rejects":
                phase = "commit"
                self._store_rejects()
            case "commit_slices":
                phase = "commit"
                self._commit_slices()
            case "commit":
                phase = "commit"
                self._connection.execute("COMMIT")
            case _:
                phase = "prepare" if self._result is None else "insert"
                if not self._rows.step(kind, self._result):
                    raise InternalError(f"the DuckDB target has no step `{kind}`")
        self._seconds[phase] += time.monotonic() - started

    def _what(self) -> str:
        table, filled = f"{self._plan.connection}.{self._plan.table}", self._rows.filling.table
        if self._is_storing_rejects and self._plan.reject_table is not None:
            return f"loading table {table}: storing rejects in table {self._plan.reject_table.shown}"
        return f"loading table {table}" if filled == self._plan.table else f"loading {filled}, a table of {table}"

    def _verify(self) -> tuple[str, ...]:
        """Asks the ledger for the rows: a COMMIT behind a failed statement reports success and keeps nothing."""
        try:
            self._ledger.check_committed(self._run_id, self._plan, self._rows_inserted)
        except duckdb.Error as error:
            table = f"{self._plan.connection}.{self._plan.table}"
            return (f"{table} was committed, but the commit could not be verified: {first_paragraph(error)}",)
        return ()

    def _insert(self, flow: Flow) -> int:
        # DuckDB refuses to register rows as long as the result of the statement before was not read to its end, and
        # even the INSERT of a mark has one.
        self._connection.execute("SELECT 1").fetchall()
        self._connection.register(ddl.STREAM, flow.arrow_stream())
        return self._rows.insert()

    def _drop_stream(self) -> None:
        """Lets go of the stream and the batches it still holds. Not inside the transaction: in a failed one DuckDB
        refuses even this, and its refusal would hide why the transaction failed.
        """
        with suppress(duckdb.Error):
            self._connection.unregister(ddl.STREAM)

    def _store_rejects(self) -> None:
        table = self._plan.reject_table
        if self._result is None or table is None:
            raise InternalError("the plan stores rejects before the accounts were checked, or in no table")
        self._is_storing_rejects = True
        fill_reject_table(
            self._connection, self._plan, table, self._run_id, self._result["rejects"], self._is_cancelled
        )
        self._is_storing_rejects = False

    def _commit_slices(self) -> None:
        if self._result is None:
            raise InternalError("the plan commits slices before the accounts were checked")
        self._ledger.commit_slices(self._run_id, self._plan, self._result)
