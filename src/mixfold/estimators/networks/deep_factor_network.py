"""A stack of matrix factorisations, grown layer by layer and then trained as a whole."""

from __future__ import annotations

import time
from typing import Any, ClassVar, Self

from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import ClassifierTags

from mixfold.contracts import Array
from mixfold.estimators.networks.deep_factor_fit import DeepFitting
from mixfold.estimators.networks.deep_factor_rows import training_rows
from mixfold.estimators.shell import constraints as rule
from mixfold.math.links import LINKS
from mixfold.models.networks.records import check_network

_SIZES = rule.Rule(
    "a tuple of ints >= 1, from the layer next to the data to the top",
    lambda v: isinstance(v, tuple | list) and bool(v) and all(rule.integer(1).holds(n) for n in v),
)


def _each(one: rule.Rule) -> rule.Rule:
    return rule.Rule(
        f"a sequence with {one.words} for each layer",
        lambda v: isinstance(v, tuple | list) and all(one.holds(x) or x is None for x in v),
    )


class DeepFactorNetwork(ClassNamePrefixFeaturesOutMixin, TransformerMixin, DeepFitting):
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
        Quasi-Newton steps end when one of them gains less, relative to the objective.
    max_iter : int, default=200
        Quasi-Newton steps.
    learning_rate : float, default=0.001
        Of Adam, at the start; it falls to a hundredth.
    batch_size : int, default=100
        Rows of a step of Adam.
    max_epochs : int, default=30
        Rows of a step of Adam.
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
        1 reports progress, 2 every iteration.
    verbose_interval : int, default=10
        Iterations between two lines of a log.
    executor : {'threads', 'dask'}, a distributed.Client or an Executor, default='threads'
        Where the rows are visited. Training of the whole holds them in memory.
    n_jobs : int, default=None
        Number of threads; None means all cores.
    time_budget : float, default=None
        Seconds for the whole; then what was learned so far is kept.
    checkpoint : path, default=None
        File in which the fit is kept and from which it goes on if interrupted: at the layer that
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
        "tol": (rule.number(0),),
        "max_iter": (rule.integer(0),),
        "learning_rate": (rule.number(0, open_end=True),),
        "batch_size": (rule.integer(1),),
        "max_epochs": (rule.integer(0),),
        "validation_fraction": (rule.nothing(), rule.share()),
        "patience": (rule.nothing(), rule.integer(1)),
        "layer_options": (rule.nothing(), rule.Rule("a dict", lambda v: isinstance(v, dict))),
        "verbose": (rule.integer(0), rule.boolean()),
        "verbose_interval": (rule.integer(1),),
        "time_budget": (rule.nothing(), rule.number(0, open_end=True)),
        "checkpoint": (rule.nothing(), rule.path()),
    }  # fmt: skip
    _stored: ClassVar[tuple[str, ...]] = (
        "_stack", "_top", "_stream", "_dtype", "network_", "classes_", "loss_curve_",
        "stop_reason_", "n_iter_",
    )  # fmt: skip

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
            Weight 2 equals repeating the row, weight 0 leaving it out.

        Returns
        -------
        self
        """
        began = time.monotonic()
        self._check_parameters()
        plans = self._plans()
        self._check_layer_options()
        self._warn_of_lines()
        rows, self.classes_ = training_rows(self, X, y, sample_weight)
        self._fit(rows, plans, began)
        return self

    # ------------------------------------------------ scikit-learn

    @property
    def _n_features_out(self) -> int:
        return int(self.hidden[-1])

    def fit_transform(self, X: Any, y: Any = None, sample_weight: Any = None) -> Array:
        """Fit, then transform the same rows (without their labels)."""
        return self.fit(X, y, sample_weight).transform(X)

    def _check_state(self) -> None:
        sizes = tuple(layer.n_codes for layer in self._stack.layers)
        if sizes != tuple(self.hidden) or len(self._stack.layers[0].bias) != self.n_features_in_:
            raise ValueError("parameters of another shape than the settings declare")
        if self.network_ is not None:
            check_network(self.network_)
            if self.network_.n_classes != len(self.classes_):
                raise ValueError("the network has not one output for each class")

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
