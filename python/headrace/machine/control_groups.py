"""Limits of CPU time by control groups, of both versions: quotas, and how long they have held us up."""

from __future__ import annotations

import os.path
from collections.abc import Sequence
from dataclasses import dataclass

from headrace.machine.files import read_text, whole_number


@dataclass(frozen=True, slots=True)
class CpuGroups:
    """The folders of our control group and those around it, innermost first, in which limits may stand."""

    folders: tuple[str, ...]
    version: int


def find_cpu_groups(memberships: str, mounts: str) -> CpuGroups | None:
    """From the texts of /proc/self/cgroup and /proc/self/mountinfo. Where both versions are mounted, the one that has
    the CPUs.
    """
    paths: dict[int, str] = {}
    for line in memberships.splitlines():
        _, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if "cpu" in controllers.split(","):
            paths[1] = path
        elif not controllers and line.startswith("0:"):
            paths[2] = path
    for version in (1, 2):  # a controller of version 1 is none of version 2
        for root, mount in _mounts(mounts, version) if version in paths else ():
            return CpuGroups(_upwards(root, mount, paths[version]), version)
    return None


def _mounts(text: str, version: int) -> Sequence[tuple[str, str]]:
    """Roots and places of the mounts: what of the hierarchy is seen, and where."""
    found = []
    for line in text.splitlines():
        before, _, behind = line.partition(" - ")
        fields, (kind, *others) = before.split(), behind.split() or [""]
        if len(fields) < 5:
            continue
        root, mount = (_unescaped(field) for field in fields[3:5])
        options = others[-1].split(",") if others else []
        if (version == 2 and kind == "cgroup2") or (version == 1 and kind == "cgroup" and "cpu" in options):
            found.append((root, mount))
    return found


def _unescaped(field: str) -> str:
    return field.replace("\\040", " ").replace("\\011", "\t").replace("\\134", "\\")


def _upwards(root: str, mount: str, path: str) -> tuple[str, ...]:
    """In a container the path may be told as the host sees it; then `root` says what of it is the mount."""
    if root != "/":
        is_inside = path == root or path.startswith(f"{root}/")
        path = path[len(root) :] if is_inside else "/"
    parts = [part for part in path.split("/") if part and part != ".."]
    return tuple(os.path.join(mount, *parts[:length]) for length in range(len(parts), -1, -1))


def parse_quota_v2(text: str) -> float | None:
    """CPUs that `cpu.max` allows; None: all."""
    words = text.split()
    return _cpus(words[0], words[1]) if len(words) == 2 else None


def parse_quota_v1(quota: str, period: str) -> float | None:
    """CPUs that `cpu.cfs_quota_us` (-1: all) and `cpu.cfs_period_us` allow; None: all."""
    return _cpus(quota.strip(), period.strip())


def _cpus(quota: str, period: str) -> float | None:
    allowed, each = whole_number(quota), whole_number(period)
    return allowed / each if allowed and each else None


def parse_throttled_seconds(text: str) -> float | None:
    """Time in which threads of the group had to wait for its next period, of `cpu.stat` of either version."""
    for line in text.splitlines():
        name, _, word = line.partition(" ")
        number = whole_number(word.strip())
        if number is not None and name == "throttled_usec":
            return number / 1e6
        if number is not None and name == "throttled_time":
            return number / 1e9
    return None


def read_quota(groups: CpuGroups) -> float | None:
    """CPUs that the tightest of the groups allows; None: all."""
    quotas = [_quota_of(folder, groups.version) for folder in groups.folders]
    return min((quota for quota in quotas if quota is not None), default=None)


def _quota_of(folder: str, version: int) -> float | None:
    if version == 2:
        return parse_quota_v2(read_text(f"{folder}/cpu.max") or "")
    return parse_quota_v1(read_text(f"{folder}/cpu.cfs_quota_us") or "", read_text(f"{folder}/cpu.cfs_period_us") or "")


def read_throttled_seconds(groups: CpuGroups) -> float | None:
    """Of the group that was held up longest; None if none of them tells."""
    texts = (read_text(f"{folder}/cpu.stat") for folder in groups.folders)
    seconds = [parse_throttled_seconds(text) for text in texts if text is not None]
    return max((value for value in seconds if value is not None), default=None)
