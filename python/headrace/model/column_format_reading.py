"""Whether a text can mean two values by two patterns: their common texts are tried.

The product of two patterns gives the shapes of all texts that fit both, with the digit 1 everywhere, which is valid in
every place. Two patterns read such a text alike unless some digit of it belongs to different places of theirs; then
this text, or the same with that digit changed, has two values. That is the witness.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cache
from itertools import islice

from headrace.model.column_format_months import folded
from headrace.model.column_format_patterns import Element

_MICROSECONDS_PER_DAY = 86_400_000_000
# More shapes than any sensible pair of patterns has in common.
_MAXIMUM_SHAPES = 20_000


@dataclass(frozen=True)
class Reading:
    """What patterns need besides. `pivot` 0: none. Names are folded, the spellings of a month in one tuple."""

    pivot: int
    short_months: tuple[tuple[str, ...], ...]
    long_months: tuple[tuple[str, ...], ...]
    offset_minutes: int

    def months(self, element: Element) -> tuple[tuple[str, ...], ...]:
        """The names that the element stands for."""
        return self.long_months if element.most == 4 else self.short_months

    def values(self, elements: Sequence[Element], text: str) -> set[int]:
        """Every value that the text has by the pattern: microseconds since the day before 0001-01-01."""
        found = (_value(said, self) for said in self._said(elements, text, {}))
        return {value for value in found if value is not None}

    def _said(self, elements: Sequence[Element], text: str, said: dict[str, int]) -> Iterator[dict[str, int]]:
        if not elements:
            if not text:
                yield said
            return
        element, rest = elements[0], elements[1:]
        for length, more in self._pieces(element, text):
            yield from self._said(rest, text[length:], {**said, **more})

    def _pieces(self, element: Element, text: str) -> Iterator[tuple[int, dict[str, int]]]:
        """The ways in which the text can begin with the element: characters, and what they say."""
        if element.kind == "literal":
            if text.startswith(element.text):
                yield len(element.text), {}
        elif element.kind in ("number", "fraction"):
            for length in _digits(text, element.least, element.most):
                yield length, self._number(element, text[:length])
        elif element.kind == "optional_fraction":
            yield 0, {}
            if text.startswith(element.text):
                for length in _digits(text[1:], 1, element.most):
                    yield 1 + length, _fraction(text[1 : 1 + length])
        elif element.kind == "month_name":
            for month, names in enumerate(self.months(element), start=1):
                yield from ((len(name), {"month": month}) for name in names if folded(text[: len(name)]) == name)
        elif element.kind == "half_day":
            if folded(text[:2]) in ("am", "pm"):
                yield 2, {"half_day": int(folded(text[:2]) == "pm")}
        else:
            yield from _offsets(text, only_utc=element.kind == "utc")

    def _number(self, element: Element, digits: str) -> dict[str, int]:
        if element.kind == "fraction":
            return _fraction(digits)
        number = int(digits)
        if element.part == "year" and element.most == 2:
            number += self.pivot - self.pivot % 100 + (100 if number < self.pivot % 100 else 0)
        return {"half_day_hour" if element.is_half_day else str(element.part): number}


def _digits(text: str, least: int, most: int) -> list[int]:
    """How many digits may be taken from the front."""
    return [
        length
        for length in range(least, most + 1)
        if len(text) >= length and text[:length].isascii() and text[:length].isdigit()
    ]


def _fraction(digits: str) -> dict[str, int]:
    return {"fraction": int(digits[:6].ljust(6, "0")), "surplus": int(digits[6:] or "0")}


def _offsets(text: str, *, only_utc: bool) -> Iterator[tuple[int, dict[str, int]]]:
    if text[:1] in ("Z", "z"):
        yield 1, {"offset": 0}
    if only_utc or text[:1] not in ("+", "-"):
        return
    sign = -1 if text[0] == "-" else 1
    for length, digits in ((3, text[1:3]), (5, text[1:5]), (6, text[1:3] + text[4:6])):
        is_whole = len(text) >= length and digits.isdigit() and (length < 6 or text[3] == ":")
        if is_whole and int(digits[:2]) <= 15 and int(digits[2:] or "0") <= 59:
            yield length, {"offset": sign * (60 * int(digits[:2]) + int(digits[2:] or "0"))}


def _value(said: dict[str, int], reading: Reading) -> int | None:
    hour = said.get("hour", 0)
    if "half_day_hour" in said:
        if not 1 <= said["half_day_hour"] <= 12:
            return None
        hour = said["half_day_hour"] % 12 + 12 * said["half_day"]
    minute, second = said.get("minute", 0), said.get("second", 0)
    if hour > 23 or minute > 59 or second > 59 or said.get("surplus"):
        return None
    try:
        days = date(said["year"], said["month"], said["day"]).toordinal() if "year" in said else 0
    except ValueError:
        return None
    seconds = 60 * (60 * hour + minute - said.get("offset", reading.offset_minutes)) + second
    return days * _MICROSECONDS_PER_DAY + seconds * 1_000_000 + said.get("fraction", 0)


def shown(value: int) -> str:
    """A value as messages show it."""
    days, microseconds = divmod(value, _MICROSECONDS_PER_DAY)
    seconds, fraction = divmod(microseconds, 1_000_000)
    clock = f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
    clock += f".{fraction:06}" if fraction else ""
    if days < 1:
        return clock
    day = date.fromordinal(days).isoformat()
    return f"{day} {clock}" if microseconds else day


def witness(first: Sequence[Element], second: Sequence[Element], reading: Reading) -> tuple[str, int, int] | None:
    """A text that has one value by the first pattern and another by the second, and these; None if there is none."""
    for shape in islice(_common(first, second, reading), _MAXIMUM_SHAPES):
        for text in _variants(shape):
            ours, theirs = reading.values(first, text), reading.values(second, text)
            if ours and theirs and (others := sorted(theirs - ours)):
                return text, min(ours), others[0]
    return None


def _variants(shape: str) -> Iterator[str]:
    yield shape
    for place, character in enumerate(shape):
        if character == "1":
            yield from (shape[:place] + digit + shape[place + 1 :] for digit in "20")


def _shapes(element: Element, reading: Reading) -> tuple[str, ...]:
    """Every way to write the element, with ones for digits; those of a fraction that no timestamp keeps are zeros."""
    if element.kind == "literal":
        return (element.text,)
    if element.kind == "number":
        return tuple("1" * length for length in range(element.least, element.most + 1))
    if element.kind == "fraction":
        return (_ones(element.most),)
    if element.kind == "optional_fraction":
        return ("", *(element.text + _ones(length) for length in range(1, element.most + 1)))
    if element.kind == "month_name":
        return tuple(name for names in reading.months(element) for name in names)
    if element.kind == "half_day":
        return ("am", "pm")
    utc = ("Z", "z")
    return utc if element.kind == "utc" else (*utc, "+11", "-11", "+1111", "-1111", "+11:11", "-11:11")


def _ones(length: int) -> str:
    return "1" * min(length, 6) + "0" * (length - 6)


def _common(first: Sequence[Element], second: Sequence[Element], reading: Reading) -> Iterator[str]:
    """The texts of these shapes that both patterns can write."""
    ours = [_shapes(element, reading) for element in first]
    theirs = [_shapes(element, reading) for element in second]

    @cache
    def steps(
        place: int, rest: str, other_place: int, other_rest: str
    ) -> tuple[tuple[str, tuple[int, str, int, str]], ...]:
        """What both write next, and what is left; nothing where they cannot go on together to the end."""
        if not rest and place < len(ours):
            following = [("", (place + 1, text, other_place, other_rest)) for text in ours[place]]
        elif not other_rest and other_place < len(theirs):
            following = [("", (place, rest, other_place + 1, text)) for text in theirs[other_place]]
        else:
            length = min(len(rest), len(other_rest))
            if not length or folded(rest[:length]) != folded(other_rest[:length]):
                return ()
            following = [(rest[:length], (place, rest[length:], other_place, other_rest[length:]))]
        return tuple((text, state) for text, state in following if is_end(state) or steps(*state))

    def is_end(state: tuple[int, str, int, str]) -> bool:
        return state == (len(ours), "", len(theirs), "")

    def texts(state: tuple[int, str, int, str]) -> Iterator[str]:
        if is_end(state):
            yield ""
        else:
            for text, following in steps(*state):
                yield from (text + rest for rest in texts(following))

    return texts((0, "", 0, ""))
