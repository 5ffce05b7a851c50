"""Unions of rows that have gone different ways: what packages may say of them, their columns, and every message."""

from __future__ import annotations

from pathlib import Path

import pytest

from headrace.model import DataFlowTask, Reunion, describe
from tests.snapshots import assert_snapshot
from tests.unit.model.packages import load, message
from tests.unit.model.test_several_destinations import KEYED, SPLIT, package

GUESSED = 'guessed: {input: keyed.no_match, sql: "SELECT CAST(-1 AS SMALLINT) AS PART_SK, * FROM keyed"}'
ALL = "all: {union: {inputs: [keyed, guessed]}}"
NAMED = "named: {input: parted.big, sql: \"SELECT id, price, 'big' AS size, color FROM parted\"}"
PARTS = "parts: {union: {inputs: [parted.small, named], missing: null}}"


def of(*transforms: str, out: str = "all", **others: str) -> str:
    return package(*transforms, out=out, **others)


CASES: dict[str, str] = {
    "one": of(KEYED, GUESSED, "all: {union: {inputs: [keyed]}}"),
    "none": of(KEYED, GUESSED, "all: {union: {inputs: []}}"),
    "twice": of(KEYED, GUESSED, "all: {union: {inputs: [keyed, guessed, keyed]}}"),
    "unknown": of(KEYED, GUESSED, "all: {union: {inputs: [keyed, gessed]}}"),
    "unknown_output": of(KEYED, GUESSED, "all: {union: {inputs: [guessed, keyed.nomatch]}}"),
    "sources": of(KEYED, GUESSED, "all: {union: {sources: [keyed, guessed]}}"),
    "both": of(KEYED, GUESSED, "all: {union: {inputs: [keyed, guessed], sources: [lines]}}"),
    "input": of(KEYED, GUESSED, ALL.replace("all: {union", "all: {input: keyed, union")),
    "circle": of(KEYED, GUESSED.replace("keyed.no_match", "all").replace("FROM keyed", 'FROM \\"all\\"'), ALL),
    "same_rows": of(
        SPLIT.replace("}}", "}, discard: [small, rest]}"),
        NAMED,
        "all: {union: {inputs: [parted.big, named], missing: null}}",
    ),
    "same_rows_by_two_transforms": of(
        'one: {input: lines, sql: "FROM lines WHERE id > 5"}',
        'two: {input: lines, sql: "FROM lines WHERE id <= 5"}',
        "all: {union: {inputs: [one, two]}}",
    ),
    "same_rows_behind_a_union": of(
        SPLIT,
        "some: {union: {inputs: [parted.big, parted.small]}}",
        "all: {union: {inputs: [some, parted.rest, parted.small]}}",
    ),
    "types": of(KEYED, GUESSED.replace("SMALLINT", "BIGINT"), ALL),
    "missing": of(KEYED, GUESSED.replace("CAST(-1 AS SMALLINT) AS PART_SK, *", "*, 1 AS other"), ALL),
    "missing_word": of(KEYED, GUESSED, ALL.replace("]}}", "], missing: skip}}")),
    "not_read": of(KEYED, GUESSED, ALL, out="keyed"),
    "output_not_read": of(SPLIT, "all: {union: {inputs: [parted.big, parted.small]}}"),
    "gathered_in_front_of_one_input": of(
        SPLIT.replace("}}", "}, discard: [rest]}"),
        'counted: {input: parted.big, sql: "SELECT max(id) AS id FROM parted"}',
        "all: {union: {inputs: [counted, parted.small], missing: null}}",
    ),
    "columns": of(SPLIT.replace("}}", "}, discard: [rest]}"), NAMED, PARTS, out="parts, columns: {a: sizes}"),
    "partition_by_what_is_computed": of(
        SPLIT.replace("}}", "}, discard: [rest]}"),
        NAMED,
        PARTS,
        out="parts, partition: {hash: {column: size, parts: 2}}",
    ),
}


@pytest.mark.parametrize("name", sorted(CASES))
def test_messages(tmp_path: Path, name: str) -> None:
    assert_snapshot(f"reunion_{name}", message(tmp_path, CASES[name]))


def columns(flow: DataFlowTask) -> list[tuple[str, str]]:
    return [(own.name, str(own.type)) for own in flow.rows]


def test_columns_are_matched_by_name_in_the_order_of_the_first_input(tmp_path: Path) -> None:
    (flow,) = load(tmp_path, of(KEYED, GUESSED, ALL)).data_flows()
    assert [name for name, _ in columns(flow)] == ["id", "part", "price", "weight", "color", "part_sk"]
    (union,) = (own for own in flow.transforms if isinstance(own, Reunion))
    assert union.origins[1][-1] == "PART_SK"
    assert (flow.end.name, flow.is_read_as_declared, flow.reunites) == ("all", True, True)
    assert [own.name for own in flow.transforms] == ["keyed", "guessed", "all"]


def test_what_an_input_lacks_is_null_and_texts_take_the_longest_type(tmp_path: Path) -> None:
    text = of(SPLIT.replace("}}", "}, discard: [rest]}"), NAMED, PARTS, out="parts")
    (flow,) = load(tmp_path, text).data_flows()
    (union,) = (own for own in flow.transforms if isinstance(own, Reunion))
    nullable = {own.name: own.nullable for own in union.columns}
    assert nullable["part"] and nullable["size"]
    assert [own.name for own in union.columns][-1] == "size"
    assert union.origins[0][-1] is None
    field = {own.name: own.field for own in union.columns}
    assert (field["id"], field["part"], field["size"]) == ("id", None, None)


def test_the_description_tells_inputs_and_columns(tmp_path: Path) -> None:
    package = load(tmp_path, of(KEYED, GUESSED, ALL))
    flow = describe(package)["data_flows"][0]  # type: ignore[index]
    *_, union = flow["transforms"]
    assert (union["kind"], union["inputs"], len(union["columns"])) == ("union", ["keyed", "guessed"], 6)
    assert flow["transforms"][0]["taken"] == ["keyed", "keyed.no_match"]
