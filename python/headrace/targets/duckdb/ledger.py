"""The ledger in the user's file, schema `headrace`: `run`, `slice`, `commit`, `replay`, `task`, view `lineage`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb

from headrace.errors import LedgerError
from headrace.planning import WHOLE_TABLE, CommittedSlice, DataFlowPlan, ReplayPlan, counted
from headrace.targets.base import (
    APPENDING,
    MAKING,
    FinishedTask,
    LostRun,
    RunRecord,
    TaskProgress,
    forgotten,
    superseded,
)
from headrace.targets.duckdb.connection import sql
from headrace.targets.duckdb.failures import ledger_failure


class Ledger:
    """Statements of the ledger. `commit_slices`, `mark_task` and `set_task_result` belong inside the data's
    transaction, the others make their own.
    """

    def __init__(self, connection: duckdb.DuckDBPyConnection, path: Path) -> None:
        self._connection = connection
        self._path = path

    def unfinished_runs(self, package: str) -> list[LostRun]:
        """Runs of the package without success; whoever holds the file knows that they are over."""
        try:
            if self._connection.execute(sql("ledger_exists")).fetchone() is None:
                return []
            found = self._connection.execute(sql("unfinished_runs"), {"package": package}).fetchall()
            return self._with_tables([str(row[0]) for row in found])
        except duckdb.Error as error:
            raise ledger_failure(error, "cannot read the runs of the ledger", self._path) from error

    def appended_tables(self, run_id: str) -> tuple[str, ...]:
        """The tables to which a run has appended rows that are still there."""
        try:
            if self._connection.execute(sql("ledger_exists")).fetchone() is None:
                return ()
            appended, made = ([own[1] for own in self._tables([run_id], by)] for by in (APPENDING, MAKING))
        except duckdb.Error as error:
            raise ledger_failure(error, "cannot read the runs of the ledger", self._path) from error
        return tuple(name for name in appended if name not in made)

    def abandon_runs(self, run_ids: Sequence[str]) -> None:
        """Gives runs up."""
        with self._transaction("cannot give up runs in the ledger"):
            self._connection.execute(sql("abandon_runs"), {"run_ids": list(run_ids)})

    def begin_run(self, record: RunRecord) -> list[LostRun]:
        """Writes the run's row, creating the tables if needed. Returns the runs now marked as lost."""
        with self._transaction("cannot write the run into the ledger"):
            self._connection.execute(sql("ledger"))
            dead = self._connection.execute(sql("mark_lost"), {"now": _now()}).fetchall()
            lost = self._with_tables(sorted(str(row[0]) for row in dead))
            self._insert_run(record)
        return lost

    def resume_run(self, record: RunRecord) -> None:
        """Counts another attempt of the run. Raises LedgerError if a later run of the package has begun."""
        with self._transaction("cannot resume the run in the ledger"):
            self._connection.execute(sql("ledger"))
            values = {"run_id": record.run_id, "package": record.package}
            later = self._connection.execute(sql("later_run"), values).fetchone()
            # What a replay appends is not appended by any later run but another replay, which its claims tell.
            if later is not None and record.of_run is None:
                raise superseded(record, str(later[0]))
            self._connection.execute(sql("mark_lost"), {"now": _now()})
            known = self._connection.execute(sql("next_attempt"), {"run_id": record.run_id}).fetchone()
            if known is None:
                self._insert_run(record)

    def take_back_run(self, record: RunRecord) -> None:
        """Goes on with the run of this process, whose file others have had. Raises LedgerError if a later run of the
        package has begun, or the run is not there. A run of another package may have called this one lost: it is not.
        """
        with self._transaction("cannot go on with the run in the ledger"):
            values = {"run_id": record.run_id, "package": record.package}
            if self._connection.execute(sql("ledger_exists")).fetchone() is None:
                raise forgotten(record.run_id)
            later = self._connection.execute(sql("later_run"), values).fetchone()
            if later is not None and record.of_run is None:
                raise superseded(record, str(later[0]))
            if self._connection.execute(sql("take_back_run"), {"run_id": record.run_id}).fetchone() is None:
                raise forgotten(record.run_id)

    def task_progress(self, run_id: str, task: str) -> TaskProgress:
        """What is committed of a task: in one transaction, so either all of it or nothing."""
        try:
            values = {"run_id": run_id, "task": task}
            row = self._connection.execute(sql("task_progress"), values).fetchone()
            slices = self._connection.execute(sql("committed_slices"), values).fetchall()
        except duckdb.Error as error:
            raise ledger_failure(error, f"cannot read the progress of {task} from the ledger", self._path) from error
        recorded, finished = row if row else (False, False)
        known = {number: CommittedSlice(*counts) for number, *counts in slices}
        return TaskProgress(recorded=bool(recorded), finished=bool(finished), slices=known)

    def record_slices(self, run_id: str, plan: DataFlowPlan) -> None:
        """Writes all slices of one task in one transaction, and with them the claims of a replay."""
        slices = plan.source.slices
        files = [plan.source.files[item["file"]] for item in slices]
        with self._transaction(f"cannot write the slices of {plan.task} into the ledger"):
            self._connection.execute(
                sql("insert_slices"),
                {
                    "run_id": run_id,
                    "task": plan.task,
                    "schema": plan.schema,
                    "table": plan.table,
                    "target": plan.target,
                    "slices": [item["number"] for item in slices],
                    "files": [file["path"] for file in files],
                    "begin_bytes": [item["begin_byte"] for item in slices],
                    "end_bytes": [item["end_byte"] for item in slices],
                    "file_bytes": [file.get("size_bytes", 0) for file in files],
                    "modified_ns": [file.get("modified_ns", 0) for file in files],
                },
            )
            if plan.replay is not None:
                self._insert_claims(run_id, plan.task, plan.replay)

    def commit_slices(self, run_id: str, plan: DataFlowPlan, result: dict[str, Any]) -> None:
        """Inserts one commit row per slice. The caller holds the transaction open and commits it."""
        slices = result["slices"]
        self._connection.execute(
            sql("insert_commits"),
            {
                "run_id": run_id,
                "task": plan.task,
                "partition": WHOLE_TABLE,
                "now": _now(),
                "slices": [item["number"] for item in slices],
                "rows_loaded": [item["out"] for item in slices],
                "rows_rejected": [item["rejected"] for item in slices],
                "rows_skipped": [item["skipped"] for item in slices],
                "text_bytes": [item["bytes"] for item in slices],
                "values_ignored": [item["values_ignored"] for item in slices],
                "rows_filtered": [item["filtered"] for item in slices],
                "text_hashes": [item["text_hash"] for item in slices],
            },
        )

    def check_committed(self, run_id: str, plan: DataFlowPlan, rows_loaded: int) -> None:
        """Raises LedgerError unless the committed ledger has every slice of the task, with all its rows, and
        duckdb.Error if it cannot be read.
        """
        found = self._connection.execute(sql("committed"), {"run_id": run_id, "task": plan.task}).fetchone()
        expected = (len(plan.source.slices), rows_loaded)
        if found != expected:
            raise LedgerError(
                f"the commit of {plan.task} was not kept",
                at={"file": str(self._path)},
                found=_slices_and_rows(*found) if found else "nothing",
                expected=_slices_and_rows(*expected),
                hint="This is a defect of Headrace or DuckDB. Keep the run folder and report it.",
            )

    def finished_task(self, run_id: str, task: str) -> FinishedTask | None:
        """What a task that is no data flow has committed; None if it has not."""
        try:
            row = self._connection.execute(sql("finished_task"), {"run_id": run_id, "task": task}).fetchone()
        except duckdb.Error as error:
            raise ledger_failure(error, f"cannot read the end of {task} from the ledger", self._path) from error
        return None if row is None else FinishedTask(row[0])

    def mark_task(self, run_id: str, task: str) -> None:
        """Says that the task has committed, if the caller's transaction does."""
        values = {"run_id": run_id, "task": task, "now": _now()}
        self._mark(task, "insert_task", values)

    def set_task_result(self, run_id: str, task: str, result: str) -> None:
        """Adds to the mark what the task has to tell, as JSON. In the transaction of `mark_task`."""
        self._mark(task, "set_task_result", {"run_id": run_id, "task": task, "result": result})

    def end_run(self, run_id: str, status: str, error: str | None) -> None:
        """Writes how the run ended."""
        with self._transaction("cannot write the end of the run into the ledger"):
            values = {"run_id": run_id, "status": status, "error": error, "now": _now()}
            self._connection.execute(sql("end_run"), values)

    def _mark(self, task: str, statement: str, values: dict[str, Any]) -> None:
        try:
            self._connection.execute(sql(statement), values)
        except duckdb.Error as error:
            raise ledger_failure(error, f"cannot write the end of {task} into the ledger", self._path) from error

    def _with_tables(self, run_ids: Sequence[str]) -> list[LostRun]:
        committed = self._tables(run_ids, (*APPENDING, *MAKING))
        return [LostRun(run_id, tuple(table for owner, table in committed if owner == run_id)) for run_id in run_ids]

    def _tables(self, run_ids: Sequence[str], targets: Sequence[str]) -> list[tuple[str, str]]:
        """Runs, and tables with rows of them that are still there, loaded in one of these ways."""
        values = {"run_ids": list(run_ids), "targets": list(targets)}
        return self._connection.execute(sql("lost_tables"), values).fetchall()

    def _insert_claims(self, run_id: str, task: str, claim: ReplayPlan) -> None:
        for claimed in claim.portions():
            self._connection.execute(
                sql("insert_replay"),
                {
                    "run_id": run_id,
                    "task": task,
                    "of_run": claim.of_run,
                    "file_hash": claim.file_hash,
                    "rows_added": claim.rows_added,
                    "first_numbers": [first for (first, _), _ in claimed],
                    "last_numbers": [last for (_, last), _ in claimed],
                    "actions": [action for _, action in claimed],
                },
            )

    def _insert_run(self, record: RunRecord) -> None:
        self._connection.execute(
            sql("insert_run"),
            {
                "run_id": record.run_id,
                "package": record.package,
                "package_hash": record.package_hash,
                "headrace_version": record.headrace_version,
                "host": record.host,
                "process_id": record.process_id,
                "started_at": record.started_at,
                "of_run": record.of_run,
            },
        )

    @contextmanager
    def _transaction(self, what: str) -> Iterator[None]:
        try:
            self._connection.execute("BEGIN TRANSACTION")
            try:
                yield
                self._connection.execute("COMMIT")
            except BaseException:
                roll_back(self._connection)
                raise
        except duckdb.Error as error:
            raise ledger_failure(error, what, self._path) from error


def roll_back(connection: duckdb.DuckDBPyConnection) -> None:
    """Ends the open transaction. A failed COMMIT has ended it already, which DuckDB reports as an error."""
    with suppress(duckdb.Error):
        connection.execute("ROLLBACK")


def _slices_and_rows(slices: int, rows: int) -> str:
    return f"{counted(slices, 'slice')} with {counted(rows, 'row')}"


def _now() -> datetime:
    return datetime.now(UTC)
