"""Encodings of flat files, from the command line to the table, against Python's codecs."""

from __future__ import annotations

import gzip
import json
import os
import random
import sys
from pathlib import Path
from typing import Any

import pytest

from headrace.model.encoding import CODECS
from tests.integration.driver import Project
from tests.snapshots import assert_snapshot

pytestmark = pytest.mark.usefixtures("cpu_path")

PACKAGE = """
headrace: 1
package: encodings
connections:
  inbox: {{type: files, path: inbox}}
  warehouse: {{type: duckdb, path: warehouse.duckdb}}
layouts:
  rows:
    {layout}
    columns:
      - {{name: id, type: int32, nullable: false}}
      - {{name: name, type: string}}
      - {{name: note, type: "{note}"}}
streams: 4
tasks:
  load:
    data_flow:
      rejects: {{limit: {limit}}}
      sources: {{rows: {{connection: inbox, files: "*", layout: rows}}}}
      destinations: {{orders: {{input: rows, connection: warehouse, table: orders, target: replace}}}}
"""
UTF_16 = {"utf-16le": "utf-16-le", "utf-16be": "utf-16-be", "utf-16": "utf-16"}


def package(*layout: str, note: str = "string", limit: int = 0) -> str:
    """Three columns in a layout."""
    lines = ["delimiter: '|'", *layout] if not any("delimiter" in line for line in layout) else list(layout)
    return PACKAGE.format(layout="\n    ".join(lines), note=note, limit=limit)


def load(project: Project, text: str, **files: bytes) -> dict[str, Any]:
    """Loads files of these bytes."""
    project.package(text)
    for name, content in files.items():
        (project.inbox / name).write_bytes(content)
    return project.command(project.arguments()).succeeded()


def rejects_of(summary: dict[str, Any]) -> tuple[list[dict[str, Any]], bytes]:
    """The rejects, and the bytes of their rows."""
    described, bad = summary["tables"][0]["rejects"]["files"]
    return [json.loads(line) for line in Path(described).read_text().splitlines()], Path(bad).read_bytes()


def test_every_byte_of_every_page(project: Project) -> None:
    """As Python's codec reads it, or as a reject."""
    text, tasks = package(limit=200).split("tasks:")
    head, layout = text.split("  rows:\n")
    layout, streams = layout.split("streams:")
    numbers = [number for number in range(1, 256) if number not in b"\n\r|"]
    content = b"".join(b"%d|a-%cz|%s\n" % (number, number, b"x" * (number % 20)) for number in numbers)
    (project.inbox / "rows").write_bytes(content)
    names = {name: name.replace("-", "_") for name in CODECS}
    layouts = [f"  {names[name]}:\n    encoding: {name}\n{layout}" for name in CODECS]
    loads = [
        tasks.replace("load:", f"{own}:")
        .replace("layout: rows", f"layout: {own}")
        .replace("table: orders", f"table: {own}")
        for own in names.values()
    ]
    project.package(head + "".join(layouts) + "streams:" + streams + "tasks:" + "".join(loads))
    summary = project.command(project.arguments()).succeeded()
    for table in summary["tables"]:
        codec = next(CODECS[name] for name, own in names.items() if own == table["table"])
        known = {number: bytes([number]).decode(codec, errors="ignore") for number in numbers}
        found = dict(project.query(f"SELECT id, name FROM {table['table']}"))
        assert found == {number: f"a-{text}z" for number, text in known.items() if text}
        holes = [number for number, text in known.items() if not text]
        assert table["rows_rejected"] == len(holes)
        assert table["rejects"]["by_rule"] == ({"unmappable": len(holes)} if holes else {})
        if holes:
            bad = Path(table["rejects"]["files"][1]).read_bytes()
            assert [int(line.split(b"|")[0]) for line in bad.splitlines()] == holes
    assert len(summary["tables"]) == len(CODECS) == 32


def words(rng: random.Random, alphabet: str) -> str:
    return "".join(rng.choice(alphabet) for _ in range(rng.choice([0, 1, 3, 12, 13, 40, 200])))


def rows_of(rng: random.Random, alphabet: str, count: int) -> list[tuple[int, str | None, str]]:
    """Rows whose texts hold delimiters, qualifiers and line breaks; empty and unqualified is null."""
    return [
        (number, words(rng, alphabet + ' abc|"') or None, words(rng, alphabet + 'x\n"|')) for number in range(count)
    ]


def written(rows: list[tuple[int, str | None, str]]) -> str:
    def quoted(text: str | None) -> str:
        return "" if text is None else '"' + text.replace('"', '""') + '"'

    return "".join(f"{number}|{quoted(name)}|{quoted(note)}\r\n" for number, name, note in rows)


@pytest.mark.parametrize("name", ["windows-1252", "koi8-r", "utf-16", "utf-16be", "utf-8"])
@pytest.mark.parametrize("packing", ["plain", "gzip"])
def test_random_texts_are_those_of_pythons_codecs(project: Project, name: str, packing: str) -> None:
    codec = CODECS.get(name) or UTF_16.get(name, name)
    rng = random.Random(f"{name} {packing}")
    if name in CODECS:
        alphabet = "".join(bytes([byte]).decode(codec, errors="ignore") for byte in range(0x80, 0x100))
    else:
        alphabet = "äßЯ€\u3042\U0001f600\ufeff\U00010ffff"
    rows = rows_of(rng, alphabet, 3_000)
    content = written(rows).encode(codec)
    file = {"rows.gz": gzip.compress(content)} if packing == "gzip" else {"rows": content}
    summary = load(project, package(f"encoding: {name}", "qualifier: '\"'"), **file)
    assert summary["rows_rejected"] == 0
    assert sorted(project.query("FROM orders")) == sorted(rows)
    assert summary["bytes_read"] in (len(content), len(content) - 2)


def test_texts_of_the_layout_are_those_of_the_file(project: Project) -> None:
    """Delimiter, null token, comment, names, marks of numbers and names of months."""
    layout = package(
        "encoding: windows-1252", "delimiter: '§'", "null_tokens: ['‰']", "comment: '¶'", "header: by_name",
        "formats: {number: {decimal: ',', group: \"\\u00a0\", currency: ['€']}}", note="decimal(9,2)",
    )  # fmt: skip
    layout = layout.replace("name: name", "name: größe")
    text = "¶ä§\nGRÖSSE§x\n".replace("GRÖSSE§x", "Größe§note§ID") + "§1\u00a0234,50 €§1\nä§‰§2\n¶\n‰§7,25§3\n"
    load(project, layout, rows=text.encode("cp1252"))
    assert project.query("SELECT id, größe, note::varchar FROM orders ORDER BY id") == [
        (1, None, "1234.50"), (2, "ä", None), (3, None, "7.25"),
    ]  # fmt: skip


def test_what_is_no_character_is_a_reject_or_is_replaced(project: Project) -> None:
    content = b"1|ok|\xe4\n2|a\x81b|x\n3|\x8d\x8f|\x90\n"
    summary = load(project, package("encoding: windows-1252", limit=9), rows=content)
    rejects, bad = rejects_of(summary)
    assert bad == content[content.index(b"2") :]
    assert [(one["row"], one["column"], one["code"], one["value"]) for one in rejects] == [
        (2, "name", "HR503", "a\\x81b"), (3, "name", "HR503", "\\x8D\\x8F"),
    ]  # fmt: skip
    assert rejects[0]["message"] == (
        "a value for column `name` (2) holds byte 0x81 at byte 10, which is no character of windows-1252"
    )
    project.package(package("encoding: windows-1252", "unmappable: replace"))
    ended = project.command(project.arguments())
    assert project.query("FROM orders ORDER BY id")[1:] == [(2, "a\ufffdb", "x"), (3, "\ufffd\ufffd", "\ufffd")]
    assert [note for note in ended.succeeded()["tables"][0]["notes"] if "column" in note] == [
        "column `name`: 3 characters were unmappable and read as U+FFFD",
        "column `note`: 1 character was unmappable and read as U+FFFD",
    ]


def test_a_byte_that_is_no_character_is_told(project: Project) -> None:
    project.package(package("encoding: windows-1252"))
    (project.inbox / "rows").write_bytes(b"1|ok|\xe4\n2|\xe4\x81b|x\n")
    ended = project.command(project.arguments())
    assert ended.exit_code == 1
    assert_snapshot("encoding_unmappable", project.stable(ended.error))


@pytest.mark.parametrize("content", [b"a\xffb", b"\xe2\x82", b"\xed\xa0\x80", b"\xc3\xa4\xf0\x9f\x98z\xff"])
def test_utf_8_is_replaced_where_asked_as_python_does(project: Project, content: bytes) -> None:
    summary = load(project, package("unmappable: replace"), rows=b'1|%s|x"\n2|\xc3\xa4|b\n' % content)
    assert project.query("SELECT name FROM orders ORDER BY id") == [(content.decode(errors="replace"),), ("ä",)]
    assert summary["rows_rejected"] == 0


def test_half_pairs_and_an_odd_byte_of_utf_16_stay_exact(project: Project) -> None:
    rows = ["1|\ud83d|a\n", "2|x\udc00y|b\n", "3|\U0001f600|ä\n", "4|z|"]
    content = b"\xff\xfe" + "".join(rows).encode("utf-16-le", errors="surrogatepass") + b"\xe4"
    summary = load(project, package("encoding: utf-16", limit=9), rows=content)
    assert project.query("FROM orders") == [(3, "\U0001f600", "ä")]
    rejects, bad = rejects_of(summary)
    assert [(one["row"], one["byte"], one["value"]) for one in rejects] == [
        (1, 6, "\\uD83D"), (2, 18, "x\\uDC00y"), (4, 52, "\\xE4"),
    ]  # fmt: skip
    assert bad == b"".join(row.encode("utf-16-le", errors="surrogatepass") for row in (rows[0], rows[1], rows[3])) + (
        b"\xe4\n\0"
    )
    assert "half of a surrogate pair, 0xDC00, at byte 20, which is no character of utf-16" in rejects[1]["message"]


REFUSED = {
    "mark_of_utf_8": ("windows-1252", b"\xef\xbb\xbf1|a|b\n"),
    "mark_of_utf_16": ("utf-8", b"\xff\xfe1\0|\0\n\0"),
    "no_mark": ("utf-16", "1|a|b\n".encode("utf-16-be")),
    "zero_bytes": ("utf-8", "1|a|b\n".encode("utf-16-le")),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_file_that_begins_otherwise_than_its_layout_says_is_refused(project: Project, case: str) -> None:
    encoding, content = REFUSED[case]
    project.package(package(f"encoding: {encoding}"))
    (project.inbox / "rows").write_bytes(content)
    ended = project.command(project.arguments())
    assert ended.exit_code == 1
    assert_snapshot(f"encoding_{case}", project.stable(ended.error))


def test_a_page_that_seems_to_be_utf_8_is_warned_of(project: Project) -> None:
    files = {"a": "1|ä|b\n".encode(), "b": "2|ä|b\n".encode("cp1252"), "c": b"3|a|b\n"}
    # All that is no ASCII stands behind a quote that is never closed.
    files["d"] = '4|a|b\n5|"ä is open|b\n6|a|b\n'.encode("cp1252")
    summary = load(project, package("encoding: windows-1252", "qualifier: '\"'", limit=1), **files)
    notes = [note for note in summary["tables"][0]["notes"] if "valid" in note]
    assert len(notes) == 1
    assert notes[0].endswith("/a is read as windows-1252, and all of it is valid UTF-8: is `encoding: utf-8` meant?")


@pytest.mark.parametrize("name", ["windows-1252", "utf-16"])
def test_big_files_are_cut_where_rows_end(project: Project, name: str) -> None:
    layout = package(
        f"encoding: {name}", "qualifier: '\"'", "header: check", "footer_rows: 1", "skip_lines: 1", limit=1
    )
    pair = "\U0001f600" if name == "utf-16" else "ÿ"
    rows = [f'{number}|"{number} \n ä € {pair}|"|{"y" * (number % 97)}\n' for number in range(170_000)]
    rows[100_000] = "x|a|b\n"
    text = "".join(["ü\n", "id|name|note\n", *rows, "end|||\n"])
    content = text.encode(CODECS.get(name, name))
    (project.inbox / "rows").write_bytes(content)
    for streams in ("1", "4"):
        project.package(layout)
        summary = project.command([*project.arguments(), "--streams", streams]).succeeded()
        assert (summary["rows_loaded"], summary["rows_rejected"], summary["rows_skipped"]) == (169_999, 1, 3)
        assert summary["tables"][0]["slices"] > 2
        wrong = f"name <> id || ' ' || chr(10) || ' ä € {pair}|' OR coalesce(note, '') <> repeat('y', id % 97)"
        assert project.query(f"SELECT count(*) FROM orders WHERE {wrong}") == [(0,)]
        rejects, bad = rejects_of(summary)
        place = len(text[: text.index("x|a|b")].encode(CODECS.get(name, name)))
        assert (rejects[0]["byte"], rejects[0]["row"]) == (place, 100_003)
        assert bad == content[place : place + len("x|a|b\n") * (2 if name == "utf-16" else 1)]
    verified = project.command([sys.executable, "-m", "headrace", "verify", "--runs-dir", "runs", "last"])
    assert verified.exit_code == 0, verified.stderr


@pytest.mark.parametrize("name", ["koi8-r", "utf-16"])
def test_a_pipe_tells_its_encoding_when_it_is_read(project: Project, name: str) -> None:
    os.mkfifo(project.inbox / "pipe")
    layout = package(f"encoding: {name}", "skip_lines: 1", "header: by_name", limit=1)
    project.package(layout.replace('files: "*"', "files: pipe"))
    text = "Я\nnote|id|name\nц|1|Ж\nв|x|ж\n"
    content = text.encode(CODECS.get(name, name))
    with project.started(project.arguments()) as running:
        (project.inbox / "pipe").write_bytes(content)
        summary = running.wait().succeeded()
    assert project.query("FROM orders") == [(1, "Ж", "ц")]
    rejects, bad = rejects_of(summary)
    place = len(text[: text.index("x|ж")].encode(CODECS.get(name, name)))
    assert (rejects[0]["byte"], rejects[0]["value"], rejects[0]["row"]) == (place, "x", 4)
    assert bad == content[content.index("в".encode(CODECS.get(name, "utf-16-le"))) :]


def test_the_plan_says_how_files_are_read(project: Project) -> None:
    project.package(package("encoding: utf-16le", "unmappable: replace"))
    (project.inbox / "rows").write_bytes("1|a|b\n".encode("utf-16-le"))
    summary = project.command(project.arguments()).succeeded()
    note = "encoding utf-16le: decoded while it is read; bytes that are no character are read as U+FFFD"
    assert note in summary["tables"][0]["notes"]


def test_bytes_that_escapes_make_take_nothing_with_them(project: Project) -> None:
    """0xF8 also begins what stands for the odd last byte of a file in UTF-16."""
    text = "1|\\xF8ab|-\n2|\\xC3\\xA4|-\n3|\\xF8€z|-\n4|\\xED\\xA0ä|-\n"
    escapes = ["escape: '\\'", "escape_codes: postgres", "unmappable: replace"]
    load(project, package(*escapes, "encoding: utf-16le"), rows=text.encode("utf-16-le"))
    in_utf_16 = project.query("SELECT id, name FROM orders ORDER BY id")
    load(project, package(*escapes), rows=text.encode())
    assert in_utf_16 == project.query("SELECT id, name FROM orders ORDER BY id")
    assert in_utf_16[:3] == [(1, "\ufffdab"), (2, "ä"), (3, "\ufffd€z")]
