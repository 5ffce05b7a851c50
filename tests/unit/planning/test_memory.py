"""The split of the memory budget."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from headrace.errors import MemoryLimitError
from headrace.model import Column, DataType
from headrace.planning.memory import MIB, MemoryBudget, slab_bytes, split_memory, value_bytes
from tests.snapshots import assert_snapshot

GB = 1_000_000_000
LINEITEM_TYPES = (
    ["int64", "int32", "int32", "int32"]
    + ["decimal(15,2)"] * 4
    + ["char(1)"] * 2
    + ["date"] * 3
    + ["varchar(25)", "varchar(10)", "varchar(44)"]
)


def columns(types: list[str], nullable: bool = False) -> list[Column]:
    return [
        Column(name=f"c{number}", type=DataType.parse(text), nullable=nullable) for number, text in enumerate(types)
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("int16", 2),
        ("int32", 4),
        ("int64", 8),
        ("decimal(18,2)", 8),
        ("decimal(19,2)", 16),
        ("float32", 4),
        ("bool", 1),
        ("date", 4),
        ("timestamptz", 8),
        ("string", 16),
        ("char(1)", 16),
        ("uuid", 16),
        ("json", 16),
    ],
)
def test_value_bytes(text: str, expected: int) -> None:
    assert value_bytes(DataType.parse(text)) == expected


def test_slab_is_the_worst_case_of_the_layout() -> None:
    # Three bytes of text (a digit, two separators) for 8 + 16 bytes of values and one byte of validity.
    assert slab_bytes(columns(["int64", "string"]), 300) == 100 * 25
    # A nullable field may be empty.
    assert slab_bytes(columns(["int64", "string"], nullable=True), 300) == 150 * 25
    # Texts whose doubled qualifiers were made single are at most the block.
    assert slab_bytes(columns(["int64", "string"]), 300, rewrites=True) == 100 * 25 + 300
    # Rows without fields: as many as fit the same memory.
    assert slab_bytes(columns(["int64", "string"]), 300, fills=True) == 17 * 300
    # Rows of fixed width are never shorter.
    assert slab_bytes(columns(["int64", "string"]), 300, row_width=30) == 10 * 25


@pytest.mark.parametrize("streams", [1, 2, 8, 16, 32])
@pytest.mark.parametrize("threads", [1, 2, 8])
def test_parts_stay_inside_the_budget(streams: int, threads: int) -> None:
    split = split_memory(MemoryBudget(GB, threads), columns(LINEITEM_TYPES), streams, 0.4)
    assert split.flow_bytes <= 0.25 * GB
    assert split.engine_bytes <= 0.4 * GB
    assert split.headroom_bytes + split.flow_bytes + split.engine_bytes <= GB
    assert 256 * 1024 <= split.block_bytes <= MIB
    assert split.blocks >= streams + 2 * threads


def test_sixteen_streams_of_lineitem_fit_700_megabytes() -> None:
    """What is really touched: text blocks, their columns at 128 bytes a row, DuckDB, the interpreter (90 MB)."""
    split = split_memory(MemoryBudget(GB, 2), columns(LINEITEM_TYPES), 16, 0.4)
    row_bytes = sum(value_bytes(column.type) for column in columns(LINEITEM_TYPES))
    touched = split.blocks * split.block_bytes * (1 + row_bytes / 128)
    assert touched + split.engine_bytes + 90e6 + 2 * 4e6 <= 700e6


@pytest.mark.parametrize(
    ("budget", "share", "program"),
    [
        (MemoryBudget(120_000_000, 0), 0.0, 80_000_000),
        (MemoryBudget(250_000_000, 2), 0.4, 128_000_000 + 8_000_000),
        (MemoryBudget(400_000_000, 2, gatherings=1), 0.4, 128_000_000 + 2 * 8_000_000),
    ],
    ids=["no DuckDB", "DuckDB", "the result of a query besides"],
)
def test_small_budgets_have_room_for_the_program(budget: MemoryBudget, share: float, program: int) -> None:
    """What was measured: it does not get smaller with the budget."""
    split = split_memory(budget, columns(["int64"] * 4), 1, share)
    taken = split.flow_bytes + split.engine_bytes + split.gathering_bytes
    assert program + taken <= budget.total_bytes
    assert split.gathering_bytes == (80_000_000 if budget.gatherings else 0)


def test_more_streams_get_smaller_blocks() -> None:
    sizes = [
        split_memory(MemoryBudget(GB, 2), columns(LINEITEM_TYPES), streams, 0.4).block_bytes for streams in (4, 32, 64)
    ]
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[-1] < sizes[0]


def test_many_columns_of_transforms_get_small_blocks_before_they_are_refused() -> None:
    text = DataType.parse("string")

    def block_kib(total_bytes: int, copied: int) -> int:
        narrow = columns(["int32", "int32", "int32"])
        return split_memory(MemoryBudget(total_bytes, 2), narrow, 2, 0.4, copied=[text] * copied).block_bytes // 1024

    assert [block_kib(GB, copied) for copied in (0, 20, 40, 80, 160)] == [512, 256, 256, 128, 64]
    assert block_kib(2 * GB, 80) == 256, "small ones cost time"
    # They are not for flows whose transforms add nothing.
    assert split_memory(MemoryBudget(GB, 2), columns(LINEITEM_TYPES), 64, 0.4).block_bytes == 256 * 1024


def test_joins_get_small_blocks_before_they_are_refused() -> None:
    """Of each block of any side come joined rows, of several joins those of each."""
    types = columns(LINEITEM_TYPES)

    def block_kib(joins: int) -> int:
        beside = [own.type for own in types] * joins

        def slab_of(block_bytes: int, added: Sequence[DataType]) -> int:
            return slab_bytes(types, block_bytes, added=[*added, *beside])

        split = split_memory(MemoryBudget(GB, 2), types, 4, 0.4, slab_of=slab_of, blocks_per_stream=joins + 1)
        return split.block_bytes // 1024

    assert [block_kib(joins) for joins in (1, 3, 8, 14)] == [512, 256, 128, 64]


def test_without_an_engine_nothing_is_kept_for_one() -> None:
    assert split_memory(MemoryBudget(GB, 0), columns(LINEITEM_TYPES), 2, 0.0).engine_bytes == 0


@pytest.mark.parametrize("memory_bytes", [GB, 450_000_000])
def test_engines_of_several_places_share_what_one_would_have(memory_bytes: int) -> None:
    types, alone = columns(LINEITEM_TYPES), MemoryBudget(memory_bytes, 2, 2)
    several = MemoryBudget(memory_bytes, 2, 2, engines=3, engine_share=0.4)
    # Whatever the place is to which a way leads, all are planned with the same.
    split = split_memory(several, types, 2, 0.0)
    assert split == split_memory(several, types, 2, 0.4)
    assert split.engine_bytes == split_memory(alone, types, 2, 0.4).engine_bytes
    assert split.of_one_engine().engine_bytes == split.engine_bytes // 3


def test_each_of_several_engines_has_its_least_part() -> None:
    with pytest.raises(MemoryLimitError):
        split_memory(MemoryBudget(300_000_000, 2, 2, engines=3, engine_share=0.4), columns(LINEITEM_TYPES), 2, 0.0)


def test_too_small_a_budget_says_what_is_needed() -> None:
    with pytest.raises(MemoryLimitError) as caught:
        split_memory(MemoryBudget(64_000_000, 2), columns(LINEITEM_TYPES), 16, 0.4)
    assert_snapshot("memory_too_small", caught.value.render())


def test_one_stream_is_not_streams() -> None:
    with pytest.raises(MemoryLimitError, match=r"too small for 1 stream$") as caught:
        split_memory(MemoryBudget(32_000_000, 2), columns(LINEITEM_TYPES), 1, 0.4)
    assert "fewer" not in str(caught.value.hint)


@pytest.mark.parametrize("computed", [(), ("int64",), ("string",) * 30])
def test_the_budget_it_asks_for_is_enough(computed: tuple[str, ...]) -> None:
    types = [DataType.parse(own) for own in computed]
    for streams in (1, 8, 16, 64):
        for given in (32_000_000, 250_000_000):
            try:
                split_memory(MemoryBudget(given, 2), columns(LINEITEM_TYPES), streams, 0.4, computed=types)
            except MemoryLimitError as error:
                needed = int(str(error.expected).split()[2]) * 1_000_000
                split_memory(MemoryBudget(needed, 2), columns(LINEITEM_TYPES), streams, 0.4, computed=types)
            else:
                assert given > 32_000_000, "32 MB cannot be enough"


@pytest.mark.parametrize(("threads", "memory_bytes"), [(1, GB), (4, GB), (4, 300_000_000)])
def test_a_second_pass_gets_an_engine_inside_the_budget(threads: int, memory_bytes: int) -> None:
    """The destination had none of its own: its budget has room for one when the load is over."""
    split = split_memory(MemoryBudget(memory_bytes, 0), columns(["int64"] * 4), 4, 0)
    searching = split.with_engine(threads)
    assert searching.engine_bytes >= 48 * MIB
    assert searching.headroom_bytes + searching.flow_bytes + searching.engine_bytes <= memory_bytes
    assert searching.engine_bytes <= 0.35 * memory_bytes
    assert searching.blocks == split.blocks + 2 * threads


def test_a_second_pass_without_room_is_refused() -> None:
    split = split_memory(MemoryBudget(120_000_000, 0), columns(["int64"] * 4), 1, 0)
    with pytest.raises(MemoryLimitError):
        split.with_engine(4)
