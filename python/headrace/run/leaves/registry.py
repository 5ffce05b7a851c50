"""Which module does which kind of task."""

from __future__ import annotations

from typing import Final

from headrace.errors import InternalError
from headrace.run.leaves.base import Leaf
from headrace.run.leaves.build import BuildLeaf
from headrace.run.leaves.file import FileLeaf
from headrace.run.leaves.generate import GenerateLeaf
from headrace.run.leaves.process import ProcessLeaf
from headrace.run.leaves.python import PythonLeaf
from headrace.run.leaves.sql import SqlLeaf
from headrace.run.leaves.switch import SwitchLeaf

LEAVES: Final[dict[str, Leaf]] = {
    "build": BuildLeaf(),
    "file": FileLeaf(),
    "generate": GenerateLeaf(),
    "process": ProcessLeaf(),
    "python": PythonLeaf(),
    "sql": SqlLeaf(),
    "switch": SwitchLeaf(),
}


def leaf_of(kind: str) -> Leaf:
    """What does tasks of a kind."""
    try:
        return LEAVES[kind]
    except KeyError:
        raise InternalError(f"nothing does tasks of kind {kind}") from None
