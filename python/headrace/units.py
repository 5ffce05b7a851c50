"""Quantities as people read them. One place, so that a rate looks the same in progress, accounts and plans.

Sizes are decimal (1 MB = 1,000,000 bytes), as disks and networks are sold.
"""

from __future__ import annotations

MEGABYTE = 1_000_000


def count(value: int) -> str:
    """A whole number with thousands separators: 6,001,215."""
    return f"{value:,}"


def size(size_bytes: int) -> str:
    """A size with three or four digits: `981 B`, `77.1 MB`, `1.07 GB`."""
    if size_bytes < 1_000:
        return f"{size_bytes} B"
    value = float(size_bytes)
    for unit in ("kB", "MB", "GB", "TB"):
        value /= 1_000
        if value < 999.5 or unit == "TB":
            break
    decimals = 2 if value < 9.995 else 1 if value < 99.95 else 0
    return f"{value:,.{decimals}f} {unit}"


def duration(seconds: float) -> str:
    """A duration: `0.42 s`, `12.3 s`, `3 min 05 s`, `2 h 07 min`."""
    if seconds < 9.995:
        return f"{seconds:.2f} s"
    if seconds < 99.95:
        return f"{seconds:.1f} s"
    whole_minutes, rest_seconds = divmod(round(seconds), 60)
    if whole_minutes < 60:
        return f"{whole_minutes} min {rest_seconds:02d} s"
    hours, minutes = divmod(whole_minutes, 60)
    return f"{hours} h {minutes:02d} min"


def remaining(seconds: float) -> str:
    """An estimate of the time left: whole seconds, because more digits would promise too much."""
    whole = max(1, round(seconds))
    return f"{whole} s" if whole < 100 else duration(whole)


def clock(seconds: float) -> str:
    """A duration in few characters, for narrow columns: `0:07`, `9:17`, `2:07:33`."""
    minutes, rest_seconds = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest_seconds:02d}" if hours else f"{minutes}:{rest_seconds:02d}"


def megabytes_per_second(size_bytes: float, seconds: float) -> str:
    """A rate in MB/s without the unit; `-` when no time has passed."""
    if seconds <= 0:
        return "-"
    value = size_bytes / MEGABYTE / seconds
    return f"{value:,.1f}" if value < 99.95 else f"{value:,.0f}"


def per_second(amount: float, seconds: float) -> str:
    """A rate of things per second without the unit; `-` when no time has passed."""
    return f"{amount / seconds:,.0f}" if seconds > 0 else "-"


def plural(amount: int, noun: str, plural_form: str | None = None) -> str:
    """`1 file`, `8 files`, `2 boundaries`."""
    return f"{count(amount)} {noun if amount == 1 else plural_form or noun + 's'}"
