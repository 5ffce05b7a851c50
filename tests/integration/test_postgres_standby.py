"""A real server in hot standby: refused before the first row, and loaded once it is promoted."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.postgres import PostgresProject
from tests.integration.table_lookup_scenes import LARGE_PARTS, LINES, PACKAGE, keyed, lines
from tests.servers.cluster import Cluster
from tests.servers.farm import Farm
from tests.snapshots import assert_snapshot


@pytest.fixture
def standby(servers: Farm, tmp_path: Path) -> Iterator[PostgresProject]:
    """A project that loads into a server which was stopped and goes on as a standby, with whatever the log brings."""
    cluster = servers.cluster(settings={"wal_level": "replica"})
    project = PostgresProject(tmp_path, cluster.create_database("replica"))
    project.sales()
    project.file("orders.tbl.1")
    project.run().succeeded()
    project.execute(*LARGE_PARTS)
    cluster.stop()
    (cluster.data / "standby.signal").touch()
    cluster.start()
    yield project
    servers.remove(cluster)


def promote(cluster: Cluster) -> None:
    assert cluster.rows("SELECT pg_promote()") == [("t",)]


def test_a_standby_is_refused_until_it_is_promoted(standby: PostgresProject) -> None:
    assert standby.query("SELECT pg_is_in_recovery()") == [("t",)]
    ended = standby.run()
    assert (ended.exit_code, ended.summary["error"]["retryable"]) == (1, False), ended.stderr
    assert_snapshot("postgres_standby", standby.stable(ended.error))
    assert ended.summary["rows_read"] == 0
    check = [sys.executable, "-m", "headrace", "check", "package.yaml", "--connect", "--json"]
    checked = standby.command(check, {**standby.environment})
    [destination] = json.loads(checked.stdout)["destinations"]
    assert checked.exit_code == 1 and destination["facts"]["role"] == "standby"
    assert destination["problems"] == ["the server is a standby: it only reads; name the primary"]
    promote(standby.target.cluster)
    assert standby.run().succeeded()["rows_loaded"] == 100
    assert standby.ledger() == ["success", "success"]


def test_lookups_may_read_a_standby(standby: PostgresProject) -> None:
    """By several sessions under one snapshot; nothing is written there."""
    standby.package(PACKAGE.replace("input: keyed, connection: warehouse", "input: keyed, connection: other"))
    lines(standby)
    own = keyed(standby.run())
    assert (own["matched"], own["lookup"]["rows"]) == (LINES, 50_000)
