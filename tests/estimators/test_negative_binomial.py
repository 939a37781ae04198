"""Mixture(family='negative-binomial'): everything that a mixture can do, with counts that vary."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pyarrow import csv
from pyarrow import table as arrow_table
from scipy import stats
from scipy.optimize import minimize
from scipy.sparse import csr_array

import mixfold
from mixfold import Mixture
from mixfold.cli import main
from mixfold.families.exponential import NegativeBinomial
from mixfold.families.exponential.negative_binomial import excess, log1p_residual, log_rising
from mixfold.models.mixtures.mixture import Mixture as MixtureModel
from mixfold.testing import Case

N = 400
NAME = "negative-binomial"


def _draw(rng: np.random.Generator, mean: Any, r: Any, size: Any = None) -> np.ndarray:
    return rng.poisson(rng.gamma(r, np.asarray(mean) / r, size)).astype(float)


@pytest.fixture(scope="module")
def groups() -> np.ndarray:
    return np.random.default_rng(1).random(N) < 0.4


@pytest.fixture(scope="module")
def X(groups: np.ndarray) -> np.ndarray:
    rng = np.random.default_rng(0)
    one = _draw(rng, [3.0, 20.0, 8.0], np.array([2.0, 5.0, 1.0]), (N, 3))
    two = _draw(rng, [15.0, 4.0, 8.0], np.array([4.0, 1.0, 20.0]), (N, 3))
    return np.where(groups[:, None], one, two)


def _fit(X: Any, n_components: int = 2, **settings: Any) -> Mixture:
    return Mixture(NAME, n_components, random_state=0, **settings).fit(X)


def _right(fitted: Mixture, X: Any, groups: np.ndarray) -> float:
    same = (fitted.predict(X) == fitted.predict(X[:1])[0]) == groups[0]
    return float(max((same == groups).mean(), (same != groups).mean()))


# ------------------------------------------------ functions of a count and r


@pytest.mark.parametrize("r", [1e-8, 1e-3, 0.3, 1.0, 5.0, 19.9, 20.1, 50.0, 1e3, 1e6])
def test_sums_over_smaller_counts(r: float) -> None:
    """In closed form and by addition, to full relative precision."""
    for x in (0, 1, 2, 3, 10, 100, 10_000):
        rising = math.fsum(math.log1p(j / r) for j in range(x))
        left = math.fsum(j / (r + j) for j in range(x))
        at = np.array(float(x)), np.array(r)
        np.testing.assert_allclose(log_rising(*at), rising, rtol=1e-12)
        np.testing.assert_allclose(excess(*at), left, rtol=1e-11)


def test_residual_of_the_logarithm() -> None:
    u = np.array([0.0, 1e-9, 1e-5, 1e-2, 0.3, 0.99, 1.01, 5.0, 1e6])
    series = u**2 / 2 - u**3 / 3 + u**4 / 4
    np.testing.assert_allclose(log1p_residual(u)[:3], series[:3], rtol=1e-14)
    np.testing.assert_allclose(log1p_residual(u)[4:], (u - np.log1p(u))[4:], rtol=1e-14)


# ------------------------------------------------ maximum likelihood


@pytest.mark.parametrize(
    ("mean", "r"), [(3, 0.5), (10, 2), (10, 30), (5, 200), (1000, 4), (0.2, 1)]
)
def test_one_component_is_the_maximum_of_scipys_likelihood(mean: float, r: float) -> None:
    x = _draw(np.random.default_rng(3), mean, r, (2000, 1))
    fitted = Mixture(NAME, 1, tol=1e-10).fit(x)

    def loss(v: np.ndarray) -> float:
        return -float(
            stats.nbinom.logpmf(x[:, 0], np.exp(v[1]), 1 / (1 + np.exp(v[0] - v[1]))).sum()
        )

    fine = {"xatol": 1e-9, "fatol": 1e-9, "maxiter": 4000}
    best = minimize(loss, [np.log(x.mean()), np.log(r)], method="Nelder-Mead", options=fine)
    assert fitted.n_iter_ < 40
    np.testing.assert_allclose(fitted.means_[0, 0], np.exp(best.x[0]), rtol=1e-6)
    np.testing.assert_allclose(1 / fitted.dispersions_[0, 0], np.exp(best.x[1]), rtol=1e-4)
    assert fitted.score(x) * len(x) >= -best.fun - 1e-7
    size = 1 / fitted.dispersions_[0, 0]
    wanted = stats.nbinom.logpmf(x[:, 0], size, size / (size + fitted.means_[0, 0]))
    np.testing.assert_allclose(fitted.score_samples(x), wanted, rtol=1e-12, atol=1e-11)


def test_both_bounds_climb_and_the_closer_one_is_faster() -> None:
    """Without extrapolation, from the same start; counts are nearly those of a Poisson law."""
    x = _draw(np.random.default_rng(3), 10.0, 60.0, (1000, 1))
    best = _fit(x, 1, tol=1e-12).score(x) * len(x)
    gaps = {}
    for largest in (None, x.max()):
        case = Case(MixtureModel(1, NegativeBinomial(largest=largest)), x)
        params, values = case.start(), []
        for _ in range(30):
            sums = case.stats(params)
            values.append(case.model.objective(params, sums))
            params = case.update(params, sums).params
        assert np.diff(values).min() >= -1e-9
        gaps[largest] = best - values[-1]
    assert -1e-7 < gaps[x.max()] < 0.2 * gaps[None]


def test_a_mixture(X: np.ndarray, groups: np.ndarray) -> None:
    fitted = _fit(X)
    assert fitted.converged_ and _right(fitted, X, groups) > 0.93
    order = np.argsort(fitted.means_[:, 0])
    np.testing.assert_allclose(fitted.means_[order], [[3, 20, 8], [15, 4, 8]], rtol=0.25)
    np.testing.assert_allclose(
        fitted.dispersions_[order], [[0.5, 0.2, 1.0], [0.25, 1.0, 0.05]], rtol=0.6, atol=0.1
    )
    poisson = Mixture("poisson", 2, random_state=0).fit(X)
    assert fitted.bic(X) < poisson.bic(X)
    free = 1 + 2 * 3 * 2  # a weight; means and dispersions
    assert fitted.bic(X) == pytest.approx(free * np.log(N) - 2 * N * fitted.score(X))


def test_counts_that_vary_no_more_than_poisson_counts_end_at_the_floor() -> None:
    rng = np.random.default_rng(0)
    X = np.column_stack(
        [rng.binomial(10, 0.5, 300), rng.random(300) < 0.3, np.zeros(300), np.full(300, 7)]
    ).astype(float)
    fitted = _fit(X, 1)
    assert fitted.n_iter_ < 10 and fitted.converged_
    np.testing.assert_allclose(fitted.dispersions_[0, [0, 1, 3]], 1e-6)
    assert np.isfinite(fitted.dispersions_).all() and fitted.means_[0, 2] < 1e-11
    poisson = Mixture("poisson", 1).fit(X)
    assert fitted.score(X) == pytest.approx(poisson.score(X), abs=1e-4)
    wide = _fit(X, 1, family_options={"floor": 0.01})
    assert wide.dispersions_.min() == pytest.approx(0.01)


def test_huge_counts_and_poisson_counts() -> None:
    rng = np.random.default_rng(0)
    huge = _fit(_draw(rng, 1e7, 2.0, (500, 1)), 1)
    assert huge.means_[0, 0] == pytest.approx(1e7, rel=0.1)
    assert huge.dispersions_[0, 0] == pytest.approx(0.5, rel=0.2)
    counts = rng.poisson(5, (3000, 2)).astype(float)
    found = _fit(counts, 1)
    assert found.dispersions_.max() < 0.03
    assert found.score(counts) >= Mixture("poisson", 1).fit(counts).score(counts) - 1e-6


# ------------------------------------------------ rows of every kind


def test_missing_entries_weights_and_sparse_rows(X: np.ndarray, groups: np.ndarray) -> None:
    rng = np.random.default_rng(2)
    holed = np.where(rng.random(X.shape) < 0.15, np.nan, X)
    fitted = _fit(holed)
    assert _right(fitted, holed, groups) > 0.9
    filled = fitted.impute(holed)
    np.testing.assert_array_equal(filled[~np.isnan(holed)], holed[~np.isnan(holed)])
    assert not np.isnan(filled).any()
    times = rng.integers(1, 4, N)
    fine: dict[str, Any] = {"tol": 1e-12, "n_components": 1}
    weighed = Mixture(NAME, **fine).fit(X, sample_weight=times.astype(float))
    again = Mixture(NAME, **fine).fit(np.repeat(X, times, axis=0))
    np.testing.assert_allclose(weighed.dispersions_, again.dispersions_, rtol=1e-8)
    thin = _fit(csr_array(holed))
    np.testing.assert_allclose(thin.dispersions_, fitted.dispersions_, rtol=1e-6)
    np.testing.assert_allclose(thin.score_samples(csr_array(X)), thin.score_samples(X))
    single = _fit(X.astype(np.float32))
    assert single.means_.dtype == np.float32
    np.testing.assert_allclose(single.score(X), _fit(X).score(X), rtol=1e-5)


@pytest.mark.parametrize("inference", ["em", "vb"])
def test_streams(X: np.ndarray, groups: np.ndarray, inference: str) -> None:
    stream = Mixture(NAME, 2, inference=inference, random_state=0)
    for first in range(0, N, 100):
        stream.partial_fit(X[first : first + 100])
    assert _right(stream, X, groups) > 0.9


def test_a_cluster_finds_what_threads_find(X: np.ndarray, client: Any) -> None:
    here = _fit(X, n_jobs=1)
    there = _fit(X, executor=client)
    np.testing.assert_array_equal(here.dispersions_, there.dispersions_)


def test_mixed_tables(X: np.ndarray, groups: np.ndarray, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    mixed = np.column_stack([X[:, :2], rng.normal(groups, 1.0), rng.poisson(2, N)])
    kinds = {NAME: [0, 1], "diag": [2], "poisson": [3]}
    for inference in ("em", "vb"):
        fitted = Mixture(kinds, 2, inference=inference, random_state=0).fit(mixed)
        assert fitted.parameters_[NAME]["dispersions"].shape == (2, 2)
        assert _right(fitted, mixed, groups) > 0.9
        fitted.save(tmp_path / "m.mixfold")
        back = mixfold.load(tmp_path / "m.mixfold")
        np.testing.assert_array_equal(back.score_samples(mixed), fitted.score_samples(mixed))
    with pytest.raises(ValueError, match=rf"'gibbs' is not offered for the family '{NAME}'"):
        Mixture(kinds, 2, inference="gibbs").fit(mixed)


# ------------------------------------------------ priors


def test_map_and_variational_bayes(X: np.ndarray, groups: np.ndarray) -> None:
    likely = _fit(X)
    for settings in ({"prior": "default"}, {"inference": "vb"}):
        fitted = _fit(X, **settings)
        assert np.diff(fitted.lower_bounds_).min() >= -1e-12
        assert _right(fitted, X, groups) > 0.93
        assert fitted.score(X) == pytest.approx(likely.score(X), abs=0.01)
    many = _fit(X, 6, inference="vb")
    assert many.effective_components_ == 2
    batches = _fit(X, 6, inference="vb", batch_size=100)
    assert batches.evidence_bound_ == pytest.approx(many.evidence_bound_, abs=0.5)
    strong = _fit(X, 1, prior={"shape": 1e4, "rate": 1e4})
    np.testing.assert_allclose(strong.dispersions_, 1.0, rtol=0.1)


@pytest.mark.parametrize("inference", ["gibbs", "collapsed"])
def test_chains_need_a_known_dispersion(X: np.ndarray, inference: str) -> None:
    with pytest.raises(
        ValueError,
        match=rf"'{inference}' is not offered for the family '{NAME}'.*Use inference='vb' or 'em', "
        r"or give the dispersion by family_options=\{'dispersion'",
    ):
        Mixture(NAME, 2, inference=inference).fit(X)
    chains = Mixture(
        NAME, 3, inference=inference, family_options={"dispersion": [0.3, 0.5, 0.5]},
        n_draws=60, burn_in=60, n_chains=2, random_state=0,
    )  # fmt: skip
    with pytest.warns(UserWarning):  # so few sweeps have not mixed
        chains.fit(X[:150])
    assert 2 <= chains.n_clusters_ <= 5
    np.testing.assert_allclose(chains.dispersions_[0], [0.3, 0.5, 0.5])


def test_a_known_dispersion(X: np.ndarray) -> None:
    fitted = _fit(X, family_options={"dispersion": 0.5})
    np.testing.assert_allclose(fitted.dispersions_, 0.5)
    free = 1 + 2 * 3
    assert fitted.bic(X) == pytest.approx(free * np.log(N) - 2 * N * fitted.score(X))
    given = _fit(X, family_options={"dispersion": [0.1, 0.5, 2.0]}).condition([1], [4.0])
    np.testing.assert_allclose(given.dispersions_[0], [0.1, 2.0])
    with pytest.raises(ValueError, match="dispersion must be positive and finite"):
        _fit(X, family_options={"dispersion": 0.0})


# ------------------------------------------------ using a fit


def test_files_samples_and_conditionals(X: np.ndarray, tmp_path: Path) -> None:
    fitted = _fit(X)
    fitted.save(tmp_path / "m.mixfold")
    back = mixfold.load(tmp_path / "m.mixfold")
    np.testing.assert_array_equal(back.predict_proba(X), fitted.predict_proba(X))
    np.testing.assert_array_equal(back.dispersions_, fitted.dispersions_)
    rows, labels = fitted.sample(20_000)
    for k in range(2):
        mine = rows[labels == k]
        m, phi = fitted.means_[k], fitted.dispersions_[k]
        np.testing.assert_allclose(mine.mean(axis=0), m, rtol=0.06)
        np.testing.assert_allclose(mine.var(axis=0), m + phi * m**2, rtol=0.15)
    given = fitted.condition([0], [40.0])
    assert given.n_features_in_ == 2 and given.weights_.max() > 0.99
    rest = given.score_samples(X[:5, 1:])
    whole = np.column_stack([np.full(5, 40.0), X[:5, 1:]])
    alone = np.column_stack([np.full(5, 40.0), np.full((5, 2), np.nan)])
    wanted = fitted.score_samples(whole) - fitted.score_samples(alone)
    np.testing.assert_allclose(rest, wanted, rtol=1e-8)


def test_objects_are_saved_and_known_by_their_settings(X: np.ndarray, tmp_path: Path) -> None:
    family = NegativeBinomial(dispersion=[0.3, 0.4, 0.5], a=2.0)
    fitted = Mixture(family, 2, inference="vb", random_state=0).fit(X)
    fitted.save(tmp_path / "m.mixfold")
    back = mixfold.load(tmp_path / "m.mixfold")
    assert back.family == family
    np.testing.assert_array_equal(back.score_samples(X), fitted.score_samples(X))
    assert fitted.condition([0], [2.0]).family.dispersion == [0.4, 0.5]
    fitted.set_params(family=NegativeBinomial(dispersion=0.1))
    with pytest.raises(ValueError, match="was fitted with other settings"):
        fitted.predict(X)


def test_command_line_and_report(X: np.ndarray, tmp_path: Path) -> None:
    file, model, page = tmp_path / "t.csv", tmp_path / "m.mixfold", tmp_path / "r.html"
    csv.write_csv(arrow_table({f"gene {j}": X[:, j] for j in range(3)}), file)
    words = ["fit", file, "-m", "mixture", "--family", NAME, "-k", 2, "--seed", 0, "-o", model]
    for command in (words, ["report", model, file, "-o", page]):
        with pytest.raises(SystemExit) as end:
            main([str(word) for word in command])
        assert end.value.code in (0, None)
    assert mixfold.load(model).family == NAME
    text = page.read_text("utf-8")
    assert "2 components" in text and "gene 1" in text
    with pytest.raises(ValueError, match=r"column 1 must hold counts.*row 3 has 0\.5"):
        _fit(np.where(np.arange(12).reshape(4, 3) == 10, 0.5, 1.0))
