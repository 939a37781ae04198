"""How a mixture on one plane starts: principal axes, groups among the scores, and the prior."""

from __future__ import annotations

import numpy as np

from mixfold.contracts import Array, Executor, Source
from mixfold.families.bayes.records import NormalPrior
from mixfold.families.factor import FactorParams
from mixfold.families.projection import Plane
from mixfold.math.frame import Frame
from mixfold.models.factors.spectral import principal_axes
from mixfold.models.factors.spectral_table import look
from mixfold.models.mixtures.starts import FewerClusters as FewerClusters

# starts with rows for all clusters; ways in which ``KMeansStart`` looks at the scores, in turn
_FULL, _VIEWS = 12, 3
# numbers of clusters that are tried where theirs is learned
_SIZES = 12


def find_plane(
    source: Source, executor: Executor, size: int, floor: float, rng: np.random.Generator
) -> Plane:
    """The plane of the principal axes of all rows, which must be complete."""
    spectrum = principal_axes(source, executor, size, rng=rng)
    table = look(source, executor, True, None)
    origin = table.origin if table.thin else spectrum.mean  # zero keeps sparse rows sparse
    return _plane(spectrum.mean, spectrum.vectors, spectrum.values, spectrum.total_variance,
                  origin, floor)  # fmt: skip


def plane_of_factors(params: FactorParams, floor: float) -> Plane:
    """The plane of a fitted probabilistic PCA: the way for rows with missing entries."""
    mean = params.frame.leave(params.means[0])
    left, lengths, _ = np.linalg.svd(params.loadings[0], full_matrices=False)
    noise, scale = float(params.noise[0, 0]), float(params.frame.scale[0])
    total = (lengths**2).sum() + noise * len(mean)
    values = (lengths**2 + noise) * scale**2
    return _plane(mean, left, values, float(total) * scale**2, mean, floor)


def _plane(
    mean: Array, axes: Array, values: Array, total: float, origin: Array, floor: float
) -> Plane:
    """The plane of probabilistic PCA, about ``origin``, from the variances along its axes and the
    total one; ``floor`` is the least noise, relative to the mean variance of a column."""
    size, kept = axes.shape
    scale = np.sqrt((total if total > 0 else float(size)) / size)
    # with as many axes as columns the noise can be anything below the least variance
    rest = (total - values.sum()) / (size - kept) if size > kept else 0.1 * float(values.min())
    noise = float(max(rest / scale**2, floor))
    frame = Frame(origin, np.full(size, scale))
    variance = float(np.maximum(values / scale**2 - noise, noise).mean())
    return Plane(frame, axes, frame.enter(mean), noise, variance)


# ------------------------------------------------ groups among the scores


def start_sizes(n_clusters: int, learned: bool) -> tuple[int, ...]:
    """How many clusters get rows in each start; each number is seen in each way."""
    if not learned:
        return (n_clusters,) * _FULL
    sizes = np.unique(np.geomspace(1, n_clusters, _SIZES).round()).astype(int).tolist()
    fewer = [size for size in sizes[-2::-1] for _ in range(_VIEWS)]
    return (*(n_clusters,) * _FULL, *fewer)


# ------------------------------------------------ the prior of a cluster


def cluster_prior(
    plane: Plane,
    n_clusters: int,
    precision: float = 0.1,
    degrees: float | None = None,
    scatter: float | None = None,
) -> NormalPrior:
    """The normal-Wishart prior of a cluster of latents.

    Parameters
    ----------
    plane : Plane
    n_clusters : int
    precision : float
        How many rows the prior of a mean is worth.
    degrees : float, optional
        Of the Wishart prior; by default d + 2.
    scatter : float, optional
        W^-1 = scatter I of the Wishart prior, in data units; by default the variance of the
        latents along an axis times K^(-2 / d), as if the clusters shared the space out. It is a
        multiple of I, for the axes are free to turn.
    """
    size = plane.axes.shape[1]
    degrees = size + 2.0 if degrees is None else float(degrees)
    if not degrees > size - 1:
        raise ValueError(
            f"degrees_of_freedom_prior must exceed n_components - 1 = {size - 1}, got "
            f"{degrees:g}; leave it out to take {size + 2}"
        )
    if scatter is None:
        spread = plane.variance * n_clusters ** (-2.0 / size)
    else:
        spread = float(scatter) / float(plane.frame.scale[0]) ** 2
    return NormalPrior(
        np.zeros(size), np.asarray(float(precision)), np.asarray(degrees), spread * np.eye(size)
    )
