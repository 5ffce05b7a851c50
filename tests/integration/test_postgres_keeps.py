"""What a load must leave as it is, whatever somebody else does meanwhile or has prepared before; on every version."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from importlib.resources import files
from typing import Any

import pytest

from headrace.errors import LedgerError, TargetError
from headrace.planning import DataFlowPlan, StagingTable
from tests.integration.test_postgres_target import (
    ROWS,
    InsertingFlow,
    Rows,
    Run,
    content,
    left,
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
    words = {"in", "any", "as", "and", "or", "not", "exists", "coalesce", "nullif", "filter", "with", "values", "key"}
    words |= {"unnest"}  # of several arrays: a word of the grammar
    words |= {"from", "lateral", "array", "select", "where", "on", "then", "when", "unit", "planned", "using", "format"}
    found = set()
    for file in files("headrace.targets.postgres").joinpath("sql").iterdir():
        text = re.sub(r"'[^']*'|--.*", "", file.read_text(encoding="utf-8"))
        text = re.sub(r"(CREATE TABLE IF NOT EXISTS|INSERT INTO) \S+ \(", "", text)
        found |= {(file.name, name) for name in re.findall(r"(?<![\w.{}\"])(\w+) ?\(", text)}
    assert sorted(item for item in found if item[1].lower() not in words) == []


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
        done = target.task_progress(dead.run_id, "load").slices
        sink = target.sink_spec(dead.run_id, planned.continued(done))
        for table in sink["tables"]:
            table["slices"] = [number for number in table["slices"] if number not in done]
        flow = InsertingFlow(sink, {number: rows[number] for number in rows if number not in done})
        target.load(dead.run_id, planned.continued(done), flow, flow.settle)


def test_rows_in_a_hidden_table_are_not_forgotten_when_the_table_appears(database: Database) -> None:
    """The table was new, and is there now: the rest would be appended straight to it."""
    planned, dead = plan("schema", "append"), Run(database)
    dead.die(planned, ROWS, [1])
    database.as_loader("CREATE TABLE orders (id bigint, note text)")
    with pytest.raises(LedgerError, match="cannot be resumed") as failure:
        resumed(database, dead, replace(planned, switch="none"), ROWS)
    assert left(database)[0][0] in str(failure.value.found)
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
    assert "--abandon" in str(failure.value.hint)


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
