"""Memory of this process: now, and at its worst since a given moment."""

from __future__ import annotations

import resource
import sys
from pathlib import Path

import psutil

_STATUS, _RESET = Path("/proc/self/status"), Path("/proc/self/clear_refs")


def now() -> int:
    """Resident bytes."""
    return int(psutil.Process().memory_info().rss)


def forget() -> None:
    """Let the peak begin anew, where the system can (Linux)."""
    if _RESET.exists():
        _RESET.write_text("5")


def peak() -> int:
    """The most resident bytes since ``forget``, or since the start where it cannot be reset."""
    if _STATUS.exists():
        # not ru_maxrss: on Linux it also remembers the parent from which this one was spawned
        line = next(s for s in _STATUS.read_text().splitlines() if s.startswith("VmHWM"))
        return int(line.split()[1]) * 1024
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
