"""Products of stacks of latents and outputs, and sums over the rows that show an output."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from mixfold.contracts import Array
from mixfold.families.factor.records import Latents
from mixfold.models.outputs.outputs import Replicate


@dataclass(frozen=True, slots=True)
class Observed:
    """Which entries are seen (n, L), and whether a row shows all of them or none."""

    seen: Array
    whole: bool


def find_observed(y: Array) -> Observed:
    """What of the outputs is known."""
    seen = ~np.isnan(y)
    labelled = np.asarray(seen.any(axis=1))
    return Observed(seen, bool((seen == labelled[:, None]).all()))


def times(matrices: Array, vectors: Array) -> Array:
    """(1 or n, K, d, d) times (n, K, d)."""
    if len(matrices) == 1:
        return np.swapaxes(np.swapaxes(vectors, 0, 1) @ np.swapaxes(matrices[0], 1, 2), 0, 1)
    return np.asarray((matrices @ vectors[..., None])[..., 0])


def forward(outputs: Array, loadings: Array) -> Array:
    """(n, K, L) times (K, L, d)."""
    return np.swapaxes(np.swapaxes(outputs, 0, 1) @ loadings, 0, 1)


def back(latents: Array, loadings: Array) -> Array:
    """(n, K, d) times (K, L, d) transposed."""
    return forward(latents, np.swapaxes(loadings, 1, 2))


def weighted_gram(certain: Array, loadings: Array) -> Array:
    """V' diag(certain) V (1 or n, K, d, d) for precisions (1 or n, K, L), loadings V (K, L, d)."""
    if len(certain) == 1:
        return (np.swapaxes(loadings * certain[0, ..., None], 1, 2) @ loadings)[None]
    K, L, d = loadings.shape
    products = (loadings[..., :, None] * loadings[..., None, :]).reshape(K, L, d * d)
    return forward(certain, products).reshape(-1, K, d, d)


def output_latents(replicate: Replicate, resp: Array) -> tuple[Latents, Array]:
    """Per component and output, or (K, 1, ...) where one stands for all; and the part of the
    second moments that is uncertainty."""
    z, work = replicate.latent.means, replicate.work
    seen = np.ones((len(z), 1)) if work.whole else work.seen.astype(float)
    weighted = np.swapaxes(resp[..., None] * z, 0, 1)
    count = resp.T @ seen
    if len(replicate.latent.covariances) == 1:
        spread = count[..., None, None] * replicate.latent.covariances[0][:, None]
    else:
        spread = _per_output(seen, resp, replicate.latent.covariances)
    if work.whole:
        square = (np.swapaxes(weighted, 1, 2) @ np.swapaxes(z, 0, 1))[:, None]
    else:
        square = _per_output(seen, resp, z[..., :, None] * z[..., None, :])
    return Latents(count, seen.T @ weighted, spread + square), spread


def _per_output(seen: Array, resp: Array, matrices: Array) -> Array:
    """Sums (K, L, d, d) of matrices (n, K, d, d) over the rows that show each output."""
    n, K, d, _ = matrices.shape
    weighted = (resp[..., None, None] * matrices).reshape(n, -1)
    return np.swapaxes((seen.T @ weighted).reshape(-1, K, d, d), 0, 1)


def patterns(seen: Array) -> Iterator[tuple[Array, Array]]:
    """Which outputs are seen together, and in which rows."""
    packed = np.packbits(seen, axis=1)
    _, first, which = np.unique(packed, axis=0, return_index=True, return_inverse=True)
    order = np.argsort(which.ravel(), kind="stable")
    ends = np.cumsum(np.bincount(which.ravel(), minlength=len(first)))
    for start, end, example in zip(np.append(0, ends[:-1]), ends, first, strict=True):
        yield seen[example], order[start:end]
