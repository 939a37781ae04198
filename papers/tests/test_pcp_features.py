"""Topics as features: features that tell all or nothing, and claims that can fail."""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib.figure import Figure
from scipy import sparse

from papers import pcp_features

pytestmark = pytest.mark.slow  # a published table, run small


def test_features_that_tell_all_or_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pcp_features, "SIZES", (10, 20))
    y = np.repeat(np.arange(3), 60)
    perfect = pcp_features.measure(np.eye(3)[y], y, 2, 0)
    assert perfect.shape == (2, 2) and (perfect == 1).all()
    chance = pcp_features.measure(np.random.default_rng(0).random((180, 3)), y, 4, 0)
    assert chance.mean() == pytest.approx(0.5, abs=0.06)


def test_shares_of_topics_tell_the_classes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pcp_features, "SIZES", (10, 40))
    monkeypatch.setattr(pcp_features, "TOPICS", 4)
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(3), 50)
    law = 0.1 + 1.5 * (np.arange(30) // 10 == y[:, None])
    X = sparse.csr_matrix(rng.poisson(law).astype(float))
    for method in pcp_features.METHODS:
        Z = pcp_features.fit_features(method, X, 5, 0)
        np.testing.assert_allclose(Z.sum(axis=1), 1, atol=1e-6)
        assert pcp_features.measure(np.sqrt(Z), y, 2, 0)[:, -1].mean() > 0.9, method


def test_claims_can_fail() -> None:
    rng = np.random.default_rng(0)
    base = np.linspace(0.6, 0.9, 5) + rng.normal(0, 0.001, (6, 5))
    values = {("Reuters", "pLSI"): base, ("Reuters", "LDA"): base, ("Reuters", "PCP"): base + 0.02}
    noise = rng.normal(0, 0.001, base.shape)
    values["Reuters", "PCP"] = values["Reuters", "PCP"] + noise
    assert all(check.holds for check in pcp_features.check_claims(values))
    turned = {place: 1 - v for place, v in values.items()}
    assert not any(check.holds for check in pcp_features.check_claims(turned))
    figure = Figure()
    pcp_features.draw(values, figure)
    assert [ax.get_title() for ax in figure.axes] == ["Reuters"]
