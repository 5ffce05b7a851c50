"""The models of unions: rows of several sources, or that have gone different ways, go one way on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, model_validator

from headrace.model.settings import SettingKind, SpecModel, own_error, setting
from headrace.model.suggest import show_name

_SETTING = SettingKind.SETTING


def _check(names: list[str], noun: str, twice: str, itself: str) -> list[str]:
    """Two or more, each once. `twice`: what that would mean; `itself`: as what the only one is read instead."""
    for number, name in enumerate(names):
        if name in names[:number]:
            raise own_error(
                f"the {noun} `{show_name(name)}` stands in the union twice{twice}",
                expected=f"each {noun} once",
                hint="Remove one of them.",
                path=(number,),
            )
    if len(names) < 2:
        raise own_error(
            f"the union has {'one' if names else 'no'} {noun}",
            expected=f"two {noun}s or more",
            hint=f"Let the next transform, or the destination, read {itself}." if names else f"Name the {noun}s.",
        )
    return names


def _check_sources(sources: list[str]) -> list[str]:
    return _check(sources, "source", "", "the source itself")


def _check_inputs(inputs: list[str]) -> list[str]:
    return _check(inputs, "input", ", and its rows would come twice", "it itself")


def _null_is_a_word(value: object) -> object:
    """YAML's own null is what `missing: null` says."""
    return "null" if value is None else value


class UnionSpec(SpecModel):
    """Rows of several sources of files, whatever their layouts.

    Columns are matched by their names, without regard to case, and have the types, the order and the names of the first
    source that has them.
    """

    sources: Annotated[list[str], AfterValidator(_check_sources)] = setting(
        "Names of the sources, two or more, all of them of files. The columns come in the order of the first one.",
        kind=_SETTING,
    )
    missing: Annotated[Literal["error", "null"], BeforeValidator(_null_is_a_word)] = setting(
        "What a column is that one of the sources has not: an error, or NULL in the rows of that source.",
        default="error",
        kind=_SETTING,
    )


class ReunionSpec(SpecModel):
    """Rows that have gone different ways behind splits and lookups, or that are of different sources.

    Columns are matched by their names, without regard to case, and have the order and the names of the first input that
    has them.
    """

    inputs: Annotated[list[str], AfterValidator(_check_inputs)] = setting(
        "Names of transforms, two or more, or `name.output` for one of several outputs. No row may come by two of "
        "them: they part at different outputs of one split or lookup, or are of different sources, of each source one; "
        "then a source itself may stand among them, too. Types of columns of one name are equal; of texts "
        "the longest one is taken.",
        kind=_SETTING,
    )
    missing: Annotated[Literal["error", "null"], BeforeValidator(_null_is_a_word)] = setting(
        "What a column is that one of the inputs has not: an error, or NULL in its rows.",
        default="error",
        kind=_SETTING,
    )


def _check_no_input(value: Any) -> Any:
    if isinstance(value, Mapping) and "input" in value:
        raise own_error(
            "a union has no `input`: `sources` or `inputs` in it names what it reads",
            expected="`union` alone",
            hint="Remove `input`.",
            path=("input",),
        )
    return value


class UnionTransformSpec(SpecModel):
    """Rows of several sources go one way on."""

    union: UnionSpec = setting("Rows of several sources of files, whatever their layouts.")

    _no_input = model_validator(mode="before")(_check_no_input)


class ReunionTransformSpec(SpecModel):
    """Rows that have gone different ways, or are of different sources, go one way on."""

    union: ReunionSpec = setting("Rows that have gone different ways, in the order in which they came.")

    _no_input = model_validator(mode="before")(_check_no_input)
