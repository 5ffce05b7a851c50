"""Two connections of a package that are one database: it is opened once, so they may not say different things."""

from __future__ import annotations

import json
import sys

import pytest

from tests.integration.driver import PACKAGE
from tests.integration.postgres import PostgresProject

TASK = PACKAGE.partition("tasks:\n")[2]


def write(project: PostgresProject, other: str) -> None:
    """Two tasks; the second one loads its table through connection `other`."""
    connection = f"  other: {{type: postgres, {other}}}\nlayouts:"
    second = TASK.replace("load_orders", "load_others").replace("connection: warehouse", "connection: other")
    second = second.replace("${table}", "others")
    project.package(PACKAGE.replace("layouts:", connection, 1) + second)
    project.file("orders.tbl.1")


DIFFERENT = {"options": 'options: "-c search_path=mart"', "ledger": "ledger: off"}


@pytest.mark.parametrize("name", DIFFERENT)
def test_one_database_in_two_ways(warehouse: PostgresProject, name: str) -> None:
    """The second table would be made in the schema of the first connection, or with its ledger."""
    warehouse.execute("CREATE SCHEMA mart")
    write(warehouse, f'url: "{warehouse.url}", {DIFFERENT[name]}')
    ended = warehouse.run(target="create")
    assert ended.exit_code == 1
    assert f"they differ in {name}" in ended.error
    assert warehouse.tables() == []
    checked = warehouse.command([sys.executable, "-m", "headrace", "check", "package.yaml", "--connect", "--json"])
    assert "they differ in" in checked.stdout + checked.stderr


def test_one_database_by_two_names(warehouse: PostgresProject) -> None:
    write(warehouse, f'url: "{warehouse.url}"')
    assert warehouse.run(target="create").succeeded()["rows_loaded"] == 200
    assert warehouse.tables() == ["public.orders", "public.others"]


def test_one_database_by_two_hosts(warehouse: PostgresProject) -> None:
    """A run has one session in one database; which servers are the same only they know."""
    write(warehouse, f'url: "{warehouse.target.socket_url}"')
    ended = warehouse.run(target="create")
    assert ended.exit_code == 1
    error = json.loads(ended.stdout)["error"]
    assert "control" in error["found"] and "same host" in error["hint"]
    assert warehouse.tables() == []
