"""What a run ran on and connected to, kept in its folder for those who read it later."""

from __future__ import annotations

import os
import platform
from pathlib import Path
from typing import Any, Final

from headrace import core
from headrace.model import BoundPackage
from headrace.model.load import usable_cpus
from headrace.run.redact import Redactor

_CPU_INFO: Final = Path("/proc/cpuinfo")


def described(package: BoundPackage, redactor: Redactor) -> dict[str, Any]:
    """The document, without secrets. `cpus`: those that the process may use."""
    document = {
        "headrace": core.version(),
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "host": platform.node(),
        "processor": _processor(),
        "cpus": usable_cpus(),
        "cpus_of_machine": os.cpu_count(),
        "memory_bytes": package.memory_bytes,
        "connections": [connection.describe() for connection in package.connections.values()],
    }
    return dict(redactor.data(document))


def _processor() -> str | None:
    """The name that Linux has for it; None where it tells none."""
    try:
        lines = _CPU_INFO.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return platform.processor() or None
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), None)
