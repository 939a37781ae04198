"""Exponential families whose log density is linear in the entries of a row.

``LINEAR`` maps the names users know to the classes.
"""

from mixfold.families.linear.bernoulli import Bernoulli
from mixfold.families.linear.binomial import Binomial
from mixfold.families.linear.categorical import Categorical
from mixfold.families.linear.exponential import Exponential
from mixfold.families.linear.gamma import Gamma
from mixfold.families.linear.linear import LinearFamily
from mixfold.families.linear.multinomial import Multinomial
from mixfold.families.linear.poisson import Poisson

LINEAR: dict[str, type[LinearFamily]] = {
    "bernoulli": Bernoulli,
    "binomial": Binomial,
    "poisson": Poisson,
    "exponential": Exponential,
    "gamma": Gamma,
    "multinomial": Multinomial,
    "categorical": Categorical,
}

__all__ = [
    "LINEAR",
    "Bernoulli",
    "Binomial",
    "Categorical",
    "Exponential",
    "Gamma",
    "LinearFamily",
    "Multinomial",
    "Poisson",
]
