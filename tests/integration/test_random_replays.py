"""Random graphs with lookups that reject what they do not find: once these have all keys, a replay of the unchanged
rows makes the tables what a run makes them that has all keys from the beginning.
"""

from __future__ import annotations

import os
import random

import pytest

from tests.integration.driver import Project
from tests.integration.replays import command
from tests.integration.several_scenes import accounts, loaded, package, write_files
from tests.integration.test_random_reunions import LOOKUP, Graph, Piece

SEEDS = int(os.environ.get("SEEDS", "2"))
STEPS = 7
ROWS = 400


REJECTING = LOOKUP.replace("customers.csv", "partners.csv")


class Rejecting(Graph):
    """Half of its lookups reject rows."""

    def look_up(self, name: str) -> None:
        if self.choice.random() < 0.5:
            super().look_up(name)
        else:
            self.reject(name)

    def reject(self, name: str) -> None:
        piece, label = self.take(), f"label_{name}"
        self.lines.append(f"{name}: {{input: {piece.rows}, {REJECTING.replace('LABEL', label)}}}}}")
        self.pieces.append(Piece(name, "", (*piece.columns, label)))


def write_partners(project: Project, codes: range) -> None:
    (project.inbox / "partners.csv").write_text("".join(f"{code},partner {code}\n" for code in codes))


@pytest.mark.parametrize("seed", range(SEEDS))
def test_a_replay_makes_up_for_a_lookup_without_keys(project: Project, seed: int) -> None:
    write_files(project, ROWS)
    write_partners(project, range(1, 100, 2))
    graph = Rejecting(random.Random(seed), [Piece("orders", "", ("id", "customer", "amount", "note"))], [])
    graph.split("t0")
    graph.reject("t1")
    for number in range(2, STEPS):
        graph.step(f"t{number}")
    graph.reject("last")
    ends = {f"out{number}": own.rows for number, own in enumerate(graph.pieces)}
    ends |= {"archive": "orders", "twice": graph.choice.choice(list(ends.values()))}
    text = package("".join(f"        {line}\n" for line in graph.lines), ends)
    project.package(text.replace("memory: 1GB", "memory: 4GB").replace('"${limit}"', "100000"))
    run = str(project.run("--streams", "4").succeeded()["run_id"])
    assert project.command(command("rejects", run, "--copy", "repair.tbl")).exit_code == 0
    write_partners(project, range(100))
    replay = project.command(command("replay", run, "repair.tbl"))
    # Rows without a key stay rejects.
    again = {own["table"]: own["rejected_again"] for own in replay.succeeded()["replay"]["tables"]}
    replayed = {name: loaded(project, name) for name in ends}
    whole = project.run("--streams", "4")
    whole.succeeded()
    assert replayed == {name: loaded(project, name) for name in ends}, graph.lines
    rejected = {name: own[3] for name, own in accounts(whole).items() if own[3]}
    assert {name: count for name, count in again.items() if count} == rejected
