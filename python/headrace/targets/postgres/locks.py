"""Advisory locks: a run holds one for itself and one for the table that it loads; both end with its session. And the
server's own lock of the table, at the moment of the switch.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Final

from headrace.errors import CancelledError, HeadraceError, TargetBusyError
from headrace.targets.base import Notice
from headrace.targets.postgres.connection import Connection, lock_timeout, one_row, one_value, sql, texts
from headrace.targets.postgres.failures import sqlstate
from headrace.targets.postgres.names import TableName, table_lock_key

_POLL_SECONDS: Final = 0.2
# While a request for an exclusive lock waits, everybody who comes later waits behind it, readers too.
_SWITCH_WAIT_SECONDS: Final = 2.0
# Part of the server's `deadlock_timeout` that may pass while locks are held and others waited for.
_OTHERS_SHARE: Final = 0.2
_FIRST_PAUSE_SECONDS: Final = 0.25
_LONGEST_PAUSE_SECONDS: Final = 4.0
_LOCK_NOT_AVAILABLE: Final = "55P03"
_DEADLOCK: Final = "40P01"
EVERYBODY_OUT: Final = "{table} IN ACCESS EXCLUSIVE"


def try_lock(connection: Connection, key: int) -> bool:
    """Takes the lock for this session if nobody else has it. It counts: each success needs one `unlock`."""
    return one_value(connection, "SELECT pg_catalog.pg_try_advisory_lock($1::bigint)", (str(key),)) == "t"


def unlock(connection: Connection, key: int) -> None:
    """Gives a lock back; with a dead connection it is gone already."""
    with suppress(HeadraceError):
        connection.query("SELECT pg_catalog.pg_advisory_unlock($1::bigint)", (str(key),))


@contextmanager
def table_lock(
    connection: Connection,
    table: TableName,
    timeout_seconds: float,
    notice: Notice,
    is_cancelled: Callable[[], bool],
) -> Iterator[None]:
    """Holds the lock of the table; waits for another run that does, and raises TargetBusyError after the timeout."""
    database = one_value(connection, "SELECT pg_catalog.current_database()") or ""
    key = table_lock_key(database, table)
    deadline = time.monotonic() + timeout_seconds
    said = False
    while not try_lock(connection, key):
        holder = f"{lock_holder(connection, key)} loads it"
        if time.monotonic() >= deadline:
            raise TargetBusyError(
                f"table {table} is being loaded by another run",
                found=holder,
                expected=f"it to end within {timeout_seconds:g} seconds",
                hint="Wait for that run, or wait longer: `lock_timeout_seconds` of the connection.",
            )
        if not said:
            said = True
            notice(f"waiting up to {timeout_seconds:g} seconds for table {table}: {holder}")
        if is_cancelled():
            raise CancelledError(f"cancelled while waiting for table {table}")
        time.sleep(_POLL_SECONDS)
    try:
        yield
    finally:
        unlock(connection, key)


@dataclass(frozen=True)
class SwitchLock:
    """Keeps everybody out of a table; or with another `lock` (what stands between LOCK TABLE and MODE) whom that one
    keeps out.
    """

    table: TableName
    oid: str
    lock: str = EVERYBODY_OUT

    @property
    def statement(self) -> str:
        """LOCK TABLE."""
        return f"LOCK TABLE {self.lock.format(table=self.table.sql)} MODE"


def lock_for_switch(
    connection: Connection,
    locks: Sequence[SwitchLock],
    timeout_seconds: float,
    pause_for: Callable[[float], object] | None = None,
) -> None:
    """Takes the locks until the end of the open transaction, which stays usable meanwhile. Raises TargetBusyError after
    the timeout. `pause_for`: lets so many seconds go by between two tries, unless it raises.

    All of them or none. Whoever holds a lock and waits for another may meet somebody who does it the other way round,
    and the server ends who has waited for its `deadlock_timeout`: not us, but a reader. So only the first lock is
    waited for, a moment at a time, and the others, behind it, for a small part of that time all together. Another one
    is the first the next time.
    """
    deadline = time.monotonic() + timeout_seconds
    pause = _FIRST_PAUSE_SECONDS
    wait = min(_SWITCH_WAIT_SECONDS, max(timeout_seconds, _POLL_SECONDS))  # 0 would be for ever
    order = list(locks)
    others_wait = _others_wait(connection, len(locks) - 1) if len(locks) > 1 else []
    while True:
        connection.execute(f"SAVEPOINT headrace_lock; SET LOCAL lock_timeout = '{wait:g}s'")
        first, *others = (lock.statement for lock in order)
        try:
            # In one request: between the locks nobody waits for us.
            connection.execute("; ".join([first, *others_wait, *others]))
        except HeadraceError as error:
            if sqlstate(error) not in (_LOCK_NOT_AVAILABLE, _DEADLOCK):
                raise
            connection.execute("ROLLBACK TO SAVEPOINT headrace_lock; RELEASE SAVEPOINT headrace_lock")
            if time.monotonic() >= deadline:
                raise _busy(connection, locks, timeout_seconds) from error
            order.append(order.pop(0))
            (pause_for or time.sleep)(pause)
            pause = min(2 * pause, _LONGEST_PAUSE_SECONDS)
        else:
            connection.execute(
                f"RELEASE SAVEPOINT headrace_lock; SET LOCAL lock_timeout = '{lock_timeout(timeout_seconds)}'"
            )
            return


def _others_wait(connection: Connection, count: int) -> list[str]:
    """Limits how long each of so many locks is waited for while others are held."""
    deadlock_timeout = one_value(
        connection,
        "SELECT pg_catalog.date_part('epoch', pg_catalog.current_setting('deadlock_timeout')::pg_catalog.interval)",
    )
    milliseconds = max(1, int(1000 * float(deadlock_timeout or 1) * _OTHERS_SHARE) // count)
    return [f"SET LOCAL lock_timeout = '{milliseconds}ms'"]


def _busy(connection: Connection, locks: Sequence[SwitchLock], timeout_seconds: float) -> TargetBusyError:
    held = [(lock, texts(connection, sql("lock_holders"), (lock.oid,))) for lock in locks]
    lock, holders = next((item for item in held if item[1]), held[0])
    return TargetBusyError(
        f"table {lock.table} is in use: it cannot be exchanged at this moment",
        found=", ".join(holders) or "sessions that have ended by now",
        expected=f"nobody to use it for a moment within {timeout_seconds:g} seconds",
        hint="End them, or wait longer: `lock_timeout_seconds` of the connection.",
    )


def lock_holder(connection: Connection, key: int) -> str:
    """The session that holds an advisory lock, for messages."""
    row = one_row(connection, sql("lock_holder"), (str(key),))
    if row is None:
        return "a session that is just ending"
    name, process_id, user, host = row
    return f"session {process_id} (`{name}`) of user {user} from {host}"
