"""Which CPUs each stream may use, when streams are to be pinned."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Final, Literal

Affinity = Literal["none", "cores", "numa"]
_NODE: Final = re.compile(r"node(\d+)")


def cpus_of_streams(
    affinity: Affinity, streams: int, cpus: Collection[int], nodes: Sequence[Collection[int]]
) -> list[list[int]]:
    """The CPUs of each stream, the first stream first; nothing if streams are not pinned.

    `cpus`: those that this process may use; `nodes`: the CPUs of each NUMA node. `cores`: one CPU after the other, and
    from the front again; `numa`: those of one node after the other, nodes without a CPU of ours left out.
    """
    own = sorted(cpus)
    if affinity == "none" or not own:
        return []
    groups = [[cpu] for cpu in own]
    if affinity == "numa":
        groups = [found for node in nodes if (found := sorted(set(node) & set(own)))] or [own]
    return [groups[number % len(groups)] for number in range(streams)]


def numa_nodes(sys: str = "/sys") -> list[list[int]]:
    """The CPUs of each NUMA node, in the order of the nodes; nothing where the system does not tell."""
    folder = Path(sys, "devices/system/node")
    try:
        nodes = sorted((int(found[1]), path) for path in folder.iterdir() if (found := _NODE.fullmatch(path.name)))
        return [parse_cpu_list((path / "cpulist").read_text(encoding="ascii")) for _, path in nodes]
    except (OSError, ValueError):
        return []


def parse_cpu_list(text: str) -> list[int]:
    """Numbers as the kernel lists them: `0-3,8`. Raises ValueError for another text."""
    numbers: list[int] = []
    for part in filter(None, text.strip().split(",")):
        first, _, last = part.partition("-")
        numbers += range(int(first), int(last or first) + 1)
    return numbers
