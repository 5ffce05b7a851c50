"""metrics.jsonl read: what is there in its order, what is damaged counted, what is unknown kept."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.metrics_file import Metrics, read_metrics
from tests.unit.run.metrics.lines import FLOW


def written(folder: Path, *lines: object) -> Path:
    """A file of these lines: documents, or texts as they are."""
    path = folder / "metrics.jsonl"
    texts = (line if isinstance(line, bytes) else json.dumps(line).encode() for line in lines)
    path.write_bytes(b"".join(text + b"\n" for text in texts))
    return path


def machine(t: float, **members: Any) -> dict[str, Any]:
    return {"kind": "machine", "t": t, "attempt": 1, **members}


def test_lists_by_kind(tmp_path: Path) -> None:
    metrics = read_metrics(
        written(
            tmp_path,
            machine(1),
            FLOW,
            {"kind": "destination", "t": 1, "attempt": 1, "task": "load", "type": "duckdb"},
            machine(2, of_tomorrow=[1, 2]),
            {"kind": "verdict", "from": 0, "to": 7.5, "task": "load", "limit": "parse"},
            {"kind": "weather", "t": 1},
        )
    )
    assert [sample.t for sample in metrics.machine] == [1, 2]
    assert metrics.machine[1].members["of_tomorrow"] == [1, 2]
    assert [sample.members for sample in metrics.flows] == [FLOW]
    assert (metrics.flows[0].task, metrics.machine[0].task) == ("load", None)
    assert len(metrics.destinations) == len(metrics.of("weather")) == 1
    assert [(sample.t, sample.attempt) for sample in metrics.verdicts] == [(7.5, 1)]
    assert (metrics.damaged, metrics.out_of_order, metrics.attempts) == (0, 0, [1])


@pytest.mark.parametrize(
    "line",
    [
        b'{"kind":"machine","t":2,"atte',
        b"5",
        b"[]",
        b"null",
        b'"text"',
        b"\xff\xfe",
        b"\0\0\0\0",
        b'{"kind":"machine"}',
        b'{"kind":"machine","t":null}',
        b'{"kind":"machine","t":"5"}',
        b'{"kind":"machine","t":NaN}',
        b'{"kind":"machine","t":1e999}',
        b'{"kind":7,"t":1}',
        b'{"kind":"machine","t":1,"attempt":"first"}',
        b'{"t":1}',
        b"[" * 100_000,
    ],
    ids=lambda line: repr(line[:40]),
)
def test_damaged_lines_are_counted(tmp_path: Path, line: bytes) -> None:
    """The lines around them are read."""
    metrics = read_metrics(written(tmp_path, machine(1), line, b"", machine(3)))
    assert [sample.t for sample in metrics.machine] == [1, 3]
    assert metrics.damaged == 1


def test_a_file_that_ends_in_a_line(tmp_path: Path) -> None:
    path = written(tmp_path, machine(1), machine(2))
    path.write_bytes(path.read_bytes()[:-5])
    assert [sample.t for sample in read_metrics(path).machine] == [1]
    assert read_metrics(path).damaged == 1


def test_attempts_behind_one_another(tmp_path: Path) -> None:
    """Each has its own clock; nothing is sorted."""
    metrics = read_metrics(
        written(tmp_path, machine(1), machine(9), machine(0.5, attempt=2), machine(2, attempt=2), machine(10))
    )
    assert metrics.attempts == [1, 2]
    assert [sample.t for sample in metrics.of("machine", attempt=2)] == [0.5, 2]
    assert [sample.t for sample in metrics.of("machine", attempt=1)] == [1, 9, 10]
    assert metrics.out_of_order == 0


def test_lines_in_another_order_are_said_and_stay(tmp_path: Path) -> None:
    metrics = read_metrics(written(tmp_path, machine(5), machine(1), machine(3), machine(6)))
    assert [sample.t for sample in metrics.machine] == [5, 1, 3, 6]
    assert metrics.out_of_order == 2


def test_tasks(tmp_path: Path) -> None:
    lines = [{**FLOW, "task": task} for task in ("a", "b", "a")]
    metrics = read_metrics(written(tmp_path, *lines))
    assert len(metrics.of("flow", task="a")) == 2
    assert metrics.of("flow", task="c") == []


def test_an_empty_file_and_none(tmp_path: Path) -> None:
    assert read_metrics(written(tmp_path)) == Metrics({})
    with pytest.raises(FileNotFoundError):
        read_metrics(tmp_path / "nowhere")


@given(content=st.binary(max_size=200), cut=st.integers(0, 60))
def test_any_bytes(tmp_path_factory: pytest.TempPathFactory, content: bytes, cut: int) -> None:
    path = written(tmp_path_factory.mktemp("any"), machine(1), content, json.dumps(machine(2)).encode()[:cut])
    assert read_metrics(path).machine[0].t == 1
