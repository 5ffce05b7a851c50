"""A flow without the core: DuckDB makes the rows and streams them as Arrow, as the core would."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import duckdb

from headrace.planning import DataFlowPlan, MemoryBudget, SourceSnapshot, plan_data_flow
from headrace.targets.duckdb.capabilities import DUCKDB_CAPABILITIES
from tests.unit.planning import samples

SLICE_ROWS = 1000


def plan(slices: int = 4, streams: int = 2, **members: Any) -> DataFlowPlan:
    """A plan for a table `orders(id, name)` in DuckDB; every slice has SLICE_ROWS rows."""
    catalog = members.pop("catalog", None)
    task = samples.task(layout=members.pop("layout", samples.layout(id="int64!", name="string")), **members)
    source: SourceSnapshot = samples.source(slices)
    budget = MemoryBudget(400_000_000, 2)
    return plan_data_flow(task, source, catalog, DUCKDB_CAPABILITIES, budget, streams, default_schema="main")


class ArrowStream:
    """Hides that the rows come from DuckDB, which would otherwise refuse a relation of another instance."""

    def __init__(self, relation: duckdb.DuckDBPyRelation) -> None:
        self._relation = relation

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._relation.__arrow_c_stream__(requested_schema)


class FakeFlow:
    """Delivers `rows` rows, or fails, or waits for its cancellation, as `behaviour` says."""

    def __init__(self, spec: dict[str, Any], behaviour: str = "ok") -> None:
        self.spec = spec
        self.behaviour = behaviour
        self.error: dict[str, Any] | None = None
        self.cancelled_for: str | None = None
        self.started = False
        self._ended = threading.Event()
        self._connection = duckdb.connect(":memory:", config={"threads": 1})

    def start(self) -> None:
        self.started = True
        if self.behaviour == "fail_at_start":
            self.fail("reject_limit")

    def fail(self, kind: str) -> None:
        self.error = {"kind": kind, "what": "a row is bad", "at": {"file": "x.tbl", "row": 7, "byte": 70}}
        self._ended.set()

    def arrow_stream(self) -> object:
        if self.behaviour == "wait":
            self._ended.wait()
        rows = SLICE_ROWS * len(self.spec["source"]["slices"])
        name = "error('stream broke')" if self.error or self.behaviour == "break" else "'name ' || range"
        if self.behaviour == "break":
            self.error = {"kind": "source", "what": "cannot read x.tbl", "at": {"file": "x.tbl"}}
        if self.behaviour != "never_ends":
            self._ended.set()
        return ArrowStream(self._connection.sql(f"SELECT range AS id, {name} AS name FROM range({rows})"))

    def commit(self) -> None:
        raise AssertionError("DuckDB commits by itself")

    def cancel(self, reason: str) -> None:
        self.cancelled_for = self.cancelled_for or reason
        if not self._ended.is_set():
            self.error = {"kind": "cancelled", "what": reason, "at": None}
            self._ended.set()

    def seen_at_work(self, process_ids: Sequence[int]) -> None:
        """Nobody is waited for."""

    def snapshot(self) -> dict[str, Any]:
        return {"bytes_read": 1, "rows_read": 2, "rows_rejected": 0}

    def join(self, timeout_seconds: float) -> dict[str, Any] | None:
        if not self.started or not self._ended.wait(timeout_seconds):
            return None
        status = "ok"
        if self.error is not None:
            status = "cancelled" if self.error["kind"] == "cancelled" else "failed"
        return {
            **result(len(self.spec["source"]["slices"]), self.spec["streams"]),
            "status": status,
            "error": self.error,
        }


def result(slices: int, streams: int) -> dict[str, Any]:
    """A flow result whose accounts balance: stream 1 did everything."""
    stage = {"rows": 0, "bytes": 0, "busy_seconds": 0.1, "wait_input_seconds": 0.0, "wait_output_seconds": 0.0}
    rows = slices * SLICE_ROWS
    return {
        "status": "ok",
        "error": None,
        "seconds": 0.1,
        "slices": [
            {
                "number": number,
                "file": 0,
                "stream": 1,
                "committed": False,
                "values_ignored": 0,
                "text_hash": f"{number:016x}",
                "ignored": {},
                "bytes": 100,
                "lines": SLICE_ROWS + 1,
                "skipped": 1,
                "lf_lines": 0,
                "crlf_lines": 0,
                "rows": SLICE_ROWS,
                "rejected": 0,
                "filtered": 0,
                "out": SLICE_ROWS,
            }
            for number in range(1, slices + 1)
        ],
        "streams": [
            {
                "number": number,
                "slices": slices if number == 1 else 0,
                "rows": rows if number == 1 else 0,
                "bytes": 0,
                "cpu_seconds": 0.1,
                "stages": {"read": stage, "parse": stage, "write": stage},
            }
            for number in range(1, streams + 1)
        ],
        "sink": {"wait_input_seconds": 0.0, "busy_seconds": 0.0, "batches": 1, "rows": rows},
        "columns": None,
        "rejects": {"count": 0, "by_rule": {}, "by_column": [], "first": [], "files": [], "cut": 0},
        "memory": {"peak_blocks": 1, "overdraft_blocks": 0},
    }
