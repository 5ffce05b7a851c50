"""Errors of statements: which task it was, and where the statement stands."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from headrace.errors import CancelledError, HeadraceError, InternalError, LedgerError, PackageError


def placed(error: HeadraceError, task: str, at: Mapping[str, object]) -> HeadraceError:
    """The error with its task and its place; one that is not about a statement stays as it is."""
    if isinstance(error, CancelledError | InternalError | LedgerError | PackageError):
        return error
    more = {name: value for name, value in (error.at or {}).items() if name not in ("file", "line", "column")}
    changed = type(error)(
        f"a statement of task {task} failed: {error.what}",
        at={**at, **more},
        found=error.found,
        expected=error.expected,
        hint=error.hint,
    )
    changed.server = error.server
    return changed


def redacted(error: HeadraceError, redact: Callable[[str], str]) -> HeadraceError:
    """The same error without secrets. What a server has said beside it is left out where it holds one."""
    error.what = redact(error.what)
    error.args = (error.what,)
    for name in ("found", "expected", "hint"):
        text = getattr(error, name)
        setattr(error, name, None if text is None else redact(text))
    if error.server is not None:
        said = error.server.items()
        error.server = {name: redact(value) if isinstance(value, str) else value for name, value in said}
    return error
