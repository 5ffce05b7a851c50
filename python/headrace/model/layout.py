"""The layout of a flat file: dialect, columns and their types."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Annotated, Any, Self

from pydantic import AfterValidator, PlainSerializer, PlainValidator, WithJsonSchema, model_validator

from headrace.model.data_type import DataType, DataTypeError
from headrace.model.settings import SettingKind, SpecModel, own_error, setting
from headrace.model.suggest import quote, show_name

MAXIMUM_HEADER_ROWS = 1_000_000
MAXIMUM_COLUMN_NAME_CHARACTERS = 255

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


def _check_column_name(name: str) -> str:
    if not name or len(name) > MAXIMUM_COLUMN_NAME_CHARACTERS or any(ord(character) < 32 for character in name):
        raise own_error(
            "this cannot be the name of a column",
            expected=f"1 to {MAXIMUM_COLUMN_NAME_CHARACTERS} characters without control characters",
        )
    return name


class Column(SpecModel):
    """One column of a flat file."""

    name: Annotated[str, AfterValidator(_check_column_name)] = setting("Name of the column, unique in the layout.")
    type: TypeSetting = setting(
        "int16, int32, int64, decimal(p,s), float32, float64, bool, date, time, timestamp, timestamptz, string, "
        "char(n), varchar(n), bytes, uuid or json."
    )
    nullable: bool = setting("Whether the column may be null; a null in a column that may not be rejects the row.",
                             default=True)  # fmt: skip


def _check_delimiter(delimiter: str) -> str:
    expected = "one ASCII character that is not a letter, digit, quotation mark, line break or NUL"
    if delimiter == "\\t":
        raise own_error(
            "the delimiter is two characters", expected=expected, hint='For a tab write "\\t" in double quotes.'
        )
    if len(delimiter) != 1:
        raise own_error("the delimiter must be one character", expected=expected)
    if not delimiter.isascii() or delimiter.isalnum() or delimiter in '"\r\n\0':
        raise own_error(f"{quote(delimiter)} cannot be the delimiter", expected=expected)
    return delimiter


def _check_qualifier(qualifier: str) -> str:
    expected = "one ASCII character that is not a letter, digit, blank, line break or NUL"
    if len(qualifier) != 1:
        raise own_error(
            "the qualifier must be one character",
            expected=expected,
            hint="Leave `qualifier` out if the fields of these files stand in no quotes." if not qualifier else None,
        )
    if not qualifier.isascii() or qualifier.isalnum() or qualifier in " \r\n\0":
        raise own_error(f"{quote(qualifier)} cannot be the qualifier", expected=expected)
    return qualifier


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


def _check_columns(columns: list[Column]) -> list[Column]:
    if not columns:
        raise own_error("the layout has no columns", expected="at least one column")
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


class Layout(SpecModel):
    """Dialect and columns of a flat file. Rows end with LF or CRLF."""

    delimiter: Annotated[str, AfterValidator(_check_delimiter)] = setting(
        "The one byte between two fields.", kind=SettingKind.VALUE
    )
    qualifier: Annotated[str, AfterValidator(_check_qualifier)] | None = setting(
        "The character that a field may stand between, so that delimiters and line breaks in it are text.",
        default=None,
        kind=SettingKind.VALUE,
    )
    trailing_delimiter: bool = setting(
        "Whether a delimiter also follows the last field of a row.", default=False, kind=SettingKind.VALUE
    )
    header_rows: int = setting(
        "Rows to skip at the start of each file.",
        default=0,
        kind=SettingKind.VALUE,
        ge=0,
        le=MAXIMUM_HEADER_ROWS,
    )
    null_tokens: Annotated[list[str], AfterValidator(_check_null_tokens)] = setting(
        "Texts that mean null in every column, besides the empty field.",
        default_factory=list,
        kind=SettingKind.VALUE,
    )
    columns: Annotated[list[Column], AfterValidator(_check_columns)] = setting("The columns in the order of the file.")

    @model_validator(mode="after")
    def _check_together(self) -> Self:
        if self.qualifier is None:
            return self
        if self.qualifier == self.delimiter:
            raise own_error(
                f"{quote(self.qualifier)} is the delimiter and the qualifier",
                expected="two different characters",
                path=("qualifier",),
            )
        for number, token in enumerate(self.null_tokens):
            if token.startswith(self.qualifier):
                raise own_error(
                    f"the null token {quote(token)} begins with the qualifier, and a qualified field is never null",
                    expected="texts as they stand in unqualified fields",
                    path=("null_tokens", number),
                )
        return self

    def column_names(self) -> list[str]:
        """Names of the columns in the order of the file."""
        return [column.name for column in self.columns]

    def to_core(
        self, columns_not_null: Collection[str] = (), types: Mapping[str, DataType] | None = None
    ) -> dict[str, Any]:
        """The layout as the Rust core reads it; `columns_not_null` are those that the target forbids to be null.

        `types`: by column, where the target allows less than the layout.
        """
        return {
            "delimiter": self.delimiter,
            "qualifier": self.qualifier,
            "trailing_delimiter": self.trailing_delimiter,
            "header_rows": self.header_rows,
            "null_tokens": list(self.null_tokens),
            "columns": [
                {
                    "name": column.name,
                    "type": (types or {}).get(column.name, column.type).to_core(),
                    "nullable": column.nullable and column.name not in columns_not_null,
                }
                for column in self.columns
            ],
        }


class LayoutFile(SpecModel):
    """A layout that stands in a file of its own."""

    file: str = setting("Path of the layout file, relative to the package file.", kind=SettingKind.VALUE, min_length=1)
