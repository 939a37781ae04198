"""Classifiers of source 001 on folds: every setting, every iterate, and the choice from inside."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mixfold.contracts import Array
from mixfold.engine.executors.threads import available_cores
from mixfold.experiments.mlit_sets import Labelled

FOLDS, INNER = 5, 3
# of the source; ours for the orthonormal rule, which needs no more
MPPCA_STEPS, GMM_STEPS, ORTHONORMAL_STEPS, RIDGE = 200, 50, 200, 0.01
WHOLE_STEPS = 50


@dataclass(frozen=True, slots=True)
class Setting:
    """What is tried: columns as they are or of unit variance, and options of the estimator."""

    standard: bool
    options: tuple[tuple[str, Any], ...] = ()

    def words(self) -> str:
        told = [
            f"{name} {value:g}" if name == "scale" else f"{name} {value}"
            for name, value in self.options
        ]
        return ", ".join(["standardised" if self.standard else "raw", *told])


@dataclass(frozen=True, slots=True)
class Grid:
    """Scales, ends of the spectrum, whether columns are also standardised, and most steps."""

    scales: tuple[float, ...]
    inits: tuple[str, ...]
    steps: int
    standard: tuple[bool, ...] = (False, True)

    def settings(self) -> tuple[Setting, ...]:
        return tuple(
            Setting(standard, (("scale", scale), ("init", init)))
            for standard in self.standard
            for init in self.inits
            for scale in self.scales
        )


@dataclass(frozen=True, slots=True)
class Case:
    """A method with its size, and what of it is tried."""

    method: str
    d: int | None
    K: int
    settings: tuple[Setting, ...]
    steps: int


@dataclass(frozen=True, slots=True)
class Outcome:
    """Of one fold, for each setting: accuracies on the held-out rows by iterate, the accuracy in
    folds of the training rows, and the iterate that was best there."""

    held: tuple[Array, ...]
    inside: tuple[float, ...]
    iterates: tuple[int, ...]

    @property
    def honest(self) -> float:
        """Accuracy on the held-out rows of what the training rows chose."""
        best = int(np.argmax(self.inside))
        return float(self.held[best][self.iterates[best]])


def estimator(case: Case, setting: Setting) -> Any:
    """The density of a class."""
    from mixfold import GaussianMixture, MixtureOfPPCA, MLiT

    K, d, options = case.K, case.d, dict(setting.options)
    if case.method == "MPPCA":
        return MixtureOfPPCA(K, d, max_iter=MPPCA_STEPS, acceleration=None)
    if case.method == "GMM":
        return GaussianMixture(K, max_iter=GMM_STEPS, reg_covar=RIDGE, acceleration=None,
                               init_params="k-means++")  # fmt: skip
    assert d is not None  # only Gaussian mixtures have none
    rule = {"MLiT (C)": "constrained", "MLiT (N)": "normalized", "MLiT (O)": "orthonormal"}
    return MLiT(K, d, rule[case.method], ridge=RIDGE, max_iter=case.steps, **options)


def folds(y: Array, seed: int, repeat: int) -> list[tuple[Array, Array]]:
    """Training and held-out rows, each class in even shares."""
    from sklearn.model_selection import StratifiedKFold

    state = int(np.random.SeedSequence([seed, repeat]).generate_state(1)[0])
    return list(StratifiedKFold(FOLDS, shuffle=True, random_state=state).split(y, y))


def measured(data: Labelled, case: Case, train: Array, test: Array, state: int) -> Outcome:
    """Every setting of a case on one fold."""
    found = []
    with warnings.catch_warnings():
        # steps are few on purpose, and components that collapse are what is shown
        warnings.simplefilter("ignore")
        for setting in case.settings:
            found.append(_tried(data, case, setting, train, test, state))
    held, inside, iterates = zip(*found, strict=True)
    return Outcome(held, inside, iterates)


def _tried(
    data: Labelled, case: Case, setting: Setting, train: Array, test: Array, state: int
) -> tuple[Array, float, int]:
    from sklearn.model_selection import cross_val_score
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    from mixfold import MixtureClassifier

    scaler = StandardScaler() if setting.standard else None
    model = MixtureClassifier(estimator(case, setting), cv=INNER, paper_protocol=True,
                              random_state=state, n_jobs=1)  # fmt: skip
    X, y = data.X[train], data.y[train]
    if case.method not in ("MLiT (C)", "MLiT (N)"):  # the last step is the best
        whole = make_pipeline(scaler or "passthrough", model)
        choice = len(case.settings) > 1
        inside = float(cross_val_score(whole, X, y, cv=INNER).mean()) if choice else 0.0
        right = whole.fit(X, y).predict(data.X[test]) == data.y[test]
        return np.array([right.mean()]), inside, 0
    move = scaler.fit(X).transform if scaler else np.asarray
    model.fit(move(X), y)
    right = model.staged_predict(move(data.X[test])) == data.y[test]
    return right.mean(axis=1), model.paper_score_[0], model.iterate_


def all_measured(data: Labelled, case: Case, seed: int, repeats: int) -> Iterator[list[Outcome]]:
    """The outcomes of all folds, repeat by repeat, on all cores."""
    from joblib import Parallel, delayed  # type: ignore[import-untyped]

    tasks = [
        (train, test, int(np.random.SeedSequence([seed, repeat, fold]).generate_state(1)[0]))
        for repeat in range(repeats)
        for fold, (train, test) in enumerate(folds(data.y, seed, repeat))
    ]
    results = Parallel(min(available_cores(), len(tasks)), return_as="generator", batch_size=1)(
        delayed(measured)(data, case, *task) for task in tasks
    )
    for _ in range(repeats):
        yield [next(results) for _ in range(FOLDS)]


def by_setting(outcomes: Sequence[Outcome]) -> list[Array]:
    """Mean accuracy over the folds by iterate, for each setting; up to the shortest fold."""
    curves = []
    for parts in zip(*(outcome.held for outcome in outcomes), strict=True):
        shortest = min(len(part) for part in parts)
        curves.append(np.mean([part[:shortest] for part in parts], axis=0))
    return curves


def best_of(curves: Sequence[Array]) -> tuple[int, int]:
    """Setting and iterate of the highest accuracy, the first of equals."""
    setting = int(np.argmax([curve.max() for curve in curves]))
    return setting, int(np.argmax(curves[setting]))


def whole_run(data: Labelled, d: int, K: int, seed: int) -> float:
    """Seconds of all folds with one setting, all steps of the source and all iterates scored."""
    from mixfold import MixtureClassifier, MLiT

    began = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for train, test in folds(data.y, seed, 0):
            density = MLiT(K, d, max_iter=WHOLE_STEPS, iterate=0)
            model = MixtureClassifier(density, random_state=seed).fit(data.X[train], data.y[train])
            model.staged_predict(data.X[test])
    return time.perf_counter() - began
