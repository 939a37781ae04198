"""Restricted Boltzmann machines."""

from __future__ import annotations

import time
from copy import deepcopy
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin

from mixfold.contracts import Block
from mixfold.engine.epoch_phases import Course, Lesson, Phase, fingerprint_rows, take_course
from mixfold.engine.epochs import EpochPlan, split_rows, take, weighted_rows
from mixfold.engine.progress import Progress
from mixfold.engine.random import seed_from
from mixfold.estimators.networks.rbm_answers import RBMAnswers
from mixfold.estimators.networks.rbm_rows import (
    VISIBLE,
    Entries,
    beginnings,
    entries_of,
    gathered,
    label_law,
)
from mixfold.estimators.networks.rbm_telling import tell_training
from mixfold.estimators.shell import constraints as rule
from mixfold.estimators.shell.base import MixfoldEstimator
from mixfold.estimators.shell.fitting import checkpoint_of
from mixfold.math.rates import Constant, Dropped, Linear, Position, Rate, Switched
from mixfold.models.networks.boltzmann.gibbs import (
    ContrastiveDivergence,
    Negative,
    PersistentChains,
)
from mixfold.models.networks.boltzmann.learner import RBMLearner
from mixfold.models.networks.boltzmann.records import RBMState, first_params, first_state
from mixfold.models.networks.boltzmann.units import UNITS, Units

SINGLE = np.dtype(np.float32)
# epochs before momentum is at its full size, and its size until then
SLOW_EPOCHS, SLOW = 5, 0.5

BATCH_RULES: rule.Constraints = {
    "visible": (rule.one_of(VISIBLE),),
    "learning_rate": (rule.one_of(["auto"]), rule.number(0, open_end=True)),
    "n_steps": (rule.integer(1),),
    "momentum": (rule.number(0),),
    "l2": (rule.number(0),),
    "batch_size": (rule.integer(1),),
    "max_epochs": (rule.integer(0),),
    "validation_fraction": (rule.nothing(), rule.share()),
    "patience": (rule.nothing(), rule.integer(1)),
    "verbose": (rule.integer(0), rule.boolean()),
    "time_budget": (rule.nothing(), rule.number(0, open_end=True)),
    "checkpoint": (rule.nothing(), rule.path()),
}


class RBM(RBMAnswers, ClassNamePrefixFeaturesOutMixin, TransformerMixin, MixfoldEstimator):
    """Restricted Boltzmann machine: binary hidden units that tell the columns, and classes.

        p(v, h) = exp(v'Wh + b'v + c'h) / Z                        visible='bernoulli'
        p(v, h) = exp(v'Wh - |v - b|^2 / 2 + c'h) / Z              visible='gaussian'

    Given one side, units of the other are independent. With labels y, these are one more visible
    unit that takes one of as many values as there are classes; p(y | v) is then exact. Rows
    without a label are learned from, too.

    Learned by contrastive divergence [1]_ or persistent chains [2]_, on batches of rows in random
    order, in single precision. The rows are held in memory; of more rows than that ``partial_fit``
    learns some at a time.

    Parameters
    ----------
    n_components : int, default=256
        Number of hidden units H.
    visible : {'bernoulli', 'gaussian'}, default='bernoulli'
        Columns between 0 and 1, bits or probabilities of bits; or real columns, which are seen
        about their mean in units of their standard deviation.
    learning_rate : float or 'auto', default='auto'
        'auto' is 0.05 for bits, 0.01 with ``persistent``, 0.001 for real columns. It is 5 times
        smaller in the last 40 % of the epochs; with ``persistent`` it falls to zero straight.
    n_steps : int, default=1
        Steps k of the chains: CD-k.
    persistent : bool, default=False
        Chains that go on from batch to batch, as many as a batch has rows. They need more epochs,
        and give better densities.
    momentum : float, default=0.9
        Share of the step before in each step (at most 0.5 in the first 5 epochs).
    l2 : float, default=0.0002
        Decay of weights.
    batch_size : int, default=100
        Rows of a step.
    max_epochs : int, default=20
        Passes over the rows.
    validation_fraction : float, default=None
        Share of the rows that are held out: after each epoch they are scored, by the mean
        ln p(y | v) if they have labels, else by pseudo-likelihood (real columns: score matching),
        and the machine that did best is kept.
    patience : int, default=5
        With ``validation_fraction``: epochs without a better score after which the fit ends.
        None: never.
    random_state : int, RandomState, Generator or None, default=None
        Seed; the same seed gives the same result for any number of threads or workers.
    verbose : int, default=0
        1 reports each epoch.
    executor : {'threads', 'dask'}, a distributed.Client or an Executor, default='threads'
        Where rows are visited after the fit.
    n_jobs : int, default=None
        Number of threads there; None means all cores.
    time_budget : float, default=None
        Seconds after which the fit ends with what it has.
    checkpoint : path, default=None
        File in which the fit is kept, at ends of epochs, and from which it goes on if interrupted.

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features)
        Weights W'.
    visible_bias_ : ndarray of shape (n_features,)
    hidden_bias_ : ndarray of shape (n_components,)
    label_weights_ : ndarray of shape (n_classes, n_components)
    label_bias_ : ndarray of shape (n_classes,)
    classes_ : ndarray of shape (n_classes,)
        Empty without labels.
    n_epochs_ : int
        Epochs that were begun and ended; ``best_epoch_`` of them made what is kept.
    best_epoch_ : int
    n_batches_ : int
        Steps, each of ``batch_size`` rows, that were made.
    stop_reason_ : str
        'max_epochs', 'patience', 'trouble' (weights run away), 'time_budget' or 'interrupted'.
    validation_scores_ : list of float
        After each epoch, with ``validation_fraction``.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Notes
    -----
    For real columns the weights and biases are those of standardised columns.

    References
    ----------
    .. [1] Hinton. Training products of experts by minimizing contrastive divergence. Neural
       Computation 14, 2002.
    .. [2] Tieleman. Training restricted Boltzmann machines using approximations to the likelihood
       gradient. ICML 2008.
    .. [3] Salakhutdinov, Murray. On the quantitative analysis of deep belief networks. ICML 2008.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from mixfold import RBM
    >>> X, y = load_digits(return_X_y=True)
    >>> model = RBM(64, batch_size=20, max_epochs=40, random_state=0).fit(X / 16, y)
    >>> model.transform(X / 16).shape, bool(model.score(X / 16, y) > 0.9)
    ((1797, 64), True)
    """

    _constraints: ClassVar[rule.Constraints] = {
        **BATCH_RULES,
        "n_components": (rule.integer(1),),
        "persistent": (rule.boolean(),),
    }
    _stored: ClassVar[tuple[str, ...]] = (
        "_learned", "_entries", "_base", "_beginnings", "_stream", "_partition", "classes_",
        "n_epochs_", "best_epoch_", "stop_reason_", "validation_scores_", "n_batches_",
    )  # fmt: skip
    _learned: RBMState
    _entries: Entries

    def __init__(
        self,
        n_components: int = 256,
        *,
        visible: str = "bernoulli",
        learning_rate: Any = "auto",
        n_steps: int = 1,
        persistent: bool = False,
        momentum: float = 0.9,
        l2: float = 2e-4,
        batch_size: int = 100,
        max_epochs: int = 20,
        validation_fraction: float | None = None,
        patience: int | None = 5,
        random_state: Any = None,
        verbose: int = 0,
        executor: Any = "threads",
        n_jobs: int | None = None,
        time_budget: float | None = None,
        checkpoint: Any = None,
    ) -> None:
        self.n_components = n_components
        self.visible = visible
        self.learning_rate = learning_rate
        self.n_steps = n_steps
        self.persistent = persistent
        self.momentum = momentum
        self.l2 = l2
        self.batch_size = batch_size
        self.max_epochs = max_epochs
        self.validation_fraction = validation_fraction
        self.patience = patience
        self.random_state = random_state
        self.verbose = verbose
        self.executor = executor
        self.n_jobs = n_jobs
        self.time_budget = time_budget
        self.checkpoint = checkpoint

    # ------------------------------------------------ fitting

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn the machine.

        Parameters
        ----------
        X : array-like, table, path or Dask collection
            Rows without missing entries; between 0 and 1 for ``visible='bernoulli'``.
        y : array-like of shape (n_samples,) or str, optional
            Classes: text or whole numbers; unknown ones are -1 among integers, NaN or None
            otherwise. For tables and files also the name of a column, which is then no feature.
        sample_weight : array-like of shape (n_samples,) or str, optional
            How much each row counts; rows of weight 0 are left out.

        Returns
        -------
        self
        """
        began = time.monotonic()
        self._check_parameters()
        rows, self.classes_ = gathered(self, X, y, sample_weight, reset=True)
        rows = self._visible_rows(rows)
        checkpoint = checkpoint_of(self)
        seed = seed_from(self.random_state)
        seed = checkpoint.seed(seed) if checkpoint else seed
        course = take_course(
            [Phase("RBM", lambda _: self._lesson(rows, seed, began), lambda _, state: state)],
            None,
            seed,
            data=fingerprint_rows(rows),
            checkpoint=checkpoint,
            progress=Progress(int(self.verbose)),
        )
        self._keep(course, seed)
        return self

    def _visible_rows(self, rows: Block) -> Block:
        """Rows of positive weight as visible units in single precision, remembering how."""
        rows = weighted_rows(rows)
        self._entries = entries_of(self, rows)
        return replace(rows, X=self._entries.enter(rows).astype(SINGLE))

    def _lesson(self, rows: Block, seed: int, began: float) -> Lesson:
        held = None if self.max_epochs == 0 else self.validation_fraction
        rows, validation = split_rows(rows, held, seed)
        budget = float("inf") if self.time_budget is None else self.time_budget
        plan = EpochPlan(
            self.max_epochs, self.batch_size, self.patience, seed=seed, deadline=began + budget
        )
        return Lesson(self._learner(), self._first(rows, seed), rows, plan, validation)

    def _first(self, rows: Block, seed: int) -> RBMState:
        rng = np.random.default_rng([seed % 2**63, 2**33])
        self._base = self._units().bias(np.average(rows.X, axis=0, weights=rows.weight))
        bias = label_law(rows.y, len(self.classes_), rows.weight)
        self._beginnings = beginnings(
            self._units(), rows.X, rows.y, len(self.classes_), rows.weight
        )
        params = first_params(self._base, self.n_components, bias, rng, SINGLE)
        return first_state(params, self._negative().n_chains, rng)

    def _units(self) -> Units:
        return UNITS[self.visible]

    def _negative(self) -> Negative:
        if self.persistent:
            return PersistentChains(self.n_steps, self.batch_size)
        return ContrastiveDivergence(self.n_steps)

    def _learner(self, stream: bool = False) -> RBMLearner:
        momentum = Switched(min(SLOW, self.momentum), self.momentum, SLOW_EPOCHS)
        rate = Constant(self._rate()) if stream else self._schedule()
        return RBMLearner(self._units(), self._negative(), rate, momentum, float(self.l2))

    def _rate(self) -> float:
        if self.learning_rate != "auto":
            return float(self.learning_rate)
        if self.visible == "gaussian":
            return 1e-3
        return 0.01 if self.persistent else 0.05

    def _schedule(self) -> Rate:
        return Linear(self._rate()) if self.persistent else Dropped(self._rate())

    def _keep(self, course: Course, seed: int) -> None:
        report = course.reports[-1]
        self._learned = course.carried
        self._stream = (seed, 0)
        self._partition = None
        self.n_epochs_ = report.epoch
        self.best_epoch_ = report.best_epoch if report.scores else report.epoch
        self.n_batches_ = report.n_steps
        self.stop_reason_ = report.reason
        self.validation_scores_ = list(report.scores)
        self._publish()
        tell_training([report])

    def _publish(self) -> None:
        params = self._params = self._learned.params
        self.components_ = np.ascontiguousarray(params.weights.T)
        self.visible_bias_, self.hidden_bias_ = params.visible, params.hidden
        self.label_weights_, self.label_bias_ = params.label_weights, params.label_bias

    # ------------------------------------------------ streams

    def partial_fit(
        self, X: Any, y: Any = None, classes: Any = None, sample_weight: Any = None
    ) -> Self:
        """Learn from some more rows: one pass over them, in batches, at a constant rate.

        Parameters
        ----------
        X, y
            As in ``fit``.
        classes : array-like, optional
            All classes that may come; needed in the first call unless its rows have all of them.
        sample_weight
            As in ``fit``.

        Returns
        -------
        self
        """
        self._check_parameters()
        first = not hasattr(self, "_learned")
        known = self.classes_ if not first else None if classes is None else np.unique(classes)
        rows, self.classes_ = gathered(self, X, y, sample_weight, reset=first, classes=known)
        if first:
            rows = self._visible_rows(rows)
            self._stream, self.n_epochs_ = (seed_from(self.random_state), 0), 0
            self._learned = self._first(rows, self._stream[0])
            self.n_batches_, self.best_epoch_ = 0, 0
        else:
            rows = weighted_rows(rows)
            rows = replace(rows, X=self._entries.enter(rows).astype(SINGLE))
        self._learn_rows(rows)
        self.stop_reason_, self.validation_scores_, self._partition = "", [], None
        self._publish()
        return self

    def _learn_rows(self, rows: Block) -> None:
        rng = np.random.default_rng([self._stream[0] % 2**63, 2**34, self.n_batches_])
        learner, order = self._learner(stream=True), rng.permutation(rows.n_rows)
        state = deepcopy(self._learned)  # steps change it in place, and parts of it are published
        for step, i in enumerate(range(0, rows.n_rows, self.batch_size)):
            batch = take(rows, order[i : i + self.batch_size])
            state = learner.step(state, batch, rng, Position(self.n_epochs_, step))
            self.n_batches_ += 1
        self._learned = state
        self.n_epochs_ += 1
        self.best_epoch_ = self.n_epochs_

    # ------------------------------------------------ scikit-learn

    def _check_state(self) -> None:
        n_classes = len(self.classes_)
        if self._learned.params.shape != (self.n_features_in_, self.n_components, n_classes):
            raise ValueError("parameters of another shape than the settings declare")
        self._publish()

    @property
    def _n_features_out(self) -> int:
        return int(self.n_components)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_learned")
