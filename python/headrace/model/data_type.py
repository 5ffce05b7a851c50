"""The types of columns, as layouts write them: `int64`, `decimal(15,2)`, `varchar(44)`."""

from __future__ import annotations

import re
from dataclasses import dataclass

from headrace.model.suggest import nearest, show_name

MAXIMUM_PRECISION = 38
# Code points; PostgreSQL's limit for char(n) and varchar(n).
MAXIMUM_LENGTH = 10_485_760

MAXIMUM_TYPE_CHARACTERS = 100

PLAIN_KINDS = (
    "int16", "int32", "int64", "float32", "float64", "bool", "date", "time", "timestamp", "timestamptz",
    "string", "bytes", "uuid", "json",
)  # fmt: skip
LENGTH_KINDS = ("char", "varchar")
ALLOWED_TYPES = (*PLAIN_KINDS[:3], "decimal(p,s)", *PLAIN_KINDS[3:11], "char(n)", "varchar(n)", *PLAIN_KINDS[11:])

# SQL spellings of the same thing. Only for hints: a layout has one spelling for each type.
_SQL_SPELLINGS = {
    "tinyint": "int16", "smallint": "int16", "int2": "int16", "short": "int16",
    "int": "int32", "integer": "int32", "int4": "int32",
    "bigint": "int64", "int8": "int64", "long": "int64", "bigserial": "int64",
    "real": "float32", "float4": "float32",
    "float": "float64", "float8": "float64", "double": "float64", "double precision": "float64",
    "boolean": "bool", "bit": "bool",
    "datetime": "timestamp", "datetime2": "timestamp", "timestamp without time zone": "timestamp",
    "timestamp with time zone": "timestamptz", "datetimeoffset": "timestamptz",
    "text": "string", "clob": "string", "str": "string",
    "bytea": "bytes", "blob": "bytes", "binary": "bytes", "varbinary": "bytes",
    "uniqueidentifier": "uuid", "guid": "uuid", "jsonb": "json",
    "numeric": "decimal", "number": "decimal", "dec": "decimal",
    "character": "char", "nchar": "char", "bpchar": "char",
    "character varying": "varchar", "nvarchar": "varchar", "varchar2": "varchar",
}  # fmt: skip

_SHAPE = re.compile(
    r"\s*(?P<kind>[A-Za-z_][A-Za-z0-9_ ]*?)\s*(?:\(\s*(?P<first>[0-9]+)\s*(?:,\s*(?P<second>[0-9]+)\s*)?\))?\s*"
)


_CUT_HINT = 'Inside braces YAML ends a text at a comma: quote the type, as in {type: "decimal(15,2)"}.'


class DataTypeError(ValueError):
    """The text names no type; `expected` and `hint` say what to write."""

    def __init__(self, what: str, expected: str, hint: str | None) -> None:
        super().__init__(what)
        self.what = what
        self.expected = expected
        self.hint = hint


@dataclass(frozen=True, slots=True)
class DataType:
    """One type. `precision` and `scale` belong to decimal (digits), `length` to char and varchar (code points)."""

    kind: str
    precision: int | None = None
    scale: int | None = None
    length: int | None = None

    @classmethod
    def parse(cls, text: str) -> DataType:
        """The type that `text` names. Raises DataTypeError."""
        # The longest spelling of a type has 27 characters; the pattern is slow on very long texts.
        match = _SHAPE.fullmatch(text) if len(text) <= MAXIMUM_TYPE_CHARACTERS else None
        if match is None:
            hint = _CUT_HINT if re.fullmatch(r"[a-z]+\s*\(\s*[0-9]+", text) else None
            raise DataTypeError(f"`{show_name(text)}` is not a type", _expected_types(), hint)
        kind = match["kind"]
        numbers = [int(match[group]) for group in ("first", "second") if match[group] is not None]
        if kind == "decimal":
            return cls._decimal(numbers)
        if kind in LENGTH_KINDS:
            return cls._with_length(kind, numbers)
        if kind in PLAIN_KINDS:
            if numbers:
                raise DataTypeError(f"the type {kind} takes no numbers", kind, f"Write `{kind}`.")
            return cls(kind)
        raise DataTypeError(f"`{text.strip()}` is not a type", _expected_types(), _hint_for(kind, numbers))

    @classmethod
    def _decimal(cls, numbers: list[int]) -> DataType:
        expected = f"decimal(p,s) with p from 1 to {MAXIMUM_PRECISION} and s from 0 to p"
        if len(numbers) != 2:
            precision = numbers[0] if numbers else 15
            scale = 0 if numbers else 2
            hint = f"Write the number of digits and of those after the point, such as `decimal({precision},{scale})`."
            raise DataTypeError("the type decimal needs a precision and a scale", expected, hint)
        precision, scale = numbers
        if not 1 <= precision <= MAXIMUM_PRECISION:
            raise DataTypeError(f"a decimal cannot have {precision} digits", expected, None)
        if scale > precision:
            hint = f"Did you mean `decimal({max(precision, scale)},{min(precision, scale)})`?"
            raise DataTypeError(
                f"a decimal of {precision} digits cannot have {scale} digits after the point", expected, hint
            )
        return cls("decimal", precision=precision, scale=scale)

    @classmethod
    def _with_length(cls, kind: str, numbers: list[int]) -> DataType:
        expected = f"{kind}(n) with n from 1 to {MAXIMUM_LENGTH}"
        if len(numbers) != 1:
            hint = (
                f"Write the largest number of characters, such as `{kind}(10)`; without a limit the type is `string`."
            )
            raise DataTypeError(f"the type {kind} needs one length", expected, hint)
        if not 1 <= numbers[0] <= MAXIMUM_LENGTH:
            raise DataTypeError(f"a {kind} cannot have {numbers[0]} characters", expected, None)
        return cls(kind, length=numbers[0])

    def __str__(self) -> str:
        if self.kind == "decimal":
            return f"decimal({self.precision},{self.scale})"
        return self.kind if self.length is None else f"{self.kind}({self.length})"

    def to_core(self) -> dict[str, object]:
        """The type as the Rust core reads it: `kind` and the members that the kind needs."""
        members = {"kind": self.kind, "precision": self.precision, "scale": self.scale, "length": self.length}
        return {name: value for name, value in members.items() if value is not None}


def _expected_types() -> str:
    return f"one of {', '.join(ALLOWED_TYPES)}"


def _hint_for(kind: str, numbers: list[int]) -> str | None:
    """The spelling of this project for another spelling of a type."""
    name = " ".join(kind.lower().split())
    words = (*PLAIN_KINDS, *LENGTH_KINDS, "decimal")
    word = name if name in words else _SQL_SPELLINGS.get(name)
    if word is None:
        near = nearest(name, words)
        return None if near is None else f"Did you mean `{_example(near, numbers)}`?"
    return f"Write `{_example(word, numbers)}`."


def _example(word: str, numbers: list[int]) -> str:
    if word == "decimal":
        if len(numbers) == 1:
            return f"decimal({numbers[0]},0)"
        precision, scale = numbers or (15, 2)
        return f"decimal({precision},{min(scale, precision)})"
    if word in LENGTH_KINDS:
        return f"{word}({numbers[0]})" if numbers else ("string" if word == "varchar" else f"{word}(1)")
    return word
