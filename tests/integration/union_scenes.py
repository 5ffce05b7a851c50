"""Three sources of orders in three dialects: the package, its files, and what DuckDB says that their rows are."""

from __future__ import annotations

import gzip
from typing import Any

import duckdb

from tests.integration.driver import Ended, Project

ROWS = {"old": 4_000, "new": 3_000, "placed": 1_000}
PACKAGE = """
headrace: 1
package: united
parameters:
  streams: {{type: integer, default: 4}}
  limit: {{type: integer, default: 0}}
  old: {{type: list, default: ["old.*"]}}
  new: {{type: list, default: ["new.*"]}}
  missing: {{type: string, default: error}}
  empty: {{type: string, default: error}}
connections:
  inbox: {{type: files, path: inbox}}
  warehouse: {warehouse}
layouts:
  old:
    encoding: windows-1252
    delimiter: ";"
    qualifier: "'"
    header: skip
    row_end: crlf
    columns:
      - {{name: id, type: int64, nullable: false}}
      - {{name: amount, type: "decimal(9,2)", format: {{decimal: ",", group: "."}}}}
      - {{name: day, type: date, format: dd.MM.yyyy}}
      - {{name: note, type: string}}
  new:
    delimiter: "|"
    header: by_name
    other_columns: ignore
    columns:
      - {{name: Day, type: date}}
      - {{name: id, type: int64}}
      - {{name: channel, type: varchar(8)}}
      - {{name: amount, type: "decimal(9,2)", on_error: ignore}}
  placed:
    shape: fixed_width
    trim: both
    columns:
      - {{name: day, type: date, width: 10}}
      - {{name: id, type: int64, width: 8}}
      - {{name: amount, type: "decimal(9,2)", width: 10, nullable: false}}
  days: {{delimiter: ",", columns: [{{name: day, type: date}}, {{name: season, type: string}}]}}
streams: ${{streams}}
tasks:
  load:
    data_flow:
      rejects: {{limit: "${{limit}}"{rejects}}}
      sources:
        old: {{connection: inbox, files: "${{old}}", layout: old, missing: "${{missing}}", empty: "${{empty}}"}}
        new: {{connection: inbox, files: "${{new}}", layout: new, missing: "${{missing}}", empty: "${{empty}}"}}
        placed: {{connection: inbox, files: "placed.*", layout: placed, missing: "${{missing}}", empty: "${{empty}}"}}
      transforms:
        united: {{union: {{sources: [old, new, placed], missing: "null"}}}}
{transforms}
      destinations:
        {destinations}
"""
DUCKDB = "{type: duckdb, path: warehouse.duckdb, lock_timeout_seconds: 1}"
OUT = "out: {input: INPUT, connection: warehouse, table: orders, target: replaceMORE}"


def package(
    *transforms: str,
    input: str = "united",
    more: str = "",
    destinations: str = "",
    warehouse: str = DUCKDB,
    rejects: str = "",
) -> str:
    """Rows of all sources into the table `orders`. `more`: further settings of the destination."""
    return PACKAGE.format(
        warehouse=warehouse,
        rejects=rejects,
        transforms="\n".join(f"        {own}" for own in transforms),
        destinations=destinations or OUT.replace("INPUT", input).replace("MORE", f", {more}" if more else ""),
    )


def day(number: int) -> str:
    return f"2024-{number % 12 + 1:02}-{number % 28 + 1:02}"


def old_line(number: int) -> str:
    year, month, own = day(number).split("-")
    amount = "" if number % 7 == 0 else f"{number % 90 + 1}.{number % 1000:03},{number % 100:02}"
    note = f"'Zählung; ''{number}''\r\nmit Umbruch'" if number % 50 == 0 else f"Größe {number}"
    return f"{number};{amount};{own}.{month}.{year};{note}\r\n"


def new_line(number: int) -> str:
    return f"{'web' if number % 3 else ''}|{number % 500}.5|x|{number if number % 11 else ''}|{day(number)}\n"


def placed_line(number: int) -> str:
    return f"{day(number)}{number:8}{number % 300:7}.25\n"


def write_files(project: Project) -> None:
    """Several files of each source: those of `new` compressed."""
    for part in range(3):
        old = range(part * 10_000, part * 10_000 + ROWS["old"] // 4 * ((part == 1 and 2) or 1))
        text = "id;amount;day;note\r\n" + "".join(map(old_line, old))
        project.file(f"old.{part}.csv", text.encode("cp1252"))
    for part in range(2):
        begin = 100_000 + part * 10_000
        lines = "".join(map(new_line, range(begin, begin + ROWS["new"] // 2)))
        project.file(f"new.{part}.gz", gzip.compress(f"channel|amount|extra|id|Day\n{lines}".encode()))
    project.file("placed.txt", "".join(map(placed_line, range(200_000, 200_000 + ROWS["placed"]))))


_ORACLE = """
SELECT id, amount.replace('.', '').replace(',', '.')::DECIMAL(9,2) AS amount, day, note
FROM read_csv('{inbox}/old.*', delim=';', quote='''', escape='''', header=true, auto_detect=false, encoding='latin-1',
    dateformat='%d.%m.%Y', columns={{'id': 'BIGINT', 'amount': 'VARCHAR', 'day': 'DATE', 'note': 'VARCHAR'}})
UNION ALL BY NAME
SELECT Day AS day, id, channel, amount FROM read_csv('{inbox}/new.*', delim='|', header=true, auto_detect=false,
    compression='gzip', quote='', escape='', columns={{'channel': 'VARCHAR', 'amount': 'DECIMAL(9,2)',
    'extra': 'VARCHAR', 'id': 'BIGINT', 'Day': 'DATE'}})
UNION ALL BY NAME
SELECT line[1:10]::DATE AS day, trim(line[11:18])::BIGINT AS id, trim(line[19:28])::DECIMAL(9,2) AS amount
FROM read_csv('{inbox}/placed.*', delim='\x01', header=false, auto_detect=false, quote='', escape='',
    columns={{'line': 'VARCHAR'}})
"""


def oracle(project: Project) -> str:
    """DuckDB's own union of the files."""
    return _ORACLE.format(inbox=project.inbox)


def differences(project: Project, sql: str, table: str = "orders") -> tuple[int, int, int]:
    """Rows that only the table has, that it lacks, and how many it has. `sql`: what belongs into it, of `rows`."""
    with duckdb.connect(str(project.database), read_only=True) as connection:
        rows = f"WITH rows AS ({oracle(project)}) {sql}"
        only = f"SELECT count(*) FROM (SELECT * FROM {table} EXCEPT ALL ({rows}))"
        lacks = f"SELECT count(*) FROM (({rows}) EXCEPT ALL SELECT * FROM {table})"
        (one,), (two,), (three,) = (
            connection.execute(query).fetchall()[0] for query in (only, lacks, f"SELECT count(*) FROM {table}")
        )
    return one, two, three


def united(project: Project, columns: str) -> list[tuple[Any, ...]]:
    """The rows of DuckDB's own union."""
    with duckdb.connect() as connection:
        return connection.execute(f"SELECT {columns} FROM ({oracle(project)}) ORDER BY ALL").fetchall()


def spoil(project: Project) -> None:
    """A row of each source that cannot be read, and a value that is ignored."""
    with (project.inbox / "old.1.csv").open("ab") as file:
        file.write(b"77;1,x;01.02.2024;bad amount\r\n")
    (project.inbox / "new.9").write_text("id|Day|channel|amount\n1|2024-13-01|web|1.00\n2|2024-01-01|web|oops\n")
    with (project.inbox / "placed.txt").open("a") as file:
        file.write("2024-01-01     300          \n")


def sources(ended: Ended, place: int = 0) -> dict[str, tuple[int, int, int, int]]:
    """Lines, skipped lines, rows and rejects of each source, as a run that must have been a success tells them."""
    table: dict[str, Any] = ended.succeeded()["tables"][place]
    found = {
        own["source"]: (own["lines"], own["rows_skipped"], own["rows_read"], own["rows_rejected"])
        for own in table["union"]["sources"]
    }
    assert all(lines == skipped + rows for lines, skipped, rows, _ in found.values())
    sums = [sum(own[count] for own in found.values()) for count in range(3)]
    assert sums == [table["lines"], table["rows_skipped"], table["rows_read"]]
    return found
