"""What the parameters of MatrixFactorization mean: map, penalties, solver, start, model.

``settings`` is the estimator: only its parameters are read.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mixfold.contracts import Array, Executor, Pilot, Source
from mixfold.estimators.shell.base import DegenerateWarning, warn
from mixfold.math.beta_divergence import LOSSES, BetaDivergence
from mixfold.math.link_functions import LINKS, Link
from mixfold.math.principal import Axes, sample_axes
from mixfold.models.factors.spectral import principal_axes
from mixfold.models.networks.factorization import codebook_rules, head_rules, source_rules, starts
from mixfold.models.networks.factorization.divergence import TINY, DivergenceModel
from mixfold.models.networks.factorization.model import FactorModel, Penalties
from mixfold.models.networks.factorization.records import FactorizationParams, Layer
from mixfold.models.networks.factorization.sums import dense_rows


@dataclass(frozen=True, slots=True)
class Solver:
    """The rules of sources, codebook and classifier."""

    sources: source_rules.SourceRule
    codebook: codebook_rules.CodebookRule
    head: head_rules.HeadRule


SOLVERS: dict[str, Solver] = {
    "proximal": Solver(
        source_rules.Minimised(), codebook_rules.SolvedCodebook(), head_rules.NewtonHead()
    ),
    "gradient": Solver(
        source_rules.GradientSources(), codebook_rules.GradientCodebook(), head_rules.GradientHead()
    ),
    "multiplicative": Solver(
        source_rules.MultiplicativeSources(),
        codebook_rules.MultiplicativeCodebook(),
        head_rules.MultiplicativeHead(),
    ),
}
INITS = ("auto", "pca", "nndsvd", "random")
# the least balance, as a share of the variance of a column
_LEAST_BALANCE = 1e-6


def choose_link(settings: Any) -> Link:
    """The map, with codes from the centre on where sources may not be negative."""
    link = LINKS[settings.link]
    if settings.nonneg_sources and link.lower < link.centre:
        # (each of LINKS is a dataclass, their base is not)
        link = replace(link, lower=link.centre)  # type: ignore[type-var]
    return link


def choose_divergence(settings: Any) -> BetaDivergence | None:
    """The loss as a beta divergence; None where it is squared."""
    loss = settings.loss
    power = LOSSES[loss] if isinstance(loss, str) else float(loss)
    return None if power == 2.0 else BetaDivergence(power)


def check_divergence(settings: Any, divergence: BetaDivergence, link: Link, labelled: bool) -> None:
    """What a loss that is not squared cannot be combined with, and what to do instead."""
    given = f"loss={settings.loss!r}"
    if not (settings.nonneg_codebook and link.lower >= 0):
        raise ValueError(
            f"{given} is a loss of what is not negative: it needs nonneg_codebook=True and sources "
            "or codes that are not negative (nonneg_sources=True, or link='saturating' or "
            f"'logistic'); got nonneg_codebook={settings.nonneg_codebook}, link={settings.link!r}, "
            f"nonneg_sources={settings.nonneg_sources}; or use loss='squared'"
        )
    if labelled:
        raise ValueError(
            f"{given} learns sources without labels, but y is given; set supervised=False and fit "
            "a classifier to the sources that transform returns, or use loss='squared'"
        )
    if settings.solver == "gradient":
        raise ValueError(
            f"{given} has no solver='gradient'; use solver='proximal', or 'multiplicative' for one "
            "step over the codes in a pass"
        )
    if settings.codebook_norm is not None:
        raise ValueError(
            f"{given} takes no codebook_norm; leave it out (codebook_norm=None): alpha > 0 with "
            "beta > 0 bounds the codebook"
        )
    if settings.alpha > 0 and settings.link != "identity":
        raise ValueError(
            f"{given} with alpha > 0 needs link='identity', of which the absolute sources are the "
            f"codes; got link={settings.link!r}; or set alpha=0"
        )
    if settings.alpha > 0 and settings.beta == 0:
        raise ValueError(
            f"{given} with alpha > 0 needs beta > 0, too: sources would shrink while the codebook "
            "grows; set both, or alpha=0"
        )
    if settings.batch_size is not None and not divergence.is_convex:
        raise ValueError(
            f"{given} cannot be learned in batches: codes are found anew in each, and they have "
            "one minimum only for powers from 1 to 2; set batch_size=None, or use such a loss"
        )


def check_signs(settings: Any, link: Link, headed: bool) -> None:
    """Combinations that have no meaning, with what to do instead."""
    if settings.nonneg_codebook and link.lower < 0:
        raise ValueError(
            f"nonneg_codebook=True needs codes that are not negative, which link={settings.link!r} "
            "does not give; set link='saturating' or 'logistic', or nonneg_sources=True"
        )
    if settings.solver != "multiplicative":
        return
    if not (settings.nonneg_codebook and link.lower == 0.0 == link.centre):
        raise ValueError(
            "solver='multiplicative' keeps signs: it needs nonneg_codebook=True and sources that "
            "are not negative (link='saturating', or nonneg_sources=True); got "
            f"nonneg_codebook={settings.nonneg_codebook}, link={settings.link!r}; or use "
            "solver='proximal'"
        )
    if headed and not settings.nonneg_classifier:
        raise ValueError(
            "solver='multiplicative' keeps signs: with y it needs nonneg_classifier=True; or set "
            "supervised='after', which fits a free classifier afterwards, or solver='proximal'"
        )


def warn_if_penalty_is_void(settings: Any) -> None:
    """Where sources may grow without bound, a penalty of the codebook alone says nothing."""
    if settings.link == "identity" and settings.beta > 0 and settings.alpha == 0:
        warn(
            "beta > 0 with alpha = 0 penalises nothing when link='identity': sources grow while "
            "the codebook shrinks; set alpha > 0, or a link that saturates",
            DegenerateWarning,
        )


# ------------------------------------------------ the start


@dataclass(frozen=True, slots=True)
class Start:
    """The first layer, without classifier, the variance of all rows and what a start by as many
    axes leaves of it, per entry."""

    layer: Layer
    one_sided: bool
    total: float
    left: float


def make_start(
    settings: Any, link: Link, source: Source, executor: Executor, pilot: Pilot, seed: int
) -> Start:
    """Principal axes of all rows, their non-negative counterpart, or random directions."""
    rng = np.random.default_rng([seed % 2**63, 7])
    X, weight = dense_rows(pilot.block.X), pilot.block.weights()
    X = starts.fill_with_mean(X, weighted_mean(X, weight))
    size, D = settings.n_components, X.shape[1]
    axes = _axes(settings, source, executor, pilot, X, weight, min(size, *X.shape), rng)
    nonneg = settings.nonneg_codebook
    one_sided = nonneg or (link.lower >= link.centre)
    init = settings.init if settings.init != "auto" else ("nndsvd" if nonneg else "pca")
    if init == "nndsvd":
        directions = starts.nonneg_directions(X, weight, size, rng)
    elif init == "random" or nonneg:
        directions = starts.random_directions(D, size, nonneg, rng)
    else:
        known = starts.axes_directions(axes, size, one_sided)
        more = starts.random_directions(D, size - len(known), False, rng)
        directions = np.vstack([known, more])
    centre = axes.mean if settings.fit_bias and not nonneg else np.zeros(D)
    layer = starts.first_layer(directions, centre, X, weight, link, one_sided)
    if not settings.fit_bias:
        layer = replace(layer, bias=np.zeros(D))
    left = max(axes.total - float(axes.values.sum()), 0.0) / D
    return Start(layer, one_sided, axes.total, left)


def _axes(
    settings: Any, source: Source, executor: Executor, pilot: Pilot, X: Array, weight: Array,
    size: int, rng: np.random.Generator,
) -> Axes:  # fmt: skip
    """Of all rows where they are complete; of the filled sample else."""
    complete = bool((pilot.observed == pilot.total_rows).all())
    if not complete:
        return sample_axes(X, weight, size, None if settings.fit_bias else np.zeros(X.shape[1]))
    found = principal_axes(source, executor, size, rng=rng, center=bool(settings.fit_bias))
    return Axes(found.mean, found.values, found.vectors, found.total_variance)


def choose_sigma2(settings: Any, start: Start, headed: bool) -> float:
    """sigma2: as given; 1 without labels; else the variance that the start leaves in an entry."""
    if settings.sigma2 is not None:
        return float(settings.sigma2)
    least = _LEAST_BALANCE * start.total / max(len(start.layer.bias), 1)
    return max(start.left, least) or 1.0 if headed else 1.0


def make_penalties(settings: Any, sigma2: float) -> Penalties:
    """Weights of the terms of E, and which parts are not negative."""
    return Penalties(
        float(settings.alpha), float(settings.beta), float(settings.gamma), sigma2,
        settings.nonneg_codebook, settings.nonneg_classifier, settings.fit_bias,
    )  # fmt: skip


def choose_codebook_norm(settings: Any, start: Start) -> float:
    """The bound of rows of the codebook: without it, or beta, alpha would be void."""
    if settings.codebook_norm is not None:
        return float(settings.codebook_norm)
    if settings.alpha > 0 and settings.beta == 0:
        return float(np.linalg.norm(start.layer.codebook, axis=1).max())
    return float("inf")


def bound_codebook(settings: Any, start: Start) -> Layer:
    """The first layer, with the bound of its rows, which it keeps."""
    radius = choose_codebook_norm(settings, start)
    norms = np.linalg.norm(start.layer.codebook, axis=1, keepdims=True)
    codebook = start.layer.codebook * np.minimum(1.0, radius / np.maximum(norms, 1e-300))
    return replace(start.layer, codebook=codebook, radius=radius)


def add_classifier(layer: Layer, shares: Array, positive: bool) -> Layer:
    """With a classifier that knows the shares of the classes alone."""
    intercept = np.log(np.maximum(shares, 1e-12))
    classifier = np.zeros((layer.n_codes, len(shares)))
    if positive:  # what is zero would stay zero
        classifier += 0.1
        intercept = intercept - intercept.min() + 1.0
    return replace(layer, classifier=classifier, intercept=intercept)


def make_divergence_model(
    settings: Any, divergence: BetaDivergence, link: Link, layer: Layer, sigma2: float
) -> DivergenceModel:
    """What the engine fits where the loss is not squared."""
    return DivergenceModel(
        FactorizationParams(layer, np.ones(2)), link, divergence, float(settings.alpha),
        float(settings.beta), sigma2, settings.fit_bias, settings.solver == "multiplicative",
    )  # fmt: skip


def lift_layer(layer: Layer, pilot: Pilot, fit_bias: bool) -> Layer:
    """The start of a fit by bounds, which leave an entry at zero where it is."""
    codebook = np.maximum(layer.codebook, TINY * layer.codebook.mean() or 1.0)
    if not fit_bias:
        return replace(layer, codebook=codebook)
    mean = weighted_mean(dense_rows(pilot.block.X), pilot.block.weights())
    return replace(layer, codebook=codebook, bias=np.maximum(0.1 * mean, TINY * codebook.mean()))


def weighted_mean(X: Array, weight: Array) -> Array:
    """Of each column, of the entries that are there."""
    share = np.where(np.isnan(X), 0.0, weight[:, None])
    total = (np.where(np.isnan(X), 0.0, X) * share).sum(axis=0)
    return np.asarray(total / np.maximum(share.sum(axis=0), np.finfo(float).tiny))


def plain_loss(divergence: BetaDivergence, pilot: Pilot) -> float:
    """What the means of the columns cost in a row."""
    X, weight = dense_rows(pilot.block.X), pilot.block.weights()
    seen, mean = ~np.isnan(X), weighted_mean(X, weight)
    least = TINY * (mean.mean() or 1.0)
    V = np.where(seen, np.maximum(mean, least), 1.0)
    losses = divergence.value(np.where(seen, X, 1.0), V)
    return float(weight @ losses.sum(axis=1) / weight.sum())


def make_model(settings: Any, link: Link, layer: Layer, sigma2: float) -> FactorModel:
    """What the engine fits, from this layer."""
    solver = SOLVERS[settings.solver]
    steps = np.array([solver.codebook.first_step, solver.head.first_step])
    # signs are about zero; all else is summed about the start
    centred = settings.fit_bias and not settings.nonneg_codebook
    origin = layer.bias if centred else np.zeros_like(layer.bias)
    return FactorModel(
        FactorizationParams(layer, steps), link, make_penalties(settings, sigma2), origin,
        solver.sources, solver.codebook, solver.head,
    )  # fmt: skip


def make_classifier_model(model: FactorModel, layer: Layer) -> FactorModel:
    """The session that fits the classifier alone, to codes that no label has moved."""
    params = FactorizationParams(layer, np.ones(2))
    return FactorModel(
        params, model.link, model.penalties, model.origin, source_rules.Minimised(),
        codebook_rules.KeptCodebook(), head_rules.NewtonHead(100), guided=False, repair=False,
    )  # fmt: skip
