"""Data flows with several destinations whose transforms depend on a table: they are bound once for all of them."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from headrace.errors import HeadraceError
from headrace.model import load_package
from headrace.model.transform_binder import TransformBinder
from headrace.run import execute, plan_package
from tests.integration.driver import Project

DESTINATIONS = 4
HEAD = """\
headrace: 1
package: bound
connections:
  inbox: {type: files, path: inbox}
  warehouse: {type: duckdb, path: warehouse.duckdb, lock_timeout_seconds: 1}
layouts:
  orders: {delimiter: ",", columns: [{name: id, type: int64}, {name: part, type: int32}]}
tasks:
"""
OUT = "out{number}: {{input: computed, connection: warehouse, table: out{number}, target: replace}}"
FLOW = (
    "{data_flow: {sources: {orders: {connection: inbox, files: orders.csv, layout: orders}}, transforms: {"
    "keyed: {input: orders, lookup: {connection: warehouse, table: parts, on: {part: part}, add: [name], "
    "no_match: {default: none}}}, "
    'computed: {input: keyed, sql: "SELECT id, upper(name) AS name FROM keyed"}}, '
    f"destinations: {{{', '.join(OUT.format(number=number) for number in range(DESTINATIONS))}}}}}}}"
)
EARLY = f"  load: {FLOW}\n"
LATE = '  turns: {foreach: {query: {connection: warehouse, text: "SELECT 1 AS n"}, as: {n: integer}, ' + (
    f"tasks: {{load: {FLOW}}}}}}}\n"
)


@pytest.fixture
def bindings(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """A member for each time that transforms are bound: how many tables were known."""
    seen: list[int] = []
    bind = TransformBinder.bind

    def counted(self: TransformBinder, *arguments: Any) -> Any:
        seen.append(len(arguments[-1]))
        return bind(self, *arguments)

    monkeypatch.setattr(TransformBinder, "bind", counted)
    yield seen


@pytest.fixture
def orders(project: Project) -> Project:
    project.file("orders.csv", "1,1\n2,2\n3,9\n")
    project.execute("CREATE TABLE parts AS SELECT * FROM (VALUES (1, 'bolt'), (2, 'nut')) AS p(part, name)")
    return project


def package(project: Project, tasks: str) -> Path:
    project.package(HEAD + tasks)
    return project.folder / "package.yaml"


def test_a_plan(orders: Project, bindings: list[int]) -> None:
    path = package(orders, EARLY)
    planned = plan_package(load_package(path))
    assert len(planned.flows) == DESTINATIONS
    assert bindings == [0, 1]


@pytest.mark.parametrize(("tasks", "expected"), [(EARLY, [0, 1]), (LATE, [0, 0, 1])], ids=["early", "late"])
def test_a_run(orders: Project, bindings: list[int], tasks: str, expected: list[int]) -> None:
    path = package(orders, tasks)
    summary = execute(load_package(path), runs_dir=orders.runs, cancel=threading.Event())
    assert summary.failure is None
    assert bindings == expected
    for number in range(DESTINATIONS):
        assert orders.query(f"FROM out{number} ORDER BY id") == [(1, "BOLT"), (2, "NUT"), (3, "NONE")]


def test_another_table_is_another_answer(orders: Project, bindings: list[int]) -> None:
    path = package(orders, EARLY)
    first = load_package(path)
    plan_package(first)
    orders.execute("CREATE OR REPLACE TABLE parts AS SELECT * FROM (VALUES (1, 1.5)) AS p(part, name)")
    with pytest.raises(HeadraceError):
        plan_package(first)
    assert bindings == [0, 1, 1]
