"""Random graphs of splits, lookups, queries and unions: the rows are those of plain SQL over the same file."""

from __future__ import annotations

import os
import random
from dataclasses import dataclass

import pytest

from tests.integration.driver import Project
from tests.integration.several_scenes import ROWS, accounts, expected, loaded, package, write_files

SEEDS = int(os.environ.get("SEEDS", "4"))
STEPS = 9
CONDITIONS = ("amount > 400", "id % 3 = 0", "customer < 12", "length(note) > 9", "customer IS NULL")
VALUES = {"amount": "CAST(amount / 2 AS DECIMAL(9,2))", "customer": "customer + 7", "note": "note || '!'"}
LOOKUP = (
    "lookup: {connection: inbox, files: customers.csv, layout: customers, on: {customer: code}, add: {LABEL: label}"
)


@dataclass
class Piece:
    """Rows somewhere on their way: what a package calls them, and what DuckDB does."""

    rows: str
    sql: str
    columns: tuple[str, ...]

    @property
    def table(self) -> str:
        return self.rows.partition(".")[0]


@dataclass
class Graph:
    """Pieces that nobody reads yet: together they have every row at most once."""

    choice: random.Random
    pieces: list[Piece]
    lines: list[str]

    def take(self) -> Piece:
        return self.pieces.pop(self.choice.randrange(len(self.pieces)))

    def step(self, name: str) -> None:
        kinds = [self.split, self.query, self.look_up] + [self.unite] * 2 * (len(self.pieces) > 2)
        self.choice.choice(kinds)(name)

    def split(self, name: str) -> None:
        piece, names = self.take(), ["one", "two"][: self.choice.randint(1, 2)]
        conditions = self.choice.sample(CONDITIONS, len(names))
        written = ", ".join(f'{own}: "{condition}"' for own, condition in zip(names, conditions, strict=True))
        self.lines.append(f"{name}: {{input: {piece.rows}, split: {{{written}}}}}")
        before = "true"
        for own, condition in [*zip(names, conditions, strict=True), ("rest", "true")]:
            sql = f"SELECT * FROM ({piece.sql}) WHERE {before} AND ({condition}) IS TRUE"
            self.pieces.append(Piece(f"{name}.{own}", sql, piece.columns))
            before += f" AND ({condition}) IS NOT TRUE"

    def query(self, name: str) -> None:
        piece = self.take()
        column, value = self.choice.choice(list(VALUES.items()))
        condition = self.choice.choice(("true", "id % 7 <> 2"))
        columns = [*piece.columns]
        self.choice.shuffle(columns)
        values = ", ".join(f"{value} AS {own}" if own == column else own for own in columns)
        query = f"SELECT {values} FROM {piece.table} WHERE {condition}"
        self.lines.append(f'{name}: {{input: {piece.rows}, sql: "{query}"}}')
        self.pieces.append(Piece(name, query.replace(f"FROM {piece.table}", f"FROM ({piece.sql})"), tuple(columns)))

    def look_up(self, name: str) -> None:
        piece, label = self.take(), f"label_{name}"
        self.lines.append(f"{name}: {{input: {piece.rows}, {LOOKUP.replace('LABEL', label)}, no_match: output}}}}")
        found = f"SELECT own.*, label AS {label} FROM ({piece.sql}) AS own JOIN customers ON code = customer"
        missed = f"SELECT own.* FROM ({piece.sql}) AS own ANTI JOIN customers ON code = customer"
        self.pieces.append(Piece(name, found, (*piece.columns, label)))
        self.pieces.append(Piece(f"{name}.no_match", missed, piece.columns))

    def unite(self, name: str, count: int = 0) -> None:
        inputs = [self.take() for _ in range(count or self.choice.randint(2, len(self.pieces)))]
        self.lines.append(f"{name}: {{union: {{inputs: [{', '.join(own.rows for own in inputs)}], missing: null}}}}")
        columns = dict.fromkeys(column for own in inputs for column in own.columns)
        sql = " UNION ALL BY NAME ".join(f"(SELECT * FROM ({own.sql}))" for own in inputs)
        self.pieces.append(Piece(name, f"SELECT {', '.join(columns)} FROM ({sql})", tuple(columns)))


@pytest.mark.parametrize("seed", range(SEEDS))
def test_a_random_graph_gives_the_rows_of_plain_sql(project: Project, seed: int) -> None:
    write_files(project)
    columns = ("id", "customer", "amount", "note")
    graph = Graph(random.Random(seed), [Piece("orders", "SELECT * FROM orders", columns)], [])
    graph.split("t0")
    for number in range(1, STEPS):
        graph.step(f"t{number}")
    if len(graph.pieces) > 1:
        graph.unite("whole", 1 + graph.choice.randrange(1, len(graph.pieces)))
    ends = {f"out{number}": own for number, own in enumerate(graph.pieces)}
    text = package("".join(f"        {line}\n" for line in graph.lines), {name: own.rows for name, own in ends.items()})
    # What is planned are all copies that there may be at once.
    project.package(text.replace("memory: 1GB", "memory: 4GB"))
    for streams in ("1", "16"):
        ended = project.run("--streams", streams)
        ended.succeeded()
        found = accounts(ended)
        for name, own in ends.items():
            rows = expected(project, own.sql)
            assert loaded(project, name) == rows, (name, graph.lines)
            assert found[name] == (ROWS, len(rows), ROWS - len(rows), 0)
