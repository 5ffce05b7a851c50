"""All that metrics.jsonl tells, taken over line by line: the file itself may be larger than memory."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from headrace.report.flow_measures import FlowMeasures
from headrace.report.json_files import has_no_end, line_notes, redacted, unreadable
from headrace.report.side_measures import DestinationMeasures, MachineMeasures
from headrace.report.tracks import MOST_SAMPLES
from headrace.report.values import text
from headrace.report.verdicts import Verdict, verdict_of
from headrace.run.metrics import Sample, read_samples


class Measures:
    """What was measured in a run, by attempts."""

    def __init__(self, most: int = MOST_SAMPLES) -> None:
        self.flows: dict[tuple[int, str], FlowMeasures] = {}
        self.machines: dict[int, MachineMeasures] = {}
        self.destinations: dict[tuple[int, str, str], DestinationMeasures] = {}
        self.verdicts: list[Verdict] = []
        # The last moment of each attempt.
        self.seconds: dict[int, float] = {}
        self._most = most
        self._takers: dict[str, Callable[[Sample], bool]] = {
            "flow": self._flow,
            "machine": self._machine,
            "destination": self._destination,
            "verdict": self._verdict,
        }

    def take(self, sample: Sample) -> bool:
        """Takes over a line; False for one that is damaged. Kinds that are not known yet are none of ours."""
        taker = self._takers.get(sample.kind)
        if taker is None:
            return True
        if sample.t < 0 or sample.attempt < 1 or not taker(sample):
            return False
        self.seconds[sample.attempt] = max(sample.t, self.seconds.get(sample.attempt, 0.0))
        return True

    def close(self) -> None:
        """No more lines come."""
        for flow in self.flows.values():
            flow.close()
        for machine in self.machines.values():
            machine.close()
        for destination in self.destinations.values():
            destination.close()

    def _flow(self, sample: Sample) -> bool:
        if sample.task is None:
            return False
        key = (sample.attempt, sample.task)
        self.flows.setdefault(key, FlowMeasures(*key, self._most)).take(sample.t, sample.members)
        return True

    def _machine(self, sample: Sample) -> bool:
        self.machines.setdefault(sample.attempt, MachineMeasures(self._most)).take(sample.t, sample.members)
        return True

    def _destination(self, sample: Sample) -> bool:
        connection = text(sample.members, "connection")
        if sample.task is None or connection is None:
            return False
        key = (sample.attempt, sample.task, connection)
        own = self.destinations.setdefault(key, DestinationMeasures(*key, self._most))
        own.take(sample.t, redacted(dict(sample.members)))
        return True

    def _verdict(self, sample: Sample) -> bool:
        verdict = verdict_of(redacted(dict(sample.members)))
        if verdict is not None:
            self.verdicts.append(verdict)
        return verdict is not None


def read_measures(path: Path, notes: list[str]) -> Measures:
    """What the file tells; what is wrong with it goes into `notes`."""
    measures, damaged, is_damaged = Measures(), 0, False
    try:
        for sample in read_samples(path):
            is_damaged = sample is None or not measures.take(sample)
            damaged += is_damaged
    except FileNotFoundError:
        notes.append("There is no metrics.jsonl: nothing was measured while the run went on.")
    except OSError as error:
        notes.append(unreadable(path, error))
    measures.close()
    is_cut = is_damaged and has_no_end(path)
    notes += line_notes(path, damaged - is_cut, is_cut=is_cut)
    strides = [flow.stride for flow in measures.flows.values() if flow.stride > 1]
    if strides:
        notes.append(f"A long run: of the lines of metrics.jsonl one of {max(strides)} is drawn. Sums are exact.")
    return measures
