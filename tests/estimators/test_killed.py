"""A fit survives what kills it: kill -9, Ctrl-C, a full disk."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mixfold
from mixfold import GaussianMixture, store
from mixfold.contracts import Array, Block, Source
from mixfold.engine.checkpoints import Progressed
from mixfold.engine.executors import ThreadExecutor

pytestmark = [
    pytest.mark.skipif(os.name != "posix", reason="needs POSIX: processes are killed by signals"),
    pytest.mark.filterwarnings("ignore:Best performing:sklearn.exceptions.ConvergenceWarning"),
]

# A fit in a process of its own. `pause` seconds go by before each pass, so that a small fit takes
# as long as a large one without keeping anybody waiting for a core.
PROGRAM = """
import json, resource, signal, sys, time
import numpy as np
from mixfold import GaussianMixture
from mixfold.engine.executors import ThreadExecutor

class Paced(ThreadExecutor):
    def map_reduce(self, task, source):
        time.sleep(pause)
        return super().map_reduce(task, source)

# a process that was started in the background ignores Ctrl-C
signal.signal(signal.SIGINT, signal.default_int_handler)
task = json.loads(sys.argv[1])
pause, X = task["pause"], np.load(task["data"])
if task["largest_file"]:
    # compiled kernels are cached in files: before the disk is full
    GaussianMixture(**{**task["options"], "checkpoint": None, "max_iter": 2}).fit(X)
    resource.setrlimit(resource.RLIMIT_FSIZE, (task["largest_file"],) * 2)
fitted = GaussianMixture(**task["options"], executor=Paced(1)).fit(X)
fitted.checkpoint = None
fitted.save(task["result"])
print(fitted.stop_reason_, fitted.n_iter_)
"""


def table(n: int = 400, n_features: int = 3, n_clusters: int = 3) -> Array:
    """Clusters that overlap, so that a fit goes on for long."""
    rng = np.random.default_rng(4)
    centres = 1.5 * rng.standard_normal((n_clusters, n_features))
    return centres[rng.integers(n_clusters, size=n)] + rng.standard_normal((n, n_features))


# plain settings: they travel to another process as JSON
SMALL: dict[str, Any] = {
    "n_components": 3,
    "tol": 0,
    "max_iter": 60,
    "init_params": "k-means++",
    "random_state": 0,
}


class Counting(ThreadExecutor):
    """Threads that count passes over all of the rows (not those over a pilot)."""

    def __init__(self) -> None:
        super().__init__(2)
        self.n_passes = 0

    def map_reduce(self, task: Callable[[Block], Any], source: Source) -> Any:
        self.n_passes += source.n_samples in (400, 20_000)
        return super().map_reduce(task, source)


def bits(fitted: GaussianMixture) -> bytes:
    parts = (fitted.weights_, fitted.means_, fitted.covariances_, np.array(fitted.lower_bounds_))
    return b"".join(part.tobytes() for part in parts)


class Other:
    """A fit under way in another process."""

    def __init__(self, folder: Path, X: Array, options: dict[str, Any], **extra: Any) -> None:
        self.checkpoint, self.result = folder / "fit.ckpt", folder / "result.mixfold"
        data = folder / "data.npy"
        np.save(data, X)
        task = {
            "data": str(data),
            "result": str(self.result),
            "options": {**options, "checkpoint": str(self.checkpoint)},
            "pause": 0.05,
            "largest_file": 0,
            **extra,
        }
        self.process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, json.dumps(task)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": str(Path(mixfold.__file__).parents[1])},
        )

    def progressed(self) -> Progressed:
        state: Progressed = store.read(self.checkpoint, "checkpoint")["progressed"]
        return state

    def wait_until(self, reached: Callable[[Progressed], bool]) -> None:
        """Until the checkpoint, readable at any time, shows a certain state."""
        deadline = time.monotonic() + 60
        while not (self.checkpoint.exists() and reached(self.progressed())):
            assert self.process.poll() is None, self.process.communicate()[1]
            assert time.monotonic() < deadline, "the other process is stuck"
            time.sleep(0.02)

    def end(self, number: signal.Signals | None = None) -> tuple[int, str, str]:
        """Send a signal, wait for the end: return code, output, errors."""
        if number is not None:
            self.process.send_signal(number)
        out, err = self.process.communicate(timeout=60)
        return self.process.returncode, out, err

    def discard(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate()


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Other]]:
    others: list[Other] = []

    def make(*args: Any, **extra: Any) -> Other:
        others.append(Other(tmp_path, *args, **extra))
        return others[-1]

    yield make
    for other in others:
        other.discard()


# ------------------------------------------------ kill -9


CASES: dict[str, dict[str, Any]] = {
    "plain": {"acceleration": None},
    "accelerated": {"acceleration": "auto"},
    "second of two starts": {"acceleration": "auto", "n_init": 2, "max_iter": 25},
    "large": {
        "n_components": 10, "acceleration": None, "init_params": "kmeans", "max_iter": 200,
    },
}  # fmt: skip


@pytest.mark.parametrize(
    "case",
    [case if case == "plain" else pytest.param(case, marks=pytest.mark.slow) for case in CASES],
)
def test_kill_9_and_again(case: str, start: Callable[..., Other]) -> None:
    options = {**SMALL, **CASES[case]}
    X = table(20_000, 8, 10) if case == "large" else table()
    restart = options.get("n_init", 1) - 1
    other = start(X, options, pause=0.0 if case == "large" else 0.05)
    other.wait_until(
        lambda p: p.restart == restart and p.climb is not None and p.climb.n_passes > 2
    )
    code, out, _ = other.end(signal.SIGKILL)
    assert code == -signal.SIGKILL and not out and not other.result.exists()

    stored = other.progressed()
    assert stored.climb is not None and stored.climb.n_iter < options["max_iter"]
    resumed, whole = Counting(), Counting()
    again = GaussianMixture(**options, checkpoint=other.checkpoint, executor=resumed).fit(X)
    undisturbed = GaussianMixture(**options, executor=whole).fit(X)
    assert bits(again) == bits(undisturbed)
    # exactly the passes that were still to come: it did not begin anew
    done = stored.climb.n_passes + (stored.best.n_passes if stored.best is not None else 0)
    assert done > 2 and resumed.n_passes == whole.n_passes - done
    assert not other.checkpoint.exists()


def test_ctrl_c_keeps_the_best_so_far(start: Callable[..., Other]) -> None:
    options, X = {**SMALL, "acceleration": None}, table()
    other = start(X, options)
    other.wait_until(lambda p: p.climb is not None and p.climb.n_passes > 2)
    code, out, err = other.end(signal.SIGINT)
    assert code == 0, err
    reason, n_iter = out.split()
    assert reason == "interrupted" and 2 < int(n_iter) <= options["max_iter"]
    assert f"the fit was interrupted after {n_iter} iterations; the best parameters so far" in err
    kept = mixfold.load(other.result)
    assert np.isfinite(kept.means_).all()
    assert len(kept.lower_bounds_) < options["max_iter"]
    same = GaussianMixture(**{**options, "max_iter": len(kept.lower_bounds_)}).fit(X)
    assert bits(same) == bits(kept)
    # and the same call goes on from there
    again = GaussianMixture(**options, checkpoint=other.checkpoint).fit(X)
    assert bits(again) == bits(GaussianMixture(**options).fit(X))


def test_no_room_for_a_checkpoint(tmp_path: Path, start: Callable[..., Other]) -> None:
    other = start(table(), SMALL, largest_file=1000)
    code, _, err = other.end()
    assert code == 1 and "ModelWriteError" in err
    assert "could not be written: File too large; nothing was left behind" in err
    assert [path.name for path in tmp_path.iterdir()] == ["data.npy"]
