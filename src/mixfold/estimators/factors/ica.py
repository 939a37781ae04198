"""Independent component analysis."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_array, check_is_fitted

from mixfold.contracts import Array, Block, Source
from mixfold.engine.acceleration import ACCELERATIONS
from mixfold.engine.loop import Plan
from mixfold.engine.random import seed_from
from mixfold.estimators.shell import constraints as rule
from mixfold.estimators.shell.base import MixfoldEstimator, warn
from mixfold.estimators.shell.dtypes import in_dtype
from mixfold.estimators.shell.fitting import (
    Survey,
    publish_convergence,
    run_fit,
    store_fit,
    survey_rows,
    warn_about_fit,
)
from mixfold.estimators.shell.predictions import match_dtype
from mixfold.estimators.shell.units import warn_about_units
from mixfold.math.source_densities import SOURCES
from mixfold.models.factors.ica import IndependentSources, Plane, UnmixingParams, complete_rows
from mixfold.models.factors.spectral import principal_axes
from mixfold.models.factors.spectral_sums import MissingEntries

# axes of less variance, as a share of that of the first, are none; the least noise likewise
_FLAT = 1e-12
# with fewer rows tails are not told apart
_FEWEST_ROWS = 50
# sources that a warning names
_NAMED = 5


class ICA(ClassNamePrefixFeaturesOutMixin, TransformerMixin, MixfoldEstimator):
    """Independent component analysis by maximum likelihood.

        s_1 .. s_H independent, of density p;   x = mixing_ s + mean_ (+ noise beside the plane)

    p has mean 0, variance 1 and heavier tails than a normal distribution, which makes the sources
    identifiable: principal components are only uncorrelated, and any rotation of normal sources is
    as likely. With H = n_features the density of a row is p(s_1) .. p(s_H) \\|det components_\\|.
    With fewer the sources live in the plane of the first principal axes, as is usual, and what is
    beside it is Gaussian noise of one variance, as in :class:`PPCA`: still a density of rows, to
    score and to draw from.

    Parameters
    ----------
    n_components : int, default=None
        Number of sources H. None is as many as axes have variance.
    sources : {'laplace', 'logistic', 'cosh'}, default='cosh'
        Density of the sources: Laplace (its peak rounded over a thousandth of its standard
        deviation), logistic, or the hyperbolic secant, whose score is a tanh. Sources need not
        have that density to be found, but the tails of all of them must be heavier than a normal
        distribution's; those of uniform sources are not.
    tol : float, default=1e-7
        The fit stops when the total gain still to come, extrapolated from the recent rate of
        convergence, is below ``tol``. The gain is that of the log-likelihood per row.
    max_iter : int, default=500
        Largest number of iterations.
    n_init : int, default=1
        Starts that are followed to the end; the best is kept. Each is a random rotation.
    random_state : int, RandomState, Generator or None, default=None
        Seed; the same seed gives the same result for any number of threads or workers.
    verbose : int, default=0
        1 shows progress (a status line in a terminal, some lines in a log), 2 shows every
        iteration.
    verbose_interval : int, default=10
        Iterations between two lines of a log.
    executor : {'threads', 'dask'}, a distributed.Client or an Executor, default='threads'
        Where the rows are visited: by threads of this process or by the workers of a Dask cluster.
    n_jobs : int, default=None
        Number of threads; None means all cores.
    time_budget : float, default=None
        Seconds after which the best result so far is returned.
    checkpoint : path, default=None
        File to which a long fit writes its state now and then; the same call made again after an
        interruption goes on from it and ends in the same result.

    Attributes
    ----------
    n_components_ : int
    components_ : ndarray of shape (n_components_, n_features)
        The unmixing matrix: sources are (x - mean_) components_'.
    mixing_ : ndarray of shape (n_features, n_components_)
        A source in the columns. Sources are in the order of the variance that they bring, and the
        largest entry of each column is positive.
    mean_ : ndarray of shape (n_features,)
    noise_variance_ : float
        Of each direction beside the plane; 0 where there is none.
    converged_, stop_reason_, n_iter_, n_passes_, lower_bound_, lower_bounds_, events_
        As in :class:`GaussianMixture`; the objective is the log-likelihood per row.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Notes
    -----
    Mean, plane and noise are those of the principal axes; the likelihood is maximised over all
    mixing matrices in that plane, not over orthogonal ones of white rows alone (as FastICA does).
    The steps maximise parabolas that bound it [2]_, which is EM for sources that are mixtures of
    normals of different variance; so the likelihood never falls. Rows may weigh, and X may be
    sparse (it becomes dense a block at a time) or larger than memory; no entry may be missing.
    Memory grows with n_components cubed.

    References
    ----------
    .. [1] Bell, Sejnowski. An information-maximization approach to blind separation and blind
       deconvolution. Neural Computation 7, 1995.
    .. [2] Ablin, Gramfort, Cardoso, Bach. Stochastic algorithms with descent guarantees for ICA.
       AISTATS 2019.

    Examples
    --------
    >>> import numpy as np
    >>> from mixfold import ICA
    >>> rng = np.random.default_rng(0)
    >>> S = rng.laplace(size=(2000, 2))
    >>> X = S @ [[1.0, 0.5], [-0.4, 1.0]]
    >>> ica = ICA(random_state=0).fit(X)
    >>> found = np.abs(np.corrcoef(ica.transform(X).T, S.T)[:2, 2:])
    >>> bool((found.max(axis=1) > 0.99).all())
    True
    >>> ica.sample(5).shape, ica.score_samples(X).shape
    ((5, 2), (2000,))
    >>> from mixfold.plots import plot_biplot
    >>> ax = plot_biplot(ica, X)
    """

    _constraints: ClassVar[rule.Constraints] = {
        "n_components": (rule.nothing(), rule.integer(1)),
        "sources": (rule.one_of(SOURCES),),
    }
    _stored: ClassVar[tuple[str, ...]] = (
        "_params", "_dtype", "_stream", "converged_", "stop_reason_", "n_iter_", "n_passes_",
        "lower_bound_", "lower_bounds_", "events_",
    )  # fmt: skip

    _params: UnmixingParams
    _dtype: str
    _stream: tuple[int, int]

    def __init__(
        self,
        n_components: int | None = None,
        *,
        sources: str = "cosh",
        tol: float = 1e-7,
        max_iter: int = 500,
        n_init: int = 1,
        random_state: Any = None,
        verbose: int = 0,
        verbose_interval: int = 10,
        executor: Any = "threads",
        n_jobs: int | None = None,
        time_budget: float | None = None,
        checkpoint: Any = None,
    ) -> None:
        self.n_components = n_components
        self.sources = sources
        self.tol = tol
        self.max_iter = max_iter
        self.n_init = n_init
        self.random_state = random_state
        self.verbose = verbose
        self.verbose_interval = verbose_interval
        self.executor = executor
        self.n_jobs = n_jobs
        self.time_budget = time_budget
        self.checkpoint = checkpoint

    # ------------------------------------------------ fitting

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : array-like, sparse matrix, table, path or Dask collection
            Rows are samples, columns features; no entry may be missing.
        y : ignored
        sample_weight : array-like of shape (n_samples,) or str, optional
            Weight 2 equals repeating the row, weight 0 leaving it out. For tables and files also
            the name of a column, which is then not a feature.

        Returns
        -------
        self
        """
        self._check_parameters()
        source = self._open(X, reset=True, weight=sample_weight, min_rows=2)
        survey = survey_rows(self, source)
        model = IndependentSources(self._find_plane(source, survey), SOURCES[self.sources])
        plan = Plan(
            tol=self.tol, max_iter=self.max_iter, n_init=self.n_init, n_candidates=1,
            time_budget=self.time_budget, acceleration=ACCELERATIONS["squarem"], seed=survey.seed,
        )  # fmt: skip
        result = run_fit(self, model, survey, plan)
        store_fit(self, replace(result, params=_in_order(result.params)), survey)
        self._publish_params()
        publish_convergence(self, result)
        warn_about_fit(result, self.max_iter)
        self._warn_of_normal_sources(survey.pilot.block)
        return self

    def _warn_of_normal_sources(self, block: Block) -> None:
        """Warn of sources that a normal distribution describes as well: any rotation of them is as
        likely. One of them is found all the same, as what is left by the others."""
        S = _sources_of(self._params, block).astype(float)
        if len(S) < _FEWEST_ROWS:
            return
        weight = block.weights() / block.weights().sum()
        mean = weight @ S
        spread = np.maximum(weight @ (S - mean) ** 2, np.finfo(float).tiny)
        found = weight @ SOURCES[self.sources].log_density(S)
        plain = np.flatnonzero(found <= -0.5 * (1 + np.log(2 * np.pi * spread)))
        if len(plain) > 1:
            which = ", ".join(map(str, plain[:_NAMED])) + (", ..." if len(plain) > _NAMED else "")
            warn(
                f"sources {which} have no heavier tails than a normal distribution, so that a "
                "rotation of them is as likely: they need not be the independent ones. Use PPCA "
                "for the plane alone, or sklearn.decomposition.FastICA for sources with light "
                "tails",
                UserWarning,
            )

    def _find_plane(self, source: Source, survey: Survey) -> Plane:
        """The principal axes of the rows, as many as sources are wanted."""
        D, n = source.n_features, survey.pilot.total_rows
        most = min(D, max(n - 1, 1))
        wanted = most if self.n_components is None else int(self.n_components)
        if wanted > most:
            raise ValueError(
                f"n_components={wanted} sources of {n} rows of positive weight with {D} columns: "
                f"there are at most {most}, as n_features and n_samples - 1 allow; lower it"
            )
        if wanted < D:
            warn_about_units(self, survey.pilot, "the plane of fewer sources than columns")
        rng = np.random.default_rng(survey.seed % 2**63)
        try:
            found = principal_axes(source, survey.executor, wanted, rng=rng)
        except MissingEntries:
            for block in source.blocks():
                complete_rows(block)
            raise
        rank = int((found.values > _FLAT * max(found.values[0], 0.0)).sum())
        if rank == 0:
            raise ValueError("all rows are the same: there is no source; give other rows")
        if self.n_components is not None and rank < wanted:
            raise ValueError(
                f"n_components={wanted} sources, but the rows vary along {rank} axes only; lower "
                "it, or leave it out (None)"
            )
        values = found.values[:rank]
        left = max(found.total_variance - float(values.sum()), 0.0) / max(D - rank, 1)
        noise = max(left, _FLAT * found.total_variance / D) if rank < D else 0.0
        return Plane(found.mean, found.vectors[:, :rank], np.sqrt(values), noise)

    def _publish_params(self) -> None:
        plane, W = self._params.plane, self._params.unmixing
        self.n_components_ = len(W)
        self.components_ = in_dtype((W / plane.scales) @ plane.axes.T, self._dtype)
        self.mixing_ = in_dtype(_mixing(self._params), self._dtype)
        self.mean_ = in_dtype(plane.mean, self._dtype)
        self.noise_variance_ = plane.noise

    # ------------------------------------------------ sources and rows

    def _map_blocks(self, X: Any, task: Any) -> Array:
        return self._concatenate_rows(X, partial(_in_precision_of_rows, task))

    def transform(self, X: Any) -> Array:
        """Sources of the rows, (n_samples, n_components_)."""
        check_is_fitted(self)
        return self._map_blocks(X, partial(_sources_of, self._params))

    def inverse_transform(self, S: Any) -> Array:
        """Rows at given sources: S mixing_' + mean_.

        Parameters
        ----------
        S : array-like of shape (n_samples, n_components_)

        Returns
        -------
        ndarray of shape (n_samples, n_features)
        """
        check_is_fitted(self)
        S = check_array(S, dtype=[np.float64, np.float32])
        if S.shape[1] != self.n_components_:
            raise ValueError(
                f"S must have one column for each of the {self.n_components_} sources, got "
                f"{S.shape[1]}"
            )
        return in_dtype(S.astype(float) @ _mixing(self._params).T + self.mean_, self._dtype)

    def reconstruct(self, X: Any) -> Array:
        """Rows without what is beside the plane of the sources."""
        return self.inverse_transform(self.transform(X))

    def score_samples(self, X: Any) -> Array:
        """Log density of each row."""
        check_is_fitted(self)
        model = IndependentSources(self._params.plane, SOURCES[self.sources])
        return self._map_blocks(X, partial(model.log_density, self._params))

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Mean log-likelihood per row (per unit of weight)."""
        check_is_fitted(self)
        model = IndependentSources(self._params.plane, SOURCES[self.sources])
        task = partial(_weighed_scores, partial(model.log_density, self._params))
        total = np.sum(list(self._rows(X, task, weight=sample_weight)), axis=0)
        if total[1] == 0:
            raise ValueError("X has no row of positive weight")
        return float(total[0] / total[1])

    def sample(self, n_samples: int = 1, random_state: Any = None) -> Array:
        """Draw new rows.

        Parameters
        ----------
        n_samples : int, default=1
        random_state : int, RandomState, Generator or None, default=None
            None goes on with the estimator's own stream: each call gives new draws, and the
            same sequence of calls after the same fit the same ones.

        Returns
        -------
        ndarray of shape (n_samples, n_features)
        """
        check_is_fitted(self)
        rule.check_count("n_samples", n_samples)
        if random_state is not None:
            rng = np.random.default_rng(seed_from(random_state))
        else:
            seed, calls = self._stream
            self._stream = (seed, calls + 1)
            rng = np.random.default_rng([seed % 2**63, calls, 3])
        model = IndependentSources(self._params.plane, SOURCES[self.sources])
        return in_dtype(model.sample(self._params, n_samples, rng), self._dtype)

    # ------------------------------------------------ scikit-learn and files

    @property
    def _n_features_out(self) -> int:
        return self.n_components_

    def _check_state(self) -> None:
        plane, W = self._params.plane, self._params.unmixing
        H, D = len(plane.scales), self.n_features_in_
        shapes = (plane.mean.shape, plane.axes.shape, W.shape)
        if shapes != ((D,), (D, H), (H, H)) or self.n_components not in (None, H):
            raise ValueError("parameters of another shape than the settings declare")
        if not (plane.scales > 0).all() or (H < D and not plane.noise > 0):
            raise ValueError("variances that are not positive")
        if np.linalg.matrix_rank(W) < H:
            raise ValueError("an unmixing matrix without an inverse")
        self._publish_params()

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_params")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def _mixing(params: UnmixingParams) -> Array:
    """What a source adds to the columns, (D, H)."""
    plane = params.plane
    return np.asarray((plane.axes * plane.scales) @ np.linalg.inv(params.unmixing))


def _in_order(params: UnmixingParams) -> UnmixingParams:
    """Sources by the variance that they bring; the largest entry of each column positive."""
    mixing = _mixing(params)
    order = np.argsort(-np.einsum("ij,ij->j", mixing, mixing), kind="stable")
    mixing = mixing[:, order]
    signs = np.sign(mixing[np.abs(mixing).argmax(axis=0), np.arange(len(order))])
    return replace(params, unmixing=params.unmixing[order] * signs[:, None])


def _sources_of(params: UnmixingParams, block: Block) -> Array:
    return np.asarray(params.plane.coordinates(complete_rows(block))[0] @ params.unmixing.T)


def _weighed_scores(log_density: Any, block: Block) -> Array:
    weight = block.weights()
    return np.array([weight @ log_density(block), weight.sum()])


def _in_precision_of_rows(task: Any, block: Block) -> Array:
    return match_dtype(task(block), block)
