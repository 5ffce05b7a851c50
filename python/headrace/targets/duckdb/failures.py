"""DuckDB's exceptions as Headrace errors. DuckDB's own words are always kept as `found`.

The class of the exception decides. Where one class covers several causes (IOException), the operating system is asked
instead of the message, except for a full disk: by the time we could ask, the rollback has made room again, so the
system's own text for that error is looked for.
"""

from __future__ import annotations

import errno
import os
import re
from pathlib import Path
from typing import Final

import duckdb

from headrace.errors import HeadraceError, LedgerError, MemoryLimitError, TargetBusyError, TargetError

_DISK_FULL = (os.strerror(errno.ENOSPC), os.strerror(errno.EDQUOT))
# "Conflicting lock is held in /usr/bin/python3 (PID 4711)": only to name the process, never to decide anything.
_LOCK_OWNER = re.compile(r"held in (?P<program>\S.*?) \(PID (?P<pid>\d+)\)")
_MAGIC_OFFSET_BYTES = 8
_MAGIC = b"DUCK"


def load_failure(error: duckdb.Error, what: str, path: Path) -> HeadraceError:
    """The error for a failed statement. `what` says what was being done to which table."""
    text = first_paragraph(error)
    if isinstance(error, duckdb.OutOfMemoryException):
        return MemoryLimitError(
            f"{what}: DuckDB needs more memory than its part of the budget",
            found=text,
            hint="Raise `memory` of the package, or free disk space where the run folder is, so that DuckDB can spill.",
        )
    if is_disk_full(error):
        return disk_full(error, what, path, "; nothing was loaded")
    if isinstance(error, duckdb.ConstraintException):
        return TargetError(
            f"{what}: a row breaks a constraint of the table; nothing was loaded",
            found=text,
            hint="Correct the row in the source, or change the constraint. Loading again gives the same answer.",
        )
    return TargetError(f"{what}: DuckDB refused; nothing was loaded", found=text)


def ledger_failure(error: duckdb.Error, what: str, path: Path) -> HeadraceError:
    """The error for a failed statement of the ledger."""
    if is_disk_full(error):
        return disk_full(error, what, path)
    return LedgerError(
        what,
        at={"file": str(path)},
        found=first_paragraph(error),
        hint="The tables of schema `headrace` may have been changed by hand; drop that schema to start a new ledger.",
    )


NEEDS_TRUST: Final = (
    "SQL of a package that is not trusted reaches no file but the database: after a look at what it does, run it with "
    "--trust."
)


def needs_trust(error: duckdb.Error) -> str | None:
    """What to do about a file that SQL has not reached, because its package is not trusted; None for other errors."""
    return NEEDS_TRUST if isinstance(error, duckdb.PermissionException) else None


def is_disk_full(error: duckdb.Error) -> bool:
    """True if DuckDB met a full disk or quota, while writing or (wrapped) while committing."""
    return any(text in str(error) for text in _DISK_FULL)


def disk_full(error: duckdb.Error, what: str, path: Path, consequence: str = "") -> TargetError:
    """The error for a full disk. The transaction is undone; the file keeps the space it has, for the next load."""
    return TargetError(
        f"{what}: no space left on the disk{consequence}",
        at={"file": str(path)},
        found=first_paragraph(error),
        hint=f"Free space in {path.parent} and run again.",
    )


def open_failure(error: duckdb.Error, path: Path) -> TargetError | None:
    """Why the file cannot be opened; None if the operating system shows no reason (any more): try once more.

    Must only be called after ATTACH failed: closing a file drops every lock this process holds on it.
    """
    text = first_paragraph(error)
    at = {"file": str(path)}
    if is_disk_full(error):
        return disk_full(error, "cannot create the database", path)
    if isinstance(error, duckdb.ResourceInUseException):
        return TargetBusyError(
            "this process has the database open already", at=at, found=text, hint="Close the other connection first."
        )
    if not isinstance(error, duckdb.IOException):
        return damaged(error, path)
    problem = path_problem(path)
    if problem is not None:
        return problem
    if not path.exists():
        return TargetError("cannot create the database", at=at, found=text)
    return _file_problem(path, text)


def damaged(error: duckdb.Error, path: Path) -> TargetError:
    """The error for a file that DuckDB cannot read although everything outside it is well."""
    return TargetError(
        "cannot open the database",
        at={"file": str(path)},
        found=first_paragraph(error),
        hint="The file may be damaged; restore it from a backup, or load into a new one.",
    )


def path_problem(path: Path) -> TargetError | None:
    """What is wrong with the path, found without opening the file."""
    at = {"file": str(path)}
    if path.is_dir():
        return TargetError(
            "the database is a folder, not a file", at=at, hint=f"Name a file in it: {path / 'warehouse.duckdb'}"
        )
    parent = path.parent
    if not parent.is_dir():
        return TargetError(
            "the folder of the database does not exist",
            at=at,
            found=f"no folder {parent}",
            hint=f"Create it first: mkdir -p {parent}",
        )
    if not path.exists() and not os.access(parent, os.W_OK | os.X_OK):
        return TargetError(
            "cannot create the database: the folder is read-only for this user",
            at=at,
            hint=f"Get the right to write in {parent}, or choose another folder.",
        )
    return None


def _file_problem(path: Path, text: str) -> TargetError | None:
    at = {"file": str(path)}
    try:
        file = path.open("r+b")
    except OSError as error:
        return TargetError(
            "cannot open the database for writing",
            at=at,
            found=error.strerror or text,
            hint="Get the right to write the file, or load into another one.",
        )
    with file:
        if _locked_by_another_process(file.fileno()):
            return _busy(text, at)
        head = file.read(_MAGIC_OFFSET_BYTES + len(_MAGIC))
    if head[_MAGIC_OFFSET_BYTES:] != _MAGIC:
        return TargetError(
            "the file is not a DuckDB database",
            at=at,
            found="an empty file" if not head else text,
            hint="Name another file, or move this one away.",
        )
    return None


def _locked_by_another_process(file_descriptor: int) -> bool:
    try:
        import fcntl
    except ImportError:  # Windows: opening the file would have failed already
        return False
    try:
        fcntl.lockf(file_descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return True
    fcntl.lockf(file_descriptor, fcntl.LOCK_UN)
    return False


def _busy(text: str, at: dict[str, str]) -> TargetBusyError:
    owner = _LOCK_OWNER.search(text)
    found = f"process {owner['pid']} ({owner['program']}) has it open" if owner else text
    return TargetBusyError(
        "the database is locked by another process",
        at=at,
        found=found,
        hint="Close the database there, or wait longer: `lock_timeout_seconds` of the connection.",
    )


def first_paragraph(error: BaseException) -> str:
    """DuckDB's message without the general advice and links that follow it."""
    return str(error).split("\n\n", maxsplit=1)[0].strip()
