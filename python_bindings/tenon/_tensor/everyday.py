# SPDX-License-Identifier: Apache-2.0
"""Functions that users of NumPy and PyTorch reach for, made of operators."""

from __future__ import annotations

from typing import Any

from tenon import _core
from tenon._core import Tensor
from tenon._core import operator as _operator
from tenon._tensor import methods as _methods
from tenon._tensor.arguments import one_sequence as _one_sequence
from tenon._tensor.tensors_expected import expect_tensors as _expect_tensors


def rand(
    *shape: Any,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    generator: Any = None,
) -> Tensor:
    """Uniform random numbers from 0 to 1, of the shape `rand(2, 3)` or `rand((2, 3))`; of
    `generator`, a tenon.random.Generator, where one is given."""
    if dtype is None and device is None and generator is None and not requires_grad:
        return _operator("uniform")(
            _one_sequence(shape)
        )  # calls without keywords are the fast ones
    options = {"dtype": dtype, "device": device, "requires_grad": requires_grad}
    return _operator("uniform")(_one_sequence(shape), generator=generator, **options)


def randn(
    *shape: Any,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    generator: Any = None,
) -> Tensor:
    """Normal random numbers of mean 0 and variance 1, of the shape `randn(2, 3)` or `randn((2,
    3))`; of `generator`, a tenon.random.Generator, where one is given."""
    if dtype is None and device is None and generator is None and not requires_grad:
        return _operator("normal")(_one_sequence(shape))  # calls without keywords are the fast ones
    options = {"dtype": dtype, "device": device, "requires_grad": requires_grad}
    return _operator("normal")(_one_sequence(shape), generator=generator, **options)


def argwhere(x, /):
    """The indices of the elements that are not 0, one row for each."""
    return _operator("nonzero")(x)


def array_equal(x1, x2, /):
    """Whether both tensors have the same shape and the same elements, as a Python bool."""
    return tuple(x1.shape) == tuple(x2.shape) and (x1 == x2).all().item()


def ravel(x, /):
    """The elements of `x` as a vector; a view where the memory allows it."""
    return x.reshape(-1)


def hstack(tensors, /):
    """Tensors one after the other along axis 1; vectors and numbers along axis 0."""
    tensors = [each.reshape(-1) if each.ndim == 0 else each for each in tensors]
    return _operator("concat")(tensors, 0 if tensors and tensors[0].ndim == 1 else 1)


def vstack(tensors, /):
    """Tensors one after the other along axis 0; a vector is one row."""
    return _operator("concat")(
        [each.reshape(1, -1) if each.ndim < 2 else each for each in tensors], 0
    )


# -- questions about tensors and dtypes ----------------------------------------------------------------


def is_tensor(x: object, /) -> bool:
    """Whether `x` is a tensor."""
    return isinstance(x, Tensor)


def is_floating_point(x: Tensor, /) -> bool:
    """Whether the dtype of `x` is a floating one."""
    return x.dtype.is_floating_point


def is_complex(x: Tensor, /) -> bool:
    """Whether the dtype of `x` is a complex one."""
    return x.dtype.is_complex


def is_integer(x: Tensor, /) -> bool:
    """Whether the dtype of `x` is an integer one."""
    return x.dtype.is_integer


def numel(x: Tensor, /) -> int:
    """The number of elements of `x`."""
    return x.numel()


def shape(x: Any, /) -> tuple[int, ...]:
    """The extents of `x`, a tensor or what tenon.tensor() takes."""
    return tuple((x if isinstance(x, Tensor) else _core.tensor(x)).shape)


def promote_types(first: Any, second: Any, /) -> Any:
    """The dtype of what tensors of these two dtypes give together."""
    return _core._promote(_core.dtype(first), _core.dtype(second))


# -- parts -----------------------------------------------------------------------------------------


def chunk(
    x: Tensor, chunks: int, axis: int | None = None, *, dim: int | None = None
) -> tuple[Tensor, ...]:
    """At most `chunks` parts along an axis, 0 without one, of one length but for the last, which may be shorter. `dim` is
    `axis`."""
    return _methods.chunk(x, chunks, axis, dim=dim)


__all__ = [
    "argwhere",
    "array_equal",
    "chunk",
    "hstack",
    "is_complex",
    "is_floating_point",
    "is_integer",
    "is_tensor",
    "numel",
    "promote_types",
    "rand",
    "randn",
    "ravel",
    "shape",
    "vstack",
]


_expect_tensors(globals())
