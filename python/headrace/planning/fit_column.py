"""Columns of which it depends on values whether a destination can hold them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from headrace.model import DataType


@dataclass(frozen=True)
class FitColumn:
    """A column of rows as a destination holds it: texts that are longer, or NULL where it is not nullable, are rejects
    of the way that leads there.
    """

    name: str
    type: DataType
    nullable: bool

    def to_core(self) -> dict[str, Any]:
        """The member of a flow spec."""
        return {"name": self.name, "type": self.type.to_core(), "nullable": self.nullable}
