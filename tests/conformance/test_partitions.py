"""The same declared partitions have the same rows in every destination."""

from __future__ import annotations

from pathlib import Path

import pytest

import headrace.run as run
from headrace.model import load_package
from tests.conformance.destinations import DESTINATIONS
from tests.servers.farm import Farm

PACKAGE = """
headrace: 1
package: partitions
connections:
  inbox: {{type: files, path: .}}
  warehouse: {{type: "null"}}
streams: 3
tasks:
  load:
    data_flow:
      rejects: {{limit: 10}}
      sources:
        rows:
          connection: inbox
          files: "rows.*"
          layout:
            delimiter: ","
            columns:
              - {{name: id, type: int32, nullable: false}}
              - {{name: day, type: date}}
              - {{name: word, type: string}}
              - {{name: instant, type: timestamptz}}
      destinations:
        sales: {{input: rows, connection: warehouse, table: sales, load: {load}, target: {target}, partition: {clause}}}
"""
# Ids count from 0 over both files. Keys on bounds, and without a key.
ROWS = (
    [
        "2024-01-01,FR,2024-01-01 00:00:00Z",
        "2024-01-31,DE,2024-02-01 00:30:00+01:00",
        "2024-02-01,CN,2024-01-31 19:00:00-05",
        ",US,",
        "2024-03-31,,2024-03-31 12:00:00+00:00",
    ],
    [
        "2024-01-15,CN,2024-01-15 00:00:00+0530",
        "2023-12-31,FR,2024-01-01 00:59:59.999999+01",
        "2024-03-01,XX,2024-03-01 00:00:00Z",
        "2024-01-01,DE,2024-01-01 01:00:00+01",
    ],
)
# Declaration; the ids of each partition; those that are outside of all of them are rejects.
DECLARED = {
    "bounds": (
        "{range: {column: day, bounds: [2024-01-01, 2024-02-01]}}",
        {"sales_1": [6], "sales_2": [0, 1, 5, 8], "sales_3": [2, 4, 7]},
    ),
    "bounds to the left": (
        "{range: {column: day, boundary: left, bounds: [2024-01-01, 2024-02-01]}}",
        {"sales_1": [0, 6, 8], "sales_2": [1, 2, 5], "sales_3": [4, 7]},
    ),
    "months that occur": (
        "{range: {column: day, every: 1 month}}",
        {"sales_2023_12": [6], "sales_2024_01": [0, 1, 5, 8], "sales_2024_02": [2], "sales_2024_03": [4, 7]},
    ),
    "months between": (
        "{range: {column: day, every: 1 month, from: 2024-01-01, to: 2024-03-01}}",
        {"sales_2024_01": [0, 1, 5, 8], "sales_2024_02": [2]},
    ),
    # The days of `day`, in UTC.
    "bounds of instants": (
        "{range: {column: instant, bounds: [2024-01-01, '2024-01-31 19:00:00-05:00']}}",
        {"sales_1": [6], "sales_2": [0, 1, 5, 8], "sales_3": [2, 4, 7]},
    ),
    "bounds of instants to the left": (
        "{range: {column: instant, boundary: left, bounds: [2024-01-01, 2024-02-01]}}",
        {"sales_1": [0, 6, 8], "sales_2": [1, 2, 5], "sales_3": [4, 7]},
    ),
    "months of instants": (
        "{range: {column: instant, every: 1 month}}",
        {"sales_2023_12": [6], "sales_2024_01": [0, 1, 5, 8], "sales_2024_02": [2], "sales_2024_03": [4, 7]},
    ),
    "parts of instants": (
        "{range: {column: instant, parts: 2}}",
        {"sales_1": [0, 5, 6, 8], "sales_2": [1, 2, 4, 7]},
    ),
    "lists of instants": (
        "{list: {column: instant, values: {few: [2024-01-01, '2024-01-31 19:00-05'], none: [null]}}}",
        {"sales_few": [0, 2, 8], "sales_none": [3]},
    ),
    "steps": (
        "{range: {column: id, every: 4}}",
        {"sales_1": [0, 1, 2, 3], "sales_2": [4, 5, 6, 7], "sales_3": [8]},
    ),
    "parts": ("{range: {column: id, parts: 3}}", {"sales_1": [0, 1, 2], "sales_2": [3, 4, 5], "sales_3": [6, 7, 8]}),
    "lists": (
        "{list: {column: word, values: {eu: [FR, DE], rest: [CN, null]}}}",
        {"sales_eu": [0, 1, 6, 8], "sales_rest": [2, 4, 5]},
    ),
    "lists and a default": (
        "{list: {column: word, values: {eu: [FR, DE], rest: [CN, null]}}, outside: default}",
        {"sales_eu": [0, 1, 6, 8], "sales_rest": [2, 4, 5], "sales_default": [3, 7]},
    ),
    # As PostgreSQL's satisfies_hash_partition has it.
    "hash": ("{hash: {column: id, parts: 2}}", {"sales_1": [0, 1, 2], "sales_2": [3, 4, 5, 6, 7, 8]}),
}


@pytest.mark.in_turn("name", among="postgres ")
@pytest.mark.parametrize("case", DECLARED)
@pytest.mark.parametrize("name", [name for name in DESTINATIONS if name != "null"])
def test_declared_partitions_have_the_same_rows(name: str, case: str, tmp_path: Path, servers: Farm) -> None:
    destination = DESTINATIONS[name](tmp_path, servers)
    try:
        clause, expected = DECLARED[case]
        number = 0
        for file, rows in enumerate(ROWS):
            lines = [f"{number + offset},{row}\n" for offset, row in enumerate(rows)]
            (tmp_path / f"rows.{file}").write_text("".join(lines))
            number += len(rows)
        for times, target in enumerate(("create", "append", "replace")):
            package = tmp_path / "package.yaml"
            package.write_text(PACKAGE.format(load=destination.partition_load, target=target, clause=clause))
            bound = load_package(package, connections=[f"warehouse={destination.url}"], environ={})
            summary = run.execute(bound, runs_dir=tmp_path / "runs")
            assert summary.failure is None, summary.failure.render()
            copies = 2 if times == 1 else 1
            found = {table: destination.ids(table) for table in expected}
            assert found == {table: sorted(ids * copies) for table, ids in expected.items()}
            assert destination.ids("sales") == sorted(id for ids in found.values() for id in ids)
            document = summary.to_dict()
            inside = sum(map(len, expected.values()))
            assert (document["rows_loaded"], document["rows_rejected"]) == (inside, number - inside)
    finally:
        destination.close()
