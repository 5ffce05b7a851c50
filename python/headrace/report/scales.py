"""Axes: round numbers at even distances."""

from __future__ import annotations

import math
from typing import Final

_STEPS: Final = (1.0, 2.0, 2.5, 5.0, 10.0)
_TIME_STEPS: Final = (
    0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1_800, 3_600, 7_200, 10_800, 21_600,
    43_200, 86_400,
)  # fmt: skip
_DAY: Final = 86_400.0


def ticks(largest: float, most: int = 4) -> list[float]:
    """Round values from 0 up to the first one that is not below `largest`, about `most` steps of them."""
    if not largest > 0:
        return [0.0, 1.0]
    rough = largest / most
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(factor * power for factor in _STEPS if factor * power >= rough * (1 - 1e-9))
    count = math.ceil(largest / step * (1 - 1e-9))
    return [number * step for number in range(count + 1)]


def time_ticks(seconds: float, most: int = 10) -> list[float]:
    """Round moments from 0 to `seconds`, at most `most` steps."""
    if not seconds > 0:
        return [0.0]
    step = next((step for step in _TIME_STEPS if seconds / step <= most), 0.0)
    if not step:
        step = _DAY * math.ceil(seconds / most / _DAY)
    return [number * step for number in range(int(seconds / step * (1 + 1e-9)) + 1)]


def clock(seconds: float, step: float) -> str:
    """A moment of a run: `0:30`, `1:05:00`; with decimals if ticks are less than a second apart."""
    if step >= 1:
        minutes, rest = divmod(round(seconds), 60)
        hours, minutes = divmod(minutes, 60)
        return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"
    return f"{seconds:.{2 if step < 0.1 else 1}f} s"
