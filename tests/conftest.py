"""Fixtures of all tests, and which cases of them the short form runs."""

from __future__ import annotations

import os
from collections import defaultdict
from zlib import crc32

import pytest
from hypothesis import settings

pytest_plugins = ["tests.servers.fixtures"]

# CI tries the same inputs each time, so that a change is judged by what it changes; everybody else tries others.
settings.register_profile("ci", derandomize=True)
if os.environ.get("CI"):
    settings.load_profile("ci")

# Set by `make test-every-case`: every case runs on every server version and every instruction set. Otherwise each case
# runs on one of them, in turn, so that a function with several cases meets all.
EVERY_CASE_VARIABLE = "HEADRACE_EVERY_CASE"
# Fixtures whose values are taken in turn, and what they are called in the id of a case.
TAKEN_IN_TURN = {"postgres_versions": "PostgreSQL {}", "cpu_path": "{}"}


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leaves out what is not the turn of a case; the count of `deselected` tells how many."""
    if EVERY_CASE_VARIABLE in os.environ:
        return
    left_out = {item.nodeid for name in TAKEN_IN_TURN for item in _not_their_turn(items, name)}
    if left_out:
        config.hook.pytest_deselected(items=[item for item in items if item.nodeid in left_out])
        items[:] = [item for item in items if item.nodeid not in left_out]


def _not_their_turn(items: list[pytest.Item], name: str) -> list[pytest.Item]:
    """Of the items that use a fixture: all but one value of it for each case of their other parameters."""
    functions: dict[str, dict[tuple[str, ...], dict[str, pytest.Item]]] = defaultdict(lambda: defaultdict(dict))
    for item in items:
        labels = _labels(item)
        if name in labels:
            function, _, case = item.nodeid.removesuffix("]").partition("[")
            others = tuple(part for part in case.split("-") if part not in labels.values())
            functions[function][others][labels[name]] = item
    found: list[pytest.Item] = []
    for function, cases in functions.items():
        # The same on every machine and in every process; functions with one case do not all take the same value.
        first = crc32(function.encode())
        for number, of_values in enumerate(cases.values()):
            turn = sorted(of_values)[(first + number) % len(of_values)]
            found += [item for value, item in of_values.items() if value != turn]
    return found


def _labels(item: pytest.Item) -> dict[str, str]:
    """What the values of such fixtures are called in this item's id."""
    parameters = getattr(getattr(item, "callspec", None), "params", {})
    return {name: label.format(parameters[name]) for name, label in TAKEN_IN_TURN.items() if name in parameters}
