"""The model of tasks that exchange a partition of a table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BeforeValidator, PlainValidator, WithJsonSchema, model_validator

from headrace.model.settings import SettingKind, SpecModel, own_error, setting
from headrace.model.spec_partition import Key
from headrace.model.table_names import check_table

_VALUE = SettingKind.VALUE
_SETTING = SettingKind.SETTING
_SINGLE: dict[str, Any] = {"type": ["string", "number", "boolean", "null"]}


def _check_name(name: str | None) -> str | None:
    if name is not None and (not name.strip() or any(ord(character) < 32 for character in name)):
        raise own_error("this cannot be the name of a table", expected="a name without its schema")
    return name


def _check_table(table: str | None) -> str | None:
    return None if table is None else check_table(table)


def _check_values(values: object) -> object:
    if values is None:
        return None
    if not isinstance(values, list):
        values = [values]
    if not values:
        raise own_error("the list is empty", expected="at least one value")
    for number, value in enumerate(values):
        if isinstance(value, (list, dict, float)):
            raise own_error("a value must be a single one", expected="a key or null", path=(number,))
    return values


def _check_no_null(bounds: object) -> object:
    """A bound whose variable has no value yet must not open the range."""
    for name in ("from", "to", "values"):
        if isinstance(bounds, dict) and name in bounds and bounds[name] is None:
            raise own_error(
                f"`{name}` has no value", expected="a key; `from` or `to` left out is an open end", path=(name,)
            )
    return bounds


class PartitionKeysSpec(SpecModel):
    """The keys of a partition that does not exist yet: `from` and `to`, `values`, or `default`."""

    from_: Key = setting(
        "The least key of a range. Left out: the range has no lower end.", default=None, kind=_SETTING, alias="from"
    )
    to: Key = setting("The first key behind a range. Left out: it has no upper end.", default=None, kind=_SETTING)
    values: Annotated[
        Sequence[Any] | None,
        PlainValidator(_check_values),
        WithJsonSchema({"anyOf": [_SINGLE, {"type": "array", "minItems": 1, "items": _SINGLE}]}),
    ] = setting("The keys of a list; `null` in it is NULL.", default=None, kind=_SETTING)
    default: Literal[True] | None = setting("`true`: all keys that no other partition takes.", default=None)

    _check_given = model_validator(mode="before")(_check_no_null)

    @model_validator(mode="after")
    def _check_together(self) -> Self:
        is_range = self.from_ is not None or self.to is not None
        given = [
            name
            for name, is_given in (
                ("from and to", is_range),
                ("values", self.values is not None),
                ("default", self.default is not None),
            )
            if is_given
        ]
        if len(given) != 1:
            raise own_error(
                f"the keys of the partition are given as {' and as '.join(given)}"
                if given
                else "the keys of the partition are not given",
                expected="`from` and `to`, `values`, or `default: true`",
            )
        return self


def _one_as_mapping(keys: object) -> object:
    return {"default": True} if keys == "default" else keys


class SwitchSpec(SpecModel):
    """Exchanges a partition of a table for another table, by metadata alone.

    With `in` and `for` a new partition comes; with `in` alone it takes the place of one that exists; with `out` alone a
    partition becomes a table of its own.
    """

    connection: str = setting("Name of a connection of type duckdb or postgres.", kind=_VALUE)
    table: Annotated[str, AfterValidator(check_table)] = setting(
        "The partitioned table; of duckdb, a view that `load: view` has made.", kind=_VALUE
    )
    partition: Annotated[str, AfterValidator(_check_name)] = setting(
        "Name of the partition, in the schema of the table.", kind=_VALUE, min_length=1
    )
    in_: Annotated[str | None, AfterValidator(_check_table)] = setting(
        "The table that becomes the partition; its rows must be within the bounds. Without it the partition is only "
        "taken out.",
        default=None,
        kind=_VALUE,
        alias="in",
    )
    out: Annotated[str | None, AfterValidator(_check_name)] = setting(
        "Name under which the rows that were in the partition stay, as a table of the same schema; it may be that of "
        "`in`. Without it they are dropped.",
        default=None,
        kind=_VALUE,
        min_length=1,
    )
    for_: Annotated[PartitionKeysSpec | None, BeforeValidator(_one_as_mapping)] = setting(
        "The keys of a new partition, which `in` becomes; the partition must not exist. Without it the partition "
        "exists, and keeps its keys.",
        default=None,
        alias="for",
    )

    @model_validator(mode="after")
    def _check_together(self) -> Self:
        if self.in_ is None and self.out is None:
            raise own_error("the switch changes nothing", expected="`in`, `out` or both")
        if self.for_ is not None and self.in_ is None:
            raise own_error(
                "a new partition needs a table that becomes it", expected="`in` beside `for`", path=("for",)
            )
        if self.for_ is not None and self.out is not None:
            raise own_error(
                "a new partition has no rows that could stay",
                expected="`out` left out, or `for` left out if the partition exists",
                path=("out",),
            )
        return self
