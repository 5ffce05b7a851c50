"""Processes and clocks: every measurement is a process of its own, methods take turns, repetition by repetition."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from bench.data import DataSet
from bench.job import Method
from bench.server import Server

ROOT = Path(__file__).resolve().parent.parent
Say = Callable[[str], None]


class MeasurementError(Exception):
    """A method's process failed; the text is the end of what it said."""


@dataclass(frozen=True)
class Sample:
    """One process over the files of one set, less what the method says it does not count.

    `cpu_seconds` are those of the process and all that it has started; those of the server it loads into are apart.
    """

    seconds: float
    cpu_seconds: float
    peak_resident_bytes: int
    source_bytes: int
    rows: int
    server_cpu_seconds: float | None = None

    def to_dict(self) -> dict[str, Any]:
        """As it is kept; without what it does not have."""
        return {name: value for name, value in asdict(self).items() if value is not None}


def command(kind: str, method: str, data: DataSet, cores: Sequence[int], *options: str) -> list[str]:
    """The command of one measurement; `python -m bench one --help` explains it."""
    cores_text = ",".join(str(core) for core in cores)
    return ["-m", "bench", "one", kind, method, data.table.name, str(data.folder), "--cores", cores_text, *options]


def run_process(
    arguments: Sequence[str], data: DataSet, scratch_parent: Path, server: Server | None = None
) -> tuple[dict[str, Any], Sample]:
    """Run a command of `command`: what it printed, and its time from start to end. `server` is emptied before."""
    environment = dict(os.environ)
    server_started = 0.0
    if server is not None:
        server.reset()
        environment |= server.environment
        server_started = server.cpu_seconds()
    with tempfile.TemporaryDirectory(dir=scratch_parent, prefix="scratch-") as scratch:
        output, errors = Path(scratch, "output"), Path(scratch, "errors")
        with output.open("wb") as stdout, errors.open("wb") as stderr:
            started = time.perf_counter()
            process = subprocess.Popen(
                [sys.executable, *arguments, "--scratch", scratch],
                cwd=ROOT,
                stdout=stdout,
                stderr=stderr,
                env=environment,
            )
            _, status, usage = os.wait4(process.pid, 0)
            seconds = time.perf_counter() - started
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode != 0:
            said = errors.read_text(encoding="utf-8", errors="replace").replace(scratch, "SCRATCH")
            raise MeasurementError(_first_cause(said) or f"exit code {process.returncode}")
        printed: dict[str, Any] = json.loads(output.read_text(encoding="utf-8"))
    sample = Sample(
        round(seconds - printed["excluded_seconds"], 4),
        round(usage.ru_utime + usage.ru_stime - printed["excluded_cpu_seconds"], 4),
        printed["peak_resident_bytes"],
        data.size_bytes,
        printed["rows"],
        None if server is None else round(server.cpu_seconds() - server_started, 4),
    )
    return printed, sample


def _server_text(sample: Sample) -> str:
    return "" if sample.server_cpu_seconds is None else f"server {sample.server_cpu_seconds:.2f} CPU-s, "


def _first_cause(said: str) -> str:
    """Headrace's own `error:` line, or the last line of a traceback. Names no folder: results are published."""
    lines = said.replace(str(ROOT), ".").strip().splitlines()
    return next((line for line in lines if line.startswith("error: ")), lines[-1] if lines else "")[:200]


def interleave(
    kind: str,
    methods: Sequence[Method],
    sets: Sequence[DataSet],
    cores: Sequence[int],
    repetitions: int,
    scratch_parent: Path,
    say: Say,
    server: Server | None = None,
) -> dict[str, list[list[dict[str, Any]]]]:
    """Per method and repetition one sample of each set.

    Every repetition starts with another method, so that none always runs behind the same one. All methods must read
    the same number of rows, every time.
    """
    found: dict[str, list[list[dict[str, Any]]]] = {method.name: [] for method in methods}
    rows: dict[Path, int] = {}
    for repetition in range(repetitions):
        turn = repetition % len(methods)
        for method in [*methods[turn:], *methods[:turn]]:
            if method.repetitions is not None and repetition >= method.repetitions:
                continue
            own_server = server if method.needs_server else None
            samples = [
                run_process(command(kind, method.name, data, cores), data, scratch_parent, own_server)[1]
                for data in sets
            ]
            for data, sample in zip(sets, samples, strict=True):
                if rows.setdefault(data.folder, sample.rows) != sample.rows:
                    raise MeasurementError(f"{method.name} read {sample.rows} rows, not {rows[data.folder]}")
            found[method.name].append([sample.to_dict() for sample in samples])
            last = samples[-1]
            say(
                f"{kind} {sets[0].table.name} {repetition + 1}/{repetitions} {method.name}: {last.seconds:.2f} s, "
                f"{last.cpu_seconds:.2f} CPU-s, {_server_text(last)}{last.peak_resident_bytes / 1e6:.0f} MB"
            )
    return found
