"""Which settings of a mixture go together, and what its families can be given."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

# which priors of the weights go with which inference, the usual one first
LEGAL: dict[str, tuple[str, ...]] = {
    "em": ("ml", "fixed", "dirichlet", "stick-breaking"),
    "vb": ("dirichlet", "stick-breaking", "fixed", "ml"),
    "gibbs": ("dirichlet", "stick-breaking", "fixed"),
    "collapsed": ("stick-breaking", "dirichlet"),
}
# families of rows without missing entries, and without zeros
_WHOLE_ROWS, _POSITIVE = {"multinomial"}, {"exponential", "gamma"}


def weights_name(weights: Any, inference: str) -> str:
    """Which prior of the weights is meant."""
    if not isinstance(weights, str):
        name = "fixed"
    elif weights == "auto":
        name = LEGAL[inference][0]
    else:
        name = weights
    if name not in LEGAL[inference]:
        raise ValueError(
            f"inference={inference!r} goes with weights "
            f"{', '.join(map(repr, LEGAL[inference]))} ('fixed' is an array of shares); got "
            f"{weights!r}"
        )
    return name


def without_priors(weights: Any, inference: str, prior: Any) -> bool:
    """Whether there is no prior at all: maximum likelihood."""
    free = weights_name(weights, inference) in ("ml", "fixed")
    return inference == "em" and free and prior is None


def check_together(mixture: Any) -> None:
    """Refuse settings that are right one by one, but not together."""
    plain = without_priors(mixture.weights, mixture.inference, mixture.prior)
    _check_settings(mixture)
    if mixture.batch_size is not None and plain:
        raise ValueError(
            "batch_size is for inference 'vb' and for MAP: without a prior there is no memoised "
            f"schedule; got {mixture.batch_size!r}. Leave it out, or use inference='vb' or "
            "prior='default'"
        )
    if mixture.learn_prior and mixture.inference != "vb":
        raise ValueError(
            "learn_prior maximises the bound of variational Bayes: it needs inference='vb', got "
            f"inference={mixture.inference!r}. Leave it out, or use 'vb'"
        )


def _check_settings(mixture: Any) -> None:
    """Settings of families and priors are dicts; of several families one dict for each."""
    prior, options = mixture.prior, mixture.family_options
    usual = prior is None or (isinstance(prior, str) and prior == "default")
    if not usual and not isinstance(prior, Mapping):
        raise TypeError(f"prior must be None, 'default' or a dict, got {prior!r}")
    if options is not None and not isinstance(options, Mapping):
        raise TypeError(
            f"family_options must be None or a dict, such as {{'trials': 10}}; got {options!r}"
        )
    if not isinstance(mixture._chosen(), Mapping):
        return
    for what, settings in (("prior", {} if usual else prior), ("family_options", options or {})):
        for name, value in settings.items():
            if not isinstance(value, Mapping):
                raise TypeError(
                    f"{what} has a dict for each family, such as {{'poisson': {{...}}}}; for "
                    f"{name!r} it has {value!r}"
                )


def takes(family: Any) -> tuple[bool, bool]:
    """Whether rows of a family may have missing entries, and whether they may be sparse."""
    if isinstance(family, Mapping):
        names = set(family)
    else:
        names = {family} if isinstance(family, str) else {getattr(family, "name", None)}
    return not names & _WHOLE_ROWS, not names & _POSITIVE
