"""Tables 5.1 to 5.3 of Arngren (2007): digits, models, claims, and a small rerun."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure

from papers import nlmf
from papers.frame.run import Report, reproduce
from papers.shared import mnist_digits

pytestmark = pytest.mark.slow  # a published table, run small

SMALL = mnist_digits.Size(40, 30, 200)
FEW = (nlmf.FIRST, nlmf.label_balance(1e-1, False), nlmf.LINEAR, nlmf.GREEDY, nlmf.JOINT)


@pytest.fixture(scope="module")
def tests(digits_folder: Path) -> nlmf.Tests:
    return nlmf._make_tests(mnist_digits.load_digits(digits_folder), SMALL)


# ------------------------------------------------ digits


def test_parts_do_not_share_a_digit(digits_folder: Path) -> None:
    digits = mnist_digits.load_digits(digits_folder)
    train, held = digits.each(0, 60), digits.each(60, 100)
    assert np.bincount(train.y).tolist() == [60] * 10
    assert np.bincount(held.y).tolist() == [40] * 10
    rows = {row.tobytes() for row in train.X}
    assert not rows & {row.tobytes() for row in held.X} and len(digits.official.y) == 200
    assert train.X.min() == 0 and train.X.max() == 1
    np.testing.assert_array_equal(train.by_class(3)[7], train.X[train.y == 7][:3])
    with pytest.raises(ValueError, match="must hold 900 training images of each digit"):
        digits.each(0, 900)


def test_other_files_are_refused(digits_folder: Path, tmp_path: Path) -> None:
    with np.load(digits_folder / "mnist.npz") as content:
        arrays = dict(content)
    for change in ({"X": arrays["X"][:, 1:]}, {"n_train": 0}, {"y": arrays["y"] % 9}):
        np.savez(tmp_path / "mnist.npz", **(arrays | change))
        with pytest.raises(ValueError, match="Obtain it again"):
            mnist_digits.load_digits(tmp_path)


def test_the_real_digits_are_those_of_the_table(shared_data: Callable[[str], Path]) -> None:
    digits = mnist_digits.load_digits(shared_data("mnist.npz").parent, np.float32)
    assert len(digits.training.y) == 60000 and len(digits.official.y) == 10000
    squares = np.mean((digits.each(0, 1000).X ** 2).sum(axis=1))
    assert squares == pytest.approx(88.8, abs=2.0)


# ------------------------------------------------ models


def test_what_is_measured_of_a_layer(tests: nlmf.Tests) -> None:
    model = nlmf._make_layer(15, gamma=0.2, sigma2=1e-1, reencode=False)(0)
    found = nlmf.measure_model(model, tests)
    wrong = model.predict(tests.held.X) != tests.held.y
    assert found.held == pytest.approx(wrong.mean()) and sum(found.missed) == wrong.sum()
    gaps = tests.held.X - model.reconstruct(tests.held.X)
    assert found.rebuilt == pytest.approx((gaps**2).sum(axis=1).mean() / 2, rel=1e-6)
    assert found.train is not None and found.train < found.held
    assert found.sparse is not None and 0 <= found.sparse < 0.9 and found.seconds > 0


def test_sources_that_saw_no_label_have_no_such_error(tests: nlmf.Tests) -> None:
    found = nlmf.measure_model(nlmf._make_layer(15, gamma=0.2, supervised="after")(0), tests)
    assert found.train is None and found.held < 0.5


def test_two_sessions_of_a_stack_learn_layers_without_labels(
    tests: nlmf.Tests, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nlmf, "LAYERS", (15, 8))
    make = nlmf._make_stack(8, supervised=False)
    assert nlmf.MODELS[nlmf.SECOND_DUAL](0).supervised is False
    model = make(0)
    found = nlmf.measure_model(model, tests)
    assert found.held < 0.5 and found.rebuilt is not None
    shuffled = np.random.default_rng(0).permutation(tests.train.y)
    other = make(0)
    nlmf.measure_model(other, replace(tests, train=mnist_digits.Labelled(tests.train.X, shuffled)))
    X = tests.held.X[:20]
    np.testing.assert_allclose(other.reconstruct(X), model.reconstruct(X), atol=1e-8)


def test_every_published_row_has_a_model() -> None:
    rows = {*nlmf.PUBLISHED_ERRORS, *nlmf.FEW, nlmf.GREEDY, nlmf.JOINT}
    rows |= {nlmf.label_wide(beta) for beta in nlmf.PUBLISHED_MISSED}
    rows |= {nlmf.label_strength(beta) for beta in nlmf.STRENGTHS}
    assert rows <= set(nlmf.MODELS)
    assert [sum(counts) for counts in nlmf.PUBLISHED_MISSED.values()] == [1242, 1092]


# ------------------------------------------------ claims


def outcomes() -> dict[str, nlmf.Outcome]:
    """All rows as they should be."""
    found = {}
    for row in nlmf.MODELS:
        joint = row == nlmf.JOINT
        held, official, rebuilt = (4.8, 4.4, 3.0) if joint else (10.0, 9.0, 3.0)
        if row in {nlmf.label_balance(s2, False) for s2 in nlmf.BALANCES[1:]}:
            held, official = 12.0, 11.0
        found[row] = nlmf.Outcome(None, held / 100, official / 100, rebuilt, 0.2, (), 10.0)
    for share, s2 in zip((0.05, 0.01, 0.0), nlmf.BALANCES, strict=True):
        row = nlmf.label_balance(s2, False)
        found[row] = replace(found[row], train=share)
    for sparse, beta in enumerate(nlmf.STRENGTHS):
        row = nlmf.label_strength(beta)
        found[row] = replace(found[row], sparse=0.1 * sparse, rebuilt=3.0 + sparse)
    return found


def test_what_holds_at_values_as_they_should_be() -> None:
    found = nlmf.check_claims(outcomes(), whole=True)
    assert len(found) == 8 and all(check.holds for check in found)
    assert len(nlmf.check_claims(outcomes(), whole=False)) == 2


@pytest.mark.parametrize(
    ("row", "change", "claim"),
    [
        (nlmf.FIRST, {"official": 0.0921}, "at most 9.2 %"),
        (nlmf.JOINT, {"official": 0.051}, "at most 5 %"),
        (nlmf.JOINT, {"held": 0.2}, "joint training lowers"),
        (nlmf.label_balance(1e-1, False), {"train": 0.03}, "goes to zero"),
        (nlmf.label_balance(1e-1, True), {"official": 0.2}, "again without labels"),
        (nlmf.label_strength(50.0), {"sparse": 0.05}, "makes the codebook sparser"),
        (nlmf.label_strength(50.0), {"rebuilt": 1.0}, "raises e_r"),
        (nlmf.JOINT, {"seconds": 700.0}, "less than 10 minutes of a processor"),
    ],
)
def test_claims_can_fail(row: str, change: dict[str, float], claim: str) -> None:
    found = outcomes()
    found[row] = replace(found[row], **change)
    broken = [check.claim for check in nlmf.check_claims(found, whole=True) if not check.holds]
    assert len(broken) == 1 and claim in broken[0]


def test_principal_components_and_a_softmax_are_those_of_scikit_learn(
    digits_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nlmf, "LAYERS", (30, 20))
    digits = mnist_digits.load_digits(digits_folder)
    tests = nlmf._make_tests(digits, mnist_digits.Size(60, 20, 200))
    model = nlmf._make_layer(30, link="identity", gamma=0.2, supervised="after")(0)
    ours = nlmf.measure_model(model, tests)
    monkeypatch.setattr(nlmf, "NEAR_ERROR", 4.0)  # of 200 digits
    assert nlmf.check_like_scikit({"PCA 100, softmax": ours}, tests).holds
    worse = replace(ours, official=ours.official + 0.1)
    assert not nlmf.check_like_scikit({"PCA 100, softmax": worse}, tests).holds


# ------------------------------------------------ the table


def small_models() -> dict[str, nlmf.Make]:
    """The rows of the small table with fewer units."""
    return {
        nlmf.FIRST: nlmf._make_layer(15, gamma=0.2, sigma2=1e-3, reencode=False),
        nlmf.label_balance(1e-1, False): nlmf._make_layer(
            15, gamma=0.2, sigma2=0.1, reencode=False
        ),
        nlmf.GREEDY: nlmf._make_stack(8, **nlmf.SMALL),
        nlmf.JOINT: nlmf._make_stack(8, fine_tune="recognition", **nlmf.SMALL),
    }


@pytest.fixture(scope="module")
def report(digits_folder: Path) -> Report:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(mnist_digits, "QUICK", SMALL)
        patch.setattr(nlmf, "FEW", FEW)
        patch.setattr(nlmf, "LAYERS", (15, 8))
        for name, make in small_models().items():
            patch.setitem(nlmf.MODELS, name, make)
        return reproduce(nlmf.EXPERIMENT, digits_folder, quick=True)


def test_a_table_of_small_digits(report: Report) -> None:
    made = report.table
    assert made.rows == FEW
    cell = made.cell(nlmf.FIRST, "official")
    assert cell is not None and cell.published == 9.2
    rebuilt = made.cell(nlmf.SECOND, "e_r")
    assert rebuilt is not None and rebuilt.published == 7.8
    assert len(made.checks) == 2 and made.checks[0].holds
    assert made.cell(nlmf.LINEAR, "e_r") is None


def test_the_picture_has_errors_units_mistakes_and_rebuilt_digits(report: Report) -> None:
    figure = Figure(layout="constrained")
    assert report.table.draw is not None
    report.table.draw(figure)
    errors, units, mistakes, rebuilt = figure.axes
    assert [label.get_text() for label in errors.get_yticklabels()] == list(FEW)
    assert len(units.images) == 15 and len(rebuilt.images) == 3 * nlmf.EXAMPLES
    assert 0 < len(mistakes.images) <= 30


def test_counts_by_digit_stand_beside_the_published_ones() -> None:
    found = replace(outcomes()[nlmf.WIDE], missed=tuple(range(10)))
    cells = nlmf._make_cells_by_digit(nlmf.WIDE, found, mnist_digits.FULL)
    assert [cell.ours for cell in cells] == list(range(10))
    assert [cell.published for cell in cells] == list(nlmf.PUBLISHED_MISSED[70.0])
    assert nlmf._make_cells_by_digit(nlmf.WIDE, found, mnist_digits.QUICK) == []
    assert nlmf._make_cells_by_digit(nlmf.FIRST, found, mnist_digits.FULL) == []
