"""The ledger: tables `run`, `slice`, `unit`, `commit`, `replay`, `task` of one schema, and view `lineage`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from headrace.errors import HeadraceError, LedgerError
from headrace.planning import WHOLE_TABLE, CommittedSlice, DataFlowPlan, ReplayPlan, counted
from headrace.targets.base import APPENDING, MAKING, FinishedTask, RunRecord, TaskProgress, superseded
from headrace.targets.postgres.connection import (
    Connection,
    array,
    one_row,
    one_value,
    rows_done,
    sql,
    texts,
    transaction,
)
from headrace.targets.postgres.failures import ledger_failure
from headrace.targets.postgres.names import TableName, ledger_lock_key, literal, quote

# A ledger that has it has everything.
_NEWEST_COLUMN: Final = ("unit", "identity")
# Number of the commit row that says: the task is complete and its tables are switched in.
SWITCHED_SLICE = 0
# Who takes a run over does not wait for its writers, but ends them.
_SHORT_WAIT = "SET LOCAL lock_timeout = '1s'"


@dataclass(frozen=True)
class Committed:
    """Complete slices of a task, and rows of it that are committed."""

    slices: int
    rows: int

    def __str__(self) -> str:
        return f"{counted(self.slices, 'slice')} with {counted(self.rows, 'row')}"


@dataclass(frozen=True)
class Unit:
    """What a plan says of the units that fill one table. `staging`: the hidden table, None for the target itself;
    `takes`: the keys of the partition, as JSON.
    """

    partition: str
    staging: str | None
    takes: str | None = None


class Ledger:
    """Statements of the ledger. Each makes its own transaction, except where it says that it belongs into another.

    `attempt` is that of this process; once somebody else resumes the run, nothing here passes the fence any more.
    """

    def __init__(self, connection: Connection, schema: str, attempt: int = 1) -> None:
        self._connection = connection
        self.schema = schema
        self.attempt = attempt

    def begin_run(self, record: RunRecord) -> None:
        """Writes the run's row, creating schema and tables if needed."""
        what = "cannot write the run into the ledger"
        try:
            with transaction(self._connection):
                self._create()
                if not self._insert_run(record):
                    raise LedgerError(f"the ledger has a run {record.run_id} already", hint="Start the run again.")
        except HeadraceError as error:
            raise ledger_failure(error, what, self.schema) from error

    def resume_run(self, record: RunRecord) -> None:
        """Counts another attempt of the run: nothing of the attempts before passes the fence any more.

        Raises LedgerError if a later run of the package has begun, and after a second the server's lock_timeout if a
        writer is at the fence.
        """
        try:
            with transaction(self._connection):
                self._create()
                self._connection.execute(_SHORT_WAIT)
                later = one_value(self._connection, self._sql("later_run"), (record.run_id, record.package))
                # What a replay appends is not appended by any later run but another replay, which its claims tell.
                if later is not None and record.of_run is None:
                    raise superseded(record, later)
                attempt = self._next_attempt(record.run_id)
                if attempt is None and not self._insert_run(record):
                    # The server was still at what the killed attempt had sent: the row has come between the two.
                    attempt = self._next_attempt(record.run_id)
        except HeadraceError as error:
            raise ledger_failure(error, "cannot resume the run in the ledger", self.schema) from error
        self.attempt = int(attempt or 1)

    def unfinished_runs(self, package: str) -> tuple[str, ...]:
        """Runs of the package without success; they may go on."""
        return texts(self._connection, self._sql("unfinished_runs"), (package,)) if self.exists() else ()

    def abandon_runs(self, run_ids: Sequence[str]) -> None:
        """Gives runs up."""
        self._connection.query(self._sql("abandon_runs"), (array(run_ids),))

    def task_progress(self, run_id: str, task: str) -> TaskProgress:
        """What is committed of a task. A slice counts when all its units have committed."""
        recorded = one_value(self._connection, self._sql("is_recorded"), (run_id, task)) is not None
        rows = self._connection.query(self._sql("committed_slices"), (run_id, task)).rows
        slices = {}
        for *numbers, text_hash in rows:
            number, loaded, rejected, skipped, ignored, filtered = (int(value or 0) for value in numbers)
            slices[number] = CommittedSlice(loaded, rejected, skipped, ignored, text_hash, filtered)
        finished = slices.pop(SWITCHED_SLICE, None) is not None
        begun = bool(slices) or bool(self.committed_units(run_id, task))
        return TaskProgress(recorded, finished, slices, begun)

    def record_slices(self, run_id: str, plan: DataFlowPlan, table: TableName, units: Sequence[Unit]) -> None:
        """Writes all slices and units of one task in one transaction, and with them the claims of a replay."""
        slices = plan.source.slices
        files = [plan.source.files[item["file"]] for item in slices]
        # Rows of a slice go into every table that has it.
        counts = Counter(number for staging in plan.staging for number in staging.slices)
        values = (
            run_id,
            plan.task,
            table.schema,
            table.name,
            _target_of(plan),
            array([item["number"] for item in slices]),
            array([counts[item["number"]] for item in slices]),
            array([file["path"] for file in files]),
            array([item["begin_byte"] for item in slices]),
            array([item["end_byte"] for item in slices]),
            array([file.get("size_bytes", 0) for file in files]),
            array([file.get("modified_ns", 0) for file in files]),
            array([unit.partition for unit in units]),
            array([unit.staging for unit in units]),
            array([unit.takes for unit in units]),
        )
        try:
            with transaction(self._connection):
                self._connection.query(self._sql("insert_slices"), values)
                if plan.replay is not None:
                    self._insert_claims(run_id, plan.task, plan.replay)
        except HeadraceError as error:
            what = f"cannot write the slices of {plan.task} into the ledger"
            raise ledger_failure(error, what, self.schema) from error

    def commit_statement(self, run_id: str, task: str) -> str:
        """The last statement of a unit before COMMIT, with $1 partition, $2 slices, $3 rows loaded, $4 rows rejected,
        $5 header and blank lines, $6 bytes of text, $7 values ignored, $8 rows filtered, $9 hashes of texts.

        It inserts as many rows as there are slices, or none if another attempt or a sweep has taken the run over.
        """
        return self._sql("commit_slices", run_id=literal(run_id), task=literal(task), attempt=str(self.attempt))

    def commit_unit(self, run_id: str, task: str, partition: str, number: int, rows: int) -> None:
        """Writes the commit row of one slice that has nothing but rows. Belongs into a transaction."""
        values = (partition, f"{{{number}}}", f"{{{rows}}}", *["{0}"] * 5, "{NULL}")
        done = self._connection.query(self.commit_statement(run_id, task), values)
        if rows_done(done.tag) != 1:
            raise fenced_off(run_id, self.schema)

    def mark_switched(self, run_id: str, task: str) -> None:
        """Writes the commit row of the switch, which holds no rows of its own, and which table has them then.

        Belongs into its transaction.
        """
        self._connection.query(self._sql("identify_table"), (run_id, task))
        self.commit_unit(run_id, task, WHOLE_TABLE, SWITCHED_SLICE, 0)

    def is_switched(self, run_id: str, task: str) -> bool:
        """True if the task was completed: its rows are where readers see them."""
        return one_value(self._connection, self._sql("is_switched"), (run_id, task)) is not None

    def committed_units(self, run_id: str, task: str) -> dict[str, dict[int, int]]:
        """By partition and slice, rows that are committed of slices that are not complete."""
        found: dict[str, dict[int, int]] = {}
        for partition, number, rows in self._connection.query(self._sql("committed_units"), (run_id, task)).rows:
            found.setdefault(partition or "", {})[int(number or 0)] = int(rows or 0)
        return found

    def holds_rows(self, run_id: str, task: str) -> bool:
        """True if the table of a task is still the one into which its rows went: nobody has made it once more."""
        return one_value(self._connection, self._sql("holds_rows"), (run_id, task)) is not None

    def committed_rows(self, run_id: str, task: str) -> dict[str, int]:
        """Committed rows of a task by partition."""
        rows = self._connection.query(self._sql("committed_rows"), (run_id, task)).rows
        return {partition or "": int(count or 0) for partition, count in rows}

    def units(self, run_id: str, task: str) -> set[Unit]:
        """The units of a task, as they were planned."""
        rows = self._connection.query(self._sql("units"), (run_id, task)).rows
        return {Unit(partition or "", staging, takes) for partition, staging, takes in rows}

    def committed(self, run_id: str, task: str) -> Committed:
        """What of the task is committed."""
        row = one_row(self._connection, self._sql("committed"), (run_id, task))
        return Committed(0, 0) if row is None else Committed(int(row[0] or 0), int(row[1] or 0))

    def wait_for_commits(self, run_id: str) -> None:
        """Returns when no writer of the run is committing; raises after the session's lock_timeout.

        A server goes on committing for a client that is gone, and shows the rows only then.
        """
        self._connection.query(self._sql("wait_for_commits"), (run_id,))

    def committed_staging(self, run_id: str, task: str) -> tuple[str | None, ...]:
        """The hidden tables of the task that hold committed rows; None for the target itself."""
        return tuple(row[0] for row in self._connection.query(self._sql("committed_staging"), (run_id, task)).rows)

    def is_current(self, run_id: str) -> bool:
        """True if the run is still that of this process: nobody has declared it lost or resumed it."""
        return one_value(self._connection, self._sql("is_current"), (run_id, str(self.attempt))) is not None

    def require_current(self, run_id: str) -> None:
        """Keeps the run that of this process until the open transaction ends. Raises LedgerError if it is not."""
        if one_value(self._connection, self._sql("fence"), (run_id, str(self.attempt))) is None:
            raise fenced_off(run_id, self.schema)

    def check_committed(self, run_id: str, task: str, expected: Committed) -> None:
        """Raises LedgerError unless exactly this is committed."""
        found = self.committed(run_id, task)
        if found != expected:
            raise LedgerError(
                f"the ledger does not agree with what {task} has loaded",
                at={"schema": self.schema},
                found=str(found),
                expected=str(expected),
                hint="This is a defect of Headrace. Keep the run folder and report it.",
            )

    def finished_task(self, run_id: str, task: str) -> FinishedTask | None:
        """What a task that is no data flow has committed; None if it has not."""
        try:
            row = one_row(self._connection, self._sql("finished_task"), (run_id, task))
        except HeadraceError as error:
            raise ledger_failure(error, f"cannot read the end of {task} from the ledger", self.schema) from error
        return None if row is None else FinishedTask(row[0])

    def mark_task(self, run_id: str, task: str) -> None:
        """Says that the task has committed, if the caller's transaction does. From then on the run cannot be taken over
        before that transaction has ended. Raises LedgerError if it was taken over already.
        """
        if rows_done(self._mark(task, "insert_task", (run_id, task, str(self.attempt)))) != 1:
            raise fenced_off(run_id, self.schema)

    def set_task_result(self, run_id: str, task: str, result: str) -> None:
        """Adds to the mark what the task has to tell, as JSON. In the transaction of `mark_task`."""
        self._mark(task, "set_task_result", (run_id, task, result))

    def end_run(self, run_id: str, status: str, error: str | None) -> None:
        """Writes how the run ended, unless somebody has declared it lost or taken it over."""
        try:
            self._connection.query(self._sql("end_run"), (run_id, status, error, str(self.attempt)))
        except HeadraceError as problem:
            raise ledger_failure(problem, "cannot write the end of the run into the ledger", self.schema) from problem

    def exists(self) -> bool:
        """True if the ledger's tables are there."""
        return (
            one_value(self._connection, "SELECT pg_catalog.to_regclass($1)", (f"{quote(self.schema)}.commit",))
            is not None
        )

    def running(self, but_not: str) -> tuple[str, ...]:
        """Runs that have not said how they ended."""
        return texts(self._connection, self._sql("running"), (but_not,))

    def mark_lost(self, run_id: str) -> None:
        """Ends a dead run; from then on nothing of it can commit. Waits for a writer at the fence only a second."""
        with transaction(self._connection):
            self._connection.execute(_SHORT_WAIT)
            self._connection.query(self._sql("mark_lost"), (run_id,))

    def visible_tables(self, run_id: str) -> tuple[str, ...]:
        """The tables whose rows of this run are visible."""
        return self._tables(run_id, (*APPENDING, *MAKING))

    def appended_tables(self, run_id: str) -> tuple[str, ...]:
        """Those of them to which it has appended."""
        try:
            appended, made = ((self._tables(run_id, by) if self.exists() else ()) for by in (APPENDING, MAKING))
        except HeadraceError as error:
            raise ledger_failure(error, "cannot read the ledger", self.schema) from error
        return tuple(name for name in appended if name not in made)

    def _tables(self, run_id: str, targets: Sequence[str]) -> tuple[str, ...]:
        return texts(self._connection, self._sql("lost_tables"), (run_id, array(targets)))

    def forget_commits(self, run_id: str, staging: Sequence[str]) -> None:
        """Deletes the commit rows of staging tables. Belongs into the transaction that drops them."""
        self._connection.query(self._sql("forget_commits"), (run_id, array(staging)))

    def half_appended(self, table: TableName, but_not: str) -> list[tuple[str, str, int, int]]:
        """Dead runs of which the table holds some slices but not all: run, status, slices, slices committed."""
        rows = self._connection.query(self._sql("half_appended"), (table.schema, table.name, but_not)).rows
        return [(str(row[0]), str(row[1]), int(row[3] or 0), int(row[4] or 0)) for row in rows]

    def _mark(self, task: str, statement: str, values: Sequence[str]) -> str:
        try:
            return self._connection.query(self._sql(statement), values).tag
        except HeadraceError as error:
            raise ledger_failure(error, f"cannot write the end of {task} into the ledger", self.schema) from error

    def _next_attempt(self, run_id: str) -> str | None:
        return one_value(self._connection, self._sql("next_attempt"), (run_id,))

    def _insert_run(self, record: RunRecord) -> bool:
        """Whether there was none; waits for a transaction that is writing it."""
        inserted = self._connection.query(
            self._sql("insert_run"),
            (
                record.run_id,
                record.package,
                record.package_hash,
                record.headrace_version,
                record.host,
                str(record.process_id),
                record.of_run,
            ),
        )
        return inserted.tag == "INSERT 0 1"

    def _insert_claims(self, run_id: str, task: str, claim: ReplayPlan) -> None:
        for claimed in claim.portions():
            self._connection.query(
                self._sql("insert_replay"),
                (
                    run_id,
                    task,
                    claim.of_run,
                    claim.file_hash,
                    str(claim.rows_added),
                    array([first for (first, _), _ in claimed]),
                    array([last for (_, last), _ in claimed]),
                    array([action for _, action in claimed]),
                ),
            )

    def _create(self) -> None:
        """CREATE ... IF NOT EXISTS needs the right to create even where nothing is to be done, so we look first.

        Two runs that create at once would make one of them fail, IF NOT EXISTS or not: hence the lock.
        """
        schema = quote(self.schema)
        self._connection.query(
            "SELECT pg_catalog.pg_advisory_xact_lock($1::bigint)", (str(ledger_lock_key(self.schema)),)
        )
        if one_value(self._connection, "SELECT pg_catalog.to_regnamespace($1)", (schema,)) is None:
            self._connection.execute(f"CREATE SCHEMA IF NOT EXISTS {schema}")
        table, column = _NEWEST_COLUMN
        if one_value(self._connection, sql("has_column"), (f"{schema}.{table}", column)) is None:
            self._connection.execute(self._sql("ledger"))

    def _sql(self, name: str, **members: str) -> str:
        schema, identity = quote(self.schema), sql("table_identity")
        is_same = sql("is_same_table").format(schema=schema, identity=identity)
        return sql(name).format(schema=schema, identity=identity, is_same=is_same, **members)


def _target_of(plan: DataFlowPlan) -> str:
    """What becomes of the rows of the table that are there: some partitions of it may be replaced alone."""
    parts = plan.partitioning.partitions if plan.partitioning else ()
    return "reload" if any(part.action == "exchange" for part in parts) else plan.target


def fenced_off(run_id: str, schema: str) -> LedgerError:
    """The error of an attempt that somebody else has taken over."""
    return LedgerError(
        f"run {run_id} was taken over by another session or declared dead",
        at={"schema": schema},
        hint=f"Look at {schema}.run, and run or resume again.",
    )
