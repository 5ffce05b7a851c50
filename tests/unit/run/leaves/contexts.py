"""What a task is given when it runs, made for a test."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from headrace.errors import HeadraceError
from headrace.executors import FlowOutcome
from headrace.model import Connection, load_package
from headrace.planning import DataFlowPlan, FinishedTask
from headrace.run.cancellation import Cancellation
from headrace.run.leaves.base import LeafContext
from headrace.run.redact import Redactor
from headrace.targets import SqlSessions, Target

RUN_ID = "20261122-101530-ab12cd"
PACKAGE = """\
headrace: 1
package: test
connections:
  inbox: {type: files, path: inbox}
  nothing: {type: "null"}
tasks:
  work: {set: {}}
"""


@dataclass
class Notes:
    """Memory of a task. `stop_behind`: fails when so many notes were made, as a killed process would."""

    before: list[Mapping[str, Any]] = field(default_factory=list)
    made: list[Mapping[str, Any]] = field(default_factory=list)
    stop_behind: int | None = None

    def remember(self, note: Mapping[str, Any]) -> None:
        self.made.append(note)
        if self.stop_behind is not None and len(self.made) >= self.stop_behind:
            raise Killed

    def remembered(self) -> Sequence[Mapping[str, Any]]:
        return self.before

    def next_attempt(self) -> Notes:
        return Notes([*self.before, *self.made])


class Killed(BaseException):
    """Stands for the end of the process."""


class NoServices:
    """A task that needs no destination."""

    def sql_sessions(self, connection: Connection) -> SqlSessions:
        raise AssertionError(connection)

    def target(self, connection: Connection) -> Target:
        raise AssertionError(connection)

    def built(self, plan: DataFlowPlan, outcome: FlowOutcome) -> None:
        raise AssertionError(plan)

    def built_before(self, task: FinishedTask) -> None:
        raise AssertionError(task)


@dataclass
class Scene:
    """A folder with a package, and what its task has said."""

    folder: Path
    secrets: frozenset[str] = frozenset()
    notices: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    notes: Notes = field(default_factory=Notes)
    cancellation: Cancellation = field(default_factory=Cancellation)

    @property
    def run_folder(self) -> Path:
        return self.folder / "run"

    def context(self, *, is_resumed: bool = False, instance: str = "loop[1].work") -> LeafContext:
        path = self.folder / "package.yaml"
        if not path.exists():
            path.write_text(PACKAGE, encoding="utf-8")
        package = load_package(path)
        package.secrets.update(self.secrets)
        redact: Callable[[str], str] = Redactor(package.secrets).text
        return LeafContext(
            task=package.tasks[0],
            instance=instance,
            run_id=RUN_ID,
            package=package,
            scope=package.scope,
            cancellation=self.cancellation,
            memory=self.notes,
            notice=self.notices.append,
            warn=self.warnings.append,
            redact=redact,
            services=NoServices(),
            is_resumed=is_resumed,
            run_folder=self.run_folder,
        )

    def shown(self, error: HeadraceError) -> str:
        """The text of an error, places of this test left out."""
        text = error.render().replace(str(self.folder), "FOLDER")
        return re.sub(r"-[0-9a-f]{8}(?=\.std)", "-HASH", text)
