"""Tasks of kind `sql` on DuckDB and on PostgreSQL: values, results, transactions, errors."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from headrace.errors import (
    CancelledError,
    HeadraceError,
    PackageError,
    SqlError,
    TargetBusyError,
    TaskTimeoutError,
)
from headrace.model.rows import MAXIMUM_ROWS, Rows
from headrace.run.cancellation import Cancellation
from tests.integration.sql_tasks import CANARY, DUCKDB, Run, begun, later, postgres_connection, rows
from tests.patience import FOR_EVER_SECONDS, HANG_SECONDS
from tests.servers.cluster import PASSWORD, Database
from tests.snapshots import assert_snapshot


@pytest.fixture(params=["duckdb", "postgres"])
def run(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Run]:
    """On each destination."""
    if request.param == "duckdb":
        with begun(tmp_path, DUCKDB, {}) as run:
            yield run
        return
    database: Database = request.getfixturevalue("database")
    with begun(tmp_path, postgres_connection(database), database.environment) as run:
        yield run


@pytest.fixture
def postgres_run(database: Database, tmp_path: Path) -> Iterator[Run]:
    with begun(tmp_path, postgres_connection(database), database.environment) as run:
        yield run


@pytest.fixture
def duckdb_run(tmp_path: Path) -> Iterator[Run]:
    with begun(tmp_path, DUCKDB, {}) as run:
        yield run


def kind(run: Run) -> str:
    return run.opened.capabilities.target_type


def shown(run: Run, error: HeadraceError) -> str:
    """The error without what differs from run to run."""
    text = error.render().replace(str(run.folder), "FOLDER")
    return re.sub(r"process \d+", "process PID", text)


def test_values_of_every_type_come_back_as_they_were(run: Run) -> None:
    values: dict[str, Any] = {
        "n": -(2**63),
        "text": "it's $n; -- ü\\",
        "total": Decimal("1234567890123456789012345678.0123456789"),
        "first": date(2024, 2, 29),
        "at": datetime(2024, 2, 29, 23, 59, 59, 123456),
        "is_on": False,
    }
    names = list(values)
    query = f"SELECT {', '.join(f'${name} AS {name}' for name in names)}, $day AS d, $amount AS a, $n + 1 AS more"
    row = ", ".join(f"{name}: {name}" for name in names)
    assert run.task(f'text: "{query}", row: {{{row}}}', **values).outputs == values
    assert rows(run, "SELECT $day AS d, $amount AS a, $names[2] AS b, $text AS t, $first AS f") == [
        (date(2024, 1, 31), Decimal("12.50"), "b'c", None, None)
    ]


def test_values_have_the_types_of_their_variables_even_if_they_are_null(run: Run) -> None:
    run.task('text: "CREATE TABLE kept AS SELECT $n AS n, $first AS f, $names AS l, $total AS t"')
    found = rows(run, "SELECT column_name, data_type FROM information_schema.columns WHERE table_name = 'kept'")
    expected = {
        "duckdb": {("n", "BIGINT"), ("f", "DATE"), ("l", "VARCHAR[]"), ("t", "DECIMAL(38,10)")},
        "postgres": {("n", "bigint"), ("f", "date"), ("l", "ARRAY"), ("t", "numeric")},
    }
    assert set(found) == expected[kind(run)]


def test_a_script_of_several_statements_with_values_and_names(run: Run) -> None:
    (run.folder / "orders.sql").write_text(
        "-- makes it\nCREATE TABLE $t (id int, note text); ; /* $x; */\n"
        "INSERT INTO $t VALUES ($n, 'a;b'), ($n + 1, $text);\nUPDATE $t SET note = $text || '$n' WHERE id = $n;\n",
        encoding="utf-8",
    )
    settings = """file: orders.sql, identifiers: {t: 'My; "Table"'}"""
    result = run.task(settings, n=4, text="x")
    assert (result.outputs, result.details) == ({}, {"statements": 3})
    assert rows(run, r"SELECT id, note FROM \"My; \"\"Table\"\"\" ORDER BY id") == [(4, "x$n"), (5, "x")]


def test_a_name_with_a_schema(run: Run) -> None:
    schema = {"duckdb": "main", "postgres": "public"}[kind(run)]
    run.task(f'text: "CREATE TABLE $t (id int)", identifiers: {{t: "{schema}.drop table"}}')
    assert rows(run, r"SELECT count(*) AS n FROM \"drop table\"") == [(0,)]
    with pytest.raises(SqlError, match="the identifier `t` is no name"):
        run.task('text: "CREATE TABLE $t (id int)", identifiers: {t: "a.b.c"}', instance="other")


def test_affected_row_and_returning(run: Run) -> None:
    run.task('text: "CREATE TABLE t (id int, note text)"', instance="a")
    text = "INSERT INTO t VALUES (1, 'x'), (2, 'y'), (3, 'z')"
    assert run.task(f'text: "{text}", affected: n', instance="b").outputs == {"n": 3}
    assert run.task('text: "DELETE FROM t WHERE id > 5", affected: n', instance="c").outputs == {"n": 0}
    text = "UPDATE t SET note = 'new' WHERE id >= 2 RETURNING id, note"
    result = dict(run.task(f'text: "{text}", rows: found, affected: n', instance="d").outputs)
    assert result["n"] == 2
    assert isinstance(result["found"], Rows)
    assert set(map(tuple, result["found"].rows)) == {(2, "new"), (3, "new")}
    text = "UPDATE t SET note = 'newer' WHERE id = 1 RETURNING id, note"
    result = dict(run.task(f'text: "{text}", row: {{n: ID, text: note}}', instance="e").outputs)
    assert result == {"n": 1, "text": "newer"}


# By what they do to three rows: how many they change. Words of other statements stand wherever a text may hold them.
CHANGES = {
    "INSERT INTO t SELECT id + 10, 'returning customer' FROM t": 3,
    "INSERT INTO t SELECT id + 10, note FROM t -- returning": 3,
    "DELETE FROM t /* returning id */ WHERE id > 1": 2,
    "UPDATE t SET note = 'x RETURNING id' WHERE id < 3": 2,
    "UPDATE t SET note = $text WHERE id < 3": 2,
    'INSERT INTO t SELECT id + 10, "returning" FROM (SELECT id, note AS "returning" FROM t) AS q': 3,
    'INSERT INTO t SELECT id + 10, note AS "Count" FROM t': 3,
    "WITH returned AS (SELECT id + 10 AS id, note FROM t) INSERT INTO t SELECT * FROM returned": 3,
    "MERGE INTO t USING (SELECT 1 AS id) AS q ON t.id = q.id WHEN MATCHED THEN UPDATE SET note = 'returning'": 1,
    "CREATE TABLE returning_customers AS SELECT 'returning' AS note FROM t": 3,
    "UPDATE t SET note = 'x' WHERE id < 3 RETURNING id": 2,
    'INSERT INTO t VALUES (7, NULL), (8, NULL) RETURNING CAST(id * 100 AS bigint) AS "Count"': 2,
    "DELETE FROM t WHERE id > 1 RETURNING note -- returning": 2,
    "MERGE INTO t USING (SELECT 1 AS id) AS q ON t.id = q.id WHEN MATCHED THEN DELETE RETURNING t.id": 1,
}


@pytest.mark.parametrize("text", CHANGES)
def test_the_number_of_changed_rows_does_not_hang_on_words(run: Run, text: str) -> None:
    run.task('text: "CREATE TABLE t (id int, note text)"', instance="a")
    run.task("text: \"INSERT INTO t VALUES (1, 'a'), (2, 'b'), (3, 'c')\"", instance="b")
    settings = f"text: {json.dumps(text)}, affected: n"
    assert run.task(settings, instance="c", text="RETURNING id").outputs == {"n": CHANGES[text]}


def test_a_column_that_is_called_as_a_count_is_one_of_a_query(run: Run) -> None:
    query = 'SELECT CAST(4 AS bigint) AS \\"Count\\"'
    found = run.task(f'text: "{query}", rows: found, row: {{n: Count}}', instance="a").outputs
    assert found["n"] == 4
    assert rows(run, 'SELECT true AS \\"Success\\" UNION ALL SELECT true') == [(True,), (True,)]
    with pytest.raises(PackageError, match="changes no rows that are counted"):
        run.task(f'text: "{query}", affected: n', instance="b")


def test_what_was_committed_is_not_done_again(run: Run) -> None:
    run.task('text: "CREATE TABLE t (id int, day date, amount numeric(9,2))"', instance="a")
    text = "INSERT INTO t VALUES (1, $day, 2.50) RETURNING id, day, amount"
    settings = f'text: "{text}", row: {{n: id, first: day, total: amount}}, rows: found'
    first = run.task(settings, instance="b")
    again = run.task(settings, instance="b")
    assert again.outputs == first.outputs
    assert (first.outputs["total"], first.outputs["first"]) == (Decimal("2.50"), date(2024, 1, 31))
    assert again.details["committed_before"]
    assert rows(run, "SELECT count(*) AS n FROM t") == [(1,)]


def test_a_failed_statement_undoes_all_and_leaves_no_mark(run: Run) -> None:
    run.task('text: "CREATE TABLE t (id int PRIMARY KEY)"', instance="a")
    with pytest.raises(SqlError) as caught:
        run.task('text: "INSERT INTO t VALUES (1); INSERT INTO t VALUES (2), (1); SELECT 1"', instance="b")
    assert_snapshot(f"sql_{kind(run)}_duplicate_key", shown(run, caught.value))
    assert run.sessions.finished_task("b") is None
    assert rows(run, "SELECT count(*) AS n FROM t") == [(0,)]
    run.task('text: "INSERT INTO t VALUES (1)"', instance="b")
    assert rows(run, "SELECT count(*) AS n FROM t") == [(1,)]


def test_reading_leaves_no_mark_and_changing_does(run: Run) -> None:
    run.task("text: \"SET TimeZone = 'UTC'; SELECT 1 AS n\"", instance="a")
    assert run.sessions.finished_task("a") is None
    run.task('text: "CREATE TABLE t (id int)"', instance="b")
    assert run.sessions.finished_task("b") is not None


def test_a_function_that_writes_leaves_a_mark(postgres_run: Run) -> None:
    run = postgres_run
    run.task(
        'text: "CREATE TABLE t (id int); '
        "CREATE FUNCTION add() RETURNS bigint BEGIN ATOMIC INSERT INTO t VALUES (1); "
        'SELECT count(*) FROM t; END"',
        instance="a",
    )
    assert run.task('text: "SELECT add() AS n", row: {n: n}', instance="b").outputs == {"n": 1}
    assert run.task('text: "SELECT add() AS n", row: {n: n}', instance="b").details["committed_before"]
    assert rows(run, "SELECT count(*) AS n FROM t") == [(1,)]


def test_without_a_transaction_each_statement_commits(run: Run) -> None:
    text = "CREATE TABLE t (id int); INSERT INTO t VALUES (1); SELECT nothing FROM nowhere"
    with pytest.raises(SqlError):
        run.task(f'text: "{text}", transaction: false', instance="a")
    assert rows(run, "SELECT count(*) AS n FROM t") == [(1,)]
    assert run.sessions.finished_task("a") is None
    vacuum = {"duckdb": "CHECKPOINT", "postgres": "VACUUM t"}[kind(run)]
    run.task(f'text: "INSERT INTO t VALUES (2); {vacuum}", transaction: false', instance="b")
    with pytest.raises(SqlError) as caught:
        run.task(f'text: "INSERT INTO t VALUES (3); {vacuum}"', instance="c")
    assert_snapshot(f"sql_{kind(run)}_not_in_a_transaction", shown(run, caught.value))
    text = "INSERT INTO t VALUES (4) RETURNING id"
    assert run.task(f'text: "{text}", row: {{n: id}}, transaction: false', instance="d").outputs == {"n": 4}
    assert rows(run, "SELECT id FROM t ORDER BY id") == [(1,), (2,), (4,)]


BAD_RESULTS = {
    "no_row": ("SELECT 1 AS n WHERE 1 = 0", "row: {n: n}"),
    "two_rows": ("SELECT 1 AS n UNION ALL SELECT 2", "row: {n: n}"),
    "no_column": ("SELECT 1 AS n, 2 AS m", "row: {n: number}"),
    "a_double": ("SELECT CAST(1.5 AS double precision) AS price", "row: {n: price}"),
    "an_interval": ("SELECT 1 AS n, INTERVAL '1 day' AS wait", "rows: found"),
    "a_time_zone": ("SELECT CAST('2024-01-01' AS timestamptz) AS seen", "rows: found"),
    "endless": ("SELECT CAST('infinity' AS timestamp) AS seen", "rows: found"),
    "no_statement_with_rows": ("SELECT 1 AS n; CREATE TABLE t (id int)", "rows: found"),
    "too_many_rows": (f"SELECT 1 AS n FROM generate_series(1, {MAXIMUM_ROWS + 1})", "rows: found"),
    "too_many_bytes": ("SELECT repeat('x', 1000000) AS t FROM generate_series(1, 100)", "rows: found"),
}


@pytest.mark.parametrize("case", BAD_RESULTS)
def test_results_that_fit_no_variable(run: Run, case: str) -> None:
    text, wanted = BAD_RESULTS[case]
    with pytest.raises((SqlError, PackageError)) as caught:
        run.task(f'text: "{text}", {wanted}')
    assert_snapshot(f"sql_{kind(run)}_result_{case}", shown(run, caught.value))


BAD_STATEMENTS = {
    "syntax": "SELEC 1",
    "no_table": "SELECT 1;\n\n        SELECT * FROM nowhere",
    "no_value_here": "CREATE VIEW v AS SELECT $n AS n",
    "a_wrong_value": "SELECT CAST($text AS int)",
}


@pytest.mark.parametrize("case", BAD_STATEMENTS)
def test_statements_that_are_refused(run: Run, case: str) -> None:
    bound = run.package(
        f"  task:\n    sql:\n      connection: warehouse\n      text: |\n        {BAD_STATEMENTS[case]}\n"
    )
    with pytest.raises(SqlError) as caught:
        run.execute(bound, "loop[a].task", Cancellation(), {"text": "nine", "n": 1})
    assert_snapshot(f"sql_{kind(run)}_statement_{case}", shown(run, caught.value))


def test_no_secret_is_in_an_error(run: Run) -> None:
    for text in ("SELECT CAST($secret AS int)", f"SELECT '{CANARY}' + nothing"):
        with pytest.raises(SqlError) as caught:
            run.task(f'text: "{text}"')
        told = f"{caught.value.render()} {caught.value.to_dict()} {caught.value}"
        assert CANARY not in told
        assert PASSWORD not in told


def test_a_secret_is_not_in_the_mark(run: Run) -> None:
    run.task('text: "CREATE TABLE t (id text)"', instance="a")
    for name, value in (("text", "$secret"), ("hidden", "'x' || 'yz'")):
        text = f"INSERT INTO t VALUES ({value}) RETURNING id"
        result = run.task(f'text: "{text}", row: {{{name}: id}}', instance=name)
        assert result.outputs[name] in (CANARY, "xyz")
        mark = run.sessions.finished_task(name)
        assert mark is not None and mark.result == f'{{"outputs":{{}},"secret":["{name}"]}}'
        with pytest.raises(SqlError, match="is not kept"):
            run.task(f'text: "{text}", row: {{{name}: id}}', instance=name)


SLOW = "SELECT count(*) AS n FROM generate_series(1, 100000000000)"


@pytest.mark.parametrize("way", ["cancelled", "timeout"])
def test_a_statement_is_interrupted(run: Run, way: str) -> None:
    run.task('text: "CREATE TABLE t (id int)"', instance="a")
    cancellation = Cancellation()
    stopped: list[float] = []

    def stop() -> None:
        stopped.append(time.monotonic())
        cancellation.set() if way == "cancelled" else cancellation.time_out(0.3)

    error = CancelledError if way == "cancelled" else TaskTimeoutError
    slow = (
        f"SELECT 1 FROM (SELECT 1 AS a) b, LATERAL (SELECT pg_sleep({FOR_EVER_SECONDS})) c"
        if kind(run) == "postgres"
        else SLOW
    )
    with later(0.3, stop), pytest.raises(error, match="task b"):
        run.task(f'text: "INSERT INTO t VALUES (1); {slow}"', instance="b", cancellation=cancellation)
    assert time.monotonic() - stopped[0] < HANG_SECONDS
    assert rows(run, "SELECT count(*) AS n FROM t") == [(0,)]
    assert run.sessions.finished_task("b") is None


def test_what_a_script_sets_is_gone_behind_it(postgres_run: Run) -> None:
    run = postgres_run
    run.task(
        'text: "SET search_path = nowhere; SET datestyle = German; CREATE TEMP TABLE t (id int); '
        'SELECT pg_advisory_lock(7)"'
    )
    assert rows(
        run,
        "SELECT current_setting('search_path') AS p, current_setting('datestyle') AS d, "
        "current_setting('timezone') AS z, current_setting('lock_timeout') AS l",
    ) == [('"$user", public', "ISO, MDY", "UTC", "1s")]
    assert rows(run, "SELECT count(*) AS n FROM pg_locks WHERE locktype = 'advisory' AND objid = 7") == [(0,)]
    assert rows(run, "SELECT to_regclass('t')::text AS t") == [(None,)]


def test_what_a_script_sets_in_duckdb_is_gone_behind_it(duckdb_run: Run) -> None:
    run = duckdb_run
    query = "SELECT current_setting('threads') AS t, current_setting('preserve_insertion_order') AS p"
    before = rows(run, query)
    run.task("text: \"SET threads = 1; SET preserve_insertion_order = false; ATTACH ':memory:' AS other; USE other\"")
    assert rows(run, query) == before
    assert rows(run, "SELECT count(*) AS n FROM duckdb_databases() WHERE database_name = 'other'") == [(0,)]
    assert before[0][1] is True
    found = run.opened._connection.execute("SELECT current_setting('preserve_insertion_order')").fetchall()  # type: ignore[attr-defined]
    assert found == [(False,)]


def test_notices_and_warnings(postgres_run: Run) -> None:
    postgres_run.task(
        "text: \"DO $$ BEGIN RAISE NOTICE 'hello'; RAISE WARNING 'look'; END $$; DROP TABLE IF EXISTS no\""
    )
    assert postgres_run.notices == ["task: hello", 'task: table "no" does not exist, skipping']
    assert postgres_run.warnings == ["task: look"]


def test_another_role(postgres_run: Run, database: Database) -> None:
    database.psql(
        "CREATE ROLE writer_of_others; GRANT writer_of_others TO loader; "
        "GRANT CREATE ON SCHEMA public TO writer_of_others"
    )
    try:
        text = "SET ROLE writer_of_others; CREATE TABLE theirs AS SELECT 1 AS id"
        assert postgres_run.task(f'text: "{text}", affected: n').outputs == {"n": 1}
        owner = "SELECT tableowner::text AS o FROM pg_tables WHERE tablename = 'theirs'"
        assert rows(postgres_run, owner) == [("writer_of_others",)]
    finally:
        database.psql("DROP TABLE IF EXISTS theirs; DROP OWNED BY writer_of_others; DROP ROLE writer_of_others")


def test_locks_and_deadlocks_can_be_retried(postgres_run: Run, database: Database) -> None:
    run = postgres_run
    run.task('text: "CREATE TABLE t (id int)"', instance="a")
    with database.session("BEGIN; LOCK TABLE t"), pytest.raises(TargetBusyError) as caught:
        run.task('text: "INSERT INTO t VALUES (1)"', instance="b")
    assert_snapshot("sql_postgres_locked", shown(run, caught.value))
    run.task('text: "INSERT INTO t VALUES (1)"', instance="b")


def test_a_session_that_was_ended_is_replaced(postgres_run: Run, database: Database) -> None:
    run = postgres_run
    run.task('text: "CREATE TABLE t (id int)"', instance="a")
    ended = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE '% sql'"
    assert database.rows(ended) == [("t",)]
    run.task('text: "INSERT INTO t VALUES (1)"', instance="b")
    text = "INSERT INTO t VALUES (2); SELECT pg_terminate_backend(pg_backend_pid())"
    with pytest.raises(TargetBusyError):
        run.task(f'text: "{text}"', instance="c")
    assert rows(run, "SELECT id FROM t") == [(1,)]


def test_without_a_ledger(database: Database, tmp_path: Path) -> None:
    with begun(tmp_path, postgres_connection(database, ", ledger: off"), database.environment) as run:
        assert not run.sessions.keeps_marks
        run.task('text: "CREATE TABLE t (id int)"', instance="a")
        for _ in range(2):
            run.task('text: "INSERT INTO t VALUES (1)"', instance="b")
        assert rows(run, "SELECT count(*) AS n FROM t") == [(2,)]
    assert database.rows("SELECT to_regnamespace('headrace')::text") == [(None,)]
