"""Memory of the machine: /proc/meminfo and /proc/vmstat."""

from __future__ import annotations

import os
from collections.abc import Collection
from typing import Final

from headrace.machine.files import whole_number

_PAGE_BYTES: Final = os.sysconf("SC_PAGE_SIZE")
_KILOBYTE: Final = 1024


def parse_memory(text: str) -> tuple[int | None, int | None]:
    """Bytes of all memory, and of that which programs could still get without swapping; old kernels do not say."""
    found = _numbers(text, ("MemTotal:", "MemAvailable:"))
    total, available = (found.get(name) for name in ("MemTotal:", "MemAvailable:"))
    return (
        None if total is None else total * _KILOBYTE,
        None if available is None else available * _KILOBYTE,
    )


def parse_swapped_bytes(text: str) -> int | None:
    """Bytes swapped in and out since the machine has started."""
    found = _numbers(text, ("pswpin", "pswpout"))
    pages_in, pages_out = found.get("pswpin"), found.get("pswpout")
    return None if pages_in is None or pages_out is None else (pages_in + pages_out) * _PAGE_BYTES


def _numbers(text: str, names: Collection[str]) -> dict[str, int | None]:
    """The first number of the lines that begin with one of these words."""
    lines = (line.split() for line in text.splitlines())
    return {words[0]: whole_number(words[1]) for words in lines if len(words) > 1 and words[0] in names}
