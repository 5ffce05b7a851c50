"""How one load divides its table: the partitions, what becomes of those that exist, and the way of the rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from headrace.errors import InternalError, TargetError
from headrace.model import Every, HashPartition, ListPartition, PartitionClause, RangePartition, strategy_of
from headrace.model.key_values import KeyType, key_type
from headrace.planning.catalog import CatalogPartition
from headrace.planning.existing import check_dropped
from headrace.planning.hash_parts import hash_parts
from headrace.planning.key_questions import KeyFacts
from headrace.planning.list_parts import list_parts
from headrace.planning.outside_keys import OUTSIDE_FAILS, OUTSIDE_FAILS_BUILD
from headrace.planning.part_names import part_names
from headrace.planning.partition_key import bounds_of_files
from headrace.planning.partitioning import (
    DefaultRule,
    Judge,
    ListRule,
    Partition,
    Partitioning,
    RangeRule,
    Strategy,
    Way,
)
from headrace.planning.partitions import FilePartitions
from headrace.planning.parts import Part, default_of, staying
from headrace.planning.plan import OutputColumn
from headrace.planning.range_parts import RangeParts
from headrace.planning.reload import reloaded_parts
from headrace.planning.rolling_window import Window, newest, nothing_goes
from headrace.planning.source_snapshot import SourceSnapshot
from headrace.planning.target_table import TargetTable
from headrace.planning.ways import Choice, choose_way
from headrace.planning.wording import counted

# Measured with two indexes on the table.
_INSERT_SECONDS_PER_GB = 60
_NO_KEY = "no row has a key: no partition is made"


@dataclass(frozen=True)
class Division:
    """`homes`: numbers of the slices whose rows are expected in a partition, by the partition's name."""

    partitioning: Partitioning
    homes: Mapping[str, tuple[int, ...]]


def divide(
    table: TargetTable,
    source: SourceSnapshot,
    key: OutputColumn,
    facts: KeyFacts,
    notes: list[str],
    by_query: Choice | None = None,
) -> Division:
    """`by_query`: the way of rows that a query gives in the target itself, so that nobody else sees them.

    Raises TargetError for a table or a declaration that cannot be, before row 1.
    """
    clause = table.destination.partition
    assert clause is not None
    kept = staying(table)
    files: str | None = None
    if table.destination.partitions:
        parts = reloaded_parts(table, key.type)
    elif isinstance(clause, RangePartition):
        parts, files = _ranges(table, source, key, clause, facts, kept, notes)
    elif isinstance(clause, ListPartition):
        parts = list_parts(table, clause, key.type, kept)
    else:
        parts = hash_parts(table, clause, facts.cpus, kept, notes)
    default = _default(clause, kept, is_reload=bool(table.destination.partitions))
    if not parts and not default:
        parts = [_without_keys(table, key, facts)]
    parts = _in_order(parts, clause, key_type(key.type))
    window = Window(parts, ())
    if clause.settings.keep is not None and table.destination.target == "append":
        kind = key_type(key.type)
        assert kind is not None  # key_column refuses others
        if table.destination.takes_back:
            window = nothing_goes(table, parts, kept, kind, clause.settings.keep, has_default=bool(default))
        else:
            window = newest(table, parts, kept, kind, clause.settings.keep, has_default=bool(default))
        check_dropped(table, window.drops, "dropped (`keep`)", "set a larger `keep`")
        notes += _notes_of_window(window, clause)
    parts = window.parts + default
    strategy = strategy_of(clause)
    choice = by_query or choose_way(parts, strategy, key, table.catalog, table.capabilities, files)
    partitions = _named(table, parts, clause.settings.tablespaces)
    judge: Judge = "target" if by_query else _judge(table, parts, strategy, choice.way, facts)
    outside = OUTSIDE_FAILS_BUILD if by_query else OUTSIDE_FAILS
    # What a query has made stands in no file.
    null = "is a reject" if source.gathered is None else "ends the load"
    notes += _notes(table, parts, partitions, key, clause, choice.way, judge, outside, null)
    notes.append(_NO_KEY if parts[0].action == "discard" else choice.reason)
    partitioning = Partitioning(
        strategy,
        key.target,
        key.source,
        key.type,
        choice.way,
        partitions,
        has_strays=choice.way == "home",
        drops=window.drops,
        hash_key=choice.hash_key,
        judge=judge,
    )
    every_slice = tuple(int(item["number"]) for item in source.slices)
    homes = {
        partition.name: part.slices if files == "" and len(parts) > 1 else every_slice
        for partition, part in zip(partitions, parts, strict=True)
    }
    return Division(partitioning, homes)


def _without_keys(table: TargetTable, key: OutputColumn, facts: KeyFacts) -> Part:
    """What stands for the partitions of a source without keys. It takes no row: those with a NULL are rejects.

    Raises TargetError if there are keys, and where a table cannot be without partitions.
    """
    if not facts.has_keys:
        if table.capabilities.hidden_tables:
            return Part(RangeRule(None, None), action="discard")
        raise TargetError(
            f"no row for table {table.name} has a key: there is nothing to divide",
            hint="Declare the bounds, or leave `partition` out with `load: staged`.",
        )
    found = None
    if facts.scan is not None:
        nulls = f", {facts.scan.nulls:,} of them NULL" if facts.scan.nulls else ""
        found = f"{counted(facts.scan.rows, 'key')} in `{key.source}`{nulls}"
    if table.destination.takes_back:
        raise TargetError(
            f"table {table.name} has no partition that could take the rows",
            found="a range for each file, and no file with a row that was loaded",
            hint="Load the rows from a file of their own, by a package with `target: append`.",
        )
    raise TargetError(
        f"no row of the source belongs into a partition of table {table.name}",
        found=found,
        hint=f"Correct `partition` of destination `{table.destination.name}`, or set `outside: default`.",
    )


def _ranges(
    table: TargetTable,
    source: SourceSnapshot,
    key: OutputColumn,
    clause: RangePartition,
    facts: KeyFacts,
    kept: Sequence[CatalogPartition],
    notes: list[str],
) -> tuple[list[Part], str | None]:
    """The ranges, and how the files fit them: as `choose_way` has it."""
    if bounds_of_files(table.destination):
        if facts.files is None:
            raise InternalError("a plan with partitions is made without the keys of the files")
        found = FilePartitions(source, key, table.name).plan(facts.files, kept, notes)
        return found.parts, found.overlap or ""
    kind = key_type(key.type)
    assert kind is not None  # key_column refuses others
    ranges = RangeParts(table, key, kind, kept)
    if clause.bounds == "files":
        return ranges.present(), None  # rows come back whose files have their partitions
    if isinstance(clause.bounds, tuple):
        return ranges.given(clause.bounds, clause), None
    if isinstance(clause.bounds, Every):
        return ranges.periods(clause.bounds, facts.scan), None
    return ranges.equal(facts.scan), None


def _judge(table: TargetTable, parts: Sequence[Part], strategy: Strategy, way: Way, facts: KeyFacts) -> Judge:
    """Who knows which rows are outside, also where the target finds the partition of the others."""
    if way != "server":
        return "core"
    if strategy == "hash" or any(isinstance(part.rule, DefaultRule) for part in parts):
        return "target"  # none is outside
    partitioning = table.catalog.partitioning if table.catalog else None
    if partitioning is None or partitioning.comparison is None:
        return "core"
    return "keys" if facts.scan is not None and facts.scan.distinct is not None else "target"


def _in_order(parts: Sequence[Part], clause: PartitionClause, kind: KeyType | None) -> list[Part]:
    """Ranges by their keys; others have their order."""
    if not isinstance(clause, RangePartition) or kind is None:
        return list(parts)

    def minimum(part: Part) -> tuple[bool, object]:
        assert isinstance(part.rule, RangeRule)
        text = part.rule.minimum
        return (text is not None, 0 if text is None else kind.parse(text))

    return sorted(parts, key=minimum)


def _default(clause: PartitionClause, kept: tuple[CatalogPartition, ...], *, is_reload: bool) -> list[Part]:
    """The default partition, last of all. One partition that is loaded anew takes its own rows alone."""
    if clause.settings.outside != "default" or is_reload:
        return []
    existing = default_of(kept)
    if existing is None:
        return [Part(DefaultRule(), "default")]
    return [Part(DefaultRule(), action="insert", existing=existing)]


def _named(table: TargetTable, parts: Sequence[Part], tablespaces: Sequence[str]) -> tuple[Partition, ...]:
    """In the ledger partitions have the numbers of their places. Tablespaces are dealt to new ones in turn."""
    new = [part for part in parts if part.action == "attach"]
    names = iter(part_names(table, [part.suffix for part in new]))
    spaces = iter(tablespaces[number % len(tablespaces)] if tablespaces else None for number in range(len(new)))
    partitions = []
    for place, part in enumerate(parts):
        partition = Partition(str(place + 1), part.existing or "", part.rule, None, part.action)
        if part.action == "attach":
            partition = replace(partition, table=next(names), tablespace=next(spaces))
        elif part.action == "discard":
            partition = replace(partition, table=table.destination.table)
        elif part.action == "exchange":
            partition = replace(partition, replaces=part.existing)
        partitions.append(partition)
    return tuple(partitions)


def _notes(
    table: TargetTable,
    parts: Sequence[Part],
    partitions: Sequence[Partition],
    key: OutputColumn,
    clause: PartitionClause,
    way: Way,
    judge: Judge,
    outside: str,
    null: str,
) -> list[str]:
    """`outside`: what is said of rows that no partition takes, if only the target knows them; `null`: of a NULL that
    none takes.
    """
    notes = []
    if key.type.kind == "timestamptz" and not isinstance(clause, HashPartition):
        notes.append(f"bounds, periods and values of `{key.target}` are in UTC")
    takes_all = any(isinstance(part.rule, DefaultRule) for part in parts)
    takes_null = takes_all or any(isinstance(part.rule, ListRule) and None in part.rule.values for part in parts)
    is_hash = isinstance(clause, HashPartition)
    if key.nullable and judge != "target" and not (is_hash or takes_null):
        notes.append(f"a NULL in `{key.source}` {null}, because no partition takes it")
    if table.destination.partitions:
        notes.append("only these partitions are loaded anew: rows that belong into others are rejects")
        if clause.settings.outside == "default":
            notes.append("`outside: default` has no effect on partitions that are loaded anew")
    filled = [partition.table for partition in partitions if partition.action == "insert"]
    if judge == "target" and not (is_hash or takes_all):
        notes.append(outside)
    if filled and way == "merged":
        notes.append(f"{counted(len(filled), 'existing partition')} may take rows: {', '.join(filled)}")
    elif filled:
        notes.append(
            f"rows for {counted(len(filled), 'existing partition')} are moved there by INSERT at the switch: about "
            f"{_INSERT_SECONDS_PER_GB} s per GB with two indexes"
        )
    if clause.settings.keep is not None and table.destination.target != "append":
        notes.append(f"`keep` has no effect with `target: {table.destination.target}`")
    return notes


def _notes_of_window(window: Window, clause: PartitionClause) -> list[str]:
    notes = []
    if window.drops:
        notes.append(
            f"{counted(len(window.drops), 'partition')} dropped at the switch (`keep`): {', '.join(window.drops)}"
        )
    if window.late:
        into = "go into the default partition" if clause.settings.outside == "default" else "are rejects"
        notes.append(f"rows of {counted(window.late, 'range')} that would be too old (`keep`) are outside: they {into}")
    return notes
