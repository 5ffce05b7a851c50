"""Files at the edges of what a flat file can be: what loads is exact, what does not is named."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.integration.driver import Project

pytestmark = pytest.mark.usefixtures("cpu_path")

PACKAGE = """
headrace: 1
package: extreme
connections:
  inbox: {{type: files, path: inbox}}
  warehouse: {{type: duckdb, path: warehouse.duckdb}}
layouts:
  rows:
    delimiter: ","
    qualifier: '"'
    columns:
{columns}
streams: 4
tasks:
  load:
    data_flow:
      rejects: {{limit: 100}}
      sources: {{rows: {{connection: inbox, files: "*", layout: rows}}}}
      destinations: {{orders: {{input: rows, connection: warehouse, table: orders, target: replace}}}}
"""
TWO = {"id": "int32", "note": "string"}


def load(project: Project, columns: dict[str, str], content: bytes) -> dict[str, Any]:
    """The summary of a load of one file."""
    declared = "\n".join(f"      - {{name: {name}, type: {kind}}}" for name, kind in columns.items())
    project.package(PACKAGE.format(columns=declared))
    (project.inbox / "rows.csv").write_bytes(content)
    return project.command(project.arguments()).succeeded()


def rejects(summary: dict[str, Any]) -> list[dict[str, Any]]:
    """What the reject file says."""
    text = Path(summary["tables"][0]["rejects"]["files"][0]).read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]


@pytest.mark.rotates
def test_ten_thousand_columns(project: Project) -> None:
    columns = {f"c{number}": "int32" for number in range(10_000)}
    rows = [[row * 10_000 + number for number in range(10_000)] for row in range(12)]
    lines = [",".join(str(value) for value in row) for row in rows]
    short, long = lines[3].rpartition(",")[0], lines[4] + ",1"
    content = "\n".join([*lines[:5], short, *lines[5:], long]) + "\n"
    summary = load(project, columns, content.encode())
    assert project.query("FROM orders ORDER BY c0") == [tuple(row) for row in rows]
    found = [(reject["row"], reject["code"], reject["byte"]) for reject in rejects(summary)]
    short_byte = len("\n".join(lines[:5])) + 1
    assert found == [(6, "HR101", short_byte), (14, "HR102", len(content) - 1 - len(long))]


@pytest.mark.parametrize("is_qualified", [False, True], ids=["plain", "qualified"])
def test_a_field_of_ten_million_characters(project: Project, is_qualified: bool) -> None:
    """Among short ones, in one file that several streams read; qualified, with line breaks and quotes in it."""
    unit = 'é"\n,x' if is_qualified else "é🙂xyz"
    text = unit * 2_000_000
    assert len(text) == 10_000_000
    field = '"' + text.replace('"', '""') + '"' if is_qualified else text
    content = "".join(f"{number},note {number}\n" for number in range(1000))
    summary = load(project, TWO, f"{content}1000,{field}\n{content.replace(',', '0,')}".encode())
    assert (summary["rows_loaded"], summary["rows_rejected"]) == (2001, 0)
    assert project.query("SELECT note FROM orders WHERE length(note) > 100") == [(text,)]


def test_a_text_that_is_ten_million_characters_too_long(project: Project) -> None:
    """The original is kept whole, and shown in part."""
    text = "y" * 10_000_000
    summary = load(project, {"id": "int32", "note": "varchar(5)"}, f"1,a\n2,{text}\n3,b\n".encode())
    assert project.query("FROM orders ORDER BY id") == [(1, "a"), (3, "b")]
    (reject,) = rejects(summary)
    assert (reject["row"], reject["byte"], reject["column"]) == (2, 6, "note")
    assert len(reject["value"]) < 2000
    (original,) = Path(summary["tables"][0]["rejects"]["files"][0]).parent.glob("*.bad")
    assert original.read_text(encoding="utf-8") == f"2,{text}\n"


def test_rows_of_no_length(project: Project) -> None:
    """They are blank rows, which are skipped; of one column they are its empty fields."""
    summary = load(project, TWO, b"\n\n1,a\n\n\r\n2,b\n\n")
    assert (summary["rows_loaded"], summary["rows_skipped"]) == (2, 5)
    assert project.query("FROM orders ORDER BY id") == [(1, "a"), (2, "b")]
    summary = load(project, {"note": "string"}, b"a\n\n\nb\n")
    assert (summary["rows_loaded"], summary["rows_skipped"]) == (4, 0)
    assert sorted(project.query("SELECT note FROM orders"), key=str) == [("a",), ("b",), (None,), (None,)]


def test_a_quote_that_is_never_closed_is_reported_where_it_opens(project: Project) -> None:
    rows = "".join(f"{number},note {number}\n" for number in range(50_000))
    content = f'{rows}7,"open\n{rows}'
    summary = load(project, TWO, content.encode())
    assert summary["rows_loaded"] == 50_000
    (reject,) = rejects(summary)
    assert (reject["code"], reject["row"], reject["byte"]) == ("HR105", 50_001, len(rows) + 2)


def test_a_quote_inside_of_an_unqualified_field_rejects_its_row(project: Project) -> None:
    summary = load(project, TWO, b'1,5" nail\n2,a"b"c\n3,"x""y"\n')
    assert project.query("FROM orders ORDER BY id") == [(3, 'x"y')]
    assert [reject["code"] for reject in rejects(summary)] == ["HR110", "HR110"]


def test_a_byte_order_mark_in_the_middle_is_text(project: Project) -> None:
    """Files that were put together have them; at the front of a number it is no number."""
    summary = load(project, TWO, b"\xef\xbb\xbf1,a\n2,b\xef\xbb\xbfc\n\xef\xbb\xbf3,d\n")
    assert project.query("FROM orders ORDER BY id") == [(1, "a"), (2, "b\ufeffc")]
    (reject,) = rejects(summary)
    assert (reject["row"], reject["column"], reject["value"]) == (3, "id", "\ufeff3")
