"""What a split of rows is in a plan: the output that rows take, what the core and the instances of DuckDB are told."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from headrace.errors import InternalError
from headrace.model import ROW_NUMBER, FlowRows, RowQuery, Split


@dataclass(frozen=True)
class SplitPlan:
    """One split of a data flow. `taken`: the outputs by which rows go on."""

    split: Split
    taken: tuple[FlowRows, ...]

    @property
    def name(self) -> str:
        """The name of the transform."""
        return self.split.name

    @property
    def inputs(self) -> tuple[FlowRows, ...]:
        """The rows that it reads."""
        return self.split.inputs

    @property
    def front_of(self) -> int | None:
        """The number of the source in front of whose meeting with others it stands, None behind that."""
        return self.split.front_of

    @property
    def outputs(self) -> tuple[str, ...]:
        """Its outputs, in the order of their numbers."""
        return self.split.outputs

    @property
    def rows(self) -> RowQuery:
        """The query that gives the numbers of outputs. Plans are made when it is known."""
        if self.split.rows is None:
            raise InternalError(f"the conditions of transform `{self.name}` were not described")
        return self.split.rows

    def transform_spec(self) -> dict[str, Any]:
        """The member of `transforms` of a flow spec."""
        return {"name": self.name, "split": {"number": ROW_NUMBER, "outputs": len(self.split.outputs)}}

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready form."""
        return {
            "name": self.name,
            "kind": "split",
            "input": self.split.input,
            "conditions": dict(self.split.conditions),
            "outputs": list(self.split.outputs),
            "taken": [rows.shown for rows in self.taken],
            "text": self.text(),
        }

    def text(self) -> str:
        """One sentence for plans."""
        outputs = "; ".join(
            [f"{output} if {' '.join(condition.split())}" for output, condition in self.split.conditions.items()]
        )
        rest, taken = self.split.outputs[-1], " or ".join(rows.output for rows in self.taken)
        return f"{self.name}: {outputs}; the others are {rest}; here go on those that are {taken}"
