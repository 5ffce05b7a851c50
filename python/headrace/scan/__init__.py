"""Scans of a table beside those of the same rows, divided: how long, on how even partitions, with equal answers."""

from headrace.scan.comparison import ScanComparison, ScanRequest, compare
from headrace.scan.measure import Measured, Side
from headrace.scan.spread import Spread

__all__ = ["Measured", "ScanComparison", "ScanRequest", "Side", "Spread", "compare"]
