"""Joins: what packages may say of them, which columns rows have behind them, and every message about them."""

from __future__ import annotations

from pathlib import Path

import pytest

from headrace.model import JoinKey, describe
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
      - {name: note, type: string}
      - {name: weight, type: float64}
      - {name: file, type: string, from: file_name}
  lines:
    delimiter: ","
    columns:
      - {name: l_key, type: int32}
      - {name: price, type: "decimal(9,2)", nullable: false}
      - {name: Note, type: varchar(20)}
  colors: {delimiter: ",", columns: [{name: code, type: string}, {name: label, type: string}]}
tasks:
  load:
    data_flow:
"""
ORDERS = "orders: {connection: inbox, files: orders.*, layout: orders}"
LINES = "lines: {connection: inbox, files: lines.*, layout: lines}"
COLUMNS = "left_columns: [o_key, o_day], right_columns: {line_note: Note, price: price}"
JOIN = f"left: orders, right: lines, on: {{o_key: l_key}}, {COLUMNS}"
STAGED = "connection: server, load: staged"
COLORS = "lookup: {connection: inbox, files: c.csv, layout: colors, on: {line_note: code}, add: [label]"


def package(
    join: str = JOIN,
    *more: str,
    sources: tuple[str, ...] = (ORDERS, LINES),
    input: str = "joined",
    destination: str = "connection: warehouse",
) -> str:
    """A package with this join and more transforms."""
    transforms = [f"joined: {{join: {{{join}}}}}" if join else "", *more]
    return (
        f"{HEAD}      sources:\n"
        + "".join(f"        {source}\n" for source in sources)
        + "      transforms:\n"
        + "".join(f"        {transform}\n" for transform in transforms if transform)
        + f"      destinations: {{out: {{input: {input}, {destination}, table: t, target: replace}}}}\n"
    )


def joined(old: str, new: str) -> str:
    assert old in JOIN
    return package(JOIN.replace(old, new, 1))


CASES: dict[str, str] = {
    "two_sources": package("", f"keyed: {{input: lines, {COLORS.replace('line_note', 'Note')}}}}}", input="keyed"),
    "three_sources": package(sources=(ORDERS, LINES, LINES.replace("lines:", "more:", 1))),
    "two_joins": package(JOIN, f"again: {{join: {{{JOIN}}}}}"),
    "unknown_source": joined("left: orders", "left: order"),
    "one_source_twice": joined("right: lines", "right: orders"),
    "one_source": package(sources=(ORDERS,)),
    "generated": package(sources=(ORDERS, "lines: {generate: {tpch: region}, layout: lines}")),
    "transform_as_side": package(JOIN.replace("right: lines", "right: keyed"), f"keyed: {{input: lines, {COLORS}}}}}"),
    "input": package().replace("joined: {join", "joined: {input: orders, join"),
    "keys_as_list": joined("{o_key: l_key}", "[o_key]"),
    "no_keys": joined("{o_key: l_key}", "{}"),
    "unknown_keys": joined("{o_key: l_key}", "{o_ky: l_kye}"),
    "key_types": joined("{o_key: l_key}", "{o_day: l_key}"),
    "key_float": joined("{o_key: l_key}", "{weight: price}"),
    "key_made": joined("{o_key: l_key}", "{file: Note}"),
    "unknown_type": joined(COLUMNS, f"type: outer, {COLUMNS}"),
    "unknown_setting": joined(COLUMNS, f"kind: left, {COLUMNS}"),
    "equal_names": joined(COLUMNS, "type: inner"),
    "equal_new_names": joined("line_note: Note", "O_KEY: Note"),
    "unknown_columns": joined("[o_key, o_day]", "[o_key, o_dai]"),
    "made_column": joined("[o_key, o_day]", "[o_key, file]"),
    "no_columns": joined("[o_key, o_day]", "[]"),
    "bypassed": package(input="lines"),
    "name_of_a_source": package("", f"lines: {{join: {{{JOIN}}}}}", input="lines"),
    "parts": package(destination=f"{STAGED}, partition: {{range: {{column: o_key, parts: 2}}}}"),
    "every": package(destination=f"{STAGED}, partition: {{range: {{column: o_day, every: 1 month, to: 2024-02-01}}}}"),
    "partition_per_file": package(destination=f"{STAGED}, partition: {{range: {{column: o_key}}}}"),
    "partition_and_commit": package(
        destination=f"{STAGED}, commit: {{rows: 9}}, partition: {{hash: {{column: o_key, parts: 2}}}}"
    ),
    "partition_by_nothing": package(destination=f"{STAGED}, partition: {{hash: {{column: Note, parts: 2}}}}"),
    "columns": package(destination="connection: warehouse, columns: {key: o_key, note: note}"),
}


@pytest.mark.parametrize("name", sorted(CASES))
def test_messages(tmp_path: Path, name: str) -> None:
    assert_snapshot(f"join_{name}", message(tmp_path, CASES[name]))


def test_rows_have_the_columns_of_both_sides(tmp_path: Path) -> None:
    text = JOIN.replace("on:", "type: left, on:")
    (flow,) = load(tmp_path, package(text)).data_flows()
    assert flow.join is not None
    assert (flow.source, flow.join.right.name, flow.join.kind) == (flow.join.left, "lines", "left")
    assert flow.join.keys == (JoinKey("o_key", "l_key"),)
    assert [(column.name, column.origin, str(column.type), column.nullable) for column in flow.join.columns] == [
        ("o_key", ("left", "o_key"), "int64", False),
        ("o_day", ("left", "o_day"), "date", True),
        ("line_note", ("right", "Note"), "varchar(20)", True),
        ("price", ("right", "price"), "decimal(9,2)", True),
    ]
    assert (flow.columns, flow.ignoring) == (flow.join.columns, [])


def test_without_a_list_all_columns_that_are_read_go_on(tmp_path: Path) -> None:
    (flow,) = load(
        tmp_path, package("left: orders, right: lines, on: {o_key: l_key}, right_columns: [price]")
    ).data_flows()
    assert [column.name for column in flow.columns] == ["o_key", "o_day", "note", "weight", "price"]


def test_a_lookup_finds_by_a_column_of_either_side(tmp_path: Path) -> None:
    defaulted = f"keyed: {{input: joined, {COLORS}, no_match: {{default: none}}}}}}"
    bound = load(tmp_path, package(JOIN, defaulted, input="keyed"))
    (flow,) = bound.data_flows()
    assert [lookup.name for lookup in flow.transforms] == ["keyed"]
    described = describe(bound)["data_flows"]
    assert isinstance(described, list)
    assert described[0]["join"]["on"] == {"o_key": "l_key"}
    assert described[0]["join"]["right"]["layout"]["delimiter"] == ","


@pytest.mark.parametrize(
    "clause",
    [
        "commit: {rows: 100}",
        "load: staged, partition: {hash: {column: line_note, parts: 2}}",
        "load: staged, partition: {list: {column: line_note, values: {a: [x], b: [null]}}}",
        "load: staged, partition: {range: {column: price, bounds: [1.5, 20]}}",
        "load: staged, partition: {range: {column: o_day, every: 1 month, from: 2024-01-01, to: 2024-03-01}}",
    ],
)
def test_rows_go_where_a_column_of_either_side_says(tmp_path: Path, clause: str) -> None:
    rejecting = f"keyed: {{input: joined, {COLORS}}}}}"
    destination = f"connection: server, {clause}"
    (flow,) = load(tmp_path, package(JOIN, rejecting, input="keyed", destination=destination)).data_flows()
    assert (flow.destination.partition is None) == ("partition" not in clause)
    assert flow.lookups[0].rejects_misses


def test_columns_that_are_ignored_are_known_by_their_new_names(tmp_path: Path) -> None:
    text = package().replace("{name: Note, type: varchar(20)}", "{name: Note, type: varchar(20), on_error: ignore}")
    (flow,) = load(tmp_path, text).data_flows()
    assert flow.ignoring == ["line_note"]
