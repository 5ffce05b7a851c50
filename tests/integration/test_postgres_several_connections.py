"""Destinations of one data flow in PostgreSQL and in DuckDB, or in two PostgreSQL databases: exactly once each."""

from __future__ import annotations

import sys
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
