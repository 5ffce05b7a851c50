"""Processes: /proc/PID/stat, schedstat and io."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Final

from headrace.machine.cpu import TICKS_PER_SECOND
from headrace.machine.files import read_text, whole_number

_PAGE_BYTES: Final = os.sysconf("SC_PAGE_SIZE")
_NANOSECONDS: Final = 1_000_000_000
# Fields of /proc/PID/stat behind the name of the program, counted from the state, which is proc(5)'s field 3.
_PARENT, _MAJOR_FAULTS, _USER, _SYSTEM, _START, _RESIDENT, _BLOCK_DELAY = 1, 9, 11, 12, 19, 21, 39


@dataclass(frozen=True, slots=True)
class ProcessStat:
    """What /proc/PID/stat tells. `start_seconds`: since the machine has started; `block_io_seconds`: waited for reads
    from disks, 0 also where the kernel does not count that.
    """

    program: str
    parent: int
    major_faults: int
    cpu_seconds: float
    start_seconds: float
    resident_bytes: int
    block_io_seconds: float


def parse_process_stat(text: str) -> ProcessStat | None:
    """The stat of a process. Its program may be called anything, `) R 1 (` too."""
    opened, closed = text.find("("), text.rfind(")")
    if not 0 < opened < closed:
        return None
    fields = text[closed + 1 :].split()
    try:
        return ProcessStat(
            program=text[opened + 1 : closed],
            parent=int(fields[_PARENT]),
            major_faults=int(fields[_MAJOR_FAULTS]),
            cpu_seconds=(int(fields[_USER]) + int(fields[_SYSTEM])) / TICKS_PER_SECOND,
            start_seconds=int(fields[_START]) / TICKS_PER_SECOND,
            resident_bytes=int(fields[_RESIDENT]) * _PAGE_BYTES,
            block_io_seconds=int(fields[_BLOCK_DELAY]) / TICKS_PER_SECOND,
        )
    except (IndexError, ValueError):
        return None


def parse_schedstat(text: str) -> tuple[float, float] | None:
    """Seconds on a CPU, and seconds in which the thread could have run and waited for one. None also for the zeros of
    a kernel that does not count: whoever reads has run.
    """
    numbers = [whole_number(word) for word in text.split()]
    if len(numbers) < 2 or numbers[0] is None or numbers[1] is None or not any(numbers):
        return None
    return numbers[0] / _NANOSECONDS, numbers[1] / _NANOSECONDS


def parse_process_io(text: str) -> tuple[int, int] | None:
    """Bytes read from disks, and written to them or to be written."""
    found = {}
    for line in text.splitlines():
        name, _, word = line.partition(":")
        found[name] = whole_number(word.strip())
    read, written = found.get("read_bytes"), found.get("write_bytes")
    return None if read is None or written is None else (read, written)


def read_process_stat(process_id: int, proc: str = "/proc") -> ProcessStat | None:
    """Of a living process that we may look at."""
    text = read_text(f"{proc}/{process_id}/stat")
    return None if text is None else parse_process_stat(text)


def read_schedstat(process_id: int, proc: str = "/proc") -> tuple[float, float] | None:
    """Of the first thread of a process, for most servers its only one."""
    text = read_text(f"{proc}/{process_id}/schedstat")
    return None if text is None else parse_schedstat(text)
