"""Every error Headrace reports, as data first and text second.

An error carries what failed, where, what was found, what was expected and one action to take. The class says
whether trying again can help (`retryable`) and which exit code the command line uses (`exit_code`). All errors
pickle and keep their fields, so that a worker process can hand one to its parent.

This module imports nothing heavy: the command line loads it before anything else.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import ClassVar

EXIT_FAILED = 1
EXIT_CANCELLED = 3
EXIT_PACKAGE_NOT_FOUND = 4
EXIT_PACKAGE_INVALID = 5
EXIT_COMMAND_LINE = 6


class HeadraceError(Exception):
    """Base of all errors; raise one of the subclasses.

    `at` says where: `{"file", "row", "byte"}` in data (row from 1, byte from 0), `{"file", "line", "column"}` in a
    package (both from 1), or any other names and values. Members that are None are left out of the text.
    """

    kind: ClassVar[str] = "internal"
    exit_code: ClassVar[int] = EXIT_FAILED
    retryable: ClassVar[bool] = False

    def __init__(
        self,
        what: str,
        *,
        at: Mapping[str, object] | None = None,
        found: str | None = None,
        expected: str | None = None,
        hint: str | None = None,
    ) -> None:
        super().__init__(what)
        self.what = what
        self.at: dict[str, object] | None = dict(at) if at else None
        self.found = found
        self.expected = expected
        self.hint = hint
        self.server: dict[str, object] | None = None
        """What the server said, if a server reported it: severity, sqlstate, message, and, where known, detail, hint,
        context, schema, table, column, constraint, position."""
        self.destination: str | None = None
        """Of a data flow with several destinations: the one that an error of the core is about. Not shown: whoever
        catches the error says which table it is."""
        self.rows_committed = 0
        """Of a load that has failed: rows that stay in its table all the same, because they were committed before."""

    def __str__(self) -> str:
        return self.what

    def __reduce__(self) -> tuple[object, ...]:
        # Exception's own reduce calls the class with `args` only and would lose the keyword fields.
        return (_rebuild, (type(self), self.args, self.__dict__.copy()))

    def keep_committed(self, cause: BaseException | None) -> None:
        """Says which rows stay, and how to go on, where the error of a load is told by this one instead."""
        if cause is self or not isinstance(cause, HeadraceError) or not cause.rows_committed:
            return
        self.rows_committed, self.hint = cause.rows_committed, cause.hint
        self.what += f"; {rows_are(cause.rows_committed)} in the table"
        self.args = (self.what,)

    def render(self) -> str:
        """The error as people read it, without a final newline."""
        return render_error(self.what, self.at, self.found, self.expected, self.hint)

    def to_dict(self) -> dict[str, object]:
        """The error as JSON-ready data; the same members as an error that the Rust core reports."""
        data: dict[str, object] = {
            "kind": self.kind,
            "what": self.what,
            "at": self.at,
            "found": self.found,
            "expected": self.expected,
            "hint": self.hint,
            "retryable": self.retryable,
        }
        if self.server is not None:
            data["server"] = self.server
        return data


def rows_are(rows: int) -> str:
    """`1 of its rows is`, `2,000 of its rows are`."""
    return f"{rows:,} of its rows {'is' if rows == 1 else 'are'}"


def _rebuild(error_class: type[HeadraceError], args: tuple[object, ...], state: dict[str, object]) -> HeadraceError:
    error = error_class.__new__(error_class, *args)
    error.__dict__.update(state)
    return error


def render_error(
    what: str, at: Mapping[str, object] | None, found: str | None, expected: str | None, hint: str | None
) -> str:
    """Lay out one error: `error:` line, indented details, blank line, `hint:` line."""
    lines = [f"error: {_indented(what)}"]
    location = render_location(at)
    if location:
        lines.append(f"  at: {location}")
    if found is not None:
        lines.append(f"  found: {_indented(found)}")
    if expected is not None:
        lines.append(f"  expected: {_indented(expected)}")
    if hint is not None:
        lines += ["", f"hint: {_indented(hint)}"]
    return "\n".join(lines)


def render_location(at: Mapping[str, object] | None) -> str:
    """`file:line:column` for a place in a package, `file, row 12, byte 345` for a place in data; always one line."""
    known = {name: value for name, value in (at or {}).items() if value is not None}
    file = known.pop("file", None)
    if file is not None and "line" in known:
        place = f"{file}:{known.pop('line')}"
        if "column" in known:
            place += f":{known.pop('column')}"
        file = place
    parts = [] if file is None else [str(file)]
    parts += [f"{name.replace('_', ' ')} {value}" for name, value in known.items()]
    return on_one_line(", ".join(parts))


def without_controls(text: str) -> str:
    """Text that cannot steer a terminal: control characters other than line feeds are escaped."""
    if text.isprintable():
        return text
    return "".join(
        character if character.isprintable() or character == "\n" else repr(character)[1:-1] for character in text
    )


def on_one_line(text: str) -> str:
    """Text without control characters, line feeds escaped too: for names and paths."""
    return without_controls(text).replace("\n", "\\n")


def _indented(text: str) -> str:
    """Continuation lines are indented so that a detail of several lines stays below its own label."""
    return "\n    ".join(without_controls(text).rstrip("\n").split("\n"))


class CommandLineError(HeadraceError):
    """An option or argument is wrong; nothing was started."""

    kind = "command_line"
    exit_code = EXIT_COMMAND_LINE


class PackageNotFoundError(HeadraceError):
    """There is no package file at the given path."""

    kind = "package_not_found"
    exit_code = EXIT_PACKAGE_NOT_FOUND


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing wrong in a package or layout file. Line and column count from 1, the column in characters."""

    file: str
    line: int
    column: int
    what: str
    found: str | None = None
    expected: str | None = None
    hint: str | None = None

    def render(self) -> str:
        """The problem in the same shape as an error."""
        at = {"file": self.file, "line": self.line, "column": self.column}
        return render_error(self.what, at, self.found, self.expected, self.hint)


class PackageError(HeadraceError):
    """The package cannot be loaded; `problems` lists what is wrong, each with file, line and column.

    `problems_total` is larger than `len(problems)` when only the first ones are kept. `at` is the place of the
    first problem; a single problem fills the other fields too.
    """

    kind = "package"
    exit_code = EXIT_PACKAGE_INVALID

    def __init__(
        self,
        what: str,
        *,
        at: Mapping[str, object] | None = None,
        found: str | None = None,
        expected: str | None = None,
        hint: str | None = None,
        problems: Sequence[Problem] = (),
        problems_total: int | None = None,
    ) -> None:
        super().__init__(what, at=at, found=found, expected=expected, hint=hint)
        self.problems = list(problems)
        self.problems_total = len(self.problems) if problems_total is None else problems_total

    @classmethod
    def from_problems(cls, package: str, problems: Sequence[Problem], total: int | None = None) -> PackageError:
        """The error for a package with at least one problem; `total` counts those not listed too."""
        first = problems[0]
        count = len(problems) if total is None else total
        at = {"file": first.file, "line": first.line, "column": first.column}
        if count > 1:
            what = f"cannot load package {package}: {count} problems"
            return cls(what, at=at, problems=problems, problems_total=count)
        return cls(first.what, at=at, found=first.found, expected=first.expected, hint=first.hint, problems=problems)

    def render(self) -> str:
        """All problems one below the other; with several, a last line that counts them."""
        if self.problems_total <= 1:
            return super().render()
        blocks = [problem.render() for problem in self.problems]
        hidden = self.problems_total - len(self.problems)
        more = f"; the first {len(self.problems)} are shown" if hidden > 0 else ""
        return "\n\n".join([*blocks, f"{self.what}{more}"])

    def to_dict(self) -> dict[str, object]:
        """As for every error, and the list of problems."""
        return {
            **super().to_dict(),
            "problems": [asdict(problem) for problem in self.problems],
            "problems_total": self.problems_total,
        }


class BindingError(PackageError):
    """A task cannot be started: what its package says does not go together with the values of the moment."""

    kind = "binding"
    exit_code = EXIT_FAILED


class SourceError(HeadraceError):
    """A source file is missing, unreadable, empty or not a file."""

    kind = "source"


class FileChangedError(HeadraceError):
    """A source file changed while it was being read; nothing was committed."""

    kind = "file_changed"


class RejectLimitError(HeadraceError):
    """More rows were rejected than the data flow allows."""

    kind = "reject_limit"


class RowError(HeadraceError):
    """One row could not be loaded."""

    kind = "reject"


class MemoryLimitError(HeadraceError):
    """The memory budget is too small for the plan."""

    kind = "memory"


class OutputError(HeadraceError):
    """Files cannot be written: no space, no right, or other files in their place."""

    kind = "output"


class TargetError(HeadraceError):
    """The destination refused something; trying again gives the same answer."""

    kind = "target"


class TargetBusyError(TargetError):
    """The destination is locked or out of sessions; trying again later can work."""

    kind = "target_busy"
    retryable = True


class TypeMismatchError(TargetError):
    """A column of the layout does not fit the column of the target table."""

    kind = "type_mismatch"


class AccountsError(HeadraceError):
    """The accounts of rows do not balance; the task was rolled back."""

    kind = "accounts"


class DifferenceError(HeadraceError):
    """A table is not what its source files hold."""

    kind = "difference"


class LedgerError(HeadraceError):
    """The ledger in the destination cannot be read, written or trusted."""

    kind = "ledger"


class CancelledError(HeadraceError):
    """The run was stopped by its user; the target is as it was before."""

    kind = "cancelled"
    exit_code = EXIT_CANCELLED


class TaskTimeoutError(HeadraceError):
    """A task took longer than its `timeout_seconds`."""

    kind = "timeout"
    retryable = True


class ProcessError(HeadraceError):
    """A program that a task runs could not be started, or ended with an exit code that means failure."""

    kind = "process"


class ProcessRetryError(ProcessError):
    """The same, with an exit code after which trying again can help."""

    kind = "process_retry"
    retryable = True


class PythonTaskError(HeadraceError):
    """A Python function of a task cannot be called, raised an error, or returned what cannot be used."""

    kind = "python"


class SqlError(HeadraceError):
    """A statement of the package failed in the destination."""

    kind = "sql"


class FileTaskError(HeadraceError):
    """A file of a task cannot be copied, moved, deleted, made or archived."""

    kind = "file"


class ExpressionFailedError(HeadraceError):
    """A value that a task needs cannot be computed, or does not fit."""

    kind = "expression"


class TrustError(HeadraceError):
    """The package does what only a trusted package may, and nobody has said that it is one."""

    kind = "trust"
    exit_code = EXIT_PACKAGE_INVALID


class InternalError(HeadraceError):
    """A defect of Headrace itself."""

    kind = "internal"


_CLASSES: dict[str, type[HeadraceError]] = {
    error_class.kind: error_class
    for error_class in (
        CommandLineError,
        PackageNotFoundError,
        PackageError,
        BindingError,
        SourceError,
        FileChangedError,
        RejectLimitError,
        RowError,
        MemoryLimitError,
        OutputError,
        TargetError,
        TargetBusyError,
        TypeMismatchError,
        AccountsError,
        DifferenceError,
        LedgerError,
        CancelledError,
        TaskTimeoutError,
        ProcessError,
        ProcessRetryError,
        PythonTaskError,
        SqlError,
        FileTaskError,
        ExpressionFailedError,
        TrustError,
        InternalError,
    )
}


def error_classes() -> tuple[type[HeadraceError], ...]:
    """Every kind of error, in the order of the reference."""
    return tuple(_CLASSES.values())


def error_from_dict(data: Mapping[str, object]) -> HeadraceError:
    """The error that `to_dict` (or the Rust core) described; an unknown kind becomes an InternalError."""
    error_class = _CLASSES.get(str(data.get("kind")), InternalError)
    at = data.get("at")
    error = error_class(
        str(data.get("what")),
        at=at if isinstance(at, Mapping) else None,
        found=_text_or_none(data.get("found")),
        expected=_text_or_none(data.get("expected")),
        hint=_text_or_none(data.get("hint")),
    )
    server = data.get("server")
    error.server = dict(server) if isinstance(server, Mapping) else None
    error.destination = _text_or_none(data.get("destination"))
    return error


def _text_or_none(value: object) -> str | None:
    return None if value is None else str(value)
