"""How much the labels of classes count against the columns, chosen by rows that are held out.

The noise of d factors and one variance is as if the columns were independent given the factors.
They are not, so that the likelihood believes them too much: its axes are those of the columns
alone, each of unit variance, and classes are regressed on axes that tell nothing of them. What
helps is a noise of the columns w times that of the likelihood, which is the model

    z ~ N(0, I),   p(x | z)^(1/w) p(y | z)

an output counts w times as often as a column. Axes of a variance below the noise vanish unless the
labels need them. Rows without label, of which there are many, may count for less, too.

Both are chosen by the classes of labelled rows whose labels are held out, fold by fold; the columns
of these rows stay. Models are fitted by EM in the coordinates of the principal axes of all rows. In
these the sums of rows without label are those of all rows less those of the labelled ones: a step
takes no pass. As plug-in predictions of few labels are too sure of themselves, what is compared is
the likelihood of the held-out classes after the slope and the intercept of the discriminant are
scaled by two numbers. These are kept for the predictions of the model.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from scipy.optimize import minimize

from mixfold.contracts import Array, record
from mixfold.math.softmax import log_shares
from mixfold.math.symmetric import roots_of
from mixfold.models.outputs.gaussian_predictions import discriminant

# the noises that are tried, as powers of the ratio of the largest variance of an axis to the noise
_POWERS = np.arange(7) / 8
# weights of a row without label that are tried
_UNLABELLED = (1.0, 0.1, 0.01)
# what is left of all rows then: so many for each factor at least, or factors fit single rows
_ROWS_PER_FACTOR = 10
# folds at most, how often rows are split into folds anew, since few rows say little, and steps of
# EM for each fold: a choice needs no more
_FOLDS, _REPEATS, _STEPS = 5, 3, 20
# steps with all labels, from which a fit in the columns themselves goes on
_START_STEPS = 200
# of the noise: what a loading explains at least in the beginning
_LEAST_SIGNAL = 1e-2


@record
@dataclass(frozen=True, slots=True)
class Emphasis:
    """What was chosen.

    ``weight``: how many times as often as a column an output counts, which is by how much the noise
    of the columns exceeds that of the likelihood; ``input_noise``, None if it is to be learned;
    ``unlabelled``: the weight of a row without label; ``slope`` and ``intercept``: factors of both
    parts of the discriminant.
    """

    weight: float
    input_noise: float | None
    unlabelled: float
    slope: float
    intercept: float

    def __post_init__(self) -> None:
        held = 1.0 if self.input_noise is None else self.input_noise
        if not min(self.weight, self.unlabelled, held) > 0 or min(self.slope, self.intercept) < 0:
            raise ValueError("weights and noise must be positive, factors at least zero")


@dataclass(frozen=True, slots=True)
class LabelledRows:
    """Labelled rows beside all rows.

    ``coordinates`` (n, r) on the principal axes of all rows, about their mean; ``classes`` (n,) and
    ``weights`` (n,). ``variances`` (r,) of all rows along the axes, in decreasing order, and the
    ``total`` weight of all rows. ``codes`` (C, L) of the classes, and their frequencies ``prior``.
    """

    coordinates: Array
    classes: Array
    weights: Array
    variances: Array
    total: float
    codes: Array
    prior: Array

    @property
    def unlabelled(self) -> float:
        """The weight of the rows without label."""
        return float(self.total - self.weights.sum())


@dataclass(frozen=True, slots=True)
class Trial:
    """A noise of the columns and a weight of rows without label, and how well they predict.

    ``score`` is the log-likelihood of a held-out class, mean over the rows, after calibration.
    """

    noise: float
    unlabelled: float
    score: float
    slope: float
    intercept: float


def choose_emphasis(
    rows: LabelledRows, n_factors: int, noise: float, output_noise: float | None = None
) -> tuple[Emphasis, list[Trial]]:
    """The noise of the columns, and the weight of rows without label, that predict best.

    Parameters
    ----------
    rows : LabelledRows
        Some class has two rows or more.
    n_factors : int
    noise : float
        What the likelihood of all columns gives: the least that is tried.
    output_noise : float, optional
        Held, if it is given.
    """
    search = _Search(rows, n_factors, output_noise, split_folds(rows.classes))
    largest = max(float(rows.variances[0]), noise)
    noises = noise * (largest / noise) ** _POWERS
    tried = search.run(noises, 1.0)
    best = _best(tried)
    least = (_ROWS_PER_FACTOR * n_factors - rows.weights.sum()) / max(rows.unlabelled, 1e-300)
    # (what rows of weight zero leave is rounding)
    if rows.unlabelled > 1e-9 * rows.total:
        for share in _UNLABELLED[1:]:
            if share >= least:
                tried += search.run(np.array([best.noise]), share)
        best = _best(tried)
        if best.unlabelled < 1:  # a smaller weight may want another noise
            near = np.abs(np.log(noises / best.noise)) / np.log(noises[1] / noises[0]).clip(1e-12)
            tried += search.run(noises[(near > 0.5) & (near < 1.5)], best.unlabelled)
            best = _best(tried)
    plain = best.noise <= noise
    chosen = Emphasis(
        float(best.noise / noise),
        None if plain else float(best.noise),
        best.unlabelled,
        best.slope,
        best.intercept,
    )
    return chosen, tried


def fit_chosen(
    rows: LabelledRows, n_factors: int, noise: float, unlabelled: float, output_noise: float | None
) -> ScatterFits:
    """One fit with all labels."""
    every = fold_rows(rows, np.ones(len(rows.classes), bool))
    noises = np.array([noise])
    return fit_scatter(every, n_factors, noises, unlabelled, output_noise, steps=_START_STEPS)


def _best(tried: list[Trial]) -> Trial:
    """The first of the best."""
    return tried[int(np.argmax([trial.score for trial in tried]))]


def split_folds(classes: Array) -> Array:
    """The fold of each row, -1 if it is never held out: the only one of its class; (times, n).

    Folds have as many rows of each class as can be; the same rows have the same folds.
    """
    rng = np.random.default_rng(0)
    counts = np.bincount(classes)
    n_folds = int(np.clip(counts.max(), 2, _FOLDS))
    folds = np.full((_REPEATS, len(classes)), -1)
    for again in folds:
        for c in np.flatnonzero(counts > 1):
            rows = rng.permutation(np.flatnonzero(classes == c))
            again[rows] = (rng.integers(n_folds) + np.arange(len(rows))) % n_folds
    return folds


# ------------------------------------------------ models of the folds


@dataclass
class _Search:
    """Fits that leave out one fold of the labels each."""

    rows: LabelledRows
    n_factors: int
    output_noise: float | None
    folds: Array
    # rows that are held out together, and the others
    parts: list[tuple[Array, FoldRows]] = field(init=False)

    def __post_init__(self) -> None:
        self.parts = [
            (np.flatnonzero(folds == k), fold_rows(self.rows, folds != k))
            for folds in self.folds
            for k in np.unique(folds[folds >= 0])
        ]

    def run(self, noises: Array, unlabelled: float) -> list[Trial]:
        """A trial for each noise."""
        codes, slopes, intercepts = self.rows.codes, [], []
        for held, known in self.parts:
            fits = fit_scatter(
                known, self.n_factors, noises, unlabelled, self.output_noise, steps=_STEPS
            )
            slope, intercept = fits.discriminants(self.rows.coordinates[held], codes)
            slopes.append(slope)
            intercepts.append(np.broadcast_to(intercept, slope.shape))
        held = np.concatenate([held for held, _ in self.parts])
        slope, intercept = np.concatenate(slopes, axis=1), np.concatenate(intercepts, axis=1)
        classes, weights = self.rows.classes[held], self.rows.weights[held] / len(self.folds)
        prior = np.log(np.maximum(self.rows.prior, np.finfo(float).tiny))
        return [
            Trial(float(noise), unlabelled, *calibrate(a, b, prior, classes, weights))
            for noise, a, b in zip(noises, slope, intercept, strict=True)
        ]


@dataclass(frozen=True, slots=True)
class FoldRows:
    """Labelled rows as ``X`` (m, r), ``Y`` (m, L) and ``ones`` (m,), and sums of all rows.

    Products of these columns are the sums over labelled rows with their weights; where there are
    many rows, few others stand for them that have the same products.
    """

    X: Array
    Y: Array
    ones: Array
    variances: Array
    total: float


def fold_rows(rows: LabelledRows, known: Array) -> FoldRows:
    """The rows of which the label is ``known`` (n,); all others are without label."""
    X, Y = rows.coordinates[known], rows.codes[rows.classes[known]]
    root = np.sqrt(rows.weights[known])[:, None]
    table = np.hstack([X * root, Y * root, root])
    if len(table) > table.shape[1]:
        table = np.asarray(np.linalg.qr(table, mode="r"))
    r = X.shape[1]
    return FoldRows(table[:, :r], table[:, r:-1], table[:, -1], rows.variances, rows.total)


@dataclass(frozen=True, slots=True)
class ScatterFits:
    """Parameters of G fits in r coordinates with L outputs and d factors.

    ``loadings`` (G, r, d), ``means`` (G, r), ``noise`` (G,), and of the outputs (G, L, d), (G, L),
    (G,); ``objectives``: the objective before each step, (steps, G).
    """

    loadings: Array
    means: Array
    noise: Array
    output_loadings: Array
    output_means: Array
    output_noise: Array
    objectives: Array

    def discriminants(self, X: Array, codes: Array) -> tuple[Array, Array]:
        """Slope (G, n, C) and intercept (G, 1, C) of each class for rows (n, r)."""
        d, L = self.loadings.shape[-1], codes.shape[1]
        scaled = self.loadings / self.noise[:, None, None]
        spread = np.linalg.inv(np.eye(d) + _turn(self.loadings) @ scaled)
        V, identity = self.output_loadings, np.eye(L)
        away = (X - self.means[:, None]) @ scaled @ spread @ _turn(V)
        noise = self.output_noise[:, None, None] * identity
        return discriminant(
            codes - self.output_means[:, None], away, V @ spread @ _turn(V) + noise,
            V @ _turn(V) + noise,
        )  # fmt: skip


def fit_scatter(
    rows: FoldRows,
    n_factors: int,
    noises: Array,
    unlabelled: float,
    output_noise: float | None = None,
    *,
    steps: int,
) -> ScatterFits:
    """Parameter-expanded EM from the principal axes, for held noises (G,) of the columns."""
    X, Y, e = rows.X, rows.Y, rows.ones
    s = np.asarray(noises, float)[:, None, None]
    G, r, L, d, u = len(s), X.shape[1], Y.shape[1], n_factors, unlabelled
    n1 = float(e @ e)
    n2 = u * (rows.total - n1)
    n = n1 + n2
    sum_1, gram_1 = e @ X, X.T @ X
    # rows without label: all rows, whose mean is zero, less the labelled ones
    sum_2 = -u * sum_1
    gram_2 = u * (rows.total * np.diag(rows.variances) - gram_1)
    trace = float(np.trace(gram_1) + np.trace(gram_2))

    signal = np.maximum(rows.variances[:d] - s[:, 0], _LEAST_SIGNAL * s[:, 0])
    W = np.zeros((G, r, d))
    W[:, np.arange(d), np.arange(d)] = np.sqrt(signal)
    m = np.tile((sum_1 + sum_2) / n, (G, 1))
    V, c = np.zeros((G, L, d)), np.tile(e @ Y / n1, (G, 1))
    variance = float(((Y - e[:, None] * c[0]) ** 2).sum()) / (n1 * L)
    floor = 1e-10 * (variance or 1.0)
    v = np.full((G, 1, 1), variance if output_noise is None else output_noise).clip(floor)
    objectives = []
    for _ in range(steps):
        Xc, Yc = X - e[:, None] * m[:, None], Y - e[:, None] * c[:, None]
        away = sum_2 - n2 * m  # sum of the rows without label about the mean
        # E step: both kinds of rows
        A = np.eye(d) + _turn(W) @ W / s
        B = A + _turn(V) @ V / v
        spread_2, spread_1 = np.linalg.inv(A), np.linalg.inv(B)
        told = Xc @ W / s + Yc @ V / v
        Z = told @ spread_1
        P = W @ spread_2 / s
        centred = (
            gram_2
            - sum_2[:, None] * m[:, None]
            - m[:, :, None] * sum_2
            + n2 * m[:, :, None] * m[:, None]
        )
        XZ_2 = centred @ P
        z_2 = (away[:, None] @ P)[:, 0]
        second_1 = n1 * spread_1 + _turn(Z) @ Z
        second = second_1 + n2 * spread_2 + _turn(P) @ XZ_2
        first_1 = e @ Z
        first = first_1 + z_2
        total_x = sum_1 + sum_2
        squares = trace - 2 * m @ total_x + n * (m**2).sum(axis=1)
        explained = (told * Z).sum(axis=(1, 2)) + (_turn(P) @ XZ_2 * A).sum(axis=(1, 2))
        objectives.append(
            -0.5
            * (
                n1 * L * np.log(v[:, 0, 0])
                + n1 * np.linalg.slogdet(B)[1]
                + n2 * np.linalg.slogdet(A)[1]
                + squares / s[:, 0, 0]
                + (Yc**2).sum(axis=(1, 2)) / v[:, 0, 0]
                - explained
            )
        )
        # M step: regressions on the factors
        W, m = _regress(_turn(Xc) @ Z + XZ_2, total_x - n * m, first, second, n, m)
        fresh, mean = _regress(_turn(Yc) @ Z, (e @ Yc), first_1, second_1, n1, c)
        if output_noise is None:
            left = Yc - e[:, None] * (mean - c)[:, None] - Z @ _turn(fresh)
            spare = n1 * (fresh @ spread_1 * fresh).sum(axis=(1, 2))
            v = (((left**2).sum(axis=(1, 2)) + spare) / (n1 * L)).clip(floor)[:, None, None]
        V, c = fresh, mean
        # the prior of the factors, set free, is absorbed by both views
        shift = first / n
        root = roots_of(second / n - shift[:, :, None] * shift[:, None])
        m, c = m + (W @ shift[:, :, None])[..., 0], c + (V @ shift[:, :, None])[..., 0]
        W, V = W @ root, V @ root
    return ScatterFits(W, m, s[:, 0, 0], V, c, v[:, 0, 0], np.array(objectives))


def _regress(
    cross: Array, total: Array, first: Array, second: Array, n: float, mean: Array
) -> tuple[Array, Array]:
    """Loadings (G, k, d) and means (G, k) from sums about ``mean``."""
    centre = first / n
    inner = second - n * centre[:, :, None] * centre[:, None]
    outer = cross - total[:, :, None] * centre[:, None]
    loadings = _turn(np.linalg.solve(inner, _turn(outer)))
    return loadings, mean + total / n - (loadings @ centre[:, :, None])[..., 0]


def _turn(matrices: Array) -> Array:
    return np.swapaxes(matrices, -1, -2)


# ------------------------------------------------ calibration


def calibrate(
    slopes: Array, intercepts: Array, prior: Array, classes: Array, weights: Array
) -> tuple[float, float, float]:
    """Mean log-likelihood of the classes, and factors of slope and intercept that maximise it.

    The log-odds are ``prior`` (C,) + a slopes + b intercepts (n, C). Both factors are at least
    zero and are drawn to 1, what the model itself says, by a normal prior of unit variance.
    """
    parts = np.stack([slopes, intercepts], axis=-1)
    rows, total = np.arange(len(classes)), float(weights.sum())

    def loss(factors: Array) -> tuple[float, Array]:
        scores = log_shares(prior + parts @ factors)
        expected = (np.exp(scores)[..., None] * parts).sum(axis=1)
        slope = weights @ (parts[rows, classes] - expected) - (factors - 1)
        value = weights @ scores[rows, classes] - 0.5 * ((factors - 1) ** 2).sum()
        return -float(value) / total, -slope / total

    found = minimize(loss, np.ones(2), jac=True, method="L-BFGS-B", bounds=[(0, None)] * 2)
    return -float(found.fun), float(found.x[0]), float(found.x[1])
