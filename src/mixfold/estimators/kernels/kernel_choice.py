"""The former place of what :mod:`mixfold.estimators.kernels.kernel_maps` holds."""

from __future__ import annotations

from mixfold.estimators.kernels.kernel_maps import KERNEL_RULES, check_square, kernel_of

__all__ = ["KERNEL_RULES", "check_square", "kernel_of"]
