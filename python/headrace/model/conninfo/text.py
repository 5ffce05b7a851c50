"""The two forms of a connection string: `postgresql://user@host/database?keyword=value` and `host=... dbname=...`.

Both follow fe-connect.c of PostgreSQL 18 character by character, with one exception. A URL with an `@` that does not
end the login is refused: libpq would take the rest of a password for a host or a database, which are shown. Errors say
where, but show no value.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final

from headrace.model.conninfo.keywords import VARIABLES, ConninfoError, check_keyword

URL_SCHEMES: Final = ("postgresql", "postgres")
_URL = re.compile(r"(?:postgresql|postgres)://(.*)", re.DOTALL)
_BLANKS: Final = " \t\n\r\f\v"
_PERCENT_CODES: Final = "Write special characters of user and password as percent codes, `@` as %40 and `/` as %2F."


@dataclass(frozen=True, slots=True)
class ConninfoText:
    """What a connection string says: values by libpq's keywords.

    `password_text` is the password as it is written, before percent signs or backslashes are resolved: it must be kept
    out of texts as well.
    """

    values: dict[str, str] = field(repr=False)
    password_text: str | None = field(default=None, repr=False)


def parse_conninfo(text: str) -> ConninfoText:
    """The values of a connection string of either form. Raises ConninfoError."""
    if "\0" in text:
        raise ConninfoError("the connection string holds a NUL character")
    url = _URL.fullmatch(text)
    pairs = _url_pairs(url[1]) if url else _key_value_pairs(text)
    values: dict[str, str] = {}
    password_text = None
    for keyword, value, written in pairs:
        if keyword == "ssl" and url and value == "true":  # as JDBC writes it
            keyword, value = "sslmode", "require"
        if check_keyword(keyword, value, is_after_password=password_text is not None):
            values[keyword] = value
            if keyword == "password":
                password_text = written
    return ConninfoText(values, password_text)


# Keyword, value, the value as written.
Pair = tuple[str, str, str]


def _url_pairs(rest: str) -> list[Pair]:
    """`rest` stands behind `postgresql://`. A later pair wins over an earlier one."""
    pairs: list[Pair] = []
    login, at, behind_login = rest.rpartition("@")
    if at:
        if "@" in login or "/" in login:
            raise ConninfoError(
                "the URL of the connection has an `@` that does not end user and password",
                expected="one `@`, between the password and the host, and no `/` before it",
                hint=_PERCENT_CODES,
            )
        rest = behind_login
        user, _, password = login.partition(":")
        pairs += _present("user", user) + _present("password", password)
    hosts, ports, rest = _url_hosts(rest)
    pairs += _present("host", ",".join(hosts)) + _present("port", ",".join(ports))
    path, question, query = rest.partition("?")
    pairs += _present("dbname", path[1:])
    return pairs + (_query_pairs(query) if question else [])


def _url_hosts(rest: str) -> tuple[list[str], list[str], str]:
    """Hosts and ports of a URL, one of each per entry, and what follows them: empty, or from `/` or `?` on."""
    hosts: list[str] = []
    ports: list[str] = []
    while True:
        entry = re.match(r"\[([^\]]*)\]|(?!\[)([^:/?,]*)", rest)
        if entry is None or (rest.startswith("[") and not entry[1]):
            raise ConninfoError(
                "the URL of the connection has an IPv6 address that is empty or not closed",
                expected="an address in brackets, as in postgresql://[::1]/",
            )
        hosts.append(entry[1] or entry[2] or "")
        rest = rest[entry.end() :]
        port = re.match(r":([^/?,]*)", rest)
        ports.append(port[1] if port else "")
        rest = rest[port.end() :] if port else rest
        if not rest or rest[0] in "/?":
            return hosts, ports, rest
        if rest[0] != ",":
            raise ConninfoError(
                "the URL of the connection has text behind a host that is no port",
                expected="`:port`, `,host`, `/database` or `?keyword=value`",
                hint=_PERCENT_CODES,
            )
        rest = rest[1:]


def _query_pairs(query: str) -> list[Pair]:
    pairs = []
    parameters = query.split("&")
    if not parameters[-1]:
        parameters.pop()  # nothing at all, or nothing behind the last `&`
    for parameter in parameters:
        keyword, equals, value = parameter.partition("=")
        if not equals or "=" in value:
            raise ConninfoError(
                "the URL of the connection has a parameter that is not `keyword=value`",
                hint="Write `&` and `=` inside a value as %26 and %3D.",
            )
        pairs.append((_decoded(keyword), _decoded(value), value))
    return pairs


def _present(keyword: str, written: str) -> list[Pair]:
    """The pair, unless its value is empty: then the URL says nothing about it."""
    return [(keyword, _decoded(written), written)] if written else []


def _decoded(written: str) -> str:
    if any(character in _BLANKS for character in written):
        raise ConninfoError("the URL of the connection holds a blank", hint="Write a blank as %20.")
    if re.search(r"%(?![0-9A-Fa-f]{2})|%00", written):
        raise ConninfoError(
            "the URL of the connection has a percent sign without a code behind it, or %00",
            expected="`%` and two hexadecimal digits",
            hint="Write a percent sign as %25.",
        )
    encoded = re.sub(rb"%([0-9A-Fa-f]{2})", lambda code: bytes([int(code[1], 16)]), written.encode("utf-8"))
    try:
        return encoded.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ConninfoError("the percent codes of the connection's URL are not UTF-8 text") from error


_KEYWORD = re.compile(r"([^=\s]+)\s*(=?)\s*", re.ASCII)
_QUOTED = re.compile(r"'((?:[^'\\]|\\.)*)'", re.DOTALL)
_UNQUOTED = re.compile(r"(?:[^\s\\]|\\.)*\\?", re.DOTALL | re.ASCII)


def _key_value_pairs(text: str) -> list[Pair]:
    pairs: list[Pair] = []
    position = len(text) - len(text.lstrip(_BLANKS))
    while position < len(text):
        keyword = _KEYWORD.match(text, position)
        if keyword is None or not keyword[2]:
            # Not shown: it may be part of a password with a blank in it.
            raise ConninfoError(
                "the connection string has a word without `=`",
                expected="keyword=value pairs, or a URL postgresql://...",
                hint="Put a value with blanks between single quotes.",
            )
        position = keyword.end()
        if text.startswith("'", position):
            value = _QUOTED.match(text, position)
            if value is None:
                # What is no keyword may be a part of a password.
                whose = f"the value of `{keyword[1]}`" if keyword[1] in VARIABLES else "a value"
                raise ConninfoError(f"{whose} in the connection string is not closed")
            written = value[1]
        else:
            value = _UNQUOTED.match(text, position)
            assert value is not None  # it matches the empty text
            written = value[0]
        pairs.append((keyword[1], re.sub(r"\\(.)|\\$", r"\1", written, flags=re.DOTALL), written))
        position = value.end()
        position += len(text[position:]) - len(text[position:].lstrip(_BLANKS))
    return pairs
