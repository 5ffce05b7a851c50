"""Unions in plans: files one behind the other, the layout of each source, where columns go, what the core is told."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from headrace.errors import SourceError, TypeMismatchError
from headrace.model import DataType, FileSource, Layout, Union, UnitedColumn
from headrace.planning import DataFlowPlan, MemoryBudget, SourceSnapshot, plan_data_flow
from headrace.planning.memory import MIB
from headrace.planning.unions import united
from tests.unit.planning import samples

INT, TEXT, DAY = (DataType.parse(text) for text in ("int64", "string", "date"))


def source(name: str, *columns: dict[str, Any], **dialect: Any) -> FileSource:
    layout = Layout.model_validate({"delimiter": "|", **dialect, "columns": list(columns)})
    return FileSource(name, "inbox", Path("/inbox"), ["*"], layout)


OLD = source("old", {"name": "id", "type": "int64"}, {"name": "row", "type": "int64", "from": "row_number"},
             {"name": "note", "type": "string"}, {"name": "file", "type": "string", "from": "file_name"})  # fmt: skip
NONE = source("none", {"name": "note", "type": "string"}, {"name": "id", "type": "int64"})
NEW = source("new", {"name": "Day", "type": "date"}, {"name": "ID", "type": "int64", "nullable": False},
             {"name": "file", "type": "string", "from": "file_name"}, delimiter=";")  # fmt: skip
UNION = Union(
    "all",
    (OLD, NONE, NEW),
    (
        UnitedColumn("id", INT, True, True, ("id", "id", "ID")),
        UnitedColumn("row", INT, True, True, ("row", None, None), ("none", "new"), "row_number", True),
        UnitedColumn("note", TEXT, True, True, ("note", "note", None), ("new",)),
        UnitedColumn("file", TEXT, True, True, ("file", None, "file"), ("none",), "file_name", True),
        UnitedColumn("Day", DAY, True, True, (None, None, "Day"), ("old", "none")),
    ),
)


def snapshot(name: str, files: int, slices: int = 1, **members: Any) -> SourceSnapshot:
    """Each file has so many slices of 100 bytes."""
    paths = [{"path": f"/inbox/{name}.{number}", "size_bytes": 100 * slices} for number in range(files)]
    cut = [
        {"number": 1 + file * slices + part, "file": file, "begin_byte": 100 * part, "end_byte": 100 * part + 100}
        for file in range(files)
        for part in range(slices)
    ]
    return SourceSnapshot(name, paths, cut, **members)


def snapshots() -> list[SourceSnapshot]:
    return [snapshot("old", 2, 2, notes=["a note"], may_be_empty=False), snapshot("none", 0), snapshot("new", 1)]


def planned(columns: dict[str, str] | None = None, *table: tuple[str, str], union: Union = UNION) -> DataFlowPlan:
    task = replace(samples.task(columns=columns), source=OLD, together=union)
    catalog = samples.table(*table) if table else None
    budget = MemoryBudget(1000 * MIB, 2)
    return plan_data_flow(task, united(union, snapshots()), catalog, samples.STORING, budget, 4)


def test_files_and_slices_stand_one_behind_the_other() -> None:
    found = united(UNION, snapshots())
    assert [Path(path).name for path in found.paths] == ["old.0", "old.1", "new.0"]
    assert [(item["number"], item["file"], item["begin_byte"]) for item in found.slices] == [
        (1, 0, 0), (2, 0, 100), (3, 1, 0), (4, 1, 100), (5, 2, 0),
    ]  # fmt: skip
    assert (found.name, found.notes, found.bytes_total) == ("all", ["old: a note"], 500)
    assert [(part.name, part.first_file, part.may_be_empty) for part in found.parts] == [
        ("old", 0, False), ("none", 2, True), ("new", 2, True),
    ]  # fmt: skip
    assert [[item["number"] for item in found.part(number).slices] for number in range(3)] == [[1, 2, 3, 4], [], [5]]


def test_rows_are_as_long_as_all_together_say() -> None:
    found = [snapshot("old", 1, 3, row_bytes=30.0), snapshot("none", 0), snapshot("new", 1, 1, row_bytes=10.0)]
    assert united(UNION, found).row_bytes == 400 / 20


def test_a_file_of_two_sources_is_refused() -> None:
    twice = [snapshot("old", 2), snapshot("none", 0), replace(snapshot("old", 1), name="new")]
    with pytest.raises(SourceError) as caught:
        united(UNION, twice)
    assert caught.value.at == {"file": "/inbox/old.0"}


def test_the_core_is_told_where_the_columns_of_each_source_go() -> None:
    plan = planned({"id": "id", "note": "note", "file": "file", "d": "Day"})
    spec = plan.flow_spec("rejects", {"kind": "arrow"})
    assert spec["layout"]["delimiter"] == "|"
    assert [own["name"] for own in spec["layout"]["made"]] == ["file"]
    own = spec["union"]
    assert own["name"] == "all"
    # Numbers of rows are not asked for.
    assert [(column["name"], column["type"]["kind"], column["nullable"]) for column in own["columns"]] == [
        ("id", "int64", True), ("note", "string", True), ("file", "string", True), ("Day", "date", True),
    ]  # fmt: skip
    first, second, third = own["sources"]
    assert first == {"name": "old", "first_file": 0, "places": [0, 1, 2, None]}
    assert (second["first_file"], second["places"], second["layout"]["delimiter"]) == (2, [1, 0, None, None], "|")
    assert (third["first_file"], third["places"], third["layout"]["delimiter"]) == (2, [1, None, 2, 0], ";")
    assert plan.source_columns == ["id", "note", "file", "Day"]
    assert [plan.source_number(file) for file in range(3)] == [0, 0, 2]
    assert plan.shown_column(2, 1) == "new.ID"
    assert "old: made, not read: `file` (file_name)" in plan.notes
    assert "new: made, not read: `file` (file_name)" in plan.notes


def test_a_column_is_null_in_no_row_if_all_sources_say_so() -> None:
    ids = ("id",)
    column = UnitedColumn("id", INT, False, False, (*ids, *ids))
    never = [source(name, {"name": "id", "type": "int64", "nullable": False}) for name in ("old", "new")]
    union = Union("all", (never[0], never[1]), (column,))
    task = replace(samples.task(), source=never[0], together=union)
    found = united(union, [snapshot("old", 1), snapshot("new", 1)])
    plan = plan_data_flow(task, found, None, samples.STORING, MemoryBudget(1000 * MIB, 2), 4)
    assert plan.flow_spec("rejects", {})["union"]["columns"][0]["nullable"] is False


def test_every_layout_is_read_as_the_table_says() -> None:
    plan = planned({"id": "id", "note": "note"}, ("id", "int32!"), ("note", "varchar(5)"))
    layouts = plan.layouts
    for layout, name in zip(layouts, ("id", "id", "ID"), strict=True):
        (column,) = [own for own in layout["columns"] if own["name"] == name]
        assert (column["type"]["kind"], column["nullable"]) == ("int32", False)
    for layout in layouts[:2]:
        (note,) = [own for own in layout["columns"] if own["name"] == "note"]
        assert note["type"] == {"kind": "varchar", "length": 5}
    columns = plan.flow_spec("rejects", {})["union"]["columns"]
    assert [(own["name"], own["nullable"]) for own in columns] == [("id", False), ("note", True), ("Day", True)]


def test_a_table_that_needs_what_a_source_lacks_is_refused() -> None:
    with pytest.raises(TypeMismatchError) as caught:
        planned({"id": "id", "note": "note"}, ("id", "int64"), ("note", "string!"))
    assert "rows of the source `new`, which lacks it, have NULL" in str(caught.value.found)


@pytest.mark.parametrize("made", [True, False])
def test_a_text_that_is_made_must_have_room(made: bool) -> None:
    """A text that only some sources make is not cut to what the table holds."""
    columns = list(UNION.columns)
    columns[3] = replace(columns[3], is_made_alike=made)
    union = replace(UNION, columns=tuple(columns))
    with pytest.raises(TypeMismatchError) as caught:
        planned({"file": "file"}, ("file", "varchar(4)"), union=union)
    assert ("old.0" in str(caught.value.found)) == made
    if made:
        planned({"file": "file"}, ("file", "varchar(5)"), union=union)
