"""Settings of priors: of factor models by MAP, and of mixtures of them by variational Bayes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from mixfold.contracts import Array
from mixfold.estimators.mixtures.weights import mixing_of, name_weights
from mixfold.estimators.shell.constraints import as_numbers
from mixfold.families.factor.bayes import BayesFactors
from mixfold.families.factor.noise import Noise
from mixfold.families.factor.priors import LoadingsPrior, NoisePrior
from mixfold.mixing.protocol import Mixing

# factors that a component may have if their number is learned and no limit is given: of complete
# rows, and where entries are missing, so that each row costs a matrix of that size
MOST_FACTORS, MOST_OF_HOLES = 64, 24
# settings of the prior: whether one number for each column is allowed
_SETTINGS = {
    "mean": True,
    "noise_shape": False,
    "noise_variance": True,
    "relevance_shape": False,
    "relevance_rate": False,
}


def check_priors(estimator: Any) -> None:
    """Refuse settings that do not go together with ``inference``."""
    if estimator.inference == "em":
        _check_em(estimator)
        return
    name_weights(estimator.weights, "vb")
    mixing_of(estimator.weights, estimator.alpha, "vb")
    if "loadings" in estimator.tied:
        raise ValueError(
            "by inference='vb' every component has loadings of its own, of which it learns the "
            f"number; got tied={estimator.tied!r}. Leave 'loadings' out, or use inference='em'"
        )
    if estimator.merge_starts:
        raise ValueError(
            "merge_starts=True merges fits by inference='em'; by inference='vb' components are "
            "merged and split during the fit. Set merge_starts=False"
        )
    if estimator.acceleration == "quasi-newton":
        raise ValueError(
            "acceleration='quasi-newton' needs slopes, which inference='vb' does not offer; use "
            "'auto' or 'squarem'"
        )
    read_prior(estimator.prior)


def _check_em(estimator: Any) -> None:
    if estimator.n_factors is None:
        raise ValueError(
            "n_factors=None means that the number of factors is learned, which needs "
            "inference='vb'; got inference='em'. Give a number, or use inference='vb'"
        )
    if not (isinstance(estimator.weights, str) and estimator.weights in ("auto", "ml")):
        raise ValueError(
            "by inference='em' the weights are free, weights='auto' or 'ml'; got "
            f"{estimator.weights!r}. Use inference='vb' for a prior of the weights"
        )
    if estimator.prior is not None:
        raise ValueError(
            "prior is that of inference='vb'; by inference='em' there is none, got "
            f"{estimator.prior!r}. Leave it out, or use inference='vb'"
        )


def read_prior(prior: Any) -> dict[str, Any]:
    """The settings of the prior, as the family takes them."""
    if prior is None:
        return {}
    if not isinstance(prior, Mapping):
        raise TypeError(
            "prior must be None or a dict such as {'relevance_rate': 0.1}, with some of "
            f"{', '.join(_SETTINGS)}; got {prior!r}"
        )
    found: dict[str, Any] = {}
    for name, value in prior.items():
        if name not in _SETTINGS:
            raise ValueError(
                f"prior has no setting {name!r}; its settings are {', '.join(_SETTINGS)}"
            )
        numbers = as_numbers(value, f"prior[{name!r}]")
        if name != "mean" and not (numbers > 0).all():
            raise ValueError(
                f"prior[{name!r}] must be positive, or it is no prior; got {value!r}. Leave it out "
                "to take the default"
            )
        if not np.isfinite(numbers).all() or (numbers.ndim > int(_SETTINGS[name])):
            many = ", or one for each column" if _SETTINGS[name] else ""
            raise ValueError(f"prior[{name!r}] must be one finite number{many}; got {value!r}")
        found[name] = numbers if numbers.ndim else float(numbers)
    return found


def bayes_family(
    estimator: Any, noise: Noise, factors: tuple[int, ...], has_missing: bool, expand: bool
) -> BayesFactors:
    """The components with their priors."""
    return BayesFactors(
        floor=max(float(estimator.noise_floor), 1e-14),
        factors=factors,
        noise=noise,
        has_missing=has_missing,
        expand=expand,
        **read_prior(estimator.prior),
    )


def bayes_mixing(estimator: Any) -> Mixing[Any]:
    return mixing_of(estimator.weights, estimator.alpha, "vb")


def limit_of_factors(
    n_factors: Any, n_features: int, n_rows: float, has_missing: bool
) -> tuple[int, ...]:
    """How many factors a component may have: the setting, or one for all that the data allow."""
    if n_factors is not None:
        return tuple(int(n) for n in np.atleast_1d(n_factors))
    most = MOST_OF_HOLES if has_missing else MOST_FACTORS
    return (max(0, int(min(n_features - 1, n_rows - 1, most))),)


def columns_of_prior(estimator: Any, n_features: int) -> None:
    """Refuse settings of the prior for another number of columns."""
    for name, value in read_prior(estimator.prior).items():
        size = np.asarray(value, dtype=float)
        if size.ndim and size.shape != (n_features,):
            raise ValueError(
                f"prior[{name!r}] has {size.size} numbers and X has {n_features} columns; give one "
                "number, or one for each column"
            )


def used_factors(loadings: Array) -> Array:
    """Factors (K,) of each component: those whose loadings are not all zero."""
    return np.asarray((loadings != 0).any(axis=1).sum(axis=1))


# ------------------------------------------------ MAP


def loadings_prior_of(value: Any, common: bool = False) -> LoadingsPrior | None:
    """The parameter ``loadings_prior`` as the family takes it; ``common``: factors of all
    components are the same ones."""
    if value is None:
        return None
    return LoadingsPrior(None if value == "ard" else float(value), common)


def noise_prior_of(value: Any) -> NoisePrior | None:
    """The parameter ``noise_prior`` as the family takes it."""
    return None if value is None else NoisePrior(float(value[0]), float(value[1]))
