"""Scripts are cut as psql cuts them, whose lexer is that of the server."""

from __future__ import annotations

import random

from headrace import core
from headrace.model import PostgresConnection
from headrace.model.conninfo import ConnectionParameters
from headrace.model.sql_text import split_statements
from tests.servers.cluster import Database

ITEMS = (
    "1::text",
    "';'",
    "'it''s; $x'",
    "'\\'",
    "E'\\';$x'",
    "U&'\\0041;'",
    "B'101'::text",
    "$$;$$",
    "$$ $x; ' $$",
    "$t$ ; $$ $x $t$",
    "$ä$;$ä$",
    "(SELECT ';'::text)",
    "CASE WHEN true THEN ';' END",
    "'a' -- ; it's\n",
    "/* ; ' $x */ 'a'",
    "/* a /* ; */ ; */ 'b'",
    "(ARRAY['x;', 'y'])[1:2]::text",
    "'1'::int::text",
    '(SELECT "a;""b" FROM (SELECT \';\' AS "a;""b") s)',
    "(SELECT a$b FROM (SELECT 'q;' AS a$b) s)",
    "(SELECT '{\"a;\": 1}'::jsonb ? 'a;')::text",
)
FUNCTION = (
    "CREATE OR REPLACE FUNCTION f{0}() RETURNS text BEGIN ATOMIC "
    "SELECT CASE WHEN true THEN ';' END; SELECT 'f;{0}'::text; END"
)
BLANKS = ("", "\n", " -- ; '\n", "/* ; */", ";", "\t")


def test_the_same_statements(database: Database) -> None:
    chosen = random.Random(7)
    script = []
    for number in range(300):
        if number % 50 == 0:
            script.append(FUNCTION.format(number))
        items = ", ".join(chosen.choice(ITEMS) for _ in range(3))
        script.append(f"{chosen.choice(BLANKS)}INSERT INTO {{table}} VALUES ({items}){chosen.choice(BLANKS)}")
    text = ";".join(script)
    database.psql("CREATE TABLE theirs (a text, b text, c text); CREATE TABLE ours (LIKE theirs)")
    database.psql(text.replace("{table}", "theirs"))
    statements = split_statements(text.replace("{table}", "ours"))
    assert len(statements) == 306
    with connected(database) as connection:
        for statement in statements:
            assert statement.placeholders == ()
            connection.query(statement.text)
    assert database.rows("(TABLE ours EXCEPT ALL TABLE theirs) UNION ALL (TABLE theirs EXCEPT ALL TABLE ours)") == []
    assert database.rows("SELECT count(*) FROM ours") == [("300",)]


def test_a_text_that_goes_on_in_the_next_line(database: Database) -> None:
    """psql, which reads line by line, takes it for two; the server does not."""
    first, second = split_statements("SELECT E'a' -- it's\n '\\';b' AS a; SELECT 2")
    with connected(database) as connection:
        assert connection.query(first.text).rows == [["a';b"]]
        assert connection.query(second.text).rows == [["2"]]


def connected(database: Database) -> core.PostgresConnection:
    hosts = ((str(database.cluster.sockets), database.cluster.port),)
    parameters = ConnectionParameters(hosts=hosts, database=database.name, user="postgres", sslmode="disable")
    return core.PostgresConnection(PostgresConnection("test", parameters).to_core("test"))
