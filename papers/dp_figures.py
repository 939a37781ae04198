"""Yu (2006), figures 3.2 to 3.6: draws of Dirichlet processes, and how components are lost."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from scipy.stats import norm

from mixfold.contracts import Array
from papers.frame.experiment import Experiment, Progress, derive_seed, map_on_cores
from papers.frame.table import Cell, Check, Column, Table
from papers.shared import variational_mixtures
from papers.shared.variational_mixtures import IN_USE, PRINTED, VBDMA

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# figure 3.2: so many draws from the process with these concentrations
DRAWS, CONCENTRATIONS = 10_000, (10.0, 10_000.0)
# figures 3.3 to 3.5: weights, alpha and components of each panel
PANELS = (
    (VBDMA, 1.0, 5), (VBDMA, 1.0, 20), (VBDMA, 1.0, 250),
    (VBDMA, 10.0, 250), (VBDMA, 100.0, 250), (VBDMA, 1000.0, 250),
    (PRINTED, 1.0, 20), (PRINTED, 1.0, 250), (PRINTED, 100.0, 250), (PRINTED, 1000.0, 250),
)  # fmt: skip
PRECISION = 0.01
COLUMN = Column(
    "value", "distinct values of the draws, or components in use at the end", form=".1f"
)
NOTES = (
    "The figures have no numbers of their own; table 3.1 has the ends of such climbs (dp-table).",
    "Values are drawn by the urn (a new one with probability alpha / (alpha + i)) and by sticks "
    "broken until what is left is below 1e-12; both have the same law, of which the mean number of "
    "distinct values is the sum of alpha / (alpha + i).",
)


@dataclass(frozen=True, slots=True)
class Size:
    """How much of it is run: draws of a process, and of the panels the first so many rows."""

    processes: int
    panels: tuple[int, ...]


FULL = Size(20, tuple(range(len(PANELS))))
QUICK = Size(4, (0, 1, 2, 4, 7, 8))


@dataclass(frozen=True, slots=True)
class Climb:
    """The bound and the components in use after so many steps."""

    steps: Array
    bounds: Array
    used: Array


def run(data_folder: Path, quick: bool, seed: int, progress: Progress) -> Table:
    """Draws of both processes by two rules, and a climb for every panel."""
    size = QUICK if quick else FULL
    places = [PANELS[i] for i in size.panels]
    total = 1 + len(places)
    progress(0, total, "draws of the processes")
    rng = np.random.default_rng([seed, 32])
    draws = {
        (rule, alpha): [DRAW[rule](alpha, DRAWS, rng) for _ in range(size.processes)]
        for rule in DRAW
        for alpha in CONCENTRATIONS
    }
    X = variational_mixtures.draw_toy(np.random.default_rng([seed, 31, 0]))
    tasks = [(X, rule, a, K, derive_seed(seed, round(a), K)) for rule, a, K in places]
    climbs = {}
    for step, (place, found) in enumerate(zip(places, map_on_cores(climb, tasks), strict=True)):
        climbs[place] = found
        progress(step + 2, total, describe(*place))
    cells = [
        Cell(f"{rule}, alpha = {a:g}", COLUMN.name, tuple(float(len(np.unique(v))) for v in mine))
        for (rule, a), mine in draws.items()
    ]
    cells += [
        Cell(describe(*p), COLUMN.name, (float(found.used[-1]),)) for p, found in climbs.items()
    ]
    checks = (*check_draws(cells[: len(draws)]), *check_climbs(climbs))
    settings = (("draws of each process", str(size.processes)), ("climbs", str(len(places))))
    first = {alpha: mine[0] for (rule, alpha), mine in draws.items() if rule == "sticks"}
    return Table((COLUMN,), tuple(cells), checks, settings, NOTES, partial(draw, first, climbs))


def describe(rule: str, alpha: float, K: int) -> str:
    """The name of a panel."""
    return f"{rule}, alpha = {alpha:g}, K = {K}"


# ------------------------------------------------ draws of a process


def draw_by_urn(alpha: float, n: int, rng: np.random.Generator) -> Array:
    """Values of DP(alpha, N(0, 1)), each a new one or one of those before it."""
    new = rng.random(n) < alpha / (alpha + np.arange(n))
    source = np.where(new, np.arange(n), (rng.random(n) * np.arange(n)).astype(int))
    for i in range(n):  # earlier ones are settled already
        source[i] = source[source[i]]
    return np.asarray(rng.standard_normal(n)[source])


def draw_by_sticks(alpha: float, n: int, rng: np.random.Generator) -> Array:
    """Values of DP(alpha, N(0, 1)) from weights that are broken off a stick."""
    weights: list[Array] = []
    left = 1.0
    while left > 1e-12:
        broken = rng.beta(1, alpha, 1000)
        remains = left * np.cumprod(1 - broken)
        weights.append(np.concatenate([[left], remains[:-1]]) * broken)
        left = float(remains[-1])
    shares = np.concatenate(weights)
    ends = np.cumsum(shares)
    chosen = np.searchsorted(ends, rng.random(n) * ends[-1])
    return np.asarray(rng.standard_normal(len(shares))[chosen])


DRAW: dict[str, Callable[[float, int, np.random.Generator], Array]] = {
    "urn": draw_by_urn,
    "sticks": draw_by_sticks,
}


def compute_distinct(alpha: float, n: int) -> tuple[float, float]:
    """Mean and standard deviation of the number of distinct values of n draws."""
    new = alpha / (alpha + np.arange(n))
    return float(new.sum()), float(np.sqrt((new * (1 - new)).sum()))


def check_draws(cells: Sequence[Cell]) -> list[Check]:
    """Whether means over draws are within three standard errors of the law."""
    checks = []
    for cell in cells:
        alpha = float(cell.row.rpartition("= ")[2])
        mean, spread = compute_distinct(alpha, DRAWS)
        away = (cell.ours - mean) / (spread / np.sqrt(len(cell.values)))
        claim = f"{cell.row}: as many distinct values of {DRAWS} as the law has, {mean:.1f}"
        detail = f"{cell.ours:.1f}, {away:+.1f} standard errors"
        checks.append(Check(claim, abs(away) <= 3, detail))
    return checks


# ------------------------------------------------ climbs


def climb(X: Array, rule: str, alpha: float, K: int, seed: int) -> Climb:
    """The bound and the components in use by iteration."""
    if rule == PRINTED:
        prior = variational_mixtures.make_prior(X, rule, alpha, PRECISION, 2.0)
        steps: list[tuple[float, int]] = []
        variational_mixtures.climb_by_formulas(
            X, K, prior, np.random.default_rng([seed, 7]), watch=lambda *at: steps.append(at)
        )
        found = np.array(steps)
        return Climb(np.arange(1, len(found) + 1), found[:, 0], found[:, 1])
    # a few steps of the class at a time, each time from where the last ones ended
    mixture = variational_mixtures.make_mixture(X, K, rule, alpha, PRECISION, seed)
    mixture.set_params(warm_start=True)
    at = [0]
    bounds: list[float] = []
    used: list[int] = []
    while not bounds or not mixture.converged_:
        mixture.set_params(max_iter=max(1, at[-1] // 10))
        variational_mixtures.fit_quietly(mixture, X)
        at.append(at[-1] + mixture.n_iter_)
        bounds.append(mixture.evidence_bound_)
        used.append(int((mixture.counts_ > IN_USE).sum()))
    return Climb(np.array(at[1:]), np.array(bounds), np.array(used))


def check_climbs(climbs: dict[tuple[str, float, int], Climb]) -> list[Check]:
    """What the source says of its figures."""
    falls = min(float(np.diff(c.bounds).min()) for c in climbs.values())
    grows = max(int(np.diff(c.used[1:]).max()) for c in climbs.values())
    ends = {a: int(c.used[-1]) for (rule, a, K), c in climbs.items() if (rule, K) == (VBDMA, 250)}
    most = [ends[a] for a in sorted(ends)]
    return [
        Check("no step lowers the bound", falls > -1e-6, f"least gain {falls:.1e}"),
        Check(
            "components are lost and hardly come back", grows <= 2,
            f"at most {grows} more after a step than before it",
        ),
        Check(
            "VBDMA, K = 250: more components are left for larger alpha", most == sorted(most),
            ", ".join(f"{ends[a]} at alpha = {a:g}" for a in sorted(ends)),
        ),
    ]  # fmt: skip


# ------------------------------------------------ picture


def draw(
    draws: dict[float, Array], climbs: dict[tuple[str, float, int], Climb], figure: Figure
) -> None:
    """Figure 3.2 on top; below, the bound and the components in use by iteration."""
    columns = max(3, -(-len(climbs) // 2))
    figure.set_size_inches(2.9 * columns, 8.4)
    top, below = figure.subfigures(2, 1, squeeze=False, height_ratios=(1, 2.2)).ravel()
    axes = top.subplots(1, 3)
    grid = np.linspace(-4, 4, 200)
    axes[0].plot(grid, norm.pdf(grid), color="0.3")
    axes[0].set_title("base distribution N(0, 1)", fontsize=9)
    for ax, (alpha, values) in zip(axes[1:], draws.items(), strict=True):
        places, counts = np.unique(values, return_counts=True)
        ax.vlines(places, 0, counts, lw=0.8, color="C0")
        ax.set_title(f"alpha = {alpha:g}: {len(places)} distinct of {len(values)}", fontsize=9)
        ax.set_xlim(-4, 4)
    panels = below.subplots(2, columns, squeeze=False).ravel()
    for ax, (place, found) in zip(panels, climbs.items(), strict=False):
        ax.plot(found.steps, found.bounds, color="C0", lw=1.2)
        ax.set_xscale("log")
        ax.set_title(describe(*place), fontsize=8)
        other = ax.twinx()
        other.plot(found.steps, found.used, color="C3", lw=1.2)
        other.set_ylim(0)
        other.tick_params(labelsize=7, colors="C3")
        ax.tick_params(labelsize=7)
        other.text(0.97, 0.1, f"{found.used[-1]:.0f} left", transform=ax.transAxes, ha="right",
                   fontsize=8, color="C3")  # fmt: skip
    for ax in panels[len(climbs) :]:
        ax.set_axis_off()
    below.supxlabel("iteration", fontsize=9)
    below.supylabel("bound (blue), components in use (red)", fontsize=9)
    for ax in axes:
        ax.tick_params(labelsize=8)
        ax.spines[["top", "right"]].set_visible(False)


EXPERIMENT = Experiment(
    name="dp-figures",
    title="Dirichlet processes: draws, and components in use by iteration",
    source="Yu 2006",
    place="figures 3.2-3.6",
    protocol=(
        "Ten thousand values of Dirichlet processes with base distribution N(0, 1), alpha = 10 and "
        "10000, by the urn and by breaking a stick. Then the toy data of section 2.1.3: climbs of "
        "variational Bayes from random memberships for several alpha and K, with the bound and the "
        "number of components that have more than half a row by iteration; VBDMA by "
        "BayesianGaussianMixture, a few steps at a time, VBTDP as printed by its formulas. "
        "The same of the geyser data is in old-faithful."
    ),
    data=(),
    run=run,
)
