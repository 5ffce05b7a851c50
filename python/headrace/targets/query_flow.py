"""The rows of a query where a load expects those of a data flow: nothing streams, the database does it itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headrace.errors import InternalError


class QueryFlow:
    """See `Flow`. `ended` is told the rows that the destination has confirmed; `settled` then gives the accounts."""

    def __init__(self) -> None:
        self.started = False
        self._rows: int | None = None

    def start(self) -> None:
        self.started = True

    def arrow_stream(self) -> object:
        raise InternalError("a query was asked for a stream of rows")

    def cancel(self, reason: str) -> None:
        """Whoever executes the query stops it."""

    def commit(self) -> None:
        raise InternalError("a query was asked to commit by itself")

    def seen_at_work(self, process_ids: Sequence[int]) -> None:
        """No session is given up for its silence."""

    def snapshot(self) -> dict[str, Any]:
        return {}

    def join(self, timeout_seconds: float) -> dict[str, Any] | None:
        return None if self._rows is None else result_of_query(self._rows)

    def ended(self, rows: int) -> None:
        """All rows are in the table."""
        self._rows = rows

    def settled(self, rows_inserted: int | None) -> dict[str, Any]:
        """The result; what the destination counted is what there is."""
        if self._rows is None or rows_inserted not in (None, self._rows):
            raise InternalError("the rows of a query were not counted", found=f"{rows_inserted} and {self._rows}")
        return result_of_query(self._rows)


_COUNTS = ("bytes", "lines", "skipped", "rejected", "filtered", "values_ignored", "lf_lines", "crlf_lines")


def result_of_query(rows: int) -> dict[str, Any]:
    """What a flow of one slice would say of so many rows."""
    counts = dict.fromkeys(_COUNTS, 0)
    item = {"number": 1, "file": 0, "rows": rows, "out": rows, "text_hash": None, **counts}
    return {"status": "ok", "slices": [item], "streams": [], "columns": None, "memory": {}, "rejects": _NO_REJECTS}


_NO_REJECTS = {"count": 0, "by_rule": {}, "by_column": [], "first": [], "files": [], "cut": 0}
