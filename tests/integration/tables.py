"""What stands in tables, as texts that can be compared whatever has read them."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

from tests.integration.driver import Project

Rows = list[tuple[str | None, ...]]


def as_text(rows: Iterable[tuple[Any, ...]]) -> Rows:
    """In one order."""
    return sorted((tuple(None if value is None else str(value) for value in row) for row in rows), key=repr)


def tables_of(project: Project, names: Iterable[str], archived: Collection[str] = ()) -> dict[str, Rows]:
    """The rows of these tables; `archived`: those in the file `archive.duckdb`."""
    archive = project.folder / "archive.duckdb"
    return {
        name: as_text(
            Project.query(project, f"FROM {name}", archive)
            if name in archived
            else project.query(f"SELECT * FROM {name}")
        )
        for name in names
    }
