"""Rows with holes in KernelPCA: the expected kernel, under a Gaussian of the columns."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from mixfold.contracts import Array, Block
from mixfold.engine.sources import open_source
from mixfold.estimators.mixtures.gaussian_mixture import GaussianMixture
from mixfold.estimators.shell.kernel_features import KernelChoice
from mixfold.math.expected_kernels import ExpectedKernel, expected_kernel
from mixfold.models.factors.spectral_sums import complete_rows
from mixfold.models.kernels.known_rows import Collected

_CLOSED_FORMS = ("rbf", "poly", "linear")


def refuse_holes(kernel: Any, landmarks: Any, solver: str) -> None:
    """Refuse what has no expected kernel matrix of all rows."""
    if not (isinstance(kernel, str) and kernel in _CLOSED_FORMS):
        raise ValueError(
            f"missing='expected' needs a kernel whose expectation has a closed form; got kernel="
            f"{kernel!r}. Use kernel='rbf', 'poly' or 'linear', or fill the missing entries first, "
            "by mixfold.PPCA(n_components).fit(X).impute(X), and give missing='refuse'"
        )
    if landmarks is not None or solver == "primal":
        raise ValueError(
            "missing='expected' works by the kernel matrix of all rows; use landmarks=None and "
            "another solver than 'primal'"
        )


def learn_expected_kernel(choice: KernelChoice, rows: Collected) -> ExpectedKernel:
    """The kernel of these rows with holes, and the Gaussian of their columns (by EM)."""
    if sparse.issparse(rows.X):
        raise ValueError(
            "missing='expected' needs dense rows; got a sparse matrix, in which only the entries "
            "that are stored could be missing: use X.toarray(), or missing='refuse'"
        )
    X = np.asarray(rows.X, np.float64)
    seen = ~np.isnan(X).all(axis=1)
    source = open_source(X[seen], weight=rows.weights()[seen])
    columns = GaussianMixture(1, random_state=0).fit(source)
    law = ExpectedKernel(None, columns.means_[0], columns.covariances_[0])
    # what a kernel takes from the rows, it takes of rows that are filled
    return expected_kernel(choice.make(law.fill(X)), law.mean, law.covariance)


def rows_with_holes(block: Block, kernel: Any) -> Any:
    """The rows of a block, complete unless the kernel is an expected one."""
    return block.X if isinstance(kernel, ExpectedKernel) else complete_rows(block)


def filled_rows(X: Array, kernel: Any) -> Array:
    """Rows without holes, for regressions on them."""
    return kernel.fill(X) if isinstance(kernel, ExpectedKernel) else X
