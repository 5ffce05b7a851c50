"""The table that takes rows at a moment of a load."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Filling:
    """`table`: its name in the schema of the plan's; `keeps_rows`: those that it had before stay in it; `place`: of the
    only rows that go into it, None if all do.
    """

    table: str
    keeps_rows: bool
    place: int | None = None
