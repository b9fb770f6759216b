# SPDX-License-Identifier: Apache-2.0
"""Methods and attributes of tensors with PyTorch's meaning, where Tenon's own have another or none.

Most are functions of tenon.compat.torch, which take the tensor first. Under the alias they stand in tenon.Tensor, so that
every tensor of the process has them, wherever it was made.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import tenon
from tenon._core import Tensor
from tenon._core import operator as _operator
from tenon._tensor.arguments import one_sequence
from tenon.compat import torch as _torch
from tenon.compat.torch import _options
from tenon.compat.torch._alias.constructors import dtype_of, name_of
from tenon.compat.torch._alias.memory import memory_attributes
from tenon.compat.torch._alias.sparse_methods import sparse_attributes

Method = Callable[..., Any]

# Functions of PyTorch that are methods, too.
_FUNCTIONS = """as_strided_scatter conj_physical is_nonzero nonzero_static resolve_conj resolve_neg unsafe_chunk unsafe_split
abs absolute acos acosh add addbmm addcdiv addcmul addmm addmv addr adjoint all allclose amax amin aminmax
angle any arccos arccosh arcsin arcsinh arctan arctan2 arctanh argmax argmin argsort argwhere as_strided asin asinh atan
atan2 atanh baddbmm bernoulli bincount bitwise_and bitwise_left_shift bitwise_not bitwise_or bitwise_right_shift bitwise_xor
bmm broadcast_to bucketize ceil cholesky_inverse cholesky_solve chunk clamp clip clone conj copysign corrcoef cos cosh
count_nonzero cov cross cummax cummin cumprod cumsum deg2rad det diag diag_embed diagflat diagonal diagonal_scatter diff
digamma dist div divide dot dsplit eq equal erf erfc erfinv exp exp2 expm1 fix flatten fliplr flipud float_power floor
floor_divide fmax fmin fmod frac frexp gather gcd ge geqrf ger greater greater_equal gt heaviside histc histogram hsplit
hypot i0 igamma igammac index_add index_copy index_fill index_put index_reduce index_select inner inverse isclose isfinite
isinf isnan isneginf isposinf isreal kron kthvalue lcm ldexp le lerp less less_equal lgamma log log10 log1p log2
log_softmax logaddexp logaddexp2 logcumsumexp logdet logical_and logical_not logical_or logical_xor logit logsumexp lt
lu_solve masked_fill masked_scatter masked_select matmul matrix_exp matrix_power maximum mean median minimum mm mode moveaxis
movedim msort mul multinomial multiply mv mvlgamma nan_to_num nanmean nanmedian nanquantile nansum narrow narrow_copy ne neg
negative nextafter nonzero norm not_equal orgqr ormqr outer pinverse polygamma positive pow prelu prod quantile rad2deg
reciprocal relu remainder renorm repeat_interleave roll rot90 round rsqrt scatter scatter_add scatter_reduce select
select_scatter sgn sigmoid sign signbit sin sinc sinh slice_scatter slogdet softmax sort sqrt square squeeze std stft istft
sub subtract sum sum_to_size svd swapaxes swapdims take take_along_dim tan tanh tensor_split topk trace transpose triangular_solve tril
triu true_divide trunc unbind unflatten unique unique_consecutive unsqueeze var vdot vsplit xlogy""".split()

# Of those, the ones that are written over the tensor as well.
_IN_PLACE = """absolute arccos arccosh arcsin arcsinh arctan arctan2 arctanh conj_physical
abs acos acosh add addbmm addcdiv addcmul addmm addmv addr asin asinh atan atan2 atanh baddbmm bitwise_and
bitwise_not bitwise_or bitwise_xor ceil clamp clip copysign cos cosh cumprod cumsum deg2rad digamma div divide eq erf erfc
erfinv exp exp2 expm1 fix float_power floor floor_divide fmod frac gcd ge gt hypot i0 index_add index_copy index_fill
index_put index_reduce lcm ldexp le lerp lgamma log log10 log1p log2 logical_and logical_not logical_or logical_xor logit lt
masked_fill masked_scatter mul multiply mvlgamma nan_to_num ne neg negative nextafter pow rad2deg reciprocal relu remainder
renorm round rsqrt scatter scatter_add scatter_reduce sgn sigmoid sign sin sinc sinh sqrt square sub subtract tan tanh tril
triu true_divide trunc xlogy""".split()

# Of those, the ones whose own method in place takes the axis in another position, or numbers of another meaning.
_OTHER_IN_PLACE = frozenset(
    "index_add index_copy index_fill index_put index_reduce scatter scatter_add scatter_reduce".split()
)


def _method_of(name: str) -> Method | None:
    """The function as a method; None where Tenon's own method is the same."""
    function: Method = getattr(_torch, name)
    own = getattr(Tensor, name, None)
    names = [each for each in inspect.signature(function).parameters if each != "out"]
    if own is not None and names == ["input"]:
        return None

    def method(self: Tensor, *args: Any, **kwargs: Any) -> Any:
        return function(self, *args, **kwargs)

    method.__name__, method.__qualname__ = name, f"Tensor.{name}"
    method.__doc__ = function.__doc__
    return method


def _method_in_place(name: str) -> Method:
    written = _options.in_place(f"{name}_", getattr(_torch, name))
    own = None if name in _OTHER_IN_PLACE else getattr(Tensor, f"{name}_", None)
    if own is None:
        return written

    def method(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        return written(self, *args, **kwargs) if kwargs else own(self, *args)

    method.__name__, method.__qualname__ = f"{name}_", f"Tensor.{name}_"
    method.__doc__ = written.__doc__
    return method


# -- shapes ------------------------------------------------------------------------------------------


def size(self: Tensor, dim: int | None = None) -> Any:
    """The shape, or the extent of one axis."""
    return self.shape if dim is None else self.shape[dim]


def max(self: Tensor, *args: Any, **kwargs: Any) -> Any:
    """The largest element; along an axis (values, indices); with another tensor the larger of each."""
    return _torch.max(self, *args, **kwargs)


def min(self: Tensor, *args: Any, **kwargs: Any) -> Any:
    """The smallest element; along an axis (values, indices); with another tensor the smaller of each."""
    return _torch.min(self, *args, **kwargs)


def split(self: Tensor, split_size: Any, dim: int = 0) -> tuple[Tensor, ...]:
    """Parts of `split_size` along an axis, the last one perhaps shorter, or of the sizes in a list."""
    return _torch.split(self, split_size, dim)


def split_with_sizes(self: Tensor, split_sizes: Any, dim: int = 0) -> tuple[Tensor, ...]:
    """Parts of these sizes along an axis."""
    return _torch.split(self, list(split_sizes), dim)


def repeat(self: Tensor, *repeats: Any) -> Tensor:
    """The whole tensor, `repeats` times along each axis; there may be more of them than axes, not fewer."""
    times = one_sequence(repeats)
    times = [times] if isinstance(times, int) else list(times)
    if len(times) < self.ndim:
        raise ValueError(
            f"repeat(): expected at least {self.ndim} repeats, one for each axis, got {times}"
        )
    return _operator("tile")(self, times)


def _of_list(name: str, keyword: str) -> Method:
    """A method that takes its list as one argument, as several, or by `keyword`."""
    operator = _operator(name)

    def method(self: Tensor, *extents: Any, **kwargs: Any) -> Tensor:
        if keyword in kwargs and not extents:
            extents = (kwargs.pop(keyword),)
        if kwargs:
            raise TypeError(
                f"{name}(): unknown keyword {next(iter(kwargs))!r}; expected {keyword!r}"
            )
        return operator(self, one_sequence(extents))

    method.__name__, method.__qualname__, method.__doc__ = name, f"Tensor.{name}", operator.__doc__
    return method


def expand(self: Tensor, *extents: Any, size: Any = None, implicit: bool = False) -> Tensor:
    """A view with axes of one element extended; -1 leaves an axis as it is."""
    return _operator("expand")(self, one_sequence(extents) if size is None else size)


def view(self: Tensor, *shape: Any, dtype: Any = None, size: Any = None) -> Tensor:
    """A view of another shape, or of the same memory in another dtype."""
    if len(shape) == 1 and isinstance(shape[0], tenon.dtype):
        dtype, shape = shape[0], ()
    if dtype is None:
        return _operator("view")(self, one_sequence(shape) if size is None else size)
    return _operator("bitcast")(self, dtype)


def _assigned(name: str, function: Method) -> Method:
    """The method that gives the tensor itself another shape. Its memory stays, and it must have no history."""

    def method(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        if self.requires_grad:
            raise NotImplementedError(
                f"{name}(): expected a tensor that requires no gradient, got one that does; write x = x.{name[:-1]}(...)"
            )
        self.data = function(self, *args, **kwargs)
        return self

    method.__name__, method.__qualname__ = name, f"Tensor.{name}"
    method.__doc__ = f"{name[:-1]}(), of the tensor itself."
    return method


def detach_(self: Tensor) -> Tensor:
    """Of a leaf or a tensor without history, which has nothing to be detached from."""
    if self.requires_grad and not self.is_leaf:
        raise NotImplementedError(
            "detach_(): expected a tensor without a history; write x = x.detach()"
        )
    return self.requires_grad_(False)


# -- dtypes, devices and memory ----------------------------------------------------------------------


def type(self: Tensor, dtype: Any = None, non_blocking: bool = False) -> Any:
    """The tensor in another dtype; without one, the name of its own class, as "torch.FloatTensor"."""
    return name_of(self.dtype) if dtype is None else self.to(dtype=dtype_of(dtype))


_own_to = Tensor.to


def to(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """The tensor in another dtype, on another device, or as another tensor; itself if nothing changes."""
    if len(args) <= 2 and "memory_format" not in kwargs and "other" not in kwargs:
        return _own_to(self, *args, **kwargs)
    _check_format("to", kwargs.pop("memory_format", None))
    if "other" in kwargs:
        args = (kwargs.pop("other"), *args)
    targets = [each for each in args if not isinstance(each, bool)]  # then non_blocking, copy
    for key, value in zip(("non_blocking", "copy"), args[len(targets) :], strict=False):
        kwargs.setdefault(key, value)
    return _own_to(self, *targets, **kwargs)


def _check_format(name: str, memory_format: Any) -> None:
    if memory_format not in (None, _options.contiguous_format, _options.preserve_format):
        raise NotImplementedError(
            f"{name}(): expected memory_format contiguous_format or preserve_format, got {memory_format!r}"
        )


_own_is_contiguous = Tensor.is_contiguous


def contiguous(self: Tensor, memory_format: Any = None) -> Tensor:
    """The tensor in row-major, dense memory."""
    _check_format("contiguous", memory_format)
    return _operator("contiguous")(self)


def is_contiguous(self: Tensor, memory_format: Any = None) -> bool:
    """Whether memory is row-major and dense."""
    _check_format("is_contiguous", memory_format)
    return _own_is_contiguous(self)


_own_copy, _own_numpy = Tensor.copy_, Tensor.numpy


def copy_(self: Tensor, src: Any, non_blocking: bool = False) -> Tensor:
    """Overwrite with `src`, which broadcasts and may have another dtype or device."""
    return _own_copy(self, src)


def numpy(self: Tensor, *, force: bool = False) -> Any:
    """A NumPy array that shares the memory; with `force` a copy where it cannot be shared."""
    return _own_numpy(self.detach().cpu()) if force else _own_numpy(self)


def pin_memory(self: Tensor, device: Any = None) -> Tensor:
    """The tensor itself: without an accelerator there is nothing to pin memory for."""
    return self


def is_inference(self: Tensor) -> bool:
    """Whether it may never be part of a graph. No tensor is of that kind here."""
    return False


def is_pinned(self: Tensor, device: Any = None) -> bool:
    """Whether memory is pinned."""
    return False


def is_signed(self: Tensor) -> bool:
    """Whether the dtype has a sign."""
    return self.dtype.is_signed


def is_same_size(self: Tensor, other: Tensor) -> bool:
    """Whether the other tensor has the same shape."""
    return self.shape == other.shape


def storage_offset(self: Tensor) -> int:
    raise NotImplementedError("storage_offset(): tensors do not say where their memory begins")


def _new(name: str) -> Method:
    own = getattr(Tensor, name)

    def method(
        self: Tensor,
        *args: Any,
        size: Any = None,
        requires_grad: bool = False,
        layout: Any = None,
        pin_memory: bool = False,
        **kwargs: Any,
    ) -> Tensor:
        if layout not in (None, _torch.strided):
            raise NotImplementedError(f"{name}(): expected layout torch.strided, got {layout}")
        result = own(self, *(args if size is None else (size, *args)), **kwargs)
        return result.requires_grad_() if requires_grad else result

    method.__name__, method.__qualname__, method.__doc__ = name, f"Tensor.{name}", own.__doc__
    return method


def new(self: Tensor, *data: Any) -> Tensor:
    """A tensor of this one's dtype: of extents, or of data."""
    return _torch.as_tensor(tenon.Tensor(*data)).to(dtype=self.dtype, device=self.device)


def _fill(name: str, *keywords: str) -> Method:
    """A random fill that takes PyTorch's keywords for its numbers."""
    own = getattr(Tensor, name)

    def method(self: Tensor, *args: Any, generator: Any = None, **kwargs: Any) -> Tensor:
        given = list(args)
        for key in keywords[len(given) :]:
            if key in kwargs:
                given.append(kwargs.pop(key))
        if kwargs:
            raise TypeError(
                f"{name}(): expected the parameters {', '.join(keywords)} in their order, got {', '.join(kwargs)}"
            )
        return own(self, *given, generator=generator)

    method.__name__, method.__qualname__, method.__doc__ = name, f"Tensor.{name}", own.__doc__
    return method


def _is_of(kind: str) -> property:
    return property(
        lambda self: self.device.kind == kind, doc=f"Whether it is on a device of {kind}."
    )


def _never(self: Tensor) -> bool:
    """No tensor is."""
    return False


def _constant(value: Any, doc: str) -> property:
    return property(lambda self: value, doc=doc)


def attributes() -> dict[str, Any]:
    """All of them, by name."""
    found: dict[str, Any] = {}
    for name in _FUNCTIONS:
        method = _method_of(name)
        if method is not None:
            found[name] = method
    found |= {f"{name}_": _method_in_place(name) for name in _IN_PLACE}
    own = """size max min split split_with_sizes repeat expand view detach_ type to contiguous is_contiguous copy_ numpy pin_memory
    is_inference is_pinned is_signed is_same_size new""".split()
    found |= {name: globals()[name] for name in own}
    for name, keyword in {
        "permute": "dims",
        "reshape": "shape",
        "flip": "dims",
        "tile": "dims",
    }.items():
        found[name] = _of_list(name, keyword)
    for name in "new_empty new_zeros new_ones new_full new_tensor".split():
        found[name] = _new(name)
    for name in "squeeze unsqueeze transpose swapaxes swapdims t".split():
        found[f"{name}_"] = _assigned(f"{name}_", found.get(name) or getattr(Tensor, name))
    found |= {
        "uniform_": _fill("uniform_", "from", "to"),
        "exponential_": _fill("exponential_", "lambd"),
        "log_normal_": _fill("log_normal_", "mean", "std"),
        "cauchy_": _fill("cauchy_", "median", "sigma"),
        "geometric_": _fill("geometric_", "p"),
        "random_": _fill("random_", "from", "to"),
    }
    found |= {f"is_{kind}": _is_of(kind) for kind in ("cpu", "cuda", "meta", "mps", "xpu")}
    for name in "quantized mkldnn".split():
        found[f"is_{name}"] = _constant(False, "No tensor is.")
    found |= sparse_attributes() | memory_attributes()
    for name in "conj neg distributed".split():
        found[f"is_{name}"] = _never
    return found
