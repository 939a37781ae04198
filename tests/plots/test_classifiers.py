"""Classes by factors: what a model says of a complete row follows from its expected factors."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_iris

from mixfold import PPCA, MixtureOfFactorModels, SupervisedMixtureOfPPCA, SupervisedPPCA
from mixfold.plots.classifiers import latent_classifier

X, SPECIES = load_iris(return_X_y=True)
TWO = np.where(SPECIES == 2, 1, 0)
FEW = np.where(np.arange(150) % 3 == 0, SPECIES, -1)
FEW[50:130:4] = SPECIES[50:130:4]  # classes are not equally frequent


@pytest.mark.parametrize(
    ("model", "y"),
    [
        (SupervisedPPCA(2), FEW),
        (SupervisedPPCA(3), TWO),
        (SupervisedPPCA(1, output_weight=5.0, output_noise="each"), FEW),
        (SupervisedPPCA(1, coding="one-of-c"), FEW),
        (SupervisedPPCA(2, kernel="rbf", gamma=0.3, input_noise=0.1, output_noise=0.1), FEW),
        (SupervisedMixtureOfPPCA(1, 2), FEW),
        (MixtureOfFactorModels(1, 2), TWO),
        (MixtureOfFactorModels(1, 2, noise="diagonal", tol=1e-3, acceleration="squarem"), FEW),
        (MixtureOfFactorModels(1, 2, classify_from="latent"), FEW),
        (MixtureOfFactorModels(1, 2, classifier="per_component"), FEW),
        (MixtureOfFactorModels(1, 2, discriminant="curved", ridge=1.0, tol=1e-3), FEW),
        (
            MixtureOfFactorModels(
                1, 2, discriminant="curved", ridge=1.0, tol=1e-3, classify_from="latent"
            ),
            TWO,
        ),
    ],
    ids=lambda value: "" if isinstance(value, np.ndarray) else str(value),
)
def test_the_class_at_the_expected_factors_is_the_prediction(model: Any, y: np.ndarray) -> None:
    model.fit(X, y)
    found = latent_classifier(model, None).scores(model.transform(X)).argmax(axis=1)
    assert len(np.unique(found)) == len(model.classes_)
    np.testing.assert_array_equal(model.classes_[found], model.predict(X))


@pytest.mark.parametrize(
    "model",
    [
        MixtureOfFactorModels(2, 2, random_state=0),
        MixtureOfFactorModels(2, 2, classifier="per_component", random_state=0),
        MixtureOfFactorModels(
            2,
            2,
            classifier="per_component",
            discriminant="curved",
            ridge=1.0,
            tol=1e-3,
            random_state=0,
        ),
        SupervisedMixtureOfPPCA(2, 2, random_state=0),
    ],
)
def test_each_component_has_its_own(rng: np.random.Generator, model: Any) -> None:
    group, z = np.arange(300) % 2, rng.normal(size=(300, 2))
    rows = np.einsum("nij,nj->ni", rng.normal(size=(2, 6, 2))[group], z) + 30.0 * group[:, None]
    rows += 0.3 * rng.normal(size=rows.shape)
    model.fit(rows, np.where(group == 0, z[:, 0] > 0, z[:, 1] > 0.7).astype(int))
    told, each = model.predict_component(rows), model.transform(rows, per_component=True)
    for k in range(2):
        found = latent_classifier(model, k).scores(each[told == k, k]).argmax(axis=1)
        np.testing.assert_array_equal(found, model.predict(rows[told == k]))
        assert 0 < found.mean() < 1


def test_a_shared_classifier_needs_no_component(rng: np.random.Generator) -> None:
    model = MixtureOfFactorModels(2, 2, random_state=0).fit(X, TWO)
    line = latent_classifier(model, None)
    Z = rng.normal(size=(50, 2))
    score = Z @ model.coef_[0] + model.intercept_[0]
    np.testing.assert_array_equal(line.scores(Z).argmax(axis=1), score > 0)


def test_what_tells_no_classes_is_named() -> None:
    with pytest.raises(TypeError, match=r"MixtureOfFactorModels, .* got PPCA"):
        latent_classifier(PPCA(2).fit(X), None)
    with pytest.raises(TypeError, match="got SimpleNamespace"):
        latent_classifier(SimpleNamespace(coef_=np.ones((1, 2))), None)
    with pytest.raises(TypeError, match="must be a fitted"):
        latent_classifier(SupervisedPPCA(2), None)
    with pytest.raises(ValueError, match="has learned numbers"):
        latent_classifier(SupervisedPPCA(2, output_noise=0.1).fit(X, X[:, 0]), None)
    with pytest.raises(ValueError, match="has learned labels"):
        latent_classifier(SupervisedPPCA(1).fit(X, np.c_[TWO, SPECIES == 1]), None)
    with pytest.raises(ValueError, match="has learned from rows without"):
        latent_classifier(MixtureOfFactorModels(1, 2).fit(X, np.full(150, -1)), None)
    own = MixtureOfFactorModels(2, 2, classifier="per_component", random_state=0).fit(X, TWO)
    with pytest.raises(ValueError, match="component must be given, from 0 to 1"):
        latent_classifier(own, None)
