"""Runs the command line inside the test process and gives its output back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest

from headrace.cli.app import app
from headrace.cli.failures import run_app


@dataclass(frozen=True)
class Outcome:
    """How a command ended."""

    exit_code: int
    stdout: str
    stderr: str

    def text(self) -> str:
        """Everything, for snapshots."""
        parts = [f"exit code {self.exit_code}"]
        parts += [f"--- {name}\n{text}" for name, text in [("stdout", self.stdout), ("stderr", self.stderr)] if text]
        return "\n".join(parts)


CommandLine = Callable[..., Outcome]


@pytest.fixture
def headrace(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> CommandLine:
    """`headrace("run", "x.yaml")` runs the command with 80 columns."""
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("NO_COLOR", "1")

    def run(*arguments: str) -> Outcome:
        capfd.readouterr()
        code = run_app(app, [str(argument) for argument in arguments])
        captured = capfd.readouterr()
        return Outcome(code, captured.out, captured.err)

    return run
