"""What can limit a load: what it means, and what helps. The reference is made from this table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True)
class Limit:
    """One of them. `words`: after "limited by "; `remedy`: one action, the one that helps most often first."""

    name: str
    words: str
    meaning: str
    remedy: str


LIMITS: Final[dict[str, Limit]] = {
    limit.name: limit
    for limit in (
        Limit(
            "source_read",
            "reading the source",
            "The streams wait for the disk, the pipe or the network file system, or decompress.",
            "Put the files on a faster disk, on several, or next to the loader; split large compressed files.",
        ),
        Limit(
            "parse",
            "parsing",
            "Streams are busy turning text into values, and have their CPU.",
            "Give it more streams if CPUs are idle (`--streams`), or more CPUs.",
        ),
        Limit(
            "transform",
            "transforming",
            "Streams are busy with transforms: lookups and queries (summary.json tells the time of each), or finding "
            "the partition of each row.",
            "Give it more streams if CPUs are idle; take columns out of lookups; divide files as the table is divided.",
        ),
        Limit(
            "encode",
            "encoding for the destination",
            "Streams are busy writing values in the destination's form.",
            "Use narrower types (bigint for numeric), or more streams if CPUs are idle.",
        ),
        Limit(
            "network",
            "the network",
            "Rows wait to be sent although the server waits for them and its window is open.",
            "Use a faster link, load from several machines, or start Headrace next to the server.",
        ),
        Limit(
            "receive_window",
            "the receive window of TCP",
            "The server waits for rows, and its machine does not allow more of them to be on their way.",
            "Raise net.ipv4.tcp_rmem on the server's machine, or load by more connections (`--streams`).",
        ),
        Limit(
            "client_cpu",
            "the CPUs of this machine",
            "Streams, or a server on this machine, could work and get no CPU: other programs, or a quota, have it.",
            "Stop what else runs here, raise the quota, or run Headrace elsewhere.",
        ),
        Limit(
            "destination_cpu",
            "the destination's CPUs",
            "The destination computes without a break, and rows wait for it.",
            "Drop indexes and constraints before the load; more streams help only if the destination has idle CPUs.",
        ),
        Limit(
            "shared_cpu",
            "the CPUs that loader and destination share",
            "Both compute, on the same CPUs, and these are full.",
            "Give the machine more CPUs, or run loader and destination on two machines.",
        ),
        Limit(
            "destination_io",
            "the destination's disk",
            "The destination waits for its data files.",
            "Use a faster disk for the tables, or several (tablespaces).",
        ),
        Limit(
            "checkpoint",
            "checkpoints of the destination",
            "Checkpoints that the load itself has caused write at the same time as it.",
            "Raise max_wal_size so that checkpoints come by time, and spread them (checkpoint_completion_target).",
        ),
        Limit(
            "log",
            "the destination's write-ahead log",
            "The destination waits for its log.",
            "Put the log on a disk of its own, let tables be made anew (`replace`) with wal_level = minimal.",
        ),
        Limit(
            "locks",
            "locks in the destination",
            "The destination's sessions wait for each other, or for somebody else.",
            "End the session that holds the lock, or let each writer have its own table (`load: staged`).",
        ),
        Limit(
            "memory",
            "memory",
            "Somebody puts data aside on disk because memory is short.",
            "Raise `memory`, or stop what else needs it.",
        ),
        Limit(
            "too_many_streams",
            "too many streams",
            "Many more streams than CPUs take turns.",
            "Use fewer streams: once or twice the number of CPUs.",
        ),
    )
}
