"""Queries over rows: which columns they have, what passes them, what no stream can do, and every message about them."""

from __future__ import annotations

import json
from pathlib import Path

import duckdb
import pytest

from headrace.errors import BindingError
from headrace.model import ComputedColumn, DataType, EmbeddedQuery, LookupTable, SqlTransform, TableColumn, describe
from headrace.model.row_query import RowColumnType, RowQuery, described_rows
from headrace.model.row_query_error import RowQueryError
from tests.snapshots import assert_snapshot
from tests.unit.model.packages import load, message
from tests.unit.model.test_transforms import FILES, HEAD, KEYED, keyed, package

COLUMNS = {
    "a": "int32", "b": "int64", "price": "decimal(15,2)", "code": "char(10)", "f": "float64", "d": "date", "j": "json",
}  # fmt: skip


def query(sql: str, **more: str) -> str:
    """A package with one query over the rows of `lines`."""
    return package(f"q: {{input: lines, sql: {json.dumps(sql)}}}", input="q", **more)


MESSAGES = {
    # Not constant
    "random": query("SELECT *, random() AS r FROM lines"),
    "now": query("SELECT *, now() AS r FROM lines"),
    "like_a_column": query("SELECT *, current_date AS r FROM lines"),
    "in_a_macro": query("SELECT * FROM lines WHERE md5(uuid()::VARCHAR) > 'a'"),
    "tells_time": query("SELECT age(TIMESTAMP '2020-01-01') AS r FROM lines"),
    # Columns
    "no_name": query("SELECT id + 1 FROM lines"),
    "name_twice": query("SELECT id, part AS ID FROM lines"),
    "type": query("SELECT id::HUGEINT AS h FROM lines"),
    "list": query("SELECT [id] AS l FROM lines"),
    "interval": query("SELECT INTERVAL 1 DAY AS i FROM lines"),
    "whole_row": query("SELECT to_json(lines) AS j FROM lines"),
    "names_by_pattern": query("SELECT COLUMNS('id|row') FROM lines"),
    "names_by_pattern_in_where": query("SELECT id FROM lines WHERE COLUMNS('id|row') > 5"),
    "names_by_pattern_as_arguments": query("SELECT least(*COLUMNS('id|row')) AS l FROM lines"),
    "by_its_place": query("SELECT l.id, #5 AS x FROM lines AS l, (VALUES (7::UINTEGER)) AS m(x)"),
    # What it reads
    "other_table": query("SELECT * FROM parts"),
    "table_beside": query("SELECT l.* FROM lines AS l JOIN parts USING (id)"),
    "file_beside": query("SELECT l.* FROM lines AS l JOIN read_csv('/etc/passwd') AS p ON true"),
    "table_of_the_session": query("SELECT id, (SELECT count(*) FROM duckdb_tables) AS n FROM lines"),
    "function_of_the_session": query("SELECT id, (SELECT min(x) FROM query('SELECT random() AS x')) AS n FROM lines"),
    "no_rows": query("SELECT 1 AS one"),
    "unknown_column": query("SELECT prt FROM lines"),
    "unknown_function": query("SELECT lenght(color) AS l FROM lines"),
    "wrong": query("SELECT FROM lines"),
    "no_query": query("DELETE FROM lines"),
    "two": query("SELECT * FROM lines; SELECT * FROM lines"),
    "reference": query("SELECT ${unknown} AS u FROM lines"),
    "unknown_name": query("SELECT $unkown AS u FROM lines"),
    "input": package("q: {input: line, sql: FROM line}", input="q"),
    "sql_and_lookup": package(f"q: {{input: lines, sql: FROM lines, lookup: {{{FILES}}}}}", input="q"),
    # Behind it
    "gone": package("q: {input: lines, sql: SELECT id FROM lines}", keyed("lines", "q"), input="keyed"),
    "destination": query("SELECT id FROM lines", destination=", columns: {part: part}"),
    "partition": query(
        "SELECT id, part + 1 AS part FROM lines", destination=", partition: {range: {column: part, bounds: [1]}}"
    ),
    "partition_renamed": query(
        "SELECT id AS key FROM lines", destination=", partition: {range: {column: key, bounds: [1]}}"
    ),
}


@pytest.mark.parametrize("name", MESSAGES)
def test_messages(tmp_path: Path, name: str) -> None:
    assert_snapshot(f"sql_transform_{name}", message(tmp_path, MESSAGES[name]))


def described(sql: str, *values: tuple[str, object], name: str = "rows") -> RowQuery:
    columns = [RowColumnType(column, DataType.parse(own)) for column, own in COLUMNS.items()]
    return described_rows(EmbeddedQuery(sql, sql, values), name, columns)


PASSING = {
    "FROM rows": "a b price code f d j",
    "SELECT * EXCLUDE (a, F) FROM rows": "b price code d j",
    "SELECT * REPLACE (a + 1 AS a) FROM rows": "- b price code f d j",
    "SELECT j, r.A AS x, rows.b FROM rows AS r, (VALUES (1)) AS rows(b)": "j a -",
    "SELECT r.*, v FROM rows AS r LEFT JOIN (VALUES (1, 'x')) AS m(a, v) USING (a)": "a b price code f d j -",
    "SELECT *, 1 AS one FROM rows AS r JOIN (VALUES (1, 2)) AS m(k, v) ON k = a": "a b price code f d j - - -",
    "SELECT * FROM (SELECT *, a + 1 AS x FROM rows WHERE b > 0) AS t WHERE x > 2": "a b price code f d j -",
    "WITH p AS (SELECT a AS z, code, price * 2 AS y FROM rows) SELECT y, z AS a, * EXCLUDE (y, z) FROM p": "- a code",
    "SELECT x, a FROM rows AS r(x, a)": "a b",
    "SELECT * RENAME (a AS z) FROM rows": "- - - - - - -",
    "SELECT COALESCE(code, 'x') AS code, CASE WHEN a > 0 THEN b END AS b FROM rows": "- -",
    "SELECT a::BIGINT AS a, 'x' AS c FROM rows WHERE EXISTS (SELECT 1 FROM (VALUES (1)) t(x) WHERE x = a)": "- -",
}


@pytest.mark.parametrize("sql", PASSING)
def test_columns_that_pass_are_known(sql: str) -> None:
    outputs = described(sql).outputs
    assert " ".join(own.origin or "-" for own in outputs) == PASSING[sql]
    for own in outputs:
        if own.origin is not None:
            assert str(own.type) == COLUMNS[own.origin]
    connection = duckdb.connect()
    # The number of the row is the last column, and no other one is computed that passes.
    (row,) = connection.execute("SELECT json_serialize_sql($1)", [described(sql).sql]).fetchall()
    listed = json.loads(row[0])["statements"][0]["node"]["select_list"]
    assert len(listed) == 1 + sum(own.origin is None for own in outputs)


def test_every_function_that_is_not_constant_is_refused() -> None:
    with duckdb.connect() as connection:
        names = connection.execute(
            "SELECT DISTINCT function_name FROM duckdb_functions() WHERE stability <> 'CONSISTENT' AND "
            "function_type = 'scalar' AND len(parameters) = 0 AND function_name <> 'error'"
        ).fetchall()
    assert len(names) > 15
    for (name,) in names:
        with pytest.raises(RowQueryError, match=f"`{name}` gives another value"):
            described(f"SELECT a, {name}()::VARCHAR AS x FROM rows")
    # What raises is no other value.
    assert described("SELECT CASE WHEN a > 0 THEN a ELSE error('less') END AS a FROM rows").outputs


def test_a_column_may_be_called_as_a_function(tmp_path: Path) -> None:
    head = HEAD.replace("name: part,", "name: today,").replace("color", "user")
    (flow,) = load(tmp_path, query("SELECT today, user FROM lines", head=head)).data_flows()
    assert [column.name for column in flow.rows] == ["today", "user"]


def test_types_do_not_depend_on_values() -> None:
    sql = "SELECT a * CAST(getvariable('headrace_1') AS BIGINT) AS x FROM rows"
    assert {str(described(sql, ("BIGINT", value)).outputs[0].type) for value in (1, 5 * 10**9)} == {"int64"}


def test_columns_of_the_flow_are_those_of_its_last_query(tmp_path: Path) -> None:
    text = package(
        "q: {input: lines, sql: 'SELECT *, price * $unknown AS amount FROM lines WHERE part > 0'}",
        f"keyed: {KEYED.replace('lines', 'q', 1)}",
        "last: {input: keyed, sql: 'SELECT id, amount AS a, part_sk AS sk, color FROM keyed'}",
        input="last",
    )
    bound = load(tmp_path, text)
    (flow,) = bound.data_flows()
    first, lookup, last = flow.transforms
    assert isinstance(first, SqlTransform) and isinstance(last, SqlTransform) and flow.lookups == (lookup,)
    assert (flow.computes, first.is_described, first.rows and first.rows.query.values) == (
        True,
        True,
        (("BIGINT", -1),),
    )
    assert flow.rows == last.columns
    assert last.columns == (
        ComputedColumn("id", DataType.parse("int64"), False, "last", "id", "id"),
        ComputedColumn("a", DataType.parse("decimal(28,2)"), True, "last", "amount"),
        ComputedColumn("sk", DataType.parse("int16"), False, "last", "part_sk"),
        ComputedColumn("color", DataType.parse("char(5)"), True, "last", "color", "color"),
    )
    told = describe(bound)["data_flows"]
    assert isinstance(told, list)
    assert [own["kind"] for own in told[0]["transforms"]] == ["sql", "lookup", "sql"]
    assert told[0]["transforms"][2]["columns"][0] == {"name": "id", "type": "int64", "nullable": False, "from": "id"}


def test_a_query_behind_a_table_is_described_when_the_table_is_known(tmp_path: Path) -> None:
    table = keyed(FILES, "connection: warehouse, table: parts")
    behind = "q: {input: keyed, sql: 'SELECT id, part_sk + 1 AS n FROM keyed'}"
    again = f"again: {KEYED.replace('lines', 'q', 1).replace('part: p_key', 'n: p_key').replace('part_sk:', 'sk:')}"
    (flow,) = load(tmp_path, package(table, behind, again, input="again")).flows
    assert [own.is_described for own in flow.transforms] == [False, False, True]
    assert flow.describe is not None
    columns = tuple(TableColumn(name, DataType.parse("int64"), "BIGINT", True) for name in ("p_key", "p_sk"))
    _, query_, again_ = flow.describe({"keyed": LookupTable(columns, 7)}).transforms
    assert isinstance(query_, SqlTransform) and query_.is_described and again_.is_described
    assert [str(own.type) for own in query_.columns] == ["int64", "int64"]
    wrong = keyed(FILES, "connection: warehouse, table: parts").replace("part_sk: p_sk", "sk: p_sk")
    (flow,) = load(tmp_path, package(wrong, behind, input="q")).flows
    assert flow.describe is not None
    with pytest.raises(BindingError) as caught:
        flow.describe({"keyed": LookupTable(columns, 7)})
    assert_snapshot("sql_transform_late", caught.value.render().replace(f"{tmp_path}/", ""))
