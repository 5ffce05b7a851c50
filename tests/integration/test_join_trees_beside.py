"""Several joins of a data flow with several destinations: behind the last join, of what stands in front of the others,
and of sources apart; rows that are refused between joins, and in some of the tables.
"""

from __future__ import annotations

import sys
from typing import Any

import pytest

from tests.integration.driver import Ended, Project
from tests.integration.join_tree_scenes import expected, joined, package, stored, write_files

TRANSFORMS = [
    "keyed: {input: lines, lookup: {connection: inbox, files: labels.csv, layout: labels, on: {l_value: code}, "
    "add: [label], no_match: output}}",
    'sized: {input: parcels, split: {big: "p_value > 20"}}',
    "detailed: {join: {left: orders, right: keyed, on: {o_key: l_key}, type: left}}",
    'priced: {input: detailed, sql: "SELECT *, l_value * 2 AS twice FROM detailed WHERE o_value < 90"}',
    "sent: {join: {left: sized.big, right: priced, on: {p_key: o_key}, type: right}}",
    'parted: {input: sent, split: {dear: "twice > 100", odd: "twice IS NULL"}}',
]
DESTINATIONS = {
    "dear": "parted.dear",
    "odd": "parted.odd",
    "others": "parted.rest",
    "everything": "sent",
    "unknown": "keyed.no_match",
    "small": "sized.rest",
    "raw": "orders",
    "bills": "bills",
}
SENT = """
    SELECT p_key, p_value, p_note, o_key, o_value, o_note, l_key, l_value, l_note, label, twice
    FROM (FROM parcels WHERE p_value > 20) RIGHT JOIN (
        SELECT *, l_value * 2 AS twice FROM orders LEFT JOIN (
            SELECT l.*, label FROM lines l JOIN labels ON l_value = code
        ) ON o_key = l_key WHERE o_value < 90
    ) ON p_key = o_key
"""
WANTED = {
    "dear": f"FROM ({SENT}) WHERE twice > 100",
    "odd": f"FROM ({SENT}) WHERE twice IS NULL",
    "others": f"FROM ({SENT}) WHERE twice <= 100",
    "everything": SENT,
    "unknown": "FROM lines WHERE l_value IS NULL OR l_value NOT IN (SELECT code FROM labels)",
    "small": "FROM parcels WHERE p_value <= 20 OR p_value IS NULL",
    "raw": "FROM orders",
    "bills": "FROM bills",
}
SOURCES = ("orders", "lines", "parcels", "bills")


@pytest.fixture
def sales(project: Project) -> Project:
    write_files(project)
    project.package(package(TRANSFORMS, DESTINATIONS, sources=SOURCES))
    return project


def tables(ended: Ended) -> dict[str, dict[str, Any]]:
    return {own["table"]: own for own in ended.succeeded()["tables"]}


def check_sums(project: Project, ended: Ended) -> None:
    """Every source is read once, and every table has the account of its own sources."""
    read = {source: len(expected(project, f"FROM {source}")) for source in SOURCES}
    found, summary = tables(ended), ended.summary
    assert summary["rows_read"] == sum(read.values())
    assert summary["rows_loaded"] == sum(own["rows_loaded"] for own in found.values())
    for name, source in (("unknown", "lines"), ("small", "parcels"), ("raw", "orders"), ("bills", "bills")):
        own = found[name]
        assert own["rows_read"] == read[source] == own["rows_loaded"] + own["rows_filtered"] + own["rows_rejected"]
        assert "join" not in own
    met = found["everything"]["join"]
    told = met["right"]["join"]
    between = met["right"]
    assert told["rows_out"] == between["rows"] + between["filtered_in_front"] + between["rejected_in_front"]
    for name in ("dear", "odd", "others"):
        assert found[name]["join"]["rows_out"] == met["rows_out"]


@pytest.mark.parametrize("streams", [1, 16])
def test_all_tables_have_the_rows_of_plain_sql(sales: Project, streams: int) -> None:
    ended = sales.run(streams=streams)
    for name, query in WANTED.items():
        assert stored(sales, name) == expected(sales, query), name
    check_sums(sales, ended)
    account = joined(ended, "everything")
    assert account["rows_out"] == len(stored(sales, "everything"))


def test_rows_that_are_refused_between_joins_are_missing_behind_them_alone(sales: Project) -> None:
    failing = TRANSFORMS[3].replace("l_value * 2 AS twice", "IF(l_value = 20, error('x'), l_value * 2) AS twice")
    assert failing != TRANSFORMS[3]
    sales.package(package([*TRANSFORMS[:3], failing, *TRANSFORMS[4:]], DESTINATIONS, sources=SOURCES))
    ended = sales.run(limit=10_000)
    refused = len(expected(sales, "FROM orders JOIN lines ON o_key = l_key WHERE o_value < 90 AND l_value = 20"))
    good = SENT.replace("WHERE o_value < 90", "WHERE o_value < 90 AND l_value IS DISTINCT FROM 20")
    for name, query in WANTED.items():
        assert stored(sales, name) == expected(sales, query.replace(SENT, good)), name
    check_sums(sales, ended)
    assert ended.summary["rows_rejected"] == refused > 0
    for name in ("dear", "odd", "others", "everything"):
        own = tables(ended)[name]
        assert own["rows_rejected"] == own["join"]["right"]["rejected_in_front"] == refused


def test_one_of_the_tables_refuses_rows(sales: Project) -> None:
    columns = "p_key BIGINT, p_value INT, p_note VARCHAR, o_key BIGINT, o_value INT, o_note VARCHAR, l_key BIGINT"
    rest = "l_value INT, l_note VARCHAR, label VARCHAR, twice INT"
    sales.execute(f"CREATE TABLE everything ({columns} NOT NULL, {rest})")
    ended = sales.run(limit=10_000)
    for name, query in WANTED.items():
        wanted = f"FROM ({query}) WHERE l_key IS NOT NULL" if name == "everything" else query
        assert stored(sales, name) == expected(sales, wanted), name
    check_sums(sales, ended)
    refused = len(stored(sales, "odd"))
    found = tables(ended)
    assert [found[name]["rows_rejected"] for name in ("everything", "odd", "dear")] == [refused, 0, 0]
    assert ended.summary["rows_rejected"] == refused > 0
    shown = sales.command(
        [sys.executable, "-m", "headrace", "report", "last", "--output", "report.html", "--runs-dir", "runs"]
    )
    assert shown.exit_code == 0, shown.stderr
    assert "do not balance" not in (sales.folder / "report.html").read_text(encoding="utf-8")


def test_a_source_apart_stands_beside_the_joins(sales: Project) -> None:
    """Transforms between joins have numbers behind it, with one destination behind the joins, too."""
    ends = {"everything": "sent", "bills": "bills"}
    keyed = TRANSFORMS[0].replace("output}}", "output}, discard: [no_match]}")
    sized = TRANSFORMS[1].replace('20"}}', '20"}, discard: [rest]}')
    sales.package(package([keyed, sized, *TRANSFORMS[2:5]], ends, sources=SOURCES))
    sales.run().succeeded()
    for name in ends:
        assert stored(sales, name) == expected(sales, WANTED[name]), name
    verified = sales.command([sys.executable, "-m", "headrace", "verify", "last", "--json", "--runs-dir", "runs"])
    found = {own["table"]: own["status"] for own in verified.summary["tables"]}
    assert found["bills"] == "equal"


def test_a_query_over_all_rows_behind_the_joins(sales: Project) -> None:
    query = "SELECT o_value, count(*) AS n, CAST(sum(twice) AS BIGINT) AS sum FROM sent GROUP BY o_value"
    sums = f'sums: {{input: sent, sql: "{query}"}}'
    transforms = [
        TRANSFORMS[0].replace("output}}", "output}, discard: [no_match]}"),
        TRANSFORMS[1].replace('20"}}', '20"}, discard: [rest]}'),
        *TRANSFORMS[2:5],
        sums,
    ]
    sales.package(package(transforms, {"facts": "sums"}, sources=SOURCES[:3]))
    wanted = expected(sales, f"SELECT o_value, count(*), sum(twice) FROM ({SENT}) GROUP BY o_value")
    account = joined(sales.run())
    assert stored(sales) == wanted
    assert account["rows_out"] == sum(row[1] for row in wanted)
