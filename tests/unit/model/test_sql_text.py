"""Scripts of SQL are taken apart as the databases do it."""

from __future__ import annotations

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.model.sql_text import SqlTextError, Statement, mark_in, split_statements, without_schema
from tests.snapshots import assert_snapshot

# Pieces of a query whose `;` and `$` do not mean what they look like, and places of values.
ITEMS = (
    "1",
    "';'",
    "'it''s; $x'",
    "'\\'",
    "E'\\';$x'",
    "e'\\\\'",
    '"a;b"',
    '"a"";$x"',
    "$$;$$",
    "$$ $x; ' $$",
    "$t$ ; $$ $x $t$",
    "$ä$;$ä$",
    "a$b",
    "a$$",
    "$x",
    "$y::VARCHAR",
    "CAST($x AS DATE)",
    "[1, 2, 3][1:$y]",
    "{'a;b': $x}",
    "(SELECT ';')",
    "CASE WHEN $x THEN 1 END",
    "1 -- ; $x\n",
    "1 -- it's\r\n",
    "/* ; ' $x */ 1",
    "/* a /* ; */ ; */ 1",
    "1 /**/",
    "-1 - -2",
    "a -> 'b;'",
    "1e5",
    "x'41'",
)
NAMES = {"$x": "x", "$y": "y"}
queries = st.lists(st.sampled_from(ITEMS), min_size=1, max_size=5).map(lambda items: f"SELECT {', '.join(items)}")
blanks = st.sampled_from(["", " ", "\n", "-- ;\n", "/* ; */", "\t;", ";;"])


@given(st.lists(st.tuples(blanks, queries, st.sampled_from(["", " ", "\n"])), max_size=5))
def test_statements_are_found_again(parts: list[tuple[str, str, str]]) -> None:
    script = ";".join(f"{before}{query}{behind}" for before, query, behind in parts)
    found = split_statements(script)
    assert [statement.text[statement.offset - statement.begin :] for statement in found] == [
        query.rstrip() for _, query, _ in parts
    ]
    for statement in found:
        assert script[statement.begin :].startswith(statement.text)
        for place in statement.placeholders:
            assert script[place.begin : place.end] == f"${place.name}"


@settings(max_examples=300)
@given(st.lists(queries, min_size=1, max_size=4))
def test_duckdb_cuts_and_names_alike(parts: list[str]) -> None:
    script = ";\n".join(parts)
    theirs = duckdb.extract_statements(script)
    ours = split_statements(script)
    assert [_stripped(statement.query) for statement in theirs] == [_stripped(statement.text) for statement in ours]
    assert [set(statement.named_parameters) for statement in theirs] == [
        {place.name for place in statement.placeholders} for statement in ours
    ]


def _stripped(text: str) -> str:
    return text.rstrip("; \r\n\t")


@settings(max_examples=1000)
@given(st.text(st.sampled_from("aeE$'\"\\;-/*()[]:.,1 \n\rx{}é\0")))
def test_whatever_stands_there(script: str) -> None:
    try:
        found = split_statements(script)
    except SqlTextError as error:
        assert 0 <= error.offset < len(script)
        return
    end = 0
    for statement in found:
        assert end <= statement.begin <= statement.offset
        assert script[statement.begin :].startswith(statement.text)
        assert all(statement.begin <= place.begin < place.end for place in statement.placeholders)
        end = statement.begin + len(statement.text)


def one(script: str) -> Statement:
    (found,) = split_statements(script)
    return found


def test_bodies_of_functions_and_rules_are_one_statement() -> None:
    body = "BEGIN ATOMIC SELECT CASE WHEN true THEN 1 END; INSERT INTO t VALUES (1); END"
    for head in ("CREATE FUNCTION f() RETURNS int", "create or replace procedure p()"):
        assert [statement.kind for statement in split_statements(f"{head} {body}; SELECT 2")] == ["CREATE", "SELECT"]
    assert len(split_statements("CREATE RULE r AS ON INSERT TO t DO (SELECT 1; SELECT 2); SELECT 3")) == 2
    # The words alone mean nothing elsewhere.
    assert len(split_statements("SELECT begin, atomic; SELECT 2")) == 2


def test_a_text_with_escapes_goes_on_in_the_next_line() -> None:
    assert len(split_statements("SELECT E'a' -- it's\n  '\\';'; SELECT 2")) == 2


def test_a_very_long_text() -> None:
    text = "x''" * 1_000_000
    assert one(f"SELECT '{text}'").text.endswith("x'''")
    with pytest.raises(SqlTextError):
        split_statements(f"SELECT '{text}")


KINDS = {
    "SELECT 1": "reads, is a query",
    "(SELECT 1) UNION SELECT 2": "reads, is a query",
    "WITH a AS (SELECT 1) SELECT * FROM a": "reads, is a query",
    "FROM t": "reads, is a query",
    "EXPLAIN SELECT 1": "reads, is a query",
    "EXPLAIN ANALYZE SELECT 1": "",
    "WITH a AS (DELETE FROM t RETURNING *) SELECT * FROM a": "",
    "SELECT 1 INTO t": "",
    "SELECT nextval('s')": "",
    "SELECT * FROM t FOR UPDATE": "",
    "SELECT 'update', \"into\" /* delete */": "reads, is a query",
    "SELECT * FROM t FOR NO KEY UPDATE OF t": "",
    "SELECT t.update, insert, count(delete), (merge), analyze AS into FROM t": "reads, is a query",
    "SELECT a FROM t WHERE nextval > 1": "reads, is a query",
    "SELECT pg_catalog.nextval('s')": "",
    "SELECT \"nextval\"('s')": "",
    "WITH a AS (SELECT 1) INSERT INTO t SELECT * FROM a": "",
    'WITH a AS (UPDATE "t" SET b = 1 RETURNING *) SELECT * FROM a': "",
    "EXPLAIN (VERBOSE, ANALYZE) DELETE FROM t": "",
    "EXPLAIN DELETE FROM t": "reads, is a query",
    "SET x = 1": "reads, no rows, no count",
    "INSERT INTO t VALUES (1)": "no rows",
    "INSERT INTO t VALUES (1) RETURNING *": "",
    "CREATE TABLE t (a int)": "no rows, no count",
    "CREATE TABLE t AS SELECT 1": "no rows",
    "DROP TABLE t": "no rows, no count",
    "TRUNCATE t": "no rows",
    "CALL p()": "",
    "BEGIN": "control",
    "start  transaction": "control",
    "END": "control",
    "savepoint a": "control",
    "PREPARE TRANSACTION 'a'": "control, no rows, no count",
    "PREPARE a AS SELECT 1": "no rows, no count",
    "COPY t FROM STDIN": "through the client",
    "COPY t TO '/stdout'": "",
    "COPY (SELECT stdin FROM stdin) TO '/stdout'": "",
    "COPY (SELECT 1) TO STDOUT WITH (FORMAT csv)": "through the client",
}


@pytest.mark.parametrize("text", KINDS)
def test_what_a_statement_is(text: str) -> None:
    found = one(text)
    words = {
        "control": found.is_control,
        "reads": found.only_reads,
        "is a query": found.is_query and not found.changes_no_rows,
        "no rows": found.gives_no_rows,
        "no count": found.changes_no_rows and not found.is_query,
        "through the client": found.copies_through_client,
    }
    words["is a query"] = found.is_query
    assert ", ".join(word for word, is_so in words.items() if is_so) == KINDS[text]


UNQUALIFIED = {
    "SELECT * FROM a.b": "SELECT * FROM b",
    "SELECT a.b.c, b.c FROM A.B, a.bb, aa.b, x.a.b": "SELECT b.c, b.c FROM B, a.bb, aa.b, x.a.b",
    'SELECT $1 FROM "a" /* a.b */ . "b"': 'SELECT $1 FROM "b"',
    "SELECT 'a.b', \"a.b\", $$a.b$$, E'a.b' -- a.b": "SELECT 'a.b', \"a.b\", $$a.b$$, E'a.b' -- a.b",
    'SELECT 1 FROM "A".b, a."B", a . b': 'SELECT 1 FROM "A".b, a."B", b',
    "SELECT (t.a).b, a .5": "SELECT (t.a).b, a .5",
}


@pytest.mark.parametrize("text", UNQUALIFIED)
def test_a_name_without_its_schema(text: str) -> None:
    assert without_schema(text, "a", "b") == UNQUALIFIED[text]


def test_places() -> None:
    text = "a\r\nbc\rd\n\ne"
    assert [(mark.line, mark.column) for mark in (mark_in(text, at) for at in range(len(text)))] == [
        (1, 1), (1, 2), (1, 3), (2, 1), (2, 2), (2, 3), (3, 1), (3, 2), (4, 1), (5, 1)
    ]  # fmt: skip


BROKEN = {
    "text": "SELECT 'a",
    "text_with_escapes": "SELECT E'a\\'",
    "name": 'SELECT "a',
    "comment": "SELECT 1 /* /* */",
    "dollar": "SELECT $a$ $b$",
    "number": "SELECT $1",
    "reference": "SELECT ${day}",
    "psql": "SELECT 1;\n\\copy t from 'x'",
    "nul": "SELECT \0",
}


def test_what_cannot_be_taken_apart() -> None:
    told = []
    for name, script in BROKEN.items():
        with pytest.raises(SqlTextError) as caught:
            split_statements(script)
        error = caught.value
        told.append(f"{name}: at {error.offset}: {error.what}\n  found: {error.found}\n  hint: {error.hint}")
    assert_snapshot("sql_text_errors", "\n".join(told))
