"""What becomes of values that do not fit: `on_error` and `on_truncation`, seen through `headrace run`."""

from __future__ import annotations

import pytest

from tests.integration.driver import CREATE_ORDERS, PACKAGE, Project
from tests.snapshots import assert_snapshot

# Good, bad amount, bad day, long customer, both of the last, and a row of another shape.
ROWS = """\
1|1.25|2024-02-29|customer|a
2|1.259|2024-02-29|customer|b
3|1.25|2024-02-30|customer|c
4|1.25|2024-02-29|a customer of 26 letters..|d
5|-1.259|none|a customer of 26 letters..|e
6|1.25
"""


def layout(project: Project, *, everywhere: str = "", **columns: str) -> None:
    """Settings of the layout, and of some of its columns."""
    text = PACKAGE.replace('    delimiter: "|"', f'    delimiter: "|"\n{everywhere}')
    for name, setting in columns.items():
        line = next(line for line in text.splitlines() if f"{{name: {name}," in line)
        text = text.replace(line, line.replace("}", f", {setting}}}"))
    project.package(text)


def test_ignored_values_are_null_or_cut_and_counted(project: Project) -> None:
    layout(project, everywhere="    on_truncation: ignore", day="on_error: ignore")
    project.file("orders.tbl.1", ROWS)
    summary = project.run(limit=1).succeeded()
    [table] = summary["tables"]
    assert (table["rows_loaded"], table["rows_rejected"], table["values_ignored"]) == (5, 1, 6)
    assert table["ignored"] == {
        "amount": {"nulls": 0, "cut": 2},
        "day": {"nulls": 2, "cut": 0},
        "customer": {"nulls": 0, "cut": 2},
    }
    assert [note for note in table["notes"] if note.startswith("column")] == [
        "column `amount`: 2 values were cut to decimal(9,2)",
        "column `day`: 2 values were no date, so NULL",
        "column `customer`: 2 values were cut to varchar(12)",
    ]
    assert project.query("SELECT id, amount::VARCHAR, day::VARCHAR, customer FROM orders ORDER BY id") == [
        (1, "1.25", "2024-02-29", "customer"),
        (2, "1.25", "2024-02-29", "customer"),
        (3, "1.25", None, "customer"),
        (4, "1.25", "2024-02-29", "a customer o"),
        (5, "-1.25", None, "a customer o"),
    ]
    assert project.query('SELECT sum(values_ignored) FROM headrace."commit"') == [(6,)]


def test_a_row_that_is_rejected_takes_its_ignored_values_with_it(project: Project) -> None:
    layout(project, day="on_error: ignore", customer="on_truncation: ignore")
    project.file("orders.tbl.1", ROWS)
    summary = project.run(limit=3).succeeded()
    [table] = summary["tables"]
    assert (table["rows_loaded"], table["rows_rejected"]) == (3, 3)
    # Row 5 is rejected for its amount.
    assert table["ignored"] == {"day": {"nulls": 1, "cut": 0}, "customer": {"nulls": 0, "cut": 1}}
    assert [reject["also"] for reject in table["rejects"]["first"]] == [[], [], []]


@pytest.mark.parametrize("limit", [0, 100])
def test_a_value_that_fails_the_load_is_named_whatever_the_limit(project: Project, limit: int) -> None:
    layout(project, everywhere="    on_error: fail")
    project.file("orders.tbl.1", ROWS.replace("1|1.25|2024-02-29", "1|1.259|2024-02-29"))
    ended = project.run("--streams", "1", limit=limit)
    error = ended.summary["error"]
    assert (error["kind"], error["at"]["row"]) == ("reject_limit", 3)
    assert error["what"] == "cannot convert a value for column `day` (3) to date, and the layout says `on_error: fail`"
    assert error["found"] == '"2024-02-30"'
    assert_snapshot("dispositions_fail", project.stable(ended.error))
    assert project.query("SELECT count(*) FROM duckdb_tables() WHERE table_name = 'orders'") == [(0,)]


def test_a_value_behind_the_first_bad_one_fails_the_load_too(project: Project) -> None:
    layout(project, day="on_error: fail")
    project.file("orders.tbl.1", "1|1.259|2024-02-30|customer|a\n")
    error = project.run(limit=100).summary["error"]
    assert error["what"] == "cannot convert a value for column `day` (3) to date, and the layout says `on_error: fail`"
    assert (error["at"]["row"], error["at"]["byte"]) == (1, 8)


def test_an_ignored_value_of_a_column_that_is_not_loaded(project: Project) -> None:
    """It is counted like any other: the file does not fit its layout."""
    layout(project, everywhere="    on_truncation: ignore")
    columns = "columns: {id: id, day: day}, "
    path = project.folder / "package.yaml"
    path.write_text(path.read_text().replace('table: "${table}", ', f'{columns}table: "${{table}}", '))
    project.file("orders.tbl.1", "1|1.259|2024-02-29|a customer of 26 letters..|a\n")
    [table] = project.run().succeeded()["tables"]
    assert table["ignored"] == {"amount": {"nulls": 0, "cut": 1}, "customer": {"nulls": 0, "cut": 1}}
    assert "column `customer`: 1 value was cut to varchar(12)" in table["notes"]


@pytest.mark.parametrize(("on_error", "exit_code"), [("ignore", 0), ("fail", 1)])
def test_a_value_that_is_out_of_range_when_it_is_cut_is_an_error(
    project: Project, on_error: str, exit_code: int
) -> None:
    layout(project, everywhere=f"    on_truncation: ignore\n    on_error: {on_error}", id="on_error: redirect")
    path = project.folder / "package.yaml"
    path.write_text(path.read_text().replace("name: day, type: date", "name: day, type: timestamp, format: {epoch: s}"))
    project.file("orders.tbl.1", "1|1.25|999999999999.1234567|customer|a\n2|1.25|1.1234567|customer|a\n")
    ended = project.run(limit=10)
    assert ended.exit_code == exit_code
    if exit_code == 0:
        [table] = ended.succeeded()["tables"]
        assert table["ignored"] == {"day": {"nulls": 1, "cut": 1}}
        assert project.query("SELECT id, epoch_us(day) FROM orders ORDER BY id") == [(1, None), (2, 1123456)]


REFUSED = {
    "not_nullable": {"id": "on_error: ignore"},
    "not_nullable_by_the_layout": {"everywhere": "    on_error: ignore"},
    "unknown": {"amount": "on_truncation: skip"},
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused_layouts(project: Project, name: str) -> None:
    layout(project, **REFUSED[name])
    project.file("orders.tbl.1", ROWS)
    ended = project.run()
    assert ended.exit_code == 5
    assert_snapshot(f"dispositions_{name}", project.stable(ended.error))


def test_null_where_the_table_has_not_null_is_refused_before_row_1(project: Project) -> None:
    layout(project, day="on_error: ignore")
    project.execute(CREATE_ORDERS.replace("day DATE", "day DATE NOT NULL"))
    project.file("orders.tbl.1", ROWS)
    ended = project.run(limit=100, target="append")
    error = ended.summary["error"]
    assert error["found"] == "`day`: the table has NOT NULL, and `on_error: ignore` of `day` makes NULL of errors"
    assert project.query("SELECT count(*) FROM orders") == [(0,)]
