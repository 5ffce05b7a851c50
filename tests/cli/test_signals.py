"""Ctrl-C once cancels, twice ends the process at once."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.patience import HANG_SECONDS

WAITS_FOR_EVER = """
import sys, threading, time
from headrace.cli.signals import STOPPING, cancel_on_signals, write_now
cancel = threading.Event()
with cancel_on_signals(cancel, lambda: write_now(STOPPING)):
    print("ready", flush=True)
    while True:
        time.sleep(0.05)
"""

# Sends a signal to itself in the middle of something, then runs the command line.
SENDS_ITSELF = """
import importlib.abc, os, signal, sys, threading
number, moment = int(sys.argv[1]), sys.argv[2]

def send():
    os.kill(os.getpid(), number)

def wrap(module, name, before=True):
    inner = getattr(module, name)
    def outer(*arguments, **options):
        if before:
            send()
        result = inner(*arguments, **options)
        if not before:
            send()
        return result
    setattr(module, name, outer)

class Finder(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name == moment:
            send()

from headrace.cli import main
if moment == "verify":
    import headrace.tpch.verify as verify
    def endless(connection, *_arguments):
        threading.Timer(0.2, send).start()
        connection.execute("SELECT count(*) FROM range(1000000000000)")
    verify._verify_table = endless
elif moment == "aggregates":
    import headrace.targets.duckdb.target as target
    def endless(connection, path, plan):
        threading.Timer(0.2, send).start()
        connection.execute("SELECT count(*) FROM range(1000000000000)")
    target.read_aggregates = endless
elif moment == "result":
    import builtins
    from headrace.cli import console
    console.print = builtins.print
    wrap(console, "print")
elif moment == "end":
    from headrace.cli import failures
    wrap(failures, "run_app", before=False)
elif moment == "plan":
    import headrace.run as run
    wrap(run, "plan_package")
elif moment == "generate":
    import headrace.cli.generate as generate
    wrap(generate, "generate")
elif moment == "generated":
    import headrace.cli.generate as generate
    wrap(generate, "generate", before=False)
else:
    sys.meta_path.insert(0, Finder())
main(sys.argv[3:])
"""

ENDLESS_PACKAGE = """\
headrace: 1
package: endless
connections:
  nowhere: {type: "null"}
layouts:
  region:
    delimiter: "|"
    trailing_delimiter: true
    columns:
      - {name: l_orderkey, type: int64}
      - {name: l_partkey, type: int32}
      - {name: l_suppkey, type: int32}
      - {name: l_linenumber, type: int32}
      - {name: l_quantity, type: "decimal(15,2)"}
      - {name: l_extendedprice, type: "decimal(15,2)"}
      - {name: l_discount, type: "decimal(15,2)"}
      - {name: l_tax, type: "decimal(15,2)"}
      - {name: l_returnflag, type: char(1)}
      - {name: l_linestatus, type: char(1)}
      - {name: l_shipdate, type: date}
      - {name: l_commitdate, type: date}
      - {name: l_receiptdate, type: date}
      - {name: l_shipinstruct, type: varchar(25)}
      - {name: l_shipmode, type: varchar(10)}
      - {name: l_comment, type: varchar(44)}
streams: 2
tasks:
  load:
    data_flow:
      sources:
        rows: {generate: {tpch: lineitem, scale: 1000, chunks: 100}, layout: region}
      destinations:
        loaded: {input: rows, connection: nowhere, table: lineitem, target: replace, load: single}
"""


@contextmanager
def started(arguments: list[str], folder: Path) -> Iterator[subprocess.Popen[str]]:
    """A process that is ended and closed whatever the test does."""
    process = subprocess.Popen(
        [sys.executable, *arguments], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def read_until(process: subprocess.Popen[str], beginning: str) -> None:
    assert process.stderr is not None
    for line in process.stderr:
        if line.startswith(beginning):
            return
    pytest.fail(f"the process ended without writing {beginning}")


def test_the_second_signal_ends_the_process(tmp_path: Path) -> None:
    with started(["-c", WAITS_FOR_EVER], tmp_path) as process:
        assert process.stdout is not None and process.stdout.readline() == "ready\n"
        process.send_signal(signal.SIGINT)
        read_until(process, "stopping: what has not begun to commit is rolled back")
        assert process.poll() is None
        process.send_signal(signal.SIGINT)
        assert process.wait(HANG_SECONDS) == 3


def test_handlers_are_restored(monkeypatch: pytest.MonkeyPatch) -> None:
    import threading

    from headrace.cli.signals import cancel_on_signals

    before = signal.getsignal(signal.SIGTERM)
    cancel, said = threading.Event(), list[str]()
    with cancel_on_signals(cancel, lambda: said.append("stopping")):
        os.kill(os.getpid(), signal.SIGTERM)
        deadline = time.monotonic() + HANG_SECONDS
        while not cancel.is_set() and time.monotonic() < deadline:
            time.sleep(0.01)
    assert said == ["stopping"]
    assert signal.getsignal(signal.SIGTERM) is before


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_cancelled_run_ends_with_3_and_its_document(tmp_path: Path, number: signal.Signals) -> None:
    (tmp_path / "endless.yaml").write_text(ENDLESS_PACKAGE)
    with started(["-m", "headrace", "run", "endless.yaml", "--json"], tmp_path) as process:
        read_until(process, "lineitem: loading")
        time.sleep(0.3)
        process.send_signal(number)
        output, errors = process.communicate(timeout=HANG_SECONDS)
    assert process.returncode == 3
    assert "stopping: what has not begun to commit is rolled back" in errors
    assert "Traceback" not in errors
    document = json.loads(output)
    assert document["status"] == "cancelled"
    assert document["error"]["kind"] == "cancelled"


SIGNALS = pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["SIGINT", "SIGTERM"])
DEMO = ["demo", "--scale", "0.001", "--quiet"]
MOMENTS = {
    "headrace.cli.app": ["schema"],
    "typer": ["schema"],
    "headrace.model": ["check", "endless.yaml"],
    "plan": ["plan", "endless.yaml"],
    "generate": ["generate", "tpch", "--scale", "0.001", "--out", "data"],
    "verify": DEMO,
    "aggregates": DEMO,
}


def send_itself(folder: Path, number: signal.Signals, moment: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    (folder / "endless.yaml").write_text(ENDLESS_PACKAGE)
    command = [sys.executable, "-c", SENDS_ITSELF, str(int(number)), moment, *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=HANG_SECONDS)


@pytest.mark.in_turn("number", "json_option")
@SIGNALS
@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("json_option", [[], ["--json"]], ids=["text", "json"])
def test_a_signal_ends_every_command_with_3(
    tmp_path: Path, number: signal.Signals, moment: str, json_option: list[str]
) -> None:
    done = send_itself(tmp_path, number, moment, *MOMENTS[moment], *json_option)
    assert done.returncode == 3
    assert done.stderr.count("error: ") == 1
    assert "Traceback" not in done.stderr and "internal" not in done.stderr
    if not json_option:
        assert done.stdout == ""
        return
    document = json.loads(done.stdout)
    assert (document["status"], document["error"]["kind"]) == ("cancelled", "cancelled")


@SIGNALS
@pytest.mark.parametrize(
    ("moment", "arguments"),
    [
        ("result", ["check", "endless.yaml"]),
        ("end", ["check", "endless.yaml"]),
        ("generated", MOMENTS["generate"]),
        ("result", DEMO),
    ],
)
def test_a_signal_behind_the_work_changes_nothing(
    tmp_path: Path, number: signal.Signals, moment: str, arguments: list[str]
) -> None:
    done = send_itself(tmp_path, number, moment, *arguments, "--json")
    assert (done.returncode, "error" in done.stderr) == (0, False)
    assert json.loads(done.stdout)["status"] == "success"


def test_the_document_of_an_early_signal_is_that_of_every_cancelled_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from headrace.cli.failures import report
    from headrace.errors import CancelledError

    done = send_itself(tmp_path, signal.SIGTERM, "headrace.cli.app", "schema", "--json")
    assert report(CancelledError("stopped by SIGTERM"), json_output=True) == done.returncode
    assert (done.stdout, done.stderr) == tuple(capsys.readouterr())
