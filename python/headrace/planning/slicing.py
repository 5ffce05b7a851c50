"""How long a slice should be."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

MINIMUM_SLICE_BYTES: Final = 4 * 1024 * 1024
MAXIMUM_SLICE_BYTES: Final = 256 * 1024 * 1024
# Enough that the last slices of a flow end close together (a stream waits at most about an eighth of its share for
# the others), and few enough that the ledger stays small.
SLICES_PER_STREAM: Final = 8


# A transaction costs about as much as loading so much text.
MINIMUM_COMMIT_BYTES: Final = 64 * 1024


def slice_bytes(total_bytes: int, streams: int, commit_bytes: int | None = None) -> int:
    """Nominal slice length in bytes for `total_bytes` of text read by `streams` streams; not more than `commit_bytes`
    where rows are committed after about as much text.

    The true cut is the next row end. A file is never joined with another one, so many small files make smaller slices.
    """
    wanted = total_bytes // max(1, streams * SLICES_PER_STREAM)
    length = max(MINIMUM_SLICE_BYTES, min(MAXIMUM_SLICE_BYTES, wanted))
    return length if commit_bytes is None else min(length, max(MINIMUM_COMMIT_BYTES, commit_bytes))


def text_bytes(slice_: Mapping[str, Any]) -> int:
    """Length of the text of a slice; where only the decoder can tell, of its bytes in the file."""
    text = slice_.get("text")
    if text is not None and text["piece_end"] is not None:
        return max(1, int(text["piece_end"]) - int(text["piece_begin"]))
    return max(1, int(slice_["end_byte"]) - int(slice_["begin_byte"]))
