"""Rows of a join that go to tables of several connections: killed between the commits, and resumed."""

from __future__ import annotations

import re
import sys

import pytest

from tests.integration.connections_scenes import stopped
from tests.integration.driver import Project
from tests.integration.postgres import PostgresProject
from tests.integration.tables import as_text
from tests.integration.test_several_joined import (
    WANTED,
    all_wanted,
    balanced,
    forget,
    killed_before_the_switch,
    package,
    write,
)

ARCHIVE = "  archive: {type: duckdb, path: archive.duckdb}\n"


def placed(sales: PostgresProject, archived: set[str]) -> None:
    """The package with these tables in a DuckDB file, and the others in PostgreSQL."""
    text = package().replace("connections:\n", f"connections:\n{ARCHIVE}", 1)
    for name in archived:
        text = text.replace(f"connection: warehouse, table: {name},", f"connection: archive, table: {name},")
    sales.package(text)


def loaded(sales: PostgresProject, archived: set[str]) -> dict[str, list[tuple[str | None, ...]]]:
    archive = sales.folder / "archive.duckdb"
    return {
        name: as_text(
            Project.query(sales, f"FROM {name}", archive) if name in archived else sales.query(f"SELECT * FROM {name}")
        )
        for name in WANTED
    }


@pytest.mark.parametrize(("archived", "is_behind"), [({"facts", "lonely"}, True), ({"every"}, False)])
def test_what_is_left_is_joined_once_more(warehouse: PostgresProject, archived: set[str], is_behind: bool) -> None:
    """`is_behind`: a table of the place that is left has lost its pairs, too."""
    write(warehouse)
    placed(warehouse, archived)
    rows = all_wanted(warehouse)
    killed_before_the_switch(warehouse, "--streams", "2")
    resumed = warehouse.resume_command()[3:]
    killed = warehouse.command([sys.executable, "-c", stopped("before", 1), *resumed])
    assert killed.exit_code not in (0, 1), killed.stderr
    if is_behind:
        forget(warehouse, "unknown")
    ended = warehouse.resume()
    ended.succeeded()
    assert loaded(warehouse, archived) == rows
    tables = balanced(ended.summary)
    assert {name: table["rows_loaded"] for name, table in tables.items()} == {
        name: len(own) for name, own in rows.items()
    }
    assert len({str(table["join"]["rows_out"]) for table in tables.values()}) == 1
    assert warehouse.leftovers() == []


def test_the_time_of_what_was_left_is_told(warehouse: PostgresProject) -> None:
    """The first table of the flow, with which other things are told, was complete before."""
    write(warehouse)
    placed(warehouse, {"facts"})
    killed = warehouse.command([sys.executable, "-c", stopped("before", 1), *warehouse.arguments()[3:]])
    assert killed.exit_code not in (0, 1), killed.stderr
    resumed = [part for part in warehouse.resume_command() if part != "--json"]
    shown = warehouse.command([*resumed, "--quiet"]).stdout
    seconds = {name: float(own) for name, own in re.findall(r"^(\w+) .* (\d+\.\d\d) +\S+$", shown, re.MULTILINE)}
    assert seconds["total"] == max(seconds["lonely"], seconds["every"]) > seconds["facts"] == 0
    assert " load 0.00 s" not in shown
