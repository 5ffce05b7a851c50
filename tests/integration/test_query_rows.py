"""The rows of a query for a loop: in portions, fitted to declared types."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import date
from decimal import Decimal
from pathlib import Path

import pytest

from headrace.errors import HeadraceError, SqlError, TaskTimeoutError
from headrace.model.scope import Scope
from headrace.model.script import Script
from headrace.model.sql_checks import ScriptUse
from headrace.model.yaml_nodes import Mark
from headrace.run.cancellation import Cancellation
from headrace.run.sql.prepared import PreparedStatement, prepare
from headrace.run.sql.query_rows import query_rows
from tests.integration.sql_tasks import DUCKDB, Run, begun, postgres_connection
from tests.servers.cluster import Database
from tests.snapshots import assert_snapshot


@pytest.fixture(params=["duckdb", "postgres"])
def run(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Run]:
    if request.param == "duckdb":
        with begun(tmp_path, DUCKDB, {}) as run:
            yield run
        return
    database: Database = request.getfixturevalue("database")
    with begun(tmp_path, postgres_connection(database), database.environment) as run:
        yield run


def prepared(run: Run, text: str, **values: object) -> PreparedStatement:
    script = Script(text, "package.yaml", lambda offset: Mark(7, offset + 1))
    use = ScriptUse(names=list(values), query_of="the loop")
    return prepare(script, use, {}, Scope(values=values), run.sessions)[0]


def test_rows_come_typed_and_in_their_order(run: Run) -> None:
    text = "SELECT a AS id, CAST('2024-01-31' AS date) + CAST(a AS int) AS day, a AS more, CAST(NULL AS int) AS none "
    text += "FROM generate_series(1, $n) AS s(a) ORDER BY a DESC"
    columns = {"DAY": "date", "id": "integer", "none": "string"}
    with query_rows(run.sessions, prepared(run, text, n=25_000), columns, "loop", lambda: False) as found:
        first = next(found)
        assert first == (date(2092, 7, 12), 25_000, None)
        assert sum(1 for _ in found) == 24_999


def test_a_loop_can_end_early(run: Run) -> None:
    text = "SELECT a FROM generate_series(1, 100000000) AS s(a)"
    with query_rows(run.sessions, prepared(run, text), {"a": "decimal"}, "loop", lambda: False) as found:
        assert next(found) == (Decimal(1),)
    assert run.task('text: "SELECT 1 AS n", row: {n: n}').outputs == {"n": 1}


BAD = {
    "no_column": ("SELECT 1 AS a", {"b": "integer"}),
    "other_type": ("SELECT 1 AS a UNION ALL SELECT NULL UNION ALL SELECT 2", {"a": "date"}),
    "too_many_digits": ("SELECT CAST('1e30' AS numeric(38,0)) AS a", {"a": "integer"}),
    "no_table": ("SELECT a FROM nowhere", {"a": "integer"}),
    "no_value": ("SELECT INTERVAL '1 day' AS a", {"a": "string"}),
    "late": (
        "SELECT CAST(CASE WHEN a = 5000 THEN 'x' ELSE '1' END AS int) AS a FROM generate_series(1, 100000) AS s(a)",
        {"a": "integer"},
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_what_a_query_cannot_give(run: Run, case: str) -> None:
    text, columns = BAD[case]
    with (
        pytest.raises(SqlError) as caught,
        query_rows(run.sessions, prepared(run, text), columns, "loop", lambda: False) as found,
    ):
        list(found)
    name = f"query_rows_{run.opened.capabilities.target_type}_{case}"
    assert_snapshot(name, re.sub(r"process \d+", "process PID", caught.value.render()))


def test_a_query_changes_nothing(run: Run) -> None:
    """Also where its text does not tell that it would."""
    run.task('text: "CREATE TABLE t (a int)"', instance="made")
    if run.opened.capabilities.target_type == "duckdb":
        return
    text = "CREATE FUNCTION add() RETURNS int LANGUAGE sql AS 'INSERT INTO t VALUES (1) RETURNING a'"
    run.task(f'text: "{text}"', instance="function")
    with (
        pytest.raises(SqlError, match="a statement of task loop failed"),
        query_rows(run.sessions, prepared(run, "SELECT add() AS a"), {"a": "integer"}, "loop", lambda: False),
    ):
        pass


def test_reading_is_interrupted(run: Run) -> None:
    cancellation = Cancellation()
    text = "SELECT count(*) AS a FROM generate_series(1, 100000000000)"
    query = prepared(run, text)
    cancellation.time_out(1)
    with (
        pytest.raises(HeadraceError) as caught,
        query_rows(run.sessions, query, {"a": "integer"}, "loop", cancellation.is_set) as found,
    ):
        list(found)
    assert not isinstance(caught.value, TaskTimeoutError)  # what it is says whoever has asked for it
    assert caught.value.kind == "cancelled"
