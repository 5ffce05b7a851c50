"""Transforms in front of unions and joins: the packages, and what DuckDB makes of the same files."""

from __future__ import annotations

from typing import Any

import duckdb

from tests.integration import join_scenes, union_scenes
from tests.integration.driver import Ended, Project

UNITED = 'united: {union: {sources: [old, new, placed], missing: "null"}}'
# A query that filters, renames and computes; a lookup and a split, whose other output is discarded; nothing.
PRICED = """priced: {input: old, sql: "SELECT id, CAST(amount * 2 AS DECIMAL(9,2)) AS amount, day, upper(note) AS note
                                   FROM old WHERE id % 3 > 0"}
        keyed: {input: new, lookup: {connection: inbox, files: days.csv, layout: days, on: {Day: day}, add: [season],
                no_match: output}, discard: [no_match]}
        parted: {input: keyed, split: {web: "channel = 'web'"}, discard: [rest]}
        united: {union: {inputs: [priced, parted.web, placed], missing: "null"}}"""
PRICED_ROWS = """
SELECT id, (amount * 2)::DECIMAL(9,2) AS amount, day, upper(note) AS note FROM old WHERE id % 3 > 0
UNION ALL BY NAME SELECT new.*, season FROM new JOIN days ON days.day = new.day WHERE channel = 'web'
UNION ALL BY NAME SELECT * FROM placed
"""
IN_ORDER = f"SELECT id, amount, day, note, channel, season FROM ({PRICED_ROWS})"


def union_package(fronts: str = PRICED, *transforms: str, **more: str) -> str:
    """As `union_scenes.package`, with these transforms in front."""
    text = union_scenes.package(*transforms, **more)
    assert UNITED in text
    return text.replace(UNITED, fronts)


def write_union_files(project: Project) -> None:
    union_scenes.write_files(project)
    days = (f"2024-{month:02}-{day:02},season {month // 3}\n" for month in range(1, 13) for day in range(1, 20))
    project.file("days.csv", "".join(days))


def _tables(project: Project) -> str:
    old, new, placed = union_scenes.oracle(project).split("UNION ALL BY NAME")
    columns = "columns={'day': 'DATE', 'season': 'VARCHAR'}"
    days = f"SELECT * FROM read_csv('{project.inbox}/days.csv', header=false, {columns})"
    return f"WITH old AS ({old}), new AS ({new}), placed AS ({placed}), days AS ({days})"


def rows(project: Project, sql: str = IN_ORDER) -> list[tuple[Any, ...]]:
    """What DuckDB makes of the files of the union."""
    with duckdb.connect() as connection:
        return connection.execute(f"{_tables(project)} FROM ({sql}) ORDER BY ALL").fetchall()


# Left rows behind a query that computes the key, right ones behind a lookup and a split.
SIDES = """
        open: {input: orders, sql: "SELECT o_key + 1 AS key, o_clerk AS clerk, o_day FROM orders WHERE o_key % 4 <> 1"}
        keyed: {input: lines, lookup: {connection: inbox, files: prices.csv, layout: prices, on: {l_number: number},
                add: [label], no_match: {default: none}}}
        parted: {input: keyed, split: {cheap: "l_price < 3"}, discard: [rest]}
        shifted: {input: parted.cheap, sql: "SELECT *, l_key + 1 AS key FROM parted"}
        joined: {join: {left: open, right: shifted, on: {key: key}, TYPE
                        right_columns: {number: l_number, price: l_price, line_key: key, label: label}}}
"""
_OWN = join_scenes.PACKAGE.index("        joined:"), join_scenes.PACKAGE.index("      destinations:")
JOIN_PACKAGE = (join_scenes.PACKAGE[: _OWN[0]] + SIDES.lstrip("\n") + join_scenes.PACKAGE[_OWN[1] :]).replace(
    "streams: ${streams}",
    '  prices: {delimiter: ",", columns: [{name: number, type: int32}, {name: label, type: string}]}\n'
    "streams: ${streams}",
)
JOINED = """
WITH open AS (SELECT o_key + 1 AS key, o_clerk AS clerk, o_day
    FROM read_csv('{inbox}/orders.*', delim='|', header=false, auto_detect=false, quote='', escape='', columns={{
         'o_key': 'BIGINT', 'o_clerk': 'VARCHAR', 'o_day': 'DATE'}}) WHERE o_key % 4 <> 1),
shifted AS (SELECT l_number AS number, l_price AS price, l_key + 1 AS line_key, coalesce(label, 'none') AS label
    FROM read_csv('{inbox}/lines.*', delim=',', header=true, auto_detect=false, quote='', escape='', columns={{
         'l_number': 'INTEGER', 'l_key': 'INTEGER', 'l_price': 'DECIMAL(9,2)'}})
    LEFT JOIN read_csv('{inbox}/prices.csv', header=false, columns={{'wanted': 'INTEGER', 'label': 'VARCHAR'}})
    ON l_number = wanted WHERE l_price < 3)
SELECT * FROM open {kind} JOIN shifted ON key = line_key
"""


def join_package(kind: str, text: str = JOIN_PACKAGE) -> str:
    return join_scenes.of_type(kind, text)


def write_join_files(project: Project) -> None:
    join_scenes.write_files(project)
    project.file("prices.csv", "".join(f"{number},label {number}\n" for number in range(0, 1_300_000, 7)))


def joined(project: Project, kind: str) -> list[tuple[Any, ...]]:
    """What DuckDB makes of the files of the join."""
    return join_scenes.rows_of(JOINED.format(inbox=project.inbox, kind=kind) + " ORDER BY ALL")


def transforms(ended: Ended, place: int = 0) -> dict[str, tuple[int, int, int]]:
    """Rows, those left out and rejects of each transform."""
    return {
        own["name"]: (own["rows"], own["filtered"], own["rejected"])
        for own in ended.succeeded()["tables"][place]["transforms"]
    }
