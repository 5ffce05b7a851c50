"""The model of tasks that fill a table with the rows of a query, inside one database."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, WithJsonSchema, model_validator

from headrace.model.settings import SettingKind, SpecModel, own_error, setting
from headrace.model.spec_partition import PartitionSpec
from headrace.model.table_names import check_table

_VALUE = SettingKind.VALUE
MAXIMUM_PARTS = 256


def _check_parts(parts: int | Literal["auto"]) -> int | Literal["auto"]:
    if isinstance(parts, int) and not 1 <= parts <= MAXIMUM_PARTS:
        raise own_error("this is no number of parts", expected=f"`auto`, or a whole number from 1 to {MAXIMUM_PARTS}")
    return parts


class DivisionSpec(SpecModel):
    """By what the rows of a query are divided: by those of one of its tables, or by a column of its result."""

    table: str | None = setting(
        "A table, `table` or `schema.table` as in FROM: each session reads a range of its pages, or the same range in "
        "each of its partitions. The query must be row-wise in it: "
        "no GROUP BY, DISTINCT, LIMIT or window function above it, and not on the side of an outer join that may be "
        "missing. EXPLAIN decides; what is in the way is named.",
        default=None,
        kind=_VALUE,
        min_length=1,
    )
    hash: str | None = setting(
        "A column of the result: each session asks for the rows with some of its hashes. For a query that groups by "
        "it; tables are read once for each part.",
        default=None,
        kind=_VALUE,
        min_length=1,
    )

    @model_validator(mode="after")
    def _check_one(self) -> Self:
        if (self.table is None) == (self.hash is None):
            raise own_error("the division is missing or said in two ways", expected="`table` or `hash`")
        return self


class BuildSpec(SpecModel):
    """Fills a table with the rows of a query of the same database.

    The rows become visible in one transaction, in which the table is switched in.
    """

    connection: str = setting("Name of a connection of type duckdb or postgres.", kind=_VALUE)
    table: Annotated[str, AfterValidator(check_table)] = setting(
        "`table` or `schema.table`; created if it does not exist.", kind=_VALUE
    )
    target: Literal["create", "append", "replace"] = setting(
        "What happens to existing rows: `create` fails if the table exists, `append` leaves them, `replace` exchanges "
        "them and keeps grants, comments, constraints, indexes and dependent views.",
        kind=_VALUE,
    )
    select: str | None = setting(
        "The query, one statement that only reads. `$name` stands for the value of a variable or parameter: it is "
        "bound with the type of its declaration, never pasted. Columns go into those of the same name.",
        default=None,
        kind=SettingKind.SQL,
        min_length=1,
    )
    file: str | None = setting(
        "File with the query, in UTF-8, relative to the package file. In it `$name` means the same.",
        default=None,
        kind=_VALUE,
        min_length=1,
    )

    partition: PartitionSpec | None = setting(
        "How the table is divided, as in data flows: by `hash`, by `list`, or by `range` with bounds that are written. "
        "The server brings each row into its partition. A row that no partition takes fails the build.",
        default=None,
    )
    parts: Annotated[
        int | Literal["auto"],
        Field(union_mode="left_to_right"),
        AfterValidator(_check_parts),
        WithJsonSchema({"anyOf": [{"enum": ["auto"]}, {"type": "integer", "minimum": 1, "maximum": MAXIMUM_PARTS}]}),
    ] = setting(
        "Of PostgreSQL: how many sessions fill the table side by side, with `by`. `auto`: at most `streams`, as many "
        "as the memory and the sessions of the server have room for, and as are worth it.",
        default="auto",
        kind=_VALUE,
    )
    by: DivisionSpec | None = setting(
        "Of PostgreSQL: how the query is divided among the sessions, which all see the same moment. Without it the "
        "query is one statement, whose INSERT the server executes with one process.",
        default=None,
    )

    @model_validator(mode="after")
    def _check_one_text(self) -> Self:
        if (self.select is None) == (self.file is None):
            raise own_error("the query is missing or stands in two places", expected="`select` or `file`")
        if self.by is None and self.parts not in ("auto", 1):
            raise own_error(
                "several parts need something by which the query is divided",
                expected="`by: {table: NAME}` or `by: {hash: COLUMN}`",
                path=("parts",),
            )
        return self

    @model_validator(mode="after")
    def _check_partition(self) -> Self:
        """Nothing reads a query twice, to look for keys first."""
        ranges = None if self.partition is None else self.partition.range
        if self.partition is not None and self.partition.keep is not None:
            raise own_error(
                "`keep` is for tables to which rows are appended",
                expected="`keep` left out",
                path=("partition", "keep"),
            )
        if ranges is None:
            return self
        ends = (ranges.from_, ranges.to)
        if not isinstance(ranges.bounds, list) and not (ranges.every is not None and None not in ends):
            raise own_error(
                "the bounds of the ranges are not written, and the keys of a query are not known before it",
                expected="`bounds` as a list of keys, or `every` with `from` and `to`",
                path=("partition", "range"),
            )
        return self
