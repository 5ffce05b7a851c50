"""Figures and names as they are read in the report."""

from __future__ import annotations

from pathlib import PurePath
from typing import Final

from headrace import units

STATE_NAMES: Final = {
    "read": "read",
    "parse": "parse",
    "transform": "transform",
    "write": "encode and send",
    "wait_destination": "waits for the destination",
    "wait_block": "waits for a free block",
    "wait_slice": "waits for a slice",
    "send": "sends",
    "wait_rows": "waits for rows",
    "wait_socket": "socket takes nothing",
    "wait_answer": "waits for an answer",
}
WAIT_NAMES: Final = {"cpu": "on a CPU", "client": "waits for rows (ClientRead)", "idle": "idle"}
NOTHING: Final = "-"
# Endings of names of figures, and how their values are shown.
_RATE: Final = "_megabytes_per_second"
_SMALLEST_PERCENT: Final = 0.01
_FACTORS: Final = ("share", "fraction")
_ABBREVIATIONS: Final = {"cpu": "CPU", "cpus": "CPUs", "io": "I/O", "tcp": "TCP", "wal": "WAL", "rtt": "RTT"}


def percent(share: float) -> str:
    """`47 %`; `0.3 %` and `0.04 %` where fewer digits would say nothing."""
    value = 100 * share
    if 0 < value < _SMALLEST_PERCENT:
        return f"below {_SMALLEST_PERCENT} %"
    decimals = 0 if value >= 9.95 or value == 0 else 1 if value >= 0.095 else 2
    return f"{value:.{decimals}f} %"


def rate(megabytes_per_second: float) -> str:
    """`306 MB/s`."""
    value = megabytes_per_second
    return f"{value:,.1f} MB/s" if value < 99.95 else f"{value:,.0f} MB/s"


def size(size_bytes: float | None) -> str:
    """`1.07 GB`."""
    return NOTHING if size_bytes is None else units.size(max(0, int(size_bytes)))


def count(value: float | None) -> str:
    """`6,001,215`."""
    return NOTHING if value is None else units.count(int(value))


def duration(seconds: float | None) -> str:
    """`3 min 05 s`."""
    return NOTHING if seconds is None else units.duration(max(0.0, seconds))


def evidence(name: str, value: float) -> tuple[str, str]:
    """A figure of a verdict: what it is called, and its value with the unit that its name says; without one up to 1
    it is a share.
    """
    if name.endswith(_RATE):
        return _words(name.removesuffix(_RATE)) or "rate", rate(value)
    stem, _, unit = name.rpartition("_")
    if unit == "seconds":
        return _words(stem) or "time", duration(value) if value >= 0.1 or value <= 0 else f"{value * 1e3:.3g} ms"
    if unit == "bytes":
        return _words(stem) or "size", size(value)
    if unit == "percent":
        return _words(stem), percent(value / 100)
    if unit in _FACTORS:
        return _words(stem), percent(value)
    if 0 <= value <= 1:
        return _words(name), percent(value)
    return _words(name), count(value) if value == int(value) else f"{value:,.2f}"


def file_name(path: str) -> str:
    """The last part of a path."""
    return PurePath(path).name or path


def _words(name: str) -> str:
    return " ".join(_ABBREVIATIONS.get(word, word) for word in name.split("_") if word)
