"""Values of variables by the containers that they belong to."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal

import pytest

from headrace.errors import ExpressionFailedError, InternalError
from headrace.model import Scope, Variable
from headrace.run.control.frames import Frame


def variable(name: str, kind: str, items: str = "string", *, is_secret: bool = False) -> Variable:
    return Variable(name, kind, items, ("variables", name), is_secret=is_secret)


def package_frame(secrets: set[str] | None = None) -> Frame:
    scope = Scope({"day": date(2026, 1, 31)}, {"day": "DATE"}, {}, {"user": "ann"})
    frame = Frame.of_package(scope, set() if secrets is None else secrets)
    frame.declare(variable("n", "integer"), 1)
    return frame


def test_inner_names_are_seen_inside_only() -> None:
    outer = package_frame()
    turn = outer.inside({"file": "a.csv"}, {"file": "VARCHAR"})
    turn.declare(variable("own", "string"), "x")
    scope = turn.scope(task="t")
    assert dict(scope.values) == {"day": date(2026, 1, 31), "file": "a.csv", "n": 1, "own": "x"}
    assert (scope.sql_type("n"), scope.sql_type("file"), scope.sql_type("own")) == ("BIGINT", "VARCHAR", "VARCHAR")
    assert dict(scope.system) == {"user": "ann", "task": "t"}
    assert set(outer.scope().values) == {"day", "n"}
    assert turn.values() == {"file": "a.csv", "n": 1, "own": "x"}


def test_what_is_written_inside_is_noted_up_to_the_owner() -> None:
    outer = package_frame()
    middle = outer.inside()
    middle.declare(variable("m", "integer"), 0)
    inner = middle.inside()
    inner.assign("n", 5)
    inner.assign("m", 6)
    assert (inner.writes, middle.writes, outer.writes) == ({"n": 5, "m": 6}, {"n": 5}, {})
    assert (outer.value("n"), inner.value("m")) == (5, 6)


def test_facts_of_a_handler_hold_inside_of_it() -> None:
    outer = package_frame()
    handler = outer.inside()
    handler.system = {"event": "error"}
    assert dict(handler.inside().scope().system) == {"user": "ann", "event": "error"}
    assert dict(outer.scope().system) == {"user": "ann"}


@pytest.mark.parametrize(
    ("kind", "items", "value", "held"),
    [
        ("integer", "string", Decimal("7.0"), 7),
        ("decimal", "string", 7, Decimal(7)),
        ("date", "string", datetime(2026, 2, 1), date(2026, 2, 1)),
        ("timestamp", "string", date(2026, 2, 1), datetime(2026, 2, 1)),
        ("list", "integer", (1, 2), [1, 2]),
        ("boolean", "string", None, None),
    ],
)
def test_values_that_lose_nothing_fit(kind: str, items: str, value: object, held: object) -> None:
    frame = package_frame()
    frame.declare(variable("x", kind, items), None)
    assert frame.assign("x", value) == held
    assert type(frame.value("x")) is type(held)


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("integer", Decimal("7.5")),
        ("integer", 2**63),
        ("integer", True),
        ("decimal", Decimal("0.12345678901")),
        ("date", datetime(2026, 2, 1, 12)),
        ("string", 7),
        ("boolean", 1),
        ("list", "text"),
    ],
)
def test_values_that_would_be_changed_do_not(kind: str, value: object) -> None:
    frame = package_frame()
    frame.declare(variable("x", kind), None)
    with pytest.raises(ExpressionFailedError) as raised:
        frame.assign("x", value)
    assert "`x`" in raised.value.what and raised.value.expected


def test_values_of_secret_variables_are_hidden_from_then_on() -> None:
    secrets: set[str] = set()
    frame = package_frame(secrets)
    frame.declare(variable("token", "string", is_secret=True), "first-token")
    frame.inside().assign("token", "second-token")
    assert {"first-token", "second-token"} <= secrets


def test_what_is_no_variable() -> None:
    with pytest.raises(InternalError):
        package_frame().assign("day", date(2026, 2, 1))
