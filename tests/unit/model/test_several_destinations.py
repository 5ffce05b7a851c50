"""Data flows with several destinations: the way to each of them, outputs of transforms, and every message."""

from __future__ import annotations

from pathlib import Path

import pytest

from headrace.model import BoundPackage, DataFlowTask, Split, outputs_taken
from tests.snapshots import assert_snapshot
from tests.unit.model.packages import load, message
from tests.unit.model.test_transforms import FILES, HEAD

LOOKUP = f"lookup: {{{FILES}, on: {{part: p_key}}, add: {{part_sk: p_sk}}, no_match: output}}"
KEYED = f"keyed: {{input: lines, {LOOKUP}}}"
SPLIT = 'parted: {input: lines, split: {big: "price > 1000", small: "price > 10"}}'


PARTED = {"big": "parted.big", "small": "parted.small", "rest": "parted.rest"}
SERVER = "lines, connection: server"
TRANSACTION = "sequence:\n      transaction: warehouse\n"


def package(*transforms: str, head: str = HEAD, **destinations: str) -> str:
    """A package with these transforms, and destinations that read these rows: `sales="keyed"`, or more settings."""
    lines = "".join(f"        {transform}\n" for transform in transforms)
    outs = "".join(
        f"        {name}: {{input: {own}"
        + ("" if "connection:" in own else ", connection: warehouse")
        + ("" if "table:" in own else f", table: {name}")
        + ", target: replace}\n"
        for name, own in destinations.items()
    )
    between = f"      transforms:\n{lines}" if lines else ""
    return f"{head}{between}      destinations:\n{outs}"


def bound(tmp_path: Path, text: str) -> BoundPackage:
    return load(tmp_path, text)


def ways(tmp_path: Path, text: str) -> dict[str, list[str]]:
    """What rows pass on the way to each destination, by which outputs."""

    def shown(flow: DataFlowTask) -> list[str]:
        return [rows.shown for own in flow.transforms for rows in outputs_taken(own, flow.rows_read)]

    return {flow.id: shown(flow) for flow in bound(tmp_path, text).flows}


def columns(flow: DataFlowTask) -> list[str]:
    return [column.name for column in flow.rows]


def test_each_destination_is_a_flow_of_its_way(tmp_path: Path) -> None:
    sql = 'paid: {input: keyed.no_match, sql: "SELECT id, price FROM keyed WHERE price > 0"}'
    text = package(
        KEYED,
        SPLIT,
        sql,
        all="lines",
        found="keyed",
        missed="paid",
        big="parted.big",
        rest="parted.rest",
        small="parted.small",
    )
    assert ways(tmp_path, text) == {
        "load/all": [],
        "load/found": ["keyed"],
        "load/missed": ["keyed.no_match", "paid"],
        "load/big": ["parted.big"],
        "load/rest": ["parted.rest"],
        "load/small": ["parted.small"],
    }
    flows = {flow.destination.name: flow for flow in bound(tmp_path, text).flows}
    lines = ["id", "part", "price", "weight", "color"]
    assert {name: columns(flow) for name, flow in flows.items()} == {
        "all": lines,
        "found": [*lines, "part_sk"],
        "missed": ["id", "price"],
        **dict.fromkeys(("big", "rest", "small"), lines),
    }
    assert {flow.flow for flow in flows.values()} == {"load"}
    assert {flow.definition for flow in flows.values()} == {"load"}
    assert [own.name for own in flows["all"].others] == ["keyed", "paid", "parted"]
    assert [own.name for own in flows["found"].others] == ["paid", "parted"], "each once"


def test_one_destination_is_called_as_before_and_may_discard_outputs(tmp_path: Path) -> None:
    text = package(SPLIT.replace("}}", "}, discard: [small, rest]}"), big="parted.big")
    assert ways(tmp_path, text) == {"load": ["parted.big"]}
    (flow,) = bound(tmp_path, text).flows
    assert (flow.flow, flow.filters, flow.is_read_as_declared) == ("", True, True)
    keyed = package(KEYED.replace("output}}", "output}, discard: [no_match]}"), found="keyed")
    (flow,) = bound(tmp_path, keyed).flows
    assert (flow.filters, flow.is_read_as_declared, [own.name for own in flow.lookups]) == (True, False, ["keyed"])
    (added,) = flow.lookups[0].added
    assert not added.nullable, "rows that find nothing do not get it"


def test_conditions_are_one_query_with_the_rest_behind_them(tmp_path: Path) -> None:
    text = package(SPLIT, **PARTED)
    way = bound(tmp_path, text).flows[0].transforms[0]
    assert isinstance(way, Split)
    assert (way.outputs, way.conditions) == (
        ("big", "small", "rest"),
        {"big": "price > 1000", "small": "price > 10"},
    )
    assert way.rows is not None
    assert [str(own.type) for own in way.rows.outputs] == ["int32"]


def test_the_rest_may_be_written_and_have_another_name(tmp_path: Path) -> None:
    text = package(SPLIT.replace("}}", ", rest: else}}"), **PARTED)
    way = bound(tmp_path, text).flows[0].transforms[0]
    assert isinstance(way, Split)
    assert (way.outputs, list(way.conditions)) == (("big", "small", "rest"), ["big", "small"])
    text = package(SPLIT.replace("}}", ", tiny: ELSE}}"), **{**PARTED, "rest": "parted.tiny"})
    way = bound(tmp_path, text).flows[0].transforms[0]
    assert isinstance(way, Split)
    assert (way.outputs, list(way.conditions)) == (("big", "small", "tiny"), ["big", "small"])


def parted(old: str, new: str) -> str:
    """A package whose split has another condition."""
    assert old in SPLIT
    return package(SPLIT.replace(old, new), **PARTED)


CASES: dict[str, str] = {
    "unknown_output": package(KEYED, found="keyed", missed="keyed.nomatch"),
    "output_of_a_source": package(KEYED, found="keyed", missed="lines.rest"),
    "no_output_of_a_split": package(SPLIT, all="parted"),
    "unread_output": package(SPLIT, big="parted.big", small="parted.small"),
    "unread_main_output": package(KEYED, missed="keyed.no_match"),
    "unread_transform": package(KEYED, SPLIT, found="keyed", missed="keyed.no_match"),
    "discard_unknown": package(SPLIT.replace("}}", "}, discard: [res]}"), **PARTED),
    "discard_read": package(SPLIT.replace("}}", "}, discard: [rest]}"), **PARTED),
    "discard_of_sql": package('paid: {input: lines, sql: FROM lines, discard: [rest]}', all="paid"),
    "condition_of_nothing": package("parted: {input: lines, split: {}}", rest="parted.rest"),
    "condition_of_the_rest": package(SPLIT.replace("small:", "rest:"), big="parted.big", rest="parted.rest"),
    "else_twice": package(SPLIT.replace("}}", ", tiny: else, rest: else}}"), **PARTED),
    "else_before_a_condition": package(SPLIT.replace("small:", "tiny: else, small:"), **PARTED),
    "else_alone": package("parted: {input: lines, split: {all: else}}", rest="parted.all"),
    "else_by_another_name": package(SPLIT.replace("}}", ", tiny: else}}"), **PARTED),
    "condition_not_true_or_false": parted("price > 10\"", "price\""),
    "condition_of_two": parted("price > 10\"", "true), (false\""),
    "condition_unknown_column": parted("price > 10\"", "cost > 10\""),
    "condition_of_many_rows": parted("price > 10\"", "price > avg(price) OVER ()\""),
    "condition_volatile": parted("price > 10\"", "random() > 0.5\""),
    "rejects_table_elsewhere": package(a="lines", b=SERVER).replace(
        "      destinations:", "      rejects: {table: bad}\n      destinations:"
    ),
    "without_a_ledger": package(head=HEAD.replace("host: db", "host: db, ledger: off"), a="lines", b=SERVER),
    "one_table": package(a="lines", b="lines, table: a"),
    "commit": package(a=SERVER, b=f"{SERVER}, commit: {{rows: 1000}}"),
    "lock": package(a=SERVER, b=f"{SERVER}, lock: true"),
    "partition_by_file": package(a=SERVER, b=f"{SERVER}, partition: {{range: {{column: id}}}}"),
    "no_destination": HEAD + "      destinations: {}\n",
    "member_of_a_transaction": package(a="lines", b=SERVER)
    .replace("tasks:\n  load:\n", f"tasks:\n  both:\n    {TRANSACTION}      tasks:\n       load:\n"),
}  # fmt: skip


def indented(text: str) -> str:
    """A task inside of a sequence stands further to the right."""
    head, mark, own = text.partition("       load:\n")
    return head + mark + "".join(f"     {line}\n" for line in own.splitlines()) if mark else text


def test_ways_to_one_connection_stand_together_and_those_to_nowhere_behind(tmp_path: Path) -> None:
    head = HEAD.replace("connections:\n", "connections:\n  nowhere: {type: 'null'}\n")
    text = package(head=head, a="lines, connection: nowhere", b=SERVER, c="lines", d=SERVER, e="lines, table: b")
    assert [flow.id for flow in bound(tmp_path, text).flows] == ["load/b", "load/d", "load/c", "load/e", "load/a"]


@pytest.mark.parametrize("name", sorted(CASES))
def test_messages(tmp_path: Path, name: str) -> None:
    assert_snapshot(f"several_{name}", message(tmp_path, indented(CASES[name])))
