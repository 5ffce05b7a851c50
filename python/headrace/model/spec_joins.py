"""The model of a join: rows of two sources, or of other joins, that are in the order of their keys meet."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, model_validator

from headrace.model.settings import SettingKind, SpecModel, own_error, setting
from headrace.model.suggest import show_name
from headrace.model.taken_columns import TakenColumns

JoinType = Literal["inner", "left", "right", "full"]
_SETTING = SettingKind.SETTING


def _check_keys(keys: object) -> object:
    if isinstance(keys, list):
        raise own_error(
            "it is not said which columns are compared",
            expected="column of the left rows: column of the right rows",
            hint="Write both names, also if they are the same: `on: {name: name}`.",
        )
    if isinstance(keys, Mapping) and not keys:
        raise own_error(
            "the join has no key",
            expected="column of the left rows: column of the right rows",
            hint="Name the key columns in the order in which the files are sorted.",
        )
    return keys


class JoinSpec(SpecModel):
    """Rows of two sources of files, side by side where their keys are equal; a side may be the rows of another join.

    The rows of both sides are in the order of the key, which is proven as they are read, and a left key comes once.
    The files of the sources are pairs, in the order of their names, and a key stands in one pair only. Each pair is
    joined by one stream, in the memory of two blocks. The rows of a join are in the order of its key; with several
    joins the first files of all sources belong together, then the second ones.
    """

    left: str = setting(
        "Name of the source in which each key comes once, such as orders; or of a transform, or one of its outputs, in "
        "front of the join, whose rows are all of one source or have all come out of one other join; or of that join.",
        kind=_SETTING,
    )
    right: str = setting(
        "The same of the rows in which a key comes any number of times, such as the lines of orders.", kind=_SETTING
    )
    on: Annotated[dict[str, str], BeforeValidator(_check_keys)] = setting(
        "The key: column of the left rows: column of the right rows, in the order in which the files are sorted: by "
        "the first column, then by the second one. Numbers and times ascend by value, texts by the bytes of their "
        "UTF-8. A row that has NULL in one of them may stand anywhere, and matches nothing.",
        kind=_SETTING,
    )
    type: JoinType = setting(
        "Which rows go on: those that have met (`inner`), and those of one side or both that have met none, with NULL "
        "in place of the other side.",
        default="inner",
        kind=_SETTING,
    )
    left_columns: TakenColumns = setting(
        "The columns that go on of the left rows. New name: column; or a list of columns that keep their names. "
        "Without it all of them.",
        default=None,
        kind=_SETTING,
    )
    right_columns: TakenColumns = setting(
        "The same of the right rows.",
        default=None,
        kind=_SETTING,
    )

    @model_validator(mode="before")
    @classmethod
    def _check_sides(cls, value: object) -> object:
        if isinstance(value, Mapping) and "left" in value and value.get("left") == value.get("right"):
            raise own_error(
                f"both sides of the join are the source `{show_name(str(value['left']))}`",
                expected="two sources",
                hint="Declare the files once more as another source.",
                path=("right",),
            )
        return value


class JoinTransformSpec(SpecModel):
    """Rows of two sources meet."""

    join: JoinSpec = setting("Rows of two sources of files that are in the order of their keys.")

    @model_validator(mode="before")
    @classmethod
    def _check_no_input(cls, value: Any) -> Any:
        if isinstance(value, Mapping) and "input" in value:
            raise own_error(
                "a join has no `input`: `left` and `right` name the rows that it reads",
                expected="`join` alone",
                hint="Remove `input`.",
                path=("input",),
            )
        return value
