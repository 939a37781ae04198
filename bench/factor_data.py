"""Data for factor models: drawn ones, and real ones from the folder that the user names."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from bench.jobs import ROOT
from bench.options import Options
from bench.problems import Array

BESIDE = ROOT.parent / "shared" / "data"


def data_folder(given: Path | None) -> Path | None:
    """The folder that was named, or the one beside the repository if it is there.

    Raises
    ------
    NotADirectoryError
        If a folder was named that does not exist.
    """
    if given is None:
        return BESIDE if BESIDE.is_dir() else None
    if not given.is_dir():
        raise NotADirectoryError(
            f"--data must name a folder of data files, and {str(given)!r} is none; leave the "
            "option out to use ../shared/data or, if that is not there, drawn data"
        )
    return given


def real(options: Options, name: str) -> dict[str, Array] | None:
    """The arrays of a data file, or None, said aloud, if there is no such file."""
    path = None if options.data is None else options.data / name
    if path is None or not path.is_file():
        options.say(f"{name} was not found: drawn data instead (name its folder with --data DIR)")
        return None
    with np.load(path, allow_pickle=False) as content:
        return {key: content[key] for key in content.files}


def spread(n: int, d: int, strengths: Array, noise: float, seed: int = 0) -> Array:
    """Rows of a factor model; factor i has standard deviation ``strengths[i]`` in every column.

    Noise and means are those of all columns; the loadings are random directions.
    """
    rng = np.random.default_rng([seed, n, d])
    loadings = rng.normal(size=(len(strengths), d)) * np.asarray(strengths)[:, None]
    X = rng.normal(size=(n, len(strengths))) @ loadings
    X += noise * rng.normal(size=(n, d))
    X += rng.normal(size=d)
    return X


def groups(n: int, d: int, n_groups: int, n_factors: int, seed: int = 0) -> Array:
    """Rows of a mixture of factor models, as a stand-in for images."""
    rng = np.random.default_rng([seed, n, d, n_groups])
    means = rng.normal(size=(n_groups, d))
    loadings = 0.5 * rng.normal(size=(n_groups, n_factors, d))
    labels = rng.integers(n_groups, size=n)
    X = means[labels] + rng.normal(size=(n, d)) * rng.uniform(0.2, 0.6, size=d)
    for k in range(n_groups):
        mine = np.flatnonzero(labels == k)
        X[mine] += rng.normal(size=(len(mine), n_factors)) @ loadings[k]
    return X


def digits(options: Options, blur: str) -> tuple[str, Array, Array]:
    """Name, training and test rows: MNIST with pixels in 0..1, or rows that are drawn.

    A density of pixels that are constant or have few values is unbounded, and says nothing. So the
    pixels are blurred: ``"steps"`` adds uniform noise as wide as a grey level (dequantised),
    ``"noise"`` normal noise of standard deviation 0.1, ``"none"`` nothing.
    """
    n, n_test = (4000, 1000) if options.quick else (60_000, 10_000)
    content = real(options, "mnist.npz")
    if content is None:
        X = groups(n + n_test, 784, 20, 5)
        return f"drawn ({n:,}, 784)", X[:n], X[n:]
    first_test = int(content["n_train"])
    pixels = content["X"]
    rows = np.concatenate([pixels[:n], pixels[first_test : first_test + n_test]])
    rng = np.random.default_rng(0)
    if blur == "steps":
        X = (rows + rng.random(rows.shape)) / 256
    else:
        X = rows / 255 + (0.1 if blur == "noise" else 0.0) * rng.normal(size=rows.shape)
    names = {"steps": "dequantised", "noise": "noise 0.1 added", "none": "as they are"}
    return f"MNIST ({n:,}, 784), {names[blur]}", X[:n], X[n:]
