"""BayesianGaussianMixture: a drop-in for scikit-learn's, with the exact bound and real tables."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np

from mixfold.contracts import Array, Source
from mixfold.engine.loop import Fit, Plan
from mixfold.engine.random import RowKeys
from mixfold.estimators.mixtures.bayes import BayesEstimator
from mixfold.estimators.mixtures.family_choice import FAMILIES
from mixfold.estimators.mixtures.gaussian_mixture import check_shape
from mixfold.estimators.mixtures.general_mixture import Mixture
from mixfold.estimators.mixtures.mixture import CANDIDATES
from mixfold.estimators.shell import constraints as rule
from mixfold.estimators.shell.dtypes import in_dtype
from mixfold.estimators.shell.effective_rows import warn_about_evidence
from mixfold.estimators.shell.fitting import (
    check_room,
    publish_convergence,
    reorder_components,
    run_fit,
    survey_rows,
    warn_about_empty_rows,
    warn_about_fit,
)
from mixfold.estimators.shell.units import warn_if_spherical
from mixfold.families import GAUSSIAN
from mixfold.families.bayes.gaussian import ConjugateGaussian
from mixfold.families.bayes.records import NormalPrior
from mixfold.families.component import ComponentFamily
from mixfold.math.frame import Frame
from mixfold.mixing.dirichlet import SymmetricDirichlet
from mixfold.mixing.protocol import Mixing
from mixfold.mixing.sticks import StickBreaking
from mixfold.models.mixtures.bayes_mixture import BayesMixture, BayesParams
from mixfold.models.mixtures.prior_pass import total_moments
from mixfold.models.mixtures.starts import STARTS


class BayesianGaussianMixture(BayesEstimator):
    """Gaussian mixture by variational Bayes, its number of components learned.

    Each row comes from one of at most K Gaussians with a normal-Wishart prior:

        pi ~ Dirichlet or stick-breaking,    Lambda_k ~ Wishart,    mu_k ~ N(m, (beta Lambda_k)^-1)
        z ~ pi,    x | z = k ~ N(mu_k, Lambda_k^-1)

    Parameters and attributes are those of :class:`sklearn.mixture.BayesianGaussianMixture` and
    more; X is what :class:`GaussianMixture` takes. ``lower_bound_`` is the whole bound of the log
    evidence, per row, so that fits with other priors or numbers of components can be compared.

    Parameters
    ----------
    n_components : int, default=1
        Largest number of components K.
    covariance_type : str, default='full'
        'full', 'tied', 'diag', 'spherical', 'tied-diag' or 'tied-spherical'.
    tol : float, default=1e-3
        The fit stops when the total gain still to come, extrapolated from the recent rate of
        convergence, is below ``tol``. The gain is that of the bound per row. Components die slowly:
        for the number of them use 1e-6.
    reg_covar : float, default=1e-6
        Smallest variance of the default prior in any direction, relative to that of the data.
    max_iter : int, default=100
        Largest number of iterations. Each start has this limit.
    n_init : int, default=1
        Starts that are followed to the end; the best is kept.
    merge_starts : bool, default=False
        With ``n_init`` above 1: make one more fit of the components of all starts, of which as many
        are kept as the mixture has, and keep it if it is better than the best of them.
    init_params : str, default='kmeans'
        How rows are first shared among the components. The choices are those of
        :class:`GaussianMixture`.
    weight_concentration_prior_type : str, default='dirichlet_process'
        'dirichlet_process' (stick-breaking, truncated after K) or 'dirichlet_distribution'.
    weight_concentration_prior : float, default=None
        Concentration: of the process, or of each component. None is 1 / n_components.
    mean_precision_prior : float, default=None
        How many rows the prior of a mean is worth; None is 1.
    mean_prior : array-like of shape (n_features,), default=None
        None is the mean of the data.
    degrees_of_freedom_prior : float, default=None
        Of the Wishart prior; None is n_features.
    covariance_prior : float or array-like, default=None
        W^-1 of the Wishart prior, in the shape of one covariance; None is the covariance of the
        data.
    random_state : int, RandomState, Generator or None, default=None
        Seed; the same seed gives the same result for any number of threads or workers.
    warm_start : bool, default=False
        Start the next fit from the last one.
    verbose : int, default=0
        1 shows progress (a status line in a terminal, some lines in a log), 2 shows every
        iteration.
    verbose_interval : int, default=10
        Iterations between two lines of a log.
    learn_concentration : bool, default=False
        Learn the concentration of the weights.
    learn_prior : bool, default=False
        Let the prior of the components follow them (type-II maximum likelihood), once they have
        been fitted under the prior that is given; the bound is never below that fit's.
    merge_split : bool, default=False
        Try to merge components that share rows and to split others; keep what raises the bound.
    batch_size : int, default=None
        Rows between two updates of the parameters. The schedule is memoised; None updates after
        each pass.
    total_weight : float, default=None
        For ``partial_fit``: how many rows the stream stands for; None means those seen so far.
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
    weights_ : ndarray of shape (n_components,)
        Expected weights, in decreasing order (sticks: in that of the sticks) unless rows have
        known components or ``warm_start``.
    means_ : ndarray of shape (n_components, n_features)
    covariances_, precisions_, precisions_cholesky_ : ndarray
        At the expected precision; shapes by ``covariance_type``.
    counts_ : ndarray of shape (n_components,)
        Rows of each component.
    active_ : ndarray of bool of shape (n_components,)
        Components with more than half a row; ``effective_components_`` counts them.
    effective_components_ : int
    effective_components_trace_ : list of int
        Their number at each of ``lower_bounds_``; not of streams.
    converged_, stop_reason_, n_iter_, n_passes_, lower_bound_, lower_bounds_, events_
        As in :class:`GaussianMixture`; the objective is the bound of the log evidence.
    evidence_bound_ : float
        The whole of ``lower_bound_``, which is per unit of weight.
    alpha_ : float
        Concentration of the weights, with which the fit began or which it learned.
    weight_concentration_ : ndarray or tuple of two
        Dirichlet parameters, or the two of each stick (the last is not broken: its second is 0).
    stick_order_ : ndarray of shape (n_components,) or None
        The component at each stick, to whose order ``weight_concentration_`` and the bound belong;
        None if there are no sticks.
    weight_concentration_prior_, mean_precision_prior_, degrees_of_freedom_prior_ : float
    mean_prior_, covariance_prior_ : ndarray
        Of the prior, given or learned.
    mean_precision_, degrees_of_freedom_ : ndarray
        Of the posterior of each component.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Notes
    -----
    Where scikit-learn's differs: its last stick is broken too, so its weights are normalised
    afterwards; its spherical and tied types count degrees of freedom per component; its bound
    leaves out constants. Here all are those of the model above.

    References
    ----------
    .. [1] Attias. A variational Bayesian framework for graphical models. NIPS 1999.
    .. [2] Blei, Jordan. Variational inference for Dirichlet process mixtures. Bayesian Analysis 1,
       2006.

    Examples
    --------
    >>> import numpy as np
    >>> from mixfold import BayesianGaussianMixture
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> X[100:] += 8  # a second cluster
    >>> X[::7, 1] = np.nan  # and missing entries
    >>> mixture = BayesianGaussianMixture(6, max_iter=500, tol=1e-6, random_state=0).fit(X)
    >>> mixture.effective_components_
    2
    >>> from mixfold.plots import plot_ellipses
    >>> ax = plot_ellipses(mixture, X)
    """

    _constraints: ClassVar[rule.Constraints] = {
        "n_components": (rule.integer(1),),
        "covariance_type": (rule.one_of(GAUSSIAN),),
        "reg_covar": (rule.number(0),),
        "init_params": (rule.one_of(STARTS),),
        "weight_concentration_prior_type": (
            rule.one_of(["dirichlet_process", "dirichlet_distribution"]),
        ),
        "weight_concentration_prior": (rule.nothing(), rule.number(0, open_end=True)),
        "mean_precision_prior": (rule.nothing(), rule.number(0, open_end=True)),
        "degrees_of_freedom_prior": (rule.nothing(), rule.number(0, open_end=True)),
        "learn_concentration": (rule.boolean(),),
        "batch_size": (rule.nothing(), rule.integer(1)),
    }  # fmt: skip
    _shape_names: ClassVar[str] = "n_components or covariance_type"
    _stored: ClassVar[tuple[str, ...]] = (
        "_params", "_total", "converged_", "stop_reason_", "n_iter_", "n_passes_", "lower_bound_",
        "lower_bounds_", "effective_components_trace_", "events_", "evidence_bound_", "_dtype",
        "_stream", "_schedule",
        "_labelled",
    )  # fmt: skip

    def __init__(
        self,
        n_components: int = 1,
        *,
        covariance_type: str = "full",
        tol: float = 1e-3,
        reg_covar: float = 1e-6,
        max_iter: int = 100,
        n_init: int = 1,
        merge_starts: bool = False,
        init_params: str = "kmeans",
        weight_concentration_prior_type: str = "dirichlet_process",
        weight_concentration_prior: float | None = None,
        mean_precision_prior: float | None = None,
        mean_prior: Any = None,
        degrees_of_freedom_prior: float | None = None,
        covariance_prior: Any = None,
        random_state: Any = None,
        warm_start: bool = False,
        verbose: int = 0,
        verbose_interval: int = 10,
        learn_concentration: bool = False,
        learn_prior: bool = False,
        merge_split: bool = False,
        batch_size: int | None = None,
        total_weight: float | None = None,
        executor: Any = "threads",
        n_jobs: int | None = None,
        time_budget: float | None = None,
        checkpoint: Any = None,
    ) -> None:
        self.n_components = n_components
        self.covariance_type = covariance_type
        self.tol = tol
        self.reg_covar = reg_covar
        self.max_iter = max_iter
        self.n_init = n_init
        self.merge_starts = merge_starts
        self.init_params = init_params
        self.weight_concentration_prior_type = weight_concentration_prior_type
        self.weight_concentration_prior = weight_concentration_prior
        self.mean_precision_prior = mean_precision_prior
        self.mean_prior = mean_prior
        self.degrees_of_freedom_prior = degrees_of_freedom_prior
        self.covariance_prior = covariance_prior
        self.random_state = random_state
        self.warm_start = warm_start
        self.verbose = verbose
        self.verbose_interval = verbose_interval
        self.learn_concentration = learn_concentration
        self.learn_prior = learn_prior
        self.merge_split = merge_split
        self.batch_size = batch_size
        self.total_weight = total_weight
        self.executor = executor
        self.n_jobs = n_jobs
        self.time_budget = time_budget
        self.checkpoint = checkpoint

    # ------------------------------------------------ fitting

    def fit(
        self, X: Any, y: Any = None, sample_weight: Any = None, component_labels: Any = None
    ) -> Self:
        """Fit the mixture.

        Parameters
        ----------
        X : array-like, sparse matrix, table, path or Dask collection
            Rows are samples, columns features; NaN or null marks a missing entry.
        y : ignored
        sample_weight : array-like of shape (n_samples,) or str, optional
            Weight 2 equals repeating the row, weight 0 leaving it out. For tables and files also
            the name of a column, which is then not a feature.
        component_labels : array-like of shape (n_samples,) or str, optional
            The component of each row, 0 to n_components - 1, or -1 where it is unknown.

        Returns
        -------
        self
        """
        self._check_parameters()
        source = self._open_rows(X, sample_weight, component_labels)
        result = self._fit_rows(source)
        warn_about_fit(result, self.max_iter)
        return self

    def _fit_rows(self, source: Source, first_batch: bool = False) -> Fit:
        """Fit by variational Bayes and publish; for ``fit`` and the first of ``partial_fit``."""
        survey = survey_rows(self, source, self.n_components)
        check_room(survey.pilot.total_rows, self.n_components)
        if not first_batch:
            warn_if_spherical(self, survey.pilot)
            warn_about_evidence("variational inference", survey.pilot)
        self._labelled = survey.pilot.block.y is not None
        model = self._model(source.n_features)
        frame, total = total_moments(
            model, source, survey.executor, survey.pilot, RowKeys(survey.seed)
        )
        model = replace(model, prior=self._make_prior(model, frame, total))
        several = self.init_params == "kmeans" and self.n_components > 1
        movable = self.merge_split and not (self._labelled or first_batch)
        plan = Plan(
            tol=self.tol,
            max_iter=self._most_steps(first_batch),
            n_init=self.n_init,
            merge_starts=self.merge_starts,
            n_candidates=CANDIDATES if several else 1,
            time_budget=self.time_budget,
            batch_size=None if first_batch else self.batch_size,
            moves=2 * self.n_components if movable else 0,
            seed=survey.seed,
        )
        result = run_fit(self, model, survey, plan, self._warm_start(model, survey))

        if not (self._labelled or self.warm_start or first_batch):
            order = self._publication_order(result.params)
            result = reorder_components(model, result, order)
        self._store_density_fit(result, survey)
        self._publish_params()
        publish_convergence(self, result)
        warn_about_empty_rows(result)
        self.evidence_bound_ = float(result.objective)
        return result

    # ------------------------------------------------ the model

    def _family(self, n_features: int) -> ConjugateGaussian:
        degrees = self.degrees_of_freedom_prior
        if degrees is not None and not degrees > n_features - 1:
            raise ValueError(
                "The parameter 'degrees_of_freedom_prior' should be greater than "
                f"{n_features - 1}, but got {degrees:.3f}."
            )
        family: ConjugateGaussian = FAMILIES[self.covariance_type](
            floor=max(float(self.reg_covar), 1e-14),
            mean=_check_mean_prior(self.mean_prior, n_features),
            precision=1.0 if self.mean_precision_prior is None else self.mean_precision_prior,
            degrees=float(n_features) if degrees is None else degrees,
            scatter=_check_covariance_prior(
                self.covariance_prior, self.covariance_type, n_features
            ),
        )
        return family

    def _concentration(self) -> float:
        given = self.weight_concentration_prior
        return 1.0 / self.n_components if given is None else float(given)

    def _mixing(self) -> Mixing[Any]:
        alpha, learn = self._concentration(), self.learn_concentration
        if self.weight_concentration_prior_type == "dirichlet_process":
            return StickBreaking(alpha, learn, reorder=not self.warm_start)
        # scikit-learn's is that of each component
        return SymmetricDirichlet(alpha * self.n_components, learn)

    def _model(self, n_features: int) -> BayesMixture:
        return BayesMixture(
            self.n_components,
            self._family(n_features),
            self._mixing(),
            start=STARTS[self.init_params],
            learn_prior=self.learn_prior,
        )

    def _kind(self) -> str:
        return f"{self.covariance_type}, {self.weight_concentration_prior_type}"

    def _publication_order(self, params: BayesParams) -> Array:
        """That of the sticks, or of decreasing weights."""
        order: Array | None = getattr(params.mixing, "order", None)
        return np.argsort(-params.weights, kind="stable") if order is None else order

    def _make_prior(self, model: BayesMixture, frame: Frame, total: Any) -> NormalPrior:
        """The prior of the components, made of all rows where the settings leave it open."""
        prior: NormalPrior = model.conjugate.prior(frame, total)
        if self.covariance_prior is not None:
            return prior
        # scikit-learn's: the unbiased covariance of the data itself, whatever the degrees
        family, weight = model.conjugate, float(total.count.max())
        unbiased = weight / max(weight - 1, 1.0)
        scale = unbiased / (prior.degrees * prior.precision)
        assert isinstance(family, ConjugateGaussian)
        return NormalPrior(prior.mean, prior.precision, prior.degrees, prior.scatter * scale)

    def _for_columns_of(self, family: ComponentFamily, rest: Array) -> Any:
        """A general mixture, whose weights can be fixed."""
        keep = ("n_components", "random_state", "executor", "n_jobs")
        other = Mixture(family, **{name: getattr(self, name) for name in keep})
        other._maxima, other._labelled, other._occurring = np.zeros(len(rest)), False, None
        return other

    # ------------------------------------------------ results

    def _publish_params(self) -> None:
        super()._publish_params()
        params = self._params
        family = self._family(self.n_features_in_)
        precisions, factors = family.precisions(family.point(params.components))
        self.precisions_ = in_dtype(precisions, self._dtype)
        self.precisions_cholesky_ = in_dtype(factors, self._dtype)
        self.weight_concentration_ = _sticks(params.mixing)
        self.weight_concentration_prior_ = self._published_concentration()
        self.mean_precision_ = params.components.precision
        self.degrees_of_freedom_ = params.components.degrees
        frame, prior = params.components.frame, params.prior
        self.mean_precision_prior_ = _number(prior.precision)
        self.mean_prior_ = frame.leave(prior.mean)
        self.degrees_of_freedom_prior_ = _number(prior.degrees)
        self.covariance_prior_ = family.leave_scatter(prior.scatter, frame)

    def _published_concentration(self) -> float:
        alpha: float = self._params.mixing.alpha
        if self.weight_concentration_prior_type == "dirichlet_process":
            return alpha
        return alpha / self.n_components


def _sticks(state: Any) -> Array | tuple[Array, Array]:
    """Dirichlet parameters, or those of the sticks with the last one, which is not broken."""
    if hasattr(state, "concentration"):
        return np.asarray(state.concentration)
    return np.append(state.first, 1.0), np.append(state.second, 0.0)


def _number(value: Any) -> Any:
    return float(value) if np.ndim(value) == 0 else np.asarray(value)


def _check_mean_prior(value: Any, n_features: int) -> Array | None:
    """A prior mean of shape (n_features,)."""
    if value is None:
        return None
    mean: Array = rule.as_numbers(value, "mean_prior")
    check_shape(mean, (n_features,), "means")
    return mean


def _check_covariance_prior(value: Any, kind: str, n_features: int) -> Array | None:
    """W^-1 of a prior, in the shape of one covariance of the given kind."""
    if value is None:
        return None
    scatter: Array = rule.as_numbers(value, "covariance_prior")
    whole = GAUSSIAN[kind].scatter_shape(-1, n_features)
    shape = tuple(size for size in whole if size != -1)
    check_shape(scatter, shape, f"{kind} covariance_prior")
    if not _is_positive(scatter):
        wanted = "symmetric, positive-definite" if scatter.ndim == 2 else "positive"
        raise ValueError(f"'{kind} covariance_prior' should be {wanted}")
    return scatter


def _is_positive(scatter: Array) -> bool:
    if scatter.ndim < 2:
        return bool((scatter > 0).all())
    same = np.allclose(scatter, scatter.T)
    return same and bool((np.linalg.eigvalsh(scatter) > 0).all())
