"""What the figures were measured on and with."""

from __future__ import annotations

import os
import platform
import re
from pathlib import Path

import numpy as np

from bench.peers import PEERS, version


def describe() -> str:
    """Processor, cores, and the versions of the libraries; a missing peer is named."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    found = {name: version(name) for name in PEERS}
    versions = ", ".join(f"{name} {v}" for name, v in found.items() if v is not None)
    missing = [name for name, v in found.items() if v is None]
    notes = f" Not installed, so left out: {', '.join(missing)}." if missing else ""
    return f"{_processor()}, {cores} cores; {versions}, numpy {np.__version__} ({_blas()}).{notes}"


def _processor() -> str:
    try:
        found = re.search(r"model name\s*:\s*(.+)", Path("/proc/cpuinfo").read_text())
    except OSError:
        found = None
    return found.group(1) if found else platform.processor() or platform.machine()


def _blas() -> str:
    blas = np.show_config(mode="dicts")["Build Dependencies"]["blas"]
    return f"{blas['name']} {blas['version']}"
