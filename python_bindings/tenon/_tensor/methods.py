# SPDX-License-Identifier: Apache-2.0
"""Methods of Tensor that are made of operators: conversions by the name of the dtype, new tensors like
a tensor, and fills by random numbers (random_fills.py). Other names of operators' methods are not here: `names:` of
the operator files has them. Nor are methods that are functions of another library, of which
opdefs/names/names.yaml has a list under `methods`: __getattr__() makes them.

The type looks them up here when they are first used (python_bindings/src/python_method.cpp).
"""

from __future__ import annotations

import builtins
import importlib
from collections.abc import Callable
from typing import Any

from tenon import _core
from tenon._core import Tensor
from tenon._core import operator as _operator
from tenon._tensor.arguments import one_sequence as _one_sequence
from tenon._tensor.random_fills import bernoulli_ as bernoulli_
from tenon._tensor.random_fills import cauchy_ as cauchy_
from tenon._tensor.random_fills import exponential_ as exponential_
from tenon._tensor.random_fills import geometric_ as geometric_
from tenon._tensor.random_fills import log_normal_ as log_normal_
from tenon._tensor.random_fills import normal_ as normal_
from tenon._tensor.random_fills import random_ as random_
from tenon._tensor.random_fills import uniform_ as uniform_

# -- dtypes ----------------------------------------------------------------------------------------


def _to(dtype: str) -> Callable[[Tensor], Tensor]:
    def method(self: Tensor) -> Tensor:
        return self.to(dtype)

    method.__doc__ = f"The tensor in {dtype}; itself if it is already."
    return method


half = _to("float16")
bfloat16 = _to("bfloat16")
float = _to("float32")
double = _to("float64")
char = _to("int8")
byte = _to("uint8")
short = _to("int16")
int = _to("int32")
long = _to("int64")
bool = _to("bool")
cfloat = _to("complex64")
cdouble = _to("complex128")


def astype(self: Tensor, dtype: Any, *, copy: builtins.bool = True) -> Tensor:
    """The tensor in another dtype; a copy also of the same one, unless `copy` is false."""
    return self.to(dtype=dtype, copy=copy)


def type(self: Tensor, dtype: Any = None) -> Any:
    """The tensor in another dtype; without one, the name of its own."""
    return self.dtype.name if dtype is None else self.to(dtype=dtype)


def type_as(self: Tensor, other: Tensor) -> Tensor:
    """The tensor in the dtype of `other`."""
    return self.to(dtype=other.dtype)


def is_floating_point(self: Tensor) -> builtins.bool:
    """Whether the dtype is a floating one."""
    return self.dtype.is_floating_point


def is_complex(self: Tensor) -> builtins.bool:
    """Whether the dtype is a complex one."""
    return self.dtype.is_complex


def is_integer(self: Tensor) -> builtins.bool:
    """Whether the dtype is an integer one."""
    return self.dtype.is_integer


# -- layouts (docs/sparse.md) ------------------------------------------------------------------------


def to_dense(self: Tensor, pad: builtins.float | None = None) -> Tensor:
    """The tensor with all its elements in memory; itself if it has them. Gradients pass. Of layout 'ragged', `pad` is
    what stands where rows have no elements; 0 if it is not given."""
    dense = _core.convert_layout(self, "strided")
    if pad is None:
        return dense
    if self.layout != "ragged":
        raise TypeError(
            f"to_dense(): expected a tensor of layout ragged with `pad`, got layout {self.layout}, "
            "whose elements that are not stored are zeros"
        )
    begin = offsets(self)
    lengths = _core.operator("subtract")(begin[1:], begin[:-1]).unsqueeze(1)
    number = _core.operator("arange")(self.shape[1], device=self.device)
    is_there = (number < lengths).reshape([*self.shape[:2], *[1] * (self.ndim - 2)])
    if dense.dtype.name == "bool":
        pad = builtins.bool(pad)
    padded = _core.operator("where")(is_there, dense, pad)
    if padded.dtype != dense.dtype:
        raise TypeError(
            f"to_dense(): expected a `pad` that {dense.dtype.name} holds, got {pad}; convert the tensor first"
        )
    return padded


def to_sparse(
    self: Tensor, layout: str = "coo", block: tuple[builtins.int, builtins.int] | None = None
) -> Tensor:
    """The elements that are not 0, in layout 'coo', 'csr' or 'csc'; in 'bsr' the blocks of the shape `block` that are
    not all 0. Gradients pass. Of a sparse tensor, the same elements in another layout."""
    if layout != "bsr":
        if block is not None:
            raise ValueError(
                f"to_sparse(): expected `block` with layout 'bsr' alone, got {layout!r}"
            )
        return _core.convert_layout(self, layout)
    if self.layout == "bsr" and block in (None, tuple(values(self).shape[1:])):
        return self
    if block is None:
        raise ValueError("to_sparse(): expected the shape of `block` for layout 'bsr', got none")
    return _to_blocks(to_dense(self), block)


def _to_blocks(self: Tensor, block: tuple[builtins.int, builtins.int]) -> Tensor:
    height, width = block
    if self.ndim != 2 or height < 1 or width < 1 or self.shape[0] % height or self.shape[1] % width:
        raise ValueError(
            f"bsr: expected a matrix whose shape the blocks divide, got shape {tuple(self.shape)} and "
            f"blocks of {tuple(block)}"
        )
    rows, columns = self.shape[0] // height, self.shape[1] // width
    tiles = self.reshape([rows, height, columns, width]).permute([0, 2, 1, 3])
    stored = _core.operator("any")(tiles != 0, [2, 3])
    row, column = _core.operator("nonzero")(stored).T
    begin = _core.operator("arange")(rows + 1, device=self.device)
    indptr = _core.operator("searchsorted")(row.contiguous(), begin)
    shape = list(self.shape)
    return _core.compose("bsr", shape, [indptr, column.contiguous(), tiles[row, column]])


def coalesce(self: Tensor) -> Tensor:
    """Of layout 'coo': sorted by the indices, with the elements of equal indices added up."""
    return _core.coalesce(self)


def _part(self: Tensor, name: str, layouts: dict[str, builtins.int]) -> Tensor:
    if self.layout not in layouts:
        expected = " or ".join(layouts)
        raise TypeError(f"{name}(): expected a tensor of layout {expected}, got {self.layout}")
    return _core.parts_of(self)[layouts[self.layout]]


def values(self: Tensor) -> Tensor:
    """The stored elements of a sparse or ragged tensor, which carry its gradient. Of 'bsr' they are blocks."""
    return _part(self, "values", {"coo": 1, "csr": 2, "csc": 2, "bsr": 2, "ragged": 1})


def indices(self: Tensor) -> Tensor:
    """Where the stored elements are: [axes, stored elements] of layout 'coo', columns of 'csr', rows of 'csc', columns
    of blocks of 'bsr'."""
    return _part(self, "indices", {"coo": 0, "csr": 1, "csc": 1, "bsr": 1})


def indptr(self: Tensor) -> Tensor:
    """Of layout 'csr' and 'bsr': where each row begins among the stored elements, and where the last ends. Of 'csc',
    each column."""
    return _part(self, "indptr", {"csr": 0, "csc": 0, "bsr": 0})


def offsets(self: Tensor) -> Tensor:
    """Of layout 'ragged': where each row begins among the values, and where the last ends."""
    return _part(self, "offsets", {"ragged": 0})


# -- shape and memory --------------------------------------------------------------------------------


def dim(self: Tensor) -> builtins.int:
    """The number of axes."""
    return self.ndim


ndimension = dim


def nelement(self: Tensor) -> builtins.int:
    """The number of elements."""
    return self.numel()


def element_size(self: Tensor) -> builtins.int:
    """Bytes of an element."""
    return self.itemsize


def stride(self: Tensor, dim: builtins.int | None = None) -> Any:
    """Elements from one position to the next along each axis, or along one."""
    return self.strides if dim is None else self.strides[dim]


def get_device(self: Tensor) -> builtins.int:
    """The number of the device among those of its kind; -1 for the CPU."""
    return -1 if self.device.kind == "cpu" else self.device.index


def cuda(self: Tensor, device: builtins.int = 0) -> Tensor:
    """The tensor on a CUDA device."""
    return self.to(f"cuda:{device}")


def copy(self: Tensor) -> Tensor:
    """The tensor in memory of its own."""
    return self.clone()


def ravel(self: Tensor) -> Tensor:
    """The elements as a vector; a view where the memory allows it."""
    return self.reshape(-1)


def reshape_as(self: Tensor, other: Tensor) -> Tensor:
    """The elements in the shape of `other`."""
    return self.reshape(other.shape)


def unfold(self: Tensor, dimension: builtins.int, size: builtins.int, step: builtins.int) -> Tensor:
    """Windows of `size` elements along `dimension`, `step` apart, in a new last axis, as a view."""
    if self.ndim:
        return _operator("sliding_window")(self, dimension, size, step)
    # One number is a vector of one element, of which there is one window.
    if size not in (0, 1) or dimension not in (-1, 0):
        raise ValueError(
            f"unfold(): expected dimension 0 and size 0 or 1 of a 0-d tensor, got {dimension} and {size}"
        )
    return self.reshape(1)[:size]


def view_as(self: Tensor, other: Tensor) -> Tensor:
    """A view in the shape of `other`."""
    return self.view(other.shape)


def expand_as(self: Tensor, other: Tensor) -> Tensor:
    """The tensor expanded to the shape of `other`; a view."""
    return self.expand(other.shape)


def broadcast_to(self: Tensor, *shape: Any) -> Tensor:
    """The tensor expanded to a shape; a view."""
    return self.expand(_one_sequence(shape))


def t(self: Tensor) -> Tensor:
    """The transpose of a matrix; a vector or a number is itself."""
    if self.ndim > 2:
        raise ValueError(f"t(): expected at most 2 axes, got {self.ndim}; use .T, .mT or permute()")
    return self.T


def moveaxis(self: Tensor, source: Any, destination: Any) -> Tensor:
    """A view with axes moved to other axes; the others keep their order."""
    return self.movedim(source, destination)


def chunk(
    self: Tensor, chunks: builtins.int, axis: Any = None, *, dim: Any = None
) -> tuple[Tensor, ...]:
    """At most `chunks` parts along an axis, 0 without one, of one length but for the last, which may be shorter. `dim` is
    `axis`."""
    if dim is not None and axis is not None:
        raise TypeError("chunk(): got two values for argument 'axis'")
    axis = dim if dim is not None else axis if axis is not None else 0
    if chunks < 1:
        raise ValueError(f"chunk(): expected at least 1 chunk, got {chunks}")
    extent = self.shape[axis]
    length = max(1, -(-extent // chunks))
    sizes = [min(length, extent - start) for start in range(0, max(extent, 1), length)]
    return tuple(_operator("split")(self, sizes, axis))


def _assigned(name: str) -> Callable[..., Tensor]:
    """The method that gives the tensor itself another shape. Its memory stays, and so it must have no
    history, whose gradients have the shape that it had."""

    def method(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        if self.requires_grad:
            raise NotImplementedError(
                f"{name}_(): expected a tensor that requires no gradient, got one that does; write "
                f"x = x.{name}(...)"
            )
        self.data = getattr(self, name)(*args, **kwargs)
        return self

    method.__name__, method.__qualname__ = f"{name}_", f"Tensor.{name}_"
    method.__doc__ = f"{name}(), of the tensor itself, which must not require a gradient."
    return method


_SHAPES = "squeeze unsqueeze transpose swapaxes swapdims t reshape flatten".split()

squeeze_ = _assigned("squeeze")
unsqueeze_ = _assigned("unsqueeze")
transpose_ = _assigned("transpose")
swapaxes_ = _assigned("swapaxes")
swapdims_ = _assigned("swapdims")
t_ = _assigned("t")
reshape_ = _assigned("reshape")
flatten_ = _assigned("flatten")


def detach_(self: Tensor) -> Tensor:
    """The tensor without a gradient from now on. It must have no history to be detached from."""
    if self.requires_grad and not self.is_leaf:
        raise NotImplementedError(
            "detach_(): expected a tensor without a history, got a result; write x = x.detach()"
        )
    return self.requires_grad_(False)


def is_same_size(self: Tensor, other: Tensor) -> builtins.bool:
    """Whether the other tensor has the same shape."""
    return self.shape == other.shape


def is_signed(self: Tensor) -> builtins.bool:
    """Whether the dtype has a sign."""
    return self.dtype.is_signed


def _is_on(kind: str) -> property:
    return property(
        lambda self: self.device.kind == kind, doc=f"Whether it is on a device of kind {kind}."
    )


is_cpu = _is_on("cpu")
is_cuda = _is_on("cuda")
is_meta = _is_on("meta")
is_sparse = property(
    lambda self: self.layout == "coo", doc="Whether it has the layout 'coo' (docs/sparse.md)."
)


# -- new tensors -----------------------------------------------------------------------------------


def _new(self: Tensor, dtype: Any, device: Any) -> dict[str, Any]:
    return {
        "dtype": self.dtype if dtype is None else dtype,
        "device": self.device if device is None else device,
    }


def new_empty(self: Tensor, *shape: Any, dtype: Any = None, device: Any = None) -> Tensor:
    """Unspecified elements, in this tensor's dtype and on its device unless given."""
    return _operator("empty")(_one_sequence(shape), **_new(self, dtype, device))


def new_zeros(self: Tensor, *shape: Any, dtype: Any = None, device: Any = None) -> Tensor:
    """Zeros, in this tensor's dtype and on its device unless given."""
    return _operator("zeros")(_one_sequence(shape), **_new(self, dtype, device))


def new_ones(self: Tensor, *shape: Any, dtype: Any = None, device: Any = None) -> Tensor:
    """Ones, in this tensor's dtype and on its device unless given."""
    return _operator("ones")(_one_sequence(shape), **_new(self, dtype, device))


def new_full(
    self: Tensor, shape: Any, value: Any, *, dtype: Any = None, device: Any = None
) -> Tensor:
    """Elements of one value, in this tensor's dtype and on its device unless given."""
    return _operator("full")(shape, value, **_new(self, dtype, device))


def new_tensor(self: Tensor, data: Any, *, dtype: Any = None, device: Any = None) -> Tensor:
    """The values of `data`, in this tensor's dtype and on its device unless given."""
    return _core.tensor(data, **_new(self, dtype, device))


# -- operators with arguments in another order ---------------------------------------------------------


def clamp_min(self: Tensor, min: Any) -> Tensor:
    """`clip()` from below."""
    return self.clip(min)


def clamp_max(self: Tensor, max: Any) -> Tensor:
    """`clip()` from above."""
    return self.clip(None, max)


def clamp_min_(self: Tensor, min: Any) -> Tensor:
    """`clip_()` from below."""
    return self.clip_(min)


def clamp_max_(self: Tensor, max: Any) -> Tensor:
    """`clip_()` from above."""
    return self.clip_(None, max)


def __dir__(self: Tensor) -> list[str]:
    """Names of a tensor, without methods that are functions of another library, or that give the tensor itself another
    shape: CPython suggests a name for a misspelled one among fewer than 750 alone."""
    from tenon._spellings import METHODS  # a large table that few programs need

    shapes = {f"{name}_" for name in _SHAPES}
    return sorted(set(object.__dir__(self)) - set(METHODS) - shapes)


def __round__(self: Tensor, ndigits: builtins.int = 0) -> Tensor:
    """round(x): elements rounded to whole numbers, halves to even ones; round(x, n): to n
    decimals."""
    if ndigits == 0 or not (self.dtype.is_floating_point or self.dtype.is_complex):
        return self.round()
    scale = 10.0**ndigits
    return (self * scale).round() / scale


def where(self: Tensor, condition: Tensor, other: Any) -> Tensor:
    """The tensor's elements where `condition` holds, and those of `other` elsewhere."""
    return _operator("where")(condition, self, other)


def take(self: Tensor, indices: Tensor, axis: builtins.int | None = None) -> Tensor:
    """Elements at `indices` along an axis; of the flat tensor without one."""
    if axis is None:
        return _operator("index_select")(self.reshape(-1), indices, 0)
    return _operator("index_select")(self, indices, axis)


def _in_order(name: str, index: Any, source: Any, axis: builtins.int) -> tuple[Any, Any, Any]:
    """Arguments in our order (index, source, axis) or in PyTorch's (dim, index, source)."""
    if isinstance(index, builtins.int):
        return source, axis, index
    return index, source, axis


def scatter_(self: Tensor, index: Any, source: Any, axis: Any = -1) -> Tensor:
    """`scatter()` in place: (index, source, axis), or PyTorch's (dim, index, source)."""
    return _operator("scatter_")(self, *_in_order("scatter_", index, source, axis))


def scatter_add_(self: Tensor, index: Any, source: Any, axis: Any = -1) -> Tensor:
    """`scatter_add()` in place: (index, source, axis), or PyTorch's (dim, index, source)."""
    return _operator("scatter_add_")(self, *_in_order("scatter_add_", index, source, axis))


def index_add_(self: Tensor, index: Any, source: Any, axis: Any = 0) -> Tensor:
    """`index_add()` in place: (index, source, axis), or PyTorch's (dim, index, source)."""
    return _operator("index_add_")(self, *_in_order("index_add_", index, source, axis))


def scatter_reduce_(
    self: Tensor,
    index: Any,
    source: Any,
    axis: Any = -1,
    reduce: str | None = None,
    *,
    include_self: builtins.bool = True,
) -> Tensor:
    """`scatter_reduce()` in place: (index, source, axis), or PyTorch's (dim, index, source)."""
    if reduce is None:
        raise TypeError("scatter_reduce_(): expected `reduce`, got none")
    index, source, axis = _in_order("scatter_reduce_", index, source, axis)
    return _operator("scatter_reduce_")(
        self, index, source, axis, reduce=reduce, include_self=include_self
    )


def polygamma(self: Tensor, n: builtins.int) -> Tensor:
    """The n-th derivative of digamma()."""
    return _operator("polygamma")(n, self)


def polygamma_(self: Tensor, n: builtins.int) -> Tensor:
    """`polygamma()`, written over the tensor."""
    return self.copy_(_operator("polygamma")(n, self.clone()))


# -- writing ---------------------------------------------------------------------------------------


def set_value(self: Tensor, value: Any) -> None:
    """Overwrite the elements, without history."""
    given = value if isinstance(value, Tensor) else _core.tensor(value)
    if tuple(given.shape) != tuple(self.shape):
        raise ValueError(
            f"set_value(): expected values of shape {tuple(self.shape)}, got {tuple(given.shape)}"
        )
    self.detach().copy_(given)


def clear_grad(self: Tensor) -> None:
    """Forget the gradient."""
    self.grad = None


def apply_(self: Tensor, function: Callable[[Any], Any]) -> Tensor:
    """Overwrite each element by what a Python function makes of it: slow, for tests and tables."""
    values = [function(value) for value in self.detach().cpu().reshape(-1).tolist()]
    return self.copy_(_core.tensor(values, dtype=self.dtype).reshape(self.shape))


def written(name: str, target: Tensor, result: Tensor) -> Tensor:
    """`target` with the elements of `result`, whose kind of numbers it has to hold."""

    def rank(dtype: Any) -> builtins.int:
        return 2 if dtype.is_complex else builtins.int(dtype.is_floating_point)

    if result.shape != target.shape or rank(result.dtype) > rank(target.dtype):
        raise ValueError(
            f"{name}(): expected a result of shape {tuple(target.shape)} that {target.dtype} holds, got shape "
            f"{tuple(result.shape)} and {result.dtype}; call the method that is not in place"
        )
    return target.copy_(result)


def __getattr__(name: str) -> Any:
    from tenon._spellings import METHODS  # a large table that few programs need

    library = METHODS.get(name)
    if library is None:
        raise AttributeError(f"module 'tenon._tensor.methods' has no attribute '{name}'")
    function = getattr(importlib.import_module(f"tenon.compat.{library}"), name.removesuffix("_"))

    def method(self: Tensor, *args: Any, **kwargs: Any) -> Any:
        return function(self, *args, **kwargs)

    def method_in_place(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        if "out" in kwargs:
            raise TypeError(
                f"{name}(): expected no out, got one: the result is written over the tensor"
            )
        # A gradient that reads the argument reads this copy, which the write leaves as it is.
        return written(name, self, function(self.clone(), *args, **kwargs))

    if name.endswith("_"):
        method = method_in_place
    method.__name__, method.__qualname__, method.__doc__ = name, f"Tensor.{name}", function.__doc__
    return method


_OTHER = {"written", "annotations", "builtins", "importlib", "Any", "Callable", "Tensor"}
__all__ = ["__dir__", "__round__"] + sorted(
    name for name in globals() if not name.startswith("_") and name not in _OTHER
)
