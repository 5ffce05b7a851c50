"""A PostgreSQL session without a server: keeps every statement, and answers the queries it was told to answer."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from headrace.errors import CancelledError, HeadraceError, TargetBusyError, TargetError
from headrace.targets.postgres.connection import Row, sql

Answers = dict[str, list[Row]]


@dataclass(frozen=True)
class Result:
    """What a statement returns."""

    rows: list[Row]
    tag: str
    columns: list[str] = field(default_factory=list)


def server_error(sqlstate: str, message: str, **fields: str) -> HeadraceError:
    """An error as the core raises it for one that the server has reported."""
    busy = sqlstate[:2] in ("08", "40", "53", "55", "57")
    error = (TargetBusyError if busy else TargetError)(message)
    error.server = {"severity": "ERROR", "sqlstate": sqlstate, "message": message, **fields}
    return error


class FakeSession:
    """`answers`: rows by the name of the file in `sql/`, `NAME of OID` if only one table has them,
    `hidden` for a hidden table as `relation`; everything else
    gives no rows. `failures`: raised by the first statement that contains the key, once.
    """

    def __init__(self, answers: Mapping[str, list[Row]] | None = None, version: str = "18.4") -> None:
        self.answers: Answers = dict(answers or {})
        self.failures: dict[str, BaseException] = {}
        self.log: list[str] = []
        self.on_statement: Callable[[str], None] = lambda text: None
        self.cancelled = threading.Event()
        self.rows_moved = 2
        self._version = version

    def execute(self, text: str) -> None:
        self._note(text)

    def query(self, text: str, parameters: Sequence[str | None] = ()) -> Result:
        name = _file_of(text)
        self._note(f"{name or text}({', '.join(str(value) for value in parameters)})")
        if name == "relation" and parameters[0] == "headrace":
            rows = self.answers.get("hidden", [])
        elif parameters and f"{name} of {parameters[0]}" in self.answers:
            rows = self.answers[f"{name} of {parameters[0]}"]
        elif name in self.answers:
            rows = self.answers[name]
        elif name == "is_current" or "pg_try_advisory_lock" in text or "pg_advisory_unlock" in text:
            rows = [["t"]]
        elif name == "server":
            rows = [["99", "f", "UTF8"]]
        elif name == "holds_lock":
            rows = [["t"]]
        elif "current_schema" in text or "current_database" in text:
            rows = [["public"]]
        else:
            rows = []
        moved = self.rows_moved if text.startswith("INSERT") else len(rows)
        inserted = {"commit_slices": 1, "insert_run": 1}.get(name or "", moved)
        return Result(rows, f"INSERT 0 {inserted}")

    def parameter(self, name: str) -> str | None:
        return self._version if name == "server_version" else None

    def address(self) -> str | None:
        return "10.0.0.7:5432"

    def process_id(self) -> int:
        return 99

    def cancel(self) -> None:
        self.cancelled.set()

    def close(self) -> None:
        self.log.append("(closed)")

    def statements(self) -> str:
        """The log, one statement per paragraph."""
        return "\n".join(self.log)

    def _note(self, text: str) -> None:
        self.log.append(text)
        self.on_statement(text)
        if self.cancelled.is_set():
            raise CancelledError("cancelled")
        for part, error in list(self.failures.items()):
            if part in text:
                del self.failures[part]
                raise error


def _file_of(text: str) -> str | None:
    """The file in `sql/` from which a statement was made."""
    return next((name for name, pattern in _patterns().items() if pattern.fullmatch(text)), None)


def _patterns() -> dict[str, re.Pattern[str]]:
    if not _PATTERNS:
        from importlib.resources import files

        for file in files("headrace.targets.postgres").joinpath("sql").iterdir():
            name = file.name.removesuffix(".sql")
            parts = re.sub(r"\\\{(identity|is_same)\\\}", "(?s:.+)", re.escape(sql(name)))
            text = re.sub(r"\\\{[a-z_]+\\\}", "[^,\n]+", parts)
            _PATTERNS[name] = re.compile(text)
    return _PATTERNS


_PATTERNS: dict[str, re.Pattern[str]] = {}


class FakeFlow:
    """A flow whose writers have nothing to do."""

    def __init__(self, slices: Sequence[int], rows_per_slice: int = 1) -> None:
        self.started = False
        self.committed = 0
        self.cancelled_for: str | None = None
        self.error: BaseException | None = None
        self._result = {
            "slices": [{"number": number, "out": rows_per_slice, "rejected": 0} for number in slices],
        }

    def start(self) -> None:
        self.started = True

    def arrow_stream(self) -> object:
        raise AssertionError("a server takes no Arrow stream")

    def cancel(self, reason: str) -> None:
        self.cancelled_for = reason

    def commit(self) -> None:
        self.committed += 1
        if self.error is not None:
            raise self.error

    def seen_at_work(self, process_ids: Sequence[int]) -> None:
        """Nobody is waited for."""

    def snapshot(self) -> dict[str, Any]:
        return {}

    def join(self, timeout_seconds: float) -> dict[str, Any] | None:
        return self._result

    def settle(self, rows: int | None) -> dict[str, Any]:
        assert rows is None
        if self.error is not None:
            raise self.error
        return self._result
