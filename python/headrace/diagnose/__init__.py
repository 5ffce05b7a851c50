"""Names what limits a run."""

from headrace.diagnose.limit import LimitVerdict, judge

__all__ = ["LimitVerdict", "judge"]
