"""Matrix factorisation through maps that saturate, with an optional classifier."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import ClassifierTags

from mixfold.contracts import Array
from mixfold.estimators.networks.factorization_fit import FittedFactorization
from mixfold.estimators.networks.factorization_setup import INITS, SOLVERS
from mixfold.estimators.shell import constraints as rule
from mixfold.estimators.shell.fitting import FIRST_BATCH_STEPS, FITTING_RULES
from mixfold.math.links import LINKS

_UNUSED = ("acceleration", "warm_start")
# which parts are non-negative, the map and the sessions of the published combinations
_MODULES: dict[int, dict[str, Any]] = {
    1: {"link": "saturating", "nonneg_codebook": True, "nonneg_classifier": True},
    2: {"link": "tanh"},
    3: {"link": "logistic", "nonneg_codebook": True, "nonneg_classifier": True},
    4: {"link": "saturating", "nonneg_codebook": True, "supervised": "after"},
}


class MatrixFactorization(
    ClassNamePrefixFeaturesOutMixin, TransformerMixin, FittedFactorization
):  # fmt: skip
    """Rows as combinations of few patterns, weighed by bounded codes of sparse sources.

        x = f(s) components_ + bias_ + noise,   P(class | s) = softmax(f(s) coef_' + intercept_)

    with a map f that saturates, entry by entry. With sources that have a Laplace prior the fit is
    the maximum of the posterior: it minimises

        E = |X - f(S) A - b|^2 / (2 sigma2) + alpha |S| + beta |A| - ln P(y | S) + gamma |V|

    (|.| are sums of absolute values). The codes f(s) of a row solve a convex problem, whatever the
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
        The fit ends when the gain of all steps to come is projected to be less, as a share of what
        a model without sources costs.
    max_iter : int, default=200
        Iterations.
    batch_size : int, default=None
        Rows after which codebook and classifier are updated; None: all. What was found of the
        other batches is remembered, so that E is still bounded by a value that never rises.
    random_state : int, RandomState, Generator or None, default=None
        Seed; the same seed gives the same result for any number of threads or workers.
    verbose : int, default=0
        1 reports progress, 2 every iteration.
    verbose_interval : int, default=10
        Iterations between two lines of a log.
    executor : {'threads', 'dask'}, a distributed.Client or an Executor, default='threads'
        Where the rows are visited. On a cluster codes are not kept between passes, and the
        classifier is learned from sums over them, by more and smaller steps.
    n_jobs : int, default=None
        Number of threads; None means all cores.
    time_budget : float, default=None
        Seconds after which the best result so far is returned.
    checkpoint : path, default=None
        File in which the fit is kept and from which it goes on if interrupted.

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
    """

    _constraints: ClassVar[rule.Constraints] = {
        **{name: rules for name, rules in FITTING_RULES.items() if name not in _UNUSED},
        "n_components": (rule.integer(1),),
        "link": (rule.one_of(LINKS),),
        "nonneg_codebook": (rule.boolean(),),
        "nonneg_sources": (rule.boolean(),),
        "nonneg_classifier": (rule.boolean(),),
        "alpha": (rule.number(0),),
        "beta": (rule.number(0),),
        "gamma": (rule.number(0),),
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
            Weight 2 equals repeating the row, weight 0 leaving it out.

        Returns
        -------
        self
        """
        self._check_parameters()
        for name in ("_params", "_schedule"):
            self.__dict__.pop(name, None)
        self._fit(self._training_source(X, y, sample_weight))
        return self

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
        weight = None if sample_weight is None else np.asarray(sample_weight, float)
        labels, begun = self._known_labels(y, classes, weight), hasattr(self, "_params")
        source = self._open(X, reset=not begun, weight=sample_weight, y=labels)
        if not begun:
            self._fit(source, FIRST_BATCH_STEPS)
        first = not hasattr(self, "_schedule")
        if first:
            self._seen = 0.0
        self._learn_batch(source, first)
        return self

    def fit_transform(self, X: Any, y: Any = None, sample_weight: Any = None) -> Array:
        """Fit, then transform the same rows (without their labels)."""
        return self.fit(X, y, sample_weight).transform(X)

    # ------------------------------------------------ results

    def _publish_params(self) -> None:
        layer = self._params.layer
        self.components_ = layer.codebook.astype(self._dtype)
        self.bias_ = layer.bias.astype(self._dtype)
        self.sigma2_ = self._sigma2
        for name in ("classes_", "coef_", "intercept_"):
            self.__dict__.pop(name, None)
        if self._target is not None and layer.classifier is not None:
            self.classes_ = self._target.classes
            self.coef_ = np.ascontiguousarray(layer.classifier.T)
            self.intercept_ = layer.intercept

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
