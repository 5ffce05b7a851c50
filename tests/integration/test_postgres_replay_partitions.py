"""Replays into partitions of PostgreSQL: those that the run has made take rows, new ones come where they may."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import pytest

from tests.integration.driver import PACKAGE
from tests.integration.postgres import PostgresProject
from tests.integration.replays import command

_DESTINATION = 'target: "${target}"}'
# Keys of rows that are loaded by the run, and keys to which its rejects are repaired.
LOADED = (1, 2, 11, 12, 21)
REPAIRED = (3, 13, 35)


def divided(project: PostgresProject, clause: str) -> None:
    """Writes the package with this division of its table."""
    assert _DESTINATION in PACKAGE
    project.package(PACKAGE.replace(_DESTINATION, f"{_DESTINATION[:-1]}, partition: {clause}}}"))


def rejecting(project: PostgresProject, repaired: Sequence[int] = REPAIRED, **parameters: str) -> str:
    """A run of two files with as many rejects as there are `repaired` keys; the files are gone behind it."""
    good = [f"{key}|1.00|||\n" for key in LOADED]
    paths = [
        project.file("orders.tbl.1", "".join(good[:2]) + "3|x|||\n" + "".join(good[2:4])),
        project.file("orders.tbl.2", "22|x|||\n" + good[4] + "23|x|||\n" + "24|1.00|||\n"),
    ]
    run = str(project.command(project.arguments(limit=len(repaired), **parameters)).succeeded()["run_id"])
    for path in paths:
        path.unlink()
    assert project.command(command("rejects", run, "--copy", "repair.tbl")).exit_code == 0
    (project.folder / "repair.tbl").write_text("".join(f"{key}|2.00|||\n" for key in repaired))
    return run


def replayed(project: PostgresProject, run: str) -> tuple[int, int]:
    """Loaded and rejected again."""
    replay = project.command(command("replay", run, "repair.tbl")).succeeded()["replay"]
    (table,) = project.command(command("rejects", run)).summary["tables"]
    assert (table["open"], table["loaded"], table["rejected_again"]) == (0, replay["loaded"], replay["rejected_again"])
    assert project.left_in_database() == []
    return replay["loaded"], replay["rejected_again"]


def partitions(project: PostgresProject) -> dict[str, list[int]]:
    """The keys of the repaired rows, by partition; empty for partitions without one."""
    names = [str(name) for (name,) in project.query("SELECT inhrelid::regclass FROM pg_inherits ORDER BY 1::text")]
    found = {}
    for name in names:
        keys = project.query(f"SELECT id FROM {name} WHERE amount = 2 ORDER BY id")
        found[name] = [int(str(key)) for (key,) in keys]
    return found


@pytest.mark.parametrize(
    ("clause", "expected"),
    [
        pytest.param(
            "{range: {column: id, every: 10, from: 0, to: 40}}",
            {"orders_0": [3], "orders_10": [13], "orders_20": [], "orders_30": [35]},
            id="declared",
        ),
        pytest.param(
            "{range: {column: id, every: 10}}",
            {"orders_0": [3], "orders_10": [13], "orders_20": [], "orders_30": [35]},
            id="occurring",
        ),
        pytest.param("{range: {column: id, bounds: [10, 20]}}", {"orders_1": [3], "orders_2": [13], "orders_3": [35]}),
        pytest.param(
            "{list: {column: id, values: {few: [1, 2, 3, 24], more: [11, 12, 13, 21, 35]}}}",
            {"orders_few": [3], "orders_more": [13, 35]},
        ),
    ],
)
def test_partitions_take_what_comes_back(
    warehouse: PostgresProject, clause: str, expected: dict[str, list[int]]
) -> None:
    divided(warehouse, clause)
    run = rejecting(warehouse)
    assert replayed(warehouse, run) == (3, 0)
    assert sorted(partitions(warehouse).values()) == sorted(expected.values())
    assert warehouse.query("SELECT count(*) FROM orders") == [("9",)]


@pytest.mark.parametrize("clause", ["{hash: {column: id, parts: 3}}", "{range: {column: id, parts: 2}}"])
def test_partitions_stay_as_many(warehouse: PostgresProject, clause: str) -> None:
    divided(warehouse, clause)
    run = rejecting(warehouse)
    before = len(partitions(warehouse))
    assert replayed(warehouse, run) == (3, 0)
    found = partitions(warehouse)
    assert (len(found), sorted(itertools.chain.from_iterable(found.values()))) == (before, sorted(REPAIRED))


def test_bounds_of_files_are_those_of_the_run(warehouse: PostgresProject) -> None:
    """The file of repaired rows is none of them: a key beyond is rejected again."""
    divided(warehouse, "{range: {column: id}}")
    run = rejecting(warehouse)
    before = partitions(warehouse)
    assert len(before) == 2
    assert replayed(warehouse, run) == (2, 1)
    assert partitions(warehouse) == {"orders_1": [3, 13], "orders_2": []}


def test_a_default_partition(warehouse: PostgresProject) -> None:
    divided(warehouse, "{range: {column: id}, outside: default}")
    run = rejecting(warehouse)
    assert replayed(warehouse, run) == (3, 0)
    assert partitions(warehouse)["orders_default"] == [35]


def test_nothing_goes_by_a_replay(warehouse: PostgresProject) -> None:
    """The window of `keep` stays open for what comes back; what would be too old is outside as ever."""
    divided(warehouse, "{range: {column: id, every: 10}, keep: 2}")
    warehouse.file("orders.tbl.0", "12|1.00|||\n22|1.00|||\n")
    warehouse.run(files="orders.tbl.0").succeeded()
    # The first two rows are rejects too, as they are too old; then those that are in no window.
    run = rejecting(warehouse, [1, 13, 3, 22, 35], target="append", files="orders.tbl.1,orders.tbl.2")
    assert replayed(warehouse, run) == (3, 2)
    found = partitions(warehouse)
    assert sorted(found.values()) == [[13], [22], [35]], "the next load drops the oldest"


def test_partitions_that_were_loaded_anew(warehouse: PostgresProject) -> None:
    declared = "{range: {column: id, bounds: [10]}}"
    divided(warehouse, declared)
    warehouse.file("orders.tbl.1", "1|1.00|||\n11|1.00|||\n")
    warehouse.run().succeeded()
    divided(warehouse, f"{declared}, partitions: [orders_1]")
    warehouse.file("orders.tbl.1", "2|1.00|||\n3|x|||\n")
    run = str(warehouse.run(limit=1).succeeded()["run_id"])
    warehouse.command(command("rejects", run, "--copy", "repair.tbl"))
    refused = warehouse.command(command("replay", run, "repair.tbl"))
    assert refused.exit_code == 1
    assert "partitions that the run has loaded anew" in refused.error


def test_all_rows_were_rejects(warehouse: PostgresProject) -> None:
    """By ranges of files there is no partition; by ranges of keys one is made."""
    divided(warehouse, "{range: {column: id, every: 10}}")
    warehouse.file("orders.tbl.1", "x|1.00|||\n")
    run = str(warehouse.run(limit=1).succeeded()["run_id"])
    warehouse.command(command("rejects", run, "--copy", "repair.tbl"))
    (warehouse.folder / "repair.tbl").write_text("7|2.00|||\n")
    assert replayed(warehouse, run) == (1, 0)
    assert list(partitions(warehouse).values()) == [[7]]


def test_a_view_gets_a_further_table(warehouse: PostgresProject) -> None:
    warehouse.sales("view")
    run = rejecting(warehouse)
    before = warehouse.tables()
    assert replayed(warehouse, run) == (3, 0)
    (further,) = set(warehouse.tables()) - set(before)
    assert warehouse.query(f"SELECT count(*) FROM {further}") == [("3",)]
    assert warehouse.query("SELECT count(*) FROM orders") == [("9",)]
    dropped = warehouse.command(command("replay", run, "--drop", "1"))
    assert dropped.exit_code == 1
