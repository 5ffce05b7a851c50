"""What the ledger in the user's file knows of replays: rejects of earlier runs that were loaded or dropped."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import duckdb

from headrace.targets.base import LoadedTable, Replay
from headrace.targets.duckdb.connection import sql
from headrace.targets.duckdb.failures import ledger_failure

_MAIN: Final = "main"


class ReplayLedger:
    """Reads the ledger; one process has the file, so nothing changes between a look and the commit."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, path: Path) -> None:
        self._connection = connection
        self._path = path

    def loaded_table(self, run_id: str, task: str) -> LoadedTable | None:
        """Where a run has loaded a task."""
        found = self._rows("loaded_table", {"run_id": run_id, "task": task})
        return LoadedTable(found[0][0], str(found[0][1]), bool(found[0][2])) if found else None

    def replays(self, of_run: str, task: str) -> list[Replay]:
        """Which rejects of a task of a run were claimed, by number."""
        rows = self._rows("replays", {"of_run": of_run, "task": task})
        return [
            Replay(
                run_id,
                first,
                last,
                action,
                status,
                _time(taken_us),
                loaded,
                rejected,
                rows_added,
                rows_filtered=filtered,
            )
            for run_id, first, last, action, status, taken_us, loaded, rejected, filtered, rows_added in rows
        ]

    def replaced_since(self, run_id: str, task: str, table: LoadedTable) -> str | None:
        """A later run that has made the table, or its rows, anew."""
        place = {"schema": table.schema or _MAIN, "table": table.table}
        found = self._rows("replaced_since", {"run_id": run_id, "task": task, **place})
        return str(found[0][0]) if found else None

    def _rows(self, name: str, values: dict[str, Any]) -> list[tuple[Any, ...]]:
        """Nothing where the table is not there yet, or the ledger is one of an earlier version."""
        try:
            if self._connection.execute(sql("replay_exists")).fetchone() is None:
                return []
            return self._connection.execute(sql(name), values).fetchall()
        except duckdb.Error as error:
            raise ledger_failure(error, "cannot read the replays of the ledger", self._path) from error


def _time(microseconds: int | None) -> datetime | None:
    """Times with a zone would need another package to come out of DuckDB."""
    return None if microseconds is None else datetime.fromtimestamp(0, UTC) + timedelta(microseconds=microseconds)
