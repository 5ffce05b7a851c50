"""Parts of a package: which tasks are left out."""

from __future__ import annotations

from pathlib import Path

import pytest

from headrace.errors import CommandLineError
from headrace.model import BoundPackage, load_package
from headrace.run.control.selection import ALL_TASKS, Choice, select
from headrace.run.early import early_flows

PACKAGE = """\
headrace: 1
package: parts
variables: {a: {type: integer}, b: {type: integer}, c: {type: integer}, d: {type: integer}, e: {type: integer}}
connections:
  files: {type: files, path: .}
  w: {type: duckdb, path: w.duckdb}
  other: {type: postgres, host: db}
layouts:
  l: {delimiter: "|", columns: [{name: id, type: int32}]}
tasks:
  first: {set: {a: 1}}
  box:
    after: first
    sequence:
      tasks:
        one: {set: {b: 1}}
        two: {after: one, set: {c: 1}}
  last: {after: box, set: {d: 1}}
  beside: {set: {e: 1}}
"""


def package(folder: Path, text: str = PACKAGE) -> BoundPackage:
    path = folder / "package.yaml"
    path.write_text(text, encoding="utf-8")
    return load_package(path)


@pytest.mark.parametrize(
    ("choice", "left_out"),
    [
        (ALL_TASKS, set()),
        (Choice(only=("box.two",)), {"first", "box.one", "last", "beside"}),
        (Choice(only=("box", "beside")), {"first", "last"}),
        (Choice(start="box.one"), {"first", "beside"}),
        (Choice(start="box.two"), {"first", "box.one", "beside"}),
        (Choice(start="last"), {"first", "box", "box.one", "box.two", "beside"}),
        (Choice(skip=("box",)), {"box", "box.one", "box.two"}),
        (Choice(start="box", skip=("last",)), {"first", "last", "beside"}),
    ],
)
def test_what_is_left_out(tmp_path: Path, choice: Choice, left_out: set[str]) -> None:
    assert select(package(tmp_path), choice).left_out == left_out


@pytest.mark.parametrize(
    "choice", [Choice(only=("boks",)), Choice(start="one"), Choice(only=("first",), skip=("first",))], ids=str
)
def test_what_cannot_be_chosen(tmp_path: Path, choice: Choice) -> None:
    with pytest.raises(CommandLineError):
        select(package(tmp_path), choice)


SQL = "sql: {connection: w, text: SELECT 1}"
FLOW = """data_flow:
      sources: {s: {connection: files, files: x.csv, layout: l}}
      destinations: {d: {input: s, connection: w, table: "TABLE", target: append}}"""
LOOP = """  a:
    foreach:
      item: x
      in: [p, q]
      tasks:
        f: {data_flow: {sources: {s: {connection: files, files: x.csv, layout: l}},
                        destinations: {d: {input: s, connection: w, table: "${x}", target: append}}}}
"""


def task(name: str, own: str, head: str = "") -> str:
    """One task, its head lines of the form `key: value`."""
    lines = "".join(f"    {line}\n" for line in head.splitlines())
    return f"  {name}:\n{lines}    {own}\n"


def flow(table: str) -> str:
    return FLOW.replace("TABLE", table)


def asking(table: str, connection: str = "connection: w, ") -> str:
    """A flow with a lookup of a query."""
    query = f'{{{connection}query: "SELECT 1 AS k, 2 AS v", on: {{id: k}}, add: [v], no_match: {{default: 0}}}}'
    transforms = f"transforms: {{t: {{input: s, lookup: {query}}}}}\n      destinations: {{d: {{input: t"
    return flow(table).replace("destinations: {d: {input: s", transforms)


HANDLER = f"on: {{error: {{tasks: {{h: {{{SQL}}}}}}}}}"


@pytest.mark.parametrize(
    ("tasks", "early"),
    [
        (task("a", flow("a")) + task("b", flow("b"), "after: a"), {"a", "b"}),
        (task("v", "set: {a: 1}") + task("a", flow("a"), "after: v"), {"a"}),
        (task("q", SQL) + task("a", flow("a"), "after: q"), set()),
        (task("a", flow("a")) + task("q", SQL, "after: a"), {"a"}),
        (task("a", flow("a")) + task("q", SQL), set()),
        (task("a", flow("${a}")) + task("b", flow("b"), "after: a"), set()),
        (LOOP, {"a.f"}),
        (LOOP + "        q: {after: f, sql: {connection: w, text: SELECT 1}}\n", set()),
        (task("q", SQL, "disabled: true") + task("a", flow("a")), {"a"}),
        # What a query reads may be what a flow before loads into its place.
        (task("a", asking("a")) + task("b", flow("b"), "after: a"), {"a", "b"}),
        (task("a", flow("a")) + task("b", asking("b"), "after: a"), {"a"}),
        (task("a", flow("a")) + task("b", asking("b", ""), "after: a"), {"a", "b"}),
        (task("a", flow("a")) + task("b", asking("b", "connection: other, "), "after: a"), {"a", "b"}),
        (task("a", flow("a")) + task("b", asking("b"), "after: a") + task("c", flow("c"), "after: b"), {"a"}),
        (task("a", flow("a"), HANDLER) + task("b", flow("b"), "after: {a: completion}"), {"a"}),
    ],
)
def test_flows_that_are_planned_before_the_run(tmp_path: Path, tasks: str, early: set[str]) -> None:
    read = package(tmp_path, f"{PACKAGE[: PACKAGE.index('tasks:')]}tasks:\n{tasks}")
    found = early_flows(read, select(read, ALL_TASKS))
    assert found.early == early
    assert not found.early & set(found.late)
