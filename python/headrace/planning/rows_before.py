"""What was loaded before a data flow begins, or goes on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class CommittedSlice:
    """What the ledger keeps of a slice whose rows are committed. `skipped`: header and blank lines; `ignored`:
    values of its rows that are not those of the file; `filtered`: rows that queries have left out; `text_hash`:
    None of what an older version has committed.
    """

    loaded: int
    rejected: int
    skipped: int
    ignored: int = 0
    text_hash: str | None = None
    filtered: int = 0

    @property
    def needs_reading(self) -> bool:
        """True if these numbers do not say all: which rows were rejected, in which columns values were ignored."""
        return self.rejected > 0 or self.ignored > 0

    def to_dict(self) -> dict[str, Any]:
        """The member of a flow spec."""
        return {
            "loaded": self.loaded,
            "rejected": self.rejected,
            "skipped": self.skipped,
            "ignored": self.ignored,
            "filtered": self.filtered,
            "text_hash": self.text_hash,
        }


@dataclass(frozen=True)
class RowsBefore:
    """Rows, and rejects among them, of the data flows that a run has ended before another one begins."""

    rejected: int = 0
    rows: int = 0

    def to_dict(self) -> dict[str, int]:
        """The members of a flow spec."""
        return {"rejected_before": self.rejected, "rows_before": self.rows}
