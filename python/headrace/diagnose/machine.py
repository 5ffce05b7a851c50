"""Who had the CPUs of this machine."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from headrace.diagnose.window import Window

_FULL_SHARE: Final = 0.88
_THROTTLED_SHARE: Final = 0.10
_STOLEN_SHARE: Final = 0.10
_SIDE_SHARE: Final = 0.25


@dataclass(frozen=True)
class CpuShares:
    """`busy`: of all CPUs that this process may use. The others are parts of that busy time: `streams` (this process,
    but for engines in it), `destination` (engines in this process, and servers on this machine), of that `engines`, and
    `others`. All 0 to 1.
    """

    cpus: float
    busy: float
    streams: float
    destination: float
    engines: float
    others: float
    taken_away: str | None

    @property
    def is_full(self) -> bool:
        """Whether somebody who wants a CPU has to wait for one."""
        return self.busy >= _FULL_SHARE or self.taken_away is not None

    @property
    def are_shared(self) -> bool:
        """Whether loader and destination fill them together."""
        return self.is_full and min(self.streams, self.destination) >= _SIDE_SHARE and self.others < _SIDE_SHARE


def cpu_shares(window: Window) -> CpuShares | None:
    """None where the machine was not measured."""
    machine = window.machine
    if machine is None:
        return None
    used = max(machine.busy, 1e-9)
    streams = sum(stream.cpu or 0.0 for stream in window.streams)
    server = sum(server.cpu or 0.0 for server in window.local_servers)
    engine = max(0.0, machine.process - streams) if window.engines else 0.0
    own = machine.process + server
    return CpuShares(
        cpus=machine.cpus,
        busy=machine.busy_share,
        streams=min(1.0, (machine.process - engine) / used),
        destination=min(1.0, (server + engine) / used),
        engines=min(1.0, engine / used),
        others=max(0.0, min(1.0, (machine.busy - own) / used)),
        taken_away=_taken_away(window),
    )


def _taken_away(window: Window) -> str | None:
    machine = window.machine
    assert machine is not None
    throttled = machine.throttled / machine.seconds
    # The kernel adds up the times of all CPUs.
    if throttled >= _THROTTLED_SHARE * machine.cpus:
        return f"a quota of its control group took {throttled:.1f} CPUs away from this process"
    stolen = machine.steal / (machine.seconds * machine.cpus)
    if stolen >= _STOLEN_SHARE:
        return f"the host gave {stolen:.0%} of the CPUs to other machines"
    return None
