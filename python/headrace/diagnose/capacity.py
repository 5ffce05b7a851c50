"""How fast a data flow could be if something else were the limit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from headrace.diagnose.window import StreamTime, Window

# The parts of which each limit is one: the next limit is another part.
_PART: Final = {
    "source_read": "read",
    "parse": "parse",
    "transform": "transform",
    "encode": "encode",
    "client_cpu": "cpus",
    "shared_cpu": "cpus",
    "too_many_streams": "cpus",
}
_LIMIT: Final = {
    "read": "source_read",
    "parse": "parse",
    "transform": "transform",
    "encode": "encode",
    "destination": "destination_cpu",
    "cpus": "shared_cpu",
}


def next_limit(window: Window, limit: str) -> tuple[str | None, float | None]:
    """The part that would be the limit if the present one were none, and MB of source text per second with it."""
    own = _PART.get(limit, "destination")
    known = {part: rate for part, rate in capacities(window).items() if part != own and rate is not None}
    if not known:
        return None, None
    part = min(known, key=lambda name: known[name])
    is_shared = window.engine is not None or (window.server is not None and window.server.is_local)
    name = "client_cpu" if part == "cpus" and not is_shared else _LIMIT[part]
    # What is measured beside each other cannot be slower than what was reached.
    return name, max(known[part], window.megabytes_per_second)


def capacities(window: Window) -> dict[str, float | None]:
    """MB/s of each part if it were at work all the time; None where it did nothing that counts."""
    megabytes = window.bytes / 1e6

    def streams(part: Callable[[StreamTime], float]) -> float | None:
        """All streams at this part alone."""
        busy = sum(map(part, window.streams))
        number = sum(1 for stream in window.streams if stream.active > 0)
        return megabytes * number / busy if busy > 0.01 * window.seconds else None

    engine = window.engine
    cpu = None if window.machine is None else window.machine.process + _server_cpu(window)
    return {
        "read": streams(lambda stream: stream.read),
        "parse": streams(lambda stream: stream.parse),
        "transform": streams(lambda stream: stream.transform),
        "encode": streams(lambda stream: stream.encode),
        "destination": megabytes / engine.busy if engine is not None and engine.busy > 0 else _server_rate(window),
        "cpus": None if not cpu or window.machine is None else megabytes * window.machine.cpus / cpu,
    }


def _server_rate(window: Window) -> float | None:
    """As fast as the sessions would be if they never waited for rows."""
    server = window.server
    if server is None or not server.samples:
        return None
    idle = sum(count for word, count in server.found.items() if word.lower().startswith(("client", "idle")))
    working = 1 - idle / server.samples
    return window.megabytes_per_second / working if working > 0 else None


def _server_cpu(window: Window) -> float:
    return (window.server.cpu or 0.0) if window.server is not None and window.server.is_local else 0.0
