"""What transforms have done is told the same by a run that was killed and resumed as by an undisturbed one."""

from __future__ import annotations

import json
import sys
from typing import Any

import pytest

from tests.integration.connections_scenes import elsewhere, stopped
from tests.integration.driver import Ended, Project
from tests.integration.gate import BEHIND
from tests.integration.postgres import PostgresProject
from tests.integration.reunion_scenes import LABELLED, PIECES
from tests.integration.several_scenes import KEYED, package, write_files
from tests.integration.slow_commit import kill_at_the_switch, kill_between_commits, uncommit
from tests.integration.test_postgres_several_destinations import KILLED

pytestmark = pytest.mark.faults

# Not told again: what an attempt itself has done.
_OF_ATTEMPT = ("busy_seconds", "lookup")
_COUNTS = (
    "lines", "rows_skipped", "rows_read", "rows_rejected", "rows_filtered", "rows_loaded", "values_ignored", "shared",
    "union", "gathered",
)  # fmt: skip
_SUMS = ("rows_read", "rows_skipped", "rows_rejected", "rows_filtered", "rows_loaded")
# Two lookups, a query that leaves rows out and one that refuses some, a split, and rows that come together again.
_LABELLED_AND_PARTED = (
    LABELLED
    + """
        strict:
          input: labelled
          sql: "SELECT * REPLACE (CASE WHEN id % 501 = 0 THEN error('odd') ELSE label END AS label) FROM labelled"
        parted: {input: strict, discard: [DISCARDED], split: {small: "amount < 100", big: "amount > 500"}}
"""
)
LABELLED_AND_PARTED = _LABELLED_AND_PARTED.replace("DISCARDED", "rest")
SMALL = _LABELLED_AND_PARTED.replace("DISCARDED", "big, rest")
BIG = _LABELLED_AND_PARTED.replace("DISCARDED", "small, rest")
IN_PARTS = {"small": "parted.small", "big": "parted.big", "missed": "keyed.no_match", "every": "orders"}

SOME_COMMITTED = "(SELECT count(*) > 2 FROM headrace.commit WHERE run_id = NEW.run_id AND slice > 0)"


def told(ended: Ended) -> dict[str, Any]:
    """The accounts of all tables, and the sums of the run."""
    summary = ended.succeeded()
    tables = {
        table["table"]: {
            **{name: table.get(name) for name in _COUNTS},
            "transforms": [
                {name: value for name, value in own.items() if name not in _OF_ATTEMPT} for own in table["transforms"]
            ],
        }
        for table in summary["tables"]
    }
    assert all(own["slices_not_counted"] == 0 for table in tables.values() for own in table["transforms"])
    return {"sums": {name: summary[name] for name in _SUMS}, "tables": tables}


def lose_accounts(project: Project) -> None:
    """As of a version that did not keep them."""
    paths = list(project.runs.glob("*/rejects/*.accounts"))
    assert paths
    for path in paths:
        path.write_text("no line of ours\n")


@pytest.fixture
def orders(warehouse: PostgresProject) -> PostgresProject:
    """In eight files, so that there are as many slices."""
    write_files(warehouse)
    lines = [line for path in sorted(warehouse.inbox.glob("orders.*")) for line in path.read_text().splitlines(True)]
    for number in range(8):
        warehouse.file(f"orders.{number + 1}", "".join(lines[number::8]))
    return warehouse


def undisturbed(orders: Project, text: str) -> dict[str, Any]:
    orders.package(text.replace("default: 0", "default: 1000"))
    return told(orders.run("--streams", "2"))


@pytest.mark.parametrize("is_lost", [False, True])
@pytest.mark.parametrize(
    "clauses",
    [", commit: {rows: 50}", ", commit: {rows: 700}, load: staged, partition: {hash: {column: id, parts: 3}}"],
)
def test_between_two_commits(orders: PostgresProject, clauses: str, is_lost: bool) -> None:
    whole = undisturbed(orders, package(SMALL, {"small": "parted.small"}, clauses))
    committed = kill_between_commits(orders, SOME_COMMITTED, "--streams", "2")
    assert committed > 0
    if is_lost:
        lose_accounts(orders)
    resumed = orders.resume()
    assert told(resumed) == whole
    assert orders.leftovers() == []


@pytest.mark.parametrize("is_lost", [False, True])
def test_before_the_switch(orders: PostgresProject, is_lost: bool) -> None:
    """Of slices without rejects nothing is read again, unless their accounts are lost."""
    whole = undisturbed(orders, package(LABELLED, {"sales": "labelled"}))
    kill_at_the_switch(orders, "sales")
    if is_lost:
        lose_accounts(orders)
    resumed = orders.resume()
    assert told(resumed) == whole
    size = sum(path.stat().st_size for path in orders.inbox.glob("orders.*"))
    assert resumed.summary["bytes_read"] == (size if is_lost else 0)


def test_a_partition_that_is_not_committed(orders: PostgresProject) -> None:
    clauses = ", load: staged, partition: {range: {column: id, bounds: [2000, 4000]}}"
    whole = undisturbed(orders, package(BIG, {"big": "parted.big"}, clauses))
    kill_at_the_switch(orders, "big")
    ((partition,), *_) = orders.query('SELECT DISTINCT "partition" FROM headrace.commit WHERE slice > 0 ORDER BY 1')
    uncommit(orders, "load", str(partition))
    assert told(orders.resume()) == whole


@pytest.mark.parametrize("behind", [None, "small", "missed"])
def test_several_destinations(orders: PostgresProject, behind: str | None) -> None:
    """Some of which have committed their rows out of sight; what all of them leave out is told once."""
    whole = undisturbed(orders, package(LABELLED_AND_PARTED, IN_PARTS))
    assert whole["tables"]["small"]["shared"]["rows_filtered"] > 0
    killed = orders.command([sys.executable, "-c", KILLED, *orders.arguments("--streams", "2")[3:]])
    assert killed.exit_code not in (0, 1), killed.stderr
    if behind is not None:
        uncommit(orders, f"load/{behind}", "")
    assert told(orders.resume()) == whole


@pytest.mark.parametrize("kind", ["postgres", "duckdb"])
@pytest.mark.parametrize("elsewhere_too", ["pieces", "found"])
def test_between_the_commits_of_two_places(orders: PostgresProject, kind: str, elsewhere_too: str) -> None:
    """The way that is left has fewer transforms."""
    with orders.target.cluster.database() as other:
        url = f"{{type: postgres, url: '{other.url}', lock_timeout_seconds: 1}}"
        archive = url if kind == "postgres" else "{type: duckdb, path: archive.duckdb, lock_timeout_seconds: 1}"
        keyed = KEYED.replace("lookup:", "discard: [no_match]\n          lookup:")
        text = package(PIECES + keyed, {"pieces": "pieces", "found": "keyed"})
        whole = undisturbed(orders, elsewhere(text, {"archive": archive}, {elsewhere_too: "archive"}))
        killed = orders.command([sys.executable, "-c", stopped("before", 1), *orders.arguments("--streams", "2")[3:]])
        assert killed.exit_code not in (0, 1), killed.stderr
        assert told(orders.resume()) == whole


SUMMED = """
        sums: {input: labelled, sql: "SELECT label, count(*) AS n FROM labelled GROUP BY label"}
        many: {input: sums, sql: "SELECT * FROM sums WHERE n > 100"}
"""


@pytest.mark.parametrize("kind", ["duckdb", "postgres"])
@pytest.mark.parametrize("case", ["one", "several", "gathered"])
def test_tables_that_were_complete(request: pytest.FixtureRequest, kind: str, case: str) -> None:
    project: Project = request.getfixturevalue("project" if kind == "duckdb" else "warehouse")
    write_files(project)
    project.execute("CREATE TABLE gate (open BOOLEAN)")
    text = {
        "one": package(SMALL, {"small": "parted.small"}),
        "several": package(LABELLED_AND_PARTED, IN_PARTS),
        "gathered": package(LABELLED + SUMMED, {"many": "many"}),
    }[case]
    gate = (
        BEHIND
        if kind == "duckdb"
        else BEHIND.replace("error('the gate is closed')", "(1 / (SELECT count(*) FROM gate))::text")
    )
    project.package(text.replace("default: 0", "default: 1000") + gate)
    failed = project.run()
    assert failed.exit_code == 1
    project.execute("INSERT INTO gate VALUES (true)")
    resumed = project.resume()
    whole = json.loads(failed.stdout)
    assert resumed.summary["bytes_read"] == 0
    again = told(resumed)
    assert again == told(Ended(0, json.dumps(whole), "", 0.0, 0))
    assert all(own["transforms"] or name == "every" for name, own in again["tables"].items())
