"""The models of tasks that do one thing, other than loading rows."""

from __future__ import annotations

from decimal import Decimal
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BeforeValidator, WithJsonSchema, model_validator

from headrace.model.home import check_path
from headrace.model.names import Name, VariableName
from headrace.model.settings import ONE_OR_MANY, SettingKind, SpecModel, errors_below, own_error, setting
from headrace.model.spec_data_flow import (
    MAXIMUM_TPCH_CHUNKS,
    MAXIMUM_TPCH_SCALE,
    MINIMUM_TPCH_SCALE,
    TPCH_TABLES,
    TpchTable,
    check_tpch_scale,
    to_exact_scale,
)
from headrace.model.suggest import one_of

_VALUE = SettingKind.VALUE
_SETTING = SettingKind.SETTING
FILE_OPERATIONS = ("copy", "move", "delete", "create", "archive")
MAXIMUM_EXIT_CODE = 255


def _one_as_list(value: object) -> object:
    return [value] if isinstance(value, str) else value


def is_encodable(text: str) -> bool:
    """False for half of a surrogate pair, which YAML can write."""
    return not any("\ud800" <= character <= "\udfff" for character in text)


def _no_empty_text(texts: list[str]) -> list[str]:
    if not texts or not all(texts):
        raise own_error("a text is empty", expected="one text or a list of texts, none of them empty")
    return texts


def _check_for_system(text: str) -> str:
    """Arguments, names and values of the environment: the system takes no zero character and no half of a pair."""
    if "\0" in text or not is_encodable(text):
        raise own_error("the text cannot be given to a program", expected="UTF-8 without the character NUL")
    return text


def _check_encodable(text: str) -> str:
    if not is_encodable(text):
        raise own_error("the text cannot be written in UTF-8", expected="characters of Unicode")
    return text


def _check_variable_name(name: str) -> str:
    if not name or "=" in name:
        raise own_error("this cannot be the name of an environment variable", expected="a name without `=`")
    return _check_for_system(name)


def _check_path(path: str) -> str:
    return _check_for_system(check_path(path))


def _check_paths(paths: list[str]) -> list[str]:
    for number, path in enumerate(paths):
        with errors_below(number):
            _check_path(path)
    return paths


def _check_exit_code(code: int) -> int:
    if not 0 <= code <= MAXIMUM_EXIT_CODE:
        raise own_error("there is no such exit code", expected=f"a whole number from 0 to {MAXIMUM_EXIT_CODE}")
    return code


def _check_function(function: str) -> str:
    module, colon, name = function.rpartition(":")
    if not (colon and module and all(part.isidentifier() for part in name.split("."))):
        raise own_error("this names no function", expected="module:function or path/to/file.py:function")
    return _check_path(function)


Argument = Annotated[str, AfterValidator(_check_for_system)]
EnvironmentName = Annotated[str, AfterValidator(_check_variable_name)]
PathText = Annotated[str, AfterValidator(_check_path)]
ExitCode = Annotated[
    int,
    AfterValidator(_check_exit_code),
    WithJsonSchema({"type": "integer", "minimum": 0, "maximum": MAXIMUM_EXIT_CODE}),
]
Texts = Annotated[
    list[str],
    ONE_OR_MANY,
    BeforeValidator(_one_as_list),
    AfterValidator(_no_empty_text),
    AfterValidator(_check_paths),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "string", "minLength": 1},
                {"type": "array", "minItems": 1, "items": {"type": "string", "minLength": 1}},
            ]
        }
    ),
]


class StatementSpec(SpecModel):
    """SQL of a destination: its text, or a file with it."""

    connection: str = setting("Name of a connection of type duckdb or postgres.", kind=_VALUE)
    text: str | None = setting(
        "The statements, with `;` between them. `$name` stands for the value of a variable or parameter: it is bound "
        "with the type of its declaration, never pasted. BEGIN, COMMIT and the like have no place in it.",
        default=None,
        kind=SettingKind.SQL,
        min_length=1,
    )
    file: str | None = setting(
        "File with the statements, in UTF-8, relative to the package file. In it `$name` means the same.",
        default=None,
        kind=_VALUE,
        min_length=1,
    )

    @model_validator(mode="after")
    def _check_one_text(self) -> Self:
        if (self.text is None) == (self.file is None):
            raise own_error("the SQL is missing or stands in two places", expected="`text` or `file`")
        return self


class SqlSpec(StatementSpec):
    """Statements for a database."""

    row: dict[VariableName, str] | None = setting(
        "Variable: column. The last statement must give exactly one row, whose columns go into the variables. Values "
        "are text, whole and exact numbers, true or false, dates, and times without time zone; CAST others.",
        default=None,
    )
    rows: VariableName | None = setting(
        "A variable of type rows for all rows of the last statement, at most 100,000 and 64 MB.", default=None
    )
    affected: VariableName | None = setting(
        "A variable of type integer for the number of rows that the last statement has changed.", default=None
    )
    identifiers: dict[VariableName, str] = setting(
        "Names of tables and the like that are not known before, `name` or `schema.name`: where the text has `$key`, "
        "the name stands in quotes. A key must not be the name of a variable or parameter.",
        default_factory=dict,
        kind=_VALUE,
    )
    transaction: bool = setting(
        "Whether all statements are one transaction, which is done exactly once where the connection has a ledger. "
        "Without it each commits by itself, as VACUUM and CREATE INDEX CONCURRENTLY need it, and a resumed run may "
        "repeat them.",
        default=True,
    )


class ProcessSpec(SpecModel):
    """A program of this machine. Needs trust."""

    command: list[Argument] = setting(
        "The program and its arguments, one by one: no shell reads them. A secret is refused here: every user of the "
        "machine could see it.",
        kind=_VALUE,
        min_length=1,
    )
    folder: PathText = setting("Where it runs, relative to the package file.", default=".", kind=_VALUE, min_length=1)
    environment: dict[EnvironmentName, Argument] = setting(
        "Environment variables beside those of Headrace itself, HEADRACE_RUN_ID and HEADRACE_TASK.",
        default_factory=dict,
        kind=_VALUE,
    )
    input: Annotated[str, AfterValidator(_check_encodable)] | None = setting(
        "Text for its standard input, in UTF-8; without it, nothing.", default=None, kind=_VALUE
    )
    output: VariableName | None = setting(
        "A variable of type string for its standard output, in UTF-8, without the line ends at its end, at most 1 MB. "
        "Without it the output is kept in the run folder.",
        default=None,
    )
    exit_codes: list[ExitCode] = setting(
        "Exit codes that mean success. A program that a signal has ended has 128 and the number of the signal.",
        default_factory=lambda: [0],
        kind=_VALUE,
        min_length=1,
    )
    retry_exit_codes: list[ExitCode] = setting(
        "Exit codes after which `retry` tries again.", default_factory=list, kind=_VALUE
    )
    releases: list[Name] = setting(
        "Connections of type duckdb whose files are closed while it runs, so that it can open them.",
        default_factory=list,
    )

    @model_validator(mode="after")
    def _check_together(self) -> Self:
        if not self.command[0]:
            raise own_error("the program has no name", expected="a name or a path", path=("command",))
        both = [code for code in self.retry_exit_codes if code in self.exit_codes]
        if both:
            raise own_error(
                f"exit code {both[0]} means success and failure",
                expected="a code in `exit_codes` or in `retry_exit_codes`",
                path=("retry_exit_codes",),
            )
        return self


class FileTaskSpec(SpecModel):
    """Does one of copy, move, delete, create and archive with files. Nothing is overwritten unless told.

    Patterns match as those of file sources. What is moved, deleted or archived is a link itself, never the file that it
    leads to; patterns find nothing behind a link to a folder.
    """

    copy_: Texts | None = setting(
        "Files, or patterns, that are copied, with their times and rights; of a link, the file that it leads to.",
        default=None,
        kind=_VALUE,
        alias="copy",
    )
    move: Texts | None = setting("Files, or patterns, that are moved.", default=None, kind=_VALUE)
    delete: Texts | None = setting("Files, patterns or empty folders that are deleted.", default=None, kind=_VALUE)
    create: Texts | None = setting(
        "Folders that are made, with those above them; one that exists is fine.", default=None, kind=_VALUE
    )
    archive: Texts | None = setting(
        "Files, or patterns, that are moved into a folder under names that are free: a name that is taken gets the run "
        "id.",
        default=None,
        kind=_VALUE,
    )
    to: PathText | None = setting(
        "Where files are copied, moved or archived to: a folder if it ends with `/` or is one, if there is a pattern "
        "or a list, and always for an archive. Folders that are missing are made.",
        default=None,
        kind=_VALUE,
        min_length=1,
    )
    connection: str | None = setting(
        "Name of a connection of type files below whose folder the paths are; without it they are relative to the "
        "package file.",
        default=None,
        kind=_VALUE,
    )
    overwrite: bool = setting("Whether copy and move replace files that exist.", default=False, kind=_VALUE)
    missing: Literal["error", "skip"] = setting(
        "What to do if there is no such file, or none for a pattern.", default="error", kind=_VALUE
    )
    outside: bool = setting(
        "Whether values in the paths may lead out of the folder that is written in front of them. Needs trust.",
        default=False,
    )
    compression: Literal["none", "gzip"] = setting(
        "How archived files are compressed; `.gz` is added to their names.", default="none", kind=_VALUE
    )

    @model_validator(mode="after")
    def _check_together(self) -> Self:
        given = [name for name in FILE_OPERATIONS if self.paths_of(name) is not None]
        if len(given) != 1:
            raise own_error("a file task must do exactly one thing", expected=f"one of {', '.join(FILE_OPERATIONS)}")
        needs_place = given[0] in ("copy", "move", "archive")
        if needs_place != (self.to is not None):
            raise own_error(
                f"`to` {'is missing for' if needs_place else 'means nothing for'} `{given[0]}`",
                expected="`to` with copy, move and archive, and with nothing else",
                path=() if needs_place else ("to",),
            )
        for option, operations in (
            ("overwrite", ("copy", "move")),
            ("compression", ("archive",)),
            ("missing", ("copy", "move", "delete", "archive")),
        ):
            if option in self.model_fields_set and given[0] not in operations:
                raise own_error(
                    f"`{option}` means nothing for `{given[0]}`",
                    expected=f"`{option}` with {one_of(operations)}",
                    path=(option,),
                )
        return self

    def paths_of(self, operation: str) -> list[str] | None:
        """The paths of an operation; None if the task does not do it."""
        paths: list[str] | None = getattr(self, "copy_" if operation == "copy" else operation)
        return paths

    @property
    def operation(self) -> str:
        """What the task does."""
        return next(name for name in FILE_OPERATIONS if self.paths_of(name) is not None)


class PythonSpec(SpecModel):
    """A function of the user, called in a process of its own. Needs trust."""

    function: Annotated[str, AfterValidator(_check_function)] = setting(
        "`module:function`, the module found from the folder of the package file or installed, or "
        "`path/to/file.py:function`.",
        kind=_VALUE,
        min_length=1,
    )
    arguments: dict[str, Any] = setting(
        "Arguments by name: values, references or `{expr: SQL}`. Rows are a list of mappings.",
        default_factory=dict,
        kind=_SETTING,
    )
    result: VariableName | dict[VariableName, str] | None = setting(
        "A variable for what it returns; or variable: key, if it returns a mapping. A float counts as the decimal that "
        "Python prints, a list of mappings with the same keys as rows.",
        default=None,
    )
    releases: list[Name] = setting(
        "Connections of type duckdb whose files are closed while it runs, so that it can open them.",
        default_factory=list,
    )


class ChildPackageSpec(SpecModel):
    """Another package, run as a part of this run."""

    file: str = setting("The package file, relative to this one. Known before the run.", kind=_VALUE, min_length=1)
    parameters: dict[VariableName, Any] = setting(
        "Its parameters: values, references or `{expr: SQL}`.", default_factory=dict, kind=_SETTING
    )
    connections: dict[Name, Name] = setting(
        "Its connections in place of which connections of this package are used: theirs: ours.", default_factory=dict
    )
    results: dict[VariableName, VariableName] = setting(
        "Variables of this package that get values of its variables when it ends: ours: theirs.", default_factory=dict
    )


class GenerateTaskSpec(SpecModel):
    """Writes tables of TPC-H as text files; complete files of the same name are kept."""

    tpch: Annotated[
        list[TpchTable],
        ONE_OR_MANY,
        BeforeValidator(_one_as_list),
        WithJsonSchema(
            {
                "anyOf": [
                    {"type": "string", "enum": list(TPCH_TABLES)},
                    {"type": "array", "minItems": 1, "items": {"type": "string", "enum": list(TPCH_TABLES)}},
                ]
            }
        ),
    ] = setting("One table or a list.", default_factory=lambda: list(TPCH_TABLES), kind=_VALUE, min_length=1)
    scale: Annotated[
        Decimal,
        BeforeValidator(to_exact_scale),
        AfterValidator(check_tpch_scale),
        WithJsonSchema({"type": "number", "minimum": MINIMUM_TPCH_SCALE, "maximum": MAXIMUM_TPCH_SCALE}),
    ] = setting("TPC-H scale factor; 1 is about 1 GB of text for all tables.", default=Decimal(1), kind=_VALUE)
    chunks: int = setting("Files of each table.", default=1, kind=_VALUE, ge=1, le=MAXIMUM_TPCH_CHUNKS)
    out: PathText = setting("The folder, relative to the package file; made if missing.", kind=_VALUE, min_length=1)
