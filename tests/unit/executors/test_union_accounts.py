"""Accounts of unions: what was read of each source, kept for resumed runs, added up in loops."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from headrace.errors import SourceError
from headrace.executors import added_unions, kept_united, union_accounts, union_without_rows
from headrace.executors.accounts import check_accounts, refuse_empty
from headrace.executors.united import keep_united
from headrace.model import FileSource, Union
from headrace.planning import DataFlowPlan, SourcePart, UnionPlan
from tests.unit.executors import fake_flow
from tests.unit.planning import samples


def with_union() -> tuple[DataFlowPlan, dict[str, Any]]:
    """A plan of three sources, of which the second one has no file and the others one slice each."""
    own = FileSource("old", "inbox", Path("/inbox"), ["*"], samples.layout(id="int64"))
    names = ("old", "none", "new")
    union = Union("all", tuple(replace(own, name=name) for name in names), ())
    plan = fake_flow.plan(2)
    together = UnionPlan(union, (plan.layout,) * 3, (0, 1, 1), (), (), ())
    parts = tuple(SourcePart(name, first, name == "none") for name, first in zip(names, (0, 1, 1), strict=True))
    files = [{"path": f"/inbox/{number}"} for number in range(2)]
    plan = replace(plan, together=together, source=replace(plan.source, parts=parts, files=files))
    result = fake_flow.result(2, 2)
    for item in result["slices"]:
        item["file"] = item["number"] - 1
    return plan, result


ROWS = fake_flow.SLICE_ROWS


def test_each_source_has_what_was_read_of_its_files() -> None:
    plan, result = with_union()
    check_accounts(plan, result, 2 * ROWS)
    result["slices"][1].update(rejected=3, skipped=2, lines=ROWS + 2)
    account = union_accounts(plan, result)
    assert account is not None
    assert [(own["source"], own["lines"], own["rows_skipped"], own["rows_read"], own["rows_rejected"])
            for own in account["sources"]] == [
        ("old", ROWS + 1, 1, ROWS, 0), ("none", 0, 0, 0, 0), ("new", ROWS + 2, 2, ROWS, 3),
    ]  # fmt: skip
    assert union_accounts(replace(plan, together=None), result) is None
    assert union_accounts(plan, None) is None
    twice = added_unions(account, account)
    assert [own["rows_read"] for own in twice["sources"]] == [2 * ROWS, 0, 2 * ROWS]
    assert [set(own.values()) for own in union_without_rows(account)["sources"]] == [
        {"old", 0}, {"none", 0}, {"new", 0},
    ]  # fmt: skip


def test_a_source_without_a_row_is_named() -> None:
    plan, result = with_union()
    refuse_empty(plan, result)
    result["slices"][1].update(rows=0, lines=1, skipped=1)
    with pytest.raises(SourceError) as caught:
        refuse_empty(plan, result)
    assert (caught.value.at, caught.value.hint) == (
        {"file": "/inbox/1"}, "Set `empty: allow` for source `new` if this is right.",
    )  # fmt: skip


@pytest.mark.parametrize(("rows", "rejected", "is_known"), [(0, 0, True), (1, 0, False), (0, 1, False)])
def test_what_is_kept_must_fit_the_ledger(tmp_path: Path, rows: int, rejected: int, is_known: bool) -> None:
    plan, result = with_union()
    keep_united(tmp_path, plan, result)
    known = kept_united(tmp_path, plan.file_stem, 2 * ROWS + rows, rejected)
    assert (known == union_accounts(plan, result)) == is_known
    assert (known is None) != is_known
    for text in ("{}", "no JSON", '{"sources": [1]}'):
        next(tmp_path.iterdir()).write_text(text)
        assert kept_united(tmp_path, plan.file_stem, 2 * ROWS, 0) is None
