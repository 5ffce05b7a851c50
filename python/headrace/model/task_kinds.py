"""The kinds of tasks, each declared once: checks, plan, runner, JSON Schema and reference read this table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from headrace.model.settings import SpecModel
from headrace.model.spec_build import BuildSpec
from headrace.model.spec_data_flow import DataFlowSpec
from headrace.model.spec_leaves import (
    ChildPackageSpec,
    FileTaskSpec,
    GenerateTaskSpec,
    ProcessSpec,
    PythonSpec,
    SqlSpec,
)
from headrace.model.spec_switch import SwitchSpec
from headrace.model.spec_tasks import ForeachSpec, ForSpec, SequenceSpec

# What a resumed run may do again of a task that was killed behind its effect, but before the journal knew.
Repeat = Literal["exactly once", "at least once", "by what is inside"]


@dataclass(frozen=True, slots=True)
class TaskKind:
    """One kind. `spec` is None for `set`, whose settings are the variables themselves.

    `needs_trust`: runs code that the package brings along; `trusted_setting`: does so, or the like, if it says `true`.
    `is_opaque`: may change files or tables in a way that
    planning cannot foresee.
    """

    name: str
    spec: type[SpecModel] | None
    sentence: str
    repeat: Repeat
    is_container: bool = False
    needs_trust: bool = False
    trusted_setting: str | None = None
    is_opaque: bool = True


TASK_KINDS: Final[dict[str, TaskKind]] = {
    kind.name: kind
    for kind in (
        TaskKind("data_flow", DataFlowSpec, "Loads rows into a table.", "exactly once", is_opaque=False),
        TaskKind("sql", SqlSpec, "Executes statements in a database; results go into variables.", "exactly once"),
        TaskKind("process", ProcessSpec, "Runs a program.", "at least once", needs_trust=True),
        TaskKind(
            "file",
            FileTaskSpec,
            "Copies, moves, deletes, makes or archives files.",
            "exactly once",
            trusted_setting="outside",
        ),
        TaskKind(
            "python", PythonSpec, "Calls a Python function in a process of its own.", "at least once", needs_trust=True
        ),
        TaskKind(
            "package", ChildPackageSpec, "Runs another package inside this run.", "by what is inside", is_container=True
        ),
        TaskKind("set", None, "Sets variables.", "exactly once", is_opaque=False),
        TaskKind("build", BuildSpec, "Fills a table with the rows of a query of the same database.", "exactly once"),
        TaskKind("switch", SwitchSpec, "Exchanges a partition of a table for another table.", "exactly once"),
        TaskKind("generate", GenerateTaskSpec, "Writes TPC-H test data as text files.", "exactly once"),
        TaskKind("sequence", SequenceSpec, "Holds tasks that belong together.", "by what is inside", is_container=True),
        TaskKind(
            "foreach",
            ForeachSpec,
            "Repeats tasks for each value of a list, file, row or range.",
            "by what is inside",
            is_container=True,
        ),
        TaskKind("for", ForSpec, "Repeats tasks as long as a condition holds.", "by what is inside", is_container=True),
    )
}


@dataclass(frozen=True, slots=True)
class EventKind:
    """One event that handlers can be given for."""

    name: str
    sentence: str


EVENT_KINDS: Final[dict[str, EventKind]] = {
    kind.name: kind
    for kind in (
        EventKind("error", "A try of a task has failed; the task may be tried again."),
        EventKind("task_failed", "A task has failed, after all tries."),
        EventKind("warning", "A task has said something that its user should know; handled when the task has ended."),
        EventKind("pre_execute", "A task is about to start."),
        EventKind("post_execute", "A task has ended, in whatever way."),
    )
}

# Facts about the run that references and expressions see as `system.NAME`. Those of the second group are known when the
# run goes on, those of the third in handlers only.
STATIC_SYSTEM_NAMES: Final = ("machine", "package", "user")
RUN_SYSTEM_NAMES: Final = ("run_id", "started_at", "task")
HANDLER_SYSTEM_NAMES: Final = ("event", "source_task", "error", "error_kind")
