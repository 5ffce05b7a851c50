"""Random queries over rows, without a command line: many windows, many streams, and DuckDB over the same file."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace import core
from headrace.executors import sql_instances
from headrace.model import ROW_NUMBER, DataType, EmbeddedQuery, RowQuery
from headrace.model.row_query import RowColumnType, described_rows
from headrace.planning import DataFlowPlan
from tests.integration.query_scenes import COLUMNS, order, source
from tests.patience import HANG_SECONDS

# More of them: HEADRACE_RANDOM_ROW_QUERIES=200.
EXAMPLES = int(os.environ.get("HEADRACE_RANDOM_ROW_QUERIES", "6"))
ROWS = 300
NUMBERS = ("id", "price", "quantity", "quantity * 2", "length(note)", "3", "0.25", "-quantity", "id % 5")
TEXTS = ("note", "code", "note || code", "upper(note)", "'x'", "substr(note, 3)", "day::VARCHAR")
PLAIN_TESTS = (
    "paid",
    "NOT paid",
    "day IS NULL",
    "quantity IN (1, 2, 3)",
    "day < DATE '2024-06-01'",
    "id IN (FROM range(99))",
)
MORE = ("ratio * 2", "ratio", "day + 1", "paid", "day", "year(day)", "code")
# They fail for some of the rows.
FAILING = (
    "100 // quantity",
    "id % quantity",
    "note::INTEGER",
    "(price * 1000000000000)::DECIMAL(15,2)",
    "(2147483645 + quantity)",
    "ratio / quantity",
    "CASE WHEN id % 7 = 3 THEN error('seven') ELSE id END",
    "CASE WHEN quantity > 0 THEN 10 // (quantity - 1) END",
)

numbers, texts = st.sampled_from(NUMBERS), st.sampled_from(TEXTS)
tests = st.one_of(
    st.tuples(numbers, st.sampled_from(["<", ">=", "=", "<>"]), numbers).map(" ".join),
    st.tuples(texts, st.sampled_from(["<", "=", "LIKE"]), texts).map(" ".join),
    st.sampled_from(PLAIN_TESTS),
)
values = st.one_of(
    numbers,
    texts,
    st.sampled_from(MORE),
    st.tuples(tests, numbers, numbers).map(lambda own: f"CASE WHEN {own[0]} THEN {own[1]} ELSE {own[2]} END"),
    st.tuples(numbers, numbers).map(lambda own: f"coalesce({own[0]}, {own[1]})"),
    st.tuples(texts, texts).map(lambda own: f"nullif({own[0]}, {own[1]})"),
    tests.map(lambda own: f"({own})"),
)
wheres = st.one_of(st.just(""), tests.map(lambda own: f" WHERE {own}"))


@dataclass(frozen=True)
class Scene:
    """A file, cut into slices, and the same rows in a database."""

    layout: dict[str, Any]
    slicing: dict[str, Any]
    database: duckdb.DuckDBPyConnection


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    folder: Path = tmp_path_factory.mktemp("rows")
    (folder / "orders.0").write_text("".join(map(order, range(ROWS))))
    columns = [{"name": name, "type": DataType.parse(own).to_core(), "nullable": True} for name, own in COLUMNS.items()]
    layout = {"delimiter": "|", "columns": columns}
    slicing = core.plan_slices({"files": [str(folder / "orders.0")], "slice_bytes": 4500, "layout": layout})
    with duckdb.connect(config={"threads": 1}) as database:
        database.execute(f"CREATE TABLE orders AS {source(folder)}")
        yield Scene(layout, slicing, database)


def flow_rows(
    scene: Scene, queries: Sequence[RowQuery], streams: int, block_bytes: int, instance_bytes: int = 32_000_000
) -> list[tuple[Any, ...]]:
    """What comes out of the queries, one behind the other, ordered; as the last one, how many rows were rejected."""
    transforms = [
        {
            "name": f"q{number}",
            "query": {
                "number": ROW_NUMBER,
                "columns": [
                    {"name": own.name, "type": own.type.to_core(), "nullable": True, "from": own.origin}
                    for own in query.outputs
                ],
            },
        }
        for number, query in enumerate(queries, start=1)
    ]
    flow = core.Flow(
        {
            "name": "random",
            "layout": scene.layout,
            "source": {"files": scene.slicing["files"], "slices": scene.slicing["slices"]},
            "transforms": transforms,
            "sink": {"kind": "arrow", "columns": [own.name for own in queries[-1].outputs]},
            "streams": streams,
            "memory": {"block_bytes": block_bytes, "blocks": streams + 10, "max_row_bytes": 1 << 20},
            "rejects": {"limit": None, "keep": "examples"},
        }
    )
    plans = {place: SimpleNamespace(rows=query) for place, query in enumerate(queries)}
    plan = SimpleNamespace(queries=plans, streams=streams, memory=SimpleNamespace(instance_bytes=instance_bytes))
    with sql_instances(cast(DataFlowPlan, plan), flow), duckdb.connect() as database:
        try:
            database.register("rows", flow.arrow_stream())
            flow.start()
            found = database.execute("FROM rows ORDER BY ALL").fetchall()
        finally:
            flow.cancel("the test has ended")
    result = flow.join(HANG_SECONDS)
    assert result is not None
    core.raise_for_error(result)
    for item in result["slices"]:
        assert item["rows"] == item["out"] + item["filtered"] + item["rejected"]
    return [*found, ("rejected", sum(item["rejected"] for item in result["slices"]))]


def described(sql: str, name: str, columns: Sequence[RowColumnType]) -> RowQuery:
    return described_rows(EmbeddedQuery(sql, sql), name, columns)


FIRST = [RowColumnType(name, DataType.parse(own)) for name, own in COLUMNS.items()]


@settings(max_examples=EXAMPLES, deadline=None)
@given(data=st.data())
def test_any_cut_gives_what_duckdb_gives(scene: Scene, data: st.DataObject) -> None:
    listed = [f"{own} AS c{place}" for place, own in enumerate(data.draw(st.lists(values, min_size=1, max_size=4)))]
    star = data.draw(st.sampled_from(["", "*, ", "* EXCLUDE (note), ", "o.*, ", "m.v, o.*, "]))
    joined = " AS o LEFT JOIN (VALUES (1, 'one'), (2, 'two'), (NULL, 'none')) AS m(k, v) ON m.k = o.quantity"
    where = data.draw(wheres)
    first = f"SELECT {star}{', '.join(listed)} FROM orders{joined if 'o.' in star else ''}{where}"
    second = data.draw(
        st.sampled_from(["SELECT * FROM q1", "SELECT c0 AS x, * EXCLUDE (c0) FROM q1 WHERE c0 IS NOT NULL"])
    )
    one = described(first, "orders", FIRST)
    two = described(second, "q1", [RowColumnType(own.name, own.type) for own in one.outputs])
    expected = scene.database.execute(f"WITH q1 AS ({first}) FROM ({second}) ORDER BY ALL").fetchall()
    for streams, block_bytes in ((1, 1 << 20), (5, 4096)):
        assert flow_rows(scene, [one, two], streams, block_bytes) == [*expected, ("rejected", 0)], (first, second)


def test_many_queries_need_no_more_memory_than_one(scene: Scene) -> None:
    """Each has the memory of the whole instance: one of them runs at a time."""
    columns, queries, name = FIRST, [], "orders"
    for number in range(1, 13):
        sql = f"SELECT id, '{number}' || note AS note FROM {name} LEFT JOIN (VALUES (1), (2)) AS m(k) ON k = id"
        queries.append(described(sql, name, columns))
        columns = [RowColumnType(own.name, own.type) for own in queries[-1].outputs]
        name = f"q{number}"
    *found, rejected = flow_rows(scene, queries, 1, 1 << 20, instance_bytes=6_000_000)
    assert (len(found), rejected) == (ROWS, ("rejected", 0))


def alone(scene: Scene, sql: str) -> list[tuple[Any, ...]]:
    """What comes out when each row is alone, with the number of those that fail as the last one."""
    found, failed = [], 0
    for number in range(ROWS):
        try:
            rows = scene.database.execute(
                sql.replace("FROM orders", f"FROM (FROM orders WHERE id = {number})")
            ).fetchall()
        except duckdb.Error:
            failed += 1
            continue
        if any(isinstance(value, float) and not isfinite(value) for row in rows for value in row):
            failed += 1
        else:
            found += rows
    return [*found, ("rejected", failed)]


@settings(max_examples=EXAMPLES // 2, deadline=None)
@given(expressions=st.lists(st.sampled_from(FAILING), min_size=1, max_size=2), where=wheres)
def test_rows_that_fail_alone_are_rejects_in_any_cut(scene: Scene, expressions: list[str], where: str) -> None:
    listed = ", ".join(f"{own} AS c{place}" for place, own in enumerate(expressions))
    sql = f"SELECT id, {listed} FROM orders{where}"
    query = described(sql, "orders", FIRST)
    expected = alone(scene, sql)
    for streams, block_bytes in ((1, 1 << 20), (5, 4096)):
        assert flow_rows(scene, [query], streams, block_bytes) == expected, sql
