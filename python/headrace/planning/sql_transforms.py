"""What a query over rows is in a plan: the columns behind it, what the core and the instances of DuckDB are told."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from headrace.errors import InternalError
from headrace.model import MAIN, ROW_NUMBER, ComputedColumn, DataType, FlowRows, RowQuery, SqlTransform
from headrace.planning.memory import value_bytes


@dataclass(frozen=True)
class SqlPlan:
    """One query of a data flow. `types`: columns that the table holds in a narrower form; `not_null`: those that go
    into one that is NOT NULL.
    """

    transform: SqlTransform
    types: Mapping[str, DataType] = field(default_factory=dict)
    not_null: frozenset[str] = frozenset()
    outputs: ClassVar[tuple[str, ...]] = (MAIN,)

    @property
    def name(self) -> str:
        """The name of the transform."""
        return self.transform.name

    @property
    def inputs(self) -> tuple[FlowRows, ...]:
        """The rows that it reads."""
        return self.transform.inputs

    @property
    def front_of(self) -> int | None:
        """The number of the source in front of whose meeting with others it stands, None behind that."""
        return self.transform.front_of

    @property
    def rows(self) -> RowQuery:
        """The query. Plans are made when it is known."""
        if self.transform.rows is None:
            raise InternalError(f"the query of transform `{self.name}` was not described")
        return self.transform.rows

    def transform_spec(self) -> dict[str, Any]:
        """The member of `transforms` of a flow spec."""
        columns = [
            {
                "name": own.name,
                "type": self._type(own).to_core(),
                "nullable": self._may_be_null(own),
                **({} if own.origin is None else {"from": own.origin}),
            }
            for own in self.transform.columns
        ]
        return {"name": self.name, "query": {"number": ROW_NUMBER, "columns": columns}}

    def _type(self, column: ComputedColumn) -> DataType:
        return self.types.get(column.name, column.type)

    def _may_be_null(self, column: ComputedColumn) -> bool:
        return column.nullable and column.name not in self.not_null

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready form."""
        return {
            "name": self.name,
            "kind": "sql",
            "input": self.transform.input,
            "sql": self.transform.written,
            "columns": [
                {
                    "name": own.name,
                    "type": str(self._type(own)),
                    "nullable": self._may_be_null(own),
                    "from": own.origin,
                }
                for own in self.transform.columns
            ],
            "text": self.text(),
        }

    def text(self) -> str:
        """One sentence for plans."""
        columns = self.transform.columns
        computed = [f"{own.name} {self._type(own)}" for own in columns if own.origin is None]
        passed = len(columns) - len(computed)
        parts = [f"computes {', '.join(computed)}"] if computed else []
        parts += [f"{passed} {'column passes' if passed == 1 else 'columns pass'}"] if passed else []
        return f"{self.name}: SQL over each row of {self.transform.input}; {'; '.join(parts)}"

    def notes(self) -> list[str]:
        """What is to be said of it."""
        if not self.rows.divides:
            return []
        return [
            f"transform {self.name}: `/` divides in floating point, decimals too; `//` divides whole numbers, and a "
            "CAST to decimal rounds"
        ]


def plan_query(
    transform: SqlTransform, is_last: bool, types: Mapping[str, DataType], not_null: Collection[str]
) -> SqlPlan:
    """`types`: as which columns of rows go into the table; `is_last`: no query is behind it, so that its columns are
    those; `not_null`: columns that go into one that is NOT NULL.
    """
    if not is_last:
        return SqlPlan(transform)
    names = [own.name for own in transform.columns]
    narrow = {name: types[name] for name in names if name in types}
    return SqlPlan(transform, narrow, frozenset(name for name in names if name in not_null))


def most_columns(plans: Sequence[SqlPlan]) -> tuple[DataType, ...]:
    """The types of the columns that queries may have made at one moment: those behind one of them, and those behind the
    one before it, which are given up then.
    """
    behind = [[column.type for column in plan.transform.columns] for plan in plans]
    pairs = [(*before, *own) for before, own in zip([[], *behind], behind, strict=False)]
    return max(pairs, key=lambda types: sum(map(value_bytes, types)), default=())
