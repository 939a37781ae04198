"""What users like: films that are drawn, rankings by hand, claims that can fail."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure
from sklearn.metrics import roc_auc_score

from papers import morp_preferences as preferences
from papers.frame.run import show_nothing
from papers.frame.table import Cell

pytestmark = pytest.mark.slow  # a published table, run small


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Users of two tastes, which two of twelve words tell a little of."""
    rng = np.random.default_rng(0)
    taste, kind = np.arange(40) % 2, np.arange(120) % 2
    liked = taste[:, None] == kind
    X = np.where(liked, 4.5, 2.0) + rng.normal(0, 0.4, (40, 120))
    X[rng.random(X.shape) < 0.2] = np.nan
    words = np.array([f"genre {j}" for j in range(12)])
    has = rng.random((120, 12)) < 0.5
    has[:, 0] = np.where(rng.random(120) < 0.85, kind == 1, kind == 0)
    has[:, 1] = np.where(rng.random(120) < 0.85, kind == 0, kind == 1)
    genres = np.array(["|".join(words[row]) for row in has])
    np.savez(tmp_path / preferences.FILMS.name, X=X.astype(np.float32), genres=genres)
    monkeypatch.setattr(preferences, "LEAST_RATINGS", 10)
    monkeypatch.setattr(preferences, "OTHERS", 29)
    monkeypatch.setattr(preferences, "DIM", 5)
    monkeypatch.setattr(preferences, "QUICK", preferences.Size(3, 1))
    return tmp_path


def test_films_and_likes(folder: Path) -> None:
    films = preferences.load_films(folder / preferences.FILMS.name)
    assert films.X.shape == (120, 12) and films.likes.shape == (120, 30)
    np.testing.assert_allclose(films.X.mean(axis=0), 0, atol=1e-12)
    assert set(np.unique(films.likes)) == {-1.0, 0.0, 1.0}
    users = preferences.choose_users(films.likes, 4, np.random.default_rng(0))
    assert len(users) == 4 and len(set(users)) == 4


def test_another_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / preferences.FILMS.name
    np.savez(path, X=np.zeros((3, 4)), genres=np.array(["a"]))
    with pytest.raises(ValueError, match=r"users x films.*got \(3, 4\) and \(1,\)"):
        preferences.load_films(path)


def test_a_ranking_by_a_column_that_tells_all() -> None:
    own = np.where(np.arange(100) % 2, 1.0, -1.0)
    Z = own[:, None] + 0.0
    rng = np.random.default_rng(0)
    found = preferences.rank_films(np.zeros((100, 1)), Z, own, 1.0, rng)
    assert found.auc == 1 and (found.tops[:2] == 1).all()
    chance = preferences.rank_films(
        np.zeros((100, 1)), np.random.default_rng(1).normal(size=(100, 3)), own, 1.0, rng
    )
    assert 0.3 < chance.auc < 0.7
    assert chance.auc == pytest.approx(np.trapezoid(chance.curve, np.linspace(0, 1, 51)), abs=0.03)
    assert roc_auc_score(own, Z[:, 0]) == 1


def test_others_tell_what_contents_do_not(folder: Path) -> None:
    table = preferences.run(folder, True, 0, show_nothing)
    ours, plain = (table.cell(row, "AUC") for row in (preferences.MULTI, preferences.PRINCIPAL))
    assert ours is not None and plain is not None
    assert len(ours.values) == 3 and ours.ours > plain.ours + 0.03
    assert not any(row.startswith("Reuters") for row in table.rows)  # the texts are not there
    figure = Figure()
    assert table.draw is not None
    table.draw(figure)
    assert len(figure.axes) == 6


def test_claims_can_fail() -> None:
    def cells(ours: float, middle: float) -> list[Cell]:
        made = []
        for row in preferences.METHODS:
            value = ours if row == preferences.MULTI else 0.5
            for column in ("top 10", "AUC"):
                made.append(Cell(row, column, (value, value + 0.01, value - 0.01)))
        for setting in ("I", "II"):
            for beta in preferences.BETAS:
                value = middle if beta == 0.5 else 0.4
                made.append(Cell(f"Reuters, setting {setting}, beta = {beta:g}", "F1", (value,)))
        return made

    assert all(check.holds for check in preferences.check_claims(cells(0.6, 0.5)))
    assert not any(check.holds for check in preferences.check_claims(cells(0.5, 0.3)))
