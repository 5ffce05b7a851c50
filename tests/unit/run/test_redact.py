"""Secrets leave no trace in anything a run writes."""

from __future__ import annotations

from typing import Any

import pytest

from headrace.errors import TargetError
from headrace.model.redaction import secret_texts
from headrace.run.redact import Redactor

REDACTOR = Redactor({"hunter22", "hunter22-longer"})


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("nothing here", "nothing here"),
        ("password hunter22!", "password ***!"),
        ("hunter22-longer", "***"),
        ("postgresql://ann:pa55word@db/x", "postgresql://***@db/x"),
        ("postgresql://:pa55word@db/x", "postgresql://***@db/x"),
        ("postgresql://ann@db:5432/x", "postgresql://***@db:5432/x"),
        ("postgresql://db:5432/x", "postgresql://db:5432/x"),
        ("duckdb:///data/w.duckdb", "duckdb:///data/w.duckdb"),
        ("two a://b:cc@d and e://f:gg@h", "two a://***@d and e://***@h"),
        ("postgresql://ann:p@ss@db/x", "postgresql://***@db/x"),
        ("postgresql://ann:p/ss@db/x", "postgresql://***@db/x"),
        ("postgresql://ann:p://ss@db/x", "postgresql://***@db/x"),
        ("postgresql://ann:pa ss@db/x", "postgresql://***@db/x"),
        ('"postgresql://ann:pa ss@db/x"', '"postgresql://***@db/x"'),
        ("postgresql:/ann:pa55word@db/x", "postgresql:/***@db/x"),
        ("/data/postgresql:/ann:pa55word@db/x", "/data/postgresql:/***@db/x"),
        ("https://db/x\nann@mail", "https://db/x\nann@mail"),
        ("/data/a@b.csv, C:\\x@y", "/data/a@b.csv, C:\\x@y"),
    ],
)
def test_text(text: str, expected: str) -> None:
    assert REDACTOR.text(text) == expected


def test_data_is_redacted_at_every_depth() -> None:
    data: dict[str, Any] = {"a": ["x hunter22", {"c": "hunter22"}], "n": 5, "b": True, "z": None}
    assert REDACTOR.data(data) == {"a": ["x ***", {"c": "***"}], "n": 5, "b": True, "z": None}


def test_names_of_members_are_redacted_only_where_the_user_gives_them() -> None:
    data = {"rows": 1, "parameters": {"rows": {"rows": 2}}, "columns": [{"rows": 3}]}
    assert Redactor({"rows"}).data(data) == {"rows": 1, "parameters": {"***": {"rows": 2}}, "columns": [{"rows": 3}]}


def test_own_members_stay_whole() -> None:
    redactor = Redactor({"runs"})
    assert redactor.data({"run_folder": "/x/runs/1", "text": "/x/runs/1"}) == {
        "run_folder": "/x/runs/1",
        "text": "/x/***/1",
    }


@pytest.mark.parametrize("name", ["kind", "status", "at", "event", "run_id", "run_folder"])
def test_what_a_user_calls_as_we_call_our_own_is_redacted(name: str) -> None:
    document = {"kind": "secret", "parameters": {name: "a secret"}}
    assert Redactor(["secret"]).data(document) == {"kind": "secret", "parameters": {name: "a ***"}}


def test_an_error_is_redacted_in_place() -> None:
    error = TargetError("x hunter22", at={"url": "a://b:cc@d"}, found="hunter22", expected="hunter22", hint="hunter22")
    error.server = {"sqlstate": "22P02", "message": 'invalid input syntax for type integer: "hunter22"'}
    same = REDACTOR.error(error)
    assert same is error
    assert "hunter22" not in same.render() + str(same) + repr(same) + str(same.to_dict())
    assert same.server is not None and same.server["sqlstate"] == "22P02"
    assert same.at == {"url": "a://***@d"}


def test_what_users_call_otherwise() -> None:
    redactor = Redactor({"hunter22"}, {"/runs/1/replay/repair.csv": "/data/hunter22/repair.csv"})
    assert redactor.text("/runs/1/replay/repair.csv, row 3") == "/data/***/repair.csv, row 3"
    assert redactor.data({"run_folder": "/runs/1", "files": ["/runs/1/replay/repair.csv"]}) == {
        "run_folder": "/runs/1",
        "files": ["/data/***/repair.csv"],
    }


@pytest.mark.parametrize(
    ("text", "is_hidden"),
    [
        ("postgresql://ann@db/x", False),
        ("https://db/x?mail=ann@db", False),
        ("postgresql://ann:pa55word@db/x", True),
        ("postgresql://:p/ss@db/x", True),
        ("hunter22", True),
    ],
)
def test_what_is_not_stored(text: str, is_hidden: bool) -> None:
    """A user is not shown in a URL, but is no secret: `resume` finds such options in the run folder."""
    assert REDACTOR.hides(text) is is_hidden


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("hunter22", {"hunter22"}),
        (" hunter22\n", {"hunter22"}),
        ("one line\nand another", {"one line\nand another", "one line", "and another"}),
        ("abc", set()),
        ("/data/in//north/../south/", {"/data/in//north/../south/", "/data/in/south"}),
        ("postgresql://ann:pw@db/x", {"postgresql://ann:pw@db/x", "postgresql:/ann:pw@db/x"}),
        ("data/", {"data/"}),
    ],
)
def test_what_is_hidden_for_a_value_from_outside(value: str, expected: set[str]) -> None:
    assert secret_texts(value) == expected
