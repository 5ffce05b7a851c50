"""What the ledger knows of replays: rejects of earlier runs that were loaded or dropped."""

from __future__ import annotations

from datetime import datetime

from headrace.planning import ReplayPlan
from headrace.targets.base import LoadedTable, Replay
from headrace.targets.claims import overlaps, refuse_replaced, refuse_taken
from headrace.targets.postgres.connection import Connection, one_row, one_value, sql
from headrace.targets.postgres.ledger import Ledger
from headrace.targets.postgres.names import TableName, quote
from headrace.targets.postgres.sweep import fence_dead


class ReplayLedger:
    """Reads the ledger; each answer is that of its moment."""

    def __init__(self, connection: Connection, schema: str) -> None:
        self._connection = connection
        self._schema = schema

    def loaded_table(self, run_id: str, task: str) -> LoadedTable | None:
        """Where a run has loaded a task."""
        if not self._exists():
            return None
        row = one_row(self._connection, self._sql("loaded_table"), (run_id, task))
        return None if row is None else LoadedTable(row[0], row[1] or "", row[2] == "t")

    def replays(self, of_run: str, task: str) -> list[Replay]:
        """Which rejects of a task of a run were claimed, by number."""
        if not self._exists():
            return []
        rows = self._connection.query(self._sql("replays"), (of_run, task)).rows
        return [
            Replay(
                run_id=run_id or "",
                first=int(first or 0),
                last=int(last or 0),
                action=action or "",
                status=status or "",
                taken_at=None if taken_at is None else datetime.fromisoformat(taken_at),
                rows_loaded=int(loaded or 0),
                rows_rejected=int(rejected or 0),
                rows_filtered=int(filtered or 0),
                rows_added=None if added is None else int(added),
                is_half=is_half == "t",
            )
            for run_id, first, last, action, status, taken_at, loaded, rejected, filtered, added, is_half in rows
        ]

    def replaced_since(self, run_id: str, task: str, schema: str, table: str) -> str | None:
        """A later run that has made the table, or its rows, anew."""
        return one_value(self._connection, self._sql("replaced_since"), (run_id, task, schema, table))

    def _exists(self) -> bool:
        """False in a ledger of a version that had no replays."""
        name = f"{quote(self._schema)}.replay"
        return one_value(self._connection, "SELECT pg_catalog.to_regclass($1)", (name,)) is not None

    def _sql(self, name: str) -> str:
        return sql(name).format(schema=quote(self._schema))


def require_claim(
    connection: Connection, ledger: Ledger, run_id: str, task: str, table: TableName, claim: ReplayPlan
) -> None:
    """Raises LedgerError unless the replay may have what it claims. The caller holds the lock of the table, for which
    all replays into it wait: who has claimed the same and lives looks here behind us; who is dead can commit nothing
    any more.
    """
    replays = ReplayLedger(connection, ledger.schema)
    others = (item for item in replays.replays(claim.of_run, task) if item.run_id != run_id)
    rivals = overlaps(claim, (other for other in others if other.status == "running"))
    for other_id in dict.fromkeys(other.run_id for other, _ in rivals):
        fence_dead(connection, ledger, other_id)
    loaded = replays.loaded_table(claim.of_run, task)
    if loaded is not None:  # by the name in the ledger, which holds no secrets
        later = replays.replaced_since(claim.of_run, task, loaded.schema or "", loaded.table)
        refuse_replaced(claim, str(table), later)
    refuse_taken(run_id, claim, replays.replays(claim.of_run, task))
