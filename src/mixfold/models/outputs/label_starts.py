"""How mixtures of factor models with labels start.

Clusters of the rows as they are tend to be the classes, and a shared classifier wants every
component to hold all of them: so rows are clustered about the means of their classes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from mixfold.contracts import Array, Pilot
from mixfold.families.component import dense_rows
from mixfold.families.factor import FactorParams
from mixfold.math.frame import Frame
from mixfold.math.low_rank import low_rank
from mixfold.math.seeding import distinct
from mixfold.models.factors.factor_starts import KMeansFactorStart
from mixfold.models.mixtures.rows import informative
from mixfold.models.mixtures.starts import Sample
from mixfold.models.outputs.labelled import LabelledModel
from mixfold.models.outputs.model import SupervisedParams
from mixfold.models.outputs.outputs import Latent
from mixfold.models.outputs.probit_labels import ProbitLabels, ProbitParams

# steps of a local classifier, and its ridge per row
_STEPS, _RIDGE = 15, 1e-3
# of all rows: what each component of a start has at least
_LEAST_SHARE = 1e-3


class LabelStart(Protocol):
    """A start, and how many of them are worth comparing on a sample."""

    @property
    def n_candidates(self) -> int: ...

    def __call__(
        self, model: LabelledModel, pilot: Pilot, rng: np.random.Generator, attempt: int
    ) -> SupervisedParams: ...


@dataclass(frozen=True, slots=True)
class Table:
    """Distinct rows of a sample in a frame, without holes; ``missing`` says what was filled."""

    frame: Frame
    U: Array
    missing: Array
    weight: Array
    y: Array


def sample_table(model: LabelledModel, pilot: Pilot) -> Table:
    """The sample of a fit; missing entries are at the mean of their column."""
    block = informative(pilot.block)
    y = np.full(block.n_rows, -1) if block.y is None else block.y
    X, weight, labels = distinct(dense_rows(block.X), block.weights(), y)
    assert labels is not None
    frame = model.family.frame(X, weight, pilot.maximum - pilot.minimum)
    U = np.asarray(frame.enter(X), dtype=float)
    missing = np.isnan(U)
    centre = np.nansum(weight[:, None] * U, axis=0) / np.maximum(weight @ ~missing, 1e-300)
    return Table(frame, np.where(missing, centre, U), missing, weight, labels.astype(np.int64))


@dataclass(frozen=True, slots=True)
class ClusterStart:
    """k-means, PPCA in each cluster, and a classifier that the clusters agree on.

    ``balanced``: rows are clustered about the means of their classes.
    """

    balanced: bool = True
    n_candidates: int = 4

    def __call__(
        self, model: LabelledModel, pilot: Pilot, rng: np.random.Generator, attempt: int
    ) -> SupervisedParams:
        table = sample_table(model, pilot)
        points = about_classes(table) if self.balanced else table.U
        sample = Sample(points, table.weight, None)
        K = model.n_components
        resp = KMeansFactorStart()(sample, K, rng, attempt) * table.weight[:, None]
        components = model.family.from_sample(table.frame, _fill_by_cluster(table, resp), resp)
        counts = resp.sum(axis=0)
        weights = model.mixing.posterior(counts + _LEAST_SHARE * counts.sum() / K)
        components, straight = start_classifier(model, components, table, resp)
        return SupervisedParams(weights, components, model.labels.from_straight(straight))


@dataclass(frozen=True, slots=True)
class ThesisStart:
    """Random loadings, random rows as means, noise as large as the data, a classifier of length 1.

    The start of Tabaghi (2016); the columns alone must find their way.
    """

    n_candidates: int = 1

    def __call__(
        self, model: LabelledModel, pilot: Pilot, rng: np.random.Generator, attempt: int
    ) -> SupervisedParams:
        table = sample_table(model, pilot)
        K, d, D = model.n_components, model.family.size, table.U.shape[1]
        share = table.weight / table.weight.sum()
        rows = rng.choice(len(table.U), K, replace=len(table.U) < K, p=share)
        spread = share @ (table.U - share @ table.U) ** 2
        noise = model.family.noise.spread(
            model.family.noise.gather(np.tile(spread, (K, 1)))
            / model.family.noise.gather(np.ones((K, D))),
            (K, D),
        )
        loadings = rng.normal(size=(K, D, d)) * np.sqrt(spread.mean() / max(d, 1))
        noise = np.maximum(noise, max(model.family.floor, 1e-3 * float(spread.mean())))
        components = FactorParams(table.frame, table.U[rows], loadings, noise)
        lead = (K if model.labels.own else 1, model.labels.n_scores)
        outputs = ProbitParams(np.full((*lead, d), 1.0 / np.sqrt(max(d, 1))), np.zeros(lead))
        if model.labels.n_scores > 1:  # one direction would tell no two classes apart
            outputs = replace(outputs, weights=rng.normal(size=(*lead, d)) / np.sqrt(max(d, 1)))
        outputs = model.labels.from_straight(outputs)
        return SupervisedParams(np.full(K, 1.0 / K), components, outputs)


LABEL_STARTS: dict[str, LabelStart] = {
    "balanced": ClusterStart(),
    "kmeans": ClusterStart(balanced=False),
    "thesis": ThesisStart(),
}


def about_classes(table: Table) -> Array:
    """Rows less the mean of their class; those of no known class less the mean of all rows."""
    out = np.empty_like(table.U)
    everybody = table.weight @ table.U / table.weight.sum()
    for label in np.unique(table.y):
        mine = table.y == label
        weight = table.weight[mine]
        centre = everybody if label < 0 else weight @ table.U[mine] / weight.sum()
        out[mine] = table.U[mine] - centre
    return np.where(table.missing, 0.0, out)


def _fill_by_cluster(table: Table, resp: Array) -> Array:
    """Missing entries at the mean of their own cluster rather than of all rows."""
    if not table.missing.any():
        return table.U
    seen = np.where(table.missing, 0.0, table.U)
    count = resp.T @ ~table.missing
    centres = np.where(count > 0, (resp.T @ seen) / np.maximum(count, 1e-300), 0.0)
    filled = resp @ centres / table.weight[:, None]
    return np.where(table.missing, filled, table.U)


# ------------------------------------------------ the classifier


def start_classifier(
    model: LabelledModel, components: FactorParams, table: Table, resp: Array
) -> tuple[FactorParams, ProbitParams]:
    """Components turned so that they agree on a classifier, and the classifier."""
    parts = low_rank(components.loadings, components.noise)
    known = table.y >= 0
    U, y, own = _fill_by_cluster(table, resp)[known], table.y[known], resp[known]
    latents = [
        (U - mean) @ (W / noise[:, None]) @ R
        for mean, W, noise, R in zip(
            components.means, components.loadings, components.noise, parts.covariances, strict=True
        )
    ]
    found = [
        local_probit(model.labels, Latent(z[:, None], R[None, None]), y, weight)
        for z, R, weight in zip(latents, parts.covariances, own.T, strict=True)
    ]
    if model.labels.own:
        return components, _stack_classifiers(model, found)
    means = [
        _class_means(z, y, weight, model.labels.n_classes)
        for z, weight in zip(latents, own.T, strict=True)
    ]
    turns = aligning(found, means, model.labels.n_scores)
    loadings = np.stack([W @ Q for W, Q in zip(components.loadings, turns, strict=True)])
    return replace(components, loadings=loadings), _average_classifiers(model, found, turns)


def local_probit(
    labels: ProbitLabels, latent: Latent, y: Array, weight: Array
) -> ProbitParams | None:
    """A classifier of the latents of one component, or None where there is but one class."""
    mine = weight > 0
    if len(np.unique(y[mine])) < 2:
        return None
    y, latent = y[mine], Latent(latent.means[mine], latent.covariances)
    alone = ProbitLabels(labels.n_classes, ridge=_RIDGE * float(weight.sum()))
    size = (1, labels.n_scores, latent.means.shape[-1])
    params = ProbitParams(np.zeros(size), np.zeros(size[:2]))
    for _ in range(_STEPS):
        replicates = alone.replicates(y, latent, params)
        resp = [(replicate.share * weight[mine])[:, None] for replicate in replicates]
        params = alone.update(alone.sums(y, replicates, resp, params), params)
    return params


def _class_means(z: Array, y: Array, weight: Array, n_classes: int) -> Array:
    """Of the latents of one component, (C, d); NaN for a class that it does not hold."""
    out = np.full((n_classes, z.shape[1]), np.nan)
    for c in np.unique(y[weight > 0]):
        mine = y == c
        out[c] = weight[mine] @ z[mine] / weight[mine].sum()
    return out


def aligning(found: list[ProbitParams | None], means: list[Array], n_scores: int) -> list[Array]:
    """A turn (d, d) of the latents of each component.

    Two classes: the weights of all point along the first axis (a Householder reflection). More:
    the means of the classes fall on those of the component that tells most (Procrustes).
    """
    d = means[0].shape[1]
    if d == 0 or all(one is None for one in found):
        return [np.eye(d)] * len(found)
    if n_scores == 1:
        return [np.eye(d) if one is None else reflection(one.weights[0, 0]) for one in found]
    told = [(np.isfinite(m[:, 0]).sum(), np.nansum(m**2)) for m in means]
    reference = means[max(range(len(means)), key=lambda k: told[k])]
    return [_procrustes(m, reference) for m in means]


def reflection(w: Array) -> Array:
    """The reflection that takes the first axis to the direction of w."""
    length = float(np.linalg.norm(w))
    if length == 0:
        return np.eye(len(w))
    normal = np.eye(len(w))[0] - w / length
    squared = float(normal @ normal)
    if squared < 1e-30:
        return np.eye(len(w))
    return np.asarray(np.eye(len(w)) - 2.0 / squared * np.outer(normal, normal))


def _procrustes(means: Array, reference: Array) -> Array:
    """The turn Q that brings means Q nearest to the reference, by the classes that both hold."""
    both = np.isfinite(means[:, 0]) & np.isfinite(reference[:, 0])
    left, _, right = np.linalg.svd(means[both].T @ reference[both])
    return np.asarray(left @ right)


def _stack_classifiers(model: LabelledModel, found: list[ProbitParams | None]) -> ProbitParams:
    """Classifiers of the components' own; one that saw a single class knows nothing yet."""
    shape = (1, model.labels.n_scores, model.family.size)
    nothing = ProbitParams(np.zeros(shape), np.zeros(shape[:2]))
    each = [nothing if one is None else one for one in found]
    return ProbitParams(
        np.concatenate([one.weights for one in each]), np.concatenate([one.biases for one in each])
    )


def _average_classifiers(
    model: LabelledModel, found: list[ProbitParams | None], turns: list[Array]
) -> ProbitParams:
    shape = (1, model.labels.n_scores, model.family.size)
    told = [(one, Q) for one, Q in zip(found, turns, strict=True) if one is not None]
    if not told:
        return ProbitParams(np.zeros(shape), np.zeros(shape[:2]))
    weights = np.mean([one.weights @ Q for one, Q in told], axis=0)
    return ProbitParams(weights, np.mean([one.biases for one, _ in told], axis=0))
