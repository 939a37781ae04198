"""output_weight='auto': what the choice needs of the rows, in any form in which they come."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mixfold.contracts import Array, Block, Source
from mixfold.estimators.shell.base import warn
from mixfold.estimators.shell.output_coding import Coding
from mixfold.estimators.shell.targets import weights_or_ones
from mixfold.math.principal import Axes
from mixfold.models.factors.spectral import Spectrum, principal_axes
from mixfold.models.factors.spectral_sums import MissingEntries
from mixfold.models.outputs.emphasis import (
    Emphasis,
    LabelledRows,
    choose_emphasis,
    fit_chosen,
)
from mixfold.models.outputs.gaussian_outputs import GaussianOutputParams
from mixfold.models.outputs.gaussian_starts import from_coordinates
from mixfold.models.outputs.model import SupervisedParams

# principal axes that rows are looked at in: at least so many, and twice the factors
_AXES = 100
# labelled rows that are looked at, at most
_ROWS = 5000


def choose_output_weight(
    estimator: Any, source: Source, outputs: Array, weights: Array | None
) -> tuple[Emphasis, SupervisedParams | None]:
    """The weight that predicts held-out labels best, and where a fit with it may start.

    ``outputs`` (n, L) are codes of classes. The same rows give the same choice, whatever
    ``random_state`` is.
    """
    if estimator.input_noise is not None:
        raise ValueError(
            "output_weight='auto' chooses the noise of the columns, and input_noise="
            f"{estimator.input_noise!r} gives it; leave input_noise=None, or set output_weight=1.0"
        )
    coding: Coding = estimator._coding
    weights = weights_or_ones(weights, len(outputs))
    known = np.flatnonzero(~np.isnan(outputs[:, 0]) & (weights > 0))
    classes = (outputs[known] @ coding.codes.T).argmax(axis=1)  # (codes are equally long)
    if not (np.bincount(classes) > 1).any():
        warn(
            "output_weight='auto' needs a class with two labelled rows, one of which is held out; "
            "there is none, so that output_weight_ is 1. Label more rows, or set output_weight=1.0",
            UserWarning,
        )
        return Emphasis(1.0, None, 1.0, 1.0, 1.0), None
    d = int(estimator.n_components)
    estimator._check_sizes(int((weights > 0).sum()))
    rng = np.random.default_rng(0)
    size = min(max(_AXES, 2 * d), source.n_features, int((weights > 0).sum()))
    executor = estimator._executor(source)
    try:
        spectrum = principal_axes(source, executor, size, rng=rng)
    except MissingEntries:
        raise ValueError(
            "output_weight='auto' needs complete rows, and X has missing entries; fill them, say "
            "by PPCA(n_components).fit(X).impute(X), or set output_weight=1.0"
        ) from None
    left = spectrum.total_variance - float(spectrum.values[:d].sum())
    noise = left / max(source.n_features - d, 1)
    least = estimator.noise_floor * spectrum.total_variance / source.n_features
    if not noise > max(least, np.finfo(float).tiny) or not spectrum.values[0] > noise:
        # factors explain the columns wholly, or the columns do not vary in any direction more
        # than in others: no noise is to be chosen
        return Emphasis(1.0, None, 1.0, 1.0, 1.0), None
    chosen = known
    if len(known) > _ROWS:
        chosen = np.sort(rng.choice(known, _ROWS, replace=False))
        classes = classes[np.isin(known, chosen)]
    task = _Coordinates(spectrum, chosen)
    coordinates = np.concatenate(list(executor.map_rows(task, source)))
    share = weights[known].sum() / weights[chosen].sum()
    rows = LabelledRows(
        coordinates, classes, weights[chosen] * share, spectrum.values, spectrum.weight,
        coding.codes, coding.prior,
    )  # fmt: skip
    held = None if isinstance(estimator.output_noise, str) else float(estimator.output_noise)
    best, _ = choose_emphasis(rows, d, noise, held)
    fit = fit_chosen(rows, d, best.input_noise or noise, best.unlabelled, held)
    axes = Axes(spectrum.mean, spectrum.values, spectrum.vectors, spectrum.total_variance)
    learned = GaussianOutputParams(
        fit.output_loadings, fit.output_means, np.full(fit.output_means.shape, fit.output_noise[0])
    )
    return best, from_coordinates(axes, fit.loadings[0], fit.means[0], fit.noise[0], learned)


@dataclass(frozen=True, slots=True)
class _Coordinates:
    """Some rows of a block on principal axes; picklable."""

    spectrum: Spectrum
    rows: Array

    def __call__(self, block: Block) -> Array:
        inside = (self.rows >= block.rows.start) & (self.rows < block.rows.stop)
        X = block.X[self.rows[inside] - block.rows.start]
        axes = self.spectrum.vectors
        return np.asarray(X @ axes - self.spectrum.mean @ axes)
