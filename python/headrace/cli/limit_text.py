"""What limits a load, in words: live, and when it has ended."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from headrace import units

# Of streams that are late, those that are named.
SLOW_STREAMS: Final = 3


def limit_words(limit: Mapping[str, Any]) -> str:
    """What limits a table now, in one line."""
    number = limit["next_megabytes_per_second"]
    then = f"; next {limit['next_limit']} at about {number:,.0f} MB/s" if number is not None else ""
    alone = limit["streams_by_limit"]
    streams = "; streams: " + ", ".join(f"{count} by {name}" for name, count in alone.items()) if len(alone) > 1 else ""
    return f"limited by {limit['limit']}: {limit['sentence']}{then}{streams}"


def slow_words(stream: Mapping[str, Any]) -> str:
    """A stream that is late, in one line."""
    file = f" with {stream['file']}" if stream["file"] else ""
    why = f", limited by {stream['limit']}" if stream["limit"] else ""
    return f"stream {stream['number']}{file} is {stream['behind_seconds']:,.0f} s behind the others{why}"


def slow_lines(streams: Sequence[Mapping[str, Any]]) -> list[str]:
    """The slowest ones, and how many more there are."""
    lines = [slow_words(stream) for stream in streams[:SLOW_STREAMS]]
    more = len(streams) - SLOW_STREAMS
    return [*lines, f"and {units.plural(more, 'more stream')}"] if more > 0 else lines


def closing_words(limit: Mapping[str, Any]) -> list[str]:
    """What limited a run, what would come next, what helps, and which streams were late: a paragraph each."""
    number = limit.get("next_megabytes_per_second")
    then = f"next: {limit['next_limit']}, at about {number:,.0f} MB/s; " if number is not None else ""
    remedy = [f"{then}what helps: {limit['remedy']}"] if limit.get("remedy") else []
    return [f"limit: {limit['limit']} - {limit['sentence']}", *remedy, *slow_lines(limit.get("slow") or [])]
