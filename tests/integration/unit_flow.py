"""A flow without the core: it fills the tables of a sink by INSERT, unit by unit, with rows that its test gives."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from headrace import core


def text_hash(number: int) -> str:
    """What the flow says of the text of a slice."""
    return f"{number:016x}"


class UnitFlow:
    """One unit for each table that is owned, or for each slice of the others; none of slices `committed` before.

    What a unit does is the subclass's.
    """

    def __init__(
        self,
        sink: Mapping[str, Any],
        before_switch: Callable[[], object] = lambda: None,
        committed: Collection[int] = (),
    ) -> None:
        self.started = False
        self._sink = sink
        self._before_switch = before_switch
        self._committed = committed

    def rows_out(self) -> Mapping[int, int]:
        """The number of rows of every slice, committed ones included."""
        raise NotImplementedError

    def unit(self, table: Mapping[str, Any], slices: Sequence[int]) -> None:
        """Fills a table of the sink with the rows of slices, in a transaction of its own."""
        raise NotImplementedError

    def tables(self) -> Sequence[Mapping[str, Any]]:
        """Those of the sink, in the order in which they are filled."""
        tables: Sequence[Mapping[str, Any]] = self._sink["tables"]
        return tables

    @staticmethod
    def insert(connection: core.PostgresConnection, table: Mapping[str, Any], rows: Sequence[str]) -> None:
        """Puts rows, as SQL values, where the core would copy them."""
        into = table["copy"].removeprefix("COPY ").split(" FROM STDIN")[0]
        for row in rows:
            connection.execute(f"INSERT INTO {into} OVERRIDING SYSTEM VALUE VALUES ({row})")

    def commit_rows(
        self, connection: core.PostgresConnection, table: Mapping[str, Any], rows: Mapping[int, int], skipped: int = 0
    ) -> None:
        """Writes the ledger's rows of a unit: by slice, how many rows it has. `skipped`: lines of each of them."""
        nothing = [0 for _ in rows]
        counts = [list(rows), list(rows.values()), nothing, [skipped for _ in rows], nothing, nothing, nothing]
        hashes = [text_hash(number) for number in rows]
        columns: list[Sequence[object]] = [*counts, hashes]
        arrays = ["{" + ",".join(map(str, values)) + "}" for values in columns]
        result = connection.query(self._sink["commit_slices"], [table["partition"], *arrays])
        assert result.tag == f"INSERT 0 {len(rows)}", result.tag

    def start(self) -> None:
        self.started = True
        for table in self.tables():
            left = [number for number in table["slices"] if number not in self._committed]
            for slices in [left] if table["owned"] else [[number] for number in left]:
                if slices:
                    self.unit(table, slices)

    def commit(self) -> None:
        """All units have committed."""

    def arrow_stream(self) -> object:
        raise AssertionError("a server takes no Arrow stream")

    def cancel(self, reason: str) -> None:
        """Nothing runs behind `start`."""

    def seen_at_work(self, process_ids: Sequence[int]) -> None:
        """Nobody is waited for."""

    def snapshot(self) -> dict[str, Any]:
        return {}

    def join(self, timeout_seconds: float) -> dict[str, Any] | None:
        return {"slices": [{"number": number, "out": out, "rejected": 0} for number, out in self.rows_out().items()]}

    def settle(self, rows: int | None) -> dict[str, Any]:
        self._before_switch()
        result = self.join(0)
        assert result is not None
        return result
