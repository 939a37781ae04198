"""Mixture of factor models with labels: reduction, clustering and classification in one."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from mixfold.contracts import Array, Source
from mixfold.engine.acceleration import ACCELERATIONS, Acceleration
from mixfold.engine.loop import Fit, Plan
from mixfold.estimators.outputs.labelled_mixture import LabelledMixture
from mixfold.estimators.outputs.supervised import SUPERVISED_RULES
from mixfold.estimators.shell import constraints as rule
from mixfold.estimators.shell.targets import Target, as_target, unknown
from mixfold.families.factor import FactorFamily
from mixfold.families.factor.noise import DiagonalNoise, IsotropicNoise, Noise
from mixfold.math.low_rank import low_rank
from mixfold.models.outputs.gradient import GradientModel
from mixfold.models.outputs.label_starts import LABEL_STARTS, LabelStart
from mixfold.models.outputs.label_use import READINGS
from mixfold.models.outputs.labelled import LabelledModel
from mixfold.models.outputs.probit_labels import ProbitLabels
from mixfold.models.outputs.stressed import StressedModel

_NOISES: dict[str, type[Noise]] = {"isotropic": IsotropicNoise, "diagonal": DiagonalNoise}


class MixtureOfFactorModels(LabelledMixture):
    """Mixture of factor models (MFM): clusters, factors and classes learned together.

    The generative model of a row x with its class y, for K components of d factors, is

        k ~ weights,   z ~ N(0, I_d),   x | z, k ~ N(loadings[k] z + means[k], noise[k]),
        P(y = 1 | z) = Phi(coef'z + intercept)

    with the normal distribution function Phi: the class is told by a line through the space of
    the factors. The columns and the classes shape the factors together, so that few of them
    rebuild a row *and* tell its class, and each answer comes with its risk.

    The classifier is shared by the components, which must then each hold all the classes;
    ``classifier='per_component'`` lifts this. More than two classes have a line each, against
    all others. Rows without a class (-1, NaN or None in y) take part by their columns. NaN entries
    of X are missing (at random) and integrated out. Steps are EM throughout, also those of the
    classifier (by its latent scores), and the objective never falls.

    Parameters
    ----------
    n_components : int, default=1
        Number of components K.
    n_factors : int, default=1
        Latent dimension d.
    noise : {'isotropic', 'diagonal'}, default='isotropic'
        'isotropic': probabilistic PCA in each component, for columns in comparable units.
        'diagonal': factor analysis, whose result does not depend on the units.
    classifier : {'shared', 'per_component'}, default='shared'
        Whether all components have one classifier or each its own.
    tradeoff : float, default=1.0
        How much the classes count: the objective is log p(x) + tradeoff log P(y | x). 1 is the
        likelihood; 0 leaves the classes out; 10 to 100 suit a classification that matters more
        than the rebuilding of rows.
    ridge : float, default=1e-2
        Precision of a normal prior of the classifier's weights, which keeps them finite where the
        classes can be separated.
    label_solver : {'em', 'gradient'}, default='em'
        How the classifier is learned. 'gradient' is the slower scheme of Tabaghi (2016): EM
        steps of the rest by turns with steepest ascent. With a tradeoff above 1 only 'em'.
    init_params : {'balanced', 'kmeans', 'thesis'}, default='balanced'
        How rows of a sample are first shared: 'balanced' clusters them about the means of their
        classes, so that no cluster is a class; 'kmeans' as they are; 'thesis' begins with random
        loadings and rows.
    classify_from : {'data', 'latent'}, default='data'
        Whether classes are told by all that is known of the factors, P(y | x), or from the
        expected factors alone, as if nothing else of a row were kept.
    tol : float, default=1e-6
        The fit ends when the gain of all steps to come is projected to be less, in the objective
        per labelled row.
    noise_floor : float, default=1e-6
        Smallest noise variance, relative to the mean variance of the columns.
    max_iter : int, default=1000
        Iterations per start.
    n_init : int, default=1
        Starts that are followed to the end; the best objective is kept.
    random_state : int, RandomState, Generator or None, default=None
        Seed; the same seed gives the same result for any number of threads or workers.
    verbose : int, default=0
        1 reports progress, 2 every iteration.
    verbose_interval : int, default=10
        Iterations between two lines of a log.
    acceleration : {'auto', 'squarem'} or None, default='auto'
        How EM is sped up; None is plain EM. Neither 'gradient' nor a tradeoff above 1 is.
    executor : {'threads', 'dask'}, a distributed.Client or an Executor, default='threads'
        Where the rows are visited.
    n_jobs : int, default=None
        Number of threads; None means all cores.
    time_budget : float, default=None
        Seconds after which the best result so far is returned.
    checkpoint : path, default=None
        File in which the fit is kept and from which it goes on if interrupted.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Empty if no row had a class.
    weights_ : ndarray of shape (n_components,)
    means_ : ndarray of shape (n_components, n_features)
    loadings_ : ndarray of shape (n_components, n_features, n_factors)
        With two classes the first column is the direction of the classifier; the others are
        orthogonal, longest first, the largest entry of each positive.
    noise_variance_ : ndarray of shape (n_components,) or (n_components, n_features)
    latent_covariances_ : ndarray of shape (n_components, n_factors, n_factors)
        Of the latents given a complete row.
    coef_ : ndarray of shape (1 or n_classes, n_factors)
        Weights of the classifier; with an axis of components before if each has its own.
    intercept_ : ndarray of shape (1 or n_classes,)
    converged_, stop_reason_, n_iter_, n_passes_, lower_bound_, lower_bounds_, events_
        As in :class:`GaussianMixture`; bounds are of the objective per row, the best so far.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    References
    ----------
    .. [1] Tipping, Bishop. Mixtures of probabilistic principal component analyzers. Neural
       Computation 11, 1999.
    .. [2] Albert, Chib. Bayesian analysis of binary and polychotomous response data. Journal of
       the American Statistical Association 88, 1993.

    Examples
    --------
    >>> import numpy as np
    >>> from mixfold import MixtureOfFactorModels
    >>> rng = np.random.default_rng(0)
    >>> z = rng.normal(size=(300, 2))
    >>> X = z @ rng.normal(size=(2, 6)) + 0.1 * rng.normal(size=(300, 6))
    >>> y = np.where(z[:, 0] > z[:, 1], "right", "left").astype(object)
    >>> y[::3] = None
    >>> model = MixtureOfFactorModels(1, 2, random_state=0).fit(X, y)
    >>> model.predict(X[:3]).tolist()
    ['right', 'right', 'left']
    >>> known = y != None
    >>> bool(model.score(X[known], y[known].astype(str)) > 0.95)
    True
    >>> sorted(model.risks(X))
    ['classification', 'classification_latent', 'clustering', 'reduction']
    """

    _constraints: ClassVar[rule.Constraints] = {
        **SUPERVISED_RULES,
        "n_components": (rule.integer(1),),
        "n_factors": (rule.integer(0),),
        "noise": (rule.one_of(_NOISES),),
        "classifier": (rule.one_of(["shared", "per_component"]),),
        "tradeoff": (rule.number(0),),
        "ridge": (rule.number(0),),
        "label_solver": (rule.one_of(["em", "gradient"]),),
        "init_params": (rule.one_of(LABEL_STARTS),),
        "classify_from": (rule.one_of(READINGS),),
        "acceleration": (rule.nothing(), rule.one_of(["auto", "squarem"])),
        "noise_floor": (rule.number(0),),
        "n_init": (rule.integer(1),),
    }
    _methods: ClassVar[tuple[str, ...]] = ("posterior", "hard", "least-squares", "weighted")

    def __init__(
        self,
        n_components: int = 1,
        n_factors: int = 1,
        *,
        noise: str = "isotropic",
        classifier: str = "shared",
        tradeoff: float = 1.0,
        ridge: float = 1e-2,
        label_solver: str = "em",
        init_params: str = "balanced",
        classify_from: str = "data",
        tol: float = 1e-6,
        noise_floor: float = 1e-6,
        max_iter: int = 1000,
        n_init: int = 1,
        random_state: Any = None,
        verbose: int = 0,
        verbose_interval: int = 10,
        acceleration: str | None = "auto",
        executor: Any = "threads",
        n_jobs: int | None = None,
        time_budget: float | None = None,
        checkpoint: Any = None,
    ) -> None:
        self.n_components = n_components
        self.n_factors = n_factors
        self.noise = noise
        self.classifier = classifier
        self.tradeoff = tradeoff
        self.ridge = ridge
        self.label_solver = label_solver
        self.init_params = init_params
        self.classify_from = classify_from
        self.tol = tol
        self.noise_floor = noise_floor
        self.max_iter = max_iter
        self.n_init = n_init
        self.random_state = random_state
        self.verbose = verbose
        self.verbose_interval = verbose_interval
        self.acceleration = acceleration
        self.executor = executor
        self.n_jobs = n_jobs
        self.time_budget = time_budget
        self.checkpoint = checkpoint

    # ------------------------------------------------ the model

    @property
    def _n_mixed(self) -> int:
        return int(self.n_components)

    @property
    def _task(self) -> str:
        return "classification"

    def _family(self) -> FactorFamily:
        return FactorFamily(
            floor=max(float(self.noise_floor), 1e-14),
            factors=(int(self.n_factors),),
            noise=_NOISES[self.noise](),
            holes=getattr(self, "_holes", False),
            expand=False,
        )

    def _joint(self, n_features: int) -> LabelledModel:
        labels = ProbitLabels(
            max(len(self._target.classes), 2),
            float(self.tradeoff),
            float(self.ridge),
            self.classifier == "per_component",
        )
        parts = (self._n_mixed, self._family(), labels, self._start())
        if self.tradeoff > 1:
            # gains of the labels count as often as the labels do
            return StressedModel(*parts, tol=self._tolerance * float(self.tradeoff))
        if self.label_solver == "gradient":
            return GradientModel(*parts, expand=False, tol=self._tolerance)
        return LabelledModel(*parts)

    @property
    def _tolerance(self) -> float:
        return float(self.tol) * (self._labelled or 1.0)

    def _start(self) -> LabelStart:
        return LABEL_STARTS[self.init_params]

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.tradeoff > 1 and self.label_solver == "gradient":
            raise ValueError(
                f"label_solver='gradient' climbs by EM steps, which a tradeoff above 1 has none "
                f"of; got tradeoff={self.tradeoff}. Set label_solver='em'"
            )

    def _check_rows(self, n_rows: int) -> None:
        super()._check_rows(n_rows)
        d = int(self.n_factors)
        if d > self.n_features_in_:
            raise ValueError(
                f"n_factors={d} must not exceed the number of columns, "
                f"n_features = {self.n_features_in_}; lower n_factors"
            )
        if d >= n_rows:
            raise ValueError(
                f"n_factors={d} must be less than the number of rows of positive weight, "
                f"n_samples = {n_rows}; lower n_factors or give more rows"
            )

    # ------------------------------------------------ fitting

    def _learned_outputs(self, y: Any, weight: Array | None) -> Array:
        values = as_target(y)
        # (scikit-learn wants nothing but NaN to be refused)
        if values.dtype.kind == "f" or not unknown(values).all():
            return super()._learned_outputs(y, weight)
        # no row has a class: a mixture of factor models without labels
        self._target = Target("classification", np.array([], dtype=np.int64), 1, True)
        self._labelled = 0.0
        return np.full(len(values), -1, dtype=np.int64)

    def _plan(self, seed: int, max_iter: int | None = None) -> Plan:
        one = self._n_mixed == 1 and self.init_params != "thesis"
        return replace(
            super()._plan(seed, max_iter),
            n_init=1 if one else self.n_init,
            n_candidates=1 if one else self._start().n_candidates,
            acceleration=self._acceleration(),
        )

    def _acceleration(self) -> Acceleration | None:
        plain = self.tradeoff > 1 or self.label_solver == "gradient"
        return None if plain or self.acceleration is None else ACCELERATIONS["squarem"]

    def _keep(self, result: Fit, source: Source, seed: int, quiet: bool) -> None:
        model = self._joint(source.n_features)
        # steps that were taken back are not part of the ascent
        best = np.maximum.accumulate(result.trace) if len(result.trace) else result.trace
        settled = model.settled(result.params, result.objective)
        result = replace(result, params=settled, objective=float(best[-1]), trace=best)
        super()._keep(result, source, seed, quiet)
        likelihood = self.tradeoff == 1 or not len(self._target.classes)
        penalty = model.outputs.penalty(settled.outputs)
        self._total = (
            (result.objective + penalty, result.weight, result.entropy) if likelihood else None
        )

    def _publish_params(self) -> None:
        params = self._turned()
        components, outputs = params.components, params.outputs
        scale = components.frame.scale
        self.classes_ = self._target.classes
        self.weights_ = params.weights.astype(self._dtype)
        self.means_ = components.frame.leave(components.means).astype(self._dtype)
        self.loadings_ = (components.loadings * scale[:, None]).astype(self._dtype)
        noise = (components.noise * scale**2).astype(self._dtype)
        self.noise_variance_ = noise[:, 0] if self.noise == "isotropic" else noise
        parts = low_rank(components.loadings, components.noise)
        self.latent_covariances_ = parts.covariances.astype(self._dtype)
        own = self.classifier == "per_component"
        coef, intercept = outputs.weights, outputs.biases
        self.coef_ = (coef if own else coef[0]).astype(self._dtype)
        self.intercept_ = (intercept if own else intercept[0]).astype(self._dtype)
