# SPDX-License-Identifier: Apache-2.0
"""Linear systems with sparse matrices, by SciPy's SuperLU where SciPy is installed."""

from __future__ import annotations

from typing import Any

import tenon
from tenon import Tensor, _core

from .creation import is_sparse
from .rows import parts_of_csr


class _Solve(tenon.autograd.Function):
    """x of A @ x = b, of the parts of A in layout 'csr'. The gradient of b is the solution with A.T, and that of a
    stored element of A the product of these two vectors there."""

    @staticmethod
    def forward(
        ctx: Any, indptr: Tensor, indices: Tensor, values: Tensor, b: Tensor, transposed: bool
    ) -> Tensor:
        import scipy.sparse  # optional
        import scipy.sparse.linalg

        n = b.shape[0]
        parts = (values.detach().numpy(), indices.numpy(), indptr.numpy())
        matrix = scipy.sparse.csr_array(parts, shape=(n, n))
        try:
            factors = scipy.sparse.linalg.splu((matrix.T if transposed else matrix).tocsc())
        except RuntimeError as error:
            raise ValueError(
                f"sparse.linalg.solve(): {error}; got a matrix that is singular"
            ) from None
        x = tenon.asarray(factors.solve(b.detach().numpy()))
        ctx.save_for_backward(indptr, indices, values, x)
        ctx.transposed = transposed
        return x

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[None, None, Tensor, Tensor, None]:
        indptr, indices, values, x = ctx.saved_tensors
        back = _Solve.apply(indptr, indices, values, grad, not ctx.transposed)
        left, right = (x, back) if ctx.transposed else (back, x)
        if x.ndim == 1:
            left, right = left.unsqueeze(1), right.unsqueeze(1)
        stored = -_core.operator("csr_sddmm")(indptr, indices, left, right)
        return None, None, stored, back, None


def solve(a: Tensor, b: Any) -> Tensor:
    """The solution of `a @ x = b`, where `a` is a square sparse matrix and `b` a dense vector or matrix of the same dtype,
    float32 or float64, on the host; a list becomes one of the dtype of `a`. Needs SciPy. Gradients pass to both, and to
    `a` in its structure."""
    if not is_sparse(a):
        raise TypeError(
            f"sparse.linalg.solve(): expected a sparse matrix, got layout {a.layout}; "
            "tenon.linalg.solve takes dense ones"
        )
    b = tenon.tensor(b, dtype=a.dtype) if isinstance(b, list | tuple) else tenon.asarray(b)
    if a.ndim != 2 or a.shape[0] != a.shape[1] or b.ndim not in (1, 2) or b.shape[0] != a.shape[0]:
        raise ValueError(
            f"sparse.linalg.solve(): expected a square matrix and as many rows of b, got shapes "
            f"{tuple(a.shape)} and {tuple(b.shape)}"
        )
    if a.dtype != b.dtype or a.dtype not in (tenon.float32, tenon.float64):
        raise TypeError(
            f"sparse.linalg.solve(): expected float32 or float64 in both, got {a.dtype.name} and "
            f"{b.dtype.name}"
        )
    if a.device.kind != "cpu" or b.device.kind != "cpu":
        raise NotImplementedError(
            f"sparse.linalg.solve(): expected tensors on the host, got {a.device} and {b.device}; "
            "use .to('cpu')"
        )
    try:
        import scipy.sparse.linalg  # noqa: F401  # optional
    except ImportError:
        raise ImportError(
            "sparse.linalg.solve() needs SciPy, whose SuperLU solves; pip install scipy, or use "
            "tenon.linalg.solve(a.to_dense(), b)"
        ) from None
    return _Solve.apply(*parts_of_csr(a), b, False)
