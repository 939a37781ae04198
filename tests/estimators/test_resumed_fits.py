"""A fit that is killed right after any of its first checkpoints goes on to the same bits."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mixfold as m
from mixfold.engine.checkpoints import Checkpoint
from mixfold.testing.compare import require_same

# how many of the first checkpoints a fit is killed at
EARLY = 6


class Killed(BaseException):
    """As if the process were gone: nobody may catch it."""


def table() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 5)) + 2.0 * rng.integers(0, 3, (150, 1)) * rng.normal(size=5)
    y = (X[:, 0] + rng.normal(size=150) > 1).astype(int)
    y[::7] = -1
    return X, y


def with_holes() -> np.ndarray:
    X = table()[0]
    X[np.random.default_rng(1).random(X.shape) < 0.1] = np.nan
    return X


def counts() -> np.ndarray:
    rng = np.random.default_rng(2)
    return (
        rng.poisson(rng.dirichlet(np.ones(4), 120) @ rng.dirichlet(np.full(20, 0.2), 4) * 30) * 1.0
    )


HOW = {"random_state": 0}
NEVER = {"tol": 0.0, "random_state": 0}
FITS: dict[str, Callable[[Any], Any]] = {
    "PLSI": lambda p: m.PLSI(3, max_iter=8, checkpoint=p, **NEVER).fit(counts()),
    "PLSI tempered": lambda p: m.PLSI(
        3, max_iter=8, tempering=0.8, doc_smoothing=0.1, smoothing=0.1, checkpoint=p, **NEVER
    ).fit(counts()),
    "LDA": lambda p: m.LatentDirichletAllocation(3, max_iter=8, checkpoint=p, **NEVER).fit(
        counts()
    ),
    "LDA online": lambda p: m.LatentDirichletAllocation(
        3, learning_method="online", batch_size=32, max_iter=6, checkpoint=p, **NEVER
    ).fit(counts()),
    "PCP": lambda p: m.PCP(3, 8, max_iter=40, n_init=2, checkpoint=p, **HOW).fit(counts()),
    "PCP mean field": lambda p: m.PCP(
        3, 6, inference="mean_field", max_iter=8, checkpoint=p, **NEVER
    ).fit(counts()),
    "PCP shortlists": lambda p: m.PCP(3, "documents", max_iter=12, checkpoint=p, **HOW).fit(
        np.vstack([counts(), counts() + np.eye(120, 20)])
    ),
    "MatrixFactorization": lambda p: m.MatrixFactorization(
        3, max_iter=8, alpha=0.1, gamma=0.1, checkpoint=p, **NEVER
    ).fit(*table()),
    "MatrixFactorization gradient": lambda p: m.MatrixFactorization(
        3, solver="gradient", max_iter=8, checkpoint=p, **NEVER
    ).fit(*table()),
    "MatrixFactorization NaN": lambda p: m.MatrixFactorization(
        3, link="logistic", max_iter=8, checkpoint=p, **NEVER
    ).fit(with_holes()),
    "MatrixFactorization batches": lambda p: m.MatrixFactorization(
        3, alpha=0.1, batch_size=50, max_iter=8, checkpoint=p, **NEVER
    ).fit(*table()),
    "DeepFactorNetwork": lambda p: m.DeepFactorNetwork(
        (4, 2), max_iter=6, max_epochs=3, checkpoint=p, **HOW
    ).fit(*table()),
    "GaussianMixture NaN": lambda p: m.GaussianMixture(
        3, max_iter=10, n_init=2, checkpoint=p, **NEVER
    ).fit(with_holes()),
    "BayesianGaussianMixture moves": lambda p: m.BayesianGaussianMixture(
        6, merge_split=True, checkpoint=p, **HOW
    ).fit(table()[0]),
    "Mixture gibbs": lambda p: m.Mixture(
        "diag", 3, inference="gibbs", n_chains=2, n_draws=6, burn_in=3, checkpoint=p, **HOW
    ).fit(table()[0]),
    "Mixture gibbs NaN": lambda p: m.Mixture(
        "diag", 3, inference="gibbs", n_chains=2, n_draws=6, burn_in=3, thin=2, checkpoint=p, **HOW
    ).fit(with_holes()),
    "Mixture collapsed": lambda p: m.Mixture(
        "diag", 3, inference="collapsed", n_chains=3, n_draws=5, burn_in=3, checkpoint=p, **HOW
    ).fit(table()[0]),
    "Mixture memoised": lambda p: m.Mixture(
        "diag", 3, inference="vb", batch_size=40, max_iter=8, checkpoint=p, **NEVER
    ).fit(table()[0]),
    "FactorAnalysis NaN": lambda p: m.FactorAnalysis(2, max_iter=8, checkpoint=p, **NEVER).fit(
        with_holes()
    ),
    "MixtureOfFactorModels": lambda p: m.MixtureOfFactorModels(
        2, 2, max_iter=8, checkpoint=p, **NEVER
    ).fit(*table()),
    "SupervisedMixtureOfPPCA": lambda p: m.SupervisedMixtureOfPPCA(
        2, 2, max_iter=8, checkpoint=p, **NEVER
    ).fit(table()[0], table()[0][:, :1] ** 2),
}


def fit_quietly(fit: Callable[[Any], Any], path: Path | None) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return fit(path)


@pytest.mark.parametrize("name", FITS)
def test_a_killed_fit_goes_on_to_the_same_bits(name: str, tmp_path: Path, monkeypatch) -> None:
    fit = FITS[name]
    path = tmp_path / "fit"
    wanted = fit_quietly(fit, path)._state()
    left: list[int] = []  # writes that are still allowed; empty: any number

    def write_always(self: Checkpoint, progressed: Any) -> None:
        self.write(progressed)
        if left and not left.pop():
            raise Killed

    monkeypatch.setattr(Checkpoint, "offer", write_always)
    for number in range(EARLY):
        left[:] = [0] + [1] * number
        try:
            fit_quietly(fit, path)
        except Killed:
            assert list(tmp_path.iterdir())
        else:
            assert number > 0, "the fit wrote next to no checkpoint: the test shows nothing"
            break
        left.clear()
        found = fit_quietly(fit, path)
        require_same(f"killed at checkpoint {number + 1}", found._state(), wanted)
        assert not list(tmp_path.iterdir())  # neither the checkpoint nor a temporary file


@pytest.mark.parametrize("name", ["PLSI", "LDA", "PCP shortlists", "PCP mean field",
                                  "MatrixFactorization", "MatrixFactorization gradient"])  # fmt: skip
def test_a_fit_that_is_killed_again_and_again(name: str, tmp_path: Path, monkeypatch) -> None:
    fit, path, kills = FITS[name], tmp_path / "fit", 0
    wanted = fit_quietly(fit, None)._state()
    write = Checkpoint.write
    dying = True

    def write_and_die(self: Checkpoint, progressed: Any) -> None:
        write(self, progressed)
        if dying:
            raise Killed

    monkeypatch.setattr(Checkpoint, "offer", write_and_die)
    for _ in range(5):
        try:
            fit_quietly(fit, path)
        except Killed:
            kills += 1
    dying = False
    require_same("after five deaths", fit_quietly(fit, path)._state(), wanted)
    assert kills == 5
