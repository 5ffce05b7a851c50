"""The control connection: catalog, DDL, ledger and switch go through it; the rows never do."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from importlib.resources import files
from typing import Any, Final, Protocol

from headrace.errors import HeadraceError

ConnectionSpec = Mapping[str, Any]
Row = list[str | None]

# A session of a load waits without a word while the others work, and its statements take as long as they need.
# Names and text must mean in every session what they mean here.
_SETTINGS: Final = {
    "statement_timeout": "0",
    "idle_in_transaction_session_timeout": "0",
    "idle_session_timeout": "0",
    "transaction_timeout": "0",
    "default_transaction_isolation": "read committed",
    "default_transaction_read_only": "off",
    "standard_conforming_strings": "on",
    "quote_all_identifiers": "off",
    "datestyle": "ISO",
    "intervalstyle": "postgres",
}
_NEWER_SETTINGS: Final = {"transaction_timeout": 17}
# Unless somebody has decided otherwise: the server ends the session of a client that is gone, and so its locks, within
# two minutes instead of two hours; nobody reads notices. Keepalive asks only who has acknowledged everything: for the
# others there is the user timeout.
_UNLESS_DECIDED: Final = {
    "tcp_keepalives_idle": "60",
    "tcp_keepalives_interval": "10",
    "tcp_keepalives_count": "6",
    "tcp_user_timeout": "120s",
    "client_min_messages": "warning",
}
# Whatever default a user or a database has: a stricter level would fail with errors of its own, and the fence has to
# see what others have committed meanwhile.
BEGIN: Final = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE"
_BEGIN_SNAPSHOT: Final = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"


class QueryResult(Protocol):
    """Rows as text; `tag` is the server's word for what it did, such as `INSERT 0 4`."""

    @property
    def columns(self) -> list[str]: ...
    @property
    def rows(self) -> list[Row]: ...
    @property
    def tag(self) -> str: ...


class Connection(Protocol):
    """`core.PostgresConnection`, as this target uses it."""

    def execute(self, sql: str) -> None: ...
    def query(self, sql: str, parameters: Sequence[str | None] = ()) -> QueryResult: ...
    def parameter(self, name: str) -> str | None: ...
    def address(self) -> str | None: ...
    def process_id(self) -> int: ...
    def cancel(self) -> None: ...
    def close(self) -> None: ...


@cache
def sql(name: str) -> str:
    """The text of `sql/<name>.sql`.

    The user's search_path decides what a name means there, and somebody else may have made functions and operators in
    its schemas. So all functions are written with pg_catalog, and operators stand between values of one type.
    """
    return files("headrace.targets.postgres").joinpath("sql", f"{name}.sql").read_text(encoding="utf-8")


def server_major(connection: Connection) -> int:
    """The server's major version, such as 16."""
    text = connection.parameter("server_version") or "0"
    digits = text.split(".")[0].split()[0]
    return int("".join(character for character in digits if character.isdigit()) or 0)


def session_settings(connection: Connection, lock_timeout_seconds: float) -> dict[str, str]:
    """Settings of every session of a load, by name. `connection` has none of them yet."""
    version = server_major(connection)
    settings = {name: value for name, value in _SETTINGS.items() if version >= _NEWER_SETTINGS.get(name, 0)}
    undecided = texts(connection, sql("undecided_settings"), (array(tuple(_UNLESS_DECIDED)),))
    chosen = {name: value for name, value in _UNLESS_DECIDED.items() if name in undecided}
    return {**settings, **chosen, "lock_timeout": lock_timeout(lock_timeout_seconds)}


def lock_timeout(seconds: float) -> str:
    """The server's setting; 0 would be for ever there, and is not at all here."""
    return f"{max(seconds, 0.001):g}s"


def startup_options(own: str | None, settings: Mapping[str, str]) -> str:
    """The `options` with which a writer logs in: those of its user, then ours. Blanks end a setting there."""
    ours = [f"-c {name}={value.replace(' ', chr(92) + ' ')}" for name, value in settings.items()]
    return " ".join([own, *ours] if own else ours)


def prepare_session(connection: Connection, settings: Mapping[str, str]) -> None:
    """Sets on the control connection what writers get when they log in."""
    connection.execute("; ".join(f"SET {name} = '{value}'" for name, value in settings.items()))
    # The server notices at once that we are gone, also while it builds an index. Not all its systems can.
    with suppress(HeadraceError):
        connection.execute("SET client_connection_check_interval = '1s'")


def one_row(connection: Connection, text: str, parameters: Sequence[str | None] = ()) -> Row | None:
    """The first row; None if there is none."""
    rows = connection.query(text, parameters).rows
    return rows[0] if rows else None


def one_value(connection: Connection, text: str, parameters: Sequence[str | None] = ()) -> str | None:
    """The first value of the first row; None also if there is no row."""
    row = one_row(connection, text, parameters)
    return None if row is None else row[0]


def texts(connection: Connection, text: str, parameters: Sequence[str | None] = ()) -> tuple[str, ...]:
    """The first column of all rows, NULL left out."""
    return tuple(row[0] for row in connection.query(text, parameters).rows if row[0] is not None)


def rows_done(tag: str) -> int:
    """The number of rows in a command tag."""
    count = tag.rsplit(" ", 1)[-1]
    return int(count) if count.isdecimal() else 0


def array(values: Sequence[object]) -> str:
    """The values as an array literal; texts are quoted, None is NULL."""
    items = ('"' + str(value).replace("\\", "\\\\").replace('"', '\\"') + '"' for value in values)
    return "{" + ",".join("NULL" if value is None else item for value, item in zip(values, items, strict=True)) + "}"


@contextmanager
def transaction(connection: Connection) -> Iterator[None]:
    """BEGIN, and COMMIT or on any exception ROLLBACK."""
    with _begun(connection, BEGIN):
        yield


@contextmanager
def snapshot(connection: Connection) -> Iterator[None]:
    """A transaction whose queries all see the same moment, and which changes nothing."""
    with _begun(connection, _BEGIN_SNAPSHOT):
        yield


@contextmanager
def _begun(connection: Connection, begin: str) -> Iterator[None]:
    connection.execute(begin)
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        roll_back(connection)
        raise


def roll_back(connection: Connection) -> None:
    """Ends the open transaction, if the connection still lives."""
    with suppress(HeadraceError):
        connection.execute("ROLLBACK")
