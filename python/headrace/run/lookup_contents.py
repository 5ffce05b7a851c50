"""What the lookups of data flows held: rows that are committed already have found theirs in them.

A record per attempt of a data flow in `lookups.jsonl` of the run folder; the last one of a task counts. Where rows are
committed before the last one has come, an attempt that goes on must find the same rows: others would change, lose or
double rows of slices that are committed in part.
"""

from __future__ import annotations

from collections.abc import Mapping

from headrace.errors import LedgerError
from headrace.run.folder import RunFolder
from headrace.run.json_lines import add_line, lines
from headrace.run.true_hints import NEW_RUN


class LookupContents:
    """The contents of the lookups of one run."""

    def __init__(self, folder: RunFolder) -> None:
        self._folder = folder
        self._kept: set[str] = set()
        self._begun: set[str] = set()

    def expect(self, task: str, *, keeps: bool, begun: bool) -> None:
        """A task starts. `keeps`: rows of it may be committed before the last one; `begun`: some are, by an earlier
        attempt.
        """
        for names, belongs in ((self._kept, keeps), (self._begun, begun)):
            (names.add if belongs else names.discard)(task)

    def check(self, task: str, found: Mapping[str, str]) -> None:
        """Remembers what the lookups of a task hold, before its first row moves: `found`, their fingerprints by name.

        Raises LedgerError if rows are committed that have found something else.
        """
        if task not in self._kept or not found:
            return
        if task not in self._begun:
            add_line(self._folder.lookups, {"task": task, "lookups": found}, "what lookups hold")
            return
        known = self._known(task)
        for name, fingerprint in found.items():
            if name not in known:
                raise LedgerError(
                    f"{task} cannot go on: rows of it are committed, and nothing tells what lookup `{name}` held",
                    at={"file": str(self._folder.lookups)},
                    hint=NEW_RUN,
                )
            if known[name] != fingerprint:
                raise LedgerError(
                    f"lookup `{name}` has other rows than when the first rows of {task} were committed",
                    found=f"keys and added columns with the fingerprint {fingerprint}",
                    expected=f"those with {known[name]}",
                    hint="Put them back as they were, or start a new run: `headrace run`.",
                )

    def _known(self, task: str) -> dict[str, str]:
        known: dict[str, str] = {}
        for document, _ in lines(self._folder.run_id, self._folder.lookups):
            if document["task"] == task:
                known = document["lookups"]
        return known
