"""Handlers of events: which of them run, and with which facts about the event."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import Protocol

from headrace.errors import CancelledError, HeadraceError
from headrace.model import Handler, Task
from headrace.run.cancellation import Cancellation
from headrace.run.control.group import End
from headrace.run.control.place import Level, Place

RunGroup = Callable[[Sequence[Task], Place, int, str], Awaitable[End]]


class Notices(Protocol):
    """Where is told what went wrong in a handler."""

    def notice(self, text: str, task: str | None = None) -> None: ...


class Handlers:
    """The handlers of one run. Those of one definition run one after the other; a handler starts no handlers."""

    def __init__(
        self,
        run_group: RunGroup,
        cancellation: Cancellation,
        events: Notices,
        shown_error: Callable[[HeadraceError], Mapping[str, object]],
        attempt: int,
    ) -> None:
        """`shown_error`: an error as data without secrets, because it goes wherever handlers write it."""
        self._run_group = run_group
        self._cancellation = cancellation
        self._events = events
        self._shown_error = shown_error
        self._attempt = attempt
        self._locks: dict[int, asyncio.Lock] = {}
        self._prefixes: dict[str, int] = {}

    async def raised(
        self,
        event: str,
        place: Place,
        source: str,
        error: HeadraceError | None = None,
        text: str | None = None,
    ) -> HeadraceError | None:
        """Runs the handlers of an event of the task `source`, the innermost first. The error of one that failed."""
        if not self.listen(event, place):
            return None
        problem: HeadraceError | None = None
        for level in place.levels:
            handler = level.handlers.get(event)
            if handler is None:
                continue
            facts = {
                "event": event,
                "source_task": source,
                "error": text or (None if error is None else self._said(error)),
                "error_kind": None if error is None else error.kind,
            }
            end = await self._handled(handler, level, place, source, facts)
            problem = problem or end.error
            if not handler.propagate:
                break
        return problem

    def listen(self, event: str, place: Place) -> bool:
        """Whether there are handlers that would run."""
        if place.in_handler or self._cancellation.is_set():
            return False
        return any(event in level.handlers for level in place.levels)

    async def _handled(
        self, handler: Handler, level: Level, place: Place, source: str, facts: Mapping[str, object]
    ) -> End:
        what = f"the handler of {handler.event} for {source}"
        async with self._locks.setdefault(id(handler), asyncio.Lock()):
            frame = level.frame.inside()
            frame.system = dict(facts)
            inner = replace(
                place,
                package=level.package,
                frame=frame,
                prefix=self._prefix(handler, level, source),
                in_handler=True,
                levels=(),
                redone=False,
                is_anew=False,
                is_held=lambda: False,
                cancellation=self._cancellation,
            )
            end = await self._run_group(handler.tasks, inner, 0, what)
        if end.error is not None:
            self._events.notice(f"{what} has failed: {end.error.what}", source)
        return end

    def _said(self, error: HeadraceError) -> str:
        shown = self._shown_error(error)
        return f"{shown['what']}: {shown['found']}" if shown["found"] else str(shown["what"])

    def _prefix(self, handler: Handler, level: Level, source: str) -> str:
        """Different for each event of the run: the same one can come again, at every try and in every attempt."""
        outer = f"{level.instance}." if level.instance else ""
        attempt = f" {self._attempt}" if self._attempt > 1 else ""
        prefix = f"{outer}on_{handler.event}[{source}{attempt}"
        number = self._prefixes[prefix] = self._prefixes.get(prefix, 0) + 1
        return f"{prefix}]." if number == 1 else f"{prefix} #{number}]."


def with_problem(end: End, problem: HeadraceError | None) -> End:
    """A handler that failed is a failure of its task, but never hides another error; one that was cancelled is none."""
    if problem is None or end.status in ("failed", "cancelled"):
        return end
    if isinstance(problem, CancelledError):
        return End("cancelled", problem, failures=end.failures)
    return End("failed", problem, failures=1)
