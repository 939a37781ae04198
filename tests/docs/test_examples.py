"""The examples run, and say what they promise."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import matplotlib.image
import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]


def _run(name: str, folder: Path, *leaves: str) -> str:
    """The script in a process of its own, as a user starts it, with warnings as errors."""
    paths = [str(ROOT / "src"), os.environ.get("PYTHONPATH", "")]
    done = subprocess.run(
        [sys.executable, "-W", "error::UserWarning", str(ROOT / "examples" / name)],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))},
        capture_output=True,
        text=True,
        timeout=180,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    left = {path.name for path in folder.iterdir()}
    assert left == set(leaves), "an example leaves files behind, or not those it speaks of"
    return done.stdout


def _is_picture(path: Path) -> bool:
    """A picture of some size that is not all of one colour."""
    pixels = matplotlib.image.imread(path)[..., :3]
    return min(pixels.shape[:2]) > 100 and len(np.unique(pixels.reshape(-1, 3), axis=0)) > 10


def _number(pattern: str, text: str) -> float:
    found = re.search(pattern, text)
    assert found, (pattern, text)
    return float(found.group(1).replace(",", ""))


def test_every_example_is_run_here() -> None:
    scripts = {path.name for path in (ROOT / "examples").glob("*.py")}
    assert scripts == {
        "messy_table.py", "larger_than_memory.py", "dask_cluster.py", "eigenfaces.py",
        "mixture_of_factors.py", "learned_factors.py", "codebook_digits.py",
        "half_labelled_digits.py", "swiss_roll.py", "gaussian_ridge.py",
        "topics_of_texts.py", "deep_digits.py", "ring_and_moons.py", "curved_borders.py",
    }  # fmt: skip


def test_messy_table(tmp_path: Path) -> None:
    out = _run("messy_table.py", tmp_path)
    assert _number(r"BIC chooses (\d+) groups", out) == 3
    column_means = _number(r"column means: ([\d.]+)", out)
    assert _number(r"this mixture: ([\d.]+)", out) < column_means / 2
    assert "saved, loaded, and the same" in out


@pytest.mark.slow
def test_ring_and_moons(tmp_path: Path) -> None:
    out = _run("ring_and_moons.py", tmp_path, "clusters.png", "merges.png")
    for name, clusters in (("ring", 2), ("moons", 2), ("blobs", 3)):
        assert _number(rf"{name}: (\d+) clusters made of", out) == clusters
    assert _number(r"moons.*-> ([\d.]+)", out) > 0.95
    assert all(_is_picture(tmp_path / name) for name in ("clusters.png", "merges.png"))


@pytest.mark.slow
def test_larger_than_memory(tmp_path: Path) -> None:
    out = _run("larger_than_memory.py", tmp_path)
    assert _number(r"([\d,]+) rows in 8 files", out) == 400_000
    assert "converged after" in out
    weights = re.search(r"weights: (.*)", out)
    assert weights is not None
    got = [float(w) for w in weights.group(1).split()]
    assert got == pytest.approx([0.4, 0.3, 0.2, 0.1], abs=0.01)


@pytest.mark.slow
def test_dask_cluster(tmp_path: Path) -> None:
    pytest.importorskip("distributed", reason="needs Dask: pip install 'mixfold[dask]'")
    out = _run("dask_cluster.py", tmp_path)
    assert "2 workers" in out
    assert _number(r"difference .*: ([\d.e+-]+)", out) < 1e-8


@pytest.mark.slow
def test_eigenfaces(tmp_path: Path) -> None:
    pictures = [f"eigenfaces-{name}.png" for name in ("factors", "reconstructions", "plane")]
    out = _run("eigenfaces.py", tmp_path, *pictures)
    few, many = (_number(rf"{share}% of the variance: (\d+)", out) for share in (80, 99))
    assert 1 < few < many < 64
    added = _number(r"noise added: .* ([\d.]+) dB", out)
    assert _number(r"denoised: .* ([\d.]+) dB", out) > added + 3
    assert _number(r"filled: .* ([\d.]+) dB", out) > 10
    assert _number(r"than 99 % of the others: (\d+)%", out) > 95
    for name in pictures:
        assert name in out and _is_picture(tmp_path / name)


@pytest.mark.slow
def test_mixture_of_factors(tmp_path: Path) -> None:
    out = _run("mixture_of_factors.py", tmp_path, "mixture-of-factors.png")
    assert _number(r"BIC chooses (\d) factors", out) == 2
    assert _number(r"k-means: ([\d.]+)", out) < 0.6
    assert _number(r"this mixture: ([\d.]+)", out) > 0.97
    assert _is_picture(tmp_path / "mixture-of-factors.png")


@pytest.mark.slow
def test_learned_factors(tmp_path: Path) -> None:
    out = _run("learned_factors.py", tmp_path, "learned-factors.png")
    assert _number(r"both numbers learned: ([\d.]+)", out) > _number(r"by BIC: ([\d.]+)", out)
    assert _is_picture(tmp_path / "learned-factors.png")


@pytest.mark.slow
def test_curved_borders(tmp_path: Path) -> None:
    out = _run("curved_borders.py", tmp_path, "curved-borders.png")
    straight, curved, four = (
        _number(rf"(?m)^{name}: ([\d.]+)% right", out)
        for name in ("straight", "curved", "four components, straight")
    )
    assert straight + 5 < curved < four
    assert _is_picture(tmp_path / "curved-borders.png")


@pytest.mark.slow
def test_codebook_digits(tmp_path: Path) -> None:
    out = _run("codebook_digits.py", tmp_path, "codebook-digits.png")
    assert _number(r"images that can be made: ([\d,]+)", out) > 100
    chance = _number(r"chance would make it: ([\d.]+)", out)
    assert _number(r"from the sum of centres: ([\d.]+)", out) < 3 * chance
    assert _number(r"of those within groups: ([\d.]+)", out) == pytest.approx(1, abs=0.05)
    assert _is_picture(tmp_path / "codebook-digits.png")


@pytest.mark.slow
def test_half_labelled_digits(tmp_path: Path) -> None:
    out = _run("half_labelled_digits.py", tmp_path, "half-labelled-digits.png")
    planes = [float(share) for share in re.findall(r"in the plane of \w+: ([\d.]+)", out)]
    assert len(planes) == 3 and planes[1] > planes[0] and planes[2] > planes[0]
    assert all(float(share) > 0.9 for share in re.findall(r"itself: ([\d.]+)", out))
    assert _is_picture(tmp_path / "half-labelled-digits.png")


@pytest.mark.slow
def test_swiss_roll(tmp_path: Path) -> None:
    out = _run("swiss_roll.py", tmp_path, "swiss-roll.png")
    told = {
        title: float(share) for title, share in re.findall(r"^(.+): ([\d.]+) of the way", out, re.M)
    }
    assert len(told) == 7
    unrolled = {title for title, share in told.items() if share > 0.99}
    assert unrolled == {"LLE", "LLE, modified", "Isomap", "kernel PCA, distances of Isomap"}
    assert all(share < 0.3 for title, share in told.items() if title not in unrolled)
    assert _number(r"relative difference of coordinates: ([\d.]+)", out) < 0.1
    assert _is_picture(tmp_path / "swiss-roll.png")


@pytest.mark.slow
def test_gaussian_ridge(tmp_path: Path) -> None:
    out = _run("gaussian_ridge.py", tmp_path, "gaussian-ridge.png")
    assert _number(r"log score along it: ([\d.e+-]+)", out) < 1e-9
    found = re.search(r"in degrees: (\d+), (\d+) \(the clouds: (\d+), (\d+)\)", out)
    assert found is not None
    angles = [float(angle) for angle in found.groups()]
    assert angles[:2] == pytest.approx(angles[2:], abs=6)
    assert _number(r"least variance: ([\d.]+) right", out) > 0.8
    assert _number(r"largest variance: ([\d.]+) right", out) < 0.5
    assert _is_picture(tmp_path / "gaussian-ridge.png")


@pytest.mark.slow
def test_topics_of_texts(tmp_path: Path) -> None:
    pictures = [f"{name}-of-texts.png" for name in ("topics", "clusters")]
    out = _run("topics_of_texts.py", tmp_path, *pictures)
    assert _number(r"clusters that are left of 20: (\d+)", out) == 8
    assert _number(r"is perfect\): ([\d.]+)", out) > 0.95
    told = {int(k): float(p) for k, p in re.findall(r"^ +(\d+) +([\d.]+)$", out, re.M)}
    assert set(told) == {1, 2, 5, 20} and min(told, key=lambda k: told[k]) == 5
    topics = [set(words.split()) for words in re.findall(r"^topic \d: (.*)", out, re.M)]
    sea = "ship harbour sail wind wave anchor captain crew island storm tide deck"
    assert sum(topic <= set(sea.split(" ")) for topic in topics) == 1
    assert "'travel'" in out
    for name in pictures:
        assert name in out and _is_picture(tmp_path / name)


@pytest.mark.slow
def test_deep_digits(tmp_path: Path) -> None:
    pictures = [f"deep-digits-{name}.png" for name in ("parts", "made", "mistakes")]
    out = _run("deep_digits.py", tmp_path, *pictures)
    assert _number(r"parts without signs: ([\d.]+)", out) > 0.9
    grown = _number(r"one after the other: ([\d.]+)", out)
    assert 0.9 < grown < _number(r"trained as a whole: ([\d.]+)", out)
    assert _number(r"a deep belief net: ([\d.]+)", out) > 0.95
    laplace, mixture = (
        _number(rf"by {name}: (\d+)% recognised", out)
        for name in ("the Laplace prior", "a mixture")
    )
    assert mixture > laplace + 5
    for name in pictures:
        assert name in out and _is_picture(tmp_path / name)
