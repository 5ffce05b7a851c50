"""What a load must leave as it is, whatever somebody else does meanwhile or has prepared before; on every version."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from datetime import timedelta
from importlib.resources import files
from typing import Any

import pytest

from headrace import core
from headrace.errors import LedgerError, TargetBusyError, TargetError
from headrace.model import LoadOptions
from headrace.planning import DataFlowPlan, RangeRule, StagingTable
from headrace.targets.postgres.locks import table_lock
from headrace.targets.postgres.names import TableName
from headrace.targets.postgres.staging import TableStaging
from headrace.targets.postgres.target import PostgresTarget
from tests.integration.test_postgres_target import (
    ROWS,
    Rows,
    Run,
    content,
    left,
    load_rest,
    partitions,
    plan,
    record,
)
from tests.servers.cluster import LOADER, Cluster, Database

IN_PARTITIONS: dict[str, Any] = {"rows": {1: ["10, 'a'"], 2: ["20, 'b'"]}, "partition_column": "id"}
PARTITION_ROWS: Rows = IN_PARTITIONS["rows"]


@pytest.fixture
def database(postgres_versions: Cluster) -> Iterator[Database]:
    with postgres_versions.database() as database:
        yield database


@contextmanager
def role(database: Database, *rights: str) -> Iterator[str]:
    """A new role; `{role}` in the statements that the superuser executes for it is its name."""
    name = f"guest_{os.urandom(4).hex()}"
    database.psql(f"CREATE ROLE {name} LOGIN")
    try:
        for statement in rights:
            database.psql(statement.format(role=name))
        yield name
    finally:
        database.psql(f"DROP OWNED BY {name}; DROP ROLE {name}")


def staged(target: str) -> DataFlowPlan:
    return plan("attach", target, staging=partitions(1, [1, 2]), **IN_PARTITIONS)


def in_view(target: str, table: str = "orders") -> DataFlowPlan:
    members = tuple(StagingTable(str(number), f"{table}_{number}", (number,), True) for number in (1, 2))
    return plan("view", target, table=table, staging=members)


# --- what others have made in a schema of the search_path -------------------------------------------------------------

TRAP = "LANGUAGE plpgsql AS $$ BEGIN RAISE 'trapped'; END $$"
TRAPS = f"""
CREATE FUNCTION public.quote_ident(name) RETURNS text {TRAP};
CREATE FUNCTION public.length(name) RETURNS int {TRAP};
CREATE FUNCTION public.starts_with(name, text) RETURNS bool {TRAP};
CREATE FUNCTION public.format(text, text, name) RETURNS text {TRAP};
CREATE FUNCTION public.is_class(oid, regclass) RETURNS bool {TRAP};
CREATE OPERATOR public.= (LEFTARG = oid, RIGHTARG = regclass, FUNCTION = public.is_class);
CREATE FUNCTION public.same(aclitem[], aclitem[]) RETURNS bool {TRAP};
CREATE OPERATOR public.= (LEFTARG = aclitem[], RIGHTARG = aclitem[], FUNCTION = public.same);
CREATE FUNCTION public.both(aclitem[], aclitem[]) RETURNS aclitem[] {TRAP};
CREATE OPERATOR public.|| (LEFTARG = aclitem[], RIGHTARG = aclitem[], FUNCTION = public.both);
CREATE FUNCTION public.joined(name, name) RETURNS text {TRAP};
CREATE OPERATOR public.|| (LEFTARG = name, RIGHTARG = name, FUNCTION = public.joined);
CREATE FUNCTION public.likes(name, name) RETURNS bool {TRAP};
CREATE OPERATOR public.!~~ (LEFTARG = name, RIGHTARG = name, FUNCTION = public.likes);
CREATE FUNCTION public.bits(int2, int4) RETURNS int {TRAP};
CREATE OPERATOR public.& (LEFTARG = int2, RIGHTARG = int4, FUNCTION = public.bits)
"""


def test_nothing_of_others_is_executed(database: Database) -> None:
    """Functions that fit better than the server's own would be executed with the rights of who loads."""
    database.as_loader("CREATE TABLE orders (id bigint PRIMARY KEY, note text); GRANT SELECT ON orders TO pg_monitor")
    database.as_loader("CREATE TABLE others (id serial, n int GENERATED ALWAYS AS IDENTITY, note text DEFAULT 'x')")
    database.as_loader("ALTER TABLE others ENABLE ROW LEVEL SECURITY")
    database.psql(TRAPS)
    for switch, target in (("rename", "replace"), ("move", "replace")):
        Run(database).load(plan(switch, target))
    more: Rows = {1: ["9, 'a'"]}
    Run(database).load(plan("none", "append", rows=more), more)
    for target in ("create", "replace"):
        Run(database).load(in_view(target, "seen"))
    with Run(database).target as target_:
        for name in ("orders", "others", "seen"):
            assert target_.catalog("public", name) is not None
        assert "orders" in target_.names_in_schema("public")
        target_.inspect(3)
        with pytest.raises(TargetError, match="no schema"):
            target_.catalog("nowhere", "orders")


def test_functions_of_the_statements_are_the_servers() -> None:
    """Each is written with its schema. Other words before a parenthesis are SQL."""
    words = {
        "in",
        "any",
        "all",
        "as",
        "and",
        "or",
        "not",
        "exists",
        "coalesce",
        "nullif",
        "filter",
        "with",
        "values",
        "key",
    }
    # Of several arrays: a word of the grammar; names of tables with columns.
    words |= {"unnest", "probe", "keys", "listed", "claimed", "known", "conflict", "least"}
    words |= {
        "from",
        "join",
        "lateral",
        "array",
        "select",
        "where",
        "on",
        "then",
        "when",
        "unit",
        "planned",
        "using",
        "format",
    }
    found = set()
    for file in files("headrace.targets.postgres").joinpath("sql").iterdir():
        text = re.sub(r"'[^']*'|--.*", "", file.read_text(encoding="utf-8"))
        text = re.sub(r"(CREATE TABLE IF NOT EXISTS|INSERT INTO) \S+ \(", "", text)
        found |= {(file.name, name) for name in re.findall(r"(?<![\w.{}\"])(\w+) ?\(", text)}
    assert sorted(item for item in found if item[1].lower() not in words) == []


def test_a_table_is_exchanged_while_it_is_looked_at(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another run's switch, between two looks."""
    database.as_loader("CREATE TABLE orders (id bigint, note text)")
    check = TableStaging.check
    exchanged: list[TableStaging] = []

    def exchanging(staging: TableStaging) -> None:
        check(staging)
        if not exchanged:
            exchanged.append(staging)
            database.as_loader("DROP TABLE orders; CREATE TABLE orders (id bigint, note text)")

    monkeypatch.setattr(TableStaging, "check", exchanging)
    Run(database).load(plan("rename"))
    assert database.rows("SELECT count(*) FROM orders") == [("3",)]
    assert len(exchanged) == 1


# --- settings of the user ---------------------------------------------------------------------------------------------


def test_definitions_keep_all_digits(database: Database) -> None:
    """However few the user wants to see of a number."""
    database.psql(f"ALTER ROLE {LOADER} IN DATABASE {database.name} SET extra_float_digits = -10")
    database.as_loader("CREATE TABLE orders (id bigint, note text, f float8)")
    database.as_loader("CREATE INDEX few ON orders (id) WHERE f > '0.12345678901234567'::float8")
    query = "SET extra_float_digits = 1; SELECT indexdef FROM pg_indexes WHERE indexname = 'few'"
    before = database.rows(query)
    Run(database).load(plan("rename"))
    assert database.rows(query) == before


# --- rows of an earlier attempt ---------------------------------------------------------------------------------------


def resumed(database: Database, dead: Run, planned: DataFlowPlan, rows: Rows) -> None:
    """Goes on with the slices that have no commit row."""
    with Run(database).target as target:
        target.resume_run(record(dead.run_id))
        load_rest(target, dead.run_id, planned, rows)


def test_rows_in_a_hidden_table_are_not_forgotten_when_the_table_appears(database: Database) -> None:
    """The table was new, and is there now: the rest would be appended straight to it."""
    planned, dead = plan("schema", "append"), Run(database)
    dead.die(planned, ROWS, [1])
    database.as_loader("CREATE TABLE orders (id bigint, note text)")
    with pytest.raises(LedgerError, match="cannot be resumed") as failure:
        resumed(database, dead, replace(planned, switch="none"), ROWS)
    assert str(left(database)[0][0]) in str(failure.value.found)
    assert content(database) == ("0", None)
    database.as_loader("DROP TABLE orders")
    resumed(database, dead, planned, ROWS)
    assert content(database) == ("3", "6")


@pytest.mark.parametrize("committed", [[1], [1, 2]])
def test_rows_of_a_hidden_table_that_is_gone_are_not_taken_for_loaded(
    database: Database, committed: Sequence[int]
) -> None:
    planned, dead = plan("schema", "create"), Run(database)
    dead.die(planned, ROWS, committed)
    [(hidden,)] = left(database)
    database.as_loader(f'DROP TABLE headrace."{hidden}"')
    with pytest.raises(LedgerError, match="cannot be resumed"):
        resumed(database, dead, planned, ROWS)
    assert database.rows("SELECT to_regclass('orders')") == [(None,)]
    Run(database).load(planned)
    assert content(database) == ("3", "6")
    assert left(database) == []


def test_rows_that_were_appended_to_a_table_that_is_gone(database: Database) -> None:
    planned, dead = plan("none", "append"), Run(database)
    database.as_loader("CREATE TABLE orders (id bigint, note text)")
    dead.die(planned, ROWS, [1]).commit()
    database.as_loader("DROP TABLE orders")
    with pytest.raises(LedgerError, match="cannot be resumed") as failure:
        resumed(database, dead, replace(planned, switch="schema"), ROWS)
    # No row of it is left that a new run could double.
    assert failure.value.hint == "Start a new run: `headrace run`."


def test_a_later_run_is_known_whatever_the_clocks_of_clients_say(database: Database) -> None:
    dead, later = Run(database), Run(database)
    dead.die(plan("schema", "create"), ROWS, [1])
    hour = timedelta(hours=1)
    with later.target as target:
        own = record(dead.run_id)
        target.begin_run(replace(own, run_id=later.run_id, started_at=own.started_at - hour))
    with Run(database).target as target, pytest.raises(LedgerError, match="a later run"):
        target.resume_run(own)


def test_partitions_that_are_numbered_in_another_way(database: Database) -> None:
    """Somebody else has made the partition whose number was meant for us."""
    database.as_loader("CREATE TABLE orders (id bigint NOT NULL, note text) PARTITION BY RANGE (id)")
    [first], [second] = partitions(1, [1]), partitions(1, [2])
    rows: Rows = {1: ["10, 'a'"]}
    planned = plan("attach", "append", rows=rows, partition_column="id", staging=(replace(first, owned=False),))
    dead = Run(database)
    dead.die(planned, rows, [1])
    database.as_loader("CREATE TABLE orders_1 PARTITION OF orders FOR VALUES FROM (90) TO (99)")
    renumbered = replace(first, owned=False, partition="2", table=second.table)
    with pytest.raises(LedgerError, match="cannot be resumed"):
        resumed(database, dead, replace(planned, staging=(renumbered,)), rows)


# --- changes while the rows travel ------------------------------------------------------------------------------------

CHANGES = {
    "constraint positive": "ALTER TABLE orders ADD CONSTRAINT positive CHECK (id > 0)",
    "constraint same": "ALTER TABLE orders DROP CONSTRAINT same, ADD CONSTRAINT same CHECK (id > -4)",
    "constraint other": "ALTER TABLE orders RENAME CONSTRAINT same TO other",
    "column id": "COMMENT ON COLUMN orders.id IS 'late'",
    "column note": "ALTER TABLE orders ALTER note SET STORAGE EXTERNAL",
    "its storage parameters": "ALTER TABLE orders SET (fillfactor = 50)",
    "its indexes": "DROP INDEX by_note; CREATE INDEX by_id ON orders (id)",
    "its indexes, again": "DROP INDEX by_note; CREATE UNIQUE INDEX by_note ON orders (note)",
}


@pytest.mark.parametrize("found", CHANGES)
def test_what_is_changed_meanwhile_is_not_undone(database: Database, found: str) -> None:
    """By the hidden table, which was made like the target as it was before."""
    database.as_loader("CREATE TABLE orders (id bigint, note text, CONSTRAINT same CHECK (id > -5))")
    database.as_loader("CREATE INDEX by_note ON orders (note); INSERT INTO orders VALUES (7, 'old')")
    with pytest.raises(TargetError, match="was changed while it was loaded") as failure:
        Run(database).load(plan("rename"), before_switch=lambda: database.as_loader(CHANGES[found]))
    assert found.split(",")[0] in str(failure.value.found)
    assert content(database) == ("1", "7")
    Run(database).load(plan("rename"))
    assert content(database) == ("3", "6")


@pytest.mark.parametrize(("numbers", "expected"), [("INCREMENT 1", "1006"), ("INCREMENT -1", "-1006")])
def test_numbers_that_others_have_taken_are_not_given_again(database: Database, numbers: str, expected: str) -> None:
    database.as_loader(
        f"CREATE TABLE orders (n int GENERATED BY DEFAULT AS IDENTITY ({numbers}), id bigint, note text)"
    )
    insert = "INSERT INTO orders (id) SELECT -1 FROM generate_series(1, {rows})"
    database.as_loader(insert.format(rows=5))
    Run(database).load(plan("rename"), before_switch=lambda: database.as_loader(insert.format(rows=1000)))
    database.as_loader(insert.format(rows=1))
    assert database.rows("SELECT n FROM orders WHERE id = -1") == [(expected,)]
    Run(database).load(plan("rename"))  # nobody meanwhile: it goes on behind the rows themselves
    database.as_loader(insert.format(rows=1))
    assert database.rows("SELECT abs(n) FROM orders WHERE id = -1") == [("1010",)]


# --- other tables, and other places -----------------------------------------------------------------------------------


def test_tables_that_inherit_are_not_emptied(database: Database) -> None:
    database.as_loader("CREATE TABLE orders (id bigint, note text); CREATE TABLE child () INHERITS (orders)")
    database.as_loader("CREATE TABLE grandchild () INHERITS (child); INSERT INTO grandchild VALUES (77, 'mine')")
    with Run(database).target as target:
        found = target.catalog(None, "orders")
    assert found is not None and "table grandchild, which inherits" in str(found.prevents_replace)
    with pytest.raises(TargetError, match="other tables inherit"):
        Run(database).load(plan("move"))
    assert content(database) == ("1", "77")
    Run(database).load(plan("none", "append"))
    assert content(database, "ONLY orders") == ("3", "6")


@pytest.mark.parametrize("options", [LoadOptions(), LoadOptions(indexes="before")])
@pytest.mark.parametrize("owned", [True, False])
def test_a_table_stays_in_its_tablespace(database: Database, options: LoadOptions, owned: bool) -> None:
    """Also if the user has new tables made in another one."""
    cluster, name = database.cluster, f"space_{os.urandom(4).hex()}"
    folder = cluster.folder / name
    cluster.account.folder(folder)
    cluster.psql(f"CREATE TABLESPACE {name} LOCATION '{folder}'; GRANT CREATE ON TABLESPACE {name} TO {LOADER}")
    try:
        database.as_loader("CREATE TABLE orders (id bigint PRIMARY KEY, note text); CREATE INDEX ON orders (note)")
        database.psql(f"ALTER ROLE {LOADER} IN DATABASE {database.name} SET default_tablespace = {name}")
        Run(database).load(plan("rename", options=options, owned=owned))
        query = "SELECT count(*) FILTER (WHERE reltablespace <> 0), count(*) FROM pg_class WHERE relname ~ '^{table}'"
        assert database.rows(query.format(table="orders")) == [("0", "3")]
        Run(database).load(plan("schema", "create", table="others"))
        assert database.rows(query.format(table="others")) == [("1", "1")]
    finally:
        database.as_loader("DROP TABLE IF EXISTS orders, others; DROP SCHEMA IF EXISTS headrace CASCADE")
        cluster.psql(f"DROP TABLESPACE {name}")


def test_what_belongs_to_one_partition_alone_is_not_lost(database: Database) -> None:
    database.as_loader(
        "CREATE TABLE orders (id bigint NOT NULL, note text) PARTITION BY RANGE (id);"
        "CREATE TABLE old PARTITION OF orders FOR VALUES FROM (1) TO (5);"
        "CREATE FUNCTION nothing() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END';"
        "CREATE TRIGGER everywhere BEFORE INSERT ON orders FOR EACH ROW EXECUTE FUNCTION nothing();"
        "CREATE TRIGGER only_here BEFORE UPDATE ON old FOR EACH ROW EXECUTE FUNCTION nothing();"
        "CREATE POLICY mine ON old"
    )
    database.psql(
        "CREATE PUBLICATION parts FOR TABLE old; CREATE FOREIGN DATA WRAPPER w; CREATE SERVER s FOREIGN DATA WRAPPER w"
    )
    database.psql("CREATE FOREIGN TABLE far PARTITION OF orders FOR VALUES FROM (5) TO (9) SERVER s")
    with Run(database).target as target:
        found = target.catalog(None, "orders")
    assert found is not None
    assert found.prevents_replace == (
        "foreign table far",
        "policy mine on old",
        "publication parts of old",
        "trigger only_here on old",
    )


def test_subscribers_do_not_get_what_is_attached(database: Database) -> None:
    database.as_loader("CREATE TABLE orders (id bigint NOT NULL, note text) PARTITION BY RANGE (id)")
    database.psql("CREATE PUBLICATION sold FOR TABLE orders")
    [warning] = Run(database).load(staged("append"), PARTITION_ROWS)
    assert "not sent to the subscribers of publication sold" in warning


def test_ends_of_partitions_beyond_all_dates_are_open(database: Database) -> None:
    database.as_loader(
        "CREATE TABLE orders (day date NOT NULL) PARTITION BY RANGE (day);"
        "CREATE TABLE a PARTITION OF orders FOR VALUES FROM ('-infinity') TO ('2020-01-01');"
        "CREATE TABLE b PARTITION OF orders FOR VALUES FROM ('2020-01-01') TO ('2021-01-01');"
        "CREATE TABLE c PARTITION OF orders FOR VALUES FROM ('2030-01-01') TO ('infinity')"
    )
    database.as_loader("CREATE TABLE early (day date NOT NULL) PARTITION BY RANGE (day)")
    database.as_loader("CREATE TABLE d PARTITION OF early FOR VALUES FROM ('0044-03-15 BC') TO ('12000-01-01')")
    with Run(database).target as target:
        tables = [target.catalog(None, name) for name in ("orders", "early")]
    assert [
        part.rule for table in tables if table and table.partitioning for part in table.partitioning.partitions
    ] == [
        RangeRule(None, "2020-01-01"),
        RangeRule("2020-01-01", "2021-01-01"),
        RangeRule("2030-01-01", None),
        RangeRule(None, None),
    ]


# --- owners and rights ------------------------------------------------------------------------------------------------

OWNER = ("GRANT {role} TO " + LOADER, "GRANT CREATE, USAGE ON SCHEMA public TO {role}")
OWNERS = "SELECT DISTINCT relowner::regrole FROM pg_class WHERE relname ~ '^orders' AND relkind IN ('r', 'p', 'v')"


def test_partitions_belong_to_the_owner_of_the_table(database: Database) -> None:
    """Who could not change the table otherwise."""
    with role(database, *OWNER) as owner:
        create = "CREATE TABLE orders (id bigint NOT NULL, note text) PARTITION BY RANGE (id)"
        database.psql(f"SET ROLE {owner}; {create}")
        database.as_loader("ALTER DEFAULT PRIVILEGES IN SCHEMA public GRANT SELECT ON TABLES TO pg_monitor")
        for _ in range(2):
            Run(database).load(staged("replace"), PARTITION_ROWS)
            assert database.rows(OWNERS) == [(owner,)]
        assert database.rows("SELECT has_table_privilege('pg_monitor', 'orders_2', 'SELECT')") == [("t",)]
        database.psql(f"SET ROLE {owner}; ALTER TABLE orders ADD COLUMN late int")


def test_a_view_can_be_read_by_those_who_could(database: Database) -> None:
    """And keeps its options."""
    with role(database, *OWNER) as owner, role(database) as reader:
        create = "CREATE TABLE orders_1 (id bigint, note text)"
        view = f"CREATE VIEW orders WITH (security_barrier) AS TABLE orders_1; GRANT SELECT ON orders TO {reader}"
        database.psql(f"SET ROLE {owner}; {create}; {view}")
        for _ in range(2):
            Run(database).load(in_view("replace"))
            assert database.rows(OWNERS) == [(owner,)]
            assert database.rows(f"SET ROLE {reader}; SELECT count(*) FROM orders") == [("3",)]
        assert database.rows("SELECT reloptions FROM pg_class WHERE oid = 'orders'::regclass") == [
            ("{security_barrier=true}",)
        ]


def test_an_owner_who_may_not_have_new_tables(database: Database) -> None:
    """Keeps the table itself; what needs new ones is refused before the first row."""
    with role(database, *OWNER) as owner:
        database.psql(f"SET ROLE {owner}; CREATE TABLE orders (id bigint NOT NULL, note text)")
        create = "CREATE TABLE days (id bigint NOT NULL, note text) PARTITION BY RANGE (id)"
        database.psql(f"SET ROLE {owner}; {create}")
        database.psql(f"REVOKE CREATE ON SCHEMA public FROM {owner}, PUBLIC; GRANT CREATE ON SCHEMA public TO {LOADER}")
        with Run(database).target as target:
            found = target.catalog(None, "orders")
        reason = f"its owner {owner}, to whom a new table cannot be given"
        assert found is not None and found.prevents_rename == (reason,)
        [warning] = Run(database).load(plan("rename"))
        assert reason in warning
        assert (content(database), database.rows(OWNERS)) == (("3", "6"), [(owner,)])
        with pytest.raises(TargetError, match="cannot be given to its owner"):
            Run(database).load(replace(staged("replace"), table="days"), PARTITION_ROWS)
        assert left(database) == []


def test_without_the_right_to_read_the_ledger(database: Database) -> None:
    Run(database).load(plan("schema", "create"))
    with role(database) as guest, Run(database, guest).target as target:
        with pytest.raises(LedgerError, match="cannot read the ledger") as failure:
            target.unfinished_runs("package")
        assert "Grant what is missing" in str(failure.value.hint)


def test_a_ledger_of_an_earlier_version_goes_on(database: Database) -> None:
    Run(database).load(plan("schema", "create"))
    database.as_loader("DROP VIEW headrace.lineage")
    late = [
        ("commit", "text_bytes"),
        ("commit", "values_ignored"),
        ("commit", "text_hash"),
        ("commit", "rows_filtered"),
        ("run", "of_run"),
        ("unit", "identity"),
    ]
    for table, column in late:
        database.as_loader(f'ALTER TABLE headrace."{table}" DROP COLUMN {column}')
    database.as_loader("DROP TABLE headrace.replay")
    Run(database).load(plan("rename"))
    lacking = 'SELECT count(*) FROM headrace."commit" WHERE text_bytes IS NULL OR values_ignored IS NULL'
    assert database.rows(lacking) == [("0",)]
    assert database.rows("SELECT count(*) FROM headrace.run WHERE of_run IS NOT NULL") == [("0",)]
    assert database.rows("SELECT count(*) FROM headrace.replay") == [("0",)]
    hashed = "SELECT count(slices_hash), count(*) FROM headrace.lineage GROUP BY run_id ORDER BY count(slices_hash)"
    assert database.rows(hashed) == [("0", "1"), ("1", "1")]


def test_where_the_holder_of_a_lock_is_may_be_hidden(database: Database) -> None:
    orders = TableName("public", "orders")

    def holder(of: PostgresTarget) -> str:
        with pytest.raises(TargetBusyError) as failure, table_lock(of._control, orders, 0, print, lambda: False):
            raise AssertionError
        return str(failure.value.found)

    with role(database) as guest, ExitStack() as stack:
        first, same, other = (stack.enter_context(Run(database, user).target) for user in (None, None, guest))
        stack.enter_context(table_lock(first._control, orders, 0, print, lambda: False))
        assert "from the same machine" in holder(same)
        assert "from a host that only its own user may see" in holder(other)


def test_a_run_that_may_not_be_swept_has_appended_a_part(database: Database) -> None:
    """It is dead, but its writers belong to somebody else; so it still says that it is running."""
    database.as_loader("CREATE TABLE orders (id bigint, note text)")
    dead = Run(database)
    first = dead.die(plan("none", "append"), ROWS, [1])
    first.commit()
    zombie = core.PostgresConnection(dead.sink["connection"])
    zombie.execute(dead.sink["tables"][0]["begin"])
    with role(
        database, "GRANT USAGE, CREATE ON SCHEMA headrace TO {role}", "GRANT INSERT ON orders TO {role}"
    ) as guest:
        database.as_loader(f"GRANT ALL ON ALL TABLES IN SCHEMA headrace TO {guest}")
        with pytest.raises(TargetError, match="holds a part"):
            Run(database, guest).load(plan("none", "append"))
    zombie.close()
    assert content(database) == ("2", "3")


def test_no_time_for_locks_is_not_for_ever(database: Database) -> None:
    database.as_loader("CREATE TABLE orders (id bigint, note text)")
    with (
        database.session("BEGIN; LOCK TABLE orders"),
        pytest.raises(TargetBusyError, match="did not give the table free"),
    ):
        Run(database, lock_timeout_seconds=0).load(plan("none", "append"))


def test_who_reads_a_table_of_a_view_is_named(database: Database) -> None:
    Run(database).load(in_view("create"))
    reading = database.session("BEGIN; DO 'BEGIN PERFORM count(*) FROM orders_1; END'")
    with reading, pytest.raises(TargetBusyError, match="is in use") as failure:
        Run(database).load(in_view("replace"))
    assert "(psql) of user postgres" in str(failure.value.found)


@pytest.mark.parametrize("switch", ["move", "rename"])
def test_what_an_old_snapshot_sees(database: Database, switch: str) -> None:
    """The one thing that no switch can hide, as the README says: TRUNCATE and a new table know no old snapshots."""
    database.as_loader("CREATE TABLE orders (id bigint, note text); INSERT INTO orders VALUES (9)")
    with database.cluster.interactive(database.name) as (statements, found):
        statements.write("BEGIN ISOLATION LEVEL REPEATABLE READ;\nSELECT 'begun';\n")
        statements.flush()
        assert found.readline() == "begun\n"
        Run(database).load(plan(switch))
        statements.write("SELECT count(*) FROM orders;\nCOMMIT;\nSELECT count(*) FROM orders;\n")
        statements.flush()
        assert [found.readline() for _ in range(2)] == ["0\n", "3\n"]


def test_a_type_that_alters_values_is_known(database: Database) -> None:
    database.as_loader("CREATE DOMAIN document AS jsonb; CREATE TABLE orders (a json, b jsonb, c document, d text)")
    with Run(database).target as target:
        found = target.catalog(None, "orders")
    assert found is not None
    assert [column.name for column in found.columns if column.alters] == ["b", "c"]


# --- refused before the first row -------------------------------------------------------------------------------------


def prevented(database: Database) -> tuple[tuple[str, ...], tuple[str, ...]]:
    with Run(database).target as target:
        found = target.catalog(None, "orders")
    assert found is not None
    return found.referenced_by, found.prevents_replace


def test_a_partition_whose_table_is_referred_to(database: Database) -> None:
    database.as_loader(
        "CREATE TABLE everything (id bigint PRIMARY KEY, note text) PARTITION BY RANGE (id);"
        "CREATE TABLE orders PARTITION OF everything FOR VALUES FROM (0) TO (100);"
        "CREATE TABLE visits (id bigint REFERENCES everything) PARTITION BY RANGE (id);"
        "CREATE TABLE visits_1 PARTITION OF visits FOR VALUES FROM (0) TO (100)"
    )
    assert prevented(database) == (("visits",), ())


def test_partitions_that_refer_to_one_another(database: Database) -> None:
    database.as_loader(
        "CREATE TABLE orders (id bigint PRIMARY KEY, up bigint REFERENCES orders) PARTITION BY RANGE (id)"
    )
    database.as_loader("CREATE TABLE orders_1 PARTITION OF orders FOR VALUES FROM (0) TO (100)")
    assert prevented(database) == ((), ("foreign key orders_up_fkey of the table to itself",))


def test_tables_of_a_view_that_others_read(database: Database) -> None:
    Run(database).load(in_view("create"))
    assert prevented(database) == ((), ())
    database.as_loader("CREATE VIEW early AS TABLE orders_1; CREATE VIEW late AS TABLE orders")
    assert prevented(database) == ((), ("view early on orders_1",))
    database.as_loader("DROP VIEW early")
    Run(database).load(in_view("replace"))
    assert content(database, "late") == ("3", "6")


def test_indexes_that_a_partitioned_table_gets_meanwhile(database: Database) -> None:
    database.as_loader("CREATE TABLE orders (id bigint PRIMARY KEY, note text) PARTITION BY RANGE (id)")
    late = "CREATE INDEX late ON orders (note)"
    with pytest.raises(TargetError, match="was changed while it was loaded"):
        Run(database).load(staged("append"), PARTITION_ROWS, before_switch=lambda: database.as_loader(late))
    Run(database).load(staged("append"), PARTITION_ROWS)
    assert content(database) == ("2", "30")


def test_sessions_in_which_no_trigger_fires_are_told_of(database: Database) -> None:
    database.psql(f"ALTER ROLE {LOADER} IN DATABASE {database.name} SET session_replication_role = replica")
    with Run(database).target as target:
        assert "foreign keys are not checked" in str(target.notes)
