"""What was inferred: columns, dialect, doubts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from headrace.infer.facts import ColumnFacts
from headrace.model import DataType


@dataclass(frozen=True, slots=True)
class Doubt:
    """What inference cannot know, with its evidence. `instead`: settings of the column to be taken in the place of what
    was chosen, each a choice of its own. `topic`: doubts of several files that have the same one are told once.
    """

    text: str
    instead: tuple[Mapping[str, Any], ...] = ()
    topic: str | None = None


@dataclass(frozen=True, slots=True)
class InferredColumn:
    """A column. `settings`: those of the layout beside name, type and nullable. `extremes`: least and greatest number,
    as they stand in the files. `nulls`: values that the layout makes null; `null_texts`: how many different texts,
    perhaps, of them are counted as values.
    """

    name: str
    type: DataType
    nullable: bool
    settings: Mapping[str, Any] = field(default_factory=dict)
    doubts: tuple[Doubt, ...] = ()
    extremes: tuple[str, str] | None = None
    nulls: int = 0
    null_texts: int = 0

    def entry(self) -> dict[str, Any]:
        """The column as a layout writes it."""
        own: dict[str, Any] = {"name": self.name, "type": str(self.type)}
        return own | ({} if self.nullable else {"nullable": False}) | dict(self.settings)


@dataclass(frozen=True, slots=True)
class Inferred:
    """A layout of files. `dialect`: settings of the layout but its columns. `files`: as people wrote them.

    `is_sample`: whether not all of their bytes were read.
    """

    files: tuple[str, ...]
    dialect: Mapping[str, Any]
    rows: int
    columns: tuple[InferredColumn, ...]
    facts: tuple[ColumnFacts, ...]
    doubts: tuple[Doubt, ...]
    misfits: Mapping[str, Any]
    keys: tuple[tuple[str, ...], ...] = ()
    keys_are_proved: bool = False
    is_sample: bool = False
    bytes_read: int = 0
