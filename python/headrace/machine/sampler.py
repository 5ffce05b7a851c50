"""One look at this process and its machine: the `machine` line of docs/spec/metrics.md."""

from __future__ import annotations

import os
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping
from typing import Any, Final

from headrace.machine.control_groups import CpuGroups, find_cpu_groups, read_quota, read_throttled_seconds
from headrace.machine.cpu import CPU_STATES, parse_cpu_seconds
from headrace.machine.disks import parse_disks
from headrace.machine.files import names_in, read_text
from headrace.machine.memory import parse_memory, parse_swapped_bytes
from headrace.machine.network import parse_interfaces
from headrace.machine.pressure import parse_pressure
from headrace.machine.processes import parse_process_io, parse_process_stat, parse_schedstat
from headrace.machine.rising import Rising, RisingSum

_PRESSURES: Final = (("cpu", "some"), ("io", "some"), ("io", "full"), ("memory", "some"), ("memory", "full"))
_DECIMALS: Final = 6


def usable_cpus() -> Collection[int]:
    """Numbers of the CPUs that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return os.sched_getaffinity(0)
    return range(os.cpu_count() or 1)


class MachineSampler:
    """Looks again and again. Whatever cannot be read is None; no counter falls."""

    def __init__(
        self, proc: str = "/proc", sys: str = "/sys", cpus: Callable[[], Collection[int]] = usable_cpus
    ) -> None:
        self._proc = proc
        self._block_devices = f"{sys}/block"
        self._cpus = cpus
        self._groups = self._find_groups()
        self._cpu: RisingSum[int] = RisingSum(began_with_us=False)
        self._run_queue: RisingSum[str] = RisingSum(began_with_us=True)
        self._process = Rising()
        self._swapped = Rising()
        self._pressure = Rising()
        self._named: defaultdict[tuple[str, str], Rising] = defaultdict(Rising)

    def sample(self) -> dict[str, Any]:
        """The members behind `attempt`."""
        cpus = self._cpus()
        quota = None if self._groups is None else read_quota(self._groups)
        return {
            "cpus": float(len(cpus)) if quota is None else min(float(len(cpus)), round(quota, 3)),
            "cpu": self._cpu_seconds(cpus),
            "process": self._process_counters(),
            "memory": self._memory(),
            "disks": self._each("disks", parse_disks(self._text("diskstats") or "", self._whole_disks())),
            "network": self._each("network", parse_interfaces(self._text("net/dev") or "")),
            "pressure": self._pressures(),
        }

    def _text(self, name: str) -> str | None:
        return read_text(f"{self._proc}/{name}")

    def _find_groups(self) -> CpuGroups | None:
        memberships, mounts = self._text("self/cgroup"), self._text("self/mountinfo")
        return None if memberships is None or mounts is None else find_cpu_groups(memberships, mounts)

    def _cpu_seconds(self, cpus: Collection[int]) -> dict[str, float] | None:
        text = self._text("stat")
        seconds = None if text is None else parse_cpu_seconds(text, cpus)
        if seconds is None:
            return None
        return _rounded(dict(zip(CPU_STATES, self._cpu.sums(seconds), strict=True)))

    def _process_counters(self) -> dict[str, float | None]:
        stat = parse_process_stat(self._text("self/stat") or "")
        read_and_written = parse_process_io(self._text("self/io") or "")
        read, written = (None, None) if read_and_written is None else read_and_written
        counters = {
            "cpu_seconds": time.process_time(),
            "run_queue_seconds": self._run_queue_seconds(),
            "throttled_seconds": None if self._groups is None else read_throttled_seconds(self._groups),
            "disk_read_bytes": read,
            "disk_written_bytes": written,
            "major_faults": None if stat is None else stat.major_faults,
        }
        return {
            **_rounded(self._process.shown(counters)),
            "resident_bytes": None if stat is None else stat.resident_bytes,
        }

    def _run_queue_seconds(self) -> float | None:
        """Of all threads, those that have ended since the first look included."""
        folder = f"{self._proc}/self/task"
        texts = {thread: read_text(f"{folder}/{thread}/schedstat") for thread in names_in(folder)}
        waits = {
            thread: times[1:]
            for thread, text in texts.items()
            if text is not None and (times := parse_schedstat(text)) is not None
        }
        return self._run_queue.sums(waits)[0] if waits else None

    def _memory(self) -> dict[str, float | None]:
        total, available = parse_memory(self._text("meminfo") or "")
        swapped = self._swapped.shown({"swapped_bytes": parse_swapped_bytes(self._text("vmstat") or "")})
        return {"total_bytes": total, "available_bytes": available, **swapped}

    def _whole_disks(self) -> Collection[str] | None:
        return names_in(self._block_devices) or None

    def _each(self, kind: str, things: Mapping[str, Mapping[str, float]]) -> dict[str, dict[str, float]]:
        return {name: _rounded(self._named[kind, name].shown(counters)) for name, counters in things.items()}

    def _pressures(self) -> dict[str, float | None] | None:
        texts = {kind: self._text(f"pressure/{kind}") for kind in dict.fromkeys(kind for kind, _ in _PRESSURES)}
        totals = {kind: parse_pressure(text or "") for kind, text in texts.items()}
        if not any(totals.values()):
            return None
        return _rounded(self._pressure.shown({f"{kind}_{who}": totals[kind].get(who) for kind, who in _PRESSURES}))


def _rounded(values: Mapping[str, Any]) -> dict[str, Any]:
    """Without digits that nobody has measured."""
    return {name: round(value, _DECIMALS) if isinstance(value, float) else value for name, value in values.items()}
