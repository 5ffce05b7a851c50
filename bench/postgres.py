"""Text into a PostgreSQL server: Headrace, psql, and other loaders, each in the way that suits it best.

All reach the server over TCP by the variables of libpq that the measuring process sets. Each method makes its tables
itself; at its end the relation `lineitem` holds all rows.
"""

from __future__ import annotations

import importlib.util
import itertools
import json
import multiprocessing
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from bench import readers
from bench.columns import END_OF_ROW, postgres_columns
from bench.data import DataSet
from bench.job import Job, Method
from bench.prepared import binary, stripped
from bench.tables import Table

_DUCKDB_PYTHON = Path(__file__).resolve().parent.parent / ".venv-bench-duckdb" / "bin" / "python"
# Runs in the environment of DuckDB 1.5.5; the extension is a file of a wheel.
_DUCKDB_INSERT = """
import json, sys, pathlib, duckdb, duckdb_extension_postgres_scanner as package
task = json.loads(sys.argv[1])
[extension] = pathlib.Path(package.__file__).parent.rglob("postgres_scanner.duckdb_extension")
connection = duckdb.connect(config={"threads": 1, "preserve_insertion_order": False})
connection.execute("SET enable_progress_bar = false")  # it would be printed before the number
connection.execute(f"LOAD '{extension}'")
connection.execute("ATTACH '' AS server (TYPE postgres)")
insert = f"INSERT INTO server.{task['table']} SELECT {task['columns']} FROM {task['source']}"
print(connection.execute(insert).fetchone()[0])
"""
_COPY_TEXT = "DELIMITER '|'"
# As a partition has them that is to be attached without a scan; all rows are inside.
_BOUNDS = "l_orderkey >= 1 AND l_orderkey < 4611686018427387904"


# --- psql -------------------------------------------------------------------------------------------------------------


def psql_two_tables(job: Job, *, form: Callable[[DataSet], DataSet], options: str, check: str = "") -> int:
    """One psql per core, each with its share of the files, into a table of its own that it makes and freezes."""
    table = job.data.table
    shares = _shares(form(job.data).files, job.cores)
    scripts = [
        f"BEGIN;\n{_create(table, name, check)};\n{_copies(name, share, f'{options}, FREEZE')}COMMIT;\n"
        for name, share in _numbered(table, shares)
    ]
    rows = _psql_at_once(scripts)
    _psql(_union(table, len(shares)))
    return rows


def psql_one_table(job: Job, *, form: Callable[[DataSet], DataSet], options: str) -> int:
    """One psql per core, all into one table that is there already."""
    table = job.data.table
    _psql(f"{_create(table, table.name)};\n")
    scripts = [
        f"BEGIN;\n{_copies(table.name, share, options)}COMMIT;\n" for share in _shares(form(job.data).files, job.cores)
    ]
    return _psql_at_once(scripts)


def sed_and_psql(job: Job) -> int:
    """What people write: sed takes the last delimiter away, psql copies, one such pipe per core."""
    table = job.data.table
    _psql(f"{_create(table, table.name)};\n")
    pipes = []
    for share in _shares(job.data.files, job.cores):
        files = " ".join(f"'{file}'" for file in share)
        copy = f"COPY {table.name} FROM STDIN WITH ({_COPY_TEXT})"
        command = f"""sed 's/|$//' {files} | psql -X -v ON_ERROR_STOP=1 -c "{copy}" """
        pipes.append(subprocess.Popen(["bash", "-o", "pipefail", "-c", command], stdout=subprocess.PIPE, text=True))
    return _sum_of_copies(pipes)


def _psql(script: str) -> None:
    subprocess.run(["psql", "-X", "-q", "-v", "ON_ERROR_STOP=1"], input=script, text=True, check=True)


def _psql_at_once(scripts: Sequence[str]) -> int:
    """Rows of all COPYs."""
    running = []
    for script in scripts:
        process = subprocess.Popen(
            ["psql", "-X", "-v", "ON_ERROR_STOP=1"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert process.stdin is not None
        # A few hundred bytes: they fit into the pipe.
        process.stdin.write(script)
        process.stdin.close()
        process.stdin = None
        running.append(process)
    return _sum_of_copies(running)


def _sum_of_copies(running: Sequence[subprocess.Popen[str]]) -> int:
    outputs = [process.communicate()[0] for process in running]
    for process in running:
        if process.returncode != 0:
            raise SystemExit(f"psql ended with code {process.returncode}")
    lines = [line.split() for output in outputs for line in output.splitlines()]
    return sum(int(words[1]) for words in lines if words[0] == "COPY")


# --- other loaders ----------------------------------------------------------------------------------------------------


def adbc(job: Job) -> int:
    """pyarrow's typed batches into ADBC's ingest, one process per core, all into one table."""
    _psql(f"{_create(job.data.table, job.data.table.name)};\n")
    parts = [replace(job.data, chosen=tuple(share)) for share in _shares(job.data.files, job.cores)]
    with multiprocessing.get_context("fork").Pool(len(parts)) as pool:
        rows = pool.map(_adbc_ingest, parts)
        # Its processes count only when they have ended by themselves.
        pool.close()
        pool.join()
    return sum(rows)


def _adbc_ingest(part: DataSet) -> int:
    import pyarrow
    from adbc_driver_postgresql import dbapi

    batches = readers.pyarrow_batches(part, block_bytes=1 << 20)
    first = next(batches)
    with dbapi.connect("postgresql://") as connection, connection.cursor() as cursor:
        reader = pyarrow.RecordBatchReader.from_batches(first.schema, itertools.chain([first], batches))
        rows = cursor.adbc_ingest(part.table.name, reader, mode="append")
        connection.commit()
    return int(rows)


def duckdb(job: Job) -> int:
    """DuckDB's postgres extension: INSERT from read_csv, one process per core, all into one table."""
    table = job.data.table
    _psql(f"{_create(table, table.name)};\n")
    columns = ", ".join(column.name for column in table.columns)
    running = []
    for share in _shares(job.data.files, job.cores):
        source = readers.duckdb_source(replace(job.data, chosen=tuple(share)))
        task = json.dumps({"table": table.name, "columns": columns, "source": source})
        command = [str(_DUCKDB_PYTHON), "-c", _DUCKDB_INSERT, task]
        running.append(subprocess.Popen(command, stdout=subprocess.PIPE, text=True))
    outputs = [process.communicate()[0] for process in running]
    if any(process.returncode for process in running):
        raise SystemExit("DuckDB's process failed")
    return sum(map(int, outputs))


def pgloader(job: Job) -> int:
    """One command file per table, one worker per core."""
    table = job.data.table
    _psql(f"{_create(table, table.name)};\n")
    fields = ", ".join([*(column.name for column in table.columns), END_OF_ROW])
    columns = ", ".join(column.name for column in table.columns)
    names = ("PGUSER", "PGPASSWORD", "PGHOST", "PGPORT", "PGDATABASE")
    server = "postgresql://{}:{}@{}:{}/{}".format(*(os.environ[name] for name in names))
    for file in job.data.files:
        commands = job.scratch / f"{file.name}.load"
        commands.write_text(
            f"LOAD CSV FROM '{file}' ({fields}) INTO {server} TARGET TABLE public.{table.name} ({columns})\n"
            f"WITH fields terminated by '|', fields not enclosed, keep unquoted blanks,\n"
            f"workers = {job.cores}, concurrency = {job.cores}, batch rows = 25000, prefetch rows = 100000;\n",
            encoding="utf-8",
        )
        command = ["pgloader", "--no-ssl-cert-verification", "--root-dir", str(job.scratch), str(commands)]
        subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
    # It says how many rows it has read, not how many there are.
    started, cpu_started = time.perf_counter(), time.process_time()
    rows = int(query(f"SELECT count(*) FROM {table.name}")[0])
    job.excluded_seconds = time.perf_counter() - started
    job.excluded_cpu_seconds = time.process_time() - cpu_started
    return rows


# --- shared -----------------------------------------------------------------------------------------------------------


def query(sql: str) -> list[str]:
    """The values of one row, as text."""
    command = ["psql", "-X", "-q", "-A", "-t", "-F", "\x1f", "-c", sql]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.rstrip("\n").split("\x1f")


def _shares(files: Sequence[Path], parts: int) -> list[list[Path]]:
    """The files dealt out: they are of equal size."""
    return [list(files[number::parts]) for number in range(min(parts, len(files)))]


def _numbered(table: Table, shares: Sequence[Sequence[Path]]) -> list[tuple[str, Sequence[Path]]]:
    return [(f"{table.name}_{number}", share) for number, share in enumerate(shares, start=1)]


def _create(table: Table, name: str, check: str = "") -> str:
    constraint = f", CHECK ({check})" if check else ""
    return f"CREATE TABLE {name} ({postgres_columns(table.columns)}{constraint})"


def _copies(name: str, files: Sequence[Path], options: str) -> str:
    return "".join(f"\\copy {name} FROM '{file}' WITH ({options})\n" for file in files)


def _union(table: Table, parts: int) -> str:
    selects = " UNION ALL ".join(f"SELECT * FROM {table.name}_{number}" for number in range(1, parts + 1))
    return f"CREATE VIEW {table.name} AS {selects};\n"


# --- the list ---------------------------------------------------------------------------------------------------------


def _without_duckdb() -> str | None:
    return None if _DUCKDB_PYTHON.exists() else "NOT AVAILABLE: `make bench` installs it into .venv-bench-duckdb"


def _without_adbc() -> str | None:
    found = importlib.util.find_spec("adbc_driver_postgresql")
    return None if found else "NOT AVAILABLE: the wheel adbc-driver-postgresql is not installed"


def _without_pgloader() -> str | None:
    return None if shutil.which("pgloader") else "NOT AVAILABLE: install the system's package pgloader"


PEERS: tuple[Method, ...] = (
    Method(
        "psql-text",
        "psql",
        "2 `psql` at once, `COPY` of text whose last delimiter was stripped before (not counted), each into a table "
        "made in the same transaction, `FREEZE`",
        partial(psql_two_tables, form=stripped, options=_COPY_TEXT),
        needs_server=True,
    ),
    Method(
        "psql-text-one-table",
        "psql",
        "the same into one table that exists",
        partial(psql_one_table, form=stripped, options=_COPY_TEXT),
        needs_server=True,
    ),
    Method(
        "sed-psql",
        "psql",
        "2 pipes of `sed 's/|$//'` and `psql` at once into one table that exists: from the files as they are",
        sed_and_psql,
        needs_server=True,
    ),
    Method(
        "replay",
        "psql",
        "2 `psql` at once, `COPY (FORMAT binary)` of files that the server wrote (not counted), each into a table made "
        "in the same transaction, `FREEZE`: the bound",
        partial(psql_two_tables, form=binary, options="FORMAT binary"),
        needs_server=True,
    ),
    Method(
        "replay-checked",
        "psql",
        "the same into tables with the CHECK of a partition's bounds: the bound of `load: staged`",
        partial(psql_two_tables, form=binary, options="FORMAT binary", check=_BOUNDS),
        needs_server=True,
    ),
    Method(
        "replay-one-table",
        "psql",
        "the same into one table that exists",
        partial(psql_one_table, form=binary, options="FORMAT binary"),
        needs_server=True,
    ),
    Method(
        "adbc",
        "adbc-driver-postgresql",
        "`csv.open_csv` with all types declared into `adbc_ingest`, 2 processes into one table that exists",
        adbc,
        needs_server=True,
        missing=_without_adbc,
    ),
    Method(
        "duckdb-postgres",
        "duckdb 1.5.5",
        "`INSERT INTO` the attached server `FROM read_csv`, 2 processes of 1 thread into one table that exists",
        duckdb,
        needs_server=True,
        missing=_without_duckdb,
    ),
    Method(
        "pgloader",
        "pgloader",
        "`LOAD CSV`, workers = 2, concurrency = 2, batch rows = 25000, prefetch rows = 100000; once",
        pgloader,
        needs_server=True,
        missing=_without_pgloader,
        repetitions=1,
    ),
)
