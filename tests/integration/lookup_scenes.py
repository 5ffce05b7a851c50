"""Lines of sales that look parts and colors up: the package, its files, and the same join by DuckDB."""

from __future__ import annotations

from typing import Any

from tests.integration.driver import Ended, Project

PACKAGE = """
headrace: 1
package: facts
parameters:
  files: {type: list, default: ["lines.*"]}
  parts: {type: list, default: ["parts.*"]}
  default: {type: integer, default: -1}
  memory: {type: string, default: 1GB}
connections:
  inbox: {type: files, path: inbox}
  warehouse: {type: duckdb, path: warehouse.duckdb, lock_timeout_seconds: 1}
layouts:
  lines:
    delimiter: "|"
    columns:
      - {name: line, type: int64, nullable: false}
      - {name: part, type: int32}
      - {name: color, type: varchar(10)}
      - {name: amount, type: "decimal(9,2)"}
      - {name: file, type: string, nullable: false, from: file_name}
  parts:
    delimiter: "|"
    header: skip
    columns:
      - {name: p_partkey, type: int64}
      - {name: p_sk, type: int32, nullable: false}
      - {name: p_name, type: string}
  colors:
    delimiter: ","
    columns: [{name: code, type: string, nullable: false}, {name: label, type: string, nullable: false}]
streams: 4
memory: ${memory}
tasks:
  load_facts:
    data_flow:
      rejects: {limit: 10}
      sources:
        lines: {connection: inbox, files: "${files}", layout: lines}
      transforms:
        colored:
          input: keyed
          lookup: {connection: inbox, files: colors.csv, layout: colors, on: {color: code}, add: [label],
                   no_match: {default: null}}
        keyed:
          input: lines
          lookup: {connection: inbox, files: "${parts}", layout: parts, on: {part: p_partkey},
                   add: {part_sk: p_sk, part_name: p_name},
                   no_match: {default: {part_sk: "${default}", part_name: unknown}}}
      destinations:
        facts: {input: colored, connection: warehouse, table: facts, target: replace}
"""
JOIN = """
SELECT line, part, color, amount, parse_filename(l.filename) AS file,
       coalesce(p_sk, -1)::INTEGER AS part_sk, CASE WHEN p_sk IS NULL THEN 'unknown' ELSE p_name END AS part_name, label
FROM read_csv('{inbox}/lines.*', delim='|', header=false, filename=true, quote='', escape='', columns={{
     'line': 'BIGINT', 'part': 'INTEGER', 'color': 'VARCHAR', 'amount': 'DECIMAL(9,2)'}}) AS l
LEFT JOIN (FROM read_csv('{inbox}/parts.*', delim='|', header=true, quote='', escape='', columns={{
     'p_partkey': 'BIGINT', 'p_sk': 'INTEGER', 'p_name': 'VARCHAR'}}) WHERE p_partkey IS NOT NULL) AS p
     ON l.part = p.p_partkey
LEFT JOIN read_csv('{inbox}/colors.csv', delim=',', header=false, quote='', escape='', columns={{
     'code': 'VARCHAR', 'label': 'VARCHAR'}}) AS c ON l.color = c.code
"""
LINES, PARTS = 60_000, 5_000
# Lines with the key of a part.
MATCHED = sum(number % 31 != 0 and number * 7 % (PARTS * 6 // 5) < PARTS for number in range(LINES))
COUNTS = ("rows", "matched", "defaulted", "rejected", "null_keys")
COLORS = "red,Red\ngreen,Green\nblue,A blue of more than twelve bytes\n"


def line(number: int) -> str:
    part = "" if number % 31 == 0 else str(number * 7 % (PARTS * 6 // 5))
    color = ("red", "green", "blue", "pink", "")[number % 5]
    return f"{number}|{part}|{color}|{number % 1000}.{number % 100:02}\n"


def part(key: int) -> str:
    return f"{key}|{key * 3 + 1}|{'' if key % 11 == 0 else f'part number {key}'}\n"


def parts(first: int, end: int) -> str:
    return "p_partkey|p_sk|p_name\n" + "".join(map(part, range(first, end)))


def write_files(project: Project) -> None:
    """Lines in two files, parts in two, one of them with a row without a key."""
    project.file("lines.1", "".join(map(line, range(LINES // 2))))
    project.file("lines.2", "".join(map(line, range(LINES // 2, LINES))))
    project.file("parts.1", parts(0, PARTS // 2))
    project.file("parts.2", parts(PARTS // 2, PARTS) + "|77|nobody\n")
    project.file("colors.csv", COLORS)


def strict(package: str) -> str:
    """The package whose rows are rejects when they find no part."""
    default = """
                   no_match: {default: {part_sk: "${default}", part_name: unknown}}"""
    assert default in package
    return package.replace("," + default, "").replace("limit: 10}", "limit: 20000}")


def transforms(ended: Ended) -> list[dict[str, Any]]:
    """The accounts of the transforms, without times."""
    (table,) = ended.succeeded()["tables"]
    return [{name: transform[name] for name in ("name", *COUNTS)} for transform in table["transforms"]]
