"""CPU time of the machine: /proc/stat."""

from __future__ import annotations

import os
from collections.abc import Collection
from typing import Final

from headrace.machine.files import whole_number

TICKS_PER_SECOND: Final = os.sysconf("SC_CLK_TCK")
CPU_STATES: Final = ("user", "system", "idle", "iowait", "steal")
# Columns of a line, and the state to which each belongs. Time of guests is in `user` and `nice` already.
_COLUMNS: Final = ("user", "user", "system", "idle", "iowait", "system", "system", "steal")


def parse_cpu_seconds(text: str, cpus: Collection[int]) -> dict[int, tuple[float, ...]] | None:
    """Seconds in each of CPU_STATES since the machine has started, by number, of those of `cpus` that are online."""
    found = {}
    for line in text.splitlines():
        name, *words = line.split() or [""]
        number = whole_number(name[3:]) if name.startswith("cpu") else None
        if number is None or number not in cpus:
            continue
        ticks = dict.fromkeys(CPU_STATES, 0)
        for state, word in zip(_COLUMNS, words, strict=False):
            count = whole_number(word)
            if count is None:
                return None
            ticks[state] += count
        found[number] = tuple(ticks[state] / TICKS_PER_SECOND for state in CPU_STATES)
    return found or None


def parse_boot_time(text: str) -> int | None:
    """When the machine has started, in seconds since 1970."""
    for line in text.splitlines():
        if line.startswith("btime "):
            return whole_number(line[len("btime ") :].strip())
    return None
