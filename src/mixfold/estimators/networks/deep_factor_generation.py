"""New rows of a class: a prior of the top sources, decoded through all layers."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from mixfold.contracts import Array, record
from mixfold.engine.random import seed_from
from mixfold.estimators.factors.mixture_of_factor_analyzers import MixtureOfFactorAnalyzers
from mixfold.estimators.mixtures.gaussian_mixture import GaussianMixture
from mixfold.estimators.networks.class_labels import find_class_numbers, has_classes
from mixfold.estimators.networks.deep_factor_answers import DeepAnswers
from mixfold.estimators.shell.base import DegenerateWarning, warn
from mixfold.estimators.shell.constraints import check_count
from mixfold.models.networks.settle import towards_class

# sources of so many labelled rows are kept for the priors, at most
KEPT = 20_000
# the mixture of a class: rows for each of its components, and at most so many of these
ROWS_PER_COMPONENT, MOST_COMPONENTS, FACTORS = 80, 10, 10
# least noise of a source, relative to its variance
FLOOR = 1e-3
# where the search for a class ends, if not told
STOP = 0.9
# draws for each row that is kept, at most
PATIENCE = 50


@record
@dataclass(frozen=True, slots=True)
class TopSources:
    """Sources of labelled training rows, inferred without labels, with classes and weights."""

    sources: Array
    labels: Array
    weight: Array

    def of(self, number: int) -> tuple[Array, Array]:
        rows = self.labels == number
        return self.sources[rows].astype(np.float64), self.weight[rows]


def top_sources(sources: Array, labels: Array, weight: Array, seed: int) -> TopSources:
    """Those of labelled rows: all of them, or a seeded sample."""
    chosen = np.arange(len(labels))
    if len(chosen) > KEPT:
        rng = np.random.default_rng([seed % 2**63, 13])
        chosen = np.sort(rng.choice(chosen, KEPT, replace=False))
    return TopSources(sources[chosen].astype(np.float32), labels[chosen], weight[chosen])


class DeepGeneration(DeepAnswers):
    """Needs ``_top``, the sources that priors are fitted to."""

    _top: TopSources | None
    _stream: tuple[int, int]

    @available_if(has_classes)
    def generate(
        self,
        label: Any,
        n: int = 1,
        prior: str = "mixture",
        keep: float | None = None,
        random_state: Any = None,
    ) -> Array:
        """New rows of a class.

        Parameters
        ----------
        label : class
        n : int, default=1
        prior : {'mixture', 'gaussian', 'laplace', 'prototype'}, default='mixture'
            Where the sources of the top come from. 'mixture' and 'gaussian' are drawn from a
            mixture of factor analysers, or one Gaussian, that is fitted to the sources of the
            training rows of the class. 'laplace' is drawn from the Laplace prior of all classes
            and then moved down -ln P(class | s) + alpha |s| until the class is probable enough:
            such rows tell a class from the others rather than look like it. 'prototype' moves
            from zero in this way, so that all rows are equal.
        keep : float, default=None
            Draw anew what the model does not give the class with more than this probability; of
            'laplace' and 'prototype' where the search ends (None: 0.9).
        random_state : int, RandomState, Generator or None, default=None

        Returns
        -------
        ndarray of shape (n, n_features)
        """
        check_is_fitted(self)
        number = int(find_class_numbers(np.atleast_1d(np.asarray(label)), self.classes_)[0])
        _check_request(n, prior, keep)
        rng = np.random.default_rng(seed_from(random_state) % 2**63)
        if prior in ("laplace", "prototype"):
            top = self._searched(number, n, prior, STOP if keep is None else keep, rng)
            return self.inverse_transform(top)
        drawn = self._class_prior(number, prior)

        def draw(size: int) -> Array:
            return self.inverse_transform(drawn(size, int(rng.integers(2**62))))

        return draw(n) if keep is None else self._chosen(draw, number, n, keep)

    def _chosen(self, draw: Callable[[int], Array], number: int, n: int, keep: float) -> Array:
        """Rows that the model takes for their class; the most probable others if they are few."""
        rows: list[Array] = []
        chances: list[Array] = []
        for _ in range(PATIENCE):
            rows.append(draw(n))
            chances.append(np.exp(self._log_probabilities(rows[-1])[:, number]))
            if sum(int((one > keep).sum()) for one in chances) >= n:
                break
        found, chance = np.concatenate(rows), np.concatenate(chances)
        good = np.flatnonzero(chance > keep)
        if len(good) < n:
            warn(
                f"only {len(good)} of {len(found)} draws of class "
                f"{self.classes_.tolist()[number]!r} have a probability above keep={keep}; the "
                "most probable others are given, too. Lower keep",
                DegenerateWarning,
            )
            good = np.argsort(-chance, kind="stable")
        return np.asarray(found[good[:n]])

    # ------------------------------------------------ priors

    def _searched(
        self, number: int, n: int, prior: str, stop: float, rng: np.random.Generator
    ) -> Array:
        top, alpha = self._stack.layers[-1], self._stack.alpha[-1]
        start = np.zeros((1 if prior == "prototype" else n, top.n_codes))
        if prior == "laplace":
            assert self._top is not None
            # the Laplace prior that suits the sources best; alpha = 0 would be no distribution
            scale = np.average(np.abs(self._top.sources), axis=0, weights=self._top.weight)
            start = rng.laplace(size=start.shape) * scale
        found = towards_class(top, self._stack.link, number, start, alpha, stop)
        return np.repeat(found, n, axis=0) if prior == "prototype" else found

    def _class_prior(self, number: int, prior: str) -> Callable[[int, int], Array]:
        """What draws sources: (how many, seed) -> (n, H). Fitted when it is first asked for."""
        known: dict[tuple[int, str], Any] = self.__dict__.setdefault("_priors", {})
        if (number, prior) not in known:
            assert self._top is not None
            key = np.random.SeedSequence([self._stream[0] % 2**63, 17, number])
            seed = int(key.generate_state(1, np.uint64)[0] >> 1)
            known[number, prior] = _fitted_prior(*self._top.of(number), prior, seed)
        model = known[number, prior]
        if isinstance(model, np.ndarray):  # one row, or equal ones
            return lambda size, seed: np.repeat(model, size, axis=0)
        return lambda size, seed: np.asarray(model.sample(size, random_state=seed)[0])


def _fitted_prior(sources: Array, weight: Array, prior: str, seed: int) -> Any:
    size = sources.shape[1]
    distinct = len(np.unique(sources, axis=0))
    if distinct < 3:
        return np.average(sources, axis=0, weights=weight)[None]
    if prior == "gaussian":
        kind = "full" if distinct > size else "diag"
        gaussian = GaussianMixture(1, covariance_type=kind, reg_covar=1e-6, random_state=seed)
        return gaussian.fit(sources, sample_weight=weight)
    components = int(np.clip(distinct // ROWS_PER_COMPONENT, 1, MOST_COMPONENTS))
    factors = int(np.clip((size - 1) // 2, 0, min(FACTORS, distinct // components - 1)))
    mixture = MixtureOfFactorAnalyzers(
        components, factors, noise_floor=FLOOR, tol=1e-4, max_iter=200, random_state=seed
    )
    with warnings.catch_warnings():  # the floor is there to be reached: it smooths
        warnings.simplefilter("ignore", DegenerateWarning)
        warnings.simplefilter("ignore", ConvergenceWarning)
        return mixture.fit(sources, sample_weight=weight)


def _check_request(n: Any, prior: Any, keep: Any) -> None:
    check_count("n", n)
    names = ("mixture", "gaussian", "laplace", "prototype")
    if prior not in names:
        raise ValueError(f"prior must be one of {', '.join(map(repr, names))}; got {prior!r}")
    if keep is not None and not 0 <= keep < 1:
        raise ValueError(f"keep must be a probability, at least 0 and less than 1; got {keep!r}")
