"""Factor models and kernels, without classes or outputs."""

from __future__ import annotations

from bench.entries import draws
from bench.entries.judges import AXES, CROSSTALK, FACTOR_LIKELIHOOD, UNSEEN, kernel_residual
from bench.entries.mixtures import PLAIN, STEPS
from bench.entries.record import Data, Entry

SIZE = 10
SEEDED = {"n_components": SIZE, "random_state": 0}
GAMMA = 0.005
KERNEL = {"n_components": 20, "kernel": "rbf", "gamma": GAMMA, "random_state": 0}


def mixture_of(model: str) -> Entry:
    return Entry(
        model, "D = 64, K = 10, 5 factors", f"{STEPS} EM steps and the start",
        draws.factor_groups(64, 10, 5), UNSEEN, {"n_components": 10, "n_factors": 5, **PLAIN},
    )  # fmt: skip


def kernel_rows(n: int) -> Data:
    return Data(draws.factor_groups(64, 20, 5)(n).X)


FACTORS = (
    Entry(
        "PPCA", f"D = 200, {SIZE} axes", "exact; svd_solver as the peer chooses",
        draws.spread_out(200, SIZE), AXES, SEEDED, "sklearn.decomposition:PCA", SEEDED,
        (20_000, 40_000, 80_000),
    ),
    Entry(
        "FactorAnalysis", f"D = 100, {SIZE} factors", "own defaults, to convergence",
        draws.spread_out(100, SIZE), FACTOR_LIKELIHOOD, SEEDED,
        "sklearn.decomposition:FactorAnalysis", SEEDED, (20_000, 40_000, 80_000),
    ),
    Entry(
        "ICA", f"D = {SIZE}, Laplace sources", "own defaults, to convergence",
        draws.unmixed(SIZE), CROSSTALK, {"random_state": 0}, "sklearn.decomposition:FastICA",
        {"random_state": 0, "whiten": "unit-variance"}, (20_000, 40_000, 80_000),
    ),
    mixture_of("MixtureOfPPCA"),
    mixture_of("MixtureOfFactorAnalyzers"),
    Entry(
        "GaussianPCP", "D = 32, 10 clusters, 3 axes", f"{STEPS} VB steps and the start",
        draws.plane(32, 5, 3), UNSEEN, {"n_clusters": 10, "n_components": 3, **PLAIN},
    ),
    Entry(
        "KernelPCA", "rbf, D = 64, 20 axes", "own defaults; arpack of the peer",
        kernel_rows, kernel_residual(GAMMA), KERNEL, "sklearn.decomposition:KernelPCA",
        {**KERNEL, "eigen_solver": "arpack"}, (1_000, 2_000, 4_000),
    ),
)  # fmt: skip
