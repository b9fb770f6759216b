# SPDX-License-Identifier: Apache-2.0
"""Linear algebra, as in the array API standard's extension `linalg` and in numpy.linalg.

Matrices are in the last two axes, and leading axes are batches. Functions are operators of Tenon, with
the names and keywords of the standard; results that are several tensors are named tuples. LAPACK
computes them; docs/dependencies.md says where it comes from.
"""

from math import inf as _inf
from typing import NamedTuple

from tenon._core import Tensor
from tenon._core import operator as _operator
from tenon._tensor.array_api import matrix_transpose
from tenon._tensor.checked_factors import cholesky_ex as cholesky_ex
from tenon._tensor.checked_factors import inv_ex as inv_ex
from tenon._tensor.lobpcg import lobpcg as lobpcg
from tenon._tensor.low_rank import pca_lowrank as pca_lowrank
from tenon._tensor.low_rank import svd_lowrank as svd_lowrank


class EighResult(NamedTuple):
    """Results of eigh()."""

    eigenvalues: Tensor
    eigenvectors: Tensor


class EigResult(NamedTuple):
    """Results of eig()."""

    eigenvalues: Tensor
    eigenvectors: Tensor


class QRResult(NamedTuple):
    """Results of qr()."""

    Q: Tensor
    R: Tensor


class SlogdetResult(NamedTuple):
    """Results of slogdet()."""

    sign: Tensor
    logabsdet: Tensor


class SVDResult(NamedTuple):
    """Results of svd()."""

    U: Tensor
    S: Tensor
    Vh: Tensor


class LstsqResult(NamedTuple):
    """Results of lstsq()."""

    solution: Tensor
    residuals: Tensor
    rank: Tensor
    singular_values: Tensor


class LUFactorResult(NamedTuple):
    """Results of lu_factor()."""

    LU: Tensor
    pivots: Tensor


class LDLFactorResult(NamedTuple):
    """Results of ldl_factor()."""

    LD: Tensor
    pivots: Tensor


class LUResult(NamedTuple):
    """Results of lu()."""

    P: Tensor
    L: Tensor
    U: Tensor


# -- factorizations ----------------------------------------------------------------------------------


def cholesky(x, /, *, upper=False):
    """Cholesky factors of positive definite matrices: lower triangular, or upper with `upper`."""
    return _operator("cholesky")(x, upper=upper)


def qr(x, /, *, mode="reduced"):
    """Orthonormal `Q` and upper triangular `R` with `Q @ R == x`; with mode 'r', as in NumPy, `R`
    alone."""
    q, r = _operator("qr")(x, mode=mode)
    return r if mode == "r" else QRResult(q, r)


def lu(x, /):
    """A permutation matrix, and lower and upper triangular factors, whose product is `x`."""
    return LUResult(*_operator("lu")(x))


def lu_factor(x, /):
    """Both triangular factors in one matrix, and the rows that were exchanged, counted from 0."""
    return LUFactorResult(*_operator("lu_factor")(x))


def ldl_factor(x, /, *, hermitian=False):
    """Both factors of symmetric or Hermitian matrices in one matrix, and LAPACK's pivots."""
    return LDLFactorResult(*_operator("ldl_factor")(x, hermitian=hermitian))


def lu_unpack(lu, pivots, /):
    """The factors that lu() gives, of what lu_factor() gives."""
    return LUResult(*_operator("lu_unpack")(lu, pivots))


def svd(x, /, *, full_matrices=True):
    """Singular value decomposition."""
    return SVDResult(*_operator("svd")(x, full_matrices=full_matrices))


def svdvals(x, /):
    """Singular values in descending order."""
    return _operator("svdvals")(x)


def _is_upper(UPLO):
    if UPLO not in ("L", "U"):
        raise ValueError(f"expected UPLO 'L' or 'U', got {UPLO!r}")
    return UPLO == "U"


def eigh(x, /, *, UPLO="L"):
    """Eigenvalues, ascending, and eigenvectors of Hermitian matrices, of which one triangle is read."""
    return EighResult(*_operator("eigh")(x, upper=_is_upper(UPLO)))


def eigvalsh(x, /, *, UPLO="L"):
    """Eigenvalues of Hermitian matrices, ascending."""
    return _operator("eigvalsh")(x, upper=_is_upper(UPLO))


def eig(x, /):
    """Eigenvalues and eigenvectors of square matrices, both complex."""
    return EigResult(*_operator("eig")(x))


def eigvals(x, /):
    """Eigenvalues of square matrices, which are complex."""
    return _operator("eigvals")(x)


# -- equations and inverses --------------------------------------------------------------------------


def solve(x1, x2, /):
    """The solution `x` of `x1 @ x == x2`."""
    return _operator("solve")(x1, x2)


def solve_triangular(a, b, /, *, upper, left=True, unitriangular=False):
    """The solution `x` of `a @ x == b`, or `x @ a == b` if `left` is false, for triangular `a`."""
    return _operator("triangular_solve")(a, b, upper=upper, left=left, unitriangular=unitriangular)


def lstsq(a, b, /, *, rcond=None):
    """Least squares solutions, squared norms of their residuals, ranks and singular values."""
    return LstsqResult(*_operator("lstsq")(a, b, rcond=rcond))


def inv(x, /):
    """Inverse matrices."""
    return _operator("inv")(x)


def pinv(x, /, *, rtol=None):
    """Moore-Penrose inverses. `rtol` is a number, or a tensor of one for each matrix."""
    if not isinstance(rtol, Tensor):
        return _operator("pinv")(x, rtol=rtol)
    u, s, vh = svd(x, full_matrices=False)
    counts = s > _largest(s) * _operator("unsqueeze")(rtol, [-1])
    s = _operator("where")(counts, 1 / _operator("where")(counts, s, 1), 0)
    v = matrix_transpose(_operator("conj")(vh)) * _operator("unsqueeze")(s, [-2])
    return v @ matrix_transpose(_operator("conj")(u))


def matrix_rank(x, /, *, rtol=None, hermitian=False):
    """How many singular values are larger than `rtol` times the largest. `rtol` is a number, or a
    tensor of one for each matrix."""
    if not isinstance(rtol, Tensor):
        return _operator("matrix_rank")(x, rtol=rtol, hermitian=hermitian)
    s = abs(eigvalsh(x)) if hermitian else svdvals(x)
    return _operator("count_nonzero")(s > _largest(s) * _operator("unsqueeze")(rtol, [-1]), -1)


def _largest(s):
    return _operator("max")(s, -1, True) if s.shape[-1] else s


# -- numbers for a matrix ----------------------------------------------------------------------------


def det(x, /):
    """Determinants."""
    return _operator("det")(x)


def slogdet(x, /):
    """Signs, and logarithms of the magnitudes, of determinants."""
    return SlogdetResult(*_operator("slogdet")(x))


def trace(x, /, *, offset=0, dtype=None):
    """Sums of a diagonal; integers add up in 64 bits."""
    if dtype is not None:
        x = x.to(dtype)
    total = _operator("trace")(x, offset)
    return total if dtype is None else total.to(dtype)


def _order(ord):
    if ord in ("fro", "nuc"):
        return ord
    names = {1: "1", -1: "-1", 2: "2", -2: "-2", _inf: "inf", -_inf: "-inf"}
    if isinstance(ord, str) or ord not in names:
        raise ValueError(f"expected ord 'fro', 'nuc', 1, -1, 2, -2, inf or -inf, got {ord!r}")
    return names[ord]


def matrix_norm(x, /, *, keepdims=False, ord="fro"):
    """Norms of matrices."""
    return _operator("matrix_norm")(x, _order(ord), keepdim=keepdims)


def vector_norm(x, /, *, axis=None, keepdims=False, ord=2):
    """Norms of vectors along one axis or several; without `axis`, of all elements."""
    return _operator("norm")(x, float(ord), axis, keepdims)


def norm(x, ord=None, axis=None, keepdims=False):
    """Norm of a vector or of a matrix, as in NumPy: two axes are those of a matrix, one is that of a
    vector, and without `ord` all elements are those of a vector."""
    axes = (axis,) if isinstance(axis, int) else axis
    if ord is None:
        return vector_norm(x, axis=axes, keepdims=keepdims)
    if axes is None:
        axes = tuple(range(x.ndim))
    if len(axes) == 1:
        return vector_norm(x, axis=axes[0], keepdims=keepdims, ord=ord)
    if len(axes) != 2:
        raise ValueError(f"norm(): expected one axis or two for ord={ord!r}, got {len(axes)}")
    moved = _operator("movedim")(x, list(axes), [-2, -1])
    result = matrix_norm(moved, keepdims=keepdims, ord=ord)
    return _operator("movedim")(result, [-2, -1], list(axes)) if keepdims else result


def cond(x, /, p=None):
    """Condition numbers, by the norm `p`; by default by singular values."""
    return _operator("cond")(x, _order(2 if p is None else p))


# -- products and powers -----------------------------------------------------------------------------


def matmul(x1, x2, /):
    """Matrix product."""
    return _operator("matmul")(x1, x2)


def matrix_power(x, n, /):
    """Square matrices to an integer power; negative powers are those of the inverse."""
    return _operator("matrix_power")(x, n)


def cross(x1, x2, /, *, axis=-1):
    """Cross products of vectors of length 3."""
    return _operator("cross")(x1, x2, axis)


def outer(x1, x2, /):
    """Outer product of two vectors."""
    return _operator("outer")(x1, x2)


def tensordot(x1, x2, /, *, axes=2):
    """Product summed over the last `axes` axes of `x1` and the first of `x2`, or over pairs of axes."""
    if isinstance(axes, int):
        if not 0 <= axes <= min(x1.ndim, x2.ndim):
            raise ValueError(
                f"tensordot(): expected axes from 0 to {min(x1.ndim, x2.ndim)}, got {axes}"
            )
        first, second = range(x1.ndim - axes, x1.ndim), range(axes)
    else:
        first, second = ([each] if isinstance(each, int) else each for each in axes)
    first, second = list(first), list(second)
    if not first and not second:  # no axes mean every axis to the operator
        x1 = x1.reshape(tuple(x1.shape) + (1,) * x2.ndim)
        return x1 * x2
    return _operator("tensordot")(x1, x2, first, second)


def vecdot(x1, x2, /, *, axis=-1):
    """Inner products along an axis; the first operand is conjugated."""
    return _operator("vecdot")(x1, x2, axis)


def diagonal(x, /, *, offset=0):
    """A diagonal of matrices, as a view."""
    return _operator("diagonal")(x, offset, -2, -1)


# Operators whose signature needs no translation.
_SAME = frozenset(
    "adjugate cdist cholesky_inverse cholesky_solve corrcoef cov geqrf householder_product inner kron "
    "ldl_solve logdet lu_solve matrix_exp multi_dot ormqr tensorinv tensorsolve triangular_solve vander".split()
)


def __getattr__(name):
    if name in _SAME:
        value = _operator(name)
        globals()[name] = value
        return value
    from tenon.ops._suggestions import did_you_mean  # for errors only

    hint = did_you_mean(name, __dir__())
    raise AttributeError(f"module 'tenon.linalg' has no attribute '{name}'{hint}")


def __dir__():
    return sorted(
        {name for name in globals() if not name.startswith("_")} - {"NamedTuple", "Tensor"} | _SAME
    )
