"""Verdicts about the limit, as lines of metrics.jsonl and `limit` of summary.json tell them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from headrace.diagnose import LIMITS
from headrace.report.values import Document, documents, number, numbers, text, whole

# Live verdicts look at the last 5 seconds; one about more is that about the whole flow.
_LIVE_SECONDS: Final = 7.5


def phrase(limit: str) -> str:
    """A limit in words, behind "limited by"."""
    known = LIMITS.get(limit)
    return limit.replace("_", " ") if known is None else known.words


@dataclass(frozen=True)
class SlowStream:
    """A stream that ends late."""

    number: int
    file: str | None
    limit: str | None
    behind_seconds: float | None


@dataclass(frozen=True)
class StreamLimit:
    """What limits one stream."""

    number: int
    limit: str
    sentence: str | None


@dataclass(frozen=True)
class Verdict:
    """What limited a data flow, or a run. `at`: when it was found, seconds of its attempt. `begin`: since when it is
    so, if that is told. `is_final`: it is about all of a flow that has ended. `connection`: whose part the limit is, if
    it is that of one of several.
    """

    limit: str
    sentence: str | None
    attempt: int = 1
    task: str | None = None
    at: float = 0.0
    begin: float | None = None
    is_final: bool = False
    evidence: dict[str, float] = field(default_factory=dict)
    next_limit: str | None = None
    next_megabytes_per_second: float | None = None
    remedy: str | None = None
    streams: tuple[StreamLimit, ...] = ()
    slow: tuple[SlowStream, ...] = ()
    connection: str | None = None


def verdict_of(data: Document) -> Verdict | None:
    """The verdict that a document holds; None if it names no limit."""
    limit = text(data, "limit")
    if limit is None:
        return None
    begin, at = number(data, "from"), number(data, "to")
    at = number(data, "t") if at is None else at
    slow = [
        SlowStream(own, _file(item), text(item, "limit"), number(item, "behind_seconds"))
        for item in documents(data, "slow")
        if (own := whole(item, "number")) is not None
    ]
    streams = [
        StreamLimit(own, name, text(item, "sentence"))
        for item in documents(data, "streams")
        if (own := whole(item, "number")) is not None and (name := text(item, "limit")) is not None
    ]
    return Verdict(
        limit=limit,
        sentence=text(data, "sentence"),
        attempt=whole(data, "attempt") or 1,
        task=text(data, "task"),
        at=at or 0.0,
        begin=begin,
        is_final=data.get("is_final") is True or (begin is not None and at is not None and at - begin > _LIVE_SECONDS),
        evidence=numbers(data, "evidence"),
        next_limit=text(data, "next_limit"),
        next_megabytes_per_second=number(data, "next_megabytes_per_second"),
        remedy=text(data, "remedy"),
        streams=tuple(streams),
        slow=tuple(slow),
        connection=text(data, "connection"),
    )


def _file(data: Document) -> str | None:
    index = whole(data, "file")
    return text(data, "file") or (None if index is None else str(index))
