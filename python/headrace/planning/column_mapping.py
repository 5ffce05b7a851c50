"""Which columns go where, and what does not fit: what deciding that fills."""

from __future__ import annotations

from dataclasses import dataclass, field

from headrace.model import DataType
from headrace.planning.plan import OutputColumn


@dataclass
class ColumnMapping:
    """The columns that travel, in layout order, and what the plan has to say about the others."""

    columns: list[OutputColumn] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def not_null_sources(self) -> set[str]:
        """Source columns in which NULL is a reject, because the target column is not nullable."""
        return {column.source for column in self.columns if not column.nullable}

    @property
    def types(self) -> dict[str, DataType]:
        """The types as which source columns are read."""
        return {column.source: column.type for column in self.columns}


_SEVERAL_DIFFERENCES = (
    "Declare the columns in the layout as the table has them, or choose and map them with `columns` of the destination."
)


@dataclass
class Differences:
    """What does not fit, and what could be done about each."""

    found: list[str] = field(default_factory=list)
    hints: list[str] = field(default_factory=list)

    def add(self, found: str, hint: str) -> None:
        """One more."""
        self.found.append(found)
        self.hints.append(hint)

    def hint(self) -> str:
        """One action: that of the difference if there is one, else what covers several."""
        return self.hints[0] if len(set(self.hints)) == 1 else _SEVERAL_DIFFERENCES
