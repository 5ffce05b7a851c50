"""Rows that cannot be loaded: located to the byte, explained, kept; nothing else of the file is lost."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.integration.driver import GOOD_ROWS, Before, Project
from tests.snapshots import assert_snapshot

# What is wrong with a row does not depend on the processor.
pytestmark = pytest.mark.usefixtures("cpu_path")

# A row that breaks a rule, by the rule.
BAD_ROWS = {
    "too_few_fields": b"101|1.00|2024-01-01|x\n",
    "too_many_fields": b"101|1.00|2024-01-01|x|y|z\n",
    "bad_integer": b"1o1|1.00|2024-01-01|x|y\n",
    "bad_decimal": b"101|1,00|2024-01-01|x|y\n",
    "bad_date": b"101|1.00|2023-02-29|x|y\n",
    "out_of_range": b"101|10000000.00|2024-01-01|x|y\n",
    "would_round": b"101|1.005|2024-01-01|x|y\n",
    "too_long": "101|1.00|2024-01-01|dreizehn äöüß|y\n".encode(),
    "null_not_allowed": b"|1.00|2024-01-01|x|y\n",
    "nul_byte": b"101|1.00|2024-01-01|x|a\0b\n",
    "invalid_utf8": b"101|1.00|2024-01-01|x|caf\xe9\n",
}
GOOD = GOOD_ROWS.encode()
AFTER = b"102|0.01|2024-03-01|last|row\n"


@pytest.mark.parametrize("rule", BAD_ROWS)
def test_the_first_bad_row_fails_the_run(project: Project, rule: str) -> None:
    before = Before.of(project)
    project.file("orders.tbl.1")
    project.file("orders.tbl.2", GOOD + BAD_ROWS[rule] + AFTER)
    ended = project.run()
    assert ended.exit_code == 1
    summary = ended.summary
    assert summary["error"]["kind"] == "reject_limit"
    assert (summary["error"]["at"]["row"], summary["rows_loaded"]) == (101, 0)
    assert_snapshot(f"row_{rule}", project.stable(ended.error))
    before.check("failed")


def test_rejects_within_the_limit(project: Project) -> None:
    """Every rule twice, in two files: counted, located, and kept byte by byte; the good rows are loaded."""
    rows = list(BAD_ROWS.values())
    project.file("orders.tbl.1", b"".join(bad + good for bad, good in zip(rows, GOOD.splitlines(True), strict=False)))
    project.file("orders.tbl.2", GOOD + b"".join(rows) + AFTER)
    ended = project.run(limit=2 * len(rows))
    summary = ended.succeeded()
    table = summary["tables"][0]
    loaded = len(rows) + 101
    assert [summary[name] for name in ("rows_read", "rows_loaded", "rows_rejected", "rows_skipped")] == [
        loaded + 2 * len(rows), loaded, 2 * len(rows), 0,
    ]  # fmt: skip
    assert table["rejects"]["by_rule"] == dict.fromkeys(sorted(BAD_ROWS), 2)
    assert project.query("SELECT count(*) FROM orders") == [(loaded,)]
    commits = project.query('SELECT sum(rows_loaded), sum(rows_rejected) FROM headrace."commit"')
    assert commits == [(loaded, 2 * len(rows))]
    rejects = _rejects(table["rejects"]["files"])
    assert [reject["rule"] for reject in rejects] == list(BAD_ROWS) * 2
    assert [reject["row"] for reject in rejects] == [*range(1, 2 * len(rows), 2), *range(101, 101 + len(rows))]
    assert len({reject["code"] for reject in rejects}) == len(BAD_ROWS)
    for reject in rejects:
        _check_reject(project, reject)
    assert project.leftovers() == []


def _rejects(files: list[str]) -> list[dict[str, Any]]:
    """The rejects of both files, each with its original bytes as `bytes`."""
    rows_file, bytes_file = map(Path, files)
    original = bytes_file.read_bytes()
    rejects = [json.loads(line) for line in rows_file.read_text(encoding="utf-8").splitlines()]
    assert sum(reject["bad_bytes"] for reject in rejects) == len(original)
    for reject in rejects:
        reject["bytes"] = original[reject["bad_byte"] :][: reject["bad_bytes"]]
    return rejects


def _check_reject(project: Project, reject: dict[str, Any]) -> None:
    """The reject is where it says it is, in the file that it names."""
    content = Path(reject["file"]).read_bytes()
    assert reject["bytes"] == content.splitlines(True)[reject["row"] - 1] == BAD_ROWS[reject["rule"]]
    row_byte = sum(map(len, content.splitlines(True)[: reject["row"] - 1]))
    assert row_byte <= reject["byte"] < row_byte + len(reject["bytes"])
    if reject["column"] is not None:
        field = content[reject["byte"] : row_byte + len(reject["bytes"])].split(b"|")[0].rstrip(b"\n")
        assert reject["value"].encode() in (field, field.replace(b"\xe9", b"\\xE9"))
        assert ["id", "amount", "day", "customer", "note"][reject["column_number"] - 1] == reject["column"]


def test_one_reject_more_than_the_limit(project: Project) -> None:
    before = Before.of(project)
    project.file("orders.tbl.1", GOOD + BAD_ROWS["bad_date"] + AFTER + BAD_ROWS["would_round"])
    ended = project.run(limit=1)
    assert ended.exit_code == 1
    assert_snapshot("row_over_the_limit", project.stable(ended.error))
    before.check("failed")
    files = ended.summary["tables"][0]["rejects"]["files"]
    assert [reject["row"] for reject in _rejects(files)] == [101, 103]


def test_the_first_error_in_file_order_is_reported_whatever_the_streams_do(project: Project) -> None:
    """The last bytes of a large file are read first by the other streams; its first bad row is still the one named."""
    row = b"1|1.00|2024-01-01|x|" + b"y" * 80 + b"\n"
    bad = row.replace(b"2024-01-01", b"2024-99-01")
    rows = 200_000
    content = [row] * rows
    content[150_000] = content[rows - 1] = bad
    project.file("orders.tbl.1", b"".join(content))
    ended = project.run(limit=0)
    assert ended.exit_code == 1
    rejects = ended.summary["tables"][0]["rejects"]["first"]
    assert ended.summary["error"]["at"]["row"] == rejects[0]["row"]
    assert [reject["row"] for reject in rejects] == sorted(reject["row"] for reject in rejects)
    assert {reject["row"] for reject in rejects} <= {150_001, rows}
    ended = project.run(limit=1)
    assert ended.summary["error"]["at"]["row"] == 150_001


LONG = 200_000_000


def _long_line(length: int) -> bytes:
    head = b"101|1.00|2024-01-01|long|"
    return head + b"x" * (length - len(head))


@pytest.mark.parametrize("place", ["middle", "end"])
def test_a_line_of_200_megabytes(project: Project, place: str) -> None:
    """It is rejected while it is passed over: neither the rows around it nor memory are lost."""
    project.own_processes = True
    project.file("orders.tbl.1", GOOD + _long_line(LONG) + (b"\n" + AFTER if place == "middle" else b""))
    rows = 101 if place == "middle" else 100
    ended = project.run(limit=1)
    summary = ended.succeeded()
    assert (summary["rows_loaded"], summary["tables"][0]["rejects"]["by_rule"]) == (rows, {"row_too_long": 1})
    assert summary["bytes_read"] == (project.inbox / "orders.tbl.1").stat().st_size
    assert project.query("SELECT count(*), max(length(note)) FROM orders") == [(rows, 8)]
    assert ended.peak_resident_bytes < 700_000_000


def test_a_line_of_200_megabytes_over_the_limit(project: Project) -> None:
    project.own_processes = True
    before = Before.of(project)
    project.file("orders.tbl.1", GOOD + _long_line(LONG) + b"\n" + AFTER)
    ended = project.run()
    assert ended.exit_code == 1
    assert_snapshot("row_row_too_long", project.stable(ended.error))
    before.check("failed")
    assert ended.peak_resident_bytes < 700_000_000


def test_long_lines_that_are_legal(project: Project) -> None:
    """Lines of 20 MB in several files at once share the one memory for long lines."""
    length = 20_000_000
    for number in range(1, 4):
        project.file(f"orders.tbl.{number}", GOOD + _long_line(length) + b"\n" + AFTER)
    summary = project.run().succeeded()
    assert (summary["rows_loaded"], summary["rows_rejected"]) == (3 * 102, 0)
    query = "SELECT count(*), count(DISTINCT note), min(length(note)) FROM orders WHERE id = 101"
    assert project.query(query) == [(3, 1, length - 25)]
