"""Restricted Boltzmann machines."""

from __future__ import annotations

from copy import deepcopy
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from mixfold.contracts import Array, Block
from mixfold.engine.batches import take_rows
from mixfold.engine.budget import Deadline
from mixfold.engine.epoch_phases import Phase, TrainingTask, fingerprint_rows, run_phases
from mixfold.engine.epochs import normalise_row_weights, split_rows
from mixfold.engine.progress import Progress
from mixfold.engine.random import seed_from
from mixfold.estimators.networks.batch_training import (
    BATCH_RULES,
    SLOW_EPOCHS,
    SLOW_MOMENTUM,
    check_weights_finite,
    plan_epochs,
    warn_if_training_stopped_early,
)
from mixfold.estimators.networks.class_predictions import (
    ClassPredictionMixin,
    encode_known_labels,
    encode_wanted_label,
    score_accuracy,
)
from mixfold.estimators.networks.visible_rows import (
    SINGLE,
    Entries,
    class_mean_biases,
    label_biases,
    learn_entries,
    map_visible_rows,
    read_rows,
    return_visible,
    to_visible,
)
from mixfold.estimators.shell import constraints as rule
from mixfold.estimators.shell.base import MixfoldEstimator
from mixfold.estimators.shell.constraints import check_count
from mixfold.estimators.shell.fitting import checkpoint_of
from mixfold.math.rates import Constant, Dropped, Linear, Position, Rate, Switched
from mixfold.math.softmax import log_shares
from mixfold.models.networks.boltzmann import energy, gibbs, partition
from mixfold.models.networks.boltzmann.gibbs import (
    ContrastiveDivergence,
    Negative,
    PersistentChains,
)
from mixfold.models.networks.boltzmann.learner import RBMLearner
from mixfold.models.networks.boltzmann.records import (
    RBMParams,
    RBMState,
    first_params,
    first_state,
)
from mixfold.models.networks.boltzmann.statistics import positive_phase
from mixfold.models.networks.boltzmann.units import UNITS, Units, bits

# temperatures of annealed importance sampling: for small machines, and for large ones
TEMPERATURES = ((10**5, 1000), (np.inf, 14500))


class RBM(
    ClassPredictionMixin, ClassNamePrefixFeaturesOutMixin, TransformerMixin, MixfoldEstimator
):
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
        Rows between two updates of the parameters.
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
        1 shows progress (a status line in a terminal, some lines in a log), 2 shows every
        iteration. Iterations are epochs; a log has a line for each of them, with 1 as well.
    executor : {'threads', 'dask'}, a distributed.Client or an Executor, default='threads'
        Where the rows are visited: by threads of this process or by the workers of a Dask cluster.
        This concerns what is asked after the fit; the fit itself learns batch by batch in this
        process.
    n_jobs : int, default=None
        Number of threads; None means all cores. They are used where rows are visited after the fit.
    time_budget : float, default=None
        Seconds after which the best result so far is returned. Unless rows are held out, that is
        the last one.
    checkpoint : path, default=None
        File to which a long fit writes its state now and then; the same call made again after an
        interruption goes on from it and ends in the same result. It is written at ends of epochs.

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
    >>> from mixfold.plots import plot_codebook
    >>> ax = plot_codebook(model, (8, 8), columns=16)
    """

    _streams_go_on: ClassVar[bool] = True
    _constraints: ClassVar[rule.Constraints] = {
        **BATCH_RULES,
        "n_components": (rule.integer(1),),
        "persistent": (rule.boolean(),),
    }
    _stored: ClassVar[tuple[str, ...]] = (
        "_learned", "_entries", "_base", "_beginnings", "_stream", "_partition", "classes_",
        "n_epochs_", "best_epoch_", "stop_reason_", "validation_scores_", "n_batches_",
    )  # fmt: skip
    # what is learned, with momentum and chains; _params are its parameters
    _learned: RBMState
    _params: RBMParams
    # how columns become visible units
    _entries: Entries
    # biases of the visible units alone, where annealing begins; and by class, where chains do
    _base: Array
    _beginnings: Array
    # ln Z, once it was asked for
    _partition: partition.LogPartition | None
    # the seed of the fit, and an unused number
    _stream: tuple[int, int]

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
        self._check_parameters()
        deadline = Deadline.after(self.time_budget)
        # the rows, as visible units
        rows, self.classes_ = read_rows(self, X, y, sample_weight, reset=True)
        rows = normalise_row_weights(rows)
        self._entries = learn_entries(self, rows)
        rows = to_visible(self._entries, rows)
        checkpoint, seed = checkpoint_of(self), seed_from(self.random_state)
        if checkpoint is not None:
            seed = checkpoint.seed(seed)
        # what learns, from where, on which rows, and for how long
        held_out = None if self.max_epochs == 0 else self.validation_fraction
        training_rows, validation_rows = split_rows(rows, held_out, seed)
        start = self._first_state(training_rows, seed)
        plan = plan_epochs(self, seed, deadline)
        lesson = TrainingTask(self._learner(), start, training_rows, plan, validation_rows)
        course = run_phases(
            [Phase("RBM", lambda _: lesson, lambda _, state: state)],
            None,
            seed,
            data=fingerprint_rows(rows),
            checkpoint=checkpoint,
            progress=Progress(int(self.verbose)),
        )
        check_weights_finite(course.carried.params.arrays(), "learning_rate")
        # publish
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
        warn_if_training_stopped_early([report])
        return self

    def _first_state(self, rows: Block, seed: int) -> RBMState:
        """Where learning begins; the biases of the rows alone are remembered."""
        rng = np.random.default_rng([seed % 2**63, 2**33])
        units, n_classes = self._units(), len(self.classes_)
        self._base = units.bias(np.average(rows.X, axis=0, weights=rows.weight))
        self._beginnings = class_mean_biases(units, rows.X, rows.y, n_classes, rows.weight)
        bias = label_biases(rows.y, n_classes, rows.weight)
        params = first_params(self._base, self.n_components, bias, rng, SINGLE)
        return first_state(params, self._negative().n_chains, rng)

    def _units(self) -> Units:
        return UNITS[self.visible]

    def _negative(self) -> Negative:
        """Where the expectation under the model comes from."""
        if self.persistent:
            return PersistentChains(self.n_steps, self.batch_size)
        return ContrastiveDivergence(self.n_steps)

    def _learner(self, stream: bool = False) -> RBMLearner:
        """What makes the steps of a fit, or of a stream."""
        momentum = Switched(min(SLOW_MOMENTUM, self.momentum), self.momentum, SLOW_EPOCHS)
        rate: Rate = Linear(self._rate()) if self.persistent else Dropped(self._rate())
        if stream:
            rate = Constant(self._rate())
        return RBMLearner(self._units(), self._negative(), rate, momentum, float(self.l2))

    def _rate(self) -> float:
        """The learning rate at the start."""
        if self.learning_rate != "auto":
            return float(self.learning_rate)
        if self.visible == "gaussian":
            return 1e-3
        return 0.01 if self.persistent else 0.05

    def _publish(self) -> None:
        """The attributes that hold what is learned."""
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
        rows, self.classes_ = read_rows(self, X, y, sample_weight, reset=first, classes=known)
        rows = normalise_row_weights(rows)
        if first:
            self._entries = learn_entries(self, rows)
        rows = to_visible(self._entries, rows)
        if first:
            self._stream, self.n_epochs_ = (seed_from(self.random_state), 0), 0
            self._learned = self._first_state(rows, self._stream[0])
            self.n_batches_ = 0
        rng = np.random.default_rng([self._stream[0] % 2**63, 2**34, self.n_batches_])
        learner, order = self._learner(stream=True), rng.permutation(rows.n_rows)
        state = deepcopy(self._learned)  # steps change it in place, and parts of it are published
        for step, i in enumerate(range(0, rows.n_rows, self.batch_size)):
            batch = take_rows(rows, order[i : i + self.batch_size])
            state = learner.step(state, batch, rng, Position(self.n_epochs_, step))
            self.n_batches_ += 1
        check_weights_finite(state.params.arrays(), "learning_rate")
        self._learned = state
        self.n_epochs_ += 1
        self.best_epoch_ = self.n_epochs_
        self.stop_reason_, self.validation_scores_, self._partition = "", [], None
        self._publish()
        return self

    # ------------------------------------------------ hidden units and rows

    def transform(self, X: Any) -> Array:
        """Probabilities of the hidden units given the row, (n_samples, n_components).

        An unknown label is summed over.
        """
        return map_visible_rows(self, X, _hidden_means)

    def reconstruct(self, X: Any) -> Array:
        """Expected rows given the expected hidden units of X, (n_samples, n_features)."""
        check_is_fitted(self)
        task = partial(_reconstruct, self._units(), self._entries)
        return map_visible_rows(self, X, task)

    def gibbs(self, X: Any, n_steps: int = 1, random_state: Any = None) -> Array:
        """Rows after ``n_steps`` steps of Gibbs sampling that begin at X.

        Parameters
        ----------
        X : as in ``fit``
        n_steps : int, default=1
        random_state : int, RandomState, Generator or None, default=None

        Returns
        -------
        ndarray of shape (n_samples, n_features)
        """
        check_count("n_steps", n_steps)
        rng = np.random.default_rng(seed_from(random_state) % 2**63)
        v = map_visible_rows(self, X, return_visible)
        params = self._params.astype(v.dtype)
        hidden = bits(gibbs.beginnings(params, positive_phase(params, Block(v)), rng), rng)
        moved = gibbs.walk(self._units(), params, hidden, n_steps, rng)[0]
        return self._entries.leave(moved)

    def sample(
        self, n_samples: int = 1, label: Any = None, n_steps: int = 1000, random_state: Any = None
    ) -> tuple[Array, Array | None]:
        """Draw rows, each at the end of a chain of its own.

        Parameters
        ----------
        n_samples : int, default=1
        label : class, or array of one for each row, optional
            Held while the chains run.
        n_steps : int, default=1000
            Steps of the chains, which begin at columns drawn one by one from their means, those of
            the class if there are classes.
        random_state : int, RandomState, Generator or None, default=None

        Returns
        -------
        X : ndarray of shape (n_samples, n_features)
        y : ndarray of shape (n_samples,)
            Classes; None without labels.
        """
        check_is_fitted(self)
        check_count("n_samples", n_samples)
        check_count("n_steps", n_steps)
        rng = np.random.default_rng(seed_from(random_state) % 2**63)
        params = self._params
        held = encode_wanted_label(self, label, n_samples, params.dtype)
        units = self._units()
        hidden = gibbs.from_base(units, params, self._beginnings, n_samples, held, rng)
        v, labels, _ = gibbs.walk(units, params, hidden, n_steps, rng, held)
        X = self._entries.leave(v)
        return X, self.classes_[labels.argmax(axis=1)] if labels.shape[1] else None

    # ------------------------------------------------ densities

    def free_energy(self, X: Any, y: Any = None) -> Array:
        """F(v) with ln p(v) = -F(v) - ln Z, of each row; with ``y`` that of rows and classes."""
        v = map_visible_rows(self, X, return_visible)
        codes = encode_known_labels(self, y, len(v))
        energies = energy.free_energy(self._units(), self._params.astype(v.dtype), v, codes)
        return np.asarray(energies + self._entries.log_scale)

    def log_partition(
        self,
        method: str = "auto",
        n_chains: int = 100,
        n_temperatures: int | None = None,
        random_state: Any = None,
    ) -> partition.LogPartition:
        """ln Z with its standard error.

        Parameters
        ----------
        method : {'auto', 'exact', 'ais'}, default='auto'
            'exact' sums over all states of the smaller side; 'ais' is annealed importance
            sampling; 'auto' is exact if a side has at most 20 units.
        n_chains : int, default=100
        n_temperatures : int, default=None
            None is 1,000, or 14,500 of machines with more than 100,000 weights.
        random_state : int, RandomState, Generator or None, default=None
            None is the seed of the fit: the same answer each time.

        Returns
        -------
        LogPartition
            ``value``, ``error`` (0 if exact) and ``ess``, how many of the chains count. A short
            run tends to give too low an ln Z, and so too high densities.
        """
        check_is_fitted(self)
        return estimate_log_partition(
            self._units(), self._params, self._base, method, n_chains, n_temperatures,
            self._stream[0] if random_state is None else seed_from(random_state),
        )  # fmt: skip

    def score_samples(self, X: Any, y: Any = None) -> Array:
        """ln p(v) of each row; with ``y`` ln p(v, y).

        ln Z is that of ``log_partition()``, which is remembered.
        """
        energies = self.free_energy(X, y)
        if self._partition is None:
            self._partition = self.log_partition()
        return np.asarray(-energies - self._partition.value)

    # ------------------------------------------------ classes

    def _log_probabilities(self, X: Any) -> Array:
        """What ``predict`` and ``predict_proba`` go by."""
        return map_visible_rows(self, X, _log_label_shares)

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Accuracy, where ``y`` is given and the fit had labels; else the mean ln p(v).

        Rows whose label is unknown, as in ``fit``, do not count.

        Parameters
        ----------
        X, y
            As in ``fit``.
        sample_weight : array-like of shape (n_samples,), optional
        """
        check_is_fitted(self)
        if y is None or not len(self.classes_):
            return float(np.average(self.score_samples(X), weights=sample_weight))
        return score_accuracy(self, X, y, sample_weight)

    # ------------------------------------------------ scikit-learn

    def _check_state(self) -> None:
        n_classes = len(self.classes_)
        if self._learned.params.shape != (self.n_features_in_, self.n_components, n_classes):
            raise ValueError("parameters of another shape than the settings declare")
        if np.ndim(self._beginnings) == 2 and len(self._beginnings) != n_classes:
            raise ValueError("biases of other classes than those that are known")
        self._publish()

    @property
    def _n_features_out(self) -> int:
        return int(self.n_components)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_learned")


def estimate_log_partition(
    units: Units, params: RBMParams, base: Array, method: str, n_chains: int,
    n_temperatures: int | None, seed: int,
) -> partition.LogPartition:  # fmt: skip
    """ln Z by the method of this name; of an RBM, or the top of a DeepBeliefNetwork."""
    if method not in ("auto", "exact", "ais"):
        raise ValueError(f"method must be 'auto', 'exact' or 'ais'; got {method!r}")
    possible = partition.enumerable(units, params)
    if method == "exact" and not possible:
        raise ValueError(
            f"method='exact' needs at most {partition.ENUMERABLE} hidden units (or visible bits), "
            f"and there are {params.shape[1]} and {params.shape[0]}; use method='ais'"
        )
    if possible and method != "ais":
        return partition.exact(units, params)
    check_count("n_chains", n_chains)
    if n_temperatures is None:
        n_temperatures = next(n for size, n in TEMPERATURES if params.weights.size <= size)
    check_count("n_temperatures", n_temperatures)
    betas = partition.temperatures(n_temperatures)
    rng = np.random.default_rng([seed % 2**63, 2**35])
    return partition.estimate_by_annealing(
        units, params, np.asarray(base, float), rng, n_chains, betas
    )


def _hidden_means(params: RBMParams, v: Array) -> Array:
    return positive_phase(params, Block(v)).hidden


def _reconstruct(units: Units, entries: Entries, params: RBMParams, v: Array) -> Array:
    return entries.leave(units.mean(energy.visible_drive(params, _hidden_means(params, v))))


def _log_label_shares(params: RBMParams, v: Array) -> Array:
    scores = energy.label_scores(params, v)
    return log_shares(scores)
