"""When no row is looked for, and when it cannot be: the error of the load stays as it is."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from headrace.errors import HeadraceError, TargetError
from headrace.planning import DataFlowPlan, LookupPlan
from headrace.run.folder import RunFolder
from headrace.run.offenders import name_offender
from headrace.targets import Constraint, RowSearch, RowStream, SearchedColumn
from headrace.targets.null.target import NullTarget
from tests.unit.executors.fake_flow import plan

KEY = Constraint("PRIMARY KEY (id)", (SearchedColumn("id", "id"),))
LOOKS = "looking for the row with a second pass over the source"


class Refusing(NullTarget):
    """Asked which row it has refused, it gives this answer."""

    def __init__(self, answer: Callable[[], RowSearch | None]) -> None:
        self._answer = answer
        self.was_asked = False

    def row_search(self, plan: DataFlowPlan, error: HeadraceError) -> RowSearch | None:
        self.was_asked = True
        return self._answer()


def defect() -> RowSearch | None:
    raise RuntimeError("nobody knows\nwhy")


def interrupted() -> RowSearch | None:
    raise KeyboardInterrupt


def no_rows(lookup: LookupPlan) -> AbstractContextManager[RowStream]:
    raise AssertionError(lookup)


def notices(error: BaseException, target: NullTarget, tmp_path: Path, planned: DataFlowPlan | None = None) -> list[str]:
    """What is said while the row is looked for; the error must be as before."""
    said: list[str] = []
    before = error.to_dict() if isinstance(error, HeadraceError) else None
    folder = RunFolder.create(tmp_path, datetime.now(UTC))
    name_offender(error, planned or plan(), target, folder, said.append, threading.Event(), no_rows)
    assert before == (error.to_dict() if isinstance(error, HeadraceError) else None)
    assert list(folder.path.iterdir()) == [folder.rejects]
    return said


def test_errors_that_need_no_search(tmp_path: Path) -> None:
    target = Refusing(defect)
    generated = replace(plan(), source=replace(plan().source, generate={"table": "nation"}))
    assert notices(ValueError("a defect"), target, tmp_path) == []
    assert notices(TargetError("known", at={"file": "a", "row": 1}), target, tmp_path) == []
    assert notices(TargetError("generated"), target, tmp_path, generated) == []
    assert not target.was_asked


def test_what_the_destination_cannot_tell(tmp_path: Path) -> None:
    error = TargetError("refused", found="Key (id)=(7)", hint="Correct it.")
    assert notices(error, Refusing(lambda: None), tmp_path) == []
    assert notices(error, Refusing(lambda: RowSearch((), "orders")), tmp_path) == []
    assert notices(error, Refusing(defect), tmp_path) == ["the second pass failed: nobody knows"]
    assert notices(error, Refusing(interrupted), tmp_path) == ["the second pass was cancelled"]


def test_files_that_are_gone(tmp_path: Path) -> None:
    """The plan of this test names none that exists."""
    looks, failed = notices(TargetError("refused"), Refusing(lambda: RowSearch((KEY,), "orders")), tmp_path)
    assert looks == LOOKS
    assert failed.startswith("the second pass failed: ")


def test_an_error_that_is_its_own_cause(tmp_path: Path) -> None:
    error = TargetError("refused")
    error.__cause__ = error
    assert notices(error, Refusing(lambda: RowSearch((KEY,), "orders")), tmp_path)[0] == LOOKS
