"""Checkpoints of chains that earlier versions have left."""

from __future__ import annotations

import numpy as np

from mixfold.engine.chain import Chain, ChainSoFar, Sampled
from mixfold.estimators.mixtures.chains import _with_all_traces
from mixfold.models.mixtures.bayes_mixture import TRACES


def test_fewer_traces_are_filled_up() -> None:
    old, width = np.arange(20.0).reshape(4, 5), len(TRACES)
    saved = Sampled(0, (Chain((), np.zeros((4, 3)), old),), ChainSoFar(traces=(old[:2],)))
    found = _with_all_traces(saved)
    assert found.under_way is not None
    for new, before in ((found.chains[0].traces, old), (found.under_way.traces[0], old[:2])):
        assert new.shape == (len(before), width) and np.isnan(new[:, 5:]).all()
        assert np.array_equal(new[:, :5], before)
    again = _with_all_traces(found)
    assert again.chains[0].traces is found.chains[0].traces
