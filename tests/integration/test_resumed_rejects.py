"""Rejects and accounts behind `headrace resume`: those of the whole run, as if nothing had come between."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from headrace.model import load_package
from tests.integration.driver import PACKAGE, Ended, Project, Running
from tests.integration.postgres import PostgresProject
from tests.integration.test_resume import SECOND
from tests.patience import HANG_SECONDS
from tests.servers.cluster import LOADER

pytestmark = pytest.mark.faults

FILES = 4
# What no two attempts have in common, and what is counted for this attempt only.
_OF_ONE_ATTEMPT = (
    "switch_seconds",
    "partitions",
    "seconds",
    "cpu_seconds",
    "bytes_read",
    "mb_per_second",
    "limit",
    "rows_per_second",
    "memory",
    "streams",
    "notes",
)


def rows(first: int, count: int = 50, *, bad: Sequence[int] = (), blank: int = 0) -> str:
    """Rows with the ids from `first` on; some of them bad, blank lines in front."""
    lines = [f"{first + number}|{number}.25|2024-02-29|customer|note" for number in range(count)]
    for number in bad:
        lines[number] = f"{first + number}|1.255|bad {number}"
    return "\n" * blank + "".join(f"{line}\n" for line in lines)


def write_files(project: Project) -> None:
    """Slice 1 has rejects and blank lines, 2 blank lines, 3 rejects, 4 neither."""
    for number, members in enumerate([{"bad": [3, 49], "blank": 2}, {"blank": 3}, {"bad": [20, 21, 22]}, {}], start=1):
        project.file(f"orders.tbl.{number}", rows(1000 * number, **members))  # type: ignore[arg-type]


@dataclass(frozen=True)
class Whole:
    """What a run says and keeps of its rows: accounts and rejects of each table, files of rejects."""

    accounts: list[dict[str, Any]]
    totals: dict[str, int]
    files: dict[str, str]

    @classmethod
    def of(cls, summary: dict[str, Any]) -> Whole:
        """Those of an ended run."""
        folder = Path(summary["run_folder"])
        files = {path.name: path.read_text() for path in sorted((folder / "rejects").iterdir())}
        totals = {name: summary[name] for name in ("rows_read", "rows_skipped", "rows_loaded", "rows_rejected")}
        assert json.loads((folder / "summary.json").read_text()) == summary
        return cls([cls._account(table, folder) for table in summary["tables"]], totals, files)

    @staticmethod
    def _account(table: dict[str, Any], folder: Path) -> dict[str, Any]:
        kept = {name: value for name, value in table.items() if name not in _OF_ONE_ATTEMPT}
        files = [str(Path(path).relative_to(folder)) for path in table["rejects"]["files"]]
        return {**kept, "rejects": {**table["rejects"], "files": files}}


# --- PostgreSQL: slices are committed before they are visible ---------------------------------------------------------


def last_run(warehouse: PostgresProject) -> str:
    [(run_id,)] = warehouse.query("SELECT run_id FROM headrace.run ORDER BY started_at DESC LIMIT 1")
    assert run_id is not None
    return run_id


def fail_at_the_switch(warehouse: PostgresProject, *, limit: int = 100) -> Ended:
    """A run that has committed all slices, and gives up because somebody reads the table."""
    with warehouse.target.session("BEGIN; DO 'BEGIN PERFORM count(*) FROM orders; END'"):
        ended = warehouse.run(limit=limit)
    assert (ended.exit_code, ended.summary["error"]["retryable"]) == (1, True), ended.stderr
    return ended


def forget(warehouse: PostgresProject, run_id: str, numbers: Sequence[int]) -> None:
    """Takes what these slices have committed out of the database again."""
    for number in numbers:
        tables = warehouse.query(
            'SELECT DISTINCT staging FROM headrace.unit JOIN headrace."commit" USING (run_id, task, partition) '
            f"WHERE run_id = '{run_id}' AND slice = {number}"
        )
        for (staging,) in tables:
            table = "orders" if staging is None else f'headrace."{staging}"'
            warehouse.execute(f"DELETE FROM {table} WHERE id BETWEEN {1000 * number} AND {1000 * number + 999}")
        warehouse.execute(f"DELETE FROM headrace.\"commit\" WHERE run_id = '{run_id}' AND slice IN (0, {number})")


@pytest.mark.parametrize(
    ("load", "left"), [("single", [3]), ("staged", []), ("staged", [1, 2]), ("staged", [1, 2, 3, 4])], ids=str
)
def test_rejects_of_committed_slices(warehouse: PostgresProject, load: str, left: list[int]) -> None:
    warehouse.sales(load, "id" if load == "staged" else None)
    write_files(warehouse)
    undisturbed = warehouse.run(limit=100).succeeded()
    fail_at_the_switch(warehouse)
    run_id = last_run(warehouse)
    forget(warehouse, run_id, left)
    # As after a kill: nothing is merged, a file ends in the middle of a line.
    rejects = warehouse.runs / run_id / "rejects"
    shutil.rmtree(rejects)
    rejects.mkdir()
    (rejects / ".orders.slice-000003.tails").write_text("half a number")
    resumed = warehouse.resume().succeeded()
    assert Whole.of(resumed) == Whole.of(undisturbed)
    assert undisturbed["rows_rejected"] == 5 and undisturbed["rows_skipped"] == 5
    assert warehouse.query("SELECT count(*) FROM orders") == [("195",)]
    assert warehouse.leftovers() == []
    # What is committed without rejects is not read again.
    assert (resumed["bytes_read"] < undisturbed["bytes_read"]) == (len(left) < FILES)


@pytest.mark.parametrize("left", [[], [2], [1, 3]], ids=str)
def test_ignored_values_of_committed_slices(warehouse: PostgresProject, left: list[int]) -> None:
    """Slices 1 and 3 have ignored values, 2 has neither those nor rejects, 4 both in one row."""
    warehouse.sales("staged", "id")
    text = (warehouse.folder / "package.yaml").read_text(encoding="utf-8")
    warehouse.package(text.replace('    delimiter: "|"', '    delimiter: "|"\n    on_truncation: ignore'))
    for number in (1, 2, 3):
        good = rows(1000 * number)
        cut = good if number == 2 else good.replace("|7.25|", "|7.2599|").replace("|8.25|", "|8.251|")
        warehouse.file(f"orders.tbl.{number}", cut)
    warehouse.file("orders.tbl.4", rows(4000, bad=[5]))
    undisturbed = warehouse.run(limit=100).succeeded()
    [table] = undisturbed["tables"]
    assert (table["values_ignored"], table["ignored"]) == (4, {"amount": {"nulls": 0, "cut": 4}})
    fail_at_the_switch(warehouse)
    forget(warehouse, last_run(warehouse), left)
    resumed = warehouse.resume().succeeded()
    assert Whole.of(resumed) == Whole.of(undisturbed)
    assert warehouse.query("SELECT count(*), sum(amount) FROM orders WHERE amount BETWEEN 7 AND 9") == [("8", "62.00")]
    sums = warehouse.query('SELECT sum(values_ignored) FROM headrace."commit" GROUP BY run_id')
    assert sums == [("4",), ("4",)]


def test_rejects_of_appended_slices(warehouse: PostgresProject) -> None:
    """Some writers had committed their rows into the table itself."""
    warehouse.sales()
    write_files(warehouse)
    undisturbed = warehouse.run(limit=100, target="append").succeeded()
    warehouse.execute('TRUNCATE orders, headrace.run, headrace.slice, headrace.unit, headrace."commit"')
    warehouse.run(limit=100, target="append").succeeded()
    run_id = last_run(warehouse)
    forget(warehouse, run_id, [2, 3])
    warehouse.execute("UPDATE headrace.run SET status = 'running'")
    for name in ("summary.json", "journal.jsonl"):
        (warehouse.runs / run_id / name).unlink()
    resumed = warehouse.resume(run_id).succeeded()
    assert Whole.of(resumed) == Whole.of(undisturbed)
    assert warehouse.query("SELECT count(*) FROM orders") == [("195",)]


def test_the_limit_counts_rejects_of_committed_slices(warehouse: PostgresProject) -> None:
    write_files(warehouse)
    warehouse.run(limit=100).succeeded()
    undisturbed = warehouse.run(limit=4)
    fail_at_the_switch(warehouse)
    forget(warehouse, last_run(warehouse), [3])
    resumed = warehouse.resume("--set", "limit=4")
    assert (resumed.exit_code, resumed.summary["error"]["kind"]) == (1, "reject_limit")
    assert resumed.summary["error"]["what"] == undisturbed.summary["error"]["what"]
    assert resumed.summary["error"]["at"] == undisturbed.summary["error"]["at"]
    assert warehouse.query("SELECT count(*) FROM orders") == [("195",)]
    assert warehouse.leftovers() == []


# Five of 200 rows are bad, two of 50 in the first file and three of 50 in the third one.
@pytest.mark.parametrize(
    ("rejects", "package"),
    [
        ("{percent: 2.4999}", ""),
        ("{per_file: {limit: 2}}", ""),
        ("{per_file: {percent: 5}}", ""),
        ("{}", "rejects: {limit: 4}"),
        ("{}", "rejects: {percent: 2.4}"),
    ],
    ids=str,
)
@pytest.mark.parametrize("left", [[3], [1, 2, 4]], ids=str)
def test_every_limit_counts_rejects_of_committed_slices(
    warehouse: PostgresProject, rejects: str, package: str, left: list[int]
) -> None:
    """An attempt with laxer limits has committed all of the slices; `resume` judges those that are left with them."""
    text = PACKAGE.replace('{limit: "${limit}"}', rejects).replace("streams: 4", f"streams: 4\n{package}")
    warehouse.package(text)
    write_files(warehouse)
    undisturbed = warehouse.run("--streams", "1")
    assert (undisturbed.exit_code, undisturbed.summary["error"]["kind"]) == (1, "reject_limit")
    lax = text.replace(rejects, "{limit: 100}", 1).replace(package, "", 1)
    warehouse.package(lax)
    warehouse.run().succeeded()
    fail_at_the_switch(warehouse)
    run_id = last_run(warehouse)
    forget(warehouse, run_id, left)
    # The package of the run was the strict one.
    warehouse.package(text)
    request = warehouse.runs / run_id / "request.json"
    kept = json.loads(request.read_text(encoding="utf-8"))
    strict = load_package(warehouse.folder / "package.yaml", sets=[], connections=[], streams=None, environ={})
    request.write_text(json.dumps({**kept, "package_hash": strict.content_hash}), encoding="utf-8")
    resumed = warehouse.resume()
    assert (resumed.exit_code, resumed.summary["error"]["kind"]) == (1, "reject_limit"), resumed.stderr
    assert resumed.summary["error"]["what"] == undisturbed.summary["error"]["what"]
    assert warehouse.query("SELECT count(*) FROM orders") == [("195",)]


@contextmanager
def between_two_commits(warehouse: PostgresProject) -> Iterator[tuple[Running, Whole]]:
    """A run of one stream that has committed some of its partitions, each with a reject, and what it would end with."""
    warehouse.sales("staged", "id")
    for number in range(1, 13):
        warehouse.file(f"orders.tbl.{number:02}", rows(100_000 * number, 60_000, bad=[number], blank=number))
    undisturbed = warehouse.run("--streams", "1", limit=100).succeeded()
    committed = (
        'SELECT count(*) FROM headrace."commit" '
        "WHERE run_id = (SELECT run_id FROM headrace.run ORDER BY started_at DESC LIMIT 1)"
    )
    with warehouse.started(warehouse.arguments("--streams", "1", limit=100)) as running:
        deadline = time.monotonic() + HANG_SECONDS
        while warehouse.query("SELECT count(*) FROM headrace.run") != [("2",)] or warehouse.query(committed) == [
            ("0",)
        ]:
            assert running.poll() is None and time.monotonic() < deadline, running.stderr
        running.freeze()
        [(count,)] = warehouse.query(committed)
        assert 1 <= int(str(count)) < 12
        yield running, Whole.of(undisturbed)
    assert warehouse.query("SELECT count(*) FROM orders") == [(str(12 * 60_000 - 12),)]
    assert warehouse.leftovers() == []


def test_killed_between_two_commits(warehouse: PostgresProject) -> None:
    with between_two_commits(warehouse) as (running, undisturbed):
        running.end()
        assert Whole.of(warehouse.resume().succeeded()) == undisturbed


def test_an_attempt_that_comes_back_changes_no_file(warehouse: PostgresProject) -> None:
    """It stood still while its sessions were ended and its run was resumed."""
    with between_two_commits(warehouse) as (zombie, undisturbed):
        warehouse.query(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() "
            f"AND usename = '{LOADER}' AND application_name LIKE '%control'"
        )
        resumed = warehouse.resume().succeeded()
        zombie.thaw()
        ended = zombie.wait()
        assert (ended.exit_code, "Traceback" in ended.stderr) == (1, False)
        assert f"run {resumed['run_id']} was resumed by another process" in ended.stderr
        assert Whole.of(resumed) == undisturbed


# --- tables that an earlier attempt has completed ---------------------------------------------------------------------


ORDERS_BELOW_9000 = """
CREATE TABLE {table} (id BIGINT CHECK (id < 9000), amount DECIMAL(9,2), day DATE, customer VARCHAR, note VARCHAR)
"""


def two_tasks(project: Project, table: str) -> None:
    """Two tasks; the second one loads `late.tbl` into this table."""
    project.package(
        PACKAGE
        + SECOND.lstrip("\n")
        .replace("table: late", f"table: {table}")
        .replace("    data_flow:\n", "    data_flow:\n      rejects: {limit: 100}\n")
    )
    write_files(project)
    project.file("late.tbl", rows(9000, bad=[7]))


def check_completed_tables(project: Project, undisturbed: dict[str, Any], fail: Ended, resumed: dict[str, Any]) -> None:
    assert fail.exit_code == 1
    assert resumed["run_id"] == fail.summary["run_id"]
    assert Whole.of(resumed) == Whole.of(undisturbed)
    assert resumed["rows_rejected"] == 6
    assert project.leftovers() == []


def test_tables_in_duckdb(project: Project) -> None:
    two_tasks(project, "late")
    undisturbed = project.run(limit=100).succeeded()
    project.execute(f"DROP TABLE late; {ORDERS_BELOW_9000.format(table='late')}")
    failed = project.run(limit=100)
    first = sorted((project.runs / failed.summary["run_id"] / "rejects").glob("orders.*"))
    before = [(path.read_bytes(), path.stat().st_mtime_ns) for path in first]
    assert len(before) == 2
    project.execute("DROP TABLE late")
    check_completed_tables(project, undisturbed, failed, project.resume().succeeded())
    assert [(path.read_bytes(), path.stat().st_mtime_ns) for path in first] == before


def test_ignored_values_of_completed_tables(project: Project) -> None:
    """Their columns too, as if nothing had come between."""
    two_tasks(project, "late")
    text = (project.folder / "package.yaml").read_text(encoding="utf-8")
    ignoring = '    delimiter: "|"\n    on_truncation: ignore\n    on_error: ignore'
    text = text.replace('    delimiter: "|"', ignoring).replace(
        "nullable: false}", "nullable: false, on_error: redirect}"
    )
    project.package(text)
    project.file("orders.tbl.1", "1|7.259|no day|customer|\n2|1.5|2024-01-01|a customer with a long name|\nx|1|||\n")
    undisturbed = project.run(limit=100).succeeded()
    first = undisturbed["tables"][0]
    assert first["ignored"]["customer"] == {"nulls": 0, "cut": 1}
    assert first["ignored"]["day"]["nulls"] >= 1
    project.execute(f"DROP TABLE late; {ORDERS_BELOW_9000.format(table='late')}")
    failed = project.run(limit=100)
    assert failed.exit_code == 1
    project.execute("DROP TABLE late")
    assert Whole.of(project.resume().succeeded()) == Whole.of(undisturbed)


def test_two_tasks_into_one_table(project: Project) -> None:
    """Their files of rejects have the names that they had in the first attempt."""
    two_tasks(project, "orders")
    undisturbed = project.run(limit=100, target="append").succeeded()
    project.execute(f"DROP SCHEMA headrace CASCADE; DROP TABLE orders; {ORDERS_BELOW_9000.format(table='orders')}")
    failed = project.run(limit=100, target="append")
    project.execute("CREATE TABLE free AS FROM orders; DROP TABLE orders; ALTER TABLE free RENAME TO orders")
    check_completed_tables(project, undisturbed, failed, project.resume().succeeded())


def test_tables_in_postgres(warehouse: PostgresProject) -> None:
    two_tasks(warehouse, "late")
    undisturbed = warehouse.run(limit=100).succeeded()
    with warehouse.target.session("BEGIN; DO 'BEGIN PERFORM count(*) FROM late; END'"):
        failed = warehouse.run(limit=100)
    check_completed_tables(warehouse, undisturbed, failed, warehouse.resume().succeeded())
