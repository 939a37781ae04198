"""Families of entries that are not Gaussian: exponential families, and what is made of them.

``EXPONENTIAL_FAMILIES`` maps the names users know to the classes. A new family is a file in this
folder and one line of import below.
"""

from mixfold.families.exponential.bernoulli import Bernoulli as Bernoulli
from mixfold.families.exponential.beta import Beta as Beta
from mixfold.families.exponential.beta import Dirichlet as Dirichlet
from mixfold.families.exponential.binomial import Binomial as Binomial
from mixfold.families.exponential.categorical import Categorical as Categorical
from mixfold.families.exponential.family import LinearFamily as LinearFamily
from mixfold.families.exponential.gamma import Exponential as Exponential
from mixfold.families.exponential.gamma import Gamma as Gamma
from mixfold.families.exponential.gamma import GammaShape as GammaShape
from mixfold.families.exponential.multinomial import Multinomial as Multinomial
from mixfold.families.exponential.negative_binomial import NegativeBinomial as NegativeBinomial
from mixfold.families.exponential.poisson import Poisson as Poisson
from mixfold.families.exponential.von_mises import VonMises as VonMises

# all that is imported above and has a name
EXPONENTIAL_FAMILIES: dict[str, type[LinearFamily]] = {
    kind.name: kind
    for kind in list(globals().values())
    if isinstance(kind, type) and issubclass(kind, LinearFamily) and hasattr(kind, "name")
}
