"""How fast a data flow could be if something else were the limit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from headrace.diagnose.window import DestinationTime, StreamTime, Window

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


def next_limit(
    window: Window, limit: str, destination: DestinationTime | None = None
) -> tuple[str | None, float | None]:
    """The part that would be the limit if the present one were none, and MB of source text per second with it. If that
    is `destination`, another destination is another part.
    """
    own = _PART.get(limit)
    others = [one for one in window.destinations if own is not None or one is not destination]
    known = {part: rate for part, rate in capacities(window, others).items() if part != own and rate is not None}
    if not known:
        return None, None
    part = min(known, key=lambda name: known[name])
    is_shared = bool(window.engines or window.local_servers)
    name = "client_cpu" if part == "cpus" and not is_shared else _LIMIT[part]
    # What is measured beside each other cannot be slower than what was reached.
    return name, max(known[part], window.megabytes_per_second)


def capacities(window: Window, destinations: Sequence[DestinationTime]) -> dict[str, float | None]:
    """MB/s of each part if it were at work all the time, of the destinations that of the slowest one; None where it did
    nothing that counts.
    """
    megabytes = window.bytes / 1e6

    def streams(part: Callable[[StreamTime], float]) -> float | None:
        """All streams at this part alone."""
        busy = sum(map(part, window.streams))
        number = sum(1 for stream in window.streams if stream.active > 0)
        return megabytes * number / busy if busy > 0.01 * window.seconds else None

    rates = [rate for own in destinations if (rate := _destination_rate(window, own)) is not None]
    cpu = None if window.machine is None else window.machine.process + _server_cpu(window)
    return {
        "read": streams(lambda stream: stream.read),
        "parse": streams(lambda stream: stream.parse),
        "transform": streams(lambda stream: stream.transform),
        "encode": streams(lambda stream: stream.encode),
        "destination": min(rates, default=None),
        "cpus": None if not cpu or window.machine is None else megabytes * window.machine.cpus / cpu,
    }


def _destination_rate(window: Window, destination: DestinationTime) -> float | None:
    """As fast as the engine, or the sessions, would be if they never waited for rows."""
    engine, server = destination.engine, destination.server
    if engine is not None and engine.busy > 0:
        return window.bytes / 1e6 / engine.busy
    if server is None or not server.samples:
        return None
    idle = sum(count for word, count in server.found.items() if word.lower().startswith(("client", "idle")))
    working = 1 - idle / server.samples
    return window.megabytes_per_second / working if working > 0 else None


def _server_cpu(window: Window) -> float:
    return sum(server.cpu or 0.0 for server in window.local_servers)
