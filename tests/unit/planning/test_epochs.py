"""Which slices are committed together."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from headrace.planning import CommitSize, SourceSnapshot
from headrace.planning.epochs import epochs


def source(lengths: list[int], row_bytes: float = 1.0) -> SourceSnapshot:
    slices = [
        {"number": number, "file": 0, "begin_byte": 0, "end_byte": length} for number, length in enumerate(lengths, 1)
    ]
    return SourceSnapshot("rows", [], slices, row_bytes=row_bytes)


@given(st.lists(st.integers(0, 1000), max_size=60), st.integers(1, 5000))
def test_every_slice_is_in_one_epoch_of_about_the_size(lengths: list[int], size: int) -> None:
    found = epochs(source(lengths), CommitSize(bytes=size), 4)
    assert [number for epoch in found for number in epoch] == list(range(1, len(lengths) + 1))
    sizes = [sum(max(1, lengths[number - 1]) for number in epoch) for epoch in found]
    assert all(own <= size or len(epoch) == 1 for own, epoch in zip(sizes, found, strict=True))
    assert all(own + max(1, lengths[after[0] - 1]) > size for own, after in zip(sizes, found[1:], strict=False))


def test_rows_are_counted_by_their_length() -> None:
    assert epochs(source([100] * 4, 20.0), CommitSize(rows=10), 4) == [[1, 2], [3, 4]]
    assert epochs(source([100] * 2, 1000.0), CommitSize(rows=1), 4) == [[1, 2]]
    generated = replace(source([0] * 5), generate={"table": "orders"})
    assert epochs(generated, CommitSize(rows=10**9), 2) == [[1, 2], [3, 4], [5]]
