"""Random graphs of splits, lookups, queries and unions in front of a union or a join of sources, beside it and behind
it, and of sources apart, alone and beside one of these: the rows are those of plain SQL over the same files.
"""

from __future__ import annotations

import os
import random

import pytest

from tests.integration.driver import Ended, Project
from tests.integration.several_scenes import ROWS, expected, loaded, order, package, write_files
from tests.integration.test_random_reunions import Graph, Piece

SEEDS = int(os.environ.get("SEEDS", "4"))
COLUMNS = ("id", "customer", "amount", "note")
SOURCE = '        orders: {connection: inbox, files: "orders.*", layout: orders}\n'
JOINS = ("inner", "left", "right", "full")


def front(choice: random.Random, source: str, sql: str, ends: dict[str, Piece]) -> tuple[Graph, Piece]:
    """What stands in front of a source, and one piece that meets others; all else goes into `ends`."""
    whole = Piece(source, sql, COLUMNS)
    graph = Graph(choice, [whole], [])
    for number in range(choice.randint(0, 4)):
        graph.step(f"{source}_{number}")
    if len(graph.pieces) > 1:
        graph.unite(f"{source}_all", choice.randint(2, len(graph.pieces)))
    first = graph.take()
    beside = [*graph.pieces, *choice.sample([whole], choice.randint(0, 1))]
    ends |= {f"{source}_out{number}": own for number, own in enumerate(beside)}
    return graph, first


def apart(choice: random.Random, source: str, sql: str, ends: dict[str, Piece]) -> list[str]:
    """The transforms of a source whose rows meet no others."""
    graph, ends[f"{source}_out"] = front(choice, source, sql, ends)
    return graph.lines


def text_of(lines: list[str], ends: dict[str, str]) -> str:
    """A package with the files of orders as those of two sources, or of three."""
    text = package("".join(f"        {line}\n" for line in lines), ends)
    others, more = (
        SOURCE.replace("orders:", f"{own}:", 1).replace("orders.*", f"{own}.*") for own in ("others", "more")
    )
    return text.replace(SOURCE, (more if "more_out" in ends else "") + SOURCE + others).replace(
        "memory: 1GB", "memory: 6GB"
    )


def write(project: Project) -> None:
    """The second source has some of the rows of the first one, cut at the same keys, the third one others."""
    write_files(project)
    for part, numbers in enumerate((range(ROWS // 3), range(ROWS // 3, ROWS))):
        project.file(f"others.{part}", "".join(order(number) for number in numbers if number % 5))
        project.file(f"more.{part}", "".join(order(number) for number in numbers if number % 7 == 0))


def check_sums(ended: Ended) -> None:
    """Of a source alone its rows count, and of the run those of all, once."""
    read = {"orders": ROWS, "others": ROWS - ROWS // 5}
    if any(table["table"] == "more_out" for table in ended.summary["tables"]):
        read["more"] = len(range(0, ROWS, 7))
    for table in ended.summary["tables"]:
        source, _, is_beside = table["table"].partition("_out")
        assert not is_beside or table["rows_read"] == read[source], table["table"]
    assert ended.summary["rows_read"] == sum(read.values())
    assert ended.summary["rows_loaded"] == sum(table["rows_loaded"] for table in ended.summary["tables"])


# The same by DuckDB: the rows of the second source, and of the third one.
OTHERS = "SELECT * FROM orders WHERE id % 5 > 0"
MORE = "SELECT * FROM orders WHERE id % 7 = 0"


@pytest.mark.parametrize("seed", range(SEEDS))
def test_a_random_union_gives_the_rows_of_plain_sql(project: Project, seed: int) -> None:
    write(project)
    choice = random.Random(seed)
    ends: dict[str, Piece] = {}
    one, first = front(choice, "orders", "SELECT * FROM orders", ends)
    two, second = front(choice, "others", OTHERS, ends)
    lines = [*one.lines, *two.lines]
    if first.rows == "orders" and second.rows == "others":
        lines.append('named: {input: others, sql: "FROM others"}')
        second = Piece("named", OTHERS, COLUMNS)
    whole = Graph(choice, [first, second], lines)
    whole.unite("whole", 2)
    for number in range(choice.randint(1, 4)):
        whole.step(f"t{number}")
    ends |= {f"out{number}": own for number, own in enumerate(whole.pieces)}
    whole.lines += apart(choice, "more", MORE, ends) if seed % 2 else []
    project.package(text_of(whole.lines, {name: own.rows for name, own in ends.items()}))
    for streams in ("1", "16"):
        ended = project.run("--streams", streams)
        ended.succeeded()
        for name, own in ends.items():
            assert loaded(project, name) == expected(project, own.sql), (name, whole.lines)
        for table in ended.summary["tables"]:
            assert table["rows_read"] == table["rows_loaded"] + table["rows_filtered"]
        check_sums(ended)


@pytest.mark.parametrize("seed", range(SEEDS))
def test_a_random_join_gives_the_rows_of_plain_sql(project: Project, seed: int) -> None:
    write(project)
    choice = random.Random(seed)
    ends: dict[str, Piece] = {}
    one, first = front(choice, "orders", "SELECT * FROM orders", ends)
    two, second = front(choice, "others", OTHERS, ends)
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
    ends |= {f"out{number}": own for number, own in enumerate(whole.pieces)}
    whole.lines += apart(choice, "more", MORE, ends) if seed % 2 else []
    project.package(text_of(whole.lines, {name: own.rows for name, own in ends.items()}))
    accounts = []
    for streams in ("1", "16"):
        ended = project.run("--streams", streams)
        ended.succeeded()
        for name, own in ends.items():
            assert loaded(project, name) == expected(project, own.sql), (name, whole.lines)
        accounts.append([table.get("join") for table in ended.summary["tables"]])
        check_sums(ended)
    assert accounts[0] == accounts[1]


@pytest.mark.parametrize("seed", range(SEEDS))
def test_random_graphs_of_sources_apart_give_the_rows_of_plain_sql(project: Project, seed: int) -> None:
    write(project)
    choice = random.Random(seed)
    ends: dict[str, Piece] = {}
    lines: list[str] = []
    for source, sql in (("orders", "SELECT * FROM orders"), ("others", OTHERS)):
        lines += apart(choice, source, sql, ends)
    project.package(text_of(lines or ["{}"], {name: own.rows for name, own in ends.items()}))
    for streams in ("1", "16"):
        ended = project.run("--streams", streams)
        ended.succeeded()
        for name, own in ends.items():
            assert loaded(project, name) == expected(project, own.sql), (name, lines)
        for table in ended.summary["tables"]:
            assert table["rows_read"] == table["rows_loaded"] + table["rows_filtered"]
        check_sums(ended)
