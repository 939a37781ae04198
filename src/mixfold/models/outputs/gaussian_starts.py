"""How factor models with Gaussian outputs start: from the columns alone.

Outputs start without loadings, so that the first step regresses them on the latents of the
columns.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mixfold.contracts import Array, Executor, Pilot, Source
from mixfold.families.factor import FactorParams
from mixfold.families.factor.start import loadings_and_noise
from mixfold.math.frame import Frame
from mixfold.math.principal import Axes
from mixfold.models.factors.factor_starts import FactorStart
from mixfold.models.factors.spectral import principal_axes
from mixfold.models.mixtures.mixture import Mixture
from mixfold.models.mixtures.starts import KMeansStart
from mixfold.models.outputs.gaussian_outputs import GaussianOutputParams
from mixfold.models.outputs.model import SupervisedParams

# of the noise: what a loading must explain at least to be seen
_LEAST_SIGNAL = 1e-2


@dataclass(frozen=True, slots=True)
class GaussianStart:
    """A start.

    ``means`` and ``variances`` (L,) of the outputs; ``noise`` of the columns in their units, if it
    is given; ``first`` parameters of one component, if they are known; ``axes`` of all rows if they
    were found (for one component); else ``rule`` shares the sample among the components.
    """

    means: Array
    variances: Array
    noise: float | None = None
    axes: Axes | None = None
    rule: FactorStart | None = None
    first: SupervisedParams | None = None

    def __call__(
        self, model: Any, pilot: Pilot, rng: np.random.Generator, attempt: int
    ) -> SupervisedParams:
        if self.first is not None:
            return self.first if not attempt else self._draw(model, self.first.components, rng)
        weights = np.ones(model.n_components) / model.n_components
        if self.axes is not None:
            components = from_axes(self.axes, model.family.size, model.family.floor, self.noise)
        else:
            plain = Mixture(model.n_components, model.family, start=self.rule or KMeansStart())
            rows = replace(pilot, block=replace(pilot.block, y=None))
            found = plain.initialise(rows, rng, attempt)
            weights, components = found.weights, _set_noise(found.components, self.noise)
        if attempt and model.n_components == 1:  # the first start is the only one that is no draw
            return self._draw(model, components, rng)
        return SupervisedParams(weights, components, self._outputs(model))

    def _draw(
        self, model: Any, components: FactorParams, rng: np.random.Generator
    ) -> SupervisedParams:
        return SupervisedParams(np.ones(1), _draw_loadings(components, rng), self._outputs(model))

    def _outputs(self, model: Any) -> GaussianOutputParams:
        shape = (model.n_components, len(self.means))
        noise = np.broadcast_to(self._output_noise(model), shape).copy()
        means = np.broadcast_to(self.means, shape).copy()
        return GaussianOutputParams(np.zeros((*shape, model.family.size)), means, noise)

    def _output_noise(self, model: Any) -> Array:
        outputs = model.outputs
        if outputs.fixed_noise is not None:
            return np.array(outputs.fixed_noise)
        noise = self.variances if outputs.each else self.variances.mean(keepdims=True)
        return np.asarray(np.maximum(noise, outputs.floor))


def all_rows_axes(
    source: Source, executor: Executor, size: int, rng: np.random.Generator
) -> tuple[Axes, int]:
    """The principal axes of complete columns, and the passes that they took."""
    spectrum = principal_axes(source, executor, size, rng=rng)
    axes = Axes(spectrum.mean, spectrum.values, spectrum.vectors, spectrum.total_variance)
    return axes, spectrum.passes


def from_axes(axes: Axes, size: int, floor: float, noise: float | None = None) -> FactorParams:
    """One component at the maximum that probabilistic PCA has, or near it where that has no use
    for an axis: a loading of zero would stay zero."""
    D = len(axes.mean)
    scale = float(np.sqrt(axes.total / D)) if axes.total > 0 else 1.0
    loadings, own = loadings_and_noise(axes, size, size)
    if noise is not None:
        signal = np.maximum(axes.values - noise, _LEAST_SIGNAL * noise)
        loadings, own = axes.vectors * np.sqrt(signal), noise
    else:
        own = max(own, floor * scale**2)
    frame = Frame(axes.mean, np.full(D, scale))
    return FactorParams(
        frame, np.zeros((1, D)), loadings[None] / scale, np.full((1, D), own / scale**2)
    )


def from_coordinates(
    axes: Axes, loadings: Array, mean: Array, noise: float, outputs: GaussianOutputParams
) -> SupervisedParams:
    """One component whose ``loadings`` (r, d) and ``mean`` (r,) are on r principal axes."""
    D = len(axes.mean)
    scale = float(np.sqrt(axes.total / D))
    frame = Frame(axes.mean, np.full(D, scale))
    components = FactorParams(
        frame, (axes.vectors @ mean)[None] / scale, (axes.vectors @ loadings)[None] / scale,
        np.full((1, D), noise / scale**2),
    )  # fmt: skip
    return SupervisedParams(np.ones(1), components, outputs)


def _set_noise(components: FactorParams, noise: float | None) -> FactorParams:
    if noise is None:
        return components
    given = np.broadcast_to(noise / components.frame.scale**2, components.noise.shape)
    return replace(components, noise=given.copy())


def _draw_loadings(components: FactorParams, rng: np.random.Generator) -> FactorParams:
    """Loadings in random directions, of the lengths that they had together."""
    old = components.loadings
    fresh = rng.normal(size=old.shape)
    return replace(components, loadings=fresh * np.sqrt((old**2).sum() / (fresh**2).sum()))
