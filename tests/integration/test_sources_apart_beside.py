"""Sources beside a join or union whose rows meet no others: each table has the rows that belong into it, and all become
visible at once; rejects, kills, constraints, `verify`, and sources without files.
"""

from __future__ import annotations

import pytest

from tests.integration.apart_scenes import CUSTOMERS, ORDERS
from tests.integration.beside_scenes import LATER, LINES, Kind, balanced, loaded, wanted, write_files
from tests.integration.driver import Project

KINDS = pytest.mark.parametrize("kind", ["join", "union"])


@pytest.fixture(params=["duckdb", "postgres"])
def sales(request: pytest.FixtureRequest) -> Project:
    project: Project = request.getfixturevalue("project" if request.param == "duckdb" else "warehouse")
    return project


@KINDS
@pytest.mark.parametrize("bare", [True, False], ids=["bare", "fronts"])
def test_each_table_gets_its_rows(sales: Project, kind: Kind, bare: bool) -> None:
    write_files(sales, kind, bare=bare)
    rows, accounts = wanted(sales, kind, bare=bare), []
    assert all(len(own) > 50 for own in rows.values())
    for streams in (1, 16):
        ended = sales.run(streams=streams)
        tables = balanced(ended, kind)
        assert loaded(sales, rows) == rows, streams
        counts = ("lines", "rows_skipped", "rows_read", "rows_filtered", "rows_loaded", "values_ignored", "ignored")
        accounts.append({name: [table[own] for own in counts] for name, table in tables.items()})
        others = LINES + 500 if kind == "join" else LATER
        assert ended.summary["rows_read"] == ORDERS + others + CUSTOMERS - CUSTOMERS % 3
    assert accounts[0] == accounts[1]
    assert sales.leftovers() == []
