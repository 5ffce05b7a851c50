"""The report of a finished run."""

from __future__ import annotations

import pytest

from headrace.cli.accounts import render_accounts, render_summary
from tests.cli.sample_run import summary
from tests.snapshots import assert_snapshot


def test_summary_of_a_run_with_rejects() -> None:
    text = render_summary(summary(), width=80)
    assert max(len(line) for line in text.splitlines()) <= 80
    assert_snapshot("summary", text)


def test_a_failed_table_says_so() -> None:
    document = summary()
    document["status"] = document["tables"][0]["status"] = "failed"
    document["tables"][0]["rows_loaded"] = 0
    assert_snapshot("summary_failed", render_summary(document, width=80))


@pytest.mark.parametrize("width", [60, 80, 200])
def test_accounts_of_billions_keep_every_digit(width: int) -> None:
    tables = summary()["tables"]
    for name in ("lines", "rows_read", "rows_loaded"):
        tables[0][name] = 5_999_989_709
    text = render_accounts(tables, width=width)
    assert text.count("5,999,989,709") >= 2
    assert max(len(line) for line in text.splitlines()) <= width


def test_a_run_that_ended_before_any_table() -> None:
    document = {**summary(), "tables": [], "status": "cancelled", "limit": None}
    assert render_summary(document, width=80).startswith("run 20260102T030405-abcd: cancelled in 8.51 s")


def test_rows_that_have_gone_another_way_are_shown_although_none_was_left_out_of_all() -> None:
    """rows = rejected + filtered + loaded, in each line."""
    first, second = summary()["tables"][0], summary()["tables"][0]
    for own, filtered in ((first, 400), (second, first["rows_read"] - 400)):
        own.update(flow_of="load", shared=None, rows_rejected=0, rows_filtered=filtered)
        own["rows_loaded"] = own["rows_read"] - filtered
    first["shared"] = {"rows_rejected": 0, "rows_filtered": 0}
    head, one, *_ = render_accounts([first, second], width=120).splitlines()
    assert "filtered" in head
    assert " 400 " in one


def test_transforms_say_what_became_of_the_rows() -> None:
    document = summary()
    counts = {"rows": 1_499_997, "matched": 1_499_000, "defaulted": 997, "rejected": 0, "null_keys": 12}
    found = {**counts, "matched": 1_499_997, "defaulted": 0, "null_keys": 0}
    document["tables"][0]["transforms"] = [
        {"name": "keyed", "no_match": "default", **counts},
        {"name": "colored", "no_match": "default", **found},
        {"name": "null_in_lookup", "no_match": "default", **counts, "defaulted": 990, "rejected": 7},
        {"name": "strict", "no_match": "reject", **counts, "defaulted": 0, "rejected": 997},
        {"name": "strict_and_found", "no_match": "reject", **found},
    ]
    # Turns of a loop into one table are told together.
    turn = {
        **document["tables"][0],
        "table": "turns",
        "transforms": [{"name": "keyed", "no_match": "reject", **counts}],
    }
    document["tables"] += [turn, turn]
    assert_snapshot("summary_transforms", render_summary(document, width=80))


def test_partitions_show_how_the_rows_spread() -> None:
    document = summary()
    table = document["tables"][0]
    table["switch_seconds"] = 0.0714
    table["partitions"] = [
        {
            "name": f"orders_{number}",
            "action": "attach",
            "rows": 900 * number,
            "strays": number % 3,
            "switch_seconds": 0.0012,
        }
        for number in range(1, 24)
    ]
    assert_snapshot("summary_partitions", render_summary(document, width=80))


def test_aggregates_of_a_run_that_stores_nothing() -> None:
    document = summary()
    empty = {"sum": None, "min": None, "max": None, "min_length": None, "max_length": None, "total_length": None}
    document["tables"][0]["columns"] = [
        {
            **empty,
            "name": "l_orderkey",
            "rows": 6_001_215,
            "nulls": 0,
            "sum": "18005322964949",
            "min": "1",
            "max": "6000000",
        },
        {**empty, "name": "l_shipdate", "rows": 6_001_215, "nulls": 12, "min": "1992-01-02", "max": "1998-12-01"},
        {
            **empty,
            "name": "l_comment",
            "rows": 6_001_215,
            "nulls": 0,
            "min_length": 10,
            "max_length": 43,
            "total_length": 9,
        },
        {**empty, "name": "all_null", "rows": 6_001_215, "nulls": 6_001_215, "total_length": 0},
    ]
    text = render_summary(document, width=80)
    assert_snapshot("summary_aggregates", text)
