"""``exp_nonpositive`` as kernels are to compile it: in a form that is vectorised.

libm's ``exp`` is a call per number; a softmax over a block of log densities is then bound by it.
Cody-Waite reduction and a Taylor polynomial give about one unit in the last place. Imported with
numba, by ``mixfold.math.compiled``.
"""

# mypy: disable-error-code="no-untyped-def,untyped-decorator,no-untyped-call"

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic, overload

from mixfold.math.exponential import LOWEST, exp_nonpositive

_LOG2_E = 1.4426950408889634
# ln 2 in two pieces: the first has trailing zero bits, so n * high is exact
_LN2_HIGH, _LN2_LOW = 0.6931471803691238, 1.9082149292705877e-10
_ROUND = 6755399441055744.0  # 1.5 * 2**52: adding it rounds to an integer held in the low bits
_LOWEST = LOWEST

_LN2_HIGH_32, _LN2_LOW_32 = np.float32(0.693359375), np.float32(-2.12194440e-4)
_ROUND_32 = np.float32(12582912.0)  # 1.5 * 2**23
_LOWEST_32 = np.float32(-87.0)
_LOG2_E_32 = np.float32(_LOG2_E)


def _bitcast(source: Any, target: Any, llvm: Any) -> Any:
    @intrinsic
    def cast(typingctx, value):
        def codegen(context, builder, signature, args):
            return builder.bitcast(args[0], llvm)

        return target(source), codegen

    return cast


_bits = _bitcast(types.float64, types.int64, ir.IntType(64))
_double = _bitcast(types.int64, types.float64, ir.DoubleType())
_bits_32 = _bitcast(types.float32, types.int32, ir.IntType(32))
_single = _bitcast(types.int32, types.float32, ir.FloatType())


@overload(exp_nonpositive, inline="always")
def _exp_nonpositive(value):
    if value == types.float32:
        return _exp_32
    return _exp_64


def _exp_64(value):
    x = max(value, _LOWEST)
    shifted = x * _LOG2_E + _ROUND
    n = shifted - _ROUND
    r = x - n * _LN2_HIGH
    r = r - n * _LN2_LOW
    p = 1 / 6227020800.0
    p = p * r + 1 / 479001600.0
    p = p * r + 1 / 39916800.0
    p = p * r + 1 / 3628800.0
    p = p * r + 1 / 362880.0
    p = p * r + 1 / 40320.0
    p = p * r + 1 / 5040.0
    p = p * r + 1 / 720.0
    p = p * r + 1 / 120.0
    p = p * r + 1 / 24.0
    p = p * r + 1 / 6.0
    p = p * r + 0.5
    p = p * r + 1.0
    p = p * r + 1.0
    e = p * _double((_bits(shifted) << 52) + (1023 << 52))
    return e if value > _LOWEST else 0.0


def _exp_32(value):
    x = max(value, _LOWEST_32)
    shifted = x * _LOG2_E_32 + _ROUND_32
    n = shifted - _ROUND_32
    r = x - n * _LN2_HIGH_32
    r = r - n * _LN2_LOW_32
    p = np.float32(1 / 5040.0)
    p = p * r + np.float32(1 / 720.0)
    p = p * r + np.float32(1 / 120.0)
    p = p * r + np.float32(1 / 24.0)
    p = p * r + np.float32(1 / 6.0)
    p = p * r + np.float32(0.5)
    p = p * r + np.float32(1.0)
    p = p * r + np.float32(1.0)
    e = p * _single(np.int32((_bits_32(shifted) << np.int32(23)) + np.int32(1065353216)))
    return e if value > _LOWEST_32 else np.float32(0.0)
