"""Cleans up behind dead runs. A run is dead when its advisory lock is free: its control session is gone."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final, TypeVar

from headrace.errors import HeadraceError, TargetBusyError, TargetError
from headrace.planning import ALL_PARTITIONS, WHOLE_TABLE, counted
from headrace.targets.base import LostRun
from headrace.targets.postgres.connection import Connection, sql, texts, transaction
from headrace.targets.postgres.failures import ledger_failure, sqlstate
from headrace.targets.postgres.ledger import Ledger
from headrace.targets.postgres.locks import try_lock, unlock
from headrace.targets.postgres.names import (
    TableName,
    parse_staging_name,
    quote,
    run_lock_key,
    staging_name,
    table_key,
    writers_lock_key,
)

_END_WRITERS_SECONDS: Final = 10.0
_DYING_SECONDS: Final = 1.0
_POLL_SECONDS: Final = 0.05
_LOCK_NOT_AVAILABLE: Final = "55P03"
_Result = TypeVar("_Result")


def sweep_runs(connection: Connection, ledger: Ledger, own_run: str) -> list[LostRun]:
    """Marks dead runs as lost and ends what is left of their writers. Their hidden tables stay, for `resume`.

    What a run looks like that is dying just now is seen only behind the lock of its table: sweep again there.
    """
    lost = []
    for run_id in ledger.running(own_run):
        with if_dead(connection, run_id) as dead:
            if dead and _marked_lost(connection, ledger, run_id):
                lost.append(LostRun(run_id, ledger.visible_tables(run_id)))
    return lost


def unfinished_runs(connection: Connection, ledger: Ledger, package: str) -> list[LostRun]:
    """The runs of a package that are over without success."""
    unfinished = []
    try:
        runs = ledger.unfinished_runs(package)
    except HeadraceError as error:
        raise ledger_failure(error, "cannot read the ledger", ledger.schema) from error
    for run_id in runs:
        with if_dead(connection, run_id) as dead:
            # It may have ended well since the list was read.
            if dead and run_id in ledger.unfinished_runs(package):
                unfinished.append(LostRun(run_id, ledger.visible_tables(run_id)))
    return unfinished


def fence_dead(connection: Connection, ledger: Ledger, run_id: str) -> None:
    """If a run is dead, sees to it that nothing of it commits from now on. Raises TargetBusyError if its writers cannot
    be ended.
    """
    with if_dead(connection, run_id, _DYING_SECONDS) as dead:
        if dead:
            _mark_lost(connection, ledger, run_id)


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
        # A session that ends frees its locks one after the other: that of the table was free before that of the run.
        with if_dead(connection, run_id, _DYING_SECONDS) as dead:
            if dead:
                if ledger is None:
                    end_writers(connection, run_id)
                else:
                    _mark_lost(connection, ledger, run_id)
                drop_staging(connection, ledger, hidden_schema, run_id, names)


def staged_of(connection: Connection, hidden_schema: str, run_id: str, table: TableName) -> list[str]:
    """Names of all hidden tables that a run has made for a table, whatever was planned."""
    return [
        name
        for name in texts(connection, sql("tables_in_schema"), (hidden_schema,))
        if (parsed := parse_staging_name(name)) and (parsed.run_id, parsed.table_key) == (run_id, table_key(table))
    ]


def drop_staging(
    connection: Connection, ledger: Ledger | None, hidden_schema: str, run_id: str, names: Sequence[str]
) -> None:
    """Drops staging tables of a run and the commit rows that vouched for their contents, in one transaction."""
    with transaction(connection):
        for name in names:
            connection.execute(f"DROP TABLE IF EXISTS {quote(hidden_schema)}.{quote(name)}")
        if ledger is not None:
            ledger.forget_commits(run_id, names)


def drop_earlier(
    connection: Connection, ledger: Ledger | None, hidden_schema: str, run_id: str, table: TableName
) -> None:
    """Drops what an earlier attempt of the run has staged, in whatever partitions: it belongs to another moment."""
    named = [staging_name(run_id, table, partition) for partition in (WHOLE_TABLE, ALL_PARTITIONS)]
    names = dict.fromkeys([*staged_of(connection, hidden_schema, run_id, table), *named])
    drop_staging(connection, ledger, hidden_schema, run_id, list(names))


def drop_committed(
    connection: Connection, ledger: Ledger | None, hidden_schema: str, run_id: str, table: TableName
) -> None:
    """The same of a load, of which units may have committed: in an earlier try of this attempt perhaps just now."""
    if ledger is not None:
        try:
            ledger.wait_for_commits(run_id)
        except HeadraceError as error:
            if sqlstate(error) != _LOCK_NOT_AVAILABLE:  # SQL of another task is not waited for to its end
                raise
    drop_earlier(connection, ledger, hidden_schema, run_id, table)


def end_writers(connection: Connection, run_id: str) -> None:
    """Ends the writers of a dead run, and waits until the server has rolled their work back.

    That nobody holds their lock any more is the proof. Raises TargetBusyError if they cannot be ended.
    """
    key = writers_lock_key(run_id)
    deadline = time.monotonic() + _END_WRITERS_SECONDS
    while not try_lock(connection, key):
        writers = connection.query(sql("writers"), (str(key),)).rows
        permitted = [process_id for process_id, _, may_end in writers if may_end == "t"]
        if (writers and not permitted) or time.monotonic() >= deadline:
            raise _still_there(run_id, [f"process {process_id} of user {user}" for process_id, user, _ in writers])
        for process_id in permitted:
            connection.query("SELECT pg_catalog.pg_terminate_backend($1::int)", (process_id,))
        time.sleep(_POLL_SECONDS)
    unlock(connection, key)


def take_over(connection: Connection, run_id: str, change: Callable[[], _Result]) -> _Result:
    """Changes the row of a dead run, behind which none of its units passes the fence.

    A unit that is at the fence keeps the row locked; so `change` must wait for locks only a moment. Such a unit is
    ended with the others, also one that has begun since.
    """
    deadline = time.monotonic() + _END_WRITERS_SECONDS
    while True:
        end_writers(connection, run_id)
        try:
            return change()
        except HeadraceError as error:
            if sqlstate(error) != _LOCK_NOT_AVAILABLE or time.monotonic() >= deadline:
                raise


def _mark_lost(connection: Connection, ledger: Ledger, run_id: str) -> None:
    take_over(connection, run_id, lambda: ledger.mark_lost(run_id))
    end_writers(connection, run_id)


def _marked_lost(connection: Connection, ledger: Ledger, run_id: str) -> bool:
    """False if its writers cannot be ended: then the run is left to somebody who may, unless it is in our way."""
    try:
        _mark_lost(connection, ledger, run_id)
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
def if_dead(connection: Connection, run_id: str, dying_seconds: float = 0) -> Iterator[bool]:
    """True if the run is dead, or dies within `dying_seconds`. Holds its lock meanwhile, so that nobody else sweeps or
    resumes it.
    """
    key = run_lock_key(run_id)
    deadline = time.monotonic() + dying_seconds
    while not (dead := try_lock(connection, key)) and time.monotonic() < deadline:
        time.sleep(_POLL_SECONDS)
    try:
        yield dead
    finally:
        if dead:
            unlock(connection, key)


def _still_there(run_id: str, writers: list[str]) -> TargetBusyError:
    return TargetBusyError(
        f"sessions of the dead run {run_id} are still working",
        found=", ".join(writers) or "a prepared or ending transaction",
        hint="Ask an administrator to end them: SELECT pg_terminate_backend(PROCESS)",
    )
