"""Mixtures of one family each, by name."""

from __future__ import annotations

from typing import Any, ClassVar

from mixfold.estimators.mixtures.general_mixture import GeneralMixture

_DOC = """{title}

    {model}

    It is :class:`Mixture` with ``family={family!r}``, where the other ways to fit it are described.

    Parameters
    ----------
    n_components : int, default=1
        Number of components K; with a prior of the weights an upper bound.
    weights : str or array-like, default='auto'
        'ml', 'dirichlet', 'stick-breaking' or fixed shares, as in :class:`Mixture`.
    inference : {{'em', 'vb', 'gibbs', 'collapsed'}}, default='em'
        As in :class:`Mixture`.
    alpha : float or 'learn', default=1.0
        Concentration of the weights: the larger, the more components are used.
    prior : {{None, 'default'}} or dict, default=None
        Prior of the components: {settings}.
    learn_prior : bool, default=False
        Let the prior of the components follow them (type-II maximum likelihood), once they have
        been fitted under the prior that is given; the bound is never below that fit's. 'gibbs' and
        'collapsed' draw its settings with all else, as in :class:`Mixture`.
    family_options : dict, default=None
        {options}
    tol : float, default=1e-6
        The fit stops when the total gain still to come, extrapolated from the recent rate of
        convergence, is below ``tol``. The gain is that of the objective per row.
    max_iter : int, default=1000
        Largest number of iterations. Each start has this limit.
    n_init : int, default=1
        Starts that are followed to the end; the best is kept.
    merge_starts : bool, default=False
        With ``n_init`` above 1: make one more fit of the components of all starts, of which as many
        are kept as the mixture has, and keep it if it is better than the best of them.
    init_params : str, default='auto'
        How rows are first shared among the components. The choices are 'kmeans', 'k-means++',
        'random', 'random_from_data' and 'randconst'; 'auto' goes by the inference.
    merge_split : bool, default=True
        Try to merge components that share rows and to split others; keep what raises the bound.
        'gibbs' does not do this.
    batch_size : int, default=None
        Rows between two updates of the parameters. Only 'vb' and MAP have such batches (memoised
        schedule); None updates after each pass.
    total_weight : float, default=None
        For ``partial_fit``: how many rows the stream stands for; None means those seen so far.
    n_chains : int, default=4
        Chains of 'gibbs' and 'collapsed'.
    n_draws : int, default=500
        Draws kept per chain.
    burn_in : int, default=500
        Sweeps before the first draw.
    thin : int, default=1
        Sweeps per draw.
    random_state : int, RandomState, Generator or None, default=None
        Seed; the same seed gives the same result for any number of threads or workers.
    warm_start : bool, default=False
        Start the next fit from the last one.
    verbose : int, default=0
        1 shows progress (a status line in a terminal, some lines in a log), 2 shows every
        iteration.
    verbose_interval : int, default=10
        Iterations between two lines of a log.
    acceleration : {{'auto', 'quasi-newton', 'squarem'}} or None, default='auto'
        Extrapolation between steps, kept only where the objective rises; None makes plain steps.
        Only EM without priors is extrapolated.
    executor : {{'threads', 'dask'}}, a distributed.Client or an Executor, default='threads'
        Where the rows are visited: by threads of this process or by the workers of a Dask cluster.
    n_jobs : int, default=None
        Number of threads; None means all cores.
    time_budget : float, default=None
        Seconds after which the best result so far is returned.
    checkpoint : path, default=None
        File to which a long fit writes its state now and then; the same call made again after an
        interruption goes on from it and ends in the same result. Only 'em' and 'vb' write it.

    Attributes
    ----------
    weights_ : ndarray of shape (n_components,)
    means_ : ndarray of shape (n_components, n_features)
        Expected entries.
    {attribute}
    converged_, stop_reason_, n_iter_, n_passes_, lower_bound_, lower_bounds_, events_
        As in :class:`Mixture`.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    References
    ----------
    .. [1] {paper}

    Examples
    --------
    {example}
    """


class PresetMixture(GeneralMixture):
    """A mixture whose family is said by its class."""

    _family_name: ClassVar[str]

    def __init__(
        self,
        n_components: int = 1,
        *,
        weights: Any = "auto",
        inference: str = "em",
        alpha: Any = 1.0,
        prior: Any = None,
        learn_prior: bool = False,
        family_options: Any = None,
        tol: float = 1e-6,
        max_iter: int = 1000,
        n_init: int = 1,
        merge_starts: bool = False,
        init_params: str = "auto",
        merge_split: bool = True,
        batch_size: int | None = None,
        total_weight: float | None = None,
        n_chains: int = 4,
        n_draws: int = 500,
        burn_in: int = 500,
        thin: int = 1,
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
        self.weights = weights
        self.inference = inference
        self.alpha = alpha
        self.prior = prior
        self.learn_prior = learn_prior
        self.family_options = family_options
        self.tol = tol
        self.max_iter = max_iter
        self.n_init = n_init
        self.merge_starts = merge_starts
        self.init_params = init_params
        self.merge_split = merge_split
        self.batch_size = batch_size
        self.total_weight = total_weight
        self.n_chains = n_chains
        self.n_draws = n_draws
        self.burn_in = burn_in
        self.thin = thin
        self.random_state = random_state
        self.warm_start = warm_start
        self.verbose = verbose
        self.verbose_interval = verbose_interval
        self.acceleration = acceleration
        self.executor = executor
        self.n_jobs = n_jobs
        self.time_budget = time_budget
        self.checkpoint = checkpoint

    def _family_setting(self) -> str:
        return self._family_name


class BernoulliMixture(PresetMixture):
    _family_name = "bernoulli"
    __doc__ = _DOC.format(
        family=_family_name,
        title="Mixture of Bernoulli vectors: groups of rows of yes and no.",
        model="z ~ weights,    x_d | z = k ~ Bernoulli(probabilities[k, d])",
        settings="{'a': 1.0, 'b': 1.0} of a beta law",
        options="Further settings of the family.",
        attribute="probabilities_ : ndarray of shape (n_components, n_features)",
        paper="""Juan, Vidal. On the use of Bernoulli mixture models for text classification.
       Pattern Recognition 35, 2002.""",
        example=""">>> import numpy as np
    >>> from mixfold import BernoulliMixture
    >>> rng = np.random.default_rng(0)
    >>> X = (rng.random((300, 5)) < np.repeat([[0.1], [0.9]], [200, 100], axis=0)).astype(float)
    >>> mixture = BernoulliMixture(2, random_state=0).fit(X)
    >>> mixture.weights_.round(1).max()
    np.float64(0.7)
    >>> from mixfold.plots import plot_profiles
    >>> ax = plot_profiles(mixture, X)""",
    )


class PoissonMixture(PresetMixture):
    _family_name = "poisson"
    __doc__ = _DOC.format(
        family=_family_name,
        title="Mixture of Poisson counts: groups of rows of events.",
        model="z ~ weights,    x_d | z = k ~ Poisson(rates[k, d])",
        settings="{'a': 1.0, 'b': 0.1} of a gamma law",
        options="{'exposure': ...} in which the events were counted, a number or one per column.",
        attribute="rates_ : ndarray of shape (n_components, n_features)",
        paper="""Rau, Maugis-Rabusseau, Martin-Magniette, Celeux. Co-expression analysis of
       high-throughput transcriptome sequencing data with Poisson mixture models. Bioinformatics
       31, 2015.""",
        example=""">>> import numpy as np
    >>> from mixfold import PoissonMixture
    >>> X = np.random.default_rng(0).poisson(np.repeat([[2.0], [9.0]], 100, axis=0), (200, 3))
    >>> mixture = PoissonMixture(8, inference="vb", random_state=0).fit(X)
    >>> mixture.effective_components_
    2
    >>> from mixfold.plots import plot_pairs
    >>> panels = plot_pairs(mixture, X)""",
    )


class MultinomialMixture(PresetMixture):
    _family_name = "multinomial"
    __doc__ = _DOC.format(
        family=_family_name,
        title="Mixture of multinomials (of unigrams): groups of documents as counts of words.",
        model="z ~ weights,    x | z = k ~ Multinomial(sum(x), probabilities[k])",
        settings="{'concentration': 1.0} of a Dirichlet law",
        options="Further settings of the family.",
        attribute="probabilities_ : ndarray of shape (n_components, n_features)",
        paper="""Nigam, McCallum, Thrun, Mitchell. Text classification from labeled and unlabeled
       documents using EM. Machine Learning 39, 2000.""",
        example=""">>> import numpy as np
    >>> from mixfold import MultinomialMixture
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.multinomial(50, p, 60) for p in ([0.7, 0.2, 0.1], [0.1, 0.2, 0.7])])
    >>> mixture = MultinomialMixture(2, random_state=0).fit(X)
    >>> np.sort(mixture.probabilities_[:, 0]).round(1)
    array([0.1, 0.7])
    >>> from mixfold.plots import plot_profiles
    >>> ax = plot_profiles(mixture, X)""",
    )


class CategoricalMixture(PresetMixture):
    _family_name = "categorical"
    __doc__ = _DOC.format(
        family=_family_name,
        title="Mixture of categories (latent class analysis): groups of rows of codes.",
        model="z ~ weights,    x_d | z = k ~ Categorical(probabilities[d][k]),  codes 0, 1, ...",
        settings="{'concentration': 1.0} of a Dirichlet law",
        options="""{'n_categories': ...} per column; by default the largest code plus one, of which
        those codes are parameters that occur. A code that never does has the share 1e-12 in every
        component: a new row with it is 27.6 less probable, on the logarithmic scale, for it.""",
        attribute="probabilities_ : list of ndarrays of shape (n_components, n_categories)",
        paper="""Goodman. Exploratory latent structure analysis using both identifiable and
       unidentifiable models. Biometrika 61, 1974.""",
        example=""">>> import numpy as np
    >>> from mixfold import CategoricalMixture
    >>> X = np.random.default_rng(0).integers(0, 2, (200, 4))
    >>> X[:80] += 1
    >>> mixture = CategoricalMixture(2, random_state=0).fit(X)
    >>> [p.shape for p in mixture.probabilities_]
    [(2, 3), (2, 3), (2, 3), (2, 3)]
    >>> import matplotlib.pyplot as plt
    >>> for k, shares in enumerate(mixture.probabilities_[0]):
    ...     bars = plt.bar(np.arange(3) + 0.4 * k - 0.2, shares, 0.4, label=f"component {k}")
    >>> names = plt.xlabel("code in the first column"), plt.ylabel("probability")
    >>> ticks, legend = plt.xticks([0, 1, 2]), plt.legend()""",
    )
