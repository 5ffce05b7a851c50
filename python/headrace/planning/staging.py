"""How rows reach the target: the tables that writers fill, and how these become (part of) the target."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from headrace.errors import TargetError
from headrace.planning.division import Division
from headrace.planning.part_names import part_names
from headrace.planning.partitioning import ALL_PARTITIONS, STRAYS, Partitioning
from headrace.planning.plan import WHOLE_TABLE, SwitchMode
from headrace.planning.slicing import text_bytes
from headrace.planning.source_snapshot import SourceSnapshot
from headrace.planning.staging_table import StagingTable
from headrace.planning.target_table import TargetTable
from headrace.planning.wording import counted


@dataclass(frozen=True)
class Staging:
    """The decision, and what the plan says about it. A target without hidden tables has none. `connections`: how many
    writers load at the same time.
    """

    switch: SwitchMode = "none"
    tables: tuple[StagingTable, ...] = ()
    notes: list[str] = field(default_factory=list)
    connections: int = 1


def plan_staging(
    table: TargetTable,
    load: str,
    source: SourceSnapshot,
    division: Division | None,
    streams: int,
    *,
    commits: bool,
    moves: bool = False,
) -> Staging:
    """The staging tables of one data flow of a target with hidden tables, and the switch.

    `load` is how the rows really travel; `division` belongs to `staged`. `commits`: rows are committed before the last
    one has arrived; `moves`: those that are appended are loaded out of sight, too, as of queries and of flows with
    several destinations, whose rows have to become visible at once.

    Raises TargetError for what the table forbids, before row 1.
    """
    switch, why = _switch(table, load, moves=moves)
    if division is not None:
        tables = _partition_tables(table, division, source, streams, commits)
        # What happens to partitions that exist stands in the notes of the division.
        why = _what_is_switched(table, division.partitioning)
    elif load == "view":
        # Of several sources apart one may have less than there are streams for all of them.
        names = part_names(table, [None] * max(1, min(streams, source.groups)))
        tables = _stream_tables(source, names, owned=not commits)
    else:
        whole = tuple(int(item["number"]) for item in source.slices)
        is_owned = streams == 1 and not commits
        tables = (StagingTable(WHOLE_TABLE, table.destination.table, whole, is_owned),)
    _check_options(table, switch, streams, commits)
    partitioning = None if division is None else division.partitioning
    notes = _notes(table, load, switch, tables, partitioning, streams, commits)
    connections = _connections(tables, partitioning, streams)
    return Staging(switch, tables, [*notes, why], connections)


def _connections(tables: Sequence[StagingTable], partitioning: Partitioning | None, streams: int) -> int:
    """Of the writers, at the same time."""
    if partitioning is not None and partitioning.way == "shared":
        return len(tables)
    return 2 * streams if partitioning is not None and partitioning.has_strays else streams


def _what_is_switched(table: TargetTable, partitioning: Partitioning) -> str:
    old = 0
    if table.destination.target == "replace":
        named = sum(part.action == "exchange" for part in partitioning.partitions)
        old = named or len(table.own_tables())
    if all(part.action == "discard" for part in partitioning.partitions):
        return f"{counted(old, 'old partition')} dropped in one transaction" if old else "the switch adds no partition"
    place = f"take the place of {counted(old, 'old one')}" if old else "are attached"
    if all(part.action == "insert" for part in partitioning.partitions):
        return "no partition is new: the rows are moved in one transaction"
    return f"the partitions {place} in one transaction"


def _switch(table: TargetTable, load: str, *, moves: bool) -> tuple[SwitchMode, str]:
    """How the staging tables become the target, and why, as a note."""
    catalog, target = table.catalog, table.destination.target
    if load == "view":
        return "view", "the writers' tables stay; the table is a view of them all"
    if load == "staged":
        return "attach", ""
    if catalog is None:
        return "schema", "the table is new: it is loaded out of sight and moved into its schema"
    if target == "append" and moves:
        return "move", "rows are loaded out of sight and moved into the table, which keeps those that it has"
    if target == "append":
        return "none", "rows are appended straight to the table: each writer commits a transaction of its own"
    hanging = catalog.prevents_rename or (("its partitions",) if catalog.partitioning else ())
    if hanging:
        keeps = ", ".join(hanging)
        return "move", f"rows are loaded out of sight and moved into the emptied table, which keeps {keeps}"
    return "rename", "rows are loaded into a new table, which takes the place of the old one"


def _partition_tables(
    table: TargetTable, division: Division, source: SourceSnapshot, streams: int, commits: bool
) -> tuple[StagingTable, ...]:
    """For rows that have homes a table each, which streams share if there are fewer tables than streams, and one for
    strays; otherwise a table for each partition that takes from all slices, or one for all.
    """
    partitioning = division.partitioning
    every = tuple(int(item["number"]) for item in source.slices)
    if partitioning.way == "server":
        return (StagingTable(ALL_PARTITIONS, table.destination.table, every, owned=False),)
    if partitioning.way == "shared":
        return tuple(StagingTable(part.name, part.table, every, owned=not commits) for part in partitioning.partitions)
    homes = division.homes
    owned = not commits and sum(1 for slices in homes.values() if slices) >= streams
    tables = tuple(
        StagingTable(part.name, part.table, homes[part.name], owned and bool(homes[part.name]))
        for part in partitioning.partitions
    )
    strays = StagingTable(STRAYS, table.destination.table, every, owned=False)
    return (*tables, strays) if partitioning.has_strays else tables


def _stream_tables(source: SourceSnapshot, names: Sequence[str], *, owned: bool) -> tuple[StagingTable, ...]:
    """A table for each stream: neighbouring slices, about as many bytes each."""
    groups: list[list[int]] = [[] for _ in names]
    # Generated rows have no bytes.
    units = source.units
    lengths = [sum(text_bytes(item) for item in unit) for unit in units]
    done, group = 0, 0
    for position, unit in enumerate(units):
        groups[group] += [int(item["number"]) for item in unit]
        done += lengths[position]
        groups_left = len(groups) - group - 1
        is_full = done * len(groups) >= sum(lengths) * (group + 1)
        # Every group gets a slice.
        if groups_left and (is_full or len(units) - position - 1 == groups_left):
            group += 1
    return tuple(
        # In the ledger each has the number that is in its name.
        StagingTable(name.rpartition("_")[2], name, tuple(slices), owned)
        for slices, name in zip(groups, names, strict=True)
    )


def _check_options(table: TargetTable, switch: SwitchMode, streams: int, commits: bool) -> None:
    """Raises TargetError for an option that the switch cannot keep."""
    if table.catalog is None:
        return
    options = table.destination.options
    if options.lock and switch == "none" and streams > 1:
        raise TargetError(
            f"table {table.name} cannot be locked while {streams} writers append to it",
            found="`lock: true` with rows that are appended straight to the table",
            hint="Leave `lock` out, or load with `streams: 1`.",
        )
    if options.lock and switch == "none" and commits:
        raise TargetError(
            f"table {table.name} cannot stay locked while its rows are committed",
            found="`lock: true` and `commit` with rows that are appended straight to the table",
            hint="Leave `lock` or `commit` out.",
        )
    if not options.check_constraints and table.catalog.checks and switch != "rename":
        raise TargetError(
            f"the CHECK constraints of table {table.name} cannot be left unchecked",
            found=", ".join(table.catalog.checks),
            expected="`check_constraints: false` only for a table that another one takes the place of",
            hint="Leave `check_constraints` out.",
        )
    if switch == "attach" and table.catalog.triggers and not options.disable_triggers:
        raise TargetError(
            f"the triggers of table {table.name} do not fire for rows that come as partitions",
            found=", ".join(table.catalog.triggers),
            hint="Set `disable_triggers: true` if that is right, or `load: single`, with which they fire.",
        )


def _notes(
    table: TargetTable,
    load: str,
    switch: SwitchMode,
    tables: Sequence[StagingTable],
    partitioning: Partitioning | None,
    streams: int,
    commits: bool,
) -> list[str]:
    """Who owns what, and whether rows are stored frozen and without the log."""
    notes = []
    if partitioning is not None and partitioning.way == "home":
        homes = [part for part in tables if part.partition != STRAYS and part.slices]
        if len(partitioning.partitions) > 1:
            owned = homes[0].owned
            who = "each is loaded by one stream" if owned else f"{streams} streams share them"
            notes.append(f"{counted(len(homes), 'partition')}, one for each file with rows; {who}")
    elif load == "view":
        who = "one for each stream" if len(tables) == streams else "each is loaded by one stream"
        notes.append(f"{counted(len(tables), 'table')}, {who}")
    if table.capabilities.freezes:
        notes.append(_freeze(switch, tables, partitioning, commits, table.capabilities.skips_log))
    return notes


def _freeze(
    switch: SwitchMode,
    tables: Sequence[StagingTable],
    partitioning: Partitioning | None,
    commits: bool,
    skips_log: bool,
) -> str:
    if switch in ("none", "move"):
        return "no FREEZE: the rows go into a table that exists"
    if partitioning is not None and all(part.action == "insert" for part in partitioning.partitions):
        return "no FREEZE: the rows go into partitions that exist"
    if commits:
        return "no FREEZE, and WAL is written: the tables have to be there before the first of several transactions"
    if partitioning is not None and partitioning.way == "server":
        return "no FREEZE: the server does not freeze rows that it distributes"
    if not any(part.owned for part in tables):
        return "no FREEZE: several streams fill one table, which has to be there before their transactions"
    log = "no WAL" if skips_log else "but WAL is written (wal_level)"
    return f"FREEZE, {log}: every table is made in the transaction that fills it"
