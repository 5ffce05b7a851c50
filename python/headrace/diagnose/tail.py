"""The long tail: streams that end much later than the others, and why."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from headrace.diagnose.rule import judge_streams
from headrace.diagnose.verdict import Verdict
from headrace.diagnose.window import Sample, Window, window

_LEAST_SECONDS: Final = 2.0
_LEAST_SHARE: Final = 0.1
# Samples that are kept of a flow of any length, to look back from where a stream worked alone.
_KEPT_SAMPLES: Final = 64
# Late streams whose last sample is kept.
_KEPT_ENDS: Final = 16


@dataclass(frozen=True)
class SlowStream:
    """A stream that works on when most others have ended. `behind_seconds`: so much later than the median of them, and
    still counting if it `is_open`. `file`: the one it reads.
    """

    number: int
    file: str | None
    behind_seconds: float
    is_open: bool
    verdict: Verdict | None

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready form."""
        return {
            "number": self.number,
            "file": self.file,
            "behind_seconds": round(self.behind_seconds, 3),
            "limit": None if self.verdict is None else self.verdict.limit,
            "sentence": None if self.verdict is None else self.verdict.sentence,
        }


class Tail:
    """Watches when the streams of a data flow end. `files`: names of its files, in the order of the plan."""

    def __init__(self, files: Sequence[str] = ()) -> None:
        self._files = files
        self._ends: dict[int, float | None] = {}
        self._file: dict[int, object] = {}
        self._samples: list[Sample] = []
        self._skip = 1
        self._seen = 0
        self._last: Sample | None = None
        # Of late streams that have ended: where they were seen at work last.
        self._working: dict[int, Sample] = {}
        self._verdicts: dict[int, tuple[float, Verdict | None]] = {}

    def add(self, sample: Sample) -> None:
        """Takes the next sample."""
        for stream in sample.flow.get("streams") or ():
            number = int(stream["number"])
            if self._ends.get(number) is not None:
                continue
            if not stream.get("ended"):
                self._ends[number] = None
                self._file[number] = stream.get("file", self._file.get(number))
                continue
            self._ends[number] = sample.t
            if self._last is not None and len(self._working) < _KEPT_ENDS and self._middle() is not None:
                self._working[number] = self._last
        self._keep(sample)
        self._last = sample

    def slow(self) -> list[SlowStream]:
        """The slow ones, slowest first, once half of the streams have ended."""
        middle = self._middle()
        if middle is None or self._last is None:
            return []
        now = self._last.t
        least = max(_LEAST_SECONDS, _LEAST_SHARE * (now - self._samples[0].t))
        late = {number: (now if end is None else end) - middle for number, end in self._ends.items()}
        slow = [
            SlowStream(number, self._file_of(number), behind, self._ends[number] is None, self._verdict(number, middle))
            for number, behind in late.items()
            if behind > least
        ]
        return sorted(slow, key=lambda stream: -stream.behind_seconds)

    def _middle(self) -> float | None:
        """When half of the streams had ended; None as long as they have not."""
        ended = sorted(end for end in self._ends.values() if end is not None)
        if len(self._ends) < 2 or len(ended) * 2 < len(self._ends):
            return None
        return ended[(len(self._ends) - 1) // 2]

    def _verdict(self, number: int, middle: float) -> Verdict | None:
        """What limits a stream shows where it works alone. Asked anew when it has worked half as long again."""
        if self._ends[number] is not None and number in self._verdicts and number not in self._working:
            return self._verdicts[number][1]
        last = self._working.get(number, self._last)
        assert last is not None
        known = self._verdicts.get(number)
        if known is not None and last.t < middle + 1.5 * (known[0] - middle):
            return known[1]
        since = next((sample for sample in reversed(self._samples) if sample.t <= middle), self._samples[0])
        verdict = judge_streams(_of_stream(since, last, number)).get(number)
        self._verdicts[number] = (last.t, verdict)
        return verdict

    def _file_of(self, number: int) -> str | None:
        file = self._file.get(number)
        return self._files[file] if isinstance(file, int) and 0 <= file < len(self._files) else None

    def _keep(self, sample: Sample) -> None:
        if self._seen % self._skip == 0:
            self._samples.append(sample)
        self._seen += 1
        if len(self._samples) > _KEPT_SAMPLES:
            self._samples = self._samples[::2]
            self._skip *= 2


def _of_stream(since: Sample, last: Sample, number: int) -> Window:
    """The window of one stream alone: the others need not be compared."""

    def only(flow: Mapping[str, Any]) -> dict[str, Any]:
        return {**flow, "streams": [own for own in flow.get("streams") or () if own.get("number") == number]}

    return window(
        Sample(only(since.flow), since.machine, since.destinations),
        Sample(only(last.flow), last.machine, last.destinations),
    )
