"""The models of transforms: what may happen to rows between their source and their destination."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from decimal import Decimal
from typing import Annotated, Any, Final, Literal

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Discriminator,
    PlainValidator,
    Tag,
    WithJsonSchema,
    model_validator,
)

from headrace.model.names import Name
from headrace.model.settings import SettingKind, SpecModel, own_error, setting
from headrace.model.spec_files import FilePatterns, LayoutSetting
from headrace.model.spec_joins import JoinTransformSpec
from headrace.model.spec_unions import ReunionTransformSpec, UnionTransformSpec
from headrace.model.table_names import check_table
from headrace.model.taken_columns import TakenColumns

_SETTING = SettingKind.SETTING
_SCALAR_SCHEMA: Final[list[dict[str, Any]]] = [{"type": name} for name in ("string", "number", "boolean", "null")]
_OF_FILES: Final = ("connection", "files", "layout")
# What belongs together, by what tells it from the others. A query may have a connection.
_TOGETHER: Final = {"query": ("query",), "table": ("connection", "table")}
_BESIDE: Final = {"query": ("connection",)}
_ALL: Final = (*_OF_FILES, *_TOGETHER)
_SOURCES: Final = (
    "`connection` of type files, `files` and `layout`; `connection` of a database and `table` or `query`; or `query` "
    "alone"
)
REJECT: Final = "reject"
# What becomes of rows that find nothing, and the name of the output that they go to then.
OUTPUT: Final = "output"
NO_MATCH: Final = "no_match"
# The output of a split for rows that meet no condition.
REST: Final = "rest"
# As the condition of an output: it is that one, by another name or by the same.
ELSE: Final = "else"


def _check_keys(keys: object) -> object:
    if isinstance(keys, list):
        raise own_error(
            "it is not said which columns are compared",
            expected="column of the rows: column of the lookup",
            hint="Write both names, also if they are the same: `on: {name: name}`.",
        )
    if not isinstance(keys, Mapping):
        return keys
    if not keys:
        raise own_error(
            "the lookup has no key", expected="column of the rows: column of the lookup", hint="Name the key columns."
        )
    return keys


def _no_match_tag(value: object) -> str:
    # `{expr: ...}` stands in place of a word.
    return "<default>" if isinstance(value, (Mapping, SpecModel)) and set(value) != {"expr"} else "<reject>"


def _check_reject(value: object) -> object:
    if value == "default":
        raise own_error(
            "it is not said which values rows get that find nothing",
            expected="a mapping with the key default",
            hint="Write `no_match: {default: VALUE}`; a value such as -1 or null shows later which rows they were.",
        )
    if value not in (REJECT, OUTPUT):
        raise own_error(
            "this is not what can become of rows that find nothing",
            expected="reject, output, or a mapping with the key default",
            hint="Write `no_match: reject`, `no_match: output` or `no_match: {default: VALUE}`.",
        )
    return value


def _check_default(value: object) -> object:
    if isinstance(value, Mapping):
        for name, own in value.items():
            if not _is_scalar(own):
                raise own_error("this is not a single value", expected=_SCALAR, path=(name,))
        if not value:
            raise own_error("no column has a default", expected="column: value, for each column that is added")
        return dict(value)
    if not _is_scalar(value):
        raise own_error("this is not a single value", expected=f"{_SCALAR}; or column: value")
    return value


_SCALAR: Final = "a text, a number, a date, true, false or null"


def _is_scalar(value: object) -> bool:
    return value is None or isinstance(value, (str, int, Decimal, date))


Default = Annotated[
    Any,
    PlainValidator(_check_default),
    WithJsonSchema(
        {
            "anyOf": [
                *_SCALAR_SCHEMA,
                {"type": "object", "minProperties": 1, "additionalProperties": {"anyOf": _SCALAR_SCHEMA}},
            ]
        }
    ),
]


class NoMatchSpec(SpecModel):
    """What rows get that find nothing."""

    default: Default = setting(
        "The value that they get: one for all columns that are added, or one for each by its new name. `null` is NULL.",
        kind=_SETTING,
    )


NoMatch = Annotated[
    Annotated[NoMatchSpec, Tag("<default>")]
    | Annotated[Literal["reject", "output"], BeforeValidator(_check_reject), Tag("<reject>")],
    Discriminator(_no_match_tag),
]


class LookupSpec(SpecModel):
    """Columns that each row gets from the one row of other files, of a table or of a query that has its key.

    A row finds nothing if no row of the lookup has its key, or a column of its key is NULL.
    """

    connection: str | None = setting(
        "Name of a connection of type files; or of type duckdb or postgres, for a table or a query.",
        default=None,
        kind=_SETTING,
    )
    files: FilePatterns | None = setting(
        "One file name or pattern, or a list, below its folder. Files that can be read again: no pipes, no standard "
        "input, no `{stream}`.",
        default=None,
        kind=_SETTING,
    )
    layout: LayoutSetting | None = setting("Name of their layout, or the layout itself.", default=None, kind=_SETTING)
    table: Annotated[str, AfterValidator(check_table)] | None = setting(
        "In place of files: a table, view or whatever else can be read, `table` or `schema.table`, as it is when the "
        "flow starts.",
        default=None,
        kind=_SETTING,
    )
    query: str | None = setting(
        "In place of files: one query that only reads, in the SQL of `connection`. Without a connection it is DuckDB "
        "SQL that computes its rows, such as a calendar or a small map, in a database of its own without tables, files "
        "and network. `$name` stands for the value of a variable or parameter.",
        default=None,
        kind=SettingKind.SQL,
        min_length=1,
    )
    on: Annotated[dict[str, str], BeforeValidator(_check_keys)] = setting(
        "The key: column of the rows: column of the lookup. Whole numbers are compared with one another, decimals of "
        "one scale, texts byte by byte (without trailing blanks if one side is char(n)), dates, times, booleans, bytes "
        "and uuids with themselves; floats and json are no keys.",
        kind=_SETTING,
    )
    add: TakenColumns = setting(
        "The columns that rows get. New name: column of the lookup; or a list of columns that keep their names.",
        kind=_SETTING,
    )
    no_match: NoMatch = setting(
        "What becomes of rows that find nothing: they are rejects, get a default, or go as they came to an output of "
        "their own, which another part reads by `input: NAME.no_match`.",
        default=REJECT,
        kind=_SETTING,
    )
    duplicates: Literal["error", "first"] = setting(
        "What is done about rows of the lookup with one key: the run fails, and names both; or the first of them is "
        "found, in the order of the files' names and of the rows in them, or in that of the query, which has ORDER BY "
        "then; and the others are counted.",
        default="error",
        kind=_SETTING,
    )
    case: Literal["exact", "ignore"] = setting(
        "Whether texts are equal whose letters differ only in case, as `STRASSE` and `strasse` do, one letter for one.",
        default="exact",
        kind=_SETTING,
    )

    @model_validator(mode="before")
    @classmethod
    def _check_source(cls, value: object) -> object:
        if not isinstance(value, Mapping):
            return value
        if "sql" in value:
            raise own_error(
                "the rows of a lookup come from files, a table or a query, and not from `sql`",
                expected=_SOURCES,
                hint="Write `query`.",
                path=("sql",),
            )
        kind = next((name for name in _TOGETHER if name in value), "")
        wanted = _TOGETHER.get(kind, _OF_FILES)
        known = (*wanted, *_BESIDE.get(kind, ()))
        strange = next((name for name in _ALL if name in value and name not in known), None)
        if strange is not None:
            raise own_error(
                f"the rows of a lookup are those of a {kind}, and `{strange}` is given too",
                expected=_SOURCES,
                hint=f"Remove `{strange}`, or write the rows to a file first.",
                path=(strange,),
            )
        missing = [name for name in wanted if name not in value]
        if missing:
            raise own_error(
                f"it is not said which rows the lookup has: `{missing[0]}` is missing",
                expected=_SOURCES,
                hint=f"Add `{missing[0]}`."
                if len(missing) < len(wanted)
                else "Name files with their layout, or a table, or write a query.",
            )
        return value


_ARRIVE: Final = "Name of the source or transform whose rows arrive here, or `name.output` for one of several outputs."
_DISCARD: Final = "Outputs whose rows go nowhere and are only counted. Any other output must be read."


class LookupTransformSpec(SpecModel):
    """Rows get columns of other rows."""

    input: str = setting(_ARRIVE, kind=_SETTING)
    lookup: LookupSpec = setting("Columns from the rows of other files, of a table or of a query, found by their keys.")
    discard: list[str] = setting(_DISCARD, default_factory=list, kind=_SETTING)


class SqlTransformSpec(SpecModel):
    """Rows go through a query, each by itself or all together."""

    input: str = setting(
        "Name of the source or transform whose rows arrive here, or `name.output` for one of several outputs; the name "
        "is that of the query's table.",
        kind=_SETTING,
    )
    sql: str = setting(
        "One query in DuckDB SQL over the rows of `input`: columns, expressions, CASE, WHERE, and joins with constant "
        "tables (VALUES) for each row by itself, in every stream; rows that it leaves out are counted, a row that it "
        "fails for is a reject. What needs more than one row at a time (aggregates, DISTINCT, ORDER BY with LIMIT, "
        "window functions) is run once over all rows, and fails as a whole. Functions that give another value each "
        "time are refused, and what would depend on the order of rows. "
        "`$name` stands for the value of a variable or parameter.",
        kind=SettingKind.SQL,
        min_length=1,
    )


def _is_else(condition: str) -> bool:
    return condition.strip().lower() == ELSE


def _check_conditions(conditions: dict[str, str]) -> dict[str, str]:
    if not conditions:
        raise own_error(
            "the split has no conditions",
            expected="output: a condition in DuckDB SQL, for each output but the rest",
            hint=f"Rows that meet no condition go to the output `{REST}`.",
        )
    others = [name for name, condition in conditions.items() if _is_else(condition)]
    if len(others) > 1 or (others and others != list(conditions)[-1:]):
        raise own_error(
            f"`{ELSE}` stands for the rows that meet no condition, once and behind all conditions",
            expected=f"conditions, and `NAME: {ELSE}` as the last one",
            hint="Move it to the end." if len(others) == 1 else "Leave one of them.",
            path=(others[0],),
        )
    if len(others) == len(conditions):
        raise own_error(
            "the split has no conditions",
            expected=f"output: a condition in DuckDB SQL, and `{ELSE}` behind the last one",
            hint=f"Read `input` where `{others[0]}` is read, or write a condition.",
        )
    if not others and REST in conditions:
        raise own_error(
            f"`{REST}` is the output of rows that meet no condition, and has none itself",
            expected=f"`{REST}: {ELSE}`, or another name",
            hint=f"Remove `{REST}`: it is there whether it is written or not.",
            path=(REST,),
        )
    return conditions


class SplitTransformSpec(SpecModel):
    """Each row goes to one of several outputs, which other parts read by `input: NAME.OUTPUT`."""

    input: str = setting(_ARRIVE, kind=_SETTING)
    split: Annotated[dict[Name, str], AfterValidator(_check_conditions)] = setting(
        "The outputs and their conditions, in order: a row goes to the first one whose condition is true, and to the "
        "output `rest` if there is none, or to the one that is written `NAME: else`. A condition is DuckDB SQL over "
        "the columns of the row, as in `sql`; one that is NULL is not met. A row for which one fails is a reject. "
        "`$name` stands for the value of a variable or parameter.",
        kind=SettingKind.SQL,
    )
    discard: list[str] = setting(_DISCARD, default_factory=list, kind=_SETTING)

    @property
    def conditions(self) -> dict[str, str]:
        """The outputs that have one, in order."""
        return {name: condition for name, condition in self.split.items() if not _is_else(condition)}

    @property
    def rest(self) -> str:
        """The output of rows that meet none."""
        return next((name for name, condition in self.split.items() if _is_else(condition)), REST)


# Bring rows of several sources together. What stands in front of one of them passes rows of one source alone.
TogetherSpec = JoinTransformSpec | UnionTransformSpec


def _transform_tag(value: object) -> str:
    union = value.get("union") if isinstance(value, Mapping) else None
    if isinstance(value, ReunionTransformSpec) or (isinstance(union, Mapping) and "inputs" in union):
        return "<reunion>"
    for tag, model, key in (
        ("<join>", JoinTransformSpec, "join"),
        ("<union>", UnionTransformSpec, "union"),
        ("<sql>", SqlTransformSpec, "sql"),
        ("<split>", SplitTransformSpec, "split"),
    ):
        if isinstance(value, model) or (isinstance(value, Mapping) and key in value):
            return tag
    return "<lookup>"


TransformSpec = Annotated[
    Annotated[LookupTransformSpec, Tag("<lookup>")]
    | Annotated[JoinTransformSpec, Tag("<join>")]
    | Annotated[UnionTransformSpec, Tag("<union>")]
    | Annotated[ReunionTransformSpec, Tag("<reunion>")]
    | Annotated[SqlTransformSpec, Tag("<sql>")]
    | Annotated[SplitTransformSpec, Tag("<split>")],
    Discriminator(_transform_tag),
]
