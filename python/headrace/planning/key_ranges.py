"""Ranges of keys, the least key included, the end not: RANGE RIGHT."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from headrace.model.key_values import KeyType, KeyValue
from headrace.planning.partitioning import RangeRule


@dataclass(frozen=True)
class KeyRange:
    """Keys from `minimum` to before `end`; None is an open end."""

    minimum: KeyValue | None
    end: KeyValue | None

    def overlaps(self, other: KeyRange) -> bool:
        """Whether a key could be in both."""
        return _is_below(self.minimum, other.end) and _is_below(other.minimum, self.end)

    def contains(self, other: KeyRange) -> bool:
        """Whether all keys of the other are in this one."""
        begins = self.minimum is None or (other.minimum is not None and self.minimum <= other.minimum)
        return begins and (self.end is None or (other.end is not None and other.end <= self.end))

    def sort_key(self) -> tuple[bool, KeyValue]:
        """For ranges that do not overlap: by their least keys, an open one first."""
        return (self.minimum is not None, self.minimum if self.minimum is not None else 0)

    def rule(self, kind: KeyType) -> RangeRule:
        """With canonical texts."""
        texts = [None if key is None else kind.text(key) for key in (self.minimum, self.end)]
        return RangeRule(*texts)


def between(bounds: Sequence[KeyValue]) -> list[KeyRange]:
    """The n + 1 ranges that n rising bounds make, the outer ones open."""
    ends = [None, *bounds, None]
    return [KeyRange(minimum, end) for minimum, end in pairwise(ends)]


def parse_range(rule: RangeRule, kind: KeyType) -> KeyRange:
    """A rule as values. Raises ValueError or ArithmeticError for a bound that is no key, such as NaN."""
    ends = [None if text is None else kind.parse(text) for text in (rule.minimum, rule.end)]
    for end in ends:
        if end is not None:
            end < end  # noqa: B015  # what has no order says so here
    return KeyRange(*ends)


def in_type(keys: KeyRange, kind: KeyType) -> KeyRange | None:
    """The same keys of a type that may be coarser or shorter than that of the bounds; None if it has none of them."""
    minimum = None if keys.minimum is None or keys.minimum < kind.least else keys.minimum
    end = None if keys.end is None or keys.end > kind.greatest else keys.end
    if (minimum is not None and minimum > kind.greatest) or (end is not None and end <= kind.least):
        return None
    ends = [None if key is None else kind.ceiling(key) for key in (minimum, end)]
    found = KeyRange(*ends)
    return found if _is_below(found.minimum, found.end) else None


def _is_below(minimum: KeyValue | None, end: KeyValue | None) -> bool:
    return minimum is None or end is None or bool(minimum < end)
