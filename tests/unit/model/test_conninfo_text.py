"""Connection strings: libpq's documented examples, its own parser as an oracle, and messages that show no value."""

from __future__ import annotations

import re

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from headrace.model.conninfo import ConninfoError, parse_conninfo
from tests.snapshots import assert_snapshot
from tests.unit.model import libpq

# The examples of the manual's chapters "Connection Strings" and "Connection URIs", and their corners.
VALUES: dict[str, dict[str, str]] = {
    "host=localhost port=5432 dbname=mydb connect_timeout=10": {
        "host": "localhost", "port": "5432", "dbname": "mydb", "connect_timeout": "10",
    },
    "postgresql://": {},
    "postgresql://localhost": {"host": "localhost"},
    "postgresql://localhost:5433": {"host": "localhost", "port": "5433"},
    "postgresql://localhost/mydb": {"host": "localhost", "dbname": "mydb"},
    "postgresql://user@localhost": {"user": "user", "host": "localhost"},
    "postgresql://user:secret@localhost": {"user": "user", "password": "secret", "host": "localhost"},
    "postgresql://other@localhost/otherdb?connect_timeout=10&options=-c%20geqo%3Doff": {
        "user": "other", "host": "localhost", "dbname": "otherdb", "connect_timeout": "10", "options": "-c geqo=off",
    },
    "postgresql://host1:123,host2:456/somedb?application_name=myapp": {
        "host": "host1,host2", "port": "123,456", "dbname": "somedb", "application_name": "myapp",
    },
    "postgresql:///mydb?host=localhost&port=5433": {"dbname": "mydb", "host": "localhost", "port": "5433"},
    "postgresql://[2001:db8::1234]/database": {"host": "2001:db8::1234", "dbname": "database"},
    "postgresql:///dbname?host=/var/lib/postgresql": {"dbname": "dbname", "host": "/var/lib/postgresql"},
    "postgresql://%2Fvar%2Flib%2Fpostgresql/dbname": {"host": "/var/lib/postgresql", "dbname": "dbname"},
    "postgres://h,[::1]:7,/d": {"host": "h,::1,", "port": ",7,", "dbname": "d"},
    "postgresql://u:@h": {"user": "u", "host": "h"},
    "postgresql://u:p:q@h": {"user": "u", "password": "p:q", "host": "h"},
    "postgresql://:p@h": {"password": "p", "host": "h"},
    "postgresql://h?ssl=true": {"host": "h", "sslmode": "require"},
    "postgresql://a?host=b": {"host": "b"},
    "": {},
    " \t\n": {},
    "host = a  user= 'b c' ": {"host": "a", "user": "b c"},
    r"user=a\ b password='it\'s \\ x'": {"user": "a b", "password": r"it's \ x"},
    "password='' host=a": {"password": "", "host": "a"},
    "password= host": {"password": "host"},
    "dbname='a=b'": {"dbname": "a=b"},
    "host=a host=b": {"host": "b"},
    "client_encoding=UTF8 gssencmode=disable host=a": {"host": "a"},
}  # fmt: skip


@pytest.mark.parametrize("text", VALUES)
def test_values(text: str) -> None:
    assert parse_conninfo(text).values == VALUES[text]


REFUSED = {
    "url_not_closed": "postgresql://[::1",
    "url_empty_address": "postgresql://[]",
    "url_text_behind_address": "postgresql://[::1]x",
    "url_bad_code": "postgresql://a%zz",
    "url_nul": "postgresql://a%00",
    "url_blank": "postgresql://a b",
    "url_not_utf8": "postgresql://%ff",
    "url_password_with_at": "postgresql://u:p@ss@h/d",
    "url_password_with_slash": "postgresql://u:p/ss@h/d",
    "url_parameter_with_at": "postgresql://u@h/d?user=a@b",
    "keyword_behind_a_password": "password=my hots=a",
    "quote_not_closed_behind_a_password": "password=my own='a",
    "url_parameter_without_value": "postgresql://h?sslmode",
    "url_parameter_with_two": "postgresql://h?host=a=b",
    "keyword_misspelt": "hots=a",
    "keyword_unknown": "frobnicate=1",
    "keyword_not_followed": "require_auth=scram-sha-256",
    "keyword_hostaddr": "hostaddr=10.0.0.1",
    "word_without_equals": "warehouse",
    "quote_not_closed": "user='a",
    "nul": "user=\0",
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    with pytest.raises(ConninfoError) as caught:
        parse_conninfo(REFUSED[name])
    error = caught.value
    assert_snapshot(f"conninfo_{name}", f"{error.what}\n{error.found}\n{error.expected}\n{error.hint}")


def test_the_password_is_also_given_as_it_is_written() -> None:
    assert parse_conninfo("postgresql://u:p%40ss@h").password_text == "p%40ss"
    assert parse_conninfo(r"password='it\'s'").password_text == r"it\'s"
    assert "p%40ss" not in repr(parse_conninfo("postgresql://u:p%40ss@h"))


_URL_PIECES = st.sampled_from(
    ["a", "b1", "user", "@", ":", "/", "?", "&", "=", ",", "[", "]", "%41", "%2F", "%", "%zz", "5432", "::1",
     "host=", "dbname=", "port=", "ssl=true", "password=x", "é"]
)  # fmt: skip
_TEXT_PIECES = st.sampled_from(
    ["host", "user", "password", "=", " ", "\t", "'", "\\", "\\'", "\\\\", "a", "b c", "x=y", "dbname=", "é", "'a b'"]
)


@pytest.mark.skipif(not libpq.is_installed(), reason="libpq is not installed")
@given(st.one_of(
    st.lists(_URL_PIECES, max_size=12).map(lambda pieces: "postgresql://" + "".join(pieces)),
    st.lists(_TEXT_PIECES, max_size=12).map("".join),
))  # fmt: skip
@example("postgresql://a:b@c:1,d/e?host=f")
def test_libpq_reads_the_same(text: str) -> None:
    # Codes that are not UTF-8, and an `@` that ends no login: libpq takes them.
    assume(not re.search("%[89a-f]", text))
    assume(not re.match("postgresql://.*[@/].*@", text))
    expected = libpq.parse(text)
    try:
        values: dict[str, str] | None = parse_conninfo(text).values
    except ConninfoError:
        values = None
    assert values == expected
