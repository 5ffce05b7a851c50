"""Python values in place of texts."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

import pytest

import headrace
from headrace.api.request import Options
from headrace.api.values import option_text

TYPES = {
    "text": ("string", "a,b = c"),
    "number": ("integer", -7),
    "share": ("decimal", Decimal("1E-10")),
    "yes": ("boolean", True),
    "day": ("date", date(2024, 2, 29)),
    "since": ("timestamp", datetime(2024, 2, 29, 1, 2, 3, 40)),
    "place": ("path", Path("/data/x y")),
    "names": ("list", ["a", "b c"]),
}


def package() -> headrace.Package:
    built = headrace.Package("p")
    for name, (kind, _) in TYPES.items():
        built.parameter(name, type=kind)
    built.parameter("days", type="list", items="date")
    built.file("t", create="x")
    return built


def test_values_arrive_with_their_types() -> None:
    given = {name: value for name, (_, value) in TYPES.items()}
    bound = package()._request(Options.of({**given, "days": [date(2024, 1, 1)]}, None, streams=3)).bind()
    assert bound.parameters == {**given, "place": "/data/x y", "days": [date(2024, 1, 1)]}
    assert [type(value) for value in bound.parameters.values()][:4] == [str, int, Decimal, bool]
    assert bound.streams == 3


@pytest.mark.parametrize(
    "value", [None, b"x", {"a": 1}, ["a,b"], [""], [" a"], [["a"]], float("inf"), datetime(2024, 1, 1, tzinfo=UTC)]
)
def test_values_that_no_parameter_takes(value: object) -> None:
    with pytest.raises(TypeError, match=r"^names"):
        option_text("names", value)


def test_what_is_given_later_counts() -> None:
    built = package()
    assert built.check(parameters={"number": 1})["parameters"]["number"] == 1
    assert built.check()["parameters"]["number"] is None
    with pytest.raises(headrace.HeadraceError, match="no parameter `numbr`"):
        built.check(parameters={"numbr": 1})
    with pytest.raises(headrace.HeadraceError, match="does not fit the parameter `number`"):
        built.check(parameters={"number": "x"})
