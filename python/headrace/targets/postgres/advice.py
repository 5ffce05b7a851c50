"""Settings of a server that cost a load speed: one table of what is fine, what is better, and what that gives up.

Sources: PostgreSQL manual, "Server Configuration" and "Populating a Database"; how this target loads is in
docs/design/03-postgresql.md. Nothing here is ever set by Headrace.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from headrace.targets.base import SettingAdvice

_MIB: Final = 1024**2
_GIB: Final = 1024**3
_UNITS: Final = {
    "B": 1, "kB": 1024, "8kB": 8 * 1024, "16kB": 16 * 1024, "32kB": 32 * 1024, "64kB": 64 * 1024,
    "MB": _MIB, "GB": _GIB, "ms": 0.001, "s": 1, "min": 60,
}  # fmt: skip
# A partition that is attached or dropped: itself, its TOAST table, indexes of both, constraints.
LOCKS_PER_PARTITION: Final = 9
_LOCK_TABLE: Final = ("max_locks_per_transaction", "max_connections", "max_prepared_transactions")


@dataclass(frozen=True)
class Setting:
    """A setting as the server tells it: `shown` with its unit, `value` without, and when a change takes effect."""

    shown: str
    value: str
    unit: str | None
    context: str

    @property
    def amount(self) -> float:
        """Bytes, seconds or a plain number."""
        return float(self.value) * _UNITS.get(self.unit or "", 1)


Rule = Callable[[Setting], bool]


def _is(*values: str) -> Rule:
    return lambda setting: setting.value in values


def _at_least(amount: float) -> Rule:
    return lambda setting: setting.amount >= amount


@dataclass(frozen=True)
class _Advice:
    """`also`: another setting without which the better value is refused."""

    is_fine: Rule
    better: str
    costs: str
    gives_up: str
    also: str | None = None


_ADVICE: Final[Mapping[str, _Advice]] = {
    "wal_level": _Advice(
        _is("minimal"),
        "minimal",
        "the rows of tables made by the load are written twice, into the table and into the log",
        "replication, and recovery from a base backup: only for a server that can be loaded again",
        also="ALTER SYSTEM SET max_wal_senders = 0",
    ),
    "max_wal_size": _Advice(
        _at_least(16 * _GIB),
        "16GB",
        "a load that writes more log than that forces checkpoints, which write the same pages again and again",
        "disk space for the log, and minutes of recovery after a crash",
    ),
    "checkpoint_timeout": _Advice(
        _at_least(30 * 60),
        "30min",
        "every checkpoint writes all changed pages while the load needs the disk",
        "minutes of recovery after a crash",
    ),
    "synchronous_commit": _Advice(
        _is("on", "local", "off"),
        "on",
        "every commit waits until a standby has applied it",
        "a standby may show a commit a moment later",
    ),
    "fsync": _Advice(
        _is("on"),
        "on",
        "nothing: it is off, so a crash of the machine can destroy the whole server",
        "speed of all writes: the price of keeping what was committed",
    ),
    "full_page_writes": _Advice(
        _is("on"),
        "on",
        "nothing: it is off, so a power cut can leave torn pages, unless the file system rules them out",
        "some log behind each checkpoint; pages that a load fills for the first time need none",
    ),
    "autovacuum": _Advice(
        _is("on"),
        "on",
        "loaded tables get no statistics, so queries are planned badly until somebody runs ANALYZE (`analyze: true`)",
        "some disk and processor time; tables that are being filled are left out by Headrace itself",
    ),
    "shared_buffers": _Advice(
        _at_least(1 * _GIB),
        "1GB, or a quarter of the memory",
        "writers have to write pages out themselves when they need a free one",
        "memory that the file system could use as its cache",
    ),
    "maintenance_work_mem": _Advice(
        _at_least(1 * _GIB),
        "1GB",
        "indexes that are built behind the load sort on disk",
        "so much memory for each index build and each autovacuum worker",
    ),
    "max_parallel_maintenance_workers": _Advice(
        _at_least(2),
        "2",
        "indexes are built by one process",
        "processors and memory while an index is built",
    ),
    "wal_buffers": _Advice(
        _at_least(16 * _MIB),
        "16MB",
        "several writers wait for one another to write the log",
        "that much memory",
    ),
    "effective_io_concurrency": _Advice(
        _at_least(16),
        "16",
        "reads are not asked for ahead where the rows of a table are moved or read through an index",
        "nothing on solid state disks; more seeking on others",
    ),
    "maintenance_io_concurrency": _Advice(
        _at_least(10),
        "10",
        "the same for ANALYZE and for building indexes",
        "nothing on solid state disks; more seeking on others",
    ),
}
ADVISED_SETTINGS: Final = (*_ADVICE, *_LOCK_TABLE)

# How a new value takes effect, by the context of the setting.
_RESTART: Final = "restart the server"
_RELOAD: Final = "SELECT pg_reload_conf()"


def advise(settings: Mapping[str, Setting], partitions: int) -> tuple[SettingAdvice, ...]:
    """Every setting of the table that the server has. `partitions`: the most that are switched in one transaction."""
    found = [_advised(name, settings[name], advice) for name, advice in _ADVICE.items() if name in settings]
    if all(name in settings for name in _LOCK_TABLE):
        found.append(_locks(settings, partitions))
    return tuple(found)


def _advised(name: str, setting: Setting, advice: _Advice) -> SettingAdvice:
    if advice.is_fine(setting):
        return SettingAdvice(name, setting.shown)
    value = advice.better.partition(",")[0]
    statement = _statement(name, value, setting.context, advice.also)
    return SettingAdvice(name, setting.shown, advice.better, advice.costs, advice.gives_up, statement)


def _statement(name: str, value: str, context: str, also: str | None = None) -> str:
    parts = [f"ALTER SYSTEM SET {name} = '{value}'", also, _RESTART if context == "postmaster" else _RELOAD]
    return "; ".join(part for part in parts if part)


def _locks(settings: Mapping[str, Setting], partitions: int) -> SettingAdvice:
    """One switch locks all its partitions at once, in a table that all sessions share."""
    each, sessions, prepared = (settings[name] for name in _LOCK_TABLE)
    places = sessions.amount + prepared.amount
    needed = LOCKS_PER_PARTITION * partitions
    if needed <= each.amount * places:
        return SettingAdvice(_LOCK_TABLE[0], each.shown)
    better = str(math.ceil(2 * needed / places))
    return SettingAdvice(
        _LOCK_TABLE[0],
        each.shown,
        better,
        f"the switch of {partitions} partitions needs about {needed} locks at once, there is room for "
        f"{int(each.amount * places)}: it fails",
        "some shared memory",
        _statement(_LOCK_TABLE[0], better, each.context),
    )
