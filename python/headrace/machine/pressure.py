"""Pressure stall information: /proc/pressure/*."""

from __future__ import annotations

from headrace.machine.files import whole_number

_MICROSECONDS = 1_000_000


def parse_pressure(text: str) -> dict[str, float]:
    """Seconds since the machine has started in which `some` task waited, or all of them did (`full`)."""
    found = {}
    for line in text.splitlines():
        words = line.split()
        total = next((word[len("total=") :] for word in words if word.startswith("total=")), "")
        microseconds = whole_number(total)
        if microseconds is not None and words[0] in ("some", "full"):
            found[words[0]] = microseconds / _MICROSECONDS
    return found
