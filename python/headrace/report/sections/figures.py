"""Sums of a run, from its summary or, where that is missing, from what it had written before."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any, Final

from headrace.report.join_accounts import rejected_between, sources_of_joins
from headrace.report.run_files import RunFiles
from headrace.report.task_spans import table_of
from headrace.report.values import Document, document, documents, number, text, texts, whole
from headrace.units import MEGABYTE

# What is told once of several destinations, as summaries call it.
_SHARED: Final = {
    "bytes": "bytes_read",
    "lines": "lines",
    "skipped": "rows_skipped",
    "rows": "rows_read",
    "rejected": "rows_rejected",
    "filtered": "rows_filtered",
}


@dataclass(frozen=True)
class FlowAccount:
    """The accounts of one data flow; figures are None where nobody told them. `loaded`: rows that are committed."""

    task: str
    table: str
    connection: str | None
    status: str
    lines: int | None
    skipped: int | None
    rows: int | None
    rejected: int | None
    filtered: int
    loaded: int | None
    bytes: int | None
    seconds: float | None
    notes: tuple[str, ...] = ()
    # Rows that came to a join, those left out in front of it included, and that came out; None without a join.
    into_join: int | None = None
    out_of_join: int | None = None
    # Of the rejects, rows that had come to it, and those of them that had come out of one join and not to the next.
    rejected_behind: int = 0
    rejected_between: int = 0
    # Rows that came to a query over all rows, and that came out and were not left out behind it; None without one.
    into_query: int | None = None
    out_of_query: int | None = None
    # Of several such queries, rows that have come out of one, and not into the next.
    lost_between_queries: int = 0
    # Of a join or such a query of an earlier attempt, nothing is known any more.
    is_unknown: bool = False
    # Of one of several destinations their data flow; with the first one what all of them have rejected and filtered,
    # and what a replay has read for all of them.
    flow: str = ""
    source: str = ""
    shared: Mapping[str, int] = field(default_factory=dict)

    def difference(self) -> int | None:
        """By how many rows the accounts do not balance; None if that is not known, or nothing was loaded."""
        if self.rows is None or self.loaded is None or self.rejected is None or self.status != "success":
            return None
        if self.is_unknown:
            return None
        arrived, others = self.loaded, 0
        if self.into_query is not None and self.out_of_query is not None:
            arrived, others = self.into_query, abs(self.out_of_query - self.loaded) + self.lost_between_queries
        others += 0 if self.lines is None or self.skipped is None else abs(self.lines - self.skipped - self.rows)
        if self.into_join is not None and self.out_of_join is not None:
            before = self.rejected - self.rejected_behind
            behind = self.out_of_join - self.filtered - (self.rejected_behind - self.rejected_between)
            return others + abs(self.rows - before - self.into_join) + abs(behind - arrived)
        return others + abs(self.rows - self.rejected - self.filtered - arrived)

    @property
    def speed(self) -> float | None:
        """Megabytes of text per second."""
        return self.bytes / MEGABYTE / self.seconds if self.bytes is not None and self.seconds else None


def accounts(run: RunFiles) -> list[FlowAccount]:
    """Of every data flow: from the summary, from the last event of each, or from what was measured last."""
    tables = documents(run.summary, "tables")
    if tables:
        return [_of_document(item, text(item, "status") or "success") for item in tables]
    found: dict[str, FlowAccount] = {}
    for attempt in run.events.attempts:
        for span in attempt.tasks.values():
            if span.finished and text(span.finished, "table"):
                found[span.task] = _of_document(span.finished, span.status or "ended")
            elif span.kind == "data_flow" and span.table:
                found[span.task] = _of_measures(run, attempt.number, span.task, table_of(span))
    for attempt_number, task in run.measures.flows:
        if task not in found:
            found[task] = _of_measures(run, attempt_number, task, run.table_of(task))
    return list(found.values())


def _of_document(data: Document, status: str) -> FlowAccount:
    return FlowAccount(
        task=text(data, "task") or "",
        table=text(data, "table") or text(data, "task") or "",
        connection=text(data, "connection"),
        status=status,
        lines=whole(data, "lines"),
        skipped=whole(data, "rows_skipped"),
        rows=whole(data, "rows_read"),
        rejected=whole(data, "rows_rejected"),
        filtered=whole(data, "rows_filtered") or 0,
        loaded=whole(data, "rows_loaded"),
        bytes=whole(data, "bytes_read"),
        seconds=number(data, "seconds"),
        notes=tuple(texts(data, "notes")),
        into_join=_into_join(data),
        out_of_join=whole(data, "join", "rows_out"),
        rejected_behind=sum(whole(own, "rejected_behind") or 0 for own in sources_of_joins(document(data, "join"))),
        rejected_between=rejected_between(document(data, "join")),
        into_query=whole(data, "gathered", "rows_in"),
        out_of_query=_out_of_query(document(data, "gathered")),
        lost_between_queries=_lost_between(documents(data, "gathered", "queries")),
        is_unknown=any(name in data and not document(data, name) for name in ("join", "gathered")),
        flow=text(data, "flow_of") or "",
        source=text(data, "source") or "",
        shared=_shared(data),
    )


def _shared(data: Document) -> dict[str, int]:
    found = {own: whole(data, "shared", name) for own, name in _SHARED.items()}
    return {own: count for own, count in found.items() if count is not None}


def sources(flows: Sequence[FlowAccount]) -> list[FlowAccount]:
    """What was read: several destinations that were filled in one pass are told once, with what is rejected and
    filtered for all of them. Those that were complete before have read nothing now, and taken no time.
    """
    told: dict[object, FlowAccount] = {}
    read_of: dict[tuple[object, str], int] = {}
    for place, flow in enumerate(flows):
        first = told.setdefault(flow.flow or place, flow)
        if first is flow:
            told_once: dict[str, Any] = {**flow.shared}
            first = replace(flow, **told_once)
        read = first if first.bytes or not flow.bytes else flow
        told[flow.flow or place] = replace(first, seconds=read.seconds)
        own = (flow.flow or place, flow.source)
        read_of[own] = max(read_of.get(own, 0), flow.bytes or 0)
    # Of sources apart each has been read. The first table tells what all have read, unless it was complete before.
    bytes_of = {place: sum(size for key, size in read_of.items() if key[0] == place) for place in told}
    return [replace(own, bytes=max(bytes_of[place], own.bytes or 0) or own.bytes) for place, own in told.items()]


def _out_of_query(data: Document) -> int | None:
    made, left_out = (whole(data, name) for name in ("rows_out", "filtered_behind"))
    return None if made is None or left_out is None else made - left_out


def _lost_between(queries: Sequence[Document]) -> int:
    return sum(abs((_out_of_query(one) or 0) - (whole(other, "rows_in") or 0)) for one, other in pairwise(queries))


def _into_join(data: Document) -> int | None:
    sources = sources_of_joins(document(data, "join"))
    rows = [whole(own, "rows") for own in sources]
    left_out = sum(whole(own, "filtered_in_front") or 0 for own in sources)
    return _whole_sum([*rows, left_out]) if None not in rows else None


def _of_measures(run: RunFiles, attempt: int, task: str, table: str) -> FlowAccount:
    flow = run.measures.flows.get((attempt, task))
    line: Document = flow.last_line if flow else {}
    return FlowAccount(
        task=task,
        table=table,
        connection=None,
        status="not ended",
        lines=None,
        skipped=None,
        rows=whole(line, "rows_read"),
        rejected=whole(line, "rows_rejected"),
        filtered=0,
        loaded=None,
        bytes=whole(line, "bytes_read"),
        seconds=flow.end - flow.begin if flow else None,
    )


@dataclass(frozen=True)
class Totals:
    """A run in a few figures; None where nobody told them."""

    seconds: float | None
    load_seconds: float | None
    bytes: int | None
    rows: int | None
    rejected: int | None
    loaded: int | None
    streams: int | None
    memory_bytes: int | None
    peak_bytes: int | None
    cpu_seconds: float | None

    @property
    def speed(self) -> float | None:
        """Megabytes of text per second of the data flows."""
        return self.bytes / MEGABYTE / self.load_seconds if self.bytes and self.load_seconds else None

    @property
    def rows_per_second(self) -> float | None:
        """Rows per second of the data flows."""
        return self.rows / self.load_seconds if self.rows and self.load_seconds else None


def totals(run: RunFiles) -> Totals:
    """All data flows together; they have the streams one after the other."""
    flows = accounts(run)
    read = sources(flows)
    tables = documents(run.summary, "tables")
    own = number(run.summary, "seconds")
    measured = sum(attempt.seconds for attempt in run.timeline.attempts)
    return Totals(
        seconds=own if own is not None else (measured or None),
        load_seconds=_sum([flow.seconds for flow in read]),
        bytes=_whole_sum([flow.bytes for flow in read]),
        rows=_whole_sum([flow.rows for flow in read]),
        rejected=_whole_sum([flow.rejected for flow in read]),
        loaded=_whole_sum([flow.loaded for flow in flows]),
        streams=whole(run.request, "streams") or whole(run.events.started, "streams"),
        memory_bytes=whole(run.events.started, "memory_bytes"),
        peak_bytes=whole(run.summary, "peak_resident_bytes"),
        cpu_seconds=_sum([number(table, "cpu_seconds") for table in tables]),
    )


def phases(run: RunFiles) -> list[tuple[str, float]]:
    """Phases of the run with their seconds."""
    found = [(str(name), number(run.summary, "phases", name)) for name in document(run.summary, "phases")]
    return [(name, seconds) for name, seconds in found if seconds is not None]


def _sum(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def _whole_sum(values: Sequence[int | None]) -> int | None:
    total = _sum(values)
    return None if total is None else int(total)
