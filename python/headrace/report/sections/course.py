"""The course of the run: tasks, streams and writers along the time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from headrace.report.flow_measures import STREAM_STATES, WRITER_STATES, WriterMeasures
from headrace.report.lanes import Lane, LaneChart, Stretch, lane_chart
from headrace.report.markup import Markup, element, join
from headrace.report.palette import fill
from headrace.report.plot import Legend, at_percent, drawing, figure, framed
from headrace.report.rates import begin_of
from headrace.report.run_files import RunFiles
from headrace.report.scales import clock
from headrace.report.sections import Section
from headrace.report.tables import Column, table
from headrace.report.tails import Tail, tails_of
from headrace.report.task_spans import TaskSpan
from headrace.report.tracks import Curve
from headrace.report.verdicts import phrase
from headrace.report.wording import STATE_NAMES, count, duration, percent, size
from headrace.units import plural

_MOST_TASKS: Final = 60
_TASK_HEIGHT: Final = 22
_BAR_HEIGHT: Final = 14
_MOST_TAILS: Final = 3
_LEAST_SHARE: Final = 0.005


def section(run: RunFiles) -> Section | None:
    """The three charts that there is something for."""
    tails = tails_of(run)
    parts = [chart for chart in (_tasks(run), _streams(run, tails), _writers(run)) if chart is not None]
    return Section("course", "Timeline", join(parts)) if parts else None


def _tasks(run: RunFiles) -> Markup | None:
    spans = [(attempt.number, span) for attempt in run.events.attempts for span in attempt.tasks.values()]
    if not spans:
        return None
    shown = spans[:_MOST_TASKS]
    height = len(shown) * _TASK_HEIGHT
    bars, labels, rows = [], [], []
    for row, (number, span) in enumerate(shown):
        begin = run.timeline.place(number, span.begin)
        end = run.timeline.place(number, span.end if span.end is not None else _attempt_seconds(run, number))
        status = span.status or "not ended"
        name = span.task if span.table in (None, span.task) else f"{span.task}: {span.table}"
        hint = f"{name} ({span.kind}), {status}, {clock(begin, 1)} to {clock(end, 1)}, {duration(end - begin)}"
        bars.append(_bar(run, begin, end, row, span, hint))
        labels.append(element("li", _short(span), title=hint))
        rows.append([name, span.kind, status, clock(begin, 1), duration(end - begin)])
    chart_name, title = "course-tasks", "Tasks"
    drawn = drawing(
        chart_name,
        title,
        f"When each of {len(shown)} tasks began and ended.",
        run.timeline,
        height,
        *bars,
    )
    own = element(
        "ol", *labels, class_="labels wide-labels", style=f"--lane:{_TASK_HEIGHT}px;--gap:0px", aria_hidden="true"
    )
    left_out = len(spans) - len(shown)
    lead = f"The first {len(shown)} of {len(spans):,} tasks." if left_out else ""
    columns = (
        Column("task", words=True),
        Column("kind", words=True),
        Column("status", words=True),
        Column("begin"),
        Column("time"),
    )
    statuses = dict.fromkeys(_status(span) for _, span in shown)
    words = {"open": "not ended"}
    legend = [Legend(fill("task", status), words.get(status, status)) for status in statuses]
    as_table = table(columns, rows, caption="Tasks of the run")
    return figure(chart_name, title, framed(drawn, own), lead=lead, legend=legend, table=as_table)


def _bar(run: RunFiles, begin: float, end: float, row: int, span: TaskSpan, hint: str) -> Markup:
    left = run.timeline.share(begin)
    width = max(0.002, run.timeline.share(end) - left)
    return element(
        "rect",
        element("title", hint),
        class_="bar" if span.kind == "data_flow" else "bar thin",
        style=f"--own:{fill('task', _status(span))}",
        x=at_percent(left),
        width=at_percent(width),
        y=row * _TASK_HEIGHT + (_TASK_HEIGHT - _BAR_HEIGHT) // 2,
        height=_BAR_HEIGHT,
        rx=2,
    )


def _status(span: TaskSpan) -> str:
    return span.status if span.status in ("success", "failed", "cancelled") else "open"


def _short(span: TaskSpan) -> str:
    """What tells tasks apart: the table of a data flow, or the last part of the id."""
    return span.table or span.task


def _attempt_seconds(run: RunFiles, number: int) -> float:
    return next((attempt.seconds for attempt in run.timeline.attempts if attempt.number == number), 0.0)


def _streams(run: RunFiles, tails: Sequence[Tail]) -> Markup | None:
    """Streams are those of the run: each row has all data flows that the stream has worked for."""
    lanes: dict[int, tuple[dict[str, list[Curve]], list[Stretch]]] = {}
    seconds: dict[int, dict[str, float]] = {}
    for (attempt, task), flow in run.measures.flows.items():
        start = begin_of(run, attempt, task)
        offset = run.timeline.offset(attempt)
        for number, stream in flow.streams.items():
            states, marks = lanes.setdefault(number, ({state: [] for state in STREAM_STATES}, []))
            for state, curve in stream.state_curves(start).items():
                states[state].append(curve.moved(offset))
                own = seconds.setdefault(number, dict.fromkeys(STREAM_STATES, 0.0))
                own[state] += stream.state_seconds()[state]
            for span in stream.spans:
                file = run.file_of(task, span.file)
                begin, end = offset + span.begin, offset + span.end
                where = f" of {file}" if file else ""
                hint = f"stream {number}, slice {span.slice}{where}, {clock(begin, 1)} to {clock(end, 1)}"
                marks.append(Stretch(begin, end, hint))
    if not lanes:
        return None
    late = {tail.stream: tail for tail in reversed(tails)}
    rows = [
        Lane(
            str(number),
            f"stream {number}: {_shares(seconds[number])}",
            states,
            marks,
            _late(late.get(number)),
        )
        for number, (states, marks) in sorted(lanes.items())
    ]
    told = _told(seconds)
    chart = LaneChart(
        "course-streams",
        "Streams",
        f"What each of {len(rows)} streams was at over the time of the run. {_tail_sentence(tails)}",
        {state: fill("state", state) for state in STREAM_STATES},
        [
            Legend(fill("state", state), STATE_NAMES[state], percent(told[state]))
            for state in STREAM_STATES
            if told[state] >= _LEAST_SHARE
        ],
        lead=f"Each row is a stream: colours share its time, thin lines begin a slice. {_tail_sentence(tails)}",
    )
    return lane_chart(chart, run.timeline, rows, _stream_table(run, seconds, tails))


def _writers(run: RunFiles) -> Markup | None:
    lanes: dict[tuple[str, int], dict[str, list[Curve]]] = {}
    seconds: dict[tuple[str, int], dict[str, float]] = {}
    hints: dict[tuple[str, int], str] = {}
    for (attempt, task), flow in run.measures.flows.items():
        start = begin_of(run, attempt, task)
        for key, writer in flow.writers.items():
            states = lanes.setdefault(key, {state: [] for state in WRITER_STATES})
            own = seconds.setdefault(key, dict.fromkeys(WRITER_STATES, 0.0))
            hints[key] = _writer_words(writer)
            for state, curve in writer.state_curves(start).items():
                states[state].append(curve.moved(run.timeline.offset(attempt)))
                own[state] += writer.state_seconds()[state]
    if not lanes:
        return None
    rows = [
        Lane(" ".join(map(str, filter(None, key))), f"{hints[key]}: {_shares(seconds[key])}", states)
        for key, states in sorted(lanes.items())
    ]
    told = _told(seconds)
    chart = LaneChart(
        "course-writers",
        "Writers",
        f"What each of {len(rows)} connections to the destination was at over the time of the run.",
        {state: fill("state", state) for state in WRITER_STATES},
        [
            Legend(fill("state", state), STATE_NAMES[state], percent(told[state]))
            for state in WRITER_STATES
            if told[state] >= _LEAST_SHARE
        ],
        lead="Each row is a connection that takes rows.",
    )
    columns = (Column("writer"), *(Column(STATE_NAMES[state]) for state in WRITER_STATES))
    cells = [
        [hints[key].removeprefix("writer "), *(duration(own[state]) for state in WRITER_STATES)]
        for key, own in sorted(seconds.items())
    ]
    return lane_chart(chart, run.timeline, rows, table(columns, cells, caption="Writers"))


def _writer_words(writer: WriterMeasures) -> str:
    """`writer 1`; of several destinations `writer 1 of orders`, of several connections also `(archive)` behind that."""
    of = f" of {writer.destination}" if writer.destination else ""
    return f"writer {writer.number}{of}" + (f" ({writer.place})" if writer.place else "")


def _late(tail: Tail | None) -> Stretch | None:
    if tail is None:
        return None
    hint = f"long tail: {duration(tail.behind_seconds)} behind the others" + (f", on {tail.file}" if tail.file else "")
    return Stretch(tail.others_ended, tail.ended, hint)


def _tail_sentence(tails: Sequence[Tail]) -> str:
    if not tails:
        return "No stream ended much later than the others."
    parts = [
        f"stream {tail.stream}"
        + (f" on {tail.file}" if tail.file else "")
        + f" ended {duration(tail.behind_seconds)} behind the others"
        + (f", limited by {phrase(tail.limit)}" if tail.limit else "")
        for tail in tails[:_MOST_TAILS]
    ]
    more = f"; and {plural(len(tails) - _MOST_TAILS, 'more stream')}" if len(tails) > _MOST_TAILS else ""
    return f"Long tail: {'; '.join(parts)}{more}."


def _shares(seconds: Mapping[str, float]) -> str:
    whole = sum(seconds.values())
    if whole <= 0:
        return "no time was counted"
    return ", ".join(
        f"{STATE_NAMES[state]} {percent(own / whole)}" for state, own in seconds.items() if own / whole >= _LEAST_SHARE
    )


def _told(seconds: Mapping[Any, Mapping[str, float]]) -> dict[str, float]:
    """The share of each state in the time of all rows."""
    whole = sum(sum(own.values()) for own in seconds.values()) or 1.0
    states = next(iter(seconds.values()))
    return {state: sum(own[state] for own in seconds.values()) / whole for state in states}


def _stream_table(run: RunFiles, seconds: Mapping[int, Mapping[str, float]], tails: Sequence[Tail]) -> Markup:
    late = {tail.stream: tail for tail in reversed(tails)}
    columns = (
        Column("stream"),
        Column("slices"),
        Column("rows"),
        Column("text"),
        Column("on a CPU"),
        *(Column(STATE_NAMES[state]) for state in STREAM_STATES),
        Column("behind"),
    )
    rows = []
    for number, own in sorted(seconds.items()):
        streams = [flow.streams[number] for flow in run.measures.flows.values() if number in flow.streams]
        sums = {
            name: sum(stream.last(name) or 0.0 for stream in streams)
            for name in ("slices", "rows", "bytes", "cpu_seconds")
        }
        tail = late.get(number)
        rows.append(
            [
                str(number),
                count(sums["slices"]),
                count(sums["rows"]),
                size(sums["bytes"]),
                duration(sums["cpu_seconds"]),
                *(duration(own[state]) for state in STREAM_STATES),
                "-" if tail is None else duration(tail.behind_seconds),
            ]
        )
    return table(columns, rows, caption="Streams")
