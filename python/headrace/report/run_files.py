"""What the folder of a run tells, whatever is missing or damaged in it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from headrace.report.json_files import read_document
from headrace.report.measures import Measures, read_measures
from headrace.report.task_spans import Events, read_events
from headrace.report.timeline import Timeline, timeline_of
from headrace.report.values import Document, document, documents, text
from headrace.report.verdicts import Verdict, verdict_of
from headrace.run.folder import is_there

# One of these makes a folder that of a run.
KNOWN_FILES: Final = ("request.json", "summary.json", "events.jsonl", "metrics.jsonl")


@dataclass(frozen=True)
class RunFiles:
    """One run. `notes`: what the reader should know of its files, a sentence each."""

    run_id: str
    folder: Path
    summary: Document
    request: Document
    environment: Document
    sources: Document
    events: Events
    measures: Measures
    timeline: Timeline
    notes: tuple[str, ...]

    @property
    def package(self) -> str:
        """The name of the package."""
        return text(self.summary, "package") or text(self.events.started, "package") or "a package without a name"

    @property
    def status(self) -> str | None:
        """How the run has ended; None if it has not, or did not come to say it."""
        own = text(self.summary, "status")
        return own or (self.events.attempts[-1].status if self.events.attempts else None)

    @property
    def error(self) -> Document:
        """Why it failed."""
        own = document(self.summary, "error")
        return own or (self.events.attempts[-1].error if self.events.attempts else {})

    def verdict(self) -> Verdict | None:
        """What limited the run: its summary's word, or else that about its longest data flow so far."""
        own = verdict_of(document(self.summary, "limit"))
        if own is not None:
            return own
        lines = self.measures.verdicts
        return max(lines, key=lambda verdict: (verdict.is_final, self._flow_seconds(verdict), verdict.at), default=None)

    def _flow_seconds(self, verdict: Verdict) -> float:
        flow = self.measures.flows.get((verdict.attempt, verdict.task or ""))
        return 0.0 if flow is None else flow.end - flow.begin

    def table_of(self, task: str) -> str:
        """The table that a data flow loads."""
        for attempt in self.events.attempts:
            if task in attempt.tasks and attempt.tasks[task].table:
                return attempt.tasks[task].table or task
        tables = {text(item, "task"): text(item, "table") for item in documents(self.summary, "tables")}
        return tables.get(task) or task

    def file_of(self, task: str, index: int | None) -> str | None:
        """The name of a source file, by its place in the plan."""
        files = documents(self.sources, task, "files")
        if index is None or not 0 <= index < len(files):
            return None
        return Path(text(files[index], "path") or "").name or None


def is_run_folder(path: Path) -> bool:
    """Whether a run has written into a folder."""
    return any(is_there(path / name) for name in KNOWN_FILES)


def read_run(folder: Path) -> RunFiles:
    """Reads the folder; never fails."""
    notes: list[str] = []
    summary = read_document(folder / "summary.json", notes)
    events = read_events(folder / "events.jsonl", notes)
    measures = read_measures(folder / "metrics.jsonl", notes)
    timeline = timeline_of(events.attempts, measures.seconds)
    has_ended = bool(summary) or (events.attempts and events.attempts[-1].status)
    if not has_ended:
        notes.insert(0, _unfinished(events, measures))
    elif not summary and not any("summary.json" in note for note in notes):
        notes.insert(0, "There is no summary.json, although the run has ended: its accounts are unknown.")
    if not measures.seconds and not any("metrics.jsonl" in note for note in notes):
        notes.append("There are no measures in metrics.jsonl: what needs them is left out.")
    return RunFiles(
        run_id=text(summary, "run_id") or folder.name,
        folder=folder,
        summary=summary,
        request=read_document(folder / "request.json", notes),
        environment=read_document(folder / "environment.json", notes),
        sources=read_document(folder / "sources.json", notes),
        events=events,
        measures=measures,
        timeline=timeline,
        notes=tuple(notes),
    )


def _unfinished(events: Events, measures: Measures) -> str:
    if not events.attempts and not measures.seconds:
        return "The run has written next to nothing: it has just begun, or was killed at once."
    return "The run has not ended, or was killed: what is shown is what it had written when this report was made."
