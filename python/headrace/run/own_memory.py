"""How much memory this process has used."""

from __future__ import annotations

import sys
from pathlib import Path


def peak_resident_bytes() -> int:
    """Largest resident memory of this process so far; 0 where the system does not say."""
    try:
        # Not `ru_maxrss`: on Linux that starts with the memory of the process which started this one.
        status = Path("/proc/self/status").read_text(encoding="ascii", errors="replace")
        return int(status.split("VmHWM:")[1].split()[0]) * 1024
    except (OSError, IndexError, ValueError):
        return _peak_by_usage()


def _peak_by_usage() -> int:
    try:
        import resource
    except ImportError:
        return 0
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024
