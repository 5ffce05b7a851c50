"""Texts of /proc as kernels from 3.10 to 6.18 write them, and any other text."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.machine.control_groups import (
    find_cpu_groups,
    parse_quota_v1,
    parse_quota_v2,
    parse_throttled_seconds,
)
from headrace.machine.cpu import CPU_STATES, TICKS_PER_SECOND, parse_boot_time, parse_cpu_seconds
from headrace.machine.disks import parse_disks
from headrace.machine.memory import parse_memory, parse_swapped_bytes
from headrace.machine.network import parse_interfaces
from headrace.machine.pressure import parse_pressure
from headrace.machine.processes import ProcessStat, parse_process_io, parse_process_stat, parse_schedstat


def stored(name: str) -> str:
    """A text as a kernel wrote it."""
    return Path(__file__).with_name("texts").joinpath(name).read_text(encoding="utf-8")


PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")

STAT = stored("stat_6.18.txt")
# Linux 2.4 had four columns; a guest kernel may end anywhere.
OLD_STAT = "cpu  10 20 30 40\ncpu0 10 20 30 40\n"


def test_cpu_seconds() -> None:
    found = parse_cpu_seconds(STAT, {0, 10, 99})
    assert found is not None
    assert set(found) == {0, 10}
    user, system, idle, iowait, steal = (round(value * TICKS_PER_SECOND) for value in found[0])
    assert (user, system) == (3637223 + 2346215, 1075383 + 10 + 10767)
    assert (idle, iowait, steal) == (923734, 6650, 1783)
    assert parse_cpu_seconds(OLD_STAT, {0}) == {0: tuple(ticks / TICKS_PER_SECOND for ticks in (30, 30, 40, 0, 0))}
    assert len(CPU_STATES) == len(found[10])


@pytest.mark.parametrize("text", ["", "cpu 1 2 3", "cpu0 1 x 3\n", "cpuX 1 2 3", "intr 5", "\n\n"])
def test_cpu_seconds_that_nobody_tells(text: str) -> None:
    assert parse_cpu_seconds(text, {0, 1}) is None


def test_boot_time() -> None:
    assert parse_boot_time(STAT) == 1795316346
    assert parse_boot_time("btime soon\n") is None
    assert parse_boot_time("") is None


@pytest.mark.parametrize("program", ["cat", "postgres", ") R 1 1 (", "a b) S 5 (c", "()"])
def test_process_stat(program: str) -> None:
    """Programs may be called anything; the fields are those of proc(5)."""
    text = (
        f"6217 ({program}) R 6208 6208 24452 0 -1 4194304 106 0 7 0 150 50 0 0 20 0 1 0 8020845 3133440 412 "
        "18446744073709551615 1 1 0 0 0 0 0 0 0 0 0 0 17 0 0 0 25 0 0 1 2 3 4 5 6 7 0\n"
    )
    ticks = TICKS_PER_SECOND
    assert parse_process_stat(text) == ProcessStat(
        program, 6208, 7, 200 / ticks, 8020845 / ticks, 412 * PAGE_BYTES, 25 / ticks
    )


@pytest.mark.parametrize("text", ["", "6217 (cat", "6217 (cat) R 1 2 3", "x (y) R " + "z " * 50, "() () ()"])
def test_process_stat_of_something_else(text: str) -> None:
    assert parse_process_stat(text) is None


def test_schedstat() -> None:
    assert parse_schedstat("2500000000 295050000 2\n") == (2.5, 0.29505)
    for text in ("", "5", "0 0 0\n", "a b c", "-1 5 5", "1.5 2 3"):
        assert parse_schedstat(text) is None


def test_process_io() -> None:
    text = "rchar: 5\nwchar: 6\nsyscr: 7\nsyscw: 8\nread_bytes: 135168\nwrite_bytes: 69632\ncancelled_write_bytes: 0\n"
    assert parse_process_io(text) == (135168, 69632)
    assert parse_process_io("rchar: 5\nwchar: 6\nsyscr: 7\nsyscw: 8\n") is None  # without CONFIG_TASK_IO_ACCOUNTING


def test_memory() -> None:
    text = "MemTotal:       24684092 kB\nMemFree:        12580380 kB\nMemAvailable:   22391564 kB\nHugePages_Total: 0\n"
    assert parse_memory(text) == (24684092 * 1024, 22391564 * 1024)
    assert parse_memory("MemTotal:  100 kB\nMemFree: 50 kB\n") == (102400, None)  # before Linux 3.14
    assert parse_memory("MemTotal:\nMemAvailable: much kB") == (None, None)


def test_swapped_bytes() -> None:
    assert parse_swapped_bytes("pgpgin 5\npswpin 3\npswpout 4\n") == 7 * PAGE_BYTES
    assert parse_swapped_bytes("pgpgin 5\n") is None  # without swap in the kernel


DISKS_3_10 = stored("diskstats_3.10.txt")
DISKS_6_18 = stored("diskstats_6.18.txt")
BUSY_DISK = {"read_bytes": 147515722 * 512, "written_bytes": 1187640656 * 512, "busy_seconds": 1302.792}


def test_disks() -> None:
    """Partitions are parts of their disk; what was never used says nothing."""
    assert parse_disks(DISKS_3_10, {"sda", "dm-0", "loop0"}) == {
        "sda": BUSY_DISK,
        "dm-0": {"read_bytes": 3 * 512, "written_bytes": 7 * 512, "busy_seconds": 0.01},
    }
    assert set(parse_disks(DISKS_3_10, None)) == {"sda", "sda1", "dm-0"}
    assert parse_disks(DISKS_6_18, {"vda", "zram0"}) == {"vda": BUSY_DISK}
    assert parse_disks("8 0 sda 1 2 three 4 5 6 7 8 9 10 11\n8 0\n", None) == {}


NETWORK = stored("net_dev.txt")


def test_interfaces() -> None:
    """Old kernels write no blank behind the colon."""
    assert parse_interfaces(NETWORK) == {
        "lo": {"received_bytes": 400172537669, "sent_bytes": 400172537669},
        "eth0:1": {"received_bytes": 44901, "sent_bytes": 6515004},
        "eth1": {"received_bytes": 17, "sent_bytes": 18},
    }


def test_pressure() -> None:
    text = "some avg10=0.73 avg60=0.53 avg300=0.71 total=763401038\nfull avg10=0.27 avg60=0.20 total=138522363\n"
    assert parse_pressure(text) == {"some": 763.401038, "full": 138.522363}
    assert parse_pressure(text.splitlines()[0]) == {"some": 763.401038}  # of CPUs, before Linux 5.13
    assert parse_pressure("some total=\nsome total=x\n total=5\n") == {}


def test_quotas() -> None:
    assert parse_quota_v2("150000 100000\n") == 1.5
    assert parse_quota_v2("max 100000\n") is None
    assert parse_quota_v1("400000\n", "100000\n") == 4
    assert parse_quota_v1("-1\n", "100000\n") is None
    assert parse_quota_v1("5", "0") is parse_quota_v1("", "") is parse_quota_v2("") is None


def test_throttled_seconds() -> None:
    assert parse_throttled_seconds("usage_usec 5\nnr_periods 3\nnr_throttled 1\nthrottled_usec 2500000\n") == 2.5
    assert parse_throttled_seconds("nr_periods 3\nnr_throttled 1\nthrottled_time 2500000000\n") == 2.5
    assert parse_throttled_seconds("usage_usec 5\nuser_usec 5\n") is None  # the root of version 2


MOUNTS_V1 = """\
25 30 0:23 / /sys rw,nosuid shared:7 - sysfs sysfs rw
33 25 0:28 / /sys/fs/cgroup/cpu,cpuacct rw,nosuid shared:10 - cgroup cgroup rw,cpu,cpuacct
34 25 0:29 / /sys/fs/cgroup/unified rw shared:11 - cgroup2 cgroup2 rw,nsdelegate
"""
MOUNTS_V2 = "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n"
IN_CONTAINER_V1 = "33 25 0:28 /docker/abc /sys/fs/cgroup/cpu ro,nosuid master:10 - cgroup cgroup rw,cpu\n"


@pytest.mark.parametrize(
    ("memberships", "mounts", "folders"),
    [
        pytest.param(
            "11:cpu,cpuacct:/user.slice/load\n0::/user.slice/x\n",
            MOUNTS_V1,
            [
                "/sys/fs/cgroup/cpu,cpuacct/user.slice/load",
                "/sys/fs/cgroup/cpu,cpuacct/user.slice",
                "/sys/fs/cgroup/cpu,cpuacct",
            ],
            id="both versions",
        ),
        pytest.param(
            "0::/system.slice/etl.service\n",
            MOUNTS_V2,
            ["/sys/fs/cgroup/system.slice/etl.service", "/sys/fs/cgroup/system.slice", "/sys/fs/cgroup"],
            id="version 2",
        ),
        pytest.param("0::/\n", MOUNTS_V2, ["/sys/fs/cgroup"], id="container of version 2"),
        pytest.param(
            "4:cpu:/docker/abc/sub\n",
            IN_CONTAINER_V1,
            ["/sys/fs/cgroup/cpu/sub", "/sys/fs/cgroup/cpu"],
            id="container of version 1",
        ),
        pytest.param("4:cpu:/elsewhere\n", IN_CONTAINER_V1, ["/sys/fs/cgroup/cpu"], id="moved out of the container"),
        pytest.param("0::/../../x\n", MOUNTS_V2, ["/sys/fs/cgroup/x", "/sys/fs/cgroup"], id="above the namespace"),
    ],
)
def test_control_groups(memberships: str, mounts: str, folders: list[str]) -> None:
    groups = find_cpu_groups(memberships, mounts)
    assert groups is not None
    assert list(groups.folders) == folders


@pytest.mark.parametrize(
    ("memberships", "mounts"), [("", MOUNTS_V2), ("0::/\n", ""), ("4:memory:/x\n", MOUNTS_V1), ("junk", "junk - junk")]
)
def test_no_control_groups(memberships: str, mounts: str) -> None:
    assert find_cpu_groups(memberships, mounts) is None


PARSERS: list[Callable[[str], object]] = [
    lambda text: parse_cpu_seconds(text, {0, 1, 2}),
    parse_boot_time,
    parse_process_stat,
    parse_schedstat,
    parse_process_io,
    parse_memory,
    parse_swapped_bytes,
    lambda text: parse_disks(text, None),
    parse_interfaces,
    parse_pressure,
    parse_quota_v2,
    lambda text: parse_quota_v1(text, text),
    parse_throttled_seconds,
    lambda text: find_cpu_groups(text, text),
]
REAL_TEXTS = (STAT, DISKS_3_10, DISKS_6_18, NETWORK, MOUNTS_V1, "some total=5", "0::/x", "5 (x) R 1", "MemTotal: 5 kB")


@given(text=st.text() | st.text("0123456789 -:/(),.\ncpu²٣") | st.sampled_from(REAL_TEXTS))
def test_any_text(text: str) -> None:
    """No parser raises, whatever stands in a file; digits of other scripts are no numbers."""
    for parse in PARSERS:
        parse(text)


@given(text=st.sampled_from(REAL_TEXTS), cut=st.integers(0, 400), other=st.characters())
def test_damaged_texts(text: str, cut: int, other: str) -> None:
    for parse in PARSERS:
        parse(text[:cut])
        parse(text[:cut] + other + text[cut + 1 :])
