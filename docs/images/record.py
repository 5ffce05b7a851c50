"""Records the picture of the README, load.svg, from a real run: the live table at a moment in the middle of a load.

    .venv/bin/python docs/images/record.py --scale 1 --streams 8

Generates TPC-H files into a temporary folder, loads them into DuckDB with the example package, keeps what the terminal
showed when the given share of all text was read, and writes it as SVG.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
import tempfile
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rich.console import Console, RenderableType
from rich.text import Text

import headrace.run as run
from headrace import model, tpch
from headrace.cli.progress import LiveProgress, started_line
from headrace.tpch.generate import GenerateRequest, generate

WIDTH = 80
OUTPUT = Path(__file__).with_name("load.svg")


class Recorder:
    """Listens to a run as the terminal would, and keeps one picture of it."""

    def __init__(self, moment: float) -> None:
        self._progress = LiveProgress(Console(file=open(os.devnull, "w"), width=WIDTH), time.monotonic)  # noqa: SIM115
        self._moment = moment
        self._bytes_read: dict[str, int] = {}
        self._bytes_total = 0
        self.first_line = ""
        self.picture: RenderableType | None = None

    def listen(self, event: Mapping[str, Any]) -> None:
        """Take one event; draw when the moment has come."""
        self._progress.listen(event)
        if event["event"] == "run_started":
            self.first_line = started_line(event)
            self._bytes_total = sum(int(task["bytes_total"]) for task in event["tasks"])
        elif event["event"] in ("progress", "task_finished"):
            self._bytes_read[event["task"]] = int(event["bytes_read"])
            if self.picture is None and sum(self._bytes_read.values()) >= self._moment * self._bytes_total:
                self.picture = self._progress.render()


def record(scale: float, streams: int, moment: float) -> str:
    """Run and return the SVG."""
    recorder = Recorder(moment)
    with tempfile.TemporaryDirectory() as temporary:
        data = Path(temporary) / "data"
        generate(GenerateRequest(data, scale, chunks=8), threading.Event(), lambda _written, _expected: None)
        package = model.load_package(
            tpch.package_path(),
            sets=[f"data={data}"],
            connections=[f"warehouse=duckdb:{temporary}/tpch.duckdb"],
            streams=streams,
        )
        summary = run.execute(package, runs_dir=Path(temporary) / "runs", listener=recorder.listen)
    if summary.failure is not None or recorder.picture is None:
        sys.exit(f"the run ended as {summary.status}; no picture was made")
    console = Console(record=True, width=WIDTH, file=open(os.devnull, "w"), force_terminal=True)  # noqa: SIM115
    console.print(Text("$ headrace run examples/tpch/load.yaml --set data=data", style="bold"))
    console.print(recorder.first_line, markup=False, highlight=False)
    console.print(recorder.picture)
    svg = console.export_svg(title=f"Headrace: TPC-H at scale {scale:g}, {streams} streams")
    # The picture must not load fonts from elsewhere; any monospaced font will do.
    return re.sub(r"\s*@font-face \{.*?\}", "", svg, flags=re.DOTALL).replace("Fira Code", "ui-monospace")


def main() -> None:
    """Parse the command line, record, write."""
    parser = argparse.ArgumentParser(description="Record docs/images/load.svg from a real run.")
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--streams", type=int, default=8)
    parser.add_argument("--moment", type=float, default=0.85, help="share of all text read, 0 to 1")
    arguments = parser.parse_args()
    OUTPUT.write_text(record(arguments.scale, arguments.streams, arguments.moment), encoding="utf-8")
    print(f"wrote {OUTPUT}")


if __name__ == "__main__":
    main()
