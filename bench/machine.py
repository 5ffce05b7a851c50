"""Where and with what was measured: stands in every results file."""

from __future__ import annotations

import os
import platform
import re
import resource
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

PEERS = ("headrace", "duckdb", "pyarrow", "polars", "adbc-driver-postgresql")


def machine() -> dict[str, Any]:
    """Processor, caches, memory, kernel; nothing that names the machine itself."""
    from headrace import core

    information = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    model = re.search(r"model name\s*:\s*(.+)", information)
    memory = re.search(r"MemTotal:\s*(\d+) kB", Path("/proc/meminfo").read_text(encoding="utf-8"))
    assert memory is not None
    return {
        "processor": model[1] if model else platform.machine(),
        "architecture": platform.machine(),
        "cores": os.cpu_count(),
        "caches": _caches(),
        "memory_gb": round(int(memory[1]) * 1024 / 1e9, 1),
        "kernel": " ".join(platform.uname()[part] for part in (0, 2)),
        "virtual": "hypervisor" in information,
        "instructions": core.cpu_path(),
        "python": platform.python_version(),
    }


def versions() -> dict[str, str]:
    """Of Headrace and the peers."""
    found = {}
    for name in PEERS:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "not installed"
    return found


def load_average() -> float:
    """Of the last minute: should be near 0 before, or somebody else was measured as well."""
    return round(os.getloadavg()[0], 2)


def stolen_seconds() -> float:
    """Time that the hypervisor gave to others, all cores together, since the machine started."""
    fields = Path("/proc/stat").read_text(encoding="utf-8").split("\n", 1)[0].split()
    return int(fields[8]) / os.sysconf("SC_CLK_TCK")


def peak_resident_bytes() -> int:
    """Of this process since it started its program, or of the largest process that it has started and waited for.

    What `wait4` gives of this process would not do: it begins with what the parent had when it started the child.
    """
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    peak = re.search(r"VmHWM:\s*(\d+) kB", status)
    assert peak is not None
    return max(int(peak[1]), resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss) * 1024


def _caches() -> str:
    found = {}
    for folder in sorted(Path("/sys/devices/system/cpu/cpu0/cache").glob("index*")):
        level, kind, size = ((folder / name).read_text().strip() for name in ("level", "type", "size"))
        if kind != "Instruction":
            found[f"L{level}"] = size
    return ", ".join(f"{level} {size}" for level, size in found.items())
