"""Every model offers what the shells ask of it, with the parameters that the protocols name."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest

from mixfold.families import DiagonalGaussian
from mixfold.families.exponential import Bernoulli
from mixfold.families.factor import FactorFamily
from mixfold.models.mixtures.bayes_mixture import BayesMixture
from mixfold.models.mixtures.kmeans import KMeansModel
from mixfold.models.mixtures.mixture import Mixture
from mixfold.models.outputs.gaussian_outputs import GaussianOutputs
from mixfold.models.outputs.label_starts import LABEL_STARTS
from mixfold.models.outputs.labelled import LabelledModel
from mixfold.models.outputs.model import GaussianModel
from mixfold.models.outputs.overweighted_labels import OverweightedLabelModel
from mixfold.models.outputs.probit_labels import ProbitLabels
from mixfold.models.protocols import (
    CompletingModel,
    ContinuableModel,
    DensityModel,
    PrescribedModel,
    SamplingModel,
    StreamedModel,
)

FACTORS = FactorFamily(factors=(1,), expand=False)
LABELS = (2, FACTORS, ProbitLabels(), LABEL_STARTS["balanced"])
ALL = (
    DensityModel, ContinuableModel, StreamedModel, SamplingModel, CompletingModel, PrescribedModel,
)  # fmt: skip
# of a supervised model the estimators draw and complete rows by the mixture of its columns
SUPERVISED = (DensityModel, ContinuableModel, StreamedModel)
MODELS: dict[str, tuple[Any, tuple[type, ...]]] = {
    "Mixture": (Mixture(2, DiagonalGaussian()), ALL),
    "Mixture of factor models": (Mixture(2, FACTORS), ALL),
    "BayesMixture": (BayesMixture(2, Bernoulli()), ALL),
    "GaussianModel": (GaussianModel(2, FACTORS, GaussianOutputs(), None), SUPERVISED),
    "LabelledModel": (LabelledModel(*LABELS), SUPERVISED),
    "OverweightedLabelModel": (OverweightedLabelModel(*LABELS), SUPERVISED),
    "KMeansModel": (KMeansModel(2), (StreamedModel,)),
}


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("protocol", ALL, ids=lambda p: p.__name__)
def test_models_offer_what_they_should(name: str, protocol: type) -> None:
    model, offered = MODELS[name]
    assert isinstance(model, protocol) == (protocol in offered)
    if protocol not in offered:
        return
    named = {member for cls in protocol.__mro__ for member in vars(cls) if member[0] != "_"}
    assert named
    for member in named:
        wanted = inspect.getattr_static(protocol, member)
        if isinstance(wanted, property):
            continue
        names = [*inspect.signature(wanted).parameters][1:]
        got = inspect.signature(getattr(model, member)).parameters
        assert [*got][: len(names)] == names, member
        kinds = [inspect.signature(wanted).parameters[n].kind for n in names]
        assert [got[n].kind for n in names] == kinds, member


def test_a_model_that_lacks_an_ability_is_told_apart() -> None:
    class Bare:
        def log_joint(self, reading: Any, block: Any) -> Any:
            return np.zeros((1, 1))

    assert not any(isinstance(Bare(), protocol) for protocol in ALL)
