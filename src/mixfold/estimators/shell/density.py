"""The shell of a density: fitting, scoring, imputing, whatever its components are."""

from __future__ import annotations

from abc import abstractmethod
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import DensityMixin
from sklearn.utils.validation import check_is_fitted

from mixfold.contracts import Array, Source
from mixfold.engine.loop import Fit
from mixfold.engine.random import RowKeys, seed_from
from mixfold.engine.schedules import Learned, Stepwise
from mixfold.estimators.shell import predictions
from mixfold.estimators.shell.base import MixfoldEstimator
from mixfold.estimators.shell.constraints import check_count
from mixfold.estimators.shell.effective_rows import effective_totals, parameter_cost
from mixfold.estimators.shell.fitting import (
    Survey,
    WarmStart,
    learn_one_batch,
    store_fit,
)
from mixfold.estimators.shell.oddness import (
    DrawnDensity,
    PointDensity,
    RowTails,
    cell_tails,
    oddness_of,
)
from mixfold.models.mixtures.mixture import Mixture, MixtureReading

# the stream of random numbers of imputation, apart from that of fits
_IMPUTE_STREAM = 2


class DensityEstimator(DensityMixin, MixfoldEstimator):
    """Base of estimators whose model is a mixture, of one component or many."""

    # what a fit leaves behind: the parameters of the model, their type, the seed and number of
    # draws so far, the likelihood, weight and entropy of the training rows
    _params: Any
    _dtype: str
    _stream: tuple[int, int]
    _total: tuple[float, float, float] | None
    _schedule: Any
    # the climb that found them, kept for a warm start
    _climb: Any

    @abstractmethod
    def _model(self, n_features: int) -> Mixture: ...

    @abstractmethod
    def _fits(self, model: Mixture) -> bool:
        """Whether the parameters at hand are of the shapes that the settings ask for."""

    # ------------------------------------------------ fitting

    @abstractmethod
    def _publish_params(self) -> None:
        """Publish what the parameters say, in units of the data."""

    def _warm_start(self, model: Mixture, survey: Survey) -> WarmStart:
        """The last fit as a start, if ``warm_start`` asks for it and the settings still suit it."""
        if not (self.warm_start and hasattr(self, "_params") and self._fits(model)):
            return WarmStart()
        start = model.change_frame(self._params, survey.pilot)
        same_frame = start is self._params
        return WarmStart(start, getattr(self, "_climb", None) if same_frame else None)

    def _store_density_fit(self, fit: Fit, survey: Survey) -> None:
        """Store the parameters and what criteria and a warm start need of the fit."""
        self._climb = fit.climb if self.warm_start else None
        self._total = (fit.objective, fit.weight, fit.entropy)
        store_fit(self, fit, survey)

    def _check_same_stream(self, model: Mixture, names: str) -> None:
        """Refuse a batch after settings were changed; ``names`` are those that may not be."""
        if not self._fits(model):
            raise ValueError(
                f"{names} changed since the last batch; clone the estimator to begin a new stream"
            )

    def _learn_batch_by_em(
        self, model: Mixture, source: Source, first: bool, total_weight: float | None = 1.0
    ) -> None:
        """One step of stepwise EM, from the parameters of a fit or of an earlier batch."""
        schedule = Stepwise() if first else self._schedule
        learned = learn_one_batch(self, model, source, schedule, total_weight)
        if learned is not None:
            self._publish_batch(learned)

    def _publish_batch(self, learned: Learned) -> None:
        """Publish the parameters after a batch, and the likelihood of its rows before it."""
        self._total = None  # a stream is not kept
        self.lower_bound_ = learned.stats.log_likelihood * (1.0 / learned.stats.weight)
        self._publish_params()

    # ------------------------------------------------ asking

    def _reading(self) -> tuple[Mixture, MixtureReading]:
        check_is_fitted(self)
        model = self._model(self.n_features_in_)
        return model, model.prepare(self._params)

    def _ask(self, X: Any, answer: Any) -> Array:
        return self._concatenate_rows(X, partial(answer, *self._reading()))

    def score_samples(self, X: Any) -> Array:
        """Log density of the observed entries of each row."""
        return self._ask(X, predictions.log_density)

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Mean log-likelihood per row (per unit of weight)."""
        total, weight, _ = self._totals(X, sample_weight)
        found: float = self._dtype_of(X)(total / weight)
        return found

    def _dtype_of(self, X: Any) -> Any:
        return np.float32 if getattr(X, "dtype", None) == np.float32 else float

    def _totals(self, X: Any, sample_weight: Any = None) -> tuple[float, float, float]:
        """Log-likelihood, weight and entropy of responsibilities, of X or of the training data."""
        check_is_fitted(self)
        if X is None:
            if self._total is None:
                raise ValueError(
                    "the rows of a stream, or of a conditioned mixture, are not kept: give X"
                )
            return self._total
        return self._sum_rows(X, *self._reading(), sample_weight)

    def _sum_rows(
        self, X: Any, model: Mixture, reading: MixtureReading, sample_weight: Any
    ) -> tuple[float, float, float]:
        """Log-likelihood, weight and entropy of responsibilities, summed over the rows of X."""
        task = partial(predictions.block_totals, model, reading)
        total = np.sum(list(self._rows(X, task, weight=sample_weight)), axis=0)
        if total[1] == 0:
            raise ValueError("X has no row of positive weight with an observed entry")
        return float(total[0]), float(total[1]), float(total[2])

    def _n_parameters(self) -> int:
        return self._model(self.n_features_in_).n_free(self.n_features_in_)

    def bic(
        self, X: Any = None, sample_weight: Any = None, n_effective: float | None = None
    ) -> float:
        """Bayesian information criterion, the lower the better. X=None: of the training data.

        Weights are frequencies: all rows together count as many as their weights add up to.
        ``n_effective`` says that they are worth so many independent rows instead.
        """
        total, weight, _ = effective_totals(self._totals(X, sample_weight), n_effective)
        return -2 * total + self._n_parameters() * parameter_cost(weight)

    def aic(
        self, X: Any = None, sample_weight: Any = None, n_effective: float | None = None
    ) -> float:
        """Akaike information criterion, the lower the better. X=None: of the training data.

        Weights and ``n_effective`` are as in ``bic``.
        """
        total, _, _ = effective_totals(self._totals(X, sample_weight), n_effective)
        return -2 * total + 2 * self._n_parameters()

    def _generator(self, n_samples: int, random_state: Any) -> np.random.Generator:
        """Random numbers for draws: the estimator's own stream, which goes on, or a given seed."""
        check_is_fitted(self)
        check_count("n_samples", n_samples)
        if random_state is not None:
            return np.random.default_rng(seed_from(random_state))
        seed, calls = self._stream
        self._stream = (seed, calls + 1)
        return np.random.default_rng([seed % 2**63, calls, 3])

    def impute(self, X: Any, method: str = "mean", random_state: Any = None) -> Array:
        """Fill the missing entries of X.

        Parameters
        ----------
        X : as in ``predict``
        method : {'mean', 'draw'}, default='mean'
            Conditional expectation given the observed entries of the row, or one draw from the
            conditional distribution (several draws make multiple imputations).
        random_state : int, RandomState, Generator or None, default=None
            Seed of the draws, which do not depend on the number of threads.

        Returns
        -------
        ndarray of shape (n_samples, n_features)
        """
        if method not in ("mean", "draw"):
            raise ValueError(f"method must be 'mean' or 'draw', got {method!r}")
        model, reading = self._reading()
        keys = RowKeys(seed_from(random_state), 0, _IMPUTE_STREAM)
        return self._concatenate_rows(
            X, partial(model.impute, reading, rng=keys, draw=method == "draw")
        )

    def oddness(
        self, X: Any, by: str = "row", *, n_draws: int = 2000, random_state: Any = 0
    ) -> Array:
        """How odd rows are, comparable between rows: 0.998 is odder than 99.8 % of such rows.

        It is the probability under the model of a denser row with the same entries seen, so that
        missing entries make a row neither odd nor ordinary. For rows of the model itself it is
        uniform between 0 and 1. One Gaussian has it exactly; else it is simulated.

        Parameters
        ----------
        X : as in ``score_samples``
        by : {'row', 'cell'}, default='row'
            'cell': how odd each entry is, given the other entries of its row.
        n_draws : int, default=2000
            Draws of a simulation. The standard error is at most 0.5 / sqrt(n_draws) and much
            smaller in the tail, which is extrapolated beyond the outermost draws.
        random_state : int, RandomState, Generator or None, default=0
            Seed of the draws, which do not depend on blocks or threads.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_features)
            By cell NaN where an entry is missing. A row without entries has 0.

        Notes
        -----
        The density is that of the point estimate of the parameters, also of variational fits.

        Examples
        --------
        >>> import numpy as np
        >>> from mixfold import GaussianMixture
        >>> X = np.random.default_rng(0).normal(size=(500, 2))
        >>> mixture = GaussianMixture().fit(X)
        >>> mixture.oddness([[0.0, 0.0], [3.5, 0.0], [np.nan, 3.5]]).round(2)
        array([0., 1., 1.])
        >>> mixture.oddness([[3.5, 1.0]], by="cell").round(1)
        array([[1. , 0.7]])
        """
        return oddness_of(self._log_tails(X, by, n_draws, random_state))

    def _log_tails(self, X: Any, by: str, n_draws: int, random_state: Any) -> Array:
        """Logarithms of tail probabilities of rows, or of cells."""
        if by not in ("row", "cell"):
            raise ValueError(f"by must be 'row' or 'cell', got {by!r}")
        check_count("n_draws", n_draws)
        density, seed = self._point_density(), seed_from(random_state)
        if isinstance(density, PointDensity):
            task = (
                RowTails(density, n_draws, seed)
                if by == "row"
                else partial(cell_tails, density, n_draws, seed)
            )
            return self._concatenate_rows(X, task)
        if by == "cell":
            raise ValueError(
                f"{type(self).__name__} has oddness by row only; by='cell' needs a plain mixture "
                "or factor model"
            )
        tails = RowTails(density, n_draws, seed)
        return np.concatenate([tails(block) for block in self._open(X, reset=False).blocks()])

    def _point_density(self) -> PointDensity | DrawnDensity:
        """The density at the point estimate, of which rows can be drawn as well."""
        check_is_fitted(self)
        model = self._model(self.n_features_in_)
        if isinstance(model, Mixture):
            return PointDensity(*model.plug_in(self._params))
        return DrawnDensity(self)

    # ------------------------------------------------ scikit-learn and files

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_params")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = True
        return tags

    def _copy_fit(self, other: DensityEstimator) -> None:
        """Take over how another fit ended; the parameters, and so their likelihood, are others."""
        for name in ("_dtype", "_stream", "converged_", "stop_reason_", "n_iter_", "events_"):
            setattr(self, name, getattr(other, name))
        self._total, self.lower_bound_ = None, float("nan")
        self._publish_params()

    def _summary(self) -> dict[str, Any]:
        return {
            "log-likelihood per row": self.lower_bound_,
            "training weight": None if self._total is None else self._total[1],
            "converged": getattr(self, "converged_", False),
            "iterations": self.n_iter_,
        }
