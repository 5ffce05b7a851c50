"""Columns at places of their rows, from the command line to the table: fixed width, ragged right."""

from __future__ import annotations

import gzip
import json
import os
import threading
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from headrace import core
from headrace.model import Layout
from tests.integration.driver import Project
from tests.snapshots import assert_snapshot

pytestmark = pytest.mark.usefixtures("cpu_path")

PACKAGE = """
headrace: 1
package: fixed
connections:
  inbox: {{type: files, path: inbox}}
  warehouse: {{type: duckdb, path: warehouse.duckdb}}
layouts:
  rows:
    {layout}
    columns:
      - {{name: id, type: int32, {id}}}
      - {{name: name, type: string, {name}}}
      - {{name: price, type: "{price_type}", {price}}}
streams: 4
tasks:
  load:
    data_flow:
      rejects: {{limit: 10}}
      sources: {{rows: {{connection: inbox, files: "*", layout: rows}}}}
      destinations: {{orders: {{input: rows, connection: warehouse, table: orders, target: replace}}}}
"""
PLACES = {"id": "width: 3", "name": "width: 5", "price": "width: 4"}
FIXED = ["shape: fixed_width", "trim: both"]
RAGGED = ["shape: ragged_right", "trim: both"]
RAGGED_PLACES = {**PLACES, "price": "start: 9"}


@dataclass(frozen=True)
class Case:
    """A layout, a file, and what is in the table then. `rejects`: code, row and byte."""

    layout: list[str]
    text: str
    rows: list[tuple[int | None, str | None, object]]
    rejects: list[tuple[str, int, int]] = field(default_factory=list)
    skipped: int = 0
    places: dict[str, str] = field(default_factory=lambda: PLACES)
    price_type: str = "int32"
    encoding: str = "utf-8"


CASES = {
    "row ends": Case(
        FIXED,
        "  1abcde  10\n 22 b   \t 30\r\n   x        \n333\x1f    1   ",
        [(1, "abcde", 10), (22, "b", 30), (None, "x", None), (333, "\x1f", 1)],
    ),
    "as it stands": Case(
        ["shape: fixed_width"],
        "001ab c0010\n002     0020\n",
        [(2, "     ", 20)],
        [("HR108", 1, 0)],
    ),
    "rows of another width": Case(
        FIXED,
        "  1abcde  10\n  2abcde  1\n  3abcde  100\n\n  4abcdex 10\n\x20\n  5abcde  50",
        [(1, "abcde", 10), (5, "abcde", 50)],
        [("HR108", 2, 13), ("HR109", 3, 25), ("HR301", 5, 48), ("HR108", 6, 53)],
        skipped=1,
    ),
    "short rows are filled": Case(
        [*FIXED, "short_rows: fill"],
        "  1\n  2ab\n  3abcde\n  4abcde  1\n 5\n  6abcde 123\n",
        [(1, None, None), (2, "ab", None), (3, "abcde", None), (6, "abcde", 123)],
        [("HR108", 4, 19), ("HR108", 5, 31)],
    ),
    "the rest of the row is kept": Case(
        [*FIXED, "extra_fields: keep"],
        "  1abcde wxy\n  2abcde     z \n  3abcdewx\n",
        [(1, "abcde", "wxy"), (2, "abcde", "z")],
        [("HR108", 3, 29)],
        price_type="string",
    ),
    "gaps": Case(
        FIXED,
        "#1  ab  x10\n#2  cdefy20\n",
        [(1, "ab", 10), (2, "cdef", 20)],
        places={"id": "start: 2, width: 1", "name": "start: 5, width: 4", "price": "start: 10, width: 2"},
    ),
    "widths up to the next start": Case(
        FIXED,
        "1  ab10\n",
        [(1, "ab", 10)],
        places={"id": "start: 1", "name": "start: 4", "price": "start: 6, width: 2"},
    ),
    "no row ends": Case(
        [*FIXED, "row_end: none"],
        "  1ab\ncd  10  2\r\n     x   3abcde  30\x1a",
        [(1, "ab\ncd", 10), (3, "abcde", 30)],
        [("HR301", 2, 20), ("HR108", 4, 36)],
    ),
    "no row ends, with a header and a footer": Case(
        [*FIXED, "row_end: none", "skip_lines: 1", "header: check", "footer_rows: 1"],
        "Report  2026  ID namePrice  1abcde   10  2abcde   20END OF FILE",
        [(1, "abcde", 10), (2, "abcde", 20)],
        skipped=3,
        places={**PLACES, "price": "width: 5"},
    ),
    "a header, a footer and lines before": Case(
        [*FIXED, "skip_lines: 2", "header: check", "footer_rows: 2"],
        "Report\n\n\n ID namePrice\n  1abcde   10\nsum\n\nend",
        [(1, "abcde", 10)],
        skipped=7,
        places={**PLACES, "price": "width: 5"},
    ),
    "ragged right": Case(
        RAGGED,
        "  1abcdesome text\n  2abcde\n  3abcd\n\n  4ab   \t x\r\n",
        [(1, "abcde", "some text"), (2, "abcde", None), (4, "ab", "x")],
        [("HR108", 3, 27)],
        skipped=1,
        places=RAGGED_PLACES,
        price_type="string",
    ),
    "ragged right, filled": Case(
        [*RAGGED, "short_rows: fill", "empty: text", "blank_rows: keep"],
        "  1abcdesome text\n  2ab\n  3\n 4\n\n",
        [(1, "abcde", "some text"), (2, "ab", ""), (3, "", ""), (None, "", "")],
        [("HR108", 4, 28)],
        places=RAGGED_PLACES,
        price_type="string",
    ),
    "ragged right, a number last": Case(
        RAGGED, "  1abcde12345\n  2abcde\n", [(1, "abcde", 12345), (2, "abcde", None)], places=RAGGED_PLACES
    ),
    "characters": Case(
        [*FIXED, "width_unit: characters"],
        "  1äöüßé  10\n  2a€😀    20\n  3abcde  30\n  4äöüßéé 10\n  5äöü\n",
        [(1, "äöüßé", 10), (2, "a€😀", 20), (3, "abcde", 30)],
        [("HR301", 4, 62), ("HR108", 5, 68)],
    ),
    "bytes that cut characters": Case(
        FIXED,
        "  1aböä 10\n  2abcdé 10\n  3aéb   10\n",
        [(3, "aéb", 10)],
        [("HR501", 1, 3), ("HR501", 2, 16)],
    ),
    "a page": Case(
        [*FIXED, "encoding: windows-1252"],
        "  1äöüß€  10\n  2aé     20\n  3ä\n",
        [(1, "äöüß€", 10), (2, "aé", 20)],
        [("HR108", 3, 26)],
        encoding="windows-1252",
    ),
    "a page without row ends, in characters": Case(
        [*FIXED, "encoding: windows-1251", "row_end: none"],
        "  1ждицюф 10  2лйф    20",
        [(1, "ждицю", None), (2, "лйф", "20")],
        encoding="windows-1251",
        price_type="string",
        places={**PLACES, "price": "width: 4, null_tokens: ['ф 10']"},
    ),
    "characters of a page": Case(
        [*FIXED, "encoding: windows-1252", "width_unit: characters"],
        "  1äöüß€  10\n  2aé     20\n",
        [(1, "äöüß€", 10), (2, "aé", 20)],
        encoding="windows-1252",
    ),
    "utf-16": Case(
        [*FIXED, "encoding: utf-16", "width_unit: characters"],
        "  1äöüß€  10\r\n  2a😀b€   20\n  3abcdéf 10\n  4\n",
        [(1, "äöüß€", 10), (2, "a😀b€", 20)],
        [("HR301", 3, 2 + 2 * 14 + 2 * 14 + 2 * 8), ("HR108", 4, 2 + 2 * 14 + 2 * 14 + 2 * 13)],
        encoding="utf-16",
    ),
    "blank rows are rejects": Case(
        [*FIXED, "blank_rows: reject"], "  1abcde  10\n\n", [(1, "abcde", 10)], [("HR108", 2, 13)]
    ),
    "other row ends are rejects": Case(
        [*FIXED, "mixed_row_ends: reject"],
        "  1abcde  10\r\n  2abcde  20\n",
        [(1, "abcde", 10)],
        [("HR107", 2, 14)],
    ),
    "row end of its own": Case(
        [*FIXED, "row_end: '~~'"], "  1abc\ne  10~~  2~b~d~   2~~", [(1, "abc\ne", 10), (2, "~b~d~", 2)]
    ),
    "null tokens, values for empty fields, formats": Case(
        [*FIXED, "null_tokens: ['-', '9999']", "empty: {value: '7'}"],
        "  -  -  1,50\n   abcde    \n  1     9999\n",
        [(None, None, "1.50"), (7, "abcde", "7.00"), (1, "7", None)],
        places={**PLACES, "price": "width: 4, format: {decimal: ','}"},
        price_type="decimal(6,2)",
    ),
}


def package(layout: list[str], places: dict[str, str], price_type: str = "int32") -> str:
    """Three columns at places."""
    return PACKAGE.format(layout="\n    ".join(layout), price_type=price_type, **places)


def rejects_of(summary: dict[str, object]) -> list[dict[str, object]]:
    files = summary["tables"][0]["rejects"]["files"]  # type: ignore[index]
    return [json.loads(line) for line in Path(files[0]).read_text().splitlines()]


@pytest.mark.parametrize("name", CASES)
def test_fixed_width(project: Project, name: str) -> None:
    case = CASES[name]
    project.package(package(case.layout, case.places, case.price_type))
    (project.inbox / "rows").write_bytes(case.text.encode(case.encoding))
    summary = project.command(project.arguments()).succeeded()
    price = "price" if case.price_type == "int32" else "price::varchar"
    assert project.query(f"SELECT id, name, {price} FROM orders ORDER BY rowid") == case.rows
    assert (summary["rows_rejected"], summary["rows_skipped"]) == (len(case.rejects), case.skipped)
    if case.rejects:
        found = [(reject["code"], reject["row"], reject["byte"]) for reject in rejects_of(summary)]
        assert found == case.rejects


REJECTS = {
    "narrow": (FIXED, "  1abcde  1\n"),
    "wide": ([*FIXED, "width_unit: characters"], "  1äbcde  100\n"),
    "ragged": (RAGGED, "  1a\n"),
    "part": ([*FIXED, "short_rows: fill"], " 1\n"),
    "rest": ([*FIXED, "row_end: none"], "  1abcde  10\n"),
    "page": ([*FIXED, "encoding: windows-1252", "width_unit: characters"], "  1äbcde  100\n"),
    "blanks": (["shape: fixed_width"], "  1abcde  10\n"),
}


@pytest.mark.parametrize("name", REJECTS)
def test_messages_of_rejects(project: Project, name: str) -> None:
    layout, text = REJECTS[name]
    places = RAGGED_PLACES if layout is RAGGED else PLACES
    project.package(package(layout, places).replace("limit: 10", "limit: 0"))
    encoding = "windows-1252" if "encoding: windows-1252" in layout else "utf-8"
    (project.inbox / "rows").write_text(text, encoding=encoding)
    ended = project.command(project.arguments())
    assert ended.exit_code == 1
    assert_snapshot(f"fixed_width_{name}", project.stable(ended.error))


def test_a_header_that_does_not_fit_is_refused(project: Project) -> None:
    project.package(package([*FIXED, "header: check"], PLACES))
    (project.inbox / "rows").write_text(" ID name pri\n")
    ended = project.command(project.arguments())
    assert ended.exit_code == 1
    assert_snapshot("fixed_width_header", project.stable(ended.error))


RIGHT = "count(DISTINCT id) FILTER (name = printf('n%04d', id % 1000) AND price = id % 97)"
ROWS = 400_000


def row(number: int) -> str:
    """Seven, five and four wide."""
    return f"{number:7}n{number % 1000:04}{number % 97:4}"


@pytest.mark.parametrize(
    ("layout", "end", "packed"),
    [
        (FIXED, "\n", False),
        ([*FIXED, "width_unit: characters"], "\r\n", False),
        ([*FIXED, "row_end: none", "skip_lines: 2", "footer_rows: 2"], "", False),
        (RAGGED, "\n", False),
        (FIXED, "\n", True),
        ([*FIXED, "row_end: none", "skip_lines: 2"], "", True),
    ],
    ids=["fixed", "characters", "endless", "ragged", "packed", "endless and packed"],
)
def test_big_files_are_cut_where_rows_end(project: Project, layout: list[str], end: str, packed: bool) -> None:
    places = {"id": "width: 7", "name": "width: 5", "price": "width: 4"}
    if layout is RAGGED:
        places["price"] = "start: 13"
    project.package(package(layout, places))
    skipped = 2 * sum("skip_lines" in line or "footer_rows" in line for line in layout)
    rows = [row(number) + end for number in range(ROWS)]
    margin = ["x" * 16] * 2
    whole = [*(margin if "skip_lines: 2" in layout else []), *rows, *(margin if "footer_rows: 2" in layout else [])]
    text = "".join(whole).encode()
    if packed:
        (project.inbox / "rows.gz").write_bytes(gzip.compress(text, 1))
    else:
        (project.inbox / "rows").write_bytes(text)
    for streams in ("1", "4"):
        summary = project.command([*project.arguments(), "--streams", streams]).succeeded()
        found = (summary["rows_loaded"], summary["rows_rejected"], summary["rows_skipped"])
        assert found == (ROWS, 0, skipped)
        assert packed or summary["tables"][0]["slices"] > 1
        assert project.query(f"SELECT {RIGHT} FROM orders") == [(ROWS,)]


def test_a_pipe_of_rows_without_row_ends(project: Project) -> None:
    """The last row of a stream must be whole, as the rows of others must have a row end."""
    package_text = package([*FIXED, "row_end: none", "skip_lines: 1"], PLACES).replace('files: "*"', "files: pipe")
    project.package(package_text)
    os.mkfifo(project.inbox / "pipe")
    for rest in (b"", b"  4"):
        text = b"x" * 12 + b"".join(f"{number:3}abcde{number:4}".encode() for number in range(3)) + rest
        writer = threading.Thread(target=(project.inbox / "pipe").write_bytes, args=(text,))
        writer.start()
        ended = project.command(project.arguments())
        writer.join()
        if not rest:
            assert ended.succeeded()["rows_loaded"] == 3
        else:
            assert ended.exit_code == 1
            assert_snapshot("fixed_width_pipe_cut_off", project.stable(ended.error))


def strings(count: int, **first: str) -> str:
    """So many columns of texts, one wide each."""
    widths = [first.get("width", "1"), *["1"] * (count - 1)]
    return "".join(
        f"      - {{name: c{number}, type: string, width: {width}}}\n" for number, width in enumerate(widths)
    )


BLOCK_COLUMNS = {
    "numbered": (
        ["shape: fixed_width", "row_end: none"],
        strings(8) + "      - {name: rn, type: int64, from: row_number}\n",
        b"abcdefgh" * 100_000,
        "count(DISTINCT rn) FILTER (c0 || c7 = 'ah' AND rn BETWEEN 1 AND 100000)",
        100_000,
    ),
    "many columns": (
        ["shape: fixed_width", "row_end: none"],
        strings(17, width="8"),
        b"abcdefghijklmnopqrstuvwx" * 100_000,
        "count(*) FILTER (c0 || c16 = 'abcdefghx')",
        100_000,
    ),
    "filled": (
        ["delimiter: '||'", "short_rows: fill"],
        strings(192).replace(", width: 1", ""),
        b"x\n" * 300_000,
        "count(*) FILTER (c0 = 'x' AND c191 IS NULL)",
        300_000,
    ),
}


@pytest.mark.parametrize("name", BLOCK_COLUMNS)
def test_blocks_hold_as_many_rows_as_a_batch_may_have(project: Project, name: str) -> None:
    """Exactly as many whole rows, and a part of one or nothing behind them."""
    layout, columns, content, right, rows = BLOCK_COLUMNS[name]
    text = package(layout, PLACES)
    begin, end = text.index("      - {name: id"), text.index("streams:")
    project.package(text[:begin] + columns + text[end:])
    (project.inbox / "rows").write_bytes(content)
    assert project.command(project.arguments()).succeeded()["rows_loaded"] == rows
    assert project.query(f"SELECT {right} FROM orders") == [(rows,)]


def test_keys_of_more_rows_than_a_batch_may_have(tmp_path: Path) -> None:
    columns = [{"name": "k", "type": "int32", "width": 5}]
    columns += [{"name": f"c{number}", "type": "string", "width": 1} for number in range(20)]
    layout = Layout.model_validate({"shape": "fixed_width", "columns": columns}).to_core()
    file = tmp_path / "rows"
    file.write_text("".join(f"{number:05}abcdefghijklmnopqrst\n" for number in range(5000)))
    files = core.plan_slices({"files": [str(file)], "slice_bytes": 1 << 22, "layout": layout})["files"]
    found = core.key_bounds({"files": files, "layout": layout, "column": "k"})["files"]
    assert found == [{"first": "0", "last": "4999"}]


def test_names_of_a_header_are_in_the_page_of_the_file(project: Project) -> None:
    text = package([*FIXED, "header: check", "encoding: windows-1252"], PLACES)
    project.package(text.replace("name: name,", "name: Größe,"))
    (project.inbox / "rows").write_bytes(" IDGRößE PRI\n  1abcde  10\n".encode("cp1252"))
    ended = project.command(project.arguments())
    assert ended.exit_code == 1
    assert "`PRI`" in ended.error
    assert "Größe" not in ended.error
    project.package(text.replace("name: name,", "name: Größe,").replace("name: price", "name: pri"))
    assert project.command(project.arguments()).succeeded()["rows_loaded"] == 1


def test_rejects_stand_in_their_file_as_rows_of_the_source(project: Project) -> None:
    project.package(package([*FIXED, "row_end: none"], PLACES))
    (project.inbox / "rows").write_bytes(b"xxxabcde  10  1abcde  10yyyabcde  10")
    summary = project.command(project.arguments()).succeeded()
    jsonl = Path(summary["tables"][0]["rejects"]["files"][0])
    assert jsonl.with_suffix(".bad").read_bytes() == b"xxxabcde  10yyyabcde  10"
