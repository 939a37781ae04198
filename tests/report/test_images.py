"""PNG files made by hand, read by somebody else."""

from __future__ import annotations

import base64
import io

import numpy as np
import pytest
from matplotlib.image import imread

from mixfold.report.images import ImageShape, grey, image_shape, png, sheet_of, signed_image


def read(uri: str) -> np.ndarray:
    head, _, body = uri.partition(",")
    assert head == "data:image/png;base64"
    return np.round(255 * imread(io.BytesIO(base64.b64decode(body)))).astype(int)


def of_tag(text: str) -> np.ndarray:
    return read(text.split('src="')[1].split('"')[0])


@pytest.mark.parametrize("shape", [(3, 5, 3), (4, 2), (1, 1)])
def test_png(shape: tuple[int, ...], rng: np.random.Generator) -> None:
    pixels = rng.integers(0, 256, shape).astype(np.uint8)
    found = np.round(255 * imread(io.BytesIO(png(pixels)))).astype(np.uint8)
    np.testing.assert_array_equal(found, pixels)


def test_grey_and_signed() -> None:
    shape = ImageShape(1, 3)
    assert of_tag(grey(np.array([0.0, 5.0, 10.0]), shape, 0, 10, "a"))[0, :, 0].tolist() == [
        0,
        128,
        255,
    ]
    blue, white, orange = of_tag(signed_image(np.array([-2.0, 0.0, 2.0]), shape, 2.0, "a"))[0]
    assert blue[2] > blue[0] and orange[0] > orange[2] and np.ptp(white) == 0
    missing = of_tag(grey(np.array([np.nan, 0.0, 1.0]), shape, 0, 1, "a"))[0, 0]
    assert np.ptp(missing) > 50  # a colour: it is no value
    flat = of_tag(grey(np.ones(3), shape, 1.0, 1.0, "a"))
    assert np.ptp(flat) == 0


def test_sheet_of_rows() -> None:
    X = np.arange(50)[:, None] * np.ones(6)
    sheet = sheet_of(X, ImageShape(2, 3))
    assert sheet is not None
    pixels = read(sheet["uri"])
    assert pixels.shape == (4, 120) and sheet["count"] == 50
    assert pixels[0, 3 * 7] == round(255 * 7 / 49) and pixels[2, 3 * 9] == 255
    assert sheet_of(np.ones((3, 10**6)), ImageShape(1000, 1000)) is None


@pytest.mark.parametrize(
    ("columns", "named", "guess"), [(64, False, 8), (784, False, 28), (65, False, 0), (64, True, 0),
                                    (49, False, 0)]
)  # fmt: skip
def test_guesses(columns: int, named: bool, guess: int) -> None:
    found = image_shape(None, columns, named)
    assert (found is None) if not guess else (found == ImageShape(guess, guess, guessed=True))
