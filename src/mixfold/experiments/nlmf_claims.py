"""What is claimed of factorised digits, and whether it holds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import pairwise

from mixfold.experiments import nlmf_published as published
from mixfold.experiments import nlmf_runs as runs
from mixfold.experiments.table import Check

Outcomes = Mapping[str, runs.Outcome]
# official error of layer 1 and of the network after joint training, seconds of the whole table
MOST_FIRST, MOST_JOINT, MOST_SECONDS = 0.092, 0.05, 600.0
# how near to other code an error (points) and e_r (share) must be, for nine values of ten
NEAR_ERROR, NEAR_REBUILT, SHARE = 0.7, 0.05, 0.9


def checks(found: Outcomes, whole: bool) -> tuple[Check, ...]:
    """All claims on the rows at hand; levels of errors are claimed of the ``whole`` table only."""
    claims = [_joint_gains(found), _overfits(found)]
    if whole:
        claims = [
            _at_most(found, published.FIRST, MOST_FIRST),
            _at_most(found, runs.JOINT, MOST_JOINT),
            *claims, _encoded_again(found), *_sparser(found), _near(found), _time(found),
        ]  # fmt: skip
    return tuple(claims)


def _at_most(found: Outcomes, row: str, most: float) -> Check:
    error = found[row].official
    claim = f"{row}: at most {100 * most:g} % of the official test part are missed"
    return Check(claim, error <= most, f"{100 * error:.2f} %")


def _joint_gains(found: Outcomes) -> Check:
    before, after = found[runs.GREEDY], found[runs.JOINT]
    holds = after.held < before.held and after.official < before.official
    detail = (
        f"{100 * before.held:.1f} -> {100 * after.held:.1f} % and "
        f"{100 * before.official:.1f} -> {100 * after.official:.1f} %"
    )
    return Check("joint training lowers the error of two layers on both tests", holds, detail)


def _overfits(found: Outcomes) -> Check:
    rows = [runs.balance_row(s2, False) for s2 in runs.BALANCES]
    errors = [_known(found[row].train) for row in rows if row in found]
    holds = all(a > b for a, b in pairwise(errors)) and errors[-1] < 0.005
    told = ", ".join(f"{100 * error:.2f}" for error in errors)
    claim = "the error of sources that saw their labels goes to zero as s2 grows"
    return Check(claim, holds, f"{told} %")


def _encoded_again(found: Outcomes) -> Check:
    gains = []
    for s2 in runs.BALANCES[1:]:
        without, again = (found[runs.balance_row(s2, again)] for again in (False, True))
        gains.append(100 * (without.official - again.official))
    told = ", ".join(f"{gain:.1f}" for gain in gains)
    claim = "encoding training digits again without labels lowers the official error at large s2"
    return Check(claim, min(gains) > 0, f"by {told} points at s2 = 1e-2, 1e-1")


# relative differences that may come from where the steps of a fit end
_STEPS = 0.01


def _sparser(found: Outcomes) -> list[Check]:
    rows = [found[runs.strength_row(beta)] for beta in runs.STRENGTHS]
    names = "beta " + ", ".join(f"{beta:g}" for beta in runs.STRENGTHS)
    measures: dict[str, tuple[Callable[[runs.Outcome], float], str]] = {
        "makes the codebook sparser": (lambda one: 100 * _known(one.sparse), "% near zero"),
        "raises e_r": (lambda one: _known(one.rebuilt), ""),
    }
    claims = []
    for words, (value, unit) in measures.items():
        values = [value(row) for row in rows]
        # a weak penalty may change less than where the steps end
        rises = all(b > (1 - _STEPS) * a for a, b in pairwise(values))
        holds = rises and values[-1] > (1 + _STEPS) * values[0]
        told = ", ".join(f"{v:.3g}" for v in values)
        claims.append(Check(f"a stronger beta {words}", holds, f"{names}: {told} {unit}".strip()))
    return claims


def _near(found: Outcomes) -> Check:
    """Beside other code on the same digits."""
    gaps: dict[str, float] = {}  # in units of what is allowed
    for row, (held, official, rebuilt) in published.REFERENCE.items():
        one = found[row]
        gaps[f"{row}, next digits"] = (100 * one.held - held) / NEAR_ERROR
        gaps[f"{row}, official"] = (100 * one.official - official) / NEAR_ERROR
        if rebuilt is not None:
            gaps[f"{row}, e_r"] = (_known(one.rebuilt) / rebuilt - 1) / NEAR_REBUILT
    far = [f"{place} ({gap:+.1f} times that)" for place, gap in gaps.items() if gap > 1]
    near = len(gaps) - len(far)
    told = f"{near} of {len(gaps)}" + (f"; not {', '.join(far)}" if far else "")
    claim = (
        f"nine values of ten are at most {NEAR_ERROR:g} points (e_r: {100 * NEAR_REBUILT:g} %) "
        "above those of other code on these digits"
    )
    return Check(claim, near >= SHARE * len(gaps), told)


def _time(found: Outcomes) -> Check:
    seconds = sum(one.seconds for one in found.values())
    slowest = max(found, key=lambda row: found[row].seconds)
    claim = f"all fits together take less than {MOST_SECONDS / 60:.0f} minutes"
    detail = f"{seconds:.0f} s; the slowest is {slowest}, {found[slowest].seconds:.0f} s"
    return Check(claim, seconds < MOST_SECONDS, detail)


def _known(value: float | None) -> float:
    if value is None:
        raise ValueError("a claim is about a value that was not measured")
    return value
