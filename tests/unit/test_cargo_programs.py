"""Test programs of cargo: which run, how they end."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cargo_programs import Program, Runner, main, programs, run_all
from tests.patience import FOR_EVER_SECONDS, HANG_SECONDS, wait_until

_ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def times(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "times.tsv"
    monkeypatch.setenv("HEADRACE_TIMES", str(path))
    return path


def program(folder: Path, name: str, text: str) -> Program:
    """A script in place of a test program."""
    path = folder / f"{name}-0123456789abcdef"
    path.write_text(f"#!/bin/bash\n{text}\n")
    path.chmod(0o755)
    return Program(path, folder)


def message(path: Path | None, test: bool = True) -> str:
    """A line that cargo prints."""
    executable = None if path is None else str(path)
    manifest = str((path or Path("crate/x")).parent / "Cargo.toml")
    return json.dumps(
        {"reason": "compiler-artifact", "profile": {"test": test}, "executable": executable, "manifest_path": manifest}
    )


def test_those_that_cargo_made_run_the_largest_first(tmp_path: Path) -> None:
    small, large = program(tmp_path, "small", ""), program(tmp_path, "large", "#" * 100)
    lines = [
        message(small.executable),
        message(None),
        message(tmp_path / "tool", test=False),
        message(large.executable),
        json.dumps({"reason": "build-finished", "success": True}),
    ]
    assert programs("\n".join(lines)) == [large, small]
    assert small.name == f"{tmp_path.name}/small"


def test_each_runs_in_the_folder_of_its_crate_and_failures_are_named(
    tmp_path: Path, times: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    found = [program(tmp_path, "good", "pwd"), program(tmp_path, "bad", "echo no; exit 3")]
    assert run_all(found, Runner()) == [f"{tmp_path.name}/bad"]
    printed = capfd.readouterr().out
    assert f"\n{tmp_path}\n" in printed and "\nno\n" in printed
    assert [line.split("\t")[:2] for line in times.read_text().splitlines()] == [["program", f"{tmp_path.name}/good"]]


@pytest.mark.parametrize("exit_code", [0, 1])
def test_one_that_hangs_or_whose_child_hangs_fails(tmp_path: Path, exit_code: int) -> None:
    hanging = program(tmp_path, "hanging", f"sleep {FOR_EVER_SECONDS} &\nexit {exit_code}")
    assert Runner(limit_seconds=1).run(hanging) == (False, "\nended after 1 s\n")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signals_end_all_of_them(tmp_path: Path, number: signal.Signals) -> None:
    names = [f"n{place}" for place in range(2 * (os.cpu_count() or 1))]
    found = [
        program(tmp_path, name, f"echo $$ > {tmp_path}/{name}.pid; exec sleep {FOR_EVER_SECONDS}") for name in names
    ]
    lines = tmp_path / "lines"
    lines.write_text("".join(message(one.executable) + "\n" for one in found))
    cargo = program(tmp_path, "cargo", f"cat {lines}")
    command = [sys.executable, "-m", "tests.cargo_programs", str(cargo.executable)]
    with subprocess.Popen(command, cwd=_ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        running = os.cpu_count() or 1
        wait_until(lambda: len([path for path in tmp_path.glob("*.pid") if path.read_text()]) == running)
        process.send_signal(number)
        assert process.wait(HANG_SECONDS) == 128 + number
    ids = [int(path.read_text()) for path in tmp_path.glob("*.pid")]
    assert len(ids) == running
    wait_until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in ids))


def test_no_program_at_all_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["true"]) == 1
    assert "named no test program" in capsys.readouterr().err
    assert main(["false"]) == 1
