"""NestedMixture: groups that are themselves mixtures."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np

from mixfold.contracts import Array, Event, Source
from mixfold.engine.loop import Fit, Plan
from mixfold.estimators.mixtures.cells import CellsEstimator
from mixfold.estimators.mixtures.layers import Layers, for_size
from mixfold.estimators.mixtures.mixture import CANDIDATES
from mixfold.estimators.shell import constraints as rule
from mixfold.estimators.shell.fitting import FITTING_RULES
from mixfold.families import GAUSSIAN
from mixfold.models.mixtures import nested
from mixfold.models.mixtures.mixture import Mixture
from mixfold.models.mixtures.starts import STARTS

_SIZES = rule.Rule(
    "a list of ints >= 1, one for each of the n_components cells",
    lambda v: isinstance(v, list | tuple) and all(rule.integer(1).holds(size) for size in v),
)


class NestedMixture(CellsEstimator):
    """Mixture of Gaussian mixtures: cells, and leaves within each cell.

    A row comes from one of K cells, and within it from one of the cell's own Gaussians:

        k ~ weights,    j | k ~ subweights[k],    x | k, j ~ N(means[k, j], covariances[k, j])

    The density is that of the flat mixture of all leaves, which ``flatten`` gives; what is added
    are the cells: groups of any shape, as a union of Gaussians, found from coarse to fine. A
    mixture of K components is fitted first; each row goes to its most probable component; and the
    rows of each component get a mixture of their own. EM of all leaves together then refines the
    whole, and cells and leaves share the rows softly [1]_.

    X may be what it may be for :class:`GaussianMixture`, with missing entries and weights.

    Parameters
    ----------
    n_components : int, default=1
        Number of cells K.
    n_subcomponents : int or list of int, default=2
        Leaves of each cell, or of each of the cells, which stand in the order of falling weight of
        the first mixture. A cell with fewer distinct rows has fewer leaves.
    covariance_type : str, default='full'
        As in :class:`GaussianMixture`, of the leaves; what is tied, is tied over all of them.
    n_layers : int, default=2
        Layers of the tree. With 3, the leaves are cells of finer leaves again, n_subcomponents
        each; with 1 there are no cells but the leaves.
    refine : bool, default=True
        Whether EM of the flat mixture of all leaves follows, which can only raise the likelihood.
        Cells may then overlap more than those of the first mixture.
    tol : float, default=1e-6
        Each of the fits ends when its mean log-likelihood per row is projected to gain less than
        this in all the steps to come.
    reg_covar : float, default=1e-6
        Smallest variance in any direction, relative to the variance of all of the data.
    max_iter : int, default=500
        Iterations of each of the fits.
    n_init : int, default=1
        Starts of the first mixture, and of that of each cell; the best is kept.
    init_params : {'kmeans', 'k-means++', 'random', 'random_from_data'}, default='kmeans'
        Their starts, as in :class:`GaussianMixture`.
    random_state : int, RandomState, Generator or None, default=None
        Seed; the same seed gives the same result for any number of threads or workers.
    verbose : int, default=0
        1 shows a status line in a terminal and some lines in a log, 2 every iteration: of the first
        mixture, of each cell in turn, of all leaves.
    verbose_interval : int, default=10
        Iterations between two lines of a log.
    acceleration : {'auto', 'quasi-newton', 'squarem'} or None, default='auto'
        As in :class:`GaussianMixture`.
    executor : {'threads', 'dask'}, a distributed.Client or an Executor, default='threads'
        Where the rows are visited.
    n_jobs : int, default=None
        Number of threads; None means all cores.
    time_budget : float, default=None
        Seconds for the whole; then the best result so far is returned.

    Attributes
    ----------
    weights_ : ndarray of shape (n_components,)
        Of the cells, a_k.
    subweights_ : list of ndarray
        Of the leaves of each cell, given the cell, b_j|k.
    leaf_weights_ : ndarray of shape (n_leaves,)
        Of all leaves, a_k b_j|k, cell by cell.
    leaf_cells_ : ndarray of shape (n_leaves,)
        The cell of each leaf; ``paths_``, of shape (n_leaves, n_layers), says which child it is in
        each layer.
    means_ : ndarray of shape (n_leaves, n_features)
    covariances_ : ndarray
        As in :class:`GaussianMixture`, of the leaves.
    n_leaves_ : int
    lower_bound_ : float
        Mean log-likelihood per unit of weight; ``unrefined_bound_`` before the EM of all leaves and
        ``lower_bounds_`` after each of its steps.
    converged_ : bool
        Of the EM of all leaves; without it, of all the fits before.
    stop_reason_ : {'converged', 'max_iter', 'time_budget', 'interrupted'}
    n_iter_ : int
        Steps of all the fits together; ``n_passes_`` counts passes over their rows.
    events_ : list of Event
        Floored, re-seeded or dropped components, cells with fewer leaves than asked for.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    See Also
    --------
    GaussianMixture : the same density without cells.

    References
    ----------
    .. [1] Li. Clustering based on a multilayer mixture model. Journal of Computational and
       Graphical Statistics 14, 2005.

    Examples
    --------
    Two groups, each of two Gaussians that are closer to each other than to the other group:

    >>> import numpy as np
    >>> from mixfold import NestedMixture
    >>> rng = np.random.default_rng(0)
    >>> centres = np.array([[0, 0], [3, 3], [20, 0], [20, 5]])
    >>> X = rng.normal(size=(400, 2)) + np.repeat(centres, 100, axis=0)
    >>> model = NestedMixture(2, 2, random_state=0).fit(X)
    >>> model.weights_.round(2)
    array([0.5, 0.5])
    >>> [shares.round(1).tolist() for shares in model.subweights_]
    [[0.5, 0.5], [0.5, 0.5]]
    >>> model.predict([[0, 0], [3, 3]]).tolist() == [model.predict([[1.5, 1.5]])[0]] * 2
    True
    >>> model.flatten().n_components
    4
    """

    # a fit is made of many: none of them can be gone on with alone
    warm_start: ClassVar[bool] = False
    checkpoint: ClassVar[None] = None

    _constraints: ClassVar[rule.Constraints] = {
        **{k: v for k, v in FITTING_RULES.items() if k not in ("warm_start", "checkpoint")},
        "n_components": (rule.integer(1),),
        "n_subcomponents": (rule.integer(1), _SIZES),
        "covariance_type": (rule.one_of(GAUSSIAN),),
        "n_layers": (rule.integer(1),),
        "refine": (rule.boolean(),),
        "reg_covar": (rule.number(0),),
        "n_init": (rule.integer(1),),
        "init_params": (rule.one_of(STARTS),),
    }
    _stored: ClassVar[tuple[str, ...]] = (
        "_params", "_total", "paths_", "converged_", "stop_reason_", "n_iter_", "n_passes_",
        "lower_bound_", "lower_bounds_", "unrefined_bound_", "events_", "_dtype", "_stream",
    )  # fmt: skip

    def __init__(
        self,
        n_components: int = 1,
        n_subcomponents: Any = 2,
        *,
        covariance_type: str = "full",
        n_layers: int = 2,
        refine: bool = True,
        tol: float = 1e-6,
        reg_covar: float = 1e-6,
        max_iter: int = 500,
        n_init: int = 1,
        init_params: str = "kmeans",
        random_state: Any = None,
        verbose: int = 0,
        verbose_interval: int = 10,
        acceleration: str | None = "auto",
        executor: Any = "threads",
        n_jobs: int | None = None,
        time_budget: float | None = None,
    ) -> None:
        self.n_components = n_components
        self.n_subcomponents = n_subcomponents
        self.covariance_type = covariance_type
        self.n_layers = n_layers
        self.refine = refine
        self.tol = tol
        self.reg_covar = reg_covar
        self.max_iter = max_iter
        self.n_init = n_init
        self.init_params = init_params
        self.random_state = random_state
        self.verbose = verbose
        self.verbose_interval = verbose_interval
        self.acceleration = acceleration
        self.executor = executor
        self.n_jobs = n_jobs
        self.time_budget = time_budget

    # ------------------------------------------------ fitting

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit the first mixture, those of its cells, and all of it.

        Parameters
        ----------
        X : array-like, sparse matrix, table, path or Dask collection
            Rows are samples, columns features; NaN or null marks a missing entry.
        y : ignored
        sample_weight : array-like of shape (n_samples,) or str, optional
            Weight 2 equals repeating the row, weight 0 leaving it out. For tables and files also
            the name of a column, which is then not a feature.

        Returns
        -------
        self
        """
        self._check_parameters()
        self._fit(self._open(X, reset=True, weight=sample_weight, min_rows=2))
        return self

    def fit_predict(self, X: Any, y: Any = None, sample_weight: Any = None) -> Array:
        """Fit, then assign each row to its most probable cell."""
        return self.fit(X, y, sample_weight).predict(X)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        sizes, cells = self.n_subcomponents, self.n_components
        if isinstance(sizes, list | tuple) and len(sizes) != cells:
            raise ValueError(
                f"The 'n_subcomponents' parameter of NestedMixture must be {_SIZES.words}. Got "
                f"{len(sizes)} of them for n_components={cells}."
            )

    def _fit(self, source: Source, max_iter: int | None = None) -> Fit:
        budget = float("inf") if self.time_budget is None else self.time_budget
        deadline = time.monotonic() + budget
        executor, seed, pilot = self._survey(source)
        family, plan, start = self._family(), self._plan(seed), STARTS[self.init_params]
        model = Mixture(self.n_components, family, start=start)
        top = self._climbed(model, source, executor, pilot, for_size(plan, self.n_components))
        layers = Layers(
            source=source,
            executor=executor,
            family=family,
            start=start,
            plan=plan,
            deadline=0.0 if top.reason == "interrupted" else deadline,
            verbose=(int(self.verbose), self.verbose_interval),
            params=nested.by_weight(top.params, family),
            paths=np.arange(self.n_components)[:, None],
            fits=[top],
            events=[_of_the_first(event) for event in top.events],
        )
        for _ in range(1, self.n_layers):
            layers.grow(self._sizes())
        flat = layers.finish(pilot, self.max_iter if self.refine else 0)
        self.paths_ = layers.paths
        self.unrefined_bound_ = float(flat.trace[0] / flat.weight)
        result = self._summed(flat, layers)
        self._keep(result, source, seed, quiet=False)
        return result

    def _sizes(self) -> list[int]:
        sizes = self.n_subcomponents
        return list(sizes) if isinstance(sizes, list | tuple) else [sizes] * self.n_components

    def _summed(self, flat: Fit, layers: Layers) -> Fit:
        """The last fit, with what all of them did."""
        fits = [*layers.fits, flat]
        # fits on the way are starts of the last one, unless nothing follows them
        reasons = {fit.reason for fit in ([flat] if self.refine else layers.fits)}
        if any(fit.reason == "interrupted" for fit in fits):
            reasons.add("interrupted")
        order = ("interrupted", "time_budget", "max_iter", "converged")
        return replace(
            flat,
            n_iter=sum(fit.n_iter for fit in fits),
            n_passes=sum(fit.n_passes for fit in fits),
            reason=next(name for name in order if name in reasons),
            events=(*layers.events, *flat.events),
        )

    def _plan(self, seed: int, max_iter: int | None = None) -> Plan:
        return Plan(
            tol=self.tol,
            max_iter=self.max_iter if max_iter is None else max_iter,
            n_init=self.n_init,
            n_candidates=CANDIDATES if self.init_params == "kmeans" else 1,
            acceleration=self._acceleration(),
            time_budget=self.time_budget,
            seed=seed,
        )


def _of_the_first(event: Event) -> Event:
    return Event(event.kind, f"first mixture: {event.message}", event.iteration, event.component)
