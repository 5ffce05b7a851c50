"""Run folders of all kinds, for the tests of the report and the pictures of the documents."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tests.report.synthetic import (
    MB,
    ROW_BYTES,
    Flow,
    Shares,
    Simulation,
    event,
    machine_lines,
    run_summary,
    table_summary,
    verdict_line,
    write_json,
    write_lines,
)

_CONNECTIONS: list[dict[str, Any]] = [
    {"name": "inbox", "type": "files", "path": "/data/inbox"},
    {"name": "warehouse", "type": "duckdb", "path": "/data/warehouse.duckdb", "lock_timeout_seconds": 30},
]
_ENVIRONMENT = {
    "headrace": "0.9.0",
    "python": "3.11.2",
    "system": "Linux 6.1 x86_64",
    "host": "loader-07",
    "processor": "AMD EPYC 9354 32-Core Processor",
    "cpus": 8,
    "streams": 8,
    "memory_bytes": 1_000_000_000,
    "connections": _CONNECTIONS,
}
_POSTGRES = {
    "name": "warehouse",
    "type": "postgres",
    "host": "db.example.com",
    "port": "5432",
    "database": "sales",
    "user": "loader",
    "sslmode": "verify-full",
    "lock_timeout_seconds": 30,
    "stall_timeout_seconds": 60,
    "ledger": "headrace",
}


def _begin(folder: Path, package: str, flows: Sequence[Flow], **environment: Any) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    write_json(
        folder / "request.json",
        {
            "package": f"/srv/packages/{package}.yaml",
            "package_hash": "31fb1837bad3789170a580d45b9cc25852987fbaf7fff4e2f8e87a11ea6edf3e",
            "folder": "/srv",
            "sets": {"day": "2026-11-19", "api_key": None},
            "connections": {},
            "streams": flows[0].streams if flows else 8,
            "only": [],
            "from": None,
            "skip": [],
            "environment": "production",
            "trusted": False,
            "max_concurrent": None,
            "log_level": None,
            "began_us": 1_795_396_271_691_926,
        },
    )
    write_json(folder / "environment.json", {**_ENVIRONMENT, **environment})
    sources = {
        flow.task: {
            "files": [
                {"path": f"/data/inbox/{flow.table}_{number + 1:02d}.csv", "size_bytes": size, "modified_ns": 0}
                for number, size in enumerate(flow.files)
            ],
            "slices": [],
        }
        for flow in flows
    }
    write_json(folder / "sources.json", sources)
    started = event(
        "run_started",
        0,
        run_id=folder.name,
        package=package,
        streams=flows[0].streams if flows else 8,
        memory_bytes=1_000_000_000,
        run_folder=str(folder),
        tasks=[{"task": flow.task, "table": flow.table} for flow in flows],
    )
    write_lines(folder / "events.jsonl", [started])


def _flow_events(
    simulation: Simulation, begin: float, end: float, status: str = "success", **members: Any
) -> list[dict[str, Any]]:
    flow, rows = simulation.flow, simulation.bytes // ROW_BYTES
    kind = {"task": flow.task, "kind": "data_flow"}
    return [
        event("task_started", begin - 0.2, **kind),
        event(
            "task_started",
            begin,
            **kind,
            table=flow.table,
            connection=flow.connection,
            files=len(flow.files),
            bytes_total=sum(flow.files),
            slices=len(flow.slices()),
            streams=flow.streams,
            notes=[],
        ),
        event(
            "task_finished",
            end,
            **kind,
            table=flow.table,
            status=status,
            seconds=end - begin,
            rows_read=rows,
            rows_skipped=len(flow.files),
            rows_rejected=simulation.rejected,
            rows_loaded=rows - simulation.rejected if status == "success" else 0,
            bytes_read=simulation.bytes,
            error=None,
            **members,
        ),
    ]


def _wave(base: float) -> Callable[[float, int, int], float]:
    return lambda time, stream, _file: base * (1 + 0.18 * math.sin(time / 9 + stream)) * MB


def duckdb_run(folder: Path) -> Path:
    """Two tables and some tasks around them, limited by the CPU that DuckDB needs."""

    def shares(time: float, _stream: int) -> Shares:
        waits = 0.45 + 0.25 * math.sin(time / 14)
        return {"read": 0.08, "parse": 0.84 - waits, "transform": 0.06, "wait_destination": waits}

    lineitem = Flow("load_tables[lineitem].load", "lineitem", [940 * MB] * 24, 64 * MB, 8, _wave(39), shares)
    orders = Flow("load_tables[orders].load", "orders", [430 * MB] * 8, 64 * MB, 8, _wave(33), shares)
    _begin(folder, "nightly-sales", [lineitem, orders])
    first = Simulation(lineitem)
    write_lines(folder / "metrics.jsonl", first.lines())
    orders.begin = first.ended_at + 3.0
    second = Simulation(orders)
    write_lines(folder / "metrics.jsonl", second.lines())
    end = second.ended_at + 4.0
    write_lines(
        folder / "metrics.jsonl",
        machine_lines(end, lambda time: {"user": 0.81 + 0.1 * math.sin(time / 14), "system": 0.07, "iowait": 0.02}),
    )
    sentence = (
        "the streams waited for the destination 47 % of their time while all 8 CPUs were 91 % busy, "
        "58 % of that with the engine of DuckDB"
    )
    changes: list[tuple[float, str, str]] = [
        (1, "parse", "streams parsed 71 % of their time"),
        (9, "shared_cpu", "8 CPUs 93 % busy, DuckDB took 41 % of that"),
        (18, "destination_cpu", sentence),
        (48, "shared_cpu", "8 CPUs 95 % busy, DuckDB took 38 % of that"),
        (60, "destination_cpu", sentence),
    ]
    remedy = "Give the destination more CPU: fewer streams (4 would do), or a machine with more cores."
    whole = {
        "evidence": {
            "wait_destination_share": 0.47,
            "cpu_busy_share": 0.91,
            "destination_cpu_share": 0.58,
            "destination_megabytes_per_second": 306.0,
        },
        "next_limit": "parse",
        "next_megabytes_per_second": 612.0,
        "remedy": remedy,
    }
    lines = [
        verdict_line(time + 4, lineitem.task, max(1.0, time - 1), limit, text)
        for time, limit, text in changes
        if time < first.ended_at
    ]
    lines.append(verdict_line(first.ended_at, lineitem.task, 1.0, "destination_cpu", sentence, **whole))
    lines.append(verdict_line(second.ended_at, orders.task, orders.begin, "destination_cpu", sentence, **whole))
    write_lines(folder / "metrics.jsonl", lines)
    prepare = {"task": "prepare", "kind": "sql"}
    tables = {"task": "load_tables", "kind": "foreach"}
    after = {"task": "refresh_summary", "kind": "sql"}
    write_lines(
        folder / "events.jsonl",
        [
            event("task_started", 0.1, **prepare),
            event("task_finished", 0.8, **prepare, status="success", seconds=0.7, error=None),
            event("task_started", 0.9, **tables),
            *_flow_events(first, 1.0, first.ended_at + 1.2),
            *_flow_events(second, orders.begin - 0.4, second.ended_at + 0.9),
            event("task_finished", second.ended_at + 1, **tables, status="success", seconds=80.0, error=None),
            event("task_started", second.ended_at + 1.1, **after),
            event("task_finished", end - 0.5, **after, status="success", seconds=2.4, error=None),
            event("run_finished", end, run_id=folder.name, status="success", seconds=end, error=None),
        ],
    )
    write_json(
        folder / "summary.json",
        run_summary(
            folder.name,
            "nightly-sales",
            end,
            [
                table_summary(first, first.ended_at),
                table_summary(
                    second, second.ended_at - orders.begin, notes=["duckdb has no partitions: load is single"]
                ),
            ],
            limit={"limit": "destination_cpu", "sentence": sentence, **whole},
        ),
    )
    return folder


def _postgres_waits(time: float) -> Shares:
    if 900 <= time < 1_500:
        return {"IO:DataFileExtend": 3, "IO:DataFileWrite": 2, "LWLock:BufferContent": 1, "cpu": 2, "client": 0.6}
    if 2_300 <= time < 2_700:
        return {"IO:WALWrite": 4, "LWLock:WALWrite": 3, "cpu": 2, "client": 0.5}
    return {"cpu": 5, "client": 2, "IO:DataFileExtend": 0.6, "Lock:extend": 0.3, "IO:WALWrite": 0.3}


def postgres_hour(folder: Path, seconds: int = 3_600, streams: int = 56, step: float = 1.0) -> Path:
    """56 streams into PostgreSQL for about an hour, of which one works on a slow file to the end.

    `step`: seconds between two lines. Of one second all files together are 300 MB.
    """
    scale = seconds / 3_600

    def speed(time: float, stream: int, file: int) -> float:
        if file == 0:
            return 0.9 * MB  # the file on a slow share
        slow = 0.45 if 900 <= time / scale < 1_500 else 0.7 if 2_300 <= time / scale < 2_700 else 1.0
        return (9.2 + 0.8 * math.sin(time / 60 + stream)) * slow * MB

    def shares(time: float, stream: int) -> Shares:
        if stream == tail:
            return {"read": 0.93, "parse": 0.03, "write": 0.02, "wait_destination": 0.02}
        waits = 0.72 if 900 <= time / scale < 1_500 else 0.5 if 2_300 <= time / scale < 2_700 else 0.28
        return {"read": 0.12, "parse": 0.78 - waits, "write": 0.1, "wait_destination": waits}

    tail = 1
    others = [int(5_300 * scale * MB)] * (4 * streams)
    flow = Flow(
        "load_orders",
        "orders",
        [int(3_050 * scale * MB), *others],
        int(3_050 * scale * MB),
        streams,
        speed,
        shares,
        type="postgres",
        waits=lambda time: _postgres_waits(time / scale),
    )
    # The slow file is taken first, as its only slice is one of the largest.
    _begin(folder, "record-load", [flow], connections=[_CONNECTIONS[0], _POSTGRES], streams=streams, cpus=32)
    simulation = Simulation(flow)
    write_lines(folder / "metrics.jsonl", simulation.lines(step))
    end = simulation.ended_at
    write_lines(
        folder / "metrics.jsonl",
        machine_lines(end, lambda time: {"user": 0.38, "system": 0.11, "iowait": 0.03, "steal": 0.01}, cpus=32),
    )
    bands = [
        (1, "network", "the socket took nothing 31 % of the time, and TCP was limited by the path"),
        (120, "destination_cpu", "backends were found on a CPU in 58 % of 16,000 looks"),
        (905, "checkpoint", "data files were written in 61 % of looks while a requested checkpoint ran"),
        (1_505, "destination_cpu", "backends were found on a CPU in 57 % of looks"),
        (2_310, "log", "backends waited for the write-ahead log in 64 % of looks"),
        (2_705, "destination_cpu", "backends were found on a CPU in 58 % of looks"),
    ]
    slow = [{"number": tail, "file": "orders_01.csv", "limit": "source_read", "behind_seconds": round(0.19 * end, 1)}]
    sentence = "backends were found on a CPU in 54 % of 1,003,400 looks, waiting for rows in 18 %"
    whole = {
        "evidence": {
            "server_on_cpu_share": 0.54,
            "server_waits_for_rows_share": 0.18,
            "wait_destination_share": 0.41,
            "client_cpu_busy_share": 0.52,
        },
        "next_limit": "network",
        "next_megabytes_per_second": 590.0,
        "remedy": "Drop indexes of the target before the load, or give the server more CPUs; no more streams.",
        "slow": slow,
        "streams": [{"number": tail, "limit": "source_read", "sentence": "read orders_01.csv at 0.9 MB/s"}],
    }
    lines = [
        verdict_line(scale * time + 4, flow.task, max(1.0, scale * time - 1), limit, text)
        for time, limit, text in bands
    ]
    lines.append(verdict_line(0.82 * end, flow.task, 0.82 * end - 5, "source_read", "one stream is left", slow=slow))
    lines.append(verdict_line(end, flow.task, 1.0, "destination_cpu", sentence, **whole))
    write_lines(folder / "metrics.jsonl", lines)
    write_lines(
        folder / "events.jsonl",
        [
            *_flow_events(simulation, 1.0, end + 2),
            event("run_finished", end + 3, run_id=folder.name, status="success", seconds=end + 3, error=None),
        ],
    )
    write_json(
        folder / "summary.json",
        run_summary(
            folder.name,
            "record-load",
            end + 3,
            [table_summary(simulation, end)],
            limit={"limit": "destination_cpu", "sentence": sentence, **whole},
        ),
    )
    return folder


def _plain(folder: Path, package: str, flow: Flow, **members: Any) -> Simulation:
    """One flow with all of its files but the summary."""
    _begin(folder, package, [flow])
    simulation = Simulation(flow)
    write_lines(folder / "metrics.jsonl", simulation.lines())
    end = simulation.ended_at
    write_lines(folder / "metrics.jsonl", machine_lines(end, lambda _time: {"user": 0.6, "system": 0.1}))
    write_lines(folder / "events.jsonl", _flow_events(simulation, flow.begin, end + 0.5, **members))
    return simulation


def _parsing(_time: float, _stream: int) -> Shares:
    return {"read": 0.1, "parse": 0.78, "transform": 0.05, "wait_destination": 0.07}


def run_with_rejects(folder: Path, table: str = "orders") -> Path:
    """Rows were rejected by several rules in several columns. `table`: any name."""
    flow = Flow("load", table, [300 * MB] * 6, 64 * MB, 4, _wave(30), _parsing, rejected_share=0.0004)
    simulation = _plain(folder, "rejecting", flow)
    counts = {
        ("bad_date", "HR301", "o_orderdate"): 4_211,
        ("out_of_range", "HR305", "o_totalprice"): 1_044,
        ("too_long", "HR306", "o_comment"): 512,
        ("bad_date", "HR301", "o_shipdate"): 96,
        ("not_null", "HR302", "o_custkey"): 21,
        ("wrong_column_count", "HR101", None): 7,
    }
    first = {
        "number": 1,
        "file": f"/data/inbox/{table}_01.csv",
        "row": 81_234,
        "byte": 9_812_345,
        "value": "2026-02-30",
        "message": "cannot convert a value to date",
    }
    rules: dict[str, int] = {}
    for (rule, _code, _column), count in counts.items():
        rules[rule] = rules.get(rule, 0) + count
    total = sum(counts.values())
    own = table_summary(simulation, simulation.ended_at)
    own["rows_rejected"], own["rows_loaded"] = total, own["rows_read"] - total
    own["rejects"] = {
        "count": total,
        "by_rule": rules,
        "by_column": [
            {"rule": rule, "code": code, "column": column, "count": count, "first": [first]}
            for (rule, code, column), count in counts.items()
        ],
        "first": [first],
        "files": [f"runs/{folder.name}/rejects/{table}.jsonl"],
        "cut": 0,
    }
    _end(folder, simulation, "rejecting", [own])
    return folder


def lookup_run(folder: Path) -> Path:
    """Rows found others: by a default, by a reject, and in a lookup of which an earlier attempt told nothing."""
    flow = Flow("load", "sales", [300 * MB] * 4, 64 * MB, 4, _wave(30), _parsing)
    simulation = _plain(folder, "facts", flow)
    own = table_summary(simulation, simulation.ended_at)
    rows = own["rows_read"]
    index = {"rows": 200_000, "bytes": 1_964_032, "seconds": 0.0712, "files": ["/data/inbox/part.tbl"]}
    counts = {
        "rows": rows,
        "matched": rows - 612,
        "defaulted": 612,
        "rejected": 0,
        "null_keys": 12,
        "busy_seconds": 0.81,
    }
    own["rows_rejected"], own["rows_filtered"], own["rows_loaded"] = 612, 388, rows - 1000
    own["transforms"] = [
        {"name": "parts", "no_match": "default", **counts, "lookup": index},
        {"name": "clerks", "no_match": "reject", **counts, "defaulted": 0, "rejected": 612, "lookup": index},
        {"name": "<b>days</b>", "no_match": "default", "rows": rows, "lookup": None},
        {"no_match": 7, "lookup": [], "rows": "many"},
        {
            "name": "priced",
            "kind": "sql",
            **counts,
            "defaulted": 0,
            "matched": rows - 388,
            "filtered": 388,
            "lookup": None,
        },
        {"name": "<i>odd</i>", "kind": "sql", "rows": "many"},
    ]
    _end(folder, simulation, "facts", [own])
    return folder


def _end(folder: Path, simulation: Simulation, package: str, tables: Sequence[dict[str, Any]], **members: Any) -> None:
    end = simulation.ended_at + 1
    status = members.get("status", "success")
    write_lines(
        folder / "events.jsonl",
        [event("run_finished", end, run_id=folder.name, status=status, seconds=end, error=members.get("error"))],
    )
    limit = {"limit": "parse", "sentence": "the streams spent 78 % of their time parsing"}
    summary = run_summary(folder.name, package, end, tables, **{"limit": limit, **members})
    write_json(folder / "summary.json", summary)


def failed_run(folder: Path) -> Path:
    """More rows were rejected than allowed."""
    flow = Flow("load", "orders", [300 * MB] * 6, 64 * MB, 4, _wave(30), _parsing, until=9.0)
    simulation = _plain(folder, "failing", flow, status="failed")
    error = {
        "kind": "reject_limit",
        "what": "more rows were rejected than allowed",
        "at": {"file": "/data/inbox/orders_03.csv", "row": 812_344, "byte": 97_481_280},
        "found": "2026-02-30 in column `o_orderdate`: no date",
        "expected": "no rejected row (rejects: {limit: 0})",
        "hint": "Repair the rows, or allow some: rejects: {limit: 100}.",
    }
    own = table_summary(simulation, 8.0, status="failed", rows_loaded=0)
    _end(folder, simulation, "failing", [own], status="failed", error=error, limit=None)
    return folder


def empty_run(folder: Path) -> Path:
    """A run that had nothing to load."""
    _begin(folder, "nothing-to-do", [])
    write_lines(
        folder / "events.jsonl",
        [event("run_finished", 0.2, run_id=folder.name, status="success", seconds=0.2, error=None)],
    )
    write_json(folder / "summary.json", run_summary(folder.name, "nothing-to-do", 0.2, []))
    return folder


def damaged_run(folder: Path) -> Path:
    """Lines of no sense between good ones, a document that was cut, and a last line that is half there."""
    run_with_rejects(folder)
    (folder / "summary.json").write_text('{"run_id": "x", "tables": [')
    (folder / "sources.json").write_text("[1, 2, 3]")
    lines = (folder / "metrics.jsonl").read_text().splitlines()
    bad = [
        "",
        "{",
        "null",
        '{"kind": "flow", "t": "soon"}',
        '{"kind": "flow", "t": 3}',
        '{"kind": "verdict", "t": 4}',
        "\x00\xff" * 40,
    ]
    odd = [
        '{"kind": "flow", "t": 4.5, "attempt": 1, "task": "load", "streams": {"number": 3}, "writers": null}',
        '{"kind": "flow", "t": 4.6, "attempt": 1, "task": "load", "streams": [{"number": 1, "bytes": NaN}]}',
        '{"kind": "machine", "t": 4.7, "attempt": 1, "cpu": [], "memory": null, "disks": {"sda": 3}}',
        '{"kind": "tomorrow", "t": 4.8}',
    ]
    mixed = [*lines[:9], *bad, *odd, *lines[9:]]
    (folder / "metrics.jsonl").write_bytes(
        "\n".join(mixed).encode("utf-8", "surrogateescape") + b'\n{"kind": "flow", "t": 99'
    )
    with (folder / "events.jsonl").open("a") as file:
        file.write('[]\n{"event": 3}\n{"event": "task_started"}\n{"event": "notice", "at": "never"')
    return folder


def running_run(folder: Path) -> Path:
    """A run that goes on: no summary, no end."""
    flow = Flow("load", "orders", [300 * MB] * 6, 64 * MB, 4, _wave(30), _parsing, until=9.0)
    _plain(folder, "running", flow)
    lines = (folder / "events.jsonl").read_text().splitlines()
    (folder / "events.jsonl").write_text("\n".join(line for line in lines if "task_finished" not in line) + "\n")
    return folder


def many_slices(folder: Path, slices: int = 2_000) -> Path:
    """2,000 slices of 16 streams."""
    flow = Flow("load", "events", [12_400 * MB], 12_400 * MB // slices, 16, _wave(21), _parsing)
    simulation = _plain(folder, "many-slices", flow)
    _end(folder, simulation, "many-slices", [table_summary(simulation, simulation.ended_at)])
    return folder


def two_attempts(folder: Path) -> Path:
    """A run that was killed after 20 seconds and resumed two hours later."""
    flow = Flow("load", "orders", [420 * MB] * 6, 64 * MB, 4, _wave(30), _parsing, until=20.0)
    _plain(folder, "resumed", flow)
    lines = (folder / "events.jsonl").read_text().splitlines()
    (folder / "events.jsonl").write_text("\n".join(line for line in lines if "task_finished" not in line) + "\n")
    again = Flow("load", "orders", [420 * MB] * 3, 64 * MB, 4, _wave(36), _parsing)
    simulation = Simulation(again, attempt=2, seed=3)
    write_lines(folder / "metrics.jsonl", simulation.lines())
    end = simulation.ended_at
    write_lines(folder / "metrics.jsonl", machine_lines(end, lambda _time: {"user": 0.7, "system": 0.1}, attempt=2))
    late = 7_200.0
    started = event("run_started", late, run_id=folder.name, package="resumed", streams=4, memory_bytes=10**9, tasks=[])
    ended = event("run_finished", late + end + 1, run_id=folder.name, status="success", seconds=end + 1, error=None)
    write_lines(folder / "events.jsonl", [started, *_flow_events(simulation, late + 1, late + end + 0.5), ended])
    own = table_summary(simulation, end)
    write_json(folder / "summary.json", run_summary(folder.name, "resumed", end + 1, [own]))
    return folder


SCENARIOS: dict[str, Callable[[Path], Path]] = {
    "duckdb": duckdb_run,
    "rejects": run_with_rejects,
    "lookups": lookup_run,
    "failed": failed_run,
    "empty": empty_run,
    "damaged": damaged_run,
    "running": running_run,
    "many_slices": many_slices,
    "two_attempts": two_attempts,
}


def documents_of(path: Path) -> list[dict[str, Any]]:
    """The lines of a file."""
    return [json.loads(line) for line in path.read_text().splitlines()]
