"""What came of plans and runs: frozen objects with the values that matter, and the whole document beside them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from headrace.errors import HeadraceError


@dataclass(frozen=True, slots=True)
class TableResult:
    """What became of one table. `rejects`: the files with its rejects, if there are any; `seconds`: its data flow."""

    task: str
    table: str
    connection: str
    target: str
    load: str
    status: str
    seconds: float
    bytes_read: int
    rows_read: int
    rows_skipped: int
    rows_rejected: int
    rows_loaded: int
    rejects: tuple[Path, ...]
    notes: tuple[str, ...]

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> Self:
        """From a member of `tables` of a summary."""
        return cls(
            **{name: document[name] for name in cls.__slots__ if name not in ("rejects", "notes")},
            rejects=tuple(Path(file) for file in document["rejects"].get("files", [])),
            notes=tuple(document["notes"]),
        )


@dataclass(frozen=True, slots=True)
class TaskResult:
    """What became of one task, all turns of the loops around it together.

    `success`, `failed`, `skipped`, `passed` (left out or disabled), `cancelled`: how many times it ended so; `before`:
    ended in an earlier attempt of a run that was resumed. `error` is the first one, `details` is what the task says.
    """

    task: str
    kind: str
    success: int
    failed: int
    skipped: int
    passed: int
    cancelled: int
    before: int
    seconds: float
    reason: str | None
    error: Mapping[str, Any] | None
    details: Mapping[str, Any]

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> Self:
        """From a member of `tasks` of a summary."""
        names = [name for name in cls.__slots__ if name != "details"]
        return cls(**{name: document[name] for name in names}, details=document.get("details", {}))


@dataclass(frozen=True, slots=True)
class RunResult:
    """What came of a run. `status`: success, failed or cancelled; `error` is None exactly with success.

    `summary` is the whole document, as `headrace run --json` prints it and `summary.json` of the run folder keeps it.
    """

    run_id: str
    run_folder: Path
    package: str
    status: str
    seconds: float
    tables: tuple[TableResult, ...]
    tasks: tuple[TaskResult, ...]
    error: HeadraceError | None
    summary: dict[str, Any] = field(repr=False)

    @classmethod
    def of(cls, summary: dict[str, Any], error: HeadraceError | None) -> Self:
        """From a summary."""
        return cls(
            run_id=summary["run_id"],
            run_folder=Path(summary["run_folder"]),
            package=summary["package"],
            status=summary["status"],
            seconds=summary["seconds"],
            tables=tuple(TableResult.of(table) for table in summary["tables"]),
            tasks=tuple(TaskResult.of(task) for task in summary["tasks"]),
            error=error,
            summary=summary,
        )

    @property
    def ok(self) -> bool:
        """Whether the run ended with success; tasks whose failure was allowed for may have failed."""
        return self.status == "success"

    @property
    def rows_loaded(self) -> int:
        """Rows that are committed, of all tables."""
        return sum(table.rows_loaded for table in self.tables)

    @property
    def rows_rejected(self) -> int:
        """Rows that were rejected, of all tables."""
        return sum(table.rows_rejected for table in self.tables)

    @property
    def rejects(self) -> tuple[Path, ...]:
        """The files with rejects, of all tables."""
        return tuple(file for table in self.tables for file in table.rejects)

    def raise_if_failed(self) -> Self:
        """Itself, unless the run failed or was cancelled: then its error is raised."""
        if self.error is not None:
            raise self.error
        return self


@dataclass(frozen=True, slots=True)
class Plan:
    """What a run would do. `document` is the whole of it, as `headrace plan --json` prints it."""

    package: str
    streams: int
    memory_bytes: int
    bytes_total: int
    tables: tuple[str, ...]
    notes: tuple[str, ...]
    document: dict[str, Any] = field(repr=False)

    @classmethod
    def of(cls, document: dict[str, Any]) -> Self:
        """From the document of a plan."""
        return cls(
            package=document["package"],
            streams=document["streams"],
            memory_bytes=document["memory_bytes"],
            bytes_total=document["bytes_total"],
            tables=tuple(task["table"] for task in document["tasks"] if "table" in task),
            notes=tuple(document["notes"]),
            document=document,
        )
