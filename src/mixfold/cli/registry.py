"""Which models the command line offers. A new model is one more line in ``MODELS``."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import Any

import typer


@dataclass(frozen=True, slots=True)
class ModelEntry:
    """A public estimator of :mod:`mixfold` and how its size is called."""

    estimator: str
    size: str
    summary: str

    def load(self) -> type[Any]:
        """The estimator class. Imported on use, so that ``--help`` answers at once."""
        import mixfold

        estimator: type[Any] = getattr(mixfold, self.estimator)
        return estimator

    def parameters(self) -> tuple[str, ...]:
        """Names of the constructor's parameters, in its order."""
        signature = inspect.signature(self.load().__init__)
        return tuple(name for name in signature.parameters if name != "self")


MODELS = {
    "gaussian-mixture": ModelEntry("GaussianMixture", "n_components", "groups, soft assignments"),
    "kmeans": ModelEntry("KMeans", "n_clusters", "groups around centres, hard assignments"),
}


def find_model(name: str) -> ModelEntry:
    """The entry called ``name``; a usage error that lists the names otherwise."""
    try:
        return MODELS[name]
    except KeyError:
        raise typer.BadParameter(
            f"there is no model {name!r}; choose one of: {', '.join(MODELS)}.",
            param_hint="--model",
        ) from None
