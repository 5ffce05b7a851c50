"""How many partitions `check --connect` expects of a flow, before anything is planned."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from headrace.model import Every, HashPartition, ListPartition, Quantiles, RangePartition
from headrace.model.load import usable_cpus
from headrace.run.inspection import declared_partitions
from tests.unit.planning import samples


@pytest.mark.parametrize(
    ("clause", "expected"),
    [
        (None, 0),
        (RangePartition("k", ("1", "2")), 3),
        (RangePartition("k", Quantiles(7)), 7),
        (RangePartition("k", Every("1", "month")), 0),
        (ListPartition("k", (("a", ("1",)), ("b", ("2",)))), 2),
        (HashPartition("k", 5), 5),
        (HashPartition("k"), usable_cpus()),
        (RangePartition("k"), 2),
    ],
)
def test_declared_partitions(tmp_path: Path, clause: Any, expected: int) -> None:
    for number in (1, 2):
        (tmp_path / f"orders.tbl.{number}").write_text("1")
    task = samples.task(partition=clause, load="staged", folder=tmp_path, files=["orders.tbl.*"])
    assert declared_partitions(task, samples.SERVER, 2) == expected
    assert declared_partitions(task, samples.STORING, 2) == 0
