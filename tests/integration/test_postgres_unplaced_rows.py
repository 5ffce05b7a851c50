"""Rows that no partition takes, where the server looks for the partitions: which row it is, and what to do."""

from __future__ import annotations

import pytest

from tests.integration.postgres import PostgresProject
from tests.integration.test_postgres_declared import keys_file, run, write
from tests.snapshots import assert_snapshot

LISTS = "partition: {list: {column: id, values: {eu: [FR, DE], rest: [CN]}}}"
DIVIDED = """
CREATE TABLE keys (id char(2), note text) PARTITION BY LIST (id);
CREATE TABLE keys_eu PARTITION OF keys FOR VALUES IN ('FR', 'DE');
CREATE TABLE keys_rest PARTITION OF keys FOR VALUES IN ('CN')
"""
# Name of the case: the declaration, `target`, the key.
CASES = {
    "new": (LISTS, "create", "XX"),
    "null": (LISTS, "append", "\\N"),
    "reload": (LISTS + ", partitions: [keys_eu]", "replace", "CN"),
    "single": ("load: single", "append", "XX"),
    "single_replace": ("load: single", "replace", "XX"),
}


@pytest.mark.parametrize("name", CASES)
def test_the_row_and_what_to_do(warehouse: PostgresProject, name: str) -> None:
    clause, target, key = CASES[name]
    if name != "new":
        warehouse.execute(DIVIDED)
    before = warehouse.content()
    write(warehouse, clause, target, type="char(2)")
    keys_file(warehouse, "a", ["FR", "DE"])
    keys_file(warehouse, "b", ["FR", "FR", key, "DE"])
    ended = warehouse.run()
    assert (ended.exit_code, warehouse.content(), warehouse.leftovers()) == (1, before, [])
    assert_snapshot(f"postgres_unplaced_{name}", warehouse.stable(ended.error))


def test_the_hint_helps(warehouse: PostgresProject) -> None:
    write(warehouse, LISTS.replace("}}}", "}}, outside: default}"), type="char(2)")
    keys_file(warehouse, "a", ["FR", "XX", "\\N"])
    run(warehouse)
    assert warehouse.query("SELECT count(*) FROM keys_default") == [("2",)]
