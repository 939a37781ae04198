"""Files of a classifier of densities: those of its estimators inside one."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from mixfold import store
from mixfold.contracts import Array
from mixfold.estimators.mixtures.class_targets import named_priors
from mixfold.estimators.shell.base import MixfoldEstimator

_KEPT = (
    "classes_", "priors_", "class_weight_", "novelty_threshold_", "iterate_", "iterate_scores_",
    "paper_score_", "_seed", "n_features_in_", "feature_names_in_",
)  # fmt: skip


class ClassFiles(MixfoldEstimator):
    """``save`` and ``load`` of an estimator that has others: ``estimator`` and ``estimators_``."""

    classes_: Array
    estimators_: list[Any]

    def _plain_parameters(self) -> dict[str, Any]:
        values = super()._plain_parameters()
        given = self.estimator
        values["estimator"] = None if given is None else _packed(given, fitted=False)
        settings = self.settings or {}
        # keys of a file are texts, classes need not be
        values["settings"] = [[label, dict(chosen)] for label, chosen in settings.items()]
        priors = named_priors(self.priors, self.classes_)
        if isinstance(priors, dict):
            values["priors"] = [[label, float(p)] for label, p in priors.items()]
        elif priors is not self.priors:
            values["priors"] = priors
        return values

    def _state(self) -> dict[str, Any]:
        state = {name: getattr(self, name) for name in _KEPT if hasattr(self, name)}
        models = [None if m is None else _packed(m, fitted=True) for m in self.estimators_]
        return {**state, "estimators_": models}

    @classmethod
    def _from_state(cls, tree: dict[str, Any]) -> Self:
        parameters, state = dict(tree["parameters"]), dict(tree["state"])
        models = [None if one is None else _unpacked(one) for one in state.pop("estimators_")]
        given = parameters.get("estimator")
        parameters["estimator"] = None if given is None else _unpacked(given)
        parameters["settings"] = {label: chosen for label, chosen in parameters["settings"]} or None
        if isinstance(parameters.get("priors"), list):
            pairs = [one for one in parameters["priors"] if isinstance(one, list)]
            parameters["priors"] = dict(pairs) if pairs else parameters["priors"]
        known = cls().get_params(deep=False)
        classifier = cls(**{k: v for k, v in parameters.items() if k in known})
        classifier._check_parameters()
        for name, value in state.items():
            if name not in _KEPT:
                raise ValueError(f"unknown attribute {name!r}")
            if name == "feature_names_in_":
                value = np.array([str(v) for v in value], dtype=object)
            setattr(classifier, name, value)
        if len(models) != len(classifier.classes_):
            raise ValueError("there is not one model for each class")
        classifier.estimators_ = models
        return classifier


def _packed(estimator: Any, fitted: bool) -> dict[str, Any]:
    kind = type(estimator).__name__
    if not isinstance(estimator, MixfoldEstimator) or kind not in store.ESTIMATORS:
        raise TypeError(
            f"a {kind} cannot be written to a model file, only estimators of mixfold can; use one "
            "of those, or keep the classifier in memory"
        )
    state = estimator._state() if fitted else None
    return {"kind": kind, "parameters": estimator._plain_parameters(), "state": state}


def _unpacked(packed: dict[str, Any]) -> Any:
    estimator = store.estimator_class(packed["kind"])
    if packed["state"] is not None:
        return estimator._from_state(packed)
    known = estimator().get_params(deep=False)
    return estimator(**{k: v for k, v in packed["parameters"].items() if k in known})
