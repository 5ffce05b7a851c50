"""The models of a package outside its tasks. Together with `spec_tasks` and `layout` they define the format."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, ConfigDict, Discriminator, PlainValidator, Tag, WithJsonSchema

from headrace.machine.affinity import Affinity
from headrace.model.conninfo import DEFAULT_CONNECT_TIMEOUT_SECONDS, SslMode
from headrace.model.home import check_path
from headrace.model.layout import Layout, LayoutFile
from headrace.model.memory_size import MEMORY_PATTERN, parse_memory_size
from headrace.model.names import Name, VariableName
from headrace.model.reject_limits import PackageRejectsSpec
from headrace.model.settings import SettingKind, SpecModel, own_error, setting
from headrace.model.spec_tasks import OnSpec, TaskSpec, check_tasks
from headrace.model.spec_variables import Variables
from headrace.model.table_names import RESERVED_SCHEMA

FORMAT_VERSION = 1
MAXIMUM_STREAMS = 1024
MAXIMUM_CONCURRENT = 256
DEFAULT_MEMORY = "1GB"
DEFAULT_LOG_LEVEL = "information"
CONNECTION_TYPES = ("files", "duckdb", "postgres", "null")
CONNECTION_TYPE_LIST = "files, duckdb, postgres or null"
DEFAULT_LOCK_TIMEOUT_SECONDS = 30
DEFAULT_STALL_TIMEOUT_SECONDS = 60
MAXIMUM_LOCK_TIMEOUT_SECONDS = 86_400

ScalarType = Literal["string", "integer", "decimal", "boolean", "date", "timestamp", "path"]
ParameterType = Literal["string", "integer", "decimal", "boolean", "date", "timestamp", "path", "list"]
LogLevel = Literal["error", "warning", "information", "verbose"]


class ParameterSpec(SpecModel):
    """A value that the command line can set."""

    type: ParameterType = setting("Type of the value.")
    required: bool = setting("Whether the command line must give it.", default=False)
    default: Any = setting(
        "Value if the command line gives none; without a default the value is null. A path is relative to the "
        "package file. `${env:X}`, `${file:X}` and `${system.x}` may be used.",
        default=None,
        kind=SettingKind.VALUE,
    )
    one_of: list[Any] | None = setting("The allowed values; for a list, the allowed values of its items.", default=None)
    items: ScalarType = setting("For a list, the type of its items.", default="string")
    secret: bool | None = setting(
        "Whether its values are hidden in everything that is shown and stored. By default those that come from "
        "`${env:X}` or `${file:X}` are; with `false` those in `default` and in an environment may be shown.",
        default=None,
    )
    description: str | None = setting("What the parameter is for.", default=None, kind=SettingKind.PROSE)


class FilesConnectionSpec(SpecModel):
    """A folder with flat files."""

    type: Literal["files"] = setting("files")
    path: Annotated[str, AfterValidator(check_path)] = setting(
        "The folder, relative to the package file.", kind=SettingKind.VALUE, min_length=1
    )


def _check_database_path(path: str) -> str:
    if not path or path.startswith(":memory:"):
        raise own_error(
            "a DuckDB connection needs a file",
            expected="the path of a database file",
            hint="To try a package without storing rows, use a connection of type null.",
        )
    return check_path(path)


class DuckdbConnectionSpec(SpecModel):
    """A DuckDB database file."""

    type: Literal["duckdb"] = setting("duckdb")
    path: Annotated[str, AfterValidator(_check_database_path)] = setting(
        "The database file, relative to the package file; created if it does not exist.", kind=SettingKind.VALUE
    )
    lock_timeout_seconds: int = setting(
        "How long to wait while another process has the file open.",
        default=DEFAULT_LOCK_TIMEOUT_SECONDS,
        kind=SettingKind.VALUE,
        ge=0,
        le=MAXIMUM_LOCK_TIMEOUT_SECONDS,
    )


def _check_null_type(value: object) -> str:
    # In YAML the word null is the value null; both spellings mean the connection of that name.
    if value is not None and value != "null":
        raise own_error("this is not a connection type", expected=CONNECTION_TYPE_LIST)
    return "null"


class NullConnectionSpec(SpecModel):
    """Computes aggregates of every column and discards the rows."""

    type: Annotated[str, PlainValidator(_check_null_type), WithJsonSchema({"enum": [None, "null"]})] = setting("null")


def connection_tag(value: object) -> str:
    """Which of the models a connection is read with."""
    if isinstance(value, SpecModel):
        return f"<{getattr(value, 'type', 'unknown')}>"
    if not isinstance(value, Mapping) or "type" not in value:
        return "<unknown>"
    kind = "null" if value["type"] is None else value["type"]
    return f"<{kind}>" if kind in CONNECTION_TYPES else "<unknown>"


class LedgerSpec(SpecModel):
    """Where the ledger of the runs is kept."""

    schema_: str = setting(
        "Schema of the ledger's tables, created if it does not exist.",
        default=RESERVED_SCHEMA,
        kind=SettingKind.VALUE,
        alias="schema",
        min_length=1,
    )


def _check_off(value: object) -> object:
    if value != "off":
        raise own_error("this is no place for a ledger", expected="{schema: NAME} or off")
    return value


def _ledger_tag(value: object) -> str:
    return "<ledger>" if isinstance(value, (Mapping, LedgerSpec)) else "<off>"


LedgerSetting = Annotated[
    Annotated[LedgerSpec, Tag("<ledger>")] | Annotated[Literal["off"], BeforeValidator(_check_off), Tag("<off>")],
    Discriminator(_ledger_tag),
]


class PostgresConnectionSpec(SpecModel):
    """A database of a PostgreSQL server. What neither `url` nor the other keys say comes from where libpq takes it:
    service files, PG* variables, password files, defaults.
    """

    type: Literal["postgres"] = setting("postgres")
    url: str | None = setting(
        "The connection as `postgresql://user@host:port/database?keyword=value`, or as `host=... dbname=...`.",
        default=None,
        kind=SettingKind.VALUE,
        min_length=1,
    )
    host: str | None = setting(
        "Name or address of the server, or the folder of its Unix socket.", default=None, kind=SettingKind.VALUE
    )
    port: int | None = setting("Port of the server.", default=None, kind=SettingKind.VALUE, ge=1, le=65_535)
    database: str | None = setting("Name of the database.", default=None, kind=SettingKind.VALUE)
    user: str | None = setting("Name of the user.", default=None, kind=SettingKind.VALUE)
    password: str | None = setting(
        "The password, as `${env:NAME}` or `${file:PATH}`: never in the package itself.",
        default=None,
        kind=SettingKind.VALUE,
    )
    sslmode: SslMode | None = setting(
        "When the connection is encrypted, and what is verified.", default=None, kind=SettingKind.VALUE
    )
    sslrootcert: str | None = setting(
        "File with the certificates that are trusted, or `system`.", default=None, kind=SettingKind.VALUE
    )
    sslcert: str | None = setting("File with the client's certificate.", default=None, kind=SettingKind.VALUE)
    sslkey: str | None = setting("File with the key of that certificate.", default=None, kind=SettingKind.VALUE)
    connect_timeout_seconds: int | None = setting(
        f"How long a connection may take to open, {DEFAULT_CONNECT_TIMEOUT_SECONDS} without a value; 0: no limit.",
        default=None,
        kind=SettingKind.VALUE,
        ge=0,
        le=MAXIMUM_LOCK_TIMEOUT_SECONDS,
    )
    service: str | None = setting("Name of a section of the service file.", default=None, kind=SettingKind.VALUE)
    options: str | None = setting(
        "Settings of the sessions, as in `-c statement_timeout=0`.", default=None, kind=SettingKind.VALUE
    )
    lock_timeout_seconds: int = setting(
        "How long to wait for a lock that another session or run holds.",
        default=DEFAULT_LOCK_TIMEOUT_SECONDS,
        kind=SettingKind.VALUE,
        ge=0,
        le=MAXIMUM_LOCK_TIMEOUT_SECONDS,
    )
    stall_timeout_seconds: int = setting(
        "How long nothing may move on a connection while bytes wait to be sent or taken; 0: no limit.",
        default=DEFAULT_STALL_TIMEOUT_SECONDS,
        kind=SettingKind.VALUE,
        ge=0,
        le=MAXIMUM_LOCK_TIMEOUT_SECONDS,
    )
    ledger: LedgerSetting = setting(
        "Where the ledger of the runs is kept, or `off`: without it a run cannot be resumed.",
        default=LedgerSpec(),
        kind=SettingKind.VALUE,
    )


class UnknownConnectionSpec(SpecModel):
    """Only for messages: a connection whose type is missing or unknown."""

    # Which other keys are right depends on the type, so nothing is said about them.
    model_config = ConfigDict(extra="ignore")

    type: Literal["files", "duckdb", "postgres", "null"] = setting(CONNECTION_TYPE_LIST)


ConnectionSpec = Annotated[
    Annotated[FilesConnectionSpec, Tag("<files>")]
    | Annotated[DuckdbConnectionSpec, Tag("<duckdb>")]
    | Annotated[PostgresConnectionSpec, Tag("<postgres>")]
    | Annotated[NullConnectionSpec, Tag("<null>")]
    | Annotated[UnknownConnectionSpec, Tag("<unknown>")],
    Discriminator(connection_tag),
]


def _layout_entry_tag(value: object) -> str:
    in_file = isinstance(value, LayoutFile) or (isinstance(value, Mapping) and "file" in value)
    return "<file>" if in_file else "<layout>"


LayoutEntry = Annotated[
    Annotated[LayoutFile, Tag("<file>")] | Annotated[Layout, Tag("<layout>")], Discriminator(_layout_entry_tag)
]


def check_version(value: object) -> int:
    """The version of the format, which is that of packages and of the files beside them."""
    if isinstance(value, int) and not isinstance(value, bool):
        if value == FORMAT_VERSION:
            return value
        if value > FORMAT_VERSION:
            raise own_error(
                "the file has a newer format", expected=str(FORMAT_VERSION), hint="Install a newer Headrace."
            )
    raise own_error("this is not a format version", expected=str(FORMAT_VERSION), hint="Write `headrace: 1`.")


def _check_memory(text: object) -> object:
    try:
        parse_memory_size(text if isinstance(text, str) else "")
    except ValueError as error:
        raise own_error(
            "this is not an amount of memory",
            expected="a number with MB, GB, MiB or GiB",
            hint='Write for example "1GB".',
        ) from error
    return text


MemorySize = Annotated[
    str, BeforeValidator(_check_memory), WithJsonSchema({"type": "string", "pattern": f"^{MEMORY_PATTERN}$"})
]


class PackageSpec(SpecModel):
    """One package file."""

    headrace: Annotated[Literal[1], BeforeValidator(check_version)] = setting("Version of the package format.")
    package: Name = setting("Name of the package.")
    description: str | None = setting("What the package is for.", default=None, kind=SettingKind.PROSE)
    parameters: dict[VariableName, ParameterSpec] = setting(
        "Values that the command line can set.", default_factory=dict
    )
    connections: dict[Name, ConnectionSpec] = setting("Named endpoints.", default_factory=dict)
    layouts: dict[Name, LayoutEntry] = setting("Columns and dialects of flat files.", default_factory=dict)
    streams: int | None = setting(
        "Number of parser threads that all data flows share; without it the number of usable CPUs.",
        default=None,
        kind=SettingKind.VALUE,
        ge=1,
        le=MAXIMUM_STREAMS,
    )
    memory: MemorySize = setting(
        "Memory that one run may use, in MB, GB, MiB or GiB.", default=DEFAULT_MEMORY, kind=SettingKind.VALUE
    )
    affinity: Affinity = setting(
        "Whether streams keep to CPUs: `cores` gives each one CPU, `numa` each the CPUs of one node of the machine.",
        default="none",
        kind=SettingKind.VALUE,
    )
    rejects: PackageRejectsSpec | None = setting(
        "How many rows of all data flows together may be rejected.", default=None
    )
    variables: Variables = setting("Values that tasks write and read.", default_factory=dict)
    on: OnSpec | None = setting("Handlers of events of all tasks.", default=None)
    max_concurrent: int | None = setting(
        "How many tasks may run side by side, data flows apart, of which one at a time has all streams; without it the "
        "number of usable CPUs and 2.",
        default=None,
        kind=SettingKind.VALUE,
        ge=1,
        le=MAXIMUM_CONCURRENT,
    )
    maximum_errors: int = setting(
        "How many tasks at the top may fail before the run does.", default=0, kind=SettingKind.VALUE, ge=0
    )
    log_level: LogLevel = setting(
        "Which events are written into `events.jsonl`: errors; warnings too; what the run does, too; or everything, "
        "progress and values of variables included.",
        default=DEFAULT_LOG_LEVEL,
        kind=SettingKind.VALUE,
    )
    tasks: Annotated[dict[Name, TaskSpec], AfterValidator(check_tasks)] = setting(
        "The tasks. Those without `after` may run side by side; data flows wait for one another, in this order."
    )
