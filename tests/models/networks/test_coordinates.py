"""Coordinates in which a network is trained."""

import numpy as np
import pytest
from scipy import sparse

from mixfold.models.networks.coordinates import (
    DEVIATIONS,
    TILE,
    coordinates_of,
    network_in_data_units,
    rows_in_frame,
)
from mixfold.models.networks.recognition import logits
from mixfold.models.networks.starts import random_start


@pytest.mark.parametrize("unit", [1e-9, 1.0, 1e9])
def test_rows_are_about_their_mean_in_one_unit(unit):
    rng = np.random.default_rng(0)
    X = unit * (100 + rng.normal(size=(50, 4)) * [1, 2, 3, 0])
    weight = rng.random(50)
    frame = coordinates_of(X, weight)
    Z = rows_in_frame(frame, X, np.dtype(np.float64))
    np.testing.assert_allclose(weight @ Z, 0, atol=1e-8)
    assert len(np.unique(frame.scale)) == 1
    deviation = np.sqrt(np.average((X - frame.origin)[:, :3] ** 2, axis=0, weights=weight).mean())
    assert 0.7 < frame.scale[0] / (DEVIATIONS * deviation) < 1.42
    assert np.log2(frame.scale[0]) % 1 == 0


def test_sparse_rows_are_seen_as_dense_ones():
    X = sparse.random(40, 6, 0.3, format="csr", random_state=0).multiply([1, 1, 0, 1, 5, 1])
    weight = np.random.default_rng(0).random(40)
    thin, dense = coordinates_of(X.tocsr(), weight), coordinates_of(X.toarray(), weight)
    np.testing.assert_allclose(thin.scale, dense.scale, rtol=1e-12)
    np.testing.assert_array_equal(dense.origin, thin.origin)
    Z = rows_in_frame(thin, X.tocsr(), np.dtype(np.float32))
    assert sparse.issparse(Z) and Z.dtype == np.float32
    np.testing.assert_allclose(Z.toarray(), thin.enter(X.toarray()), rtol=1e-6)
    nothing = sparse.csr_matrix((3, 2))
    assert coordinates_of(nothing, np.ones(3)).scale.tolist() == [DEVIATIONS] * 2


def test_missing_entries_are_not_looked_at():
    X = np.array([[1.0, np.nan, -1.0], [3.0, np.nan, np.nan], [2.0, np.nan, 1.0]])
    np.testing.assert_array_equal(coordinates_of(X, np.ones(3)).origin, [2.0, 0.0, 0.0])


def test_a_network_says_the_same_outside():
    rng = np.random.default_rng(1)
    X = 30 + 5 * rng.normal(size=(TILE + 10, 4))
    frame = coordinates_of(X, np.ones(len(X)))
    network = random_start([4, 3, 2], rng)
    inside = logits(network, rows_in_frame(frame, X, np.dtype(np.float64)))
    np.testing.assert_allclose(logits(network_in_data_units(frame, network), X), inside, atol=1e-12)
