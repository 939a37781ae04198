"""Whether a change made anything slower: CPU time of two source trees, fit by fit in turn.

Use
---
::

    git worktree add ../before COMMIT
    python tools/compare_speed.py ../before              # against the tree this file is in
    python tools/compare_speed.py ../before --pairs 31 --only 'GaussianMixture*'

Two processes, one per tree, make the same fits in turn, with one thread, so that what else the
machine does falls on both. For each fit the table has the median of the ratios new / old and an
interval that holds the true median with 95 % (order statistics of the pairs). ``import mixfold``
and ``mixfold --help`` are timed in new processes.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
# CPU seconds that one sample should take at least: shorter fits are repeated
SAMPLE_SECONDS = 0.08
PROCESSES = {
    "import mixfold": ["-c", "import mixfold"],
    "mixfold --help": ["-m", "mixfold", "--help"],
}


def make_fits() -> dict[str, Callable[[], Any]]:
    """The fits by name: small tables, and a fixed number of iterations on larger ones."""
    import mixfold as m

    rng = np.random.default_rng(0)
    small = np.concatenate([rng.normal(4 * k, 1, (50, 4)) for k in range(3)])
    classes = np.repeat(["a", "b", "c"], 50)
    missing = np.where(rng.random(small.shape) < 0.05, np.nan, small)
    counts = rng.poisson(3, (150, 6)).astype(float)
    words = rng.poisson(0.5, (150, 40)).astype(float)
    bits = (small > small.mean(axis=0)).astype(float)
    large = np.concatenate([rng.normal(2 * k, 1, (4000, 10)) for k in range(5)])
    holed = np.where(rng.random(large.shape) < 0.05, np.nan, large)
    one: dict[str, Any] = {"n_jobs": 1, "random_state": 0}
    fitted = m.GaussianMixture(3, **one).fit(small)
    steps = {**one, "tol": 0.0, "max_iter": 20}
    return {
        "GaussianMixture, small": lambda: m.GaussianMixture(3, **one).fit(small),
        "GaussianMixture, small, NaN": lambda: m.GaussianMixture(3, **one).fit(missing),
        "GaussianMixture.predict, one row": lambda: fitted.predict(small[:1]),
        "BayesianGaussianMixture, small": lambda: m.BayesianGaussianMixture(3, **one).fit(small),
        "Mixture poisson, small": lambda: m.Mixture("poisson", 3, **one).fit(counts),
        "Mixture gibbs, small": lambda: m.Mixture(
            "diag", 3, inference="gibbs", n_chains=1, n_draws=20, burn_in=20, **one
        ).fit(small),
        "KMeans, small": lambda: m.KMeans(3, **one).fit(small),
        "NestedMixture, small": lambda: m.NestedMixture(2, 2, **one).fit(small),
        "PPCA, small": lambda: m.PPCA(2, **one).fit(small),
        "PPCA, small, NaN": lambda: m.PPCA(2, **one).fit(missing),
        "FactorAnalysis, small": lambda: m.FactorAnalysis(1, **one).fit(small),
        "MixtureOfPPCA, small": lambda: m.MixtureOfPPCA(2, 1, **one).fit(small),
        "GaussianPCP, small": lambda: m.GaussianPCP(3, 2, **one).fit(small),
        "SupervisedPPCA, small": lambda: m.SupervisedPPCA(2, **one).fit(small, classes),
        "MixtureOfFactorModels, small": lambda: m.MixtureOfFactorModels(
            2, 1, max_iter=20, **one
        ).fit(small, classes),
        "KernelPCA, small": lambda: m.KernelPCA(2, kernel="rbf", **one).fit(small),
        "MORP, small": lambda: m.MORP(2, **one).fit(small, classes),
        "LatentDirichletAllocation, small": lambda: m.LatentDirichletAllocation(3, **one).fit(
            words
        ),
        "PLSI, small": lambda: m.PLSI(3, **one).fit(words),
        "MatrixFactorization, small": lambda: m.MatrixFactorization(2, **one).fit(small),
        "RBM, small": lambda: m.RBM(8, max_epochs=5, **one).fit(bits),
        "MixtureClassifier, small": lambda: m.MixtureClassifier(m.GaussianMixture(1), **one).fit(
            small, classes
        ),
        "GaussianMixture, 20 iterations": lambda: m.GaussianMixture(
            5, init_params="random_from_data", **steps
        ).fit(large),
        "GaussianMixture, 20 iterations, NaN": lambda: m.GaussianMixture(
            5, init_params="random_from_data", **steps
        ).fit(holed),
        "KMeans, 20 iterations": lambda: m.KMeans(5, init="random", n_init=1, **steps).fit(large),
        "MixtureOfFactorAnalyzers, 20 iterations": lambda: m.MixtureOfFactorAnalyzers(
            5, 2, init_params="random_from_data", **steps
        ).fit(large),
    }


# ---------------------------------------------------- one process per tree


def serve() -> None:
    """Make the fits whose names come on standard input; answer with CPU seconds of each."""
    warnings.simplefilter("ignore")
    fits = make_fits()
    repeats: dict[str, int] = {}
    print(json.dumps(list(fits)), flush=True)
    for line in sys.stdin:
        request = json.loads(line)
        name, fit = request["name"], fits[request["name"]]
        if name not in repeats:
            fit()  # imports and compilation
            repeats[name] = request["repeats"] or max(1, int(SAMPLE_SECONDS / _cpu_time(fit, 1)))
        print(json.dumps([_cpu_time(fit, repeats[name]), repeats[name]]), flush=True)


def _cpu_time(fit: Callable[[], Any], repeats: int) -> float:
    began = time.process_time()
    for _ in range(repeats):
        fit()
    return max((time.process_time() - began) / repeats, 1e-7)


class Tree:
    """A source tree with a process that makes its fits."""

    def __init__(self, root: Path) -> None:
        self.env = {**os.environ, "PYTHONPATH": str(root / "src"), "OPENBLAS_NUM_THREADS": "1"}
        self.process = subprocess.Popen(
            [sys.executable, str(Path(__file__).resolve()), "--serve"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=self.env,
        )  # fmt: skip
        self.names: list[str] = json.loads(self._read())

    def _read(self) -> str:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit("a process ended early; its message is above")
        return line

    def time_fit(self, name: str, repeats: int = 0) -> tuple[float, int]:
        """CPU seconds of one fit, the mean of some repeats, and how many there were."""
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps({"name": name, "repeats": repeats}) + "\n")
        self.process.stdin.flush()
        seconds, repeats = json.loads(self._read())
        return seconds, repeats

    def time_process(self, arguments: list[str]) -> float:
        """CPU seconds of a new process."""
        before = _cpu_time_of_children()
        subprocess.run(
            [sys.executable, *arguments], env=self.env, check=True, stdout=subprocess.DEVNULL
        )
        return _cpu_time_of_children() - before


def _cpu_time_of_children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


# ---------------------------------------------------- the comparison


def interval(ratios: np.ndarray) -> tuple[float, float, float]:
    """The median, and order statistics between which the true one is with 95 %."""
    ordered, n = np.sort(ratios), len(ratios)
    half = 0.98 * np.sqrt(n)
    low, high = int(np.floor(n / 2 - half)), int(np.ceil(n / 2 + half))
    return float(np.median(ordered)), ordered[max(low, 0)], ordered[min(high, n) - 1]


def compare(old: Tree, new: Tree, pairs: int, only: str) -> bool:
    """Print the table; True if no interval lies above 1."""
    print(f"| fit | old, ms CPU | new / old | 95 % of the median, {pairs} pairs |")
    print("| --- | ---: | ---: | ---: |", flush=True)
    everything, fine = [], True
    jobs: list[tuple[str, Callable[[Tree], float]]] = []
    for name in (n for n in old.names if n in new.names and fnmatch(n, only)):
        _, repeats = old.time_fit(name)
        new.time_fit(name, repeats)
        jobs.append((name, lambda tree, name=name, r=repeats: tree.time_fit(name, r)[0]))
    for name, arguments in PROCESSES.items():
        if fnmatch(name, only):
            jobs.append((name, lambda tree, a=arguments: tree.time_process(a)))
    for name, measure in jobs:
        times = np.array(
            [
                [measure(old), measure(new)]
                if pair % 2 == 0
                else [measure(new), measure(old)][::-1]
                for pair in range(pairs)
            ]
        )
        ratios = times[:, 1] / times[:, 0]
        median, low, high = interval(ratios)
        everything.append(ratios)
        fine &= low <= 1.0
        milliseconds = 1e3 * np.median(times[:, 0])
        print(
            f"| {name} | {milliseconds:.2f} | {median:.3f} | {low:.3f} to {high:.3f} |", flush=True
        )
    medians = np.exp(np.median(np.log(np.stack(everything)), axis=0))
    median, low, high = interval(medians)
    print(f"| all (median over the fits of each pair) | | {median:.3f} | {low:.3f} to {high:.3f} |")
    return fine


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("old", type=Path, nargs="?", help="the other source tree")
    parser.add_argument("--pairs", type=int, default=15)
    parser.add_argument("--only", default="*", help="fits whose name matches this pattern")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.serve:
        serve()
        return
    if arguments.old is None or not (arguments.old / "src" / "mixfold").is_dir():
        parser.error(f"{arguments.old} is no source tree: it has no src/mixfold")
    fine = compare(Tree(arguments.old.resolve()), Tree(ROOT), arguments.pairs, arguments.only)
    sys.exit(0 if fine else 1)


if __name__ == "__main__":
    main()
