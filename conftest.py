"""Settings of the process that all tests need, before numpy, scipy or matplotlib are imported."""

import os

# Tests have no screen.
os.environ["MPLBACKEND"] = "agg"
# scikit-learn skips its array-API checks otherwise.
os.environ["SCIPY_ARRAY_API"] = "1"
# Workers of pytest-xdist and Dask inherit this: as many BLAS threads as cores in each of several
# workers wait for each other, and kernel PCA's tests take ten times as long.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
