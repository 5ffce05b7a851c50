"""Random graphs of which some ways pass queries over all rows and others do not: the rows are those of plain SQL."""

from __future__ import annotations

import os
import random

import pytest

from tests.integration.driver import Project
from tests.integration.several_scenes import ROWS, expected, loaded, package, write_files
from tests.integration.test_random_reunions import Graph, Piece

SEEDS = int(os.environ.get("SEEDS", "2"))
STEPS = 5
QUERIES = (
    "SELECT customer, count(*) AS n, sum(amount)::DECIMAL(18,2) AS total FROM {0} GROUP BY customer",
    "SELECT *, count(*) OVER (PARTITION BY customer) AS n FROM {0}",
    "SELECT DISTINCT note, customer FROM {0}",
)
BEHIND = "SELECT n, count(*) AS groups FROM {0} GROUP BY n"


def gathered(graph: Graph, name: str) -> list[Piece]:
    """A piece that goes to a query over all rows: its result, by one way or several."""
    piece, query = graph.take(), graph.choice.choice(QUERIES)
    graph.lines.append(f'{name}: {{input: {piece.rows}, sql: "{query.format(piece.table)}"}}')
    made = Piece(name, query.format(f"({piece.sql})"), ())
    kind = graph.choice.randrange(4)
    if kind == 0 and "AS n" in query:
        graph.lines.append(f'{name}b: {{input: {name}, sql: "{BEHIND.format(name)}"}}')
        return [Piece(f"{name}b", BEHIND.format(f"({made.sql})"), ())]
    if kind == 1:
        condition = "customer < 12"
        graph.lines.append(f'{name}b: {{input: {name}, split: {{few: "{condition}"}}}}')
        few, rest = (f"SELECT * FROM ({made.sql}) WHERE ({condition}) {own} TRUE" for own in ("IS", "IS NOT"))
        return [Piece(f"{name}b.few", few, ()), Piece(f"{name}b.rest", rest, ())]
    return [made] * graph.choice.randint(1, 2)


@pytest.mark.parametrize("seed", range(SEEDS))
def test_a_random_graph_gives_the_rows_of_plain_sql(project: Project, seed: int) -> None:
    write_files(project)
    columns = ("id", "customer", "amount", "note")
    graph = Graph(random.Random(seed), [Piece("orders", "SELECT * FROM orders", columns)], [])
    for number in range(STEPS):
        graph.step(f"t{number}")
    raw = [*graph.pieces, Piece("orders", "SELECT * FROM orders", columns)]
    results = gathered(graph, "q1")
    if graph.pieces and graph.choice.randrange(2):
        results += gathered(graph, "q2")
    wanted = graph.choice.sample(raw, graph.choice.randint(1, len(raw)))
    wanted += [own for own in graph.pieces if own not in wanted]  # every output is read
    pieces = [*results, *wanted]
    graph.choice.shuffle(pieces)
    ends = {f"out{number}": own for number, own in enumerate(pieces)}
    text = package("".join(f"        {line}\n" for line in graph.lines), {name: own.rows for name, own in ends.items()})
    # What is planned are all copies that there may be at once.
    project.package(text.replace("memory: 1GB", "memory: 6GB"))
    for streams in ("1", "16"):
        summary = project.run("--streams", streams).succeeded()
        assert summary["rows_read"] == ROWS
        found = {own["table"]: own for own in summary["tables"]}
        for name, own in ends.items():
            rows = expected(project, own.sql)
            assert loaded(project, name) == rows, (name, graph.lines)
            table = found[name]
            into = table.get("gathered")
            arrived = len(rows) if into is None else into["rows_in"]
            assert table["rows_read"] == ROWS == arrived + table["rows_filtered"], (name, graph.lines)
            assert table["rows_loaded"] == len(rows)
            assert into is None or into["rows_out"] == len(rows) + into["filtered_behind"], (name, graph.lines)
