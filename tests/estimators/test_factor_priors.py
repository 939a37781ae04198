"""PPCA, FactorAnalysis and models with outputs by MAP, and with a learned number of factors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse

import mixfold
from mixfold import (
    PPCA,
    FactorAnalysis,
    MixtureOfFactorAnalyzers,
    MixtureOfFactorModels,
    MixtureOfPPCA,
    SupervisedPPCA,
)

MIXTURES = {PPCA: MixtureOfPPCA, FactorAnalysis: MixtureOfFactorAnalyzers}
of_both = pytest.mark.parametrize("model", MIXTURES)


def planted(model: Any, d: int, seed: int, n: int = 200, D: int = 8) -> np.ndarray:
    rng, offset = np.random.default_rng([seed, d]), 5.0
    noise = 0.2 * (np.ones(D) if model is PPCA else rng.uniform(0.5, 2.0, D))
    X = rng.normal(size=(n, d)) @ rng.normal(size=(d, D)) + offset
    return X + np.sqrt(noise) * rng.normal(size=(n, D))


def holed(X: np.ndarray, share: float = 0.1) -> np.ndarray:
    return np.where(np.random.default_rng(1).random(X.shape) < share, np.nan, X)


# ------------------------------------------------ a learned number


@of_both
@pytest.mark.parametrize("missing", [False, True])
def test_the_planted_number_is_found(model: Any, missing: bool) -> None:
    for d in (0, 1, 3):
        X = planted(model, d, 0)
        fitted = model("ard").fit(holed(X) if missing else X)
        assert fitted.n_components_ == d
        assert fitted.converged_
        assert fitted.transform(X).shape == (200, d)
        assert fitted.evidence_bound_ < fitted.score(X) * len(X) or missing


@pytest.mark.slow
@of_both
def test_the_planted_number_of_twenty_seeds(model: Any) -> None:
    right = sum(
        model("ard").fit(planted(model, d, seed)).n_components_ == d
        for seed in range(20)
        for d in (1, 2, 4)
    )
    assert right >= 54


@of_both
def test_moments_say_what_the_rows_do(model: Any) -> None:
    X = planted(model, 2, 3)
    fitted = model("ard").fit(X)
    mixture = MIXTURES[model](1, None, inference="vb").fit(X)
    assert fitted.evidence_bound_ == pytest.approx(mixture.evidence_bound_, rel=1e-7)
    assert fitted.n_components_ == mixture.n_factors_[0]
    np.testing.assert_allclose(fitted.score_samples(X), mixture.score_samples(X), atol=1e-3)
    np.testing.assert_allclose(fitted.mean_, mixture.means_[0], rtol=1e-5)
    # the likelihood of the training rows is that at the expected parameters
    assert fitted.bic() == pytest.approx(fitted.bic(X))
    plain = model(2).fit(X)
    assert fitted.score(X) == pytest.approx(plain.score(X), abs=0.05)
    assert fitted.score(X) <= plain.score(X) + 1e-6
    weight = np.random.default_rng(0).integers(0, 3, len(X))
    weighted = model("ard").fit(X, sample_weight=weight)
    repeated = model("ard").fit(np.repeat(X, weight, axis=0))
    assert weighted.evidence_bound_ == pytest.approx(repeated.evidence_bound_, rel=1e-7)
    thin = np.where(X > 4, X, 0.0)
    again = model("ard").fit(sparse.csr_array(thin))
    assert again.evidence_bound_ == pytest.approx(model("ard").fit(thin).evidence_bound_, rel=1e-7)


@of_both
def test_streams_files_and_warm_starts_of_a_learned_number(model: Any, tmp_path: Path) -> None:
    X = planted(model, 2, 4)
    whole = model("ard", warm_start=True).fit(X)
    stream = model("ard")
    for part in np.array_split(X, 3):
        stream.partial_fit(part)
    assert stream.evidence_bound_ == pytest.approx(whole.evidence_bound_, rel=1e-8)
    assert stream.n_components_ == 2
    with pytest.raises(ValueError, match="give a whole number"):
        stream.partial_fit(holed(X))
    whole.save(tmp_path / "model.mixfold")
    again = mixfold.load(tmp_path / "model.mixfold")
    assert again.evidence_bound_ == whole.evidence_bound_
    np.testing.assert_array_equal(again.score_samples(X), whole.score_samples(X))
    bound, steps = whole.evidence_bound_, whole.n_iter_
    again.fit(X)
    assert again.evidence_bound_ == pytest.approx(bound, rel=1e-8)
    assert again.n_iter_ <= steps
    # another fit leaves nothing of it
    again.set_params(n_components=2).fit(X)
    assert not hasattr(again, "evidence_bound_")
    np.testing.assert_allclose(again.score(X), model(2).fit(X).score(X), rtol=1e-6)


# ------------------------------------------------ MAP


@of_both
@pytest.mark.parametrize("missing", [False, True])
def test_factors_that_are_not_needed_vanish(model: Any, missing: bool) -> None:
    X = planted(model, 2, 0, n=400)
    X = holed(X) if missing else X
    fitted = model(4, loadings_prior="ard").fit(X)
    assert fitted.n_components_ == 2
    assert fitted.loadings_.shape == (8, 2)
    assert (np.diff(fitted.lower_bounds_) >= -1e-9).all()
    # the criteria are those of a likelihood
    assert fitted.bic() == pytest.approx(fitted.bic(X))
    plain = model(2).fit(X)
    assert plain.bic() < fitted.bic() < plain.bic() + 2.0


@of_both
def test_a_prior_shrinks(model: Any) -> None:
    X = planted(model, 2, 1, n=30)
    lengths = [
        float((model(2, loadings_prior=p).fit(X).loadings_ ** 2).sum())
        for p in (None, 1.0, 10.0, 100.0)
    ]
    assert (np.diff(lengths) < 0).all()
    # a very weak one changes nothing
    weak = model(2, loadings_prior=1e-9, noise_prior=(1e-9, 1.0)).fit(X)
    assert weak.score(X) == pytest.approx(model(2).fit(X).score(X), abs=1e-6)
    strong = model(2, noise_prior=(1e9, 3.0)).fit(X)
    np.testing.assert_allclose(strong.noise_variance_, 3.0, rtol=1e-4)


def test_a_prior_of_the_noise_keeps_columns_from_having_none() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 5))
    X[:, 1] = X[:, 0] + 1e-5 * rng.normal(size=30)
    with pytest.warns(mixfold.DegenerateWarning):
        assert FactorAnalysis(1).fit(X).heywood_.size
    fitted = FactorAnalysis(1, noise_prior=(3.0, 0.1)).fit(X)
    assert not fitted.heywood_.size
    assert fitted.noise_variance_.min() > 3.0 * 0.1 / 40


@of_both
def test_the_mean_by_decree_weights_and_streams(model: Any) -> None:
    X = planted(model, 2, 2)
    settings: dict[str, Any] = {"loadings_prior": 5.0, "noise_prior": (4.0, 0.3), "tol": 1e-9}
    fitted = model(2, **settings).fit(X)
    weight = np.random.default_rng(0).integers(0, 3, len(X))
    weighted = model(2, **settings).fit(X, sample_weight=weight)
    repeated = model(2, **settings).fit(np.repeat(X, weight, axis=0))
    np.testing.assert_allclose(weighted.get_covariance(), repeated.get_covariance(), rtol=1e-3)
    stream = model(2, **settings)
    for part in np.array_split(X, 4):
        stream.partial_fit(part)
    np.testing.assert_allclose(stream.get_covariance(), fitted.get_covariance(), rtol=1e-3)
    with_holes = model(2, **settings)
    for part in np.array_split(holed(X, 0.02), 4):
        with_holes.partial_fit(part)
    assert with_holes.score(X) > fitted.score(X) - 0.5
    if model is PPCA:
        about = PPCA(2, center=False, **settings).fit(X)
        assert not about.mean_.any()
        by_rows = PPCA(2, center=False, solver="em", **settings).fit(X)
        np.testing.assert_allclose(about.get_covariance(), by_rows.get_covariance(), rtol=1e-2)


# ------------------------------------------------ with outputs


def with_outputs(n: int = 300) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    z = rng.normal(size=(n, 2))
    X = z @ rng.normal(size=(2, 8)) + 0.4 * rng.normal(size=(n, 8))
    return X, z @ rng.normal(size=(2, 2)) + 0.2 * rng.normal(size=(n, 2))


@pytest.mark.parametrize("missing", [False, True])
def test_axes_of_columns_and_numbers_vanish_together(missing: bool, tmp_path: Path) -> None:
    X, y = with_outputs()
    X = holed(X) if missing else X
    fitted = SupervisedPPCA(5, loadings_prior="ard").fit(X, y)
    assert fitted.n_components_ == 2
    assert fitted.solver_ == "em"
    assert (fitted.loadings_[:, 2:] == 0).all()
    assert (fitted.output_loadings_[:, 2:] == 0).all()
    assert (np.diff(fitted.lower_bounds_) >= -1e-9).all()
    plain = SupervisedPPCA(2).fit(X, y)
    assert fitted.score(X, y) == pytest.approx(plain.score(X, y), abs=0.01)
    assert fitted.bic() == pytest.approx(plain.bic(), abs=5.0)
    assert fitted.bic() == pytest.approx(fitted.bic(X, y), abs=0.05)
    fitted.save(tmp_path / "model.mixfold")
    again = mixfold.load(tmp_path / "model.mixfold")
    assert again.n_components_ == 2
    np.testing.assert_array_equal(again.predict(X), fitted.predict(X))


@pytest.mark.parametrize("classifier", ["shared", "per_component"])
@pytest.mark.parametrize("tradeoff", [1.0, 10.0])
def test_axes_of_columns_and_classes_vanish_together(classifier: str, tradeoff: float) -> None:
    X, y = with_outputs()
    classes = (y[:, 0] > 0).astype(int)
    settings: dict[str, Any] = {"classifier": classifier, "tradeoff": tradeoff}
    fitted = MixtureOfFactorModels(1, 5, loadings_prior="ard", **settings).fit(X, classes)
    assert fitted.n_factors_ == 2
    lengths = (fitted.loadings_[0] ** 2).sum(axis=0)
    assert (np.sort(lengths)[:3] < 1e-20).all()
    assert (np.diff(fitted.lower_bounds_) >= -1e-9).all()
    plain = MixtureOfFactorModels(1, 2, **settings).fit(X, classes)
    assert fitted.score(X, classes) >= plain.score(X, classes) - 0.03
    assert MixtureOfFactorModels(1, 2).fit(X, classes).n_factors_ == 2


def test_streams_with_outputs_and_a_prior() -> None:
    X, y = with_outputs()
    classes = (y[:, 0] > 0).astype(int)
    model = MixtureOfFactorModels(1, 2, loadings_prior=3.0, random_state=0)
    whole = SupervisedPPCA(2, loadings_prior=3.0)
    for part, numbers, labels in zip(*(np.array_split(v, 3) for v in (X, y, classes)), strict=True):
        model.partial_fit(part, labels, classes=[0, 1])
        whole.partial_fit(part, numbers)
    assert model.score(X, classes) > 0.9
    assert whole.score(X, y) > 0.9


# ------------------------------------------------ mistakes

X, Y = with_outputs(40)
C = (Y[:, 0] > 0).astype(int)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (
            lambda: PPCA(2, loadings_prior=0.0),
            "'loadings_prior' parameter of PPCA must be None or 'ard' or a number > 0",
        ),
        (lambda: PPCA(2, loadings_prior="much"), "'loadings_prior' parameter"),
        (lambda: PPCA(2, loadings_prior=np.inf), "'loadings_prior' parameter"),
        (
            lambda: FactorAnalysis(2, noise_prior=1.0),
            "'noise_prior' parameter .* must be None or a pair of numbers",
        ),
        (lambda: FactorAnalysis(2, noise_prior=(1.0, 0.0)), "'noise_prior' parameter"),
        (lambda: FactorAnalysis(2, noise_prior=(-1.0, 1.0)), "'noise_prior' parameter"),
        (lambda: FactorAnalysis(2, noise_prior=(1.0, 1.0, 1.0)), "'noise_prior' parameter"),
        (lambda: PPCA("ard", loadings_prior=1.0), "has a prior of the loadings already"),
        (lambda: PPCA("ard", center=False), "Use center=True"),
        (lambda: PPCA("ard", solver="gram"), "Use solver='auto' or 'em'"),
        (lambda: PPCA(2, loadings_prior=1.0, solver="gram"), "a prior has no closed form"),
        (lambda: PPCA("bic", loadings_prior="ard"), "give a whole number or None"),
        (lambda: PPCA(0.9, noise_prior=(1, 1)), "give a whole number or None"),
        (lambda: PPCA("ard", acceleration="quasi-newton"), "use 'auto' or 'squarem'"),
        (lambda: FactorAnalysis("vb"), "'n_components' parameter"),
        (lambda: FactorAnalysis(9, loadings_prior="ard"), "lower n_components"),
        (lambda: SupervisedPPCA(9, loadings_prior="ard"), "lower n_components"),
        (lambda: SupervisedPPCA(2, noise_prior=(1, 1), input_noise=0.1), "leave one of them out"),
        (lambda: SupervisedPPCA(2, loadings_prior=1.0, solver="profile"), "no loadings_prior"),
        (lambda: MixtureOfFactorModels(1, 9, loadings_prior="ard"), "lower n_factors"),
        (
            lambda: MixtureOfFactorModels(1, 2, loadings_prior=1.0, label_solver="gradient"),
            "set label_solver='em'",
        ),
    ],
)
def test_mistakes_are_named(make: Any, words: str) -> None:
    model = make()
    with pytest.raises(ValueError, match=words):
        model.fit(X, C)
