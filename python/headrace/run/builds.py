"""Builds in the accounts of a run: as tables of its summary, now and when it is resumed."""

from __future__ import annotations

from dataclasses import replace

from headrace.executors import FlowOutcome
from headrace.planning import CommittedSlice, DataFlowPlan, FinishedTask
from headrace.run.events import EventLog
from headrace.run.finished import FinishedTable
from headrace.run.folder import RunFolder
from headrace.run.json_lines import add_line, lines
from headrace.run.kept_errors import let_go_of_memory
from headrace.run.phases import Phases
from headrace.run.redact import Redactor
from headrace.run.summary import Summary, TableResult

_MEMBERS = ("task", "connection", "table", "target")


class Builds:
    """Those of one run. Used by whoever holds the pool of the run."""

    def __init__(
        self, folder: RunFolder, redactor: Redactor, events: EventLog, summary: Summary, phases: Phases
    ) -> None:
        self._folder = folder
        self._redactor = redactor
        self._events = events
        self._summary = summary
        self._phases = phases

    def ended(self, plan: DataFlowPlan, outcome: FlowOutcome) -> None:
        """Takes over what became of a build; of one that is tried again only the last try counts."""
        if outcome.error is not None:
            let_go_of_memory(outcome.error)
        result = TableResult(replace(plan, table=self._redactor.text(plan.table)), outcome)
        self._summary.add(result)
        self._summary.tried.add(plan.task)
        self._phases.add(outcome)
        if outcome.error is not None:
            return
        self._summary.tried.discard(plan.task)
        self._keep(result)
        self._events.emit(
            "table_built",
            task=plan.task,
            table=result.plan.table,
            connection=plan.connection,
            rows_loaded=result.rows_loaded(),
            parts=plan.connections,
            seconds=round(outcome.seconds, 6),
        )

    def ended_before(self, task: FinishedTask) -> None:
        """Takes over what an earlier attempt of the run has built, unless that is known."""
        if not any(known.task.task == task.task for known in self._summary.finished):
            self._summary.add_finished(FinishedTable.of(task, self._folder.rejects))

    def account_for_earlier(self) -> None:
        """Builds that are not started any more, because the journal knows their end, belong to the accounts."""
        for line, _ in lines(self._folder.run_id, self._folder.builds):
            slices = {1: CommittedSlice(int(line["rows_loaded"]), 0, 0)}
            task, connection, table, target = (str(line[name]) for name in _MEMBERS)
            self.ended_before(FinishedTask(task, connection, table, target, "single", slices, file_stem=table))

    def _keep(self, result: TableResult) -> None:
        document = result.to_dict()
        line = {name: document[name] for name in (*_MEMBERS, "rows_loaded")}
        add_line(self._folder.builds, line, "what a build has done")
