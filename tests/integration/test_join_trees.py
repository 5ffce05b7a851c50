"""More than one join in a data flow: the rows that DuckDB's own joins give, whatever the streams."""

from __future__ import annotations

import pytest

from tests.integration.driver import Project
from tests.integration.join_tree_scenes import (
    DETAILED,
    SENT,
    SENT_SQL,
    expected,
    joined,
    package,
    stored,
    write_files,
)


@pytest.fixture
def sales(project: Project) -> Project:
    write_files(project)
    project.package(package([DETAILED, SENT]))
    return project


def test_the_rows_are_those_of_two_joins_in_sql(sales: Project) -> None:
    wanted, accounts = expected(sales, SENT_SQL), []
    for streams in (1, 16):
        ended = sales.run(streams=streams)
        accounts.append(joined(ended))
        assert stored(sales) == wanted, streams
    assert accounts[0] == accounts[1]
    assert (accounts[0]["name"], accounts[0]["rows_out"]) == ("sent", len(wanted))
