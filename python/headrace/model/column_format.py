"""Formats of columns: how the texts of a column are written where that is not the one form of its type."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal, get_args

from pydantic import AfterValidator, BeforeValidator, Field

from headrace.model.column_format_months import Locale
from headrace.model.data_type import DataType
from headrace.model.settings import ONE_OR_MANY, SpecModel, own_error, setting
from headrace.model.suggest import did_you_mean, one_of, quote

MAXIMUM_MARK_CHARACTERS: Final = 4
MAXIMUM_GROUP_DIGITS: Final = 9
MAXIMUM_PATTERNS: Final = 16

TEMPORAL_KINDS: Final = ("date", "time", "timestamp", "timestamptz")
NUMBER_KINDS: Final = ("int16", "int32", "int64", "decimal", "float32", "float64")


def _check_mark(mark: str) -> str:
    is_part = any(character.isascii() and (character.isalnum() or character in "+-()") for character in mark)
    if not 0 < len(mark) <= MAXIMUM_MARK_CHARACTERS or is_part or any(character in mark for character in "\0\r\n"):
        raise own_error(
            f"{quote(mark)} cannot be a mark in numbers",
            expected=f"1 to {MAXIMUM_MARK_CHARACTERS} characters without letters, digits, signs, parentheses and "
            "line breaks",
        )
    return mark


Mark = Annotated[str, AfterValidator(_check_mark)]


def _one_as_list(value: object) -> object:
    return [value] if isinstance(value, str) else value


class GroupFormat(SpecModel):
    """Groups of digits before the decimal mark."""

    mark: Mark = setting('The text between two groups, such as "." or "\\u202f".')
    sizes: list[Annotated[int, Field(ge=1, le=MAXIMUM_GROUP_DIGITS)]] = setting(
        "Digits of the groups from the decimal mark on; the last size is that of all others.",
        default=[3],
        min_length=1,
        max_length=MAXIMUM_GROUP_DIGITS,
    )
    optional: bool = setting("Whether a number may also have no group mark at all.", default=True)


class MonthNames(SpecModel):
    """Names of the twelve months."""

    short: list[str] = setting("The twelve names that `MMM` stands for.", default=[])
    long: list[str] = setting("The twelve names that `MMMM` stands for.", default=[])


Negative = Literal["minus", "trailing_minus", "parentheses"]


def _check_negative(forms: list[str]) -> list[str]:
    for number, form in enumerate(forms):
        if form not in get_args(Negative):
            raise own_error(
                f"{quote(form)} is no way to write negative numbers",
                expected=one_of(get_args(Negative)),
                hint=did_you_mean(form, get_args(Negative)),
                path=(number,),
            )
    return forms


class ColumnFormat(SpecModel):
    """How the texts of a column are written."""

    decimal: Mark = setting("Numbers: the decimal mark.", default=".")
    group: Annotated[
        GroupFormat | None,
        BeforeValidator(
            lambda value: {"mark": value} if isinstance(value, str) else value,
            json_schema_input_type=str | GroupFormat | None,
        ),
    ] = setting("Numbers: the mark between groups of three digits, or a mapping.", default=None)
    currency: Annotated[
        list[str], ONE_OR_MANY, BeforeValidator(_one_as_list, json_schema_input_type=str | list[str])
    ] = setting("Numbers: texts that may stand before or behind a number, also with blanks between.", default=[])
    negative: Annotated[
        list[str],
        ONE_OR_MANY,
        BeforeValidator(_one_as_list, json_schema_input_type=Negative | list[Negative]),
        AfterValidator(_check_negative),
    ] = setting("Numbers: how negative ones are written: -5, 5- or (5).", default=["minus"])
    scientific: bool | None = setting(
        "Numbers: whether an exponent may follow, as in 1.5e3; those of floating point have it anyway.", default=None
    )
    hex: bool = setting("Whole numbers: whether the digits are hexadecimal; 0x in front is optional.", default=False)
    pattern: Annotated[
        list[str], ONE_OR_MANY, BeforeValidator(_one_as_list, json_schema_input_type=str | list[str])
    ] = setting("Dates and times: a pattern such as dd.MM.yyyy, or several.", default=[], max_length=MAXIMUM_PATTERNS)
    pivot: int | None = setting(
        "Dates: the first of the hundred years that `yy` can mean; 1950: 50 is 1950, 49 is 2049.",
        default=None,
        ge=1,
        le=9900,
    )
    locale: Locale | None = setting("Dates: the language of the names of months.", default=None)
    months: MonthNames | None = setting("Dates: the names of months, if they are of no such language.", default=None)
    offset: str | None = setting(
        "timestamptz: the offset from UTC of texts that do not give it, as +01:00.", default=None
    )
    epoch: Literal["s", "ms", "us"] | None = setting(
        "Timestamps: numbers of seconds, milliseconds or microseconds since 1970-01-01 UTC.", default=None
    )
    true: Annotated[list[str], ONE_OR_MANY, BeforeValidator(_one_as_list, json_schema_input_type=str | list[str])] = (
        setting("Truth values: the texts that mean true, in any case.", default=[])
    )
    false: Annotated[list[str], ONE_OR_MANY, BeforeValidator(_one_as_list, json_schema_input_type=str | list[str])] = (
        setting("Truth values: the texts that mean false, in any case.", default=[])
    )


def _as_mapping(value: object) -> object:
    """A pattern, or a list of patterns, as the mapping that it stands for."""
    if isinstance(value, (str, list)):
        return {"pattern": value}
    if value is None or isinstance(value, (Mapping, ColumnFormat)):
        return value
    raise own_error("this cannot be a format", expected="a pattern such as dd.MM.yyyy, a list of them, or a mapping")


FormatSetting = Annotated[
    ColumnFormat | None,
    BeforeValidator(_as_mapping, json_schema_input_type=str | list[str] | ColumnFormat | None),
]

# What each key belongs to.
_NUMBER_KEYS: Final = ("decimal", "group", "currency", "negative", "scientific", "hex")
_TEMPORAL_KEYS: Final = ("pattern", "pivot", "locale", "months", "offset", "epoch")
_TRUTH_KEYS: Final = ("true", "false")


class Formats(SpecModel):
    """Formats of all columns of a type that have none of their own."""

    number: FormatSetting = setting("Of whole numbers, decimals and floating-point numbers.", default=None)
    date: FormatSetting = setting("Of type date.", default=None)
    time: FormatSetting = setting("Of type time.", default=None)
    timestamp: FormatSetting = setting("Of type timestamp.", default=None)
    timestamptz: FormatSetting = setting("Of type timestamptz.", default=None)
    boolean: FormatSetting = setting("Of type bool.", default=None)

    def key_of(self, data_type: DataType) -> str | None:
        """The key that a column of the type takes its format from, if that is given."""
        key = "number" if data_type.kind in NUMBER_KINDS else "boolean" if data_type.kind == "bool" else data_type.kind
        return key if key in Formats.model_fields and getattr(self, key) is not None else None


def keys_of(kind: str) -> tuple[str, ...]:
    """The keys of a format that mean something for a kind of type."""
    if kind in NUMBER_KINDS:
        return _NUMBER_KEYS
    if kind in TEMPORAL_KINDS:
        return _TEMPORAL_KEYS
    return _TRUTH_KEYS if kind == "bool" else ()


def given(column_format: ColumnFormat) -> list[str]:
    """The keys that the layout gives."""
    return [name for name in type(column_format).model_fields if name in column_format.model_fields_set]


def offset_minutes(text: str) -> int | None:
    """Minutes east of UTC; None for a text that is no offset."""
    match = re.fullmatch(r"(?P<sign>[+-])(?P<hours>[0-9]{2}):?(?P<minutes>[0-9]{2})?", text)
    if text in ("Z", "z"):
        return 0
    if match is None or (hours := int(match["hours"])) > 15 or (minutes := int(match["minutes"] or "0")) > 59:
        return None
    return (60 * hours + minutes) * (-1 if match["sign"] == "-" else 1)


def to_core(column_format: ColumnFormat, data_type: DataType, months: Mapping[str, Any]) -> dict[str, Any] | None:
    """The format as the Rust core reads it; None if it is what the type has anyway. `months`: names of months."""
    if data_type.kind == "bool":
        return {"kind": "truth", "true": column_format.true, "false": column_format.false}
    if data_type.kind in NUMBER_KINDS:
        return _number_to_core(column_format, data_type)
    if column_format.epoch is not None:
        return {"kind": "epoch", "unit": column_format.epoch}
    offset = None if column_format.offset is None else offset_minutes(column_format.offset)
    return {
        "kind": "patterns",
        "patterns": column_format.pattern,
        **({} if column_format.pivot is None else {"pivot": column_format.pivot}),
        **months,
        **({} if offset is None else {"offset_minutes": offset}),
    }


def _number_to_core(column_format: ColumnFormat, data_type: DataType) -> dict[str, Any] | None:
    is_floating = data_type.kind in ("float32", "float64")
    scientific = is_floating if column_format.scientific is None else column_format.scientific
    number = {
        "kind": "number",
        "decimal": column_format.decimal,
        "group": None if column_format.group is None else column_format.group.model_dump(),
        "currency": column_format.currency,
        "negative": column_format.negative,
        "scientific": scientific,
        "hex": column_format.hex,
    }
    plain = {**number, "group": None, "currency": [], "negative": ["minus"], "scientific": is_floating, "hex": False}
    has_mark = data_type.kind not in ("int16", "int32", "int64")
    return None if number == plain and (column_format.decimal == "." or not has_mark) else number
