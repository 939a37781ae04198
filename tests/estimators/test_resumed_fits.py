"""A fit that is killed right after any of its checkpoints goes on to the same bits."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mixfold as m
from mixfold import store
from mixfold.engine.chain import ChainSoFar
from mixfold.engine.checkpoints import Checkpoint
from mixfold.models.mixtures.bayes_mixture import BayesMixture
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


def sources() -> np.ndarray:
    rng = np.random.default_rng(3)
    return rng.laplace(size=(300, 3)) @ rng.normal(size=(3, 3))


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
    "PCP shortlists": lambda p: m.PCP(
        3, "documents", document_concentration=None, max_iter=12, checkpoint=p, **HOW
    ).fit(np.vstack([counts(), counts() + np.eye(120, 20)])),
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
    # joint training by L-BFGS
    "DeepFactorNetwork recognition": lambda p: m.DeepFactorNetwork(
        (4, 2), max_iter=25, layer_options={"max_iter": 3}, checkpoint=p, **NEVER
    ).fit(*table()),
    "DeepFactorNetwork decoder": lambda p: m.DeepFactorNetwork(
        (4, 2),
        fine_tune="decoder",
        alpha=0.01,
        beta=0.01,
        max_iter=25,
        layer_options={"max_iter": 3},
        checkpoint=p,
        **NEVER,
    ).fit(*table(), np.linspace(0.5, 2.0, 150)),
    "DeepFactorNetwork map": lambda p: m.DeepFactorNetwork(
        (4, 2),
        fine_tune="map",
        sigma2=1.0,
        max_iter=25,
        layer_options={"max_iter": 3},
        checkpoint=p,
        **NEVER,
    ).fit(with_holes()),
    "DeepFactorNetwork Adam": lambda p: m.DeepFactorNetwork(
        (4, 2), solver="adam", max_epochs=4, layer_options={"max_iter": 3}, checkpoint=p, **HOW
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
    "KMeans": lambda p: m.KMeans(5, max_iter=8, n_init=2, checkpoint=p, **NEVER).fit(table()[0]),
    "GaussianMixture": lambda p: m.GaussianMixture(
        3, covariance_type="diag", max_iter=10, acceleration="squarem", checkpoint=p, **NEVER
    ).fit(table()[0]),
    "BernoulliMixture": lambda p: m.BernoulliMixture(
        3, inference="gibbs", n_chains=2, n_draws=6, burn_in=2, checkpoint=p, **HOW
    ).fit((table()[0] > 1) * 1.0),
    "CategoricalMixture": lambda p: m.CategoricalMixture(
        3, inference="gibbs", n_chains=2, n_draws=6, burn_in=2, checkpoint=p, **HOW
    ).fit(np.clip(np.round(table()[0]), 0, 3)),
    "PoissonMixture": lambda p: m.PoissonMixture(
        3, inference="collapsed", n_chains=4, n_draws=4, burn_in=2, checkpoint=p, **HOW
    ).fit(np.clip(np.round(table()[0]), 0, 9)),
    "MultinomialMixture": lambda p: m.MultinomialMixture(
        3, inference="vb", max_iter=8, checkpoint=p, **NEVER
    ).fit(counts()),
    "Mixture process": lambda p: m.Mixture(
        "full",
        4,
        weights="stick-breaking",
        alpha="learn",
        inference="gibbs",
        n_chains=2,
        n_draws=6,
        burn_in=3,
        checkpoint=p,
        **HOW,
    ).fit(with_holes()),
    "Mixture of kinds": lambda p: m.Mixture(
        {"diag": [0, 1, 2], "bernoulli": [3, 4]},
        3,
        inference="gibbs",
        n_chains=2,
        n_draws=6,
        burn_in=3,
        checkpoint=p,
        **HOW,
    ).fit(np.column_stack([with_holes()[:, :3], (table()[0][:, 3:] > 0) * 1.0])),
    "PPCA NaN": lambda p: m.PPCA(2, max_iter=8, checkpoint=p, **NEVER).fit(with_holes()),
    "MixtureOfPPCA NaN": lambda p: m.MixtureOfPPCA(2, 2, max_iter=8, checkpoint=p, **NEVER).fit(
        with_holes()
    ),
    "MixtureOfFactorAnalyzers": lambda p: m.MixtureOfFactorAnalyzers(
        2, 2, max_iter=8, checkpoint=p, **NEVER
    ).fit(table()[0]),
    "GaussianPCP": lambda p: m.GaussianPCP(3, 2, max_iter=8, checkpoint=p, **NEVER).fit(table()[0]),
    "MLiT": lambda p: m.MLiT(2, 2, max_iter=8, checkpoint=p, **NEVER).fit(table()[0]),
    "SupervisedPPCA": lambda p: m.SupervisedPPCA(
        2, solver="em", max_iter=8, checkpoint=p, **NEVER
    ).fit(*table()),
    "RBM": lambda p: m.RBM(4, max_epochs=6, checkpoint=p, **HOW).fit((table()[0] > 1) * 1.0),
    "DeepBeliefNetwork": lambda p: m.DeepBeliefNetwork(
        (4, 3), max_epochs=3, fine_tune_epochs=3, checkpoint=p, **HOW
    ).fit((table()[0] > 1) * 1.0, np.abs(table()[1])),
    "ICA": lambda p: m.ICA(max_iter=8, n_init=2, checkpoint=p, **NEVER).fit(sources()),
    "GTM": lambda p: m.GTM(n_points=5, n_basis=3, max_iter=8, checkpoint=p, **NEVER).fit(
        table()[0]
    ),
    "KSubspaces": lambda p: m.KSubspaces(3, 1, n_init=6, checkpoint=p, **NEVER).fit(table()[0]),
    "SupervisedMixtureOfPPCA": lambda p: m.SupervisedMixtureOfPPCA(
        2, 2, max_iter=8, checkpoint=p, **NEVER
    ).fit(table()[0], table()[0][:, :1] ** 2),
}


def test_every_estimator_with_a_checkpoint_is_killed() -> None:
    classes = {name: getattr(m, name) for name in store.ESTIMATORS}
    with_one = {n for n, c in classes.items() if "checkpoint" in inspect.signature(c).parameters}
    assert len(with_one) > 20
    assert with_one - {"LatentDirichletAllocation"} <= {name.split()[0] for name in FITS}


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


@pytest.mark.parametrize("name", FITS)
def test_a_fit_that_is_killed_again_and_again(name: str, tmp_path: Path, monkeypatch) -> None:
    fit, path = FITS[name], tmp_path / "fit"
    wanted = fit_quietly(fit, None)._state()
    rng, kills = np.random.default_rng(len(name)), 0
    left = 0

    def write_and_die(self: Checkpoint, progressed: Any) -> None:
        nonlocal left
        self.write(progressed)
        left -= 1
        if left == 0:
            raise Killed

    monkeypatch.setattr(Checkpoint, "offer", write_and_die)
    for _ in range(100):
        left = int(rng.integers(1, 4))  # writes until it dies
        try:
            found = fit_quietly(fit, path)
        except Killed:
            kills += 1
        else:
            break
    require_same(f"after {kills} deaths", found._state(), wanted)
    assert kills >= 1 and not list(tmp_path.iterdir())


# ---------------------------------------------------- samplers


def gibbs(path: Path | None, **more: Any) -> Any:
    settings = {"n_chains": 3, "n_draws": 6, "burn_in": 3, **HOW, **more}
    return m.Mixture("diag", 3, inference="gibbs", checkpoint=path, **settings)


@pytest.mark.parametrize("sweep", [1, 5, 11, 20])
def test_a_sampler_goes_on_after_ctrl_c(sweep: int, tmp_path: Path, monkeypatch) -> None:
    X, path = with_holes(), tmp_path / "fit"
    wanted = fit_quietly(lambda p: gibbs(p).fit(X), None)._state()
    left = sweep
    original = BayesMixture.summarise_sweep

    def interrupt(self: Any, *given: Any) -> Any:
        nonlocal left
        left -= 1
        if left == 0:
            raise KeyboardInterrupt
        return original(self, *given)

    monkeypatch.setattr(BayesMixture, "summarise_sweep", interrupt)
    if sweep <= 3:  # nothing was drawn
        with pytest.raises(KeyboardInterrupt):
            fit_quietly(lambda p: gibbs(p).fit(X), path)
    else:
        stopped = fit_quietly(lambda p: gibbs(p).fit(X), path)
        assert stopped.stop_reason_ == "interrupted"
    assert path.exists()
    left = -1
    resumed = fit_quietly(lambda p: gibbs(p).fit(X), path)
    require_same("after Ctrl-C", resumed._state(), wanted)
    assert resumed.stop_reason_ == "done" and not path.exists()


def test_a_sampler_goes_on_after_its_time_budget(tmp_path: Path) -> None:
    X, path = with_holes(), tmp_path / "fit"
    wanted = fit_quietly(lambda p: gibbs(p).fit(X), None)._state()
    short = fit_quietly(lambda p: gibbs(p, time_budget=1e-9).fit(X), path)
    assert short.stop_reason_ == "time_budget" and path.exists()
    require_same("later", fit_quietly(lambda p: gibbs(p).fit(X), path)._state(), wanted)


def test_a_sampler_refuses_a_checkpoint_of_other_rows_or_in_pieces(tmp_path: Path) -> None:
    X, path = with_holes(), tmp_path / "fit"
    fit_quietly(lambda p: gibbs(p, time_budget=1e-9).fit(X), path)
    with pytest.raises(ValueError, match="was written for other data"):
        gibbs(path).fit(X[:100])
    with pytest.raises(ValueError, match="n_draws differ"):
        gibbs(path, n_draws=7).fit(X)
    tree = store.read(path, "checkpoint")
    chain = ChainSoFar(params=tree["progressed"].chains, n_sweeps=2, point=np.zeros(3))
    broken = {**tree, "progressed": replace(tree["progressed"], under_way=chain)}
    store.write(path, "checkpoint", broken)
    with pytest.raises(store.ModelFileError, match=r"cannot go on.*delete the file to fit"):
        fit_quietly(lambda p: gibbs(p).fit(X), path)


def test_a_checkpoint_holds_thousands_of_draws(tmp_path: Path, monkeypatch) -> None:
    # a file names each of its arrays, and its names may take 16 MB
    sizes = []

    def write_rarely(self: Checkpoint, progressed: Any) -> None:
        under_way = getattr(progressed, "under_way", None)
        if callable(under_way) and under_way.args[4] == 4000:
            self.write(progressed)
            described = store.describe(self.path)
            sizes.append((len(described["arrays"]), self.path.stat().st_size))

    monkeypatch.setattr(Checkpoint, "offer", write_rarely)
    fit_quietly(
        lambda p: gibbs(p, n_chains=1, n_draws=4000, burn_in=1).fit(table()[0][:20]),
        tmp_path / "fit",
    )
    ((n_arrays, n_bytes),) = sizes
    assert n_arrays < 60 and n_bytes < 4000 * 2000
