"""The switch of partitions against servers of every version: what is kept, who waits, and what is refused."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from headrace.errors import AccountsError, HeadraceError, TargetBusyError, TargetError
from headrace.model import DataType, LoadOptions
from headrace.planning import DataFlowPlan, DefaultRule, HashRule, OutputColumn, Partition, PartitionRule, RangeRule
from tests.integration.partitioned import Placed, PlacingFlow, by_partition, load, partition, partitioned, resume, start
from tests.integration.test_postgres_target import Run, left
from tests.patience import HANG_SECONDS
from tests.servers.cluster import Cluster, Database

TENS = [RangeRule(str(number * 10), str(number * 10 + 10)) for number in range(1, 4)]
PARTS = [partition(number, rule) for number, rule in enumerate(TENS, 1)]
# At home in partition 1 and 2; 21 and 30 are strays, on the exact bounds.
PLACED: Placed = {1: {"1": ["10, 'a'", "19, 'b'"], "2": ["20, 'c'"]}, 2: {"2": ["29, 'd'"], "3": ["30, 'e'"]}}
KEYS = {"orders_1": ["10", "19"], "orders_2": ["20", "29"], "orders_3": ["30"]}


@pytest.fixture
def database(postgres_versions: Cluster) -> Iterator[Database]:
    with postgres_versions.database() as database:
        yield database


def made(database: Database, **members: Any) -> None:
    load(database, partitioned("create", "home", PARTS, **members), PLACED)


def refused(database: Database, planned: Any, placed: Placed = PLACED, **members: Any) -> HeadraceError:
    with pytest.raises(HeadraceError) as failure:
        load(database, planned, placed, **members)
    assert left(database) == []
    return failure.value


# --- what is kept -----------------------------------------------------------------------------------------------------

HANGING = """
ALTER TABLE orders_1 SET (fillfactor = 70, autovacuum_enabled = false);
GRANT SELECT ON orders_1 TO pg_monitor; GRANT UPDATE (note) ON orders_1 TO PUBLIC;
COMMENT ON TABLE orders_1 IS 'of one partition'; COMMENT ON COLUMN orders_1.note IS 'of a column';
ALTER TABLE orders_1 ADD CONSTRAINT own CHECK (id <> 12); ALTER TABLE orders_1 ALTER note SET STORAGE EXTERNAL;
CREATE INDEX only_here ON orders_1 (lower(note));
"""
LOOKS = """
SELECT relname, relacl::text, reloptions::text, obj_description(oid), relowner::regrole::text,
  pg_get_expr(relpartbound, oid) FROM pg_class WHERE oid = 'orders_1'::regclass
UNION ALL SELECT c.relname, pg_get_indexdef(c.oid), indisvalid::text, indisprimary::text,
  (SELECT inhparent::regclass::text FROM pg_inherits WHERE inhrelid = c.oid), NULL
FROM pg_index JOIN pg_class c ON c.oid = indexrelid WHERE indrelid = 'orders_1'::regclass
UNION ALL SELECT conname, pg_get_constraintdef(oid), convalidated::text, contype::text, conislocal::text,
  coninhcount::text FROM pg_constraint WHERE conrelid = 'orders_1'::regclass
UNION ALL SELECT attname, attacl::text, attstorage::text, attnotnull::text, col_description(attrelid, attnum), NULL
FROM pg_attribute WHERE attrelid = 'orders_1'::regclass AND attnum > 0
ORDER BY 1, 2
"""
RELOAD = [partition(1, TENS[0], "exchange")]
NEW: Placed = {1: {"1": ["11, 'x'", "13, 'y'", "14, 'z'"]}}


@pytest.mark.parametrize("way", ["home", "shared", "server"])
@pytest.mark.parametrize("options", [LoadOptions(), LoadOptions(indexes="before"), LoadOptions(lock=True)])
def test_a_partition_that_is_loaded_anew_keeps_what_it_had(database: Database, options: LoadOptions, way: Any) -> None:
    made(database)
    database.as_loader(
        "ALTER TABLE orders ALTER id SET NOT NULL; ALTER TABLE orders ADD PRIMARY KEY (id);"
        "ALTER TABLE orders ADD CHECK (note <> 'q'); CREATE INDEX ON orders (note)"
    )
    database.as_loader(HANGING)
    before = database.rows(LOOKS)
    times = load(database, partitioned("replace", way, RELOAD, slices=1, options=options), NEW)
    assert [(part.name, part.action, part.rows) for part in times.partitions] == [("orders_1", "exchange", 3)]
    assert database.rows(LOOKS) == before
    assert by_partition(database) == {**KEYS, "orders_1": ["11", "13", "14"]}
    assert database.rows("SELECT target FROM headrace.slice ORDER BY 1 DESC LIMIT 1") == [("reload",)]
    assert left(database) == []


FINER = {
    "numeric(12,4)": ("decimal(12,2)", RangeRule("1.01", None), "FROM (1.0050) TO (MAXVALUE)", "1.02"),
    "date": ("date", RangeRule("2024-01-01", None), "FROM ('2024-01-01') TO ('infinity')", "'2024-05-01'"),
}


@pytest.mark.parametrize("stored", FINER)
def test_a_partition_that_is_loaded_anew_keeps_its_bounds(database: Database, stored: str) -> None:
    """Also those that keys of the source cannot reach: rows of others may."""
    kind, rule, bound, key = FINER[stored]
    database.as_loader(
        f"CREATE TABLE orders (id {stored}, note text) PARTITION BY RANGE (id);"
        f"CREATE TABLE orders_1 PARTITION OF orders FOR VALUES {bound}"
    )
    column = OutputColumn("id", "id", DataType.parse(kind), nullable=True)
    planned = partitioned("replace", "home", [partition(1, rule, "exchange")], slices=1, key=column)
    load(database, planned, {1: {"1": [f"{key}, 'n'"]}})
    assert database.rows("SELECT pg_get_expr(relpartbound, oid) FROM pg_class WHERE relname = 'orders_1'") == [
        (f"FOR VALUES {bound}",)
    ]


IN_THE_WAY = {
    "view early": "CREATE VIEW early AS SELECT * FROM orders_1",
    "policy own": "CREATE POLICY own ON orders_1",
    "publication of table orders_1 in publication alone": "CREATE PUBLICATION alone FOR TABLE orders_1",
    "statistics object twins": "CREATE STATISTICS twins ON id, note FROM orders_1",
    "its replica identity": "ALTER TABLE orders_1 REPLICA IDENTITY FULL",
    "its being unlogged": "ALTER TABLE orders_1 SET UNLOGGED",
}


@pytest.mark.parametrize("name", IN_THE_WAY)
@pytest.mark.parametrize("when", ["before", "meanwhile"])
def test_what_would_be_lost_with_a_partition_is_named(database: Database, name: str, when: str) -> None:
    made(database)
    database.psql(f"GRANT CREATE ON DATABASE {database.name} TO loader")
    planned = partitioned("replace", "home", RELOAD, slices=1)
    text = IN_THE_WAY[name]
    if when == "before":
        database.as_loader(text)
        failure = refused(database, planned, NEW)
    else:
        failure = refused(database, planned, NEW, before_switch=lambda: database.as_loader(text))
    assert name in str(failure.found)
    assert by_partition(database) == KEYS


def test_a_rolling_window(database: Database) -> None:
    """The newest one comes, the oldest one goes, in one transaction."""
    made(database)
    newest = [partition(4, RangeRule("40", "50"))]
    planned = partitioned("append", "home", newest, slices=1, drops=("orders_1",))
    load(database, planned, {1: {"4": ["40, 'n'"]}})
    assert by_partition(database) == {"orders_2": KEYS["orders_2"], "orders_3": ["30"], "orders_4": ["40"]}
    assert "no partition orders_1" in str(refused(database, planned, {1: {"4": ["40, 'n'"]}}).found)


def test_tablespaces(database: Database, tmp_path: Any) -> None:
    if database.cluster.version < 15:
        pytest.skip("needs allow_in_place_tablespaces")
    name = f"space_{database.name}"
    database.psql(f"SET allow_in_place_tablespaces = on; CREATE TABLESPACE {name} OWNER loader LOCATION ''")
    try:
        spaces = [replace(part, tablespace=name if part.name == "2" else None) for part in PARTS]
        for target in ("create", "replace"):
            load(database, partitioned(target, "shared", spaces), PLACED)
            found = database.rows(
                "SELECT c.relname, spcname FROM pg_class c LEFT JOIN pg_tablespace t ON t.oid = reltablespace "
                "WHERE relname ~ '^orders_[123]$' ORDER BY 1"
            )
            assert found == [("orders_1", None), ("orders_2", name), ("orders_3", None)]
        database.as_loader("DROP TABLE orders")
    finally:
        database.psql(f"DROP TABLESPACE {name}")


def test_foreign_keys_and_the_primary_key_are_built_before_the_switch(database: Database) -> None:
    """ATTACH finds both: the index is the same one behind it, and no row is looked at again."""
    made(database)
    database.as_loader(
        "CREATE TABLE notes (note text PRIMARY KEY); INSERT INTO notes SELECT note FROM orders;"
        "ALTER TABLE orders ALTER id SET NOT NULL; ALTER TABLE orders ADD PRIMARY KEY (id);"
        "ALTER TABLE orders ADD FOREIGN KEY (note) REFERENCES notes"
    )
    database.psql(f"ALTER DATABASE {database.name} SET log_min_messages = debug1")
    before = len(database.cluster.log_text())
    load(database, partitioned("replace", "home", PARTS), PLACED)
    log = database.cluster.log_text()[before:]
    switch = log[log.rindex("ATTACH PARTITION") :]
    assert "building index" not in switch and "validating foreign key" not in switch
    keys = (
        "SELECT count(*), bool_and(conparentid <> 0), bool_and(convalidated) FROM pg_constraint "
        "WHERE contype = 'f' AND conrelid::regclass::text ~ '^orders_'"
    )
    assert database.rows(keys) == [("3", "t", "t")]
    missing: Placed = {1: {"1": ["10, 'nowhere'"]}, 2: {}}
    failure = refused(database, partitioned("replace", "home", PARTS), missing)
    assert "making foreign key" in failure.what and "nowhere" in str(failure.found)
    assert by_partition(database) == KEYS


def test_indexes_are_called_as_the_server_calls_them(database: Database) -> None:
    """As those of a partition that the server makes itself, also where names are long or taken."""
    made(database)
    note = "note_" + "ö" * 20
    database.as_loader(
        f'ALTER TABLE orders RENAME note TO "{note}"; ALTER TABLE orders ALTER id SET NOT NULL;'
        f'ALTER TABLE orders ADD PRIMARY KEY (id); ALTER TABLE orders ADD UNIQUE ("{note}", id);'
        f'CREATE INDEX ON orders ("{note}", id, "{note}"); CREATE INDEX ON orders (lower("{note}"), (id + 1));'
        f'CREATE INDEX anything ON orders (id) INCLUDE ("{note}"); CREATE INDEX ON orders (id);'
        "CREATE TABLE orders_4_id_idx (id int); CREATE TABLE orders_9_id_idx (id int)"
    )
    named = "SELECT indexrelid::regclass FROM pg_index WHERE indrelid = '{}'::regclass"
    columns = OutputColumn("note", note, DataType("string"), nullable=True)
    planned = partitioned("append", "home", [partition(4, RangeRule("40", "50"))], slices=1)
    planned = replace(planned, columns=(planned.columns[0], columns))
    load(database, planned, {1: {"4": ["40, 'n'"]}})
    database.as_loader("CREATE TABLE orders_9 PARTITION OF orders FOR VALUES FROM (100) TO (110)")
    ours, theirs = (
        sorted(str(index).replace(name, "T") for (index,) in database.rows(named.format(name)))
        for name in ("orders_4", "orders_9")
    )
    assert (len(ours), ours) == (6, theirs)


# --- who waits --------------------------------------------------------------------------------------------------------

READING = "BEGIN; DO 'BEGIN PERFORM count(*) FROM orders; END'"


def test_readers_go_on_while_partitions_are_attached(database: Database) -> None:
    """And nobody waits behind them: one in the middle of its transaction does not hold up the switch either."""
    made(database)
    newest = [partition(number, RangeRule(str(number * 10), str(number * 10 + 10))) for number in (4, 5)]
    placed: Placed = {1: {"4": ["40, 'n'"]}, 2: {"5": ["50, 'm'"], "4": ["41, 's'"]}}
    with database.session(READING):
        load(database, partitioned("append", "home", newest), placed)
    assert by_partition(database) == {**KEYS, "orders_4": ["40", "41"], "orders_5": ["50"]}


def test_nobody_reads_while_rows_are_moved_and_partitions_attached(database: Database) -> None:
    """A query that was planned before would see the moved rows, but not the new partitions."""
    made(database)
    both = [replace(PARTS[0], action="insert"), partition(4, RangeRule("40", "50"))]
    placed: Placed = {1: {"1": ["10, 'x'"]}, 2: {"4": ["40, 'z'"]}}
    with database.session(READING), pytest.raises(TargetBusyError, match="is in use"):
        load(database, partitioned("append", "shared", both), placed)
    assert by_partition(database) == KEYS
    with database.session(READING):  # of one kind alone it makes no difference
        load(database, partitioned("append", "shared", both[:1], slices=1), {1: {"1": ["11, 'x'"]}})
    assert by_partition(database)["orders_1"] == ["10", "11", "19"]


DEFAULT = partition(9, DefaultRule())
CLOSED: dict[str, tuple[str, Callable[[], Any], Placed]] = {
    "reload": ("orders_1", lambda: partitioned("replace", "home", RELOAD, slices=1), NEW),
    "window": (
        "orders_1",
        lambda: partitioned("append", "home", [partition(4, RangeRule("40", "50"))], 1, drops=("orders_1",)),
        {1: {"4": ["40, 'n'"]}},
    ),
    "new ones beside a default": (
        "orders_9",
        lambda: partitioned(
            "append", "shared", [replace(PARTS[0], action="insert"), partition(4, RangeRule("40", "50"))], slices=1
        ),
        {1: {"1": ["11, 'n'"], "4": ["40, 'n'"]}},
    ),
    "only new ones beside a default": (
        "orders_9",
        lambda: partitioned("append", "home", [partition(4, RangeRule("40", "50"))], slices=1),
        {1: {"4": ["40, 'n'"]}},
    ),
}


@pytest.mark.parametrize("case", CLOSED)
def test_who_reads_a_partition_and_then_the_table_is_not_ended(database: Database, case: str) -> None:
    """By the server, because the switch and the reader wait for each other."""
    load(database, partitioned("create", "home", [*PARTS, DEFAULT]), PLACED)
    read_first, planned, placed = CLOSED[case]
    switch_beside_a_reader(database, (read_first, "orders"), planned(), placed)


@pytest.mark.parametrize("order", [("orders", "notes"), ("notes", "orders")], ids=["to", "from"])
def test_who_reads_the_table_and_one_to_which_it_refers_is_not_ended(
    database: Database, order: tuple[str, str]
) -> None:
    """Nor does the switch keep what it has for as long as it waits for the rest."""
    made(database)
    database.as_loader(
        "CREATE TABLE notes (note text PRIMARY KEY); INSERT INTO notes SELECT note FROM orders; INSERT INTO notes "
        "VALUES ('new'); ALTER TABLE orders ADD FOREIGN KEY (note) REFERENCES notes"
    )
    switch_beside_a_reader(database, order, partitioned("replace", "home", PARTS), {1: {"1": ["10, 'new'"]}, 2: {}})


def switch_beside_a_reader(database: Database, order: tuple[str, str], planned: DataFlowPlan, placed: Placed) -> None:
    """Somebody reads one table and, when the switch has to wait for that, another one."""
    failures: list[Exception] = []

    def switch() -> None:
        try:
            load(database, planned, placed, lock_timeout_seconds=20)
        except Exception as failure:  # told by the test
            failures.append(failure)

    switching = threading.Thread(target=switch)
    with database.cluster.interactive(database.name) as (statements, answers):

        def told(text: str) -> str:
            statements.write(f"{text};\n\\echo :SQLSTATE\n")
            statements.flush()
            return answers.readline().strip()

        assert told(f"BEGIN; DO 'BEGIN PERFORM count(*) FROM {order[0]}; END'") == "00000"
        switching.start()
        deadline = time.monotonic() + HANG_SECONDS
        while not database.rows("SELECT pid FROM pg_locks WHERE NOT granted AND locktype = 'relation'"):
            assert time.monotonic() < deadline and not failures
        assert told(f"DO 'BEGIN PERFORM count(*) FROM {order[1]}; END'") == "00000"
        assert told("ROLLBACK") == "00000"
    switching.join()
    assert failures == []
    assert left(database) == []


@pytest.mark.parametrize("change", ["replace", "append to old and new ones"])
def test_readers_see_all_or_nothing(database: Database, change: str) -> None:
    """Many short readers, planned before, during and behind the switch."""
    made(database)
    parts = PARTS if change == "replace" else [replace(PARTS[0], action="insert"), partition(4, RangeRule("40", "50"))]
    placed: Placed = {1: {"1": ["10, 'x'", "11, 'y'"]}, 2: {parts[1].name: [f"{parts[1].name}0, 'z'"]}}
    seen: set[tuple[str | None, ...]] = set()
    done = threading.Event()

    def read() -> None:
        while not done.is_set():
            seen.update(database.rows("SELECT count(*), sum(id) FROM orders"))

    readers = [threading.Thread(target=read) for _ in range(2)]
    for reader in readers:
        reader.start()
    try:
        time.sleep(0.3)
        load(database, partitioned("append" if change != "replace" else "replace", "home", parts), placed)
        time.sleep(0.3)
    finally:
        done.set()
        for reader in readers:
            reader.join()
    old = ("5", str(10 + 19 + 20 + 29 + 30))
    new = ("3", "41") if change == "replace" else ("8", str(108 + 10 + 11 + 40))
    assert seen == {old, new}


def test_a_table_in_use_can_be_resumed(database: Database) -> None:
    made(database)
    planned = partitioned("replace", "home", PARTS)
    run = Run(database)
    with database.session(READING), pytest.raises(TargetBusyError, match="is in use") as failure, run.target:
        run.begin()
        run.target.record_slices(run.run_id, planned)
        flow = PlacingFlow(run.target.sink_spec(run.run_id, planned), PLACED)
        run.target.load(run.run_id, planned, flow, flow.settle)
    assert f"headrace resume {run.run_id}" in str(failure.value.hint)
    resume(database, run, planned, PLACED)
    assert by_partition(database) == KEYS
    assert left(database) == []


# --- what is refused --------------------------------------------------------------------------------------------------

CHANGES: dict[str, str] = {
    "orders_1 is gone": "ALTER TABLE orders DETACH PARTITION orders_1",
    "late is new": "CREATE TABLE late PARTITION OF orders FOR VALUES FROM (90) TO (99)",
    "it was dropped, or is another table": (
        "ALTER TABLE orders RENAME TO away; CREATE TABLE orders (id bigint, note text) PARTITION BY RANGE (id)"
    ),
    "its indexes": "CREATE INDEX ON orders (note)",
}
ACTIONS: dict[str, Callable[[], Any]] = {
    "append": lambda: partitioned("append", "home", [partition(4, RangeRule("40", "50"))], slices=1),
    "replace": lambda: partitioned("replace", "home", [PARTS[0]], slices=1),
    "reload": lambda: partitioned("replace", "home", RELOAD, slices=1),
    "by the server": lambda: partitioned("append", "server", [partition(4, RangeRule("40", "50"))], slices=1),
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("action", ACTIONS)
def test_a_target_that_changed_meanwhile_is_left_alone(database: Database, action: str, change: str) -> None:
    made(database)
    planned = ACTIONS[action]()
    placed: Placed = {
        1: {planned.partitioning.partitions[0].name: [f"{planned.partitioning.partitions[0].name}0, 'n'"]}
    }
    failure = refused(database, planned, placed, before_switch=lambda: database.as_loader(CHANGES[change]))
    assert change in f"{failure.what} {failure.found}"
    assert database.rows("SELECT count(*) FROM orders_1") == [("2",)]


def test_rows_that_a_trigger_leaves_out_are_missed(database: Database) -> None:
    made(database)
    database.as_loader(
        "CREATE FUNCTION nothing() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';"
        "CREATE TRIGGER quiet BEFORE INSERT ON orders FOR EACH ROW EXECUTE FUNCTION nothing()"
    )
    inserts = [replace(part, action="insert") for part in PARTS]
    with pytest.raises(AccountsError) as failure:
        load(database, partitioned("append", "home", inserts), PLACED)
    assert (failure.value.found, failure.value.expected) == ("0 rows", "2 rows")
    assert by_partition(database) == KEYS
    options = LoadOptions(disable_triggers=True)
    load(database, partitioned("append", "home", inserts, options=options), PLACED)
    assert {name: len(keys) for name, keys in by_partition(database).items()} == {
        "orders_1": 4,
        "orders_2": 4,
        "orders_3": 2,
    }
    assert database.rows("SELECT DISTINCT tgenabled FROM pg_trigger WHERE tgname = 'quiet'") == [("O",)]


def test_rights_for_rows_that_go_into_partitions_that_exist(database: Database) -> None:
    """Nothing of the table is changed: who may insert may load."""
    made(database)
    database.psql("CREATE ROLE guest_of_parts LOGIN")
    try:
        database.as_loader("GRANT SELECT, INSERT ON orders, orders_1, orders_2, orders_3 TO guest_of_parts")
        database.as_loader("GRANT USAGE, CREATE ON SCHEMA headrace TO guest_of_parts")
        database.as_loader("GRANT ALL ON ALL TABLES IN SCHEMA headrace TO guest_of_parts")
        for parts, is_allowed in ((PARTS, False), ([replace(part, action="insert") for part in PARTS], True)):
            run = Run(database, "guest_of_parts")
            planned = partitioned("append", "shared", parts if is_allowed else [partition(4, RangeRule("40", "50"))])
            placed = PLACED if is_allowed else {1: {"4": ["40, 'n'"]}, 2: {}}
            with run.target:
                run.begin()
                run.target.record_slices(run.run_id, planned)
                flow = PlacingFlow(run.target.sink_spec(run.run_id, planned), placed)
                if is_allowed:
                    run.target.load(run.run_id, planned, flow, flow.settle)
                else:
                    with pytest.raises(TargetError, match="not the owner"):
                        run.target.load(run.run_id, planned, flow, flow.settle)
        assert sum(len(keys) for keys in by_partition(database).values()) == 10
    finally:
        database.psql("DROP OWNED BY guest_of_parts; DROP ROLE guest_of_parts")


def test_an_existing_default_partition(database: Database) -> None:
    """Rows go into it; new partitions come beside it; another one does not."""
    load(database, partitioned("create", "home", [*PARTS, partition(4, DefaultRule())]), {**PLACED})
    more = [partition(5, RangeRule("50", "60")), replace(partition(4, DefaultRule()), action="insert")]
    load(database, partitioned("append", "home", more), {1: {"5": ["50, 'n'"]}, 2: {"4": ["70, 'r'", "NULL, 'q'"]}})
    assert by_partition(database) == {**KEYS, "orders_4": ["70", None], "orders_5": ["50"]}
    again = partitioned("append", "home", [partition(7, RangeRule("70", "80"))], slices=1)
    error = refused(database, again, {1: {"7": ["71, 'n'"]}})
    assert (error.found, error.expected) == (
        "rows in public.orders_4 for orders_7",
        """none WHERE "id" IS NOT NULL AND "id" >= '70' AND "id" < '80'""",
    )
    second = partitioned("append", "home", [*PARTS[:1], partition(9, DefaultRule())], slices=1)
    assert "has a default partition already" in refused(database, second, {1: {}}).what


# --- many -------------------------------------------------------------------------------------------------------------


@pytest.mark.rotates
def test_a_thousand_partitions_with_a_raised_setting(database: Database) -> None:
    """More locks than the server has room for are refused before the first row."""
    rules: list[PartitionRule] = [HashRule(1000, number) for number in range(1000)]
    parts: list[Partition] = [partition(number, rule) for number, rule in enumerate(rules, 1)]
    planned = partitioned("create", "server", parts, slices=1)
    placed: Placed = {1: {"any": [f"{key}, 'n'" for key in range(200)]}}
    if database.cluster.version == 15:
        assert "room for" in str(refused(database, planned, placed).found)
    database.psql("ALTER SYSTEM SET max_locks_per_transaction = 300")
    database.cluster.restart()
    try:
        times = load(database, planned, placed)
        assert (len(times.partitions), sum(part.rows for part in times.partitions)) == (1000, 200)
        assert database.rows("SELECT count(*) FROM orders") == [("200",)]
        assert times.switch_seconds > 0
        run = start(database, partitioned("replace", "server", parts, slices=1), placed)
        load(database, partitioned("replace", "server", parts, slices=1), placed)
        assert left(database) == [] and run.lost == []
    finally:
        database.as_loader("DROP TABLE IF EXISTS orders")
        database.psql("ALTER SYSTEM RESET max_locks_per_transaction")
        database.cluster.restart()
