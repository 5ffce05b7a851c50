"""Several joins in one data flow: what packages may say, which columns meet, and every message about them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from headrace.model import DataFlowTask, DataType, Join, LookupTable, TableColumn, describe
from tests.snapshots import assert_snapshot
from tests.unit.model.packages import load, message

HEAD = """\
headrace: 1
package: facts
connections:
  inbox: {type: files, path: data}
  warehouse: {type: duckdb, path: w.duckdb}
layouts:
  orders: {delimiter: "|", columns: [{name: o_key, type: int64, nullable: false}, {name: day, type: date}]}
  lines:
    delimiter: "|"
    columns:
      - {name: l_key, type: int32, nullable: false}
      - {name: code, type: string}
      - {name: weight, type: float64}
  parcels:
    delimiter: "|"
    columns:
      - {name: p_key, type: int64, nullable: false}
      - {name: sent, type: date, nullable: false}
      - {name: file, type: string, from: file_name}
  codes: {delimiter: ",", columns: [{name: code, type: string}, {name: label, type: string}]}
tasks:
  load:
    data_flow:
      sources:
"""
SOURCES = ("orders", "lines", "parcels")
DETAILED = "detailed: {join: {left: orders, right: lines, on: {o_key: l_key}}}"
PRICED = 'priced: {input: detailed, sql: "SELECT * EXCLUDE (weight), l_key + 1 AS next FROM detailed"}'
KEYED = (
    "keyed: {input: detailed, lookup: {connection: inbox, files: c.csv, layout: codes, on: {code: code}, "
    "add: [label], no_match: output}}"
)
TABLE = "keyed: {input: detailed, lookup: {connection: warehouse, table: t, on: {code: code}, add: [label]}}"
SENT = "sent: {join: {left: parcels, right: detailed, on: {p_key: o_key}, left_columns: [p_key, sent]}}"
TWO = ", two: {input: detailed, connection: warehouse, table: u, target: replace}"


def package(*transforms: str, out: str = "sent", others: str = "", sources: tuple[str, ...] = SOURCES) -> str:
    """A package with these transforms."""
    read = ((own, own.rstrip("0123456789")) for own in sources)
    return (
        HEAD
        + "".join(f"        {own}: {{connection: inbox, files: {own}.*, layout: {layout}}}\n" for own, layout in read)
        + "      transforms:\n"
        + "".join(f"        {own}\n" for own in transforms)
        + f"      destinations: {{out: {{input: {out}, connection: warehouse, table: t, target: replace}}{others}}}\n"
    )


def behind(rows: str, sent: str = SENT) -> str:
    return sent.replace("right: detailed", f"right: {rows}")


CASES: dict[str, str] = {
    "read_between": package(DETAILED, SENT, others=TWO),
    "output_read_between": package(
        DETAILED, KEYED, behind("keyed"), others=TWO.replace("input: detailed", "input: keyed.no_match")
    ),
    "output_not_read": package(DETAILED, KEYED, behind("keyed")),
    "no_tree": package(DETAILED, SENT.replace("right: detailed", "right: lines").replace("o_key", "l_key")),
    "both_sides": package(
        DETAILED, "again: {join: {left: detailed, right: priced, on: {o_key: o_key}}}", PRICED, out="again"
    ),
    "two_ways_behind": package(
        DETAILED, SENT, behind("detailed", SENT.replace("sent:", "again:", 1)), out="sent", others=TWO.replace(
            "input: detailed", "input: again"
        ),
    ),
    "circle": package(DETAILED.replace("left: orders", "left: sent"), SENT),
    "source_twice": package(DETAILED, SENT.replace("parcels", "orders").replace("p_key: o_key", "o_key: o_key")),
    "unknown_side": package(DETAILED, behind("detaild")),
    "unread": package(DETAILED, SENT, out="detailed"),
    "key_types": package(DETAILED, SENT.replace("p_key: o_key", "p_key: day")),
    "key_float": package(DETAILED, SENT.replace("p_key: o_key", "p_key: weight")),
    "key_is_gone": package(DETAILED, PRICED, behind("priced").replace("p_key: o_key", "p_key: weight")),
    "unknown_columns": package(DETAILED, SENT.replace("left_columns", "right_columns: [o_key, dya], left_columns")),
    "names_of_both": package(DETAILED, SENT.replace("[p_key, sent]", "{o_key: p_key}")),
    "made": package(DETAILED, SENT.replace("[p_key, sent]", "[p_key, file]")),
    "all_rows": package(
        DETAILED, 'sums: {input: detailed, sql: "SELECT DISTINCT o_key FROM detailed"}', behind("sums")
    ),
    "a_union_of_joined_rows_and_a_source": package(
        DETAILED, "every: {union: {inputs: [detailed, parcels], missing: null}}", out="every"
    ),
    "parts": package(DETAILED, SENT).replace(
        "warehouse, table: t", "server, load: staged, partition: {range: {column: o_key, parts: 2}}, table: t"
    ).replace("layouts:", "  server: {type: postgres, host: db}\nlayouts:"),
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(CASES))
def test_messages(tmp_path: Path, name: str) -> None:
    assert_snapshot(f"join_tree_{name}", message(tmp_path, CASES[name]))


def tree_of(sources: int) -> str:
    """So many sources, each joined with what has come together before."""
    names = ["orders", *(f"lines{number}" for number in range(1, sources))]
    joins = [
        f"j{number}: {{join: {{left: {own}, right: {f'j{number - 1}' if number > 1 else 'orders'}, "
        f"on: {{l_key: o_key}}, left_columns: {{l{number}: l_key}}, right_columns: [o_key]}}}}"
        for number, own in enumerate(names[1:], start=1)
    ]
    return package(*joins, out=f"j{sources - 1}", sources=tuple(names))


def flow_of(tmp_path: Path, text: str) -> DataFlowTask:
    (flow,) = load(tmp_path, text).data_flows()
    return flow


def test_a_stream_reads_so_many_sources_at_once(tmp_path: Path) -> None:
    join = flow_of(tmp_path, tree_of(64)).join
    assert join is not None and len(join.brought) == 64
    assert_snapshot("join_tree_too_many_sources", message(tmp_path, tree_of(65)))


def test_the_sources_stand_in_the_order_of_the_tree(tmp_path: Path) -> None:
    flow = flow_of(tmp_path, package(DETAILED, SENT))
    join = flow.join
    assert join is not None and isinstance(join.right, Join)
    assert [own.name for own in join.brought] == ["parcels", "orders", "lines"]
    assert ([own.name for own in join.inner], join.right.name, join.has_fronts) == (["detailed"], "detailed", True)
    assert [column.name for column in join.columns] == ["p_key", "sent", "o_key", "day", "l_key", "code", "weight"]


def test_a_column_may_be_missing_through_any_join_above_it(tmp_path: Path) -> None:
    right = SENT.replace("on:", "type: right, on:")
    left = DETAILED.replace("on:", "type: left, on:")
    join = flow_of(tmp_path, package(left, right)).join
    assert join is not None
    assert {own.name for own in join.columns if own.nullable} == {"p_key", "sent", "day", "l_key", "code", "weight"}
    join = flow_of(tmp_path, package(DETAILED, SENT.replace("on:", "type: full, on:"))).join
    assert join is not None and all(own.nullable for own in join.columns)


def test_transforms_between_joins_have_the_number_of_the_inner_join(tmp_path: Path) -> None:
    """Behind all sources, those apart included; without these, with the next ones."""
    apart = ", two: {input: parcels2, connection: warehouse, table: u, target: replace}"
    text = package(DETAILED, PRICED, behind("priced"), others=apart, sources=(*SOURCES, "parcels2"))
    flow = next(own for own in load(tmp_path, text).data_flows() if own.front is None)
    assert [(own.name, own.front_of) for own in flow.transforms] == [("priced", 4)]
    assert [(own.name, own.front_of) for own in flow.alone.transforms] == [("priced", 3)]


def test_a_table_in_front_of_an_inner_join_is_looked_at_later(tmp_path: Path) -> None:
    front = TABLE.replace("detailed", "lines")
    flow = flow_of(tmp_path, package(front, DETAILED.replace("right: lines", "right: keyed"), SENT))
    assert flow.join is not None and not flow.join.is_described and flow.describe is not None
    columns = (
        TableColumn("code", DataType.parse("string"), "VARCHAR", False),
        TableColumn("label", DataType.parse("string"), "VARCHAR", True),
    )
    described = flow.describe({"keyed": LookupTable(columns, 9)})
    assert isinstance(described.together, Join) and described.together.is_described
    assert "label" in [own.name for own in described.together.columns]


def test_a_package_says_what_stands_where(tmp_path: Path) -> None:
    flows: Any = describe(load(tmp_path, package(DETAILED, PRICED, behind("priced"))))["data_flows"]
    (told,) = flows
    join = told["join"]
    inner = join["right"]["join"]
    assert (join["left"], inner["left"]["name"], inner["right"]["name"]) == ("parcels", "orders", "lines")
    assert join["inputs"] == ["parcels", "priced"]
    (priced,) = told["transforms"]
    assert (priced["in_front_of"], priced["of_source"]) == ("sent", "detailed")
