"""Collects what is wrong with a package, so that one look at the messages shows all of it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from headrace.errors import PackageError, Problem, without_controls
from headrace.model.redaction import Secrets, redact
from headrace.model.yaml_reader import Document, DocumentPath

MAXIMUM_SHOWN = 20


class ProblemCollector:
    """Problems in the order found, each once (every iteration of a foreach finds the same ones)."""

    def __init__(self, package: str) -> None:
        self._package = package
        self._problems: dict[Problem, None] = {}
        # Literal texts that must not appear in a message.
        self.secrets: set[str] = Secrets()

    def __bool__(self) -> bool:
        return bool(self._problems)

    def __len__(self) -> int:
        return len(self._problems)

    def extend(self, problems: Iterable[Problem]) -> None:
        """Add problems that already have a place."""
        for problem in problems:
            self._problems[problem] = None

    def add(
        self,
        document: Document,
        path: DocumentPath,
        what: str,
        *,
        found: str | None = None,
        expected: str | None = None,
        hint: str | None = None,
        at_key: bool = False,
    ) -> None:
        """Add a problem at the value of `path`, or at its key."""
        mark = document.key_mark(path) if at_key else document.value_mark(path)
        self._problems[Problem(document.file, mark.line, mark.column, what, found, expected, hint)] = None

    def raise_if_any(self, kind: type[PackageError] = PackageError) -> None:
        """Raise a PackageError, of that kind, if there is a problem; those of one file in the order of its lines."""
        if not self._problems:
            return
        files = list(dict.fromkeys(problem.file for problem in self._problems))
        ordered = sorted(self._problems, key=lambda problem: (files.index(problem.file), problem.line, problem.column))
        shown = [self._redacted(problem) for problem in ordered[:MAXIMUM_SHOWN]]
        raise kind.from_problems(self._package, shown, len(ordered))

    def _redacted(self, problem: Problem) -> Problem:
        return replace(
            problem,
            file=redact(problem.file, self.secrets),
            what=self._clean(problem.what),
            found=None if problem.found is None else self._clean(problem.found),
            expected=None if problem.expected is None else self._clean(problem.expected),
            hint=None if problem.hint is None else self._clean(problem.hint),
        )

    def _clean(self, text: str) -> str:
        return without_controls(redact(text, self.secrets))
