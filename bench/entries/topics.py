"""Topic models, on sparse counts of words."""

from __future__ import annotations

from bench.entries import draws
from bench.entries.judges import PERPLEXITY, TRAINING_PERPLEXITY
from bench.entries.record import Entry

PASSES, SIZE = 20, 20
UPDATES = 50  # of both factors of NMF, one after the other: each is a pass over the counts
DOCUMENTS = draws.texts(2000, SIZE, 60)
COUNT = {"sizes": (500, 1_000, 2_000), "quick": (150, 300)}
SEEDED = {"n_components": SIZE, "tol": 0.0, "random_state": 0}
PROBLEM = f"2,000 words, 60 to a document, {SIZE} topics"

TOPICS = (
    Entry(
        "LatentDirichletAllocation", PROBLEM, f"{PASSES} passes (ours: and the start by pLSI)",
        DOCUMENTS, PERPLEXITY, {**SEEDED, "max_iter": PASSES},
        "sklearn.decomposition:LatentDirichletAllocation",
        {"n_components": SIZE, "max_iter": PASSES, "learning_method": "batch", "random_state": 0,
         "n_jobs": 1}, **COUNT,
    ),
    Entry(
        "PLSI", PROBLEM, f"{2 * UPDATES} passes over the counts, each from random topics",
        DOCUMENTS, TRAINING_PERPLEXITY, {**SEEDED, "max_iter": 2 * UPDATES},
        "sklearn.decomposition:NMF",
        {**SEEDED, "max_iter": UPDATES, "init": "random", "solver": "mu",
         "beta_loss": "kullback-leibler"}, **COUNT, remark="KL, mu",
    ),
    Entry(
        "PCP", f"{PROBLEM}, 40 clusters", f"{PASSES} passes and the start", DOCUMENTS,
        PERPLEXITY, {**SEEDED, "n_clusters": 40, "max_iter": PASSES}, **COUNT,
    ),
)  # fmt: skip
