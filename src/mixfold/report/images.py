"""Rows as small PNG images inside the page, in grey or with signs in colour."""

from __future__ import annotations

import base64
import struct
import zlib
from dataclasses import dataclass
from math import isqrt
from typing import Any

import numpy as np

from mixfold.contracts import Array
from mixfold.report.markup import Html, tag

# pixels of all pictures of a section: the page stays small
MOST_PIXELS = 400_000
_LEAST_GUESS = 64
_ACROSS = 40
# ends of the signed scale, blue and orange, apart for every kind of sight
_LOW, _MIDDLE, _HIGH = (np.array(c, float) for c in ((33, 102, 172), (247, 247, 247), (217, 95, 2)))
_UNKNOWN = np.array([213, 94, 160], float)


@dataclass(frozen=True, slots=True)
class ImageShape:
    """Height and width of the picture that a row is, and whether that was only guessed."""

    height: int
    width: int
    guessed: bool = False


def image_shape(given: Any, n_columns: int, named: bool) -> ImageShape | None:
    """The shape that was given, else a guess: a square number of columns that have no names."""
    if given is not None:
        try:
            height, width = (int(v) for v in given)
        except (TypeError, ValueError):
            raise ValueError(
                f"image_shape must be (height, width), two whole numbers; got {given!r}"
            ) from None
        if height < 1 or width < 1 or height * width != n_columns:
            raise ValueError(
                f"image_shape=({height}, {width}) makes {height * width} pixels, but the model has "
                f"{n_columns} columns; give a height and a width whose product is {n_columns}"
            )
        return ImageShape(height, width)
    side = isqrt(n_columns)
    if named or n_columns < _LEAST_GUESS or side * side != n_columns:
        return None
    return ImageShape(side, side, guessed=True)


def grey(values: Array, shape: ImageShape, low: float, high: float, alt: str) -> Html:
    """A row as a picture, black at ``low`` and white at ``high``."""
    step = high - low if high > low else 1.0
    level = np.clip((values - low) / step, 0, 1)[:, None] * np.full(3, 255.0)
    return _image(level, values, shape, alt)


def signed_image(values: Array, shape: ImageShape, most: float, alt: str) -> Html:
    """A row as a picture: blue below zero, orange above."""
    part = np.clip(values / (most if most > 0 else 1.0), -1, 1)[:, None]
    ends = np.where(part < 0, _LOW, _HIGH)
    return _image(_MIDDLE + np.abs(part) * (ends - _MIDDLE), values, shape, alt)


def _image(colours: Array, values: Array, shape: ImageShape, alt: str) -> Html:
    colours = np.where(np.isnan(values)[:, None], _UNKNOWN, np.nan_to_num(colours))
    pixels = np.round(colours).astype(np.uint8).reshape(shape.height, shape.width, 3)
    return tag(
        "img", src=data_uri(pixels), alt=alt, title=alt, width=shape.width, height=shape.height
    )


def data_uri(pixels: Array) -> str:
    """Pixels as an address that holds them."""
    return "data:image/png;base64," + base64.b64encode(png(pixels)).decode()


def png(pixels: Array) -> bytes:
    """A PNG file of uint8: red, green and blue (height, width, 3), or grey (height, width)."""
    height, width = pixels.shape[:2]
    lines = np.concatenate([np.zeros((height, 1), np.uint8), pixels.reshape(height, -1)], axis=1)
    head = struct.pack(">IIBBBBB", width, height, 8, 2 if pixels.ndim == 3 else 0, 0, 0, 0)
    data = zlib.compress(lines.tobytes(), 9)
    parts = ((b"IHDR", head), (b"IDAT", data), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(kind, body) for kind, body in parts)


def _chunk(kind: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


def sheet_of(X: Array, shape: ImageShape) -> dict[str, Any] | None:
    """Many rows as one picture, for the script: as many as there is room for, in lines of 40."""
    n = min(len(X), MOST_PIXELS // (shape.height * shape.width))
    if n == 0:
        return None
    lines = -(-n // _ACROSS)
    low, high = float(np.nanmin(X[:n])), float(np.nanmax(X[:n]))
    level = np.nan_to_num(255 * (X[:n] - low) / (high - low if high > low else 1.0), nan=128.0)
    tiles = np.zeros((lines * _ACROSS, shape.height, shape.width), np.uint8)
    tiles[:n] = np.round(level).reshape(n, shape.height, shape.width)
    grid = tiles.reshape(lines, _ACROSS, shape.height, shape.width).swapaxes(1, 2)
    pixels = grid.reshape(lines * shape.height, _ACROSS * shape.width)
    size = {"count": n, "across": _ACROSS, "width": shape.width, "height": shape.height}
    return {**size, "uri": data_uri(pixels)}


def affordable(shape: ImageShape, wanted: int) -> int:
    """How many pictures of a shape there is room for, of those that are wanted."""
    return max(1, min(wanted, MOST_PIXELS // (shape.height * shape.width)))


def tile(picture: Html, caption: str) -> Html:
    """A picture above its caption."""
    return tag("figure", picture, tag("figcaption", caption))
