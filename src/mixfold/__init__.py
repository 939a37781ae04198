"""Probabilistic clustering and dimensionality reduction for real tables.

The public names are imported when they are first used, so that ``mixfold --help`` and the workers
of a cluster start quickly.
"""

from __future__ import annotations

import importlib

from mixfold.catalogue import ENTRIES

# for type checkers and editors; a test compares it with the catalogue
TYPE_CHECKING = False  # as that of typing, which takes longer to import than all of this
if TYPE_CHECKING:
    from typing import Any

    from mixfold.estimators.factors.factor_analysis import FactorAnalysis as FactorAnalysis
    from mixfold.estimators.factors.gaussian_pcp import GaussianPCP as GaussianPCP
    from mixfold.estimators.factors.gtm import GTM as GTM
    from mixfold.estimators.factors.ica import ICA as ICA
    from mixfold.estimators.factors.mixture_of_factor_analyzers import (
        MixtureOfFactorAnalyzers as MixtureOfFactorAnalyzers,
    )
    from mixfold.estimators.factors.mixture_of_ppca import MixtureOfPPCA as MixtureOfPPCA
    from mixfold.estimators.factors.ppca import PPCA as PPCA
    from mixfold.estimators.kernels.kernel_cca import KernelCCA as KernelCCA
    from mixfold.estimators.kernels.kernel_pca import KernelPCA as KernelPCA
    from mixfold.estimators.kernels.morp import MORP as MORP
    from mixfold.estimators.mixtures.bayesian_gaussian_mixture import (
        BayesianGaussianMixture as BayesianGaussianMixture,
    )
    from mixfold.estimators.mixtures.bootstrap import bootstrap_lrt as bootstrap_lrt
    from mixfold.estimators.mixtures.gap import gap_statistic as gap_statistic
    from mixfold.estimators.mixtures.gaussian_mixture import GaussianMixture as GaussianMixture
    from mixfold.estimators.mixtures.general_mixture import Mixture as Mixture
    from mixfold.estimators.mixtures.k_subspaces import KSubspaces as KSubspaces
    from mixfold.estimators.mixtures.kmeans import KMeans as KMeans
    from mixfold.estimators.mixtures.mixture_classifier import (
        MixtureClassifier as MixtureClassifier,
    )
    from mixfold.estimators.mixtures.mlit import MLiT as MLiT
    from mixfold.estimators.mixtures.nested_mixture import NestedMixture as NestedMixture
    from mixfold.estimators.mixtures.presets import BernoulliMixture as BernoulliMixture
    from mixfold.estimators.mixtures.presets import CategoricalMixture as CategoricalMixture
    from mixfold.estimators.mixtures.presets import MultinomialMixture as MultinomialMixture
    from mixfold.estimators.mixtures.presets import PoissonMixture as PoissonMixture
    from mixfold.estimators.networks.codebook_draws import sample_codebook as sample_codebook
    from mixfold.estimators.networks.deep_belief_network import (
        DeepBeliefNetwork as DeepBeliefNetwork,
    )
    from mixfold.estimators.networks.deep_factor_network import (
        DeepFactorNetwork as DeepFactorNetwork,
    )
    from mixfold.estimators.networks.latent_density import LatentDensity as LatentDensity
    from mixfold.estimators.networks.matrix_factorization import (
        MatrixFactorization as MatrixFactorization,
    )
    from mixfold.estimators.networks.rbm import RBM as RBM
    from mixfold.estimators.outputs.mixture_of_factor_models import (
        MixtureOfFactorModels as MixtureOfFactorModels,
    )
    from mixfold.estimators.outputs.supervised_mixture_of_ppca import (
        SupervisedMixtureOfPPCA as SupervisedMixtureOfPPCA,
    )
    from mixfold.estimators.outputs.supervised_ppca import SupervisedPPCA as SupervisedPPCA
    from mixfold.estimators.search.mixture_clustering import (
        MixtureClustering as MixtureClustering,
    )
    from mixfold.estimators.search.mixture_search import MixtureSearch as MixtureSearch
    from mixfold.estimators.shell.base import DegenerateWarning as DegenerateWarning
    from mixfold.estimators.shell.frozen import freeze as freeze
    from mixfold.estimators.topics.latent_dirichlet_allocation import (
        LatentDirichletAllocation as LatentDirichletAllocation,
    )
    from mixfold.estimators.topics.pcp import PCP as PCP
    from mixfold.estimators.topics.plsi import PLSI as PLSI
    from mixfold.schema.schema import Schema as Schema
    from mixfold.store import load as load

__version__ = "0.1.0"

_HOMES = {
    **{name: entry.home for name, entry in ENTRIES.items()},
    "DegenerateWarning": "mixfold.estimators.shell.base",
    "Schema": "mixfold.schema.schema",
    "bootstrap_lrt": "mixfold.estimators.mixtures.bootstrap",
    "freeze": "mixfold.estimators.shell.frozen",
    "gap_statistic": "mixfold.estimators.mixtures.gap",
    "load": "mixfold.store",
    "sample_codebook": "mixfold.estimators.networks.codebook_draws",
}

__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'mixfold' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
