"""The layout of a flat file: dialect and columns."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import partial
from typing import Annotated, Any, Final, Literal, Self

from pydantic import AfterValidator, model_validator

from headrace.model.column_format import ColumnFormat, Formats
from headrace.model.column_format_checks import check_format, month_names, texts_of
from headrace.model.data_type import DataType
from headrace.model.encoding import EncodingSetting, refuse_lacking
from headrace.model.layout_column import (
    MAXIMUM_TOKEN_CHARACTERS,
    Column,
    DelimiterSetting,
    DispositionSetting,
    EmptySetting,
    NullTokensSetting,
    QualifiedEmptySetting,
    TrimSetting,
    check_columns,
)
from headrace.model.layout_for_core import ROW_ENDS, layout_to_core
from headrace.model.layout_places import check_places, places_of, refuse_places
from headrace.model.settings import SettingKind, SpecModel, errors_below, own_error, setting
from headrace.model.suggest import quote, show_name

MAXIMUM_SKIPPED_LINES = 1_000_000
MAXIMUM_FOOTER_ROWS = 100
# UTF-8 of a character that is one byte in a file, as the core makes room for it.
MOST_BYTES_OF_A_BYTE: Final = 3
_WORDS: Final = {"row_end": "row end", "delimiter": "delimiter", "comment": "comment mark"}


def _check_character(character: str, name: str) -> str:
    expected = "one ASCII character that is not a letter, digit, blank, line break or NUL"
    if len(character) != 1:
        raise own_error(
            f"the {name} must be one character",
            expected=expected,
            hint=f"Leave `{name}` out if these files have none." if not character else None,
        )
    if not character.isascii() or character.isalnum() or character in " \r\n\0":
        raise own_error(f"{quote(character)} cannot be the {name}", expected=expected)
    return character


_check_qualifier = partial(_check_character, name="qualifier")
_check_escape = partial(_check_character, name="escape")


def _check_row_end(row_end: str) -> str:
    if row_end == "none":
        return row_end
    expected = f"auto, lf, crlf, cr, or 1 to {MAXIMUM_TOKEN_CHARACTERS} characters without NUL"
    if row_end not in ROW_ENDS and (not 0 < len(row_end) <= MAXIMUM_TOKEN_CHARACTERS or "\0" in row_end):
        raise own_error(f"{quote(row_end)} cannot be the row end", expected=expected)
    if row_end not in ROW_ENDS and row_end.isalnum():
        raise own_error(f"{quote(row_end)} cannot be the row end", expected=expected)
    return row_end


def _check_comment(comment: str) -> str:
    if not 0 < len(comment) <= MAXIMUM_TOKEN_CHARACTERS or any(character in comment for character in "\0\r\n"):
        raise own_error(
            f"{quote(comment)} cannot begin a comment",
            expected=f"1 to {MAXIMUM_TOKEN_CHARACTERS} characters without line breaks and NUL",
        )
    return comment


def _check_formats(formats: Formats) -> Formats:
    for key in Formats.model_fields:
        column_format = getattr(formats, key)
        if column_format is not None:
            with errors_below(key):
                # Decimals: hexadecimal numbers, which they are not, are asked for by their column.
                check_format(column_format, {"number": "decimal", "boolean": "bool"}.get(key, key))
    return formats


class Layout(SpecModel):
    """Dialect and columns of a flat file."""

    encoding: EncodingSetting = setting(
        "How bytes stand for characters: utf-8, utf-16 (with a byte order mark), utf-16le, utf-16be, or the name of a "
        "page of one byte per character.",
        default="utf-8",
        kind=SettingKind.VALUE,
    )
    unmappable: Literal["reject", "replace"] = setting(
        "What happens to bytes that are no character: their row is rejected, or they are read as U+FFFD and counted.",
        default="reject",
        kind=SettingKind.VALUE,
    )
    shape: Literal["delimited", "fixed_width", "ragged_right"] = setting(
        "What tells fields apart: delimiters, their places in the row, or the same with a last column up to the row "
        "end.",
        default="delimited",
        kind=SettingKind.VALUE,
    )
    width_unit: Literal["bytes", "characters"] = setting(
        "What `start` and `width` of columns count.", default="bytes", kind=SettingKind.VALUE
    )
    delimiter: DelimiterSetting | None = setting(
        "The text between two fields; required with `shape: delimited`.", default=None, kind=SettingKind.VALUE
    )
    row_end: Annotated[str, AfterValidator(_check_row_end)] = setting(
        "How rows end: auto (LF or CRLF, each row for itself), lf, crlf, cr, or the text itself; with `shape: "
        "fixed_width` also none.",
        default="auto",
        kind=SettingKind.VALUE,
    )
    mixed_row_ends: Literal["accept", "reject"] = setting(
        "With `row_end: auto`, what happens to rows that end otherwise than the first one.",
        default="accept",
        kind=SettingKind.VALUE,
    )
    row_end_in_fields: Literal["ends_row", "data"] = setting(
        "What a row end is in a field that is not the last one: the end of the row, or data, as bcp reads files.",
        default="ends_row",
        kind=SettingKind.VALUE,
    )
    qualifier: Annotated[str, AfterValidator(_check_qualifier)] | None = setting(
        "The character that a field may stand between, so that delimiters and line breaks in it are text.",
        default=None,
        kind=SettingKind.VALUE,
    )
    stray_qualifiers: Literal["reject", "keep", "lenient"] = setting(
        "What happens to rows with a qualifier that is not around a whole field, and not doubled: reject; keep such "
        "fields as they are in the file; or lenient: it is text, and a qualifier ends a field only before a delimiter "
        "or row end.",
        default="reject",
        kind=SettingKind.VALUE,
    )
    blanks_around_qualifier: bool = setting(
        "Whether blanks and tabs may stand before an opening and behind a closing qualifier; they are no text.",
        default=False,
        kind=SettingKind.VALUE,
    )
    escape: Annotated[str, AfterValidator(_check_escape)] | None = setting(
        "The character that makes the delimiter, row end, qualifier or character behind it text.",
        default=None,
        kind=SettingKind.VALUE,
    )
    escape_codes: Literal["none", "mysql", "postgres"] = setting(
        "Whether letters behind an escape have a meaning, as MySQL or COPY of PostgreSQL writes them.",
        default="none",
        kind=SettingKind.VALUE,
    )
    comment: Annotated[str, AfterValidator(_check_comment)] | None = setting(
        "Rows that begin with this text are skipped.", default=None, kind=SettingKind.VALUE
    )
    blank_rows: Literal["skip", "reject", "keep"] = setting(
        "What happens to rows without a character; of files with one column they are rows, unless they are rejected.",
        default="skip",
        kind=SettingKind.VALUE,
    )
    short_rows: Literal["reject", "fill"] = setting(
        "What happens to rows with fewer fields than columns: reject, or fill them with empty fields.",
        default="reject",
        kind=SettingKind.VALUE,
    )
    extra_fields: Literal["reject", "keep"] = setting(
        "What happens to rows with more fields than columns: reject, or keep: then the last column, a text, is all "
        "that is in the file from its first byte to the row end. With `header: by_name` it is the last field of every "
        "file.",
        default="reject",
        kind=SettingKind.VALUE,
    )
    trailing_delimiter: bool = setting(
        "Whether a delimiter also follows the last field of a row.", default=False, kind=SettingKind.VALUE
    )
    skip_lines: int = setting(
        "Lines to skip at the start of each file, whatever stands in them.",
        default=0,
        kind=SettingKind.VALUE,
        ge=0,
        le=MAXIMUM_SKIPPED_LINES,
    )
    header: Literal["none", "skip", "check", "by_name"] = setting(
        "What the first row of each file is: data, no data, the names of the columns in their order, or names by which "
        "fields are found.",
        default="none",
        kind=SettingKind.VALUE,
    )
    other_columns: Literal["refuse", "ignore"] = setting(
        "With `header: by_name`, what happens to fields that the header calls otherwise than any column.",
        default="refuse",
        kind=SettingKind.VALUE,
    )
    footer_rows: int = setting(
        "Rows at the end of each file that are no data.",
        default=0,
        kind=SettingKind.VALUE,
        ge=0,
        le=MAXIMUM_FOOTER_ROWS,
    )
    trim: TrimSetting = setting(
        "Which blanks and tabs at the ends of fields are no text: none, left, right or both.",
        default="none",
        kind=SettingKind.VALUE,
    )
    empty: EmptySetting = setting(
        "What a field without a character stands for: null; text, the empty text (null in columns that are no texts); "
        "or the text given as `{value: TEXT}`.",
        default="null",
    )
    qualified_empty: QualifiedEmptySetting = setting(
        "What two qualifiers with nothing between stand for: the empty text, or null.",
        default="text",
        kind=SettingKind.VALUE,
    )
    null_tokens: NullTokensSetting = setting(
        "Texts that mean null in every column, besides the empty field.",
        default_factory=list,
        kind=SettingKind.VALUE,
    )
    qualified_null_tokens: bool = setting(
        "Whether null tokens mean null between qualifiers, too.", default=False, kind=SettingKind.VALUE
    )
    on_error: DispositionSetting = setting(
        "What happens to rows with a value that is none of its column's type: reject them (redirect), fail the data "
        "flow whatever its limits, or load NULL and count it (ignore).",
        default="redirect",
        kind=SettingKind.VALUE,
    )
    on_truncation: DispositionSetting = setting(
        "The same for values with more characters, or digits behind the point, than their column keeps; ignore: load "
        "what fits, and count it.",
        default="redirect",
        kind=SettingKind.VALUE,
    )
    formats: Annotated[Formats, AfterValidator(_check_formats)] = setting(
        "Formats of all columns of a type that have none of their own.", default=Formats()
    )
    columns: Annotated[list[Column], AfterValidator(check_columns)] = setting(
        "The columns in the order of the file; those with `from` may stand anywhere."
    )

    @model_validator(mode="after")
    def _check_together(self) -> Self:
        if self.shape == "delimited":
            refuse_places(self)
        else:
            check_places(self)
        for name in ("qualifier", "escape", "comment"):
            self._refuse_delimiter(name, getattr(self, name))
        if self.qualifier is not None and self.qualifier == self.escape:
            raise own_error(
                f"{quote(self.qualifier)} is the qualifier and the escape",
                expected="two different characters",
                hint="Leave `escape` out: a qualifier that is text stands doubled.",
                path=("escape",),
            )
        if self.stray_qualifiers != "reject" and self.qualifier is None:
            raise own_error(
                f"`stray_qualifiers: {self.stray_qualifiers}` means nothing without a qualifier",
                expected="a `qualifier`, or no `stray_qualifiers`",
                hint="Leave `stray_qualifiers` out: without a qualifier every quotation mark is text.",
                path=("stray_qualifiers",),
            )
        refuse_lacking(self.encoding, self._texts())
        self._check_null_tokens()
        self._check_trim()
        self._check_ignored()
        self._refuse_alike()
        self._check_header()
        if self.mixed_row_ends == "reject" and self.row_end != "auto":
            raise own_error(
                f"with `row_end: {self.row_end}` there are no other row ends to reject",
                expected="`row_end: auto`, or no `mixed_row_ends`",
                path=("mixed_row_ends",),
            )
        self._refuse_delimiters_in_formats()
        if self.extra_fields == "keep":
            self._check_kept()
        others = {
            "trailing_delimiter": self.trailing_delimiter,
            "short_rows": self.short_rows == "fill",
            "extra_fields": self.extra_fields == "keep",
        }
        if self.row_end_in_fields == "data" and any(others.values()):
            other = next(name for name, is_set in others.items() if is_set)
            raise own_error(
                f"`row_end_in_fields: data` and `{other}` contradict each other",
                expected="rows that end behind their last column only",
                hint=r'Write the delimiter into the row end: `row_end: "|\n"`.' if self.trailing_delimiter else None,
                path=(other,),
            )
        return self

    def _texts(self) -> list[tuple[tuple[str | int, ...], str]]:
        """The texts of the layout that stand in files, with their places."""
        own = {name: getattr(self, name) for name in ("delimiter", "qualifier", "escape", "comment")}
        texts: list[tuple[tuple[str | int, ...], str]] = [((name,), text) for name, text in own.items() if text]
        texts.append((("row_end",), ROW_ENDS.get(self.row_end, self.row_end)))
        texts += [(("null_tokens", number), token) for number, token in enumerate(self.null_tokens)]
        for number, column in enumerate(self.columns):
            path: tuple[str | int, ...] = ("columns", number)
            if self.header in ("check", "by_name"):
                texts.append(((*path, "name"), column.name))
            if column.delimiter:
                texts.append(((*path, "delimiter"), column.delimiter))
            texts += [((*path, "null_tokens", place), token) for place, token in enumerate(column.null_tokens or [])]
            column_format, key = self.format_of(column)
            if column_format is not None:
                above = (*path, "format") if key is None else ("formats", key)
                inner = texts_of(column_format, column.type.kind)
                texts += [((*above, *place), text) for place, text in inner]
                months = [name for names in month_names(column_format).values() for own in names for name in own]
                texts += [(above, name) for name in months]
        return texts

    def _check_header(self) -> None:
        if self.other_columns == "ignore" and self.header != "by_name":
            raise own_error(
                "`other_columns: ignore` needs a header that names the fields",
                expected="`header: by_name` beside it",
                path=("other_columns",),
            )
        own = [column.name for column in self.fields if column.delimiter]
        if self.header == "by_name" and own:
            raise own_error(
                f"column `{show_name(own[0])}` has a delimiter of its own, so that fields cannot stand in any order",
                expected="`header: check` or `header: skip`",
                path=("header",),
            )

    def _delimiters(self) -> list[str]:
        return [token for token in (self.delimiter, *(column.delimiter for column in self.columns)) if token]

    def _refuse_delimiter(self, name: str, token: str | None) -> None:
        delimiters = self._delimiters()
        if token is not None and any(token in delimiter for delimiter in delimiters):
            raise own_error(
                f"{quote(token)} is the delimiter and the {name}", expected="different characters", path=(name,)
            )

    def _refuse_alike(self) -> None:
        """Texts that begin alike: where both may stand nobody could tell them apart. The core looks closer."""
        row_ends = ["\n", "\r\n"] if self.row_end == "auto" else [ROW_ENDS.get(self.row_end, self.row_end)]
        delimiters = self._delimiters()
        meets = self.row_end_in_fields == "ends_row"
        pairs = [("row_end", end, "delimiter", delimiter) for end in row_ends for delimiter in delimiters if meets]
        if self.comment is not None:
            others = [("row_end", end) for end in row_ends] + [("delimiter", delimiter) for delimiter in delimiters]
            pairs += [("comment", self.comment, name, text) for name, text in others]
        for name, text, other, token in pairs:
            if text.startswith(token) or token.startswith(text):
                is_trailing = (name, other) == ("row_end", "delimiter") and text.startswith(token)
                raise own_error(
                    f"the {_WORDS[name]} {quote(text)} and the {_WORDS[other]} {quote(token)} begin alike",
                    expected="texts of which none begins another",
                    hint="If every row ends with a delimiter, set `trailing_delimiter: true`." if is_trailing else None,
                    path=(name,) if name != "row_end" or self.row_end != "auto" else (other,),
                )

    def _refuse_delimiters_in_formats(self) -> None:
        """A delimiter in a value: fields that are neither qualified nor escaped could not be told apart."""
        for number, column in self.numbered_fields():
            column_format, path = self.format_of(column)
            is_last_of_all = self.row_end_in_fields == "data" and column is self.fields[-1]
            is_told_apart = self.escape is not None or (self.qualifier is not None and column.qualified)
            delimiter = column.delimiter or self.delimiter
            if column_format is None or delimiter is None or is_told_apart or is_last_of_all:
                continue
            for inner, text in texts_of(column_format, column.type.kind):
                if delimiter in text:
                    raise own_error(
                        f"{quote(text)} holds the delimiter, and column `{show_name(column.name)}` cannot be qualified",
                        expected="formats without the delimiter, or a qualifier",
                        hint="Set `qualifier` if such fields stand in quotes.",
                        path=("columns", number, "format", *inner) if path is None else ("formats", path, *inner),
                    )

    def format_of(self, column: Column) -> tuple[ColumnFormat | None, str | None]:
        """The format of a column, and the key of `formats` that it comes from, if it does."""
        if column.format is not None:
            return column.format, None
        key = self.formats.key_of(column.type)
        return (None, None) if key is None else (getattr(self.formats, key), key)

    def _check_null_tokens(self) -> None:
        """Tokens that no field could be."""
        own = [(("columns", number, "null_tokens"), column) for number, column in enumerate(self.columns)]
        lists: list[tuple[tuple[str | int, ...], Column | None, list[str]]] = [
            (("null_tokens",), None, self.null_tokens)
        ]
        lists += [(path, column, column.null_tokens or []) for path, column in own]
        for path, column, tokens in lists:
            delimiter = (column.delimiter if column else None) or self.delimiter
            for number, token in enumerate(tokens):
                if self.qualifier is not None and token.startswith(self.qualifier):
                    raise own_error(
                        f"the null token {quote(token)} begins with the qualifier",
                        expected="texts as they stand in unqualified fields",
                        hint="Write it without qualifiers, and set `qualified_null_tokens: true`.",
                        path=(*path, number),
                    )
                if delimiter is not None and delimiter in token and self.qualifier is None and self.escape is None:
                    raise own_error(
                        f"the null token {quote(token)} holds the delimiter {quote(delimiter)}",
                        expected="texts that can stand in a field",
                        path=(*path, number),
                    )

    def _check_trim(self) -> None:
        """Behind an escape a blank at the end of a field is text, and nobody looks for escapes from the end."""
        for number, column in self.numbered_fields():
            if self.escape is not None and self.setting_of(column, "trim") in ("right", "both"):
                raise own_error(
                    f"blanks behind the text of column `{show_name(column.name)}` may be escaped",
                    expected="`trim: none` or `trim: left` beside `escape`",
                    path=("columns", number, "trim") if column.trim else ("trim",),
                )

    def _check_ignored(self) -> None:
        for number, column in self.numbered_fields():
            if self.setting_of(column, "on_error") == "ignore" and not column.nullable:
                is_own = column.on_error is not None
                raise own_error(
                    f"errors of column `{show_name(column.name)}` cannot be ignored: they are NULL then, and it is not "
                    "nullable",
                    expected="`on_error: redirect` or `on_error: fail`, or a column that may be null",
                    hint=None if is_own else "Set `on_error: redirect` for the column.",
                    path=("columns", number, "on_error") if is_own else ("on_error",),
                )

    @property
    def ignoring(self) -> list[str]:
        """Names of the columns that are NULL where their text is no value."""
        return [column.name for column in self.fields if self.setting_of(column, "on_error") == "ignore"]

    def setting_of(self, column: Column, name: str) -> Any:
        """A setting of a column, or the layout's if it has none of its own."""
        own = getattr(column, name)
        return getattr(self, name) if own is None else own

    def _check_kept(self) -> None:
        last = self.fields[-1]
        if last.type.kind not in ("string", "char", "varchar"):
            raise own_error(
                f"the last column `{show_name(last.name)}` is of type {last.type} and cannot keep extra fields",
                expected="a text: string, char(n) or varchar(n)",
                path=("extra_fields",),
            )
        if self.trailing_delimiter:
            raise own_error(
                "nothing tells extra fields from a trailing delimiter",
                expected="`extra_fields: keep` without `trailing_delimiter`",
                path=("extra_fields",),
            )

    @property
    def fields(self) -> list[Column]:
        """The columns that are read, in the order of the file."""
        return [column for _, column in self.numbered_fields()]

    @property
    def made(self) -> list[Column]:
        """The columns that are made."""
        return [column for column in self.columns if column.from_ is not None]

    def numbered_fields(self) -> list[tuple[int, Column]]:
        return [(number, column) for number, column in enumerate(self.columns) if column.from_ is None]

    @property
    def rewritten_blocks(self) -> int:
        """How many times the text of a block those texts may take that are not what stands in the file."""
        if self.encoding != "utf-8" or self.unmappable == "replace":
            return MOST_BYTES_OF_A_BYTE
        return int(self.qualifier is not None or self.escape is not None)

    @property
    def shortest_row_bytes(self) -> int | None:
        """Length of the shortest whole row with its row end, where columns stand at places."""
        if self.shape == "delimited":
            return None
        last = places_of(self)[-1]
        return int(last["start"]) + int(last["width"] or 0) + int(self.row_end != "none")

    def hidden_row_ends(self) -> list[str]:
        """Settings because of which not every line break ends a row, or other texts do."""
        defaults = {
            "qualifier": None,
            "escape": None,
            "comment": None,
            "row_end": "auto",
            "row_end_in_fields": "ends_row",
        }
        hidden = [name for name, default in defaults.items() if getattr(self, name) != default]
        return hidden + (["encoding"] if self.encoding.startswith("utf-16") else [])

    def column_names(self) -> list[str]:
        """Names of all columns in the order of the layout."""
        return [column.name for column in self.columns]

    def to_core(
        self, columns_not_null: Collection[str] = (), types: Mapping[str, DataType] | None = None
    ) -> dict[str, Any]:
        """The layout as the Rust core reads it; `columns_not_null` are those that the target forbids to be null.

        `types`: by column, where the target allows less than the layout; columns are made if they are among them.
        """
        return layout_to_core(self, columns_not_null, types or {})


class LayoutFile(SpecModel):
    """A layout that stands in a file of its own."""

    file: str = setting("Path of the layout file, relative to the package file.", kind=SettingKind.VALUE, min_length=1)
