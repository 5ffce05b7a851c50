"""Checkpoints and log of a server. Pure: a row of `sql/watched_server.sql` in, counters out."""

from __future__ import annotations

from typing import Any, Final

from headrace.machine.rising import Rising
from headrace.targets.postgres.connection import Row

# The columns of the question, and how many of their units make one of ours.
_CHECKPOINTS: Final = {
    "checkpoints_timed": 1,
    "checkpoints_requested": 1,
    "checkpoint_write_seconds": 1000,
    "checkpoint_sync_seconds": 1000,
}
_DECIMALS: Final = 6


class WatchedServer:
    """What the looks at one server have found. Its statistics may be reset meanwhile."""

    def __init__(self) -> None:
        self._rising = Rising()
        self._checkpoints: dict[str, float | None] = dict.fromkeys(_CHECKPOINTS)
        self._first_log_bytes: int | None = None
        self._wal_bytes: int | None = None

    def add(self, row: Row) -> None:
        """Takes what one look has found."""
        *checkpoints, log_bytes = row
        self._checkpoints = self._rising.shown(
            {
                name: None if value is None else _in_units(value, units)
                for (name, units), value in zip(_CHECKPOINTS.items(), checkpoints, strict=True)
            }
        )
        if log_bytes is not None:
            if self._first_log_bytes is None:
                self._first_log_bytes = int(log_bytes)
            self._wal_bytes = int(log_bytes) - self._first_log_bytes

    def to_dict(self) -> dict[str, Any]:
        """The members about checkpoints, and `wal_bytes`."""
        return {**self._checkpoints, "wal_bytes": self._wal_bytes}


def _in_units(value: str, units: int) -> float:
    return int(value) if units == 1 else round(float(value) / units, _DECIMALS)
