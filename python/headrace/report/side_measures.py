"""What metrics.jsonl tells beside the data flows: the machine, and the destination's side."""

from __future__ import annotations

from collections import Counter
from typing import Final

from headrace.report.tracks import MOST_SAMPLES, Curve, Track
from headrace.report.values import Document, document, documents, number, numbers, text, texts, whole
from headrace.run.metrics import growth

CPU_STATES: Final = ("user", "system", "iowait", "steal", "idle")
_MACHINE: Final = (
    ("process", "cpu_seconds"),
    ("process", "run_queue_seconds"),
    ("process", "throttled_seconds"),
    ("process", "resident_bytes"),
    ("memory", "total_bytes"),
    ("memory", "available_bytes"),
    ("memory", "swapped_bytes"),
)
_DISK: Final = ("read_bytes", "written_bytes", "busy_seconds")
_NETWORK: Final = ("received_bytes", "sent_bytes")
_SIZES: Final = ("file_bytes", "wal_bytes", "spill_bytes")
_POSTGRES: Final = ("wal_bytes", "checkpoints_timed", "checkpoints_requested")


class MachineMeasures:
    """The machine in one attempt."""

    def __init__(self, most: int = MOST_SAMPLES) -> None:
        self.cpus: float | None = None
        self._most = most
        self._cpu = Track(len(CPU_STATES), most)
        self._own = Track(len(_MACHINE), most)
        self._disks: dict[str, Track] = {}
        self._networks: dict[str, Track] = {}

    def take(self, time: float, line: Document) -> None:
        """Takes over a line."""
        self.cpus = number(line, "cpus") or self.cpus
        self._cpu.add(time, [number(line, "cpu", name) for name in CPU_STATES])
        self._own.add(time, [number(line, *path) for path in _MACHINE])
        for member, names, tracks in (("disks", _DISK, self._disks), ("network", _NETWORK, self._networks)):
            for name, counters in document(line, member).items():
                track = tracks.setdefault(str(name), Track(len(names), self._most))
                track.add(time, [number(counters, counter) for counter in names])

    def close(self) -> None:
        """No more lines come."""
        for track in (self._cpu, self._own, *self._disks.values(), *self._networks.values()):
            track.close()

    def cpu(self, state: str) -> Curve:
        """Seconds of all CPUs in a state."""
        return self._cpu.curve(CPU_STATES.index(state))

    def process(self, counter: str) -> Curve:
        """A counter of the process."""
        return self._own.curve(_MACHINE.index(("process", counter)))

    def levels(self, *path: str) -> list[tuple[float, float]]:
        """Times and values of something that goes up and down."""
        return self._own.levels(_MACHINE.index((path[0], path[1])))

    def disks(self, counter: str) -> dict[str, Curve]:
        """A counter of each disk."""
        return {name: track.curve(_DISK.index(counter)) for name, track in self._disks.items()}

    def networks(self, counter: str) -> dict[str, Curve]:
        """A counter of each network interface."""
        return {name: track.curve(_NETWORK.index(counter)) for name, track in self._networks.items()}


class DestinationMeasures:
    """The side of one connection in one data flow."""

    def __init__(self, attempt: int, task: str, connection: str, most: int = MOST_SAMPLES) -> None:
        self.attempt = attempt
        self.task = task
        self.connection = connection
        self.type = ""
        self.denied: tuple[str, ...] = ()
        # How often looks found the sessions at something since the moment before: the time, and the counts.
        self.found: list[tuple[float, Counter[str]]] = []
        self._before: dict[int, dict[str, float]] = {}
        self._most = most
        self._sizes = Track(len(_SIZES), most)
        self._server = Track(len(_POSTGRES), most)

    def take(self, time: float, line: Document) -> None:
        """Takes over a line."""
        self.type = text(line, "type") or self.type
        self.denied = tuple(dict.fromkeys((*self.denied, *texts(line, "denied"))))
        if self.type == "duckdb":
            self._sizes.add(time, [number(line, name) for name in _SIZES])
            return
        self._server.add(time, [number(line, name) for name in _POSTGRES])
        looks: Counter[str] = Counter()
        for session in documents(line, "sessions"):
            own = whole(session, "process_id")
            if own is None:
                continue
            now = numbers(session, "found")
            before = self._before.get(own, {})
            self._before[own] = now
            for name, value in now.items():
                looks[name] += round(growth(before.get(name, 0.0), value))
        if looks:
            self.found.append((time, looks))
        if len(self.found) >= 2 * self._most:
            pairs = zip(self.found[::2], self.found[1::2], strict=True)
            self.found = [(later, first + second) for (_, first), (later, second) in pairs]

    def close(self) -> None:
        """No more lines come."""
        self._sizes.close()
        self._server.close()

    def sizes(self, name: str) -> list[tuple[float, float]]:
        """Times and sizes of the files of a DuckDB database."""
        return self._sizes.levels(_SIZES.index(name))

    def server(self, name: str) -> Curve:
        """A counter of a PostgreSQL server."""
        return self._server.curve(_POSTGRES.index(name))

    def waits(self) -> Counter[str]:
        """How often looks found the sessions at something, in all."""
        return sum((looks for _, looks in self.found), Counter[str]())
