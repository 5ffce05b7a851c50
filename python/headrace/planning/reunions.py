"""What a union of rows that have gone different ways is in a plan: its columns, and what the core is told."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from headrace.model import MAIN, FlowRows, Reunion


@dataclass(frozen=True)
class ReunionPlan:
    """One such union of a data flow."""

    reunion: Reunion
    outputs: ClassVar[tuple[str, ...]] = (MAIN,)

    @property
    def name(self) -> str:
        """The name of the transform."""
        return self.reunion.name

    @property
    def inputs(self) -> tuple[FlowRows, ...]:
        """The rows that it reads."""
        return self.reunion.inputs

    @property
    def front_of(self) -> int | None:
        """The number of the source in front of whose meeting with others it stands, None behind that."""
        return self.reunion.front_of

    def transform_spec(self) -> dict[str, Any]:
        """The member of `transforms` of a flow spec."""
        columns = [
            {"name": own.name, "type": own.type.to_core(), "nullable": own.nullable} for own in self.reunion.columns
        ]
        return {"name": self.name, "reunion": {"columns": columns, "from": [list(own) for own in self.reunion.origins]}}

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready form."""
        inputs = [rows.shown for rows in self.inputs]
        return {
            "name": self.name,
            "kind": "union",
            "inputs": inputs,
            "columns": [
                {
                    "name": own.name,
                    "type": str(own.type),
                    "nullable": own.nullable,
                    "from": {name: origins[place] for name, origins in zip(inputs, self.reunion.origins, strict=True)},
                }
                for place, own in enumerate(self.reunion.columns)
            ],
            "text": self.text(),
        }

    def text(self) -> str:
        """One sentence for plans."""
        inputs = [rows.shown for rows in self.inputs]
        parts = [f"rows of {', '.join(inputs[:-1])} and {inputs[-1]} go one way on, in the order in which they came"]
        for name, origins in zip(inputs, self.reunion.origins, strict=True):
            lacking = [own.name for own, origin in zip(self.reunion.columns, origins, strict=True) if origin is None]
            parts += [f"of {name} {', '.join(lacking)} {'is' if len(lacking) == 1 else 'are'} NULL"] if lacking else []
        return f"{self.name}: {'; '.join(parts)}"
