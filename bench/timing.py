"""What the workers time: EM iterations, and matrix products as the measure of the machine."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from bench.peers import PEERS, log_likelihood, warm_up
from bench.problems import Problem, load


def per_iteration(
    threads: int | None,
    peer: str,
    path: str,
    problem: dict[str, Any],
    n_iter: int,
    repeats: int,
    judge: bool = False,
) -> dict[str, float | None]:
    """CPU and wall seconds of one iteration: (time of 1 + n steps) - (time of 1 step), over n.

    Everything that happens once per fit (checks, the start, the last E step) falls out. The least
    of several repeats stands for each of the two times, since noise only adds. A library that stops
    early is charged for the steps it made, and its likelihood is not compared.
    """
    X, start = load(path)
    shape, fit = Problem(**problem), PEERS[peer]
    warm_up(peer, shape, threads)
    cpu: dict[int, list[float]] = {1: [], 1 + n_iter: []}
    wall: dict[int, list[float]] = {1: [], 1 + n_iter: []}
    for _ in range(repeats):
        for steps in cpu:
            cpu_began, began = time.process_time(), time.perf_counter()
            result = fit(X, start, shape, steps, threads)
            wall[steps].append(time.perf_counter() - began)
            cpu[steps].append(time.process_time() - cpu_began)
    made = result.n_iter - 1
    if made < 1:
        raise ValueError(f"{peer} stopped after one step on {shape.label}: nothing to time")
    same = judge and made == n_iter
    return {
        "cpu": (min(cpu[1 + n_iter]) - min(cpu[1])) / made,
        "wall": (min(wall[1 + n_iter]) - min(wall[1])) / made,
        "steps": made,
        "log_likelihood": log_likelihood(result, X, shape.covariance) if same else None,
    }


def gemm(threads: int | None, dtype: str, size: int = 2048, repeats: int = 5) -> float:
    """GFLOP/s of a large square matrix product."""
    a = np.random.default_rng(0).normal(size=(size, size)).astype(dtype)
    out = a @ a
    clock = time.process_time if threads == 1 else time.perf_counter
    best = float("inf")
    for _ in range(repeats):
        began = clock()
        np.dot(a, a, out)
        best = min(best, clock() - began)
    return 2 * size**3 / best / 1e9
