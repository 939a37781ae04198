"""A Gaussian family with a conjugate prior, in a frame of its own: what the tests here share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

from mixfold.contracts import Array, Block
from mixfold.families.bayes.gaussian import ConjugateGaussian
from mixfold.families.bayes.records import NormalPosterior, NormalPrior
from mixfold.families.gaussian import GaussianParams, Moments
from mixfold.math.frame import Frame
from mixfold.testing.tables import typical_components


@dataclass(frozen=True)
class Trial:
    """A family with a prior of known numbers (data coordinates), and rows to try it on."""

    family: ConjugateGaussian
    frame: Frame
    n_components: int

    @property
    def n_features(self) -> int:
        return self.frame.origin.size

    @property
    def matrix(self) -> bool:
        return self.family.matrix

    @property
    def shared(self) -> bool:
        """Whether the components share their precision."""
        return self.family.name.startswith("tied")

    def reading(self) -> Any:
        """Of components that have nothing to do with the rows."""
        K, D = self.n_components, self.n_features
        frame = {"origin": self.frame.origin, "scale": self.frame.scale}
        return self.family.mode(typical_components(self.family, K, D, **frame))

    def rows(self, n: int, missing: float = 0.0, seed: int = 0) -> Array:
        rng = np.random.default_rng(seed)
        X = self.frame.leave(1.5 * rng.standard_normal((n, self.n_features)) + 0.5)
        X[rng.random(X.shape) < missing] = np.nan
        return X

    def shares(self, n: int) -> Array:
        return np.random.default_rng(3).dirichlet(np.ones(self.n_components), n)

    def moments(self, X: Array, resp: Array) -> Moments:
        reading = self.reading()
        return self.family.moments(self.family.scores(block(X), reading), resp, reading)

    def prior(self) -> NormalPrior:
        # the settings leave nothing open
        return self.family.prior(self.frame, self.moments(self.rows(3), self.shares(3)))

    def posterior(self, X: Array, resp: Array) -> NormalPosterior:
        return self.family.posterior(self.moments(X, resp), self.prior(), self.frame)

    def settings(self) -> tuple[Array, float, float, Array]:
        """Mean, precision, degrees and scatter of the prior, in data coordinates."""
        f = self.family
        return np.asarray(f.mean), f.precision, float(f.degrees or 0), np.asarray(f.scatter)

    def precisions(self, params: GaussianParams) -> Array:
        """Precision matrices (K, D, D) in data coordinates."""
        scale = np.multiply.outer(self.frame.scale, self.frame.scale)
        return np.linalg.inv(self.family.dense(params) * scale)


def block(X: Array) -> Block:
    return Block(X, complete=not np.isnan(X).any())


@pytest.fixture(scope="session")
def blocked() -> Callable[[Array], Block]:
    return block


@pytest.fixture(scope="session")
def trial_of() -> Callable[..., Trial]:
    """A family with a definite prior in ``n_features`` columns."""

    def make(kind: type[Any], n_components: int = 3, n_features: int = 3, **other: Any) -> Trial:
        rng = np.random.default_rng(8)
        frame = Frame(rng.normal(size=n_features) * 9, rng.uniform(0.4, 3.0, n_features))
        if "spherical" in kind.name:
            frame = replace(frame, scale=np.full(n_features, 1.7))
        root = rng.standard_normal((n_features, n_features)) + 2 * np.eye(n_features)
        variances = {"spherical": np.asarray(2.5), "diag": rng.uniform(1, 6, n_features)}
        shape = kind.name.removeprefix("tied-")
        options = {
            "mean": frame.leave(rng.normal(size=n_features)),
            "precision": 0.7,
            "degrees": n_features + 3.5,
            "scatter": variances.get(shape, root @ root.T),
            **other,
        }
        return Trial(kind(**options), frame, n_components)

    return make
