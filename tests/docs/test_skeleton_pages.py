"""The skeletons of a section of the report and of a plot, on a model of counts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure

from mixfold import GaussianMixture, Mixture
from mixfold.report import page as page_module
from mixfold.report import write_report
from tests.docs.skeletons import load_skeleton


@pytest.fixture(scope="module")
def counts() -> np.ndarray:
    rng = np.random.default_rng(0)
    rates = np.repeat([[3.0, 30.0, 8.0], [20.0, 4.0, 8.0]], 150, axis=0)
    return rng.poisson(rates * rng.gamma(2.0, 0.5, rates.shape)).astype(float)


@pytest.fixture(scope="module")
def model(counts: np.ndarray) -> Mixture:
    return Mixture("negative-binomial", 2, random_state=0).fit(counts)


def test_section(
    model: Mixture, counts: np.ndarray, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    section = load_skeleton("report_section").dispersions
    monkeypatch.setattr(page_module, "SECTIONS", (*page_module.SECTIONS, section))
    text = write_report(model, counts, path=tmp_path / "r.html").read_text("utf-8")
    assert 'id="dispersions"' in text and "Dispersion of counts" in text
    assert f"{model.dispersions_[0, 0]:.3g}" in text and "left out" not in text.split("</h2>")[-1]
    other = GaussianMixture(2, random_state=0).fit(counts)
    plain = write_report(other, counts, path=tmp_path / "g.html").read_text("utf-8")
    assert 'id="dispersions"' not in plain


def test_section_tells_of_poisson_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    section = load_skeleton("report_section").dispersions
    monkeypatch.setattr(page_module, "SECTIONS", (*page_module.SECTIONS, section))
    X = np.random.default_rng(0).binomial(9, 0.5, (200, 14)).astype(float)
    fitted = Mixture("negative-binomial", 1).fit(X)
    text = write_report(fitted, X, path=tmp_path / "r.html").read_text("utf-8")
    assert "No column varies more than Poisson counts do" in text
    assert "2 columns of smaller dispersion are left out" in text


def test_plot(model: Mixture) -> None:
    plot_dispersions: Any = load_skeleton("plot").plot_dispersions
    ax = Figure().add_subplot()
    drawn = plot_dispersions(ax, model, s=9)
    means, variances = drawn.get_offsets().T
    np.testing.assert_allclose(means, model.means_.ravel())
    np.testing.assert_allclose(variances, means + model.dispersions_.ravel() * means**2)
    assert ax.get_xscale() == "log" and ax.get_ylabel() == "variance"
    with pytest.raises(ValueError, match="GaussianMixture has no dispersions_: fit a Mixture"):
        plot_dispersions(ax, GaussianMixture())
