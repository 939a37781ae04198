"""EM on twos and threes, against a computation of its own and on the real images."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import norm

from mixfold.models.mixtures.given_start import GivenStart
from papers import digits_mixtures
from papers.frame.run import show_nothing
from papers.frame.table import Cell, Table

pytestmark = pytest.mark.slow  # a published table, run small

SMALL = digits_mixtures.Size(starts=3, repeats=2, classifiers=2, components=(2, 5))


def _made(rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Each digit has two prototypes; some pixels are always black, as in the real images."""
    prototypes = (rng.random((2, 2, digits_mixtures.PIXELS)) < 0.3) * 0.8
    prototypes[..., :16] = 0
    X, y, split = [], [], []
    for part, count in digits_mixtures.PARTS.items():
        for j, digit in enumerate(digits_mixtures.DIGITS):
            noise = (
                0.2
                * rng.standard_normal((count, digits_mixtures.PIXELS))
                * (prototypes[j].max(axis=0) > 0)
            )
            X.append((prototypes[j][rng.integers(2, size=count)] + noise).clip(0, 1))
            y += [digit] * count
            split += [part] * count
    return {"X": np.concatenate(X).astype(np.float32), "y": np.array(y), "split": np.array(split)}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("digits")
    np.savez(path / digits_mixtures.IMAGES.name, **_made(np.random.default_rng(5)))
    return path


@pytest.fixture(scope="module")
def parts(folder: Path) -> dict[tuple[str, int], np.ndarray]:
    return digits_mixtures.load_images(folder / digits_mixtures.IMAGES.name)


def _small(folder: Path, seed: int, size: digits_mixtures.Size) -> Table:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(digits_mixtures, "QUICK", size)
        return digits_mixtures.run(folder, True, seed, show_nothing)


@pytest.fixture(scope="module")
def small(folder: Path) -> Table:
    return _small(folder, 0, SMALL)


def _by_hand(X: np.ndarray, given: GivenStart, n_steps: int) -> list[float]:
    """EM of diagonal Gaussians, written out: log p before each step and after the last."""
    weights, means, variances = given.weights, given.means, given.covariances
    trace = []
    for step in range(n_steps + 1):
        densities = norm.logpdf(X[:, None], means, np.sqrt(variances)).sum(axis=2)
        joint = densities + np.log(weights)
        total = logsumexp(joint, axis=1)
        trace.append(float(total.sum()))
        shares = np.exp(joint - total[:, None])
        if step < n_steps:
            counts = shares.sum(axis=0)
            weights = counts / len(X)
            means = shares.T @ X / counts[:, None]
            variances = np.stack(
                [r @ (X - m) ** 2 / c for r, m, c in zip(shares.T, means, counts, strict=True)]
            )
            variances = np.maximum(variances, 0.01)
    return trace


@pytest.mark.parametrize(
    "means", [digits_mixtures.draw_random_means, digits_mixtures.find_kmeans_means]
)
def test_em_is_that_of_the_formulas(
    means: digits_mixtures.Means, parts: dict[tuple[str, int], np.ndarray]
) -> None:
    """Black pixels have no variance: without the floor of Zhang (2017) log p would differ."""
    X = parts["train", 2]
    fit = digits_mixtures.run_em(X, 3, means, np.random.default_rng(4), 6)
    given = digits_mixtures.make_start(X, 3, means, np.random.default_rng(4))
    np.testing.assert_allclose(fit.trace, _by_hand(X, given, 6), rtol=1e-9)
    assert len(fit.trace) == 7


def test_a_random_start(parts: dict[tuple[str, int], np.ndarray]) -> None:
    X = parts["train", 3]
    starts = [
        digits_mixtures.make_start(
            X, 4, digits_mixtures.draw_random_means, np.random.default_rng(s)
        )
        for s in range(100)
    ]
    for given in starts:
        assert given.weights is not None and given.weights.sum() == pytest.approx(1)
        assert given.weights.max() / given.weights.min() < 2  # c + U(0, 1) with c = 1
        np.testing.assert_allclose(given.covariances, [np.maximum(2 * X.var(axis=0), 0.01)] * 4)
    offsets = np.concatenate([given.means for given in starts]) - X.mean(axis=0)
    varies = X.std(axis=0) > 0
    assert not offsets[:, ~varies].any() and (~varies).any()
    scaled = offsets[:, varies] / X.std(axis=0)[varies]
    n = scaled.size
    assert abs(scaled.mean()) < 6 / np.sqrt(n) and abs(scaled.var() - 1) < 6 * np.sqrt(2 / n)


def test_a_kmeans_start_is_five_steps_from_images(
    parts: dict[tuple[str, int], np.ndarray],
) -> None:
    X = parts["train", 2]
    centres = X[np.random.default_rng(1).choice(len(X), 3, replace=False)]
    for _ in range(5):
        nearest = ((X[:, None] - centres) ** 2).sum(axis=2).argmin(axis=1)
        centres = np.stack([X[nearest == k].mean(axis=0) for k in range(3)])
    ours = digits_mixtures.find_kmeans_means(X, 3, np.random.default_rng(1))
    np.testing.assert_allclose(ours, centres, rtol=1e-10)


def test_the_error_by_hand(parts: dict[tuple[str, int], np.ndarray]) -> None:
    rng = np.random.default_rng(2)
    two, three = (
        digits_mixtures.run_em(
            parts["train", d], 2, digits_mixtures.draw_random_means, rng, 2
        ).params
        for d in (2, 3)
    )
    wrong, other = 0, {2: 3, 3: 2}
    for digit in (2, 3):
        share = rng.random((200, 1))  # between the digits: nobody can be sure
        X = share * parts["test", digit] + (1 - share) * parts["test", other[digit]]
        parts = {**parts, ("between", digit): X}
        logs = []
        for params in (two, three):
            means, variances = params.components.means, params.components.scatter
            densities = norm.logpdf(X[:, None], means, np.sqrt(variances)).sum(axis=2)
            logs.append(logsumexp(densities + np.log(params.weights), axis=1))
        wrong += int(np.sum((logs[0] > logs[1]) != (digit == 2)))
    assert 0 < wrong < 400
    ours = digits_mixtures.measure_error(two, three, parts["between", 2], parts["between", 3])
    assert ours == pytest.approx(100 * wrong / 400)


def test_every_cell_of_the_size_is_there(small: Table) -> None:
    assert len(small.cells) == 2 * 2 + 3 * 2 * 2 + 2 * 3
    assert small.rows[:2] == ("2s, K = 2, nearest", "3s, K = 2, nearest")
    assert all(np.isfinite(cell.values).all() for cell in small.cells)
    counts = {len(cell.values) for cell in small.cells if cell.row.startswith("both")}
    assert counts == {SMALL.repeats}
    # two prototypes that are unlike: an image of one digit is never taken for the other
    cell = small.cell("K = 2 of each digit", "test error")
    assert cell is not None and cell.ours < 1
    ahead = small.cell("both, K = 20, random starts", "log p, 30 steps")
    before = small.cell("both, K = 20, random starts", "log p, 5 steps")
    assert ahead is not None and before is not None and ahead.ours > before.ours


def test_the_seed_is_all_that_matters(small: Table, folder: Path) -> None:
    part = digits_mixtures.Size(starts=2, repeats=1, classifiers=1, components=(5,))
    place = ("both, K = 20, random starts", "log p, 5 steps")
    whole = small.cell(*place)
    with pytest.raises(ValueError, match="fewer than two cells"):
        _small(folder, 0, part)
    part = digits_mixtures.Size(starts=2, repeats=1, classifiers=1, components=(2, 5))
    again, other = (_small(folder, seed, part).cell(*place) for seed in (0, 1))
    assert whole is not None and again is not None and other is not None
    assert again.values == whole.values[:1]
    assert other.values[0] != whole.values[0]


def test_the_nearest_run_is_shown_and_the_others_are_told() -> None:
    traces, weights = {}, {}
    for digit, ends in ((2, [-4000.0, -3891.4, -3820.0]), (3, [2200.0, 2355.0, 2100.0])):
        traces[f"{digit}s, K = 2", "random"] = np.array([[0.0, end] for end in ends])
        weights[f"{digit}s, K = 2", "random"] = np.array([0.6, 0.5333, 0.7])
    cells, check = digits_mixtures._find_nearest(traces, weights)
    assert [cell.values[0] for cell in cells] == [-3891.4, 0.5333, 2355.0, 0.5333]
    assert not check.holds
    assert "2s: 1 of 3 starts end within 1 of -3891; they run from -4000 to -3820" in check.detail
    assert "3s: 0 of 3" in check.detail


def test_claims_about_the_choice_of_the_source() -> None:
    def cells(*rows: tuple[float, ...]) -> list[Cell]:
        return [Cell(str(j), "error", row) for j, row in enumerate(rows)]

    validation = cells((1.0, 1.0), (1.5, 0.5), (0.5, 0.5), (1.0, 2.0))
    check = digits_mixtures.check_choice(validation, (2, 5, 15, 25))
    assert check.holds
    assert check.detail.startswith("1.00 ± 0.00, 1.00 ± 0.50, 0.50 ± 0.00, 1.50 ± 0.50 %")
    assert "5 components are lowest in 50 %, 15 components are lowest in 100 %" in check.detail
    assert not digits_mixtures.check_choice(validation[::-1], (2, 5, 15, 25)).holds
    assert digits_mixtures.check_rise(validation).holds
    assert not digits_mixtures.check_rise(validation[:3]).holds


def test_the_quick_variant_is_a_part_of_the_full_one() -> None:
    assert set(digits_mixtures.QUICK.components) < set(digits_mixtures.FULL.components)
    assert digits_mixtures.QUICK.starts <= digits_mixtures.FULL.starts
    assert digits_mixtures.QUICK.repeats <= digits_mixtures.FULL.repeats


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"X": np.zeros((1200, 100))}, r"X of shape \(n, 256\).*\(1200, 100\)"),
        (
            {"split": np.repeat("train", 1200)},
            r"300 images of the digit 2 in the part 'train'; got",
        ),
        ({"y": np.zeros(7)}, r"y and split of shape \(n,\).*\(7,\)"),
    ],
)
def test_another_file_of_that_name_is_refused(
    tmp_path: Path, change: dict[str, np.ndarray], message: str
) -> None:
    content = _made(np.random.default_rng(0)) | change
    np.savez(tmp_path / digits_mixtures.IMAGES.name, **content)
    with pytest.raises(ValueError, match=message):
        digits_mixtures.run(tmp_path, True, 0, show_nothing)


# ------------------------------------------------ the real images


@pytest.fixture
def real(shared_data: Callable[[str], Path]) -> dict[tuple[str, int], np.ndarray]:
    return digits_mixtures.load_images(shared_data(digits_mixtures.IMAGES.name))


def test_the_published_optima_are_found(real: dict[tuple[str, int], np.ndarray]) -> None:
    traces, weights = {}, {}
    for digit in digits_mixtures.DIGITS:
        key = (f"{digit}s, K = 2", "random")
        X = real["train", digit]
        traces[key], weights[key] = digits_mixtures._run_climbs(X, 2, 60, "random", 0)
    cells, check = digits_mixtures._find_nearest(traces, weights)
    assert check.holds
    table = Table(digits_mixtures.COLUMNS, tuple(cells))
    for column in digits_mixtures.COLUMNS[1:3]:
        assert table.judged(column) == "2 of 2 reproduced"


def test_starts_and_errors_are_as_computed_once(
    real: dict[tuple[str, int], np.ndarray],
) -> None:
    """With other code: 24170 +- 2197 and 28423 +- 908 after 30 steps; the errors of the notes."""
    both = np.concatenate([real["train", digit] for digit in digits_mixtures.DIGITS])
    for kind, mean, spread in (("random", 24170, 2197), ("k-means", 28423, 908)):
        ends = digits_mixtures._run_climbs(both, digits_mixtures.MANY, 4, kind, 0)[0][:, -1]
        assert abs(ends.mean() - mean) < 3 * spread * np.sqrt(1 / 4 + 1 / 10)
    for K, train, held_out in ((2, 2.28, 3.50), (15, 0.08, 2.00)):
        errors = np.mean(
            [digits_mixtures._measure_errors(real, K, 0, repeat) for repeat in range(4)], axis=0
        )
        assert errors[0] == pytest.approx(train, abs=0.2)
        assert (errors[1] + 2 * errors[2]) / 3 == pytest.approx(held_out, abs=0.7)


def test_the_class_makes_the_same_steps(
    parts: dict[tuple[str, int], np.ndarray], monkeypatch: pytest.MonkeyPatch
) -> None:
    X = parts["train", 2]
    same = digits_mixtures.compare_with_class(X, 2, 0)
    assert digits_mixtures.check_class([same]).holds
    monkeypatch.setattr(digits_mixtures, "FLOOR", 0.2)  # above the noise: other steps
    other = digits_mixtures.compare_with_class(X, 2, 0)
    assert not digits_mixtures.check_class([same, other]).holds
