"""What is measured of generated images tells apart the ways in which they can be bad."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_digits

from papers.shared import digit_judges

pytestmark = pytest.mark.slow  # a published table, run small

SIZE = 50


@pytest.fixture(scope="module")
def digits() -> dict[str, dict[int, np.ndarray]]:
    """Real images in three parts: for the judge, to compare with, and as if made."""
    X, y = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(X))  # a writer's images stand together
    X, y = X[order], y[order]
    parts = {"judge": 0, "real": SIZE, "made": 2 * SIZE}
    return {
        name: {c: X[y == c][first : first + SIZE] / 16 for c in range(10)}
        for name, first in parts.items()
    }


@pytest.fixture(scope="module")
def judge(digits: dict[str, dict[int, np.ndarray]]) -> digit_judges.Judge:
    rows = digits["judge"]
    return digit_judges.train_judge(np.concatenate([*rows.values()]), np.repeat(range(10), SIZE))


def test_real_images_are_good(
    judge: digit_judges.Judge, digits: dict[str, dict[int, np.ndarray]]
) -> None:
    found = digit_judges.judge_images(judge, digits["made"], digits["real"])
    assert found.recognised > 0.9 and found.diversity == pytest.approx(1, abs=0.1)
    assert found.coverage > 0.85
    same = digit_judges.judge_images(judge, digits["real"], digits["real"])
    assert same.diversity == pytest.approx(1) and same.coverage == 1


def test_each_fault_has_its_measure(
    judge: digit_judges.Judge, digits: dict[str, dict[int, np.ndarray]]
) -> None:
    real = digits["real"]
    means = {c: X.mean(axis=0) + np.zeros((SIZE, 1)) for c, X in digits["made"].items()}
    alike = digit_judges.judge_images(judge, means, real)
    assert alike.recognised > 0.9 and alike.diversity < 1e-6 and alike.coverage < 0.9
    others = {c: digits["made"][(c + 1) % 10] for c in range(10)}
    wrong = digit_judges.judge_images(judge, others, real)
    assert wrong.recognised < 0.1 and wrong.diversity > 0.7 and wrong.coverage < 0.3
    rng = np.random.default_rng(0)
    noise = {c: rng.random((SIZE, 64)) for c in range(10)}
    assert digit_judges.judge_images(judge, noise, real).coverage == 0


def test_ink_beyond_paper_is_cut(
    judge: digit_judges.Judge, digits: dict[str, dict[int, np.ndarray]]
) -> None:
    made = digits["made"]
    beyond = {c: np.where(X == 0, -5.0, X) for c, X in made.items()}
    plain = digit_judges.judge_images(judge, made, digits["real"])
    assert digit_judges.judge_images(judge, beyond, digits["real"]) == plain
