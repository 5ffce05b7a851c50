"""A first, honest verdict about what limits a run, from the counters of its stages.

The rule, in this order. Shares are of the streams' own time (their number times the seconds of their data flow), except
for the CPUs, which are shares of all CPUs this process may use.

1. No verdict if the loads took less than half a second in all, or if the stages explain less than half of the streams'
   time: what is not counted could be the limit.
2. The streams waited for the destination at least a quarter of their time (`write` waiting for output). The
   destination is slower than the streams:
   - the CPUs are at least 85 % busy: `shared_cpu` if the streams used at least a quarter of the busy CPU time
     (destination and streams compete for the same CPUs), else `destination_cpu`;
   - else, at most half busy: `destination_io`, because somebody waits and nobody computes;
   - else `destination_cpu`.
   A destination in another process, a server, is not measured yet: no verdict, rather than a guess.
3. The destination waited for rows. The streams are slower:
   - the streams spent more time reading (for generated rows: generating) than parsing or transforming: `source_read`;
   - the CPUs are at least 85 % busy and the streams used less than three quarters of that: `shared_cpu`;
   - they spent more time transforming (finding the partitions of rows) than parsing: `transform`;
   - else `parse`.

The sentence always holds the numbers that led to the verdict, so that it can be doubted.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from headrace.run import FlowCounters

# What can limit a run. Only the first ones can be told from the counters of a local run so far.
LIMITS: Final = (
    "source_read",
    "parse",
    "transform",
    "encode",
    "network",
    "receive_window",
    "client_cpu",
    "destination_cpu",
    "shared_cpu",
    "destination_io",
    "checkpoint",
    "log",
    "locks",
    "memory",
    "too_many_streams",
)
_MINIMUM_SECONDS: Final = 0.5
_EXPLAINED_SHARE: Final = 0.5
_WAITING_SHARE: Final = 0.25
_CPUS_FULL_SHARE: Final = 0.85
_CPUS_IDLE_SHARE: Final = 0.50
_STREAM_CPU_SHARE_SMALL: Final = 0.25
_STREAM_CPU_SHARE_LARGE: Final = 0.75


@dataclass(frozen=True)
class LimitVerdict:
    """One of LIMITS, and the evidence in one sentence."""

    limit: str
    sentence: str

    def to_dict(self) -> dict[str, str]:
        """JSON-ready form."""
        return {"limit": self.limit, "sentence": self.sentence}


@dataclass(frozen=True)
class _Shares:
    """What the rule looks at, all between 0 and 1."""

    waiting_for_destination: float
    reading: float
    parsing: float
    transforming: float
    stream_on_cpu: float
    cpus_busy: float
    streams_of_cpu: float


def judge(counters: FlowCounters) -> LimitVerdict | None:
    """The verdict; None if too little was counted for one."""
    shares = _shares(counters)
    if shares is None:
        return None
    if shares.waiting_for_destination >= _WAITING_SHARE:
        # Only a consumer in this process counts its own work, and only its CPU time is in that of the process.
        return _destination(shares) if counters.sink_busy_seconds > 0 else None
    return _streams(shares)


def _destination(shares: _Shares) -> LimitVerdict:
    waited = f"the streams waited for the destination {shares.waiting_for_destination:.0%} of their time"
    busy = f"the CPUs were {shares.cpus_busy:.0%} busy"
    if shares.cpus_busy >= _CPUS_FULL_SHARE and shares.streams_of_cpu >= _STREAM_CPU_SHARE_SMALL:
        return LimitVerdict("shared_cpu", f"{waited}, and {busy}, {shares.streams_of_cpu:.0%} of it by the streams")
    if shares.cpus_busy <= _CPUS_IDLE_SHARE:
        return LimitVerdict("destination_io", f"{waited}, and {busy}")
    return LimitVerdict("destination_cpu", f"{waited}, and {busy}, {shares.streams_of_cpu:.0%} of it by the streams")


def _streams(shares: _Shares) -> LimitVerdict:
    spent = f"the streams spent {shares.reading:.0%} of their time reading and {shares.parsing:.0%} parsing"
    if shares.reading > max(shares.parsing, shares.transforming):
        return LimitVerdict("source_read", f"{spent}, and were on a CPU {shares.stream_on_cpu:.0%} of their time")
    if shares.cpus_busy >= _CPUS_FULL_SHARE and shares.streams_of_cpu < _STREAM_CPU_SHARE_LARGE:
        return LimitVerdict(
            "shared_cpu", f"the CPUs were {shares.cpus_busy:.0%} busy, {shares.streams_of_cpu:.0%} of it by the streams"
        )
    waited = f"waited for the destination only {shares.waiting_for_destination:.0%}"
    if shares.transforming > shares.parsing:
        return LimitVerdict("transform", f"{spent}, {shares.transforming:.0%} transforming, and {waited}")
    return LimitVerdict("parse", f"{spent}, and {waited}")


def _shares(counters: FlowCounters) -> _Shares | None:
    stage_seconds = {
        name: sum(_seconds(stream, *name) for stream in counters.streams)
        for name in (
            ("write", "wait_output_seconds"),
            ("read", "busy_seconds"),
            ("parse", "busy_seconds"),
            ("transform", "busy_seconds"),
        )
    }
    stream_cpu = sum(float(stream["cpu_seconds"]) for stream in counters.streams)
    explained = sum(_all_seconds(stream) for stream in counters.streams)
    # Clocks that are read one after the other can make the parts a little more than the whole.
    stream_seconds = max(explained, counters.stream_seconds)
    if counters.seconds < _MINIMUM_SECONDS or explained <= 0 or explained < _EXPLAINED_SHARE * stream_seconds:
        return None
    return _Shares(
        waiting_for_destination=stage_seconds["write", "wait_output_seconds"] / stream_seconds,
        reading=stage_seconds["read", "busy_seconds"] / stream_seconds,
        parsing=stage_seconds["parse", "busy_seconds"] / stream_seconds,
        transforming=stage_seconds["transform", "busy_seconds"] / stream_seconds,
        stream_on_cpu=min(1.0, stream_cpu / stream_seconds),
        cpus_busy=min(1.0, counters.cpu_seconds / (counters.seconds * counters.cpu_count)),
        streams_of_cpu=min(1.0, stream_cpu / counters.cpu_seconds) if counters.cpu_seconds > 0 else 0.0,
    )


def _seconds(stream: Mapping[str, Any], stage: str, name: str) -> float:
    return float(stream["stages"].get(stage, {}).get(name, 0.0))


def _all_seconds(stream: Mapping[str, Any]) -> float:
    return sum(
        _seconds(stream, stage, name)
        for stage in ("read", "parse", "transform", "write")
        for name in ("busy_seconds", "wait_input_seconds", "wait_output_seconds")
    )
