"""Claims of pages about images: every picture is decoded, every number recomputed."""

from __future__ import annotations

import base64
import io

import numpy as np
import pytest
from matplotlib.image import imread

from mixfold import PPCA, GaussianMixture
from mixfold.report.formatting import number, share
from tests.report.claims import sections

SHAPE = (8, 9)
BLUE, WHITE, ORANGE = (np.array(c, float) for c in ((33, 102, 172), (247, 247, 247), (217, 95, 2)))


@pytest.fixture(scope="module")
def images() -> np.ndarray:
    """Two kinds of pictures with a bright corner, no symmetry, one pixel that is always dark."""
    rng = np.random.default_rng(0)
    kinds = rng.uniform(0, 10, size=(2, 72))
    X = kinds[np.arange(120) % 3 // 2] + rng.normal(size=(120, 2)) @ rng.normal(size=(2, 72))
    X += 0.5 * rng.normal(size=(120, 72))
    X[:, 5] = 0.0
    return X


def grey(values: np.ndarray, low: float, high: float) -> np.ndarray:
    """Pixels (8, 9, 3), black at ``low``, white at ``high``."""
    level = np.clip((values - low) / (high - low), 0, 1).reshape(SHAPE)
    return 255 * np.repeat(level[:, :, None], 3, axis=2)


def signed(values: np.ndarray, most: float) -> np.ndarray:
    """Orange at ``most``, white at zero, blue at minus ``most``."""
    part = np.clip(values / most, -1, 1).reshape(SHAPE)[:, :, None]
    return np.where(part < 0, WHITE + part * (WHITE - BLUE), WHITE + part * (ORANGE - WHITE))


def test_groups_of_images(tmp_path, images) -> None:
    images = images + 0.1 * np.random.default_rng(1).normal(size=images.shape)
    model = GaussianMixture(2, covariance_type="tied-diag", random_state=0).fit(images)
    found = sections(model, tmp_path, images, image_shape=SHAPE)
    low, high = model.means_.min(), model.means_.max()
    found.check("pictures", [
        "Each row shown as an image of 8 \u00d7 9 pixels.",
        *(f"component {k}, {share(model.weights_[k])}" for k in range(2)),
        f"Black is {number(low)}, white is {number(high)}.",
    ])  # fmt: skip
    found.check_images("pictures", {
        f"mean of component {k}": grey(model.means_[k], low, high) for k in range(2)
    })  # fmt: skip
    # the oddest rows are shown from the darkest to the brightest of their pixels
    rows = np.argsort(-model.oddness(images, n_draws=1000), kind="stable")[:15]
    odd = images[rows]
    found.check_images("novelty", {
        f"row {row}": grey(images[row], odd.min(), odd.max()) for row in rows
    })  # fmt: skip
    # what the map shows when a row is pointed at: rows in lines of forty
    sheet = found.map["pictures"]
    pixels = np.round(255 * imread(io.BytesIO(base64.b64decode(sheet["uri"].partition(",")[2]))))
    assert (sheet["count"], sheet["height"], sheet["width"]) == (120, *SHAPE)
    for row in (0, 41, 119):
        line, place = divmod(row, sheet["across"])
        tile = pixels[8 * line : 8 * line + 8, 9 * place : 9 * place + 9]
        level = grey(images[row], images.min(), images.max())[:, :, 0]
        np.testing.assert_allclose(tile, level, atol=1)
    assert "pixel (7, 8)" in found.words["profiles"]  # the last of 72, counted from zero


def test_factors_of_images(tmp_path, images) -> None:
    model = PPCA(10).fit(images)
    found = sections(model, tmp_path, images, image_shape=SHAPE)
    mean, L = images.mean(axis=0), model.loadings_
    found.check("pictures", [
        "Each row shown as an image of 8 \u00d7 9 pixels.",
        f"Black is {number(mean.min())}, white is {number(mean.max())}.",
        "(the first 8 of 10 factors)",
        *(f"factor {j + 1}" for j in range(8)),
    ])  # fmt: skip
    found.check_images("pictures", {
        "mean of all rows": grey(mean, mean.min(), mean.max()),
        **{f"factor {j + 1}": signed(L[:, j], np.abs(L[:, j]).max()) for j in range(8)},
    })  # fmt: skip

    # reconstructions by algebra
    covariance = L @ L.T + model.noise_variance_ * np.eye(72)
    apart = images - mean
    rebuilt = mean + apart @ np.linalg.solve(covariance, L @ L.T)
    error = images - rebuilt
    kept = 1 - (error**2).sum() / (apart**2).sum()
    text = found.words["residuals"]
    assert f"Reconstructed rows keep {share(kept)} of the total variance of all columns" in text
    few = np.linspace(0, 119, 9).astype(int)
    most = np.abs(error[few]).max()
    assert f"Differences: orange {number(most)}, white 0, blue {number(-most)}." in text
    low, high = images[few].min(), images[few].max()
    shown = {}
    for row in few:
        shown[f"row {row}"] = grey(images[row], low, high)
        shown[f"row {row}, reconstructed"] = grey(rebuilt[row], low, high)
        shown[f"row {row}, difference"] = signed(error[row], most)
    with np.errstate(divide="ignore", invalid="ignore"):
        explained = 1 - (error**2).sum(axis=0) / (apart**2).sum(axis=0)
    explained[5] = 0.0  # a pixel that does not vary has none
    shown["R² of reconstruction, by pixel"] = grey(explained, 0, 1)
    found.check_images("residuals", shown)
    # one noise for all pixels: errors in the standard deviation of all, not of each
    typical = np.sqrt((error**2).mean(axis=1) / images.var(axis=0).mean())
    lines = text.split("root mean square error, in sd row ")[1]
    for row in np.argsort(-typical, kind="stable")[:10]:
        worst = np.argsort(-np.abs(error[row]), kind="stable")[:3]
        said = "; ".join(
            f"pixel ({j // 9}, {j % 9}) {number(images[row, j])} "
            f"(reconstructed {number(rebuilt[row, j])})"
            for j in worst
        )
        assert f"{row} {said} {number(typical[row])}" in lines
    # pixels without variance come last, with no number
    assert "pixel (0, 5)" not in text.split("By column, as a table")[1].split("pixel")[1]


def test_a_guess_of_images(tmp_path, images) -> None:
    model = PPCA(2).fit(images[:, :64])
    found = sections(model, tmp_path, images[:, :64])
    said = "The 64 columns were taken for images of 8 \u00d7 8 pixels, which is a guess."
    assert f"Note: {said}" in found.words["head"]
    assert "This is a guess: 64 columns without names are a square." in found.words["pictures"]
