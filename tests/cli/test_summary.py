"""The summary of a fit: what matters, on one screen, whatever the model publishes."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from mixfold.cli.summary import print_summary
from mixfold.contracts import Event

SOURCE = SimpleNamespace(n_samples=1234, n_features=2)


def mixture(**changes: Any) -> Any:
    content = {
        "weights_": np.array([0.25, 0.75]),
        "means_": np.array([[1.5, -2.0], [123456.0, 0.001]]),
        "n_features_in_": 2,
        "lower_bound_": -3.14159265,
        "n_iter_": 17,
        "converged_": True,
        "events_": (),
        "bic": lambda: 4242.0,
    }
    return SimpleNamespace(**(content | changes))


def printed(capsys: pytest.CaptureFixture[str], model: Any, source: Any = SOURCE) -> str:
    print_summary("some-model", model, source, 2.0)
    return capsys.readouterr().out


def test_facts_and_components(capsys: pytest.CaptureFixture[str]) -> None:
    text = printed(capsys, mixture())
    for part in ("some-model", "1234 rows, 2 columns", "-3.14159", "4242", "17", "yes", "2.0 s"):
        assert part in text
    for part in ("x0", "x1", "0.250", "0.750", "1.5", "123456", "0.001"):
        assert part in text
    assert "more" not in text


def test_a_fit_that_did_not_converge_says_what_to_do(capsys: pytest.CaptureFixture[str]) -> None:
    assert "no: raise max_iter" in printed(capsys, mixture(converged_=False))


def test_names_from_the_table_are_not_markup(capsys: pytest.CaptureFixture[str]) -> None:
    names = np.array(["[red]a", "b[/bold]"], dtype=object)
    text = printed(capsys, mixture(feature_names_in_=names))
    assert "[red]a" in text and "b[/bold]" in text


def test_long_lists_are_cut_and_say_so(capsys: pytest.CaptureFixture[str]) -> None:
    events = tuple(Event("floor", f"event number {i}") for i in range(11))
    wide = mixture(
        means_=np.zeros((40, 9)), weights_=np.full(40, 1 / 40), n_features_in_=9, events_=events
    )
    text = printed(capsys, wide)
    assert "event number 7" in text and "event number 8" not in text
    assert "and 3 more" in text
    assert "3 more columns, 10 more components" in text


def test_a_model_without_weights_or_likelihood(capsys: pytest.CaptureFixture[str]) -> None:
    model = SimpleNamespace(
        cluster_centers_=np.array([[7.25, 1.0]]), n_features_in_=2, inertia_=0.5, n_iter_=3
    )
    text = printed(capsys, model, SimpleNamespace(n_samples=None, n_features=2))
    assert "inertia" in text and "7.25" in text
    assert "weight" not in text and "BIC" not in text and "converged" not in text


def test_objectives_of_models_with_priors_have_their_names(
    capsys: pytest.CaptureFixture[str],
) -> None:
    bound = printed(capsys, mixture(alpha_=1.0, evidence_bound_=-5.0))
    assert "log evidence per row, bound" in bound
    chains = printed(capsys, mixture(alpha_=1.0, traces_={}))
    assert "log joint per row, mean" in chains and "evidence" not in chains
    posterior = printed(capsys, mixture(alpha_=1.0))
    assert "log posterior per row" in posterior and "evidence" not in posterior
