"""Which cases the short form of the tests runs: each with one value of what is taken in turn, and all values in all.
With a rotation, a third of them.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

_ROOT = Path(__file__).parents[2]
_CASES = """
import pytest

@pytest.mark.in_turn("afterwards")
@pytest.mark.parametrize("afterwards", ["again", "resume"])
@pytest.mark.parametrize("name", ["a", "b", "c"])
def test_named(name, afterwards): pass

@pytest.mark.in_turn("place", among="postgres ")
@pytest.mark.parametrize("place", ["duckdb", "postgres 15", "postgres 16"])
@pytest.mark.parametrize("case", [1, 2])
def test_among(case, place): pass

@pytest.mark.in_turn("one", "other")
@pytest.mark.parametrize("one", [1, 2])
@pytest.mark.parametrize("other", [1, 2])
@pytest.mark.parametrize("case", range(4))
def test_both(case, one, other): pass

@pytest.mark.parametrize("name", ["a", "b"])
def test_unmarked(name): pass

@pytest.mark.rotates
def test_long(): pass
"""
_VARIABLES = ("HEADRACE_CASES", "HEADRACE_SHARD", "HEADRACE_ROTATION")


def collected(folder: Path, text: str = _CASES, **environment: str) -> list[list[str]]:
    """The parameters of each case that would run, as they stand in its id, behind the name of its function."""
    (folder / "test_cases.py").write_text(text)
    (folder / "conftest.py").write_text("from tests.conftest import pytest_collection_modifyitems\n")
    (folder / "pytest.ini").write_text(
        "[pytest]\nmarkers =\n  in_turn(*parameters, among): see tests/conftest.py\n  rotates: see tests/conftest.py\n"
    )
    kept = {name: value for name, value in os.environ.items() if name not in _VARIABLES}
    command = [sys.executable, "-m", "pytest", "--collect-only", "--quiet", "-p", "no:cacheprovider", str(folder)]
    paths = os.pathsep.join([str(_ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    done = subprocess.run(
        command, cwd=folder, env={**kept, "PYTHONPATH": paths, **environment}, capture_output=True, text=True
    )
    found = [line.split("::")[1].rstrip("]").replace("[", "-") for line in done.stdout.splitlines() if "::" in line]
    return [line.split("-") for line in found] if done.returncode == 0 else [[done.stdout + done.stderr]]


def test_each_case_runs_once_and_meets_all_values_in_turn(tmp_path: Path) -> None:
    found = collected(tmp_path)
    named = [case[1:] for case in found if case[0] == "test_named"]
    assert [name for name, _ in named] == ["a", "b", "c"]
    assert {afterwards for _, afterwards in named} == {"again", "resume"}
    among = [case[1:] for case in found if case[0] == "test_among"]
    assert sorted(case for case, place in among if place == "duckdb") == ["1", "2"]
    assert sorted(place for _, place in among if place != "duckdb") == ["postgres 15", "postgres 16"]
    both = [case[1:] for case in found if case[0] == "test_both"]
    assert len({case[0] for case in both}) == len({tuple(case[1:]) for case in both}) == len(both) == 4
    assert [case[1] for case in found if case[0] == "test_unmarked"] == ["a", "b"]


def test_all_cases_run_where_that_is_asked_for(tmp_path: Path) -> None:
    short, others, every = (
        {tuple(case) for case in collected(tmp_path, HEADRACE_CASES=cases)} for cases in ("short", "others", "every")
    )
    assert len(every) == 6 + 6 + 16 + 2 + 1
    assert short and others and short | others == every and not short & others
    assert "expected short, others or every" in collected(tmp_path, HEADRACE_CASES="all")[0][0]


def test_three_rotations_run_all_cases_once(tmp_path: Path) -> None:
    short = {tuple(case) for case in collected(tmp_path)}
    rotations = [{tuple(case) for case in collected(tmp_path, HEADRACE_ROTATION=str(number))} for number in (7, 8, 9)]
    assert set.union(*rotations) == short
    for rotation in rotations:
        names = {case[0] for case in short}
        assert {case[0] for case in rotation} | {"test_long"} == names
        assert len(rotation) < len(short) / 2
    assert [("test_long",) in rotation for rotation in rotations].count(True) == 1
    # The others are what no rotation runs, and what this one leaves out.
    every, others = (
        {tuple(case) for case in collected(tmp_path, HEADRACE_ROTATION="7", HEADRACE_CASES=cases)}
        for cases in ("every", "others")
    )
    assert rotations[0] | others == every and not rotations[0] & others
    assert "expected a number" in collected(tmp_path, HEADRACE_ROTATION="seven")[0][0]


def test_each_module_is_in_one_shard(tmp_path: Path) -> None:
    for name in ["one", "two", "three", "four", "five"]:
        (tmp_path / f"test_{name}.py").write_text(f"def test_{name}_a(): pass\ndef test_{name}_b(): pass\n")
    shards = [collected(tmp_path, HEADRACE_SHARD=f"{shard}/3") for shard in (1, 2, 3)]
    names = [case[0] for shard in shards for case in shard if case[0].endswith(("_a", "_b"))]
    assert sorted(names) == sorted(
        f"test_{name}_{case}" for name in ["one", "two", "three", "four", "five"] for case in "ab"
    )
    of_module = [{case[0].rpartition("_")[0] for case in shard} for shard in shards]
    assert not of_module[0] & of_module[1] | of_module[1] & of_module[2] | of_module[0] & of_module[2]
    assert "expected a number and how many" in collected(tmp_path, HEADRACE_SHARD="4/3")[0][0]


@pytest.mark.parametrize("name", ["nobody", "case"])
def test_a_parameter_that_is_not_there_is_refused(tmp_path: Path, name: str) -> None:
    marks = f'@pytest.mark.in_turn("{name}")\n@pytest.mark.parametrize("case", [1])'
    text = f"import pytest\n\n{marks}\ndef test_it(case): pass\n"
    found = collected(tmp_path, text)
    if name == "case":
        assert found == [["test_it", "1"]]
    else:
        assert "has no parameter nobody" in found[0][0]
