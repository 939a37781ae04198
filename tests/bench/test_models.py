"""The table of all models: who is in it, its judges and figures by hand; not its times."""

from __future__ import annotations

import importlib
import inspect
import itertools
import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy.special import expit

pytest.importorskip("psutil", reason="needs psutil: pip install 'mixfold[bench]'")
pytest.importorskip("bench.models", reason="needs bench/: run the tests in a clone")

import mixfold
from bench import model_fits, models
from bench.__main__ import Comparison, main
from bench.entries import ENTRIES, LEFT_OUT, entry, judges
from bench.entries.record import Data, Entry

NAMES = [e.name for e in ENTRIES]


def test_every_public_name_is_measured_or_left_out_for_a_reason() -> None:
    measured = {e.model for e in ENTRIES}
    assert measured | set(LEFT_OUT) == set(mixfold.__all__)
    assert not measured & set(LEFT_OUT) and all(LEFT_OUT.values())
    assert len(set(NAMES)) == len(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_settings_are_those_of_the_estimators(name: str) -> None:
    asked = entry(name)
    data = asked.draw(asked.quick[0])
    for side, place in asked.estimators.items():
        module, kind = place.split(":")
        found = inspect.signature(getattr(importlib.import_module(module), kind)).parameters
        assert set(asked.settings(side, data)) <= set(found)


@pytest.mark.parametrize("name", NAMES)
def test_rows_double_and_are_as_many_as_asked_for(name: str) -> None:
    asked = entry(name)
    for sizes in (asked.sizes, asked.quick):
        assert all(b == 2 * a for a, b in itertools.pairwise(sizes))
    data = asked.draw(asked.quick[0])
    assert data.X.shape[0] == asked.quick[0]
    assert data.y is None or len(data.y) == asked.quick[0]
    assert data.test is None or data.test.shape[1] == data.X.shape[1]
    again = asked.draw(asked.quick[0]).X
    assert (again != data.X).sum() == 0


# ------------------------------------------------ figures


def side(cpu: list[float], quality: float | None = 1.0) -> dict[str, Any]:
    return {"cpu": cpu, "wall": cpu, "quality": quality, "error": None}


def row(**changed: Any) -> dict[str, Any]:
    usual = {
        "model": "A", "peer": "B", "problem": "D = 2", "compared": "exact", "judge": "error ↓",
        "sizes": [1000, 2000, 4000], "ours": side([0.1, 0.2, 0.4], 0.5),
        "theirs": side([0.1, 0.3, 1.2], 0.25),
    }  # fmt: skip
    return {**usual, **changed}


def test_exponents_are_those_of_the_last_doubling() -> None:
    assert models.exponent([1000, 2000, 4000], [0.1, 0.2, 0.8]) == pytest.approx(2)
    assert models.exponent([1000, 3000], [0.1, 0.3]) == pytest.approx(1)
    assert models.exponent([1000], [0.1]) is None
    assert models.exponent([1000, 2000], [0.0, 0.1]) is None


def test_the_table_has_ratios_and_dashes() -> None:
    failed = side([], None) | {"error": "ValueError: no"}
    rows = [row(), row(peer="none", theirs=None), row(theirs=failed), row(ours=None, theirs=None)]
    lines = [
        [cell.strip() for cell in line.split("|")[1:-1]]
        for line in models.report({"rows": rows}).splitlines()[2:]
    ]
    usual = ["A", "B", "N = 4,000, D = 2", "exact", "0.4", "1.2", "3.00x", "error ↓"]
    assert lines[0] == [*usual, "0.5", "0.25", "1.0", "2.0"]
    for line in lines[1:3]:
        assert line[4:] == ["0.4", "-", "-", "error ↓", "0.5", "-", "1.0", "-"]
    assert lines[3][4:] == ["-", "-", "-", "error ↓", "-", "-", "-", "-"]


def test_the_picture_has_a_panel_for_each_model_with_figures() -> None:
    rows = [row(), row(peer="none", theirs=None), row(theirs=side([], None)), row(ours=None)]
    shown = [ax for ax in models.picture({"rows": rows}).axes if ax.get_visible()]
    assert len(shown) == 3
    assert [len(ax.get_lines()) for ax in shown] == [3, 2, 2]  # with the line of linear growth
    spans = [np.log(np.divide(*ax.get_ylim())) for ax in shown]
    np.testing.assert_allclose(spans, spans[0])  # slopes can be compared


# ------------------------------------------------ judges


def test_crosstalk_is_nothing_where_sources_are_turned_and_scaled_only() -> None:
    mixing = np.random.default_rng(0).normal(size=(3, 3))
    found = np.diag([2.0, -1.0, 0.1])[[2, 0, 1]] @ np.linalg.inv(mixing)
    same = SimpleNamespace(components_=found)
    assert judges.CROSSTALK.of(same, Data(None, test=mixing)) == pytest.approx(0, abs=1e-12)
    leaking = SimpleNamespace(
        components_=(np.eye(3) + 0.2 * (1 - np.eye(3))) @ np.linalg.inv(mixing)
    )
    assert judges.CROSSTALK.of(leaking, Data(None, test=mixing)) == pytest.approx(0.2)


class Machine:
    """A small Boltzmann machine under the names of scikit-learn."""

    def __init__(self) -> None:
        rng = np.random.default_rng(0)
        self.components_ = rng.normal(size=(3, 4))
        self.intercept_visible_, self.intercept_hidden_ = rng.normal(size=4), rng.normal(size=3)

    def weight(self, v: Any) -> float:
        """exp(-energy), summed over all hidden units one by one."""
        hidden = itertools.product([0, 1], repeat=3)
        return sum(
            float(np.exp(np.dot(h, self.components_ @ v) + v @ self.intercept_visible_
                         + np.dot(h, self.intercept_hidden_)))
            for h in hidden
        )  # fmt: skip


def test_pseudo_likelihood_is_that_of_all_states() -> None:
    machine, expected = Machine(), 0.0
    V = np.array([[0, 1, 1, 0], [1, 1, 0, 1], [0, 0, 0, 1]], float)
    for v in V:
        for i in range(4):
            turned = v.copy()
            turned[i] = 1 - v[i]
            own = machine.weight(v)
            expected += np.log(own / (own + machine.weight(turned))) / len(V)
    assert judges.PSEUDO_LIKELIHOOD.of(machine, Data(V, test=V)) == pytest.approx(expected)


def test_a_machine_without_weights_knows_bits_by_their_chances() -> None:
    machine = Machine()
    machine.components_ = np.zeros((3, 4))
    V = np.ones((1, 4))
    expected = np.log(expit(machine.intercept_visible_)).sum()
    assert judges.PSEUDO_LIKELIHOOD.of(machine, Data(V, test=V)) == pytest.approx(expected)


def test_eigenvectors_have_no_residual_and_others_have() -> None:
    from sklearn.decomposition import KernelPCA

    X = np.random.default_rng(0).normal(size=(60, 3))
    exact = KernelPCA(4, kernel="rbf", gamma=0.3, eigen_solver="dense").fit(X)
    assert judges.kernel_residual(0.3).of(exact, Data(X)) < 1e-12
    assert judges.kernel_residual(1.0).of(exact, Data(X)) > 0.01


def test_sizes_of_topics_in_nmf_are_no_matter() -> None:
    class Factors:
        def __init__(self, sizes: Any) -> None:
            rng = np.random.default_rng(0)
            self.components_ = rng.dirichlet(np.ones(6), 2) * sizes[:, None]
            self.shares = rng.dirichlet(np.ones(2), 5) / sizes

        def transform(self, X: Any) -> Any:
            return self.shares

    X = np.random.default_rng(1).poisson(2.0, size=(5, 6)).astype(float)
    plain, scaled = Factors(np.ones(2)), Factors(np.array([3.0, 0.2]))
    law = plain.shares @ plain.components_
    expected = np.exp(-(X * np.log(law)).sum() / X.sum())
    for model in (plain, scaled):
        assert judges.TRAINING_PERPLEXITY.of(model, Data(X)) == pytest.approx(expected)


# ------------------------------------------------ fits


@pytest.mark.slow
def test_both_libraries_are_measured() -> None:
    got = model_fits.compare(1, "KernelCCA", [200, 400], 1)
    assert [len(got[name]["cpu"]) for name in ("ours", "theirs")] == [2, 2]
    assert got["ours"]["quality"] == pytest.approx(got["theirs"]["quality"], abs=1e-3)


def test_a_peer_that_fails_leaves_ours_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    broken: Entry = replace(entry("KernelCCA"), peer="nowhere:Nothing")
    monkeypatch.setattr(model_fits, "entry", lambda name: broken)
    got = model_fits.compare(1, "KernelCCA", [200], 1)
    assert got["theirs"]["cpu"] == [] and "nowhere" in got["theirs"]["error"]
    assert len(got["ours"]["cpu"]) == 1 and got["ours"]["error"] is None


@pytest.mark.slow
def test_one_command_writes_table_figures_and_picture(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(models, "ENTRIES", (entry("KernelCCA"),))
    main([Comparison.models], quick=True, out=tmp_path / "f.json")
    assert "| KernelCCA" in capsys.readouterr().out
    (line,) = json.loads((tmp_path / "f.json").read_text())["models"]["rows"]
    assert line["ours"]["error"] is None and len(line["ours"]["cpu"]) == 2
    assert (tmp_path / "f-growth.png").stat().st_size > 0
