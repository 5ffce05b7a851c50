"""The models of a data flow: what a package may say about sources, rejects and destinations."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Annotated, Any, Literal, Self, get_args

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Discriminator,
    Tag,
    WithJsonSchema,
    model_validator,
)

from headrace.model.load_options import DEFAULT_OPTIONS
from headrace.model.names import Name
from headrace.model.reject_limits import RejectsSpec
from headrace.model.settings import SettingKind, SpecModel, own_error, setting
from headrace.model.source_options import DEFAULT_WAIT_SECONDS, MAXIMUM_WAIT_SECONDS
from headrace.model.spec_files import FilePatterns, LayoutSetting
from headrace.model.spec_partition import CommitSpec, Names, PartitionSpec
from headrace.model.spec_transforms import TransformSpec
from headrace.model.suggest import show_name
from headrace.model.table_names import check_table

TpchTable = Literal["lineitem", "orders", "partsupp", "part", "customer", "supplier", "nation", "region"]
TPCH_TABLES: tuple[str, ...] = get_args(TpchTable)
# These have a fixed number of rows whatever the scale, and are not split.
TPCH_TABLES_IN_ONE_CHUNK = ("nation", "region")
# As in crates/generate: below the smallest, tables are empty; in the gap, keys would overflow 32 bits.
MINIMUM_TPCH_SCALE, MAXIMUM_TPCH_SCALE = 0.0001, 100_000
_TPCH_SCALE_GAP = (10_737, 30_000)
TPCH_SCALES = f"{MINIMUM_TPCH_SCALE} to {_TPCH_SCALE_GAP[0]}, or {_TPCH_SCALE_GAP[1]} to {MAXIMUM_TPCH_SCALE}"
MAXIMUM_TPCH_CHUNKS = 100_000
# The ledger and staging tables live in this schema of the destination.

_VALUE = SettingKind.VALUE
_SETTING = SettingKind.SETTING


class FileSourceSpec(SpecModel):
    """Rows from flat files."""

    connection: str = setting("Name of a connection of type files.", kind=_SETTING)
    files: FilePatterns = setting(
        "One file name or a list, below the folder of the connection. `*`, `?` and `[abc]` match as in a shell; "
        "`{stream}` stands for 1, 2, ... up to `streams`, and each of these files must exist. The name of a folder "
        "stands for the regular files directly in it whose names do not begin with `.` or `_`, the name of a named "
        "pipe for what is written to it, `-` for standard input.",
        kind=_SETTING,
    )
    layout: LayoutSetting = setting("Name of a layout, or the layout itself.", kind=_SETTING)
    missing: Literal["error", "skip"] = setting(
        "What to do if no file matches: fail, or skip the task with a notice.", default="error", kind=_SETTING
    )
    empty: Literal["error", "allow"] = setting(
        "What to do if the files together hold no data row: fail, or load no rows.", default="error", kind=_SETTING
    )
    compression: Literal["auto", "none", "gzip", "zstd"] = setting(
        "How the files are compressed. `auto` goes by their first bytes, and refuses a file whose name says something "
        "else; any other value holds for all of them.",
        default="auto",
        kind=_SETTING,
    )
    last_row_end: Literal["required", "optional"] | None = setting(
        "Whether the last row of each file must have a row end. Without it only that of a pipe or of standard input "
        "must: a writer that dies looks like an end.",
        default=None,
        kind=_SETTING,
    )
    wait_seconds: int = setting(
        "How long the first byte of a pipe or of standard input may take, once the run reads it.",
        default=DEFAULT_WAIT_SECONDS,
        kind=_SETTING,
        ge=1,
        le=MAXIMUM_WAIT_SECONDS,
    )


def to_exact_scale(value: object) -> object:
    """The scale as a Decimal."""
    if isinstance(value, int) and not isinstance(value, bool):
        return Decimal(value)
    if isinstance(value, Decimal):
        return value
    raise own_error("the scale must be a number", expected=f"a number: {TPCH_SCALES}")


def is_tpch_scale(scale: Decimal | float) -> bool:
    """Whether the generator, which gets it as a float, has this scale; nan is in no range."""
    last, first = _TPCH_SCALE_GAP
    number = float(scale)
    return MINIMUM_TPCH_SCALE <= number <= last or first <= number <= MAXIMUM_TPCH_SCALE


def check_tpch_scale(value: Decimal) -> Decimal:
    """Raises an own error unless the generator has this scale."""
    if not is_tpch_scale(value):
        raise own_error("the scale is out of range", expected=f"a number: {TPCH_SCALES}")
    return value


class GenerateSpec(SpecModel):
    """What to generate."""

    tpch: TpchTable = setting("The TPC-H table.", kind=_SETTING)
    scale: Annotated[
        Decimal,
        BeforeValidator(to_exact_scale),
        AfterValidator(check_tpch_scale),
        WithJsonSchema({"type": "number", "minimum": MINIMUM_TPCH_SCALE, "maximum": MAXIMUM_TPCH_SCALE}),
    ] = setting("TPC-H scale factor; 1 is about 1 GB of text for all tables.", default=Decimal(1), kind=_SETTING)
    chunks: int | None = setting(
        "Number of parts that streams generate independently; without it the number of streams. "
        "nation and region always are one part.",
        default=None,
        kind=_SETTING,
        ge=1,
        le=MAXIMUM_TPCH_CHUNKS,
    )


class GenerateSourceSpec(SpecModel):
    """Rows that are generated, without files."""

    generate: GenerateSpec = setting("What to generate.")
    layout: LayoutSetting = setting("Name of a layout, or the layout itself.", kind=_SETTING)


def _source_tag(value: object) -> str:
    generated = isinstance(value, GenerateSourceSpec) or (isinstance(value, Mapping) and "generate" in value)
    return "<generate>" if generated else "<files>"


SourceSpec = Annotated[
    Annotated[FileSourceSpec, Tag("<files>")] | Annotated[GenerateSourceSpec, Tag("<generate>")],
    Discriminator(_source_tag),
]


def _check_column_mapping(columns: dict[str, str] | None) -> dict[str, str] | None:
    if columns is not None and not columns:
        raise own_error(
            "the column mapping is empty",
            expected="target column: source column",
            hint="Leave `columns` out to load all.",
        )
    seen: dict[str, str] = {}
    for target in columns or {}:
        first = seen.setdefault(target.lower(), target)
        if first != target:
            raise own_error(
                f"the target columns `{show_name(first)}` and `{show_name(target)}` differ only in case",
                expected="each target column once",
                path=(target,),
            )
    return columns


class DestinationSpec(SpecModel):
    """The table that rows go to."""

    input: str = setting("Name of the source or transform whose rows arrive here.", kind=_SETTING)
    connection: str = setting("Name of a connection of type duckdb, postgres or null.", kind=_SETTING)
    table: Annotated[str, AfterValidator(check_table)] = setting(
        "`table` or `schema.table`; created if it does not exist.", kind=_SETTING
    )
    target: Literal["create", "append", "replace"] = setting(
        "What happens to existing rows: `create` fails if the table exists, `append` keeps them, `replace` exchanges "
        "them and keeps grants, comments, constraints and dependent views.",
        kind=_SETTING,
    )
    load: Literal["staged", "single", "view"] = setting(
        "How rows travel: `staged` through a staging table per partition that is switched in (a table without "
        "partitions is loaded `single`, and the plan says so), `single` into one hidden table, `view` as a UNION ALL "
        "view over the writers' tables, in DuckDB over a table per declared partition.",
        default="staged",
        kind=_SETTING,
    )
    columns: Annotated[dict[str, str] | None, AfterValidator(_check_column_mapping)] = setting(
        "Target column: source column. Without it every source column goes to the target column of the same name.",
        default=None,
        kind=_SETTING,
    )
    partition: PartitionSpec | None = setting(
        "How a table that is loaded `staged` is divided; loaded otherwise it is not, and the plan says so.",
        default=None,
    )
    partitions: Names = setting(
        "Names of partitions that are loaded anew, with `target: replace`; all others stay, and rows that belong into "
        "them are rejects.",
        default=None,
        kind=_SETTING,
    )
    commit: CommitSpec | None = setting(
        "Commits about every so many rows or bytes, so that a load which breaks off goes on from there; without it a "
        "table is filled in one transaction, which is faster.",
        default=None,
    )
    lock: bool = setting(
        "Whether nobody else may write to an existing table from the first row to the end of the task; readers go on.",
        default=DEFAULT_OPTIONS.lock,
        kind=_SETTING,
    )
    check_constraints: bool = setting(
        "Whether CHECK constraints of an existing table are verified for the rows; if not they are kept as NOT VALID. "
        "NOT NULL and the bounds of partitions always are.",
        default=DEFAULT_OPTIONS.check_constraints,
        kind=_SETTING,
    )
    keep_identity: bool = setting(
        "Whether the values of the source go into columns that the table would number itself.",
        default=DEFAULT_OPTIONS.keep_identity,
        kind=_SETTING,
    )
    disable_triggers: bool = setting(
        "Whether the triggers of an existing table do not fire for the rows.",
        default=DEFAULT_OPTIONS.disable_triggers,
        kind=_SETTING,
    )
    analyze: bool = setting(
        "Whether statistics of the table are made at the end.", default=DEFAULT_OPTIONS.analyze, kind=_SETTING
    )
    indexes: Literal["before", "after"] = setting(
        "Whether the indexes of an existing table are built for the new rows before they are loaded, so that a "
        "duplicate ends the load at once, or after, which is faster: a duplicate is then looked for with a second pass "
        "over the source. Rows that are appended straight to a table always go through its indexes.",
        default=DEFAULT_OPTIONS.indexes,
        kind=_SETTING,
    )

    @model_validator(mode="after")
    def _check_together(self) -> Self:
        """A table or view that did not exist has nothing that these options could be about."""
        for key, value in (("target", "create"), ("load", "view")):
            if getattr(self, key) != value:
                continue
            for option in ("lock", "check_constraints", "keep_identity", "disable_triggers", "indexes"):
                if getattr(self, option) != getattr(DEFAULT_OPTIONS, option):
                    raise own_error(
                        f"`{option}` means nothing with `{key}: {value}`, which makes new tables",
                        expected=f"`{option}` left out",
                        path=(option,),
                    )
        if self.partitions is not None:
            for key, values in (("target", ("replace",)), ("load", ("staged", "view"))):
                if getattr(self, key) not in values:
                    raise own_error(
                        f"`partitions` means nothing with `{key}: {getattr(self, key)}`",
                        expected=f"`partitions` with {' or '.join(f'`{key}: {value}`' for value in values)}",
                        path=("partitions",),
                    )
        return self


def _check_destinations(named: dict[str, Any]) -> dict[str, Any]:
    if not named:
        raise own_error("a data flow has no destination", expected="one destination or more", hint="Add a destination.")
    return named


def _check_sources(named: dict[str, Any]) -> dict[str, Any]:
    if not named:
        raise own_error("a data flow has no source", expected="one source or more", hint="Add a source.")
    return named


class DataFlowSpec(SpecModel):
    """Rows from sources through transforms to destinations."""

    rejects: RejectsSpec = setting("Rows that cannot be loaded.", default_factory=RejectsSpec)
    sources: Annotated[dict[Name, SourceSpec], AfterValidator(_check_sources)] = setting(
        "The sources by name: one, the two of a join, those of a union, and any others that fill tables of their own."
    )
    transforms: dict[Name, TransformSpec] = setting(
        "What happens to the rows on their way, by name: each reads a source, another transform or one of its outputs. "
        "Several may read the same rows; what no transform reads, a destination does.",
        default_factory=dict,
    )
    destinations: Annotated[dict[Name, DestinationSpec], AfterValidator(_check_destinations)] = setting(
        "The destinations by name. Several are filled in one pass over the source. Those of one connection become "
        "visible in one transaction, those of another by one of its own behind it."
    )
