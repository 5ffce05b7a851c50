"""The PostgreSQL target against servers of every version: what each switch keeps, and what is left of runs that die.

The rows come by INSERT where the core would COPY them: here only the statements around them matter.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from headrace import core
from headrace.errors import AccountsError, HeadraceError, LedgerError, TargetBusyError, TargetError
from headrace.model import DataType, LoadOptions, PostgresConnection, RejectLimits
from headrace.model.conninfo import ConnectionParameters
from headrace.planning import (
    WHOLE_TABLE,
    CommittedSlice,
    DataFlowPlan,
    OutputColumn,
    Partition,
    Partitioning,
    RangeRule,
    SourceSnapshot,
    StagingTable,
)
from headrace.planning.memory import MemorySplit
from headrace.targets import OpenOptions, RunRecord
from headrace.targets.base import TaskProgress
from headrace.targets.postgres.names import literal
from headrace.targets.postgres.sessions import Connect
from headrace.targets.postgres.sweep import if_dead
from headrace.targets.postgres.target import PostgresTarget
from tests.integration.unit_flow import UnitFlow, text_hash
from tests.patience import HANG_SECONDS
from tests.servers.cluster import HOST, LOADER, PASSWORD, Cluster, Database, identifier

ID = OutputColumn("id", "id", DataType("int64"), False)
NOTE = OutputColumn("note", "note", DataType("string"), True)
Rows = Mapping[int, Sequence[str]]
ROWS: Rows = {1: ["1, 'a'", "2, NULL"], 2: ["3, 'c'"]}


@pytest.fixture
def database(postgres_versions: Cluster) -> Iterator[Database]:
    with postgres_versions.database() as database:
        yield database


def plan(switch: str, target: str = "replace", rows: Rows = ROWS, **members: Any) -> DataFlowPlan:
    table = members.pop("table", "orders")
    whole = (StagingTable(WHOLE_TABLE, table, tuple(rows), members.pop("owned", False)),)
    staging, column = members.pop("staging", whole), members.pop("partition_column", None)
    parts = tuple(Partition(part.partition, part.table, tens(part)) for part in staging if column)
    slices = [{"number": number, "file": 0, "begin_byte": 0, "end_byte": 1} for number in rows]
    return DataFlowPlan(
        task="load",
        connection="warehouse",
        schema=members.pop("schema", "public"),
        table=table,
        target=target,
        load="single",
        switch=switch,  # type: ignore[arg-type]
        partitioning=Partitioning("range", column, column, ID.type, "home", parts) if column else None,
        staging=staging,
        options=members.pop("options", LoadOptions()),
        streams=2,
        source=SourceSnapshot("orders", [{"path": "/orders.tbl"}], slices),
        layout={},
        columns=members.pop("columns", (ID, NOTE)),
        steps=(),
        notes=(),
        memory=MemorySplit(0, 0, 0, 0, 0, 0, 0),
        sink_kind="postgres",
        rejects=RejectLimits(),
        file_stem="orders",
    )


class InsertingFlow(UnitFlow):
    """The rows of each slice go into the one table that has it."""

    def __init__(
        self,
        sink: Mapping[str, Any],
        rows: Rows,
        before_switch: Callable[[], object] = lambda: None,
        committed: Collection[int] = (),
    ) -> None:
        super().__init__(sink, before_switch, committed)
        self._rows = rows
        self.pending: list[core.PostgresConnection] = []

    def rows_out(self) -> Mapping[int, int]:
        return {number: len(rows) for number, rows in self._rows.items()}

    def unit(self, table: Mapping[str, Any], slices: Sequence[int]) -> None:
        connection = core.PostgresConnection(self._sink["connection"])
        connection.execute(table["begin"])
        self.insert(connection, table, [row for number in slices for row in self._rows[number]])
        if self._sink["commit_slices"]:
            self.commit_rows(connection, table, {number: len(self._rows[number]) for number in slices})
        if self._sink["commit"] == "together":
            self.pending.append(connection)
            return
        connection.execute("COMMIT")
        connection.close()

    def commit(self) -> None:
        for connection in self.pending:
            connection.execute("COMMIT")
            connection.close()


def record(run_id: str) -> RunRecord:
    return RunRecord(run_id, f"package of {run_id}", "hash", "1", "host", 7, datetime.now(UTC))


class Run:
    """One run of one task, up to wherever a test stops it."""

    def __init__(
        self,
        database: Database,
        role: str | None = None,
        connect: Connect = core.PostgresConnection,
        before: Sequence[tuple[str, int]] = (),
        **members: Any,
    ) -> None:
        parameters = ConnectionParameters(
            hosts=(*before, (str(database.cluster.sockets), database.cluster.port)),
            database=database.name,
            user=role or database.role,
            sslmode="disable",
        )
        self.run_id = f"20261120-101530-{os.urandom(3).hex()}"
        options = OpenOptions(0, 2, None, False, lambda text: None, lambda: False)
        model = PostgresConnection("warehouse", parameters, **{"lock_timeout_seconds": 1, **members})
        self.target = PostgresTarget(model, options, connect)

    def begin(self) -> None:
        self.lost = self.target.begin_run(record(self.run_id))

    def load(self, planned: DataFlowPlan, rows: Rows = ROWS, **members: Any) -> tuple[str, ...]:
        """The whole of it; the warnings."""
        with self.target:
            self.begin()
            self.target.record_slices(self.run_id, planned)
            flow = InsertingFlow(self.target.sink_spec(self.run_id, planned), rows, **members)
            times = self.target.load(self.run_id, planned, flow, flow.settle)
            self.target.end_run(self.run_id, "success", None)
            return times.warnings

    def die(self, planned: DataFlowPlan, rows: Rows, committed: Sequence[int]) -> InsertingFlow:
        """Loads some slices, then the control connection goes."""
        self.begin()
        self.target.record_slices(self.run_id, planned)
        sink = self.sink = self.target.sink_spec(self.run_id, planned)
        self.target._staging[planned.task].make_shared(self.target._control)
        sink["tables"][0]["slices"] = list(committed)
        flow = InsertingFlow(sink, {number: rows[number] for number in committed})
        flow.start()
        self.target.close()
        return flow


def load_rest(target: PostgresTarget, run_id: str, planned: DataFlowPlan, rows: Rows = ROWS) -> None:
    """What an earlier attempt has left; after `resume_run`."""
    committed = target.task_progress(run_id, planned.task).slices
    rest = planned.continued(committed)
    flow = InsertingFlow(target.sink_spec(run_id, rest), rows, committed=set(committed))
    target.load(run_id, rest, flow, flow.settle)


def content(database: Database, table: str = "orders") -> tuple[str | None, ...]:
    [row] = database.rows(f"SELECT count(*), sum(id) FROM {table}")
    return row


def left(database: Database) -> list[tuple[str | None, ...]]:
    """Hidden tables, indexes and sequences that are still there."""
    return database.rows(
        "SELECT relname FROM pg_class WHERE relnamespace = to_regnamespace('headrace') AND relname ~ '^20' ORDER BY 1"
    )


# --- what is kept -----------------------------------------------------------------------------------------------------

HOSTILE = ('Ma"rt x', 'T\'s "q" ' + "é" * 27)
DESCRIPTION = """
SELECT 'column', a.attname, format_type(atttypid, atttypmod), concat_ws(' ', attnotnull, attidentity, attgenerated,
  attstorage, attcompression, attcollation), pg_get_expr(adbin, adrelid), col_description(attrelid, attnum),
  attacl::text
FROM pg_attribute a LEFT JOIN pg_attrdef ON adrelid = attrelid AND adnum = attnum
WHERE attrelid = {table} AND attnum > 0 AND NOT attisdropped
UNION ALL SELECT 'table', relname, relowner::regrole::text, relacl::text, reloptions::text, obj_description(oid), NULL
FROM pg_class WHERE oid = {table}
UNION ALL SELECT 'index', c.relname, pg_get_indexdef(c.oid), indisprimary::text, indisvalid::text, NULL, NULL
FROM pg_index JOIN pg_class c ON c.oid = indexrelid WHERE indrelid = {table}
UNION ALL SELECT 'constraint', conname, contype::text, pg_get_constraintdef(oid), convalidated::text,
  condeferrable::text, obj_description(oid) FROM pg_constraint WHERE conrelid = {table}
UNION ALL SELECT 'sequence', s.oid::regclass::text, d.deptype::text, d.refobjsubid::text,
  relowner::regrole::text, NULL, NULL
FROM pg_depend d JOIN pg_class s ON s.oid = objid AND relkind = 'S' WHERE refobjid = {table}
ORDER BY 1, 2
"""
CREATE = """
CREATE SCHEMA "Ma""rt x";
CREATE TABLE {table} (
  "Id " int GENERATED BY DEFAULT AS IDENTITY (START 100 INCREMENT 10) PRIMARY KEY, number serial,
  "X" int CONSTRAINT "chk ""x"" y" CHECK ("X" > 0) DEFAULT 3, note text COMPRESSION pglz COLLATE "C",
  twice int GENERATED ALWAYS AS ("X" * 2) STORED, filled int NOT NULL DEFAULT 5,
  UNIQUE ("X", note) DEFERRABLE INITIALLY DEFERRED
) WITH (fillfactor = 70, autovacuum_enabled = false);
ALTER TABLE {table} ALTER note SET STORAGE EXTERNAL;
CREATE INDEX "I dx" ON {table} (lower(note) text_pattern_ops DESC, "X") INCLUDE (filled)
  WITH (fillfactor = 50) WHERE "X" > 1;
CREATE UNIQUE INDEX one_of_a_kind ON {table} (number) NULLS NOT DISTINCT;
COMMENT ON TABLE {table} IS 'a ''comment''';
COMMENT ON COLUMN {table}."X" IS 'of a column';
COMMENT ON CONSTRAINT "chk ""x"" y" ON {table} IS 'of a constraint';
GRANT SELECT ON {table} TO pg_monitor WITH GRANT OPTION;
GRANT INSERT ("X"), UPDATE ("Id ") ON {table} TO PUBLIC;
REVOKE DELETE ON {table} FROM loader;
INSERT INTO {table} ("X", note) VALUES (1, 'old'), (2, 'old')
"""


@pytest.mark.parametrize("options", [LoadOptions(), LoadOptions(indexes="before"), LoadOptions(lock=True)])
@pytest.mark.parametrize("owned", [True, False])
def test_rename_keeps_everything(database: Database, options: LoadOptions, owned: bool) -> None:
    schema, name = HOSTILE
    table = f"{identifier(schema)}.{identifier(name)}"
    description = DESCRIPTION.format(table=f"{literal(table)}::regclass")
    database.as_loader(CREATE.format(table=table))
    before = database.rows(description)
    columns = (OutputColumn("x", "X", DataType("int32"), True), replace(NOTE, source="n"))
    rows = {1: ["7, 'x'", "8, 'y'"], 2: ["9, NULL"]}
    run = Run(database)
    found = run.target.catalog(schema, name)
    assert found is not None and found.prevents_rename == ()
    planned = plan("rename", rows=rows, schema=schema, table=name, columns=columns, owned=owned, options=options)
    assert run.load(planned, rows) == ()
    assert database.rows(description) == before
    # The identity goes on where it was.
    assert database.rows(f'SELECT sum("Id "), sum(number), sum(twice), sum(filled) FROM {table}') == [
        (str(120 + 130 + 140), str(3 + 4 + 5), "48", "15")
    ]
    assert left(database) == []


def test_unchecked_constraints_are_kept_as_not_valid(database: Database) -> None:
    database.as_loader("CREATE TABLE orders (id bigint NOT NULL, note text CHECK (note <> 'a'))")
    Run(database).load(plan("rename", options=LoadOptions(check_constraints=False)))
    assert database.rows("SELECT conname, convalidated FROM pg_constraint WHERE conname ~ '^orders.*check'") == [
        ("orders_note_check", "f")
    ]
    assert content(database) == ("3", "6")


HANGING = {
    "view early": "CREATE VIEW early AS SELECT id FROM orders",
    "materialized view late": "CREATE MATERIALIZED VIEW late AS SELECT id FROM orders",
    "trigger audit": "CREATE TRIGGER audit BEFORE INSERT ON orders FOR EACH ROW EXECUTE FUNCTION nothing()",
    "a rule on orders": "CREATE RULE quiet AS ON DELETE TO orders DO INSTEAD NOTHING",
    "policy own on table orders": "CREATE POLICY own ON orders",
    "row security": "ALTER TABLE orders ENABLE ROW LEVEL SECURITY",
    "foreign key orders_id_fkey": "ALTER TABLE orders ADD FOREIGN KEY (id) REFERENCES others",
    "function takes(orders)": "CREATE FUNCTION takes(orders) RETURNS int LANGUAGE sql RETURN 1",
    "column o of table holds": "CREATE TABLE holds (o orders)",
    "inheritance from others": "ALTER TABLE orders INHERIT others",
    "statistics object twins": "CREATE STATISTICS twins ON id, note FROM orders",
    "statistics or other settings of column note": "ALTER TABLE orders ALTER note SET STATISTICS 500",
    "its replica identity": "ALTER TABLE orders REPLICA IDENTITY FULL",
    "its being unlogged or temporary": "ALTER TABLE orders SET UNLOGGED",
    "settings of index orders_pkey": "ALTER TABLE orders ADD PRIMARY KEY (id); CLUSTER orders USING orders_pkey",
}


@pytest.mark.parametrize("name", HANGING)
def test_what_hangs_on_a_table_is_found_and_kept(database: Database, name: str) -> None:
    database.as_loader(
        "CREATE TABLE orders (id bigint NOT NULL, note text);"
        "CREATE TABLE others (id bigint PRIMARY KEY, note text);"
        "INSERT INTO others VALUES (1), (2), (3);"
        "CREATE FUNCTION nothing() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END'"
    )
    database.as_loader(HANGING[name])
    with Run(database).target as target:
        found = target.catalog(None, "orders")
    assert found is not None and name in found.prevents_rename
    # Also when it has appeared since the plan was made.
    [warning] = Run(database).load(plan("rename"))
    assert name in warning
    assert content(database, "ONLY orders") == ("3", "6")
    assert left(database) == []


# --- the other switches -----------------------------------------------------------------------------------------------


def partitions(first: int, numbers: Sequence[int]) -> tuple[StagingTable, ...]:
    return tuple(
        StagingTable(str(number), f"orders_{number}", (slice_,), True) for slice_, number in enumerate(numbers, first)
    )


def tens(part: StagingTable) -> RangeRule:
    number = int(part.partition)
    return RangeRule(str(number * 10), str(number * 10 + 10))


def test_partitions(database: Database) -> None:
    rows = {1: ["10, 'a'", "11, 'b'"], 2: ["20, 'c'"]}
    loads: dict[str, Any] = {"rows": rows, "partition_column": "id", "staging": partitions(1, [1, 2])}
    Run(database).load(plan("attach", "create", **loads), rows)
    database.as_loader("ALTER TABLE orders ADD PRIMARY KEY (id); CREATE INDEX by_note ON orders (note)")
    Run(database).load(plan("attach", "replace", **loads), rows)
    more = {1: ["30, 'd'"]}
    Run(database).load(plan("attach", "append", rows=more, partition_column="id", staging=partitions(1, [3])), more)
    assert content(database) == ("4", "71")
    [indexes] = database.rows(
        "SELECT count(*), bool_and(indisvalid) FROM pg_index WHERE indrelid::regclass::text ~ '^orders_[123]$'"
    )
    assert indexes == ("6", "t")
    assert database.rows("SELECT 1 FROM pg_constraint WHERE conname ~ '^headrace'") == []
    assert left(database) == []


def test_views(database: Database) -> None:
    def members(*numbers: int) -> tuple[StagingTable, ...]:
        return tuple(
            StagingTable(str(number), f"orders_{number}", (slice_,), True) for slice_, number in enumerate(numbers, 1)
        )

    for target, numbers, expected in (("create", (1, 2), 6), ("replace", (1, 2), 6), ("append", (3, 4), 12)):
        Run(database).load(plan("view", target, staging=members(*numbers)))
        assert content(database)[1] == str(expected)
    with Run(database).target as run:
        found = run.catalog(None, "orders")
    assert found is not None and found.view_tables == ("orders_1", "orders_2", "orders_3", "orders_4")


def test_new_tables_get_the_schemas_default_grants(database: Database) -> None:
    database.as_loader("ALTER DEFAULT PRIVILEGES IN SCHEMA public GRANT SELECT ON TABLES TO pg_monitor")
    Run(database).load(plan("schema", "create"))
    assert database.rows("SELECT has_table_privilege('pg_monitor', 'orders', 'SELECT')") == [("t",)]


def test_keys_of_partitions_are_known(database: Database) -> None:
    """Plain indexes make nobody wait, and are left out."""
    database.as_loader(
        "CREATE TABLE orders (id bigint, note text) PARTITION BY RANGE (id);"
        "CREATE TABLE orders_1 PARTITION OF orders FOR VALUES FROM (1) TO (9);"
        "CREATE INDEX ON orders (note); CREATE UNIQUE INDEX only_here ON orders_1 (note);"
        "CREATE TABLE visits (id bigint PRIMARY KEY, at int4range, EXCLUDE USING gist (at WITH &&))"
    )
    with Run(database).target as target:
        found = [target.catalog(None, name) for name in ("orders", "visits")]
    assert [table and table.indexes for table in found] == [
        ("index only_here",),
        ("PRIMARY KEY (id)", "EXCLUDE USING gist (at WITH &&)"),
    ]


def test_what_is_reported_as_committed_survives_a_crash(database: Database) -> None:
    database.psql(f"ALTER ROLE {LOADER} IN DATABASE {database.name} SET synchronous_commit = off")
    database.as_loader("CREATE TABLE orders (id bigint, note text)")
    found = []
    for switch, target in (("none", "append"), ("rename", "replace")):
        run = Run(database)
        run.die(plan(switch, target), ROWS, [])
        connection = writer(run)
        found += connection.query("SHOW synchronous_commit").rows
        connection.close()
    assert found == [["on"], ["off"]]  # of a unit out of sight only the switch matters, whose log comes behind it


# --- what is refused before the first row -----------------------------------------------------------------------------


def refused(database: Database, planned: DataFlowPlan, rows: Rows = ROWS) -> TargetError:
    """The error; nothing was made."""
    with pytest.raises(TargetError) as failure:
        Run(database).load(planned, rows)
    assert left(database) == []
    return failure.value


@pytest.mark.parametrize("published", ["ALL TABLES", "TABLES IN SCHEMA headrace"])
def test_hidden_tables_are_not_published(database: Database, published: str) -> None:
    database.as_loader("CREATE TABLE orders (id bigint, note text); CREATE SCHEMA headrace")
    database.psql(f"CREATE PUBLICATION everything FOR {published}")
    assert "publication everything" in str(refused(database, plan("rename")).found)
    Run(database).load(plan("none", "append"))
    assert content(database) == ("3", "6")


def test_subscribers_are_thought_of(database: Database) -> None:
    database.as_loader("CREATE SCHEMA mart")
    database.psql("CREATE PUBLICATION mart FOR TABLES IN SCHEMA mart")
    for switch, target in (("schema", "create"), ("rename", "replace")):
        [warning] = Run(database).load(plan(switch, target, schema="mart"))
        assert "REFRESH PUBLICATION" in warning


def test_more_partitions_than_locks_are_refused(database: Database) -> None:
    [(places,)] = database.rows(
        "SELECT current_setting('max_locks_per_transaction')::int * (current_setting('max_connections')::int "
        "+ current_setting('max_prepared_transactions')::int)"
    )
    staging = partitions(1, range(1, int(str(places)) // 9 + 2))
    planned = plan("attach", "create", rows={}, partition_column="id", staging=staging)
    assert f"room for {places} locks" in str(refused(database, planned, {}).found)


def test_rows_of_a_default_partition_are_in_the_way(database: Database) -> None:
    database.as_loader(
        "CREATE TABLE orders (id bigint NOT NULL, note text) PARTITION BY RANGE (id);"
        "CREATE TABLE rest PARTITION OF orders DEFAULT; INSERT INTO orders VALUES (500)"
    )
    loads: dict[str, Any] = {"rows": {1: ["10, 'a'"]}, "partition_column": "id", "staging": partitions(1, [1])}
    planned = plan("attach", "append", **loads)
    database.as_loader("INSERT INTO orders VALUES (19)")
    assert refused(database, planned, loads["rows"]).found == "rows in public.rest for orders_1"
    database.as_loader("DELETE FROM rest WHERE id = 19")
    Run(database).load(planned, loads["rows"])
    assert content(database) == ("2", "510")


def test_a_database_without_an_encoding_is_refused(postgres_versions: Cluster) -> None:
    with postgres_versions.database(options="ENCODING 'SQL_ASCII' TEMPLATE template0") as database:
        assert refused(database, plan("schema", "create")).found == "encoding SQL_ASCII"


def test_all_sessions_go_to_the_host_that_answered(database: Database) -> None:
    run = Run(database, before=[("/nowhere", 5432), ("127.0.0.1", 1)])
    with run.target:
        run.begin()
        sink = run.target.sink_spec(run.run_id, plan("schema", "create"))
    reached = {"host": str(database.cluster.sockets), "port": database.cluster.port, "address": None}
    assert sink["connection"]["hosts"] == [reached]
    Run(database, before=[("/nowhere", 5432)]).load(plan("schema", "create"))
    assert content(database) == ("3", "6")


def over_tcp(database: Database, host: str = HOST, options: str | None = None) -> PostgresTarget:
    parameters = ConnectionParameters(
        hosts=((host, database.cluster.port),),
        database=database.name,
        user=LOADER,
        password=PASSWORD,
        sslmode="disable",
        options=options,
    )
    opened = OpenOptions(0, 2, None, False, lambda text: None, lambda: False)
    model = PostgresConnection("warehouse", parameters, lock_timeout_seconds=1)
    return PostgresTarget(model, opened, core.PostgresConnection)


def test_all_sessions_go_to_the_address_that_answered(database: Database) -> None:
    """A name may have several; here the other one of `localhost`, if there is one, does not answer."""
    with over_tcp(database, "localhost") as target:
        target.begin_run(record("20261120-101530-abcdef"))
        spec = target.sink_spec("20261120-101530-abcdef", plan("schema", "create"))["connection"]
    address = f"{HOST}:{database.cluster.port}"
    assert spec["hosts"] == [{"host": "localhost", "port": database.cluster.port, "address": address}]
    for host in ("localhost", "host.invalid"):
        with core.PostgresConnection({**spec, "hosts": [{**spec["hosts"][0], "host": host}]}) as session:
            assert session.address() == address


KEEPALIVES = (
    "tcp_keepalives_idle",
    "tcp_keepalives_interval",
    "tcp_keepalives_count",
    "tcp_user_timeout",
    "client_min_messages",
)


def test_sessions_of_dead_clients_end_soon(database: Database) -> None:
    """The server asks whether the client is there; what the user or the role has set stays."""
    database.psql(f"ALTER ROLE {LOADER} IN DATABASE {database.name} SET tcp_keepalives_interval = 7")
    with over_tcp(database, options="-c tcp_keepalives_count=9") as target:
        target.begin_run(record("20261120-101530-abcdef"))
        spec = target.sink_spec("20261120-101530-abcdef", plan("schema", "create"))["connection"]
        with core.PostgresConnection(spec) as writer_session:
            for session in (writer_session, target._control):
                found = [session.query(f"SHOW {name}").rows[0][0] for name in KEEPALIVES]
                assert found == ["60", "7", "9", "120000", "warning"]


class Pooled:
    """A pooler in transaction mode: another session behind each lock that is taken."""

    def __init__(self, spec: Mapping[str, Any], promised: int | None = None) -> None:
        self._sessions = [core.PostgresConnection(spec) for _ in range(2)]
        self._promised = promised
        self._next = 0

    def address(self) -> str | None:
        return self._sessions[0].address()

    def process_id(self) -> int:
        return self._promised or self._sessions[self._next].process_id()

    def query(self, text: str, parameters: Sequence[str | None] = ()) -> Any:
        found = self._sessions[self._next].query(text, parameters)
        self._next = ("pg_try_advisory_lock" in text) ^ self._next
        return found

    def execute(self, text: str) -> None:
        self._sessions[self._next].execute(text)

    def parameter(self, name: str) -> str | None:
        return self._sessions[0].parameter(name)

    def cancel(self) -> None:
        raise AssertionError("nothing is cancelled")

    def close(self) -> None:
        for session in self._sessions:
            session.close()


@pytest.mark.parametrize("promised", [None, 4711])
def test_a_pooler_that_changes_sessions_is_refused(database: Database, promised: int | None) -> None:
    run = Run(database, connect=lambda spec: Pooled(spec, promised))
    with run.target, pytest.raises(TargetError, match="a pooler"):
        run.begin()


@pytest.mark.parametrize("own", ["", " WITH (autovacuum_enabled = false, fillfactor = 90)"])
def test_vacuum_stays_away_from_hidden_tables(database: Database, own: str) -> None:
    """And comes back to what they become, unless the table says otherwise itself."""

    def options(schema: str, pattern: str) -> list[tuple[str | None, ...]]:
        return database.rows(
            f"SELECT reloptions FROM pg_class WHERE relkind = 'r' AND relnamespace = '{schema}'::regnamespace "
            f"AND relname ~ '{pattern}'"
        )

    database.as_loader(f"CREATE TABLE orders (id bigint, note text){own}")
    before = options("public", "^orders")
    hidden: list[tuple[str | None, ...]] = []
    Run(database).load(plan("rename"), before_switch=lambda: hidden.extend(options("headrace", "^20")))
    assert "autovacuum_enabled=" in str(hidden)
    assert options("public", "^orders") == before
    database.as_loader("DROP TABLE orders")
    rows = {1: ["10, 'a'", "11, 'b'"], 2: ["20, 'c'"]}
    loads: dict[str, Any] = {"rows": rows, "partition_column": "id", "staging": partitions(1, [1, 2])}
    Run(database).load(plan("attach", "create", **loads), rows)
    assert options("public", "^orders") == [(None,), (None,)]


# --- changes while the rows travel ------------------------------------------------------------------------------------

CHANGES = {
    "column late": "ALTER TABLE orders ADD late int",
    "its indexes": "CREATE INDEX ON orders (note)",
    "foreign keys of visits": "CREATE TABLE visits (id bigint REFERENCES orders)",
    "is gone": "DROP TABLE orders",
}


@pytest.mark.parametrize("found", CHANGES)
def test_a_table_that_changes_is_not_replaced(database: Database, found: str) -> None:
    database.as_loader("CREATE TABLE orders (id bigint PRIMARY KEY, note text); INSERT INTO orders VALUES (-1)")
    with pytest.raises(TargetError) as failure:
        Run(database).load(plan("rename"), before_switch=lambda: database.as_loader(CHANGES[found]))
    assert found in f"{failure.value.what} {failure.value.found}"
    assert database.rows("SELECT to_regclass('orders')") == [(None,)] or content(database) == ("1", "-1")
    assert left(database) == []


READING = {
    "a reader": "BEGIN; DO 'BEGIN PERFORM count(*) FROM orders; END'",
    "a writer": "BEGIN; INSERT INTO orders VALUES (-1)",
}


@pytest.mark.parametrize("switch", ["rename", "move"])
@pytest.mark.parametrize("who", READING)
def test_a_table_in_use_names_who_uses_it(database: Database, switch: str, who: str) -> None:
    """And what is committed is kept: `resume` has only the switch left."""
    database.as_loader("CREATE TABLE orders (id bigint PRIMARY KEY, note text); INSERT INTO orders VALUES (9)")
    planned, run = plan(switch), Run(database)
    with database.session(READING[who]):
        with run.target, pytest.raises(TargetBusyError, match="is in use") as failure:
            run.begin()
            run.target.record_slices(run.run_id, planned)
            flow = InsertingFlow(run.target.sink_spec(run.run_id, planned), ROWS)
            run.target.load(run.run_id, planned, flow, flow.settle)
        assert "(psql) of user postgres" in str(failure.value.found)
        assert f"headrace resume {run.run_id}" in str(failure.value.hint)
        assert database.rows("SELECT count(*) FROM orders") == [("1",)]  # nobody waits behind a request
    with Run(database).target as target:
        target.resume_run(record(run.run_id))
        load_rest(target, run.run_id, planned)
    assert content(database) == ("3", "6")


def test_a_switch_waits_for_readers(database: Database) -> None:
    """As long as the connection says, in steps short enough that others get in between."""
    database.as_loader("CREATE TABLE orders (id bigint PRIMARY KEY, note text)")
    run = Run(database, lock_timeout_seconds=20)
    with ExitStack() as stack:
        end = threading.Timer(3, stack.close)

        def read() -> None:
            stack.enter_context(database.session(READING["a reader"]))
            end.start()

        assert run.load(plan("rename"), before_switch=read) == ()
        end.join()
    assert content(database) == ("3", "6")


# --- the fence --------------------------------------------------------------------------------------------------------


def writer(run: Run) -> core.PostgresConnection:
    """A writer that has done its work in a transaction, and waits to commit it."""
    connection = core.PostgresConnection({**run.sink["connection"], "application_name": "anything"})
    connection.execute(run.sink["tables"][0]["begin"])
    return connection


def is_over(connection: core.PostgresConnection) -> bool:
    try:
        connection.execute("SELECT 1")
    except HeadraceError:
        return True
    return False


TAKEN_OVER = {"attempt": "attempt = attempt + 1", "lost": "status = 'lost'"}


@pytest.mark.parametrize("change", TAKEN_OVER)
@pytest.mark.parametrize("before", ["the last unit", "the switch"])
def test_the_fence_refuses_a_run_that_was_taken_over(database: Database, change: str, before: str) -> None:
    take_over = f"UPDATE headrace.run SET {TAKEN_OVER[change]}"
    run = Run(database)
    with run.target:
        run.begin()
        planned = plan("schema", "create")
        run.target.record_slices(run.run_id, planned)
        if before == "the last unit":
            database.rows(take_over + " RETURNING 1")
            with pytest.raises(AssertionError, match="INSERT 0 0"):
                flow = InsertingFlow(run.target.sink_spec(run.run_id, planned), ROWS)
                run.target.load(run.run_id, planned, flow, flow.settle)
        else:
            flow = InsertingFlow(
                run.target.sink_spec(run.run_id, planned), ROWS, lambda: database.rows(take_over + " RETURNING 1")
            )
            with pytest.raises(LedgerError, match="taken over by another session or declared dead"):
                run.target.load(run.run_id, planned, flow, flow.settle)
    assert database.rows("SELECT to_regclass('orders')") == [(None,)]
    assert database.rows('SELECT 1 FROM headrace."commit" WHERE slice = 0') == []


def test_every_transaction_has_its_level_and_may_write(database: Database) -> None:
    """Whatever the defaults of the user are."""
    database.psql(f"ALTER ROLE {LOADER} IN DATABASE {database.name} SET default_transaction_isolation = 'serializable'")
    database.psql(f"ALTER ROLE {LOADER} IN DATABASE {database.name} SET default_transaction_read_only = on")
    run = Run(database)
    with run.target:
        run.begin()
        planned = plan("schema", "create")
        sink = run.target.sink_spec(run.run_id, planned)
        connection = core.PostgresConnection(sink["connection"])
        connection.execute(sink["tables"][0]["begin"])
        for session in (run.target._control, connection):
            assert session.query("SHOW transaction_isolation").rows == [["read committed"]]
            assert session.query("SHOW transaction_read_only").rows == [["off"]]
        connection.close()
    Run(database).load(plan("schema", "create"))
    assert content(database) == ("3", "6")


@pytest.mark.parametrize("afterwards", ["run", "resume"])
def test_writers_are_ended_before_anything_of_their_run_is_touched(database: Database, afterwards: str) -> None:
    """They are found by their lock: a session of the same name is left alone."""
    database.as_loader("CREATE TABLE orders (id bigint PRIMARY KEY, note text)")
    dead = Run(database)
    dead.die(plan("rename"), ROWS, [1])
    zombie, bystander = writer(dead), core.PostgresConnection(dead.target._model.to_core(f"headrace {dead.run_id} w1"))
    other = Run(database)
    with other.target:
        if afterwards == "run":
            other.begin()
            assert [lost.run_id for lost in other.lost] == [dead.run_id]
        else:
            other.target.resume_run(record(dead.run_id))
    assert (is_over(zombie), is_over(bystander)) == (True, False)
    bystander.close()


@pytest.mark.parametrize("owned", [True, False], ids=["owned", "shared"])
def test_a_writer_that_comes_back_into_an_adopted_table_adds_nothing(database: Database, owned: bool) -> None:
    """It was away while its run was taken over, so nobody has ended its session: it logs in only now."""
    dead = Run(database)
    planned = plan("schema", "create", owned=owned, slices=(1, 2))
    dead.die(planned, ROWS, [1])
    with Run(database).target as target:
        target.resume_run(record(dead.run_id))
        table = dead.sink["tables"][0]
        zombie = core.PostgresConnection(dead.sink["connection"])
        if owned:
            with pytest.raises(TargetError) as failure:
                zombie.execute(table["begin"])
            assert failure.value.server is not None and failure.value.server["sqlstate"] == "42P07"  # exists already
        else:
            zombie.execute(table["begin"])
            into = table["copy"].removeprefix("COPY ").split(" FROM STDIN")[0]
            zombie.execute(f"INSERT INTO {into} VALUES (4711, 'of the first attempt')")
            unit = [table["partition"], "{2}", "{1}", *["{0}"] * 5, "{NULL}"]
            assert zombie.query(dead.sink["commit_slices"], unit).tag == "INSERT 0 0"
        zombie.close()
        load_rest(target, dead.run_id, planned)
    assert content(database) == ("3", "6")
    assert left(database) == []


def test_a_writer_that_waits_at_the_fence_does_not_hold_up_a_resume(database: Database) -> None:
    """It has locked the run's row. Whoever resumes ends writers again and again instead of waiting for the row."""
    dead = Run(database)
    dead.die(plan("schema", "create"), ROWS, [1])
    lock = f"BEGIN; DO 'BEGIN PERFORM 1 FROM headrace.run WHERE run_id = ''{dead.run_id}'' FOR SHARE; END'"
    seconds = time.monotonic()
    with Run(database).target as target:
        with database.session(lock), pytest.raises(HeadraceError) as failure:
            target.resume_run(record(dead.run_id))
        assert failure.value.retryable
        assert time.monotonic() - seconds < HANG_SECONDS
    with Run(database).target as target:
        target.resume_run(record(dead.run_id))


def test_writers_that_may_not_be_ended_are_named(database: Database) -> None:
    role = f"guest_{os.urandom(4).hex()}"
    database.psql(f"CREATE ROLE {role} LOGIN")
    try:
        dead = Run(database)
        dead.die(plan("schema", "create"), ROWS, [1])
        database.as_loader(f"GRANT USAGE, CREATE ON SCHEMA headrace TO {role}")
        database.as_loader(f"GRANT ALL ON ALL TABLES IN SCHEMA headrace TO {role}")
        zombie = writer(dead)
        with Run(database, role).target as target, pytest.raises(TargetBusyError) as failure:
            target.resume_run(record(dead.run_id))
        assert f"of user {LOADER}" in str(failure.value.found)
        assert not is_over(zombie)
        # A new run leaves it alone, and to somebody who may.
        other = Run(database, role)
        with other.target:
            other.begin()
        assert other.lost == [] and not is_over(zombie)
        owner = Run(database)
        with owner.target:
            owner.begin()
        assert dead.run_id in [lost.run_id for lost in owner.lost]
        zombie.close()
    finally:
        database.psql(f"DROP OWNED BY {role}; DROP ROLE {role}")


# --- runs that die ----------------------------------------------------------------------------------------------------


def test_a_dead_run_is_fenced_and_swept(database: Database) -> None:
    dead = Run(database)
    dead.die(plan("schema", "create"), ROWS, [1])
    zombie = writer(dead)
    other = Run(database)
    with other.target:
        other.begin()
        assert [lost.run_id for lost in other.lost] == [dead.run_id]
    assert len(left(database)) == 1  # for `resume`
    assert is_over(zombie)
    Run(database).load(plan("schema", "create"))
    assert left(database) == []
    assert content(database) == ("3", "6")
    assert database.rows(f"SELECT 1 FROM headrace.commit WHERE run_id = '{dead.run_id}'") == []


def test_a_run_that_ends_well_meanwhile_is_not_unfinished(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    dead = Run(database)
    dead.die(plan("schema", "create"), ROWS, [1])

    @contextmanager
    def ended_now(connection: core.PostgresConnection, run_id: str) -> Iterator[bool]:
        database.psql("UPDATE headrace.run SET status = 'success'")
        with if_dead(connection, run_id) as is_dead:
            yield is_dead

    with Run(database).target as target:
        assert [run.run_id for run in target.unfinished_runs(f"package of {dead.run_id}")] == [dead.run_id]
        monkeypatch.setattr("headrace.targets.postgres.sweep.if_dead", ended_now)
        assert target.unfinished_runs(f"package of {dead.run_id}") == []


@pytest.mark.parametrize("switch", ["rename", "none"])
def test_resume_loads_the_rest(database: Database, switch: str) -> None:
    database.as_loader("CREATE TABLE orders (id bigint PRIMARY KEY, note text)")
    planned = plan(switch, "append" if switch == "none" else "replace")
    dead = Run(database)
    dead.die(planned, ROWS, [1]).commit()
    if switch == "none":
        with pytest.raises(TargetError, match="holds a part") as failure:
            Run(database).load(planned)
        assert f"headrace resume {dead.run_id}" in str(failure.value.hint)
    with Run(database).target as target:
        target.resume_run(record(dead.run_id))
        first = CommittedSlice(len(ROWS[1]), 0, 0, 0, text_hash(1))
        assert target.task_progress(dead.run_id, "load").slices == {1: first}
        load_rest(target, dead.run_id, planned)
        whole = {number: CommittedSlice(len(rows), 0, 0, 0, text_hash(number)) for number, rows in ROWS.items()}
        assert target.task_progress(dead.run_id, "load") == TaskProgress(True, True, whole, begun=True)
        target.end_run(dead.run_id, "success", None)
    assert content(database) == ("3", "6")
    assert left(database) == []


END_CONTROL = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'headrace%control'"


def staged_partitions() -> dict[str, Any]:
    return {"rows": {1: ["10, 'a'"], 2: ["20, 'b'"]}, "partition_column": "id", "staging": partitions(1, [1, 2])}


def test_what_is_committed_is_kept_for_resume(database: Database) -> None:
    """The error can go away. A table without committed rows goes, the other one waits for `resume` or the next run."""
    planned = plan("attach", "create", **staged_partitions())
    rows: Rows = {1: ["10, 'a'"], 2: ["20, 'b'"]}
    run = Run(database)
    with pytest.raises(TargetBusyError) as failure, run.target:
        run.begin()
        run.target.record_slices(run.run_id, planned)
        sink = run.target.sink_spec(run.run_id, planned)
        sink["tables"] = sink["tables"][:1]
        flow = InsertingFlow(sink, rows, lambda: database.rows(END_CONTROL))
        run.target.load(run.run_id, planned, flow, flow.settle)
    assert f"headrace resume {run.run_id}" in str(failure.value.hint)
    assert [str(name)[-2:] for (name,) in left(database)] == ["_1", "_p"]
    with Run(database).target as target:
        target.resume_run(record(run.run_id))
        assert set(target.task_progress(run.run_id, "load").slices) == {1}
        load_rest(target, run.run_id, planned, rows)
    assert content(database) == ("2", "30")
    assert left(database) == []


def test_what_is_kept_is_swept_by_the_next_run(database: Database) -> None:
    planned = plan("schema", "create")
    run = Run(database)
    with pytest.raises(TargetBusyError):
        run.load(planned, before_switch=lambda: database.rows(END_CONTROL))
    assert len(left(database)) == 1
    assert database.rows("SELECT to_regclass('orders')") == [(None,)]
    Run(database).load(planned)
    assert left(database) == []
    assert database.rows(f"SELECT 1 FROM headrace.commit WHERE run_id = '{run.run_id}'") == []


def test_an_error_of_the_rows_keeps_nothing(database: Database) -> None:
    def wrong_accounts() -> None:
        raise AccountsError("one row too few")

    with pytest.raises(AccountsError):
        Run(database).load(plan("schema", "create"), before_switch=wrong_accounts)
    assert left(database) == []


def test_a_load_that_was_resumed_by_another_process_drops_nothing(database: Database) -> None:
    """It comes back when all is done, and finds the lock of the run free."""
    planned, run = plan("schema", "create"), Run(database)

    def resume() -> None:
        database.rows(END_CONTROL)
        with Run(database).target as target:
            target.resume_run(record(run.run_id))
            load_rest(target, run.run_id, planned)
            target.end_run(run.run_id, "success", None)

    with pytest.raises(HeadraceError):
        run.load(planned, before_switch=resume)
    assert content(database) == ("3", "6")
    assert database.rows("SELECT status FROM headrace.run") == [("success",)]
    assert database.rows('SELECT slice FROM headrace."commit" ORDER BY slice') == [("0",), ("1",), ("2",)]


# --- rights -----------------------------------------------------------------------------------------------------------


def test_missing_rights_are_named_before_the_first_row(database: Database) -> None:
    role = f"guest_{os.urandom(4).hex()}"
    database.psql(f"CREATE ROLE {role} LOGIN")
    try:
        database.as_loader("CREATE SCHEMA headrace; CREATE TABLE orders (id bigint NOT NULL, note text)")
        with Run(database, role).target as target:
            with pytest.raises(TargetError, match="may not insert"):
                target.catalog(None, "orders")
            with pytest.raises(TargetError, match="may not create"):
                target.catalog(None, "others")
        database.as_loader(f"GRANT INSERT ON orders TO {role}")
        with Run(database, role).target as target:
            found = target.catalog(None, "orders")
        assert found is not None
        assert found.prevents_replace == ("the missing right to SELECT", "the missing right to TRUNCATE")
        run = Run(database, role)
        with run.target, pytest.raises(LedgerError, match="cannot write the run"):
            run.begin()
        database.as_loader(f"GRANT SELECT, TRUNCATE ON orders TO {role}")
        database.as_loader(f"GRANT USAGE, CREATE ON SCHEMA headrace TO {role}")
        Run(database, role).load(plan("move"))
        assert content(database) == ("3", "6")
    finally:
        database.psql(f"DROP OWNED BY {role}; DROP ROLE {role}")
