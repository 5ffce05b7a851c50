"""Rows of several joins that are refused, or stand against the order, and files that do not fit: each is told where it
stands, in the file of one source.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import pytest

from tests.integration.driver import Project
from tests.integration.join_tree_scenes import DETAILED, SENT, expected, joined, package, stored, write_files
from tests.snapshots import assert_snapshot

# The lookup misses each value that three divides, the query fails for one value.
KEYED = (
    "keyed: {input: detailed, lookup: {connection: inbox, files: labels.csv, layout: labels, on: {l_value: code}, "
    "add: [label]}}"
)
FAILING = "failing: {input: sent, sql: \"SELECT *, IF(p_value = 45, error('no'), p_value) AS value FROM sent\"}"


def behind(rows: str) -> str:
    return SENT.replace("right: detailed", f"right: {rows}")


@pytest.fixture
def small(project: Project) -> Project:
    """Two sets of small files."""
    project.package(package([DETAILED, SENT]))
    for unit, key in ((1, 100), (2, 200)):
        project.file(f"orders.{unit}", f"{key}|1|a\n{key + 1}|2|b\n{key + 2}|3|c\n")
        project.file(f"lines.{unit}", f"{key}|1|a\n{key}|2|b\n{key + 2}|3|c\n")
        project.file(f"parcels.{unit}", f"{key}|1|a\n{key + 2}|2|b\n")
    return project


def rejects(project: Project) -> list[dict[str, Any]]:
    """Those of the last run."""
    (path,) = sorted(project.runs.glob("*/rejects/*.jsonl"))[-1:]
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def places(project: Project) -> list[tuple[str, int, str | None]]:
    return sorted((own["file"].rsplit("/")[-1], own["row"], own["column"]) for own in rejects(project))


def test_rows_that_cannot_be_read_are_rejects_of_their_own_files(small: Project) -> None:
    small.file("orders.1", "100|x|a\n101|2|b\n102|3|c\n")
    small.file("lines.1", "100|1|a\n100|2|b\n102|y|c\n")
    small.file("parcels.2", "200|z|a\n202|2|b\n")
    account = joined(small.run(limit=10))
    told = account["right"]["join"]
    assert [own["rows_rejected"] for own in (account["left"], told["left"], told["right"])] == [1, 1, 1]
    assert account["right"]["rows_rejected"] == 2
    assert [row[0] for row in stored(small)] == [202]
    assert places(small) == [("lines.1", 3, "l_value"), ("orders.1", 1, "o_value"), ("parcels.2", 1, "p_value")]
    refused = small.run(streams=1)
    assert_snapshot("join_tree_reject_of_a_leaf", small.stable(refused.error))


def test_rows_that_are_refused_between_joins_and_behind_them(project: Project) -> None:
    write_files(project)
    project.package(package([DETAILED, KEYED, behind("keyed"), FAILING], {"facts": "failing"}))
    between = "SELECT * EXCLUDE (code) FROM orders JOIN lines ON o_key = l_key JOIN labels ON l_value = code"
    good = expected(
        project,
        f"SELECT *, p_value AS value FROM parcels JOIN ({between}) ON p_key = o_key WHERE p_value IS DISTINCT FROM 45",
    )
    detailed = len(expected(project, "SELECT * FROM orders JOIN lines ON o_key = l_key"))
    kept = len(expected(project, between))
    accounts = []
    for streams in (1, 16):
        ended = project.run(streams=streams, limit=100_000)
        account = joined(ended)
        accounts.append(account)
        right = account["right"]
        assert (right["rejected_in_front"], right["rows"]) == (detailed - kept, kept)
        assert right["join"]["rows_out"] == detailed
        assert (
            len(stored(project))
            == len(good)
            == account["rows_out"] - sum(account[side]["rejected_behind"] for side in ("left", "right"))
        )
        found = rejects(project)
        assert len(found) == ended.summary["rows_rejected"] == detailed - kept + account["rows_out"] - len(good)
        # A line stands for the joined row, wherever it was refused.
        assert {own["file"].rsplit("/")[-1].split(".")[0] for own in found} == {"lines"}
        texts = {path.name: path.read_bytes() for path in project.inbox.iterdir()}
        for own in found:
            text = texts[own["file"].rsplit("/")[-1]]
            row = text[own["row_byte"] : own["row_byte"] + own["row_bytes"]]
            assert row == text.splitlines(keepends=True)[own["row"] - 1]
    assert accounts[0] == accounts[1]
    assert stored(project) == good
    by_rule = {own["code"]: own["message"] for own in reversed(found)}
    assert_snapshot("join_tree_rejects", "\n".join(f"{code}: {text}" for code, text in sorted(by_rule.items())))


def test_a_row_that_one_side_alone_has_is_a_reject_of_its_own_file(small: Project) -> None:
    """Down the tree: rows that have met none stand for themselves."""
    small.package(
        package(
            [
                DETAILED.replace("on:", "type: full, on:"),
                SENT.replace("on:", "type: full, on:"),
                "all: {input: sent, sql: \"SELECT IF(true, error('no'), 1) AS nothing FROM sent\"}",
            ],
            {"facts": "all"},
        )
    )
    small.file("lines.1", "100|1|a\n100|2|b\n109|3|c\n")
    small.file("parcels.1", "100|1|a\n107|2|b\n")
    account = joined(small.run(limit=100))
    files: dict[str, list[int]] = {}
    for file, row, _ in places(small):
        files.setdefault(file, []).append(row)
    assert files == {"lines.1": [1, 2, 3], "lines.2": [1, 2, 3], "orders.1": [2, 3], "orders.2": [2], "parcels.1": [2]}
    assert sum(account[side]["rejected_behind"] for side in ("left", "right")) == account["rows_out"]


UNFIT = {
    "inner_descends": ("lines.1", "100|1|a\n102|2|b\n101|3|c\n"),
    "inner_repeats": ("orders.1", "100|1|a\n100|2|b\n"),
    "outer_descends": ("parcels.1", "102|1|a\n100|2|b\n"),
    "outer_repeats": ("parcels.1", "100|1|a\n100|2|b\n"),
    "inner_torn": ("orders.1", "100|1|a\n200|2|b\n"),
    "outer_torn": ("parcels.1", "100|1|a\n200|2|b\n"),
    "numbers": ("parcels.9", "1|1|a\n"),
}


@pytest.mark.parametrize("name", sorted(UNFIT))
def test_files_that_do_not_fit(small: Project, name: str) -> None:
    assert joined(small.run())["rows_out"] == 6
    before = stored(small)
    small.file(*UNFIT[name])
    ended = small.run(streams=1)
    assert ended.exit_code != 0
    assert_snapshot(f"join_tree_{name}", small.stable(ended.error))
    assert stored(small) == before


def test_rows_of_a_join_have_the_order_of_its_key(small: Project) -> None:
    """By another column they are not sorted, and their keys come more than once."""
    small.package(package([DETAILED, SENT.replace("p_key: o_key", "p_value: l_value")]))
    small.file("parcels.1", "7|1|a\n8|2|b\n9|3|b\n")
    small.file("lines.1", "100|2|a\n100|1|b\n102|3|c\n")
    ended = small.run(streams=1)
    assert_snapshot("join_tree_another_key", small.stable(ended.error))
    small.package(package([DETAILED, "sent: {join: {left: detailed, right: parcels, on: {o_key: p_key}}}"]))
    ended = small.run(streams=1)
    assert_snapshot("join_tree_repeats_on_the_left", small.stable(ended.error))


def test_sources_without_files(small: Project) -> None:
    """If nothing can come out, nothing is loaded; else files are missing."""
    for path in small.inbox.glob("lines.*"):
        path.unlink()
    small.package(package([DETAILED, SENT], more=", missing: skip"))
    (skipped,) = small.run().succeeded()["skipped"]
    assert "lines.*" in skipped["skipped"]
    small.package(package([DETAILED.replace("on:", "type: left, on:"), SENT], more=", missing: skip"))
    assert_snapshot("join_tree_no_files", small.stable(small.run().error))
    small.package(package([DETAILED, SENT.replace("on:", "type: left, on:")], more=", missing: skip"))
    assert "0 files of `lines`" in small.run().error


def test_a_source_without_rows_is_refused_unless_it_may_be(small: Project) -> None:
    small.file("lines.1", "")
    small.file("lines.2", "")
    assert "lines" in small.run().error
    small.package(package([DETAILED.replace("on:", "type: left, on:"), SENT], more=", empty: allow"))
    assert joined(small.run())["rows_out"] == 4


def test_joined_rows_are_not_replayed(small: Project) -> None:
    small.file("lines.1", "100|1|a\n100|2|b\n102|y|c\n")
    small.run(limit=10).succeeded()
    command = [sys.executable, "-m", "headrace", "replay", "last", "--runs-dir", "runs"]
    assert "cannot be replayed" in small.command(command).error
