"""Series with no more points than can be seen, and none of their peaks lost."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

MOST_POINTS: Final = 600


def thinned(values: Sequence[float], most: int = MOST_POINTS) -> list[int]:
    """The places of the values to draw, ascending, at most `most` (4 or more): the first, the last, and the least and
    the largest of each of equal stretches between them.
    """
    if len(values) <= most:
        return list(range(len(values)))
    last = len(values) - 1
    stretches = (most - 2) // 2
    kept = {0, last}
    for number in range(stretches):
        begin = 1 + number * (last - 1) // stretches
        end = 1 + (number + 1) * (last - 1) // stretches
        kept.add(min(range(begin, end), key=values.__getitem__))
        kept.add(max(range(begin, end), key=values.__getitem__))
    return sorted(kept)
