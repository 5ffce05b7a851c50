"""`headrace plan --graph`: to stdout, into files, as JSON; and what is wrong with the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import CommandLine
from tests.snapshots import assert_snapshot

PACKAGE = """\
headrace: 1
package: orders
connections:
  inbox:     {type: files, path: nowhere}
  warehouse: {type: postgres, url: "postgresql://nobody@nowhere.invalid/nothing"}
layouts:
  orders: {delimiter: "|", columns: [{name: id, type: int64}]}
tasks:
  load:
    data_flow:
      sources: {rows: {connection: inbox, files: "orders_*.csv", layout: orders}}
      destinations: {loaded: {input: rows, connection: warehouse, table: orders, target: replace, load: single}}
  tell:
    after: {load: failure}
    sql: {connection: warehouse, text: SELECT 1}
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with a package whose files and server do not exist."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "orders.yaml").write_text(PACKAGE)
    return tmp_path


def test_mermaid_on_stdout(folder: Path, headrace: CommandLine) -> None:
    assert_snapshot("plan_graph_mermaid", headrace("plan", "orders.yaml", "--graph", "mermaid").text())


def test_tasks_that_are_left_out(folder: Path, headrace: CommandLine) -> None:
    outcome = headrace("plan", "orders.yaml", "--graph", "mermaid", "--skip", "tell")
    assert "tell<br/>LEFT OUT" in outcome.stdout


def test_svg_into_a_file(folder: Path, headrace: CommandLine) -> None:
    outcome = headrace("plan", "orders.yaml", "--graph", "svg", "--output", "orders.svg")
    assert_snapshot("plan_graph_output", outcome.text())
    assert sorted(path.name for path in folder.iterdir()) == ["orders.svg", "orders.yaml"]
    written = (folder / "orders.svg").read_text(encoding="utf-8")
    assert written == headrace("plan", "orders.yaml", "--graph", "svg").stdout
    assert written.startswith("<svg ")


def test_json(folder: Path, headrace: CommandLine) -> None:
    document = json.loads(headrace("plan", "orders.yaml", "--graph", "svg", "--json").stdout)
    assert (document["package"], document["format"], document["output"]) == ("orders", "svg", None)
    assert document["text"].startswith("<svg ")
    assert [box["id"] for box in document["graph"]["boxes"]] == ["load", "tell"]
    assert document["graph"]["lines"] == [{"begin": "load", "end": "tell", "kind": "failure", "label": ""}]
    document = json.loads(headrace("plan", "orders.yaml", "--graph", "mermaid", "--output", "o.mmd", "--json").stdout)
    assert document["output"] == "o.mmd"
    assert "text" not in document
    assert Path("o.mmd").exists()


def test_a_package_is_not_overwritten(folder: Path, headrace: CommandLine) -> None:
    """Nor one inside of it, under whatever name."""
    inside = PACKAGE.replace("package: orders", "package: inside")
    (folder / "inside.yaml").write_text(inside)
    (folder / "outside.yaml").write_text(
        "headrace: 1\npackage: outside\ntasks:\n  one: {package: {file: inside.yaml}}\n"
    )
    (folder / "link.svg").symlink_to("inside.yaml")
    outcome = headrace("plan", "outside.yaml", "--graph", "svg", "--output", "outside.yaml")
    assert_snapshot("plan_graph_error_overwrites", outcome.text())
    assert headrace("plan", "outside.yaml", "--graph", "svg", "--output", "link.svg").exit_code == 6
    assert (folder / "inside.yaml").read_text() == inside
    assert (folder / "outside.yaml").read_text().startswith("headrace: 1")


@pytest.mark.parametrize(("count", "is_told"), [(500, True), (30, False)])
def test_more_than_mermaid_draws(count: int, is_told: bool, folder: Path, headrace: CommandLine) -> None:
    tasks = "".join(
        f"  task_{number}: {{after: [{', '.join(f'task_{other}' for other in range(max(0, number - 2), number))}], "
        "set: {n: 1}}\n"
        if number
        else "  task_0: {set: {n: 1}}\n"
        for number in range(count)
    )
    variables = "variables:\n  n: {type: integer, value: 0}\n"
    (folder / "many.yaml").write_text(f"headrace: 1\npackage: many\n{variables}tasks:\n{tasks}")
    outcome = headrace("plan", "many.yaml", "--graph", "mermaid")
    assert outcome.exit_code == 0, outcome.text()
    assert ("--graph svg has no such limit" in outcome.stderr) == is_told


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("format", ["orders.yaml", "--graph", "mermiad"]),
        ("output_alone", ["orders.yaml", "--output", "orders.svg"]),
        ("no_folder", ["orders.yaml", "--graph", "svg", "--output", "missing/orders.svg"]),
        ("no_task", ["orders.yaml", "--graph", "svg", "--skip", "lod"]),
    ],
)
def test_errors(name: str, arguments: list[str], folder: Path, headrace: CommandLine) -> None:
    assert_snapshot(f"plan_graph_error_{name}", headrace("plan", *arguments).text())
