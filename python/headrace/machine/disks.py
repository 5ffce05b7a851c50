"""Disks: /proc/diskstats."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from headrace.machine.files import whole_number

# The kernel's unit there, whatever the disk's own is.
_SECTOR_BYTES: Final = 512
_NAME, _READ_SECTORS, _WRITTEN_SECTORS, _BUSY_MILLISECONDS = 2, 5, 9, 12


def parse_disks(text: str, whole_disks: Collection[str] | None) -> dict[str, dict[str, float]]:
    """`read_bytes`, `written_bytes` and `busy_seconds` by name, of those that were ever used.

    `whole_disks`: names of what is no partition, whose numbers are in those of its disk too; None: not known.
    """
    disks = {}
    for line in text.splitlines():
        words = line.split()
        if len(words) <= _BUSY_MILLISECONDS or (whole_disks is not None and words[_NAME] not in whole_disks):
            continue
        numbers = [whole_number(words[place]) for place in (_READ_SECTORS, _WRITTEN_SECTORS, _BUSY_MILLISECONDS)]
        read, written, busy = numbers
        if read is None or written is None or busy is None or not any(numbers):
            continue
        disks[words[_NAME]] = {
            "read_bytes": read * _SECTOR_BYTES,
            "written_bytes": written * _SECTOR_BYTES,
            "busy_seconds": busy / 1000,
        }
    return disks
