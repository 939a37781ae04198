"""Mixture of factor models with labels: reduction, clustering and classification in one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from mixfold.contracts import Array, Block, Source
from mixfold.engine.loop import Fit, Plan
from mixfold.estimators.factors.factor_priors import loadings_prior_of, noise_prior_of
from mixfold.estimators.factors.mixed_latents import MixedLatents
from mixfold.estimators.outputs.supervised import SupervisedEstimator
from mixfold.estimators.shell import constraints as rule
from mixfold.estimators.shell import predictions as mixture_answers
from mixfold.estimators.shell.base import restore_on_error
from mixfold.estimators.shell.dtypes import in_dtype
from mixfold.estimators.shell.fitting import (
    FIRST_BATCH_STEPS,
    Survey,
    WarmStart,
    acceleration_named,
    check_enough_rows,
    publish_convergence,
    run_fit,
    survey_rows,
    warn_about_empty_rows,
    warn_about_fit,
)
from mixfold.estimators.shell.predictions import match_dtype
from mixfold.estimators.shell.targets import (
    GivenTarget,
    as_target,
    class_target,
    find_target,
    is_unknown,
    known_share,
    learn_target,
    read_target,
    require_target,
)
from mixfold.families.factor import FactorFamily
from mixfold.families.factor.noise import DiagonalNoise, IsotropicNoise, Noise
from mixfold.math.low_rank import low_rank
from mixfold.models.outputs import label_predictions
from mixfold.models.outputs.curved_labels import CurvedLabels, CurvedModel
from mixfold.models.outputs.gradient_ascent import GradientModel, without_stage
from mixfold.models.outputs.label_predictions import READINGS
from mixfold.models.outputs.label_starts import LABEL_STARTS, LabelStart
from mixfold.models.outputs.labelled import LabelledModel
from mixfold.models.outputs.model import SupervisedParams, SupervisedReading
from mixfold.models.outputs.overweighted_labels import OverweightedLabelModel
from mixfold.models.outputs.probit_labels import ProbitLabels

Answer = Callable[[LabelledModel, SupervisedReading, label_predictions.Rows], Any]

_NOISES: dict[str, type[Noise]] = {"isotropic": IsotropicNoise, "diagonal": DiagonalNoise}


class MixtureOfFactorModels(MixedLatents, SupervisedEstimator):
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
    discriminant : {'straight', 'curved'}, default='straight'
        The border of two classes among the factors. 'curved': the score of the class is
        coef'phi(z) + intercept, for the factors z themselves and 64 waves of them, under a normal
        prior of the weights about a Gaussian process. Then ``ridge`` matters: it is one over the
        variance of the scores, and 0.1 to 1 gives smoother borders than the default.
    curve_width : float, default=1.0
        Over what length a curved border bends, in units of sqrt(n_factors) standard deviations of
        the factors: small values follow the rows more closely.
    tradeoff : float, default=1.0
        How much the classes count: the objective is log p(x) + tradeoff log P(y | x). 1 is the
        likelihood; 0 leaves the classes out; 10 to 100 suit a classification that matters more
        than the rebuilding of rows.
    ridge : float, default=1e-2
        Precision of a normal prior of the classifier's weights, which keeps them finite where the
        classes can be separated.
    loadings_prior : float, 'ard' or None, default=None
        Normal prior of the loadings, whose estimates are then those of the highest posterior
        density (MAP). A number is its precision, for columns measured in their spreads. 'ard'
        (automatic relevance determination) has a precision for each factor, integrated out:
        factors that the rows do not need vanish. It is the prior of the loadings and of the
        classifier together: with a shared classifier an axis is one of all components or none.
        ``n_factors`` is then the largest number.
    noise_prior : tuple (rows, variance) or None, default=None
        Gamma prior of the precision of the noise: as much as so many rows with noise of this
        variance would say, in units of the data.
    label_solver : {'em', 'gradient'}, default='em'
        How the classifier is learned. 'gradient' is the slower scheme of Tabaghi (2016): EM
        steps of the rest by turns with steepest ascent. With a tradeoff above 1 only 'em'.
    init_params : {'balanced', 'kmeans', 'thesis'}, default='balanced'
        How rows are first shared among the components. 'balanced' clusters rows of a sample about
        the means of their classes, so that no cluster is a class; 'kmeans' as they are; 'thesis'
        begins with random loadings and rows.
    classify_from : {'data', 'latent'}, default='data'
        Whether classes are told by all that is known of the factors, P(y | x), or from the
        expected factors alone, as if nothing else of a row were kept.
    tol : float, default=1e-6
        The fit stops when the total gain still to come, extrapolated from the recent rate of
        convergence, is below ``tol``. The gain is that of the objective per labelled row.
    noise_floor : float, default=1e-6
        Smallest noise variance, relative to the variance of the data. The latter is the mean over
        the columns.
    max_iter : int, default=1000
        Largest number of iterations. Each start has this limit.
    n_init : int, default=1
        Starts that are followed to the end; the best is kept.
    random_state : int, RandomState, Generator or None, default=None
        Seed; the same seed gives the same result for any number of threads or workers.
    warm_start : bool, default=False
        Start the next fit from the last one. It must have the same classes.
    verbose : int, default=0
        1 shows progress (a status line in a terminal, some lines in a log), 2 shows every
        iteration.
    verbose_interval : int, default=10
        Iterations between two lines of a log.
    acceleration : {'auto', 'quasi-newton', 'squarem'} or None, default='auto'
        Extrapolation between steps, kept only where the objective rises; None makes plain steps.
        ``label_solver='gradient'`` is not accelerated.
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
    classes_ : ndarray of shape (n_classes,)
        Empty if no row had a class.
    n_factors_ : int
        Factors in use, of the component that has most: fewer than ``n_factors`` where
        ``loadings_prior='ard'`` has made some vanish, whose loadings are zero.
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
        A curved discriminant has n_factors + 64 weights, of the features phi.
    intercept_ : ndarray of shape (1 or n_classes,)
    waves_, phases_ : ndarray of shape (n_factors + 64, n_factors) and (n_factors + 64,)
        With a curved discriminant: of the features phi(z). The first n_factors are
        waves_ z + phases_, the others sqrt(2 / 64) cos(waves_ z + phases_).
    converged_, stop_reason_, n_iter_, n_passes_, lower_bound_, lower_bounds_, events_
        As in :class:`GaussianMixture`; bounds are of the objective per row.
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
    >>> from mixfold.plots import plot_discriminant
    >>> ax = plot_discriminant(model, X, y)
    """

    _constraints: ClassVar[rule.Constraints] = {
        "n_components": (rule.integer(1),),
        "n_factors": (rule.integer(0),),
        "noise": (rule.one_of(_NOISES),),
        "classifier": (rule.one_of(["shared", "per_component"]),),
        "discriminant": (rule.one_of(["straight", "curved"]),),
        "curve_width": (rule.number(0, open_end=True),),
        "tradeoff": (rule.number(0),),
        "ridge": (rule.number(0),),
        "label_solver": (rule.one_of(["em", "gradient"]),),
        "init_params": (rule.one_of(LABEL_STARTS),),
        "classify_from": (rule.one_of(READINGS),),
    }
    _methods: ClassVar[tuple[str, ...]] = ("posterior", "hard", "least-squares", "weighted")
    task = "classification"

    def __init__(
        self,
        n_components: int = 1,
        n_factors: int = 1,
        *,
        noise: str = "isotropic",
        classifier: str = "shared",
        discriminant: str = "straight",
        curve_width: float = 1.0,
        tradeoff: float = 1.0,
        ridge: float = 1e-2,
        loadings_prior: Any = None,
        noise_prior: Any = None,
        label_solver: str = "em",
        init_params: str = "balanced",
        classify_from: str = "data",
        tol: float = 1e-6,
        noise_floor: float = 1e-6,
        max_iter: int = 1000,
        n_init: int = 1,
        random_state: Any = None,
        warm_start: bool = False,
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
        self.discriminant = discriminant
        self.curve_width = curve_width
        self.tradeoff = tradeoff
        self.ridge = ridge
        self.loadings_prior = loadings_prior
        self.noise_prior = noise_prior
        self.label_solver = label_solver
        self.init_params = init_params
        self.classify_from = classify_from
        self.tol = tol
        self.noise_floor = noise_floor
        self.max_iter = max_iter
        self.n_init = n_init
        self.random_state = random_state
        self.warm_start = warm_start
        self.verbose = verbose
        self.verbose_interval = verbose_interval
        self.acceleration = acceleration
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
            Rows are samples, columns features; NaN or null marks a missing entry.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs), or str
            Classes, labels or numbers. NaN and None are unknown, and so is -1 among classes and
            labels that are integers. For tables and files also the name of a column, which is
            then not a feature.
        sample_weight : array-like of shape (n_samples,) or str, optional
            Weight 2 equals repeating the row, weight 0 leaving it out. For tables and files also
            the name of a column, which is then not a feature.

        Returns
        -------
        self
        """
        self._check_parameters()
        with restore_on_error(self):  # what y is, is learned before X is opened
            self._fit_rows(find_target(X, y, sample_weight))
        return self

    def _fit_rows(
        self, given: GivenTarget, classes: Any = None, first_batch: bool = False
    ) -> Source:
        """Fit the rows and publish; for ``fit`` and the first batch of ``partial_fit``."""
        # y, wherever it is, as class numbers: -1 where unknown
        last = self._target if self.warm_start and hasattr(self, "_params") else None
        labels = self._learn_labels(require_target(self, given.y), given.read_weights(), classes)
        if last is not None and not last.is_same(self._target):
            del self._params  # classes that a warm start cannot go on with

        # the rows beside their labels, the model, and its steps
        source = given.open(self, labels, min_rows=2)
        survey = survey_rows(self, source, self.n_components)
        self._holes = survey.has_missing
        self._check_sizes(survey.pilot.total_rows)
        max_iter = min(self.max_iter, FIRST_BATCH_STEPS) if first_batch else self.max_iter
        model: Any = self._joint_model()
        result = self._run(model, survey, max_iter, self._warm_start(model, survey))

        result = replace(result, params=without_stage(result.params))
        total = self._training_likelihood(model, result)
        result = result if first_batch else self._settle(model, result)
        self._store_density_fit(result, survey)
        self._total = total
        self._publish_params()
        publish_convergence(self, result)
        warn_about_empty_rows(result)
        if not first_batch:  # a first batch need not converge: others follow
            warn_about_fit(result, self.max_iter)
        return source

    def _run(
        self,
        model: LabelledModel,
        survey: Survey,
        max_iter: int,
        warm: WarmStart,
        *,
        resumable: bool = True,
    ) -> Fit:
        # one component has one start, unless that is drawn
        one = self.n_components == 1 and self.init_params != "thesis"
        accelerated = self.label_solver != "gradient"
        plan = Plan(
            # gains of labels that count more than once count as often
            tol=self._tolerance * max(1.0, float(self.tradeoff)),
            max_iter=max_iter,
            n_init=1 if one else self.n_init,
            n_candidates=1 if one else self._start().n_candidates,
            acceleration=acceleration_named(self.acceleration) if accelerated else None,
            time_budget=self.time_budget,
            seed=survey.seed,
        )
        return run_fit(self, model, survey, plan, warm, resumable=resumable)

    def _why_no_stream(self) -> str:
        if self.tradeoff <= 1 and self.label_solver == "em":
            return ""
        name = "tradeoff" if self.tradeoff > 1 else "label_solver"
        return (
            f"{name}={getattr(self, name)!r}: its steps are tried and taken back by the objective "
            "of all rows, which a stream does not keep. Use fit, or label_solver='em' with a "
            "tradeoff of at most 1"
        )

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.tradeoff > 1 and self.label_solver == "gradient":
            raise ValueError(
                f"label_solver='gradient' climbs by EM steps, which a tradeoff above 1 has none "
                f"of; got tradeoff={self.tradeoff}. Set label_solver='em'"
            )
        if self.discriminant == "curved":
            self._check_curved()
        prior = self.loadings_prior is not None or self.noise_prior is not None
        if prior and self.label_solver == "gradient":
            raise ValueError(
                "label_solver='gradient' is the published scheme, which has no priors; leave "
                "loadings_prior and noise_prior out, or set label_solver='em'"
            )

    def _check_curved(self) -> None:
        """Refuse settings that go with straight borders only."""
        if self.n_factors < 1:
            raise ValueError(
                "discriminant='curved' bends over the factors, of which there must be one; got "
                f"n_factors={self.n_factors}. Set n_factors=1 or more"
            )
        if self.label_solver == "gradient":
            raise ValueError(
                "label_solver='gradient' is the published scheme, whose discriminant is straight; "
                "got discriminant='curved'. Set label_solver='em'"
            )

    def _check_sizes(self, n_rows: int) -> None:
        """Refuse more components or factors than the data allow."""
        check_enough_rows(n_rows, self.n_components)
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

    def _learn_labels(self, y: Any, weights: Array | None, classes: Any) -> Array:
        """Learn the classes; the class number of each row, -1 where unknown."""
        values = as_target(y)
        # (scikit-learn wants nothing but NaN to be refused)
        if classes is None and values.dtype.kind != "f" and is_unknown(values).all():
            # no row has a class: a mixture of factor models without labels
            self._target, self._labelled = class_target(np.array([], dtype=np.int64)), 0.0
            return np.full(len(values), -1, dtype=np.int64)
        self._target, labels = learn_target(values, self.task, weights, classes)
        self._labelled = known_share(labels, weights)
        return labels

    def _joint_model(self) -> LabelledModel:
        family = FactorFamily(
            floor=max(float(self.noise_floor), 1e-14),
            factors=(int(self.n_factors),),
            noise=_NOISES[self.noise](),
            has_missing=self._holes,
            expand=False,
            loadings_prior=loadings_prior_of(self.loadings_prior, self.classifier == "shared"),
            noise_prior=noise_prior_of(self.noise_prior),
        )
        parts = (self.n_components, family, self._labels(), self._start())
        if self.tradeoff > 1:
            return OverweightedLabelModel(*parts)
        if self.label_solver == "gradient":
            return GradientModel(*parts, expand=False, tol=self._tolerance)
        if self.discriminant == "curved":
            return CurvedModel(*parts, expand=self.loadings_prior is not None)
        return LabelledModel(*parts)

    def _labels(self) -> ProbitLabels:
        settings = (
            max(len(self._target.classes), 2),
            float(self.tradeoff),
            float(self.ridge),
            self.classifier == "per_component",
        )
        if self.discriminant == "straight":
            return ProbitLabels(*settings)
        return CurvedLabels(*settings, width=float(self.curve_width) * np.sqrt(self.n_factors))

    def _start(self) -> LabelStart:
        return LABEL_STARTS[self.init_params]

    def _training_likelihood(
        self, model: LabelledModel, result: Fit
    ) -> tuple[float, float, float] | None:
        """Log-likelihood, weight and entropy of the training rows; None for another objective."""
        if self.tradeoff != 1 and len(self._target.classes):
            return None
        penalty = model.outputs.penalty(result.params.outputs) + model.penalty(result.params)
        return result.objective + penalty, result.weight, result.entropy

    def _fits(self, model: Any) -> bool:
        components, outputs = self._params.components, self._params.outputs
        own = self.n_components if self.classifier == "per_component" else 1
        labels = self._labels()
        return bool(
            components.loadings.shape == (self.n_components, self._n_columns, self.n_factors)
            and labels.has_shapes_of(outputs, own, int(self.n_factors))
        )

    def _publish_params(self) -> None:
        params = self._canonical_joint()
        components, outputs = params.components, params.outputs
        scale = components.frame.scale
        used = self._joint_model().used_factors(self._params)
        self.n_factors_ = int(used.sum(axis=1).max(initial=0))
        self.classes_ = self._target.classes
        self.weights_ = in_dtype(params.weights, self._dtype)
        self.means_ = in_dtype(components.frame.leave(components.means), self._dtype)
        self.loadings_ = in_dtype(components.loadings * scale[:, None], self._dtype)
        noise = in_dtype(components.noise * scale**2, self._dtype)
        self.noise_variance_ = noise[:, 0] if self.noise == "isotropic" else noise
        parts = low_rank(components.loadings, components.noise)
        self.latent_covariances_ = in_dtype(parts.covariances, self._dtype)
        own = self.classifier == "per_component"
        coef, intercept = outputs.weights, outputs.biases
        self.coef_ = in_dtype(coef if own else coef[0], self._dtype)
        self.intercept_ = in_dtype(intercept if own else intercept[0], self._dtype)
        self.__dict__.pop("waves_", None)
        self.__dict__.pop("phases_", None)
        if self.discriminant == "curved":
            waves, phases = outputs.waves, outputs.phases
            self.waves_ = in_dtype(waves if own else waves[0], self._dtype)
            self.phases_ = in_dtype(phases if own else phases[0], self._dtype)

    # ------------------------------------------------ asking

    def _encode_outputs(self, y: Any) -> Array:
        return self._target.encode(y)

    def _canonical_joint(self) -> SupervisedParams:
        return label_predictions.canonical(self._joint_model(), self._params)

    def _ask_about_classes(self, X: Any, answer: Answer) -> list[Any]:
        """``answer`` of each block of X; refused if no class was ever named."""
        check_is_fitted(self)
        if not len(self.classes_):
            raise ValueError(
                f"this {type(self).__name__} was fitted without a single label, so that it knows "
                "no classes; fit it with y of some rows. transform, predict_component and "
                "score_samples need none"
            )
        return list(self._rows(X, partial(_answer_block, *self._joint_reading(), answer)))

    # ------------------------------------------------ classes

    def predict(self, X: Any) -> Array:
        """The class, labels (0 or 1) or outputs of each row, in the form in which y was given."""
        check_is_fitted(self)
        return self._target.decode(self.predict_log_proba(X).argmax(axis=1))

    def predict_log_proba(self, X: Any) -> Array:
        """Logarithm of ``predict_proba``, exact where that underflows."""
        logs = self._ask_about_classes(X, partial(_log_probabilities, source=self.classify_from))
        return np.concatenate(logs)

    def predict_proba(self, X: Any) -> Array:
        """Probability of each class for each row, (n_samples, n_classes).

        With more than two classes each is told from all others, and the probabilities are
        normalised.
        """
        return np.asarray(np.exp(self.predict_log_proba(X)))

    def decision_function(self, X: Any) -> Array:
        """Scores whose normal probability is that of a class against all others.

        Parameters
        ----------
        X : as in ``fit``

        Returns
        -------
        ndarray of shape (n_samples,) or, with more than two classes, (n_samples, n_classes)
            Of two classes: positive for the second.
        """
        parts = self._ask_about_classes(X, partial(_decisions, source=self.classify_from))
        scores = np.concatenate(parts)
        return scores[:, 0] if scores.shape[1] == 1 else scores

    # ------------------------------------------------ components and risks

    def predict_component(self, X: Any) -> Array:
        """The most probable component of each row, 0 to n_components - 1."""
        task = partial(_answer_block, *self._joint_reading(), _components)
        return np.concatenate(list(self._rows(X, task)))

    def risks(
        self, X: Any, y: Any = None, sample_weight: Any = None, per_row: bool = False
    ) -> dict[str, Any]:
        """What is lost when a row is replaced by its latents, its component, or its class.

        Parameters
        ----------
        X : as in ``fit``
        y : array-like of shape (n_samples,) or str, optional
            True classes, -1 (NaN, None) where unknown: also the share of right answers is given.
        sample_weight : array-like of shape (n_samples,), optional
            Weights of the rows in the averages.
        per_row : bool, default=False
            The risks of each row instead of their averages.

        Returns
        -------
        dict
            'reduction': expected squared error of the expected latents; the average is per latent
            dimension, rows are not. 'clustering': probability that a row is not of its most
            probable component. 'classification', 'classification_latent': probability that a row
            is not of its most probable class, by its columns or by its expected latents alone.
            With y 'accuracy', 'accuracy_latent' (per row: 1 or 0, NaN where y is unknown).
        """
        parts = self._ask_about_classes(X, _risks)
        out = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
        chosen = {"accuracy": out.pop("chosen"), "accuracy_latent": out.pop("chosen_latent")}
        if y is not None:
            known = self._target.encode(read_target(X, y))
            for name, label in chosen.items():
                out[name] = np.where(known >= 0, label == known, np.nan).astype(float)
        if per_row:
            return out
        weight = np.ones(len(out["clustering"])) if sample_weight is None else sample_weight
        averages = {name: _average(values, weight) for name, values in out.items()}
        averages["reduction"] /= max(self._n_features_out, 1)
        return averages

    # ------------------------------------------------ densities and draws

    def score_samples(self, X: Any, y: Any = None) -> Array:
        """Log density of the observed entries of each row, with its class if y is given."""
        if y is None:
            return self._ask(X, mixture_answers.log_density)
        task = partial(_log_density, *self._joint_reading())
        return np.concatenate(self._rows_with_outputs(X, task, y))

    def _evidence(self, X: Any, y: Any, sample_weight: Any) -> tuple[float, float]:
        if X is not None and y is None:
            raise ValueError("y must be given with X: the likelihood is that of rows and labels")
        return super()._evidence(X, y, sample_weight)

    def sample(self, n_samples: int = 1, random_state: Any = None) -> tuple[Array, Array]:
        """Draw new rows with their classes.

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
            Classes; with more than two, by their normalised probabilities at the drawn latents.
            -1 if the fit knew no classes.
        """
        rng = self._generator(n_samples, random_state)
        model = self._joint_model()
        X, y = label_predictions.draw(model, self._params, n_samples, rng)
        named = self.classes_[y] if len(self.classes_) else np.full(n_samples, -1)
        return in_dtype(X, self._dtype), named


def _answer_block(
    model: LabelledModel, reading: SupervisedReading, answer: Answer, block: Block
) -> Any:
    return answer(model, reading, label_predictions.rows(model, reading, block))


def _log_probabilities(
    model: LabelledModel, reading: SupervisedReading, found: label_predictions.Rows, source: str
) -> Array:
    return label_predictions.log_probabilities(model, reading, found, source)


def _decisions(
    model: LabelledModel, reading: SupervisedReading, found: label_predictions.Rows, source: str
) -> Array:
    return label_predictions.decisions(model, reading, found, source)


def _components(
    model: LabelledModel, reading: SupervisedReading, found: label_predictions.Rows
) -> Array:
    return np.asarray(found.log_shares.argmax(axis=1))


def _risks(
    model: LabelledModel, reading: SupervisedReading, found: label_predictions.Rows
) -> dict[str, Array]:
    out = label_predictions.risks(model, reading, found)
    for name, source in (("chosen", "data"), ("chosen_latent", "latent")):
        logs = label_predictions.log_probabilities(model, reading, found, source)
        out[name] = logs.argmax(axis=1)
    return out


def _log_density(model: LabelledModel, reading: SupervisedReading, block: Block) -> Array:
    return match_dtype(label_predictions.log_density(model, reading, block), block)


def _average(values: Array, weight: Any) -> float:
    used = ~np.isnan(values)
    if not used.any():
        return float("nan")
    return float(np.average(values[used], weights=np.asarray(weight, dtype=float)[used]))
