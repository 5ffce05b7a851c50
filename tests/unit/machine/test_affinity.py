"""Which CPUs streams keep to."""

from __future__ import annotations

from pathlib import Path

import pytest

from headrace.machine.affinity import cpus_of_streams, numa_nodes, parse_cpu_list

NODES = [[0, 1, 2, 3], [4, 5, 6, 7]]


def test_cores_are_given_in_turn() -> None:
    assert cpus_of_streams("cores", 5, {6, 2, 4}, NODES) == [[2], [4], [6], [2], [4]]


def test_nodes_are_given_in_turn_with_the_cpus_that_are_ours() -> None:
    assert cpus_of_streams("numa", 3, {1, 2, 5}, NODES) == [[1, 2], [5], [1, 2]]


def test_a_node_without_a_cpu_of_ours_is_left_out() -> None:
    assert cpus_of_streams("numa", 2, {1}, NODES) == [[1], [1]]


def test_without_nodes_all_cpus_are_one() -> None:
    assert cpus_of_streams("numa", 2, {3, 1}, []) == [[1, 3], [1, 3]]


def test_streams_are_not_pinned_unless_asked() -> None:
    assert cpus_of_streams("none", 4, {0, 1}, NODES) == []


@pytest.mark.parametrize(
    ("text", "expected"), [("0-3,8\n", [0, 1, 2, 3, 8]), ("7", [7]), ("\n", []), ("0-0,2-3", [0, 2, 3])]
)
def test_lists_of_the_kernel(text: str, expected: list[int]) -> None:
    assert parse_cpu_list(text) == expected


def test_nodes_of_a_machine(tmp_path: Path) -> None:
    for number, text in ((1, "4-5"), (0, "0-1,3"), (10, "8")):
        folder = tmp_path / "devices/system/node" / f"node{number}"
        folder.mkdir(parents=True)
        (folder / "cpulist").write_text(text)
    (tmp_path / "devices/system/node/online").write_text("0-1")
    assert numa_nodes(str(tmp_path)) == [[0, 1, 3], [4, 5], [8]]


@pytest.mark.parametrize("content", [None, "many"])
def test_what_the_system_does_not_tell(content: str | None, tmp_path: Path) -> None:
    if content is not None:
        folder = tmp_path / "devices/system/node/node0"
        folder.mkdir(parents=True)
        (folder / "cpulist").write_text(content)
    assert numa_nodes(str(tmp_path)) == []
