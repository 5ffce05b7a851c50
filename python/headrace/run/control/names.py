"""How the tasks of a run are called where people and the ledger see them: without secrets, and each differently."""

from __future__ import annotations

from collections.abc import Mapping

from headrace.run.redact import Redactor
from headrace.run.tasks import unique_name


class InstanceNames:
    """`known`: names that were given before the run, by id."""

    def __init__(self, redactor: Redactor, known: Mapping[str, str]) -> None:
        self._redactor = redactor
        self._known = dict(known)
        self._taken = {name.casefold() for name in known.values()}

    def shown(self, instance: str) -> str:
        """The name of an instance; the same for the same one."""
        known = self._known.get(instance)
        if known is not None:
            return known
        shown = self._redactor.text(instance)
        if shown == instance:
            return instance  # nothing is kept for the turns of long loops
        shown = unique_name(shown, self._taken, "#")
        self._taken.add(shown.casefold())
        self._known[instance] = shown
        return shown
