"""Transforms in front of joins and unions: what packages may say, which columns meet, and every message about them."""

from __future__ import annotations

from pathlib import Path

import pytest

from headrace.model import DataFlowTask, DataType, LookupTable, SqlTransform, TableColumn, describe
from tests.snapshots import assert_snapshot
from tests.unit.model.packages import load, message

HEAD = """\
headrace: 1
package: facts
connections:
  inbox: {type: files, path: data}
  warehouse: {type: duckdb, path: w.duckdb}
  server: {type: postgres, host: db}
layouts:
  orders:
    delimiter: "|"
    columns:
      - {name: o_key, type: int64, nullable: false}
      - {name: o_day, type: date}
      - {name: note, type: varchar(20)}
      - {name: file, type: string, from: file_name}
  lines:
    delimiter: ","
    columns:
      - {name: l_key, type: int32, on_error: ignore}
      - {name: price, type: "decimal(9,2)", nullable: false}
      - {name: note, type: varchar(40)}
  colors: {delimiter: ",", columns: [{name: code, type: string}, {name: label, type: string}]}
tasks:
  load:
    data_flow:
      sources:
        orders: {connection: inbox, files: orders.*, layout: orders}
        lines: {connection: inbox, files: lines.*, layout: lines}
"""
MORE = "more: {connection: inbox, files: more.*, layout: lines}"
OPEN = "open: {input: orders, sql: \"SELECT o_key, o_day, note, file FROM orders WHERE note <> 'x'\"}"
CHEAP = 'cheap: {input: lines, split: {cheap: "price < 5"}, discard: [rest]}'
COLORS = (
    "keyed: {input: lines, lookup: {connection: inbox, files: c.csv, layout: colors, on: {note: code}, add: [label]}}"
)
TABLE = "keyed: {input: lines, lookup: {connection: warehouse, table: t, on: {note: code}, add: [label]}}"
JOIN = "left: open, right: cheap.cheap, on: {o_key: l_key}, right_columns: [price]"
TWO = ", two: {input: open, connection: warehouse, table: u, target: replace}"
FIXED = 'fixed: {input: lines, sql: "SELECT CAST(l_key AS BIGINT) AS o_key, note, 1 AS kind FROM lines"}'


def package(
    *transforms: str, out: str, more: str = "", destination: str = "connection: warehouse", others: str = ""
) -> str:
    """A package with these transforms, and a third source if there is `more`."""
    return (
        HEAD
        + (f"        {more}\n" if more else "")
        + "      transforms:\n"
        + "".join(f"        {own}\n" for own in transforms)
        + f"      destinations: {{out: {{input: {out}, {destination}, table: t, target: replace}}{others}}}\n"
    )


def joined(*transforms: str, join: str = JOIN, **more: str) -> str:
    return package(*transforms, f"joined: {{join: {{{join}}}}}", out=more.pop("out", "joined"), **more)


def united(*transforms: str, inputs: str = "orders, fixed", missing: str = '"null"', **more: str) -> str:
    union = f"every: {{union: {{inputs: [{inputs}], missing: {missing}}}}}"
    return package(*transforms, union, out=more.pop("out", "every"), **more)


CASES: dict[str, str] = {
    "unknown_output": joined(OPEN, CHEAP, join=JOIN.replace("cheap.cheap", "cheap.dear")),
    "output_not_said": joined(OPEN, CHEAP, join=JOIN.replace("cheap.cheap", "cheap")),
    "key_is_gone": joined(OPEN.replace("o_key, ", ""), CHEAP),
    "column_is_gone": joined(OPEN, CHEAP, join=JOIN.replace("[price]", "[prize]")),
    "key_types": joined(OPEN.replace("o_key,", "CAST(o_key AS VARCHAR) AS o_key,"), CHEAP),
    "key_float": joined(OPEN.replace("o_key,", "CAST(o_key AS DOUBLE) AS o_key,"), CHEAP),
    "names_of_both": joined(OPEN, CHEAP, join=JOIN.replace(", right_columns: [price]", "")),
    "both_sides_of_one_source": joined(
        OPEN, 'closed: {input: orders, sql: "SELECT o_key AS c_key FROM orders"}',
        join="left: open, right: closed, on: {o_key: c_key}",
    ).replace("        lines: {connection", "        unused: {connection"),
    "two_inputs_of_one_source": united(
        CHEAP.replace(", discard: [rest]", ""), inputs="cheap.cheap, orders, cheap.rest"
    ),
    "source_and_what_is_behind_it": united(FIXED, inputs="fixed, orders, lines"),
    "source_not_read": united(FIXED, more=MORE),
    "all_are_sources": united(inputs="orders, lines"),
    "sources_with_a_transform": package(FIXED, "every: {union: {sources: [orders, fixed]}}", out="every"),
    "a_join_behind_a_union": package(
        FIXED, "every: {union: {inputs: [orders, fixed], missing: null}}",
        "joined: {join: {left: every, right: more, on: {o_key: l_key}}}", out="joined", more=MORE,
    ),
    "nobody_reads_what_is_joined": joined(OPEN, CHEAP, out="open"),
    "beside_a_query_over_all_rows": joined(
        OPEN, CHEAP, 'sums: {input: joined, sql: "SELECT count(*) AS n FROM joined"}', out="sums", others=TWO,
    ),
    "divided_beside_by_what_is_looked_for": joined(
        OPEN, CHEAP, others=TWO.replace("warehouse", "server").replace(
            "replace}", "replace, load: staged, partition: {range: {column: o_key, parts: 2}}}"
        ),
    ),
    "column_is_not_beside": joined(OPEN, CHEAP, others=TWO.replace("replace}", "replace, columns: {k: price}}")),
    "output_read_behind": united(
        CHEAP.replace(", discard: [rest]", ""), "behind: {union: {inputs: [every, cheap.rest]}}",
        inputs="orders, cheap.cheap", out="behind",
    ),
    "output_not_read": joined(OPEN, CHEAP.replace(", discard: [rest]", "")),
    "front_reads_what_is_behind": joined(OPEN.replace("input: orders", "input: joined"), CHEAP),
    "not_in_front": joined(OPEN, CHEAP, COLORS),
    "all_rows": joined(OPEN.replace("SELECT o_key", "SELECT DISTINCT o_key"), CHEAP),
    "types": united(FIXED.replace("AS BIGINT", "AS INTEGER")),
    "missing": united(FIXED, missing="error"),
    "generated": joined(OPEN, CHEAP).replace(
        "{connection: inbox, files: lines.*, layout: lines}", "{generate: {tpch: region}, layout: lines}"
    ),
    "divided_behind_a_table": joined(
        OPEN, TABLE, join=JOIN.replace("cheap.cheap", "keyed").replace("[price]", "[label]"),
        destination="connection: server, load: staged, partition: {hash: {column: label, parts: 2}}",
    ),
    "divided_by_what_is_looked_for": joined(
        OPEN, CHEAP, destination="connection: server, load: staged, partition: {range: {column: o_key, parts: 2}}"
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(CASES))
def test_messages(tmp_path: Path, name: str) -> None:
    assert_snapshot(f"front_{name}", message(tmp_path, CASES[name]))


def columns(flow: DataFlowTask) -> list[tuple[str, str, bool]]:
    return [(own.name, str(own.type), own.nullable) for own in flow.columns]


def test_a_join_has_the_columns_behind_what_stands_in_front(tmp_path: Path) -> None:
    bound = load(
        tmp_path, joined(CHEAP, OPEN, join=JOIN.replace("on:", "type: left, on:").replace("[price]", "[price, l_key]"))
    )
    (flow,) = bound.data_flows()
    assert columns(flow) == [
        ("o_key", "int64", False), ("o_day", "date", True), ("note", "varchar(20)", True), ("file", "string", False),
        ("price", "decimal(9,2)", True), ("l_key", "int32", True),
    ]  # fmt: skip
    # Those of the left source come first, however they are written.
    assert [(own.name, own.front_of) for own in flow.transforms] == [("open", 0), ("cheap", 1)]
    assert flow.join is not None
    assert [rows.shown for rows in flow.join.inputs] == ["open", "cheap.cheap"]
    assert flow.is_read_as_declared and flow.filters
    own = describe(bound)["data_flows"][0]  # type: ignore[index]
    assert own["join"]["inputs"] == ["open", "cheap.cheap"]
    assert [item["in_front_of"] for item in own["transforms"]] == ["joined", "joined"]


def test_a_union_matches_the_columns_behind_what_stands_in_front(tmp_path: Path) -> None:
    (flow,) = load(tmp_path, united(FIXED)).data_flows()
    assert flow.union is not None
    found = [(own.name, str(own.type), own.may_be_null, own.columns, own.lacking) for own in flow.union.columns]
    assert found == [
        ("o_key", "int64", True, ("o_key", "o_key"), ()),
        ("o_day", "date", True, ("o_day", None), ("lines",)),
        # Of texts the longest type is taken.
        ("note", "varchar(40)", True, ("note", "note"), ()),
        ("file", "string", True, ("file", None), ("lines",)),
        ("kind", "int32", True, (None, "kind"), ("orders",)),
    ]
    assert [(own.name, own.front_of) for own in flow.transforms] == [("fixed", 1)]


def test_several_transforms_may_stand_in_front_and_behind(tmp_path: Path) -> None:
    parted = 'parted: {input: keyed, split: {dear: "price > 9"}}'
    named = "named: {input: parted.dear, sql: \"SELECT * REPLACE ('dear' AS label) FROM parted\"}"
    again = "again: {union: {inputs: [named, parted.rest]}}"
    behind = 'behind: {input: every, sql: "SELECT count(*) AS n FROM every"}'
    text = united(OPEN, COLORS, parted, named, again, behind, inputs="again, open", out="behind")
    (flow,) = load(tmp_path, text).data_flows()
    before = flow.source.before  # type: ignore[union-attr]
    assert [(own.name, own.front_of) for own in before.transforms] == [
        ("keyed", 0), ("parted", 0), ("named", 0), ("again", 0), ("open", 1),
    ]  # fmt: skip
    assert before.union is not None and flow.transforms == ()


def test_what_meets_behind_a_table_is_known_when_the_table_is(tmp_path: Path) -> None:
    behind = 'behind: {input: joined, sql: "SELECT label, o_day FROM joined"}'
    join = JOIN.replace("cheap.cheap", "keyed").replace("[price]", "[label]")
    (flow,) = load(tmp_path, joined(OPEN, TABLE, behind, join=join, out="behind")).flows
    assert flow.join is not None and not flow.join.is_described
    assert flow.describe is not None
    text = DataType.parse("varchar(9)")
    columns = tuple(TableColumn(name, text, "VARCHAR", True) for name in ("code", "label"))
    known = flow.describe({"keyed": LookupTable(columns, 7)})
    assert known.together is not None
    assert [(own.name, str(own.type)) for own in known.together.columns][-1] == ("label", "varchar(9)")
    query = known.transforms[-1]
    assert isinstance(query, SqlTransform) and [own.name for own in query.columns] == ["label", "o_day"]


def test_a_table_is_divided_by_a_column_that_no_table_in_front_has_added(tmp_path: Path) -> None:
    """As behind a join: what a lookup of a database adds is known when the run begins, all else is before."""
    for join, key, mapping in (
        (JOIN, "o_key", ""),
        (JOIN.replace("[price]", "{cost: price, label: label}"), "amount", ", columns: {O_KEY: o_key, amount: cost}"),
    ):
        destination = f"connection: server, load: staged, partition: {{list: {{column: {key}, values: {{a: [1]}}}}}}"
        text = joined(OPEN, TABLE, join=join.replace("cheap.cheap", "keyed"), destination=destination + mapping)
        (flow,) = load(tmp_path, text).flows
        assert flow.join is not None and not flow.join.is_described
        assert flow.destination.partition is not None and flow.destination.partition.column == key


def test_rows_in_front_go_to_destinations_too(tmp_path: Path) -> None:
    """Each with the columns of its own source, whatever meets."""
    split = CHEAP.replace(", discard: [rest]", "")
    named = 'named: {input: cheap.rest, sql: "SELECT l_key AS key, price FROM cheap"}'
    others = TWO + "".join(
        f", {name}: {{input: {rows}, connection: {place}, table: {name}, target: replace}}"
        for name, rows, place in (("raw", "lines", "server"), ("named", "named", "warehouse"))
    )
    bound = load(tmp_path, joined(OPEN, split, named, others=others, destination="connection: server"))
    flows = {own.id: own for own in bound.data_flows()}
    # What is behind the join comes first, and with it all else of its connection.
    assert list(flows) == ["load/out", "load/raw", "load/two", "load/named"]
    assert {name: (own.front, own.source.name) for name, own in flows.items()} == {
        "load/out": (None, "orders"), "load/two": (0, "orders"), "load/raw": (1, "lines"), "load/named": (1, "lines"),
    }  # fmt: skip
    assert [own.name for own in flows["load/raw"].rows] == ["l_key", "price", "note"]
    assert [own.name for own in flows["load/named"].rows] == ["key", "price"]
    assert [(own.name, own.front_of) for own in flows["load/named"].transforms] == [("cheap", 1), ("named", 1)]
    assert flows["load/raw"].ignoring == ["l_key"]
    told = {own["task"]: own for own in describe(bound)["data_flows"]}  # type: ignore[attr-defined]
    assert "join" in told["load/out"] and "join" not in told["load/raw"]
    assert told["load/raw"]["source"]["name"] == "lines"


def test_a_union_of_sources_may_have_rows_beside_it(tmp_path: Path) -> None:
    text = united(FIXED, others=", raw: {input: lines, connection: warehouse, table: raw, target: replace}")
    out, raw = load(tmp_path, text).data_flows()
    assert (out.front, raw.front, raw.source.name) == (None, 1, "lines")
    alone = raw.alone
    assert (alone.together, alone.front, alone.transforms) == (None, None, ())
