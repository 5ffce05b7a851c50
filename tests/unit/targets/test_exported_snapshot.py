"""The session that holds the snapshot of a build: its tables are locked before the snapshot is taken."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from headrace.targets.postgres.connection import Connection
from headrace.targets.postgres.exported_snapshot import exported_snapshot
from headrace.targets.sql import Command


@dataclass
class Result:
    rows: list[list[str]]


@dataclass
class Session:
    said: list[str] = field(default_factory=list)

    def execute(self, sql: str) -> None:
        self.said.append(sql)

    def query(self, sql: str, parameters: Sequence[str | None] = ()) -> Any:
        self.said.append(sql)
        return Result([["name", ""]])

    def cancel(self) -> None:
        raise AssertionError("nobody has cancelled")

    def close(self) -> None:
        self.said.append("close")


def test_tables_are_locked_before_the_snapshot_is_taken() -> None:
    session = Session()
    with exported_snapshot(lambda: cast(Connection, session), Command("SELECT 1"), lambda: False) as snapshot:
        assert snapshot.name == "name"
        begin, lock, export, _ = session.said
    # With a stricter level the first statement would take the snapshot, and wait for locks behind that.
    assert "READ COMMITTED" in begin
    assert lock == "EXPLAIN SELECT 1"
    assert "pg_export_snapshot" in export
    assert session.said[-1] == "close"
