"""MatrixFactorization by beta divergences: scikit-learn, direct minimisation, laws, refusals."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import minimize
from sklearn.decomposition import NMF

import mixfold
from mixfold import MatrixFactorization
from mixfold.contracts import Block
from mixfold.engine.sources import open_source
from mixfold.math.beta_divergence import BetaDivergence
from mixfold.math.link_functions import LINKS
from mixfold.models.networks.factorization.divergence import DivergenceCodes, DivergenceModel
from mixfold.models.networks.factorization.records import FactorizationParams, Layer

POWERS = (-0.5, 0.0, 0.5, 1.0, 1.5, 2.5)
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


@pytest.fixture(scope="module")
def X():
    rng = np.random.default_rng(0)
    return rng.gamma(6, rng.gamma(1, size=(70, 2)) @ rng.gamma(0.5, 2, size=(2, 7)) / 6) + 0.05


def nmf(loss, **settings) -> MatrixFactorization:
    given = {"link": "identity", "fit_bias": False, "random_state": 0, **settings}
    return MatrixFactorization(2, loss=loss, nonneg_codebook=True, nonneg_sources=True, **given)


# ------------------------------------------------ what it must be equal to


@pytest.mark.parametrize("power", POWERS)
def test_scikit_learn_finds_nothing_better(X, power) -> None:
    """From the sources and patterns found here its multiplicative updates gain nothing."""
    model = nmf(power, tol=1e-7, max_iter=600).fit(X)
    ours = BetaDivergence(power).value(X, model.reconstruct(X)).sum()
    np.testing.assert_allclose(model.reconstruction_error(X) * len(X), ours, rtol=1e-12)
    peer = NMF(2, init="custom", solver="mu", beta_loss=power, tol=0, max_iter=300)
    W = peer.fit_transform(X, W=model.transform(X), H=model.components_.copy())
    theirs = BetaDivergence(power).value(X, W @ peer.components_).sum()
    assert theirs > ours * (1 - 2e-3)
    # and from its own starts it ends no lower
    ends = []
    for seed in range(3):
        own = NMF(2, init="random", random_state=seed, solver="mu", beta_loss=power, max_iter=400)
        ends.append(BetaDivergence(power).value(X, own.fit_transform(X) @ own.components_).sum())
    if power >= 0:
        assert ours < 1.01 * min(ends)


@pytest.mark.parametrize("power", [0.0, 1.0])
def test_direct_minimisation_finds_nothing_better(X, power) -> None:
    """Quasi-Newton steps on logarithms of all entries, with bias and both penalties."""
    X = X[:12, :5].copy()
    X[2, 3] = X[7, 0] = np.nan
    seen, d = ~np.isnan(X), BetaDivergence(power)
    settings = {"alpha": 0.1, "beta": 0.2, "sigma2": 0.7, "fit_bias": True}
    model = nmf(power, tol=1e-9, max_iter=1500, **settings).fit(X)

    def cost(z):
        S, A, b = np.split(np.exp(z), [24, 34])
        V = S.reshape(12, 2) @ A.reshape(2, 5) + b
        value = d.value(X[seen], V[seen]).sum() / 0.7 + 0.1 * S.sum() + 0.2 * A.sum()
        up, down = d.slopes(np.where(seen, X, 1.0), V)
        G = np.where(seen, up - down, 0.0) / 0.7
        slopes = (G @ A.reshape(2, 5).T + 0.1).ravel(), (S.reshape(12, 2).T @ G + 0.2).ravel()
        return value, np.concatenate([*slopes, G.sum(axis=0)]) * np.exp(z)

    parts = model.transform(X), model.components_, model.bias_
    z = np.log(np.maximum(np.concatenate([p.ravel() for p in parts]), 1e-12))
    value, slope = cost(z)
    np.testing.assert_allclose(-model.lower_bound_ * 12, value, rtol=1e-5)
    assert np.abs(slope).max() < 2e-2  # the gradient in logarithms is zero at the bounds, too
    numeric = [(cost(z + e)[0] - cost(z - e)[0]) / 2e-6 for e in 1e-6 * np.eye(len(z))]
    np.testing.assert_allclose(slope, numeric, atol=1e-5)
    found = minimize(cost, z, jac=True, method="L-BFGS-B", bounds=[(-40, 40)] * len(z))
    assert found.fun > value - 1e-3 * abs(value)


@pytest.mark.parametrize("power", [1.0, 1.4, 2.0])
@pytest.mark.parametrize("link", ["identity", "saturating", "logistic"])
def test_codes_of_convex_losses_are_the_best(X, power, link) -> None:
    """The best ones by a general solver; the range of the link is one of bounds."""
    rng = np.random.default_rng(5)
    layer, d = Layer(rng.gamma(1, 1.5, size=(3, 7)), np.full(7, 0.1)), BetaDivergence(power)
    one = LINKS[link]
    low = max(one.lower, 1e-9)
    phi = DivergenceCodes(layer, one, 0.0, 1.0, d, 1e-12, 5000).solve(X[:8])
    for row, code in zip(X[:8], phi, strict=True):

        def cost(p, row=row):
            return d.value(row, p @ layer.codebook + layer.bias).sum()

        ends = (low, one.upper if np.isfinite(one.upper) else None)
        best = minimize(cost, np.full(3, 0.4), method="L-BFGS-B", bounds=[ends] * 3,
                        options={"ftol": 1e-15, "gtol": 1e-10})  # fmt: skip
        assert cost(code) < best.fun + 1e-7 * (1 + best.fun)


# ------------------------------------------------ laws


@pytest.mark.parametrize("settings", [
    {}, {"solver": "multiplicative"}, {"link": "saturating", "fit_bias": True}, {"init": "random"},
    {"link": "logistic", "beta": 0.1}, {"alpha": 0.1, "beta": 0.1}, {"sigma2": 0.1},
], ids=str)  # fmt: skip
@pytest.mark.parametrize("power", [0.0, "kullback-leibler", 1.5, 2.5])
def test_the_objective_never_falls(X, power, settings) -> None:
    holed = np.where(np.random.default_rng(2).random(X.shape) < 0.1, np.nan, X)
    model = nmf(power, max_iter=7, **settings).fit(holed)
    trace = np.array(model.lower_bounds_)
    assert (np.diff(trace) >= -1e-9 * np.abs(trace[0])).all() and trace[-1] > trace[0]
    assert not model.events_ and (model.components_ > 0).all()
    assert np.isfinite(model.transform(holed)).all() and np.isfinite(model.reconstruct(holed)).all()


def test_batches_have_a_bound_that_never_falls(X) -> None:
    model = nmf(1, batch_size=20, max_iter=60, beta=0.1, alpha=0.1).fit(X)
    trace = np.array(model.lower_bounds_)
    assert (np.diff(trace) >= -1e-8 * np.abs(trace[0])).all()
    whole = nmf(1, beta=0.1, alpha=0.1, max_iter=200).fit(X)
    np.testing.assert_allclose(model.lower_bound_, whole.lower_bound_, rtol=5e-2)


@pytest.mark.parametrize("power", [0.0, 1.0, 2.5])
def test_weights_are_repeats_and_rows_without_entries_are_none(X, power) -> None:
    weight = np.random.default_rng(0).integers(0, 3, len(X))
    rows = np.repeat(np.arange(len(X)), weight)
    one = nmf(power, max_iter=15).fit(X, sample_weight=weight)
    two = nmf(power, max_iter=15).fit(X[rows])
    np.testing.assert_allclose(one.lower_bound_, two.lower_bound_, rtol=1e-8)
    np.testing.assert_allclose(one.components_, two.components_, rtol=1e-5, atol=1e-9)
    # a row without entries adds nothing but its weight
    empty = X.copy()
    empty[3] = np.nan
    layer = Layer(one.components_, one.bias_)
    model = DivergenceModel(
        FactorizationParams(layer, np.ones(2)), LINKS["identity"], BetaDivergence(power), 0.1, 0.1,
        bias=False,
    )  # fmt: skip
    reading = model.prepare(model.first)
    sums, others = (
        model.expect(reading, Block(rows, complete=False), None)
        for rows in (empty, np.delete(empty, 3, axis=0))
    )
    for name in ("push", "pull", "loss", "ground", "cost"):
        np.testing.assert_allclose(getattr(sums, name), getattr(others, name), rtol=1e-10)
    assert (one.transform(empty[3:4]) == 0).all() and sums.weight == 70


def test_forms_of_data_do_not_matter(X) -> None:
    X = np.where(np.quantile(X, 0.4) > X, 0.0, X)
    one = nmf("kullback-leibler", max_iter=30).fit(X)

    class Cut:
        """The same rows in small blocks."""

        def __init__(self, source):
            self._source = source

        def __getattr__(self, name):
            return getattr(self.__dict__["_source"], name)

        def blocks(self, max_rows=None):
            return self._source.blocks(17)

    for rows in (sparse.csr_array(X), Cut(open_source(X))):
        other = nmf(1.0, max_iter=30).fit(rows)
        np.testing.assert_allclose(other.lower_bound_, one.lower_bound_, rtol=1e-8)
        np.testing.assert_allclose(other.components_, one.components_, rtol=1e-4, atol=1e-8)
    single = nmf(1, max_iter=30).fit(X.astype("f4"))
    assert single.components_.dtype == np.float32
    np.testing.assert_allclose(single.lower_bound_, one.lower_bound_, rtol=1e-4)


def test_two_is_squared(X) -> None:
    one, two = nmf(2.0, max_iter=30).fit(X), nmf("squared", max_iter=30).fit(X)
    np.testing.assert_array_equal(one.components_, two.components_)


def test_counts_are_completed(X) -> None:
    """Poisson means of rank two are given back where entries were hidden."""
    rng = np.random.default_rng(4)
    means = rng.gamma(1, size=(120, 2)) @ rng.gamma(0.5, 40, size=(2, 8)) + 1
    counts = rng.poisson(means).astype(float)
    hidden = rng.random(counts.shape) < 0.15
    model = nmf(1, fit_bias=True, tol=1e-5, max_iter=100).fit(np.where(hidden, np.nan, counts))
    found = model.reconstruct(np.where(hidden, np.nan, counts))
    plain = BetaDivergence(1.0).value(means, np.broadcast_to(counts.mean(axis=0), means.shape))
    lost = BetaDivergence(1.0).value(means, found)
    assert lost[hidden].mean() < 0.1 * plain[hidden].mean()


def test_a_stream_learns_and_a_file_remembers(X, tmp_path) -> None:
    rng = np.random.default_rng(7)
    stream = nmf(1)
    for _ in range(12):
        stream.partial_fit(X[rng.choice(len(X), 35, replace=False)])
    whole = nmf(1, max_iter=200).fit(X)
    assert stream.reconstruction_error(X) < 1.1 * whole.reconstruction_error(X)
    stream.save(tmp_path / "one.mixfold")
    loaded = mixfold.load(tmp_path / "one.mixfold")
    np.testing.assert_array_equal(loaded.transform(X), stream.transform(X))
    for one in (loaded, stream):
        one.partial_fit(X[:30])
    np.testing.assert_array_equal(loaded.components_, stream.components_)


def test_a_checkpoint_goes_on(X, tmp_path) -> None:
    path = tmp_path / "fit.checkpoint"
    whole = nmf(1, max_iter=25).fit(X)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        nmf(1, max_iter=25, checkpoint=path, time_budget=1e-6).fit(X)
    resumed = nmf(1, max_iter=25, checkpoint=path).fit(X)
    np.testing.assert_allclose(resumed.components_, whole.components_, rtol=1e-10)


# ------------------------------------------------ what is refused


def test_zeros_and_signs_are_refused(X) -> None:
    zero = X.copy()
    zero[0, 0] = 0.0
    with pytest.raises(ValueError, match="X holds 0, where the loss of the power 0"):
        nmf("itakura-saito").fit(zero)
    model = nmf("itakura-saito", max_iter=5).fit(X)
    with pytest.raises(ValueError, match="X holds 0"):
        model.transform(zero)
    with pytest.raises(ValueError, match="Negative values"):
        model.transform(-X)
    with pytest.raises(ValueError, match="Negative values"):
        nmf(1).fit(-X)


@pytest.mark.parametrize(("settings", "words"), [
    ({"loss": 1, "nonneg_codebook": False}, "needs nonneg_codebook=True"),
    ({"loss": 1, "nonneg_sources": False}, "needs nonneg_codebook=True and sources"),
    ({"loss": 1, "solver": "gradient"}, "has no solver='gradient'"),
    ({"loss": 1, "codebook_norm": 1.0}, "takes no codebook_norm"),
    ({"loss": 1, "alpha": 0.1}, "needs beta > 0, too"),
    ({"loss": 1, "alpha": 0.1, "beta": 0.1, "link": "saturating"}, "needs link='identity'"),
    ({"loss": 0, "batch_size": 10}, "cannot be learned in batches"),
    ({"loss": "poisson"}, "must be one of"),
    ({"loss": np.inf}, "a finite number"),
])  # fmt: skip
def test_settings_that_have_no_meaning_are_refused(X, settings, words) -> None:
    given = {"link": "identity", "nonneg_codebook": True, "nonneg_sources": True, **settings}
    with pytest.raises(ValueError, match=words):
        MatrixFactorization(2, **given).fit(X)


def test_labels_are_refused(X) -> None:
    y = np.arange(len(X)) % 2
    with pytest.raises(ValueError, match="learns sources without labels"):
        nmf(1).fit(X, y)
    nmf(1, supervised=False, max_iter=3).fit(X, y)
