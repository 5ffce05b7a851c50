"""What is said when a table of PostgreSQL, or a query, gives no lookup."""

from __future__ import annotations

import re
from dataclasses import dataclass

import pytest

from tests.integration.postgres import PostgresProject
from tests.integration.table_lookup_scenes import CREATE, LOOKUP, PACKAGE, QUERY, lines
from tests.snapshots import assert_snapshot


@dataclass(frozen=True)
class Broken:
    """What is changed before a run: by its owner and by a superuser; `query`: what of QUERY becomes what."""

    sql: str | None = None
    query: tuple[str, str] | None = None
    as_superuser: str | None = None
    has_no_default: bool = False
    arguments: tuple[str, ...] = ()


_ALTER = "ALTER TABLE parts ALTER"
_SPOIL = "CREATE FUNCTION spoil() RETURNS bigint LANGUAGE sql AS 'DELETE FROM parts RETURNING p_key'"
_VIEW = "ALTER TABLE parts RENAME TO all_parts; CREATE VIEW parts AS SELECT {} AS p_key, p_sk, p_name FROM all_parts"
_LONG = "INSERT INTO parts SELECT n + 5000, 1, repeat('a long text', 20) || n FROM generate_series(0, 99999) n"
_INFINITE = "UPDATE parts SET p_sk = 'infinity' WHERE p_key = 7"
BROKEN = {
    "missing": Broken("DROP TABLE parts"),
    "sequence": Broken("DROP TABLE parts; CREATE SEQUENCE parts"),
    "no_right": Broken(as_superuser="ALTER TABLE parts OWNER TO CURRENT_USER; REVOKE ALL ON parts FROM PUBLIC"),
    "no_column": Broken("ALTER TABLE parts RENAME p_key TO p_id"),
    "key_type": Broken(f"{_ALTER} p_key TYPE text"),
    "numeric_without_scale": Broken(f"{_ALTER} p_sk TYPE numeric"),
    "array": Broken(f"{_ALTER} p_sk TYPE int[] USING ARRAY[p_sk]"),
    "not_a_number": Broken(f"{_ALTER} p_sk TYPE numeric(9,2); UPDATE parts SET p_sk = 'NaN' WHERE p_key = 77"),
    "infinity": Broken(f"{_ALTER} p_sk TYPE date USING '2024-01-01'; {_INFINITE}", has_no_default=True),
    "year": Broken(f"{_ALTER} p_sk TYPE timestamp USING '10000-01-01'", has_no_default=True),
    "duplicate_key": Broken("INSERT INTO parts SELECT p_key % 10, p_sk, p_name FROM parts WHERE p_key < 20"),
    "view_fails": Broken(_VIEW.format("1 / (p_key - 1)")),
    "view_fails_in_the_plan": Broken(_VIEW.format("1 / 0 + p_key")),
    "view_writes": Broken(f"{_SPOIL}; {_VIEW.format('spoil()')}"),
    "no_memory": Broken(_LONG, arguments=("--set", "memory=137MB")),
    "query_refused": Broken(query=("FROM parts", "FROM prats")),
    "query_of_numeric": Broken(query=("p_key, p_sk,", "p_key, p_sk / 3.0 AS p_sk,")),
    "query_of_bpchar": Broken(query=("$prefix || p_key AS p_name", "CAST($prefix AS bpchar) AS p_name")),
    "query_of_show": Broken(query=(QUERY.split('"')[1], "SHOW work_mem -- $prefix $least")),
    "query_fails": Broken(query=("p_key, p_sk,", "p_key, 1 / (p_sk - 1) AS p_sk,")),
    "query_with_names_twice": Broken(query=("p_key AS unread", "p_key + 1 AS p_key")),
    "query_writes": Broken(_SPOIL, query=("p_key AS unread", "spoil() AS unread")),
}


@pytest.fixture
def facts(warehouse: PostgresProject) -> PostgresProject:
    warehouse.package(PACKAGE)
    lines(warehouse)
    warehouse.execute(CREATE)
    return warehouse


@pytest.mark.parametrize("name", BROKEN)
def test_what_is_said_when_there_is_no_lookup(facts: PostgresProject, name: str) -> None:
    broken = BROKEN[name]
    package = PACKAGE.replace("part_sk: -1", "part_sk: null") if broken.has_no_default else PACKAGE
    facts.package(package if broken.query is None else package.replace(LOOKUP, QUERY.replace(*broken.query)))
    if broken.sql is not None:
        facts.execute(broken.sql)
    if broken.as_superuser is not None:
        facts.target.psql(broken.as_superuser)
    ended = facts.run(*broken.arguments)
    assert ended.exit_code != 0
    # How far the reading had come, and the order of a table, are accidents.
    text = re.sub(r"found: \d+ MB, and", "found: N MB, and", facts.stable(ended.error))
    text = re.sub(r"in row \d+ of", "in row N of", text)
    text = re.sub(r"memory: \d+ MB", "memory: N MB", text)
    assert_snapshot(f"postgres_lookup_{name}", text)
    assert "public.facts" not in facts.tables()
    assert facts.leftovers() == []
