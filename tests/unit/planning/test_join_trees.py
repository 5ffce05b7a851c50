"""What plans say of several joins, and the core is told."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from headrace.errors import SourceError
from headrace.model import FileSource, FlowRows, Join
from headrace.planning import SourceSnapshot
from headrace.planning.joins import JoinPlan, paired, plan_join
from tests.unit.planning import samples

PARCELS = FileSource("parcels", "inbox", Path("/inbox"), ["*"], samples.layout(id="int64!", name="string"))
ORDERS, LINES, BILLS = (replace(PARCELS, name=name) for name in ("orders", "lines", "bills"))
ROWS = {name: FlowRows(name) for name in ("parcels", "orders", "lines", "detailed")}


def tree() -> Join:
    """Parcels beside orders with lines; bills apart."""
    inner = Join("detailed", "right", ORDERS, LINES, (), (), (ROWS["orders"], ROWS["lines"]))
    return Join("sent", "left", PARCELS, inner, (), (), (ROWS["parcels"], ROWS["detailed"]), apart=(BILLS,))


def snapshots(*files: int) -> list[SourceSnapshot]:
    names = ("parcels", "orders", "lines", "bills")
    return [
        replace(
            samples.source(count),
            name=name,
            files=[{"path": f"/inbox/{name}.{number}", "size_bytes": 10} for number in range(count)],
            slices=[{"number": number + 1, "file": number} for number in range(count)],
        )
        for name, count in zip(names, files, strict=True)
    ]


def planned() -> JoinPlan:
    return plan_join(tree(), {}, (), paired(tree(), snapshots(2, 2, 2, 3)))


def test_the_core_is_told_what_stands_where() -> None:
    place: dict[str, Any] = {"transform": None, "output": 0}
    spec = planned().core_spec(None, lambda _rows: place)["join"]
    assert (spec["name"], spec["sides"], spec["kind"], spec["inputs"]) == ("sent", [0, 4], "left", [place, place])
    (inner,) = spec["inner"]
    assert (inner["name"], inner["sides"], inner["kind"]) == ("detailed", [1, 2], "right")
    assert [(own["name"], own["first_file"], own.get("apart")) for own in spec["sources"]] == [
        ("parcels", 0, None),
        ("orders", 2, None),
        ("lines", 4, None),
        ("bills", 6, True),
    ]
    assert ["layout" in own for own in spec["sources"]] == [False, True, True, True]
    assert planned().without_apart().core_spec(None, lambda _rows: place)["join"]["sides"] == [0, 3]


def test_rows_come_to_one_join_after_the_other() -> None:
    joins = planned()
    assert [joins.meeting_of(number) for number in range(5)] == ["sent", "detailed", "detailed", "sent", "sent"]
    assert [joins.keeps(number) for number in range(5)] == [True, False, True, False, False]
    assert (joins.fronts, joins.places) == ((0, 1, 2, 4), ("left", "right_left", "right_right"))


def test_the_files_that_belong_together_are_a_unit() -> None:
    source = paired(tree(), snapshots(2, 2, 2, 3))
    assert [[item["file"] for item in unit] for unit in source.units] == [[0, 2, 4], [1, 3, 5], [6], [7], [8]]
    assert source.notes[-1] == (
        "join sent: parcels.0 with orders.0 and lines.0, parcels.1 with orders.1 and lines.1; each set is read by one "
        "stream"
    )


def test_all_sources_have_the_same_number_of_files() -> None:
    with pytest.raises(SourceError, match="have different numbers of files"):
        paired(tree(), snapshots(2, 2, 1, 3))


def test_without_a_source_nothing_comes_out_if_all_joins_on_its_way_need_it() -> None:
    join = tree()
    assert join.needed == ()
    whole = replace(join, kind="inner")
    assert [own.name for own in whole.needed] == ["parcels"]
    assert isinstance(whole.right, Join)
    all_inner = replace(whole, right=replace(whole.right, kind="inner"))
    assert [own.name for own in all_inner.needed] == ["parcels", "orders", "lines"]
