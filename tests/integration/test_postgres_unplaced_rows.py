"""Rows that no partition takes, where the server looks for the partitions: rejects as with every other way, or, where
nobody can know them before, an error with the row and what to do.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.integration.postgres import PostgresProject, any_case_operators
from tests.integration.test_postgres_comparison import PLAN
from tests.integration.test_postgres_declared import by_partition, keys_file, run, write
from tests.snapshots import assert_snapshot

LISTS = "partition: {list: {column: id, values: {eu: [FR, DE], rest: [CN]}}}"
DIVIDED = """
CREATE TABLE keys (id char(2), note text) PARTITION BY LIST (id);
CREATE TABLE keys_eu PARTITION OF keys FOR VALUES IN ('FR', 'DE');
CREATE TABLE keys_rest PARTITION OF keys FOR VALUES IN ('CN')
"""
KEYS = {"a": ["FR", "DE", "XX"], "b": ["FR", "FR", "XX", "DE", "\\N", "CN", "fr"]}


def files(project: PostgresProject) -> None:
    for name, keys in KEYS.items():
        keys_file(project, name, keys)


def rejects(project: PostgresProject) -> tuple[list[dict[str, Any]], bytes]:
    """Those of the last run: what is said of each, but for the type of its column, and the original bytes."""
    folder = max((project.folder / "runs").iterdir(), key=lambda path: path.name) / "rejects"
    found = [json.loads(line) for line in (folder / "keys.jsonl").read_text(encoding="utf-8").splitlines()]
    return [{name: value for name, value in reject.items() if name != "type"} for reject in found], (
        folder / "keys.bad"
    ).read_bytes()


def with_limit(project: PostgresProject, limit: int) -> None:
    path = project.folder / "package.yaml"
    path.write_text(path.read_text(encoding="utf-8").replace("limit: 100", f"limit: {limit}"), encoding="utf-8")


def check_ledger(project: PostgresProject, loaded: int, rejected: int) -> None:
    last = "(SELECT run_id FROM headrace.run ORDER BY started_at DESC LIMIT 1)"
    found = project.query(f'SELECT sum(rows_loaded), sum(rows_rejected) FROM headrace."commit" WHERE run_id = {last}')
    assert found == [(str(loaded), str(rejected))]


# By what the server is needed: the type of the key in the layout, and what is there before.
SERVER_WAYS = {"char": ("char(2)", ""), "char_exists": ("char(2)", DIVIDED)}


@pytest.mark.parametrize("name", SERVER_WAYS)
def test_they_are_the_rejects_of_every_other_way(warehouse: PostgresProject, name: str) -> None:
    type, before = SERVER_WAYS[name]
    files(warehouse)
    write(warehouse, LISTS, type="string")  # way `shared`
    expected = run(warehouse).summary
    said = rejects(warehouse)
    warehouse.execute("DROP TABLE keys")
    if before:
        warehouse.execute(before)
    write(warehouse, LISTS, "append" if before else "create", type=type)
    found = run(warehouse, verified=not before).summary
    assert rejects(warehouse) == said
    assert [reject["row"] for reject in said[0]] == [3, 3, 5, 7]
    for member in ("rows_read", "rows_loaded", "rows_rejected"):
        assert found[member] == expected[member]
    assert (found["rows_loaded"], found["rows_rejected"]) == (6, 4)
    check_ledger(warehouse, 6, 4)
    assert by_partition(warehouse) == {"keys_eu": ["DE", "DE", "FR", "FR", "FR"], "keys_rest": ["CN"]}


@pytest.mark.parametrize("limit", [0, 2])
def test_too_many_fail_the_load_as_with_every_other_way(warehouse: PostgresProject, limit: int) -> None:
    keys_file(warehouse, "b", KEYS["b"])
    errors = []
    for type in ("string", "char(2)"):
        write(warehouse, LISTS, "create", type=type)
        with_limit(warehouse, limit)
        ended = warehouse.run()
        assert (ended.exit_code, warehouse.tables(), warehouse.leftovers()) == (1, [], [])
        errors.append(warehouse.stable(ended.error).replace(type, "TYPE"))
        assert rejects(warehouse)[0][0]["value"] == "XX"
    assert errors[0] == errors[1]
    assert ("limit is 2" in errors[0]) == bool(limit)


def test_more_partitions_than_have_writers(warehouse: PostgresProject) -> None:
    """The core knows the ranges; the server places the rows."""
    write(warehouse, "partition: {range: {column: id, every: 1, from: 0, to: 250}}")
    keys_file(warehouse, "a", [*range(250), -1, 250, "\\N", 10**12])
    summary = run(warehouse).summary
    assert (summary["rows_loaded"], summary["rows_rejected"]) == (250, 4)
    assert [reject["value"] for reject in rejects(warehouse)[0]] == ["-1", "250", "\\N", str(10**12)]
    assert warehouse.query("SELECT count(*) FROM keys k WHERE tableoid::regclass::text <> 'keys_' || (k.id + 1)") == [
        ("0",)
    ]


def test_partitions_that_are_loaded_anew(warehouse: PostgresProject) -> None:
    warehouse.execute(DIVIDED + "; INSERT INTO keys VALUES ('FR', 'old'), ('CN', 'old')")
    write(warehouse, LISTS + ", partitions: [keys_eu]", type="char(2)")
    files(warehouse)
    summary = run(warehouse, verified=False).summary
    assert (summary["rows_loaded"], summary["rows_rejected"]) == (5, 5)
    assert by_partition(warehouse)["keys_rest"] == ["CN"]


def test_the_server_refuses_the_right_row_behind_rejects(warehouse: PostgresProject) -> None:
    """It counts the rows that it was sent."""
    warehouse.execute(DIVIDED + "; ALTER TABLE keys ADD CONSTRAINT no_bad CHECK (note <> 'b 6')")
    write(warehouse, LISTS, "append", type="char(2)")
    keys_file(warehouse, "b", ["FR", "XX", "XX", "DE", "XX", "CN", "FR", "DE"])
    ended = warehouse.run()
    assert (ended.exit_code, ended.summary["error"]["at"]["row"]) == (1, 7), ended.error


# --- lists by a comparison of the table's own -------------------------------------------------------------------------

OWN_KEYS = ["FR", "fr", "XX", "xx", "\\N", "De", "cN", "Cn ", ""]
OWN_LISTS = """
CREATE TABLE keys (id text, note text) PARTITION BY LIST (id any_case_ops);
CREATE TABLE keys_eu PARTITION OF keys FOR VALUES IN ('FR', 'de')
"""


def test_keys_that_the_server_takes_for_others(warehouse: PostgresProject) -> None:
    """`xx` and `XX` are one key to the table and two to the files; `Cn ` is no `CN`; what is empty is NULL."""
    any_case_operators(warehouse.target)
    warehouse.execute(OWN_LISTS)
    lists = LISTS.replace("DE", "de")
    for target, expected in (("append", 4), ("replace", 4)):
        write(warehouse, lists, target, type="string")
        keys_file(warehouse, "a", OWN_KEYS)
        summary = run(warehouse, verified=target == "replace").summary
        assert (summary["rows_loaded"], summary["rows_rejected"]) == (expected, 5)
        assert [reject["value"] for reject in rejects(warehouse)[0]] == ["XX", "xx", "\\N", "Cn ", ""]
        check_ledger(warehouse, 4, 5)
    assert by_partition(warehouse) == {"keys_eu": ["De", "FR", "fr"], "keys_rest": ["cN"]}
    assert "the source has 7 different keys; 3 belong into no partition: their rows are rejects" in " ".join(
        warehouse.command(PLAN).stdout.split()
    )


def test_a_key_is_too_long_for_the_column(warehouse: PostgresProject) -> None:
    """It is a reject for that, whatever would become of what is left of it."""
    any_case_operators(warehouse.target)
    warehouse.execute(OWN_LISTS.replace("id text", "id varchar(2)"))
    write(warehouse, "partition: {list: {column: id, values: {eu: [FR, de]}}}", "append", type="string")
    keys_file(warehouse, "a", ["FR", "FRX", "XXX", "XX"])
    run(warehouse, verified=False)
    assert [(reject["value"], reject["rule"]) for reject in rejects(warehouse)[0]] == [
        ("FRX", "too_long"),
        ("XXX", "too_long"),
        ("XX", "partition"),
    ]


def test_lists_with_null(warehouse: PostgresProject) -> None:
    any_case_operators(warehouse.target)
    warehouse.execute(OWN_LISTS.replace("'de'", "'de', NULL"))
    write(warehouse, LISTS.replace("DE", "de, null"), "append", type="string")
    keys_file(warehouse, "a", ["\\N", "it's", "fr", "a,b", '"', "\\", "{}", "ä€😀", "NULL", " "])
    summary = run(warehouse, verified=False).summary
    assert (summary["rows_loaded"], summary["rows_rejected"]) == (2, 8)


def test_too_many_different_keys(warehouse: PostgresProject) -> None:
    """Nobody asks about each: the first row outside fails the load, as the plan says; without one it is loaded."""
    any_case_operators(warehouse.target)
    warehouse.execute(OWN_LISTS)
    write(warehouse, LISTS.replace("DE", "de"), "append", type="string")
    keys_file(warehouse, "a", [f"x{number}" for number in range(100_001)])
    ended = warehouse.run()
    assert ended.exit_code == 1
    assert_snapshot("postgres_unplaced_too_many_keys", warehouse.stable(ended.error))
    assert "a row that no partition takes fails the load" in " ".join(warehouse.command(PLAN).stdout.split())
    assert warehouse.query("SELECT count(*) FROM keys") == [("0",)]


# --- the server alone knows -------------------------------------------------------------------------------------------

# Name of the case: `target`, the key.
SINGLE = {"single": ("append", "XX"), "single_replace": ("replace", "XX"), "single_null": ("append", "\\N")}


@pytest.mark.parametrize("name", SINGLE)
def test_the_row_and_what_to_do(warehouse: PostgresProject, name: str) -> None:
    target, key = SINGLE[name]
    warehouse.execute(DIVIDED)
    before = warehouse.content()
    write(warehouse, "load: single", target, type="char(2)")
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
