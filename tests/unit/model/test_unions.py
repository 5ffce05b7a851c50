"""Unions: what packages may say of them, which columns rows have behind them, and every message about them."""

from __future__ import annotations

from pathlib import Path

import pytest

from headrace.model import DataFlowTask, describe
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
  old:
    delimiter: ";"
    columns:
      - {name: id, type: int64, nullable: false}
      - {name: amount, type: "decimal(9,2)"}
      - {name: origin, type: string, from: file_name}
      - {name: day, type: date, nullable: false}
  new:
    delimiter: "|"
    columns:
      - {name: Day, type: date, on_error: ignore}
      - {name: origin, type: string}
      - {name: id, type: int64, nullable: false}
      - {name: amount, type: "decimal(9,2)", nullable: false}
  more: {delimiter: "|", columns: [{name: id, type: int64}, {name: note, type: string}]}
  other: {delimiter: "|", columns: [{name: id, type: string}, {name: amount, type: int32}]}
  colors: {delimiter: ",", columns: [{name: code, type: date}, {name: label, type: string}]}
tasks:
  load:
    data_flow:
"""
OLD = "old: {connection: inbox, files: old.*, layout: old}"
NEW = "new: {connection: inbox, files: new.*, layout: new}"
MORE = "more: {connection: inbox, files: more.*, layout: more}"
OTHER = "other: {connection: inbox, files: other.*, layout: other}"
UNION = "sources: [old, new]"
STAGED = "connection: server, load: staged"
COLORS = "lookup: {connection: inbox, files: c.csv, layout: colors, on: {day: code}, add: [label]"


def package(
    union: str = UNION,
    *more: str,
    sources: tuple[str, ...] = (OLD, NEW),
    input: str = "all",
    destination: str = "connection: warehouse",
    others: str = "",
) -> str:
    """A package with this union and more transforms."""
    transforms = [f"all: {{union: {{{union}}}}}" if union else "", *more]
    return (
        f"{HEAD}      sources:\n"
        + "".join(f"        {source}\n" for source in sources)
        + "      transforms:\n"
        + "".join(f"        {transform}\n" for transform in transforms if transform)
        + f"      destinations: {{out: {{input: {input}, {destination}, table: t, target: replace}}{others}}}\n"
    )


CASES: dict[str, str] = {
    "one": package("sources: [old]", sources=(OLD,)),
    "none": package("sources: []"),
    "twice": package("sources: [old, new, old]"),
    "unknown_source": package("sources: [old, nev]"),
    "not_read": package(sources=(OLD, NEW, MORE)),
    "generated": package(sources=(OLD, "new: {generate: {tpch: region}, layout: new}")),
    "transform": package("sources: [old, keyed]", f"keyed: {{input: new, {COLORS}}}}}", sources=(OLD, NEW)),
    "input": package().replace("all: {union", "all: {input: old, union"),
    "two_unions": package(UNION, "again: {union: {sources: [old, new]}}"),
    "union_and_join": package(UNION, "joined: {join: {left: old, right: new, on: {id: id}}}"),
    "three_sources_alone": package("", f"keyed: {{input: old, {COLORS}}}}}", sources=(OLD, NEW, MORE), input="keyed"),
    "types": package("sources: [old, other], missing: null", sources=(OLD, OTHER)),
    "missing": package("sources: [old, new, more]", sources=(OLD, NEW, MORE)),
    "missing_word": package(f"{UNION}, missing: skip"),
    "unknown_setting": package(f"{UNION}, by: name"),
    "bypassed": package(input="old"),
    "name_of_a_source": package("", "old: {union: {sources: [old, new]}}", input="old"),
    "parts": package(destination=f"{STAGED}, partition: {{range: {{column: id, parts: 2}}}}"),
    "every": package(destination=f"{STAGED}, partition: {{range: {{column: day, every: 1 month, to: 2024-02-01}}}}"),
    "partition_per_file": package(destination=f"{STAGED}, partition: {{range: {{column: id}}}}"),
    "columns": package(destination="connection: warehouse, columns: {key: id, day: Day}"),
}


@pytest.mark.parametrize("name", sorted(CASES))
def test_messages(tmp_path: Path, name: str) -> None:
    assert_snapshot(f"union_{name}", message(tmp_path, CASES[name]))


def columns(flow: DataFlowTask) -> list[tuple[str, str, bool, tuple[str | None, ...], tuple[str, ...]]]:
    assert flow.union is not None
    return [(own.name, str(own.type), own.may_be_null, own.columns, own.lacking) for own in flow.union.columns]


def test_columns_are_matched_by_name_in_the_order_of_the_first_source(tmp_path: Path) -> None:
    (flow,) = load(tmp_path, package()).data_flows()
    assert columns(flow) == [
        ("id", "int64", False, ("id", "id"), ()),
        ("amount", "decimal(9,2)", True, ("amount", "amount"), ()),
        ("origin", "string", True, ("origin", "origin"), ()),
        ("day", "date", True, ("day", "Day"), ()),
    ]
    assert [source.name for source in flow.sources] == ["old", "new"]
    assert flow.union is not None
    made = flow.union.columns[2]
    # One source reads it.
    assert (made.from_, made.is_made_alike) == ("file_name", False)
    assert flow.ignoring == ["day"]
    assert flow.columns == flow.union.columns


@pytest.mark.parametrize("word", ["null", '"null"'])
def test_what_a_source_lacks_is_null(tmp_path: Path, word: str) -> None:
    text = package(f"sources: [more, new], missing: {word}", sources=(OLD, NEW, MORE)).replace(f"        {OLD}\n", "")
    (flow,) = load(tmp_path, text).data_flows()
    assert [(own[0], own[3], own[4]) for own in columns(flow)] == [
        ("id", ("id", "id"), ()),
        ("note", ("note", None), ("new",)),
        ("Day", (None, "Day"), ("more",)),
        ("origin", (None, "origin"), ("more",)),
        ("amount", (None, "amount"), ("more",)),
    ]
    assert [own.nullable for own in flow.columns] == [True] * 5


def test_transforms_stand_behind_it(tmp_path: Path) -> None:
    keyed = f"keyed: {{input: all, {COLORS}, no_match: {{default: none}}}}}}"
    bound = load(tmp_path, package(UNION, keyed, "big: {input: keyed, sql: SELECT id FROM keyed}", input="big"))
    (flow,) = bound.data_flows()
    assert [own.name for own in flow.transforms] == ["keyed", "big"]
    described = describe(bound)["data_flows"]
    assert isinstance(described, list)
    own = described[0]["union"]
    assert [source["name"] for source in own["sources"]] == ["old", "new"]
    assert own["columns"][3] == {"name": "day", "from": {"old": "day", "new": "Day"}, "type": "date", "nullable": True}


@pytest.mark.parametrize(
    "clause",
    [
        "commit: {rows: 100}",
        "load: staged, partition: {hash: {column: id, parts: 2}}",
        "load: staged, commit: {rows: 9}, partition: {hash: {column: id, parts: 2}}",
        "load: staged, partition: {list: {column: id, values: {a: [1], b: [2]}}}",
        "load: staged, partition: {range: {column: day, bounds: [2024-01-01]}}",
        "load: staged, partitions: [t_1], partition: {range: {column: day}}",
        "load: staged, partition: {range: {column: day, every: 1 month, from: 2024-01-01, to: 2024-03-01}}",
    ],
)
def test_tables_are_divided_and_committed_as_of_a_plain_source(tmp_path: Path, clause: str) -> None:
    (flow,) = load(tmp_path, package(destination=f"connection: server, {clause}")).data_flows()
    assert flow.union is not None


def test_it_may_go_to_several_destinations(tmp_path: Path) -> None:
    others = ", two: {input: all, connection: warehouse, table: u, target: replace}"
    first, second = load(tmp_path, package(others=others)).data_flows()
    assert first.union == second.union is not None
