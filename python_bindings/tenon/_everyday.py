# SPDX-License-Identifier: Apache-2.0
"""Functions that users of NumPy and PyTorch reach for, made of operators."""

from tenon import _core


def _operator(name):
    return _core.operator(name)


def _shape(shape):
    """A shape from `f(2, 3)` or from `f((2, 3))`."""
    return shape[0] if len(shape) == 1 and not isinstance(shape[0], int) else shape


def rand(*shape, dtype=None, device=None):
    """Uniform random numbers from 0 to 1, of the shape `rand(2, 3)` or `rand((2, 3))`."""
    return _operator("uniform")(_shape(shape), dtype=dtype, device=device)


def randn(*shape, dtype=None, device=None):
    """Normal random numbers of mean 0 and variance 1, of the shape `randn(2, 3)` or `randn((2, 3))`."""
    return _operator("normal")(_shape(shape), dtype=dtype, device=device)


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


__all__ = ["argwhere", "array_equal", "hstack", "rand", "randn", "ravel", "vstack"]
