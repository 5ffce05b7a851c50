"""Queries over all rows: which they are, what DuckDB reads for them, what depends on their order, every message."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from headrace.model import DataType, EmbeddedQuery, GatheredSource
from headrace.model.gathered_query import GatheredQuery, described_gathered
from headrace.model.row_query import RowColumnType
from headrace.model.row_query_error import RowQueryError
from tests.snapshots import assert_snapshot
from tests.unit.model.packages import load, message
from tests.unit.model.test_sql_transforms import COLUMNS, query
from tests.unit.model.test_transforms import package

COUNTED = "SELECT part, count(*) AS n FROM lines GROUP BY part"

# Whether rows go through as they come.
GATHERED = {
    "SELECT count(*) AS n FROM lines": True,
    COUNTED: True,
    "SELECT DISTINCT part FROM lines": True,
    "SELECT * FROM lines ORDER BY id": True,
    "SELECT * FROM lines ORDER BY id LIMIT 3": True,
    "SELECT id, sum(price) OVER (PARTITION BY part) AS s FROM lines": True,
    "SELECT * FROM lines QUALIFY row_number() OVER (PARTITION BY part ORDER BY id) = 1": True,
    "SELECT DISTINCT ON (part) * FROM lines ORDER BY id": True,
    "SELECT string_agg(color, ',' ORDER BY id) AS s FROM lines": True,
    "SELECT l.*, k FROM lines AS l FULL JOIN (VALUES (1)) AS m(k) ON k = part": False,
    "SELECT DISTINCT l.part FROM lines AS l SEMI JOIN (SELECT k FROM range(5) AS v(k) WHERE hash(k) = 1) AS m "
    "ON m.k = part": False,
    "SELECT l.* FROM lines AS l JOIN lines AS m USING (id)": False,
    "SELECT l.* FROM (VALUES (1)) AS m(k) JOIN lines AS l ON k = part": False,
    "SELECT * FROM lines WHERE price = (SELECT max(price) FROM lines)": False,
    "SELECT id FROM lines UNION ALL SELECT part FROM lines": False,
    "SELECT EXISTS (SELECT 1 FROM lines) AS has_rows": False,
    "SELECT (SELECT max(price) FROM lines) AS highest, 1 AS one": True,
    "FROM (PIVOT (SELECT id, part, price FROM lines) ON part IN (1, 2) USING sum(price) GROUP BY id)": True,
}


@pytest.mark.parametrize("sql", GATHERED)
def test_a_query_that_needs_all_rows_is_the_source_of_what_stands_behind_it(tmp_path: Path, sql: str) -> None:
    (flow,) = load(tmp_path, query(sql)).data_flows()
    assert isinstance(flow.source, GatheredSource)
    assert (flow.source.query.streams, flow.transforms) == (GATHERED[sql], ())
    assert [own.name for own in flow.source.layout.columns] == [own.name for own in flow.source.query.outputs]
    assert flow.source.before.source.name == "lines"


def described(sql: str) -> GatheredQuery:
    columns = [RowColumnType(column, DataType.parse(own)) for column, own in COLUMNS.items()]
    return described_gathered(EmbeddedQuery(sql, sql), "rows", columns)


ORDERED = [
    "SELECT * FROM rows LIMIT 3",
    "SELECT a FROM (SELECT * FROM rows OFFSET 3) AS r GROUP BY a",
    "SELECT DISTINCT ON (a) a, b FROM rows",
    "SELECT row_number() OVER (PARTITION BY a) AS n FROM rows",
    "SELECT sum(b) OVER (ROWS 2 PRECEDING) AS n FROM rows",
    "SELECT lag(b) OVER () AS n FROM rows",
    "SELECT first(b) AS n FROM rows",
    "SELECT any_value(b) AS n FROM rows GROUP BY a",
    "SELECT a, list(b) AS n FROM rows GROUP BY a HAVING len(list(b)) > 1",
    "SELECT string_agg(code, ',') OVER (PARTITION BY a) AS n FROM rows",
    "SELECT approx_quantile(b, 0.5) AS n FROM rows",
    "SELECT a FROM rows USING SAMPLE 10%",
    "SELECT a FROM rows TABLESAMPLE 10%",
    "SELECT json_group_array(b) AS n FROM rows",
    "SELECT json_group_object(code, b) AS n FROM rows",
    "SELECT string_agg(code, ',' ORDER BY 1) AS n FROM rows",
    "SELECT any_value(b ORDER BY 1) AS n FROM rows",
    "SELECT row_number() OVER (ORDER BY 1) AS n FROM rows",
    "SELECT row_number() OVER (ORDER BY (SELECT NULL)) AS n FROM rows",
    "SELECT * FROM rows ORDER BY 1 = 1 LIMIT 3",
    "SELECT * FROM rows ORDER BY 'a' LIMIT 3",
    "WITH RECURSIVE t(k, v) USING KEY (k) AS (SELECT a, b FROM rows UNION SELECT k, v FROM t WHERE false) FROM t",
    "SELECT count(*) AS n FROM rows GROUP BY code COLLATE NOCASE",
    "SELECT max(code COLLATE NOCASE) AS n FROM rows",
    "SELECT column_name, q50 FROM (SUMMARIZE rows)",
    "FROM (DESCRIBE rows)",
    "SELECT a, x FROM rows POSITIONAL JOIN (VALUES (1)) AS m(x)",
]


@pytest.mark.parametrize("sql", ORDERED)
def test_what_depends_on_the_order_of_rows_is_refused(sql: str) -> None:
    with pytest.raises(RowQueryError, match="order in which rows come"):
        described(sql)


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("SELECT sum(f) AS s FROM rows", True),
        ("SELECT stddev(a) AS s FROM rows", True),
        ("SELECT sum(f) OVER (PARTITION BY a) AS s FROM rows", True),
        ("SELECT sum(a::DOUBLE) OVER (PARTITION BY b) AS s FROM rows", True),
        ("SELECT geomean(b) AS s FROM rows", True),
        ("SELECT entropy(code) AS s FROM rows", True),
        ("SELECT count(f) AS s, max(f) AS m FROM rows", False),
    ],
)
def test_sums_of_floats_are_told(sql: str, said: bool) -> None:
    assert described(sql).sums_floats is said


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("SELECT arg_min(a, b) AS s, max_by(a, b) AS m FROM rows", ("`arg_min`", "`max_by`")),
        ("SELECT mode(code) AS m FROM rows", ("`mode`",)),
        ("SELECT first(a ORDER BY b) AS s FROM rows", ("`first`",)),
        ("SELECT string_agg(code, ',' ORDER BY b) AS s FROM rows", ("`string_agg`",)),
        ("SELECT r.a, m.x FROM rows AS r ASOF JOIN (VALUES (1, 2)) AS m(k, x) ON r.a >= m.k", ("ASOF JOIN",)),
        ("SELECT DISTINCT ON (a) a, b FROM rows ORDER BY a, b", ("DISTINCT ON",)),
        ("SELECT a FROM rows ORDER BY b LIMIT 3", ("LIMIT",)),
        ("SELECT a FROM rows QUALIFY row_number() OVER (PARTITION BY a ORDER BY b) = 1", ("`row_number` OVER",)),
        ("SELECT lag(a) OVER (ORDER BY b) AS s FROM rows", ("`lag` OVER",)),
        ("SELECT max(a) OVER (ORDER BY b ROWS UNBOUNDED PRECEDING) AS s FROM rows", ("`max` OVER",)),
        # Equal rows have the same result in these.
        ("SELECT rank() OVER (ORDER BY b) AS s, dense_rank() OVER (ORDER BY b) AS d FROM rows", ()),
        ("SELECT min(a) OVER (ORDER BY b) AS s, max(a) OVER (PARTITION BY b) AS m FROM rows", ()),
        ("SELECT DISTINCT a FROM rows ORDER BY a", ()),
        ("SELECT a, count(*) AS n, min(b) AS m FROM rows GROUP BY a", ()),
    ],
)
def test_what_takes_any_of_equal_rows_is_told(sql: str, said: tuple[str, ...]) -> None:
    assert described(sql).ties == said


SECOND = "{input: q, sql: SELECT count(*) AS n FROM q}"


def test_each_query_is_the_source_of_the_flow_to_the_next(tmp_path: Path) -> None:
    first, between = (
        f"q: {{input: lines, sql: {json.dumps(COUNTED)}}}",
        "m: {input: q, sql: SELECT * FROM q WHERE n > 1}",
    )
    second = SECOND.replace("input: q", "input: m").replace("FROM q", "FROM m")
    last = "e: {input: r, sql: SELECT n + 1 AS m FROM r}"
    (flow,) = load(tmp_path, package(first, between, f"r: {second}", last, input="e")).data_flows()
    assert isinstance(flow.source, GatheredSource)
    assert (flow.source.name, [own.name for own in flow.transforms]) == ("r", ["e"])
    middle = flow.source.before
    assert isinstance(middle.source, GatheredSource)
    assert (middle.source.name, [own.name for own in middle.transforms]) == ("q", ["m"])
    assert flow.source.first is middle.source.before
    assert (middle.source.before.source.name, middle.source.before.transforms) == ("lines", ())


def test_several_destinations_get_one_result(tmp_path: Path) -> None:
    text = query(COUNTED).replace(
        "destinations: {out:",
        "destinations: {all: {input: q, connection: warehouse, table: l, target: replace}, out:",
    )
    one, two = load(tmp_path, text).data_flows()
    assert isinstance(one.source, GatheredSource) and one.source is two.source
    assert (one.flow, two.flow) == ("load", "load")
    assert (one.feeds, two.feeds) == ((), ())


BESIDE = query(COUNTED).replace(
    "destinations: {out:", "destinations: {all: {input: lines, connection: warehouse, table: l, target: replace}, out:"
)


def test_raw_rows_stand_before_results(tmp_path: Path) -> None:
    text = BESIDE.replace("{all: {", "{out: {").replace("}, out: {", "}, all: {")
    raw, result = load(tmp_path, text).data_flows()
    assert (raw.source.name, raw.feeds) == ("lines", ("q",))
    assert isinstance(result.source, GatheredSource)
    assert (result.source.name, result.feeds, result.source.before.feeds) == ("q", ("q",), ("q",))


MESSAGES = {
    "limit": query("SELECT * FROM lines LIMIT 3"),
    "window": query("SELECT *, row_number() OVER () AS n FROM lines"),
    "first": query("SELECT first(id) AS id FROM lines"),
    "sum": query("SELECT sum(id) AS ids FROM lines"),
    "no_name": query("SELECT count(*) AS n, max(id) AS N FROM lines"),
    "random": query("SELECT max(random()) AS r FROM lines"),
    "other_table": query("SELECT count(*) AS n FROM lines JOIN parts USING (id)"),
    "schema": query("SELECT count(*) AS n FROM main.lines"),
    "commit": query(COUNTED, destination=", target: append, commit: {rows: 10}").replace("target: replace, ", ""),
    "partition": query(COUNTED, destination=", partition: {range: {column: part, parts: 2}}"),
    "partition_by_file": query(COUNTED, destination=", partition: {range: {column: part}}"),
    "partition_key": package(
        f"q: {{input: lines, sql: {json.dumps(COUNTED)}}}",
        "r: {input: q, sql: SELECT part + 1 AS part FROM q}",
        input="r",
        destination=", partition: {hash: {column: part, parts: 2}}",
    ),
    "partitions": query(COUNTED, destination=", partition: {range: {column: part, bounds: [3]}}, partitions: [a]"),
    "several": package(f"q: {{input: lines, sql: {json.dumps(COUNTED)}}}", f"r: {SECOND}", input="r").replace(
        "destinations: {out:", "destinations: {all: {input: q, connection: warehouse, table: l, target: replace}, out:"
    ),
    "beside_commit": BESIDE.replace("table: l, target: replace", "table: l, target: append, commit: {rows: 10}"),
    "beside_partitions": BESIDE.replace(
        "table: l,", "table: l, partition: {range: {column: id, bounds: [3]}}, partitions: [a],"
    ),
    "beside_connections": BESIDE.replace(
        "connections:", "connections:\n  other: {type: duckdb, path: other.duckdb}", 1
    ).replace("connection: warehouse, table: l", "connection: other, table: l"),
    "beside_rejects_table": BESIDE.replace("sources:", "rejects: {limit: 1, table: bad}\n      sources:", 1),
    "beside_together": package(
        'p: {input: lines, split: {few: "id < 3"}}',
        f"q: {{input: p.few, sql: {json.dumps(COUNTED.replace('lines', 'p'))}}}",
        "t: {union: {inputs: [q, p.rest], missing: 'null'}}",
        input="t",
    ),
    "connections": query(COUNTED)
    .replace("connections:", "connections:\n  other: {type: duckdb, path: other.duckdb}", 1)
    .replace(
        "destinations: {out:", "destinations: {all: {input: q, connection: other, table: l, target: replace}, out:"
    ),
    "rejects_table": query(COUNTED).replace("sources:", "rejects: {limit: 1, table: bad}\n      sources:", 1),
}


@pytest.mark.parametrize("name", MESSAGES)
def test_messages(tmp_path: Path, name: str) -> None:
    assert_snapshot(f"gathered_{name}", message(tmp_path, MESSAGES[name]))
