"""How figures of a verdict are written."""

from __future__ import annotations

import pytest

from headrace.report.wording import evidence


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("round_trip_seconds", 0.0002, ("round trip", "0.2 ms")),
        ("round_trip_seconds", 0.0998, ("round trip", "99.8 ms")),
        ("round_trip_seconds", 0.09999, ("round trip", "100 ms")),
        ("round_trip_seconds", 1.5, ("round trip", "1.50 s")),
        ("round_trip_seconds", 0.0, ("round trip", "0.00 s")),
        ("cpus_busy", 0.47, ("CPUs busy", "47 %")),
        ("carried_megabytes_per_second", 30.8, ("carried", "30.8 MB/s")),
        ("destination_put_aside_bytes", 0, ("destination put aside", "0 B")),
    ],
)
def test_evidence(name: str, value: float, expected: tuple[str, str]) -> None:
    assert evidence(name, value) == expected
