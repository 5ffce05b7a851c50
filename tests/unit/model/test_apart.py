"""Sources apart: which ways a data flow has whose sources never come together, and every message about them."""

from __future__ import annotations

from pathlib import Path

import pytest

from headrace.model import Union, describe
from tests.snapshots import assert_snapshot
from tests.unit.model.packages import load, message
from tests.unit.model.test_fronts import CHEAP, COLORS, HEAD, MORE, OPEN, TABLE

KEPT = CHEAP.replace(", discard: [rest]", "")
JOINED = "joined: {join: {left: orders, right: lines, on: {o_key: l_key}, right_columns: [price]}}"
OTHERS = "met: {join: {left: more, right: lines, on: {l_key: l_key}, left_columns: [l_key], right_columns: [note]}}"
EVERY = 'every: {union: {sources: [lines, orders], missing: "null"}}'
GENERATED = "more: {generate: {tpch: region}, layout: lines}"
ENDS = {"out": "open", "cheap": "cheap.cheap", "dear": "cheap.rest", "raw": "orders"}


def package(*transforms: str, ends: dict[str, str], more: str = "", extra: str = "") -> str:
    """A package with these transforms and destinations, and `extra` for the last one."""
    lines = [
        f"        {name}: {{input: {rows}, connection: server, table: {name}, target: replace}}\n"
        for name, rows in ends.items()
    ]
    lines[-1] = lines[-1].replace("replace}", f"replace, {extra}}}") if extra else lines[-1]
    steps = ["      transforms:\n", *(f"        {own}\n" for own in transforms)] if transforms else []
    return "".join([HEAD, f"        {more}\n" if more else "", *steps, "      destinations:\n", *lines])


def apart(*transforms: str, ends: dict[str, str] = ENDS, **more: str) -> str:
    return package(*(transforms or (OPEN, KEPT)), ends=ends, **more)


CASES: dict[str, str] = {
    "not_read": apart(more=MORE),
    "read_by_nothing_that_arrives": apart(
        OPEN, 'lost: {input: lines, sql: "SELECT price FROM lines"}', ends={"out": "open"}
    ),
    "not_read_beside_a_join": apart(JOINED, ends={"joined": "joined"}, more=MORE),
    "generated_beside_a_union": apart(EVERY, ends={"every": "every", "more": "more"}, more=GENERATED),
    "all_rows_beside_a_join": apart(
        JOINED, 'sums: {input: more, sql: "SELECT DISTINCT l_key FROM more"}',
        ends={"joined": "joined", "sums": "sums"}, more=MORE,
    ),
    "all_rows_of_a_join": apart(
        JOINED, 'sums: {input: joined, sql: "SELECT DISTINCT o_key FROM joined"}',
        ends={"sums": "sums", "more": "more"}, more=MORE,
    ),
    "divided_beside_a_join": apart(
        JOINED, ends={"joined": "joined", "more": "more"}, more=MORE,
        extra="load: staged, partition: {range: {column: o_key, parts: 2}}",
    ),
    "rejects_beside_a_join": apart(JOINED, ends={"joined": "joined", "more": "more"}, more=MORE)
    .replace("      sources:\n", "      rejects: {table: bad}\n      sources:\n")
    .replace("files: lines.*", "files: lines.*, missing: skip"),
    "meets_twice": apart(
        JOINED, "all: {union: {inputs: [joined, more], missing: \"null\"}}",
        ends={"joined": "joined", "all": "all"}, more=MORE,
    ),
    "circle": apart(
        'one: {input: two, sql: "FROM two"}', 'two: {input: one, sql: "FROM one"}',
        ends={"out": "one", "raw": "orders", "more": "lines"},
    ),
    "all_rows": apart(OPEN.replace("SELECT o_key", "SELECT DISTINCT o_key"), KEPT),
    "divided_by_what_is_looked_for": apart(extra="load: staged, partition: {range: {column: o_key, parts: 2}}"),
    "divided_by_file": apart(extra="load: staged, partition: {range: {column: o_key}}"),
    "divided_by_what_is_added": apart(
        COLORS, ends={"raw": "orders", "keyed": "keyed"},
        extra="load: staged, partition: {hash: {column: label, parts: 2}}",
    ),
    "commit": apart(extra="commit: {rows: 1000}"),
    "generated": apart().replace("lines: {connection: inbox, files: lines.*,", "lines: {generate: {tpch: region},"),
    "columns_of_the_other_source": apart(extra="columns: {key: price}"),
    "rejects_of_a_source_without_files": apart()
    .replace("      sources:\n", "      rejects: {table: bad}\n      sources:\n")
    .replace("files: lines.*", "files: lines.*, missing: skip"),
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(CASES))
def test_messages(tmp_path: Path, name: str) -> None:
    assert_snapshot(f"apart_{name}", message(tmp_path, CASES[name]))


def test_each_way_is_of_its_source(tmp_path: Path) -> None:
    bound = load(tmp_path, apart())
    flows = {own.id: own for own in bound.data_flows()}
    assert {name: (own.front, own.source.name) for name, own in flows.items()} == {
        "load/out": (0, "orders"), "load/cheap": (1, "lines"), "load/dear": (1, "lines"), "load/raw": (0, "orders"),
    }  # fmt: skip
    assert all(own.is_apart and own.meeting is None for own in flows.values())
    dear = flows["load/dear"]
    assert isinstance(dear.together, Union) and [own.name for own in dear.together.sources] == ["orders", "lines"]
    assert [own.name for own in dear.rows] == ["l_key", "price", "note"]
    assert not dear.alone.is_apart
    told = {own["task"]: own for own in describe(bound)["data_flows"]}  # type: ignore[attr-defined]
    assert {own["source"]["name"] for own in told.values()} == {"orders", "lines"}
    assert not any({"union", "join"} & own.keys() for own in told.values())


def test_nothing_has_to_stand_between(tmp_path: Path) -> None:
    flows = load(tmp_path, package(ends={"one": "orders", "two": "lines"})).data_flows()
    assert [(own.front, own.source.name, own.transforms) for own in flows] == [(0, "orders", ()), (1, "lines", ())]


def test_a_way_behind_a_table_is_described_later(tmp_path: Path) -> None:
    one, two = load(tmp_path, apart(TABLE, ends={"one": "orders", "two": "keyed"})).data_flows()
    assert one.describe is not None and two.describe is not None
    assert not two.lookups[0].is_described


@pytest.mark.parametrize(
    ("meets", "apart_source", "columns"),
    [
        (
            "met: {join: {left: more, right: lines, on: {l_key: l_key}, left_columns: [l_key], right_columns: [note]}}",
            "orders",
            "o_key",
        ),
        ("met: {union: {sources: [lines, more]}}", "orders", "o_key"),
        (JOINED.replace("joined:", "met:"), "more", "l_key"),
    ],
    ids=["first of a join", "first of a union", "last of a join"],
)
def test_beside_what_comes_together(tmp_path: Path, meets: str, apart_source: str, columns: str) -> None:
    """Sources apart stand behind the others, wherever they are declared; ways are told without those that they lack."""
    own = f'open: {{input: {apart_source}, sql: "SELECT {columns} FROM {apart_source}"}}'
    bound = load(tmp_path, apart(own, meets, ends={"raw": "open", "met": "met", "lines": "lines"}, more=MORE))
    flows = {own.destination.name: own for own in bound.data_flows()}
    met, raw, lines = flows["met"], flows["raw"], flows["lines"]
    assert met.together is not None and raw.together == met.together
    assert [own.name for own in met.together.apart] == [apart_source]
    assert [own.name for own in met.sources] == [*(own.name for own in met.together.brought), apart_source]
    assert (met.front, raw.front, raw.is_apart, lines.is_apart) == (None, 2, True, False)
    assert [list(own.source_numbers) for own in (met, raw)] == [[0, 1], [2]]
    assert raw.transforms[0].front_of == 2
    assert [own.name for own in met.alone.sources] == [own.name for own in met.together.brought]
    told = {own["task"]: own for own in describe(bound)["data_flows"]}  # type: ignore[attr-defined]
    assert told["load/raw"]["source"]["name"] == apart_source and not {"join", "union"} & told["load/raw"].keys()
    assert f"'name': '{apart_source}'" not in str(told["load/met"])
