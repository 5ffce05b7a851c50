"""Several sources in one data flow whose rows never come together: each table has the rows of its own, all become visible
at once; rejects, kills, constraints, `verify`.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import pytest

from tests.integration.apart_scenes import CUSTOMERS, ORDERS, PACKAGE, archived, balanced, loaded, wanted, write_files
from tests.integration.connections_scenes import stopped
from tests.integration.driver import Project
from tests.integration.postgres import PostgresProject
from tests.integration.test_several_joined import killed_before_the_switch

# Refused by the parser; by the query in front of `open` alone; by the parser of the other source.
BAD_ORDERS = "90001,S1,x,2024-01-01\n90002,S1,99999.00,2024-01-01\n"
BAD_CUSTOMER = "y|nobody|1\n"


@pytest.fixture(params=["duckdb", "postgres"])
def sales(request: pytest.FixtureRequest) -> Project:
    project: Project = request.getfixturevalue("project" if request.param == "duckdb" else "warehouse")
    write_files(project)
    return project


def rejects_of(project: Project) -> list[dict[str, Any]]:
    (told,) = project.folder.glob("runs/*/rejects/*.jsonl")
    return [json.loads(line) for line in told.read_text().splitlines()]


def test_each_table_gets_the_rows_of_its_source(sales: Project) -> None:
    rows, accounts = wanted(sales), []
    assert all(len(own) > 50 for own in rows.values())
    for streams in (1, 16):
        ended = sales.run(streams=streams)
        tables = balanced(ended)
        assert loaded(sales) == rows, streams
        counts = ("lines", "rows_skipped", "rows_read", "rows_filtered", "rows_loaded", "values_ignored", "ignored")
        accounts.append({name: [table[own] for own in counts] for name, table in tables.items()})
        assert ended.summary["rows_read"] == ORDERS + CUSTOMERS - CUSTOMERS % 3
        assert tables["small"]["ignored"] == {"customers.sales": {"nulls": 50, "cut": 0}}
        assert not tables["orders"]["values_ignored"]
    assert accounts[0] == accounts[1]
    assert sales.leftovers() == []
