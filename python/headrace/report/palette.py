"""Colours, each for light and dark pages: those that stand side by side are told apart by colour-blind people too.

A test simulates protanopia, deuteranopia and tritanopia and measures the distances. Colours are never all that tells
parts apart: legends follow the order of the parts, and every chart has a table.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True)
class Colour:
    """One colour on both kinds of pages."""

    light: str
    dark: str


_SKY: Final = Colour("#4aa3df", "#7cc4f2")
_BLUE: Final = Colour("#0b5a9e", "#2f7fc9")
_GREEN: Final = Colour("#00936b", "#1fae86")
_AMBER: Final = Colour("#d79a00", "#f0bd3c")
_RED: Final = Colour("#c2410c", "#ee6c34")
_PINK: Final = Colour("#c478a6", "#dd9cc4")
_VIOLET: Final = Colour("#6a4c9c", "#a98fe0")
_GREY: Final = Colour("#ccd4db", "#34414c")
_INK: Final = Colour("#3c4a57", "#f2f6f9")

# Of a stream and of a writer, from work to waiting.
STATES: Final[Mapping[str, Colour]] = {
    "read": _SKY,
    "parse": _BLUE,
    "transform": _GREEN,
    "write": _AMBER,
    "wait_destination": _RED,
    "wait_block": _PINK,
    "wait_slice": _GREY,
    "send": _AMBER,
    "wait_rows": _GREY,
    "wait_socket": _RED,
    "wait_answer": _PINK,
}
# For series that are told apart by their names alone; neighbours differ in lightness as well.
SERIES: Final = (_BLUE, _SKY, _RED, _AMBER, _GREEN, _PINK, _INK, _GREY)
CPU: Final[Mapping[str, Colour]] = {"user": _BLUE, "system": _SKY, "iowait": _AMBER, "steal": _RED}
TASKS: Final[Mapping[str, Colour]] = {"success": _BLUE, "failed": _RED, "cancelled": _AMBER, "open": _SKY}
LIMITS: Final[Mapping[str, Colour]] = {
    "source_read": _SKY,
    "parse": _BLUE,
    "transform": _GREEN,
    "encode": _AMBER,
    "network": _PINK,
    "receive_window": _PINK,
    "client_cpu": _INK,
    "shared_cpu": _INK,
    "too_many_streams": _INK,
    "memory": _INK,
    "destination_cpu": _RED,
    "destination_io": _AMBER,
    "checkpoint": _GREEN,
    "log": _VIOLET,
    "locks": _VIOLET,
}
_GROUPS: Final = {"state": STATES, "cpu": CPU, "task": TASKS, "limit": LIMITS}


def variables(*, dark: bool) -> str:
    """All colours as declarations of custom properties: `--state-read`, `--series-0`."""
    named = {f"{group}-{name}": colour for group, colours in _GROUPS.items() for name, colour in colours.items()}
    named |= {f"series-{number}": colour for number, colour in enumerate(SERIES)}
    return "".join(
        f"--{name.replace('_', '-')}:{colour.dark if dark else colour.light};" for name, colour in named.items()
    )


def fill(group: str, name: str | int) -> str:
    """The value of a property that takes this colour."""
    return f"var(--{group}-{str(name).replace('_', '-')},var(--muted))"
