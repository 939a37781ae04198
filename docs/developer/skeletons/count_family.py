"""A skeleton for a family of counts, or of any entries whose log density is linear in them.

It is a whole family, the geometric law (failures before the first success), so that every line
shows where a formula goes:

    x_d | k ~ (1 - p_kd) p_kd^x,    p_kd ~ beta(a, b),    x = 0, 1, 2, ...

Copy it to ``src/mixfold/families/exponential/yours.py`` and add one line of import to
``families/exponential/__init__.py``: ``Mixture("yours")``, the command line, mixed tables and model
files then know its name, and the tests run on it as soon as it has an entry in
``tests/families/exponential/examples.py``. A family of your own project stays where it is: give
``Mixture`` an object of it.

Which base to take
------------------
``PairFamily`` if each column has one parameter with a beta prior (probabilities) or a gamma prior
(rates): ten short methods, and EM, MAP (``prior="default"``), variational Bayes, Gibbs sampling,
the collapsed sampler, missing entries, sparse rows, streams, files and the command line (``mixfold
fit -m mixture --family yours``) come with it. ``SimplexFamily`` for shares with a Dirichlet prior.
``LinearFamily`` if there is no conjugate prior: see ``family_without_prior.py``.
``families/exponential/negative_binomial.py`` is one whose density is not linear, but that of its
latents is. Families of real numbers are Gaussian: see ``family.py``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.special import expit
from scipy.stats import geom

from mixfold.contracts import Array, record
from mixfold.families.exponential.conjugate_priors import BETA, ODDS_LIMIT, Law
from mixfold.families.exponential.pair import PairFamily


# 1. A frozen dataclass: settings only (a and b of the prior are inherited), nothing that a fit has
#    found. ``@record`` lets model files hold an object of it.
@record
@dataclass(frozen=True)
class Geometric(PairFamily):
    """x_d | k ~ geometric(1 - p_kd) from 0 up, p_kd ~ beta(a, b). NaN is missing."""

    # 2. The name by which users ask for it, and the law of its parameter. theta is the log odds of
    #    p for BETA and the log of the rate for GAMMA; the collapsed sampler is found by the law.
    #    Facts are attributes: takes_missing, takes_sparse (both True unless you say otherwise).
    name: ClassVar[str] = "geometric"
    law: ClassVar[Law] = BETA

    # 3. Entries that no component can produce, and the words of the error. ``size`` is a setting of
    #    each column (``column_constants``: trials, exposure), here without a meaning.
    def fault(self, x: Array, size: Array) -> Array:
        return np.asarray((x < 0) | (x != np.round(x)) | np.isinf(x))

    def rule(self, size: float) -> str:
        return "must hold counts: whole numbers from 0 up"

    # 4. The density. T(x), what a row adds to a and b, from sums of x and of 1; and slope and
    #    offset of ln p(x) = x slope + offset from omega = (ln p, ln(1 - p)), for GAMMA from
    #    (ln rate, -rate). A term that no parameter changes goes into ``entry_base`` (here none).
    def statistics(self, first: Array, count: Array, size: Array) -> tuple[Array, Array]:
        return first, np.broadcast_to(count, np.shape(first))

    def terms(self, one: Array, two: Array, size: Array) -> tuple[Array, Array]:
        return one, two

    # 5. Bounds of theta, the mean of an entry, and the Fisher information of one about theta.
    def limits(self, size: Array) -> tuple[float, float]:
        return -ODDS_LIMIT, ODDS_LIMIT

    def of_theta(self, theta: Array, size: Array, like: Array) -> Array:
        return np.asarray(np.exp(theta))  # p / (1 - p)

    def information(self, theta: Array, size: Array) -> Array:
        return np.asarray(expit(theta))

    # 6. The default b of the prior, from the means of the columns.
    def usual(self, a: Array, mean: Array, size: Array) -> Array:
        return np.ones_like(a)

    # 7. Rows as points whose distances mean something: where fits start.
    def points(self, X: Array) -> Array:
        return np.log1p(np.asarray(X, float))

    # 8. Entries from uniforms (imputing by draws, conditionals) and from a generator (samples).
    def quantile(self, uniforms: Array, means: Array, theta: Array, size: Array) -> Array:
        return np.asarray(geom.ppf(uniforms, expit(-theta), loc=-1))

    def emit(self, means: Array, theta: Array, size: Array, rng: np.random.Generator) -> Array:
        return rng.geometric(expit(-theta)).astype(float) - 1
