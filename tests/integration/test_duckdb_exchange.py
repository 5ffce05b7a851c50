"""Tasks that exchange a table of a divided view in a DuckDB file."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

import duckdb
import pytest

from headrace.errors import CancelledError, HeadraceError
from headrace.planning import CatalogPartition, DefaultRule, HashRule, ListRule, PartitionRule, RangeRule
from headrace.targets import ExchangedPartition, ExchangedTable, OpenOptions, PartitionExchange, RunRecord
from headrace.targets.duckdb import ddl
from headrace.targets.duckdb.catalog import read_table
from headrace.targets.duckdb.divided_views import keep_divided_view
from headrace.targets.duckdb.target import DuckdbTarget
from tests.integration.exchanges import MARCH, Notes, exchange
from tests.patience import HANG_SECONDS
from tests.snapshots import assert_snapshot

OPTIONS = OpenOptions(200_000_000, 2, None, False, lambda text: None, lambda: False)
MONTHS = [
    CatalogPartition("orders_1", RangeRule("2024-01-01", "2024-02-01")),
    CatalogPartition("orders_2", RangeRule("2024-02-01", "2024-03-01")),
]
COMES = "CREATE TABLE comes (note VARCHAR, day DATE, id INTEGER)"
JANUARY = f"{COMES}; INSERT INTO comes VALUES ('new', '2024-01-31', 7)"
NEW = f"{COMES}; INSERT INTO comes VALUES ('new', '2024-03-31', 9)"
OLD_ROWS, SWITCHED = [(1, "old"), (2, "old")], [(2, "old"), (7, "new")]


class Place:
    def __init__(self, path: Path) -> None:
        self.path = path
        self.run_id = ""

    def target(self) -> DuckdbTarget:
        return DuckdbTarget(self.path, 1, OPTIONS)

    def record(self) -> RunRecord:
        return RunRecord(self.run_id, "sales", "hash", "1", "host", 7, datetime.now(UTC))

    def begin(self, target: DuckdbTarget) -> None:
        self.run_id = f"20261120-101530-{os.urandom(3).hex()}"
        target.begin_run(self.record())

    def divided(
        self,
        parts: Sequence[CatalogPartition] = MONTHS,
        key: tuple[str, str] = ("range", "day"),
        columns: str = "id INTEGER NOT NULL, day DATE, note VARCHAR",
    ) -> None:
        """A view as a load makes it."""
        names = [column.split(" ")[0] for column in columns.split(", ")]
        with self.target() as target:
            self.begin(target)
            for part in parts:
                target._connection.execute(f"CREATE TABLE target.main.{ddl.quote(part.name)} ({columns})")
            target._connection.execute(ddl.create_view("main", "orders", names, [part.name for part in parts]))
            keep_divided_view(target._connection, ("main", "orders"), key, parts)

    def execute(self, text: str) -> None:
        with duckdb.connect(str(self.path)) as connection:
            connection.execute(text)

    def rows(self, text: str = "SELECT id, note FROM orders ORDER BY id") -> list[tuple[object, ...]]:
        with duckdb.connect(str(self.path), read_only=True) as connection:
            return connection.execute(text).fetchall()

    def parts(self) -> list[str]:
        with self.target() as target:
            table = read_table(target._connection, "main", "orders")
            assert table is not None and table.partitioning is not None
            return [part.name for part in table.partitioning.partitions]

    def switch(self, asked: PartitionExchange, is_cancelled: Callable[[], bool] = lambda: False) -> ExchangedPartition:
        with self.target() as target:
            self.begin(target)
            done = target.switch_partition(self.run_id, asked, Notes(), is_cancelled)
            target.end_run(self.run_id, "success", None)
            return done

    def resumed(self, asked: PartitionExchange) -> ExchangedPartition:
        with self.target() as target:
            target.resume_run(self.record())
            return target.switch_partition(self.run_id, asked, Notes(), lambda: False)


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    found = Place(tmp_path / "w.duckdb")
    found.divided()
    found.execute(
        "INSERT INTO orders_1 VALUES (1, '2024-01-01', 'old'); INSERT INTO orders_2 VALUES (2, '2024-02-29', 'old')"
    )
    yield found


@pytest.mark.parametrize("goes", [None, "gone", "comes"])
def test_a_table_takes_the_place_of_a_partition(place: Place, goes: str | None) -> None:
    place.execute(JANUARY)
    assert not place.switch(exchange(goes=goes, partition="ORDERS_1")).was_done
    assert place.rows() == SWITCHED
    assert place.parts() == ["orders_1", "orders_2"]
    tables = {row[0] for row in place.rows("SELECT table_name FROM duckdb_tables() WHERE schema_name = 'main'")}
    assert tables == {"orders_1", "orders_2"} | ({goes} if goes else set())
    if goes:
        assert place.rows(f"SELECT id FROM {goes}") == [(1,)]


def test_a_new_month_comes_and_the_oldest_goes(place: Place) -> None:
    place.execute(NEW)
    place.switch(exchange(partition="orders_3", rule=MARCH))
    place.switch(exchange(None, "archive_1"))
    assert place.rows() == [(2, "old"), (9, "new")]
    assert place.rows("SELECT id FROM archive_1") == [(1,)]
    assert place.parts() == ["orders_2", "orders_3"]


KINDS: dict[str, tuple[str, str, PartitionRule, PartitionRule, str]] = {
    "list": ("VARCHAR", "list", ListRule(("a", None)), ListRule(("b", "it's")), "'it''s'"),
    "list of null": ("INTEGER", "list", ListRule(("1",)), ListRule((None,)), "NULL"),
    "open end": ("DECIMAL(9,2)", "range", RangeRule("0.00", "1.00"), RangeRule("1", None), "9999999.99"),
    "default": ("DATE", "range", RangeRule("2024-01-01", None), DefaultRule(), "'2023-12-31'"),
    "default of null": ("DATE", "list", ListRule(("2024-01-01",)), DefaultRule(), "NULL"),
    "bool": ("BOOLEAN", "list", ListRule(("false",)), ListRule(("true",)), "true"),
    "timestamp": (
        "TIMESTAMP", "range", RangeRule(None, "2024-02-01 00:00:00"), RangeRule("2024-02-01", None), "'2024-02-01'",
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("is_new", [False, True])
def test_every_kind_of_partition(tmp_path: Path, kind: str, is_new: bool) -> None:
    data_type, strategy, other, own, value = KINDS[kind]
    place = Place(tmp_path / "w.duckdb")
    parts = [CatalogPartition("t_a", other), *([] if is_new else [CatalogPartition("t_b", own)])]
    place.divided(parts, (strategy, "kind"), f"kind {data_type}")
    place.execute(f"CREATE TABLE comes (kind {data_type}); INSERT INTO comes VALUES ({value})")
    place.switch(exchange(partition="t_b", rule=own if is_new else None))
    assert (place.parts(), place.rows("SELECT count(*) FROM orders")) == (["t_a", "t_b"], [(1,)])
    place.execute(f"CREATE TABLE comes (kind {data_type}); INSERT INTO comes VALUES ({value})")
    if "default" not in kind:
        with pytest.raises(HeadraceError, match="does not belong into partition t_a"):
            place.switch(exchange(partition="t_a"))


def test_hostile_names(tmp_path: Path) -> None:
    place = Place(tmp_path / "w.duckdb")
    part, comes, goes, key = ('T\'s "q" ${x} ' + suffix for suffix in ("part;--", "comes{0}", "goes\\", "key"))
    place.divided([CatalogPartition(part, ListRule(("it's",)))], ("list", "kind"), "kind VARCHAR")
    place.execute(f"CREATE TABLE {ddl.quote(comes)} (kind VARCHAR); INSERT INTO {ddl.quote(comes)} VALUES ('it''s')")
    place.switch(
        PartitionExchange(key, ExchangedTable("main", "orders"), part, ExchangedTable("main", comes), goes, None)
    )
    assert place.rows("SELECT * FROM orders") == [("it's",)]
    assert place.rows(f"SELECT count(*) FROM {ddl.quote(goes)}") == [(0,)]


REFUSED = {
    "no such table": ("", exchange(table="nothing")),
    "a plain table": ("CREATE TABLE plain (id INTEGER)", exchange(table="plain")),
    "no such partition": ("", exchange(partition="orders_9")),
    "a partition that exists": ("", exchange(rule=MARCH)),
    "nothing comes": ("DROP TABLE comes", exchange()),
    "a view comes": ("CREATE VIEW w AS SELECT * FROM comes", exchange("w")),
    "another partition comes": ("", exchange("orders_2")),
    "a table of another schema": ("CREATE SCHEMA s; CREATE TABLE s.x AS FROM comes", exchange("s.x")),
    "other columns": (
        "ALTER TABLE comes ALTER id TYPE BIGINT; ALTER TABLE comes DROP note; ALTER TABLE comes ADD more INTEGER",
        exchange(),
    ),
    "a row outside": ("INSERT INTO comes VALUES ('late', '2024-02-01', 8)", exchange()),
    "a row without key": ("INSERT INTO comes VALUES ('none', NULL, 8)", exchange()),
    "keys of another type": ("", exchange(partition="orders_3", rule=RangeRule("March", None))),
    "a list for ranges": ("", exchange(partition="orders_3", rule=ListRule(("2024-03-01",)))),
    "an overlap": ("", exchange(partition="orders_3", rule=RangeRule("2024-01-15", "2024-01-16"))),
    "an empty range": ("", exchange(partition="orders_3", rule=RangeRule("2024-05-01", "2024-05-01"))),
    "a name that is taken": ("CREATE VIEW GONE AS SELECT 1", exchange(goes="gone")),
    "an index": ("CREATE INDEX i ON comes (id)", exchange()),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_refused(place: Place, case: str) -> None:
    text, asked = REFUSED[case]
    place.execute(f"{JANUARY}; {text}")
    with pytest.raises(HeadraceError) as failure:
        place.switch(asked)
    assert (place.rows(), place.rows("SELECT count(*) FROM headrace.task")) == (OLD_ROWS, [(0,)])
    assert_snapshot(f"duckdb_exchange_{case.replace(' ', '_')}", failure.value.render())


def test_a_row_in_the_default(tmp_path: Path) -> None:
    place = Place(tmp_path / "w.duckdb")
    place.divided([*MONTHS, CatalogPartition("rest", DefaultRule())])
    place.execute("INSERT INTO rest VALUES (3, '2024-03-05', 'lost'); CREATE TABLE comes AS FROM orders_1")
    with pytest.raises(HeadraceError) as failure:
        place.switch(exchange(partition="orders_3", rule=MARCH))
    assert_snapshot("duckdb_exchange_a_row_in_the_default", failure.value.render())


ALONE = {
    "hash": ([CatalogPartition("orders_1", HashRule(1, 0))], ("hash", "id")),
    "one": (MONTHS[:1], ("range", "day")),
}


@pytest.mark.parametrize("case", ALONE)
def test_what_cannot_be_taken_out(tmp_path: Path, case: str) -> None:
    place = Place(tmp_path / "w.duckdb")
    place.divided(*ALONE[case])
    with pytest.raises(HeadraceError) as failure:
        place.switch(exchange(None, "gone"))
    assert_snapshot(f"duckdb_exchange_{case}_alone", failure.value.render())


def test_cancelling_ends_a_long_look_at_the_rows(place: Place) -> None:
    place.execute(f"{COMES}; INSERT INTO comes SELECT NULL, DATE '2024-01-01', 1 FROM range(20_000_000)")
    started = time.monotonic()
    with pytest.raises(CancelledError):
        place.switch(exchange(), is_cancelled=lambda: True)
    assert time.monotonic() < started + HANG_SECONDS
    assert place.rows() == OLD_ROWS


class Killed(BaseException):
    """The process is gone."""


@pytest.mark.parametrize("behind", [False, True])
def test_killed_around_the_commit_and_resumed(place: Place, behind: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    place.execute(JANUARY)
    asked = exchange(goes="comes")  # a second exchange would bring the old rows back
    with place.target() as target:
        place.begin(target)
        connection = target._connection

        class Dying:
            def execute(self, text: str, *values: object) -> object:
                if text == "COMMIT" and behind:
                    connection.execute(text)
                if text in ("COMMIT", "ROLLBACK"):
                    raise Killed
                return connection.execute(text, *values)

            def interrupt(self) -> None:
                connection.interrupt()

        target._connection = Dying()  # type: ignore[assignment]
        with pytest.raises(Killed):
            target.switch_partition(place.run_id, asked, Notes(), lambda: False)
        target._connection = connection
        if not behind:
            connection.execute("ROLLBACK")
    assert place.rows() == (SWITCHED if behind else OLD_ROWS)
    assert place.resumed(asked).was_done == behind
    assert place.resumed(asked).was_done
    assert place.rows() == SWITCHED


def test_a_reader_of_the_process_sees_the_old_rows_or_the_new_ones(place: Place) -> None:
    place.execute(JANUARY)
    seen: set[tuple[object, ...]] = set()
    errors: list[BaseException] = []
    stop = threading.Event()
    with place.target() as target:
        reader = target._connection.cursor()

        def read() -> None:
            try:
                while not stop.is_set():
                    seen.add(
                        tuple(
                            row[0] for row in reader.execute("SELECT id FROM target.main.orders ORDER BY id").fetchall()
                        )
                    )
            except duckdb.Error as error:
                errors.append(error)

        thread = threading.Thread(target=read)
        place.begin(target)
        thread.start()
        try:
            for number in range(6):  # there and back
                target.switch_partition(
                    place.run_id, exchange(goes="comes", task=f"switch[{number}]"), Notes(), lambda: False
                )
                time.sleep(0.05)
        finally:
            stop.set()
            thread.join()
    assert errors == []
    assert seen == {(1, 2), (2, 7)}
