"""What the workers do for the factor models: one fit, its time, its memory, its parameters."""

from __future__ import annotations

import gc
import importlib
import time
import warnings
from typing import Any

import numpy as np

from bench import peak
from bench.problems import Array


def fit(
    threads: int | None,
    estimator: str,
    path: str,
    settings: dict[str, Any],
    keep: str,
    names: str,
) -> dict[str, float]:
    """CPU and wall seconds of a fit, and the MB that it adds at its peak.

    ``estimator`` is ``module:class``; the attributes ``names`` are written to the file ``keep``. A
    fit of a few rows comes first: importing and compiling are not counted, for any library.
    """
    model = make(estimator, threads, settings)
    X = np.load(path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a cut short fit is told by its number of iterations
        make(estimator, threads, {**settings, "n_components": 2}).fit(small(X.dtype))
        gc.collect()
        peak.forget()
        before = peak.now()
        cpu_began, began = time.process_time(), time.perf_counter()
        model.fit(X)
        wall, cpu = time.perf_counter() - began, time.process_time() - cpu_began
        used = max(0, peak.peak() - before) / 1e6
    np.savez(keep, **{name: getattr(model, name) for name in names.split()})
    return {"wall": wall, "cpu": cpu, "peak": used, "iterations": int(getattr(model, "n_iter_", 1))}


def make(estimator: str, threads: int | None, settings: dict[str, Any]) -> Any:
    """An estimator; those of mixfold are told the number of threads, others by their process."""
    module, name = estimator.split(":")
    own = {"n_jobs": threads} if module == "mixfold" else {}
    return getattr(importlib.import_module(module), name)(**settings, **own)


def small(dtype: Any) -> Array:
    """A few rows of two groups with factors, enough to compile and load everything."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3)) @ rng.normal(size=(3, 8)) + 0.5 * rng.normal(size=(300, 8))
    X[:150] += 10
    return X.astype(dtype)
