"""Tasks of kind `sql` without a database: marks, plans, the bounds of results."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import date, datetime
from decimal import Decimal

import pytest

from headrace.errors import SqlError
from headrace.model.rows import Rows
from headrace.model.spec_leaves import SqlSpec
from headrace.run.leaves.sql import SqlLeaf
from headrace.run.sql.marks import from_mark, to_mark
from headrace.run.sql.results import all_rows, column_place, one_row
from headrace.targets.postgres.sql_values import type_name, written
from tests.snapshots import assert_snapshot

VALUES: dict[str, object] = {
    "text": 'ü "\\\n\x01',
    "whole": -(2**63),
    "exact": Decimal("-0.10"),
    "large": Decimal("1E+20"),
    "yes": True,
    "nothing": None,
    "day": date(1, 1, 1),
    "time": datetime(9999, 12, 31, 23, 59, 59, 999999),
}


def test_marks_keep_values_as_they_are() -> None:
    outputs = {**VALUES, "rows": Rows(tuple(VALUES), [tuple(VALUES.values()), (None,) * len(VALUES)])}
    found = from_mark(to_mark(outputs, ()), "task")
    assert found == outputs
    assert [type(value) for value in found.values()] == [type(value) for value in outputs.values()]
    assert str(found["exact"]) == "-0.10"
    assert from_mark(None, "task") == {}


def test_a_mark_without_a_secret_value() -> None:
    mark = to_mark({"a": "s3cret", "b": 1}, ["a", "other"])
    assert mark == '{"outputs":{"b":1},"secret":["a"]}'
    with pytest.raises(SqlError) as caught:
        from_mark(mark, "load.tidy")
    assert_snapshot("sql_secret_result", caught.value.render())


def test_values_as_postgresql_reads_them() -> None:
    values = [*VALUES.values(), ["a", None, 'b"\\,{}'], [Decimal("1E+2"), True], []]
    assert [written(value) for value in values] == [
        'ü "\\\n\x01',
        "-9223372036854775808",
        "-0.10",
        "100000000000000000000",
        "true",
        None,
        "0001-01-01",
        "9999-12-31 23:59:59.999999",
        '{"a",NULL,"b\\"\\\\,{}"}',
        '{"100","true"}',
        "{}",
    ]
    names = ["VARCHAR", "BIGINT", "HUGEINT", "DECIMAL(38,10)", "DECIMAL(3,1)[]", "VARCHAR[]", "TIMESTAMP"]
    assert [type_name(name) for name in names] == [
        "text", "bigint", "numeric", "numeric", "numeric[]", "text[]", "timestamp"
    ]  # fmt: skip


def test_what_a_plan_says() -> None:
    long = "UPDATE orders SET note = 'x'\n   WHERE id IN (SELECT id FROM a_rather_long_name WHERE other = 'y')"
    specs = [
        SqlSpec(connection="warehouse", text=f"-- tidy\n{long};\nDELETE FROM old"),
        SqlSpec(connection="warehouse", file="sql/vacuum.sql", transaction=False),
        SqlSpec(connection="warehouse", text="SET threads = 1; SELECT max(day) FROM orders"),
    ]
    assert_snapshot("sql_described", "\n".join("\n".join(SqlLeaf().describe(spec)) for spec in specs))


class SomeRows:
    """Rows in two portions."""

    columns = ("a", "B", "b")
    changed = None

    def __init__(self, rows: Sequence[Sequence[object]]) -> None:
        self._rows = rows

    def portions(self) -> Iterator[Sequence[Sequence[object]]]:
        yield self._rows[:1]
        yield self._rows[1:]


def test_columns_by_name() -> None:
    assert [column_place(["a", "B", "b"], name) for name in ("a", "A", "B", "b")] == [0, 0, 1, 2]
    for columns in (["a", "a"], ["A", "a"][:1] * 2, ["b"]):
        with pytest.raises(SqlError):
            column_place(columns, "a")


def test_rows() -> None:
    rows = [(1, 2, 3), (4, 5, 6)]
    assert all_rows(SomeRows(rows)) == Rows(("a", "B", "b"), rows)
    assert one_row(("a", "b"), rows[:1], {"x": "b", "y": "a"}) == {"x": 2, "y": 1}
