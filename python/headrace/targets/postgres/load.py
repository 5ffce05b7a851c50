"""Executes one load: hidden tables, the writers' flow, the accounts, indexes, and the switch in one transaction."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Final

from headrace.errors import AccountsError, HeadraceError, LedgerError, TargetBusyError, TargetError, rows_are
from headrace.planning import WHOLE_TABLE, DataFlowPlan, counted
from headrace.targets.base import Flow, LoadedPartition, LoadTimes, Notice, Settle
from headrace.targets.postgres.catalog import find_relation
from headrace.targets.postgres.connection import BEGIN, Connection, roll_back
from headrace.targets.postgres.control import Control
from headrace.targets.postgres.ddl import DURABLE
from headrace.targets.postgres.failures import explained, is_connection_lost
from headrace.targets.postgres.finishing import NOTHING, Finishing
from headrace.targets.postgres.hash_probe import refuse_other_hash
from headrace.targets.postgres.ledger import Committed, Ledger
from headrace.targets.postgres.locks import table_lock
from headrace.targets.postgres.refusals import makes_parts
from headrace.targets.postgres.reject_table import fill_reject_table, make_reject_table
from headrace.targets.postgres.replays import require_claim
from headrace.targets.postgres.staging import TableStaging
from headrace.targets.postgres.sweep import drop_staging, refuse_half_appended, sweep_runs, sweep_staging
from headrace.targets.postgres.switch import Switch
from headrace.targets.postgres.unplaced_rows import unplaced_row

_RESUME: Final = "What is committed is kept: headrace resume {run}."
_RESUME_OR_ABANDON: Final = (
    "Load the rest: `headrace resume {run}`; or delete its rows and give it up: `headrace run --abandon`."
)
# Behind the hint of an error that comes again: a source that was changed is not resumed.
_RESUME_UNLESS_CHANGED: Final = (
    "If the source does not change by that, load the rest: `headrace resume {run}`; if it does, delete the rows of the "
    "run and give it up: `headrace run --abandon`."
)
# A server that restarts is there again soon; if not, whoever comes next cleans up.
_RESTART_SECONDS: Final = 3.0
_CONTROL_LOST: Final = "the control connection was lost"


class TableLoad:
    """One load of one table.

    Whatever fails before the commit of the switch leaves the target as it was, and what was staged is dropped; but if
    trying again can help, hidden tables with committed rows stay, for `resume`. They and what a load leaves that is
    killed or cut off are swept by the next one, unless it is resumed.
    """

    def __init__(
        self,
        control: Control,
        ledger: Ledger | None,
        run_id: str,
        plan: DataFlowPlan,
        staging: TableStaging,
        connect: Callable[[], Connection],
        shown_name: str,
        lock_timeout_seconds: float,
        notice: Notice,
        is_cancelled: Callable[[], bool],
    ) -> None:
        self._control = control
        self._ledger = ledger
        self._run_id = run_id
        self._plan = plan
        self._staging = staging
        self._connect = connect
        self._lock_timeout_seconds = lock_timeout_seconds
        self._notice = notice
        self._is_cancelled = is_cancelled
        self._seconds = {"prepare": 0.0, "insert": 0.0, "commit": 0.0, "switch": 0.0}
        self._is_prepared = False
        self._rows_loaded = 0
        self._rows: Mapping[str, int] = {}
        self._result: Mapping[str, Any] = {}
        self._warnings: list[str] = []
        self._partitions: tuple[LoadedPartition, ...] = ()
        # Until the server says that nothing is committed, or that it is dropped.
        self._can_be_resumed = ledger is not None and not staging.is_direct
        # Rows that are committed into the target itself stay there, whatever happens; None: nobody could be asked.
        self._rows_committed: int | None = 0
        self._have_writers_committed = False
        self._what = f"loading table {shown_name}"

    def run(self, flow: Flow, settle: Settle) -> LoadTimes:
        """The whole load. `settle` balances the accounts and raises if they do not."""
        with self.explained(), self.locked():
            try:
                self._stage(flow, settle)
                with self._timed("commit"), self._timed("switch"):
                    with self._control.cancellable(self._is_cancelled):
                        if not self._keeps_others_out:
                            self._control.execute(BEGIN)
                        self._switch(self._control, self._ledger)
                    self._commit()
            except BaseException as error:
                self.clean_up(error)
                raise
            self.analyze()
        return self.times

    def stage(self, flow: Flow, settle: Settle) -> LoadTimes:
        """All but the switch. The caller holds the lock of the table, and cleans up unless a switch follows."""
        with self.explained():
            self._stage(flow, settle)
        return self.times

    def switch(self, connection: Connection, ledger: Ledger | None) -> None:
        """Makes visible what is staged, in the open transaction of `connection`, to which `ledger` belongs."""
        with self.explained(), self._timed("commit"), self._timed("switch"):
            self._switch(connection, ledger)

    @property
    def times(self) -> LoadTimes:
        """What was done until now."""
        seconds = self._seconds
        return LoadTimes(
            seconds["prepare"],
            seconds["insert"],
            seconds["commit"],
            self._rows_loaded,
            tuple(self._warnings),
            seconds["switch"],
            self._partitions,
        )

    @contextmanager
    def explained(self, what: str | None = None) -> Iterator[None]:
        """Says of errors what was being done, what became of the rows, and how to go on. `what`: if it is not about
        this table alone.
        """
        try:
            yield
        except HeadraceError as error:
            consequence = self._consequence(error)
            unplaced = unplaced_row(error, self._plan, self._staging.divided, self._what, consequence)
            problem = unplaced or explained(error, what or self._what, consequence)
            problem.rows_committed = self._rows_committed or 0
            if self._rows_committed != 0:
                # A new run would append them once more, whatever the server's error says of running again.
                is_new = problem.hint is not None and not problem.retryable
                hint = (_RESUME_UNLESS_CHANGED if is_new else _RESUME_OR_ABANDON).format(run=self._run_id)
                problem.hint = f"{problem.hint} {hint}" if is_new else hint
            elif problem.retryable and self._can_be_resumed and self._is_prepared:
                problem.hint = f"{problem.hint or ''} {_RESUME.format(run=self._run_id)}".lstrip()
            if problem is error:
                raise  # it keeps its cause
            raise problem from error

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Holds the lock of the table."""
        target, timeout = self._staging.target, self._lock_timeout_seconds
        with table_lock(self._control, target, timeout, self._notice, self._is_cancelled):
            yield

    def prepare(self) -> None:
        """The first part of `stage`: what has to be there before the first row."""
        with self.explained():
            self._before_rows()

    def take_rows(self, flow: Flow, settles: Sequence[Settle], what: str) -> Sequence[Mapping[str, Any]]:
        """The second part, once for all ways of a flow with several destinations: the results of all. Which of them an
        error is about, the caller says: see `explained`. `what` is being done with all of them.
        """
        with self._timed("insert"):
            return self._flow_ended(flow, settles, what)

    def finish(self, flow: Flow, result: Mapping[str, Any]) -> LoadTimes:
        """The third part: what there is to do behind the last row."""
        with self.explained():
            self._behind_rows(flow, result)
        return self.times

    def _stage(self, flow: Flow, settle: Settle) -> None:
        self._before_rows()
        with self._timed("insert"):  # in a resumed run perhaps of nothing
            (result,) = self._flow_ended(flow, [settle], self._what)
        self._behind_rows(flow, result)

    def _before_rows(self) -> None:
        with self._timed("prepare"), self._control.cancellable(self._is_cancelled):
            self._prepare()
        self._is_prepared = True

    def _behind_rows(self, flow: Flow, result: Mapping[str, Any]) -> None:
        self._rows_loaded = sum(int(item["out"]) for item in result["slices"])
        self._result = result
        with self._timed("commit"):
            if self._staging.is_direct:
                self._commit_writers(flow)
                self._have_writers_committed = True
            with self._control.cancellable(self._is_cancelled):
                if self._ledger is not None:
                    self._ledger.check_committed(self._run_id, self._plan.task, self._all_committed())
                finishing = Finishing(self._plan, self._staging, self._run_id, self._connect, self._what)
            finishing.build(self._control, self._is_cancelled)
            self._rows = self._rows_by_partition(finishing)

    def _rows_by_partition(self, finishing: Finishing) -> Mapping[str, int]:
        """Committed rows by partition, as the ledger calls them."""
        if self._staging.is_divided_by_server or (self._ledger is None and self._plan.partitioning is not None):
            rows = finishing.count_rows(self._control, self._is_cancelled)
            if sum(rows.values()) != self._rows_loaded:
                raise AccountsError(
                    f"{self._what}: its hidden tables have other rows than were committed",
                    found=counted(sum(rows.values()), "row"),
                    expected=counted(self._rows_loaded, "row"),
                    hint="This is a defect of Headrace. Keep the run folder and report it.",
                )
            return rows
        if self._ledger is None or self._plan.partitioning is None:
            return {WHOLE_TABLE: self._rows_loaded}
        return self._ledger.committed_rows(self._run_id, self._plan.task)

    def _all_committed(self) -> Committed:
        return Committed(len(self._plan.source.slices), self._rows_loaded)

    @property
    def _keeps_others_out(self) -> bool:
        """True if a transaction that holds a lock of the table is open during the whole load."""
        return self._plan.options.lock and not self._staging.is_direct and self._staging.relation is not None

    def _prepare(self) -> None:
        target = self._staging.target
        if self._ledger is not None:
            sweep_runs(self._control, self._ledger, self._run_id)
            self._require_committed(self._ledger)
        sweep_staging(self._control, self._ledger, self._staging.hidden_schema, target, self._run_id)
        if self._ledger is not None and self._plan.target == "append":
            refuse_half_appended(self._ledger, target, self._run_id)
        if self._ledger is not None and self._plan.replay is not None:
            require_claim(
                self._control, self._ledger, self._run_id, self._plan.task, self._staging.target, self._plan.replay
            )
        self._require_rights()
        self._require_ledger()
        if self._ledger is not None and self._plan.reject_table is not None:
            make_reject_table(self._control, self._ledger.schema, self._plan.reject_table, self._what)
        self._staging.make_shared(self._control)
        self._refuse_other_hash()
        if self._keeps_others_out:
            # Readers go on; nobody else writes what the switch would lose.
            self._control.execute(BEGIN)
            self._control.execute(f"LOCK TABLE {target.sql} IN SHARE ROW EXCLUSIVE MODE")

    def _refuse_other_hash(self) -> None:
        planned = self._plan.partitioning
        if planned is None or planned.hash_key is None or planned.way == "server":
            return
        name = self._staging.target if self._staging.relation is not None else self._staging.parent
        table = None if name is None else find_relation(self._control, name)
        if table is not None:
            refuse_other_hash(self._control, table.oid, planned, planned.hash_key)

    def _require_committed(self, ledger: Ledger) -> None:
        """Raises LedgerError if the rows that an earlier attempt has committed are not where this one goes on: a table
        was made, dropped or divided in another way since.
        """
        committed = ledger.committed_staging(self._run_id, self._plan.task)
        missing = self._staging.not_found(committed)
        if None in committed and None not in missing and not ledger.holds_rows(self._run_id, self._plan.task):
            missing.append(None)
        where = [f"hidden table {name}" if name else f"table {self._staging.target} itself" for name in missing]
        found = f"rows committed into {', '.join(where)}"
        others = ledger.units(self._run_id, self._plan.task) ^ set(self._staging.units) if committed else set()
        if others and not missing:
            found = "; ".join(
                dict.fromkeys(f"partition {unit.partition}: {unit.takes}" for unit in sorted(others, key=str))
            )
        elif not missing:
            return
        raise LedgerError(
            f"run {self._run_id} cannot be resumed: {self._staging.target} is no longer the table that it was",
            found=found,
            hint="Start a new run: `headrace run`.",
        )

    def _require_ledger(self) -> None:
        if self._staging.is_direct and self._plan.commit is not None and self._ledger is None:
            raise TargetError(
                f"rows cannot be committed into table {self._staging.target} as they come without a ledger",
                found="`commit` of the destination, and `ledger: off` of its connection",
                expected="a ledger, which knows the rows that are there if the load fails",
                hint="Leave `commit` or `ledger: off` out.",
            )

    def _require_rights(self) -> None:
        """Raises TargetError for what the server would refuse only behind the last row."""
        relation, options = self._staging.relation, self._plan.options
        changes_table = (self._plan.switch in ("attach", "view") and makes_parts(self._plan)) or (
            self._plan.switch in ("move", "attach") and options.disable_triggers
        )
        if relation is not None and changes_table and not relation.is_owner:
            raise TargetError(
                f"the user is not the owner of {self._staging.target}",
                found=f"it belongs to {relation.owner}",
                hint=f"Load as a member of role {relation.owner}, or use `load: single`.",
            )

    def _flow_ended(self, flow: Flow, settles: Sequence[Settle], what: str) -> Sequence[Mapping[str, Any]]:
        """Runs the flow to its end; stops it when the control connection is lost, for its locks are lost with it."""
        losses: list[HeadraceError] = []

        def stop(error: HeadraceError) -> None:
            losses.append(error)
            flow.cancel(_CONTROL_LOST)

        try:
            with self._control.heartbeat(self._is_cancelled, stop, flow.seen_at_work):
                flow.start()
                results = [settle(None) for settle in settles]
        except HeadraceError as error:
            if losses:
                raise explained(losses[0], what) from error
            raise
        if losses:  # in the moment when the last stream ended: writers that wait for the commit were cancelled
            raise explained(losses[0], what)
        return results

    def _commit_writers(self, flow: Flow) -> None:
        """Commits the writers of an append, one after the other."""
        try:
            flow.commit()
        except HeadraceError as error:
            if self._ledger is None:
                problem = explained(error, self._what, "; some of its writers may have committed")
                problem.hint = "Delete the rows that they have appended, if they have, before anything is run again."
                raise problem from error
            committed, expected = self._committed_behind(error, self._ledger), self._all_committed()
            if committed == Committed(0, 0):
                raise
            if committed != expected:
                raise LedgerError(
                    f"{self._what}: {error.what}; some of its writers have committed",
                    found=f"{committed} in the table",
                    expected=str(expected),
                    hint=f"Load the rest: headrace resume {self._run_id}",
                ) from error
            self._warnings.append(f"{self._what}: the server's word for a commit was lost, but all is committed")

    def _committed_behind(self, error: HeadraceError, ledger: Ledger) -> Committed:
        """What the writers have committed, once none of them is committing any more."""
        try:
            if self._control.state != "open":
                self._control.reopen()
            ledger.wait_for_commits(self._run_id)
            return ledger.committed(self._run_id, self._plan.task)
        except HeadraceError as trouble:
            raise LedgerError(
                f"{self._what}: {error.what}; whether its writers have committed is not known",
                found=trouble.what,
                hint=f"Load what is missing, if anything is: headrace resume {self._run_id}",
            ) from error

    def _switch(self, connection: Connection, ledger: Ledger | None) -> None:
        connection.execute(DURABLE)
        self._store_rejects(connection)  # before any lock that keeps readers out
        switch = Switch(connection, self._plan, self._staging, self._rows, self._lock_timeout_seconds)
        switch.run()
        if ledger is not None:
            ledger.mark_switched(self._run_id, self._plan.task)
        self._warnings += switch.warnings
        self._partitions = switch.partitions

    def _store_rejects(self, connection: Connection) -> None:
        table = self._plan.reject_table
        if table is not None:
            rejects = self._result["rejects"]
            fill_reject_table(connection, self._plan, table, self._run_id, rejects, self._what, self._is_cancelled)

    def _commit(self) -> None:
        """Commits the switch. If the answer is lost, the ledger says what became of it."""
        try:
            self._control.execute("COMMIT")
        except HeadraceError as error:
            if self._ledger is None or not is_connection_lost(error):
                raise
            try:
                self._control.reopen()
                with self.locked():  # free when the server has ended the old session
                    committed = self._ledger.is_switched(self._run_id, self._plan.task)
            except HeadraceError:
                raise TargetBusyError(
                    f"{self._what}: the connection was lost in the moment of the commit",
                    found=error.what,
                    hint=f"Whether it was committed is in the ledger: a commit row of slice 0 for run {self._run_id}.",
                ) from error
            if not committed:
                raise
            self._warnings.append(f"{self._what}: the connection was lost in the moment of the commit; it is committed")

    def analyze(self) -> None:
        """Makes the statistics of the table, behind the commit."""
        if self._plan.options.analyze:
            try:
                self._control.execute(f"ANALYZE {self._staging.target.sql}")
            except HeadraceError as error:  # the rows are visible; that cannot make the load a failure
                self._warnings.append(f"{self._staging.target} was loaded, but not analyzed: {error.what}")

    def clean_up(self, error: BaseException) -> None:
        """Drops what this load has staged, unless trying again can help. Its writers are gone: the flow has ended, or
        was never started.
        """
        commits_first = self._plan.commit is not None or self._have_writers_committed
        asks = self._staging.is_direct and commits_first and self._ledger is not None
        self._rows_committed = None if asks and self._is_prepared else 0
        with suppress(HeadraceError):
            with self._control.impatient():
                roll_back(self._control)  # or learns that the session has ended
            if self._control.state in ("lost", "cancelled"):
                self._control.reopen(_RESTART_SECONDS)
            with self._control.impatient():
                if asks and self._ledger is not None:
                    self._ledger.wait_for_commits(self._run_id)
                    self._rows_committed = self._ledger.committed(self._run_id, self._plan.task).rows
                if self._staging.is_direct or not (self._ledger is None or self._ledger.is_current(self._run_id)):
                    return  # nothing is staged, or it is somebody else's by now
                kept = self._worth_keeping(error)
                # Hidden partitions stay with the table of which they are or will be partitions.
                parent = self._staging.parent
                is_kept = {*kept, parent.name} if kept and parent is not None else kept
                names = [name for name in self._staging.names if name not in is_kept]
                if self._staging.is_divided_by_server and kept:
                    names = []
                drop_staging(self._control, self._ledger, self._staging.hidden_schema, self._run_id, names)
                self._can_be_resumed = bool(kept)

    def _worth_keeping(self, error: BaseException) -> Collection[str]:
        """Hidden tables with committed rows, if trying again can help."""
        if self._ledger is None or not (isinstance(error, HeadraceError) and explained(error, self._what).retryable):
            return ()
        return [name for name in self._ledger.committed_staging(self._run_id, self._plan.task) if name]

    def _consequence(self, error: HeadraceError) -> str:
        if self._rows_committed is None:
            return "; whether rows of it are in the table is not known"
        if self._rows_committed:
            return f"; {rows_are(self._rows_committed)} in the table"
        is_known = isinstance(error, LedgerError) or error.what.startswith(self._what)
        return "" if is_known or self._staging.is_direct else NOTHING

    @contextmanager
    def _timed(self, phase: str) -> Iterator[None]:
        started = time.monotonic()
        try:
            yield
        finally:
            self._seconds[phase] += time.monotonic() - started
