"""The server's errors as Headrace errors. The SQLSTATE decides; the server's own words are always kept as `found`.

Codes: PostgreSQL manual, appendix "PostgreSQL Error Codes".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from headrace.errors import CancelledError, HeadraceError, LedgerError, SqlError, TargetBusyError, TargetError
from headrace.targets.postgres.names import quote


@dataclass(frozen=True)
class Advice:
    """`reason` completes the sentence; `retry`: the same statement can work later."""

    reason: str
    hint: str | None = None
    retry: bool = False


_CHECK_ROW: Final = (
    "Correct the row in the source, or change the constraint. Loading again without that gives the same answer."
)
_RETRY: Final = "Run again."
# By code, else by its class: the first two characters.
_ADVICE: Final[Mapping[str, Advice]] = {
    "23502": Advice("a value is missing in a column that is NOT NULL", _CHECK_ROW),
    "23503": Advice("a row refers to a row of another table that is not there", "Load the other table first."),
    "23505": Advice("two rows have the same key", _CHECK_ROW),
    "23514": Advice("a row breaks a CHECK constraint or belongs to no partition", _CHECK_ROW),
    "23P01": Advice("two rows exclude each other", _CHECK_ROW),
    "22": Advice("the server cannot store a value", _CHECK_ROW),
    "23": Advice("a row breaks a constraint of the table", _CHECK_ROW),
    "25006": Advice("the server only reads: it is a standby, or its transactions are read-only", "Name the primary."),
    "28": Advice("the server refuses the login", "Check user, password and the server's pg_hba.conf."),
    "3D000": Advice("the database does not exist", "Create it first, or correct the name in the connection."),
    "3F000": Advice("the schema does not exist", "Create it first."),
    "2BP01": Advice("other objects depend on the table", "Drop them first, or use `target: append`."),
    "40": Advice("the server ended the transaction in favour of another one", _RETRY, retry=True),
    "42501": Advice("the user has not the right to do this", "Ask the owner for the right, or use another user."),
    "42P01": Advice("a table is gone that was there before", "Find out who has dropped it, and run again."),
    "42P07": Advice("another table of that name has appeared meanwhile", "Find out who has made it, and run again."),
    "42P17": Advice("a partition does not fit beside the others", "Compare the bounds of the partitions."),
    "53100": Advice("the server has no space left on its disk", "Free space there and run again."),
    "53400": Advice(
        "the server allows no larger temporary files",
        "Raise temp_file_limit or work_mem for the user, or let fewer rows be sorted and hashed at a time.",
    ),
    "53200": Advice("the server has no memory left", "Use fewer streams, or give the server more memory.", retry=True),
    "53300": Advice(
        "the server takes no more sessions", "Use fewer streams, or raise max_connections of the server.", retry=True
    ),
    "55006": Advice("another session uses the table", _RETRY, retry=True),
    "55P03": Advice(
        "other sessions did not give the table free in time",
        "End them, or wait longer: `lock_timeout_seconds` of the connection.",
        retry=True,
    ),
    "57P": Advice("the server has ended the session", _RETRY, retry=True),
    "57014": Advice("the server was told to stop the statement", _RETRY, retry=True),
    "58": Advice("the server's system failed", "Look into the log of the server."),
    "08": Advice("the connection was lost", _RETRY, retry=True),
    "XX": Advice("the server reports a defect of its own", "Look into the log of the server."),
}
_UNKNOWN: Final = Advice("PostgreSQL refused")
# The class of what no other statement would help.
_NO_RESOURCES: Final = "53"
_NO_VALUES: Final = (
    "PostgreSQL takes values in queries, INSERT, UPDATE, DELETE, MERGE and CALL alone. Where a name is meant, put it "
    "under `identifiers`."
)
# More values were sent than a statement has places for: no trouble of the connection, as the class of the code says.
VALUES_NOT_TAKEN: Final = "08P01"
# Of statements that users have written.
_STATEMENT_HINTS: Final[Mapping[str, str]] = {
    "25001": "Write `transaction: false`, so that the statement is not part of a transaction.",
    "25006": "A query for values must only read: make a task of kind `sql` of what changes something.",
    VALUES_NOT_TAKEN: _NO_VALUES,
    "42P02": _NO_VALUES,
}
# By code, or its class: of rows that are read.
_READING_HINTS: Final[Mapping[str, str]] = {
    "22": "Mend the row or the view, or look rows up by a query that leaves such rows out.",
    "25006": "Nothing can be changed while rows are read: look them up in a table, or by a query that only reads.",
}


def explained(error: HeadraceError, what: str, consequence: str = "") -> HeadraceError:
    """The error for a failed statement. `what` says what was being done; `consequence` what it means for the rows.

    An error that is not the server's (a lost connection, a cancellation) keeps its class and its words.
    """
    server = fields_of(error)
    if isinstance(error, CancelledError) or error.what.startswith(what):
        return error
    if server is None:
        return _same_class(error, f"{what}: {error.what}{consequence}")
    advice = advice_for(str(server.get("sqlstate") or ""))
    error_class = TargetBusyError if advice.retry else TargetError
    changed = error_class(
        f"{what}: {advice.reason}{consequence}",
        at=error.at,
        found=server_words(server),
        hint=advice.hint or _text(server, "hint"),
    )
    changed.server = dict(server)
    return changed


def reading_failure(error: HeadraceError, what: str) -> HeadraceError:
    """As `explained`, for rows that are read: nothing is stored, and values are those of the server."""
    server, code = fields_of(error), sqlstate(error)
    hint = _READING_HINTS.get(code) or _READING_HINTS.get(code[:2])
    if server is None or hint is None:
        return explained(error, what)
    changed = TargetError(f"{what}: PostgreSQL refused", at=error.at, found=server_words(server), hint=hint)
    changed.server = dict(server)
    return changed


def statement_failure(error: HeadraceError) -> HeadraceError:
    """The error for a failed statement of a user. What it says completes the sentence of whoever knows which it was."""
    server = fields_of(error)
    if server is None or isinstance(error, LedgerError | CancelledError):
        return error
    code = sqlstate(error)
    advice = advice_for(code)
    changed: HeadraceError
    if advice.retry and code not in _STATEMENT_HINTS:
        changed = TargetBusyError(advice.reason, found=server_words(server), hint=advice.hint)
    else:
        known = advice if code.startswith(_NO_RESOURCES) else _UNKNOWN
        hint = known.hint or _STATEMENT_HINTS.get(code) or _text(server, "hint")
        changed = SqlError(known.reason, found=server_words(server), hint=hint)
    changed.server = dict(server)
    return changed


def ledger_failure(error: HeadraceError, what: str, schema: str) -> HeadraceError:
    """The error for a failed statement of the ledger."""
    server = fields_of(error)
    if isinstance(error, LedgerError | CancelledError | TargetBusyError) or server is None:
        return error
    advice = advice_for(sqlstate(error))
    if advice.retry:
        return explained(error, what)
    hint = f"The tables of schema `{schema}` may have been changed by hand, or are those of another version. Drop "
    hint += "its tables run, slice, unit and commit to start a new ledger."
    if sqlstate(error) == "42501":
        hint = (
            f"Grant what is missing (CREATE on the database, or on schema {quote(schema)} and SELECT, INSERT, UPDATE, "
            "DELETE on its tables), or set another place: `ledger: {schema: NAME}` of the connection."
        )
    elif sqlstate(error) == "53100":
        hint = advice.hint or hint
    return LedgerError(what, at={"schema": schema}, found=server_words(server), hint=hint)


def sqlstate(error: HeadraceError) -> str:
    """The server's code, empty if the error is not the server's."""
    return str((fields_of(error) or {}).get("sqlstate") or "")


def fields_of(error: HeadraceError) -> Mapping[str, Any] | None:
    """What the server reported; None if the error is not the server's."""
    return error.server


def is_connection_lost(error: BaseException) -> bool:
    """True if the session is gone, so that nobody can say through it what became of its transaction."""
    if not isinstance(error, HeadraceError):
        return False
    code = sqlstate(error)
    return code.startswith(("08", "57P")) or (not code and isinstance(error, TargetBusyError))


def server_words(server: Mapping[str, Any]) -> str:
    """Message, detail and context as the server wrote them, one below the other, and the code.

    A context that begins with COPY names the hidden table and a line in it; the place in the source is in `at`.
    """
    lines = [f"{_text(server, 'message') or 'no message'} (SQLSTATE {server.get('sqlstate')})"]
    lines += [text for name in ("detail", "context") if (text := _text(server, name)) and not text.startswith("COPY ")]
    return "\n".join(lines)


def advice_for(code: str) -> Advice:
    """By the code itself, else by its class."""
    for length in (5, 3, 2):
        if code[:length] in _ADVICE:
            return _ADVICE[code[:length]]
    return _UNKNOWN


def _text(server: Mapping[str, Any], name: str) -> str | None:
    value = server.get(name)
    return None if value is None else str(value)


def _same_class(error: HeadraceError, what: str) -> HeadraceError:
    return type(error)(what, at=error.at, found=error.found, expected=error.expected, hint=error.hint)
