"""What a load must leave as it is, whatever somebody else does meanwhile or has prepared before; on every version."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources import files
from typing import Any

import pytest

from headrace.errors import TargetError
from headrace.planning import DataFlowPlan, StagingTable
from tests.integration.test_postgres_target import (
    Rows,
    Run,
    partitions,
    plan,
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
