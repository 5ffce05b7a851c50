"""A query over the rows of a data flow, whose references and types are resolved."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from headrace.model.data_type import DataType
from headrace.model.flow_rows import MAIN, FlowRows, rows_of
from headrace.model.gathered_query import GatheredQuery
from headrace.model.row_query import RowQuery


@dataclass(frozen=True, slots=True)
class ComputedColumn:
    """A column of the rows behind a query, or another `kind` of transform. `transform`: its name; `origin`: the column
    of the rows before it that it is, None if it is computed; `field`: the column of the source that it is, through all
    transforms; `lookup`: of one of several destinations the lookup that adds it.
    """

    from_: ClassVar[None] = None

    name: str
    type: DataType
    nullable: bool
    transform: str
    origin: str | None = None
    field: str | None = None
    lookup: str = ""
    kind: Literal["query", "union"] = "query"


@dataclass(frozen=True, slots=True)
class SqlTransform:
    """A query that each row goes through by itself. `rows`: None as long as it is not known what it reads, because a
    table before it was not looked at; then there are no `columns` either. `gathered`: set in
    its place for one that needs all rows. `front_of`: see `Split`.
    """

    outputs: ClassVar[tuple[str, ...]] = (MAIN,)

    name: str
    input: str
    written: str
    rows: RowQuery | None
    columns: tuple[ComputedColumn, ...] = ()
    gathered: GatheredQuery | None = None
    front_of: int | None = None

    @property
    def inputs(self) -> tuple[FlowRows, ...]:
        """The rows that it reads."""
        return (rows_of(self.input),)

    @property
    def is_described(self) -> bool:
        """Whether its columns are known."""
        return self.rows is not None or self.gathered is not None
