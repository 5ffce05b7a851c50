"""A column of a layout: its type, and what its fields stand for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal, Self

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    PlainSerializer,
    PlainValidator,
    WithJsonSchema,
    model_validator,
)

from headrace.model.column_format import FormatSetting
from headrace.model.column_format_checks import check_format
from headrace.model.data_type import DataType, DataTypeError
from headrace.model.made_column import MadeFrom, check_made
from headrace.model.settings import SpecModel, errors_below, own_error, setting
from headrace.model.suggest import quote, show_name

MAXIMUM_COLUMN_NAME_CHARACTERS = 255
MAXIMUM_TOKEN_CHARACTERS = 16

TYPE_PATTERN = (
    r"^(int16|int32|int64|float32|float64|bool|date|time|timestamp|timestamptz|string|bytes|uuid|json"
    r"|decimal\( *[0-9]+ *, *[0-9]+ *\)|(var)?char\( *[0-9]+ *\))$"
)


def _parse_type(value: object) -> DataType:
    if isinstance(value, DataType):
        return value
    if not isinstance(value, str):
        raise own_error("a type must be text", expected="a type such as int64 or decimal(15,2)")
    try:
        return DataType.parse(value)
    except DataTypeError as error:
        raise own_error(error.what, expected=error.expected, hint=error.hint) from error


TypeSetting = Annotated[
    DataType,
    PlainValidator(_parse_type),
    PlainSerializer(str, return_type=str),
    WithJsonSchema({"type": "string", "pattern": TYPE_PATTERN}),
]


def check_column_name(name: str) -> str:
    """Raises an own error unless a column can be called so."""
    if not name or len(name) > MAXIMUM_COLUMN_NAME_CHARACTERS or any(ord(character) < 32 for character in name):
        raise own_error(
            "this cannot be the name of a column",
            expected=f"1 to {MAXIMUM_COLUMN_NAME_CHARACTERS} characters without control characters",
        )
    return name


def _check_delimiter(delimiter: str) -> str:
    expected = (
        f"1 to {MAXIMUM_TOKEN_CHARACTERS} characters, not only letters and digits, without NUL, no line break alone"
    )
    if delimiter == "\\t":
        raise own_error(
            "the delimiter is a backslash and a t", expected=expected, hint='For a tab write "\\t" in double quotes.'
        )
    if not 0 < len(delimiter) <= MAXIMUM_TOKEN_CHARACTERS:
        raise own_error(f"the delimiter has {len(delimiter)} characters", expected=expected)
    if delimiter.isalnum() or "\0" in delimiter or delimiter in ("\r", "\n", "\r\n"):
        raise own_error(f"{quote(delimiter)} cannot be the delimiter", expected=expected)
    return delimiter


DelimiterSetting = Annotated[str, AfterValidator(_check_delimiter)]


def _check_null_tokens(tokens: list[str]) -> list[str]:
    for number, token in enumerate(tokens):
        if any(character in token for character in "\r\n\0"):
            raise own_error(
                f"the null token {quote(token)} cannot stand in a field",
                expected="texts without line breaks and NUL",
                path=(number,),
            )
        if token in tokens[:number]:
            raise own_error(f"the null token {quote(token)} is given twice", expected="each token once", path=(number,))
    return tokens


class EmptyValue(SpecModel):
    """The text that empty fields stand for."""

    value: Annotated[str, Field(min_length=1)] = setting("The text that is read in the place of an empty field.")


def _null_is_a_word(value: object) -> object:
    """YAML's own null is what `empty: null` says."""
    return "null" if value is None else value


def _check_empty(value: object) -> object:
    """One error for what is neither a word nor a value: the members of the union would each report their own."""
    if value is None:
        return "null"  # YAML's own
    if isinstance(value, EmptyValue) or value in ("null", "text"):
        return value
    text: object = value
    path: tuple[str, ...] = ()
    if isinstance(value, Mapping):
        text, path = value.get("value"), ("value",) * ("value" in value)
        if set(value) == {"value"} and isinstance(text, str) and text:
            return value
    raise own_error(
        "this is not what an empty field can stand for",
        expected="null, text, or the key value with a text that is not empty",
        hint=f"A text to be read in its place: `empty: {{value: {quote(str(text))}}}`." if _is_plain(text) else None,
        path=path,
    )


def _is_plain(value: object) -> bool:
    return isinstance(value, str | int | float) and not isinstance(value, bool) and value != ""


DispositionSetting = Literal["redirect", "fail", "ignore"]
TrimSetting = Literal["none", "left", "right", "both"]
EmptySetting = Annotated[Literal["null", "text"] | EmptyValue, BeforeValidator(_check_empty)]
OwnEmptySetting = Annotated[Literal["null", "text"] | EmptyValue | None, BeforeValidator(_check_empty)]
QualifiedEmptySetting = Annotated[Literal["text", "null"], BeforeValidator(_null_is_a_word)]
NullTokensSetting = Annotated[list[str], AfterValidator(_check_null_tokens)]


class Column(SpecModel):
    """One column of a flat file."""

    name: Annotated[str, AfterValidator(check_column_name)] = setting("Name of the column, unique in the layout.")
    type: TypeSetting = setting(
        "int16, int32, int64, decimal(p,s), float32, float64, bool, date, time, timestamp, timestamptz, string, "
        "char(n), varchar(n), bytes, uuid or json."
    )
    nullable: bool = setting("Whether the column may be null; a null in a column that may not be rejects the row.",
                             default=True)  # fmt: skip
    from_: MadeFrom | None = setting(
        "What the column says of its row, instead of a field of the file: file_name or file_path (string), row_number, "
        "byte_offset or slice (int64), load_time (timestamptz), the start of the run, run_id or package_hash (string).",
        default=None,
        alias="from",
    )
    start: int | None = setting(
        "With `shape: fixed_width` or `ragged_right`, where the column begins, from 1; without it, behind the column "
        "before it.",
        default=None,
        ge=1,
    )
    width: int | None = setting(
        "With `shape: fixed_width` or `ragged_right`, how wide the column is; without it, up to the start of the next.",
        default=None,
        ge=1,
    )
    delimiter: DelimiterSetting | None = setting(
        "What stands between this column and the next, if not the delimiter of the layout.", default=None
    )
    qualified: bool = setting(
        "Whether the qualifier of the layout means anything in this column; otherwise it is text.", default=True
    )
    trim: TrimSetting | None = setting("As in the layout, for this column.", default=None)
    empty: OwnEmptySetting = setting("As in the layout, for this column.", default=None)
    qualified_empty: QualifiedEmptySetting | None = setting("As in the layout, for this column.", default=None)
    null_tokens: NullTokensSetting | None = setting("As in the layout, for this column.", default=None)
    qualified_null_tokens: bool | None = setting("As in the layout, for this column.", default=None)
    on_error: DispositionSetting | None = setting("As in the layout, for this column.", default=None)
    on_truncation: DispositionSetting | None = setting("As in the layout, for this column.", default=None)
    format: FormatSetting = setting(
        "How the texts are written: a pattern such as dd.MM.yyyy, a list of patterns, or a mapping.", default=None
    )

    @model_validator(mode="after")
    def _check_made(self) -> Self:
        check_made(self)
        return self

    @model_validator(mode="after")
    def _check_format(self) -> Self:
        if self.format is not None:
            with errors_below("format"):
                check_format(self.format, self.type.kind)
        return self


def check_columns(columns: list[Column]) -> list[Column]:
    if not columns:
        raise own_error("the layout has no columns", expected="at least one column")
    if all(column.from_ for column in columns):
        raise own_error(
            "all columns of the layout are made, and none is read from the file",
            expected="at least one column without `from`",
        )
    seen: dict[str, int] = {}
    for number, column in enumerate(columns, start=1):
        # Databases compare names of columns without regard to case.
        first = seen.setdefault(column.name.lower(), number)
        if first != number:
            raise own_error(
                f"column {number} has the name of column {first}: `{show_name(column.name)}`",
                expected="different names (upper and lower case are the same)",
                hint="Rename one of the two.",
                path=(number - 1, "name"),
            )
    return columns
