"""Splits the run's memory budget before the run starts.

    budget = headroom + text blocks + typed slabs + decoders of compressed files
           + lookups + instances of DuckDB for queries + the target's own engine (DuckDB's memory_limit)

Headroom is what no counter sees: the interpreter and its libraries (80 MB resident, with DuckDB 128 MB: so much it is
at least), one row longer than a block (twice, if it holds doubled qualifiers), allocator slack, and what DuckDB uses
beyond its limit (2.0.0 with two threads: 8 MB where it takes rows in, 12 MB where it sorts or groups them). The text
and its typed columns take at most a quarter. DuckDB gets the rest, but not more than the target's share: inserting
LINEITEM was as fast with a limit of 64 MB as with 400 MB (2 threads), and it keeps every block it is allowed to keep.
Lookups are read before the first row moves, when there are no blocks of the flow yet, but those of the streams that
read them; and stay. They may take what both moments leave, DuckDB what they leave then.
At the default 1 GB this holds the process under 700 MB resident with 16 streams.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any, Final

from headrace.errors import MemoryLimitError
from headrace.model import Column, DataType
from headrace.planning.wording import counted

KIB: Final = 1024
MIB: Final = 1024 * 1024

# Bytes of one value in an Arrow column; text is a 16-byte view into the block.
_FIXED_WIDTH_BYTES: Final = {
    "int16": 2, "int32": 4, "int64": 8, "float32": 4, "float64": 8, "bool": 1,
    "date": 4, "time": 8, "timestamp": 8, "timestamptz": 8,
}  # fmt: skip
_VIEW_BYTES: Final = 16
# Blocks of 1 MB, their positions and their typed columns do not fit the second-level cache (2 MB): 5 % slower, and more
# so with more streams than cores. Below 512 KB nothing is gained.
_BLOCK_CHOICES: Final = (512 * KIB, 256 * KIB)
# A query costs 1 to 2 ms of CPU time for each block, whatever is in it.
_QUERY_BLOCK_CHOICES: Final = (2048 * KIB, 1024 * KIB, *_BLOCK_CHOICES)
# For flows whose transforms or joins make or copy many columns, and that would not fit otherwise.
_TIGHT_BLOCK_CHOICES: Final = (128 * KIB, 64 * KIB)
# What an instance may use that runs queries for streams: vectors, the computed columns of a block, constant tables.
_INSTANCE_SHARE: Final = 0.12
_LEAST_INSTANCE_BYTES: Final = 12 * MIB
_MOST_INSTANCE_BYTES: Final = 64 * MIB
_FLOW_SHARE: Final = 0.25
_HEADROOM_SHARE: Final = 0.35
# The program before its first row, measured: 80 MB resident; with DuckDB 128 MB, of which 45 MB are its code.
_PROGRAM_BYTES: Final = 85_000_000
_PROGRAM_WITH_ENGINES_BYTES: Final = 128_000_000
# What an instance of DuckDB takes beyond its limit, with two threads.
_EXCESS_BYTES: Final = 12_000_000
_MINIMUM_ENGINE_BYTES: Final = 48 * MIB
# DuckDB's part where it is not the destination: it takes somewhat more than it is allowed to.
_ENGINE_SHARE: Final = 0.35
# That of instances of DuckDB for queries over all rows, together.
GATHERING_SHARE: Final = 0.2
# The largest share that a target's engine has.
_MOST_ENGINE_SHARE: Final = 0.4
# Batches waiting between the streams and the one consumer.
QUEUE_BLOCKS: Final = 8
# A scan thread of the consumer holds the batch it reads and the one it has just been given.
BLOCKS_PER_CONSUMER_THREAD: Final = 2
MAXIMUM_ROW_BYTES: Final = 64 * MIB
# An exabyte, in MB.
_MOST_TOTAL_MB: Final = 10**12
# Text of a block of the streams that read a lookup: its rows are short.
LOOKUP_BLOCK_BYTES: Final = 256 * KIB


@dataclass(frozen=True)
class MemoryBudget:
    """What the run may use. `consumer_threads`: threads of the target's engine (0: no engine); `consumers`: how many
    statements of it take rows at the same time. Of a flow with destinations in several places: `engines`, as many as
    have one, and `engine_share`, the largest part that one of them may have. `gatherings`: instances of DuckDB that
    take rows for queries over all of them in the same pass, each with `gathering_threads`, or have such rows and give
    them.
    """

    total_bytes: int
    consumer_threads: int
    consumers: int = 1
    engines: int = 1
    engine_share: float = 0.0
    gatherings: int = 0
    gathering_threads: int = 0

    @property
    def gathering_bytes(self) -> int:
        """What these instances may use together."""
        least = self.gatherings * _MINIMUM_ENGINE_BYTES
        return max(least, engine_bytes(self.total_bytes, GATHERING_SHARE)) if self.gatherings else 0


@dataclass(frozen=True)
class LookupNeeds:
    """What the lookups of a flow need. `bytes`: about so many they take; `reader_bytes`: the most that reading one of
    them needs beside that, `most_reader_bytes` with a budget as large as can be; `added`: the types of the columns that
    they add; `have_engine`: DuckDB gives the rows of one of them.
    """

    bytes: int = 0
    reader_bytes: int = 0
    most_reader_bytes: int = 0
    added: tuple[DataType, ...] = ()
    have_engine: bool = False


_NOT_SHOWN: Final = ("beside_lookups_bytes", "reader_bytes", "engines", "engines_at_work")
_SHOWN_IF_ANY: Final = ("gathering_bytes",)


@dataclass(frozen=True)
class MemorySplit:
    """The budget of one data flow, in bytes. `slab_bytes` is the worst case of one block's typed columns;
    `lookup_bytes`: what lookups may take at most, of which the engine gets what they leave. `beside_lookups_bytes`:
    the most that is there beside them, whatever the budget is, but for shares of it; `reader_bytes`: the same while
    they are read. `instances`: of DuckDB, which run queries, each in `instance_bytes`. `engines`: of destinations,
    which have `engine_bytes` together. `gathering_bytes`: of what takes rows for queries over all of them meanwhile,
    or has their result. `engines_at_work`: instances of DuckDB in all, but those of `instances` counted as one.
    """

    total_bytes: int
    headroom_bytes: int
    block_bytes: int
    blocks: int
    slab_bytes: int
    engine_bytes: int
    max_row_bytes: int
    decoding_bytes: int = 0
    lookup_bytes: int = 0
    beside_lookups_bytes: int = 0
    reader_bytes: int = 0
    instances: int = 0
    instance_bytes: int = 0
    engines: int = 1
    gathering_bytes: int = 0
    engines_at_work: int = 0

    @property
    def flow_bytes(self) -> int:
        """Text blocks and typed slabs together, worst case."""
        return self.blocks * (self.block_bytes + self.slab_bytes)

    @property
    def rest_bytes(self) -> int:
        """What is left for lookups and the engine."""
        queries = self.instances * self.instance_bytes + self.gathering_bytes
        return self.total_bytes - self.headroom_bytes - self.flow_bytes - self.decoding_bytes - queries

    def with_lookups(self, taken_bytes: int) -> MemorySplit:
        """The same when it is known what lookups have taken: the engine has not more than they leave."""
        engine = min(self.engine_bytes, self.rest_bytes - taken_bytes)
        return replace(self, engine_bytes=engine, lookup_bytes=taken_bytes)

    def of_one_engine(self) -> MemorySplit:
        """The same for one of the destinations, with its part of what their engines have together."""
        return replace(self, engine_bytes=self.engine_bytes // self.engines)

    def with_engine(self, threads: int) -> MemorySplit:
        """The same for a flow into DuckDB with `threads` threads, whatever the destination of the plan is. Its lookups,
        if it has some, are read.

        Raises MemoryLimitError if the budget leaves too little for that.
        """
        blocks = self.blocks + BLOCKS_PER_CONSUMER_THREAD * threads
        at_work = max(1, self.engines_at_work)
        headroom = _headroom(self.total_bytes, at_work)
        split = replace(self, blocks=blocks, headroom_bytes=headroom, engines_at_work=at_work)
        rest = split.rest_bytes - split.lookup_bytes
        if rest < _MINIMUM_ENGINE_BYTES:
            raise MemoryLimitError("the memory budget has no room for an engine beside the rows")
        return replace(split, engine_bytes=min(rest, engine_bytes(split.total_bytes, _ENGINE_SHARE)))

    def to_core(self) -> dict[str, int]:
        """The `memory` member of a flow spec."""
        return {"block_bytes": self.block_bytes, "blocks": self.blocks, "max_row_bytes": self.max_row_bytes}

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready form for plans."""
        shown = {
            name: value
            for name, value in asdict(self).items()
            if name not in _NOT_SHOWN and (value or name not in _SHOWN_IF_ANY)
        }
        return {**shown, "flow_bytes": self.flow_bytes}


def value_bytes(data_type: DataType) -> int:
    """Bytes of one value of this type in a typed slab."""
    if data_type.kind == "decimal":
        return 8 if (data_type.precision or 0) <= 18 else 16
    return _FIXED_WIDTH_BYTES.get(data_type.kind, _VIEW_BYTES)


def slab_bytes(
    columns: Sequence[Column],
    block_bytes: int,
    *,
    rewrites: int = 0,
    fills: bool = False,
    row_width: int | None = None,
    added: Sequence[DataType] = (),
) -> int:
    """Worst case of the typed columns of one text block: rows as short as the layout allows.

    A text or nullable field can be empty; any other has at least one character. Each field ends with one delimiter or
    the row end; made columns need no text. `rewrites`: texts whose doubled qualifiers were made single, escapes undone,
    or bytes decoded, are kept besides, and take at most so many times the text of the block.
    `fills`: rows may lack fields; then the core takes fewer rows of a block at once. `row_width`: bytes of the shortest
    row, where they do not follow from delimiters. `added`: the types of columns that lookups add.
    """
    types = [*(column.type for column in columns), *added]
    row_bytes = sum(map(value_bytes, types)) + (len(types) + 7) // 8
    fields = [column for column in columns if column.from_ is None]
    shortest = sum(1 + int(not column.nullable and column.type.kind in _NEVER_EMPTY) for column in fields)
    typed = (block_bytes // max(1, shortest if row_width is None else row_width)) * row_bytes
    if fills:
        # So much the columns of the layout take at most, of rows that may have no field at all; what is added stands
        # beside them.
        most_bytes = _FILLED_SLAB_FACTOR * block_bytes
        own_bytes = sum(value_bytes(column.type) for column in columns)
        most_rows = min(block_bytes, most_bytes // max(1, own_bytes))
        typed = max(typed, most_bytes + most_rows * sum(map(value_bytes, added)))
    return typed + rewrites * block_bytes


# As the core has it: SLAB_FACTOR of crate parse.
_FILLED_SLAB_FACTOR: Final = 17
_NEVER_EMPTY: Final = frozenset({*_FIXED_WIDTH_BYTES, "decimal", "uuid"})


def engine_bytes(total_bytes: int, share: float) -> int:
    """The most that the target's own engine may use of a run's budget, known before any table is planned."""
    return int(total_bytes * share)


# Bytes of the typed columns of a block of so many bytes, with columns of these types beside them.
SlabOf = Callable[[int, Sequence[DataType]], int]


def split_memory(
    budget: MemoryBudget,
    columns: Sequence[Column],
    streams: int,
    engine_share: float,
    *,
    rewrites: int = 0,
    fills: bool = False,
    row_width: int | None = None,
    decoding_bytes: int = 0,
    lookups: LookupNeeds | None = None,
    computed: Sequence[DataType] = (),
    copied: Sequence[DataType] = (),
    slab_of: SlabOf | None = None,
    blocks_per_stream: int = 1,
) -> MemorySplit:
    """Splits `budget` for one data flow; raises MemoryLimitError if it is too small for these streams.

    `decoding_bytes`: what the decoders of compressed files need; `lookups`: None for a flow without any; `computed`:
    the types of columns behind queries; `copied`: those of columns that several destinations hold beside one another.
    `slab_of`: where one layout does not say it; `blocks_per_stream`: those that a
    stream reads into at once.
    """
    engine_share = max(engine_share, budget.engine_share)
    engines_at_work = (budget.engines if engine_share else 0) + budget.gatherings
    engines_at_work += int(bool(computed)) + int(lookups is not None and lookups.have_engine)
    headroom = _headroom(budget.total_bytes, engines_at_work)
    engine_minimum = _MINIMUM_ENGINE_BYTES * budget.engines if engine_share else 0
    held = BLOCKS_PER_CONSUMER_THREAD * max(1, budget.consumer_threads) * budget.consumers
    held += BLOCKS_PER_CONSUMER_THREAD * budget.gatherings * budget.gathering_threads
    blocks = blocks_per_stream * streams + QUEUE_BLOCKS + held
    instances = streams if computed else 0
    instance_bytes = _instance_bytes(budget.total_bytes, streams) if computed else 0
    beside_flow = headroom + decoding_bytes + engine_minimum + instances * instance_bytes + budget.gathering_bytes
    of_layout = partial(slab_bytes, columns, rewrites=rewrites, fills=fills, row_width=row_width)
    slab_of = slab_of or (lambda block_bytes, added: of_layout(block_bytes, added=added))
    added = (*(lookups.added if lookups else ()), *computed, *copied)
    choices = _QUERY_BLOCK_CHOICES if computed else _BLOCK_CHOICES
    most = budget.total_bytes - beside_flow
    limits = [(choice, min(budget.total_bytes * _FLOW_SHARE, most)) for choice in choices]
    # Small blocks cost time: they are taken where nothing else is left.
    makes_columns = bool(added) or blocks_per_stream > 1
    limits += [(choice, most) for choice in (choices[-1], *(_TIGHT_BLOCK_CHOICES if makes_columns else ()))]
    for block_bytes, limit in limits:
        slab = slab_of(block_bytes, added)
        if blocks * (block_bytes + slab) <= limit:
            break
    split = MemorySplit(
        total_bytes=budget.total_bytes,
        headroom_bytes=headroom,
        block_bytes=block_bytes,
        blocks=blocks,
        slab_bytes=slab,
        engine_bytes=0,
        max_row_bytes=MAXIMUM_ROW_BYTES,
        decoding_bytes=decoding_bytes,
        instances=instances,
        instance_bytes=instance_bytes,
        engines=budget.engines,
        gathering_bytes=budget.gathering_bytes,
        engines_at_work=engines_at_work,
    )
    rest = split.rest_bytes
    if rest < engine_minimum:
        for_added = blocks * (slab - slab_of(split.block_bytes, ()))
        needed = split.flow_bytes + engine_minimum
        made = len(added) - len(copied)
        raise _too_small(budget, split, streams, needed, made, for_added)
    share = engine_bytes(budget.total_bytes, engine_share)
    engine = min(rest, share)
    if lookups is None:
        return replace(split, engine_bytes=engine)
    # While lookups are read the engine may have all of its share; behind that it can do with its minimum.
    while_read = budget.total_bytes - headroom - share - lookups.reader_bytes
    lookup_bytes = max(0, min(rest - engine_minimum, while_read))
    expected = min(lookups.bytes, lookup_bytes)
    widest = choices[0]
    return replace(
        split,
        engine_bytes=min(engine, rest - expected),
        lookup_bytes=lookup_bytes,
        beside_lookups_bytes=blocks * (widest + slab_of(widest, added))
        + decoding_bytes
        + engine_minimum
        + split.instances * _MOST_INSTANCE_BYTES,
        reader_bytes=lookups.most_reader_bytes,
    )


def _instance_bytes(total_bytes: int, streams: int) -> int:
    share = int(total_bytes * _INSTANCE_SHARE / streams)
    return max(_LEAST_INSTANCE_BYTES, min(share, _MOST_INSTANCE_BYTES))


def _headroom(total_bytes: int, engines: int) -> int:
    """`engines`: instances of DuckDB in this process, for whatever."""
    program = _PROGRAM_WITH_ENGINES_BYTES + engines * _EXCESS_BYTES if engines else _PROGRAM_BYTES
    return max(program, int(total_bytes * _HEADROOM_SHARE))


def _least_total(bytes_beside: int, left: Callable[[int], int]) -> int:
    """The least budget, in whole MB, of which so many bytes are left; `left` grows with the budget."""
    return 1_000_000 * bisect_left(range(_MOST_TOTAL_MB), bytes_beside, key=lambda total: left(total * 1_000_000))


def memory_for_lookups(split: MemorySplit, needed_bytes: int) -> int:
    """A budget of the run that is enough for lookups of so many bytes."""
    queries = split.gathering_bytes / split.total_bytes

    def left(total_bytes: int) -> int:
        return total_bytes - _headroom(total_bytes, split.engines_at_work)

    behind = needed_bytes + split.beside_lookups_bytes
    while_read = needed_bytes + split.reader_bytes
    return max(
        split.total_bytes,
        _least_total(behind, lambda total: left(total) - int(total * queries)),
        _least_total(while_read, lambda total: left(total) - engine_bytes(total, _MOST_ENGINE_SHARE)),
    )


def _too_small(
    budget: MemoryBudget, split: MemorySplit, streams: int, needed_bytes: int, added_columns: int, added_bytes: int
) -> MemoryLimitError:
    def left(total_bytes: int) -> int:
        queries = split.instances * _instance_bytes(total_bytes, split.instances) if split.instances else 0
        gatherings = replace(budget, total_bytes=total_bytes).gathering_bytes
        return total_bytes - _headroom(total_bytes, split.engines_at_work) - queries - gatherings

    needed = _least_total(needed_bytes + split.decoding_bytes, left) // 1_000_000
    decoding = -(-split.decoding_bytes // 1_000_000)
    beside = f" and {decoding} MB for decoding compressed files" if split.decoding_bytes > needed_bytes else ""
    if added_bytes > needed_bytes // 2:
        of_transforms = f"{counted(added_columns, 'column')} of transforms"
        beside += f" and {of_transforms if added_columns else 'the rows of several destinations'}"
    return MemoryLimitError(
        f"the memory budget is too small for {counted(streams, 'stream')}{beside}",
        found=f"memory: {budget.total_bytes // 1_000_000} MB",
        expected=f"at least {needed} MB",
        hint=f"Set `memory: {needed} MB` in the package" + (", or use fewer streams." if streams > 1 else "."),
    )
