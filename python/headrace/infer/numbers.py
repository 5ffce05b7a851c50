"""What columns of numbers are: readings of marks, digits, ranges."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

from headrace.infer.facts import ClassFacts
from headrace.model import DataType

MAXIMUM_DIGITS: Final = 38
# Largest magnitudes, with the sign that has more of them left out: numbers from -least to most.
_WHOLE_KINDS: Final = (("int16", 2**15), ("int32", 2**31), ("int64", 2**63))
PLAIN: Final = ("whole", "point", "maybe_point")
FLOATING: Final = ("exponent", "bare_exponent")
# A text of one mark with three digits behind it: of this class, by the mark.
MAYBE: Final = {".": "maybe_point", ",": "maybe_comma"}
NUMBERS: Final = ("whole", "point", "comma", "maybe_point", "maybe_comma", "grouped_point", "grouped_comma", *FLOATING)


@dataclass(frozen=True, slots=True)
class Reading:
    """What points and commas are. `group`: the mark between groups, if there is one."""

    decimal: str
    group: str | None

    @property
    def decimals(self) -> tuple[str, ...]:
        """Classes whose digits behind the mark are a fraction."""
        return ("point", "maybe_point") if self.decimal == "." else ("comma", "maybe_comma")

    @property
    def groups(self) -> tuple[str, ...]:
        """Classes with marks between groups."""
        if self.group is None:
            return ()
        return ("grouped_comma", "maybe_comma") if self.group == "," else ("grouped_point", "maybe_point")

    def fits(self, classes: Mapping[str, ClassFacts]) -> bool:
        """Whether every number has a value."""
        return set(classes) <= {"whole", *self.decimals, *self.groups}

    def settings(self, *, is_whole: bool) -> dict[str, Any]:
        """The format of a column."""
        own: dict[str, Any] = (
            {} if self.decimal == "." or (is_whole and self.group is None) else {"decimal": self.decimal}
        )
        if self.group is not None:
            own["group"] = self.group
        return {"format": own} if own else {}

    def value(self, text: str) -> Decimal:
        """The number that a text is."""
        text = text if self.group is None else text.replace(self.group, "")
        return Decimal(text.replace(self.decimal, "."))

    def type(self, classes: Mapping[str, ClassFacts]) -> DataType | None:
        """The narrowest exact type of all numbers; None if none holds them."""
        before = max(_digits_before(name, facts, self) for name, facts in classes.items())
        behind = max(_digits_behind(name, facts, self) for name, facts in classes.items())
        if behind == 0 and not any(name in self.decimals for name in classes):
            kind = self._whole_kind(classes)
            if kind is not None:
                return DataType(kind)
        if before + behind > MAXIMUM_DIGITS:
            return None
        return DataType("decimal", precision=max(1, before + behind), scale=behind)

    def _whole_kind(self, classes: Mapping[str, ClassFacts]) -> str | None:
        least, most = self.range(classes)
        if least is None or most is None:
            return None
        return next((kind for kind, limit in _WHOLE_KINDS if -limit <= least and most < limit), None)

    def range(self, classes: Mapping[str, ClassFacts]) -> tuple[Decimal | None, Decimal | None]:
        """Least and greatest number; None where one has too many digits to be told."""
        texts = self.extremes(classes)
        return (None, None) if texts is None else (self.value(texts[0]), self.value(texts[1]))

    def extremes(self, classes: Mapping[str, ClassFacts]) -> tuple[str, str] | None:
        """Least and greatest number as they stand in the files; None if one has too many digits."""
        if any(facts.minimum is None or facts.digits_before > MAXIMUM_DIGITS for facts in classes.values()):
            return None
        texts = [text for facts in classes.values() for text in (facts.minimum, facts.maximum) if text is not None]
        # Of several texts of one number the least.
        ordered = sorted(texts)
        return min(ordered, key=self.value), max(ordered, key=self.value)


POINT: Final = Reading(".", None)
COMMA: Final = Reading(",", None)
READINGS: Final = (POINT, COMMA, Reading(".", ","), Reading(",", "."))


def readings_of(classes: Mapping[str, ClassFacts]) -> list[Reading]:
    """The readings by which every number has a value; with groups only where they are needed."""
    fitting = [reading for reading in READINGS if reading.fits(classes)]
    if set(classes) <= {"whole"}:
        return fitting[:1]
    # A group mark that no number needs is none.
    return [reading for reading in fitting if reading.group is None or set(classes) & set(reading.groups)]


def proved_mark(columns: Sequence[Mapping[str, ClassFacts]]) -> str | None:
    """The decimal mark that columns prove, if they agree."""
    marks = set()
    for classes in columns:
        numbers = {name for name in classes if name != "blank"}
        if numbers and numbers <= set(NUMBERS):
            marks |= {"."} if numbers & {"point", "grouped_comma"} else set()
            marks |= {","} if numbers & {"comma", "grouped_point"} else set()
    return marks.pop() if len(marks) == 1 else None


def _digits_before(name: str, facts: ClassFacts, reading: Reading) -> int:
    is_group = name in reading.groups and name in MAYBE.values() and name not in reading.decimals
    return facts.digits_before + (3 if is_group else 0)


def _digits_behind(name: str, facts: ClassFacts, reading: Reading) -> int:
    is_group = name in reading.groups and name in MAYBE.values() and name not in reading.decimals
    return 0 if is_group else facts.digits_behind
