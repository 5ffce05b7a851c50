"""Names of data flows."""

from __future__ import annotations

from headrace.run.tasks import unique_name


def test_unique_names() -> None:
    assert unique_name("t", set(), "_") == "t"
    assert unique_name("T", {"t", "t_2"}, "_") == "T_3"
