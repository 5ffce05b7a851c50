"""Random trees of joins, with transforms in front of them, between them, beside them and behind them: the rows are
those of plain SQL over the same files.
"""

from __future__ import annotations

import os
import random
from collections.abc import Sequence
from dataclasses import dataclass

import pytest

from tests.integration.driver import Project
from tests.integration.join_tree_scenes import KINDS, SOURCES, expected, package, stored, write_files

SEEDS = int(os.environ.get("SEEDS", "6"))


@dataclass
class Rows:
    """Rows on their way to a join: what a package calls them, what DuckDB does, and the column that they are sorted by.
    `are_once`: each key comes once. `numbers`: columns to compute with.
    """

    written: str
    sql: str
    key: str
    are_once: bool
    numbers: tuple[str, ...]


class Tree:
    """Grows one. `ends`: tables beside it, and what belongs into them."""

    def __init__(self, choice: random.Random) -> None:
        self.choice = choice
        self.lines: list[str] = []
        self.ends: dict[str, Rows] = {}

    def leaf(self, source: str) -> Rows:
        letter = SOURCES[source]
        rows = Rows(source, f"FROM {source}", f"{letter}_key", source != "lines", (f"{letter}_value",))
        if self.choice.random() < 0.3:
            self.ends[f"{source}_out"] = rows
        return self.step(rows, source, beside=True)

    def step(self, rows: Rows, name: str, *, beside: bool) -> Rows:
        """Perhaps a transform behind rows. `beside`: what does not go on may go into a table."""
        kind, number = self.choice.choice(["none", "query", "split", "lookup"]), self.choice.choice(rows.numbers)
        if kind == "none":
            return rows
        own, table = f"{name}_next", rows.written.partition(".")[0]
        if kind == "query":
            column = f"{own}_more"
            sql = f"SELECT *, {number} + 1 AS {column} FROM {table} WHERE {number} > 9"
            self.lines.append(f'{own}: {{input: {rows.written}, sql: "{sql}"}}')
            return Rows(
                own, sql.replace(f"FROM {table}", f"FROM ({rows.sql})"), rows.key, rows.are_once, (number, column)
            )
        goes = beside and self.choice.random() < 0.5
        if kind == "split":
            rest = "" if goes else ", discard: [rest]"
            self.lines.append(f'{own}: {{input: {rows.written}, split: {{few: "{number} < 80"}}{rest}}}')
            kept, left = f"{number} < 80", f"({number} < 80) IS NOT TRUE"
            taken = Rows(
                f"{own}.few", f"SELECT * FROM ({rows.sql}) WHERE {kept}", rows.key, rows.are_once, rows.numbers
            )
            other = Rows(f"{own}.rest", f"SELECT * FROM ({rows.sql}) WHERE {left}", "", False, ())
        else:
            rest, label = "" if goes else ", discard: [no_match]", f"{own}_label"
            self.lines.append(
                f"{own}: {{input: {rows.written}, lookup: {{connection: inbox, files: labels.csv, layout: labels, on: "
                f"{{{number}: code}}, add: {{{label}: label}}, no_match: output}}{rest}}}"
            )
            sql = f"SELECT r.*, label AS {label} FROM ({rows.sql}) AS r JOIN labels ON {number} = code"
            taken = Rows(own, sql, rows.key, rows.are_once, rows.numbers)
            left = f"{number} IS NULL OR {number} NOT IN (SELECT code FROM labels)"
            other = Rows(f"{own}.no_match", f"SELECT * FROM ({rows.sql}) WHERE {left}", "", False, ())
        if goes:
            self.ends[f"{name}_rest"] = other
        return taken

    def join(self, sources: Sequence[str], name: str) -> Rows:
        """Of all sources; those whose keys come more than once stand on a right side."""
        if len(sources) == 1:
            return self.leaf(sources[0])
        cut = self.choice.randint(1, len(sources) - 1)
        parts = [self.join(sources[:cut], f"{name}l"), self.join(sources[cut:], f"{name}r")]
        self.choice.shuffle(parts)
        left, right = sorted(parts, key=lambda own: not own.are_once)
        kind = self.choice.choice(KINDS)
        self.lines.append(
            f"{name}: {{join: {{left: {left.written}, right: {right.written}, on: {{{left.key}: {right.key}}}, "
            f"type: {kind}}}}}"
        )
        sql = f"SELECT * FROM ({left.sql}) {kind} JOIN ({right.sql}) ON {left.key} = {right.key}"
        # By either key its rows are in order: where there is none, they meet none.
        key = self.choice.choice([left.key, right.key])
        rows = Rows(name, sql, key, left.are_once and right.are_once, (*left.numbers, *right.numbers))
        return self.step(rows, name, beside=name == "j")


@pytest.mark.parametrize("seed", range(SEEDS))
def test_a_random_tree_gives_the_rows_of_plain_sql(project: Project, seed: int) -> None:
    write_files(project, keys=300)
    choice = random.Random(seed)
    sources = choice.sample(sorted(SOURCES), choice.randint(3, 4))
    tree = Tree(choice)
    ends = {"facts": tree.join(sources, "j")} | tree.ends
    apart = set(SOURCES) - set(sources)
    if seed % 2:
        ends |= {f"{own}_apart": Rows(own, f"FROM {own}", "", False, ()) for own in apart}
        sources += sorted(apart)
    written = {name: own.written for name, own in ends.items()}
    project.package(package(tree.lines, written, sources=sources))
    accounts = []
    for streams in (1, 16):
        ended = project.run(streams=streams, memory="6GB")
        summary = ended.succeeded()
        for name, own in ends.items():
            assert stored(project, name) == expected(project, own.sql), (name, tree.lines)
        assert summary["rows_read"] == sum(len(expected(project, f"FROM {own}")) for own in sources)
        accounts.append([table.get("join") for table in summary["tables"]])
    assert accounts[0] == accounts[1]
