"""Risks and ratios on the command line, and the models that are made of others."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import mixfold
from mixfold import metrics

from .conftest import Outcome, read_table
from .test_mistakes import check

Run = Callable[..., Outcome]


@pytest.fixture
def groups(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    kind = rng.integers(0, 2, 120)
    rows = rng.normal(size=(120, 2)) @ rng.normal(size=(2, 4)) + 0.3 * rng.normal(size=(120, 4))
    frame = pd.DataFrame(rows + 2 * kind[:, None] * [1, 0, -1, 1], columns=list("abcd"))
    frame["kind"] = np.where(kind == 1, "old", "new")
    path = tmp_path / "groups.csv"
    frame.to_csv(path, index=False)
    return path


def numbers(outcome: Outcome) -> dict[str, float]:
    """The printed measures by their first words."""
    assert outcome.code == 0, outcome.err
    lines = [line.removesuffix(" dB").rsplit(" ", 1) for line in outcome.out.splitlines()]
    return {words: float(number) for words, number in lines if number[-1].isdigit()}


@pytest.mark.parametrize("name", ["mixture-of-ppca", "ppca", "mixture-of-factor-analyzers"])
def test_measures_are_those_of_the_functions(
    run: Run, groups: Path, tmp_path: Path, name: str
) -> None:
    model, out = tmp_path / "m.mixfold", tmp_path / "o.csv"
    sizes = ["-k", 2] if name == "ppca" else ["-k", 2, "-d", 1]
    words = [*sizes, "--columns", "a,b,c,d", "--set", "scale=white", "--seed", 0, "--out", model]
    assert run("fit", groups, "-m", name, *words).code == 0
    printed = numbers(run("measure", model, groups, "--out", out, "--quiet"))
    fitted, X = mixfold.load(model), pd.read_csv(groups)[list("abcd")]
    plain = mixfold.load(model).set_params(scale="latent")
    if name == "ppca":
        shares, latents = np.ones((120, 1)), plain.transform(X)[:, None]
        covariances = fitted.latent_covariance_[None]
    else:
        shares, latents = fitted.predict_proba(X), plain.transform(X, per_component=True)
        covariances = fitted.latent_covariances_
        wanted = metrics.clustering_risk(shares)
        assert np.isclose(printed["clustering risk"], wanted, rtol=1e-4)
    risk = metrics.reduction_risk(shares, latents, covariances)
    assert np.isclose(printed["reduction risk per factor"], risk, rtol=1e-4)
    ratio = metrics.signal_to_error_ratio(X.to_numpy(), fitted.reconstruct(X))
    assert np.isclose(printed["signal-to-error ratio"], ratio, rtol=1e-4)
    error = ((X.to_numpy() - fitted.reconstruct(X)) ** 2).mean()
    assert np.isclose(printed["mean squared error of an entry"], error, rtol=1e-4)
    table = read_table(out)
    each = metrics.reduction_risk(shares, latents, covariances, per_row=True)
    np.testing.assert_allclose(table["reduction_risk"], each, rtol=1e-4)


def test_rows_with_holes_have_no_reduction_risk_and_mixtures_no_factors(
    run: Run, groups: Path, tmp_path: Path
) -> None:
    model = tmp_path / "m.mixfold"
    frame = pd.read_csv(groups)
    frame.loc[3, "b"] = np.nan
    frame.to_csv(groups, index=False)
    columns = ["--columns", "a,b,c,d", "--seed", 0, "--out", model]
    assert run("fit", groups, "-m", "ppca", "-k", 2, *columns).code == 0
    outcome = run("measure", model, groups)
    assert "reduction risk per factor: not of rows with missing entries" in outcome.out
    assert np.isfinite(numbers(outcome)["signal-to-error ratio"])
    assert run("fit", groups, "-k", 2, *columns).code == 0
    assert set(numbers(run("measure", model, groups))) == {"rows", "clustering risk"}
    assert run("fit", groups, "-m", "kernel-pca", *columns[:-4], "--out", model).code == 1
    assert run("fit", groups, "-m", "kmeans", "-k", 2, *columns).code == 0
    check(run("measure", model, groups), 2, "MODEL", "neither components nor reconstructions")


def test_a_classifier_of_densities_is_fitted_and_asked(
    run: Run, groups: Path, tmp_path: Path
) -> None:
    model, out = tmp_path / "m.mixfold", tmp_path / "p.csv"
    start = ["fit", groups, "-m", "mixture-classifier", "--columns", "a,b,c,d", "--target", "kind"]
    settings = ["--set", "estimator=mixture-of-ppca", "--set", "estimator__n_factors=2", "-k", 1]
    outcome = run(*start, *settings, "--seed", 0, "--out", model)
    assert outcome.code == 0, outcome.err
    frame = pd.read_csv(groups)
    inner = mixfold.MixtureOfPPCA(1, 2)
    wanted = mixfold.MixtureClassifier(inner, random_state=0).fit(frame[list("abcd")], frame.kind)
    assert run("predict", model, groups, "--out", out).code == 0
    assert list(read_table(out)["prediction"]) == wanted.predict(frame[list("abcd")]).tolist()
    assert run("sample", model, "--rows", 5, "--out", out).code == 0
    plain = run(*start, "-k", 2, "--seed", 0, "--out", model)
    assert plain.code == 0, plain.err
    assert mixfold.load(model).estimators_[0].n_components == 2
    rule = ["--set", "estimator=ppca", "--set", "decision=reconstruction", "-k", 2]
    assert run(*start, *rule, "--seed", 0, "--out", model).code == 0
    assert run("predict", model, groups, "--out", out).code == 0
    bad = ["--set", "estimator=morp", "--out", model]
    check(run(*start, *bad), 2, "--set", "is no model of the rows of a class")
    rebuilt = [*start, "--set", "decision=reconstruction", "--out", model]
    check(run(*rebuilt), 2, "--set", "that rebuilds rows, as ppca or matrix-factorization")
    for name in ("k-subspaces", "matrix-factorization"):
        planes = run(*rebuilt, "--set", f"estimator={name}", "--components", 2, "--seed", 0)
        assert planes.code == 0, planes.err
    check(run(*start, "--set", "estimator=nothing", "--out", model), 2, "there is no model")
    unknown = ["--set", "estimator__factors=2", "--out", model]
    check(run(*start, *unknown), 2, "--set", "no parameter 'estimator__factors'")


def test_mlit_and_gtm_are_fitted(run: Run, groups: Path, tmp_path: Path) -> None:
    model, out = tmp_path / "m.mixfold", tmp_path / "p.csv"
    columns = ["--columns", "a,b,c,d", "--out", model]
    linear = ["-k", 1, "-d", 2, "--set", "method=orthonormal", "--seed", 0]
    assert run("fit", groups, "-m", "mlit", *linear, *columns).code == 0
    assert run("predict", model, groups, "--out", out).code == 0
    assert "component" in read_table(out)
    score = run("score", model, groups)
    assert "log score per row" in score.out and "density" not in score.out
    assert run("fit", groups, "-m", "gtm", "-k", 1, "--set", "n_points=9", *columns).code == 0
    assert run("transform", model, groups, "--out", out).code == 0
    assert list(read_table(out)) == ["factor_1"]
