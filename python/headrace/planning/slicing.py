"""How long a slice should be."""

from __future__ import annotations

from typing import Final

MINIMUM_SLICE_BYTES: Final = 4 * 1024 * 1024
MAXIMUM_SLICE_BYTES: Final = 256 * 1024 * 1024
# Enough that the last slices of a flow end close together (a stream waits at most about an eighth of its share for
# the others), and few enough that the ledger stays small.
SLICES_PER_STREAM: Final = 8


def slice_bytes(total_bytes: int, streams: int) -> int:
    """Nominal slice length in bytes for `total_bytes` of text read by `streams` streams.

    The true cut is the next row end. A file is never joined with another one, so many small files make smaller slices.
    """
    wanted = total_bytes // max(1, streams * SLICES_PER_STREAM)
    return max(MINIMUM_SLICE_BYTES, min(MAXIMUM_SLICE_BYTES, wanted))
