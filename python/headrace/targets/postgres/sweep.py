"""Cleans up behind dead runs. A run is dead when its advisory lock is free: its control session is gone."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from headrace.errors import TargetBusyError, TargetError
from headrace.planning import counted
from headrace.targets.base import LostRun
from headrace.targets.postgres.connection import Connection, sql, texts, transaction
from headrace.targets.postgres.ledger import Ledger
from headrace.targets.postgres.locks import try_lock, unlock
from headrace.targets.postgres.names import (
    TableName,
    parse_staging_name,
    quote,
    run_lock_key,
    session_prefix,
    table_key,
)

_END_SESSIONS_SECONDS: Final = 10.0
_POLL_SECONDS: Final = 0.05


def sweep_runs(connection: Connection, ledger: Ledger, own_run: str) -> list[LostRun]:
    """Marks dead runs as lost and ends what is left of their sessions. Their hidden tables stay, for `resume`.

    What a run looks like that is dying just now is seen only behind the lock of its table: sweep again there.
    """
    lost = []
    for run_id in ledger.running(own_run):
        with _if_dead(connection, run_id) as dead:
            if dead and _sessions_ended(connection, run_id):
                ledger.mark_lost(run_id)
                lost.append(LostRun(run_id, ledger.visible_tables(run_id)))
    return lost


def sweep_staging(
    connection: Connection, ledger: Ledger | None, hidden_schema: str, table: TableName, own_run: str
) -> None:
    """Drops what dead runs have left behind for this table. The caller holds the table's lock."""
    left: dict[str, list[str]] = defaultdict(list)
    for name in texts(connection, sql("tables_in_schema"), (hidden_schema,)):
        parsed = parse_staging_name(name)
        if parsed and parsed.table_key == table_key(table) and parsed.run_id != own_run:
            left[parsed.run_id].append(name)
    for run_id, names in left.items():
        with _if_dead(connection, run_id) as dead:
            if dead:
                end_sessions(connection, run_id)
                if ledger is not None:
                    ledger.mark_lost(run_id)
                drop_staging(connection, ledger, hidden_schema, run_id, names)


def drop_staging(
    connection: Connection, ledger: Ledger | None, hidden_schema: str, run_id: str, names: Sequence[str]
) -> None:
    """Drops staging tables of a run and the commit rows that vouched for their contents, in one transaction."""
    with transaction(connection):
        for name in names:
            connection.execute(f"DROP TABLE IF EXISTS {quote(hidden_schema)}.{quote(name)}")
        if ledger is not None:
            ledger.forget_commits(run_id, names)


def end_sessions(connection: Connection, run_id: str) -> None:
    """Ends the sessions of a run and waits until the server has rolled their work back."""
    deadline = time.monotonic() + _END_SESSIONS_SECONDS
    while sessions := connection.query(sql("sessions"), (session_prefix(run_id),)).rows:
        permitted = [process_id for process_id, may_end in sessions if may_end == "t"]
        if not permitted or time.monotonic() >= deadline:
            raise _still_there(run_id, [str(row[0]) for row in sessions])
        for process_id in permitted:
            connection.query("SELECT pg_terminate_backend($1::int)", (process_id,))
        time.sleep(_POLL_SECONDS)


def _sessions_ended(connection: Connection, run_id: str) -> bool:
    """False if they cannot be ended: then the run is left to somebody who may, unless it is in our way."""
    try:
        end_sessions(connection, run_id)
    except TargetBusyError:
        return False
    return True


def refuse_half_appended(ledger: Ledger, table: TableName, own_run: str) -> None:
    """Raises TargetError if a dead run has appended some of its slices to the table: doing it all again would double
    them.
    """
    for run_id, status, slices, committed in ledger.half_appended(table, own_run):
        raise TargetError(
            f"table {table} holds a part of what run {run_id} was to append",
            found=f"{committed} of {counted(slices, 'slice')} committed, status {status}",
            hint=f"Load the rest first: headrace resume {run_id}",
        )


@contextmanager
def _if_dead(connection: Connection, run_id: str) -> Iterator[bool]:
    """True if the run is dead. Holds its lock meanwhile, so that nobody else sweeps or resumes it."""
    key = run_lock_key(run_id)
    dead = try_lock(connection, key)
    try:
        yield dead
    finally:
        if dead:
            unlock(connection, key)


def _still_there(run_id: str, process_ids: list[str]) -> TargetBusyError:
    return TargetBusyError(
        f"sessions of the dead run {run_id} are still working",
        found=f"process {', '.join(process_ids)} of the server",
        hint=f"Ask an administrator: SELECT pg_terminate_backend({process_ids[0]})",
    )
