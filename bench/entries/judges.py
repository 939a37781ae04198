"""How good a fit is, by the same code for every library."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.linalg import eigh, subspace_angles

from bench.entries.record import Data, Judge
from bench.factor_fa import log_likelihood as factor_likelihood
from bench.kernel_fits import span
from bench.peers import Result, log_likelihood
from bench.problems import Array
from bench.topic_data import completion, halves

LIKELIHOOD = "log-likelihood per row"


# ------------------------------------------------ densities


def mixture_likelihood(kind: str) -> Judge:
    """Of the rows, from weights, means and covariances; ``kind`` of covariance."""

    def of(model: Any, data: Data) -> float:
        parts = (model.weights_, model.means_, model.covariances_)
        return log_likelihood(Result(*parts, int(model.n_iter_)), data.X, kind)

    return Judge(LIKELIHOOD, of)


def _factor_likelihood(model: Any, data: Data) -> float:
    noise = np.broadcast_to(model.noise_variance_, model.mean_.shape)
    moments = data.X.mean(axis=0), np.cov(data.X, rowvar=False, bias=True)
    return factor_likelihood(model.mean_, model.components_, noise, *moments)


FACTOR_LIKELIHOOD = Judge(LIKELIHOOD, _factor_likelihood)
# of the model's own scores: only where there is no peer to compare with
UNSEEN = Judge(f"{LIKELIHOOD}, unseen", lambda model, data: float(model.score(data.test)))
SCORE = Judge("mean log score, unseen", UNSEEN.of)


def _pseudo_likelihood(model: Any, data: Data) -> float:
    """Mean over rows of the sum over bits of ln p(bit | the other bits)."""
    visible, hidden = (
        getattr(model, f"{side}_bias_", getattr(model, f"intercept_{side}_", None))
        for side in ("visible", "hidden")
    )
    W, V = np.asarray(model.components_, float), np.asarray(data.test, float)
    inputs = V @ W.T + hidden
    total = 0.0
    for i in range(V.shape[1]):
        turned = inputs + (1 - 2 * V[:, [i]]) * W[:, i]
        gain = np.logaddexp(0, inputs).sum(axis=1) - np.logaddexp(0, turned).sum(axis=1)
        gain -= (1 - 2 * V[:, i]) * visible[i]
        total -= float(np.logaddexp(0, -gain).mean())
    return total


PSEUDO_LIKELIHOOD = Judge("pseudo-log-likelihood of unseen rows", _pseudo_likelihood)


# ------------------------------------------------ groups and classes


def _inertia(model: Any, data: Data) -> float:
    from sklearn.metrics import pairwise_distances_argmin_min

    nearest = pairwise_distances_argmin_min(data.X, model.cluster_centers_)[1]
    return float((nearest**2).mean())


INERTIA = Judge("squared distance to the centre", _inertia, up=False)
ACCURACY = Judge(
    "accuracy, unseen", lambda model, data: float((model.predict(data.test) == data.test_y).mean())
)


def _chosen(model: Any, data: Data) -> float:
    best = model.best_estimator_
    return mixture_likelihood("full").of(best, data)


CHOSEN = Judge(LIKELIHOOD, _chosen)


def _r2(model: Any, data: Data) -> float:
    from sklearn.metrics import r2_score

    return float(r2_score(data.test_y, np.reshape(model.predict(data.test), data.test_y.shape)))


R2 = Judge("R2, unseen", _r2)


# ------------------------------------------------ axes


def _axes_error(model: Any, data: Data) -> float:
    exact = eigh(np.cov(data.X, rowvar=False))[1][:, -len(model.components_) :]
    return float(subspace_angles(np.asarray(model.components_, float).T, exact).max())


def _crosstalk(model: Any, data: Data) -> float:
    """Mean share of a found source that is not its own: Amari's index of unmixing times mixing."""
    gains = np.abs(model.components_ @ data.test)
    d = len(gains)
    rows = (gains / gains.max(axis=1, keepdims=True)).sum(axis=1) - 1
    columns = (gains / gains.max(axis=0)).sum(axis=0) - 1
    return float((rows.sum() + columns.sum()) / (2 * d * (d - 1)))


CROSSTALK = Judge("crosstalk of sources", _crosstalk, up=False)
AXES = Judge("angle to the exact axes, rad", _axes_error, up=False)


def kernel_residual(gamma: float) -> Judge:
    """|G V - V V'G V| / |G V|: by how much the scores are no eigenvectors of the rbf kernel."""

    def of(model: Any, data: Data) -> float:
        from sklearn.metrics.pairwise import rbf_kernel
        from sklearn.preprocessing import KernelCenterer

        V = span(model, data.X)
        GV = KernelCenterer().fit_transform(rbf_kernel(data.X, gamma=gamma)) @ V
        return float(np.linalg.norm(GV - V @ (V.T @ GV)) / np.linalg.norm(GV))

    return Judge("residual of the eigenvectors", of, up=False)


def _correlation(model: Any, data: Data) -> float:
    first, second = (np.asarray(z) for z in model.transform(data.test, data.test_y))
    pairs = zip(first.T, second.T, strict=True)
    return float(np.mean([abs(np.corrcoef(a, b)[0, 1]) for a, b in pairs]))


CORRELATION = Judge("mean correlation of unseen pairs", _correlation)


# ------------------------------------------------ topics and codes


def _normalised(parts: Array) -> Array:
    return np.asarray(parts / np.maximum(parts.sum(axis=1, keepdims=True), np.finfo(float).tiny))


def _completed(model: Any, data: Data) -> float:
    given, asked = halves(data.test)
    return completion(model.transform(given), _normalised(model.components_), asked)


def _folded_in(model: Any, data: Data) -> float:
    # NMF leaves the size of a topic in its row; of pLSI it is 1
    shares = model.transform(data.X) * model.components_.sum(axis=1)
    return completion(_normalised(shares), _normalised(model.components_), data.X)


PERPLEXITY = Judge("perplexity of unseen halves", _completed, up=False)
TRAINING_PERPLEXITY = Judge("perplexity of the rows", _folded_in, up=False)


def _reconstruction(model: Any, data: Data) -> float:
    codes = np.asarray(model.transform(data.X))
    return float(np.linalg.norm(data.X - codes @ model.components_) / np.linalg.norm(data.X))


RECONSTRUCTION = Judge("relative error of the rows", _reconstruction, up=False)
