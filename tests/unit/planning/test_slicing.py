"""Slice lengths."""

from __future__ import annotations

import pytest

from headrace.planning.slicing import MAXIMUM_SLICE_BYTES, MINIMUM_COMMIT_BYTES, MINIMUM_SLICE_BYTES, slice_bytes

MB = 1_000_000


@pytest.mark.parametrize(
    ("total_bytes", "streams", "expected"),
    [
        (0, 8, MINIMUM_SLICE_BYTES),
        (100 * MB, 8, MINIMUM_SLICE_BYTES),
        (1000 * MB, 8, 1000 * MB // 64),
        (1000 * MB, 1, 1000 * MB // 8),
        (1_000_000 * MB, 16, MAXIMUM_SLICE_BYTES),
        (1000 * MB, 0, 1000 * MB),
    ],
)
def test_slice_bytes(total_bytes: int, streams: int, expected: int) -> None:
    assert slice_bytes(total_bytes, streams) == min(expected, MAXIMUM_SLICE_BYTES)


@pytest.mark.parametrize("streams", [1, 2, 16, 64])
def test_about_eight_slices_per_stream(streams: int) -> None:
    total = 64 * 1024 * MB // 8
    slices = total / slice_bytes(total, streams)
    assert slices >= 8 * streams or slice_bytes(total, streams) == MINIMUM_SLICE_BYTES


def test_no_slice_is_longer_than_a_commit() -> None:
    assert slice_bytes(1_000_000 * MB, 1, 10 * MB) == 10 * MB
    assert slice_bytes(1_000_000 * MB, 1, 10_000 * MB) == MAXIMUM_SLICE_BYTES
    assert slice_bytes(1_000_000 * MB, 1, 1) == MINIMUM_COMMIT_BYTES
