"""Transforms in front of unions and joins, into DuckDB: the rows of plain SQL over the same files, whatever the streams;
accounts, rejects, several destinations, memory, messages.
"""

from __future__ import annotations

import sys
from typing import Any

import pytest

from tests.integration.driver import Ended, Project
from tests.integration.front_scenes import (
    join_package,
    joined,
    rows,
    transforms,
    union_package,
    write_join_files,
    write_union_files,
)
from tests.integration.join_scenes import TYPES
from tests.integration.union_scenes import ROWS, sources


@pytest.fixture
def orders(project: Project) -> Project:
    write_union_files(project)
    project.package(union_package())
    return project


@pytest.fixture
def sales(project: Project) -> Project:
    write_join_files(project)
    project.package(join_package("inner"))
    return project


def stored(project: Project, table: str = "orders") -> list[tuple[Any, ...]]:
    return project.query(f"SELECT * FROM {table} ORDER BY ALL")


def headrace(project: Project, *arguments: str) -> Ended:
    return project.command([sys.executable, "-m", "headrace", *arguments])


@pytest.mark.parametrize("streams", ["1", "16"])
def test_a_union_has_the_rows_behind_what_stands_in_front(orders: Project, streams: str) -> None:
    ended = orders.run(streams=streams)
    told = sources(ended)
    assert stored(orders) == rows(orders)
    assert {name: own[2] for name, own in told.items()} == ROWS
    (table,) = ended.summary["tables"]
    assert table["rows_read"] == table["rows_loaded"] + table["rows_filtered"]
    assert ended.summary["rows_filtered"] == table["rows_filtered"] > 0
    found = transforms(ended)
    assert list(found) == ["priced", "keyed", "parted"]
    left_out = rows(orders, "SELECT count(*) FROM old WHERE id % 3 = 0")[0][0]
    assert (found["priced"], found["keyed"][0]) == ((ROWS["old"], left_out, 0), ROWS["new"])
    assert orders.leftovers() == []


@pytest.mark.parametrize("kind", TYPES)
def test_a_join_has_the_rows_behind_what_stands_in_front(sales: Project, kind: str) -> None:
    sales.package(join_package(kind))
    wanted, accounts = joined(sales, kind), []
    for streams in (1, 16):
        ended = sales.run(streams=streams)
        ended.succeeded()
        assert stored(sales, "sales") == wanted, streams
        accounts.append(ended.summary["tables"][0]["join"])
    assert accounts[0] == accounts[1]
    account, found = accounts[0], transforms(ended)
    assert account["rows_out"] == len(wanted)
    for side, first in (("left", "open"), ("right", "keyed")):
        own = account[side]
        assert own["lines"] - own["rows_skipped"] == own["rows"] + own["filtered_in_front"] == found[first][0]
        assert own["filtered_in_front"] > 0
        assert own["filtered"] == (0 if kind in (side, "full") else own["unmatched"])
    sides = account["left"], account["right"]
    left_out = sum(own["filtered"] + own["filtered_in_front"] for own in sides)
    assert ended.summary["rows_filtered"] == left_out
