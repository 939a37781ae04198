"""Matrix factorisation through maps that saturate, with an optional classifier."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import ClassifierTags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_array, check_is_fitted

from mixfold.contracts import Array, Block, Pilot, Source
from mixfold.engine.acceleration import ACCELERATIONS
from mixfold.engine.budget import Deadline
from mixfold.engine.loop import Fit, Plan, fit
from mixfold.engine.schedules import Stepwise
from mixfold.estimators.networks import factorization_setup as setup
from mixfold.estimators.networks.factorization_setup import INITS, SOLVERS
from mixfold.estimators.shell import constraints as rule
from mixfold.estimators.shell.base import DegenerateWarning, MixfoldEstimator, warn
from mixfold.estimators.shell.dtypes import in_dtype
from mixfold.estimators.shell.fitting import (
    FIRST_BATCH_STEPS,
    Survey,
    check_room,
    forget_stream,
    learn_one_batch,
    publish_convergence,
    run_fit,
    store_fit,
    survey_rows,
    warn_about_fit,
)
from mixfold.estimators.shell.predictions import match_dtype
from mixfold.estimators.shell.targets import (
    Target,
    class_target,
    find_target,
    learn_target,
    read_target,
    score_predictions,
    weights_or_ones,
)
from mixfold.math.beta_divergence import LOSSES, check_range
from mixfold.math.link_functions import LINKS, Link
from mixfold.models.networks.factorization.divergence import DivergenceModel
from mixfold.models.networks.factorization.model import FactorModel
from mixfold.models.networks.factorization.records import FactorizationParams, Layer
from mixfold.models.networks.factorization.starts import GAUGE_ROWS, normalise_codebook
from mixfold.models.networks.factorization.sums import dense_rows
from mixfold.models.networks.factorization.use import Encoder, hoyer, small_share

# which parts are non-negative, the map and the sessions of the published combinations
_MODULES: dict[int, dict[str, Any]] = {
    1: {"link": "saturating", "nonneg_codebook": True, "nonneg_classifier": True},
    2: {"link": "tanh"},
    3: {"link": "logistic", "nonneg_codebook": True, "nonneg_classifier": True},
    4: {"link": "saturating", "nonneg_codebook": True, "supervised": "after"},
}
# passes of the session that fits the classifier alone
HEAD_PASSES = 100
# inference of new rows: the largest change of a code in the last sweep
TOL = 1e-10


def has_classifier(estimator: Any) -> bool:
    """Whether there is a classifier on the sources, or will be."""
    if hasattr(estimator, "_params"):
        found = estimator._params.layer.classifier is not None
    else:
        found = estimator.supervised in (True, "after")
    if not found:
        raise AttributeError(
            f"this {type(estimator).__name__} has no classifier; fit it with y, and supervised "
            "not False"
        )
    return True


class MatrixFactorization(ClassNamePrefixFeaturesOutMixin, TransformerMixin, MixfoldEstimator):
    """Rows as combinations of few patterns, weighed by bounded codes of sparse sources.

        x = f(s) components_ + bias_ + noise,   P(class | s) = softmax(f(s) coef_' + intercept_)

    with a map f that saturates, entry by entry. With sources that have a Laplace prior the fit is
    the maximum of the posterior: it minimises

        E = |X - f(S) A - b|^2 / (2 sigma2) + alpha |S| + beta |A| - ln P(y | S) + gamma |V|

    (|.| are sums of absolute values; of rows that are not negative the squares may be another loss,
    below). The codes f(s) of a row solve a convex problem, whatever the
    map, so they do not depend on a start and need not be stored; codebook A and classifier V solve
    convex problems, too. E never rises. Without alpha, beta and signs, and with codes inside of
    their range, the layer is linear: principal component analysis with a softmax of low rank.

    Parameters
    ----------
    n_components : int, default=10
        Number of sources H.
    link : {'identity', 'saturating', 'logistic', 'tanh'}, default='tanh'
        The map f: s; s / (1 + s) of sources that are not negative; 1 / (1 + exp(-s)); tanh(s).
        Sources of the last two stay within -4 and 4.
    nonneg_codebook : bool, default=False
        Codebook (and bias) not negative; needs rows and codes that are not.
    nonneg_sources : bool, default=False
        Sources not negative; those of 'saturating' never are.
    nonneg_classifier : bool, default=False
        Coefficients of the classifier not negative.
    alpha : float, default=0.0
        Weight of the absolute sources. With beta = 0 it would have no effect (sources shrink
        while the codebook grows), so the rows of the codebook are then bounded.
    beta : float, default=0.0
        Weight of the absolute entries of the codebook.
    gamma : float, default=0.0
        Weight of the absolute coefficients of the classifier.
    loss : {'squared', 'kullback-leibler', 'itakura-saito'} or float, default='squared'
        What a row costs. A number b is the power of a beta divergence of [4]_, of which the named
        ones are 2, 1 and 0, in place of half the squared error: up to a constant the
        log-likelihood of normal (2), Poisson (1), gamma (0), or in between Tweedie distributions
        of dispersion sigma2. Others than 'squared' need rows, codebook and sources that are not
        negative (nonneg_codebook=True with nonneg_sources=True, or a link that is positive), and
        below or at 0 rows without zeros; they learn without labels.
    sigma2 : float, default=None
        Balance of reconstruction and labels: the larger, the more labels move the sources. None
        takes 1 without y, and with y the variance that principal axes leave in an entry.
    fit_bias : bool, default=True
        Whether there is a bias; it is not penalised.
    supervised : {'auto', 'after'} or bool, default='auto'
        'auto' and True use y, if it is given, with all else; 'after' learns sources and codebook
        without it, and then the classifier; False ignores it.
    reencode : bool, default=True
        Fit the classifier at the end to sources that were inferred without their labels, as those
        of new rows are. False keeps the classifier of the joint fit.
    gauge : {'codebook'} or None, default='codebook'
        Without alpha and beta the scale of a source is arbitrary: give the rows of the codebook
        one norm, such that 99.9 % of the codes are within 95 % of their range. None: only at the
        start.
    codebook_norm : float, default=None
        Largest norm of a row of the codebook. None: that of the gauge at the start if alpha > 0
        and beta = 0, else none.
    solver : {'proximal', 'gradient', 'multiplicative'}, default='proximal'
        'proximal' minimises over sources, codebook and classifier in turn. The others are the
        published rules, for comparison: steps of adaptive length down the gradient, or by ratios
        of its parts (all non-negative). They need many more passes.
    init : {'auto', 'pca', 'nndsvd', 'random'}, default='auto'
        Start of the codebook; 'auto' takes 'nndsvd' of a non-negative codebook, else 'pca'.
    tol : float, default=1e-4
        The fit stops when the total gain still to come, extrapolated from the recent rate of
        convergence, is below ``tol``. The gain is measured as a share of what a model without
        sources costs.
    max_iter : int, default=200
        Largest number of iterations.
    batch_size : int, default=None
        Rows between two updates of the parameters. Codebook and classifier are updated; None
        updates them after all rows. What was found of the other batches is remembered, so that E is
        still bounded by a value that never rises.
    random_state : int, RandomState, Generator or None, default=None
        Seed; the same seed gives the same result for any number of threads or workers.
    verbose : int, default=0
        1 shows progress (a status line in a terminal, some lines in a log), 2 shows every
        iteration.
    verbose_interval : int, default=10
        Iterations between two lines of a log.
    executor : {'threads', 'dask'}, a distributed.Client or an Executor, default='threads'
        Where the rows are visited: by threads of this process or by the workers of a Dask cluster.
        On a cluster codes are not kept between passes, and the classifier is learned from sums over
        them, by more and smaller steps.
    n_jobs : int, default=None
        Number of threads; None means all cores.
    time_budget : float, default=None
        Seconds after which the best result so far is returned.
    checkpoint : path, default=None
        File to which a long fit writes its state now and then; the same call made again after an
        interruption goes on from it and ends in the same result.

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features)
        The codebook A.
    bias_ : ndarray of shape (n_features,)
    sigma2_ : float
        The balance that was used.
    converged_, stop_reason_, n_iter_, n_passes_, lower_bound_, lower_bounds_, events_
        As in :class:`GaussianMixture`; the objective is -E per row.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Notes
    -----
    Fitted with y there are also ``classes_``, ``coef_`` of shape (n_classes, n_components),
    ``intercept_`` and the methods of a classifier. Rows whose class is unknown (-1 among integers,
    NaN, None) take part without a label. NaN in X is a missing entry. A sparse X becomes dense a
    block at a time.

    References
    ----------
    .. [1] Lee, Seung. Algorithms for non-negative matrix factorization. NIPS 2000.
    .. [2] Mairal, Bach, Ponce, Sapiro. Online learning for matrix factorization and sparse coding.
       Journal of Machine Learning Research 11, 2010.
    .. [3] Boehning. Multinomial logistic regression algorithm. Annals of the Institute of
       Statistical Mathematics 44, 1992.
    .. [4] Fevotte, Idier. Algorithms for nonnegative matrix factorization with the beta-divergence.
       Neural Computation 23, 2011.

    Examples
    --------
    >>> import numpy as np
    >>> from mixfold import MatrixFactorization
    >>> rng = np.random.default_rng(0)
    >>> S = rng.laplace(size=(200, 2))
    >>> X = np.tanh(S) @ rng.normal(size=(2, 8)) + 0.1 * rng.normal(size=(200, 8))
    >>> y = np.where(S[:, 0] > 0, "right", "left")
    >>> model = MatrixFactorization(2, gamma=0.1, random_state=0).fit(X[:150], y[:150])
    >>> model.transform(X).shape, model.inverse_transform(model.transform(X)).shape
    ((200, 2), (200, 8))
    >>> bool(model.score(X[150:], y[150:]) > 0.9)
    True
    >>> from mixfold.plots import plot_latents
    >>> ax = plot_latents(model, X, y)

    Counts, by the likelihood of a Poisson distribution; an entry that is missing is given back:

    >>> means = rng.gamma(1.0, size=(200, 2)) @ rng.gamma(0.3, 20, size=(2, 8))
    >>> counts = rng.poisson(means).astype(float)
    >>> counts[0, 3] = np.nan
    >>> parts = MatrixFactorization(2, loss="kullback-leibler", link="identity", fit_bias=False,
    ...     nonneg_codebook=True, nonneg_sources=True, random_state=0).fit(counts)
    >>> bool((parts.components_ > 0).all()), parts.reconstruct(counts[:1]).shape
    (True, (1, 8))
    """

    _streams_go_on: ClassVar[bool] = True
    _constraints: ClassVar[rule.Constraints] = {
        "n_components": (rule.integer(1),),
        "link": (rule.one_of(LINKS),),
        "nonneg_codebook": (rule.boolean(),),
        "nonneg_sources": (rule.boolean(),),
        "nonneg_classifier": (rule.boolean(),),
        "alpha": (rule.number(0),),
        "beta": (rule.number(0),),
        "gamma": (rule.number(0),),
        "loss": (rule.one_of(LOSSES), rule.real()),
        "sigma2": (rule.nothing(), rule.number(0, open_end=True)),
        "fit_bias": (rule.boolean(),),
        "supervised": (rule.one_of(["auto", "after"]), rule.boolean()),
        "reencode": (rule.boolean(),),
        "gauge": (rule.nothing(), rule.one_of(["codebook"])),
        "codebook_norm": (rule.nothing(), rule.number(0, open_end=True)),
        "solver": (rule.one_of(SOLVERS),),
        "init": (rule.one_of(INITS),),
        "batch_size": (rule.nothing(), rule.integer(1)),
    }
    _stored: ClassVar[tuple[str, ...]] = (
        "_params", "_dtype", "_stream", "_schedule", "_target", "_sigma2", "_shares", "_origin",
        "_seen", "converged_", "stop_reason_", "n_iter_", "n_passes_", "lower_bound_",
        "lower_bounds_", "events_",
    )  # fmt: skip

    _params: FactorizationParams
    # the classes of y and their shares, where there is a classifier
    _target: Target | None
    _shares: Array
    # the balance that was used; what sums of rows are about; the weight of a stream so far
    _sigma2: float
    _origin: Array
    # of a stream: its statistics, and the weight of its rows
    _schedule: Stepwise
    _seen: float
    _dtype: str

    def __init__(
        self,
        n_components: int = 10,
        *,
        link: str = "tanh",
        nonneg_codebook: bool = False,
        nonneg_sources: bool = False,
        nonneg_classifier: bool = False,
        alpha: float = 0.0,
        beta: float = 0.0,
        gamma: float = 0.0,
        loss: str | float = "squared",
        sigma2: float | None = None,
        fit_bias: bool = True,
        supervised: bool | str = "auto",
        reencode: bool = True,
        gauge: str | None = "codebook",
        codebook_norm: float | None = None,
        solver: str = "proximal",
        init: str = "auto",
        tol: float = 1e-4,
        max_iter: int = 200,
        batch_size: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
        verbose_interval: int = 10,
        executor: Any = "threads",
        n_jobs: int | None = None,
        time_budget: float | None = None,
        checkpoint: Any = None,
    ) -> None:
        self.n_components = n_components
        self.link = link
        self.nonneg_codebook = nonneg_codebook
        self.nonneg_sources = nonneg_sources
        self.nonneg_classifier = nonneg_classifier
        self.alpha = alpha
        self.beta = beta
        self.gamma = gamma
        self.loss = loss
        self.sigma2 = sigma2
        self.fit_bias = fit_bias
        self.supervised = supervised
        self.reencode = reencode
        self.gauge = gauge
        self.codebook_norm = codebook_norm
        self.solver = solver
        self.init = init
        self.tol = tol
        self.max_iter = max_iter
        self.batch_size = batch_size
        self.random_state = random_state
        self.verbose = verbose
        self.verbose_interval = verbose_interval
        self.executor = executor
        self.n_jobs = n_jobs
        self.time_budget = time_budget
        self.checkpoint = checkpoint

    @classmethod
    def module(cls, case: int, **settings: Any) -> Self:
        """One of the four published combinations of signs, map and sessions.

        Parameters
        ----------
        case : {1, 2, 3, 4}
            1: all non-negative, 'saturating'. 2: all free, 'tanh'. 3: codebook and classifier
            non-negative, 'logistic'. 4: non-negative codebook and sources, 'saturating', and a free
            classifier that is fitted afterwards.
        **settings
            Other parameters, which may also replace those of the case.

        Returns
        -------
        MatrixFactorization
        """
        if case not in _MODULES:
            raise ValueError(f"case must be one of {sorted(_MODULES)}; got {case!r}")
        return cls(**{**_MODULES[case], **settings})

    # ------------------------------------------------ fitting

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : array-like, sparse matrix, table, path or Dask collection
            Rows are samples, columns features; NaN or null marks a missing entry.
        y : array-like of shape (n_samples,) or str, optional
            Classes; -1 among integers, NaN and None are unknown. For tables and files also the
            name of a column, which is then not a feature.
        sample_weight : array-like of shape (n_samples,) or str, optional
            Weight 2 equals repeating the row, weight 0 leaving it out. For tables and files also
            the name of a column, which is then not a feature.

        Returns
        -------
        self
        """
        self._check_parameters()
        self.__dict__.pop("_params", None)
        forget_stream(self)
        source = self._training_source(X, y, sample_weight)
        result = self._fit_rows(source, self.max_iter)
        warn_about_fit(result, self.max_iter)
        return self

    def fit_transform(self, X: Any, y: Any = None, sample_weight: Any = None) -> Array:
        """Fit, then transform the same rows (without their labels)."""
        return self.fit(X, y, sample_weight).transform(X)

    def _fit_rows(self, source: Source, max_iter: int) -> Fit:
        """Fit all rows of a source: those of ``fit``, or the first batch of a stream."""
        deadline = Deadline.after(self.time_budget)
        # look at the data, and at what the parameters mean for it
        survey = survey_rows(self, source, self.n_components)
        check_room(survey.pilot.total_rows, self.n_components)
        self._check_entries(survey.pilot)
        link, divergence = setup.choose_link(self), setup.choose_divergence(self)
        guided = self._target is not None and self.supervised != "after"
        if divergence is not None:
            setup.check_divergence(self, divergence, link, self._target is not None)
            check_range(survey.pilot.minimum, divergence)
        setup.check_signs(self, link, guided)
        setup.warn_if_penalty_is_void(self)
        # the model, where it begins, and how it is fitted
        start = setup.make_start(self, link, source, survey.executor, survey.pilot, survey.seed)
        self._sigma2 = setup.choose_sigma2(self, start, self._target is not None)
        layer = setup.bound_codebook(self, start)
        if guided:
            layer = setup.add_classifier(layer, self._shares, self.solver == "multiplicative")
        model: FactorModel | DivergenceModel
        if divergence is None:
            plain = 0.5 * start.total
            model = setup.make_model(self, link, layer, self._sigma2)
        else:
            plain = setup.plain_loss(divergence, survey.pilot)
            layer = setup.lift_layer(layer, survey.pilot, self.fit_bias)
            model = setup.make_divergence_model(self, divergence, link, layer, self._sigma2)
        plan = Plan(
            tol=self._scale_tolerance(plain),
            max_iter=max_iter,
            n_candidates=1,
            time_budget=self.time_budget,
            batch_size=self.batch_size,
            acceleration=ACCELERATIONS["squarem"] if self._is_slow() else None,
            seed=survey.seed,
        )
        # all together, then what labels may not have seen
        result = run_fit(self, model, survey, plan)
        result = replace(result, params=self._regauge(result.params, link, survey.pilot, start))
        if isinstance(model, FactorModel):
            result = self._refit_classifier(model, result, survey, plan, deadline)
            self._origin = model.origin
        else:
            self._origin = np.zeros(self.n_features_in_)

        store_fit(self, result, survey)
        self._publish_params()
        publish_convergence(self, result)
        return result

    # ------------------------------------------------ steps of a fit

    def _training_source(self, X: Any, y: Any, weight: Any) -> Source:
        """X with class numbers beside it, once it is known what y is."""
        given = find_target(X, y, weight)
        labels = self._learn_classes(given.y, given.read_weights())
        return given.open(self, labels)

    def _learn_classes(self, y: Any, weight: Array | None) -> Array | None:
        """Class numbers of the rows, -1 where unknown; classes and shares are remembered."""
        if self.supervised is False or y is None:
            if y is None and self.supervised in (True, "after"):
                raise ValueError(
                    f"supervised={self.supervised!r}: this {type(self).__name__} requires y to be "
                    "passed, but the target y is None; set supervised='auto' to learn without"
                )
            self._target = None
            return None
        self._target, labels = learn_target(y, "classification", weight)
        weight = weights_or_ones(weight, len(labels))
        known = labels >= 0
        counts = np.bincount(labels[known], weight[known], minlength=len(self._target.classes))
        self._shares = counts / counts.sum()
        return labels

    def _check_entries(self, pilot: Pilot) -> None:
        """Refuse rows that the signs exclude; warn of more sources than rows or columns."""
        lowest = float(np.nanmin(pilot.minimum))
        if lowest < 0 and (self.nonneg_codebook or self.init == "nndsvd"):
            raise ValueError(
                f"Negative values in data: X holds {lowest:g}, which nonneg_codebook=True (and "
                "init='nndsvd') cannot have; shift the columns, or free the codebook"
            )
        if self.n_components >= min(pilot.total_rows, self.n_features_in_):
            warn(
                f"n_components={self.n_components} is at least min(n_samples, n_features), with "
                f"n_samples = {pilot.total_rows} rows of positive weight and n_features = "
                f"{self.n_features_in_}: rows can be given back exactly; lower it, or raise alpha",
                DegenerateWarning,
            )

    def _scale_tolerance(self, plain: float) -> float:
        """``tol`` is relative to what a model without sources costs in a row, its loss ``plain``
        and that of the labels."""
        cost = plain / self._sigma2
        if self._target is not None:
            cost += float(np.log(len(self._target.classes)))
        return float(self.tol * max(cost, float(np.finfo(float).tiny)))

    def _is_slow(self) -> bool:
        """Whether steps are many and alike: scales trade slowly against each other, or signs bind.

        Free layers need few steps; the published rules and batches are left as they are.
        """
        if self.solver != "proximal" or self.batch_size is not None:
            return False
        signs = self.nonneg_codebook or self.nonneg_sources or self.link == "saturating"
        return bool(signs or self.alpha > 0 or self.beta > 0)

    def _regauge(
        self, params: FactorizationParams, link: Link, pilot: Pilot, start: setup.Start
    ) -> FactorizationParams:
        """Rows of the codebook of one norm, where nothing but a habit says which."""
        fixed = self.alpha > 0 or self.beta > 0 or np.isfinite(params.layer.radius)
        moves = start.one_sided and link.centre != 0
        if self.gauge is None or fixed or moves:
            return params
        rows = dense_rows(pilot.block.X)[:GAUGE_ROWS]
        weight = pilot.block.weights()[:GAUGE_ROWS]
        problem = replace(self._encoder(params.layer.without_head()), tol=1e-4).problem(200)
        layer = normalise_codebook(params.layer, problem.solve(rows), weight, link, start.one_sided)
        return replace(params, layer=layer)

    def _refit_classifier(
        self, model: FactorModel, result: Fit, survey: Survey, plan: Plan, deadline: Deadline
    ) -> Fit:
        """The classifier fitted to codes as new rows will have them, if that is wanted."""
        if self._target is None or not (self.reencode or self.supervised == "after"):
            return result
        layer = result.params.layer
        if layer.classifier is None:
            layer = setup.add_classifier(layer, self._shares, False)
        tol = self.tol * float(np.log(len(self._shares)))
        plan = replace(plan, tol=tol, max_iter=HEAD_PASSES, batch_size=None,
                       time_budget=deadline.seconds_left)  # fmt: skip
        head = setup.make_classifier_model(model, layer)
        found = fit(head, survey.source, survey.executor, plan, pilot=survey.pilot)
        return replace(result, params=replace(result.params, layer=found.params.layer),
                       n_passes=result.n_passes + found.n_passes)  # fmt: skip

    # ------------------------------------------------ a stream

    def partial_fit(
        self, X: Any, y: Any = None, classes: Any = None, sample_weight: Any = None
    ) -> Self:
        """Learn from one more batch of rows, which is then forgotten (stepwise).

        Codes are found without labels unless ``reencode=False``.

        Parameters
        ----------
        X : as in ``fit``
        y : array-like of shape (n_samples,), optional
            Classes of the rows.
        classes : array-like, optional
            All classes there are; looked at in the first batch only. None: those in its y.
        sample_weight : array-like of shape (n_samples,), optional

        Returns
        -------
        self
        """
        self._check_parameters()
        weight = find_target(X, y, sample_weight).read_weights()
        labels, begun = self._batch_labels(y, classes, weight), hasattr(self, "_params")
        source = self._open(X, reset=not begun, weight=sample_weight, y=labels)
        if not begun:
            self._fit_rows(source, FIRST_BATCH_STEPS)
        schedule = Stepwise()
        if hasattr(self, "_schedule"):
            schedule = replace(self._schedule, weight=self._seen)
        model, before = self._stream_model(), self._params
        # penalties weigh against all rows that were seen
        learned = learn_one_batch(self, model, source, schedule, total_weight=None)
        if learned is not None:
            self._seen = learned.schedule.weight
            # the objective of the batch, before its step
            self.lower_bound_ = model.objective(before, learned.stats) / learned.stats.weight
            self._publish_params()
        return self

    def _batch_labels(self, y: Any, classes: Any, weight: Array | None) -> Array | None:
        """Class numbers of a batch; the first one says which classes there are."""
        if not hasattr(self, "_params"):
            if classes is None or y is None or self.supervised is False:
                return self._learn_classes(y, weight)
            self._target = class_target(np.unique(np.asarray(classes)))
            self._shares = np.full(len(self._target.classes), 1.0 / len(self._target.classes))
        if y is None or self.supervised is False:
            return None
        if self._target is None:
            raise ValueError(
                "y is given, but the first batch (or the fit) had no labels, so that there is no "
                "classifier; begin with a batch that has some, and classes=..., or leave y out"
            )
        return self._target.encode(y)

    def _stream_model(self) -> FactorModel | DivergenceModel:
        """Of a stream: labels move codes only if they may."""
        link, layer = setup.choose_link(self), self._params.layer
        divergence = setup.choose_divergence(self)
        if divergence is not None:
            return setup.make_divergence_model(self, divergence, link, layer, self._sigma2)
        model = setup.make_model(self, link, layer, self._sigma2)
        guided = self.supervised != "after" and not self.reencode
        return replace(model, origin=self._origin, guided=guided)

    # ------------------------------------------------ results

    def _publish_params(self) -> None:
        """The attributes that hold what is learned."""
        layer = self._params.layer
        self.components_ = in_dtype(layer.codebook, self._dtype)
        self.bias_ = in_dtype(layer.bias, self._dtype)
        self.sigma2_ = self._sigma2
        for name in ("classes_", "coef_", "intercept_"):
            self.__dict__.pop(name, None)
        if self._target is not None and layer.classifier is not None:
            self.classes_ = self._target.classes
            self.coef_ = np.ascontiguousarray(layer.classifier.T)
            self.intercept_ = layer.intercept

    # ------------------------------------------------ sources and rows

    def _encoder(self, layer: Layer | None = None) -> Encoder:
        """What infers codes and sources of new rows, block by block; of the fitted layer."""
        link, divergence = setup.choose_link(self), setup.choose_divergence(self)
        layer = self._params.layer if layer is None else layer
        return Encoder(layer, link, float(self.alpha), self._sigma2, TOL, divergence)

    def _map_blocks(self, X: Any, task: Callable[[Block], Array]) -> Array:
        """``task`` on each block of X, in the precision of X."""
        return self._concatenate_rows(X, partial(_in_precision_of_rows, task))

    def transform(self, X: Any) -> Array:
        """Sources s of the rows, without their labels, (n_samples, n_components)."""
        check_is_fitted(self)
        return self._map_blocks(X, self._encoder().sources)

    def codes(self, X: Any) -> Array:
        """Codes f(s) of the rows, without their labels, (n_samples, n_components)."""
        check_is_fitted(self)
        return self._map_blocks(X, self._encoder().codes)

    def inverse_transform(self, S: Any) -> Array:
        """Rows at given sources: f(s) components_ + bias_.

        Parameters
        ----------
        S : array-like of shape (n_samples, n_components)

        Returns
        -------
        ndarray of shape (n_samples, n_features)
        """
        check_is_fitted(self)
        S = check_array(S, dtype=[np.float64, np.float32])
        encoder, layer = self._encoder(), self._params.layer
        if S.shape[1] != layer.n_codes:
            raise ValueError(
                f"S must have one column for each of the {layer.n_codes} sources, got {S.shape[1]}"
            )
        if encoder.link.lower == encoder.link.centre and S.size and S.min() < 0:
            raise ValueError(
                f"sources of this model are not negative, but S holds {S.min():g}; give sources as "
                "transform returns them"
            )
        rows = encoder.link.value(S.astype(float)) @ layer.codebook + layer.bias
        return in_dtype(rows, self._dtype)

    def reconstruct(self, X: Any) -> Array:
        """Rows as their sources give them back; missing entries are filled in."""
        check_is_fitted(self)
        return self._map_blocks(X, self._encoder().rows)

    def reconstruction_error(self, X: Any, sample_weight: Any = None) -> float:
        """The loss of a row (half its squared error), the mean over rows; missing entries do not
        count."""
        check_is_fitted(self)
        source = self._open(X, reset=False, weight=sample_weight)
        sums = self._executor(source).map_reduce(self._encoder().residuals, source)
        return sums.loss / sums.weight

    # ------------------------------------------------ classes

    @available_if(has_classifier)
    def predict(self, X: Any) -> Array:
        """The class of each row, in the form in which y was given."""
        check_is_fitted(self)
        assert self._target is not None
        return self._target.decode(self._concatenate_rows(X, self._encoder().classes))

    @available_if(has_classifier)
    def predict_proba(self, X: Any) -> Array:
        """Probabilities of the classes, (n_samples, n_classes), in the order of ``classes_``."""
        check_is_fitted(self)
        return self._map_blocks(X, self._encoder().shares)

    @available_if(has_classifier)
    def prototypes(self) -> Array:
        """What each class weighs in the columns, coef_ components_, (n_classes, n_features)."""
        check_is_fitted(self)
        return np.asarray(self.coef_ @ self.components_)

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Accuracy of the classes; without a classifier minus ``reconstruction_error``.

        Rows whose label is unknown, as in ``fit``, do not count.
        """
        check_is_fitted(self)
        if self._target is None:
            return -self.reconstruction_error(X, sample_weight)
        if y is None:
            raise ValueError("score of a classifier needs y, the classes of the rows")
        return score_predictions(self._target, read_target(X, y), self.predict(X), sample_weight)

    # ------------------------------------------------ sparsity

    def sparsity(
        self, X: Any = None, t: float = 0.05, relative: bool = True
    ) -> dict[str, dict[str, float]]:
        """How sparse sources, codebook and classifier are.

        Parameters
        ----------
        X : as in ``fit``, default=None
            Rows whose sources are looked at; None: sources are left out.
        t : float, default=0.05
            Entries less than this are small.
        relative : bool, default=True
            t is a share of the largest entry of a row; otherwise it is absolute.

        Returns
        -------
        dict of dict
            For 'sources', 'codebook' and 'classifier' (where there are any) the mean over rows of
            the share of small entries, 'small', and of Hoyer's index, 'hoyer', which is 1 for a
            row with one entry and 0 for one of equal entries.
        """
        check_is_fitted(self)
        layer, tables = self._params.layer, {}
        if X is not None:
            tables["sources"] = self.transform(X)
        tables["codebook"] = layer.codebook
        if layer.classifier is not None:
            tables["classifier"] = layer.classifier.T
        return {
            name: {"small": small_share(values, t, relative), "hoyer": hoyer(values)}
            for name, values in tables.items()
        }

    # ------------------------------------------------ scikit-learn

    @property
    def _n_features_out(self) -> int:
        return int(self.n_components)

    def _check_state(self) -> None:
        if self._params.layer.codebook.shape != (self.n_components, self.n_features_in_):
            raise ValueError("parameters of another shape than the settings declare")
        self._publish_params()

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = True
        tags.input_tags.positive_only = bool(self.nonneg_codebook)
        classes = hasattr(self, "classes_") or self.supervised in (True, "after")
        tags.target_tags.required = self.supervised in (True, "after")
        if self.supervised is not False:
            tags.classifier_tags = ClassifierTags()
        if classes:  # whether y will be given, nobody knows before
            tags.estimator_type = "classifier"
        return tags


def _in_precision_of_rows(task: Callable[[Block], Array], block: Block) -> Array:
    return match_dtype(task(block), block)
