"""Do default fits reach the likelihood that ten starts of scikit-learn lead to?"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import mean
from typing import Any

from bench.clustering import Row, run_stage
from bench.clustering_fits import SEEDS
from bench.options import Options
from bench.tables import seconds, table

TITLE = "Likelihood of default fits against the best of ten starts of scikit-learn"
LOWER, FAR_LOWER = 1e-4, 0.05  # per row


def measure(options: Options) -> dict[str, Any]:
    seeds = SEEDS[:1] if options.quick else SEEDS
    return {"fits": run_stage("likelihoods", options, seeds)}


def lower(fits: Sequence[Row], by: float) -> list[Row]:
    """Fits whose log-likelihood per row is lower than the peer's by more than ``by``."""
    return [fit for fit in fits if fit["theirs"] - fit["ours"] > by]


def report(result: dict[str, Any]) -> str:
    fits = result["fits"]
    short, far = lower(fits, LOWER), lower(fits, FAR_LOWER)
    sound = [fit for fit in short if not fit["their_degenerate"]]
    higher = [fit for fit in fits if fit["ours"] - fit["theirs"] > LOWER]
    parts = [
        "Log-likelihood per row of mixfold's default fit, and of scikit-learn's best of ten starts "
        "followed to convergence by mixfold's EM (same floor); and of the fit to which EM climbs "
        "from the reference labeling.",
        f"Of {len(fits)} fits {len(short)} are lower by more than {LOWER:g} ({len(sound)} of them "
        f"where the better one has no component at its floor), {len(far)} by more than "
        f"{FAR_LOWER:g}; {len(higher)} are higher by more than {LOWER:g}.",
        f"CPU s of all fits: mixfold {seconds(sum(f['our_cpu'] for f in fits))}, "
        f"scikit-learn {seconds(sum(f['their_cpu'] for f in fits))} as it stops.",
        table(
            ["set", "K", "mixfold", "scikit-learn followed", "labeling followed", "lower", "passes",
             "CPU s", "scikit-learn, CPU s"],
            [_line(group) for group in _groups(fits)],
        ),
    ]  # fmt: skip
    if short:
        parts += [
            "Lower fits (* the better one has a component at its floor or without rows):",
            table(["set", "K", "seed", "mixfold", "scikit-learn followed", "difference", ""],
                  [_short(fit) for fit in short]),
        ]  # fmt: skip
    ends = [fit for fit in fits if not fit["followed_converged"]]
    if ends:
        parts.append(f"{len(ends)} of scikit-learn's solutions had not converged at the last step.")
    return "\n\n".join(parts)


def _groups(fits: Sequence[Row]) -> list[list[Row]]:
    keys = dict.fromkeys((fit["set"], fit["k"]) for fit in fits)
    return [[fit for fit in fits if (fit["set"], fit["k"]) == key] for key in keys]


def _line(fits: list[Row]) -> list[object]:
    return [
        fits[0]["set"], fits[0]["k"],
        *(f"{mean(fit[key] for fit in fits):.4f}" for key in ("ours", "theirs", "reference")),
        f"{len(lower(fits, LOWER))} of {len(fits)}", f"{mean(fit['passes'] for fit in fits):.0f}",
        *(seconds(mean(fit[key] for fit in fits)) for key in ("our_cpu", "their_cpu")),
    ]  # fmt: skip


def _short(fit: Row) -> list[object]:
    return [
        fit["set"], fit["k"], fit["seed"], f"{fit['ours']:.4f}", f"{fit['theirs']:.4f}",
        f"{fit['ours'] - fit['theirs']:.4f}", "*" if fit["their_degenerate"] else "",
    ]  # fmt: skip
