"""The fixtures that scikit-learn's own tests ask for."""

import numpy as np
import pytest


@pytest.fixture(params=[np.float32, np.float64], ids=["float32", "float64"])
def global_dtype(request):
    return request.param


@pytest.fixture(params=[0, 1, 2])
def global_random_seed(request):
    return request.param
