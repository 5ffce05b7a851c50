"""Which plans are row-wise in a table: joins of all types, from either side, and whatever stands between."""

from __future__ import annotations

from typing import Any

import pytest

from headrace.targets.postgres.row_wise import (
    has_no_rows,
    memory_nodes,
    why_not_by_column,
    why_not_by_table,
    why_not_same,
)

LINE = {"Node Type": "Tid Range Scan", "Schema": "public", "Relation Name": "line", "TID Cond": "(ctid >= '(0,0)')"}
PART = {"Node Type": "Seq Scan", "Schema": "public", "Relation Name": "part"}


def above(kind: str, *children: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"Node Type": kind, **more, "Plans": list(children)}


def child(node: dict[str, Any], side: str) -> dict[str, Any]:
    return {**node, "Parent Relationship": side}


def why(plan: dict[str, Any]) -> str | None:
    return why_not_by_table(plan, {("public", "line"), ("public", "line_1"), ("old", "line_2")})


@pytest.mark.parametrize(
    ("join", "sides"),
    [
        ("Inner", ("Outer", "Inner")),
        ("Left", ("Outer",)),
        ("Right", ("Inner",)),
        ("Full", ()),
        ("Semi", ("Outer",)),
        ("Anti", ("Outer",)),
        ("Right Semi", ("Inner",)),
        ("Right Anti", ("Inner",)),
        ("A type of later versions", ()),
    ],
)
def test_joins_keep_some_sides(join: str, sides: tuple[str, ...]) -> None:
    for side, other in (("Outer", "Inner"), ("Inner", "Outer")):
        children = [child(above("Hash", child(LINE, "Outer")), side), child(PART, other)]
        plan = above("Hash Join", *children, **{"Join Type": join})
        assert (why(plan) is None) == (side in sides), side
        assert why(above("Sort", child(plan, "Outer"))) == why(plan)


@pytest.mark.parametrize("kind", ["Aggregate", "Unique", "WindowAgg", "Gather", "Foreign Scan", "Of later versions"])
def test_what_is_not_known_to_be_row_wise_is_not(kind: str) -> None:
    assert why(above("Sort", child(above(kind, child(LINE, "Outer")), "Outer"))) is not None


@pytest.mark.parametrize("side", ["InitPlan", "SubPlan"])
def test_subqueries_need_all_rows(side: str) -> None:
    assert "a subquery reads it" in str(why(above("Result", child(LINE, side))))


def test_the_table_is_read_once_in_its_range() -> None:
    assert why(LINE) is None
    assert why({**LINE, "Schema": "other"}) is not None
    for condition in ("(id > 1)", "(line.productid > 1)", "(line.ctid > '(1,0)'::tid)"):
        assert "as in `by`" in str(why({**LINE, "TID Cond": "", "Filter": condition}))
    assert why({**LINE, "TID Cond": "", "Filter": "((line.id > 1) AND (line.ctid >= '(0,0)'::tid))"}) is None
    twice = above("Nested Loop", child(LINE, "Outer"), child(LINE, "Inner"), **{"Join Type": "Inner"})
    assert why(twice) == "it is read 2 times"


def of_table(name: str, schema: str = "public", side: str = "Member") -> dict[str, Any]:
    return child({**LINE, "Schema": schema, "Relation Name": name}, side)


def test_a_table_may_consist_of_others() -> None:
    parts = of_table("line_1"), above("Sort", of_table("line_2", "old", "Outer"), **{"Parent Relationship": "Member"})
    for kind in ("Append", "Merge Append"):
        both = above(kind, *parts)
        assert why(both) is None
        assert why(above("Hash Join", child(both, "Outer"), child(PART, "Inner"), **{"Join Type": "Left"})) is None
        assert "GROUP BY" in str(why(above("Aggregate", child(both, "Outer"))))
        assert "UNION" in str(why(above(kind, *parts, child(PART, "Member"))))
    assert "in FROM" in str(why(above("Append", parts[0], {**of_table("line_2", "old"), "TID Cond": ""})))


def test_two_of_its_tables_that_meet_are_read_twice() -> None:
    meet = above("Nested Loop", of_table("line_1", side="Outer"), of_table("line_2", "old", "Inner"))
    assert why({**meet, "Join Type": "Inner"}) == "it is read 2 times"
    assert why(above("Append", child({**meet, "Join Type": "Inner"}, "Member"))) == "it is read 2 times"


def test_sides_of_a_union_that_all_read_it() -> None:
    assert why(above("Append", child(LINE, "Member"), child(LINE, "Member"))) is None


def test_what_parts_would_not_see_alike() -> None:
    assert why_not_same({**LINE, "Output": ["id", "'now()'::text"]}, "q") is None
    assert "now is another one" in str(why_not_same({**LINE, "Output": ["id", "now()"]}, "q"))
    assert "now is another one" in str(why_not_same(above("Sort", {**LINE, "Filter": "(at < now())"}), "q"))
    called = {"Node Type": "Function Scan", "Alias": "O'Brien", "Function Call": "days_until(now())"}
    assert "now is another one" in str(why_not_same(above("Nested Loop", LINE, called), "q"))
    assert "volatile" in str(why_not_same({"Node Type": "CTE Scan", "CTE Name": "q"}, "q"))
    assert "LIMIT" in str(why_not_same(above("Hash Join", LINE, above("Limit", PART)), "q"))


def test_a_condition_above_the_work_divides_nothing() -> None:
    condition = "(mod((hash_record(ROW(part)) & 2147483647), 4) = 0)"
    assert why_not_by_column(above("Aggregate", {**LINE, "Filter": condition}), "hash_record") is None
    assert why_not_by_column(above("Aggregate", LINE, Filter=condition), "hash_record") is not None
    assert why_not_by_column(above("Subquery Scan", LINE, Filter=condition), "hash_record") is not None


def test_plans_without_rows_and_with_memory() -> None:
    assert has_no_rows({"Node Type": "Result", "One-Time Filter": "false"})
    assert not has_no_rows({"Node Type": "Result", "One-Time Filter": "($1 > 3)"})
    assert memory_nodes(above("Sort", above("Hash Join", LINE, above("Hash", PART)))) == 2
