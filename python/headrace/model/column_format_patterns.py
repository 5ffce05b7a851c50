"""Patterns of dates and times, `dd.MM.yyyy HH:mm`: a closed table of letters."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, Literal

from headrace.model.settings import own_error
from headrace.model.suggest import quote

MAXIMUM_FRACTION_DIGITS: Final = 9
MAXIMUM_PATTERN_CHARACTERS: Final = 60

Kind = Literal["literal", "number", "month_name", "fraction", "optional_fraction", "half_day", "offset", "utc"]
Part = Literal["year", "month", "day", "hour", "minute", "second", "fraction", "half_day", "offset"]

LETTERS: Final = "d dd M MM MMM MMMM yy yyyy H HH h hh m mm s ss f..F.. tt zzz Z"
_EXPECTED: Final = f"a pattern of {LETTERS}, with all other letters in quotes"


@dataclass(frozen=True)
class Element:
    """A piece of a pattern. `text`: of a literal, or the mark before an optional fraction. `least` to `most`: digits;
    of a month's name 3 or 4 letters. `is_half_day`: an hour of 1 to 12.
    """

    kind: Kind
    part: Part | None = None
    text: str = ""
    least: int = 0
    most: int = 0
    is_half_day: bool = False

    @property
    def is_digits(self) -> bool:
        """Whether it begins with a digit."""
        return self.kind in ("number", "fraction")


def _number(part: Part, least: int, most: int, *, is_half_day: bool = False) -> Element:
    return Element("number", part, least=least, most=most, is_half_day=is_half_day)


_TABLE: Final[dict[str, Element]] = {
    "d": _number("day", 1, 2),
    "dd": _number("day", 2, 2),
    "M": _number("month", 1, 2),
    "MM": _number("month", 2, 2),
    "MMM": Element("month_name", "month", most=3),
    "MMMM": Element("month_name", "month", most=4),
    "yy": _number("year", 2, 2),
    "yyyy": _number("year", 4, 4),
    "H": _number("hour", 1, 2),
    "HH": _number("hour", 2, 2),
    "h": _number("hour", 1, 2, is_half_day=True),
    "hh": _number("hour", 2, 2, is_half_day=True),
    "m": _number("minute", 1, 2),
    "mm": _number("minute", 2, 2),
    "s": _number("second", 1, 2),
    "ss": _number("second", 2, 2),
    "tt": Element("half_day", "half_day"),
    "zzz": Element("offset", "offset"),
    "Z": Element("utc", "offset"),
}
# What other programs write, for hints.
_ELSEWHERE: Final = {
    "Y": "y", "D": "d", "S": "f", "a": "tt", "A": "tt", "K": "zzz", "z": "zzz", "X": "zzz", "x": "zzz", "n": "m",
}  # fmt: skip
_TOKEN: Final = re.compile(
    r"'(?P<single>[^']*)'|\"(?P<double>[^\"]*)\"|(?P<letter>[A-Za-z])(?P=letter)*|(?P<other>.)", re.S
)


def parse_pattern(pattern: str) -> tuple[Element, ...]:
    """The pieces of a pattern. Raises an own error for what means nothing, or two things."""
    if not 0 < len(pattern) <= MAXIMUM_PATTERN_CHARACTERS:
        raise own_error(
            f"a pattern has {len(pattern)} characters", expected=f"1 to {MAXIMUM_PATTERN_CHARACTERS} characters"
        )
    elements: list[Element] = []
    for match in _TOKEN.finditer(pattern):
        token = match[0]
        if match["letter"] is None:
            literal = next(text for text in (match["single"], match["double"], match["other"]) if text is not None)
            if match["other"] in ("'", '"'):
                raise _bad(pattern, f"the quote {token} is not closed")
            _add_literal(elements, pattern, literal)
        elif match["letter"] in "fF":
            elements.append(_fraction(elements, pattern, token))
        elif token in _TABLE:
            elements.append(_TABLE[token])
        else:
            raise _bad(pattern, f"`{token}` means nothing", _hint(token))
    _check_neighbours(elements, pattern)
    _check_together(elements, pattern)
    return tuple(elements)


def _bad(pattern: str, what: str, hint: str | None = None, expected: str = _EXPECTED) -> Exception:
    return own_error(f"the pattern {quote(pattern)}: {what}", expected=expected, hint=hint)


def _hint(token: str) -> str:
    letter = token[0]
    if letter in "yY":
        return "Write `yyyy` for a year of four digits, `yy` for one of two."
    if letter in _ELSEWHERE:
        return f"Write `{_ELSEWHERE[letter]}`, or `'{token}'` for the text itself."
    near = next((known for known in _TABLE if known[0] == letter), None)
    return (
        f"Write `'{token}'` for the text itself."
        if near is None
        else f"Did you mean `{near * 2 if len(near) < 2 else near}`?"
    )


def _add_literal(elements: list[Element], pattern: str, text: str) -> None:
    if any(character.isascii() and (character.isdigit() or not character.isprintable()) for character in text):
        raise _bad(
            pattern, f"{quote(text)} holds a digit or a control character", expected="literal texts without digits"
        )
    if elements and elements[-1].kind == "literal":
        text = elements.pop().text + text
    if text:
        elements.append(Element("literal", text=text))


def _fraction(elements: list[Element], pattern: str, token: str) -> Element:
    if len(token) > MAXIMUM_FRACTION_DIGITS:
        raise _bad(pattern, f"`{token}` has {len(token)} letters", expected=f"at most {MAXIMUM_FRACTION_DIGITS}")
    if token[0] == "f":
        return Element("fraction", "fraction", least=len(token), most=len(token))
    before = elements.pop().text if elements and elements[-1].kind == "literal" else ""
    if not before.endswith((".", ",")):
        raise _bad(
            pattern,
            f"`{token}` follows neither a point nor a comma",
            f"Write `{token.lower()}` if the digits are always there.",
            expected="a point or a comma before F, which is left out together with the digits",
        )
    if before[:-1]:
        elements.append(Element("literal", text=before[:-1]))
    return Element("optional_fraction", "fraction", text=before[-1], least=0, most=len(token))


def _check_neighbours(elements: list[Element], pattern: str) -> None:
    """Pieces of which nobody could say where one ends and the next begins."""
    for first, second in pairwise(elements):
        varies = first.kind in ("number", "optional_fraction") and first.least < first.most
        is_open = (varies and second.is_digits) or (
            first.kind == "offset" and (second.is_digits or second.text.startswith(":"))
        )
        if is_open:
            raise _bad(
                pattern,
                "a piece of changing length is followed by digits",
                "Write `dd`, `MM`, `HH`, `mm` or `ss` if there are always two digits.",
                expected="something else than digits between them",
            )


def _check_together(elements: Iterable[Element], pattern: str) -> None:
    parts = [element.part for element in elements if element.part is not None]
    twice = next((part for part in parts if parts.count(part) > 1), None)
    if twice is not None:
        raise _bad(
            pattern, f"it gives the {twice.replace('_', ' ')} twice", expected="each part of a date or time once"
        )
    has_half_day_hour = any(element.is_half_day for element in elements)
    if has_half_day_hour != ("half_day" in parts):
        what = "`h` or `hh` without `tt`" if has_half_day_hour else "`tt` without `h` or `hh`"
        raise _bad(
            pattern,
            what,
            "Write `H` or `HH` for hours from 0 to 23.",
            expected="`h` or `hh` with `tt`, for hours from 1 to 12 with AM or PM",
        )
    order: tuple[Part, ...] = ("hour", "minute", "second", "fraction")
    for larger, smaller in pairwise(order):
        if smaller in parts and larger not in parts:
            raise _bad(
                pattern,
                f"it gives the {smaller} without the {larger}",
                "In a pattern `M` is the month and `m` the minute." if smaller == "minute" else None,
                expected=f"a pattern with the {larger}",
            )
    clock = [part for part in parts if part in order]
    if clock != sorted(clock, key=order.index):
        raise _bad(
            pattern,
            f"it gives the {clock[0]} before the {order[0] if order[0] in clock[1:] else clock[1]}",
            "In a pattern `M` is the month and `m` the minute." if "minute" in clock else None,
            expected="hour, minute, second and fraction in this order",
        )
    missing = [part for part in ("year", "month", "day") if part not in parts]
    if 0 < len(missing) < 3:
        raise _bad(
            pattern,
            f"it gives a date without the {missing[0]}",
            "In a pattern `M` is the month and `m` the minute." if missing == ["month"] else None,
            expected=f"a pattern with the {missing[0]}",
        )


def check_for_type(elements: tuple[Element, ...], pattern: str, kind: str) -> None:
    """Raise an own error if the pattern gives less or more than the type has."""
    parts = {element.part for element in elements}
    has_date, has_time, has_offset = "year" in parts, "hour" in parts, "offset" in parts
    if kind == "time":
        missing, surplus = ([] if has_time else ["hour"]), (["a date"] if has_date else [])
    else:
        missing, surplus = ([] if has_date else ["year"]), (["a time"] if has_time and kind == "date" else [])
    surplus += ["an offset from UTC"] if has_offset and kind != "timestamptz" else []
    if missing:
        raise _bad(pattern, f"it does not give the {missing[0]}, which a {kind} has", expected=f"a pattern of a {kind}")
    if surplus:
        hint = {"a time": "Set the type `timestamp`.", "an offset from UTC": "Set the type `timestamptz`."}
        raise _bad(
            pattern,
            f"it gives {surplus[0]}, which a {kind} does not have",
            hint.get(surplus[0]) if kind != "time" else None,
            expected=f"a pattern of a {kind}",
        )
