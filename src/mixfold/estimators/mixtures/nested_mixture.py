"""NestedMixture: groups that are themselves mixtures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils import ClassifierTags
from sklearn.utils.validation import check_is_fitted

from mixfold.contracts import Array, Block, Event, Executor, Pilot, Source
from mixfold.engine import loop
from mixfold.engine.budget import OVER, Deadline
from mixfold.engine.executors.features import FeatureExecutor
from mixfold.engine.loop import Fit, Plan, pilot_size
from mixfold.engine.pilot import draw_pilot
from mixfold.engine.progress import Progress
from mixfold.engine.sources.features import FeatureSource
from mixfold.engine.sources.part import part_of
from mixfold.estimators.mixtures.combining import Combining
from mixfold.estimators.mixtures.gaussian_mixture import (
    GaussianMixture,
    gaussian_family,
    gaussian_parameters,
)
from mixfold.estimators.mixtures.mixture import CANDIDATES
from mixfold.estimators.mixtures.set_aside import SettingAside, set_aside_columns, tell_of_columns
from mixfold.estimators.shell import constraints as rule
from mixfold.estimators.shell import predictions
from mixfold.estimators.shell.density import DensityEstimator
from mixfold.estimators.shell.dtypes import in_dtype
from mixfold.estimators.shell.fitting import (
    Survey,
    acceleration_named,
    check_enough_rows,
    publish_convergence,
    run_fit,
    survey_rows,
    warn_about_empty_rows,
    warn_about_fit,
)
from mixfold.estimators.shell.units import warn_if_spherical
from mixfold.families import GAUSSIAN
from mixfold.families.component import dense_rows
from mixfold.families.gaussian import GaussianFamily
from mixfold.math.dependent_columns import DependentColumns
from mixfold.math.seeding import distinct
from mixfold.math.softmax import log_normalised, normalise
from mixfold.models.mixtures import nested
from mixfold.models.mixtures.fixed_frame import FramedMixture
from mixfold.models.mixtures.mixture import Mixture, MixtureParams, MixtureReading
from mixfold.models.mixtures.remaining_columns import (
    MixtureOfRemainingColumns,
    RemainingColumns,
    remaining_pilot,
)
from mixfold.models.mixtures.rows import informative
from mixfold.models.mixtures.starts import STARTS, Start

# the stream of random numbers of the cells, apart from that of fits
_CELL_STREAM = 5
# of the parameters of GaussianMixture, those that mean the same here
_SHARED_WITH_FLAT = (
    "covariance_type", "tol", "reg_covar", "max_iter", "n_init", "init_params", "random_state",
    "verbose", "verbose_interval", "acceleration", "executor", "n_jobs", "time_budget",
)  # fmt: skip
# why the whole ended: the first of these that one of its fits gives
_REASONS = ("interrupted", "time_budget", "max_iter", "converged")

_SIZES = rule.Rule(
    "a list of ints >= 1, one for each of the n_components cells",
    lambda v: isinstance(v, list | tuple) and all(rule.integer(1).holds(size) for size in v),
)


class NestedMixture(Combining, SettingAside, DensityEstimator):
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
        The fit stops when the total gain still to come, extrapolated from the recent rate of
        convergence, is below ``tol``. The rule holds for each of the fits; the gain is that of its
        mean log-likelihood per row.
    reg_covar : float or 'auto', default='auto'
        Smallest variance in any direction, relative to that of the data; 'auto' as in
        :class:`GaussianMixture`.
    max_iter : int, default=500
        Largest number of iterations. Each of the fits has this limit.
    n_init : int, default=1
        Starts that are followed to the end; the best is kept. The first mixture has so many, and so
        has the mixture of each cell.
    init_params : str, default='kmeans'
        How rows are first shared among the components. The choices are those of
        :class:`GaussianMixture`.
    random_state : int, RandomState, Generator or None, default=None
        Seed; the same seed gives the same result for any number of threads or workers.
    verbose : int, default=0
        1 shows progress (a status line in a terminal, some lines in a log), 2 shows every
        iteration. Iterations of the first mixture, of each cell in turn and of all leaves are
        shown.
    verbose_interval : int, default=10
        Iterations between two lines of a log.
    acceleration : {'auto', 'quasi-newton', 'squarem'} or None, default='auto'
        Extrapolation between steps, kept only where the objective rises; None makes plain steps.
        'auto' is 'quasi-newton'.
    executor : {'threads', 'dask'}, a distributed.Client or an Executor, default='threads'
        Where the rows are visited: by threads of this process or by the workers of a Dask cluster.
    n_jobs : int, default=None
        Number of threads; None means all cores.
    time_budget : float, default=None
        Seconds after which the best result so far is returned. The budget is for all fits together.

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

    Notes
    -----
    Columns that are constant, or exact affine functions of others, are set aside by ``fit`` as in
    :class:`GaussianMixture`: score, BIC and the number of parameters are those of the table without
    them, and what is published has all columns.

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
    >>> from mixfold.plots import plot_ellipses
    >>> ax = plot_ellipses(model.flatten(), X)
    """

    # a fit is made of many: none of them can be gone on with alone
    warm_start: ClassVar[bool] = False
    checkpoint: ClassVar[None] = None

    _constraints: ClassVar[rule.Constraints] = {
        "n_components": (rule.integer(1),),
        "n_subcomponents": (rule.integer(1), _SIZES),
        "covariance_type": (rule.one_of(GAUSSIAN),),
        "n_layers": (rule.integer(1),),
        "refine": (rule.boolean(),),
        "reg_covar": (rule.number(0), rule.one_of(["auto"])),
        "init_params": (rule.one_of(STARTS),),
    }  # fmt: skip
    _stored: ClassVar[tuple[str, ...]] = (
        "_params", "_total", "paths_", "converged_", "stop_reason_", "n_iter_", "n_passes_",
        "lower_bound_", "lower_bounds_", "unrefined_bound_", "events_", "_dtype", "_stream",
        "_dependent",
    )  # fmt: skip
    _params: MixtureParams  # of the flat mixture of all leaves
    paths_: Array

    def __init__(
        self,
        n_components: int = 1,
        n_subcomponents: Any = 2,
        *,
        covariance_type: str = "full",
        n_layers: int = 2,
        refine: bool = True,
        tol: float = 1e-6,
        reg_covar: float | str = "auto",
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
        source = self._open(X, reset=True, weight=sample_weight, min_rows=2)
        deadline = Deadline.after(self.time_budget)
        survey = survey_rows(self, source, self.n_components)
        check_enough_rows(survey.pilot.total_rows, self.n_components)
        set_aside_columns(self, survey)
        warn_if_spherical(self, survey.pilot)
        if self._dependent is not None:  # all the fits are to the other columns
            survey = _remaining_survey(survey, self._dependent)
        # how each fit of several components runs
        plan = Plan(
            tol=self.tol,
            max_iter=self.max_iter,
            n_init=self.n_init,
            n_candidates=CANDIDATES if self.init_params == "kmeans" else 1,
            acceleration=acceleration_named(self.acceleration),
            time_budget=self.time_budget,
            seed=survey.seed,
        )

        # the first mixture, whose components are the cells
        family = gaussian_family(self.covariance_type, self.reg_covar)
        start = STARTS[self.init_params]
        model = Mixture(self.n_components, family, start=start)
        top_plan = _plan_for_size(plan, self.n_components)
        top = run_fit(self, model, survey, top_plan)

        # layer by layer, the rows of each leaf get a mixture of their own
        tree = _Tree(
            source=survey.source,
            executor=survey.executor,
            family=family,
            start=start,
            plan=plan,
            deadline=OVER if top.reason == "interrupted" else deadline,
            verbose=(int(self.verbose), self.verbose_interval),
            params=nested.by_weight(top.params, family),
            paths=np.arange(self.n_components)[:, None],
            fits=[top],
            events=[_event_of_first_mixture(event) for event in top.events],
        )
        sizes = self.n_subcomponents
        if not isinstance(sizes, list | tuple):
            sizes = [sizes] * self.n_components
        for _ in range(1, self.n_layers):
            tree.split_leaves(sizes)

        # EM of all leaves together; without ``refine`` it only measures them
        flat = tree.fit_leaves(survey.pilot, self.max_iter if self.refine else 0)

        self.paths_ = tree.paths
        self.unrefined_bound_ = float(flat.trace[0] / flat.weight)
        result = tell_of_columns(self, self._sum_fits(flat, tree))
        self._store_density_fit(result, survey)
        self._publish_params()
        publish_convergence(self, result)
        warn_about_empty_rows(top)
        warn_about_fit(result, self.max_iter)
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

    def _sum_fits(self, flat: Fit, tree: _Tree) -> Fit:
        """The last fit, with the iterations, passes and events of all of them."""
        fits = [*tree.fits, flat]
        # fits on the way are starts of the last one, unless nothing follows them
        reasons = {fit.reason for fit in ([flat] if self.refine else tree.fits)}
        if any(fit.reason == "interrupted" for fit in fits):
            reasons.add("interrupted")
        return replace(
            flat,
            n_iter=sum(fit.n_iter for fit in fits),
            n_passes=sum(fit.n_passes for fit in fits),
            reason=next(name for name in _REASONS if name in reasons),
            events=(*tree.events, *flat.events),
        )

    def _model(self, n_features: int) -> Mixture:
        """The flat mixture of all leaves."""
        family = gaussian_family(self.covariance_type, self.reg_covar)
        if self._dependent is None:
            return Mixture(len(self.paths_), family)
        return MixtureOfRemainingColumns(len(self.paths_), family, columns=self._dependent)

    def _publish_params(self) -> None:
        model = self._model(self.n_features_in_)
        assert isinstance(model.family, GaussianFamily)
        whole = replace(self._params, components=model.point_components(self._params))
        leaves = gaussian_parameters(model.family, whole, self._dtype)
        self.leaf_weights_, self.means_, self.covariances_ = leaves
        cells, shares = nested.pool_weights(self._params.weights, self.paths_)
        self.weights_ = in_dtype(cells, self._dtype)
        self.subweights_ = [in_dtype(share, self._dtype) for share in shares]
        self.leaf_cells_ = self.paths_[:, 0].copy()
        self.n_leaves_ = len(self.paths_)

    def flatten(self) -> GaussianMixture:
        """The same density as a fitted :class:`GaussianMixture` of all leaves, cell by cell."""
        check_is_fitted(self)
        shared = {name: getattr(self, name) for name in _SHARED_WITH_FLAT}
        flat = GaussianMixture(len(self.paths_), **shared)
        flat._params = self._params
        if self._dependent is not None:
            flat._dependent = self._dependent
        flat.n_features_in_ = self.n_features_in_
        if hasattr(self, "feature_names_in_"):
            flat.feature_names_in_ = self.feature_names_in_
        flat._copy_fit(self)
        flat._total = self._total
        for name in ("lower_bound_", "lower_bounds_", "n_passes_"):
            setattr(flat, name, getattr(self, name))
        return flat

    # ------------------------------------------------ predictions

    def predict(self, X: Any) -> Array:
        """The most probable cell of each row; missing entries are left out of account."""
        return self._ask(X, partial(_labels, starts=self._first_leaves()))

    def predict_proba(self, X: Any) -> Array:
        """Probability of each cell for each row, (n_samples, n_components)."""
        return self._ask(X, partial(_probabilities, starts=self._first_leaves()))

    def predict_log_proba(self, X: Any) -> Array:
        """Logarithm of ``predict_proba``, exact where that underflows."""
        return self._ask(X, partial(_log_probabilities, starts=self._first_leaves()))

    def predict_leaf(self, X: Any) -> Array:
        """The most probable leaf of each row, 0 to n_leaves_ - 1: a row of ``means_``.

        It need not be a leaf of the most probable cell. For the probabilities of all leaves, ask
        ``flatten()``.
        """
        return self._ask(X, predictions.labels)

    def sample(self, n_samples: int = 1, random_state: Any = None) -> tuple[Array, Array]:
        """Draw new rows.

        Parameters
        ----------
        n_samples : int, default=1
        random_state : int, RandomState, Generator or None, default=None
            None goes on with the estimator's own stream: each call gives new draws, and the
            same sequence of calls after the same fit the same ones.

        Returns
        -------
        X : ndarray of shape (n_samples, n_features)
        y : ndarray of shape (n_samples,)
            The cell of each row.
        """
        rng = self._generator(n_samples, random_state)
        X, leaves = self._model(self.n_features_in_).sample(self._params, n_samples, rng)
        return in_dtype(X, self._dtype), self.leaf_cells_[leaves]

    def _first_leaves(self) -> Array:
        """The number of the first leaf of each cell."""
        check_is_fitted(self)
        return nested.cell_starts(self.paths_)

    # ------------------------------------------------ scikit-learn and files

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        # cells are to predict_proba what classes are to a classifier's; scikit-learn's checks
        # of sparse input read it
        tags.classifier_tags = ClassifierTags(multi_class=self.n_components > 2)
        return tags

    def _check_state(self) -> None:
        leaves, cells = self._params.n_components, self.paths_[:, 0]
        shape = (leaves, self._n_modelled)
        whole = np.array_equal(np.unique(cells), np.arange(self.n_components))
        if self.paths_.shape != (leaves, self.n_layers) or not whole or (np.diff(cells) < 0).any():
            raise ValueError(f"paths of {self.paths_.shape[0]} leaves that are no tree")
        if self._params.components.means.shape != shape:
            raise ValueError(f"parameters of another shape than {shape}, which is declared")
        self._publish_params()


# ---------------------------------------------------- predictions for one block of rows


def _labels(model: Mixture, reading: MixtureReading, block: Block, starts: Array) -> Array:
    found: Array = np.argmax(nested.log_cells(model, reading, block, starts), axis=1)
    return found


def _probabilities(model: Mixture, reading: MixtureReading, block: Block, starts: Array) -> Array:
    joint = nested.log_cells(model, reading, block, starts)
    return predictions.match_dtype(normalise(joint)[1], block)


def _log_probabilities(
    model: Mixture, reading: MixtureReading, block: Block, starts: Array
) -> Array:
    joint = nested.log_cells(model, reading, block, starts)
    return predictions.match_dtype(log_normalised(joint), block)


# ---------------------------------------------------- growing the tree


def _remaining_survey(survey: Survey, columns: DependentColumns) -> Survey:
    """The rows seen without the columns that were set aside."""
    rows = FeatureSource(survey.source, RemainingColumns(columns), len(columns.kept))
    pilot = remaining_pilot(survey.pilot, columns)
    return Survey(rows, FeatureExecutor(survey.executor), survey.seed, pilot)


def _plan_for_size(plan: Plan, size: int) -> Plan:
    """One component needs no choice of a start."""
    return plan if size > 1 else replace(plan, n_init=1, n_candidates=1)


@dataclass
class _Tree:
    """A tree of mixtures while ``NestedMixture.fit`` grows it: leaves, fits and events so far.

    ``plan`` is that of a fit of several components; ``deadline`` is for all of them together.
    """

    source: Source
    executor: Executor
    family: GaussianFamily
    start: Start
    plan: Plan
    deadline: Deadline
    verbose: tuple[int, int]
    params: MixtureParams
    paths: Array
    fits: list[Fit] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)

    def split_leaves(self, sizes: Sequence[int]) -> None:
        """Add a layer: each leaf of cell k is split into ``sizes[k]``."""
        labels = self._label_rows()
        layer = self.paths.shape[1]
        children = [
            self._split_leaf(node, labels == node, sizes[cell], self._seed(layer, node))
            for node, cell in enumerate(self.paths[:, 0])
        ]
        self.params = nested.flatten_mixture(self.params.weights, children, self.family)
        self.paths = nested.extend_paths(self.paths, [child.n_components for child in children])

    def fit_leaves(self, pilot: Pilot, max_iter: int) -> Fit:
        """EM of all leaves as one flat mixture, which can only raise the likelihood.

        ``max_iter=0`` only measures it.
        """
        # a leaf that loses its rows is not moved to others: the likelihood could fall
        model = replace(self._model(self.params.n_components), reseed=False)
        plan = replace(self.plan, max_iter=max_iter)
        return self._fit(model, self.source, plan, pilot, start=self.params)

    def _model(self, size: int) -> FramedMixture:
        frame = self.params.components.frame
        return FramedMixture(size, self.family, start=self.start, frame=frame)

    def _fit(
        self, model: FramedMixture, source: Source, plan: Plan, pilot: Pilot,
        start: MixtureParams | None = None,
    ) -> Fit:  # fmt: skip
        """Fit in the time that is left."""
        plan = replace(plan, time_budget=self.deadline.seconds_left)
        progress = Progress(*self.verbose)
        done = loop.fit(
            model, source, self.executor, plan, start=start, pilot=pilot, progress=progress
        )
        if done.reason == "interrupted":  # meant for the whole: what is left gets one pass each
            self.deadline = OVER
        return done

    def _label_rows(self) -> Array:
        """The leaf of each row, by its highest probability; -1 for rows that say nothing."""
        model = self._model(self.params.n_components)
        task = partial(nested.row_labels, model, model.prepare(self.params))
        return np.concatenate(list(self.executor.map_rows(task, self.source)))

    def _seed(self, *key: int) -> int:
        words = np.random.SeedSequence([self.plan.seed % 2**63, _CELL_STREAM, *key])
        return int(words.generate_state(1, np.uint64)[0])

    def _split_leaf(self, node: int, chosen: Array, size: int, seed: int) -> MixtureParams:
        """A mixture of the chosen rows; the leaf itself where they do not suffice for one."""
        whole = nested.only(self.params, node, self.family)
        if not chosen.any():
            self._add_event(node, "few", "has no rows and stays one component")
            return whole
        rows = part_of(self.source, chosen)
        pilot = draw_pilot(rows, self.executor, pilot_size(rows, size), seed)
        if not pilot.observed.all():
            column = int(np.argmin(pilot.observed))
            self._add_event(node, "few", f"has no entry in column {column} and stays one component")
            return whole
        size = self._limit_size(node, pilot, size)
        plan = _plan_for_size(replace(self.plan, seed=seed), size)
        done = self._fit(self._model(size), rows, plan, pilot)
        self.fits.append(done)
        for event in done.events:
            self._add_event(node, event.kind, event.message, event.iteration)
        return nested.by_weight(done.params, self.family)

    def _limit_size(self, node: int, pilot: Pilot, size: int) -> int:
        """``size``, or the number of distinct rows where these are fewer."""
        block = informative(pilot.block)
        count = len(distinct(dense_rows(block.X), block.weights(), None)[0])
        if count < size:
            self._add_event(node, "few", f"has {count} distinct rows and so {count} components")
        return min(size, count)

    def _add_event(self, node: int, kind: str, message: str, iteration: int = -1) -> None:
        place = ".".join(map(str, self.paths[node]))
        self.events.append(Event(kind, f"cell {place}: {message}", iteration))


def _event_of_first_mixture(event: Event) -> Event:
    return Event(event.kind, f"first mixture: {event.message}", event.iteration, event.component)
