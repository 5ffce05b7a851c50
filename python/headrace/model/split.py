"""A split of rows: conditions, in order, each of which leads to an output."""

from __future__ import annotations

from dataclasses import dataclass

from headrace.model.flow_rows import FlowRows, rows_of
from headrace.model.row_query import RowQuery


@dataclass(frozen=True, slots=True)
class Split:
    """`conditions`: as they are written, by output; `outputs`: their names in the order of their numbers, the rest
    behind them. `rows`: the query that gives the number of the output of each row, None as long as it is not known what
    it reads. `front_of`: the number of the source in front of whose meeting with others it stands, None behind that.
    """

    name: str
    input: str
    conditions: dict[str, str]
    outputs: tuple[str, ...]
    rows: RowQuery | None
    front_of: int | None = None

    @property
    def inputs(self) -> tuple[FlowRows, ...]:
        """The rows that it reads."""
        return (rows_of(self.input),)

    @property
    def is_described(self) -> bool:
        """Whether the columns that it reads are known."""
        return self.rows is not None
