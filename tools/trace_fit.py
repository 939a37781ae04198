"""How far a reader has to walk: files, functions and changes of file during one fit.

Use
---
::

    python tools/trace_fit.py                    # the table below, for six fits
    python tools/trace_fit.py --path PPCA        # the files of one fit, in order of first visit

A fit is run twice on a small table with one thread; the second one is traced (nothing is imported
or compiled any more). Columns: files of the package that run, their lines, functions run, pairs of
files of which one calls the other, calls inside ``estimators/``, and how often such a call is in
another file than the one before. ``--src DIR`` traces another source tree.
"""

from __future__ import annotations

import argparse
import os
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
NAMES = (
    "GaussianMixture", "PPCA", "LatentDirichletAllocation", "SupervisedPPCA", "KernelPCA",
    "DeepBeliefNetwork",
)  # fmt: skip


class Trace:
    """What a profiler sees of one call: files in order of first visit, functions, calls."""

    def __init__(self, package: Path) -> None:
        self.package = f"{package}{os.sep}"
        self.files: dict[str, None] = {}
        self.functions: set[tuple[str, int]] = set()
        self.pairs: set[tuple[str, str]] = set()
        self.calls = self.switches = 0
        self._room = f"{self.package}estimators{os.sep}"
        self._last = ""

    def __call__(self, frame: FrameType, event: str, argument: Any) -> None:
        file = frame.f_code.co_filename
        if event != "call" or not file.startswith(self.package):
            return
        self.files.setdefault(file)
        self.functions.add((file, frame.f_code.co_firstlineno))
        caller = self._caller(frame)
        if caller and caller != file:
            self.pairs.add((caller, file))
        if file.startswith(self._room):
            self.calls += 1
            self.switches += bool(self._last) and file != self._last
            self._last = file

    def _caller(self, frame: FrameType) -> str:
        """The file of the package that the frame was called from, directly or through others."""
        back = frame.f_back
        while back is not None and not back.f_code.co_filename.startswith(self.package):
            back = back.f_back
        return back.f_code.co_filename if back is not None else ""

    def run(self, work: Callable[[], Any]) -> None:
        sys.setprofile(self)
        try:
            work()
        finally:
            sys.setprofile(None)

    def row(self) -> tuple[int, ...]:
        lines = sum(len(Path(file).read_text("utf-8").splitlines()) for file in self.files)
        sizes = len(self.files), lines, len(self.functions), len(self.pairs)
        return *sizes, self.calls, self.switches


def fits() -> dict[str, Callable[[], Any]]:
    """A small fit of each estimator of the table."""
    import numpy as np

    import mixfold

    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 6)) + 4.0 * rng.integers(0, 3, (300, 1))
    holes = np.where(rng.random(X.shape) < 0.1, np.nan, X)
    counts = rng.poisson(1.0, (80, 30)).astype(float)
    y = X @ rng.normal(size=(6, 2)) + rng.normal(size=(300, 2))
    one = {"n_jobs": 1, "random_state": 0}
    bits = (X > 4).astype(float)
    return {
        "GaussianMixture": lambda: mixfold.GaussianMixture(8, **one).fit(X),
        "PPCA": lambda: mixfold.PPCA(3, **one).fit(holes),
        "LatentDirichletAllocation": lambda: mixfold.LatentDirichletAllocation(
            5, **one
        ).fit(counts),
        "SupervisedPPCA": lambda: mixfold.SupervisedPPCA(2, **one).fit(X, y),
        "KernelPCA": lambda: mixfold.KernelPCA(3, kernel="rbf", **one).fit(X),
        "DeepBeliefNetwork": lambda: mixfold.DeepBeliefNetwork(
            (4, 3), max_epochs=2, **one
        ).fit(bits),
    }  # fmt: skip


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--path", choices=NAMES, help="list the files of one fit")
    parser.add_argument("--src", type=Path, default=ROOT / "src", help="the source tree")
    told = parser.parse_args(argv)
    source = told.src.resolve()
    sys.path.insert(0, str(source))
    warnings.simplefilter("ignore")
    if not told.path:
        print("| fit | files | lines | functions | pairs | calls in estimators | switches there |")
        print("| --- | ---: | ---: | ---: | ---: | ---: | ---: |")
    for name, work in fits().items():
        if told.path and name != told.path:
            continue
        work()
        trace = Trace(source / "mixfold")
        trace.run(work)
        if told.path:
            for file in trace.files:
                print(Path(file).relative_to(source / "mixfold"))
        else:
            print(f"| {name} | {' | '.join(map(str, trace.row()))} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
