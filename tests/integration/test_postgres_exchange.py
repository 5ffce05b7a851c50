"""Tasks that exchange a partition of a PostgreSQL table, on servers of every version."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import pytest

from headrace import core
from headrace.errors import CancelledError, HeadraceError, TargetBusyError
from headrace.planning import DefaultRule, ListRule, RangeRule
from headrace.targets import ExchangedPartition, ExchangedTable, PartitionExchange
from headrace.targets.postgres.ddl import DURABLE
from headrace.targets.postgres.names import TableName, table_lock_key
from tests.integration.exchanges import MARCH, Notes, exchange
from tests.integration.test_postgres_target import Run, record
from tests.patience import HANG_SECONDS
from tests.servers.cluster import Cluster, Database, ServerError, identifier
from tests.snapshots import assert_snapshot

TABLE = """
CREATE TABLE orders (id int NOT NULL, day date NOT NULL, note text, CONSTRAINT short CHECK (length(note) < 10),
  PRIMARY KEY (id, day)) PARTITION BY RANGE (day);
CREATE INDEX ON orders (note);
CREATE TABLE orders_1 PARTITION OF orders FOR VALUES FROM ('2024-01-01') TO ('2024-02-01');
CREATE TABLE orders_2 PARTITION OF orders FOR VALUES FROM ('2024-02-01') TO ('2024-03-01');
INSERT INTO orders VALUES (1, '2024-01-01', 'old'), (2, '2024-02-29', 'old');
"""
PLAIN = "CREATE TABLE {name} (note text, day date, id int)"
COMES = f"{PLAIN.format(name='comes')}; INSERT INTO comes VALUES ('new', '2024-01-31', 7)"
NEW = f"{PLAIN.format(name='comes')}; INSERT INTO comes VALUES ('new', '2024-03-31', 9)"
SHOWN = "SELECT tableoid::regclass::text, id, note FROM orders ORDER BY 1, 2"
TABLES = """
SELECT relname FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace ORDER BY 1
"""
OLD_ROWS = [("orders_1", "1", "old"), ("orders_2", "2", "old")]
SWITCHED = [("orders_1", "7", "new"), ("orders_2", "2", "old")]
PROVED = re.compile(r'partition constraint for table "(.+)" is implied by existing constraints')


@pytest.fixture
def database(postgres_versions: Cluster) -> Iterator[Database]:
    with postgres_versions.database() as database:
        yield database


def switch(
    database: Database,
    asked: PartitionExchange,
    is_cancelled: Callable[[], bool] = lambda: False,
    notes: Notes | None = None,
    run: Run | None = None,
    **members: Any,
) -> ExchangedPartition:
    """A whole run with this task alone."""
    run = run or Run(database, **members)
    with run.target as target:
        run.begin()
        done = target.switch_partition(run.run_id, asked, notes or Notes(), is_cancelled)
        target.end_run(run.run_id, "success", None)
        return done


def refused(database: Database, asked: PartitionExchange, **members: Any) -> HeadraceError:
    with pytest.raises(HeadraceError) as failure:
        switch(database, asked, **members)
    assert database.rows("SELECT conname FROM pg_constraint WHERE conname = 'headrace_bounds'") == []
    return failure.value


def resumed(database: Database, run: Run, asked: PartitionExchange) -> ExchangedPartition:
    with Run(database).target as target:
        target.resume_run(record(run.run_id))
        done = target.switch_partition(run.run_id, asked, Notes(), lambda: False)
        target.end_run(run.run_id, "success", None)
        return done


@contextmanager
def proved(database: Database) -> Iterator[list[str]]:
    """The tables that were attached inside without being read."""
    database.psql(f"ALTER DATABASE {identifier(database.name)} SET log_min_messages = debug1")
    before = len(database.cluster.log_text())
    found: list[str] = []
    yield found
    found += PROVED.findall(database.cluster.log_text()[before:])
    database.psql(f"ALTER DATABASE {identifier(database.name)} RESET log_min_messages")


# --- what becomes of the rows -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("goes", [None, "gone", "comes"])
def test_a_table_takes_the_place_of_a_partition(database: Database, goes: str | None) -> None:
    database.as_loader(f"{TABLE}; {COMES}")
    with proved(database) as unread:
        done = switch(database, exchange(goes=goes))
    assert unread == ["orders_1"]
    assert database.rows(SHOWN) == SWITCHED
    assert done.made == (
        *("NOT NULL of day", "NOT NULL of id", "constraint short"),
        *("constraint orders_1_pkey1", "index orders_1_note_idx1"),
    )
    assert [row[0] for row in database.rows(TABLES)] == sorted(["orders_1", "orders_2", *([goes] if goes else [])])
    if goes:
        assert database.rows(f"SELECT id, note FROM {goes}") == [("1", "old")]
    database.as_loader("INSERT INTO orders VALUES (8, '2024-01-02', 'more')")
    assert database.rows("SELECT count(*) FROM orders_1") == [("2",)]


def test_a_new_month_comes_and_the_oldest_goes(database: Database) -> None:
    database.as_loader(f"{TABLE}; {NEW}")
    with proved(database) as unread:
        switch(database, exchange(partition="orders_3", rule=MARCH))
        switch(database, exchange(None, "archive_1"))
    assert unread == ["orders_3"]
    assert database.rows(SHOWN) == [("orders_2", "2", "old"), ("orders_3", "9", "new")]
    assert database.rows("SELECT id FROM archive_1") == [("1",)]
    assert database.rows("SELECT task FROM headrace.task") == [("month[1].switch",)] * 2
    assert "has a partition `orders_3` already" in refused(database, exchange(partition="orders_3", rule=MARCH)).what


def test_a_table_that_has_the_name_already(database: Database) -> None:
    database.as_loader(f"{TABLE}; {NEW}; ALTER TABLE comes RENAME TO orders_3")
    switch(database, exchange("orders_3", partition="orders_3", rule=MARCH))
    assert database.rows(SHOWN)[-1] == ("orders_3", "9", "new")


KINDS = {
    "list": ("kind text", "LIST (kind)", "IN ('a', NULL)", "IN ('b', 'it''s')", "'it''s'", ListRule(("b", "it's"))),
    "list of null": ("kind int", "LIST (kind)", "IN (1)", "IN (NULL)", "NULL", ListRule((None,))),
    "hash": ("kind int", "HASH (kind)", "WITH (MODULUS 2, REMAINDER 0)", "WITH (MODULUS 2, REMAINDER 1)", "3", None),
    "two columns": (
        "kind int, more text", "RANGE (kind, more)", "FROM (0, 'a') TO (1, 'b')", "FROM (1, 'b') TO (2, MAXVALUE)",
        "1, 'b'", None,
    ),
    "expression": ("kind text", "LIST (lower(kind))", "IN ('a')", "IN ('b')", "'B'", None),
    "open end": (
        "kind numeric", "RANGE (kind)", "FROM (0) TO (1)", "FROM (1) TO (MAXVALUE)", "1e300", RangeRule("1", None),
    ),
    "default": (
        "kind date", "RANGE (kind)", "FROM ('2024-01-01') TO (MAXVALUE)", "DEFAULT", "'2023-12-31'", DefaultRule(),
    ),
    "bool": ("kind bool", "LIST (kind)", "IN (false)", "IN (true)", "true", ListRule(("true",))),
    "timestamptz": (
        "kind timestamptz", "RANGE (kind)", "FROM ('2024-01-01 00:00+00') TO ('2024-02-01 00:00+00')",
        "FROM ('2024-02-01 00:00+00') TO ('2024-03-01 00:00+00')", "'2024-02-29 23:59:59.999999+00'",
        RangeRule("2024-02-01 00:00:00+00:00", "2024-03-01 00:00:00+00:00"),
    ),
}  # fmt: skip


# Of some kinds new partitions are made by hand.
CASES = [(kind, is_new) for kind in KINDS for is_new in (False, True) if not is_new or KINDS[kind][-1] is not None]


@pytest.mark.parametrize(("kind", "is_new"), CASES)
def test_every_kind_of_partition(database: Database, kind: str, is_new: bool) -> None:
    columns, key, other, own, values, rule = KINDS[kind]
    bound = own if own == "DEFAULT" else f"FOR VALUES {own}"
    database.as_loader(
        f"CREATE TABLE t ({columns}) PARTITION BY {key}; CREATE TABLE t_a PARTITION OF t FOR VALUES {other};"
        f"CREATE TABLE comes ({columns}); INSERT INTO comes VALUES ({values})"
    )
    if not is_new:
        database.as_loader(f"CREATE TABLE t_b PARTITION OF t {bound}")
    before = database.rows("SELECT pg_get_expr(relpartbound, oid) FROM pg_class WHERE relname = 't_b'")
    with proved(database) as unread:
        switch(database, exchange(partition="t_b", table="t", rule=rule if is_new else None))
    assert unread == ["t_b"]
    assert database.rows("SELECT tableoid::regclass FROM t") == [("t_b",)]
    if before:
        assert database.rows("SELECT pg_get_expr(relpartbound, oid) FROM pg_class WHERE relname = 't_b'") == before


HOSTILE = ('Ma"rt x', 'T\'s "q" ${x} $1 %s')


def test_hostile_names(database: Database) -> None:
    schema, name = HOSTILE
    table = f"{identifier(schema)}.{identifier(name)}"
    part, comes, goes = (f"{name} {suffix}" for suffix in ("part;--", "comes{0}", "goes\\"))
    column = 'a "k\'ey" {x}'
    database.as_loader(
        f"CREATE SCHEMA {identifier(schema)};"
        f"CREATE TABLE {table} ({identifier(column)} text PRIMARY KEY) PARTITION BY LIST ({identifier(column)});"
        f"CREATE TABLE {identifier(schema)}.{identifier(part)} PARTITION OF {table} FOR VALUES IN ('it''s', 'x\\');"
        f"CREATE TABLE public.{identifier(comes)} ({identifier(column)} text);"
        f"INSERT INTO public.{identifier(comes)} VALUES ('x\\')"
    )
    asked = PartitionExchange(
        "t'a\"sk[{}]", ExchangedTable(schema, name), part, ExchangedTable("public", comes), goes, None
    )
    with proved(database) as unread:
        switch(database, asked)
    assert len(unread) == 1
    assert database.rows(f"SELECT * FROM {table}") == [("x\\",)]
    assert database.rows(f"SELECT count(*) FROM {identifier(schema)}.{identifier(goes)}") == [("0",)]
    assert database.rows("SELECT task FROM headrace.task") == [("t'a\"sk[{}]",)]


def test_a_table_of_another_schema_whose_indexes_have_the_same_names(database: Database) -> None:
    database.as_loader(
        f"{TABLE}; CREATE SCHEMA stage; CREATE TABLE stage.orders_1 (LIKE orders INCLUDING ALL);"
        "INSERT INTO stage.orders_1 VALUES (7, '2024-01-31', 'new'); ALTER INDEX stage.orders_1_note_idx RENAME TO x;"
        "ALTER INDEX stage.x RENAME TO orders_1_note_idx"
    )
    done = switch(database, exchange("stage.orders_1", "gone"))
    assert (done.made, database.rows(SHOWN)) == ((), SWITCHED)
    again = f"{PLAIN.format(name='stage.orders_1')}; INSERT INTO stage.orders_1 VALUES ('again', '2024-01-31', 8)"
    database.as_loader(again)
    switch(database, exchange("stage.orders_1"))
    assert database.rows(SHOWN)[0] == ("orders_1", "8", "again")


def test_what_a_partition_keeps(database: Database) -> None:
    database.as_loader(
        f"{TABLE}; {COMES}; GRANT SELECT ON orders_1 TO pg_monitor; COMMENT ON TABLE orders_1 IS 'of January';"
        "CREATE INDEX only_here ON orders_1 (lower(note)); CREATE TABLE others (id int PRIMARY KEY);"
        "INSERT INTO others VALUES (1), (2), (7); ALTER TABLE orders ADD FOREIGN KEY (id) REFERENCES others;"
        "CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END';"
        "CREATE TRIGGER often BEFORE INSERT ON orders FOR EACH ROW EXECUTE FUNCTION f()"
    )
    looks = (
        "SELECT relacl::text, obj_description(oid), relowner::regrole FROM pg_class WHERE oid = 'orders_1'::regclass "
        "UNION ALL SELECT pg_get_constraintdef(oid), convalidated::text, NULL FROM pg_constraint "
        "WHERE conrelid = 'orders_1'::regclass AND contype <> 'n' UNION ALL SELECT tgname, NULL, NULL FROM pg_trigger "
        "WHERE tgrelid = 'orders_1'::regclass AND NOT tgisinternal UNION ALL SELECT regexp_replace(pg_get_indexdef("
        "indexrelid), 'INDEX \\w+ ', ''), indisvalid::text, NULL FROM pg_index WHERE indrelid = 'orders_1'::regclass "
        "ORDER BY 1"
    )
    before = database.rows(looks)
    switch(database, exchange(goes="gone"))
    assert database.rows(looks) == before
    assert database.rows(SHOWN) == SWITCHED
    assert database.rows("SELECT count(*) FROM pg_inherits WHERE inhrelid = 'gone'::regclass") == [("0",)]


def test_a_published_table_warns(database: Database) -> None:
    database.as_loader(f"{TABLE}; {COMES}")
    database.psql("CREATE PUBLICATION news FOR TABLE orders")
    assert "subscribers of publication news" in switch(database, exchange()).warnings[0]


# --- what is refused --------------------------------------------------------------------------------------------------

REFUSED = {
    "no such table": ("", exchange(table="nothing")),
    "a table without partitions": ("CREATE TABLE plain (id int)", exchange(table="plain")),
    "no such partition": ("", exchange(partition="orders_9")),
    "a partition that exists": ("", exchange(rule=MARCH)),
    "nothing comes": ("DROP TABLE comes", exchange()),
    "a view comes": ("CREATE VIEW w AS SELECT * FROM comes", exchange("w")),
    "another partition comes": ("", exchange("orders_2")),
    "the table itself comes": ("", exchange("orders")),
    "a view of what comes": ("CREATE VIEW w AS SELECT * FROM comes", exchange()),
    "an unlogged table": ("ALTER TABLE comes SET UNLOGGED", exchange()),
    "an identity": ("ALTER TABLE comes ALTER id SET NOT NULL, ALTER id ADD GENERATED ALWAYS AS IDENTITY", exchange()),
    "other columns": (
        "ALTER TABLE comes ALTER id TYPE bigint, DROP note, ADD more int, ALTER day TYPE timestamp, "
        "ADD CONSTRAINT short CHECK (more > 0)", exchange()
    ),
    "a row outside": ("INSERT INTO comes VALUES ('late', '2024-02-01', 8)", exchange()),
    "a row without key": ("INSERT INTO comes VALUES ('none', NULL, 8)", exchange()),
    "a row outside of a new one": ("", exchange(partition="orders_3", rule=MARCH)),
    "keys of another type": ("", exchange(partition="orders_3", rule=RangeRule("March", None))),
    "a list for ranges": ("", exchange(partition="orders_3", rule=ListRule(("2024-03-01",)))),
    "an overlap": ("", exchange(partition="orders_3", rule=RangeRule("2024-01-15", "2024-02-15"))),
    "a row in the default": (
        "CREATE TABLE rest PARTITION OF orders DEFAULT; INSERT INTO orders VALUES (3, '2024-03-05', 'lost');"
        "TRUNCATE comes", exchange(partition="orders_3", rule=MARCH),
    ),
    "two rows with one key": ("INSERT INTO comes SELECT * FROM comes", exchange()),
    "a broken check": ("UPDATE comes SET note = 'far too long'", exchange()),
    "a name that is taken": ("CREATE TABLE gone (id int)", exchange(goes="gone")),
    "a name for a new one that is taken": (
        "CREATE VIEW orders_3 AS SELECT 1", exchange(partition="orders_3", rule=MARCH),
    ),
    "a name that is too long": ("", exchange(goes="g" * 64)),
    "a view of the partition": ("CREATE VIEW w AS SELECT * FROM orders_1", exchange()),
    "rows that others refer to": (
        "CREATE TABLE refers (id int, day date, FOREIGN KEY (id, day) REFERENCES orders);"
        "INSERT INTO refers VALUES (1, '2024-01-01')", exchange(goes="gone"),
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_refused(database: Database, case: str) -> None:
    text, asked = REFUSED[case]
    database.as_loader(f"{TABLE}; {COMES}; {text}")
    before = database.rows(SHOWN)
    failure = refused(database, asked)
    assert database.rows(SHOWN) == before
    assert database.rows("SELECT count(*) FROM headrace.task") == [("0",)]
    # Versions call the constraints of partitions differently.
    said = re.sub(r"fkey_?1", "fkey", failure.render())
    assert_snapshot(f"postgres_exchange_{case.replace(' ', '_')}", said)


def test_tables_of_others(database: Database) -> None:
    database.as_loader(f"{TABLE}; {COMES}")
    database.psql("ALTER TABLE comes OWNER TO pg_monitor")
    assert_snapshot("postgres_exchange_of_others", refused(database, exchange()).render())
    database.psql("ALTER TABLE comes OWNER TO loader; ALTER TABLE orders OWNER TO pg_monitor")
    assert "the user is not the owner of public.orders" in refused(database, exchange()).what


# --- who waits --------------------------------------------------------------------------------------------------------


def test_a_reader_sees_the_old_rows_or_the_new_ones(database: Database) -> None:
    database.as_loader(f"{TABLE}; {COMES}")
    seen: set[tuple[str | None, ...]] = set()
    errors: list[BaseException] = []
    stop = threading.Event()

    def read() -> None:
        reader = Run(database).target
        try:
            while not stop.is_set():
                rows = reader._control.query("SELECT string_agg(id::text, ' ' ORDER BY id) FROM orders").rows
                seen.add(tuple(rows[0]))
        except HeadraceError as error:
            errors.append(error)
        finally:
            reader.close()

    readers = [threading.Thread(target=read) for _ in range(2)]
    for reader in readers:
        reader.start()
    try:
        for _ in range(4):  # there and back
            switch(database, exchange(goes="comes", task=f"switch.{time.monotonic_ns()}"))
    finally:
        stop.set()
        for reader in readers:
            reader.join()
    assert errors == []
    assert seen == {("1 2",), ("2 7",)}


def test_a_new_partition_lets_readers_go_on(database: Database) -> None:
    database.as_loader(f"{TABLE}; {NEW}")
    with database.session("BEGIN; SELECT * FROM orders LIMIT 0"):
        switch(database, exchange(partition="orders_3", rule=MARCH))
    assert len(database.rows(SHOWN)) == 3


@pytest.mark.parametrize("held", ["orders", "comes"])
def test_a_table_in_use(database: Database, held: str) -> None:
    database.as_loader(f"{TABLE}; {COMES}")
    with database.session(f"BEGIN; LOCK TABLE {held} IN ACCESS SHARE MODE"):
        failure = refused(database, exchange())
    assert isinstance(failure, TargetBusyError) and failure.retryable
    assert database.rows(SHOWN) == OLD_ROWS
    switch(database, exchange())
    assert database.rows(SHOWN) == SWITCHED


@pytest.mark.parametrize("wait", ["lock", "table lock"])
def test_cancelling_ends_a_wait_at_once(database: Database, wait: str) -> None:
    database.as_loader(f"{TABLE}; {COMES}")
    held = "BEGIN; SELECT * FROM orders LIMIT 0"
    if wait == "table lock":
        held = f"SELECT FROM pg_advisory_lock({table_lock_key(database.name, TableName('public', 'orders'))})"
    started = time.monotonic()
    with database.session(held):
        failure = refused(
            database, exchange(), lock_timeout_seconds=60, is_cancelled=lambda: time.monotonic() > started + 1
        )
    assert isinstance(failure, CancelledError)
    assert time.monotonic() < started + HANG_SECONDS
    assert database.rows(SHOWN) == OLD_ROWS
    switch(database, exchange())


MEANWHILE = {
    "DROP TABLE comes": "a table is gone that was there before; nothing was exchanged",
    "ALTER TABLE comes ADD more int": "its columns differ",
    "DROP INDEX orders_1_note_idx1": "table public.comes was changed during the exchange",
    "ALTER TABLE orders DETACH PARTITION orders_1": "table public.orders was changed during the exchange",
    "ALTER TABLE orders DETACH PARTITION orders_1; DROP TABLE orders_1; CREATE TABLE orders_1 PARTITION OF orders "
    "FOR VALUES FROM ('2023-01-01') TO ('2024-02-01')": "table public.orders was changed during the exchange",
    "CREATE TABLE gone (id int)": "the name public.gone is taken",
    "CREATE VIEW w AS SELECT * FROM orders_1": "partition public.orders_1 cannot be exchanged",
}


class HookedConnection:
    """Calls `hook` behind the proof, when the transaction of the exchange begins."""

    def __init__(self, spec: Mapping[str, Any], hook: Callable[[], object]) -> None:
        self._connection = core.PostgresConnection(spec)
        self._hook = hook

    def execute(self, sql: str) -> None:
        self._connection.execute(sql)
        if sql == DURABLE:
            self._hook()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)


@pytest.mark.parametrize("text", MEANWHILE)
def test_what_others_do_between_the_look_and_the_lock(database: Database, text: str) -> None:
    database.as_loader(f"{TABLE}; {COMES}; INSERT INTO comes SELECT 'n', '2024-01-02', n FROM generate_series(8, 9) n")
    run = Run(database, connect=lambda spec: HookedConnection(spec, lambda: database.as_loader(text)))
    failure = refused(database, exchange(goes="gone"), run=run)
    assert MEANWHILE[text] in failure.what
    assert database.rows("SELECT count(*) FROM headrace.task") == [("0",)]


def test_nobody_can_add_a_row_outside_behind_the_look(database: Database) -> None:
    database.as_loader(f"{TABLE}; {COMES}")
    failures: list[str] = []

    def insert() -> None:
        with pytest.raises(ServerError) as failure:
            database.as_loader("INSERT INTO comes VALUES ('late', '2024-02-01', 8)")
        failures.append(str(failure.value))

    switch(database, exchange(), run=Run(database, connect=lambda spec: HookedConnection(spec, insert)))
    assert "headrace_bounds" in failures[0]
    assert database.rows(SHOWN) == SWITCHED


# --- exactly once -----------------------------------------------------------------------------------------------------


class Killed(BaseException):
    """The process is gone."""


class KillingConnection:
    """A connection whose process is killed before or behind the commit of an exchange; nothing is cleaned up."""

    def __init__(self, spec: Mapping[str, Any], *, behind: bool) -> None:
        self._connection = core.PostgresConnection(spec)
        self._behind = behind
        self._is_attached = False
        self._is_dead = False

    def execute(self, sql: str) -> None:
        self._require_life()
        is_it = self._is_attached and sql == "COMMIT"
        if not is_it or self._behind:
            self._connection.execute(sql)
        self._is_attached |= "ATTACH PARTITION" in sql
        if is_it:
            self._is_dead = True
            self._connection.close()
            raise Killed(sql)

    def query(self, sql: str, parameters: Sequence[str | None] = ()) -> Any:
        self._require_life()
        return self._connection.query(sql, parameters)

    def _require_life(self) -> None:
        if self._is_dead:
            raise Killed

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)


@pytest.mark.parametrize("goes", [None, "comes"])
@pytest.mark.parametrize("behind", [False, True])
def test_killed_around_the_commit_and_resumed(database: Database, goes: str | None, behind: bool) -> None:
    database.as_loader(f"{TABLE}; {COMES}")
    asked = exchange(goes=goes)
    run = Run(database, connect=lambda spec: KillingConnection(spec, behind=behind))
    run.begin()
    with pytest.raises(Killed):
        run.target.switch_partition(run.run_id, asked, Notes(), lambda: False)
    assert database.rows(SHOWN) == (SWITCHED if behind else OLD_ROWS)
    assert resumed(database, run, asked).was_done == behind
    assert database.rows(SHOWN) == SWITCHED
    assert resumed_again(database, run, asked).was_done


def resumed_again(database: Database, run: Run, asked: PartitionExchange) -> ExchangedPartition:
    database.psql("UPDATE headrace.run SET status = 'failed'")
    return resumed(database, run, asked)


class LossyConnection:
    """A connection that is lost around the commit of an exchange. `losses`: what is still to be lost."""

    def __init__(self, spec: Mapping[str, Any], losses: list[str], *, behind: bool) -> None:
        self._connection = core.PostgresConnection(spec)
        self._losses = losses
        self._behind = behind
        self._is_attached = False

    def execute(self, sql: str) -> None:
        is_it = self._is_attached and sql == "COMMIT" and bool(self._losses)
        if not is_it or self._behind:
            self._connection.execute(sql)
        self._is_attached |= "ATTACH PARTITION" in sql
        if is_it:
            self._connection.close()
            raise TargetBusyError(self._losses.pop())

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)


@pytest.mark.parametrize("ledger_schema", ["headrace", None])
@pytest.mark.parametrize("behind", [False, True])
def test_a_lost_answer_to_the_commit(database: Database, behind: bool, ledger_schema: str | None) -> None:
    database.as_loader(f"{TABLE}; {COMES}")
    losses = ["the network is gone"]
    run = Run(
        database,
        connect=lambda spec: LossyConnection(spec, losses, behind=behind),
        ledger_schema=ledger_schema,
        lock_timeout_seconds=10,
    )
    if behind:
        assert "it is committed" in switch(database, exchange(goes="comes"), run=run).warnings[0]
        assert database.rows(SHOWN) == SWITCHED
    else:
        failure = refused(database, exchange(goes="comes"), run=run)
        assert (failure.what, failure.retryable) == ("the network is gone", True)
        assert database.rows(SHOWN) == OLD_ROWS


def test_an_attempt_that_was_taken_over_changes_nothing(database: Database) -> None:
    database.as_loader(f"{TABLE}; {COMES}")
    run = Run(database)
    with run.target as target:
        run.begin()
        database.psql("UPDATE headrace.run SET attempt = attempt + 1")
        with pytest.raises(HeadraceError, match="was taken over"):
            target.switch_partition(run.run_id, exchange(), Notes(), lambda: False)
    assert database.rows(SHOWN) == OLD_ROWS


@pytest.mark.parametrize("asked", [exchange(), exchange(goes="comes"), exchange(None, "gone")])
def test_without_a_ledger_the_tables_tell(database: Database, asked: PartitionExchange) -> None:
    database.as_loader(f"{TABLE}; {COMES}")
    notes = Notes()
    notes.remember({"incoming": "1", "outgoing": "1"})  # of an attempt that came to nothing
    for was_done in (False, True):
        assert switch(database, asked, notes=notes, ledger_schema=None).was_done == was_done
        shown = database.rows(SHOWN)
        assert shown == (SWITCHED if asked.incoming else OLD_ROWS[1:])
    assert len(notes.kept) == 2
