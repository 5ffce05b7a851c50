"""First figures: LINEITEM text to typed rows on one core, and into a DuckDB file on two, beside the nearest peers.

    make bench

Method. Every measurement is a process of its own. Speed is a slope: the same method reads a small and a large set of
the same files, and the figure is the difference of bytes over the difference of seconds, so that starting Python,
opening a database and importing libraries do not count. Methods take turns, repetition by repetition; a ratio is formed
inside one repetition, and the median of all repetitions is shown. CPU-seconds per GB stand beside it, because wall time
on two virtual cores varies with where the kernel puts the threads.

MB and GB are 10^6 and 10^9 bytes of source text, for every method.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BASE_METHODS = {"parse": "headrace", "load": "headrace"}


@dataclass(frozen=True)
class Sample:
    """One process: wall time and CPU time in seconds, bytes of source text."""

    seconds: float
    cpu_seconds: float
    source_bytes: int


# --- the methods: each runs in a process of its own -------------------------------------------------------------------


def parse_headrace(files: Sequence[str], scratch: Path) -> None:
    """The `null:` destination: every value parsed, checked, converted; sums, minima and maxima of each column."""
    _run_package(files, "null:", streams=1)


def parse_duckdb(files: Sequence[str], scratch: Path) -> None:
    """read_csv with declared types, one thread, order off, every column converted (count of its values)."""
    import duckdb

    from headrace.tpch.verify import RECORD_TYPES

    columns = RECORD_TYPES["lineitem"]
    connection = duckdb.connect(config={"threads": 1, "preserve_insertion_order": False})
    counts = ", ".join(f"count({name})" for name in columns)
    connection.execute(f"SELECT {counts} FROM {_read_csv(files, columns)}").fetchall()


def parse_pyarrow(files: Sequence[str], scratch: Path) -> None:
    """pyarrow.csv.open_csv with declared types, 1 MiB blocks, batches discarded."""
    import pyarrow
    from pyarrow import csv

    from headrace.tpch.verify import RECORD_TYPES

    simple = {"BIGINT": pyarrow.int64(), "INTEGER": pyarrow.int32(), "DATE": pyarrow.date32()}
    types = {
        name: simple.get(kind) or (pyarrow.decimal128(15, 2) if kind.startswith("DECIMAL") else pyarrow.string())
        for name, kind in RECORD_TYPES["lineitem"].items()
    }
    pyarrow.set_cpu_count(1)
    for file in files:
        reader = csv.open_csv(
            file,
            read_options=csv.ReadOptions(column_names=[*types, "end"], use_threads=False, block_size=1 << 20),
            parse_options=csv.ParseOptions(delimiter="|", quote_char=False),
            convert_options=csv.ConvertOptions(column_types=types, include_columns=list(types)),
        )
        for _ in reader:
            pass


def parse_polars(files: Sequence[str], scratch: Path) -> None:
    """polars.scan_csv with declared types, one thread, maximum of every column."""
    os.environ["POLARS_MAX_THREADS"] = "1"
    import polars

    from headrace.tpch.verify import RECORD_TYPES

    simple = {"BIGINT": polars.Int64, "INTEGER": polars.Int32, "DATE": polars.Date, "VARCHAR": polars.String}
    schema = {name: simple.get(kind, polars.Decimal(15, 2)) for name, kind in RECORD_TYPES["lineitem"].items()}
    scan = polars.scan_csv(
        list(files), separator="|", has_header=False, quote_char=None, schema={**schema, "end": polars.String}
    )
    scan.select(list(schema)).max().collect(engine="streaming")


def load_headrace(files: Sequence[str], scratch: Path) -> None:
    """The example package: two streams, memory 1 GB, ledger and accounts."""
    _run_package(files, f"duckdb://{scratch / 'headrace.duckdb'}", streams=2)


def load_duckdb(files: Sequence[str], scratch: Path) -> None:
    """INSERT .. SELECT FROM read_csv with declared types, two threads, order off, default memory; then CHECKPOINT."""
    import duckdb

    from headrace.tpch.verify import RECORD_TYPES

    columns = RECORD_TYPES["lineitem"]
    connection = duckdb.connect(config={"threads": 2, "preserve_insertion_order": False})
    connection.execute(f"ATTACH '{scratch / 'own.duckdb'}' AS own (STORAGE_VERSION 'v1.5.0')")
    connection.execute(
        f"CREATE TABLE own.lineitem ({', '.join(f'{name} {kind} NOT NULL' for name, kind in columns.items())})"
    )
    connection.execute(f"INSERT INTO own.lineitem SELECT * FROM {_read_csv(files, columns)}")
    connection.execute("CHECKPOINT own")


METHODS: dict[str, dict[str, Callable[[Sequence[str], Path], None]]] = {
    "parse": {"headrace": parse_headrace, "duckdb": parse_duckdb, "pyarrow": parse_pyarrow, "polars": parse_polars},
    "load": {"headrace": load_headrace, "duckdb": load_duckdb},
}


def _read_csv(files: Sequence[str], columns: dict[str, str]) -> str:
    names = ", ".join(f"'{file}'" for file in files)
    types = ", ".join(f"'{name}': '{kind}'" for name, kind in columns.items())
    return f"read_csv([{names}], delim = '|', quote = '', escape = '', header = false, columns = {{{types}}})"


def _run_package(files: Sequence[str], destination: str, streams: int) -> None:
    from headrace import run
    from headrace.model import load_package

    package = load_package(
        ROOT / "examples" / "tpch" / "load.yaml",
        sets=[f"data={Path(files[0]).parent}", "tables=lineitem"],
        connections=[f"warehouse={destination}"],
        streams=streams,
        environ=os.environ,
    )
    with tempfile.TemporaryDirectory() as runs:
        summary = run.execute(package, runs_dir=Path(runs))
    if summary.status != "success":
        raise SystemExit(str(summary.failure))


# --- measuring --------------------------------------------------------------------------------------------------------


def measure(kind: str, method: str, folder: Path, cpus: str) -> Sample:
    """One process of a method over the files of one folder."""
    files = sorted(str(path) for path in folder.glob("lineitem.tbl*"))
    command = [sys.executable, __file__, "--child", kind, method, *files]
    with tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
        started = time.perf_counter()
        process = subprocess.Popen(["taskset", "-c", cpus, *command], cwd=scratch)
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - started
    if status != 0:
        raise SystemExit(f"{method} failed")
    return Sample(seconds, usage.ru_utime + usage.ru_stime, sum(os.path.getsize(file) for file in files))


def slope(small: Sample, large: Sample) -> tuple[float, float]:
    """MB per second and CPU-seconds per GB between the two sizes."""
    difference = large.source_bytes - small.source_bytes
    return difference / (large.seconds - small.seconds) / 1e6, (
        large.cpu_seconds - small.cpu_seconds
    ) / difference * 1e9


def bench(kind: str, small: Path, large: Path, repetitions: int, cpus: str) -> list[dict[str, object]]:
    """All methods of a kind, in turns; a row of medians for each."""
    figures: dict[str, list[tuple[float, float]]] = {method: [] for method in METHODS[kind]}
    for repetition in range(repetitions):
        for method in METHODS[kind]:
            figures[method].append(slope(measure(kind, method, small, cpus), measure(kind, method, large, cpus)))
            speed, cpu = figures[method][-1]
            print(
                f"{kind} {repetition + 1}/{repetitions} {method}: {speed:.0f} MB/s, {cpu:.2f} CPU-s/GB", file=sys.stderr
            )
    base = figures[BASE_METHODS[kind]]
    return [
        {
            "method": method,
            "mb_per_second": round(statistics.median(speed for speed, _ in values)),
            "cpu_seconds_per_gb": round(statistics.median(cpu for _, cpu in values), 2),
            "headrace_is_faster_by": round(
                statistics.median(own[0] / other[0] for own, other in zip(base, values, strict=True)), 2
            ),
        }
        for method, values in figures.items()
    ]


def prepare(folder: Path, scale: float) -> tuple[Path, Path]:
    """A large set of LINEITEM files and a small one that is its first quarter."""
    from headrace import core

    large, small = folder / "large", folder / "small"
    generation = core.generate_tpch(
        {"scale": scale, "chunks": 8, "chunk": None, "tables": ["lineitem"], "folder": str(large), "threads": 2}
    )
    while (result := generation.join(1.0)) is None:
        pass
    core.raise_for_error(result)
    small.mkdir()
    for number in (1, 2):
        (small / f"lineitem.tbl.{number}").hardlink_to(large / f"lineitem.tbl.{number}")
    return small, large


def main() -> None:
    """Command line."""
    if sys.argv[1:2] == ["--child"]:
        kind, method, *files = sys.argv[2:]
        METHODS[kind][method](files, Path.cwd())
        return
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scale", type=float, default=1.0, help="TPC-H scale of the large set (default 1: 760 MB)")
    parser.add_argument("--repetitions", type=int, default=9)
    parser.add_argument("--kinds", default="parse,load")
    parser.add_argument("--json", type=Path, help="also write the figures here")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=Path.cwd(), prefix=".bench-") as folder:
        small, large = prepare(Path(folder), arguments.scale)
        rows = {
            kind: bench(kind, small, large, arguments.repetitions, "0" if kind == "parse" else "0,1")
            for kind in arguments.kinds.split(",")
        }
    peers = {name: version(name) for name in ("headrace", "duckdb", "pyarrow", "polars")}
    figures = {
        "machine": f"{platform.machine()}, {os.cpu_count()} CPUs",
        "versions": peers,
        "repetitions": arguments.repetitions,
        **rows,
    }
    if arguments.json:
        arguments.json.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")
    for kind in rows:
        print(f"\n{kind} | MB/s | CPU-s per GB | Headrace is faster by")
        for row in rows[kind]:
            print(" | ".join(str(value) for value in row.values()))


if __name__ == "__main__":
    main()
