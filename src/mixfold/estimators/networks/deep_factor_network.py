"""A stack of matrix factorisations, grown layer by layer and then trained as a whole."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import ClassifierTags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_array, check_is_fitted

from mixfold.contracts import Array, Block
from mixfold.engine.budget import Deadline
from mixfold.engine.progress import Progress
from mixfold.engine.random import seed_from
from mixfold.estimators.networks.class_predictions import (
    ClassPredictionMixin,
    has_classes,
    score_accuracy,
)
from mixfold.estimators.networks.deep_factor_growth import (
    Fitting,
    Grown,
    LayerPlan,
    grow_layers,
    pack_layer,
    put_stack_into_layers,
    stack_layers,
    unpack_layer,
)
from mixfold.estimators.networks.deep_factor_priors import (
    TopSources,
    draw_sources,
    fit_class_prior,
    keep_top_sources,
    search_sources,
)
from mixfold.estimators.networks.deep_factor_rows import read_training_rows
from mixfold.estimators.networks.deep_factor_tuning import (
    TuningPlan,
    TuningResult,
    tune_jointly,
    tune_recognition,
)
from mixfold.estimators.shell import constraints as rule
from mixfold.estimators.shell.base import DegenerateWarning, MixfoldEstimator, warn
from mixfold.estimators.shell.constraints import check_count
from mixfold.estimators.shell.dtypes import in_dtype
from mixfold.estimators.shell.fitting import checkpoint_of
from mixfold.estimators.shell.predictions import match_dtype
from mixfold.estimators.shell.targets import find_class_numbers
from mixfold.math.link_functions import LINKS
from mixfold.models.networks.factorization.model import dense_rows
from mixfold.models.networks.factorization.use import ResidualSums
from mixfold.models.networks.joint import Penalties
from mixfold.models.networks.recognition import log_probabilities
from mixfold.models.networks.records import Network, check_network
from mixfold.models.networks.use import (
    StackParams,
    class_log_probabilities,
    fill_missing,
    rows_of,
    sources_of,
)

# what is said of a fit that ended for these reasons
_STOPPED = {
    "time_budget": "time_budget was used up",
    "interrupted": "the fit was interrupted",
}
# where the search for a class ends, if keep is not given
STOP = 0.9
# draws for each row that is kept, at most
MOST_DRAWS = 50
_SIZES = rule.Rule(
    "a tuple of ints >= 1, from the layer next to the data to the top",
    lambda v: isinstance(v, tuple | list) and bool(v) and all(rule.integer(1).holds(n) for n in v),
)


def _each(one: rule.Rule) -> rule.Rule:
    return rule.Rule(
        f"a sequence with {one.words} for each layer",
        lambda v: isinstance(v, tuple | list) and all(one.holds(x) or x is None for x in v),
    )


class DeepFactorNetwork(
    ClassPredictionMixin, ClassNamePrefixFeaturesOutMixin, TransformerMixin, MixfoldEstimator
):
    """Layers of sources, each of which generates the one below; features, classifier, generator.

        S_0 = X,   S_{l-1} = f(S_l) A_l + b_l + noise,   P(class | S_L) = softmax(f(S_L) V + v)

    Layers are learned one after the other: each is a :class:`MatrixFactorization` of the sources of
    the one below. Then all of them are trained together:

    - ``fine_tune='recognition'``: a feed-forward network h_l = tanh(h_{l-1} R_l + r_l) with a
      softmax on top begins at the pseudo-inverses of the codebooks and learns the classes by
      back-propagation. It answers ``predict``; sources and generated rows stay those of the layers.
    - ``'decoder'``: rows are generated from the top sources without noise between the layers;
      sources, codebooks and classifier descend together.
    - ``'map'``: the sources of all layers are free and noisy; all descend together. Name
      ``sigma2`` of all layers: without it the noise of the lower ones is 1, in units of the rows.

    Rows whose class is unknown shape the layers, not the classifier. NaN in X is a missing entry.

    Parameters
    ----------
    hidden : tuple of int, default=(100, 50)
        Sources of each layer, from the one next to the data to the top.
    link : {'tanh', 'logistic', 'saturating', 'identity'}, default='tanh'
        The map f, as in :class:`MatrixFactorization`. Layers of 'identity' collapse into one, of
        which a warning tells.
    alpha : float or sequence of float, default=0.0
        Weight of the absolute sources, for all layers or one for each.
    beta : float or sequence of float, default=0.0
        Weight of the absolute entries of the codebooks.
    gamma : float or sequence of float, default=0.0
        Weight of the absolute coefficients of the classifiers.
    sigma2 : float, None or sequence of them, default=None
        Noise variance: balance of reconstruction and labels; None as in
        :class:`MatrixFactorization`.
    supervised : {'top', 'each'} or False, default='top'
        Which layers labels shape while the stack grows: the top one, each (all of them then have a
        classifier), or none; a classifier is then put on the top afterwards.
    fine_tune : {'recognition', 'decoder', 'map'} or None, default='recognition'
        How all layers are trained together; 'recognition' needs labels and is left out without.
    l2 : float, default=0.001
        Weight of the squared weights of the recognition network, halved; the loss is the mean over
        rows.
    solver : {'auto', 'lbfgs', 'adam'}, default='auto'
        Of the recognition network: quasi-Newton steps over all rows, or Adam on mini-batches.
        'auto' takes the first for up to 20 000 labelled rows.
    tol : float, default=1e-6
        Quasi-Newton steps end when two in a row gain less, relative to the objective.
    max_iter : int, default=200
        Largest number of iterations. One is a quasi-Newton step.
    learning_rate : float, default=0.001
        Of Adam, at the start; it falls to a hundredth.
    batch_size : int, default=100
        Rows between two updates of the parameters. Only Adam has such batches.
    max_epochs : int, default=30
        Passes of Adam over the labelled rows.
    validation_fraction : float, default=0.1
        Share of the labelled rows by which Adam judges itself; the best epoch is kept. None: no
        rows are held out.
    patience : int, default=10
        Epochs of Adam without a better score after which it ends; None: never.
    layer_options : dict, default=None
        Further parameters of the :class:`MatrixFactorization` of each layer, such as ``max_iter``
        or ``reencode``.
    random_state : int, RandomState, Generator or None, default=None
        Seed; the same seed gives the same result for any number of threads or workers.
    verbose : int, default=0
        1 shows progress (a status line in a terminal, some lines in a log), 2 shows every
        iteration.
    verbose_interval : int, default=10
        Iterations between two lines of a log.
    executor : {'threads', 'dask'}, a distributed.Client or an Executor, default='threads'
        Where the rows are visited: by threads of this process or by the workers of a Dask cluster.
        Training of the whole holds the rows in memory.
    n_jobs : int, default=None
        Number of threads; None means all cores.
    time_budget : float, default=None
        Seconds after which the best result so far is returned. The budget is for the whole fit;
        what was learned so far is kept.
    checkpoint : path, default=None
        File to which a long fit writes its state now and then; the same call made again after an
        interruption goes on from it and ends in the same result. The fit goes on at the layer that
        was being learned, or at the last step of the training of the whole.

    Attributes
    ----------
    layers_ : list of MatrixFactorization
        From the one next to the data to the top.
    network_ : Network or None
        Weights and biases of the recognition network.
    classes_ : ndarray of shape (n_classes,)
        Empty without labels.
    loss_curve_ : list of float
        Of the training of the whole: what is minimised at the start and after each step; of Adam
        the scores of the rows that were held out.
    n_iter_ : int
        Steps of all layers, and steps or epochs of the training of the whole.
    stop_reason_ : str
        Of the last training: 'converged', 'max_iter', 'max_epochs', 'patience', 'time_budget' or
        'interrupted'.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Notes
    -----
    The network is trained in single precision if the rows have a million entries or more. Sources
    of up to 20 000 labelled rows are kept (and saved), for the priors of ``generate``.

    References
    ----------
    .. [1] Hinton, Salakhutdinov. Reducing the dimensionality of data with neural networks. Science
       313, 2006.
    .. [2] Ghahramani, Hinton. The EM algorithm for mixtures of factor analyzers. University of
       Toronto, CRG-TR-96-1, 1997.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from mixfold import DeepFactorNetwork
    >>> X, y = load_digits(return_X_y=True)
    >>> model = DeepFactorNetwork((30, 15), random_state=0).fit(X[:1000] / 16, y[:1000])
    >>> bool(model.score(X[1000:] / 16, y[1000:]) > 0.9)
    True
    >>> model.transform(X / 16).shape, model.generate(3, 5, random_state=0).shape
    ((1797, 15), (5, 64))
    >>> from mixfold.plots import plot_generated
    >>> ax = plot_generated(model, (8, 8), n=8, random_state=0)
    """

    _constraints: ClassVar[rule.Constraints] = {
        "hidden": (_SIZES,),
        "link": (rule.one_of(LINKS),),
        "alpha": (rule.number(0), _each(rule.number(0))),
        "beta": (rule.number(0), _each(rule.number(0))),
        "gamma": (rule.number(0), _each(rule.number(0))),
        "sigma2": (
            rule.nothing(), rule.number(0, open_end=True), _each(rule.number(0, open_end=True)),
        ),
        "supervised": (rule.one_of(["top", "each"]), rule.Rule("False", lambda v: v is False)),
        "fine_tune": (rule.nothing(), rule.one_of(["recognition", "decoder", "map"])),
        "l2": (rule.number(0),),
        "solver": (rule.one_of(["auto", "lbfgs", "adam"]),),
        "learning_rate": (rule.number(0, open_end=True),),
        "batch_size": (rule.integer(1),),
        "max_epochs": (rule.integer(0),),
        "validation_fraction": (rule.nothing(), rule.share()),
        "patience": (rule.nothing(), rule.integer(1)),
        "layer_options": (rule.nothing(), rule.Rule("a dict", lambda v: isinstance(v, dict))),
    }  # fmt: skip
    _stored: ClassVar[tuple[str, ...]] = (
        "_stack", "_top", "_stream", "_dtype", "network_", "classes_", "loss_curve_",
        "stop_reason_", "n_iter_",
    )  # fmt: skip

    # the layers as one, by which rows are answered for
    _stack: StackParams
    # sources of labelled rows that priors are fitted to
    _top: TopSources | None
    # the seed of the fit, and an unused number
    _stream: tuple[int, int]
    _dtype: str

    def __init__(
        self,
        hidden: tuple[int, ...] = (100, 50),
        *,
        link: str = "tanh",
        alpha: Any = 0.0,
        beta: Any = 0.0,
        gamma: Any = 0.0,
        sigma2: Any = None,
        supervised: Any = "top",
        fine_tune: str | None = "recognition",
        l2: float = 1e-3,
        solver: str = "auto",
        tol: float = 1e-6,
        max_iter: int = 200,
        learning_rate: float = 1e-3,
        batch_size: int = 100,
        max_epochs: int = 30,
        validation_fraction: float | None = 0.1,
        patience: int | None = 10,
        layer_options: dict[str, Any] | None = None,
        random_state: Any = None,
        verbose: int = 0,
        verbose_interval: int = 10,
        executor: Any = "threads",
        n_jobs: int | None = None,
        time_budget: float | None = None,
        checkpoint: Any = None,
    ) -> None:
        self.hidden = hidden
        self.link = link
        self.alpha = alpha
        self.beta = beta
        self.gamma = gamma
        self.sigma2 = sigma2
        self.supervised = supervised
        self.fine_tune = fine_tune
        self.l2 = l2
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.learning_rate = learning_rate
        self.batch_size = batch_size
        self.max_epochs = max_epochs
        self.validation_fraction = validation_fraction
        self.patience = patience
        self.layer_options = layer_options
        self.random_state = random_state
        self.verbose = verbose
        self.verbose_interval = verbose_interval
        self.executor = executor
        self.n_jobs = n_jobs
        self.time_budget = time_budget
        self.checkpoint = checkpoint

    # ------------------------------------------------ fitting

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Grow the layers, then train them together.

        Parameters
        ----------
        X : array-like, sparse matrix, table, path or Dask collection
            Rows are samples, columns features; NaN or null marks a missing entry.
        y : array-like of shape (n_samples,) or str, optional
            Classes: text or whole numbers; unknown ones are -1 among integers, NaN or None
            otherwise. For tables and files also the name of a column, which is then no feature.
        sample_weight : array-like of shape (n_samples,) or str, optional
            Weight 2 equals repeating the row, weight 0 leaving it out. For tables and files also
            the name of a column, which is then not a feature.

        Returns
        -------
        self
        """
        self._check_parameters()
        deadline = Deadline.after(self.time_budget)
        plans = self._layer_plans()
        self._check_layer_options()
        self._warn_if_layers_collapse()
        rows, self.classes_ = read_training_rows(self, X, y, sample_weight)
        # from the beginning, or from where the checkpoint stands
        checkpoint, saved = checkpoint_of(self), None
        if checkpoint is not None:
            saved = checkpoint.read()
            checkpoint.compare(saved, rows.fingerprint())
        seed = seed_from(self.random_state) if saved is None else saved.seed
        progress = Progress(int(self.verbose), self.verbose_interval)
        options = self._shared_options()
        fitting = Fitting(rows, seed, deadline, progress, checkpoint, options)
        grown: Grown = saved or Grown(seed)
        if checkpoint is not None:
            checkpoint.write(grown)  # the seed, which layers that are gone on with must share
        with progress:
            # the layers, one after the other
            layers, grown = grow_layers(fitting, plans, grown, self.classes_)
            self.layers_, self._stack = layers, stack_layers(layers)
            self.network_: Network | None = None
            self.loss_curve_: list[float] = []
            self.stop_reason_ = grown.reason or layers[-1].stop_reason_
            self.n_iter_ = sum(layer.n_iter_ for layer in layers)
            self._dtype, self._stream = rows.source.dtype.name, (seed, 0)
            self.__dict__.pop("_priors", None)
            # all of them together, unless the time is up
            tuned = None if grown.reason else self._tune(fitting, grown)
            if tuned is not None:
                self.loss_curve_, self.stop_reason_ = list(tuned.curve), tuned.reason
                self.n_iter_ += tuned.n_iter
            # sources of labelled rows, for the priors of generate
            self._top = None
            if rows.labels is not None and grown.sources is not None:
                known = rows.labelled
                moved = None if tuned is None else tuned.top
                sources = grown.sources[known] if moved is None else moved
                labels, weight = rows.labels[known], rows.weights[known]
                self._top = keep_top_sources(sources, labels, weight, grown.seed)
        if checkpoint is not None:
            checkpoint.finish(replace(grown, reason=self.stop_reason_))
        if self.stop_reason_ in _STOPPED:
            what = _STOPPED[self.stop_reason_]
            warn(f"{what}; what was learned so far is kept", ConvergenceWarning)
        return self

    def fit_transform(self, X: Any, y: Any = None, sample_weight: Any = None) -> Array:
        """Fit, then transform the same rows (without their labels)."""
        return self.fit(X, y, sample_weight).transform(X)

    def _tune(self, fitting: Fitting, grown: Grown) -> TuningResult | None:
        """Train all layers together; what comes out takes its place in the estimator."""
        if self.fine_tune is None:
            return None
        if self.fine_tune == "recognition":
            if not fitting.rows.labelled.any():
                return None
            plan, n_classes = self._tuning_plan(), len(self.classes_)
            tuned = tune_recognition(fitting, self._stack, n_classes, plan, grown)
            self.network_ = tuned.result
            return tuned
        gamma = self._per_layer("gamma")[-1]
        alpha, beta = self._per_layer("alpha"), self._per_layer("beta")
        tuned = tune_jointly(
            fitting, self._stack, self.fine_tune, Penalties(alpha, beta, gamma), self.max_iter,
            self.tol, grown,
        )  # fmt: skip
        self._stack = tuned.result
        self.layers_ = put_stack_into_layers(self.layers_, self._stack)
        return tuned

    # ------------------------------------------------ what the parameters mean

    def _per_layer(self, name: str) -> tuple[Any, ...]:
        """A parameter that is one value for all layers, or one for each."""
        value, depth = getattr(self, name), len(self.hidden)
        if not isinstance(value, tuple | list):
            return (value if value is None else float(value),) * depth
        if len(value) != depth:
            raise ValueError(
                f"The {name!r} parameter of DeepFactorNetwork must be one value, or one for each "
                f"of the {depth} layers of hidden={self.hidden}. Got {value!r} instead."
            )
        return tuple(None if one is None else float(one) for one in value)

    def _layer_plans(self) -> list[LayerPlan]:
        """Settings of each layer, from the one next to the data."""
        depth = len(self.hidden)
        kinds: list[Any] = ["auto" if self.supervised == "each" else False] * depth
        kinds[-1] = "auto" if self.supervised else "after"
        parts = (self._per_layer(name) for name in ("alpha", "beta", "gamma", "sigma2"))
        return [
            LayerPlan(int(size), *each)
            for size, *each in zip(self.hidden, *parts, kinds, strict=True)
        ]

    def _shared_options(self) -> dict[str, Any]:
        """What all layers share."""
        common = ("link", "verbose", "verbose_interval", "executor", "n_jobs")
        return {**{name: getattr(self, name) for name in common}, **(self.layer_options or {})}

    def _tuning_plan(self) -> TuningPlan:
        """How the recognition network is trained."""
        names = TuningPlan.__dataclass_fields__
        return TuningPlan(**{name: getattr(self, name) for name in names})

    def _check_layer_options(self) -> None:
        """Training of the whole by 'decoder' or 'map' keeps neither signs nor missing biases."""
        options = self.layer_options or {}
        kept = [name for name in ("nonneg_codebook", "nonneg_classifier") if options.get(name)]
        kept += [] if options.get("fit_bias", True) else ["fit_bias"]
        if kept and self.fine_tune in ("decoder", "map"):
            raise ValueError(
                f"layer_options[{kept[0]!r}]={options[kept[0]]!r} is not kept by "
                f"fine_tune={self.fine_tune!r}; use fine_tune='recognition' or None"
            )

    def _warn_if_layers_collapse(self) -> None:
        """Layers without a map between them are one."""
        if self.link == "identity" and len(self.hidden) > 1:
            warn(
                f"layers of link='identity' collapse into one: hidden={self.hidden} can say no "
                f"more than one layer of {min(self.hidden)} sources; set link='tanh', or one size",
                DegenerateWarning,
            )

    # ------------------------------------------------ sources and rows

    def _layer_number(self, layer: Any) -> int:
        """The number of a layer, counted from 1; None is the top."""
        depth = len(self._stack.layers)
        if layer is None:
            return depth
        if not isinstance(layer, int | np.integer) or not 1 <= layer <= depth:
            raise ValueError(
                f"layer must be a number from 1 (next to the data) to {depth} (the top), or None "
                f"for the top; got {layer!r}"
            )
        return int(layer)

    def transform(self, X: Any, layer: int | None = None) -> Array:
        """Sources of the rows, inferred without labels.

        Parameters
        ----------
        X : as in ``fit``
        layer : int, default=None
            1 is the layer next to the data; None the top.

        Returns
        -------
        ndarray of shape (n_samples, size of the layer)
        """
        check_is_fitted(self)
        return self._concatenate_rows(
            X, partial(_infer_sources, self._stack, self._layer_number(layer))
        )

    def inverse_transform(self, S: Any, layer: int | None = None) -> Array:
        """Rows at given sources, through all maps below.

        Parameters
        ----------
        S : array-like of shape (n_samples, size of the layer)
        layer : int, default=None
            Of which layer they are; None: the top.

        Returns
        -------
        ndarray of shape (n_samples, n_features)
        """
        check_is_fitted(self)
        depth = self._layer_number(layer)
        S = check_array(S, dtype=[np.float64, np.float32])
        size = self._stack.layers[depth - 1].n_codes
        if S.shape[1] != size:
            raise ValueError(
                f"S must have one column for each of the {size} sources of layer {depth}, got "
                f"{S.shape[1]}"
            )
        return in_dtype(rows_of(self._stack, S.astype(np.float64), depth), self._dtype)

    def reconstruct(self, X: Any, layer: int | None = None) -> Array:
        """Rows as the sources of a layer (None: the top) give them back, missing entries too."""
        check_is_fitted(self)
        return self._concatenate_rows(
            X, partial(_reconstruct, self._stack, self._layer_number(layer))
        )

    def reconstruction_error(
        self, X: Any, layer: int | None = None, sample_weight: Any = None
    ) -> float:
        """Half the squared error of a row, the mean over rows; missing entries do not count."""
        check_is_fitted(self)
        source = self._open(X, reset=False, weight=sample_weight)
        task = partial(_residuals, self._stack, self._layer_number(layer))
        sums = self._executor(source).map_reduce(task, source)
        return sums.loss / sums.weight

    # ------------------------------------------------ classes

    def _log_probabilities(self, X: Any) -> Array:
        """By the network if there is one, else by the sources of the top."""
        check_is_fitted(self)
        return self._concatenate_rows(X, partial(_log_classes, self._stack, self.network_))

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Accuracy of the classes; without classes, or y, minus ``reconstruction_error``.

        Rows whose label is unknown, as in ``fit``, do not count.
        """
        check_is_fitted(self)
        if y is None or not len(self.classes_):
            return -self.reconstruction_error(X, sample_weight=sample_weight)
        return score_accuracy(self, X, y, sample_weight)

    @available_if(has_classes)
    def prototypes(self) -> Array:
        """What each class weighs in the columns, V'A_L ... A_1, (n_classes, n_features)."""
        check_is_fitted(self)
        out = self._stack.layers[-1].head()[0].T
        for layer in self._stack.layers[::-1]:
            out = out @ layer.codebook
        return np.asarray(out)

    # ------------------------------------------------ sparsity

    def sparsity(
        self, X: Any = None, t: float = 0.05, relative: bool = True
    ) -> list[dict[str, dict[str, float]]]:
        """How sparse sources, codebook and classifier of each layer are.

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
        list of dict
            As :meth:`MatrixFactorization.sparsity`, from the lowest layer to the top.
        """
        check_is_fitted(self)
        below, out = X, []
        for number, layer in enumerate(self.layers_):
            out.append(layer.sparsity(below, t, relative))
            below = None if X is None else self.transform(X, number + 1)
        return out

    # ------------------------------------------------ generated rows

    @available_if(has_classes)
    def generate(
        self,
        label: Any,
        n: int = 1,
        prior: str = "mixture",
        keep: float | None = None,
        random_state: Any = None,
    ) -> Array:
        """New rows of a class.

        Parameters
        ----------
        label : class
        n : int, default=1
        prior : {'mixture', 'gaussian', 'laplace', 'prototype'}, default='mixture'
            Where the sources of the top come from. 'mixture' and 'gaussian' are drawn from a
            mixture of factor analysers, or one Gaussian, that is fitted to the sources of the
            training rows of the class. 'laplace' is drawn from the Laplace prior of all classes
            and then moved down -ln P(class | s) + alpha |s| until the class is probable enough:
            such rows tell a class from the others rather than look like it. 'prototype' moves
            from zero in this way, so that all rows are equal.
        keep : float, default=None
            Draw anew what the model does not give the class with more than this probability; of
            'laplace' and 'prototype' where the search ends (None: 0.9).
        random_state : int, RandomState, Generator or None, default=None

        Returns
        -------
        ndarray of shape (n, n_features)
        """
        check_is_fitted(self)
        number = int(find_class_numbers(np.atleast_1d(np.asarray(label)), self.classes_)[0])
        _check_generation(n, prior, keep)
        rng = np.random.default_rng(seed_from(random_state) % 2**63)
        if prior in ("laplace", "prototype"):
            stop = STOP if keep is None else keep
            top = search_sources(self._stack, self._top, number, n, prior, stop, rng)
            return self.inverse_transform(top)
        model = self._class_prior(number, prior)

        def draw(size: int) -> Array:
            return self.inverse_transform(draw_sources(model, size, int(rng.integers(2**62))))

        return draw(n) if keep is None else self._choose_probable(draw, number, n, keep)

    def _choose_probable(
        self, draw: Callable[[int], Array], number: int, n: int, keep: float
    ) -> Array:
        """Rows that the model takes for their class; the most probable others if they are few."""
        rows: list[Array] = []
        chances: list[Array] = []
        for _ in range(MOST_DRAWS):
            rows.append(draw(n))
            chances.append(np.exp(self._log_probabilities(rows[-1])[:, number]))
            if sum(int((one > keep).sum()) for one in chances) >= n:
                break
        found, chance = np.concatenate(rows), np.concatenate(chances)
        good = np.flatnonzero(chance > keep)
        if len(good) < n:
            warn(
                f"only {len(good)} of {len(found)} draws of class "
                f"{self.classes_.tolist()[number]!r} have a probability above keep={keep}; the "
                "most probable others are given, too. Lower keep",
                DegenerateWarning,
            )
            good = np.argsort(-chance, kind="stable")
        return np.asarray(found[good[:n]])

    def _class_prior(self, number: int, prior: str) -> Any:
        """The model of the sources of a class, fitted when it is first asked for."""
        known: dict[tuple[int, str], Any] = self.__dict__.setdefault("_priors", {})
        if (number, prior) not in known:
            assert self._top is not None
            known[number, prior] = fit_class_prior(self._top, number, prior, self._stream[0])
        return known[number, prior]

    # ------------------------------------------------ files

    def _state(self) -> dict[str, Any]:
        """What a file holds: the layers inside it."""
        return {**super()._state(), "layers": [pack_layer(layer) for layer in self.layers_]}

    @classmethod
    def _from_state(cls, tree: dict[str, Any]) -> Self:
        state = dict(tree["state"])
        layers = [unpack_layer(one) for one in state.pop("layers")]
        estimator = super()._from_state({**tree, "state": state})
        estimator.layers_ = layers
        estimator._check_layers()
        return estimator

    def _check_layers(self) -> None:
        """Refuse layers that do not fit each other."""
        width = self.n_features_in_
        for number, layer in enumerate(self.layers_):
            if layer.n_features_in_ != width:
                raise ValueError(f"layer {number + 1} does not fit the one below")
            width = layer.n_components

    def _check_state(self) -> None:
        sizes = tuple(layer.n_codes for layer in self._stack.layers)
        if sizes != tuple(self.hidden) or len(self._stack.layers[0].bias) != self.n_features_in_:
            raise ValueError("parameters of another shape than the settings declare")
        if self.network_ is not None:
            check_network(self.network_)
            if self.network_.n_classes != len(self.classes_):
                raise ValueError("the network has not one output for each class")

    # ------------------------------------------------ scikit-learn

    @property
    def _n_features_out(self) -> int:
        return int(self.hidden[-1])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = True
        if len(getattr(self, "classes_", (0,))):
            tags.estimator_type = "classifier"
            tags.classifier_tags = ClassifierTags()
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_stack") and hasattr(self, "layers_")


def _infer_sources(params: StackParams, depth: int, block: Block) -> Array:
    if params.reading == "layers":
        params = params.below(depth)
    return match_dtype(sources_of(params, dense_rows(block.X))[depth - 1], block)


def _decode(params: StackParams, depth: int, X: Array) -> Array:
    part = params.below(depth) if params.reading == "layers" else params
    return rows_of(params, sources_of(part, X)[depth - 1], depth)


def _reconstruct(params: StackParams, depth: int, block: Block) -> Array:
    return match_dtype(_decode(params, depth, dense_rows(block.X)), block)


def _residuals(params: StackParams, depth: int, block: Block) -> ResidualSums:
    X = dense_rows(block.X)
    rest = X - _decode(params, depth, X)
    rest[np.isnan(rest)] = 0.0
    weight = block.weights()
    return ResidualSums(0.5 * float(weight @ (rest**2).sum(axis=1)), float(weight.sum()))


def _log_classes(params: StackParams, network: Network | None, block: Block) -> Array:
    if network is None:
        top = sources_of(params, dense_rows(block.X))[-1]
        return match_dtype(class_log_probabilities(params, top), block)
    X = fill_missing(params, block.X)
    return match_dtype(log_probabilities(network.cast(X.dtype), X), block)


def _check_generation(n: Any, prior: Any, keep: Any) -> None:
    check_count("n", n)
    names = ("mixture", "gaussian", "laplace", "prototype")
    if prior not in names:
        raise ValueError(f"prior must be one of {', '.join(map(repr, names))}; got {prior!r}")
    if keep is not None and not 0 <= keep < 1:
        raise ValueError(f"keep must be a probability, at least 0 and less than 1; got {keep!r}")
