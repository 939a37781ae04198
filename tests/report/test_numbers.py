"""What the page says equals what the estimator answers, however the rows are cut."""

from __future__ import annotations

import re

import numpy as np
import pytest
from sklearn.datasets import load_iris, load_wine
from sklearn.metrics import (
    adjusted_rand_score,
    confusion_matrix,
    log_loss,
    r2_score,
)

from mixfold import (
    PPCA,
    GaussianMixture,
    KMeans,
    MixtureClassifier,
    PoissonMixture,
    SupervisedPPCA,
)
from mixfold.report.projection import plane
from mixfold.report.rows import summary as looking
from mixfold.report.rows.summary import summarise_rows
from mixfold.report.sections.components import weight_limits
from mixfold.report.sections.labels import adjusted_rand
from mixfold.report.sections.missing import recovery
from mixfold.report.subject import Subject
from mixfold.report.surprise import reasons_of


@pytest.fixture(params=[None, 37], ids=["whole", "pieces"])
def pieces(request, monkeypatch) -> None:
    """All rows at once, or a few at a time."""
    if request.param:
        monkeypatch.setattr(looking, "_MOST_ROWS", request.param)
        monkeypatch.setattr(looking, "_LEAST_ROWS", request.param)


def look(model, X, y=None, weight=None, rows=5000):
    return summarise_rows(model, X, y, weight, rows, 0)


def subject_of(model, X, y=None) -> Subject:
    from datetime import datetime

    return Subject(model, model, look(model, X, y), None, datetime.now(), 0, 5000)


def test_columns(pieces, mixture: GaussianMixture, holed: np.ndarray) -> None:
    columns = look(mixture, holed + 1e8).columns
    np.testing.assert_array_equal(columns.missing, np.isnan(holed).sum(axis=0))
    np.testing.assert_allclose(columns.mean - 1e8, np.nanmean(holed, axis=0), atol=1e-6)
    np.testing.assert_allclose(columns.deviation, np.nanstd(holed, axis=0), rtol=1e-6)
    np.testing.assert_allclose(columns.maximum - 1e8, np.nanmax(holed, axis=0), atol=1e-6)
    assert columns.incomplete_rows == np.isnan(holed).any(axis=1).sum()
    assert columns.n_rows == len(holed) == columns.weight


def test_groups(pieces, mixture: GaussianMixture, holed: np.ndarray) -> None:
    sums, shares = look(mixture, holed).groups, mixture.predict_proba(holed)
    np.testing.assert_allclose(sums.mass, shares.sum(axis=0))
    np.testing.assert_array_equal(sums.count, np.bincount(mixture.predict(holed), minlength=3))
    top = shares.max(axis=1)
    assert sums.certainty.sum() == pytest.approx(top.sum())
    assert sums.unsure.sum() == (top < 0.8).sum()
    np.testing.assert_allclose(sums.overlap.sum(axis=1), 1.0)
    for k in range(3):
        there = ~np.isnan(holed)
        r = shares[:, k, None] * there
        mean = (r * np.nan_to_num(holed)).sum(axis=0) / r.sum(axis=0)
        np.testing.assert_allclose(sums.means[k], mean)


def test_weights_are_repetitions(pieces, mixture: GaussianMixture, holed: np.ndarray) -> None:
    weight = np.arange(len(holed)) % 3
    a, b = look(mixture, holed, weight=weight), look(mixture, np.repeat(holed, weight, axis=0))
    np.testing.assert_allclose(a.groups.together, b.groups.together)
    np.testing.assert_allclose(a.columns.deviation, b.columns.deviation)
    assert a.odd.mean == pytest.approx(b.odd.mean)
    assert a.n_rows == (weight > 0).sum() and b.columns.weight == a.columns.weight
    assert not (weight[a.sampled.rows] == 0).any() and not (weight[a.odd.rows] == 0).any()


def test_intervals_of_weights(page, mixture: GaussianMixture, holed: np.ndarray) -> None:
    """Of the rows of the fit by the profile; of many others by the curvature, for as many rows."""
    found = weight_limits(subject_of(mixture, holed))
    w = np.asarray(mixture.weights_)
    width = 2 * 1.96 * np.sqrt(w * (1 - w) / 240)
    np.testing.assert_allclose(found.high - found.low, width, rtol=0.1)
    other = weight_limits(subject_of(mixture, np.tile(holed, (9, 1))))
    np.testing.assert_allclose(other.high - other.low, width, rtol=0.1)
    words = page(mixture, holed).words["components"]
    assert "95% interval" in words and f"{found.low[0]:.1%} to {found.high[0]:.1%}" in words


def test_no_interval_where_groups_are_not_determined(page, rng: np.random.Generator) -> None:
    X = rng.normal(size=(500, 1)) + 1.5 * (np.arange(500)[:, None] % 2)
    model = GaussianMixture(2, covariance_type="tied", random_state=0).fit(X)
    words = page(model, X).words
    assert "No 95% interval: BIC is no worse with one of these" in words["components"]
    assert "as well without any one of components 0 and 1" in words["head"]


def test_oddest_rows(pieces, mixture: GaussianMixture, holed: np.ndarray) -> None:
    odd, tails = look(mixture, holed).odd, mixture._log_tails(holed, "row", 1000, 0)
    lowest = np.argsort(tails, kind="stable")[: len(odd.rows)]
    np.testing.assert_array_equal(odd.rows, lowest)
    np.testing.assert_allclose(odd.values, tails[lowest])
    np.testing.assert_array_equal(odd.X, holed[lowest])
    np.testing.assert_array_equal(odd.group, mixture.predict(holed)[lowest])
    assert odd.mean == pytest.approx(tails.mean())
    assert odd.beyond == (mixture.oddness(holed, n_draws=1000) > 0.99).sum()


def test_oddest_rows_of_classes_and_of_centres(pieces) -> None:
    X, y = load_iris(return_X_y=True)
    model = MixtureClassifier(GaussianMixture(1), random_state=0).fit(X, y)
    odd, density = look(model, X).odd, model.score_samples(X)
    drawn = model.score_samples(model.sample(1000, random_state=0)[0])
    for row, value in zip(odd.rows, odd.values, strict=True):
        above = (drawn <= density[row]).sum()
        if above >= 20:  # beyond, the tail is extrapolated
            assert value == pytest.approx(np.log(above / 1000))
    np.testing.assert_array_equal(odd.rows[:3], np.argsort(density, kind="stable")[:3])
    centres = KMeans(2, random_state=0).fit(X)
    distance = centres.transform(X).min(axis=1)
    np.testing.assert_array_equal(look(centres, X).odd.rows[:5], np.argsort(-distance)[:5])


def test_a_row_with_few_entries_may_be_odd(page) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(50.0, 3.0, (500, 10))
    X[7, 2:] = np.nan
    X[7, 0], X[7, 1] = 65.0, 50.0
    model = GaussianMixture(1).fit(X)
    assert (model.score_samples(X) < model.score_samples(X)[7]).sum() > 400
    words = " ".join(page(model, X).words["novelty"].split())
    first = words.split("because of odder than")[1]
    assert first.strip().startswith("row 7 x0 65 (expected")
    part = (model.oddness(X) > 0.99).mean()
    assert f"{part:.1%} of the rows are odder than 99% of such rows" in words


def test_the_planted_entry_is_the_reason(rng: np.random.Generator) -> None:
    X = rng.normal(size=(300, 5))
    X[:, 3] += 3 * X[:, 0]
    X[7, 3] = -6 if X[7, 0] > 0 else 6  # not far out, but not with its column 0
    model = GaussianMixture(1).fit(X)
    subject = subject_of(model, X)
    assert subject.look.odd.rows[0] == 7
    (first, *_) = reasons_of(subject)[0]
    assert first.column in (0, 3)
    assert first.value == X[7, first.column]
    hidden = X[[7]].copy()
    hidden[0, first.column] = np.nan
    assert first.expected == pytest.approx(model.impute(hidden)[0, first.column])


def test_reasons_of_counts_and_of_models_without_holes(rng: np.random.Generator) -> None:
    X = rng.poisson(4.0, (200, 4)).astype(float)
    X[11, 2] = 40
    assert reasons_of(subject_of(PoissonMixture(1).fit(X), X))[0][0].column == 2
    centres = KMeans(2, random_state=0).fit(X)
    assert reasons_of(subject_of(centres, X))[0][0].column == 2


def test_residuals(pieces, rng: np.random.Generator) -> None:
    X = rng.normal(size=(200, 2)) @ rng.normal(size=(2, 5)) + 0.3 * rng.normal(size=(200, 5))
    model = PPCA(2).fit(X)
    seen = look(model, X)
    expected = r2_score(X, model.reconstruct(X), multioutput="raw_values")
    np.testing.assert_allclose(seen.residuals.explained_variance(seen.columns), expected)


def test_recovery_of_hidden_entries(rng: np.random.Generator) -> None:
    z = rng.normal(size=(800, 1))
    X = np.hstack([z + 0.1 * rng.normal(size=(800, 2)), rng.normal(size=(800, 1))])
    X[::9, 1] = np.nan
    model = GaussianMixture(1).fit(X)
    found = recovery(subject_of(model, X), model.impute)
    # what its twin does not tell, since it lacks or is hidden as well, is lost
    found = found.found
    assert 0.7 < found[0] < 0.95 and 0.7 < found[1] < 0.95 and abs(found[2]) < 0.1


def test_the_mean_of_a_column_recovers_nothing(rng: np.random.Generator) -> None:
    """Also of a column with outliers, whether or not these are among what is hidden."""
    X = rng.standard_t(2, size=(150, 3))
    X[0, 0] = 1e3
    X[::9, 1] = np.nan
    model = GaussianMixture(1).fit(X)
    found = recovery(subject_of(model, X), lambda source: np.tile(np.nanmean(X, axis=0), (150, 1)))
    np.testing.assert_allclose(found.found, 0.0, atol=1e-9)


def test_classes(pieces) -> None:
    X, y = load_iris(return_X_y=True)
    y = np.array(["a", "b", "c"])[y]
    model = MixtureClassifier(GaussianMixture(1), random_state=0).fit(X[::2], y[::2])
    weight = np.arange(len(y)) % 4
    known = y.astype(object)
    known[5] = None
    sums = look(model, X, known, weight).classes
    use = (weight > 0) & (np.arange(len(y)) != 5)
    p = model.predict_proba(X[use])
    sides = {"sample_weight": weight[use]}
    assert sums.accuracy == pytest.approx(model.score(X[use], y[use], **sides))
    assert sums.log_loss / sums.weight == pytest.approx(log_loss(y[use], p, **sides))
    apart = ((p - (y[use][:, None] == model.classes_)) ** 2).sum(axis=1)
    assert sums.brier / sums.weight == pytest.approx(np.average(apart, weights=weight[use]))
    table = confusion_matrix(y[use], model.predict(X[use]), **sides)
    np.testing.assert_allclose(sums.confusion, table)
    assert sums.bins[0].sum() == sums.weight and sums.unknown == (weight[5] > 0)


def test_reliability_bins(pieces) -> None:
    X, y = load_iris(return_X_y=True)
    model = MixtureClassifier(GaussianMixture(1), random_state=0).fit(X, y)
    sums, p = look(model, X[:, :], y).classes, model.predict_proba(X)
    top, right = p.max(axis=1), model.predict(X) == y
    inside = (top >= 0.9) & (top <= 1)
    assert sums.bins[0, 9] == inside.sum() and sums.bins[2, 9] == right[inside].sum()
    assert sums.bins[1, 9] == pytest.approx(top[inside].sum())


def test_labels_that_the_fit_has_not_seen(pieces) -> None:
    X, y = load_wine(return_X_y=True)
    model = GaussianMixture(3, covariance_type="diag", random_state=0).fit(X)
    counts = look(model, X, y).labels.counts
    np.testing.assert_array_equal(counts, confusion_matrix(y, model.predict(X)))
    assert adjusted_rand(counts) == pytest.approx(adjusted_rand_score(y, model.predict(X)))


def test_predicted_numbers(pieces, rng: np.random.Generator) -> None:
    X = rng.normal(size=(120, 4))
    y = X @ [1.0, 2.0, 0.0, -1.0] + 0.5 * rng.normal(size=120)
    # with a free noise of the output its likelihood is flat down to the floor
    model = SupervisedPPCA(1, output_noise=0.25, random_state=0).fit(X, y)
    y_given = y.copy()
    y_given[3] = np.nan
    found, known = look(model, X, y_given).numbers, np.arange(120) != 3
    assert found.explained[0] == pytest.approx(r2_score(y[known], model.predict(X[known])))
    error = np.sqrt(np.mean((y - model.predict(X))[known] ** 2))
    assert found.root_mean_square[0] == pytest.approx(error)


def test_sample_is_the_same_for_any_pieces(mixture, holed, monkeypatch) -> None:
    whole = look(mixture, holed, rows=40).sampled
    monkeypatch.setattr(looking, "_MOST_ROWS", 23)
    monkeypatch.setattr(looking, "_LEAST_ROWS", 23)
    cut = look(mixture, holed, rows=40).sampled
    np.testing.assert_array_equal(whole.rows, cut.rows)
    np.testing.assert_array_equal(cut.X, holed[cut.rows])
    assert len(cut) == 40 and (np.diff(cut.rows) > 0).all()


def test_numbers_in_the_page(page, mixture: GaussianMixture, holed: np.ndarray) -> None:
    words = page(mixture, holed).words
    for weight in mixture.weights_:
        assert f"{weight:.1%}" in words["components"]
    for size in np.bincount(mixture.predict(holed)):
        assert f" {size} " in words["components"]
    order = np.argsort(mixture.score_samples(holed))[:3]
    places = [words["novelty"].index(f"row {row} ") for row in order]
    assert places == sorted(places)
    assert f"{mixture.lower_bound_:.5f}".replace("-", "\u2212") in words["fit"]


def test_separating_directions_separate(rng: np.random.Generator) -> None:
    group = np.arange(300) % 3
    X = rng.normal(size=(300, 6)) * [1, 1, 1, 1, 30, 30]
    X[:, 0] += 8 * group
    X[:, 1] += 8 * (group == 1)
    flat = plane(X, group, 0)
    centres = np.stack([flat[group == k].mean(axis=0) for k in range(3)])
    nearest = ((flat[:, None] - centres) ** 2).sum(axis=2).argmin(axis=1)
    assert (nearest == group).mean() > 0.98
    two = plane(X[group < 2], group[group < 2], 0)
    inner = np.concatenate([two[group[group < 2] == k] - two[group[group < 2] == k].mean(axis=0)
                            for k in range(2)])  # fmt: skip
    assert abs(np.corrcoef(inner.T)[0, 1]) < 1e-6


@pytest.mark.parametrize("width", [1, 2, 400])
def test_planes_of_any_width(width: int, rng: np.random.Generator) -> None:
    X = rng.normal(size=(50, width))
    assert plane(X, None, 0).shape == (50, 2) == plane(X, np.arange(50) % 2, 0).shape
    np.testing.assert_array_equal(plane(X, None, 0), plane(X, None, 0))


def test_single_rows_far_out_do_not_spoil_the_map(page, rng: np.random.Generator) -> None:
    group = np.arange(200) % 2
    X = rng.normal(size=(200, 3)) + 8 * group[:, None]
    model = GaussianMixture(2, random_state=0).fit(X)
    X[3, 1] = 1e9
    flat = plane(X, group, 0)
    inside = np.abs(flat[:, 0] - np.median(flat[:, 0])) < 20
    assert inside.sum() >= 199
    left, right = (np.median(flat[group == k, 0]) for k in (0, 1))
    assert abs(left - right) > 4 * flat[(group == 0) & inside, 0].std()
    words = page(model, X).words["map"]
    assert "1 row lies beyond the edges" in words or inside.all()
    assert "beyond the edges" not in page(model, np.delete(X, 3, axis=0)).words["map"]


def test_skewed_columns_that_a_gaussian_lets_be_negative_are_told(page) -> None:
    """Incomes are never negative; the share that the model lets be so is that of its own draws."""
    import pandas as pd

    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        {"income": np.exp(rng.normal(size=800)), "age": rng.normal(45, 9, 800)}
    )  # fmt: skip
    for model in (GaussianMixture(1), PPCA(1)):
        model.fit(table)
        head = page(model, table).words["head"]
        drawn = model.sample(200_000, random_state=0)
        drawn = np.asarray(drawn[0] if isinstance(drawn, tuple) else drawn)
        said = re.search(r"columns that have none: income \((\S+)%\)\.", head)
        assert said is not None
        assert float(said.group(1)) / 100 == pytest.approx((drawn[:, 0] < 0).mean(), abs=0.006)
        assert "age (" not in head
    changed = table.assign(income=np.log(table["income"]))  # the remedy
    assert "negative values" not in page(GaussianMixture(1).fit(changed), changed).words["head"]
