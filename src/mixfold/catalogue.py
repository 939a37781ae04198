"""The catalogue of public estimators: one row each. A new estimator is one more row here.

The package finds its classes in it (``mixfold.NAME``), model files may name what it lists and
nothing else, and the command line offers the models that have a command.
"""

from __future__ import annotations

import importlib

TYPE_CHECKING = False  # as that of typing, which takes longer to import than all of this
if TYPE_CHECKING:
    from typing import Any


class Entry:
    """A public estimator, where it lives, and how the command line calls its sizes.

    Attributes
    ----------
    estimator : str
        Its public name.
    module : str
        Its module, below ``mixfold.estimators``.
    command : str
        The name after ``--model``; empty if the command line does not fit it.
    group : str
        The heading under which ``mixfold models`` lists it.
    summary : str
        A few words.
    size : str
        The parameter that ``--components`` sets.
    factors : str
        The parameter that ``--factors`` sets; empty if it has none.
    family : str
        The parameter that ``--family`` sets; empty if it has none.
    layers : str
        The parameter that ``--layers`` sets, of a stack, which ``--components`` does not size;
        empty if it has none.
    target : bool
        Whether it is fitted to a target, the column that ``--target`` names.
    unlabelled : bool
        Whether it can do without a target, too.
    words : bool
        Whether it is one of counts of words, so that it can be fitted to texts.
    part : str
        The parameter that holds another model, of a model made of others: ``--set PART=NAME``, and
        ``--set PART__PARAMETER=VALUE``.
    stored : bool
        Whether a model file can hold it.
    """

    def __init__(
        self,
        estimator: str,
        module: str,
        command: str = "",
        group: str = "",
        summary: str = "",
        *,
        size: str = "n_components",
        factors: str = "",
        family: str = "",
        layers: str = "",
        target: bool = False,
        unlabelled: bool = False,
        words: bool = False,
        part: str = "",
        stored: bool = True,
    ) -> None:
        self.estimator, self.module, self.command = estimator, module, command
        self.group, self.summary, self.size = group, summary, size
        self.factors, self.family, self.layers = factors, family, layers
        self.target, self.unlabelled, self.words = target, unlabelled, words
        self.part, self.stored = part, stored

    @property
    def home(self) -> str:
        """The whole name of its module."""
        return f"mixfold.estimators.{self.module}"

    def load(self) -> type[Any]:
        """The class. Imported on use, so that ``import mixfold`` and ``--help`` are quick."""
        estimator: type[Any] = getattr(importlib.import_module(self.home), self.estimator)
        return estimator

    def has_factors(self) -> bool:
        """Whether it reduces rows to factors; distances to centres are a transform, too."""
        from sklearn.base import ClusterMixin

        estimator = self.load()
        clusters = issubclass(estimator, ClusterMixin) and not hasattr(estimator, "top_words")
        return hasattr(estimator, "transform") and not clusters

    def parameters(self) -> tuple[str, ...]:
        """Names of the constructor's parameters, in its order."""
        import inspect

        signature = inspect.signature(self.load().__init__)
        return tuple(name for name in signature.parameters if name != "self")

    def all_parameters(self, inner: Entry | None = None) -> tuple[str, ...]:
        """Those of a model and of the one that it is made of (a Gaussian mixture, unless given)."""
        if not self.part:
            return self.parameters()
        inner = ENTRIES["GaussianMixture"] if inner is None else inner
        return (*self.parameters(), *(f"{self.part}__{name}" for name in inner.parameters()))


_GROUPS, _FACTORS, _BOTH = "groups of rows", "factors of columns", "groups and factors"
_TARGET, _TEXT, _NETWORK = "with a --target", "counts of words", "factorisations and networks"

CATALOGUE = (
    Entry("GaussianMixture", "mixtures.gaussian_mixture", "gaussian-mixture", _GROUPS,
          "Gaussian components, soft assignments"),
    Entry("BayesianGaussianMixture", "mixtures.bayesian_gaussian_mixture",
          "bayesian-gaussian-mixture", _GROUPS, "the same by variational Bayes, number learned"),
    Entry("Mixture", "mixtures.general_mixture", "mixture", _GROUPS,
          "components of any --family, mixed tables", family="family"),
    Entry("BernoulliMixture", "mixtures.presets", "bernoulli-mixture", _GROUPS, "binary columns"),
    Entry("PoissonMixture", "mixtures.presets", "poisson-mixture", _GROUPS, "counts"),
    Entry("MultinomialMixture", "mixtures.presets", "multinomial-mixture", _TEXT,
          "groups of documents", words=True),
    Entry("CategoricalMixture", "mixtures.presets", "categorical-mixture", _GROUPS,
          "codes of categories (latent classes)"),
    Entry("NestedMixture", "mixtures.nested_mixture", "nested-mixture", _GROUPS,
          "groups that are mixtures themselves"),
    Entry("KMeans", "mixtures.kmeans", "kmeans", _GROUPS, "centres, hard assignments",
          size="n_clusters"),
    Entry("KSubspaces", "mixtures.k_subspaces", "k-subspaces", _GROUPS,
          "planes, hard assignments by reconstruction error", size="n_clusters",
          factors="n_components"),
    Entry("GaussianPCP", "factors.gaussian_pcp", "gaussian-pcp", _BOTH,
          "clusters on one shared projection, number learned", size="n_clusters",
          factors="n_components"),
    Entry("PPCA", "factors.ppca", "ppca", _FACTORS, "probabilistic principal components"),
    Entry("FactorAnalysis", "factors.factor_analysis", "factor-analysis", _FACTORS,
          "common factors and noise of each column"),
    Entry("ICA", "factors.ica", "ica", _FACTORS, "independent sources with heavy tails"),
    Entry("GTM", "factors.gtm", "gtm", _FACTORS, "a map of the rows: a curved surface over a grid"),
    Entry("MixtureOfPPCA", "factors.mixture_of_ppca", "mixture-of-ppca", _BOTH,
          "groups with principal components of their own", factors="n_factors"),
    Entry("MixtureOfFactorAnalyzers", "factors.mixture_of_factor_analyzers",
          "mixture-of-factor-analyzers", _BOTH, "groups with factors and noise of their own",
          factors="n_factors"),
    Entry("PLSI", "topics.plsi", "plsi", _TEXT, "topics by maximum likelihood", words=True),
    Entry("LatentDirichletAllocation", "topics.latent_dirichlet_allocation", "lda", _TEXT,
          "topics with learned priors", words=True),
    Entry("PCP", "topics.pcp", "pcp", _TEXT, "clusters of documents and --factors topics",
          size="n_clusters", factors="n_components", words=True),
    Entry("MatrixFactorization", "networks.matrix_factorization", "matrix-factorization",
          _NETWORK, "non-linear or non-negative, optional classifier", target=True,
          unlabelled=True),
    Entry("DeepFactorNetwork", "networks.deep_factor_network", "deep-factor-network", _NETWORK,
          "--layers of factorisations", size="hidden", layers="hidden", target=True,
          unlabelled=True),
    Entry("RBM", "networks.rbm", "rbm", _NETWORK, "restricted Boltzmann machine", target=True,
          unlabelled=True),
    Entry("DeepBeliefNetwork", "networks.deep_belief_network", "deep-belief-network", _NETWORK,
          "--layers of Boltzmann machines", size="hidden", layers="hidden", target=True,
          unlabelled=True),
    Entry("KernelPCA", "kernels.kernel_pca", "kernel-pca", _FACTORS,
          "principal components in a feature space"),
    Entry("SupervisedPPCA", "outputs.supervised_ppca", "supervised-ppca", _TARGET,
          "principal components of columns and target", target=True),
    Entry("MixtureOfFactorModels", "outputs.mixture_of_factor_models", "mixture-of-factor-models",
          _TARGET, "groups, factors and a probit classifier", factors="n_factors", target=True),
    Entry("SupervisedMixtureOfPPCA", "outputs.supervised_mixture_of_ppca",
          "supervised-mixture-of-ppca", _TARGET, "groups, each a supervised PPCA",
          factors="n_factors", target=True),
    Entry("MORP", "kernels.morp", "morp", _TARGET, "supervised linear or kernel projection",
          target=True),
    Entry("KernelCCA", "kernels.kernel_cca", "kernel-cca", _TARGET,
          "canonical correlations, linear or by kernels", target=True),
    Entry("MLiT", "mixtures.mlit", "mlit", _GROUPS, "groups under linear maps; a score, no density",
          factors="n_dims"),
    Entry("MixtureClassifier", "mixtures.mixture_classifier", "mixture-classifier", _TARGET,
          "a density for each class", size="estimator__n_components", target=True,
          part="estimator"),
    Entry("LatentDensity", "networks.latent_density"),
    Entry("MixtureClustering", "search.mixture_clustering"),
    Entry("MixtureSearch", "search.mixture_search", stored=False),
)  # fmt: skip
ENTRIES = {entry.estimator: entry for entry in CATALOGUE}
