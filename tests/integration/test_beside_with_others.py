"""Raw rows and the results of queries from one pass, where they meet what other data flows have: replays, comparisons,
transactions.
"""

from __future__ import annotations

import signal
import sys

import pytest

from tests.integration.driver import Project
from tests.integration.postgres import PostgresProject
from tests.integration.query_scenes import package, write_files
from tests.integration.slow_commit import kill_at_the_switch
from tests.integration.test_gathered_beside import SUMS, accounts, found, mixed, orders, raw_and_sums, wanted
from tests.integration.test_gathered_destinations import to_tables, with_rejects

__all__ = ["orders"]

HEADRACE = [sys.executable, "-m", "headrace"]
# A process that kills itself when all rows of the transaction have come, or all is committed and nobody was told.
KILLED = """
import os, signal, sys
from headrace.targets.duckdb.group import DuckdbGroup
from headrace.targets.postgres.group import PostgresGroup

moment = sys.argv.pop(1)
for group in (DuckdbGroup, PostgresGroup):
    def kill(self, *arguments, known=getattr(group, moment)):
        if moment == "commit":
            known(self, *arguments)
        os.kill(os.getpid(), signal.SIGKILL)
    setattr(group, moment, kill)

from headrace.cli import main
main()
"""


def in_transaction(text: str) -> str:
    """The package with its only task in a transaction, and a statement behind it."""
    head, _, task = text.partition("tasks:\n")
    inside = "".join(f"      {line}\n" for line in task.splitlines())
    statement = "CREATE TABLE behind AS SELECT count(*) AS n FROM raw"
    return (
        f"{head}tasks:\n  all:\n    sequence:\n      transaction: warehouse\n      tasks:\n{inside}"
        f"        behind:\n          after: {{load: success}}\n"
        f"          sql: {{connection: warehouse, text: {statement}}}\n"
    )


def test_rejects_are_not_replayed(orders: Project) -> None:
    """A repaired row would belong into the results, too, which are made of all rows."""
    orders.package(raw_and_sums(limit=5))
    with_rejects(orders)
    assert orders.run().succeeded()["rows_rejected"] == 2
    replayed = orders.command([*HEADRACE, "replay", "--runs-dir", "runs", "last"])
    assert replayed.exit_code == 1
    assert "needs all rows: one more changes what was loaded" in " ".join(replayed.stderr.split())
    assert "replay" not in orders.command([*HEADRACE, "rejects", "--runs-dir", "runs", "last"]).stdout


def test_raw_rows_are_compared_and_results_are_not(orders: Project) -> None:
    orders.package(raw_and_sums(limit=5))
    with_rejects(orders)
    orders.run().succeeded()
    verify = [*HEADRACE, "verify", "--runs-dir", "runs", "last"]
    verified = orders.command(verify)
    said = verified.stdout + verified.stderr
    assert verified.exit_code == 0, said
    assert "equal" in said and "its rows have passed a query" in said
    orders.execute("DELETE FROM raw WHERE id = 5")
    assert orders.command(verify).exit_code == 1


@pytest.mark.parametrize("moment", [None, "switch", "commit"])
def test_as_a_part_of_a_transaction(orders: Project, moment: str | None) -> None:
    orders.package(in_transaction(mixed(limit=5)))
    rows = wanted(orders)
    with_rejects(orders)
    if moment is None:
        ended = orders.run("--streams", "4")
    else:
        killed = orders.command([sys.executable, "-c", KILLED, moment, *orders.arguments("--streams", "4")[3:]])
        assert killed.exit_code == -signal.SIGKILL, killed.stderr
        assert bool(orders.tables()) is (moment == "commit")
        ended = orders.resume()
    ended.succeeded()
    assert found(orders) == rows
    assert int(orders.query("SELECT n FROM behind")[0][0]) == len(rows["raw"])
    assert {name: own["rows_loaded"] for name, own in accounts(ended, 2).items()} == {
        name: len(own) for name, own in rows.items()
    }
    assert orders.leftovers() == []


@pytest.mark.parametrize("before", ["dim", "other"])
def test_a_lookup_behind_a_query_is_not_to_miss_what_a_member_before_changes(orders: Project, before: str) -> None:
    """It reads tables as they are before the transaction, on either way of staging."""
    orders.execute("CREATE TABLE dim (key INTEGER, sk INTEGER)", "INSERT INTO dim VALUES (2, 20)")
    lookup = "lookup: {connection: warehouse, table: dim, on: {quantity: key}, add: [sk], no_match: {default: {sk: 9}}}"
    transforms = (f'q1: {{input: orders, sql: "{SUMS}"}}', f"keyed: {{input: q1, {lookup}}}")
    text = in_transaction(to_tables(package(transforms=transforms), {"sums": "keyed", "raw": "orders"}))
    source = "sources: {parts: {connection: inbox, files: parts.csv, layout: parts}}"
    load = f"destinations: {{own: {{input: parts, connection: warehouse, table: {before}, target: replace}}}}"
    member = f"        first:\n          data_flow:\n            {source}\n            {load}\n"
    orders.package(text.replace("      tasks:\n", f"      tasks:\n{member}"))
    ended = orders.run("--streams", "2")
    if before == "dim":
        assert "would not see what task all.first of its transaction changes" in ended.error
        assert orders.query("SELECT count(*) FROM dim WHERE sk = 20") in ([(1,)], [("1",)])
    else:
        ended.succeeded()
        assert {str(sk) for (sk,) in orders.query("SELECT DISTINCT sk FROM sums")} == {"9", "20"}


def test_a_transaction_whose_statement_fails_leaves_nothing(orders: Project) -> None:
    orders.execute("CREATE TABLE behind (n BIGINT)")
    orders.package(in_transaction(mixed()))
    ended = orders.run("--streams", "4")
    assert ended.exit_code == 1
    assert "behind" in ended.error
    assert [table.rpartition(".")[2] for table in orders.tables()] == ["behind"]
    assert orders.leftovers() == []


@pytest.mark.faults
def test_a_run_that_is_killed_in_the_switch_of_a_transaction(warehouse: PostgresProject) -> None:
    """All is committed out of sight: it begins anew."""
    write_files(warehouse)
    warehouse.package(in_transaction(mixed()))
    warehouse.run("--streams", "4").succeeded()
    warehouse.execute("DROP TABLE behind")
    kill_at_the_switch(warehouse, "raw")
    ended = warehouse.resume()
    ended.succeeded()
    accounts(ended)
    assert found(warehouse) == wanted(warehouse)
    assert warehouse.leftovers() == []
