"""Asks what limits each data flow while it is measured, and tells when the answer changes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final, Protocol

from headrace.planning import DataFlowPlan
from headrace.run.events import EventLog

Document = dict[str, Any]
Line = Mapping[str, Any]

# A verdict is another one if one of these is.
_WHAT: Final = ("limit", "connection")


class Answer(Protocol):
    """A verdict, or a stream that is late."""

    def to_dict(self) -> Document: ...


class FlowJudge(Protocol):
    """The judgement of one data flow. The lines are those of docs/spec/metrics.md."""

    def add(self, flow: Line, machine: Line | None, destinations: Sequence[Line]) -> Answer | None: ...
    def span(self, *, whole: bool) -> tuple[float, float]: ...
    def streams(self) -> Sequence[Document]: ...
    def slow(self) -> Sequence[Answer]: ...


class Judge(Protocol):
    """Given by the caller of a run, because diagnosing is a layer above running. `ended` gets back what `flow` gave."""

    def flow(self, files: Sequence[str]) -> FlowJudge: ...
    def ended(self, flow: Any) -> Document | None: ...
    def whole(self) -> Document | None: ...


class Judging:
    """The judgement of one run. `look` is called for each data flow by one thread at a time."""

    def __init__(self, judge: Judge | None, events: EventLog) -> None:
        self._judge = judge
        self._events = events
        self._flows: dict[str, FlowJudge] = {}
        self._shown: dict[str, Document] = {}
        self._slow: dict[str, list[int]] = {}
        self._verdicts: dict[str, Document] = {}

    def begin(self, plan: DataFlowPlan) -> None:
        """A data flow is about to be measured. What an earlier try of it has left is of no use any more."""
        for known in (self._flows, self._shown, self._slow, self._verdicts):
            known.pop(plan.task, None)

    def look(
        self, plan: DataFlowPlan, flow: Line, machine: Line | None, destinations: Sequence[Line], *, is_last: bool
    ) -> Document | None:
        """Judges a sample. What is to be written down: a verdict that is another one than before, or the last one."""
        if self._judge is None:
            return None
        judge = self._flows.get(plan.task)
        if judge is None:
            files = plan.shown_paths or [str(file["path"]) for file in plan.source.files]
            judge = self._flows[plan.task] = self._judge.flow(files)
        now = judge.add(flow, machine, destinations)
        self._tell_slow(plan, judge)
        if is_last:
            return self._ended(plan, judge)
        verdict = None if now is None else now.to_dict()
        shown = self._shown.get(plan.task, {})
        if verdict is None or all(verdict.get(name) == shown.get(name) for name in _WHAT):
            return None
        verdict["streams"] = list(judge.streams())
        self._shown[plan.task] = verdict
        self._tell(plan, verdict, is_final=False)
        return {**_span(judge, whole=False), **verdict, "is_final": False}

    def verdict(self, task: str) -> Document | None:
        """About all of a data flow that has ended; None without one. Once."""
        return self._verdicts.pop(task, None)

    def whole(self) -> Document | None:
        """About the run."""
        return None if self._judge is None else self._judge.whole()

    def _ended(self, plan: DataFlowPlan, judge: FlowJudge) -> Document | None:
        del self._flows[plan.task]
        self._shown.pop(plan.task, None)
        self._slow.pop(plan.task, None)
        verdict = None if self._judge is None else self._judge.ended(judge)
        if verdict is None:
            return None
        self._verdicts[plan.task] = verdict
        self._tell(plan, verdict, is_final=True)
        return {**_span(judge, whole=True), **verdict, "is_final": True}

    def _tell(self, plan: DataFlowPlan, verdict: Document, *, is_final: bool) -> None:
        names = ("limit", "sentence", "next_limit", "next_megabytes_per_second", "remedy")
        said = {name: verdict[name] for name in names}
        if "connection" in verdict:
            said["connection"] = verdict["connection"]
        alone = dict(Counter(stream["limit"] for stream in verdict["streams"]).most_common())
        self._events.emit("limit", task=plan.task, table=plan.table, **said, streams_by_limit=alone, is_final=is_final)

    def _tell_slow(self, plan: DataFlowPlan, judge: FlowJudge) -> None:
        slow = [stream.to_dict() for stream in judge.slow()]
        numbers = sorted(int(stream["number"]) for stream in slow)
        if numbers and numbers != self._slow.get(plan.task):
            self._slow[plan.task] = numbers
            self._events.emit("slow_streams", task=plan.task, table=plan.table, streams=slow)


def _span(judge: FlowJudge, *, whole: bool) -> Document:
    begin, end = judge.span(whole=whole)
    return {"from": begin, "to": end}
