"""Which of the dialects that a file could have explains most of it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

# Shares of rows that count for the same, so many rows of a short file, and shares of bytes that are explained.
_SAME_SHARE: Final = 0.05
_SAME_ROWS: Final = 2
_SAME_TYPED: Final = 0.02
# Shares of rows among dialects with one delimiter.
_SAME_SHARE_OF_ONE: Final = 0.02
# So many fields between qualifiers for each row that a qualifier breaks.
_QUALIFIED: Final = 4
# What a colon must explain more than others: it stands within times, addresses and documents.
_COLON: Final = 0.1
# Times of a day and offsets, beginnings of addresses, addresses of machines.
COLONS_IN_VALUES: Final = re.compile(
    r"(?<=/\d{4}):[0-2]\d:[0-5]\d:[0-5]\d|"
    r"(?<!\d)[0-2]?\d:[0-5]\d(:[0-5]\d([.,]\d+)?)?(?!\d)|[A-Za-z][A-Za-z0-9+]*://\S*"
    r"|(?<![0-9A-Fa-f:])(([0-9A-Fa-f]{2}:){5}[0-9A-Fa-f]{2}|(?=[0-9A-Fa-f:]*::)[0-9A-Fa-f:]{3,39}"
    r"|([0-9A-Fa-f]{1,4}:){7}[0-9A-Fa-f]{1,4})(?![0-9A-Fa-f:])"
)

Candidate = Mapping[str, Any]
Shape = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Scored:
    """A dialect. `share`: that of rows with so many fields. `typed`: the share of bytes that it explains, those of
    delimiters, qualifiers and values that are no texts.
    """

    candidate: Candidate
    shape: Shape
    fields: int
    share: float
    typed: float
    place: int

    @property
    def is_plain(self) -> bool:
        return self.candidate["escape"] is None

    @property
    def is_qualified(self) -> bool:
        """Whether fields stand between qualifiers: where some are left open, many others must not be."""
        broken = self.shape["rows"] * (1 - self.share)
        return self.candidate["qualifier"] is not None and bool(self.shape["qualified"] >= _QUALIFIED * broken)

    @property
    def rank(self) -> tuple[float, int, bool, bool]:
        """Greater is better, among dialects with several delimiters that explain as many rows."""
        typed = self.typed - (_COLON if self.candidate["delimiter"] == ":" else 0)
        return round(typed / _SAME_TYPED), self.fields, self.is_qualified, self.is_plain


def plausible(look: Mapping[str, Any], scored: Sequence[Scored]) -> list[Scored]:
    """Without dialects whose delimiter is another thing."""
    own = [one for one in scored if one.candidate["delimiter"] == look["separator"]]
    if own:
        return own
    left_out = set()
    lines = [COLONS_IN_VALUES.sub("", line) for line in look["head_lines"]]
    if sum(":" in line for line in lines) <= _SAME_SHARE * len(lines):
        left_out.add(":")
    fields = {one.fields for one in scored if one.candidate["delimiter"] == "||"}
    if any(one.candidate["delimiter"] == "|" and _is_doubled(one) and (one.fields + 1) / 2 in fields for one in scored):
        left_out.add("|")
    return [one for one in scored if one.candidate["delimiter"] not in left_out]


def _is_doubled(one: Scored) -> bool:
    """Whether nothing stands in every other column, its name included: between the two halves of a delimiter."""
    rows = [row for row in one.shape["head"] if len(row) == one.fields]
    return not any(one.shape["classes"][1::2]) and not any(any(row[1::2]) for row in rows)


def score(candidate: Candidate, shape: Shape, place: int) -> Scored | None:
    rows = int(shape["rows"])
    if not rows or (candidate["qualifier"] is not None and (not shape["qualified"] or shape["is_open"])):
        return None
    fields, common = max(((int(number), own) for number, own in shape["fields"].items()), key=lambda one: one[::-1])
    typed = 1 - shape["text_bytes"] / shape["bytes"] if shape["bytes"] else 0.0
    share = max(0, common - shape["text_behind"]) / rows
    return Scored(candidate, shape, fields, share, typed, place)


def best_of(scored: Sequence[Scored]) -> Scored:
    delimiters = {one.candidate["delimiter"] for one in scored}
    scored = [_best_of_one([one for one in scored if one.candidate["delimiter"] == own]) for own in delimiters]
    most = max(one.share for one in scored)
    # In short files a title and a row or two of another shape are a large share, and say little.
    noise = 0.0 if most == 1 else _SAME_ROWS / max(one.shape["rows"] for one in scored)
    equal = [one for one in scored if one.share >= most - max(_SAME_SHARE, noise)]
    # Of those that are alike the one that is tried first.
    return max(equal, key=lambda one: (one.rank, -one.place))


def _best_of_one(scored: Sequence[Scored]) -> Scored:
    """The best qualifier and escape of one delimiter: among those that explain about as many rows the qualifier that
    explains more values, then more rows.
    """
    qualifiers = {one.candidate["qualifier"] for one in scored}
    of_each = ([one for one in scored if one.candidate["qualifier"] == own] for own in qualifiers)
    best = [max(own, key=lambda one: (one.share, one.is_plain)) for own in of_each]
    best = _within(best, _SAME_SHARE, lambda one: one.share)
    best = _within(best, _SAME_TYPED, lambda one: one.typed)
    best = _within(best, _SAME_SHARE_OF_ONE, lambda one: one.share)
    return max(best, key=lambda one: (one.is_qualified, one.share, one.typed, -one.place))


def _within(scored: Sequence[Scored], distance: float, of: Callable[[Scored], float]) -> list[Scored]:
    most = max(map(of, scored))
    return [one for one in scored if of(one) >= most - distance]


def near(best: Scored, scored: Sequence[Scored]) -> list[Scored]:
    """Those that explain as much, the best first."""
    alike = [one for one in scored if one.share >= best.share - 0.02 and one.typed >= best.typed - _SAME_TYPED]
    return sorted(alike, key=lambda one: (one.rank, -one.place), reverse=True)
