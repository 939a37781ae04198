"""The cost of a stack of factor layers as a function of all sources and all layers.

Layer l says S_{l-1} ~ f(S_l) A_l + b_l with noise variance s2_l; S_0 is the data. Two readings:

- ``MapEnergy``: the sources of every layer are free,
  E = sum_l |S_{l-1} - f(S_l) A_l - b_l|^2 / (2 s2_l) - ln q(class | S_L);
- ``DecoderEnergy``: only those of the top are, the others follow from them without noise,
  E = |X - decoded(S_L)|^2 / (2 s2_1) - ln q(class | S_L).

Penalties |S|, |A|, |V| are not in here: those who minimise treat them exactly.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from mixfold.contracts import Array
from mixfold.math.link_functions import Link
from mixfold.math.softmax import normalise
from mixfold.models.networks.factorization.records import Layer


@dataclass(frozen=True, slots=True)
class Pull:
    """Energies of rows, and where everything is pulled.

    ``values`` (n,); ``sources`` their gradients (n, H_l) for the sources that are free; ``codes``
    f(S_l) and ``deltas`` (n, D_l), the derivatives by what layer l generates; ``head`` (n, C) by
    the scores of the classes, None without labels.
    """

    values: Array
    sources: tuple[Array, ...]
    codes: tuple[Array, ...]
    deltas: tuple[Array, ...]
    head: Array | None

    def of_layers(self, weight: Array) -> tuple[Layer, ...]:
        """Gradient by the layers of the weighted sum over rows, in their places."""
        out = []
        for code, delta in zip(self.codes, self.deltas, strict=True):
            pulled = delta * weight[:, None]
            out.append(Layer(code.T @ pulled, pulled.sum(axis=0)))
        if self.head is not None:
            pulled = self.head * weight[:, None]
            out[-1] = replace(
                out[-1], classifier=self.codes[-1].T @ pulled, intercept=pulled.sum(axis=0)
            )
        return tuple(out)


class Energy(Protocol):
    """A reading of a stack."""

    def free(self, n_layers: int) -> tuple[int, ...]:
        """Numbers of the layers, from 0 on, whose sources are variables."""
        ...

    def pull(
        self, layers: Sequence[Layer], X: Array, labels: Array | None, sources: Sequence[Array]
    ) -> Pull:
        """Energies and gradients at the free sources; NaN in X is missing, labels < 0 unknown."""
        ...


@dataclass(frozen=True, slots=True)
class MapEnergy:
    """Sources of all layers are free."""

    link: Link
    sigma2: tuple[float, ...]

    def free(self, n_layers: int) -> tuple[int, ...]:
        return tuple(range(n_layers))

    def pull(
        self, layers: Sequence[Layer], X: Array, labels: Array | None, sources: Sequence[Array]
    ) -> Pull:
        codes = tuple(self.link.value(s) for s in sources)
        below = (X, *sources[:-1])
        deltas = tuple(
            _residual(code, layer, seen) / s2
            for code, layer, seen, s2 in zip(codes, layers, below, self.sigma2, strict=True)
        )
        values = np.zeros(len(X))
        for delta, s2 in zip(deltas, self.sigma2, strict=True):
            values += 0.5 * s2 * np.einsum("nd,nd->n", delta, delta)
        pulls = [delta @ layer.codebook.T for delta, layer in zip(deltas, layers, strict=True)]
        loss, out = _label_pull(layers[-1], codes[-1], labels)
        if out is not None:
            pulls[-1] += out @ layers[-1].head()[0].T
        slopes = [pull * self.link.slope(code) for pull, code in zip(pulls, codes, strict=True)]
        for number in range(len(slopes) - 1):  # sources are data of the layer above, too
            slopes[number] -= deltas[number + 1]
        return Pull(values + loss, tuple(slopes), codes, deltas, out)


@dataclass(frozen=True, slots=True)
class DecoderEnergy:
    """Only the sources of the top layer are free."""

    link: Link
    sigma2: tuple[float, ...]

    def free(self, n_layers: int) -> tuple[int, ...]:
        return (n_layers - 1,)

    def pull(
        self, layers: Sequence[Layer], X: Array, labels: Array | None, sources: Sequence[Array]
    ) -> Pull:
        codes, inside = _downward(self.link, layers, sources[-1])
        delta = _residual(codes[0], layers[0], X) / self.sigma2[0]
        values = 0.5 * self.sigma2[0] * np.einsum("nd,nd->n", delta, delta)
        loss, out = _label_pull(layers[-1], codes[-1], labels)
        deltas = []
        for number, layer in enumerate(layers):
            deltas.append(delta)
            delta = delta @ layer.codebook.T
            if number == len(layers) - 1 and out is not None:
                delta += out @ layer.head()[0].T
            delta *= self.link.slope(codes[number]) * inside[number]
        return Pull(values + loss, (delta,), tuple(codes), tuple(deltas), out)


def decode(link: Link, layers: Sequence[Layer], top: Array) -> Array:
    """Rows (n, D) from sources of the top layer, through all maps."""
    codes, _ = _downward(link, layers, top)
    return np.asarray(codes[0] @ layers[0].codebook + layers[0].bias)


def _downward(
    link: Link, layers: Sequence[Layer], top: Array
) -> tuple[list[Array], list[Array]]:  # fmt: skip
    """Codes of all layers, lowest first, and where the sources are inside the link's domain."""
    floor = 0.0 if link.lower >= link.centre else -np.inf  # s / (1 + s) is for s >= 0
    source, codes, inside = top, [], []
    for layer in (*layers[::-1],):
        inside.append(source >= floor)
        codes.append(link.value(np.maximum(source, floor)))
        source = codes[-1] @ layer.codebook + layer.bias
    return codes[::-1], inside[::-1]


def _residual(code: Array, layer: Layer, seen: Array) -> Array:
    """What is generated less what is seen, zero where nothing is."""
    rest = code @ layer.codebook
    rest += layer.bias
    rest -= seen
    return np.asarray(np.nan_to_num(rest, copy=False, nan=0.0, posinf=np.inf, neginf=-np.inf))


def _label_pull(layer: Layer, codes: Array, labels: Array | None) -> tuple[Array, Array | None]:
    """-ln q of the known classes (n,), and its derivative by the scores (n, C)."""
    if layer.classifier is None or labels is None:
        return np.zeros(len(codes)), None
    weights, intercept = layer.head()
    scores = codes @ weights + intercept
    total, out = normalise(scores)
    known, rows = labels >= 0, np.arange(len(codes))
    own = np.maximum(labels, 0)
    out[rows, own] -= 1
    out[~known] = 0
    return np.where(known, total - scores[rows, own], 0.0), out
