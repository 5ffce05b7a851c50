"""What queries of a data flow need, as a plan has it."""

from __future__ import annotations

from headrace.model import ComputedColumn, DataType, SqlTransform
from headrace.planning import SqlPlan
from headrace.planning.sql_transforms import most_columns


def query(*types: str) -> SqlPlan:
    columns = [ComputedColumn(f"c{place}", DataType.parse(own), True, "q") for place, own in enumerate(types)]
    return SqlPlan(SqlTransform("q", "rows", "FROM rows", None, tuple(columns)))


def test_columns_of_two_queries_are_there_at_once() -> None:
    wide, narrow = query("string", "string", "int64"), query("int16")
    assert most_columns([]) == ()
    assert most_columns([narrow]) == (DataType.parse("int16"),)
    most = most_columns([narrow, narrow, narrow, wide, narrow, narrow])
    assert sorted(map(str, most)) == ["int16", "int64", "string", "string"]
