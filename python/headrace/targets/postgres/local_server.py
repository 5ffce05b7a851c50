"""A server whose processes are those of this machine: how much CPU they get, exactly, from the kernel."""

from __future__ import annotations

import ipaddress
import socket
from dataclasses import dataclass
from typing import Final

from headrace.machine.cpu import parse_boot_time
from headrace.machine.files import names_in, read_text
from headrace.machine.processes import ProcessStat, read_process_stat, read_schedstat

ELSEWHERE: Final = "CPU and disk waits of its processes: they are on another machine"
HIDDEN: Final = "CPU and disk waits of its processes: the system does not show them (hidepid, or a container)"
_PROGRAMS: Final = ("postgres", "postmaster")
# The kernel tells the start of the machine in whole seconds, and the server that of a session a moment after its fork.
_START_TOLERANCE_SECONDS: Final = 3.0


@dataclass(frozen=True, slots=True)
class ProcessReading:
    """Seconds of one process. `run_queue_seconds`: it could have run, and waited for a CPU; `io_seconds`: it waited for
    reads from disks. None where the kernel does not count that.
    """

    cpu_seconds: float | None = None
    run_queue_seconds: float | None = None
    io_seconds: float | None = None


NOT_READ: Final = ProcessReading()


class LocalServer:
    """The processes of one server. `postmaster`: the parent of all of them."""

    def __init__(self, postmaster: int, proc: str) -> None:
        self._postmaster = postmaster
        self._proc = proc
        self._counts_io = (read_text(f"{proc}/sys/kernel/task_delayacct") or "").strip() == "1"

    def reading(self, process_id: int) -> ProcessReading | None:
        """Of a process of the server; None for one that has ended."""
        stat = read_process_stat(process_id, self._proc)
        if stat is None or stat.parent != self._postmaster:
            return None
        times = read_schedstat(process_id, self._proc)
        cpu, run_queue = (stat.cpu_seconds, None) if times is None else times
        # Before Linux 5.14 there is no switch: what has counted something counts.
        counts_io = self._counts_io or stat.block_io_seconds > 0
        return ProcessReading(cpu, run_queue, stat.block_io_seconds if counts_io else None)

    def checkpointer(self) -> int | None:
        """Its process, found by its title: ordinary roles are not told which one it is."""
        for name in names_in(self._proc):
            if name.isdecimal() and "checkpointer" in (read_text(f"{self._proc}/{name}/cmdline") or ""):
                stat = read_process_stat(int(name), self._proc)
                if stat is not None and stat.parent == self._postmaster:
                    return int(name)
        return None


def find_local_server(
    address: str | None, process_id: int, started_at: float, proc: str = "/proc"
) -> LocalServer | str:
    """The server of a session by the address it was reached at (None: a Unix socket), the process that serves it and
    since when (seconds since 1970); or why its processes cannot be looked at.

    An address of ours may be that of a container or a tunnel, where processes have other numbers: so the process must
    be a server's, and have started when it says.
    """
    if address is not None and not _is_own(address):
        return ELSEWHERE
    stat = read_process_stat(process_id, proc)
    if stat is None or not _is_postgres(stat, process_id, proc):
        return HIDDEN
    boot_time = parse_boot_time(read_text(f"{proc}/stat") or "")
    if boot_time is None or abs(boot_time + stat.start_seconds - started_at) > _START_TOLERANCE_SECONDS:
        return HIDDEN
    return LocalServer(stat.parent, proc)


def _is_postgres(stat: ProcessStat, process_id: int, proc: str) -> bool:
    """By its program, or by the title that a server gives its processes."""
    return stat.program in _PROGRAMS or (read_text(f"{proc}/{process_id}/cmdline") or "").startswith("postgres")


def _is_own(address: str) -> bool:
    """Whether an address with a port, `10.0.0.7:5432` or `[::1]:5432`, is one of this machine: then, and only then, the
    system lets us bind to it.
    """
    host = address.rpartition(":")[0].strip("[]")
    try:
        family = socket.AF_INET6 if ipaddress.ip_address(host.partition("%")[0]).version == 6 else socket.AF_INET
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.bind((host, 0))
    except (OSError, ValueError):
        return False
    return True
