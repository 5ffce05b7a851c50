"""Fixtures of all tests, and which cases of them the short form runs."""

from __future__ import annotations

import gc
import os
from collections import defaultdict
from zlib import crc32

import pytest
from hypothesis import settings

# Each parameter that is not taken in turn, with its value.
Case = tuple[tuple[str, str], ...]

pytest_plugins = ["tests.servers.fixtures", "tests.stale_snapshots"]

# CI tries the same inputs each time, so that a change is judged by what it changes; everybody else tries others.
settings.register_profile("ci", derandomize=True)
if os.environ.get("CI"):
    settings.load_profile("ci")

# Which cases run. `short`, the default: each case with one server version, one instruction set, and one value of the
# parameters that are taken in turn, so that a function with several cases meets all. `others`: those that `short`
# leaves out, with its rotation if there is one (`make nightly`). `every`: both (`make test-every-case`).
CASES_VARIABLE = "HEADRACE_CASES"
# A number: of each function outside `ROTATION_IS_NOT_OF`, only a third of the cases run, at least one. Three numbers
# that follow each other run all. `make test`, `make nightly` and CI take the count of commits; without a number all
# run. Long tests of what is rarely changed are marked `@pytest.mark.rotates`: such a test runs with every third number.
ROTATION_VARIABLE = "HEADRACE_ROTATION"
ROTATION_TURNS = 3
# Their cases take little time.
ROTATION_IS_NOT_OF = ("tests/unit/", "tests/conformance_csv/")
# `2/5`: the second of five shards of the modules. A module is always in the same one.
SHARD_VARIABLE = "HEADRACE_SHARD"
# Fixtures whose values are taken in turn. `@pytest.mark.in_turn("name")` names parameters of a function besides: such
# as do not depend on the others, like what is done behind a kill, whatever was killed. `among="postgres "`: only the
# values that begin so are taken in turn, the others run with every case.
TAKEN_IN_TURN = frozenset({"postgres_versions", "cpu_path"})


def pytest_collection_finish() -> None:
    """Takes what was collected out of the sight of the garbage collector, which would look at it a thousand times."""
    gc.collect()
    gc.freeze()


def pytest_sessionfinish() -> None:
    """Modules in C complain of objects that are left when Python ends."""
    gc.unfreeze()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leaves out other shards, and what is not the turn of a case; the count of `deselected` tells how many."""
    chosen = [item for item in _chosen_cases(items) if _is_in_shard(item)]
    kept = {item.nodeid for item in chosen}
    left_out = [item for item in items if item.nodeid not in kept]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = chosen


def _chosen_cases(items: list[pytest.Item]) -> list[pytest.Item]:
    cases = os.environ.get(CASES_VARIABLE, "short")
    if cases == "every":
        return items
    if cases not in ("short", "others"):
        raise pytest.UsageError(f"{CASES_VARIABLE} is {cases!r}; expected short, others or every")
    short = _whose_turn_it_is(items)
    if rotation := os.environ.get(ROTATION_VARIABLE):
        if not rotation.isdecimal():
            raise pytest.UsageError(
                f"{ROTATION_VARIABLE} is {rotation!r}; expected a number, like the count of commits"
            )
        short = _rotated([item for item in items if item.nodeid in short], int(rotation))
    return [item for item in items if (item.nodeid in short) == (cases == "short")]


def _rotated(items: list[pytest.Item], rotation: int) -> set[str]:
    """Of each function, the cases of this rotation: at least one, except of tests that are marked `rotates`."""
    functions: dict[str, list[pytest.Item]] = defaultdict(list)
    for item in items:
        functions[item.nodeid.partition("[")[0]].append(item)
    kept: set[str] = set()
    for function, cases in functions.items():
        if cases[0].get_closest_marker("rotates") is not None:
            turns = ROTATION_TURNS
        elif function.startswith(ROTATION_IS_NOT_OF):
            turns = 1
        else:
            turns = min(ROTATION_TURNS, len(cases))
        # Functions with few cases do not all run their first one at the same time.
        turn = rotation + crc32(function.encode())
        kept.update(item.nodeid for number, item in enumerate(cases) if (number + turn) % turns == 0)
    return kept


def _is_in_shard(item: pytest.Item) -> bool:
    """Whether the module of this item belongs to the shard that was asked for; without one, every module does."""
    shard, _, shards = os.environ.get(SHARD_VARIABLE, "1/1").partition("/")
    if not (shard.isdecimal() and shards.isdecimal() and 1 <= int(shard) <= int(shards)):
        raise pytest.UsageError(f"{SHARD_VARIABLE} is {shard}/{shards}; expected a number and how many, like 2/5")
    return crc32(item.nodeid.partition("::")[0].encode()) % int(shards) == int(shard) - 1


def _whose_turn_it_is(items: list[pytest.Item]) -> set[str]:
    """Of each case, what stands in the parameters that are not taken in turn: the one item whose turn it is."""
    functions: dict[str, dict[Case, list[pytest.Item]]] = defaultdict(lambda: defaultdict(list))
    for item in items:
        names = _names_in_turn(item)
        case = tuple(sorted(pair for pair in _values(item).items() if pair[0] not in names))
        functions[item.nodeid.partition("[")[0]][case].append(item)
    kept: set[str] = set()
    for function, cases in functions.items():
        # The same on every machine and in every process; functions with one case do not all take the same value.
        turn = crc32(function.encode())
        for of_case in cases.values():
            kept.update(item.nodeid for item in _in_turn(of_case, turn))
            turn += int(bool(_names_in_turn(of_case[0])))
    return kept


def _in_turn(of_case: list[pytest.Item], turn: int) -> list[pytest.Item]:
    """Those with one value of each parameter that is taken in turn: all combinations come one after the other."""
    for name in sorted(_names_in_turn(of_case[0])):
        values = list(dict.fromkeys(_values(item)[name] for item in of_case))
        value = values[turn % len(values)]
        turn //= len(values)
        of_case = [item for item in of_case if _values(item)[name] == value]
    return of_case


def _names_in_turn(item: pytest.Item) -> frozenset[str]:
    """Of the parameters whose values are taken in turn, those of which this item has one of these values."""
    values = _values(item)
    names = TAKEN_IN_TURN & values.keys()
    for mark in item.iter_markers("in_turn"):
        for name in mark.args:
            if name in values:
                if values[name].startswith(mark.kwargs.get("among", "")):
                    names |= {name}
            elif mark in item.own_markers:
                raise pytest.UsageError(f"{item.nodeid} has no parameter {name} whose values could be taken in turn")
    return names


def _values(item: pytest.Item) -> dict[str, str]:
    """The parameters of this item."""
    parameters: dict[str, object] = getattr(getattr(item, "callspec", None), "params", {})
    return {name: value if isinstance(value, str) else repr(value) for name, value in parameters.items()}
