"""A run of two tables as the engine would report it, with a clock that the tests own."""

from __future__ import annotations

from typing import Any

GB = 1_000_000_000

RUN_STARTED: dict[str, Any] = {
    "event": "run_started",
    "run_id": "20260102T030405-abcd",
    "package": "tpch",
    "streams": 8,
    "memory_bytes": GB,
    "run_folder": "runs/20260102T030405-abcd",
    "tasks": [
        {"task": "load_tables[orders].load", "table": "orders"},
        {"task": "load_tables[lineitem].load", "table": "lineitem"},
        {"task": "load_tables[region].load", "table": "region"},
    ],
}
ORDERS_STARTED: dict[str, Any] = {
    "event": "task_started",
    "task": "load_tables[orders].load",
    "table": "orders",
    "connection": "warehouse",
    "files": 8,
    "bytes_total": 171_952_161,
    "slices": 16,
    "streams": 8,
    "notes": ["no partition clause: load is single"],
}
ORDERS_FINISHED: dict[str, Any] = {
    "event": "task_finished",
    "task": "load_tables[orders].load",
    "table": "orders",
    "status": "success",
    "seconds": 1.25,
    "rows_read": 1_500_000,
    "rows_skipped": 0,
    "rows_rejected": 3,
    "rows_loaded": 1_499_997,
    "bytes_read": 171_952_161,
    "error": None,
}
LINEITEM_STARTED: dict[str, Any] = {
    "event": "task_started",
    "task": "load_tables[lineitem].load",
    "table": "lineitem",
    "connection": "warehouse",
    "files": 1,
    "bytes_total": 759_863_287,
    "slices": 24,
    "streams": 8,
    "notes": [],
}
LINEITEM_FAILED: dict[str, Any] = {
    "event": "task_finished",
    "task": "load_tables[lineitem].load",
    "table": "lineitem",
    "status": "failed",
    "seconds": 3.5,
    "rows_read": 2_000_000,
    "rows_skipped": 0,
    "rows_rejected": 1,
    "rows_loaded": 0,
    "bytes_read": 250_000_000,
    "error": {"kind": "reject_limit", "what": "more rows were rejected than allowed"},
}
REGION_SKIPPED: dict[str, Any] = {
    "event": "task_skipped",
    "task": "load_tables[region].load",
    "table": "region",
    "reason": "no file matches region.tbl",
}
LINEITEM_LIMIT: dict[str, Any] = {
    "event": "limit",
    "task": "load_tables[lineitem].load",
    "table": "lineitem",
    "limit": "receive_window",
    "sentence": "the streams waited for the destination 92% of their time, and its window held them up 88% of the time",
    "next_limit": "destination_cpu",
    "next_megabytes_per_second": 412.4,
    "remedy": "Raise net.ipv4.tcp_rmem on the server's machine, or load by more connections (`--streams`).",
    "streams_by_limit": {"receive_window": 7, "source_read": 1},
    "is_final": False,
}
LINEITEM_SLOW_STREAMS: dict[str, Any] = {
    "event": "slow_streams",
    "task": "load_tables[lineitem].load",
    "table": "lineitem",
    "streams": [
        {"number": 3, "file": "lineitem.tbl.3", "behind_seconds": 41.2, "limit": "source_read", "sentence": "slow"},
        *({"number": number, "file": None, "behind_seconds": 12.0, "limit": None} for number in range(4, 9)),
    ],
}
NOTICE: dict[str, Any] = {"event": "notice", "task": None, "text": "waiting for the database file"}
RUN_FINISHED: dict[str, Any] = {"event": "run_finished", "run_id": "20260102T030405-abcd", "status": "failed"}


def lineitem_progress(rows_read: int, bytes_read: int, rows_rejected: int = 0) -> dict[str, Any]:
    return {
        "event": "progress",
        "task": "load_tables[lineitem].load",
        "table": "lineitem",
        "bytes_read": bytes_read,
        "bytes_total": 759_863_287,
        "rows_read": rows_read,
        "rows_rejected": rows_rejected,
        "seconds": 0.0,
    }


class Clock:
    """Monotonic seconds that only move when told."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def summary() -> dict[str, Any]:
    """The summary document of a run of two tables, the second with rejects."""

    def table(name: str, lines: int, skipped: int, rejected: int, seconds: float, size_bytes: int) -> dict[str, Any]:
        rows = lines - skipped
        return {
            "task": f"load_tables[{name}].load",
            "table": name,
            "connection": "warehouse",
            "target": "replace",
            "load": "single",
            "status": "success",
            "seconds": seconds,
            "bytes_read": size_bytes,
            "lines": lines,
            "rows_skipped": skipped,
            "rows_read": rows,
            "rows_rejected": rejected,
            "rows_loaded": rows - rejected,
            "values_ignored": 0,
            "ignored": {},
            "mb_per_second": size_bytes / 1e6 / seconds,
            "rows_per_second": rows / seconds,
            "switch_seconds": 0.0,
            "partitions": [],
            "columns": None,
            "rejects": {"count": 0, "by_rule": {}, "by_column": [], "first": [], "files": [], "cut": 0},
        }

    orders = table("orders", 1_500_001, 1, 3, 1.25, 171_952_161)
    orders["rejects"] = {
        "count": 3,
        "by_rule": {"bad_date": 2, "wrong_column_count": 1},
        "first": [
            {
                "file": "data/orders.tbl.3",
                "row": 12,
                "byte": 1_345,
                "column": "o_orderdate",
                "column_number": 5,
                "value": "1996-13-01",
                "rule": "bad_date",
                "message": "cannot convert a value for column `o_orderdate` (5) to date",
            }
        ],
        "files": ["runs/20260102T030405-abcd/rejects/orders.jsonl", "runs/20260102T030405-abcd/rejects/orders.bad"],
        "cut": 1,
    }
    orders["values_ignored"] = 15
    orders["ignored"] = {"o_comment": {"nulls": 0, "cut": 12}, "o_orderdate": {"nulls": 2, "cut": 1}}
    return {
        "run_id": "20260102T030405-abcd",
        "package": "tpch",
        "status": "success",
        "seconds": 8.51,
        "phases": {"plan": 0.02, "load": 8.4, "commit": 0.09},
        "bytes_read": 931_815_448,
        "rows_read": 7_501_215,
        "rows_skipped": 1,
        "rows_rejected": 3,
        "rows_loaded": 7_501_212,
        "rows_filtered": 0,
        "tables": [table("lineitem", 6_001_215, 0, 0, 7.1, 759_863_287), orders],
        "streams": [],
        "skipped": [],
        "limit": {
            "limit": "destination_cpu",
            "sentence": "the streams waited for DuckDB 61 % of the time",
            "next_limit": "parse",
            "next_megabytes_per_second": 412.0,
            "remedy": "Drop indexes and constraints before the load.",
            "slow": [
                {
                    "number": 7,
                    "file": "inbox/lineitem.tbl.7",
                    "behind_seconds": 41.2,
                    "limit": "source_read",
                    "sentence": "",
                }
            ],
        },
        "error": None,
        "run_folder": "runs/20260102T030405-abcd",
    }
