"""`headrace bench scan`: what it prints, with times that are given; and what is wrong with a command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from headrace.cli.bench_scan import render_comparison
from headrace.scan import Measured, ScanComparison, Side, Spread
from headrace.scan.queries import ScanQuery
from headrace.scan.spread import Part
from headrace.targets import ScannedTable
from tests.cli.conftest import CommandLine
from tests.snapshots import assert_snapshot


def comparison(*, cpu: bool) -> ScanComparison:
    parts = [Part(f"lineitem_hashed_{number}", 60_000 + 13 * number if number else 0, 7_500_000) for number in range(8)]
    queries = (
        ScanQuery("count", ("SELECT count(*) FROM ", "")),
        ScanQuery("group by", ('SELECT "l_returnflag", count(*), sum("l_quantity") FROM ', " GROUP BY 1")),
        ScanQuery("one key", ('SELECT count(*), sum("l_quantity") FROM ', ' WHERE "l_orderkey" = 3000000')),
    )
    times = [
        ((0.1, 0.12, 0.11), (0.05, 0.04, 0.06)),
        ((2.5, 2.6, 2.4), (1.3, 1.2, 1.4)),
        ((0.9, 1, 1), (0.01, 0.02, 0.01)),
    ]
    measured = tuple(
        Measured(query, 1, side(whole, cpu=cpu), side(divided, cpu=cpu))
        for query, (whole, divided) in zip(queries, times, strict=True)
    )
    return ScanComparison(
        ScannedTable("lineitem", "lineitem", {}, 60_100_000),
        ScannedTable("lineitem_hashed", "lineitem_hashed", {}, 61_000_000, strategy="hash", key=("l_orderkey",)),
        420_364,
        Spread.of(parts),
        measured,
        ("no sum: both tables have no column of whole or exact numbers in common",),
    )


def side(seconds: tuple[float, ...], *, cpu: bool) -> Side:
    return Side(seconds, tuple(2 * each for each in seconds) if cpu else None)


@pytest.mark.parametrize("cpu", [True, False])
def test_the_text_has_eighty_columns(*, cpu: bool) -> None:
    text = render_comparison(comparison(cpu=cpu), 3, width=80)
    assert max(map(len, text.splitlines())) <= 80
    assert_snapshot(f"bench_scan_{'with' if cpu else 'without'}_cpu", text)


def test_json_of_a_comparison() -> None:
    document = json.loads(json.dumps(comparison(cpu=True).to_dict()))
    assert document["divided"]["spread"]["empty"] == 1
    assert document["queries"][0]["ratio"]["least"] == pytest.approx(0.11 / 0.06)
    assert document["queries"][0]["whole"]["median_cpu_seconds"] == pytest.approx(0.22)


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("help", ["--help"]),
        ("scheme", ["mysql:x", "a", "b"]),
        ("files", ["files:inbox", "a", "b"]),
        ("null", ["null:", "a", "b"]),
        ("no_variable", ["${env:NOT_SET_ANYWHERE}", "a", "b"]),
        ("no_file", ["duckdb:missing.duckdb", "a", "b"]),
        ("memory", ["duckdb:missing.duckdb", "a", "b", "--memory", "much"]),
        ("no_arguments", []),
        ("repetitions", ["duckdb:missing.duckdb", "a", "b", "--repetitions", "0"]),
    ],
)
def test_command_lines(
    name: str, arguments: list[str], headrace: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    outcome = headrace("bench", "scan", *arguments)
    assert_snapshot(f"bench_scan_{name}", outcome.text().replace(str(tmp_path), "FOLDER"))
    assert list(tmp_path.iterdir()) == []


def test_the_group_says_what_it_is(headrace: CommandLine) -> None:
    assert "`make bench`" in headrace("bench", "--help").stdout
    assert headrace("bench").exit_code == 6


def test_passwords_are_not_printed(headrace: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WAREHOUSE", "postgresql://user:canary-9f2@127.0.0.1:1/nothing")
    for extra in ([], ["--json"]):
        outcome = headrace("bench", "scan", "${env:WAREHOUSE}", "a", "b", *extra)
        assert outcome.exit_code == 1
        assert "canary-9f2" not in outcome.text()
