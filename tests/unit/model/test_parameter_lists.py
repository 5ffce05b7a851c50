"""Values of parameters on the command line."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.model.parameter_values import ParameterValueError, split_list, value_from_text
from headrace.model.spec import ParameterSpec

FOLDER = Path("/somewhere")
ITEMS = st.text(st.characters(exclude_characters=","), min_size=1).filter(lambda text: text == text.strip())


@given(st.lists(ITEMS, min_size=1))
def test_a_joined_list_is_split_into_its_items(items: list[str]) -> None:
    assert split_list(",".join(items)) == items


@given(st.lists(ITEMS, min_size=1), st.sampled_from([" ", "  ", "\t"]))
def test_blanks_around_items_do_not_count(items: list[str], blanks: str) -> None:
    assert split_list(f"{blanks},{blanks}".join(items)) == items


@pytest.mark.parametrize("text", ["", " "])
def test_an_empty_text_is_an_empty_list(text: str) -> None:
    assert split_list(text) == []


@pytest.mark.parametrize("text", [",", "a,", ",a", "a,,b", "a, ,b"])
def test_an_empty_item_is_refused(text: str) -> None:
    with pytest.raises(ParameterValueError):
        split_list(text)


@given(st.lists(st.integers(-(10**30), 10**30), min_size=1))
def test_lists_of_integers(numbers: list[int]) -> None:
    spec = ParameterSpec(type="list", items="integer")
    assert value_from_text(spec, ",".join(map(str, numbers)), FOLDER) == numbers


@given(st.lists(st.dates(date(1000, 1, 1)), min_size=1))
def test_lists_of_dates(days: list[date]) -> None:
    spec = ParameterSpec(type="list", items="date")
    assert value_from_text(spec, ",".join(map(str, days)), FOLDER) == days


@given(st.text(), st.sampled_from(["string", "integer", "decimal", "boolean", "date", "path", "list"]))
def test_any_text_gives_a_value_or_a_refusal(text: str, kind: str) -> None:
    try:
        value_from_text(ParameterSpec(type=kind), text, FOLDER)  # type: ignore[arg-type]
    except ParameterValueError as error:
        assert error.expected
