"""What the lines `flow` of metrics.jsonl tell of one data flow: its streams, its writers, and what each was at."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final

from headrace.report.tracks import MOST_SAMPLES, Curve, Track
from headrace.report.values import Document, document, documents, number, text, whole
from headrace.run.metrics import growth

# What a stream can be at, in the order in which rows pass; each is the sum of these counters of its stages.
STREAM_STATES: Final[Mapping[str, Sequence[tuple[str, str]]]] = {
    "read": (("read", "busy_seconds"), ("read", "wait_input_seconds")),
    "parse": (("parse", "busy_seconds"),),
    "transform": (("transform", "busy_seconds"),),
    "write": (("write", "busy_seconds"),),
    "wait_destination": (("write", "wait_output_seconds"),),
    "wait_block": (("read", "wait_output_seconds"), ("parse", "wait_output_seconds")),
    "wait_slice": (),
}
# What a writer can be at, and the counter that tells it.
WRITER_STATES: Final[Mapping[str, str]] = {
    "send": "busy_seconds",
    "wait_rows": "wait_input_seconds",
    "wait_socket": "wait_output_seconds",
    "wait_answer": "wait_answer_seconds",
}
_STREAM_COUNTERS: Final = ("bytes", "rows", "slices", "cpu_seconds", "run_queue_seconds")
_FLOW_COUNTERS: Final = ("bytes_read", "source_bytes_read", "rows_read", "rows_rejected")
# Slices of a stream of which begin and end are kept: more cannot be drawn.
_MOST_SPANS: Final = 600


class SliceSpan:
    """A stretch of time in which a stream was seen at one slice."""

    __slots__ = ("begin", "end", "file", "slice")

    def __init__(self, slice_number: int, file: int | None, begin: float) -> None:
        self.slice = slice_number
        self.file = file
        self.begin = begin
        self.end = begin


class _States:
    """Seconds in each state: the counters of lines, which begin anew when a flow is tried again, added up."""

    def __init__(self, names: Sequence[str]) -> None:
        self.names = tuple(names)
        self._before = dict.fromkeys(self.names, 0.0)
        self.seconds = dict.fromkeys(self.names, 0.0)

    def take(self, now: Mapping[str, float]) -> list[float]:
        """Adds what came since the line before."""
        for name, value in now.items():
            self.seconds[name] += growth(self._before[name], value)
            self._before[name] = value
        return [self.seconds[name] for name in self.names]


class StreamMeasures:
    """One stream of one data flow."""

    def __init__(self, stream_number: int, most: int = MOST_SAMPLES) -> None:
        self.number = stream_number
        self.spans: list[SliceSpan] = []
        # The line before, if it found the stream at a slice.
        self._last_at: float | None = None
        self._states = _States(tuple(STREAM_STATES))
        self._counters = Track(len(_STREAM_COUNTERS), most)
        self._seconds = Track(len(STREAM_STATES), most)

    def take(self, time: float, line: Document) -> None:
        """Takes over a member of `streams`."""
        stages = document(line, "stages")
        now = {
            state: sum(number(stages, *counter) or 0.0 for counter in counters)
            for state, counters in STREAM_STATES.items()
        }
        # That, too, counts as waiting for output.
        now["wait_slice"] = number(line, "wait_slice_seconds") or 0.0
        now["wait_destination"] = max(0.0, now["wait_destination"] - now["wait_slice"])
        self._seconds.add(time, self._states.take(now))
        self._counters.add(time, [number(line, name) for name in _STREAM_COUNTERS])
        self._span(time, whole(line, "slice"), whole(line, "file"))

    def close(self) -> None:
        """No more lines come."""
        self._counters.close()
        self._seconds.close()

    def curve(self, name: str, start: float | None = None) -> Curve:
        """One of the counters `bytes`, `rows`, `slices`, `cpu_seconds`, `run_queue_seconds`."""
        return self._counters.curve(_STREAM_COUNTERS.index(name), start)

    def last(self, name: str) -> float | None:
        """The latest value of a counter."""
        return self._counters.last(_STREAM_COUNTERS.index(name))

    def state_curves(self, start: float | None = None) -> dict[str, Curve]:
        """Seconds in each state."""
        return {name: self._seconds.curve(index, start) for index, name in enumerate(STREAM_STATES)}

    def state_seconds(self) -> dict[str, float]:
        """Seconds in each state until the last line."""
        return dict(self._states.seconds)

    def ended_at(self) -> float | None:
        """When the last slice that it worked on had ended, as far as lines tell; None if there was none."""
        return self.spans[-1].end if self.spans else None

    def _span(self, time: float, slice_number: int | None, file: int | None) -> None:
        # It has worked on a slice until the line that finds it at another one, or at none.
        if self.spans and self.spans[-1].end == self._last_at:
            self.spans[-1].end = time
        self._last_at = time if slice_number is not None else None
        if slice_number is None or (self.spans and self.spans[-1].slice == slice_number):
            return
        if len(self.spans) >= _MOST_SPANS:
            # Every other one becomes a part of the one before it.
            for kept, dropped in zip(self.spans[::2], self.spans[1::2], strict=False):
                kept.end = dropped.end
            self.spans = self.spans[::2]
        self.spans.append(SliceSpan(slice_number, file, time))


class WriterMeasures:
    """One connection that takes rows. `destination`: which one of several it is of; `place`: the name of the package's
    connection, if there are several.
    """

    def __init__(self, writer_number: int, destination: str | None = None, most: int = MOST_SAMPLES) -> None:
        self.number = writer_number
        self.destination = destination
        self.place: str | None = None
        self.transport: str | None = None
        self.process_id: int | None = None
        self.tcp: Document = {}
        self._states = _States(tuple(WRITER_STATES))
        self._seconds = Track(len(WRITER_STATES), most)
        self._bytes = Track(1, most)

    def take(self, time: float, line: Document) -> None:
        """Takes over a member of `writers`."""
        self.place = text(line, "connection") or self.place
        self.transport = text(line, "transport") or self.transport
        self.process_id = whole(line, "process_id")
        self.tcp = document(line, "tcp") or self.tcp
        now = {state: number(line, counter) or 0.0 for state, counter in WRITER_STATES.items()}
        self._seconds.add(time, self._states.take(now))
        self._bytes.add(time, [number(line, "bytes")])

    def close(self) -> None:
        """No more lines come."""
        self._seconds.close()
        self._bytes.close()

    def bytes(self, start: float | None = None) -> Curve:
        """Bytes of the wire protocol."""
        return self._bytes.curve(0, start)

    def state_curves(self, start: float | None = None) -> dict[str, Curve]:
        """Seconds in each state."""
        return {name: self._seconds.curve(index, start) for index, name in enumerate(WRITER_STATES)}

    def state_seconds(self) -> dict[str, float]:
        """Seconds in each state until the last line."""
        return dict(self._states.seconds)


class FlowMeasures:
    """One data flow of one attempt."""

    def __init__(self, attempt: int, task: str, most: int = MOST_SAMPLES) -> None:
        self.attempt = attempt
        self.task = task
        self.streams: dict[int, StreamMeasures] = {}
        # By the destination, if there are several, and the number: each destination has a writer 1.
        self.writers: dict[tuple[str, int], WriterMeasures] = {}
        self.last_line: Mapping[str, Any] = {}
        self._most = most
        self._counters = Track(len(_FLOW_COUNTERS), most)
        self._first: float | None = None
        self._last: float | None = None
        # Seconds between the first two lines.
        self.step: float | None = None

    def take(self, time: float, line: Document) -> None:
        """Takes over a line."""
        if self._first is None:
            self._first = time
        elif self.step is None and time > self._first:
            self.step = time - self._first
        self._last = time
        self.last_line = {name: value for name, value in line.items() if isinstance(value, int | float) and name != "t"}
        self._counters.add(time, [number(line, name) for name in _FLOW_COUNTERS])
        for item in documents(line, "streams"):
            own = whole(item, "number")
            if own is not None:
                self.streams.setdefault(own, StreamMeasures(own, self._most)).take(time, item)
        for item in documents(line, "writers"):
            own, destination = whole(item, "number"), text(item, "destination")
            if own is not None:
                known = self.writers.setdefault((destination or "", own), WriterMeasures(own, destination, self._most))
                known.take(time, item)

    def close(self) -> None:
        """No more lines come."""
        self._counters.close()
        for stream in self.streams.values():
            stream.close()
        for writer in self.writers.values():
            writer.close()

    @property
    def begin(self) -> float:
        """Seconds of the attempt at its first line."""
        return self._first or 0.0

    @property
    def end(self) -> float:
        """Seconds of the attempt at its last line."""
        return self._last or 0.0

    @property
    def stride(self) -> int:
        """One of how many lines is kept."""
        return self._counters.stride

    def curve(self, name: str, start: float | None = None) -> Curve:
        """One of the counters `bytes_read`, `source_bytes_read`, `rows_read`, `rows_rejected`."""
        return self._counters.curve(_FLOW_COUNTERS.index(name), start)

    def state_seconds(self) -> Counter[str]:
        """Seconds of all streams in each state."""
        total: Counter[str] = Counter()
        for stream in self.streams.values():
            total.update(stream.state_seconds())
        return total
