"""How rows reach the target: the tables that writers fill, and how these become (part of) the target."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from headrace.errors import TargetError
from headrace.planning.partitions import FilePartition
from headrace.planning.plan import WHOLE_TABLE, SourceSnapshot, StagingTable, SwitchMode
from headrace.planning.table_names import highest_number, numbered_name
from headrace.planning.target_table import TargetTable
from headrace.planning.wording import counted


@dataclass(frozen=True)
class Staging:
    """The decision, and what the plan says about it. A target without hidden tables has none."""

    switch: SwitchMode = "none"
    tables: tuple[StagingTable, ...] = ()
    notes: list[str] = field(default_factory=list)


def plan_staging(
    table: TargetTable, load: str, source: SourceSnapshot, partitions: Sequence[FilePartition], streams: int
) -> Staging:
    """The staging tables of one data flow of a target with hidden tables, and the switch.

    `load` is how the rows really travel; `partitions` belong to `staged`. Raises TargetError for what the table
    forbids, before row 1.
    """
    switch, why = _switch(table, load)
    if load == "staged":
        tables = _partition_tables(partitions, _numbered(table, len(partitions)), streams)
    elif load == "view":
        tables = _stream_tables(source, _numbered(table, streams))
    else:
        whole = tuple(int(item["number"]) for item in source.slices)
        tables = (StagingTable(WHOLE_TABLE, table.destination.table, whole, owned=streams == 1),)
    _check_options(table, switch, streams)
    return Staging(switch, tables, [*_notes(table, load, switch, tables, streams), why])


def _switch(table: TargetTable, load: str) -> tuple[SwitchMode, str]:
    """How the staging tables become the target, and why, as a note."""
    catalog, target = table.catalog, table.destination.target
    if load == "view":
        return "view", "the writers' tables stay; the table is a view of them all"
    if load == "staged":
        old = len(table.own_tables()) if target == "replace" else 0
        place = f"take the place of {counted(old, 'old one')}" if old else "are attached"
        return "attach", f"the partitions {place} in one transaction"
    if catalog is None:
        return "schema", "the table is new: it is loaded out of sight and moved into its schema"
    if target == "append":
        return "none", "rows are appended straight to the table: each writer commits a transaction of its own"
    hanging = catalog.prevents_rename or (("its partitions",) if catalog.partitioning else ())
    if hanging:
        keeps = ", ".join(hanging)
        return "move", f"rows are loaded out of sight and moved into the emptied table, which keeps {keeps}"
    return "rename", "rows are loaded into a new table, which takes the place of the old one"


def _numbered(table: TargetTable, count: int) -> dict[int, str]:
    """Names of `count` tables beside the target, by number.

    Appended ones are numbered on from those that are there; what is replaced gives its names free.
    """
    capabilities, own = table.capabilities, table.own_tables()
    maximum = capabilities.maximum_name_bytes
    is_append = table.destination.target == "append"
    first = highest_number(table.destination.table, own, maximum) + 1 if is_append else 1
    names = {number: numbered_name(table.destination.table, number, maximum) for number in range(first, first + count)}
    taken = {capabilities.name_key(name) for name in table.taken_names}
    if table.destination.target == "replace":
        taken -= {capabilities.name_key(name) for name in own}
    for name in names.values():
        if capabilities.name_key(name) in taken:
            raise TargetError(
                f"a part of table {table.name} would have a name that is taken",
                found=f"`{name}`, which is no part of the table",
                hint=f"Rename or drop `{name}`.",
            )
    return names


def _partition_tables(
    partitions: Sequence[FilePartition], names: Mapping[int, str], streams: int
) -> tuple[StagingTable, ...]:
    """With fewer partitions than streams the streams have to share them."""
    owned = len(partitions) >= streams
    return tuple(
        StagingTable(str(number), name, partition.slices, owned, partition.bounds)
        for partition, (number, name) in zip(partitions, names.items(), strict=True)
    )


def _stream_tables(source: SourceSnapshot, names: Mapping[int, str]) -> tuple[StagingTable, ...]:
    """A table for each stream: neighbouring slices, about as many bytes each."""
    groups: list[list[int]] = [[] for _ in names]
    # Generated rows have no bytes.
    lengths = [max(1, int(item["end_byte"]) - int(item["begin_byte"])) for item in source.slices]
    done, group = 0, 0
    for position, item in enumerate(source.slices):
        groups[group].append(int(item["number"]))
        done += lengths[position]
        groups_left = len(groups) - group - 1
        is_full = done * len(groups) >= sum(lengths) * (group + 1)
        # Every group gets a slice.
        if groups_left and (is_full or len(source.slices) - position - 1 == groups_left):
            group += 1
    return tuple(
        StagingTable(str(number), name, tuple(slices), owned=True)
        for slices, (number, name) in zip(groups, names.items(), strict=True)
    )


def _check_options(table: TargetTable, switch: SwitchMode, streams: int) -> None:
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
    table: TargetTable, load: str, switch: SwitchMode, tables: Sequence[StagingTable], streams: int
) -> list[str]:
    """Who owns what, and whether rows are stored frozen and without the log."""
    owned = tables[0].owned
    notes = []
    if load == "staged":
        who = "each is loaded by one stream" if owned else f"{streams} streams share them"
        notes.append(f"{counted(len(tables), 'partition')}, one for each file with rows; {who}")
    elif load == "view":
        notes.append(f"{counted(len(tables), 'table')}, one for each stream")
    if table.capabilities.freezes:
        notes.append(_freeze(switch, owned, table.capabilities.skips_log))
    return notes


def _freeze(switch: SwitchMode, owned: bool, skips_log: bool) -> str:
    if switch in ("none", "move"):
        return "no FREEZE: the rows go into a table that exists"
    if not owned:
        return "no FREEZE: several streams fill one table, which has to be there before their transactions"
    log = "no WAL" if skips_log else "but WAL is written (wal_level)"
    return f"FREEZE, {log}: every table is made in the transaction that fills it"
