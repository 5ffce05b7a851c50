"""What is asked of the keys of sources before a load into partitions is planned: once in a run, however often it is
resumed, so that its bounds stay what they were.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from headrace import core
from headrace.model import Layout
from headrace.model.load import usable_cpus
from headrace.planning import KeyFacts, KeyQuestion, SourceSnapshot

# core.key_bounds: first and last key of each file.
KeyBoundsOf = Callable[[dict[str, Any]], dict[str, Any]]
# core.key_scan: all keys; ends early if it is told so.
KeyScanOf = Callable[[dict[str, Any], Callable[[], bool]], dict[str, Any]]


class KeyAnswers:
    """The answers by task. `known` are those of an earlier attempt of the run, `document` is for the next one."""

    def __init__(
        self,
        known: Mapping[str, Any] | None = None,
        *,
        is_cancelled: Callable[[], bool] = lambda: False,
        key_bounds: KeyBoundsOf = core.key_bounds,
        key_scan: KeyScanOf = core.key_scan,
    ) -> None:
        self._known = known or {}
        self._is_cancelled = is_cancelled
        self._key_bounds = key_bounds
        self._key_scan = key_scan
        self.document: dict[str, Any] = {}

    def facts(
        self, task: str, question: KeyQuestion | None, source: SourceSnapshot, layout: Layout, streams: int
    ) -> KeyFacts:
        """What the plan of a task into partitions needs to know. Raises the errors of the core for the files."""
        answer = self._known.get(task)
        if answer is None:
            reply = None if question is None else self._asked(question, source, layout, streams)
            answer = {"cpus": usable_cpus(), "reply": reply}
        self.document[task] = answer
        return KeyFacts.of(question, answer["reply"], answer["cpus"])

    def _asked(self, question: KeyQuestion, source: SourceSnapshot, layout: Layout, streams: int) -> dict[str, Any]:
        spec = {"files": source.files, "layout": layout.to_core(), "column": question.column}
        if question.scan is None:
            # The ends of a file are those of its rows with a key.
            return self._key_bounds({**spec, "layout": layout.to_core({question.column})})
        scan = {"slices": source.slices, "streams": max(1, min(streams, len(source.slices))), "want": question.scan}
        return self._key_scan({**spec, **scan}, self._is_cancelled)
