"""Probabilistic clustering and dimensionality reduction for real tables.

The public names are imported when they are first used, so that ``mixfold --help`` and the workers
of a cluster start quickly.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mixfold.estimators.base import DegenerateWarning as DegenerateWarning
    from mixfold.estimators.bayesian_gaussian_mixture import (
        BayesianGaussianMixture as BayesianGaussianMixture,
    )
    from mixfold.estimators.bootstrap import bootstrap_lrt as bootstrap_lrt
    from mixfold.estimators.deep_belief_network import DeepBeliefNetwork as DeepBeliefNetwork
    from mixfold.estimators.deep_factor_network import DeepFactorNetwork as DeepFactorNetwork
    from mixfold.estimators.factor_analysis import FactorAnalysis as FactorAnalysis
    from mixfold.estimators.gaussian_mixture import GaussianMixture as GaussianMixture
    from mixfold.estimators.gaussian_pcp import GaussianPCP as GaussianPCP
    from mixfold.estimators.general_mixture import Mixture as Mixture
    from mixfold.estimators.kernel_cca import KernelCCA as KernelCCA
    from mixfold.estimators.kernel_pca import KernelPCA as KernelPCA
    from mixfold.estimators.kmeans import KMeans as KMeans
    from mixfold.estimators.latent_dirichlet_allocation import (
        LatentDirichletAllocation as LatentDirichletAllocation,
    )
    from mixfold.estimators.matrix_factorization import (
        MatrixFactorization as MatrixFactorization,
    )
    from mixfold.estimators.mixture_classifier import MixtureClassifier as MixtureClassifier
    from mixfold.estimators.mixture_of_factor_analyzers import (
        MixtureOfFactorAnalyzers as MixtureOfFactorAnalyzers,
    )
    from mixfold.estimators.mixture_of_factor_models import (
        MixtureOfFactorModels as MixtureOfFactorModels,
    )
    from mixfold.estimators.mixture_of_ppca import MixtureOfPPCA as MixtureOfPPCA
    from mixfold.estimators.mixture_search import MixtureSearch as MixtureSearch
    from mixfold.estimators.mlit import MLiT as MLiT
    from mixfold.estimators.morp import MORP as MORP
    from mixfold.estimators.nested_mixture import NestedMixture as NestedMixture
    from mixfold.estimators.pcp import PCP as PCP
    from mixfold.estimators.plsi import PLSI as PLSI
    from mixfold.estimators.ppca import PPCA as PPCA
    from mixfold.estimators.presets import BernoulliMixture as BernoulliMixture
    from mixfold.estimators.presets import CategoricalMixture as CategoricalMixture
    from mixfold.estimators.presets import MultinomialMixture as MultinomialMixture
    from mixfold.estimators.presets import PoissonMixture as PoissonMixture
    from mixfold.estimators.rbm import RBM as RBM
    from mixfold.estimators.supervised_mixture_of_ppca import (
        SupervisedMixtureOfPPCA as SupervisedMixtureOfPPCA,
    )
    from mixfold.estimators.supervised_ppca import SupervisedPPCA as SupervisedPPCA
    from mixfold.store import load as load

__version__ = "0.1.0"

_HOMES = {
    "BayesianGaussianMixture": "mixfold.estimators.bayesian_gaussian_mixture",
    "DeepBeliefNetwork": "mixfold.estimators.deep_belief_network",
    "Mixture": "mixfold.estimators.general_mixture",
    "BernoulliMixture": "mixfold.estimators.presets",
    "PoissonMixture": "mixfold.estimators.presets",
    "MultinomialMixture": "mixfold.estimators.presets",
    "CategoricalMixture": "mixfold.estimators.presets",
    "DeepFactorNetwork": "mixfold.estimators.deep_factor_network",
    "DegenerateWarning": "mixfold.estimators.base",
    "FactorAnalysis": "mixfold.estimators.factor_analysis",
    "GaussianMixture": "mixfold.estimators.gaussian_mixture",
    "GaussianPCP": "mixfold.estimators.gaussian_pcp",
    "KernelCCA": "mixfold.estimators.kernel_cca",
    "LatentDirichletAllocation": "mixfold.estimators.latent_dirichlet_allocation",
    "PCP": "mixfold.estimators.pcp",
    "PLSI": "mixfold.estimators.plsi",
    "KernelPCA": "mixfold.estimators.kernel_pca",
    "MLiT": "mixfold.estimators.mlit",
    "MORP": "mixfold.estimators.morp",
    "MatrixFactorization": "mixfold.estimators.matrix_factorization",
    "MixtureClassifier": "mixfold.estimators.mixture_classifier",
    "KMeans": "mixfold.estimators.kmeans",
    "MixtureOfFactorAnalyzers": "mixfold.estimators.mixture_of_factor_analyzers",
    "MixtureOfFactorModels": "mixfold.estimators.mixture_of_factor_models",
    "MixtureOfPPCA": "mixfold.estimators.mixture_of_ppca",
    "MixtureSearch": "mixfold.estimators.mixture_search",
    "NestedMixture": "mixfold.estimators.nested_mixture",
    "PPCA": "mixfold.estimators.ppca",
    "RBM": "mixfold.estimators.rbm",
    "SupervisedMixtureOfPPCA": "mixfold.estimators.supervised_mixture_of_ppca",
    "SupervisedPPCA": "mixfold.estimators.supervised_ppca",
    "bootstrap_lrt": "mixfold.estimators.bootstrap",
    "load": "mixfold.store",
}

__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'mixfold' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
