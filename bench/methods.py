"""What is measured: one function per method, each run in a process of its own. METHOD.md says what is equal in them.

A function reads the files of one table and returns how many rows it read, so that every single measurement is checked.
Libraries are imported inside the functions: a process imports what it needs and nothing else.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import tempfile
import time
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

from bench import forms, postgres, readers, sales
from bench.data import DataSet, write_join_package, write_package
from bench.job import Job, Method
from bench.tables import LINEITEM, ORDERS, Table

# DuckDB 2 writes this format for Headrace and for its own loader alike.
STORAGE_VERSION = "v1.5.0"


# --- parse: text to typed columns that nobody keeps -------------------------------------------------------------------


def parse_headrace(job: Job) -> int:
    """Through the command line, as a user would."""
    return int(run_headrace(job, "null:", streams=1)["rows_read"])


def parse_duckdb(job: Job, *, ordered: bool) -> int:
    """count(column) of every column: the cheapest aggregate that needs the converted values."""
    connection = readers.duckdb_connection(job.cores, ordered=ordered)
    counts = ", ".join(f"count({column.name})" for column in job.data.table.columns)
    row = connection.execute(f"SELECT {counts} FROM {readers.duckdb_source(job.data)}").fetchone()
    assert row is not None
    (rows,) = set(row)
    return int(rows)


def parse_pyarrow(job: Job, *, block_bytes: int) -> int:
    """Batches are dropped."""
    return sum(batch.num_rows for batch in readers.pyarrow_batches(job.data, block_bytes))


def parse_polars_max(job: Job) -> int:
    """The maximum of every column, on the streaming engine."""
    import polars

    names = [column.name for column in job.data.table.columns]
    result = readers.polars_scan(job.data, job.cores).select(polars.col(names).max(), polars.len().alias("rows of it"))
    return int(result.collect(engine="streaming")["rows of it"][0])


def parse_polars_count(job: Job) -> int:
    """The number of values of every column, on the streaming engine: cheaper than the maximum."""
    import polars

    names = [column.name for column in job.data.table.columns]
    result = readers.polars_scan(job.data, job.cores).select(polars.col(names).count()).collect(engine="streaming")
    (rows,) = set(result.row(0))
    return int(rows)


def parse_polars_batches(job: Job) -> int:
    """Batches are dropped."""
    names = [column.name for column in job.data.table.columns]
    batches = readers.polars_scan(job.data, job.cores).select(names).collect_batches(maintain_order=False)
    return sum(batch.height for batch in batches)


# --- load: text into a DuckDB file ------------------------------------------------------------------------------------


def load_headrace(job: Job) -> int:
    """Ledger, accounts and memory limit included: `headrace run` as it is."""
    return int(run_headrace(job, f"duckdb:{job.database}", streams=job.cores)["rows_loaded"])


def load_duckdb(job: Job, *, ordered: bool) -> int:
    """DuckDB's own loader into a table that exists, then CHECKPOINT."""
    connection = readers.duckdb_connection(job.cores, ordered=ordered)
    _create(connection, job)
    return _insert(connection, job.data.table, readers.duckdb_source(job.data))


def load_ready(job: Job) -> int:
    """Typed batches that are in memory already, as one Arrow C stream; making them is not counted."""
    import pyarrow

    started, cpu_started = time.perf_counter(), time.process_time()
    batches = list(readers.headrace_like_batches(job.data))
    stream = readers.OnlyStream(pyarrow.RecordBatchReader.from_batches(batches[0].schema, batches))
    job.excluded_seconds = time.perf_counter() - started
    job.excluded_cpu_seconds = time.process_time() - cpu_started
    connection = readers.duckdb_connection(job.cores, ordered=False)
    _create(connection, job)
    connection.register("ready", stream)
    return _insert(connection, job.data.table, "ready")


def _create(connection: Any, job: Job) -> None:
    table = job.data.table
    connection.execute(f"ATTACH '{job.database}' AS loaded (STORAGE_VERSION '{STORAGE_VERSION}')")
    connection.execute(f"CREATE TABLE loaded.{table.name} ({readers.duckdb_columns(table)})")


def _insert(connection: Any, table: Table, source: str) -> int:
    names = ", ".join(column.name for column in table.columns)
    row = connection.execute(f"INSERT INTO loaded.{table.name} SELECT {names} FROM {source}").fetchone()
    connection.execute("CHECKPOINT loaded")
    return int(row[0])


# --- postgres: text into a PostgreSQL server; the peers are in bench/postgres.py --------------------------------------

_SERVER = "postgresql://"
_STAGED = {"load": "staged", "partition": {"range": {"column": "l_orderkey"}}}
_ROUTED = {"load": "staged", "partition": {"hash": {"column": "l_orderkey", "parts": 16}}}
_MANY = {"load": "staged", "partition": {"hash": {"column": "l_orderkey", "parts": 56}}}
_SINGLE = {"load": "single"}
_VIEW = {"load": "view"}


def postgres_headrace(job: Job, *, destination: Mapping[str, Any]) -> int:
    """Ledger, accounts and switch included: `headrace run` as it is."""
    return int(run_headrace(job, _SERVER, streams=job.cores, settings=destination)["rows_loaded"])


# --- streams and memory: Headrace against itself ----------------------------------------------------------------------


def streams_headrace(job: Job, *, into: str, streams: int) -> int:
    """The same load by more or fewer streams."""
    settings = _MANY if into == "partitions" else {}
    return int(run_headrace(job, _destination(job, into), streams, settings=settings)["rows_read"])


def memory_headrace(job: Job, *, into: str, streams: int) -> int:
    """LINEITEM and ORDERS, one after the other."""
    return int(run_headrace(job, _destination(job, into), streams, tables=(LINEITEM, ORDERS))["rows_read"])


# --- forms and gzip: the same rows written in other ways --------------------------------------------------------------


def forms_headrace(job: Job, *, form: str) -> int:
    """The files of the form, which lie beside those of the plain one."""
    data = forms.of(job.data.table, job.data.folder, form)
    return int(run_headrace(replace(job, data=data), "null:", streams=1)["rows_read"])


# --- infer: a layout from the files, against a parse by a layout that is known ----------------------------------------


def infer_headrace(job: Job, *, streams: int) -> int:
    """Dialect and facts of all columns, of all rows: what `headrace infer` does before it writes the layout."""
    from headrace.infer import InferOptions, infer_files

    return infer_files(job.data.files, InferOptions(streams=streams)).rows


# --- join: files of two tables whose rows meet ----------------------------------------------------------


def join_headrace(job: Job) -> int:
    """All columns of both, through the command line."""
    package = job.scratch / "join.yaml"
    write_join_package(ORDERS, LINEITEM, package)
    return int(_run(package, job, "null:", streams=1)["rows_loaded"])


def join_headrace_apart(job: Job) -> int:
    """The same files, one table after the other, without a join."""
    summary = run_headrace(job, "null:", streams=1, tables=(ORDERS, LINEITEM))
    return int(next(table["rows_loaded"] for table in summary["tables"] if table["table"] == LINEITEM.name))


def join_duckdb(job: Job) -> int:
    """Its hash join of the same files: count of every column."""
    connection = readers.duckdb_connection(job.cores, ordered=False)
    columns = [*ORDERS.columns, *LINEITEM.columns]
    counts = ", ".join(f"count({column.name})" for column in columns)
    orders, lines = (readers.duckdb_source(replace(job.data, table=table)) for table in (ORDERS, LINEITEM))
    row = connection.execute(f"SELECT {counts} FROM {orders} JOIN {lines} ON o_orderkey = l_orderkey").fetchone()
    assert row is not None
    (rows,) = set(row)
    return int(rows)


# --- sales: the fact table, into a PostgreSQL server ------------------------------------------------------------------


def sales_in_flight(job: Job) -> int:
    """The example, on the way from the files."""
    return sales.in_flight(job, partial(_run_package, job, _SERVER))


def sales_plain(job: Job) -> int:
    """A plain load of the same rows, which are ready as text."""
    data = sales.ready(job.data)
    settings = sales.plain_settings()
    return int(run_headrace(replace(job, data=data), _SERVER, job.cores, settings=settings)["rows_loaded"])


def sales_in_database(job: Job, *, parts: int, counted: bool) -> int:
    """Tables loaded, then SQL."""
    return sales.load_then_build(job, partial(_run_package, job, _SERVER), parts=parts, counted=counted)


def make_sales(data: DataSet, database: Path) -> None:
    """The rows of the fact table in a DuckDB file."""
    with tempfile.TemporaryDirectory(prefix="bench-") as scratch:
        job = Job(data, Path(scratch), 2)
        sales.in_flight(job, partial(_run_package, job, f"duckdb:{database}"))


def _destination(job: Job, into: str) -> str:
    return {"null": "null:", "duckdb": f"duckdb:{job.database}"}.get(into, _SERVER)


def run_headrace(
    job: Job,
    destination: str,
    streams: int,
    tables: tuple[Table, ...] = (),
    settings: Mapping[str, Any] = MappingProxyType({}),
) -> dict[str, Any]:
    """`headrace run --json` in this process; its summary. `settings`: further ones of the package's destinations."""
    package = job.scratch / "load.yaml"
    write_package(tables or (job.data.table,), package, settings)
    return _run(package, job, destination, streams)


def _run(package: Path, job: Job, destination: str, streams: int) -> dict[str, Any]:
    arguments = ["--set", f"data={job.data.folder.resolve()}", "--streams", str(streams)]
    return _run_package(job, destination, package, arguments)


def _run_package(job: Job, destination: str, package: Path, more: list[str]) -> dict[str, Any]:
    from headrace.cli.app import app
    from headrace.cli.failures import run_app

    arguments = ["run", str(package), "--connection", f"warehouse={destination}", *more]
    if "--streams" not in more:
        arguments += ["--streams", str(job.cores)]
    arguments += ["--runs-dir", str(job.scratch / "runs"), "--json", "--quiet"]
    with contextlib.redirect_stdout(io.StringIO()) as output:
        code = run_app(app, arguments)
    if code != 0:
        raise SystemExit(f"headrace run ended with code {code}")
    summary: dict[str, Any] = json.loads(output.getvalue())
    assert summary["rows_rejected"] == 0
    return summary


# --- the lists --------------------------------------------------------------------------------------------------------

_HEADRACE_LOAD = "`headrace run`, connection `duckdb:FILE`, {} streams, `memory` 1 GB"

_HEADRACE_POSTGRES = "`headrace run`, connection `postgresql://`, 2 streams, {}"

_INTO = {
    "null": "connection `null:`",
    "duckdb": "connection `duckdb:`",
    "postgres": "connection `postgresql://`",
    "partitions": "connection `postgresql://`, every row through the router into one of 56 partitions by hash",
}

METHODS: dict[str, tuple[Method, ...]] = {
    "parse": (
        Method(
            "headrace",
            "headrace",
            "`headrace run`, connection `null:`, 1 stream: sum, minimum, maximum or lengths of every column",
            parse_headrace,
            base=True,
        ),
        Method(
            "duckdb",
            "duckdb",
            "`read_csv` with all types declared, `preserve_insertion_order = false`, `count` of every column",
            partial(parse_duckdb, ordered=False),
        ),
        Method(
            "duckdb-ordered",
            "duckdb",
            "the same, `preserve_insertion_order = true`",
            partial(parse_duckdb, ordered=True),
        ),
        Method(
            "pyarrow",
            "pyarrow",
            "`csv.open_csv` with all types declared, blocks of 1 MiB, batches dropped",
            partial(parse_pyarrow, block_bytes=1 << 20),
        ),
        Method(
            "pyarrow-256k",
            "pyarrow",
            "`csv.open_csv` with all types declared, blocks of 256 KiB, batches dropped",
            partial(parse_pyarrow, block_bytes=1 << 18),
        ),
        Method(
            "polars-max",
            "polars",
            "`scan_csv` with all types declared, streaming engine, `max` of every column",
            parse_polars_max,
        ),
        Method("polars-count", "polars", "the same, `count` of every column", parse_polars_count),
        Method("polars-batches", "polars", "the same, `collect_batches`, batches dropped", parse_polars_batches),
    ),
    "load": (
        Method("headrace", "headrace", _HEADRACE_LOAD.format(2), load_headrace, base=True),
        Method(
            "duckdb",
            "duckdb",
            "`INSERT .. SELECT .. FROM read_csv`, `preserve_insertion_order = false`, CHECKPOINT; 2 threads",
            partial(load_duckdb, ordered=False),
        ),
        Method(
            "duckdb-ordered",
            "duckdb",
            "the same, `preserve_insertion_order = true`",
            partial(load_duckdb, ordered=True),
        ),
        Method(
            "ready-stream",
            "duckdb",
            "`INSERT .. SELECT` from typed Arrow batches in memory, one C stream, order off, CHECKPOINT; 2 threads",
            load_ready,
        ),
    ),
    "postgres": (
        Method(
            "headrace-staged",
            "headrace",
            _HEADRACE_POSTGRES.format("`load: staged`, a partition per file"),
            partial(postgres_headrace, destination=_STAGED),
            base=True,
            needs_server=True,
        ),
        Method(
            "headrace-routed",
            "headrace",
            _HEADRACE_POSTGRES.format("`load: staged`, every row through the router into one of 16 partitions by hash"),
            partial(postgres_headrace, destination=_ROUTED),
            needs_server=True,
        ),
        Method(
            "headrace-single",
            "headrace",
            _HEADRACE_POSTGRES.format("`load: single`"),
            partial(postgres_headrace, destination=_SINGLE),
            needs_server=True,
        ),
        Method(
            "headrace-view",
            "headrace",
            _HEADRACE_POSTGRES.format("`load: view`, a table per stream and a view of both: what `replay` makes"),
            partial(postgres_headrace, destination=_VIEW),
            needs_server=True,
        ),
        *postgres.PEERS,
    ),
    "streams": tuple(
        Method(
            f"{into}-{streams}",
            "headrace",
            f"`headrace run`, {_INTO[into]}, {streams} streams",
            partial(streams_headrace, into=into, streams=streams),
            base=streams == 2,
            needs_server=into in ("postgres", "partitions"),
        )
        for into, many in (("null", 16), ("duckdb", 16), ("postgres", 16), ("partitions", 56))
        for streams in (2, many)
    ),
    "forms": tuple(
        Method(form, "headrace", call, partial(forms_headrace, form=form), base=form in ("plain", "utf-8"))
        for form, call in (
            ("plain", "`1234.56`, `1995-12-31`, ASCII"),
            ("local", "the same values as `1.234,56` and `31.12.1995`"),
            ("utf-8", "plain, and two letters with accents in every tenth row"),
            ("windows-1252", "the same rows in that code page"),
        )
    ),
    "infer": (
        Method("parse", "headrace", "`headrace run`, connection `null:`, 1 stream", parse_headrace, base=True),
        Method(
            "infer",
            "headrace",
            "`headrace infer`, 1 stream: look, pass over all rows, decisions; no layout is known",
            partial(infer_headrace, streams=1),
        ),
    ),
    "gzip": (
        Method(
            "gzip-lines",
            "headrace",
            "compressed files, cut into lines only: what the inflater alone allows",
            partial(forms_headrace, form="gzip-lines"),
            base=True,
        ),
        Method("gzip", "headrace", "compressed files, every column typed", partial(forms_headrace, form="gzip")),
    ),
    "join": (
        Method(
            "headrace",
            "headrace",
            "`headrace run`, a `join` of both sources, connection `null:`, 1 stream: aggregates of all columns of both",
            join_headrace,
            base=True,
        ),
        Method(
            "apart",
            "headrace",
            "the same files without a join, one table after the other: the same aggregates of fewer values of ORDERS",
            join_headrace_apart,
        ),
        Method(
            "duckdb",
            "duckdb",
            "`read_csv` with all types declared on both sides, `JOIN`, `count` of every column; 1 thread",
            join_duckdb,
        ),
    ),
    "sales": (
        Method(
            "in-flight",
            "headrace",
            "`headrace run examples/tpch/sales_in_flight.yaml`: numbers dimensions, finds keys on the way",
            sales_in_flight,
            base=True,
            needs_server=True,
        ),
        Method(
            "plain",
            "headrace",
            "`headrace run`, the same rows from text that has them ready, into the same partitions",
            sales_plain,
            needs_server=True,
        ),
        Method(
            "load-then-sql",
            "headrace",
            "`headrace run`, all five tables, dimensions numbered, then the fact table by one SQL statement",
            partial(sales_in_database, parts=1, counted=True),
            needs_server=True,
        ),
        Method(
            "build-1",
            "headrace",
            "only the last step of that: a `build` task of one part",
            partial(sales_in_database, parts=1, counted=False),
            base=True,
            needs_server=True,
        ),
        Method(
            "build-2",
            "headrace",
            "the same by two parts of LINEITEM",
            partial(sales_in_database, parts=2, counted=False),
            needs_server=True,
        ),
    ),
    "memory": tuple(
        Method(
            f"{into}-{streams}",
            "headrace",
            f"`headrace run`, connection `{into}:`, {streams} streams",
            partial(memory_headrace, into=into, streams=streams),
            base=streams == 16,
            needs_server=into == "postgres",
        )
        for into, streams in (("duckdb", 16), ("duckdb", 2), ("null", 16), ("postgres", 16))
    ),
}


def find(kind: str, name: str) -> Method:
    """The method of that name."""
    (method,) = (method for method in METHODS[kind] if method.name == name)
    return method


def use_cores(cores: list[int]) -> None:
    """Only these cores, for this process and every thread it starts."""
    os.sched_setaffinity(0, cores)
    # Read when the libraries are loaded.
    os.environ["POLARS_MAX_THREADS"] = str(len(cores))
    os.environ["OMP_NUM_THREADS"] = str(len(cores))
