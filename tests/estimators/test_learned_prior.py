"""A prior of the components that is learned: when, from what, and what is published of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.special import betaln, gammaln, logsumexp, psi

import mixfold
from mixfold import BayesianGaussianMixture, Mixture
from mixfold.contracts import Block
from mixfold.models.mixtures.bayes_mixture import BayesMixture

# Yu (2006), section 2.1.3: means and covariances of five clusters
CLUSTERS = (
    ((3, 3), ((0.4, -0.3), (-0.3, 0.6))),
    ((3, 8), ((1.0, 0.0), (0.0, 0.2))),
    ((5, 6), ((0.4, -0.3), (-0.3, 0.8))),
    ((7, 7), ((0.7, 0.3), (0.3, 0.6))),
    ((8, 4), ((0.3, -0.2), (-0.2, 0.8))),
)


@pytest.fixture(scope="module")
def toy() -> np.ndarray:
    rng = np.random.default_rng(0)
    return np.concatenate([rng.multivariate_normal(m, S, 50) for m, S in CLUSTERS])


def _pair(X: Any, n_components: int = 10, **settings: Any) -> list[Mixture]:
    """Fits without and with a learned prior."""
    return [
        Mixture("full", n_components, inference="vb", learn_prior=learn, **settings).fit(X)
        for learn in (False, True)
    ]


# ------------------------------------------------ fit first, then learn


def test_learning_the_prior_keeps_the_clusters_of_the_toy(toy: np.ndarray) -> None:
    """Learned from the first step on, the prior of equal components held them together."""
    plain, learned = _pair(toy, random_state=1)
    assert learned.evidence_bound_ > plain.evidence_bound_ + 15
    assert plain.effective_components_ == learned.effective_components_ == 5


def test_learning_the_prior_keeps_the_eruptions_apart(shared_data: Any) -> None:
    X = np.genfromtxt(shared_data("old_faithful.csv"), delimiter=",", skip_header=1)
    plain, learned = _pair(X, random_state=0)
    assert plain.effective_components_ == 2
    assert learned.evidence_bound_ > plain.evidence_bound_ + 10
    assert learned.effective_components_ >= 2


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(
    ("family", "options"),
    [
        ("full", {}), ("diag", {}), ("tied", {}), ("full", {"batch_size": 40}),
        ("full", {"n_init": 2}), ("full", {"max_iter": 3}),
    ],
)  # fmt: skip
def test_the_bound_is_never_below_that_of_the_fit_without(
    toy: np.ndarray, family: str, options: dict[str, Any]
) -> None:
    plain, learned = (
        Mixture(
            family, 6, inference="vb", learn_prior=learn, random_state=1, merge_split=False,
            **options,
        ).fit(toy)
        for learn in (False, True)
    )  # fmt: skip
    assert learned.evidence_bound_ > plain.evidence_bound_
    assert (np.diff(learned.lower_bounds_) >= -1e-12 * abs(learned.lower_bound_)).all()


def test_scikit_learns_parameters_have_it_too(toy: np.ndarray) -> None:
    options: dict[str, Any] = {"tol": 1e-6, "max_iter": 500, "init_params": "random"}
    plain, learned = (
        BayesianGaussianMixture(10, learn_prior=learn, random_state=0, **options).fit(toy)
        for learn in (False, True)
    )
    assert learned.evidence_bound_ > plain.evidence_bound_ + 5
    assert learned.effective_components_ == plain.effective_components_ >= 4
    assert learned.degrees_of_freedom_prior_ != plain.degrees_of_freedom_prior_


def test_the_first_batch_of_a_stream_is_fitted_before_its_prior_is_learned(
    toy: np.ndarray,
) -> None:
    rng = np.random.default_rng(0)
    stream = Mixture("full", 10, inference="vb", learn_prior=True, random_state=0)
    for _ in range(2):
        stream.partial_fit(toy[rng.permutation(len(toy))])
    assert stream.effective_components_ >= 5


# ------------------------------------------------ what does not change a fit


def test_weight_two_is_repetition(toy: np.ndarray) -> None:
    twice = np.arange(len(toy)) % 3 == 0
    weighted, repeated = (
        Mixture("diag", 4, inference="vb", learn_prior=True, random_state=0, tol=1e-9)
        for _ in range(2)
    )
    weighted.fit(toy, sample_weight=1.0 + twice)
    repeated.fit(np.concatenate([toy, toy[twice]]))
    assert weighted.evidence_bound_ == pytest.approx(repeated.evidence_bound_, rel=1e-8)
    np.testing.assert_allclose(weighted.prior_["mean"], repeated.prior_["mean"], rtol=1e-4)


def test_a_warm_start_goes_on_learning(toy: np.ndarray) -> None:
    settings: dict[str, Any] = {
        "inference": "vb", "learn_prior": True, "random_state": 0, "merge_split": False,
        "tol": 1e-8,
    }  # fmt: skip
    once = Mixture("diag", 4, **settings).fit(toy)
    again = Mixture("diag", 4, warm_start=True, **settings).fit(toy)
    assert again.n_passes_ > 50
    again.fit(toy)
    assert again.n_passes_ <= 10
    assert again.evidence_bound_ == pytest.approx(once.evidence_bound_, rel=1e-7)
    again.set_params(learn_prior=False).fit(toy)
    plain = Mixture("diag", 4, **{**settings, "learn_prior": False}).fit(toy)
    assert again.prior_["degrees"] == plain.prior_["degrees"] == 1.0


@pytest.mark.parametrize("merge_split", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_an_interrupted_fit_goes_on_in_the_same_bits(
    toy: np.ndarray, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, merge_split: bool
) -> None:
    """Cut in both stages."""
    settings: dict[str, Any] = {
        "inference": "vb", "learn_prior": True, "random_state": 0, "merge_split": merge_split,
    }  # fmt: skip
    whole = Mixture("full", 6, **settings).fit(toy)
    for cut in (3, whole.n_iter_ - 2):
        path = tmp_path / f"cut-{cut}"
        with monkeypatch.context() as patched:
            patched.setattr(BayesMixture, "update", _Interrupt(BayesMixture.update, cut))
            with pytest.warns(UserWarning):
                Mixture("full", 6, checkpoint=path, **settings).fit(toy)
        resumed = Mixture("full", 6, checkpoint=path, **settings).fit(toy)
        assert resumed.evidence_bound_ == whole.evidence_bound_
        np.testing.assert_array_equal(resumed.means_, whole.means_)
        np.testing.assert_array_equal(resumed.prior_["scatter"], whole.prior_["scatter"])


class _Interrupt:
    """The M step, in which a Ctrl-C comes at a certain pass."""

    def __init__(self, step: Any, cut: int) -> None:
        self.step, self.left = step, cut

    def __get__(self, model: Any, kind: Any) -> Any:
        return lambda *parts: self(model, *parts)

    def __call__(self, model: Any, *parts: Any) -> Any:
        self.left -= 1
        if self.left == 0:
            raise KeyboardInterrupt
        return self.step(model, *parts)


# ------------------------------------------------ what is published


FAMILIES: dict[str, Any] = {
    "full": {}, "tied": {}, "diag": {}, "spherical": {}, "known": {"covariance": 0.5},
    "poisson": {}, "binomial": {"trials": 20}, "exponential": {}, "gamma": {"shape": 2.0},
    "negative-binomial": {}, "multinomial": {}, "categorical": {},
}  # fmt: skip


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.filterwarnings("ignore::mixfold.DegenerateWarning")
@pytest.mark.parametrize("family", FAMILIES)
def test_the_prior_that_is_published_is_the_one_of_the_fit(
    toy: np.ndarray, family: str, tmp_path: Path
) -> None:
    """Given as a setting, it makes the same prior; a file knows it too."""
    X = toy + 0.1 if FAMILIES[family] or family == "exponential" else toy
    if family in ("poisson", "binomial", "multinomial", "categorical", "negative-binomial"):
        X = np.maximum(np.round(toy), 0)
    settings: dict[str, Any] = {
        "inference": "vb", "random_state": 0, "merge_split": False, "max_iter": 15,
        "family_options": FAMILIES[family],
    }  # fmt: skip
    fitted = Mixture(family, 3, learn_prior=True, **settings).fit(X)
    same = Mixture(family, 3, prior=fitted.prior_, **settings)
    same._params, same._maxima = fitted._params, fitted._maxima
    same._occurring = fitted._occurring
    given = same._model(X.shape[1]).conjugate
    before = fitted._params.prior
    moments = _no_rows(fitted, X)
    made = given.prior(fitted._params.components.frame, moments)
    for name in before.__dataclass_fields__:
        old, new = getattr(before, name), getattr(made, name)
        np.testing.assert_allclose(new, old, rtol=1e-10, atol=1e-12)
    fitted.save(tmp_path / "model")
    back = mixfold.load(tmp_path / "model")
    for name, value in fitted.prior_.items():
        np.testing.assert_array_equal(back.prior_[name], value)


def _no_rows(fitted: Mixture, X: np.ndarray) -> Any:
    """Moments of all rows as one component, of which a prior that is told needs nothing."""
    family = fitted._model(X.shape[1]).family
    reading = family.mode(fitted._model(X.shape[1]).conjugate.point(fitted._params.components))
    scores = family.scores(Block(X), reading)
    shares = np.zeros((len(X), fitted.n_components))
    shares[:, 0] = 1.0
    return family.moments(scores, shares, reading)


def test_the_priors_of_several_families_are_published_by_name(toy: np.ndarray) -> None:
    X = np.column_stack([toy, np.round(toy[:, 0])])
    settings: dict[str, Any] = {"inference": "vb", "random_state": 0, "merge_split": False}
    family = {"full": [0, 1], "poisson": [2]}
    learned = Mixture(family, 6, learn_prior=True, **settings).fit(X)
    assert set(learned.prior_) == {"full", "poisson"}
    assert learned.prior_["poisson"]["a"].shape == (1,)
    again = Mixture(family, 6, prior=learned.prior_, **settings).fit(X)
    assert again.evidence_bound_ == pytest.approx(learned.evidence_bound_, abs=5)


def test_maximum_likelihood_publishes_no_prior(toy: np.ndarray) -> None:
    mixture = Mixture("full", 2, inference="vb", random_state=0).fit(toy)
    assert mixture.prior_["degrees"] == 2.0
    mixture.set_params(inference="em").fit(toy)
    assert not hasattr(mixture, "prior_")


# ------------------------------------------------ the order of sticks


def test_the_bound_belongs_to_the_published_order_of_sticks() -> None:
    """Recomputed by scipy from what is published: in another order it is another number."""
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(0, 1, 60), rng.normal(6, 1, 40), rng.normal(-7, 2, 90)])[:, None]
    mixture = Mixture(
        "diag", 4, weights="stick-breaking", inference="vb", alpha=3.0, random_state=0, tol=1e-10
    ).fit(X)
    # the published parameters are the best ones for the counts, up to the tolerance
    exact = mixture.evidence_bound_
    assert _bound(mixture, X, mixture.stick_order_) == pytest.approx(exact, abs=1e-3)
    assert sorted(mixture.stick_order_) == [0, 1, 2, 3]
    assert abs(_bound(mixture, X, mixture.stick_order_[::-1]) - exact) > 0.05
    assert Mixture("diag", 2, inference="vb", random_state=0).fit(X).stick_order_ is None


def _bound(mixture: Mixture, X: np.ndarray, order: np.ndarray) -> float:
    """The bound of the log evidence of one column, with the component order[k] at stick k."""
    counts, prior = mixture.counts_[order], mixture.prior_
    later = np.append(np.cumsum(counts[:0:-1])[::-1], 0.0)
    first, second = (1 + counts)[:-1], (mixture.alpha_ + later)[:-1]
    broken, left = psi(first) - psi(first + second), psi(second) - psi(first + second)
    log_weights = np.append(broken, 0.0) + np.append(0.0, np.cumsum(left))
    kl = (betaln(1, mixture.alpha_) - betaln(first, second)).sum()
    kl += ((first - 1) * broken + (second - mixture.alpha_) * left).sum()
    beta = prior["precision"] + counts
    a_0, b_0 = prior["degrees"] / 2, prior["scatter"][0] / 2
    a = a_0 + counts / 2
    mean, variance = mixture.means_[order, 0], mixture.covariances_[order, 0]
    b = a * variance
    log_rate = psi(a) - np.log(b)
    kl += (a_0 * np.log(b / b_0) - gammaln(a) + gammaln(a_0)).sum()
    kl += ((a - a_0) * psi(a) - (b - b_0) * a / b).sum()
    ratio = prior["precision"] / beta
    away = prior["precision"] * (mean - prior["mean"][0]) ** 2 / variance
    kl += 0.5 * (ratio - 1 - np.log(ratio) + away).sum()
    rows = log_rate - np.log(2 * np.pi) - 1 / beta - (X - mean) ** 2 / variance
    return float(logsumexp(log_weights + 0.5 * rows, axis=1).sum() - kl)
