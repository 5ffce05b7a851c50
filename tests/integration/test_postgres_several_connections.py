"""Destinations of one data flow in PostgreSQL and in DuckDB, or in two PostgreSQL databases: exactly once each."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import duckdb
import pytest

from tests.integration.connections_scenes import elsewhere, stopped
from tests.integration.driver import Ended
from tests.integration.postgres import PostgresProject
from tests.integration.several_scenes import KEYED, ROWS, accounts, expected, package, write_files
from tests.servers.cluster import LOADER, Database
from tests.snapshots import assert_snapshot

COLUMNS = "id bigint, customer int, amount numeric(9,2), note varchar(30)"
ARCHIVE = "{type: duckdb, path: archive.duckdb, lock_timeout_seconds: 1}"
KILLS = int(os.environ.get("KILLS", "2"))
Ask = Callable[[str], list[tuple[object, ...]]]


@dataclass
class Places:
    """Table `one` stands in the first place, `two` in the second."""

    project: PostgresProject
    text: str
    ask: dict[str, Ask]

    def package(self, target: str, more: str = "") -> None:
        text = self.text.replace("target: replace", f"target: {target}{more}")
        self.project.package(text)

    def made(self, rows: int) -> None:
        values = ", ".join(["(-1, 1, 1, 'old')"] * rows)
        for table, ask in self.ask.items():
            ask(f"CREATE TABLE {table} ({COLUMNS})")
            ask(f"INSERT INTO {table} VALUES {values}")

    def counts(self) -> list[int | None]:
        """Rows of both tables; None where there is no table."""
        return [self._count(table, ask) for table, ask in self.ask.items()]

    def _count(self, table: str, ask: Ask) -> int | None:
        there = (
            "SELECT count(*) FROM information_schema.tables WHERE table_schema IN ('main', 'public') AND table_name = "
        )
        if int(str(ask(f"{there}'{table}'")[0][0])) == 0:
            return None
        return int(str(ask(f"SELECT count(*) FROM {table}")[0][0]))

    def run(self, program: str, *arguments: str) -> Ended:
        return self.project.command([sys.executable, "-c", program, *self.project.arguments(*arguments)[3:]])


def in_postgres(database: Database) -> Ask:
    def ask(sql: str) -> list[tuple[object, ...]]:
        return [tuple(row) for row in database.rows(f"SET ROLE {LOADER}; {sql}")]

    return ask


def in_duckdb(path: Path) -> Ask:
    def ask(sql: str) -> list[tuple[object, ...]]:
        with duckdb.connect(str(path)) as connection:
            return connection.execute(sql).fetchall()

    return ask


@pytest.fixture
def orders(warehouse: PostgresProject) -> PostgresProject:
    write_files(warehouse)
    return warehouse


@pytest.fixture(params=["postgres, duckdb", "duckdb, postgres", "postgres, postgres"])
def places(orders: PostgresProject, request: pytest.FixtureRequest) -> Iterator[Places]:
    server, file = in_postgres(orders.target), in_duckdb(orders.folder / "archive.duckdb")
    if request.param == "postgres, duckdb":
        yield Places(
            orders, elsewhere(package(), {"archive": ARCHIVE}, {"two": "archive"}), {"one": server, "two": file}
        )
    elif request.param == "duckdb, postgres":
        yield Places(
            orders, elsewhere(package(), {"archive": ARCHIVE}, {"one": "archive"}), {"one": file, "two": server}
        )
    else:
        with orders.target.cluster.database() as other:
            archive = f'{{type: postgres, url: "{other.url}", lock_timeout_seconds: 1}}'
            text = elsewhere(package(), {"archive": archive}, {"two": "archive"})
            yield Places(orders, text, {"one": server, "two": in_postgres(other)})


@pytest.mark.parametrize("streams", ["1", "16"])
def test_tables_of_two_places_get_their_rows_in_one_pass(places: Places, streams: str) -> None:
    places.package("replace")
    rows = sorted(map(str, expected(places.project, "SELECT id, customer FROM orders")))
    for _ in range(2):
        ended = places.project.run("--streams", streams)
        ended.succeeded()
        for table, ask in places.ask.items():
            found = ask(f"SELECT id, customer FROM {table}")
            assert sorted(str(tuple(None if own is None else int(str(own)) for own in row)) for row in found) == rows
        assert accounts(ended) == {"one": (ROWS, ROWS, 0, 0), "two": (ROWS, ROWS, 0, 0)}
        assert ended.summary["rows_read"] == ROWS
        assert places.project.leftovers() == []


@pytest.mark.faults
@pytest.mark.in_turn("target")
@pytest.mark.parametrize("target", ["create", "append"])
@pytest.mark.parametrize(("moment", "place"), [("before", 0), ("behind", 0), ("before", 1), ("behind", 1)])
def test_a_run_that_is_killed_between_the_commits_is_resumed(
    places: Places, target: str, moment: str, place: int
) -> None:
    if target == "append":
        places.made(2)
    (places.project.inbox / "orders.3").write_text("x|1|1.00|bad\n")
    places.package(target)
    killed = places.run(stopped(moment, place), "--streams", "2", "--set", "limit=1")
    assert killed.exit_code not in (0, 1), killed.stderr
    before, after = {"create": (None, ROWS), "append": (2, ROWS + 2)}[target]
    done = place + (moment == "behind")
    assert places.counts() == [after if number < done else before for number in range(2)]
    resumed = places.project.resume()
    resumed.succeeded()
    assert places.counts() == [after, after]
    assert accounts(resumed) == {"one": (ROWS + 1, ROWS, 0, 1), "two": (ROWS + 1, ROWS, 0, 1)}
    summary = resumed.summary
    assert (summary["rows_read"], summary["rows_rejected"], summary["rows_loaded"]) == (ROWS + 1, 1, 2 * ROWS)
    assert [table["rejects"]["count"] for table in summary["tables"]] == [1, 0]
    assert places.project.leftovers() == []


@pytest.mark.faults
@pytest.mark.parametrize("kill", range(KILLS))
def test_a_run_that_is_killed_at_any_moment_is_resumed(places: Places, kill: int) -> None:
    places.made(1)
    places.package("append", ", load: single")
    orders = places.project
    with orders.started(orders.arguments("--streams", "4")) as running:
        orders.wait_for_event(running, "task_started")
        time.sleep(kill * 0.6 / KILLS)
        running.signal(signal.SIGKILL)
        running.wait()
    before = places.counts()
    assert before in ([1, 1], [ROWS + 1, 1], [ROWS + 1, ROWS + 1])
    resumed = orders.resume()
    if resumed.exit_code:  # it had ended before
        assert before == [ROWS + 1, ROWS + 1]
    assert places.counts() == [ROWS + 1, ROWS + 1]
    assert orders.leftovers() == []


def test_a_place_that_fails_behind_the_commit_of_another_is_finished_by_resume(places: Places) -> None:
    places.made(1)
    places.package("append", ", load: single")
    failed = places.run(stopped("before", 1, "the disk is busy"))
    assert (failed.exit_code, places.counts()) == (1, [ROWS + 1, 1])
    assert "headrace resume" in failed.error
    refused = places.project.run()
    assert (refused.exit_code, places.counts()) == (1, [ROWS + 1, 1])
    places.project.resume().succeeded()
    assert places.counts() == [ROWS + 1, ROWS + 1]
    assert places.project.leftovers() == []


def mixed(orders: PostgresProject, text: str = "") -> Places:
    """Table `one` in PostgreSQL, `two` in DuckDB behind it."""
    ask: dict[str, Ask] = {"one": in_postgres(orders.target), "two": in_duckdb(orders.folder / "archive.duckdb")}
    return Places(orders, elsewhere(text or package(), {"archive": ARCHIVE}, {"two": "archive"}), ask)


@pytest.mark.parametrize("bad", ["one", "two"])
def test_a_row_that_breaks_a_constraint_of_one_place_undoes_both(orders: PostgresProject, bad: str) -> None:
    places = mixed(orders)
    places.made(1)
    places.ask[bad](f"DROP TABLE {bad}")
    places.ask[bad](f"CREATE TABLE {bad} ({COLUMNS}, CHECK (id <> 4711))")
    places.package("append", ", load: single")
    ended = orders.run("--streams", "2")
    assert ended.exit_code == 1
    assert_snapshot(f"connections_check_of_{bad}", orders.stable(ended.error))
    assert sorted(map(str, places.counts())) == ["0", "1"]
    assert [table["status"] for table in ended.summary["tables"]] == ["failed", "failed"]
    assert orders.leftovers() == []


def test_a_row_that_is_there_already_undoes_the_other_place(orders: PostgresProject) -> None:
    """It meets its table in the switch, when the rows of all are there and none is committed."""
    places = mixed(orders)
    places.made(1)
    places.ask["one"]("CREATE UNIQUE INDEX one_id ON one (id)")
    places.ask["one"]("INSERT INTO one VALUES (4711)")
    places.package("append", ", load: single")
    ended = orders.run("--streams", "2")
    assert_snapshot("connections_duplicate", orders.stable(ended.error))
    assert places.counts() == [2, 1]


def test_a_source_that_is_wrong_is_told_the_same_whoever_stops_first(orders: PostgresProject) -> None:
    places = mixed(orders)
    (orders.inbox / "orders.3").write_text("x|1|1.00|bad\n")
    places.package("create")
    errors = {orders.stable(orders.run("--streams", streams).error) for streams in ("1", "3", "16")}
    assert places.counts() == [None, None]
    assert len(errors) == 1
    assert_snapshot("connections_source", errors.pop())


def test_several_tables_of_each_place_and_ways_that_part(orders: PostgresProject) -> None:
    """Of each place one with rows that find something, and one with the others; divided in both."""
    named = {"found": "keyed", "found_too": "keyed", "missed": "keyed.no_match", "missed_too": "keyed.no_match"}
    clauses = ", load: view, partition: {range: {column: id, bounds: [2000, 4000]}}"
    text = elsewhere(
        package(KEYED, named, clauses), {"archive": ARCHIVE}, {"found_too": "archive", "missed": "archive"}
    )
    orders.package(text)
    for streams in ("1", "16"):
        ended = orders.run("--streams", streams)
        found = len(expected(orders, "FROM orders JOIN customers ON code = customer"))
        assert {name: own[1] for name, own in accounts(ended).items()} == {
            "found": found,
            "missed_too": ROWS - found,
            "found_too": found,
            "missed": ROWS - found,
        }
        assert orders.query("SELECT count(DISTINCT id) FROM missed_too") == [(str(ROWS - found),)]
        archive = in_duckdb(orders.folder / "archive.duckdb")
        assert archive("SELECT (SELECT count(*) FROM found_too), count(DISTINCT id) FROM missed") == [
            (found, ROWS - found)
        ]


GATE = """CREATE FUNCTION gate(bigint) RETURNS bool LANGUAGE plpgsql AS
$$ BEGIN PERFORM pg_advisory_lock_shared(4711), pg_advisory_unlock_shared(4711); RETURN true; END $$"""


@pytest.mark.parametrize("session", ["w", "control"])
def test_a_server_that_is_lost_undoes_both_and_is_named(orders: PostgresProject, session: str) -> None:
    """While its table takes no rows; `session`: which of its sessions is lost."""
    places = mixed(orders)
    orders.execute(GATE, f"CREATE TABLE one ({COLUMNS}, CHECK (gate(id)))")
    places.package("replace")
    lock = orders.target.session("DO $$ BEGIN PERFORM pg_advisory_lock(4711); END $$")
    with lock, orders.started(orders.arguments("--streams", "2")) as running:
        lost = f"application_name LIKE 'headrace%{session}%'"
        waiting = (
            "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'advisory' AND application_name LIKE 'headrace%'"
        )
        while orders.query(waiting) == [("0",)] and running.poll() is None:
            time.sleep(0.05)
        orders.target.cluster.psql(
            f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE {lost} AND datname = '{orders.target.name}'"
        )
        ended = running.wait()
    assert ended.exit_code == 1
    assert "table warehouse.one" in ended.error or "tables of load" in ended.error, ended.error
    assert "archive" not in ended.error.split("hint")[0], ended.error
    assert places.counts() == [0, None]
    resumed = orders.resume()
    resumed.succeeded()
    assert places.counts() == [ROWS, ROWS]


def test_what_a_server_would_refuse_in_its_commit_undoes_the_first_place_too(orders: PostgresProject) -> None:
    """A constraint that is deferred to the commit."""
    places = Places(
        orders,
        elsewhere(package(), {"archive": ARCHIVE}, {"one": "archive"}),
        {"one": in_duckdb(orders.folder / "archive.duckdb"), "two": in_postgres(orders.target)},
    )
    places.made(1)
    refuse = "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'not today'; END $$"
    orders.execute(
        refuse,
        "CREATE CONSTRAINT TRIGGER late AFTER INSERT ON two DEFERRABLE INITIALLY DEFERRED FOR EACH ROW "
        "EXECUTE FUNCTION refuse()",
    )
    places.package("append", ", load: single")
    ended = orders.run()
    assert_snapshot("connections_deferred", orders.stable(ended.error))
    assert places.counts() == [1, 1]
    orders.execute("DROP TRIGGER late ON two")
    orders.run().succeeded()
    assert places.counts() == [ROWS + 1, ROWS + 1]


def test_cancelling_undoes_both(orders: PostgresProject) -> None:
    places = mixed(orders)
    orders.execute(GATE, f"CREATE TABLE one ({COLUMNS}, CHECK (gate(id)))")
    places.package("replace")
    lock = orders.target.session("DO $$ BEGIN PERFORM pg_advisory_lock(4711); END $$")
    with lock, orders.started(orders.arguments("--streams", "2")) as running:
        orders.wait_for_event(running, "progress")
        running.signal(signal.SIGINT)
        ended = running.wait()
    assert ended.exit_code == 3, ended.stderr
    assert places.counts() == [0, None]
    assert orders.leftovers() == []


def test_a_text_that_one_place_cannot_hold_is_a_reject_of_its_way_alone(orders: PostgresProject) -> None:
    places = mixed(orders)
    places.made(1)
    orders.execute("ALTER TABLE one ALTER note TYPE varchar(20)")
    places.package("append", ", load: single")
    ended = orders.run("--set", "limit=1000")
    long = sum(number % 23 > 20 for number in range(ROWS))
    assert accounts(ended) == {"one": (ROWS, ROWS - long, 0, long), "two": (ROWS, ROWS, 0, 0)}
    assert ended.summary["rows_rejected"] == long


def test_secrets_of_both_connections_are_in_no_error(orders: PostgresProject) -> None:
    places = mixed(orders)
    text = places.text.replace(
        "archive: {type: duckdb, path: archive.duckdb, lock_timeout_seconds: 1}",
        'archive: {type: postgres, url: "postgresql://loader:s3cr3t-w0rd@127.0.0.1:1/none"}',
    )
    orders.package(text.replace("s3cr3t-w0rd", "${env:ARCHIVE_PASSWORD}"))
    ended = orders.command(orders.arguments(), {"ARCHIVE_PASSWORD": "s3cr3t-w0rd"})
    assert (ended.exit_code, "connecting to archive" in ended.error) == (1, True), ended.error
    assert "s3cr3t" not in ended.stderr + ended.stdout + "".join(map(str, orders.events()))


def test_values_of_rows_that_a_complete_place_has_refused_are_counted_all_the_same(orders: PostgresProject) -> None:
    """What is committed out of sight is compared with the same counts, though that way is not there now."""
    (orders.inbox / "orders.3").write_text(f"{ROWS}|3|zero|nobody\n{ROWS + 1}|1|zero|somebody\n{ROWS + 2}|3|1|x\n")
    refusing = KEYED.replace("no_match: output", "no_match: reject")
    text = elsewhere(package(refusing, {"one": "keyed", "two": "orders"}), {"archive": ARCHIVE}, {"one": "archive"})
    orders.package(text.replace('"decimal(9,2)"', '"decimal(9,2)", on_error: ignore'))
    arguments = orders.arguments("--streams", "2", limit=ROWS)
    killed = orders.command([sys.executable, "-c", stopped("before", 1), *arguments[3:]])
    assert killed.exit_code not in (0, 1), killed.stderr
    resumed = orders.resume()
    resumed.succeeded()
    found = len(expected(orders, "SELECT id FROM orders JOIN customers ON code = customer WHERE id < 6000")) + 1
    assert accounts(resumed) == {"one": (ROWS + 3, found, 0, ROWS + 3 - found), "two": (ROWS + 3, ROWS + 3, 0, 0)}
    assert [table["values_ignored"] for table in resumed.summary["tables"]] == [2, 2]
    assert orders.query("SELECT count(*), count(DISTINCT id) FROM two") == [(str(ROWS + 3), str(ROWS + 3))]
    assert orders.leftovers() == []
