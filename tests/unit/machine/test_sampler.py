"""The `machine` line from folders like /proc and /sys: complete, without any of its sources, and with real ones."""

from __future__ import annotations

import json
import os
import shutil
import threading
from pathlib import Path
from typing import Any

import pytest

from headrace.machine.sampler import MachineSampler
from tests.unit.machine.test_parsing import DISKS_6_18, MOUNTS_V2, NETWORK, STAT

FILES = {
    "stat": STAT,
    "meminfo": "MemTotal: 100 kB\nMemAvailable: 50 kB\n",
    "vmstat": "pswpin 1\npswpout 2\n",
    "diskstats": DISKS_6_18,
    "net/dev": NETWORK,
    "pressure/cpu": "some total=1000000\n",
    "pressure/io": "some total=2000000\nfull total=1000000\n",
    "pressure/memory": "some total=0\nfull total=0\n",
    "self/stat": "5 (x) R 1 1 1 0 -1 0 1 0 7 0 5 5 0 0 20 0 1 0 80 3 412 " + "0 " * 30,
    "self/io": "read_bytes: 11\nwrite_bytes: 12\n",
    "self/cgroup": "0::/job\n",
    "self/task/5/schedstat": "1000000000 2000000000 5\n",
    "self/task/6/schedstat": "1000000000 500000000 5\n",
}
# What is missing in the line without a file.
MISSING: dict[str, list[tuple[str, ...]]] = {
    "stat": [("cpu",)],
    "meminfo": [("memory", "total_bytes"), ("memory", "available_bytes")],
    "vmstat": [("memory", "swapped_bytes")],
    "self/stat": [("process", "major_faults"), ("process", "resident_bytes")],
    "self/io": [("process", "disk_read_bytes"), ("process", "disk_written_bytes")],
    "self/cgroup": [("process", "throttled_seconds")],
    "self/mountinfo": [("process", "throttled_seconds")],
    "pressure/io": [("pressure", "io_some"), ("pressure", "io_full")],
}


class Machine:
    """Folders of files; the CPUs that the process may use."""

    def __init__(self, folder: Path) -> None:
        self.proc = folder / "proc"
        self.sys = folder / "sys"
        self.cpus = {0, 1}
        for name, text in FILES.items():
            self.write(name, text)
        (self.sys / "block" / "vda").mkdir(parents=True)
        group = self.sys / "fs" / "cgroup" / "job"
        group.mkdir(parents=True)
        (group / "cpu.max").write_text("150000 100000\n")
        (group / "cpu.stat").write_text("usage_usec 5\nthrottled_usec 500000\n")
        self.write("self/mountinfo", MOUNTS_V2.replace("/sys/fs/cgroup", str(group.parent)))

    def write(self, name: str, text: str) -> None:
        path = self.proc / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def sampler(self) -> MachineSampler:
        return MachineSampler(str(self.proc), str(self.sys), lambda: self.cpus)


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def leaves(data: Any, *path: str) -> dict[tuple[str, ...], Any]:
    """All that is no mapping, by its path."""
    if not isinstance(data, dict):
        return {path: data}
    return {found: value for name, inner in data.items() for found, value in leaves(inner, *path, name).items()}


def test_all_of_it(machine: Machine) -> None:
    sample = machine.sampler().sample()
    assert sample["cpus"] == 1.5
    assert sample["process"]["throttled_seconds"] == 0.5
    assert sample["process"]["run_queue_seconds"] == 2.5
    assert set(sample["disks"]) == {"vda"}
    assert set(sample["network"]) == {"lo", "eth0:1", "eth1"}
    assert sample["pressure"] == {
        "cpu_some": 1.0,
        "io_some": 2.0,
        "io_full": 1.0,
        "memory_some": 0.0,
        "memory_full": 0.0,
    }
    assert None not in leaves(sample).values()


@pytest.mark.parametrize("content", [None, "", "\0\xff garbage 1 2 3 (((\n", "-1 -1 -1\n"], ids=repr)
@pytest.mark.parametrize("name", MISSING)
def test_without_a_source(machine: Machine, name: str, content: str | None) -> None:
    """What it tells is null, all else as before."""
    whole = leaves(machine.sampler().sample())
    if content is None:
        (machine.proc / name).unlink()
    else:
        machine.write(name, content)
    found = leaves(machine.sampler().sample())
    assert [found[path] for path in MISSING[name]] == [None] * len(MISSING[name])
    changed = {path for path in whole if found.get(path) != whole[path]} - {("cpus",), ("process", "cpu_seconds")}
    assert changed == {path for path in whole if any(path[: len(missing)] == missing for missing in MISSING[name])}


def test_without_anything(tmp_path: Path) -> None:
    sample = MachineSampler(str(tmp_path), str(tmp_path), lambda: {0}).sample()
    assert (sample["cpus"], sample["cpu"], sample["pressure"], sample["disks"], sample["network"]) == (
        1.0,
        None,
        None,
        {},
        {},
    )
    assert {name for name, value in sample["process"].items() if value is not None} == {"cpu_seconds"}


def test_version_1_of_control_groups(machine: Machine, tmp_path: Path) -> None:
    """The tightest quota counts, whichever group has it."""
    mount = tmp_path / "cpu"
    for folder, quota in ((mount, "-1"), (mount / "outer", "50000"), (mount / "outer" / "inner", "400000")):
        folder.mkdir()
        (folder / "cpu.cfs_quota_us").write_text(f"{quota}\n")
        (folder / "cpu.cfs_period_us").write_text("100000\n")
        (folder / "cpu.stat").write_text(f"nr_periods 1\nthrottled_time {len(str(folder)) * 1000}\n")
    machine.write("self/cgroup", "4:cpu,cpuacct:/outer/inner\n")
    machine.write("self/mountinfo", f"33 25 0:28 / {mount} rw - cgroup cgroup rw,cpu,cpuacct\n")
    sample = machine.sampler().sample()
    assert sample["cpus"] == 0.5
    assert sample["process"]["throttled_seconds"] > 0


def test_counters_never_fall(machine: Machine) -> None:
    """The kernel takes iowait back, a disk is exchanged, a thread ends, a CPU is taken away."""
    sampler = machine.sampler()
    before = leaves(sampler.sample())
    machine.write("stat", STAT.replace(" 6650 ", " 6000 "))
    machine.write("diskstats", DISKS_6_18.replace("147515722", "5"))
    machine.write("net/dev", NETWORK.replace("400172537669", "7"))
    shutil.rmtree(machine.proc / "self" / "task" / "6")
    machine.cpus = {0}
    after = leaves(sampler.sample())
    assert {path: value for path, value in after.items() if value < before[path]} == {("cpus",): 1.0}


def test_a_disk_that_is_gone_is_left_out(machine: Machine) -> None:
    sampler = machine.sampler()
    before = sampler.sample()
    machine.write("diskstats", "")
    assert sampler.sample()["disks"] == {}
    machine.write("diskstats", DISKS_6_18)
    assert sampler.sample()["disks"] == before["disks"]


def test_this_machine() -> None:
    """Whatever it is, it tells something, and more of it later."""
    sampler = MachineSampler()
    before = sampler.sample()
    waiting = threading.Event()
    threads = [threading.Thread(target=waiting.wait) for _ in range(5)]
    for thread in threads:
        thread.start()
    sum(range(1_000_000))
    after = sampler.sample()
    waiting.set()
    for thread in threads:
        thread.join()
    assert json.loads(json.dumps(after, allow_nan=False)) == after
    assert 0 < after["cpus"] <= len(os.sched_getaffinity(0))
    assert after["process"]["cpu_seconds"] > before["process"]["cpu_seconds"]
    assert sum(after["cpu"].values()) >= sum(before["cpu"].values()) > 0
