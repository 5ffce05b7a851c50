"""What is wrong with the settings of these tasks is found before anything runs, with its place."""

from __future__ import annotations

from pathlib import Path

import pytest

from headrace.errors import PackageError
from headrace.model import load_package
from tests.snapshots import assert_snapshot

TASKS = {
    "no_program": "process: {command: ['', a]}",
    "no_command": "process: {command: []}",
    "nul_in_argument": 'process: {command: [a, "b\\0c"]}',
    "half_a_pair": 'process: {command: [a], input: "\\ud800"}',
    "variable_name": "process: {command: [a], environment: {A=B: c}}",
    "home_folder": "process: {command: [a], folder: ~/work}",
    "exit_code": "process: {command: [a], exit_codes: [256]}",
    "both_codes": "process: {command: [a], exit_codes: [0, 3], retry_exit_codes: [3]}",
    "no_function": "python: {function: module}",
    "function_name": 'python: {function: "module:a b"}',
    "home_file": 'python: {function: "~/a.py:b"}',
    "home_path": "file: {delete: [a, ~/b]}",
    "home_destination": "file: {move: a, to: ~/b}",
    "missing_of_create": "file: {create: a, missing: skip}",
    "home_out": "generate: {out: ~/data}",
}


@pytest.mark.parametrize("name", TASKS)
def test_messages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.chdir(tmp_path)
    Path("package.yaml").write_text(f"headrace: 1\npackage: test\ntasks:\n  work:\n    {TASKS[name]}\n")
    with pytest.raises(PackageError) as caught:
        load_package("package.yaml")
    assert_snapshot(f"settings_{name}", caught.value.render())
