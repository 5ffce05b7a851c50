"""Random graphs of splits, lookups, queries and unions in front of a union or a join of sources, and behind it: the
rows are those of plain SQL over the same files.
"""

from __future__ import annotations

import os
import random

import pytest

from tests.integration.driver import Project
from tests.integration.several_scenes import ROWS, expected, loaded, order, package, write_files
from tests.integration.test_random_reunions import Graph, Piece

SEEDS = int(os.environ.get("SEEDS", "4"))
COLUMNS = ("id", "customer", "amount", "note")
SOURCE = '        orders: {connection: inbox, files: "orders.*", layout: orders}\n'
JOINS = ("inner", "left", "right", "full")


def front(choice: random.Random, source: str, sql: str) -> tuple[Graph, Piece]:
    """What stands in front of a source: one piece is left in the end."""
    graph = Graph(choice, [Piece(source, sql, COLUMNS)], [])
    for number in range(choice.randint(0, 4)):
        graph.step(f"{source}_{number}")
    if len(graph.pieces) > 1:
        graph.unite(f"{source}_all", len(graph.pieces))
    return graph, graph.pieces[0]


def text_of(lines: list[str], ends: dict[str, str]) -> str:
    """A package with the files of orders as those of two sources."""
    text = package("".join(f"        {line}\n" for line in lines), ends)
    others = SOURCE.replace("orders:", "others:", 1).replace("orders.*", "others.*")
    return text.replace(SOURCE, SOURCE + others).replace("memory: 1GB", "memory: 6GB")


def write(project: Project) -> None:
    """The second source has some of the rows of the first one, cut at the same keys."""
    write_files(project)
    for part, numbers in enumerate((range(ROWS // 3), range(ROWS // 3, ROWS))):
        project.file(f"others.{part}", "".join(order(number) for number in numbers if number % 5))


# The same by DuckDB: the rows of the second source.
OTHERS = "SELECT * FROM orders WHERE id % 5 > 0"


@pytest.mark.parametrize("seed", range(SEEDS))
def test_a_random_union_gives_the_rows_of_plain_sql(project: Project, seed: int) -> None:
    write(project)
    choice = random.Random(seed)
    one, first = front(choice, "orders", "SELECT * FROM orders")
    two, second = front(choice, "others", OTHERS)
    lines = [*one.lines, *two.lines]
    if first.rows == "orders" and second.rows == "others":
        lines.append('named: {input: others, sql: "FROM others"}')
        second = Piece("named", OTHERS, COLUMNS)
    whole = Graph(choice, [first, second], lines)
    whole.unite("whole", 2)
    for number in range(choice.randint(1, 4)):
        whole.step(f"t{number}")
    ends = {f"out{number}": own for number, own in enumerate(whole.pieces)}
    project.package(text_of(whole.lines, {name: own.rows for name, own in ends.items()}))
    for streams in ("1", "16"):
        ended = project.run("--streams", streams)
        ended.succeeded()
        for name, own in ends.items():
            assert loaded(project, name) == expected(project, own.sql), (name, whole.lines)
        for table in ended.summary["tables"]:
            assert table["rows_read"] == table["rows_loaded"] + table["rows_filtered"]


@pytest.mark.parametrize("seed", range(SEEDS))
def test_a_random_join_gives_the_rows_of_plain_sql(project: Project, seed: int) -> None:
    write(project)
    choice = random.Random(seed)
    one, first = front(choice, "orders", "SELECT * FROM orders")
    two, second = front(choice, "others", OTHERS)
    kind = choice.choice(JOINS)
    names = [f"r{number}" for number in range(len(second.columns))]
    right = ", ".join(f"{new}: {old}" for new, old in zip(names, second.columns, strict=True))
    taken = f"left: {first.rows}, right: {second.rows}, on: {{id: id}}, type: {kind}, right_columns: {{{right}}}"
    lines = [*one.lines, *two.lines, f"joined: {{join: {{{taken}}}}}"]
    columns = ", ".join(f"r.{old} AS {new}" for new, old in zip(names, second.columns, strict=True))
    sql = f"SELECT l.*, {columns} FROM ({first.sql}) AS l {kind} JOIN ({second.sql}) AS r ON l.id = r.id"
    whole = Graph(choice, [Piece("joined", sql, (*first.columns, *names))], lines)
    for number in range(choice.randint(0, 3)):
        whole.step(f"t{number}")
    ends = {f"out{number}": own for number, own in enumerate(whole.pieces)}
    project.package(text_of(whole.lines, {name: own.rows for name, own in ends.items()}))
    accounts = []
    for streams in ("1", "16"):
        ended = project.run("--streams", streams)
        ended.succeeded()
        for name, own in ends.items():
            assert loaded(project, name) == expected(project, own.sql), (name, whole.lines)
        accounts.append([table["join"] for table in ended.summary["tables"]])
    assert accounts[0] == accounts[1]
