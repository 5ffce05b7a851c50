"""How the query of a build is divided into statements that run side by side."""

from __future__ import annotations

from dataclasses import dataclass

from headrace.targets.sql import Command


@dataclass(frozen=True)
class QueryDivision:
    """What a package says. `table`: by the places of its rows; `column`: by the hash of this one of the query; neither:
    not at all. `parts`: None if the destination chooses, but no more than `most_parts`.
    """

    table: str | None = None
    column: str | None = None
    parts: int | None = None
    most_parts: int = 1


@dataclass(frozen=True)
class DividedTable:
    """A table that consists of others, by the destination's own names for them. `tables`: itself and all of those."""

    name: str
    tables: tuple[str, ...]


@dataclass(frozen=True)
class QueryParts:
    """The statements, whose rows together are those of the query, each once. `notes`: what their user should know.
    `divided`: the tables that all of them must find; `by_hash`: the query, and the column by whose hash it is divided.
    """

    commands: tuple[Command, ...]
    notes: tuple[str, ...] = ()
    divided: DividedTable | None = None
    by_hash: tuple[Command, str] | None = None
