"""`headrace check --connect` on a real server."""

from __future__ import annotations

import json
import sys
from typing import Any

from tests.integration.driver import Ended
from tests.integration.postgres import CREATE_ORDERS, PostgresProject
from tests.servers.cluster import PASSWORD, Cluster, Database
from tests.snapshots import assert_snapshot


def check(project: PostgresProject, *arguments: str) -> Ended:
    return project.command([sys.executable, "-m", "headrace", "check", "package.yaml", "--connect", *arguments])


def found_by(project: PostgresProject) -> dict[str, Any]:
    ended = check(project, "--json")
    document = json.loads(ended.stdout)
    [destination] = document["destinations"]
    assert (ended.exit_code == 0) == (document["status"] == "success") == (destination["status"] == "ready")
    assert PASSWORD not in ended.stdout + ended.stderr
    assert isinstance(destination, dict)
    return destination


def test_a_server_that_can_be_loaded(warehouse: PostgresProject) -> None:
    warehouse.sales()
    before = warehouse.query("SELECT count(*), max(oid) FROM pg_class")
    found = found_by(warehouse)
    assert (found["problems"], found["tables"], found["tables_found"]) == ([], 1, 0)
    assert found["facts"]["encoding"] == "UTF8" and found["facts"]["role"] == "primary"
    assert found["facts"]["ledger"] == "schema headrace, made by the first run"
    settings = {setting["name"]: setting for setting in found["settings"]}
    assert settings["wal_level"]["better"] == "minimal"
    # The servers of the tests have it off.
    assert (settings["fsync"]["value"], settings["fsync"]["better"]) == ("off", "on")
    for setting in found["settings"]:
        assert setting["better"] is None or (setting["costs"] and setting["gives_up"] and setting["statement"])
    assert warehouse.query("SELECT count(*), max(oid) FROM pg_class") == before
    _, heading, advice = check(warehouse).stdout.partition("settings that a load would like otherwise")
    assert heading
    assert max(map(len, advice.splitlines())) <= 80


def test_what_is_advised_is_accepted_by_the_server(warehouse: PostgresProject) -> None:
    """Every value that is advised can be set, and is fine from then on. Set for one session, without a restart."""
    warehouse.sales()
    for setting in found_by(warehouse)["settings"]:
        if setting["better"] is not None and "pg_reload_conf" in setting["statement"]:
            statement, _, _ = setting["statement"].partition(";")
            warehouse.target.cluster.psql(f"{statement}")
            warehouse.target.cluster.psql(f"ALTER SYSTEM RESET {setting['name']}")


def test_rights_that_are_missing(warehouse: PostgresProject) -> None:
    warehouse.sales()
    name = warehouse.target.name
    warehouse.target.psql(f"{CREATE_ORDERS}; ALTER DATABASE {name} OWNER TO postgres")
    found = found_by(warehouse)
    assert found["status"] == "failed"
    assert_snapshot("postgres_check_rights", "\n".join(found["problems"]).replace(name, "DATABASE"))


def test_a_database_without_an_encoding(postgres: Cluster, warehouse: PostgresProject) -> None:
    with postgres.database(options="ENCODING 'SQL_ASCII' TEMPLATE template0 LC_COLLATE 'C' LC_CTYPE 'C'") as database:
        warehouse.url = database.url
        warehouse.sales()
        found = found_by(warehouse)
        assert any("SQL_ASCII" in problem for problem in [*found["problems"], str(found["error"])])


def test_partitions_beyond_the_locks_of_the_server(warehouse: PostgresProject) -> None:
    warehouse.sales("staged", "id")
    for number in range(1, 601):
        warehouse.file(f"orders.tbl.{number}", f"{number}|1.00|2024-01-01|c|n\n")
    [locks] = [item for item in found_by(warehouse)["settings"] if item["name"] == "max_locks_per_transaction"]
    assert "600 partitions needs about 5400 locks" in locks["costs"]


def test_a_server_that_is_not_there(warehouse: PostgresProject) -> None:
    nowhere = Database(warehouse.target.cluster, "no_such_database")
    warehouse.url = nowhere.url
    warehouse.sales()
    found = found_by(warehouse)
    assert found["error"]["kind"] == "target"
    assert "does not exist" in found["error"]["what"]
