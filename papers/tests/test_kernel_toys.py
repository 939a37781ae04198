"""The toys of kernel models: points as they should be, measures by hand, claims, the picture."""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib.figure import Figure

from mixfold import SupervisedPPCA
from mixfold.math.kernels import RbfKernel
from papers import kernel_toys
from papers.frame.run import reproduce
from papers.frame.table import Table
from papers.shared import plain_sppca, subspaces

pytestmark = pytest.mark.slow  # a published table, run small


@pytest.fixture(scope="module")
def table() -> Table:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kernel_toys, "QUICK", kernel_toys.Size(3))
        return reproduce(kernel_toys.EXPERIMENT, None, quick=True).table


def _centred(X: np.ndarray, gamma: float) -> np.ndarray:
    G = RbfKernel(gamma).block(X, X)
    H = np.eye(len(X)) - 1 / len(X)
    return H @ G @ H


# ------------------------------------------------ points


def test_points_are_as_the_source_draws_them(rng: np.random.Generator) -> None:
    X = np.concatenate(
        [kernel_toys.draw_three_groups(rng).reshape(3, 30, 2) for _ in range(40)], axis=1
    )
    np.testing.assert_allclose(X.mean(axis=1), kernel_toys.CENTRES, atol=0.02)
    np.testing.assert_allclose(X.std(axis=1), 0.1, rtol=0.1)
    X, y = kernel_toys.draw_crossed_groups(rng)
    assert len(X) == 100 and y.sum() == 50
    np.testing.assert_array_equal(y, X.prod(axis=1) > 0)
    X, y = kernel_toys.draw_two_classes(rng)
    assert len(X) == 200 and y.sum() == 0
    np.testing.assert_allclose(X[y > 0].mean(axis=0), (0.5, 1.0), atol=0.5)


def test_outermost_points_are_five_of_each_corner(rng: np.random.Generator) -> None:
    X, _ = kernel_toys.draw_crossed_groups(rng)
    chosen = kernel_toys.find_outermost(X)
    assert len(set(chosen)) == 20
    np.testing.assert_array_equal(np.bincount(chosen // 25), 5)
    far = np.abs(X).sum(axis=1)
    for corner in range(4):
        mine = np.arange(25 * corner, 25 * (corner + 1))
        others = np.setdiff1d(mine, chosen)
        assert far[np.intersect1d(mine, chosen)].min() >= far[others].max()


# ------------------------------------------------ measures


def test_the_best_threshold_is_found_in_both_directions(rng: np.random.Generator) -> None:
    axis, y = rng.normal(size=41), rng.integers(0, 2, 41)
    cuts = np.concatenate([[-9.0], np.sort(axis) + 1e-9])
    shares = [np.mean((axis > cut) == y) for cut in cuts]
    expected = max(*shares, *(1 - share for share in shares))
    assert kernel_toys.measure_split(axis, y) == pytest.approx(expected)
    assert kernel_toys.measure_split(-axis, y) == pytest.approx(expected)
    assert kernel_toys.measure_split(np.array([3.0, 1.0, 2.0, 0.0]), np.array([1, 0, 1, 0])) == 1.0


def test_groups_are_apart_or_not(rng: np.random.Generator) -> None:
    scores = np.repeat([[0.0, 0], [1, 0], [0, 1]], 30, axis=0) + 0.1 * rng.normal(size=(90, 2))
    assert kernel_toys.are_groups_apart(scores)
    scores[3] = (1.0, 0.1)
    assert not kernel_toys.are_groups_apart(scores)


def test_angles_are_to_the_first_coordinate() -> None:
    for direction, angle in (((1, 0), 0), ((0, -2), 90), ((-1, 1), 45), ((np.sqrt(3), -1), 30)):
        assert kernel_toys.measure_angle(np.array(direction, float)) == pytest.approx(angle)


def test_steps_of_em_are_those_of_a_power_iteration(rng: np.random.Generator) -> None:
    """Whatever the noise: each multiplies the span by the kernel matrix."""
    X = kernel_toys.draw_three_groups(rng)
    few, more = kernel_toys.run_em_steps(X, (3, 9), 7, X)
    assert (few.steps, more.steps) == (3, 9) and few.error > more.error
    # values on the rows themselves span what the axes span
    G = _centred(X, kernel_toys.GAMMA)
    powers = np.linalg.matrix_power(G, 6) @ few.values
    assert subspaces.measure_span_error(powers, more.values) < 1e-6


def test_after_many_steps_em_has_the_scores_of_kernel_pca(rng: np.random.Generator) -> None:
    X = kernel_toys.draw_three_groups(rng)
    (turned,) = kernel_toys.run_em_steps(X, (1500,), 0, X)
    scores = kernel_toys.fit_kernel_pca(X, 3).transform(X)
    signs = np.sign((scores * turned.values).sum(axis=0))
    np.testing.assert_allclose(turned.values * signs, scores, atol=1e-4)


def test_batches_are_added_to_what_is_known(rng: np.random.Generator) -> None:
    X = kernel_toys.draw_three_groups(rng)
    models = kernel_toys.fit_in_batches(X)
    for n, model in zip((60, 70, 80, 90), models, strict=True):
        values = np.linalg.eigvalsh(_centred(X[:n], kernel_toys.GAMMA))[:-4:-1]
        np.testing.assert_allclose(model.eigenvalues_, values, rtol=1e-8)


def test_labels_that_are_not_given_are_not_seen(rng: np.random.Generator) -> None:
    X, y = kernel_toys.draw_two_classes(rng)
    known = kernel_toys.choose_labelled(y, rng)
    assert len(known) == 20 and y[known].sum() == 0
    lies = np.where(np.isin(np.arange(200), known), y, -y)
    true, false = (
        kernel_toys.find_directions(X, y, known),
        kernel_toys.find_directions(X, lies, known),
    )
    for name, direction in true.items():
        assert np.linalg.norm(direction) == pytest.approx(1)
        same = abs(direction @ false[name]) > 1 - 1e-9
        assert same != ("all labelled" in name), name


# ------------------------------------------------ the table


def test_every_toy_has_its_rows(table: Table) -> None:
    assert set(_values()) - {row for row in _values() if row.startswith(kernel_toys.REFERENCE)} == {
        *table.rows
    }
    assert all(len(c.values) == 3 for c in table.cells if c.column == "mean")
    claims = {check.claim: check for check in table.checks}
    assert len(claims) == 6
    for check in table.checks:
        assert check.holds, check


def test_eigenvalues_are_those_of_a_dense_decomposition(table: Table) -> None:
    X = kernel_toys.draw_three_groups(np.random.default_rng([0, 42, 1]))
    values = np.linalg.eigvalsh(_centred(X, 10.0))[:-9:-1]
    cells = [table.cell(f"eigenvalue {k + 1}", "mean") for k in range(8)]
    np.testing.assert_allclose([c.values[1] for c in cells if c is not None], values, rtol=1e-8)


def _values(draws: int = 20) -> dict[str, list[float]]:
    """Draws for which every claim holds."""
    rng = np.random.default_rng(0)
    plain, *supervised = (f"{name}: share right on axis 1" for name in kernel_toys.SQUARE)
    found = {
        kernel_toys.APART: [1.0] * draws,
        "EM: error after 20 steps": [0.12] * draws,
        "EM: error after 100 steps": [1e-4] * draws,
        plain: [0.77] * draws,
        **{row: [1.0] * draws for row in supervised},
        kernel_toys.JOINED: [1e-9] * draws,
    }
    angles = {"PCA": 19.0, "SPPCA, all labelled": 63.0, "SPPCA, labelled points only": 61.0,
              "S2PPCA": 21.0}  # fmt: skip
    values = {f"eigenvalue {k + 1}": 22.0 / (k + 1) for k in range(8)}
    values |= {f"angle of {name}": angle for name, angle in angles.items()}
    for row, value in values.items():
        found[row] = [float(v) for v in value * (1 + 0.01 * rng.normal(size=draws))]
        found[kernel_toys.REFERENCE + row] = list(found[row])
    for name, angle in list(angles.items())[1:]:
        moved = 22.0 if name == "S2PPCA" else angle - 9
        found[f"angle of {name}{kernel_toys.NOISES_HELD}"] = [moved] * draws
    return found


def test_claims_hold_and_fail() -> None:
    assert all(check.holds for check in kernel_toys.check_claims(_values()))
    wrong = {
        "eigenvalue 3": [4.6] * 20,
        kernel_toys.APART: [1.0] * 19 + [0.0],
        "EM: error after 20 steps": [1e-6] * 20,
        kernel_toys.JOINED: [1e-9] * 19 + [1e-5],
        f"{kernel_toys.SQUARE[2]}: share right on axis 1": [1.0] * 19 + [0.99],
        f"angle of S2PPCA{kernel_toys.NOISES_HELD}": [22.0] * 19 + [18.0],
    }
    for number, (row, values) in enumerate(wrong.items()):
        holds = [check.holds for check in kernel_toys.check_claims(_values() | {row: values})]
        assert holds == [i != number for i in range(6)], row
    unaware = {f"{kernel_toys.SQUARE[0]}: share right on axis 1": [0.95] * 20}
    assert not kernel_toys.check_claims(_values() | unaware)[4].holds
    values = _values()
    row = kernel_toys.REFERENCE + "angle of S2PPCA"
    for apart, holds in ((0.4, True), (0.6, False)):
        moved = {row: [angle + apart for angle in values["angle of S2PPCA"]]}
        assert kernel_toys.check_claims(values | moved)[0].holds is holds


def test_the_picture_has_all_figures(table: Table) -> None:
    figure = Figure(layout="constrained")
    assert table.draw is not None
    table.draw(figure)
    assert len(figure.axes) == 8 + 15 + 15 + 6 + 6 + 2
    titles = [ax.get_title() for ax in figure.axes]
    assert titles[0].startswith("axis 1, eigenvalue 2") and "90 at once" in titles
    assert {f"S2PPCA, axis {k}" for k in (1, 2, 3)} < set(titles)
    free, held = figure.axes[-2:]
    assert [len(ax.lines) for ax in (free, held)] == [4, 4]
    assert "PCA: " in free.lines[0].get_label()  # type: ignore[operator]


def test_the_reference_is_the_likeliest_of_its_starts() -> None:
    """Twenty labelled points of which one start of EM ends in a lower maximum, 62 degrees away."""
    rng = np.random.default_rng([0, 42, 19])
    kernel_toys.draw_three_groups(rng)
    kernel_toys.draw_crossed_groups(rng)
    X, y = kernel_toys.draw_two_classes(rng)
    known = kernel_toys.choose_labelled(y, rng)
    name = "SPPCA, labelled points only"
    found = kernel_toys.find_reference_directions(X, y, known)[name]
    ours = kernel_toys.find_directions(X, y, known)[name]
    angles = [kernel_toys.measure_angle(w) for w in (found, ours)]
    assert angles[0] == pytest.approx(angles[1], abs=0.1)
    Y = y[known, None]
    ends = [
        plain_sppca.fit_by_em(
            X, 2, Y, known, 1, semi=False, rng=np.random.default_rng(start), steps=4000
        )
        for start in (0, 1)
    ]
    low, high = (plain_sppca.measure_log_likelihood(end, X, Y, known, semi=False) for end in ends)
    assert low < high - 1
    model = SupervisedPPCA(1, task="regression", standardize=False, tol=1e-9, random_state=0)
    assert high == pytest.approx(20 * model.fit(X[known], y[known]).lower_bound_, abs=1e-4)


def test_the_likelihood_of_the_reference_counts_rows_without_outputs(
    rng: np.random.Generator,
) -> None:
    X, Y, train = rng.normal(size=(9, 2)), rng.normal(size=(4, 1)), np.arange(4)
    made = plain_sppca.Fit(np.array([[1.0], [0.5]]), np.array([[2.0]]), 0.3, 0.2, X.mean(axis=0))
    labelled, every = (
        plain_sppca.measure_log_likelihood(made, X, Y, train, semi=semi) for semi in (False, True)
    )
    covariance = made.W @ made.W.T + 0.3 * np.eye(2)
    rest = X[4:] - made.mean
    squares = np.einsum("ni,ij,nj->n", rest, np.linalg.inv(covariance), rest)
    logs = -0.5 * (squares + np.linalg.slogdet(2 * np.pi * covariance)[1])
    assert every - labelled == pytest.approx(logs.sum())
