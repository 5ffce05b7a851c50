"""What a file task has written down before it began: which files, and how to know them again."""

from __future__ import annotations

import os
import stat
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from headrace.errors import FileTaskError
from headrace.run.leaves.base import Memory
from headrace.run.true_hints import NEW_RUN


@dataclass(frozen=True, slots=True)
class Identity:
    """A file as it was. Renaming changes none of it."""

    size: int
    modified_ns: int
    inode: int

    @classmethod
    def of(cls, path: str, *, follow_links: bool = False) -> Identity | None:
        """That of what is there now; None if nothing is. Raises OSError."""
        try:
            status = os.stat(path, follow_symlinks=follow_links)
        except (FileNotFoundError, NotADirectoryError):
            return None
        return cls(status.st_size, status.st_mtime_ns, status.st_ino)

    def to_list(self) -> list[int]:
        """As it stands in the journal."""
        return [self.size, self.modified_ns, self.inode]


@dataclass(frozen=True, slots=True)
class Step:
    """One file: from where, to where, and as it was when the task listed it."""

    source: str
    destination: str | None
    identity: Identity
    is_folder: bool = False


def step_for(source: str, destination: str | None, reached: str, *, follow_links: bool) -> Step:
    """A step for a file that is there, to be looked at as `reached`. Raises OSError."""
    status = os.stat(reached, follow_symlinks=follow_links)
    identity = Identity(status.st_size, status.st_mtime_ns, status.st_ino)
    return Step(source, destination, identity, stat.S_ISDIR(status.st_mode))


class Notes:
    """The notes of one task in the journal of the run.

    Texts of the package that are secret stand in paths as their number: `settings` has them again when the run goes on.
    """

    def __init__(self, memory: Memory, settings: Sequence[str], secrets: Collection[str]) -> None:
        self._memory = memory
        # A copy: other tasks may find secrets meanwhile.
        known = {secret for secret in tuple(secrets) if secret and any(secret in text for text in settings)}
        self._secrets = sorted(known, key=lambda secret: (-len(secret), secret))
        self._made: dict[int, Identity] = {}
        self._renamed: dict[int, str] = {}
        self.steps: list[Step] | None = None
        for note in memory.remembered():
            self._take(note)

    def begin(self, steps: Sequence[Step]) -> None:
        """Writes down what is to be done, before the first of it is."""
        listed = [
            [self._hidden(step.source), self._hidden(step.destination), *step.identity.to_list(), step.is_folder]
            for step in steps
        ]
        self._memory.remember({"steps": listed, "secrets": len(self._secrets)})

    def made(self, number: int, copy: Identity) -> None:
        """A step has made a copy, which is about to get its name."""
        self._memory.remember({"step": number, "made": copy.to_list()})
        self._made[number] = copy

    def renamed(self, number: int, destination: str) -> None:
        """A step is about to use another name, as its own was taken."""
        self._memory.remember({"step": number, "to": self._hidden(destination)})
        self._renamed[number] = destination

    def copy_of(self, number: int) -> Identity | None:
        """The copy that a step has made."""
        return self._made.get(number)

    def destination_of(self, number: int, step: Step) -> str | None:
        """Where a step puts its file."""
        return self._renamed.get(number, step.destination)

    def _take(self, note: Mapping[str, Any]) -> None:
        if "steps" in note:
            if note["secrets"] != len(self._secrets):
                raise FileTaskError(
                    "what the task was about to do is not known any more",
                    found="paths with other secrets than before",
                    hint=NEW_RUN,
                )
            self.steps = [
                Step(str(self._shown(source)), self._shown(destination), Identity(*identity), is_folder)
                for source, destination, *identity, is_folder in note["steps"]
            ]
        elif "made" in note:
            self._made[note["step"]] = Identity(*note["made"])
        elif "to" in note:
            self._renamed[note["step"]] = str(self._shown(note["to"]))

    def _hidden(self, path: str | None) -> str | None:
        """No path has the character NUL."""
        for number, secret in enumerate(self._secrets):
            path = None if path is None else path.replace(secret, f"\0{number}\0")
        return path

    def _shown(self, path: str | None) -> str | None:
        for number, secret in enumerate(self._secrets):
            path = None if path is None else path.replace(f"\0{number}\0", secret)
        return path
