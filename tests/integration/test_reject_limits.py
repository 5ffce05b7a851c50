"""Limits of rejects: counts and percentages, of data flows, files and the package; and that they hold."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.integration.driver import PACKAGE, Before, Project
from tests.snapshots import assert_snapshot

ROWS = 200


def write_rows(project: Project, *bad: int) -> None:
    """A file for each number, with so many bad rows of 200."""
    for number, count in enumerate(bad, start=1):
        lines = [f"{number}{line:03}|1.25|2024-02-29|customer|" for line in range(ROWS)]
        for line in range(count):
            lines[7 * line % ROWS] = f"{number}{line:03}|1.255|2024-02-30|customer|"
        project.file(f"orders.tbl.{number}", "".join(f"{line}\n" for line in lines))


def with_rejects(project: Project, rejects: str, package: str = "") -> None:
    text = PACKAGE.replace('{limit: "${limit}"}', rejects)
    project.package(text.replace("streams: 4", f"streams: 4\n{package}"))


@pytest.mark.parametrize(
    ("rejects", "package", "bad"),
    [
        ("{limit: 5}", "", (2, 3)),
        ("{percent: 1.25}", "", (2, 3)),
        ("{per_file: {limit: 3}}", "", (3, 3)),
        ("{per_file: {percent: 1.5}}", "", (2, 3)),
        ("{}", "rejects: {limit: 5}", (5, 0)),
        ("{}", "rejects: {percent: 1.25}", (0, 5)),
        ("{percent: 100}", "", (200, 200)),
    ],
)
def test_a_limit_that_is_reached_is_not_passed(
    project: Project, rejects: str, package: str, bad: tuple[int, ...]
) -> None:
    with_rejects(project, rejects, package)
    write_rows(project, *bad)
    summary = project.run().succeeded()
    assert summary["rows_rejected"] == sum(bad)
    assert project.query("SELECT count(*) FROM orders") == [(2 * ROWS - sum(bad),)]
    notes = [note for note in summary["tables"][0]["notes"] if "rejected" in note]
    assert notes == (["all 400 rows were rejected: table orders is empty now"] if sum(bad) == 2 * ROWS else [])


@pytest.mark.parametrize(
    ("rejects", "package", "bad", "what"),
    [
        ("{limit: 4}", "", (2, 3), "5 rows were rejected; the limit is 4"),
        ("{percent: 1.2499}", "", (2, 3), "5 of 400 rows were rejected (1.25 %); the limit is 1.2499 %"),
        ("{per_file: {limit: 2}}", "", (2, 3), "3 rows were rejected in one file; the limit is 2 per file"),
        (
            "{per_file: {percent: 1}}",
            "",
            (2, 3),
            "3 of 200 rows were rejected (1.5 %) in one file; the limit is 1 % per file",
        ),
        (
            "{limit: 100}",
            "rejects: {limit: 4}",
            (5, 0),
            "5 rows were rejected in all data flows of the run so far; the limit is 4 for the package",
        ),
        (
            "{}",
            "rejects: {percent: 1}",
            (0, 5),
            "5 of 400 rows were rejected (1.25 %) in all data flows of the run so far; "
            "the limit is 1 % for the package",
        ),
    ],
)
def test_one_more_fails_the_load(project: Project, rejects: str, package: str, bad: tuple[int, ...], what: str) -> None:
    with_rejects(project, rejects, package)
    write_rows(project, *bad)
    # One stream, so that it is known how many there are when it is seen.
    ended = project.run("--streams", "1")
    error = ended.summary["error"]
    assert (ended.exit_code, error["kind"], error["what"]) == (1, "reject_limit", what)
    file = "orders.tbl.2" if bad[0] == 0 or "per_file" in rejects else "orders.tbl.1"
    assert (Path(error["at"]["file"]).name, error["at"]["row"]) == (file, 1)
    assert error["found"].startswith("first: a value for column `amount` (2) has more digits")
    assert_snapshot(
        f"reject_limit_{re.sub(r'[^a-z0-9]+', '_', (rejects + package).lower()).strip('_')}",
        project.stable(ended.error),
    )
    assert project.query("SELECT count(*) FROM duckdb_tables() WHERE table_name = 'orders'") == [(0,)]


def test_the_limit_of_the_package_counts_the_data_flows_before(project: Project) -> None:
    with_rejects(project, "{}", "rejects: {limit: 4}")
    text = (project.folder / "package.yaml").read_text(encoding="utf-8")
    flow = text[text.index("  load_orders:") :]
    second = flow.replace("load_orders:", "load_again:").replace('table: "${table}"', "table: again")
    project.package(text + second)
    write_rows(project, 2)
    project.run().succeeded()
    write_rows(project, 3)
    # Both data flows read the file: 3 and 3 rows.
    ended = project.run("--streams", "1")
    error = ended.summary["error"]
    assert error["what"] == "6 rows were rejected in all data flows of the run so far; the limit is 4 for the package"
    assert [(table["table"], table["status"]) for table in ended.summary["tables"]] == [
        ("orders", "success"),
        ("again", "failed"),
    ]
    assert project.query("SELECT count(*) FROM orders") == [(ROWS - 3,)]
    assert project.query("SELECT count(*) FROM again") == [(ROWS - 2,)]


def test_what_stands_in_the_files_of_rejects(project: Project) -> None:
    with_rejects(project, "{limit: 10}")
    write_rows(project, 1, 2)
    summary = project.run().succeeded()
    rejects = summary["tables"][0]["rejects"]
    lines = [json.loads(line) for line in Path(rejects["files"][0]).read_text(encoding="utf-8").splitlines()]
    bad = Path(rejects["files"][1]).read_bytes()
    assert [(line["number"], line["file_number"], line["row"]) for line in lines] == [(1, 1, 1), (2, 2, 1), (3, 2, 8)]
    for line in lines:
        content = Path(line["file"]).read_bytes()
        row = content[line["row_byte"] : line["row_byte"] + line["row_bytes"]]
        assert row == bad[line["bad_byte"] : line["bad_byte"] + line["bad_bytes"]]
        assert row.endswith(b"|1.255|2024-02-30|customer|\n")
        [also] = line["also"]
        assert (line["column"], line["code"]) == ("amount", "HR402")
        assert (also["column"], also["rule"], also["code"]) == ("day", "bad_date", "HR305")
        assert content[also["byte"] :].startswith(b"2024-02-30")
    assert rejects["first"] == lines
    [kind] = rejects["by_column"]
    assert kind == {"column": "amount", "rule": "would_round", "code": "HR402", "count": 3, "first": lines}


@pytest.mark.parametrize("rejects", ["{percent: 99.9999}", "{limit: 399}", "{per_file: {percent: 50}}"])
def test_a_source_that_is_all_rejects_is_refused_by_its_limits(project: Project, rejects: str) -> None:
    """The table keeps its rows."""
    before = Before.of(project)
    with_rejects(project, rejects)
    write_rows(project, ROWS, ROWS)
    ended = project.run()
    assert (ended.exit_code, ended.summary["error"]["kind"]) == (1, "reject_limit")
    before.check("failed")


@pytest.mark.parametrize("target", ["create", "append", "replace"])
def test_a_source_that_is_all_rejects(project: Project, target: str) -> None:
    with_rejects(project, "{percent: 100}")
    write_rows(project, ROWS, ROWS)
    summary = project.run(target=target).succeeded()
    assert (summary["rows_loaded"], summary["rows_rejected"]) == (0, 2 * ROWS)
    assert project.query("SELECT count(*) FROM orders") == [(0,)]
    lines, rows = (Path(file).read_bytes() for file in summary["tables"][0]["rejects"]["files"])
    assert rows == b"".join((project.inbox / f"orders.tbl.{number}").read_bytes() for number in (1, 2))
    assert lines.count(b"\n") == 2 * ROWS
