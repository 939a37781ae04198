"""Remedies of messages, one row each: how to get the message, and how to do what it says.

A row names a piece of the message as it stands in the source. The last test looks for messages of
``src`` with a remedy (an imperative and a piece of code) that no row names: a new message needs a
row. ``WITHOUT_ROW`` counts those of before, by module; a number may only fall.
"""

from __future__ import annotations

import ast
import re
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from matplotlib.figure import Figure
from scipy import sparse
from sklearn.base import clone
from sklearn.decomposition import FastICA
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import GaussianMixture as TheirMixture
from sklearn.model_selection import GridSearchCV

import mixfold as m
from mixfold import distributions, metrics, plots, processes
from mixfold.cli import main
from mixfold.engine.random import RowKeys, seed_from
from mixfold.engine.sources import open_source
from mixfold.estimators.mixtures.family_choice import make_family
from mixfold.families.exponential import Beta, GammaShape, VonMises
from mixfold.families.exponential.wishart import Wishart
from mixfold.families.factor import TiedLoadings
from mixfold.families.factor.bayes import BayesFactors
from mixfold.math.codebooks import RowRule, solve_codebook
from mixfold.math.expected_kernels import expected_kernel
from mixfold.math.kernels import CosineKernel, RbfKernel

SRC = Path(m.__file__).parent
RNG = np.random.default_rng(0)
X = np.vstack([RNG.normal(0, 1, (40, 3)), RNG.normal(6, 1, (40, 3))])
Y = np.repeat([0, 1], 40)
T = X @ [[1.0, 0], [0, 1.0], [1.0, -1.0]] + 0.1 * RNG.normal(size=(80, 2))
HOLED = np.where(RNG.random(X.shape) < 0.05, np.nan, X)
HOLED[0, 0], HOLED[0, 1] = np.nan, 0.0
COUNTS = RNG.poisson(3, (80, 3)).astype(float)
WEIGHT = np.r_[2.0, np.ones(79)]
FEW = np.r_[0, np.full(78, -1), 1]
POSITIVE = np.abs(X) + 0.1
INSIDE = POSITIVE / (1 + POSITIVE.max())
_OWN = np.random.default_rng(1)
_ROOTS = _OWN.normal(size=(80, 2, 4))
MATRICES = (_ROOTS @ _ROOTS.transpose(0, 2, 1))[:, *np.tril_indices(2)]
HEAVY = _OWN.laplace(size=(400, 3)) @ _OWN.normal(size=(3, 3))
HEAVY[0, 0] = np.nan
WORDS = {"size": X[:, 0], "kind": np.where(Y, "a", "b")}
SKEWED = {"fee": np.exp(1.5 * X[:40, 0])}
GRADES = {"grade": list("abcab") * 10}
Call = Callable[[], Any]


def KEPT() -> Any:
    """A schema from a file, without the table that it was made of."""
    return m.Schema.from_text(m.Schema.infer(WORDS).to_text())


def REDUNDANT() -> Any:
    """A model of a table whose last column is the sum of the others."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        table = np.column_stack([X, X.sum(axis=1)])
        return m.MixtureOfPPCA(2, 1, random_state=0).fit(table)


@dataclass(frozen=True)
class Row:
    """``piece`` of a message, a call that ends in it, and calls that do what it says."""

    piece: str
    provoke: Call
    follow: tuple[Call, ...]


def row(piece: str, provoke: Call, *follow: Call) -> Row:
    return Row(piece, provoke, follow)


def fit(name: str, *args: Any, rows: Any = X, y: Any = None, **settings: Any) -> Call:
    """A call that fits an estimator."""
    weight = settings.pop("sample_weight", None)
    given = {} if weight is None else {"sample_weight": weight}
    return lambda: getattr(m, name)(*args, **settings).fit(rows, y, **given)


def known_part(inference: str) -> Any:
    """A mixture for a table with two columns whose covariance is known."""
    parts, options = {"known": [0, 1], "bernoulli": [2]}, {"known": {"covariance": 1.0}}
    rows = np.column_stack([X[:, :2], Y])
    return m.Mixture(
        parts, 2, inference=inference, family_options=options, random_state=0
    ).fit(rows)  # fmt: skip


def chain(**settings: Any) -> dict[str, Any]:
    """A sampler that ends soon."""
    return {"n_components": 2, "n_draws": 20, "burn_in": 20, "n_chains": 2, "random_state": 0,
            **settings}  # fmt: skip


def small(**settings: Any) -> dict[str, Any]:
    return {"hidden": (4, 2), "max_epochs": 1, "random_state": 0, **settings}


def factorise(**settings: Any) -> dict[str, Any]:
    return {"n_components": 2, "random_state": 0, "tol": 1e-2, **settings}


def table_of_latents(name: str, y: Any = None) -> Any:
    model = getattr(m, name)(2, 1, random_state=0).fit(X, y)
    return model.set_output(transform="pandas")


def then(model: Any, ask: Callable[[Any], Any]) -> Any:
    return ask(model)


def positive(**settings: Any) -> Call:
    return fit("MatrixFactorization", rows=POSITIVE, **factorise(**settings))


def by_loss(loss: Any = 1, rows: Any = POSITIVE, y: Any = None, **settings: Any) -> Call:
    signs = {"link": "identity", "nonneg_codebook": True, "nonneg_sources": True}
    return fit(
        "MatrixFactorization", rows=rows, y=y, **factorise(**{**signs, **settings}, loss=loss)
    )


def per_component(model: Any) -> Any:
    return model.transform(X, per_component=True)


def as_arrays(model: Any) -> Any:
    return per_component(model.set_output(transform="default"))


def risk(probabilities: Any, latents: Any) -> Any:
    model = m.MixtureOfPPCA(2, 1, random_state=0).fit(X)
    return metrics.reduction_risk(probabilities(model), latents(model), model.latent_covariances_)


def learned(K: int = 2, n_factors: Any = None, *, rows: Any = X, **settings: Any) -> Call:
    """A fit that learns its number of factors."""
    settings = {"inference": "vb", "random_state": 0, "merge_split": False, **settings}
    return fit("MixtureOfPPCA", K, n_factors, rows=rows, **settings)


# tables with draws of their own: how many factors are found in them depends on the draws
_OWN = np.random.default_rng(0)
WIDE = _OWN.normal(size=(300, 26)) @ _OWN.normal(size=(26, 40))
WIDE += 0.1 * _OWN.normal(size=WIDE.shape)
WIDE[0, 0] = np.nan
_OWN = np.random.default_rng(1)
CROWDED = _OWN.normal(size=(300, 28)) @ _OWN.normal(size=(28, 30))
CROWDED += 0.01 * _OWN.normal(size=CROWDED.shape)
CROWDED[0, 0] = np.nan
FACTORS = [
    row("lower n_factors", fit("MixtureOfPPCA", 2, 4), fit("MixtureOfPPCA", 2, 2, random_state=0)),
    row("n_factors or give more rows", fit("MixtureOfPPCA", 1, 3, rows=X[:3]),
        fit("MixtureOfPPCA", 1, 1, rows=X[:3], noise_floor=1e-2),
        fit("MixtureOfPPCA", 1, 3, rows=X, random_state=0)),
    row("that of the prior: give both or neither", lambda: VonMises(concentration=2.0),
        fit("Mixture", VonMises(direction=1.0, concentration=2.0), 2, rows=X[:, :2],
            random_state=0),
        fit("Mixture", VonMises(), 2, rows=X[:, :2], random_state=0)),
    row("give both or neither, got a={} and b={}",
        lambda: Beta(a=2.0),
        fit("Mixture", Beta(a=2.0, b=3.0), 2, rows=INSIDE, random_state=0),
        fit("Mixture", Beta(), 2, rows=INSIDE, random_state=0)),
    row("give both or neither, got shape={} and rate={}",
        lambda: GammaShape(shape=2.0),
        fit("Mixture", GammaShape(shape=2.0, rate=3.0), 2, rows=POSITIVE, random_state=0),
        fit("Mixture", GammaShape(), 2, rows=POSITIVE, random_state=0)),
    row("give both or neither, got degrees={} and mean={}",
        lambda: Wishart(degrees=5.0),
        fit("Mixture", Wishart(degrees=5.0, mean=np.eye(2)), 2, rows=MATRICES, random_state=0),
        fit("Mixture", Wishart(), 2, rows=MATRICES, random_state=0)),
    row("Make them by W[:, i, j] with i, j = np.tril_indices(d)",
        fit("Mixture", "wishart", 2, rows=MATRICES[:, :2]),
        fit("Mixture", "wishart", 2, rows=MATRICES, random_state=0)),
    row("is learned, which needs inference='vb'; got inference='em'. Give a number, or use",
        fit("MixtureOfPPCA", 2, None), fit("MixtureOfPPCA", 2, 1, random_state=0),
        fit("MixtureOfPPCA", 2, None, inference="vb", random_state=0)),
    row("how many each uses; got {}. Give one number, or None",
        fit("MixtureOfPPCA", 2, [1, 2], inference="vb"),
        fit("MixtureOfPPCA", 2, 2, inference="vb", random_state=0),
        fit("MixtureOfPPCA", 2, None, inference="vb", random_state=0)),
    row("Use inference='vb' for a prior of the weights",
        fit("MixtureOfPPCA", 2, weights="dirichlet"), learned(weights="dirichlet")),
    row("by inference='em' there is none, got ",
        fit("MixtureOfPPCA", 2, prior={"noise_shape": 1.0}),
        fit("MixtureOfPPCA", 2, random_state=0), learned(prior={"noise_shape": 1.0})),
    row("Leave 'loadings' out, or use inference='em'", learned(tied=("loadings",)), learned(),
        fit("MixtureOfPPCA", 2, tied=("loadings",), random_state=0)),
    row("leave 'loadings' out of tied",
        lambda: BayesFactors(loadings=TiedLoadings()), BayesFactors),
    row("merged and split during the fit. Set merge_starts=False",
        fit("MixtureOfPPCA", 2, 1, inference="vb", merge_starts=True, random_state=0),
        fit("MixtureOfPPCA", 2, 1, inference="vb", merge_starts=False, random_state=0)),
    row("which inference='vb' does not offer; use 'auto' or 'squarem'",
        learned(acceleration="quasi-newton"), learned(), learned(acceleration="squarem")),
    row("or it is no prior; got ", learned(prior={"relevance_rate": 0.0}), learned()),
    row("Leave loadings_prior out, or give n_components as a number",
        fit("PPCA", "ard", loadings_prior=1.0), fit("PPCA", "ard"),
        fit("PPCA", 1, loadings_prior=1.0)),
    row("which n_components='ard' does not offer; use 'auto' or 'squarem'",
        fit("FactorAnalysis", "ard", acceleration="quasi-newton"), fit("FactorAnalysis", "ard"),
        fit("FactorAnalysis", "ard", acceleration="squarem")),
    row("has no closed form; got solver={}. Use solver='auto' or 'em'",
        fit("PPCA", "ard", solver="gram"), fit("PPCA", "ard"), fit("PPCA", "ard", solver="em")),
    row("Use center=True, or loadings_prior='ard' with a whole number",
        fit("PPCA", "ard", center=False), fit("PPCA", "ard"),
        fit("PPCA", 2, center=False, loadings_prior="ard")),
    row("with loadings_prior or noise_prior give a whole number or None, or use",
        fit("PPCA", "bic", loadings_prior="ard"), fit("PPCA", 2, loadings_prior="ard"),
        fit("PPCA", loadings_prior="ard"), fit("PPCA", "ard")),
    row("is of a noise that is learned, and input_noise={} is kept; leave one of them out",
        fit("SupervisedPPCA", 2, y=Y, noise_prior=(1, 1), input_noise=0.1),
        fit("SupervisedPPCA", 2, y=Y, noise_prior=(1, 1)),
        fit("SupervisedPPCA", 2, y=Y, input_noise=0.1)),
    row("leave loadings_prior and noise_prior out, or set label_solver='em'",
        fit("MixtureOfFactorModels", 1, 1, y=Y, loadings_prior=1.0, label_solver="gradient"),
        fit("MixtureOfFactorModels", 1, 1, y=Y, label_solver="gradient"),
        fit("MixtureOfFactorModels", 1, 1, y=Y, loadings_prior=1.0)),
    row("Set n_factors=1 or more",
        fit("MixtureOfFactorModels", 1, 0, y=Y, discriminant="curved"),
        fit("MixtureOfFactorModels", 1, 1, y=Y, discriminant="curved")),
    row("whose discriminant is straight",
        fit("MixtureOfFactorModels", 1, 1, y=Y, discriminant="curved", label_solver="gradient"),
        fit("MixtureOfFactorModels", 1, 1, y=Y, discriminant="curved", label_solver="em")),
    row("columns; give one number, or one for each column",
        learned(prior={"noise_variance": [0.1, 0.2]}), learned(prior={"noise_variance": 0.1}),
        learned(prior={"noise_variance": [0.1, 0.2, 0.1]})),
    row("as many leave nothing to the noise. Lower it, or use n_factors=None",
        learned(n_factors=3), learned(n_factors=2), learned()),
    row("set n_factors to a number above ", learned(1, rows=WIDE), learned(1, 28, rows=WIDE)),
    row("and n_features = {}; lower n_components", fit("PPCA", 4), fit("PPCA", 3)),
    row("give n_components as a number, or scale the columns",
        fit("PPCA", "ard", rows=CROWDED), fit("PPCA", 28, rows=CROWDED)),
    row("use 'bic', a share of the ", fit("PPCA", "mle", rows=HOLED),
        fit("PPCA", "bic", rows=HOLED), fit("PPCA", 0.9, rows=HOLED), fit("PPCA", 2, rows=HOLED)),
    row("use solver='auto' or 'em'", fit("PPCA", 2, solver="covariance", rows=HOLED),
        fit("PPCA", 2, solver="auto", rows=HOLED), fit("PPCA", 2, solver="em", rows=HOLED)),
    row("Use PPCA or MixtureOfPPCA, or ",
        fit("MixtureClassifier", m.GaussianMixture(), decision="reconstruction", y=Y),
        fit("MixtureClassifier", m.PPCA(1), decision="reconstruction", y=Y),
        fit("MixtureClassifier", m.MixtureOfPPCA(2, 1), decision="reconstruction", y=Y),
        fit("MixtureClassifier", m.GaussianMixture(), decision="bayes", y=Y)),
    row("Leave priors out, or use decision='bayes'",
        fit("MixtureClassifier", m.PPCA(1), decision="reconstruction", priors=[0.5, 0.5], y=Y),
        fit("MixtureClassifier", m.PPCA(1), decision="reconstruction", y=Y),
        fit("MixtureClassifier", m.PPCA(1), priors=[0.5, 0.5], y=Y)),
    row("every row would lie on every plane; lower n_components", fit("KSubspaces", 2, 3),
        fit("KSubspaces", 2, 2, random_state=0)),
    row("Reduce them first, by PPCA(n_components, ",
        fit("KSubspaces", rows=np.ones((4, 2001))),
        lambda: m.KSubspaces(1).fit(m.PPCA(2, scale="scores").fit_transform(X)),
        fit("MixtureOfPPCA", 2, 1, random_state=0)),
    row("or use MixtureOfPPCA, which needs none", fit("KSubspaces", rows=HOLED),
        lambda: m.KSubspaces(1).fit(m.PPCA(1).fit(HOLED).impute(HOLED)),
        fit("MixtureOfPPCA", 2, 1, rows=HOLED, random_state=0)),
    row("Lower n_basis or raise ", fit("GTM", 1, n_points=3, n_basis=4),
        fit("GTM", 1, n_points=3, n_basis=3), fit("GTM", 1, n_points=4, n_basis=4)),
    row("space around it. Lower n_components", fit("GTM", 3, rows=X[:, :2]),
        fit("GTM", 2, rows=X[:, :2], n_points=4, n_basis=3)),
    row("and the limit is {}; lower n_points", fit("GTM", 2, n_points=101),
        fit("GTM", 2, n_points=5)),
    row("set_params(scale='latent', whiten=None) first",
        lambda: then(m.PPCA(2, scale="white").fit(X), lambda f: f.transform(X, return_cov=True)),
        lambda: then(m.PPCA(2, scale="white").fit(X).set_params(scale="latent"),
                     lambda f: f.transform(X, return_cov=True))),
    row("give one of the two", fit("PPCA", 2, scale="scores", whiten=True),
        fit("PPCA", 2, scale="scores"), fit("PPCA", 2, whiten=True)),
    row("call set_output(transform='default') first",
        lambda: per_component(table_of_latents("MixtureOfPPCA")),
        lambda: as_arrays(table_of_latents("MixtureOfPPCA")),
        lambda: as_arrays(table_of_latents("SupervisedMixtureOfPPCA", T))),
]  # fmt: skip

KERNELS = [
    row("put them side by side, np.column_stack(",
        lambda: m.KernelCCA(1).fit(X, (T[:, 0], T[:, 1])),
        fit("KernelCCA", 1, y=np.column_stack((T[:, 0], T[:, 1])))),
    row("Leave landmarks=None for a solver", fit("KernelPCA", 2, landmarks=10, solver="dense"),
        fit("KernelPCA", 2, landmarks=None, solver="dense"),
        fit("KernelPCA", 2, landmarks=10, solver="primal", random_state=0)),
    row("give forgetting=1.0",
        lambda: m.KernelPCA(2, forgetting=0.9).partial_fit(X).partial_fit(X),
        lambda: m.KernelPCA(2, forgetting=1.0).partial_fit(X).partial_fit(X),
        lambda: m.KernelPCA(2, landmarks=10, forgetting=0.9, random_state=0).partial_fit(X)),
    row("a number, or kernel='rbf'", fit("KernelPCA", 2, kernel="poly", gamma="learn"),
        fit("KernelPCA", 2, kernel="poly", gamma=0.5),
        fit("KernelPCA", 2, kernel="rbf", gamma="learn", random_state=0)),
    row("reduce the columns first, by mixfold.PPCA(100), say",
        fit("KernelPCA", 2, gamma="learn", rows=RNG.normal(size=(110, 2001))),
        lambda: then(m.PPCA(100, random_state=0).fit_transform(RNG.normal(size=(110, 2001))),
                     m.KernelPCA(2, gamma="learn", random_state=0).fit)),
    row("Give gamma and n_components numbers", fit("KernelPCA", "learn", rows=X[:10]),
        fit("KernelPCA", 2, gamma=0.5, rows=X[:10])),
    row("begin with fit, by a batch that is typical",
        lambda: m.KernelPCA(2, gamma="learn", random_state=0).partial_fit(X),
        lambda: m.KernelPCA(2, gamma="learn", random_state=0).fit(X[::2]).partial_fit(X[1::2])),
    row("and give missing='refuse'", fit("KernelPCA", 2, kernel="cosine", missing="expected"),
        fit("KernelPCA", 2, kernel="rbf", missing="expected", rows=HOLED),
        fit("KernelPCA", 2, kernel="poly", missing="expected", rows=HOLED),
        fit("KernelPCA", 2, kernel="linear", missing="expected", rows=HOLED),
        lambda: m.KernelPCA(2, kernel="cosine", missing="refuse").fit(
            m.PPCA(2).fit(HOLED).impute(HOLED))),
    row("use landmarks=None and another solver than 'primal'",
        fit("KernelPCA", 2, missing="expected", landmarks=10),
        fit("KernelPCA", 2, missing="expected", landmarks=None, rows=HOLED)),
    row("use X.toarray(), or missing='refuse'",
        fit("KernelPCA", 2, missing="expected", rows=sparse.csr_array(X)),
        fit("KernelPCA", 2, missing="expected", rows=sparse.csr_array(X).toarray()),
        fit("KernelPCA", 2, missing="refuse", rows=sparse.csr_array(X))),
    row("use kernel='rbf', 'poly' or 'linear', or fill what is missing",
        lambda: expected_kernel(CosineKernel(), np.zeros(2), np.eye(2)),
        lambda: expected_kernel(RbfKernel(1.0), np.zeros(2), np.eye(2))),
    row("choose solver='auto', or set ", fit("KernelCCA", 1, kernel="rbf", solver="primal", y=T),
        fit("KernelCCA", 1, kernel="rbf", solver="auto", y=T),
        fit("KernelCCA", 1, kernel="rbf", landmarks=10, y=T, random_state=0)),
    row("use form='max', or a smaller beta", fit("MORP", 1, form="inverse", beta=1.0, y=T),
        fit("MORP", 1, form="max", beta=1.0, y=T)),
    row("use form='max', or a kernel with more features", fit("MORP", 1, form="inverse", beta=0.5,
        y=RNG.normal(size=(80, 2))), fit("MORP", 1, form="max", beta=0.5, y=T)),
    row("loss='rank' for grades", fit("MORP", 1, loss="hinge", y=T),
        fit("MORP", 1, loss="squared", y=T), fit("MORP", 1, loss="rank", y=T[:, 0].round() // 4)),
    row("Use loss='squared', or round y to fewer", fit("MORP", 1, loss="rank", y=T),
        fit("MORP", 1, loss="squared", y=T), fit("MORP", 1, loss="rank", y=T.round() // 4)),
    row("use loss='squared' for others", fit("MORP", 1, loss="hinge", output_kernel="rbf", y=Y),
        fit("MORP", 1, loss="squared", output_kernel="rbf", y=Y)),
    row("give beta a number, which scikit-learn's", fit("MORP", 1, loss="hinge", beta="cv", y=Y),
        lambda: GridSearchCV(m.MORP(1, loss="hinge", task="classification"),
                             {"beta": [0.2, 0.8]}, cv=2).fit(X, Y)),
    row("use decision_function", lambda: m.MORP(1).fit(X, Y).predict_proba(X),
        lambda: m.MORP(1).fit(X, Y).decision_function(X),
        lambda: m.MORP(1, loss="logistic").fit(X, Y).predict_proba(X)),
    row("or (G + G.T) / 2",
        fit("KernelPCA", 1, kernel="precomputed", rows=X @ X.T + np.eye(80, k=1)),
        lambda: then(X @ X.T + np.eye(80, k=1),
                     lambda G: m.KernelPCA(1, kernel="precomputed").fit((G + G.T) / 2))),
    row("for example by mixfold.PPCA(n_components).fit(X).impute(X)",
        fit("KernelPCA", 2, rows=HOLED),
        lambda: m.KernelPCA(2).fit(m.PPCA(2).fit(HOLED).impute(HOLED))),
    row("use output_kernel='linear'",
        lambda: m.MORP(1, output_kernel="rbf").fit(X, np.where(np.arange(80)[:, None] % 2 ==
                                                               [0, 1], np.nan, T)),
        lambda: m.MORP(1, output_kernel="linear").fit(X, np.where(np.arange(80)[:, None] % 2 ==
                                                                  [0, 1], np.nan, T))),
    row("Use kernel=None for that",
        lambda: m.SupervisedPPCA(1, kernel="rbf").fit(X, T).impute(HOLED),
        lambda: m.SupervisedPPCA(1, kernel=None).fit(X, T).impute(HOLED)),
]  # fmt: skip

MIXTURES = [
    row("Lower n_clusters or give more rows", fit("KMeans", 81),
        fit("KMeans", 5, random_state=0)),
    row("Repeat the row, or use inference='vb'",
        lambda: m.Mixture("diag", **chain(inference="gibbs")).fit(X, sample_weight=WEIGHT),
        lambda: m.Mixture("diag", 2, inference="vb", random_state=0).fit(X, sample_weight=WEIGHT)),
    row("Set them on the object, and leave family_options out",
        lambda: m.Mixture(family_of("poisson"), 2, family_options={"a": 1}).fit(COUNTS),
        lambda: m.Mixture(family_of("poisson"), 2, random_state=0).fit(COUNTS)),
    row("Leave it out, or use inference='vb' or prior='default'",
        fit("Mixture", "diag", 2, batch_size=20), fit("Mixture", "diag", 2, random_state=0),
        fit("Mixture", "diag", 2, batch_size=20, inference="vb", random_state=0),
        fit("Mixture", "diag", 2, batch_size=20, prior="default", random_state=0)),
    row("use inference='vb' for partial_fit",
        lambda: m.Mixture("diag", **chain(inference="gibbs")).partial_fit(X),
        lambda: m.Mixture("diag", 2, inference="vb", random_state=0).partial_fit(X)),
    row("Raise burn_in and n_draws",
        lambda: m.Mixture("diag", **chain(inference="gibbs", n_draws=4, burn_in=0)).fit(X),
        lambda: m.Mixture("diag", **chain(inference="gibbs", n_draws=400, burn_in=200)).fit(X)),
    row("Leave it out, or use 'vb'",
        fit("Mixture", "diag", 2, prior="default", learn_prior=True),
        fit("Mixture", "diag", 2, inference="vb", learn_prior=True, random_state=0),
        fit("Mixture", "diag", 2, prior="default", random_state=0)),
    row("use n_components >= 2 or leave learn_prior out",
        fit("Mixture", "diag", 1, inference="vb", learn_prior=True),
        fit("Mixture", "diag", 2, inference="vb", learn_prior=True, random_state=0),
        fit("Mixture", "diag", 1, inference="vb", random_state=0)),
    row("Use inference='gibbs', which draws the missing entries, or the family 'diag'",
        lambda: m.Mixture("full", **chain(inference="collapsed")).fit(HOLED),
        lambda: m.Mixture("full", **chain(inference="gibbs", n_draws=200)).fit(HOLED),
        lambda: m.Mixture("diag", **chain(inference="collapsed", n_draws=100)).fit(HOLED)),
    row("Lower {} or give more rows of positive weight",
        fit("GaussianMixture", 90), fit("GaussianMixture", 2, random_state=0)),
    row("Exchange them, or raise n_components of large",
        lambda: m.bootstrap_lrt(m.GaussianMixture(2), m.GaussianMixture(1), X, n_bootstrap=2),
        lambda: m.bootstrap_lrt(m.GaussianMixture(1), m.GaussianMixture(2), X, n_bootstrap=2,
                                random_state=0)),
    row("which has no rows; give a table of shape",
        lambda: m.MixtureSearch(m.GaussianMixture(), n_components=1, cv=2).fit(5.0),
        lambda: m.MixtureSearch(m.GaussianMixture(), n_components=1, cv=2, random_state=0).fit(X)),
    row("give document_concentration=None, or ",
        fit("PCP", 2, 2, rows=COUNTS, inference="mean_field", document_concentration=2.0),
        fit("PCP", 2, 2, rows=COUNTS, inference="mean_field", document_concentration=None,
            random_state=0),
        fit("PCP", 2, 2, rows=COUNTS, inference="structured", document_concentration=2.0,
            random_state=0)),
    row("alpha='learn' needs n_clusters of 2 or more, got n_clusters=1",
        fit("PCP", 2, 1, rows=COUNTS, alpha="learn"),
        fit("PCP", 2, 1, rows=COUNTS, alpha=1.0, random_state=0),
        fit("PCP", 2, 2, rows=COUNTS, alpha="learn", random_state=0)),
    row("sample_weight or X by a constant",
        lambda: m.LatentDirichletAllocation(2).fit(
            COUNTS, sample_weight=np.full(len(COUNTS), 1e60)),
        lambda: m.LatentDirichletAllocation(2, random_state=0, max_iter=50).fit(
            COUNTS, sample_weight=np.full(len(COUNTS), 1e3))),
    row("tokens of all documents can tell apart",
        fit("PLSI", 10**9, rows=COUNTS),
        fit("PLSI", 3, rows=COUNTS, random_state=0)),
    row("divide sample_weight by a constant, so that it counts rows",
        lambda: m.bootstrap_lrt(m.GaussianMixture(1), m.GaussianMixture(2), X, n_bootstrap=2,
                                sample_weight=np.full(len(X), 1e12)),
        lambda: m.bootstrap_lrt(m.GaussianMixture(1), m.GaussianMixture(2), X, n_bootstrap=2,
                                sample_weight=np.full(len(X), 1.0), random_state=0)),
    row("Use inference='em' or GaussianMixture, or compare bounds",
        lambda: m.bootstrap_lrt(m.Mixture("diag", 1, inference="vb"), m.GaussianMixture(2), X),
        lambda: m.bootstrap_lrt(m.Mixture("diag", 1), m.Mixture("diag", 2), X, n_bootstrap=2,
                                random_state=0)),
    row("use fit, or novelty=None",
        lambda: m.MixtureClassifier(novelty=0.05).partial_fit(X, Y, classes=[0, 1]),
        lambda: m.MixtureClassifier(novelty=None).partial_fit(X, Y, classes=[0, 1]),
        lambda: m.MixtureClassifier(novelty=0.05).fit(X, Y)),
    row("or increase max_iter, tol, or check",
        fit("GaussianMixture", 2, max_iter=1, random_state=0, rows=X / 3),
        fit("GaussianMixture", 2, max_iter=100, random_state=0, rows=X / 3),
        fit("GaussianMixture", 2, max_iter=5, tol=10.0, random_state=0, rows=X / 3)),
    row("(numpy.unique with return_inverse)",
        fit("CategoricalMixture", 2, rows=np.c_[COUNTS[:, :1], np.arange(80) * 1e9]),
        lambda: m.CategoricalMixture(2, random_state=0).fit(np.c_[
            COUNTS[:, 0], np.unique(np.arange(80) // 8 * 1e9, return_inverse=True)[1]])),
]  # fmt: skip

SEARCH = [
    row("or 'collapsed'. Leave learn_prior out",
        lambda: Beta().draw_prior(None, None, None, RNG),
        lambda: m.Mixture("beta", 2, random_state=0).fit(POSITIVE / 20)),
    row("set patience=None, or use criterion='bic'",
        lambda: m.MixtureSearch(m.GaussianMixture(), n_components=[1, 2], criterion="gap",
                                patience=1).fit(X),
        lambda: m.MixtureSearch(m.GaussianMixture(), n_components=[1, 2], criterion="gap",
                                n_references=2, random_state=0).fit(X)),
    row("leave out component_labels, or use criterion='bic'",
        lambda: m.MixtureSearch(m.GaussianMixture(), n_components=[2, 3], criterion="gap").fit(
            X, component_labels=Y),
        lambda: m.MixtureSearch(m.GaussianMixture(), n_components=[2, 3], random_state=0).fit(
            X, component_labels=Y)),
    row("use criterion='bic', or X.toarray()",
        lambda: m.MixtureSearch(m.PoissonMixture(), n_components=[1, 2], criterion="gap").fit(
            sparse.csr_array(COUNTS)),
        lambda: m.MixtureSearch(m.PoissonMixture(), n_components=[1, 2], random_state=0).fit(
            sparse.csr_array(COUNTS))),
    row("criterion='bic' or 'held-out', or a mixture",
        lambda: m.MixtureSearch(m.PPCA(), n_components=[1, 2], criterion="gap").fit(X),
        lambda: m.MixtureSearch(m.PPCA(), n_components=[1, 2], random_state=0).fit(X)),
    row("numbers with missing='expected', or learn them",
        lambda: m.KernelPCA(2, gamma="learn", missing="expected").fit(HOLED),
        lambda: m.KernelPCA(2, gamma=0.5, missing="expected").fit(HOLED)),
    row("of a component times the degrees of freedom",
        fit("Mixture", "full", 2, inference="vb", prior={"scatter": -np.eye(3)}),
        fit("Mixture", "full", 2, inference="vb", prior={"scatter": 4 * np.eye(3), "degrees": 4},
            random_state=0)),
    row("patience=None, or cv=None and criterion",
        lambda: m.MixtureSearch(n_components=[1, 2], patience=1, cv=2).fit(X),
        lambda: m.MixtureSearch(n_components=[1, 2], cv=2, random_state=0).fit(X),
        lambda: m.MixtureSearch(n_components=[1, 2], patience=1, random_state=0).fit(X)),
    row("the rows of X: give X, or leave it out",
        lambda: m.GaussianMixture(2, random_state=0).fit(X).combine(1, sample_weight=np.ones(80)),
        lambda: m.GaussianMixture(2, random_state=0).fit(X).combine(
            1, X=X, sample_weight=np.ones(80)),
        lambda: m.GaussianMixture(2, random_state=0).fit(X).combine(1)),
    row("not both: a threshold says how many clusters there are",
        lambda: m.GaussianMixture(2, random_state=0).fit(X).combine(2, threshold=0.1, X=X),
        lambda: m.GaussianMixture(2, random_state=0).fit(X).combine(2, X=X),
        lambda: m.GaussianMixture(2, random_state=0).fit(X).combine(threshold=0.1, X=X)),
    row("give combine the rows, X",
        lambda: m.MLiT(2, 1, random_state=0).fit(X).combine(1),
        lambda: m.MLiT(2, 1, random_state=0).fit(X).combine(1, X=X)),
    row("Fit more components, or ask for at most",
        lambda: m.GaussianMixture(2, random_state=0).fit(X).combine(3, X=X),
        lambda: m.GaussianMixture(3, random_state=0).fit(X).combine(3, X=X),
        lambda: m.GaussianMixture(2, random_state=0).fit(X).combine(2, X=X)),
    row("give X, or n_clusters or a",
        lambda: m.GaussianMixture(2, random_state=0).fit(X).combine(),
        lambda: m.GaussianMixture(2, random_state=0).fit(X).combine(X=X),
        lambda: m.GaussianMixture(2, random_state=0).fit(X).combine(threshold=0.1)),
    row("a cluster has at least one component: set max_components to",
        lambda: m.MixtureClustering(3, max_components=2).fit(X),
        lambda: m.MixtureClustering(3, max_components=3, random_state=0).fit(X)),
    row("Use GaussianMixture, with covariance_type='tied-spherical'",
        lambda: m.MixtureClustering(2, m.KMeans()).fit(X),
        lambda: m.MixtureClustering(2, m.GaussianMixture(covariance_type="tied-spherical"),
                                    max_components=3, random_state=0).fit(X)),
    row("fit a mixture of equal spheres from its centres",
        lambda: m.KMeans(2, random_state=0).fit(X).combine(1),
        lambda: m.GaussianMixture(2, covariance_type="tied-spherical", means_init=X[:2],
                                  random_state=0).fit(X).combine(1, X=X)),
    row("leave out component_labels, or set test=None",
        lambda: m.MixtureSearch(n_components=[1, 2], test=9).fit(
            X, component_labels=np.full(80, -1)),
        lambda: m.MixtureSearch(n_components=[1, 2], test=None, random_state=0).fit(
            X, component_labels=np.full(80, -1))),
    row("for 5 folds write cv=5",
        lambda: m.MixtureSearch(n_components=[1, 2], criterion="held-out", cv=["a"]).fit(X),
        lambda: m.MixtureSearch(n_components=[1, 2], criterion="held-out", cv=5,
                                random_state=0).fit(X)),
    row("use fewer folds, another share or more rows",
        lambda: m.MixtureSearch(n_components=[1], criterion="held-out", cv=5).fit(X[:4]),
        lambda: m.MixtureSearch(n_components=[1], criterion="held-out", cv=5,
                                random_state=0).fit(X)),
    row("the values of the known columns determine all others",
        lambda: REDUNDANT().condition([0, 3], [0.0, 1.0]),
        lambda: REDUNDANT().condition([0, 1], [0.0, 1.0])),
    row("or n_effective, the number of independent rows",
        lambda: m.GaussianMixture(1).fit(X, sample_weight=np.full(80, 0.001)).bic(
            X, np.full(80, 0.001)),
        lambda: m.GaussianMixture(1).fit(X).bic(X)),
]  # fmt: skip


def of_kernel(scale: float = 1.0, **settings: Any) -> Call:
    rows = scale * np.random.default_rng(0).normal(size=(40, 3))
    return fit("KernelPCA", rows=rows, **{"n_components": "learn", "kernel": "rbf", **settings})


SIZES = [
    row(
        "rows can ever use; lower {} to {} or less",
        fit("BayesianGaussianMixture", n_components=10**30),
        fit("BayesianGaussianMixture", n_components=len(X) + 5, max_iter=2),
    ),
    row(
        "is more than can be tried; lower it",
        fit("MixtureClustering", max_components=10**30),
        fit("MixtureClustering", max_components=2),
    ),
    row(
        "Multiply X by a number, so that distances are about 1",
        of_kernel(1e-100),
        of_kernel(1e-100 * 1e100),
    ),
    row(
        "Use gamma='learn' or 'scale'",
        of_kernel(gamma=1e300),
        of_kernel(gamma="learn"),
        of_kernel(gamma="scale"),
    ),
    row(
        "Learn gamma, too (gamma='learn'), or scale X",
        of_kernel(gamma=1e-30),
        of_kernel(gamma="learn"),
        of_kernel(1e15, gamma=1e-30),
    ),
]

FAR = np.random.default_rng(0).normal(size=(52, 2))
FAR[3, 1] = 1e155


def codebook_of(rows: Any) -> Call:
    """The codebook of rows whose codes are the rows themselves."""
    codes = np.column_stack([rows, np.ones(len(rows))])
    with np.errstate(over="ignore"):
        gram, cross = codes.T @ codes, codes.T @ rows
    return lambda: solve_codebook(np.zeros_like(cross), gram, cross, RowRule())


NETWORKS = [
    row("Rescale the columns, or correct the entries that are far out", codebook_of(FAR),
        codebook_of(FAR / 1e50), codebook_of(np.minimum(FAR, 5.0))),
    row("fine_tune='up-down' or None",
        fit("DeepBeliefNetwork", rows=X / 20 + 0.4, **small(fine_tune="discriminative",
                                                           fine_tune_epochs=1)),
        fit("DeepBeliefNetwork", rows=np.clip(X / 20 + 0.3, 0, 1), **small(fine_tune=None)),
        fit("DeepBeliefNetwork", rows=np.clip(X / 20 + 0.3, 0, 1),
            **small(fine_tune="up-down", fine_tune_epochs=1))),
    row("set link='tanh', or one size", fit("DeepFactorNetwork", **small(
            link="identity", fine_tune=None, hidden=(2, 1))),
        fit("DeepFactorNetwork", **small(link="tanh", fine_tune=None, hidden=(2, 1))),
        fit("DeepFactorNetwork", **small(link="identity", fine_tune=None, hidden=(2,)))),
    row("set link='saturating' or 'logistic', or nonneg_sources=True",
        positive(nonneg_codebook=True),
        positive(nonneg_codebook=True, link="saturating"),
        positive(nonneg_codebook=True, link="logistic"),
        positive(nonneg_codebook=True, nonneg_sources=True)),
    row("or use loss='squared'", by_loss(nonneg_sources=False),
        by_loss(), by_loss(link="saturating", nonneg_sources=False),
        by_loss(link="logistic", nonneg_sources=False),
        by_loss("squared", nonneg_codebook=False, nonneg_sources=False)),
    row("set supervised=False and fit a classifier", by_loss(y=Y),
        by_loss(y=Y, supervised=False), by_loss("squared", y=Y)),
    row("has no solver='gradient'", by_loss(solver="gradient"),
        by_loss(solver="proximal"), by_loss(solver="multiplicative")),
    row("alpha > 0 with beta > 0 bounds the codebook", by_loss(codebook_norm=1.0),
        by_loss(codebook_norm=None), by_loss(alpha=0.1, beta=0.1)),
    row("with alpha > 0 needs link='identity'", by_loss(link="saturating", alpha=0.1, beta=0.1),
        by_loss(alpha=0.1, beta=0.1), by_loss(link="saturating", beta=0.1)),
    row("with alpha > 0 needs beta > 0, too", by_loss(alpha=0.1),
        by_loss(alpha=0.1, beta=0.1), by_loss(alpha=0)),
    row("cannot be learned in batches", by_loss(0.5, batch_size=20),
        by_loss(0.5, batch_size=None), by_loss(1.5, batch_size=20)),
    row("use loss='kullback-leibler' or another power above 0", by_loss(0, rows=X - X.min(axis=0)),
        by_loss("kullback-leibler", rows=X - X.min(axis=0)), by_loss(0.5, rows=X - X.min(axis=0)),
        by_loss(0, rows=np.where(X.min(axis=0) == X, np.nan, X - X.min(axis=0))),
        by_loss(0, rows=X - X.min(axis=0) + 0.01)),
    row("lower groups to", lambda: m.sample_codebook(np.ones((4, 2)), 2, 3),
        lambda: m.sample_codebook(np.ones((4, 2)), 2, 1)),
    row("or sklearn.decomposition.FastICA for sources with light",
        fit("ICA", rows=X, random_state=0), fit("PPCA", 2),
        lambda: FastICA(2, random_state=0, whiten="unit-variance").fit(X)),
    row("by PPCA().fit(X).impute(X), say", fit("ICA", rows=HEAVY),
        fit("ICA", rows=m.PPCA(2).fit(HEAVY).impute(HEAVY), random_state=0)),
    row("solver='multiplicative' keeps signs: it needs",
        fit("MatrixFactorization", rows=POSITIVE, **factorise(solver="multiplicative")),
        fit("MatrixFactorization", rows=POSITIVE, **factorise(
            solver="multiplicative", nonneg_codebook=True, link="saturating")),
        fit("MatrixFactorization", rows=POSITIVE, **factorise(solver="proximal"))),
    row("solver='multiplicative' keeps signs: with y",
        fit("MatrixFactorization", rows=POSITIVE, y=Y, **factorise(
            solver="multiplicative", nonneg_codebook=True, nonneg_sources=True)),
        fit("MatrixFactorization", rows=POSITIVE, y=Y, **factorise(
            solver="multiplicative", nonneg_codebook=True, nonneg_sources=True,
            nonneg_classifier=True)),
        fit("MatrixFactorization", rows=POSITIVE, y=Y, **factorise(
            solver="multiplicative", nonneg_codebook=True, nonneg_sources=True,
            supervised="after")),
        fit("MatrixFactorization", rows=POSITIVE, y=Y, **factorise(
            solver="proximal", nonneg_codebook=True, nonneg_sources=True))),
    row("set supervised='auto' to learn without",
        fit("MatrixFactorization", **factorise(supervised=True)),
        fit("MatrixFactorization", **factorise(supervised="auto"))),
    row("or set visible='gaussian'", fit("RBM", 2, max_epochs=1, rows=POSITIVE),
        fit("RBM", 2, max_epochs=1, rows=POSITIVE / POSITIVE.max(), random_state=0),
        fit("RBM", 2, max_epochs=1, rows=POSITIVE, visible="gaussian", random_state=0)),
    row("use method='ais'",
        lambda: wide_rbm().log_partition(method="exact"),
        lambda: wide_rbm().log_partition(method="ais")),
    row("fill the gaps first, by mixfold.PPCA(...).fit(X).impute(X) say",
        fit("RBM", 2, rows=HOLED, visible="gaussian"),
        lambda: m.RBM(2, visible="gaussian", max_epochs=1, random_state=0).fit(
            m.PPCA(2).fit(HOLED).impute(HOLED))),
]  # fmt: skip

OUTPUTS = [
    row("use solver='em'",
        lambda: m.SupervisedPPCA(1, solver="profile").fit(X, np.where(T > 5, np.nan, T)),
        lambda: m.SupervisedPPCA(1, solver="em", random_state=0).fit(
            X, np.where(T > 5, np.nan, T))),
    row("are not those of the first call of partial_fit",
        lambda: m.SupervisedPPCA(1).partial_fit(X, Y).partial_fit(X, Y, classes=[0, 2]),
        lambda: m.SupervisedPPCA(1).partial_fit(X, Y).partial_fit(X, Y),
        lambda: clone(m.SupervisedPPCA(1).partial_fit(X, Y)).partial_fit(X, Y, classes=[0, 1, 2])),
    row(", whose outputs count once; got ",
        fit("SupervisedPPCA", 1, task="ordered", output_weight=2.0, y=Y),
        fit("SupervisedPPCA", 1, task="classification", output_weight=2.0, output_noise=0.1, y=Y),
        fit("SupervisedPPCA", 1, task="regression", output_weight=2.0, output_noise=0.1, y=T)),
    row("needs y of whole numbers >= 0", fit("SupervisedPPCA", 1, task="count", y=T[:, 0]),
        fit("SupervisedPPCA", 1, task="regression", output_noise=0.1, y=T[:, 0])),
    row("test compares mixtures of X alone",
        lambda: m.MixtureSearch(m.SupervisedPPCA(), n_components=[1, 2], test=9).fit(X, Y),
        lambda: m.MixtureSearch(
            m.SupervisedPPCA(), n_components=[1, 2], test=None, criterion="log-loss", cv=2,
            random_state=0).fit(X, Y)),
    row("compares predictions of y, which ",
        lambda: m.MixtureSearch(m.GaussianMixture(), n_components=1, criterion="log-loss").fit(X),
        lambda: m.MixtureSearch(
            m.GaussianMixture(), n_components=1, criterion="held-out", random_state=0).fit(X),
        lambda: m.MixtureSearch(
            m.SupervisedPPCA(), n_components=1, criterion="log-loss", random_state=0).fit(X, Y)),
    row("use solver='auto' or ", fit("SupervisedPPCA", 1, solver="profile", rows=HOLED, y=T),
        fit("SupervisedPPCA", 1, solver="auto", rows=HOLED, y=T, random_state=0),
        fit("SupervisedPPCA", 1, solver="em", rows=HOLED, y=T, random_state=0)),
    row("Set label_solver='em'",
        fit("MixtureOfFactorModels", 2, 1, label_solver="gradient", tradeoff=2.0, y=Y),
        fit("MixtureOfFactorModels", 2, 1, label_solver="em", tradeoff=2.0, y=Y, random_state=0)),
    row("use by='row', or kernel=None",
        lambda: m.SupervisedPPCA(1, kernel="rbf").fit(X, Y).oddness(X, by="cell"),
        lambda: m.SupervisedPPCA(1, kernel="rbf").fit(X, Y).oddness(X, by="row", n_draws=20),
        lambda: m.SupervisedPPCA(1).fit(X, Y).oddness(X, by="cell", n_draws=20)),
    row("leave it out, or choose an estimator that takes weights",
        fit("MixtureClassifier", TheirMixture(), y=Y, sample_weight=WEIGHT),
        fit("MixtureClassifier", TheirMixture(), y=Y),
        fit("MixtureClassifier", y=Y, sample_weight=WEIGHT)),
    row("leave input_noise=None, or set output_weight=1.0",
        fit("SupervisedPPCA", 1, output_weight="auto", input_noise=0.5, y=Y),
        fit("SupervisedPPCA", 1, output_weight="auto", y=Y),
        fit("SupervisedPPCA", 1, output_weight=1.0, input_noise=0.5, y=Y)),
    row("Label more rows, or set output_weight=1.0",
        fit("SupervisedPPCA", 1, output_weight="auto", y=FEW),
        fit("SupervisedPPCA", 1, output_weight="auto", y=Y),
        fit("SupervisedPPCA", 1, output_weight=1.0, y=FEW)),
    row("say by PPCA(n_components).fit(X).impute(X), or set output_weight=1.0",
        fit("SupervisedPPCA", 1, output_weight="auto", rows=HOLED, y=Y),
        fit("SupervisedPPCA", 1, output_weight="auto", y=Y,
            rows=m.PPCA(1).fit(HOLED).impute(HOLED)),
        fit("SupervisedPPCA", 1, output_weight=1.0, rows=HOLED, y=Y)),
    row("with its parameters averaged out; fit it with inference='em' and no prior",
        lambda: known_part("vb").condition([0], [1.0]),
        lambda: known_part("em").condition([0], [1.0])),
    row("np.column_stack(y); MORP takes several",
        fit("SupervisedPPCA", 1, y=[T[:, 0], T]),
        fit("SupervisedPPCA", 1, y=np.column_stack([T[:, 0], T])),
        fit("MORP", 1, y=[T[:, 0], T])),
    row("for classes set task='classification'",
        fit("SupervisedPPCA", 1, task="regression", y=np.array(["a", "b"])[Y]),
        fit("SupervisedPPCA", 1, task="classification", y=np.array(["a", "b"])[Y])),
    row("write them all as text, y.astype(str)",
        fit("MixtureClassifier", y=np.array([0, "b"] * 40, dtype=object)),
        fit("MixtureClassifier", y=np.array([0, "b"] * 40, dtype=object).astype(str))),
]  # fmt: skip

with warnings.catch_warnings():
    warnings.simplefilter("ignore", PendingDeprecationWarning)  # that is what the row is about
    MATRIX = np.matrix(X)

DATA = [
    row("Convert it with np.asarray(X)", lambda: open_source(MATRIX),
        fit("GaussianMixture", rows=np.asarray(MATRIX))),
    row("(X.astype(float)) or encode", fit("GaussianMixture", rows=X.astype(str)),
        fit("GaussianMixture", rows=X.astype(str).astype(float))),
    row("give a frame with X.to_frame()", fit("GaussianMixture", rows=pl.Series("a", X[:, 0])),
        fit("GaussianMixture", rows=pl.Series("a", X[:, 0]).to_frame())),
    row("Give X.collect(), or the path", fit("GaussianMixture", rows=pl.DataFrame(X).lazy()),
        fit("GaussianMixture", rows=pl.DataFrame(X).lazy().collect())),
    row("Use seed_from(random_state) to turn", lambda: RowKeys(np.random.default_rng(0)),
        lambda: RowKeys(seed_from(np.random.default_rng(0)))),
    row("from numpy.lib.recfunctions import structured_to_unstructured",
        lambda: m.GaussianMixture(1).fit(records()),
        lambda: m.GaussianMixture(1).fit(as_columns(records()))),
]  # fmt: skip

NUMBERS = [
    row("For a diagonal, pass numpy.diag(variances)",
        lambda: distributions.SquashedNormal([0.0, 0.0], [1.0, 2.0], [1.0, 1.0]),
        lambda: distributions.SquashedNormal([0.0, 0.0], np.diag([1.0, 2.0]), [1.0, 1.0])),
    row("fit and predict, such as mixfold.KMeans()",
        lambda: m.gap_statistic(X, m.PPCA(1), n_clusters=[1]),
        lambda: m.gap_statistic(X, m.KMeans(), n_clusters=[1], n_references=2)),
    row("give the table itself, or family=Schema.infer(table)",
        lambda: m.Mixture("auto").fit(open_source(X)),
        lambda: m.Mixture("auto").fit(WORDS), lambda: m.Mixture(m.Schema.infer(WORDS)).fit(WORDS)),
    row("Schema.infer(table).set(name, kind=...), and give that as family",
        lambda: m.Mixture("auto").fit({"id": range(50)}),
        lambda: m.Mixture(m.Schema.infer({"id": range(50)}).set("id", kind="number")).fit(
            {"id": range(50)})),
    row("throughout and is modelled {}, but row {} (rows count from 0) holds {}; use schema.set(",
        lambda: m.Schema.infer(SKEWED).encode({"fee": [0.0]}),
        lambda: m.Schema.infer(SKEWED).set("fee", scale="plain").encode({"fee": [0.0]})),
    row("or give those that are to be missing by missing=[...]",
        lambda: m.Schema.infer(WORDS).set("kind", kind="ordered", order=["a"]),
        lambda: m.Schema.infer(WORDS).set("kind", kind="ordered", order=["b", "a"]),
        lambda: m.Schema.infer(WORDS).set("kind", missing=["b"])),
    row("needs two, ", lambda: m.Schema.infer(GRADES).set("grade", kind="yes/no"),
        lambda: m.Schema.infer(GRADES).set("grade", kind="category")),
    row("the values of column ", lambda: KEPT().set("size", kind="category"),
        lambda: KEPT().set("size", kind="category", order=[0.0, 1.0])),
    row("which no model takes; say what it ",
        lambda: m.Schema.infer({"id": range(50)}).set("id", used=True),
        lambda: m.Schema.infer({"id": range(50)}).set("id", kind="category")),
    row("or as often repeated; lower n_clusters",
        lambda: m.gap_statistic(X[:4], n_clusters=[4], n_references=2),
        lambda: m.gap_statistic(X[:4], n_clusters=[2], n_references=2, random_state=0)),
    row("reference='box', or fill them",
        lambda: m.gap_statistic(HOLED, n_clusters=[1], n_references=2, reference="pca"),
        lambda: m.gap_statistic(HOLED, n_clusters=[1], n_references=2, reference="box"),
        lambda: m.gap_statistic(X, n_clusters=[1], n_references=2, reference="pca")),
    row("bias, or name the breaks of kind",
        lambda: distributions.SquashedNormal(0.0, 1.0, 1.0, kind=np.zeros_like),
        lambda: distributions.SquashedNormal(0.0, 1.0, 1.0, side=0, kind=np.zeros_like)),
    row("breaks out, or give kind as a function",
        lambda: distributions.SquashedNormal(0.0, 1.0, 1.0, breaks=[0.0]),
        lambda: distributions.SquashedNormal(0.0, 1.0, 1.0),
        lambda: distributions.SquashedNormal(0.0, 1.0, 1.0, kind=lambda u: u > 0, breaks=[0.0])),
    row('another bias, or kind="squashed"',
        lambda: distributions.SquashedNormal(0.0, 1.0, 0.0, 1.0, 0, kind="truncated"),
        lambda: distributions.SquashedNormal(0.0, 1.0, 0.0, 1.0, 1, kind="truncated"),
        lambda: distributions.SquashedNormal(0.0, 1.0, 0.0, -1.0, 0, kind="truncated"),
        lambda: distributions.SquashedNormal(0.0, 1.0, 0.0, 1.0, 0, kind="squashed")),
    row(".toarray()",
        lambda: metrics.signal_to_error_ratio(sparse.csr_array(X), X + 1),
        lambda: metrics.signal_to_error_ratio(sparse.csr_array(X).toarray(), X + 1)),
    row("Pass predict_proba(X), or log=True",
        lambda: risk(lambda e: np.log(e.predict_proba(X)), per_component),
        lambda: risk(lambda e: e.predict_proba(X), per_component)),
    row("Pass what predict_proba or predict_log_proba returns",
        lambda: risk(lambda e: e.predict_proba(X) / 2, per_component),
        lambda: risk(lambda e: e.predict_proba(X), per_component)),
    row("Pass transform(X, per_component=True)",
        lambda: risk(lambda e: e.predict_proba(X), lambda e: e.transform(X)[:, None]),
        lambda: risk(lambda e: e.predict_proba(X), per_component)),
    row("Pass predict_log_proba(X), or log=False",
        lambda: metrics.clustering_risk(np.full((4, 2), 0.5), log=True),
        lambda: metrics.clustering_risk(np.log(np.full((4, 2), 0.5)), log=True),
        lambda: metrics.clustering_risk(np.full((4, 2), 0.5), log=False)),
    row("Use polya_urn, which makes only the atoms",
        lambda: processes.stick_breaking(5, 1e9, lambda n, rng: rng.normal(size=n), 0),
        lambda: processes.polya_urn(5, 1e9, lambda n, rng: rng.normal(size=n), 0)),
]  # fmt: skip


def family_of(name: str) -> Any:
    """The object of a family."""
    return make_family(name, {}, None, 3)


def wide_rbm() -> Any:
    bits = RNG.random((30, 40)) < 0.5
    return m.RBM(30, max_epochs=1, random_state=0).fit(bits.astype(float))


def as_columns(X: Any) -> Any:
    from numpy.lib.recfunctions import structured_to_unstructured

    return structured_to_unstructured(X)


def records() -> Any:
    return np.array([tuple(v) for v in X], dtype=[("a", float), ("b", float), ("c", float)])


def drawn(name: str, *args: Any, **options: Any) -> Call:
    """A call of a plot on axes without a window, where an argument is named ax."""
    ax = Figure().subplots()
    place = {key: ax if value == "ax" else [ax] for key, value in options.items()}
    return lambda: getattr(plots, name)(*(ax if a is AX else a for a in args), **place)


AX = object()
CURVE, TRACE = {"full": {1: 3.0, 2: 2.0}}, {"alpha": np.eye(3)}
PLOTS = [
    row("takes the axes last, by name, and returns them: write {}({}, ..., ax=ax)",
        drawn("plot_criterion", AX, CURVE), drawn("plot_criterion", CURVE, ax="ax")),
    row("has ax in place of axes, as all plots: write {}(..., ax=axes)",
        drawn("plot_chains", TRACE, axes="axes"), drawn("plot_chains", TRACE, ax="axes")),
]  # fmt: skip

ROWS = [
    *SIZES,
    *FACTORS,
    *KERNELS,
    *MIXTURES,
    *SEARCH,
    *NETWORKS,
    *OUTPUTS,
    *DATA,
    *NUMBERS,
    *PLOTS,
]


def told_by(call: Call) -> str:
    """The message of an error, or those of warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            call()
        except Exception as error:
            return f"{error} {error.__cause__}"
    return " ".join(str(w.message) for w in caught)


def as_pattern(piece: str) -> str:
    """A piece of the source as a pattern of what is printed."""
    return ".*?".join(re.escape(part) for part in piece.split("{}"))


@pytest.mark.parametrize("advice", ROWS, ids=[r.piece[:50] for r in ROWS])
def test_a_remedy_works(advice: Row) -> None:
    said = told_by(advice.provoke)
    assert re.search(as_pattern(advice.piece), said, re.DOTALL), said
    for call in advice.follow:
        with warnings.catch_warnings():  # few steps are enough here
            warnings.simplefilter("ignore", ConvergenceWarning)
            call()


# ------------------------------------------------ in a terminal


@dataclass(frozen=True)
class Line:
    """``piece`` of a message, what is typed to get it, and what is typed then.

    Names in braces are files: a table, models, texts, folders.
    """

    piece: str
    typed: str
    follow: tuple[str, ...]


def line(piece: str, typed: str, *follow: str) -> Line:
    return Line(piece, typed, follow)


LINES = [
    line("a threshold says how many clusters there are; leave one of both out",
         "cluster {csv} -n 2 --threshold 0.1 --max-components 2",
         "cluster {csv} -n 2 --max-components 2 --seed 0",
         "cluster {csv} --threshold 0.1 --max-components 2 --seed 0"),
    line("name one without a target {}",
         "fit {csv} --model mixture-classifier --target kind --columns a,b --out {out} "
         "--set estimator=kmeans",
         "fit {csv} --model mixture-classifier --target kind --columns a,b --out {out} "
         "--set estimator=gaussian-mixture",
         "fit {csv} --model mixture-classifier --target kind --columns a,b --out {out} "
         "--set estimator=ppca -k 1"),
    line("{} has its own family; use --model mixture", "fit {csv} -k 2 --family poisson "
         "--model gaussian-mixture --out {out}",
         "fit {counts} -k 2 --family poisson --model mixture --out {out}"),
    line("{} is also given with {}; keep one", "fit {csv} -k 2 --set n_components=3 --out {out}",
         "fit {csv} -k 2 --out {out}", "fit {csv} --set n_components=2 --out {out}"),
    line("write name=value, for example covariance_type=diag",
         "fit {csv} -k 2 --set diag --out {out}",
         "fit {csv} -k 2 --set covariance_type=diag --out {out}"),
    line("give the units of each layer with --layers",
         "fit {unit} --model deep-belief-network -k 2 --out {out}",
         "fit {unit} --model deep-belief-network --layers 3,2 --set max_epochs=1 "
         "--set fine_tune_epochs=1 --out {out}"),
    line("a page ends in .html; got {}. Write --out {}",
         "report {model} {csv} --out {folder}/p.txt",
         "report {model} {csv} --out {folder}/p.html"),
    line("leave --columns out", "report {model} {csv} --target kind --columns a,b --out "
         "{folder}/p.html", "report {model} {csv} --target kind --out {folder}/p.html"),
    line("--set covariance_type=diag, or use --model mixture-of-ppca --factors 2",
         "fit {wide} -k 2 --out {out}",
         "fit {wide} -k 2 --set covariance_type=diag --out {out}",
         "fit {wide} -k 2 --model mixture-of-ppca --factors 2 --out {out}"),
    line("gives {} columns; the model was fitted to {}. Choose as many with --columns",
         "score {unnamed} {csv}", "score {unnamed} {csv} --columns a,b"),
    line("{} is given with {}", "select {csv} --set n_components=1,2",
         "select {csv} -k 1:2"),
    line("write name=value,value with a value between commas",
         "select {csv} -k 1:2 --set covariance_type=diag,,full",
         "select {csv} -k 1:2 --set covariance_type=diag,full"),
    line("executor={} is no cluster; leave one of both out",
         "fit {csv} -k 2 --set executor=threads --scheduler tcp://127.0.0.1:1 --out {out}",
         "fit {csv} -k 2 --set executor=threads --out {out}"),
    line("leave it out beside --schema, --kind, --drop, --na, --sep, --decimal and --encoding",
         "select {csv} --columns a --drop b",
         "select {csv} -k 1 --drop b", "select {csv} -k 1 --columns a"),
    line("leave out --na, --sep, --decimal and --encoding",
         "select {csv} --schema {schema} --sep ,", "select {csv} -k 1 --schema {schema}"),
    line("is for a model: fit one first, and name it before the table",
         "report {csv} --target kind --out {folder}/p.html",
         "report {model} {csv} --target kind --out {folder}/p.html"),
    line("write COLUMN=KIND; got {}", "select {csv} --kind a", "select {csv} -k 1 --kind a=number"),
    line("leave --model, --family and --target out.",
         "select {csv} --model ppca --drop a", "select {csv} -k 1 --drop a"),
    line("{} has {}; leave the option out",
         "transform {factors} {csv} --per-component --out {rows}",
         "transform {factors} {csv} --out {rows}"),
    line("is written anyway, by the model; leave it out",
         "predict {model} {named} --keep component --out {rows}",
         "predict {model} {named} --out {rows}"),
]  # fmt: skip


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Tables and models, by the names that lines have for them."""
    folder = tmp_path_factory.mktemp("advice")
    table = pd.DataFrame(X[:, :2], columns=["a", "b"])
    found = {
        name: folder / f"{name}.csv" for name in ("csv", "named", "counts", "unit", "wide", "rows")
    }
    table.assign(kind=Y).to_csv(found["csv"], index=False)
    table.assign(component=Y, label=Y).to_csv(found["named"], index=False)
    pd.DataFrame(COUNTS.astype(int), columns=list("abc")).to_csv(found["counts"], index=False)
    (table - table.min()).div(np.ptp(X[:, :2], axis=0)).to_csv(found["unit"], index=False)
    wide = np.round(RNG.normal(size=(30, 2100)), 2)
    pd.DataFrame(wide).add_prefix("v").to_csv(found["wide"], index=False)
    found |= {name: folder / f"{name}.mixfold" for name in ("model", "unnamed", "factors", "out")}
    m.GaussianMixture(2, random_state=0).fit(table).save(found["model"])
    m.GaussianMixture(2, random_state=0).fit(X[:, :2]).save(found["unnamed"])
    m.PPCA(1).fit(table).save(found["factors"])
    found["schema"] = folder / "schema.json"
    m.Schema.infer(found["csv"]).save(found["schema"])
    return {**found, "folder": folder}


def type_line(text: str, files: dict[str, Path], capsys: Any) -> tuple[int, str]:
    """Exit code, and what is written to the terminal in one line."""
    capsys.readouterr()
    words = [word.format(**files) for word in text.split()]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(SystemExit) as end:
            main(words)
    said = capsys.readouterr()
    written = re.sub(r"[│╭╮╰╯─]", " ", said.err + said.out)
    return int(end.value.code or 0), " ".join(written.split())


@pytest.mark.parametrize("advice", LINES, ids=[r.piece[:50] for r in LINES])
def test_what_a_terminal_says_can_be_typed(
    advice: Line, files: dict[str, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    code, said = type_line(advice.typed, files, capsys)
    assert code != 0 and re.search(as_pattern(advice.piece), said), said
    for typed in advice.follow:
        code, said = type_line(typed, files, capsys)
        assert code == 0, said


# ------------------------------------------------ messages without a row

IMPERATIVE = re.compile(
    r"\b(use|give|try|set|pass|see|choose|fit|fill|raise|increase|lower|divide|leave|replace|call|"
    r"drop|convert|add|make|put|take|write)\b",
    re.IGNORECASE,
)
# a setting, a call, an option, a name with underscores
CODE = re.compile(r"\b[a-z_]+=['\"\w{(\[]|\bpip install|\w\.\w+\(|--[a-z]|\b[a-z]+_[a-z_]+\b")
WITHOUT_ROW: dict[str, int] = {
    "cli/candidates.py": 2,
    "cli/cluster.py": 1,
    "cli/corpus.py": 1,
    "cli/drawing.py": 1,
    "cli/keep.py": 1,
    "cli/project.py": 1,
    "cli/texts.py": 1,
    "contracts.py": 1,
    "engine/sources/array.py": 1,
    "engine/sources/dask.py": 1,
    "engine/sources/delimited.py": 1,
    "engine/sources/partitions.py": 1,
    "engine/sources/passthrough_columns.py": 1,
    "estimators/factors/factor_analysis.py": 1,
    "estimators/factors/ppca.py": 1,
    "estimators/kernels/kernel_fits.py": 1,
    "estimators/kernels/kernel_pca.py": 1,
    "estimators/mixtures/family_choice.py": 2,
    "estimators/mixtures/iterates.py": 1,
    "estimators/networks/deep_factor_network.py": 1,
    "estimators/outputs/supervised_ppca.py": 1,
    "estimators/search/mixture_search.py": 2,
    "estimators/search/rows.py": 1,
    "families/exponential/categorical.py": 3,
    "families/factor/family.py": 1,
    "families/projection/bayes.py": 1,
    "models/kernels/views/rows.py": 1,
    "models/kernels/views/thin_svd.py": 1,
    "models/mixtures/bayes_mixture.py": 1,
    "models/mixtures/mlit/model.py": 1,
    "models/mixtures/partition_priors.py": 1,
    "models/mixtures/urns/__init__.py": 1,
    "models/mixtures/urns/urn.py": 1,
}


def messages(file: Path) -> Iterator[str]:
    """The texts of ``raise`` and of calls whose name has ``warn``; {} stands for what is put in."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        warns = isinstance(node, ast.Call) and "warn" in ast.unparse(node.func)
        if not warns and not (isinstance(node, ast.Raise) and node.exc is not None):
            continue
        yield "".join(
            "{}" if isinstance(part, ast.FormattedValue) else str(part.value)
            for part in ast.walk(node)
            if isinstance(part, ast.FormattedValue)
            or (isinstance(part, ast.Constant) and isinstance(part.value, str))
        )


def has_remedy(message: str) -> bool:
    """Whether a sentence, or a part of one, tells what to do, with a piece of code."""
    parts = re.split(r"(?<=[;:.]) ", message)
    return any(IMPERATIVE.search(part) and CODE.search(part) for part in parts)


def test_a_new_remedy_needs_a_row() -> None:
    without: Counter[str] = Counter()
    known = [advice.piece for advice in [*ROWS, *LINES]]
    for file in sorted(SRC.rglob("*.py")):
        for message in messages(file):
            if has_remedy(message) and not any(piece in message for piece in known):
                without[file.relative_to(SRC).as_posix()] += 1
    assert dict(without) == WITHOUT_ROW, (
        "a message with a remedy needs a row in this table; if there is one now, count fewer"
    )


def test_every_row_is_about_a_message_that_exists() -> None:
    texts = [message for file in SRC.rglob("*.py") for message in messages(file)]
    lost = [r.piece for r in [*ROWS, *LINES] if not any(r.piece in text for text in texts)]
    assert not lost
