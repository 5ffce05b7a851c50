"""Rows of a part of a data flow, by one of its outputs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

# The output of rows that have gone the usual way.
MAIN: Final = ""


@dataclass(frozen=True, slots=True)
class FlowRows:
    """Rows of a source or transform, by one of its outputs."""

    name: str
    output: str = MAIN

    @property
    def shown(self) -> str:
        """As packages write it."""
        return f"{self.name}.{self.output}" if self.output else self.name


# Those in front of all transforms, whatever they are called.
FIRST: Final = FlowRows("")


def rows_of(written: str) -> FlowRows:
    """What a setting `input` names."""
    name, _, output = written.partition(".")
    return FlowRows(name, output)
