"""Mixtures of Gaussians under linear transformations."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin

from mixfold.contracts import Array, Executor, Pilot, Source
from mixfold.engine.loop import Plan
from mixfold.estimators.mixtures.mlit_answers import INCOMPLETE, TransformedAnswers
from mixfold.estimators.shell import constraints as rule
from mixfold.estimators.shell.base import DegenerateWarning, warn
from mixfold.estimators.shell.fitting import FITTING_RULES, FittingEstimator
from mixfold.models.factors.spectral import second_moments
from mixfold.models.factors.spectral_sums import MissingEntries
from mixfold.models.mixtures.mlit.model import TransformedMixture
from mixfold.models.mixtures.mlit.records import Iterates, Moments
from mixfold.models.mixtures.mlit.rules import Constrained, Normalized, Orthonormal, Rule
from mixfold.models.mixtures.mlit.starts import cluster_start, window_start

_UNUSED = ("acceleration", "warm_start")


class MLiT(TransformedAnswers, ClassNamePrefixFeaturesOutMixin, TransformerMixin, FittingEstimator):
    """Mixture of Gaussians of rows under linear transformations, one for each component.

    The score of a row x is

        f(x) = sum_k weights_k N(transforms_k x; means_k, covariances_k)

    with d rows in each transformation. It is **not a density of x**: it is constant along the null
    space of the transformations, its integral is infinite, and its level depends on their scale.
    It serves to compare classes, each with a model of its own (:class:`MixtureClassifier`), that
    share ``n_dims`` and ``scale``. There is no BIC and no sampling of rows.

    What the two published methods really do: with the mean of a component following its
    transformation, the criterion is largest where the transformation has rank one, and a norm does
    not prevent that. Every sweep is a step of a power iteration towards that point, and the ridge
    keeps it finite. The number of sweeps is therefore what regularises: a few from the start
    (often none) are best, and :class:`MixtureClassifier` chooses them by cross-validation. Results
    depend on the origin and the units of the columns, on ``scale`` and ``ridge``. The method
    'orthonormal' has none of these defects: its scores are densities of the retained subspaces
    (each term times exp(-ridge tr(covariances_k^-1) / 2), the mean log score under jitter of the
    size of the ridge), and its objective never falls.

    Parameters
    ----------
    n_components : int, default=1
        Number of components K.
    n_dims : int, default=2
        Rows d of each transformation.
    method : {'normalized', 'constrained', 'orthonormal'}, default='normalized'
        'normalized': one least-squares sweep over the columns per step, then Frobenius norm
        ``scale``. 'constrained': every column on the L1 sphere of radius scale / n_features, where
        the best point of it is found exactly (global from outside of the sphere and for up to 12
        dimensions). 'orthonormal': the axes of least variance of each component.
    scale : float, default=1.0
        Norm of the transformations of the first two methods.
    init : {'largest', 'smallest'}, default='largest'
        Eigenvectors of the covariance of all rows that the components begin with: from the largest
        eigenvalue on, or from the smallest. 'orthonormal' begins with clusters of k-means.
    shift : int, default=2
        Component k begins with eigenvectors k * shift, k * shift + 1, ...
    ridge : float, default=0.01
        Added to every variance under a transformation.
    columns_per_iter : int, default=None
        Columns that a step of 'constrained' moves, in turn; None means all, 1 is as published.
    iterate : int, default=None
        Which of the iterates answers (0 is the start); None means the last. They are all kept by
        the methods whose criterion may fall, see ``use_iterate``.
    max_iter : int, default=50
        Iterations.
    tol : float, default=1e-5
        A step that changes the mean score by less ends the fit; not of 'normalized', whose number
        of steps is a setting like others.
    random_state : int, RandomState, Generator or None, default=None
        Seed of the clusters that 'orthonormal' begins with.
    verbose : int, default=0
        1 reports progress, 2 every iteration.
    verbose_interval : int, default=10
        Iterations between two lines of a log.
    executor : {'threads', 'dask'}, a distributed.Client or an Executor, default='threads'
        Where the rows are visited.
    n_jobs : int, default=None
        Number of threads; None means all cores.
    time_budget : float, default=None
        Seconds after which the fit ends where it is.
    checkpoint : path, default=None
        File in which the fit is kept and from which it goes on if interrupted.

    Attributes
    ----------
    weights_ : ndarray of shape (n_components,)
    transforms_ : ndarray of shape (n_components, n_dims, n_features)
    means_ : ndarray of shape (n_components, n_dims)
    covariances_ : ndarray of shape (n_components, n_dims, n_dims)
        With the ridge.
    iterate_ : int
        The iterate that answers, of ``n_iterates_``.
    lower_bounds_ : list of float
        Mean score of the training rows after each step; ``start_score_`` before the first.
    converged_, stop_reason_, n_iter_, n_passes_, lower_bound_, events_
        As in :class:`GaussianMixture`.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    References
    ----------
    .. [1] Otoom, Gunes, Perez Concha, Piccardi. MLiT: mixtures of Gaussians under linear
       transformations. Pattern Analysis and Applications 14, 2011.

    Examples
    --------
    >>> import numpy as np
    >>> from mixfold import MLiT
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 5)) * [3.0, 2.0, 1.0, 0.1, 0.1]
    >>> model = MLiT(1, 2, method="orthonormal", ridge=1e-6, random_state=0).fit(X)
    >>> np.abs(model.transforms_[0])[:, :3].max().round(2) < 0.1  # of least variance
    np.True_
    >>> model.transform(X).shape, model.score_samples(X).shape
    ((200, 2), (200,))
    """

    _constraints: ClassVar[rule.Constraints] = {
        **{name: rules for name, rules in FITTING_RULES.items() if name not in _UNUSED},
        "n_components": (rule.integer(1),),
        "n_dims": (rule.integer(1),),
        "method": (rule.one_of(["normalized", "constrained", "orthonormal"]),),
        "scale": (rule.number(0, open_end=True),),
        "init": (rule.one_of(["largest", "smallest"]),),
        "shift": (rule.integer(1),),
        "ridge": (rule.number(0),),
        "columns_per_iter": (rule.nothing(), rule.integer(1)),
        "iterate": (rule.nothing(), rule.integer(0)),
    }
    _stored: ClassVar[tuple[str, ...]] = (
        "_params", "_dtype", "_stream", "_origin", "converged_", "stop_reason_", "n_iter_",
        "n_passes_", "lower_bound_", "lower_bounds_", "start_score_", "events_", "iterate_",
    )  # fmt: skip
    # scores depend on these, whatever the rows
    _same_in_all_classes: ClassVar[tuple[str, ...]] = (
        "n_dims", "method", "scale", "ridge", "iterate",
    )  # fmt: skip
    _params: Iterates

    def __init__(
        self,
        n_components: int = 1,
        n_dims: int = 2,
        method: str = "normalized",
        *,
        scale: float = 1.0,
        init: str = "largest",
        shift: int = 2,
        ridge: float = 0.01,
        columns_per_iter: int | None = None,
        iterate: int | None = None,
        max_iter: int = 50,
        tol: float = 1e-5,
        random_state: Any = None,
        verbose: int = 0,
        verbose_interval: int = 10,
        executor: Any = "threads",
        n_jobs: int | None = None,
        time_budget: float | None = None,
        checkpoint: Any = None,
    ) -> None:
        self.n_components = n_components
        self.n_dims = n_dims
        self.method = method
        self.scale = scale
        self.init = init
        self.shift = shift
        self.ridge = ridge
        self.columns_per_iter = columns_per_iter
        self.iterate = iterate
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state
        self.verbose = verbose
        self.verbose_interval = verbose_interval
        self.executor = executor
        self.n_jobs = n_jobs
        self.time_budget = time_budget
        self.checkpoint = checkpoint

    # ------------------------------------------------ fitting

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit the model to the rows of one class.

        Parameters
        ----------
        X : array-like, table, path or Dask collection
            Rows are samples, columns features; no entry may be missing.
        y : ignored
        sample_weight : array-like of shape (n_samples,) or str, optional
            Weight 2 equals repeating the row, weight 0 leaving it out.

        Returns
        -------
        self
        """
        self._check_parameters()
        source = self._open(X, reset=True, weight=sample_weight, min_rows=2)
        if self.n_dims > source.n_features:
            raise ValueError(
                f"n_dims={self.n_dims} must be at most the number of features, n_features = "
                f"{source.n_features}; lower it"
            )
        self._fit(source)
        return self

    def _rule(self) -> Rule:
        scale = float(self.scale)
        rules: dict[str, Rule] = {
            "normalized": Normalized(scale),
            "constrained": Constrained(scale, self.columns_per_iter),
            "orthonormal": Orthonormal(),
        }
        return rules[self.method]

    def _informed(
        self, model: Any, source: Source, executor: Executor, pilot: Pilot, seed: int
    ) -> TransformedMixture:
        """The model with its start, which needs the moments of all rows."""
        try:
            sums = second_moments(source, executor)
        except MissingEntries:
            raise ValueError(INCOMPLETE) from None
        weight, covariance = sums.sums.weight, sums.covariance()
        self._warn_of_rows(weight, covariance)
        moments = Moments(weight, sums.sums.mean, covariance, covariance)
        rule, ridge, origin = self._rule(), float(self.ridge), sums.sums.mean
        rng = np.random.default_rng(seed % 2**63)
        if self.method == "orthonormal":
            first = cluster_start(rule, pilot, self.n_components, self.n_dims, ridge, rng)
        else:
            first = window_start(rule, moments, self.n_components, self.n_dims,
                                 smallest=self.init == "smallest", shift=self.shift,
                                 ridge=ridge)  # fmt: skip
        self._origin = origin
        steady = self.tol if self.method == "constrained" else 0.0
        return TransformedMixture(rule, ridge, first, origin, steady, keep=not rule.monotone)

    def _warn_of_rows(self, weight: float, covariance: Array) -> None:
        if weight <= self.n_dims:
            warn(
                f"rows of weight {weight:g} cannot tell a covariance in n_dims={self.n_dims}; only "
                "the ridge keeps it regular",
                DegenerateWarning,
            )
            return
        least = self.init == "smallest" or self.method == "orthonormal"
        if least and (np.diagonal(covariance) <= 0).any():
            warn(
                "some columns are constant: the axes of least variance are theirs, and only the "
                "ridge remains there; remove them",
                DegenerateWarning,
            )

    def _model(self, n_features: int) -> Any:
        return None  # made once the moments are known

    def _plan(self, seed: int, max_iter: int | None = None) -> Plan:
        tol = self.tol if self.method == "orthonormal" else 0.0
        return Plan(tol=tol, max_iter=self.max_iter, n_init=1, n_candidates=1,
                    time_budget=self.time_budget, seed=seed)  # fmt: skip

    def _tell(self, fit: Any) -> None:
        if fit.reason != "max_iter" or self.method == "orthonormal":
            super()._tell(fit)
            return
        # what happens after the iterate that answers is of no concern
        told = [event for event in fit.events if event.iteration <= self.iterate_]
        if told:
            warn(f"{told[0].message}; see events_", DegenerateWarning)

    def _keep(self, result: Any, source: Source, seed: int, quiet: bool) -> None:
        self.start_score_ = float(result.trace[0] / result.weight)
        last = len(result.params.iterates) - 1
        self.iterate_ = last if self.iterate is None else min(self.iterate, last)
        super()._keep(result, source, seed, quiet)

    @property
    def _n_features_out(self) -> int:
        return int(self.n_dims)

    def fit_transform(self, X: Any, y: Any = None, sample_weight: Any = None) -> Array:
        """Fit, then transform the same rows."""
        return self.fit(X, y, sample_weight).transform(X)

    def _check_state(self) -> None:
        shape = (self.n_components, self.n_dims, self.n_features_in_)
        if any(one.transforms.shape != shape for one in self._params.iterates):
            raise ValueError("parameters of another shape than the settings declare")
        self._publish_params()
