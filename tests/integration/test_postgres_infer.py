"""`headrace infer --against` and `init --to` with a real server: what differs, and a package that loads into it."""

from __future__ import annotations

import sys

from tests.integration.driver import Ended
from tests.integration.postgres import PostgresProject
from tests.snapshots import assert_snapshot

ORDERS = """id;code;amount;day;note;at;new
40000;A1;1249,50;31/12/2025;long enough;2026-01-01 12:00;x
7;B2;3,25;13/01/2026;;2026-01-02 08:30;y
"""


def headrace(warehouse: PostgresProject, *arguments: str) -> Ended:
    """A command, run to its end."""
    return warehouse.command([sys.executable, "-m", "headrace", *arguments])


def test_differences_to_a_table_of_a_server(warehouse: PostgresProject) -> None:
    warehouse.target.psql(
        "CREATE SCHEMA mart; CREATE TABLE mart.orders (id smallint PRIMARY KEY, code character(2) NOT NULL, "
        "amount numeric(12,2), day date, note varchar(4) NOT NULL, at timestamp, odd int[], needed int NOT NULL, "
        "number bigint GENERATED ALWAYS AS IDENTITY); GRANT USAGE, CREATE ON SCHEMA mart TO loader; "
        "GRANT SELECT, INSERT, TRUNCATE ON mart.orders TO loader"
    )
    warehouse.file("orders.csv", ORDERS)
    arguments = ["infer", "inbox/orders.csv", "--quiet", "--to", warehouse.url, "--against"]
    ended = headrace(warehouse, *arguments, "mart.orders")
    assert ended.exit_code == 0, ended.stderr
    assert_snapshot("infer_against_postgres", ended.stdout[ended.stdout.index("# against") :])
    missing = headrace(warehouse, *arguments, "mart.nothing")
    assert missing.exit_code == 1
    assert missing.error.startswith("error: there is no table mart.nothing to compare with")


def test_a_package_for_a_server_runs_as_it_is(warehouse: PostgresProject) -> None:
    warehouse.file("orders.csv", ORDERS)
    made = headrace(warehouse, "init", "inbox/orders.csv", "--folder", "made", "--to", warehouse.url)
    assert made.exit_code == 0, made.stderr
    loaded = headrace(warehouse, "run", "made/package.yaml")
    assert loaded.exit_code == 0, loaded.stderr
    assert warehouse.target.rows("SELECT id, amount::text, day::text, note FROM orders ORDER BY id") == [
        ("7", "3.25", "2026-01-13", None),
        ("40000", "1249.50", "2025-12-31", "long enough"),
    ]
