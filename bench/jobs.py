"""Each measurement in a process of its own: settings of threads hold, and peaks are its own.

The parent calls ``run("bench.timing:per_iteration", threads=1, path=..., ...)``; the child, started
as ``python -m bench.jobs``, calls that function with those arguments and answers in JSON.
"""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
LIMITS = (
    "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS", "BLIS_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS", "NUMBA_NUM_THREADS",
)  # fmt: skip


class JobError(RuntimeError):
    """A measurement failed; the text is what its process wrote last."""


def run(function: str, *, threads: int | None, **arguments: Any) -> Any:
    """What ``module:function`` returns in a process limited to ``threads`` (None: all cores)."""
    environment = dict(os.environ)
    for name in LIMITS:
        environment.pop(name, None)
        if threads is not None:
            environment[name] = str(threads)
    paths = [str(ROOT), str(ROOT / "src"), environment.get("PYTHONPATH", "")]
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, paths))
    done = subprocess.run(
        [sys.executable, "-m", "bench.jobs", function],
        input=json.dumps({"threads": threads, **arguments}),
        capture_output=True,
        text=True,
        env=environment,
        check=False,
    )
    if done.returncode:
        last = "\n".join(done.stderr.strip().splitlines()[-5:])
        raise JobError(f"{function} ended with code {done.returncode}: {last or 'no message'}")
    return json.loads(done.stdout.splitlines()[-1])


def main() -> None:
    module, name = sys.argv[1].split(":")
    answer = getattr(importlib.import_module(module), name)(**json.load(sys.stdin))
    print(json.dumps(answer))


if __name__ == "__main__":
    main()
