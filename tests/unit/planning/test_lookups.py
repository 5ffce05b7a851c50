"""Lookups in plans: columns, keys that the table narrows, memory, and what the core is told."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from headrace.errors import HeadraceError, SourceError, TypeMismatchError
from headrace.model import (
    AddedColumn,
    DataFlowTask,
    DataType,
    EmbeddedQuery,
    FileSource,
    FlowRows,
    Lookup,
    LookupKey,
    QuerySource,
)
from headrace.model.lookup import LookupColumn
from headrace.planning import CatalogTable, DataFlowPlan, MemoryBudget, RunFacts, SourceSnapshot, memory_for_lookups
from headrace.planning.planner import plan_data_flow
from headrace.targets.duckdb.capabilities import DUCKDB_CAPABILITIES
from headrace.targets.null.capabilities import NULL_CAPABILITIES
from tests.snapshots import assert_snapshot
from tests.unit.planning import samples

PARTS = samples.layout(p_key="int64", p_sk="int32!", p_name="string")


def lookup(**members: Any) -> Lookup:
    """Part of an order, by `customer`."""
    layout = members.pop("layout", PARTS)
    column = members.pop("column", "p_sk")
    own = next(item for item in layout.columns if item.name == column)
    rejects = members.pop("rejects", False)
    default = None if rejects else members.pop("default", "-1")
    added = AddedColumn(members.pop("name", "part_sk"), own.type, "keyed", column, own.nullable, default, rejects)
    key = LookupKey(members.pop("key", "id"), members.pop("lookup_key", "p_key"))
    source = FileSource("keyed", "inbox", Path("/data"), ["parts.csv"], layout)
    return Lookup("keyed", source, (key,), (added,), rejects)


def snapshot(megabytes: int = 10, **members: Any) -> SourceSnapshot:
    """A file with rows of 50 bytes."""
    size = megabytes * 1_000_000
    return SourceSnapshot(
        name="keyed",
        files=[{"path": "/data/parts.csv", "size_bytes": size, "modified_ns": 1, "inode": 1, **members}],
        slices=[{"number": 1, "file": 0, "begin_byte": 0, "end_byte": size}],
        row_bytes=50.0,
    )


def plan(
    own: Lookup,
    catalog: CatalogTable | None = None,
    source: SourceSnapshot | None = None,
    memory: int = 1_000_000_000,
    capabilities: Any = DUCKDB_CAPABILITIES,
    **members: Any,
) -> DataFlowPlan:
    task: DataFlowTask = replace(
        samples.task(layout=samples.layout(id="int64!", name="string"), **members),
        transforms=(own,),
        end=FlowRows("keyed"),
    )
    threads = 2 if capabilities is DUCKDB_CAPABILITIES else 0
    return plan_data_flow(
        task,
        replace(samples.source(4), lookups=(source or snapshot(),)),
        catalog,
        capabilities,
        MemoryBudget(memory, threads),
        2,
        default_schema="main",
    )


def test_the_columns_of_the_rows_are_those_of_the_lookup_too() -> None:
    planned = plan(lookup())
    assert [column.source for column in planned.columns] == ["id", "name", "part_sk"]
    assert planned.source_columns == ["id", "name", "part_sk"]
    spec = planned.flow_spec("/rejects", {"kind": "null"})
    added = {"name": "part_sk", "type": {"kind": "int32"}, "nullable": False}
    assert spec["transforms"] == [
        {"name": "keyed", "lookup": {"keys": ["id"], "added": [added], "no_match": "default"}}
    ]
    assert "part_sk" not in str(spec["layout"])
    core = planned.lookups[0].core_spec(5, RunFacts("run", "hash", 1))
    assert core["keys"] == [{"column": "p_key", "input": {"kind": "int64"}}]
    assert core["added"] == [{"column": "p_sk", "default": "-1"}]
    assert (core["budget_bytes"], core["streams"], core["memory"]["blocks"]) == (5, 1, 2)
    assert planned.to_dict()["transforms"][0]["text"] == planned.lookups[0].text()
    assert planned.lookups[0].text() == (
        "keyed: about 200,000 rows of 1 file, up to 7.40 MB while they are read; adds part_sk int32; no match: -1"
    )


def of_query(**types: str) -> Lookup:
    """A lookup of a query with these columns behind one that nobody wants."""
    columns = {name: LookupColumn(name, DataType.parse(own), True) for name, own in types.items()}
    places = {"other": 0, **{name: place for place, name in enumerate(types, start=1)}}
    source = QuerySource("keyed", EmbeddedQuery("SELECT 1", "SELECT 1"), places, columns)
    return replace(lookup(), source=source)


def test_of_a_query_the_core_is_told_where_its_columns_stand() -> None:
    source = SourceSnapshot("keyed", [], [])
    planned = plan(of_query(more="string", p_sk="int32", p_key="int64"), source=source)
    (own,) = planned.lookups
    core = own.core_spec(5, None)
    assert {name: core[name] for name in ("columns", "places", "keys", "streams")} == {
        "columns": [
            {"name": "p_sk", "type": {"kind": "int32"}, "nullable": True},
            {"name": "p_key", "type": {"kind": "int64"}, "nullable": True},
        ],
        "places": [2, 3],
        "keys": [{"column": "p_key", "input": {"kind": "int64"}}],
        "streams": 2,
    }
    assert own.reading.engine_bytes == 50_000_000 < own.reading.reader_bytes
    assert (
        plan(of_query(p_sk="int32", p_key="int64"), source=source, memory=350_000_000).lookups[0].reading.engine_bytes
        == 32_000_000
    )
    assert own.to_dict()["query"] == "SELECT 1"
    assert own.text() == "keyed: rows of a query; adds part_sk int32; no match: -1"


def test_columns_that_are_chosen_may_leave_out_the_key() -> None:
    planned = plan(lookup(), columns={"sk": "part_sk"})
    assert [(column.source, column.target) for column in planned.columns] == [("part_sk", "sk")]
    assert "not loaded, because `columns` does not list them: id, name" in planned.notes


def test_a_key_that_the_table_narrows_is_found_by_what_is_read() -> None:
    catalog = of_table(id="int32", name="string", part_sk="int32")
    planned = plan(lookup(), catalog, target="append")
    assert [str(own) for own in planned.lookups[0].key_types] == ["int32"]


def of_table(**types: str) -> CatalogTable:
    return samples.table(*types.items())


REFUSED: dict[str, tuple[Lookup, CatalogTable]] = {
    "narrower": (lookup(), of_table(id="int64", name="string", part_sk="int16")),
    "other_type": (lookup(), of_table(id="int64", name="string", part_sk="date")),
    "default_null": (lookup(default=None), of_table(id="int64", name="string", part_sk="int32!")),
    "missing": (lookup(), of_table(id="int64", name="string")),
}


@pytest.mark.parametrize("name", sorted(REFUSED))
def test_added_columns_fit_the_table(name: str) -> None:
    own, catalog = REFUSED[name]
    with pytest.raises(TypeMismatchError) as caught:
        plan(own, catalog, target="append")
    assert_snapshot(f"lookup_{name}", caught.value.render())


@pytest.mark.parametrize("rejects", [False, True])
def test_null_of_the_lookup_for_a_column_that_is_not_null_is_a_reject(rejects: bool) -> None:
    own = lookup(column="p_name", default="x", rejects=rejects)
    catalog = of_table(id="int64", name="string", part_sk="string!")
    planned = plan(own, catalog, target="append")
    (added,) = planned.flow_spec("/rejects", {"kind": "null"})["transforms"][0]["lookup"]["added"]
    assert added["nullable"] is False
    assert planned.columns[-1].nullable is False
    assert [note for note in planned.notes if "NULL" in note] == [
        "a NULL that lookup `keyed` finds for `part_sk` is a reject, because `part_sk` is NOT NULL"
    ]
    into_nullable = plan(own, of_table(id="int64", name="string", part_sk="string"), target="append")
    (added,) = into_nullable.flow_spec("/rejects", {"kind": "null"})["transforms"][0]["lookup"]["added"]
    assert added["nullable"] is True


def test_rows_that_find_nothing_can_be_rejects() -> None:
    planned = plan(lookup(rejects=True))
    (transform,) = planned.flow_spec("/rejects", {"kind": "null"})["transforms"]
    assert transform["lookup"]["no_match"] == "reject"
    assert transform["lookup"]["added"][0]["nullable"] is False
    assert planned.lookups[0].text().endswith("adds part_sk int32; no match: reject")
    assert planned.to_dict()["transforms"][0]["no_match"] == "reject"


def test_rows_with_numbers_of_their_own_come_from_one_file() -> None:
    numbered = PARTS.model_copy(
        update={
            "columns": [
                *PARTS.columns,
                samples.layout(n="int64!").columns[0].model_copy(update={"from_": "row_number"}),
            ]
        }
    )
    own = lookup(layout=numbered, column="n")
    assert plan(own).lookups[0].core_spec(1, None)["layout"]["made"] == [{"name": "n", "from": "row_number"}]
    two = snapshot()
    two = replace(two, files=two.files * 2)
    with pytest.raises(SourceError) as caught:
        plan(own, source=two)
    assert_snapshot("lookup_row_number", caught.value.render())


def test_pipes_are_no_lookups() -> None:
    with pytest.raises(HeadraceError, match="cannot read what can be read once only"):
        plan(lookup(), source=snapshot(stream={"wait_seconds": 1}))


@pytest.mark.parametrize("capabilities", [DUCKDB_CAPABILITIES, NULL_CAPABILITIES])
@pytest.mark.parametrize("memory", [300_000_000, 1_000_000_000, 8_000_000_000])
def test_no_moment_needs_more_than_the_budget(memory: int, capabilities: Any) -> None:
    planned = plan(lookup(), memory=memory, capabilities=capabilities)
    split, own = planned.memory, planned.lookups[0]
    share = int(memory * capabilities.memory_share)
    while_read = split.headroom_bytes + share + own.reading.reader_bytes + split.lookup_bytes
    assert while_read <= memory
    for taken in (0, own.bytes, split.lookup_bytes):
        after = split.with_lookups(min(taken, split.lookup_bytes))
        assert after.engine_bytes <= split.engine_bytes
        assert after.engine_bytes >= (48 * 1024 * 1024 if capabilities.memory_share else 0)
        in_flow = after.headroom_bytes + after.flow_bytes + min(taken, split.lookup_bytes) + after.engine_bytes
        assert in_flow <= memory


def test_added_columns_are_a_part_of_the_slabs() -> None:
    with_lookup = plan(lookup()).memory.slab_bytes
    without = plan_data_flow(
        samples.task(layout=samples.layout(id="int64!", name="string")),
        samples.source(4),
        None,
        DUCKDB_CAPABILITIES,
        MemoryBudget(1_000_000_000, 2),
        2,
        default_schema="main",
    )
    rows = without.memory.block_bytes // 3
    assert with_lookup - without.memory.slab_bytes == 4 * rows
    assert without.memory.lookup_bytes == 0


def test_the_memory_to_set_is_enough() -> None:
    for memory in (250_000_000, 350_000_000, 1_000_000_000):
        before = plan(lookup(), memory=memory).memory
        for needed in (100_000_000, 900_000_000):
            total = memory_for_lookups(before, needed)
            assert total >= memory
            assert plan(lookup(), memory=total).memory.lookup_bytes >= needed


def test_files_that_are_packed_tell_no_number_of_rows() -> None:
    text = plan(lookup(default=None), source=snapshot(compression="gzip")).lookups[0].text()
    assert text == "keyed: rows of 1 file; adds part_sk int32; no match: NULL"


def test_types_are_data() -> None:
    assert lookup().added[0].type == DataType.parse("int32")
