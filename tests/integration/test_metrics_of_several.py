"""What is measured of a data flow whose rows go to several connections, and which of them its verdict names."""

from __future__ import annotations

import pytest

from tests.integration.connections_scenes import elsewhere
from tests.integration.driver import Ended, Project
from tests.integration.postgres import PostgresProject
from tests.integration.several_scenes import package, write_files
from tests.metrics_file import Metrics, read_metrics
from tests.servers.cluster import LOADER

DUCKDB = "{type: duckdb, path: archive.duckdb}"
# Every 50th row takes 10 ms; the function is the default of a column that is not loaded.
SLOW = (
    "CREATE FUNCTION slow() RETURNS bigint VOLATILE LANGUAGE plpgsql AS "
    "'DECLARE n bigint := nextval(''turns''); BEGIN IF n % 50 = 0 THEN PERFORM pg_sleep(0.01); END IF; RETURN n; END'"
)
TABLE = "CREATE TABLE {} (id bigint, customer int, amount numeric(9,2), note varchar(30), turn bigint DEFAULT slow())"


def metrics_of(project: Project) -> Metrics:
    [path] = project.runs.glob("*/metrics.jsonl")
    return read_metrics(path)


def loaded(project: Project, text: str) -> tuple[Ended, Metrics]:
    project.package(text)
    ended = project.run("--streams", "2")
    ended.succeeded()
    return ended, metrics_of(project)


def check(metrics: Metrics, kinds: dict[str, str]) -> None:
    """Each connection has as many lines as the data flow, and its own writers or consumers."""
    assert (metrics.damaged, metrics.out_of_order) == (0, 0)
    for connection, kind in kinds.items():
        lines = [line.members for line in metrics.destinations if line.members["connection"] == connection]
        assert [line["type"] for line in lines] == [kind] * len(metrics.flows)
    assert len(metrics.destinations) == len(kinds) * len(metrics.flows)
    last = metrics.flows[-1].members
    takers = {
        (taker["connection"], taker["destination"], kind)
        for name, kind in (("writers", "postgres"), ("sinks", "duckdb"))
        for taker in last.get(name, ())
    }
    tables = {"warehouse": "one", "archive": "two"}
    assert takers == {(connection, tables[connection], kind) for connection, kind in kinds.items()}


def test_two_files_of_duckdb(project: Project) -> None:
    write_files(project)
    _, metrics = loaded(project, elsewhere(package(), {"archive": DUCKDB}, {"two": "archive"}))
    check(metrics, {"warehouse": "duckdb", "archive": "duckdb"})
    first, last = (
        {line.members["connection"]: line.members["file_bytes"] for line in metrics.destinations[at]}
        for at in (slice(0, 2), slice(-2, None))
    )
    assert all((last[connection] or 0) >= (first[connection] or 0) for connection in last)


def test_postgresql_beside_duckdb_and_null(warehouse: PostgresProject) -> None:
    """What takes no rows in is not looked at."""
    write_files(warehouse)
    text = package(destinations={"one": "orders", "two": "orders", "none": "orders"})
    connections = {"archive": DUCKDB, "nowhere": "{type: 'null'}"}
    _, metrics = loaded(warehouse, elsewhere(text, connections, {"two": "archive", "none": "nowhere"}))
    check(metrics, {"warehouse": "postgres", "archive": "duckdb"})


def test_one_connection_and_null_are_told_as_one(project: Project) -> None:
    write_files(project)
    text = elsewhere(package(), {"nowhere": "{type: 'null'}"}, {"two": "nowhere"})
    _, metrics = loaded(project, text)
    check(metrics, {"warehouse": "duckdb"})
    assert not [line for line in metrics.verdicts if "connection" in line.members]


def test_sessions_of_two_databases_on_one_server_count_together(warehouse: PostgresProject) -> None:
    """There are enough for the writers of either and its watch, and not for all: writers come first."""
    write_files(warehouse)
    with warehouse.target.cluster.database() as other:
        text = elsewhere(package(), {"archive": f'{{type: postgres, url: "{other.url}"}}'}, {"two": "archive"})
        warehouse.package(text)
        warehouse.target.psql(f"ALTER ROLE {LOADER} CONNECTION LIMIT 9")
        try:
            warehouse.run("--streams", "2").succeeded()
        finally:
            warehouse.target.psql(f"ALTER ROLE {LOADER} CONNECTION LIMIT -1")
    lines = {line.members["connection"]: line.members["denied"] for line in metrics_of(warehouse).destinations}
    assert list(lines) == ["warehouse", "archive"]
    for denied in lines.values():
        assert denied == ["what the server does: 7 sessions are left over for the load, and so none for watching it"]


@pytest.mark.parametrize("slow", ["one", "two"])
def test_the_connection_that_holds_all_up_is_named(warehouse: PostgresProject, slow: str) -> None:
    """Whether it is the first or the second. The server needs seconds for rows that DuckDB takes at once."""
    write_files(warehouse, 10_000)
    warehouse.execute("CREATE SEQUENCE turns", SLOW, TABLE.format(slow))
    other = "two" if slow == "one" else "one"
    text = package().replace(f"table: {slow}, target: replace", f"table: {slow}, target: append")
    ended, metrics = loaded(warehouse, elsewhere(text, {"archive": DUCKDB}, {other: "archive"}))
    limit = ended.summary["tables"][0]["limit"]
    assert limit["connection"] == "warehouse", limit["sentence"]
    assert limit["sentence"].startswith("the streams waited for the destinations ")
    assert "of their time, `warehouse` was the busiest of them, and its sessions were found " in limit["sentence"]
    assert "sessions_computing" in limit["evidence"] or "sessions_waiting_otherwise" in limit["evidence"]
    assert {line.members["connection"] for line in metrics.verdicts} == {"warehouse"}
    told = [event for event in warehouse.events() if event["event"] == "limit"]
    assert told and {event["connection"] for event in told} == {"warehouse"}
