"""The models of how a destination is divided and when its rows are committed."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Annotated, Any, Literal, Self, cast, get_args

from pydantic import AfterValidator, BeforeValidator, Field, PlainValidator, WithJsonSchema, model_validator

from headrace.model.memory_size import MEMORY_PATTERN, parse_memory_size
from headrace.model.names import Name
from headrace.model.partition import MAXIMUM_PARTITIONS, PeriodUnit
from headrace.model.settings import SettingKind, SpecModel, own_error, setting

_SETTING = SettingKind.SETTING
_UNITS: tuple[str, ...] = get_args(PeriodUnit)
_PERIOD = re.compile(r"(?:([1-9][0-9]{0,5}) )?([a-z]+?)s?")
_STEP = re.compile(r"[0-9]{1,38}(\.[0-9]{1,38})?")
_SCALAR_SCHEMA: dict[str, Any] = {"type": ["string", "number", "boolean"]}


@dataclass(frozen=True, slots=True)
class Period:
    """The value of `every`: a number of a unit, or without a unit the difference of two keys."""

    size: str
    unit: PeriodUnit | None


def _is_scalar(value: object) -> bool:
    return isinstance(value, (str, int, Decimal, date)) and value != ""


def _check_scalar(value: object) -> object:
    if value is None or _is_scalar(value):
        return value
    raise own_error("this is not a single value", expected="a text, a number, a date, or true or false")


def _check_column(column: object) -> object:
    if isinstance(column, list):
        raise own_error(
            "a table is divided by one column",
            expected="the name of one column",
            hint="Name the column with most values; partitions by several columns cannot be made.",
        )
    if isinstance(column, str) and "(" in column:
        raise own_error(
            "a table cannot be divided by an expression",
            expected="the name of a column",
            hint="Give the value a column of its own; for months of a date write `every: 1 month`.",
        )
    return column


def _check_bounds(bounds: object) -> object:
    if bounds is None or bounds == "files":
        return bounds
    if not isinstance(bounds, list):
        raise own_error("bounds are keys", expected="files, or a list of keys in rising order")
    if not bounds:
        raise own_error("the list of bounds is empty", expected="at least one key")
    for number, value in enumerate(bounds):
        if not _is_scalar(value):
            raise own_error("a bound must be a single value", expected="a key", path=(number,))
    return bounds


def _check_every(every: object) -> object:
    if every is None or isinstance(every, Period):
        return every
    if not isinstance(every, bool):
        text = format(every, "f") if isinstance(every, Decimal) else str(every)
        found = _PERIOD.fullmatch(text)
        if found and found[2] in _UNITS:
            return Period(found[1] or "1", cast(PeriodUnit, found[2]))
        if _STEP.fullmatch(text) and Decimal(text):
            return Period(text, None)
    raise own_error(
        "this is no length of a range",
        expected=f"a number of {'s, '.join(_UNITS)}s, or a number above 0",
        hint='Write for example "1 month", or 1000.',
    )


def _check_values(values: dict[str, list[object]]) -> dict[str, list[object]]:
    if not values:
        raise own_error("there is no list of values", expected="name: list of values")
    for name, listed in values.items():
        if not listed:
            raise own_error("the list is empty", expected="at least one value", path=(name,))
        for number, value in enumerate(listed):
            if value is not None and not isinstance(value, (str, int, Decimal, date)):
                raise own_error("a value must be a single one", expected="a key or null", path=(name, number))
    return values


def _check_names(names: list[str] | None) -> list[str] | None:
    if names is not None and not names:
        raise own_error("the list is empty", expected="at least one name", hint="Leave the key out.")
    seen: set[str] = set()
    for number, name in enumerate(names or ()):
        if not name.strip() or name in seen:
            problem = "a name occurs twice" if name in seen else "a name is empty"
            raise own_error(problem, expected="different names", path=(number,))
        seen.add(name)
    return names


def _check_size(size: object) -> object:
    if size is None or isinstance(size, int):
        return size
    try:
        return parse_memory_size(size if isinstance(size, str) else "")
    except ValueError as error:
        raise own_error(
            "this is not an amount of text",
            expected="a number with MB, GB, MiB or GiB",
            hint='Write for example "1GB".',
        ) from error


KeyColumn = Annotated[str | None, BeforeValidator(_check_column)]
_COLUMN = "The target's column. If an expression gives null, the table has no partitions."
Key = Annotated[Any, PlainValidator(_check_scalar), WithJsonSchema(_SCALAR_SCHEMA)]
Bounds = Annotated[
    Any,
    PlainValidator(_check_bounds),
    WithJsonSchema(
        {"anyOf": [{"const": "files"}, {"type": "array", "minItems": 1, "items": _SCALAR_SCHEMA}]},
    ),
]
EverySetting = Annotated[
    Any,
    PlainValidator(_check_every),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "number", "exclusiveMinimum": 0},
                {"type": "string", "pattern": f"^([1-9][0-9]{{0,5}} )?({'|'.join(_UNITS)})s?$"},
            ]
        }
    ),
]
Names = Annotated[list[Annotated[str, Field(json_schema_extra={"minLength": 1})]] | None, AfterValidator(_check_names)]
ByteSize = Annotated[
    Any, PlainValidator(_check_size), WithJsonSchema({"type": "string", "pattern": f"^{MEMORY_PATTERN}$"})
]


class RangePartitionSpec(SpecModel):
    """Partitions by ranges of one column; a bound belongs to the range that it begins (RANGE RIGHT)."""

    column: KeyColumn = setting(_COLUMN, kind=_SETTING, min_length=1)
    bounds: Bounds = setting(
        "Where one range ends and the next begins. `files` (what is meant without `bounds`, `every` and `parts`): one "
        "range for each source file, from its first key to the first key of the next file; the last one ends behind "
        "its last key. Or keys in rising order: n of them make n + 1 ranges, the outer ones open.",
        default=None,
        kind=_SETTING,
    )
    every: EverySetting = setting(
        "Ranges of one length, such as `1 month`, `2 weeks`, `6 hours` for dates and times, or a number for numbers. "
        "Without `from` and `to` the keys are scanned before the load for the ranges that occur.",
        default=None,
        kind=_SETTING,
    )
    from_: Key = setting("The least key of the first range, with `every`.", default=None, kind=_SETTING, alias="from")
    to: Key = setting("The first key behind the last range, with `every`.", default=None, kind=_SETTING)
    parts: int | None = setting(
        "Number of ranges of about as many rows each; the keys are scanned for their bounds before the load.",
        default=None,
        kind=_SETTING,
        ge=1,
        le=MAXIMUM_PARTITIONS,
    )
    boundary: Literal["right", "left"] = setting(
        "The side of a given bound to which a key belongs that equals it: `right` (RANGE RIGHT), the range that begins "
        "there, or `left` (RANGE LEFT), the range that ends there.",
        default="right",
        kind=_SETTING,
    )

    @model_validator(mode="after")
    def _check_together(self) -> Self:
        given = [name for name in ("bounds", "every", "parts") if getattr(self, name) is not None]
        if len(given) > 1:
            raise own_error(
                f"the ranges have {len(given)} declarations: {', '.join(given)}",
                expected="one of bounds, every and parts",
                path=(given[1],),
            )
        for name, value in (("from", self.from_), ("to", self.to)):
            if value is not None and self.every is None:
                raise own_error(f"`{name}` means nothing without `every`", expected=f"`{name}` left out", path=(name,))
        if self.boundary == "left" and not isinstance(self.bounds, list):
            raise own_error(
                "only bounds that are given can belong to the left",
                expected="`boundary: left` with a list of `bounds`",
                path=("boundary",),
            )
        return self


class ListPartitionSpec(SpecModel):
    """Partitions by lists of values of one column."""

    column: KeyColumn = setting(_COLUMN, kind=_SETTING, min_length=1)
    values: Annotated[dict[Name, list[Any]], AfterValidator(_check_values)] = setting(
        "Name of the partition: its values; `null` is NULL.", kind=_SETTING
    )


class HashPartitionSpec(SpecModel):
    """Partitions by a hash of one column, as the target itself computes it."""

    column: KeyColumn = setting(_COLUMN, kind=_SETTING, min_length=1)
    parts: int | None = setting(
        "Number of partitions; without it the number of usable CPUs, or that of a table which exists.",
        default=None,
        kind=_SETTING,
        ge=1,
        le=MAXIMUM_PARTITIONS,
    )


def _check_clause(clause: object) -> object:
    """What cannot be declared is refused by its name, before keys are counted."""
    if isinstance(clause, Mapping):
        for name in ("partition", "partitions", "subpartition", "subpartitions", "sub_partition", "sub_partitions"):
            if name in clause:
                raise own_error(
                    "partitions cannot have partitions of their own",
                    expected="one of range, list and hash",
                    hint="Divide the table once.",
                    path=(name,),
                )
        given = [name for name in ("range", "list", "hash") if name in clause]
        if len(given) > 1:
            raise own_error(
                f"a table is divided in one way, not by {' and '.join(given)}",
                expected="one of range, list and hash",
                hint="Divide the table once: sub-partitions cannot be made.",
                path=(given[1],),
            )
        if not given:
            raise own_error("it is not said how the table is divided", expected="one of range, list and hash")
    return clause


class PartitionSpec(SpecModel):
    """How a table is divided: exactly one of `range`, `list` and `hash`."""

    range: RangePartitionSpec | None = setting("Partitions by ranges of one column.", default=None)
    list: ListPartitionSpec | None = setting("Partitions by lists of values of one column.", default=None)
    hash: HashPartitionSpec | None = setting("Partitions by a hash of one column.", default=None)
    outside: Literal["reject", "default"] = setting(
        "What becomes of a row that no partition takes: a reject, or a row of a default partition.",
        default="reject",
        kind=_SETTING,
    )
    tablespaces: Names = setting(
        "Tablespaces of the target, dealt to new partitions in turn.", default=None, kind=_SETTING
    )
    keep: int | None = setting(
        "Number of newest ranges that a table keeps to which rows are appended (a rolling window): older ones are "
        "dropped with the switch, never more than the load adds.",
        default=None,
        kind=_SETTING,
        ge=1,
        le=MAXIMUM_PARTITIONS,
    )

    _check_keys = model_validator(mode="before")(_check_clause)

    @model_validator(mode="after")
    def _check_together(self) -> Self:
        for name in ("range", "list", "hash"):
            if name in self.model_fields_set and getattr(self, name) is None:
                raise own_error(f"`{name}` has no value", expected="a mapping with the key column", path=(name,))
        if self.keep is not None and self.range is None:
            raise own_error("only ranges can be older than others", expected="`keep` with `range`", path=("keep",))
        if self.hash is not None and self.outside == "default":
            raise own_error(
                "every row has a place in partitions by hash", expected="`outside` left out", path=("outside",)
            )
        return self

    @property
    def column(self) -> str | None:
        """The key; None without partitions."""
        clause = self.range or self.list or self.hash
        return None if clause is None else clause.column


class CommitSpec(SpecModel):
    """About how much goes into one transaction: exactly one of `rows` and `bytes`."""

    rows: int | None = setting("Number of rows.", default=None, kind=_SETTING, ge=1, le=2**63 - 1)
    bytes: ByteSize = setting(
        "Bytes of source text, in MB, GB, MiB or GiB, such as `1GB`.", default=None, kind=_SETTING
    )

    @model_validator(mode="after")
    def _check_together(self) -> Self:
        if (self.rows is None) == (self.bytes is None):
            both = self.rows is not None
            raise own_error(
                "a commit size is given twice" if both else "no commit size is given",
                expected="one of rows and bytes",
                path=("bytes",) if both else (),
            )
        return self
