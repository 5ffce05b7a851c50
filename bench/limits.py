"""What measuring a load costs, and what pinning its streams gains: `python -m bench.limits [--pairs 15]` prints ratios.

Pairs of whole processes that load LINEITEM, one as it is and one otherwise, in turns; ratios of wall time and of
CPU-seconds, those of a server among them. `unmeasured` writes no `metrics.jsonl` and judges nothing: there is no such
setting, so the process is patched.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench.server import Server

_AS_IT_IS = "from headrace.__main__ import main; main()"
_UNMEASURED = """
from contextlib import nullcontext
from headrace.run.metrics import MetricsRecorder
MetricsRecorder.start = lambda self, attempt: None
MetricsRecorder.measuring = lambda self, plan, flow, make_watcher: nullcontext()
"""
PACKAGE = """
headrace: 1
package: bench
affinity: {affinity}
connections:
  inbox: {{type: files, path: inbox}}
  warehouse: {{type: duckdb, path: w.duckdb}}
layouts:
  lineitem: {{file: {layout}}}
tasks:
  load:
    data_flow:
      sources:
        lines: {{connection: inbox, files: "lineitem.tbl*", layout: lineitem}}
      destinations:
        lineitem: {{input: lines, connection: warehouse, table: lineitem, target: replace}}
"""
LAYOUT = Path(__file__).resolve().parent.parent / "examples" / "tpch" / "layouts" / "lineitem.yaml"


@dataclass(frozen=True)
class Way:
    """How a process loads."""

    name: str
    patch: str = ""
    affinity: str = "none"


AS_IT_IS = Way("as it is")
OTHERS = (Way("unmeasured", _UNMEASURED), Way("cores", affinity="cores"))


@dataclass(frozen=True)
class Used:
    """One process. `cpu_seconds`: its own and those of the server."""

    seconds: float
    cpu_seconds: float


def load(way: Way, files: Sequence[Path], streams: int, destination: str, server: Server | None) -> Used:
    """Loads the files, each under its own name."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    before = 0.0
    if server is not None:
        server.reset()
        environment |= server.environment
        before = server.cpu_seconds()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "inbox").mkdir()
        for number, file in enumerate(files, start=1):
            (folder / "inbox" / f"lineitem.tbl.{number}").symlink_to(file)
        (folder / "package.yaml").write_text(PACKAGE.format(affinity=way.affinity, layout=LAYOUT), encoding="utf-8")
        arguments = ["run", "package.yaml", "--streams", str(streams), "--connection", f"warehouse={destination}"]
        began = time.perf_counter()
        with subprocess.Popen(
            [sys.executable, "-c", way.patch + _AS_IT_IS, *arguments],
            cwd=folder,
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        ) as process:
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
        seconds = time.perf_counter() - began
    if process.returncode != 0:
        raise SystemExit(f"a load of the bench has failed with exit code {process.returncode}")
    by_server = 0.0 if server is None else server.cpu_seconds() - before
    return Used(seconds, usage.ru_utime + usage.ru_stime + by_server)


@contextmanager
def served(destination: str) -> Iterator[Server | None]:
    """The server of that destination, if it has one."""
    if not destination.startswith("postgres"):
        yield None
        return
    with Server(sorted(os.sched_getaffinity(0)), {}) as server:
        yield server


def ratios(first: Sequence[Used], second: Sequence[Used]) -> str:
    """Median of the pairs' ratios, and the middle half of them."""
    texts = []
    for what in ("cpu_seconds", "seconds"):
        values = [getattr(one, what) / getattr(other, what) for one, other in zip(first, second, strict=True)]
        low, middle, high = statistics.quantiles(values, n=4)
        texts.append(f"{what} {middle:.4f} ({low:.4f} to {high:.4f})")
    return ", ".join(texts)


def main() -> None:
    """Prints the ratios."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="+", type=Path, help="LINEITEM text")
    parser.add_argument("--pairs", type=int, default=15)
    parser.add_argument("--streams", type=int, default=len(os.sched_getaffinity(0)))
    options = parser.parse_args()
    files = [path.resolve() for path in options.files]
    for destination, times in (("null:", 8), ("duckdb:w.duckdb", 1), ("postgresql://", 1)):
        with served(destination) as server:
            for other in OTHERS:
                if other.affinity != "none" and server is not None:
                    continue  # most of its CPU time is the server's
                found: dict[Way, list[Used]] = {AS_IT_IS: [], other: []}
                for number in range(options.pairs + 1):
                    for way in (AS_IT_IS, other) if number % 2 else (other, AS_IT_IS):
                        used = load(way, files * times, options.streams, destination, server)
                        if number:  # the first pair warms up
                            found[way].append(used)
                average = statistics.median(used.cpu_seconds for used in found[AS_IT_IS])
                print(
                    f"{destination:16} as it is / {other.name:10} {ratios(found[AS_IT_IS], found[other])}; "
                    f"{average:.2f} CPU-seconds each",
                    flush=True,
                )


if __name__ == "__main__":
    main()
