"""Dialects of flat files, from the command line to the table: what is a field, what is a row, what is text."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.integration.driver import Project
from tests.snapshots import assert_snapshot

pytestmark = pytest.mark.usefixtures("cpu_path")

PACKAGE = """
headrace: 1
package: dialects
connections:
  inbox: {{type: files, path: inbox}}
  warehouse: {{type: duckdb, path: warehouse.duckdb}}
layouts:
  rows:
    {layout}
    columns:
      - {{name: id, type: int32{id}}}
      - {{name: name, type: string{name}}}
      - {{name: note, type: string}}
streams: 4
tasks:
  load:
    data_flow:
      rejects: {{limit: 10}}
      sources: {{rows: {{connection: inbox, files: "*", layout: rows}}}}
      destinations: {{orders: {{input: rows, connection: warehouse, table: orders, target: replace}}}}
"""
Row = tuple[int | None, str | None, str | None]


@dataclass(frozen=True)
class Case:
    """A layout, a file, and what is in the table then. `rejects`: codes; `skipped`: rows that are no data."""

    layout: list[str]
    text: str
    rows: list[Row]
    rejects: list[str] = field(default_factory=list)
    skipped: int = 0
    columns: dict[str, str] = field(default_factory=dict)


QUOTED = ["delimiter: ','", "qualifier: '\"'"]
CASES = {
    "delimiter of two characters": Case(
        ["delimiter: '||'"], "1||a|b||c\n2||||\n3|||x||\n", [(1, "a|b", "c"), (2, None, None), (3, "|x", None)]
    ),
    "delimiter that is no ASCII": Case(["delimiter: '§'"], "1§a§Â\n2§§\n", [(1, "a", "Â"), (2, None, None)]),
    "delimiters of columns": Case(
        ["delimiter: ';'"],
        "1:a;b -> c:d\n2:: -> \n",
        [(1, "a;b", "c:d"), (2, ":", None)],
        columns={"id": "delimiter: ':'", "name": "delimiter: ' -> '"},
        rejects=[],
    ),
    "row end of its own": Case(
        ["delimiter: '|'", 'row_end: "@@\\n"'],
        "1|a\n|b@\n@@\n2|c|d@@\n3|e|",
        [(1, "a\n", "b@\n"), (2, "c", "d"), (3, "e", None)],
    ),
    "carriage returns": Case(["delimiter: '|'", "row_end: cr"], "1|a\n|b\r2|c|d\r", [(1, "a\n", "b"), (2, "c", "d")]),
    "both or nothing": Case(
        ["delimiter: '|'", "row_end: crlf"], "1|a\n|b\r\n2|c|\r\r\n", [(1, "a\n", "b"), (2, "c", "\r")]
    ),
    "row ends in fields": Case(
        ["delimiter: '|'", "row_end_in_fields: data"], "1|a\nb|c|d\n2||\n", [(1, "a\nb", "c|d"), (2, None, None)]
    ),
    "blanks around qualifiers": Case(
        [*QUOTED, "blanks_around_qualifier: true"],
        '1, "a, b" ,"c"\t\n2, x y ,  ""\n3,"a" b,c\n',
        [(1, "a, b", "c"), (2, " x y ", "")],
        ["HR104"],
    ),
    "a column without qualifier": Case(
        QUOTED,
        '1,5" nail,"a ""b"""\n2,"x,"y"\n',
        [(1, '5" nail', 'a "b"'), (2, '"x', "y")],
        columns={"name": "qualified: false"},
    ),
    "escapes": Case(
        ["delimiter: '||'", "escape: '\\'"],
        "1||a\\||b||c\\\\\n2||line\\\nbreak||\\n\n3||x||y\\",
        [(1, "a||b", "c\\"), (2, "line\nbreak", "n")],
        ["HR106"],
    ),
    "escapes and qualifiers": Case(
        [*QUOTED, "escape: '\\'"], '1,"a\\"b","c""d"\n2,a\\,b,\\"\n', [(1, 'a"b', 'c"d'), (2, "a,b", '"')]
    ),
    "as MySQL writes": Case(
        ['delimiter: "\\t"', "escape: '\\'", "escape_codes: mysql", "null_tokens: ['\\N']"],
        "1\ta\\tb\\nc\t\\N\n2\t\\Z\\\\N\t\\\t\n",
        [(1, "a\tb\nc", None), (2, "\x1a\\N", "\t")],
    ),
    "as COPY writes": Case(
        ['delimiter: "\\t"', "escape: '\\'", "escape_codes: postgres", "null_tokens: ['\\N']"],
        "1\t\\x41\\102\\v\t\\N\n2\t\\303\\244\t\\377\n",
        [(1, "AB\x0b", None)],
        ["HR501"],
    ),
    "comments": Case(
        ["delimiter: '|'", "comment: '--'"],
        '-- 1|"a\n1|--b|c\n-1|x|--\n--',
        [(1, "--b", "c"), (-1, "x", "--")],
        skipped=2,
    ),
    "blank rows are rejects": Case(
        ["delimiter: '|'", "blank_rows: reject"], "1|a|b\n\n2|c|d\n", [(1, "a", "b"), (2, "c", "d")], ["HR101"]
    ),
    "blank rows are rows": Case(
        ["delimiter: '|'", "blank_rows: keep", "short_rows: fill"], "1|a|b\n\n", [(1, "a", "b"), (None, None, None)]
    ),
    "short rows": Case(
        ["delimiter: '|'", "short_rows: fill"],
        "1\n2|a\n3|b|c\n4|d|e|f\n",
        [(1, None, None), (2, "a", None), (3, "b", "c")],
        ["HR102"],
    ),
    "extra fields": Case(
        [*QUOTED, "extra_fields: keep"],
        '1,a,b\n2,"c,d",e,"f, g"\n3,g,"h"\n',
        [(1, "a", "b"), (2, "c,d", 'e,"f, g"'), (3, "g", "h")],
    ),
    "extra fields, and rows without them": Case(
        [*QUOTED, "extra_fields: keep"],
        '1,a,"x, y"\n2,b,"say ""no"""\n3,c,"line\nbreak"\n4,d,"e, f",g\n',
        [(1, "a", "x, y"), (2, "b", 'say "no"'), (3, "c", "line\nbreak"), (4, "d", '"e, f",g')],
    ),
    "stray qualifiers": Case(
        QUOTED,
        '1,a,7.00"Pillow, 7"\n2,5" nail,x\n3, "b",y\n4,"c"d,z\n5,"e",f\n',
        [(5, "e", "f")],
        ["HR102", "HR110", "HR110", "HR104"],
    ),
    "stray qualifiers in fields that are ignored": Case(
        [*QUOTED, "header: by_name", "other_columns: ignore"],
        'foo,x,id,name,note\n7.00"Pillow, 7",1,a,b\n"a",b,2,c,d\n3,"e"f,3,g,h\n',
        [(2, "c", "d")],
        ["HR110", "HR104"],
        skipped=1,
    ),
    "stray qualifiers are kept": Case(
        [*QUOTED, "stray_qualifiers: keep"],
        '1,a,7.00"Pillow\n2,5" nail,x\n3, "b",y\n4,"c"d,z\n5,"e",f\n',
        [(1, "a", '7.00"Pillow'), (2, '5" nail', "x"), (3, ' "b"', "y"), (4, '"c"d', "z"), (5, "e", "f")],
    ),
    "stray qualifiers, leniently": Case(
        [*QUOTED, "stray_qualifiers: lenient"],
        '1,"a "b" c","d,\n"e","f"\n2,5" nail,"x"y"\n3,"never","closed"z\n',
        [(2, '5" nail', 'x"y')],
        ["HR102", "HR105"],
    ),
    "both row ends": Case(["delimiter: '|'"], "1|a|b\n2|c|d\r\n3|e|\n", [(1, "a", "b"), (2, "c", "d"), (3, "e", None)]),
    "both row ends, in a dialect of many settings": Case(
        [*QUOTED, "comment: '#'"],
        '#\r\n1,a,"b"\n2,c,"d"\r\n3,e,"\r\n"\r\n',
        [(1, "a", "b"), (2, "c", "d"), (3, "e", "\r\n")],
        skipped=1,
    ),
    "line feeds and nothing else": Case(
        ["delimiter: '|'", "row_end: lf"], "1|a|b\n2|c|d\r\n", [(1, "a", "b"), (2, "c", "d\r")]
    ),
    "other row ends are rejects": Case(
        ["delimiter: '|'", "mixed_row_ends: reject"],
        "1|a|b\r\n2|c|d\n\n3|e\n4|f|g\r\n5|h|i",
        [(1, "a", "b"), (4, "f", "g"), (5, "h", "i")],
        ["HR107", "HR101"],
        skipped=1,
    ),
    "other row ends are rejects, in a dialect of many settings": Case(
        [*QUOTED, "comment: '#'", "mixed_row_ends: reject"],
        '#\r\n1,a,"b"\n2,c,"d"\r\n3,e,\n4,"\r\n",i\r\n',
        [(2, "c", "d"), (4, "\r\n", "i")],
        ["HR107", "HR107"],
        skipped=1,
    ),
    "blanks": Case(
        [*QUOTED, "trim: both"],
        ' 1 ,\t a b ,"  c "\n2 ,"",  \n',
        [(1, "a b", "  c "), (2, "", None)],
    ),
    "blanks of one side, per column": Case(
        [*QUOTED, "trim: left"],
        " 1, a , b \n 2,  ,c\n",
        [(1, " a", "b "), (2, None, "c")],
        columns={"name": "trim: right"},
    ),
    "empty fields": Case(
        [*QUOTED, "empty: text", "qualified_empty: null", "short_rows: fill"],
        '1,,""\n,"",\n3\n',
        [(1, "", None), (None, None, ""), (3, "", "")],
    ),
    "values for empty fields": Case(
        [*QUOTED, "trim: both", "empty: {value: '-7'}"],
        '1,,a\n , ,""\n',
        [(1, "unknown, as nobody has said it", "a"), (-7, "unknown, as nobody has said it", "")],
        columns={"name": "empty: {value: 'unknown, as nobody has said it'}"},
    ),
    "null tokens of columns": Case(
        [*QUOTED, "null_tokens: [NA]", "qualified_null_tokens: true", "empty: text"],
        '1,NA,NA\nNA,"-","NA"\n3,-,-\n',
        [(1, "NA", None), (None, None, None), (3, None, "-")],
        columns={"name": "null_tokens: ['-']"},
    ),
    "a header that is checked": Case(
        [*QUOTED, "skip_lines: 2", "header: check", "comment: '#'"],
        'Report "of all,\n\n\n# head\nID, name ,"NOTE"\n1,a,b\n2,x\n3,c,d\n',
        [(1, "a", "b"), (3, "c", "d")],
        ["HR101"],
        skipped=5,
    ),
    "a header that is skipped": Case([*QUOTED, "header: skip"], '"x\ny",z\n1,a,b\n', [(1, "a", "b")], skipped=1),
    "fields by their names": Case(
        [*QUOTED, "header: by_name", "other_columns: ignore"],
        'note,x,ID,,name\nb,\xff,1,"",a\n,"2\n",2,,"""c"""\nx,,two,,y\nx,,3\n',
        [(1, "a", "b"), (2, '"c"', None)],
        ["HR301", "HR101"],
        skipped=1,
    ),
    "a footer": Case(
        [*QUOTED, "footer_rows: 2"], '1,a,b\n2,c,d\nsum,"\n",\n\nrows,2\n\n', [(1, "a", "b"), (2, "c", "d")], skipped=4
    ),
}


def package(layout: list[str], columns: dict[str, str]) -> str:
    """Three columns in a layout."""
    more = {name: f", {columns[name]}" if name in columns else "" for name in ("id", "name")}
    return PACKAGE.format(layout="\n    ".join(layout), **more)


@pytest.mark.parametrize("name", CASES)
def test_dialect(project: Project, name: str) -> None:
    case = CASES[name]
    project.package(package(case.layout, case.columns))
    (project.inbox / "rows").write_bytes(case.text.encode())
    summary = project.command(project.arguments()).succeeded()
    assert sorted(project.query("FROM orders"), key=str) == sorted(case.rows, key=str)
    assert (summary["rows_rejected"], summary["rows_skipped"]) == (len(case.rejects), case.skipped)
    if case.rejects:
        rejects = Path(summary["tables"][0]["rejects"]["files"][0])
        assert [json.loads(line)["code"] for line in rejects.read_text().splitlines()] == case.rejects


def test_row_ends_of_two_kinds_are_said(project: Project) -> None:
    project.package(package(["delimiter: '|'"], {}))
    for number in range(5):
        (project.inbox / f"rows.{number}").write_bytes(b"1|a|b\n2|c|d\r\n3|e|f\r\n")
    (project.inbox / "rows.5").write_bytes(b"1|a|b\r\n2|c|d\r\n3|e|f")
    ended = project.command(project.arguments())
    notes = [note for note in ended.succeeded()["tables"][0]["notes"] if "two ways" in note]
    assert len(notes) == 4
    assert notes[0].endswith("rows.0: 1 with LF, 2 with CR LF")
    assert notes[3] == "lines end in two ways in 2 more files"
    assert all(note in ended.stderr for note in notes)


def test_files_without_rows_are_said(project: Project) -> None:
    project.package(package([*QUOTED, "comment: '#'", "row_end: crlf", "footer_rows: 1"], {}))
    for name, text in {
        "comment": "# of 2024\n1,a,b\n",
        "footer": "1,a,b\n2,c,d\n",
        "lines": "\r\n# x\r\n3,e,f\r\n",
        "rows": "4,g,h\r\nsum\r\n",
        "empty": "",
    }.items():
        (project.inbox / f"rows.{name}").write_bytes(text.encode())
    ended = project.command(project.arguments())
    notes = [note for note in ended.succeeded()["tables"][0]["notes"] if "no row" in note]
    what = "header, footer, comment or blank"
    only = f"its only line is {what}; is `row_end` of the layout right?"
    assert [note.partition(": ")[2] for note in notes] == [only, only, f"each of its 3 lines is {what}"]
    assert all(note in ended.stderr for note in notes)
    assert project.query("FROM orders") == [(4, "g", "h")]


@pytest.mark.parametrize("row_ends", [("crlf", "\n"), ("auto", "\r"), ("'~'", "\n")])
@pytest.mark.parametrize("setting", ["skip_lines: 2", "header: skip"])
def test_files_whose_rows_end_otherwise_are_not_files_without_rows(
    project: Project, setting: str, row_ends: tuple[str, str]
) -> None:
    declared, own = row_ends
    text = package([*QUOTED, setting, f"row_end: {declared}"], {})
    project.package(text.replace("layout: rows", "layout: rows, empty: allow"))
    (project.inbox / "rows").write_bytes(own.join(["Title", "id,name,note", "1,a,b", "2,c,d", ""]).encode())
    ended = project.command(project.arguments())
    assert ended.exit_code == 1
    name = {"\n": "line feeds, `row_end: lf`", "\r": "carriage returns, `row_end: cr`"}[own]
    assert f"hint: Correct `row_end` of the layout: the text has {name}." in ended.error


HEADERS = {
    "names": ("header: check", "id,nam,note\n1,a,b\n"),
    "order": ("header: check", "id,note,name\n1,a,b\n"),
    "count": ("header: check", "id,name,note,more\n1,a,b\n"),
    "empty": ("header: check", ""),
    "open": ("header: skip", '\n"id,name,note\n1,a,b\n'),
    "missing": ("header: by_name", "note,id\nb,1\n"),
    "twice": ("header: by_name", "note,name,ID,Id\n1,a,b\n"),
    "other": ("header: by_name", "note,name,id,more\n1,a,b\n"),
}


@pytest.mark.parametrize("name", HEADERS)
def test_a_header_that_does_not_fit_is_refused(project: Project, name: str) -> None:
    """Before a row is loaded."""
    header, text = HEADERS[name]
    project.package(package([*QUOTED, header], {}))
    (project.inbox / "rows").write_text(text)
    ended = project.command(project.arguments())
    assert ended.exit_code == 1
    assert_snapshot(f"header_{name}", project.stable(ended.error))


def test_a_value_for_empty_fields_that_is_none_is_refused(project: Project) -> None:
    project.package(package([*QUOTED], {"id": "empty: {value: none}"}))
    (project.inbox / "rows").write_text("1,a,b\n")
    ended = project.command(project.arguments())
    assert ended.exit_code == 1
    assert_snapshot("empty_value_refused", project.stable(ended.error))


def test_a_long_text_of_json_for_empty_fields(project: Project) -> None:
    """Longer than what a view of a text holds itself."""
    text = package([*QUOTED], {"name": 'empty: {value: \'{"said by": ["nobody", null]}\'}'})
    project.package(text.replace("name: name, type: string", "name: name, type: json"))
    (project.inbox / "rows").write_text("".join(f"{key},,\n{key},[{key}],\n" for key in range(1000)))
    project.command(project.arguments()).succeeded()
    names = project.query("SELECT CAST(name AS VARCHAR) FROM orders ORDER BY id, name LIKE '{%'")
    assert names == [(name,) for key in range(1000) for name in (f"[{key}]", '{"said by": ["nobody", null]}')]


def test_every_file_has_its_own_order_of_fields(project: Project) -> None:
    project.package(package([*QUOTED, "header: by_name", "other_columns: ignore"], {}))
    orders = ("id,name,note", "note,id,name", "x,name,note,id", "NOTE,NAME,ID,y")
    for number, names in enumerate(orders):
        fields = {"id": "{0}", "name": '"name {0}"', "note": "{0} {1}", "x": "-", "y": '"\n"'}
        row = ",".join(fields[name.lower()] for name in names.split(","))
        rows = (row.format(key, "z" * (key % 50)) for key in range(number, 200_000, len(orders)))
        (project.inbox / f"rows.{number}").write_text("\n".join([names, *rows]))
    summary = project.command(project.arguments()).succeeded()
    assert (summary["rows_loaded"], summary["rows_rejected"], summary["rows_skipped"]) == (200_000, 0, len(orders))
    right = "count(DISTINCT id) FILTER (name = 'name ' || id AND note = id || ' ' || repeat('z', id % 50))"
    assert project.query(f"SELECT {right} FROM orders") == [(200_000,)]


def test_a_layout_that_means_two_things_is_refused(project: Project) -> None:
    """Where the core has to say so."""
    project.package(package(["delimiter: '|'", "row_end: 'x|y'"], {}))
    (project.inbox / "rows").write_text("1|a|b\n")
    ended = project.command(project.arguments())
    assert ended.exit_code == 1
    assert_snapshot("dialect_ambiguous", project.stable(ended.error))


def test_big_files_of_any_dialect_are_cut_where_rows_end(project: Project) -> None:
    """More than one slice each, in which no byte says by itself whether a line break ends a row."""
    layout = ["delimiter: '||'", "qualifier: '\"'", "escape: '\\'", "comment: '#'", "row_end: lf"]
    project.package(package(layout, {}))
    rows = [
        f'{number}||"{number} \n "" || x"||note {number} {"y" * (number % 97)}\\\n{number}\n'
        for number in range(160_000)
    ]
    rows[7] += '# a comment with a " in it\n'
    text = "".join(rows)
    assert len(text) > 3 * 4 * 1024 * 1024
    (project.inbox / "rows").write_text(text)
    for streams in ("1", "4"):
        summary = project.command([*project.arguments(), "--streams", streams]).succeeded()
        assert (summary["rows_loaded"], summary["rows_rejected"], summary["rows_skipped"]) == (160_000, 0, 1)
        assert summary["tables"][0]["slices"] > 2
        wrong = project.query(
            "SELECT count(*) FROM orders WHERE name <> id || ' ' || chr(10) || ' \" || x' "
            "OR note <> 'note ' || id || ' ' || repeat('y', id % 97) || chr(10) || id"
        )
        assert wrong == [(0,)]
