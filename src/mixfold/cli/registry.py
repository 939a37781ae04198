"""Which models the command line offers. A new model is one more line in ``MODELS``."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import Any

import typer


@dataclass(frozen=True, slots=True)
class ModelEntry:
    """A public estimator of :mod:`mixfold` and how its sizes are called.

    Attributes
    ----------
    estimator : str
        Its public name.
    size : str
        The parameter that ``--components`` sets.
    summary : str
        A few words.
    factors : str
        The parameter that ``--factors`` sets; empty if it has none.
    family : str
        The parameter that ``--family`` sets; empty if it has none.
    target : bool
        Whether it is fitted to a target, the column that ``--target`` names.
    unlabelled : bool
        Whether it can do without a target, too.
    layers : str
        The parameter that ``--layers`` sets, of a stack, which ``--components`` does not size;
        empty if it has none.
    words : bool
        Whether it is one of counts of words, so that it can be fitted to texts.
    """

    estimator: str
    size: str
    summary: str
    factors: str = ""
    family: str = ""
    target: bool = False
    unlabelled: bool = False
    layers: str = ""
    words: bool = False

    def load(self) -> type[Any]:
        """The estimator class. Imported on use, so that ``--help`` answers at once."""
        import mixfold

        estimator: type[Any] = getattr(mixfold, self.estimator)
        return estimator

    def has_factors(self) -> bool:
        """Whether it reduces rows to factors; distances to centres are a transform, too."""
        from sklearn.base import ClusterMixin

        estimator = self.load()
        clusters = issubclass(estimator, ClusterMixin) and not hasattr(estimator, "top_words")
        return hasattr(estimator, "transform") and not clusters

    def parameters(self) -> tuple[str, ...]:
        """Names of the constructor's parameters, in its order."""
        signature = inspect.signature(self.load().__init__)
        return tuple(name for name in signature.parameters if name != "self")


MODELS = {
    "gaussian-mixture": ModelEntry("GaussianMixture", "n_components", "groups, soft assignments"),
    "bayesian-gaussian-mixture": ModelEntry(
        "BayesianGaussianMixture", "n_components", "groups, their number learned"
    ),
    "mixture": ModelEntry(
        "Mixture", "n_components", "groups of rows of any kind, see --family", family="family"
    ),
    "bernoulli-mixture": ModelEntry("BernoulliMixture", "n_components", "groups of yes and no"),
    "poisson-mixture": ModelEntry("PoissonMixture", "n_components", "groups of counts"),
    "multinomial-mixture": ModelEntry(
        "MultinomialMixture",
        "n_components",
        "groups of documents as counts of words",
        words=True,
    ),
    "categorical-mixture": ModelEntry("CategoricalMixture", "n_components", "groups of codes"),
    "nested-mixture": ModelEntry("NestedMixture", "n_components", "groups of groups"),
    "kmeans": ModelEntry("KMeans", "n_clusters", "groups around centres, hard assignments"),
    "gaussian-pcp": ModelEntry(
        "GaussianPCP", "n_clusters", "groups on one plane, their number learned", "n_components"
    ),
    "ppca": ModelEntry("PPCA", "n_components", "principal axes and noise"),
    "factor-analysis": ModelEntry(
        "FactorAnalysis", "n_components", "factors, and noise of each column"
    ),
    "mixture-of-ppca": ModelEntry(
        "MixtureOfPPCA", "n_components", "groups with axes of their own", "n_factors"
    ),
    "mixture-of-factor-analyzers": ModelEntry(
        "MixtureOfFactorAnalyzers",
        "n_components",
        "groups with factors and noise of their own",
        "n_factors",
    ),
    "plsi": ModelEntry("PLSI", "n_components", "topics of documents", words=True),
    "lda": ModelEntry(
        "LatentDirichletAllocation",
        "n_components",
        "topics of documents, with priors that are learned",
        words=True,
    ),
    "pcp": ModelEntry(
        "PCP",
        "n_clusters",
        "groups of documents, their number learned, and --factors topics",
        "n_components",
        words=True,
    ),
    "matrix-factorization": ModelEntry(
        "MatrixFactorization",
        "n_components",
        "factors that a link bends, parts without signs, and the classes of a --target if given",
        target=True,
        unlabelled=True,
    ),
    "deep-factor-network": ModelEntry(
        "DeepFactorNetwork",
        "hidden",
        "layers of such factors, see --layers",
        target=True,
        unlabelled=True,
        layers="hidden",
    ),
    "rbm": ModelEntry(
        "RBM",
        "n_components",
        "binary units behind columns from 0 to 1, and the classes of a --target if given",
        target=True,
        unlabelled=True,
    ),
    "deep-belief-network": ModelEntry(
        "DeepBeliefNetwork",
        "hidden",
        "layers of such units, see --layers",
        target=True,
        unlabelled=True,
        layers="hidden",
    ),
    "kernel-pca": ModelEntry("KernelPCA", "n_components", "axes that a kernel bends"),
    "supervised-ppca": ModelEntry(
        "SupervisedPPCA", "n_components", "axes that tell of a --target too", target=True
    ),
    "mixture-of-factor-models": ModelEntry(
        "MixtureOfFactorModels",
        "n_components",
        "groups, factors and the classes of a --target",
        "n_factors",
        target=True,
    ),
    "supervised-mixture-of-ppca": ModelEntry(
        "SupervisedMixtureOfPPCA",
        "n_components",
        "groups, each with axes that tell of a --target",
        "n_factors",
        target=True,
    ),
    "morp": ModelEntry("MORP", "n_components", "axes that a --target has a say in", target=True),
    "kernel-cca": ModelEntry(
        "KernelCCA", "n_components", "axes that go with those of a --target", target=True
    ),
}


def find_model(name: str) -> ModelEntry:
    """The entry called ``name``; a usage error that lists the names otherwise."""
    try:
        return MODELS[name]
    except KeyError:
        raise typer.BadParameter(
            f"there is no model {name!r}; choose one of: {', '.join(MODELS)}.",
            param_hint="--model",
        ) from None
