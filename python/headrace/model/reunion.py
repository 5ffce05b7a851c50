"""A union of rows that have gone different ways: they go one way on again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from headrace.model.flow_rows import MAIN, FlowRows
from headrace.model.sql_transform import ComputedColumn


@dataclass(frozen=True, slots=True)
class Reunion:
    """No row comes by two of its `inputs`. `columns`: those of the rows that go on; `origins`: for each input and each
    of the columns what it is called there, None if it is NULL in these rows. There are no columns as long as not all of
    their types are known. `front_of`: see `Split`.
    """

    outputs: ClassVar[tuple[str, ...]] = (MAIN,)

    name: str
    inputs: tuple[FlowRows, ...]
    columns: tuple[ComputedColumn, ...] = ()
    origins: tuple[tuple[str | None, ...], ...] = ()
    is_described: bool = False
    front_of: int | None = None
