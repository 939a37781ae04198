"""Matrix factorisations, Boltzmann machines and deep networks."""

from __future__ import annotations

from bench.entries import draws
from bench.entries.judges import ACCURACY, PSEUDO_LIKELIHOOD, RECONSTRUCTION
from bench.entries.record import Entry

EPOCHS, RATE, BATCH = 10, 0.05, 100
SIGNS = {"nonneg_codebook": True, "nonneg_sources": True, "fit_bias": False, "link": "identity"}

NETWORKS = (
    Entry(
        "MatrixFactorization", "non-negative, D = 100, 10 patterns", "own tol, nndsvd starts",
        draws.parts(100, 10), RECONSTRUCTION,
        {"n_components": 10, **SIGNS, "init": "nndsvd", "random_state": 0},
        "sklearn.decomposition:NMF", {"n_components": 10, "init": "nndsvd", "random_state": 0},
        (4_000, 8_000, 16_000),
    ),
    Entry(
        "RBM", "144 bits, 64 units, float32",
        f"{EPOCHS} epochs, batches of {BATCH}, persistent chains, mean rate",
        draws.digits(), PSEUDO_LIKELIHOOD,
        {"n_components": 64, "persistent": True, "momentum": 0.0, "l2": 0.0, "random_state": 0,
         # ours falls to zero straight
         "learning_rate": 2 * RATE, "batch_size": BATCH, "max_epochs": EPOCHS},
        "sklearn.neural_network:BernoulliRBM",
        {"n_components": 64, "learning_rate": RATE, "batch_size": BATCH, "n_iter": EPOCHS,
         "random_state": 0},
    ),
    Entry(
        "DeepFactorNetwork", "144 columns, layers of 30 and 15, 10 classes",
        "own defaults, layers and back-propagation", draws.digits(), ACCURACY,
        {"hidden": (30, 15), "random_state": 0}, sizes=(1_000, 2_000, 4_000),
    ),
    Entry(
        "DeepBeliefNetwork", "144 bits, layers of 64, 64 and 128, 10 classes",
        f"{EPOCHS} epochs of a layer, of the top and of up-down", draws.digits(), ACCURACY,
        {"hidden": (64, 64, 128), "max_epochs": EPOCHS, "chain_epochs": EPOCHS,
         "fine_tune_epochs": EPOCHS, "batch_size": BATCH, "random_state": 0},
        sizes=(2_500, 5_000, 10_000),
    ),
)  # fmt: skip
