"""The models of control flow: tasks, what holds for every one of them, containers, and handlers of events."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Annotated, Any, Literal, Self, get_args

from pydantic import (
    AfterValidator,
    BeforeValidator,
    GetJsonSchemaHandler,
    PlainValidator,
    WithJsonSchema,
    model_validator,
)

from headrace.model.names import Name, VariableName
from headrace.model.settings import SettingKind, SpecModel, own_error, setting
from headrace.model.spec_build import BuildSpec
from headrace.model.spec_data_flow import DataFlowSpec
from headrace.model.spec_files import FilePatterns
from headrace.model.spec_leaves import (
    ChildPackageSpec,
    FileTaskSpec,
    GenerateTaskSpec,
    ProcessSpec,
    PythonSpec,
    SqlSpec,
    StatementSpec,
)
from headrace.model.spec_switch import SwitchSpec
from headrace.model.spec_variables import Expression, RowColumns, Variables
from headrace.model.suggest import did_you_mean, one_of

Outcome = Literal["success", "failure", "completion"]
OUTCOMES: tuple[str, ...] = get_args(Outcome)
MAXIMUM_RETRIES = 100
MAXIMUM_SECONDS = 30 * 86_400
DEFAULT_RETRY_WAIT_SECONDS = Decimal(1)
DEFAULT_RETRY_FACTOR = Decimal(2)
DEFAULT_MAXIMUM_WAIT_SECONDS = Decimal(60)

_VALUE = SettingKind.VALUE
_SETTING = SettingKind.SETTING
_EXPRESSION = SettingKind.EXPRESSION


def _check_condition(value: object) -> object:
    if isinstance(value, bool) or (isinstance(value, str) and value.strip()):
        return value
    raise own_error("a condition must be an expression", expected="DuckDB SQL that gives true or false")


Condition = Annotated[
    bool | str, PlainValidator(_check_condition), WithJsonSchema({"anyOf": [{"type": "boolean"}, {"type": "string"}]})
]


def check_tasks(tasks: dict[str, TaskSpec]) -> dict[str, TaskSpec]:
    """A group of tasks that does nothing is a mistake."""
    if not tasks:
        raise own_error("there are no tasks", expected="at least one task")
    return tasks


class ConstraintSpec(SpecModel):
    """When a task may follow another one."""

    on: Outcome = setting("How the other task must have ended; `completion` is success or failure.", default="success")
    when: Condition = setting(
        "DuckDB SQL over the variables, asked when the other task has ended.", default=True, kind=_EXPRESSION
    )
    or_skipped: bool = setting("Whether it is also met if the other task was skipped.", default=False)
    match: Literal["both", "either"] = setting("Whether `on` and `when` must hold, or one of them.", default="both")


def _constraint(value: object) -> object:
    if isinstance(value, str) and value not in OUTCOMES:
        raise own_error("a task does not end like that", expected=one_of(OUTCOMES), hint=did_you_mean(value, OUTCOMES))
    return {"on": value} if isinstance(value, str) else value


class _OutcomeAlone:
    """In the JSON Schema: an outcome may stand in place of the mapping."""

    def __get_pydantic_json_schema__(self, core_schema: Any, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        return {"anyOf": [{"enum": list(OUTCOMES)}, handler(core_schema)]}


class _NamesAlone:
    """In the JSON Schema: a name, or a list of names, may stand in place of the mapping."""

    def __get_pydantic_json_schema__(self, core_schema: Any, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        names = {"type": "array", "minItems": 1, "items": {"type": "string"}}
        return {"anyOf": [{"type": "string"}, names, handler(core_schema)]}


Constraint = Annotated[ConstraintSpec, BeforeValidator(_constraint), _OutcomeAlone()]


def _constraints(value: object) -> object:
    """`load`, `[load, check]` and `{load: success}` are the same but for what they can say."""
    if isinstance(value, str):
        return {value: "success"}
    if isinstance(value, list) and all(isinstance(name, str) for name in value):
        return dict.fromkeys(value, "success")
    if not isinstance(value, Mapping):
        raise own_error(
            "this names no task that comes before",
            expected="the name of a task, a list of names, or name: success, failure or completion",
        )
    return value


Constraints = Annotated[dict[Name, Constraint], BeforeValidator(_constraints), _NamesAlone()]


def _check_seconds(value: object) -> object:
    """Seconds, whole or not, as an exact number."""
    if isinstance(value, (int, Decimal)) and not isinstance(value, bool) and 0 <= value <= MAXIMUM_SECONDS:
        return Decimal(value)
    raise own_error("this is no time in seconds", expected=f"a number from 0 to {MAXIMUM_SECONDS:,}")


Seconds = Annotated[
    Decimal,
    BeforeValidator(_check_seconds),
    WithJsonSchema({"type": "number", "minimum": 0, "maximum": MAXIMUM_SECONDS}),
]


def _check_factor(value: object) -> object:
    if isinstance(value, (int, Decimal)) and not isinstance(value, bool) and 1 <= value <= 10:
        return Decimal(value)
    raise own_error("this is no factor", expected="a number from 1 to 10")


class RetrySpec(SpecModel):
    """How often a task that failed is tried again, if trying again can help: a lost connection, a lock, no session.

    Data flows that are planned before the run are planned together: connecting and planning is tried again as the most
    patient of them says.
    """

    times: int = setting("How many times more.", kind=_VALUE, ge=0, le=MAXIMUM_RETRIES)
    wait_seconds: Seconds = setting(
        "Seconds before the first of them.", default=DEFAULT_RETRY_WAIT_SECONDS, kind=_VALUE
    )
    factor: Annotated[
        Decimal, BeforeValidator(_check_factor), WithJsonSchema({"type": "number", "minimum": 1, "maximum": 10})
    ] = setting("By how much each wait is longer than the one before.", default=DEFAULT_RETRY_FACTOR, kind=_VALUE)
    maximum_wait_seconds: Seconds = setting("The longest wait.", default=DEFAULT_MAXIMUM_WAIT_SECONDS, kind=_VALUE)


class HandlerSpec(SpecModel):
    """What happens when an event occurs: a control flow of its own."""

    tasks: Annotated[dict[Name, TaskSpec], AfterValidator(check_tasks)] = setting("The tasks of the handler.")
    propagate: bool = setting("Whether the handlers of the containers around get the event too.", default=True)


class OnSpec(SpecModel):
    """Handlers by event: for this task, and for the tasks inside it that do not keep the event to themselves."""

    error: HandlerSpec | None = setting("A try of a task has failed; it may be tried again.", default=None)
    task_failed: HandlerSpec | None = setting("A task has failed, after all tries.", default=None)
    warning: HandlerSpec | None = setting("A task has said something that its user should know.", default=None)
    pre_execute: HandlerSpec | None = setting("A task is about to start.", default=None)
    post_execute: HandlerSpec | None = setting("A task has ended, in whatever way.", default=None)


class SequenceSpec(SpecModel):
    """Tasks that belong together."""

    tasks: Annotated[dict[Name, TaskSpec], AfterValidator(check_tasks)] = setting("The tasks.")
    transaction: Name | None = setting(
        "Name of a connection: what `sql` tasks change there, and the switches of data flows, become visible together "
        "when the sequence ends, or not at all.",
        default=None,
    )


class ForeachFilesSpec(SpecModel):
    """The files that are there when the loop starts."""

    connection: str = setting("Name of a connection of type files.", kind=_VALUE)
    pattern: FilePatterns = setting("One file name or pattern, or a list, below its folder.", kind=_VALUE)
    order: Literal["name", "modified"] = setting(
        "By name, or by time of modification, oldest first.", default="name", kind=_VALUE
    )
    missing: Literal["error", "skip"] = setting("What to do if there is none.", default="skip", kind=_VALUE)


class ForeachRangeSpec(SpecModel):
    """Whole numbers or days, both ends included."""

    from_: Any = setting("The first one: a whole number or a date.", kind=_SETTING, alias="from")
    to: Any = setting("The last one.", kind=_SETTING)
    step: int = setting("How far to the next one, in numbers or days; not 0.", default=1, kind=_SETTING)


_FOREACH_KINDS = ("in_", "files", "query", "rows", "range")


class ForeachSpec(SpecModel):
    """The same tasks once for each value of a list, one turn after the other."""

    item: VariableName | None = setting(
        "Name of the current value, used as `${item}` in the tasks; with `in`, `files` and `range`.", default=None
    )
    in_: list[Any] | None = setting(
        "The values: a list, or a `${parameter}` or variable of type list.", default=None, kind=_SETTING, alias="in"
    )
    files: ForeachFilesSpec | None = setting("The values are names of files, below the folder.", default=None)
    query: StatementSpec | None = setting("The rows of a query, read once when the loop starts.", default=None)
    rows: VariableName | None = setting("The rows in a variable of type rows.", default=None)
    range: ForeachRangeSpec | None = setting("The values are numbers or days in a row.", default=None)
    as_: RowColumns | None = setting(
        "Of rows, column: type; each column is a variable of the turn.", default=None, alias="as"
    )
    tasks: Annotated[dict[Name, TaskSpec], AfterValidator(check_tasks)] = setting("The tasks of one turn.")

    @model_validator(mode="after")
    def _check_together(self) -> Self:
        given = [name.rstrip("_") for name in _FOREACH_KINDS if getattr(self, name) is not None]
        if len(given) != 1:
            raise own_error(
                "a foreach needs exactly one list of values", expected="one of in, files, query, rows, range"
            )
        has_rows = given[0] in ("query", "rows")
        wanted, other = ("as", "item") if has_rows else ("item", "as")
        if getattr(self, "as_" if has_rows else "item") is None:
            raise own_error(f"`{wanted}` is missing for `{given[0]}`", expected=f"`{wanted}`")
        if getattr(self, "item" if has_rows else "as_") is not None:
            raise own_error(f"`{other}` means nothing for `{given[0]}`", expected=f"`{wanted}`", path=(other,))
        return self


class ForSpec(SpecModel):
    """The same tasks again and again, as long as a condition holds."""

    initial: dict[VariableName, Expression] = setting(
        "Variable: DuckDB SQL, set before the first turn.", default_factory=dict, kind=_EXPRESSION
    )
    while_: Condition = setting("Asked before every turn.", kind=_EXPRESSION, alias="while")
    step: dict[VariableName, Expression] = setting(
        "Variable: DuckDB SQL, set behind every turn.", default_factory=dict, kind=_EXPRESSION
    )
    tasks: Annotated[dict[Name, TaskSpec], AfterValidator(check_tasks)] = setting("The tasks of one turn.")


class TaskSpec(SpecModel):
    """One task: exactly one kind, and what holds for all of them."""

    description: str | None = setting("What the task is for.", default=None, kind=SettingKind.PROSE)
    when: Condition = setting(
        "DuckDB SQL; unless it gives true the task is skipped, and those that follow it too, except by `or_skipped`.",
        default=True,
        kind=_EXPRESSION,
    )
    disabled: bool = setting(
        "Whether the task is switched off; those behind it go on as if it had succeeded.", default=False, kind=_VALUE
    )
    after: Constraints | None = setting(
        "The tasks beside it that it follows: a name, a list, or name: success, failure, completion or more.",
        default=None,
    )
    join: Literal["all", "any"] = setting("Whether all of `after` must hold, or one of them.", default="all")
    variables: Variables = setting("Variables of the task and of those inside it.", default_factory=dict)
    on: OnSpec | None = setting("Handlers of events.", default=None)
    retry: RetrySpec | None = setting("Tries again after an error that may pass.", default=None)
    timeout_seconds: Seconds | None = setting(
        "How long each try may take; then it is cancelled and has failed.", default=None, kind=_VALUE
    )
    maximum_errors: int = setting(
        "Of a container: how many tasks directly in it may fail before it does.", default=0, kind=_VALUE, ge=0
    )
    data_flow: DataFlowSpec | None = setting("Loads rows.", default=None)
    sql: SqlSpec | None = setting("Executes SQL.", default=None)
    process: ProcessSpec | None = setting("Runs a program.", default=None)
    file: FileTaskSpec | None = setting("Copies, moves, deletes, makes or archives files.", default=None)
    python: PythonSpec | None = setting("Calls a Python function.", default=None)
    package: ChildPackageSpec | None = setting("Runs another package.", default=None)
    set: dict[VariableName, Expression] | None = setting(
        "Sets variables, all at once: variable: DuckDB SQL.", default=None, kind=_EXPRESSION
    )
    build: BuildSpec | None = setting("Fills a table with the rows of a query.", default=None)
    switch: SwitchSpec | None = setting("Exchanges a partition.", default=None)
    generate: GenerateTaskSpec | None = setting("Writes test data.", default=None)
    sequence: SequenceSpec | None = setting("Holds tasks.", default=None)
    foreach: ForeachSpec | None = setting("Repeats tasks for each value.", default=None)
    for_: ForSpec | None = setting("Repeats tasks while a condition holds.", default=None, alias="for")


HandlerSpec.model_rebuild()
OnSpec.model_rebuild()
SequenceSpec.model_rebuild()
ForeachSpec.model_rebuild()
ForSpec.model_rebuild()
