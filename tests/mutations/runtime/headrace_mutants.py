"""The switch of mutated Python code. `tree` copies this module beside the product, where it needs nothing else.

`HEADRACE_MUTANT` is the number of the mutation that is active. `HEADRACE_MUTANT_HITS` names a file with a byte for each
mutation, which every process shares: it becomes 1 when the code of the mutation runs.
"""

from __future__ import annotations

import mmap
import os

_ACTIVE = int(os.environ.get("HEADRACE_MUTANT", "0"))


def _shared() -> mmap.mmap | bytearray:
    path = os.environ.get("HEADRACE_MUTANT_HITS")
    if not path:
        return bytearray(4096)
    # The mapping must not close when Python ends: threads may still run.
    with open(path, "r+b") as file:
        return mmap.mmap(file.fileno(), 0)


HITS = _shared()


def active(number: int) -> bool:
    """Whether a mutation is active."""
    HITS[number] = 1
    return number == _ACTIVE
