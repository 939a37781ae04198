"""Models of rows with classes or outputs."""

from __future__ import annotations

from bench.entries import draws
from bench.entries.judges import ACCURACY, CORRELATION, R2, SCORE
from bench.entries.mixtures import PLAIN, STEPS
from bench.entries.record import Entry
from bench.problems import Problem

SEEDED = {"random_state": 0}
CLASSES = Problem(0, 32, 10, "full", separation=6.0)
PARTS = Problem(0, 32, 6, "full", separation=6.0)
SIZE, OUTPUTS = 5, 8
SHARED = draws.outputs(50, SIZE, OUTPUTS)
CANONICAL = {"n_components": SIZE}

LABELLED = (
    Entry(
        "MixtureClassifier", "D = 32, 10 classes of one Gaussian", "exact, same priors",
        draws.classes(CLASSES, 10), ACCURACY, {"priors": "uniform", **SEEDED},
        "sklearn.discriminant_analysis:QuadraticDiscriminantAnalysis", {"priors": [0.1] * 10},
        (50_000, 100_000, 200_000), (1000, 2000),
    ),
    Entry(
        "MLiT", "orthonormal, D = 32, K = 3, 5 axes", f"at most {STEPS} steps and the start",
        draws.classes(PARTS, 2), SCORE,
        {"n_components": 3, "n_dims": 5, "method": "orthonormal", "max_iter": STEPS, "tol": 0.0,
         **SEEDED}, sizes=(20_000, 40_000, 80_000),
    ),
    Entry(
        "SupervisedPPCA", f"D = 50, {OUTPUTS} outputs, {SIZE} factors",
        "own defaults, as many factors", SHARED, R2, {"n_components": SIZE, **SEEDED},
        "sklearn.cross_decomposition:PLSRegression", {"n_components": SIZE},
        (20_000, 40_000, 80_000), remark="a neighbour",
    ),
    Entry(
        "SupervisedMixtureOfPPCA", "D = 50, 2 bent outputs, K = 4, 2 factors",
        f"{STEPS} EM steps and the start", draws.outputs(50, 2, 2, bent=True), R2,
        {"n_components": 4, "n_factors": 2, **PLAIN},
    ),
    Entry(
        "MixtureOfFactorModels", f"D = 32, 2 classes, K = 3, {SIZE} factors",
        f"{STEPS} EM steps and the start", draws.classes(PARTS, 2), ACCURACY,
        {"n_components": 3, "n_factors": SIZE, **PLAIN},
    ),
    Entry(
        "KernelCCA", f"linear, D = 50 and {OUTPUTS}, {SIZE} pairs", "exact, no regularisation",
        SHARED, CORRELATION, {**CANONICAL, "regularization": 0.0, **SEEDED},
        "sklearn.cross_decomposition:CCA", CANONICAL, (20_000, 40_000, 80_000),
        remark="linear only",
    ),
    Entry(
        "MORP", f"linear, D = 50, {OUTPUTS} outputs, {SIZE} axes", "exact",
        SHARED, R2, {"n_components": SIZE, **SEEDED}, sizes=(50_000, 100_000, 200_000),
    ),
)  # fmt: skip
