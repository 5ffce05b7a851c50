"""What a run tells about verdicts: only changes while a flow loads, and the last word when it has ended."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, cast

from headrace.planning import DataFlowPlan
from headrace.run.events import EventLog
from headrace.run.judging import Judging

PLAN = cast(
    DataFlowPlan,
    SimpleNamespace(task="load", table="orders", shown_paths=[], source=SimpleNamespace(files=[{"path": "a"}])),
)


class Said:
    """A verdict, or a late stream."""

    def __init__(self, **members: Any) -> None:
        self.members = members

    def to_dict(self) -> dict[str, Any]:
        return self.members


def verdict(what: str) -> Said:
    """The name of a limit; `LIMIT at CONNECTION`: where it is one of several."""
    limit, _, connection = what.partition(" at ")
    return Said(
        limit=limit,
        **({"connection": connection} if connection else {}),
        sentence="why",
        streams=[],
        next_limit=None,
        next_megabytes_per_second=None,
        remedy="help",
        evidence={},
    )


class Script:
    """Says what is in the script, one after the other."""

    def __init__(self, now: Sequence[str | None], slow: Sequence[Sequence[int]] = ()) -> None:
        self._now, self._slow, self.files = list(now), list(slow), [""]
        self.flows = 0

    def flow(self, files: Sequence[str]) -> Script:
        self.flows += 1
        self.files = list(files)
        return self

    def add(self, flow: object, machine: object, destination: object) -> Said | None:
        limit = self._now.pop(0)
        return None if limit is None else verdict(limit)

    def span(self, *, whole: bool) -> tuple[float, float]:
        return (0.0, 9.0) if whole else (4.0, 9.0)

    def streams(self) -> list[dict[str, Any]]:
        return [{"number": 1, "limit": "locks"}, {"number": 2, "limit": "parse"}, {"number": 3, "limit": "parse"}]

    def slow(self) -> list[Said]:
        return [Said(number=number) for number in (self._slow.pop(0) if self._slow else ())]

    def ended(self, flow: object) -> dict[str, Any] | None:
        assert flow is self
        return verdict("parse").to_dict()

    def whole(self) -> dict[str, Any] | None:
        return {"limit": "parse"}


class Events:
    """Keeps what was told."""

    def __init__(self) -> None:
        self.told: list[tuple[str, dict[str, Any]]] = []

    def emit(self, event: str, **members: Any) -> None:
        self.told.append((event, members))


def judging(script: Script | None) -> tuple[Judging, Events]:
    events = Events()
    return Judging(script, cast(EventLog, events)), events


def look(own: Judging, *, is_last: bool = False) -> dict[str, Any] | None:
    return own.look(PLAN, {}, None, (), is_last=is_last)


def test_only_changes_are_told_and_written_down() -> None:
    script = Script([None, "parse", "parse", "source_read", None, "source_read"])
    own, events = judging(script)
    written = [look(own) for _ in range(6)]
    assert script.files == ["a"] and script.flows == 1
    assert [line and (line["limit"], line["from"], line["to"], line["is_final"]) for line in written] == [
        None,
        ("parse", 4.0, 9.0, False),
        None,
        ("source_read", 4.0, 9.0, False),
        None,
        None,
    ]
    assert [(name, told["limit"], told["is_final"]) for name, told in events.told] == [
        ("limit", "parse", False),
        ("limit", "source_read", False),
    ]
    assert events.told[0][1]["table"] == "orders"
    assert events.told[0][1]["streams_by_limit"] == {"parse": 2, "locks": 1}
    assert written[1] is not None and len(written[1]["streams"]) == 3


def test_another_connection_is_a_change_although_the_limit_is_the_same() -> None:
    script = Script(["locks at one", "locks at one", "locks at two", "parse"])
    own, events = judging(script)
    written = [look(own) for _ in range(4)]
    assert [line and (line["limit"], line.get("connection")) for line in written] == [
        ("locks", "one"),
        None,
        ("locks", "two"),
        ("parse", None),
    ]
    told = [members for _, members in events.told]
    assert [members.get("connection") for members in told] == ["one", "two", None]
    assert "connection" not in told[-1]


def test_the_last_word_is_told_although_nothing_changed_and_can_be_asked_for_once() -> None:
    own, events = judging(Script(["parse", "parse"]))
    look(own)
    last = look(own, is_last=True)
    assert last is not None and (last["limit"], last["from"], last["is_final"]) == ("parse", 0.0, True)
    assert [told["is_final"] for _, told in events.told] == [False, True]
    assert (own.verdict("load") or {})["limit"] == "parse"
    assert own.verdict("load") is None
    assert own.whole() == {"limit": "parse"}


def test_a_flow_that_is_tried_again_is_judged_anew() -> None:
    script = Script(["parse"] * 4)
    own, _ = judging(script)
    look(own)
    own.begin(PLAN)
    assert look(own) is not None, "told again"
    look(own, is_last=True)
    own.begin(PLAN)
    assert own.verdict("load") is None, "of the try before"
    assert script.flows == 2


def test_late_streams_are_told_when_there_are_others() -> None:
    own, events = judging(Script([None] * 5, [[], [3], [3], [3, 1], [1, 3]]))
    for _ in range(5):
        look(own)
    assert [[stream["number"] for stream in told["streams"]] for _, told in events.told] == [[3], [3, 1]]
    assert {name for name, _ in events.told} == {"slow_streams"}


def test_nobody_judges() -> None:
    own, events = judging(None)
    assert (look(own), look(own, is_last=True), own.whole(), events.told) == (None, None, None, [])
