"""What a server must be before a run may begin on it, and what a plan says of it."""

from __future__ import annotations

from typing import Final

from headrace.errors import TargetError
from headrace.model import PostgresConnection
from headrace.targets.postgres.connection import Connection, one_row, one_value, sql

# Without an encoding the server cannot tell characters, and a client cannot know what it stores.
NO_ENCODING: Final = "SQL_ASCII"
_SESSION_MODE: Final = "Connect to the server itself, or to a pooler in session mode that passes process ids on."


def require_server(connection: Connection, shown: str) -> None:
    """Raises TargetError for a standby, a database without an encoding, and a pooler that hides who serves us."""
    process_id, standby, encoding = one_row(connection, sql("server")) or [None, None, None]
    if standby == "t":
        raise TargetError(
            f"the server of {shown} is a standby, which only reads", hint="Name the primary in the connection."
        )
    if encoding == NO_ENCODING:
        raise TargetError(
            f"the database of {shown} takes any bytes as text",
            found=f"encoding {NO_ENCODING}",
            expected="an encoding such as UTF8, so that text is what it was in the files",
            hint="Make a database with UTF8: CREATE DATABASE ... ENCODING 'UTF8' TEMPLATE template0",
        )
    if process_id != str(connection.process_id()):
        raise _pooled(shown, f"process {process_id} serves the session, and {connection.process_id()} was promised")


def require_session(connection: Connection, key: int, shown: str) -> None:
    """Raises TargetError if the advisory lock that was just taken is not this session's any more."""
    if one_value(connection, sql("holds_lock"), (str(key),)) is None:
        raise _pooled(shown, "another process of the server serves each transaction")


def notes_of(connection: Connection, model: PostgresConnection) -> tuple[str, ...]:
    """What a plan should say about the destination itself."""
    notes = []
    if model.ledger_schema is None:
        notes.append(f"{model.name} has no ledger: a run that dies can be run again, but not resumed")
    role = one_value(connection, "SHOW session_replication_role")
    if role == "replica":
        notes.append(
            f"sessions of the user of {model.name} have session_replication_role = {role}: no trigger fires, "
            "and foreign keys are not checked"
        )
    return tuple(notes)


def _pooled(shown: str, found: str) -> TargetError:
    return TargetError(
        f"{shown} is reached through a pooler that gives each transaction any session",
        found=found,
        expected="one session of the server for one connection: locks of a run belong to its session",
        hint=_SESSION_MODE,
    )
