"""Executes one load: hidden tables, the writers' flow, the accounts, indexes, and the switch in one transaction."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from headrace.errors import HeadraceError, LedgerError, TargetError
from headrace.planning import DataFlowPlan, counted
from headrace.targets.base import Flow, LoadTimes, Notice, Settle
from headrace.targets.postgres.connection import Connection, roll_back
from headrace.targets.postgres.failures import explained, is_connection_lost
from headrace.targets.postgres.ledger import Ledger
from headrace.targets.postgres.locks import table_lock
from headrace.targets.postgres.staging import TableStaging
from headrace.targets.postgres.sweep import drop_staging, refuse_half_appended, sweep_staging
from headrace.targets.postgres.switch import Switch

_NOTHING = "; nothing was made visible"


class TableLoad:
    """One load of one table.

    Whatever fails before the commit of the switch leaves the target as it was; what a failed load has staged is dropped,
    except where trying again can help: then `resume` finds it.
    """

    def __init__(
        self,
        connection: Connection,
        ledger: Ledger | None,
        run_id: str,
        plan: DataFlowPlan,
        staging: TableStaging,
        hidden_schema: str,
        lock_timeout_seconds: float,
    ) -> None:
        self._connection = connection
        self._ledger = ledger
        self._run_id = run_id
        self._plan = plan
        self._staging = staging
        self._hidden_schema = hidden_schema
        self._lock_timeout_seconds = lock_timeout_seconds
        self._seconds = {"prepare": 0.0, "insert": 0.0, "commit": 0.0}
        self._rows = {"loaded": 0, "rejected": 0}
        # By earlier attempts of the run.
        self._rows_before = 0
        self._warnings: list[str] = []
        self._what = f"loading table {plan.connection}.{staging.target}"

    def run(self, flow: Flow, settle: Settle, notice: Notice, is_cancelled: Callable[[], bool]) -> LoadTimes:
        """The whole load. `settle` balances the accounts and raises if they do not."""
        target = self._staging.target
        try:
            with table_lock(self._connection, target, self._lock_timeout_seconds, notice, is_cancelled):
                try:
                    self._load(flow, settle)
                except BaseException as error:
                    self._clean_up(error)
                    raise
                self._analyze()
        except HeadraceError as error:
            raise explained(error, self._what) from error
        return LoadTimes(
            self._seconds["prepare"],
            self._seconds["insert"],
            self._seconds["commit"],
            self._rows["loaded"],
            tuple(self._warnings),
        )

    def _load(self, flow: Flow, settle: Settle) -> None:
        with self._timed("prepare"):
            self._prepare()
        locks = self._plan.options.lock and not self._staging.is_direct and self._staging.relation is not None
        if locks:
            # Readers go on; nobody else writes what the switch would lose.
            self._connection.execute("BEGIN")
            self._connection.execute(f"LOCK TABLE {self._staging.target.sql} IN SHARE ROW EXCLUSIVE MODE")
        with self._timed("insert"):
            flow.start()
            self._count(settle(None))
        with self._timed("commit"):
            if self._staging.is_direct:
                self._commit_writers(flow)
            self._check_ledger()
            if not locks:
                self._connection.execute("BEGIN")
            self._switch()

    def _prepare(self) -> None:
        sweep_staging(self._connection, self._ledger, self._hidden_schema, self._staging.target, self._run_id)
        if self._ledger is not None and self._plan.target == "append":
            refuse_half_appended(self._ledger, self._staging.target, self._run_id)
        self._require_rights()
        if self._ledger is not None:
            self._rows_before = self._ledger.committed_rows(self._run_id, self._plan.task)
        for text in self._staging.shared_statements():
            self._connection.execute(text)

    def _require_rights(self) -> None:
        """Raises TargetError for what the server would refuse only behind the last row."""
        relation, options = self._staging.relation, self._plan.options
        needs_owner = self._plan.switch in ("attach", "view") or (self._plan.switch == "move" and options.disable_triggers)
        if relation is not None and needs_owner and not relation.is_owner:
            raise TargetError(
                f"the user is not the owner of {self._staging.target}",
                found=f"it belongs to {relation.owner}",
                hint=f"Load as a member of role {relation.owner}, or use `load: single`.",
            )

    def _count(self, result: dict[str, Any]) -> None:
        self._rows["loaded"] = sum(int(item["out"]) for item in result["slices"])
        self._rows["rejected"] = sum(int(item["rejected"]) for item in result["slices"])

    def _commit_writers(self, flow: Flow) -> None:
        """Commits the writers of an append, one after the other."""
        try:
            flow.commit()
        except HeadraceError as error:
            if self._ledger is None:
                raise explained(error, self._what, "; some of its writers may have committed") from error
            committed = self._ledger.committed_slices(self._run_id, self._plan.task)
            slices = len(self._plan.source.slices)
            if committed == slices:
                self._warnings.append(f"{self._what}: the server's word for a commit was lost, but it is committed")
            elif committed:
                raise LedgerError(
                    f"{self._what}: {error.what}; some of its writers have committed",
                    found=f"{committed} of {counted(slices, 'slice')} are in the table",
                    hint=f"Load the rest: headrace resume {self._run_id}",
                ) from error
            else:
                raise explained(error, self._what, _NOTHING) from error

    def _check_ledger(self) -> None:
        if self._ledger is not None:
            self._ledger.check_committed(self._run_id, self._plan, self._rows_before + self._rows["loaded"])

    def _switch(self) -> None:
        """Ends the open transaction: with the switch, or with nothing."""
        try:
            for text in self._staging.index_statements():
                self._connection.execute(text)
            self._connection.execute(f"SET LOCAL lock_timeout = '{self._lock_timeout_seconds:g}s'")
            switch = Switch(self._connection, self._plan, self._staging, self._rows_before + self._rows["loaded"])
            switch.run()
            if self._ledger is not None:
                self._ledger.mark_switched(self._run_id, self._plan.task, self._rows["loaded"], self._rows["rejected"])
            self._connection.execute("COMMIT")
            self._warnings += switch.warnings
        except HeadraceError as error:
            raise explained(error, self._what, "" if self._staging.is_direct else _NOTHING) from error

    def _analyze(self) -> None:
        if self._plan.options.analyze:
            try:
                self._connection.execute(f"ANALYZE {self._staging.target.sql}")
            except HeadraceError as error:  # the rows are visible; that cannot make the load a failure
                self._warnings.append(f"{self._staging.target} was loaded, but not analyzed: {error.what}")

    def _clean_up(self, error: BaseException) -> None:
        """Drops what this load has staged, unless it is worth a `resume`. Its writers are gone: the flow has ended."""
        roll_back(self._connection)
        worth_resuming = isinstance(error, HeadraceError) and error.retryable and self._ledger is not None
        if worth_resuming or is_connection_lost(error) or self._staging.is_direct:
            return
        names = [staging.table.name for staging in self._staging.tables]
        with suppress(HeadraceError):
            drop_staging(self._connection, self._ledger, self._hidden_schema, self._run_id, names)

    @contextmanager
    def _timed(self, phase: str) -> Iterator[None]:
        started = time.monotonic()
        try:
            yield
        finally:
            self._seconds[phase] += time.monotonic() - started
