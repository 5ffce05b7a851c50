"""The fact table of TPC-H with surrogate keys: on the way from the files, in the database, and as ready-made text."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import duckdb

from bench.columns import Column, Dialect, headrace_layout
from bench.data import FILES, DataSet, read_once
from bench.job import Job
from bench.tables import CUSTOMER, LAYOUTS, LINEITEM, ORDERS, PART, Table, tpch

SUPPLIER = tpch("supplier", "TPC-H: 2 integers, 1 decimal, 4 texts", 1)
SOURCES = (LINEITEM, ORDERS, PART, CUSTOMER, SUPPLIER)
EXAMPLES = LAYOUTS.parent
IN_FLIGHT = EXAMPLES / "sales_in_flight.yaml"
PARTS = 8
_KEYS = (
    "part_sk",
    "customer_sk",
    "supplier_sk",
    "clerk_sk",
    "order_date",
    "ship_date",
    "commit_date",
    "receipt_date",
)
SALES = Table(
    "sales",
    "8 surrogate keys and dates as numbers, 4 decimals",
    (
        Column("l_orderkey", "int64"),
        Column("l_linenumber", "int32"),
        *(Column(name, "int32") for name in _KEYS),
        *(Column(name, "decimal(15,2)") for name in ("l_quantity", "l_tax", "l_discount", "l_extendedprice")),
    ),
    Dialect("|"),
)

# Runs a package: its path, further arguments of the command; its summary.
Run = Callable[[Path, list[str]], dict[str, Any]]


def ready(data: DataSet) -> DataSet:
    """The rows of the fact table as text, made beforehand."""
    return DataSet(SALES, data.folder.with_name(f"{data.folder.name}-ready"))


def prepare_ready(sets: list[DataSet], run: Callable[[DataSet, Path], None]) -> None:
    """Makes these files, once. `run`: the example in flight, of a set, into a DuckDB file that is not there yet."""
    for data in sets:
        files = ready(data)
        stamp = files.folder / "complete.json"
        wanted = {file.name: [file.stat().st_size, file.stat().st_mtime_ns] for file in data.files}
        if not stamp.exists() or json.loads(stamp.read_text(encoding="utf-8")) != wanted:
            files.folder.mkdir(exist_ok=True)
            database = files.folder / "sales.duckdb"
            database.unlink(missing_ok=True)
            run(data, database)
            _write(database, files.folder)
            database.unlink()
            stamp.write_text(json.dumps(wanted), encoding="utf-8")
        for file in files.files:
            read_once(file)


def _write(database: Path, folder: Path) -> None:
    names = ", ".join(column.name for column in SALES.columns)
    with duckdb.connect(str(database), read_only=True) as connection:
        for number in range(FILES):
            connection.execute(
                f"COPY (SELECT {names} FROM sales WHERE hash(l_orderkey) % {FILES} = {number} "
                f"ORDER BY l_orderkey, l_linenumber) TO '{folder}/sales.tbl.{number + 1}' "
                "(FORMAT csv, DELIMITER '|', HEADER false)"
            )


# As both examples partition the table.
_PARTITION = {"hash": {"column": "l_orderkey", "parts": PARTS}}


def plain_settings() -> Mapping[str, Any]:
    """As the example in flight loads the table."""
    return {"load": "staged", "partition": _PARTITION}


def rows_of_sales(summary: Mapping[str, Any]) -> int:
    """What was loaded into the fact table."""
    return int(next(table["rows_loaded"] for table in summary["tables"] if table["table"].split(".")[-1] == "sales"))


def in_flight(job: Job, run: Run) -> int:
    """Dimensions numbered, all keys found on the way."""
    dimensions = f"dimensions=duckdb:{job.scratch}/dimensions.duckdb"
    arguments = ["--set", f"parts={PARTS}", "--connection", dimensions]
    return rows_of_sales(run(IN_FLIGHT, [*_data(job), *arguments]))


def load_then_build(job: Job, run: Run, *, parts: int, counted: bool) -> int:
    """All five tables loaded, dimensions numbered, then the fact table by SQL. `counted`: whether the loading is."""
    loading, building = job.scratch / "tables.yaml", job.scratch / "build.yaml"
    _write_load(loading)
    _write_build(building, parts)
    started, cpu_started = time.perf_counter(), time.process_time()
    run(loading, _data(job))
    if not counted:
        job.excluded_seconds = time.perf_counter() - started
        job.excluded_cpu_seconds = time.process_time() - cpu_started
    return rows_of_sales(run(building, []))


def _data(job: Job) -> list[str]:
    return ["--set", f"data={job.data.folder.resolve()}"]


def _write_load(path: Path) -> None:
    """The tables as SQL reads them: unpartitioned; with the dimensions numbered."""

    def task(table: Table) -> dict[str, Any]:
        source = {"connection": "files", "files": [f"{table.name}.tbl.*"], "layout": table.name}
        loaded = {
            "input": "rows",
            "connection": "warehouse",
            "table": table.name,
            "target": "replace",
            "load": "single",
            # As autovacuum does it for tables that are there for a minute: without, the server takes sorts for joins.
            "analyze": True,
        }
        return {"data_flow": {"sources": {"rows": source}, "destinations": {"loaded": loaded}}}

    tasks: dict[str, Any] = {f"load_{table.name}": task(table) for table in SOURCES}
    after = dict.fromkeys(tasks, "success")
    for dimension, key, select in (
        ("part", "p_partkey", "part"),
        ("customer", "c_custkey", "customer"),
        ("supplier", "s_suppkey", "supplier"),
        ("clerk", "o_clerk", "(SELECT DISTINCT o_clerk FROM orders) AS clerks"),
    ):
        number = f"CAST(row_number() OVER (ORDER BY {key}) AS integer) AS {dimension}_sk"
        build = {"connection": "warehouse", "table": f"dim_{dimension}", "target": "replace"}
        tasks[f"number_{dimension}"] = {
            "after": after,
            "build": {**build, "select": f"SELECT {number}, {key} FROM {select}"},
        }
    tables = {table.name: headrace_layout(table.columns, table.dialect) for table in SOURCES}
    _package(path, {"layouts": tables, "tasks": tasks}, files=True)


def _write_build(path: Path, parts: int) -> None:
    sql = (EXAMPLES / "sql" / "sales.sql").read_text(encoding="utf-8")
    into = {"connection": "warehouse", "table": "sales", "target": "replace", "partition": _PARTITION}
    divided = {"parts": parts, "by": {"table": LINEITEM.name}} if parts > 1 else {}
    build = {**into, "select": sql, **divided}
    _package(path, {"tasks": {"build_sales": {"build": build}}}, files=False)


def _package(path: Path, more: Mapping[str, Any], *, files: bool) -> None:
    connections: dict[str, Any] = {"warehouse": {"type": "null"}}
    parameters: dict[str, Any] = {}
    if files:
        connections["files"] = {"type": "files", "path": "${data}"}
        parameters = {"parameters": {"data": {"type": "path", "required": True}}}
    document = {"headrace": 1, "package": "bench", **parameters, "connections": connections, **more}
    path.write_text(json.dumps(document, indent=1), encoding="utf-8")
