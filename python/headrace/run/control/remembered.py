"""Values of variables in the journal: written when a task ends, restored when a resumed run passes over it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from headrace.errors import LedgerError
from headrace.model import BoundPackage, Variable
from headrace.run.control.frames import Frame
from headrace.run.control.journal import Entry, Journal
from headrace.run.control.stored_values import SECRET, from_stored, to_stored
from headrace.run.true_hints import NEW_RUN


class RememberedValues:
    """`is_secret`: whether a text must not be stored."""

    def __init__(self, journal: Journal, is_secret: Callable[[str], bool]) -> None:
        self._journal = journal
        self._is_secret = is_secret

    def declare(self, package: BoundPackage, variables: Sequence[Variable], frame: Frame, owner: str) -> None:
        """Adds variables with their first values, which are those of the first attempt of the run. `owner`: the task
        that has them.
        """
        if not variables:
            return
        key = f"{owner}$"
        known = self._journal.before(key).sets
        for variable in variables:
            stored = known.get(variable.name)
            if stored is None or stored == SECRET:
                frame.declare(variable, package.binder.initial(variable, frame.scope()))
            else:
                frame.declare(variable, from_stored(stored[0]))
        if not known:
            self._journal.begun(key, {item.name: self._first(item, frame.value(item.name)) for item in variables})

    def written(self, frame: Frame) -> dict[str, Any]:
        """What was written inside a frame, of variables further out."""
        return {name: self._stored(frame.variable(name), value) for name, value in frame.writes.items()}

    def shown(self, frame: Frame) -> dict[str, Any]:
        """The same, for people: secrets as stars."""
        return {name: "***" if value == SECRET else value for name, value in self.written(frame).items()}

    def restore(self, frame: Frame, entry: Entry, task: str) -> None:
        """Writes what a task of an earlier attempt has written. Raises LedgerError if that held a secret."""
        self._restore(frame, entry.sets, task)

    def restore_turns(self, frame: Frame, entry: Entry, task: str) -> None:
        """The same of the turns of a loop that have ended."""
        self._restore(frame, entry.turn_sets, task)

    def _restore(self, frame: Frame, sets: Mapping[str, Any], task: str) -> None:
        for name, stored in sets.items():
            if stored == SECRET:
                raise LedgerError(
                    f"the run cannot be resumed behind task {task}: it has set the variable `{name}`, which held a "
                    "secret, and secrets are not stored",
                    hint=NEW_RUN,
                )
            frame.assign(name, from_stored(stored))

    def _first(self, variable: Variable, value: object) -> Any:
        stored = self._stored(variable, value)
        return SECRET if stored == SECRET else [stored]

    def _stored(self, variable: Variable, value: object) -> Any:
        return SECRET if variable.is_secret and value is not None else to_stored(value, self._is_secret)
