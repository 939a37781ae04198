"""What is asked of a mixture with priors, block by block, and how its results are published."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from mixfold.contracts import Array, Block
from mixfold.estimators.mixtures import answers
from mixfold.families.component import ComponentFamily
from mixfold.models.mixtures.bayes_mixture import BayesMixture, BayesParams
from mixfold.models.mixtures.inference import INFERENCES
from mixfold.models.mixtures.mixture import Mixture, MixtureReading
from mixfold.models.mixtures.rows import without_empty_rows


def typed(value: Any, dtype: str) -> Any:
    """Published arrays, and lists and dicts of them, in the type of the data."""
    if isinstance(value, dict):
        return {name: typed(part, dtype) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [typed(part, dtype) for part in value]
    return np.asarray(value).astype(dtype)


def checked(family: ComponentFamily, names: Array | None, block: Block) -> None:
    family.check(block, names)


def after(check: Callable[[Block], None], task: Callable[[Block], Any], block: Block) -> Any:
    """The answer to rows that are possible; those without weight may be anything."""
    check(block)
    if block.weight is None or (block.weight > 0).all():
        return task(block)
    keep = np.flatnonzero(block.weight > 0)
    return task(replace(block, X=block.X[keep], weight=block.weight[keep]))


def predictive(model: BayesMixture, posteriors: tuple[BayesParams, ...], block: Block) -> Array:
    """Log density of the rows of a block, averaged over posteriors."""
    logs = [
        np.logaddexp.reduce(_for(model, params).log_predictive(params, block), axis=1)
        for params in posteriors
    ]
    return answers.shaped(np.logaddexp.reduce(logs, axis=0) - np.log(len(logs)), block)


def scored(model: BayesMixture, posteriors: tuple[BayesParams, ...], block: Block) -> Array:
    """Log density of the rows of a block, summed by weight, and their weight."""
    block = without_empty_rows(block)
    weight = block.weights()
    if not weight.any():
        return np.zeros(2)
    return np.array([weight @ predictive(model, posteriors, block), weight.sum()])


def _for(model: BayesMixture, params: BayesParams) -> BayesMixture:
    """The model with as many components as the parameters."""
    if params.n_components == model.n_components:
        return model
    return replace(model, n_components=params.n_components, learn_prior=False)


def point_reading(model: BayesMixture, params: BayesParams) -> tuple[Mixture, MixtureReading]:
    """The plug-in density: weights and parameters at their point."""
    point = replace(_for(model, params), inference=INFERENCES["em"])
    return point, point.prepare(params)
