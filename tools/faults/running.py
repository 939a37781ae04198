"""Shared by the fault scripts: where to work, how to run a child under limits, how to report."""

from __future__ import annotations

import importlib.util
import json
import os
import resource
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]  # of the repository

# Of the library that is tested. The name of a folder above it says nothing: a checkout may be
# called anything, and may hold a virtual environment.
PACKAGE = str(Path(importlib.util.find_spec("mixfold").origin).parent) + os.sep


def is_of_the_library(path: str) -> bool:
    """Whether a file, as a frame names it, is one of the library's."""
    return path.startswith(PACKAGE)


def scratch_folder(name: str) -> Path:
    """A folder for files of one script: under FAULTS_SCRATCH, or the system's temporary one."""
    root = Path(os.environ.get("FAULTS_SCRATCH", tempfile.gettempdir())) / "mixfold-faults" / name
    root.mkdir(parents=True, exist_ok=True)
    return root


def child_environment(**more: str) -> dict[str, str]:
    """Environment of children: one BLAS thread, compiled code cached in scratch, no bytecode."""
    return {
        **os.environ,
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
        "NUMBA_CACHE_DIR": os.environ.get("NUMBA_CACHE_DIR", str(scratch_folder("numba"))),
        "PYTHONPATH": os.pathsep.join(
            p for p in (str(ROOT), str(ROOT / "src"), os.environ.get("PYTHONPATH")) if p
        ),
        **more,
    }


def limit_memory(n_bytes: int) -> None:
    """For ``preexec_fn``-free use inside a child."""
    resource.setrlimit(resource.RLIMIT_AS, (n_bytes, n_bytes))


def cpu_seconds(pid: int) -> float:
    """CPU time that a process has used; 0 once it is gone."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    except (OSError, IndexError):
        return 0.0


def resident_megabytes(pid: int | str = "self") -> float:
    """Resident memory of a process in MB."""
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / 1e6
    except (OSError, IndexError):
        return 0.0


def peak_megabytes(pid: int | str = "self") -> float:
    """Largest resident memory so far in MB."""
    try:
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("VmHWM"):
                return int(line.split()[1]) / 1e3
    except OSError:
        pass
    return 0.0


class Worker:
    """A child that takes one JSON line per case and answers with one; replaced when it hangs."""

    def __init__(self, command: list[str], cpu_limit: float, wall_limit: float, log: Path) -> None:
        self.command, self.cpu_limit, self.wall_limit, self.log = (
            command,
            cpu_limit,
            wall_limit,
            log,
        )
        self.process: subprocess.Popen[str] | None = None

    def _start(self) -> subprocess.Popen[str]:
        with open(self.log, "a") as log:
            return subprocess.Popen(
                self.command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                env=child_environment(),
                cwd=self.log.parent,
            )

    def ask(self, question: dict) -> dict:
        """The answer to one case, or {"kind": "hang" | "dead"}."""
        fresh = self.process is None or self.process.poll() is not None
        if fresh:
            self.process = self._start()
        process = self.process
        try:
            process.stdin.write(json.dumps(question) + "\n")
            process.stdin.flush()
        except BrokenPipeError:
            self.process = None
            return {"kind": "dead", "detail": f"exit {process.wait()}"}
        began, cpu = time.monotonic(), cpu_seconds(process.pid)
        allowance = 120.0 if fresh else 0.0  # imports and compilation
        text = ""
        while True:
            if select.select([process.stdout], [], [], 0.05)[0]:
                text += os.read(process.stdout.fileno(), 1 << 20).decode()
            if text.endswith("\n"):
                return json.loads(text.strip().splitlines()[-1])
            if process.poll() is not None:
                self.process = None
                return {"kind": "dead", "detail": f"exit {process.returncode}"}
            used = cpu_seconds(process.pid) - cpu
            wall = time.monotonic() - began
            if used > self.cpu_limit + allowance or wall > self.wall_limit + allowance:
                where = self._stack()
                process.kill()
                process.wait()
                self.process = None
                return {"kind": "hang", "detail": f"{used:.0f} s CPU, {wall:.0f} s", "stack": where}

    def _stack(self) -> list[str]:
        before = self.log.stat().st_size
        self.process.send_signal(signal.SIGUSR1)
        time.sleep(0.5)
        text = self.log.read_text(errors="replace")[before:]
        return [line.strip() for line in text.splitlines() if "mixfold" in line][:6]

    def close(self) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.stdin.close()
            try:
                self.process.wait(20)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
            self.process.stdout.close()


class Tally:
    """Counts by kind, and one JSON line per finding."""

    def __init__(self, path: Path) -> None:
        self.kinds: Counter[str] = Counter()
        self.signatures: Counter[str] = Counter()
        self.file = open(path, "a")  # noqa: SIM115

    def add(self, kind: str, signature: str = "", **detail: Any) -> None:
        self.kinds[kind] += 1
        if signature:
            self.signatures[f"{kind} | {signature}"] += 1
            self.file.write(json.dumps({"kind": kind, "signature": signature, **detail}) + "\n")
            self.file.flush()

    def table(self) -> str:
        lines = [f"{n:8d}  {kind}" for kind, n in self.kinds.most_common()]
        lines += ["", "distinct findings:"]
        lines += [f"{n:8d}  {signature}" for signature, n in self.signatures.most_common()]
        return "\n".join(lines)


def python() -> str:
    return os.environ.get("FAULTS_PYTHON", sys.executable)
