"""Destinations of one data flow on several connections, into null and DuckDB: exactly once each, never together."""

from __future__ import annotations

import pytest

from tests.integration.connections_scenes import elsewhere, two_places
from tests.integration.driver import Project
from tests.integration.several_scenes import KEYED, ROWS, accounts, expected, package, write_files


@pytest.fixture
def orders(project: Project) -> Project:
    write_files(project)
    return project


def rows_of(orders: Project, database: str, table: str) -> list[tuple[object, ...]]:
    return sorted(orders.query(f"FROM {table}", orders.folder / database), key=repr)


@pytest.mark.parametrize("streams", ["1", "16"])
def test_null_beside_a_table(orders: Project, streams: str) -> None:
    text = package(KEYED, {"found": "keyed", "missed": "keyed.no_match"})
    orders.package(elsewhere(text, {"nowhere": "{type: 'null'}"}, {"found": "nowhere"}))
    ended = orders.run("--streams", streams)
    ended.succeeded()
    missed = expected(orders, "FROM orders ANTI JOIN customers ON code = customer")
    assert rows_of(orders, "warehouse.duckdb", "missed") == missed
    assert accounts(ended) == {
        "missed": (ROWS, len(missed), ROWS - len(missed), 0),
        "found": (ROWS, ROWS - len(missed), len(missed), 0),
    }
    assert ended.summary["rows_read"] == ROWS
    assert list(accounts(ended)) == ["missed", "found"], "what stores nothing comes last"


@pytest.mark.parametrize("streams", ["1", "16"])
def test_tables_of_two_files_get_their_rows_in_one_pass(orders: Project, streams: str) -> None:
    orders.package(two_places())
    for _ in range(2):
        ended = orders.run("--streams", streams)
        ended.succeeded()
        rows = expected(orders, "FROM orders")
        assert rows_of(orders, "warehouse.duckdb", "one") == rows_of(orders, "archive.duckdb", "two") == rows
        assert accounts(ended) == {"one": (ROWS, ROWS, 0, 0), "two": (ROWS, ROWS, 0, 0)}
        size = sum(path.stat().st_size for path in orders.inbox.glob("orders.*"))
        assert (ended.summary["rows_read"], ended.summary["bytes_read"]) == (ROWS, size)
    assert orders.ledger() == orders.ledger(orders.folder / "archive.duckdb") == ["success", "success"]
