"""What is wrong with SQL is found before the run, with its place in the package or in the script file."""

from __future__ import annotations

from pathlib import Path

import pytest

from headrace.model.script import script_of_package
from headrace.model.yaml_reader import parse_document
from tests.snapshots import assert_snapshot
from tests.unit.model.packages import COMPLETE, load, message

HEAD = f"""{COMPLETE}
  tidy:
    variables: {{n: {{type: integer}}, found: {{type: rows}}}}
    sql:
      connection: warehouse
"""
CASES = {
    "unknown_name": "      text: |\n        SELECT 1;\n\n        SELECT '$no', $dya, /* $no */ $day\n",
    "unknown_name_in_quotes": '      text: "SELECT $nothing"\n',
    "unknown_name_in_a_folded_text": "      text: >\n        SELECT 1,\n        $nothing\n",
    "unknown_name_in_a_file": "      file: sql/script.sql\n",
    "no_such_file": "      file: sql/none.sql\n",
    "not_utf8": "      file: sql/latin1.sql\n",
    "a_reference": '      text: "SELECT ${day}"\n',
    "a_reference_in_a_file": "      file: sql/reference.sql\n",
    "a_number": '      text: "SELECT $1"\n',
    "transaction_words": '      text: "BEGIN; SELECT 1; COMMIT"\n',
    "transaction_words_without_transaction": '      text: "SELECT 1; ROLLBACK"\n      transaction: false\n',
    "copy_through_the_client": '      text: "COPY t FROM STDIN"\n',
    "nothing": '      text: "-- nothing\\n ; "\n',
    "no_rows": '      text: "SELECT 1; DROP TABLE t"\n      row: {n: a}\n',
    "no_rows_without_returning": '      text: "INSERT INTO t VALUES (1)"\n      rows: found\n',
    "nothing_is_counted": '      text: "SELECT 1"\n      affected: n\n',
    "identifier_like_a_parameter": '      text: "DROP TABLE $day"\n      identifiers: {day: x}\n',
    "a_text_that_is_open": '      text: "SELECT \'a"\n',
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "sql").mkdir()
    (tmp_path / "sql/script.sql").write_text("\ufeff-- it\nSELECT $day;\n  DELETE FROM t WHERE a = $nothing;\n")
    (tmp_path / "sql/reference.sql").write_text("SELECT '${it is text here}';\nSELECT ${day}\n")
    (tmp_path / "sql/latin1.sql").write_bytes(b"SELECT 'caf\xe9'")
    return tmp_path


@pytest.mark.parametrize("case", CASES)
def test_message(folder: Path, case: str) -> None:
    assert_snapshot(f"script_{case}", message(folder, HEAD + CASES[case]))


def test_the_query_of_a_loop(folder: Path) -> None:
    loop = f"""{COMPLETE}
  each:
    foreach:
      query: {{connection: warehouse, text: "%s"}}
      as: {{id: integer}}
      tasks:
        one: {{set: {{}}}}
"""
    for case, text in {"writes": "DELETE FROM t RETURNING id", "two": "SELECT 1; SELECT 2"}.items():
        assert_snapshot(f"script_query_{case}", message(folder, loop % text))


def test_what_is_right(folder: Path) -> None:
    (folder / "sql/right.sql").write_text("UPDATE $t SET a = $n, b = $$ $x $$ WHERE c = $day RETURNING 1 AS a;\n")
    more = "      file: sql/right.sql\n      identifiers: {t: orders}\n      row: {n: a}\n      affected: n\n"
    load(folder, HEAD + more)


PLACES = {
    "literal": ("a:\n    text: |\n      one\n\n        two\n    b: 1\n", "two", (5, 9)),
    "stripped": ("a:\n  text: |-\n    one two\n", "two", (3, 9)),
    "indented": ("a:\n  text: |2\n     one\n    two\n", "two", (4, 5)),
    "plain": ("a:\n  text: one two\n", "two", (2, 13)),
    "quoted": ("a:\n  text: 'one two'\n", "two", (2, 14)),
    "in_braces": ('a: {b: 1, text: "one two"}\n', "two", (1, 22)),
    "escaped": ('a:\n  text: "one\\n two"\n', "two", (2, 9)),
    "folded": ("a:\n  text: >\n    one\n    two\n", "two", (2, 9)),
    "windows": ("a:\r\n  text: |\r\n    one\r\n    two\r\n", "two", (4, 5)),
}


@pytest.mark.parametrize("case", PLACES)
def test_the_place_of_a_character_of_a_text(case: str) -> None:
    """Of a text that is written otherwise than it is read, it is the place of the text."""
    written, part, expected = PLACES[case]
    document = parse_document(written.encode(), Path("x.yaml"), "x.yaml")
    assert isinstance(document.value, dict)
    script = script_of_package(document.value["a"]["text"], document, ("a", "text"))
    mark = script.mark(script.text.index(part))
    assert (mark.line, mark.column) == expected
