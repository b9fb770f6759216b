# SPDX-License-Identifier: Apache-2.0
"""A tensor that stands for one sample of a batch.

To the function that vmap() calls, a Batched is a tensor of one sample's shape; its `physical`
tensor has all samples, along axis 0. Levels of nested vmap()s nest: `physical` may be a Batched of
an outer level. The tensor that Batched inherits has the sample's shape and dtype, and no memory.
Operators that meet one are called by tenon/func/rules.py; what is no operator is below.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NoReturn

from tenon import _core
from tenon._core import Tensor
from tenon._core import operator as _operator


class Batched(Tensor):
    """One sample of `physical`, whose axis 0 is the batch of vmap() number `level`."""

    physical: Tensor
    level: int

    def __new__(cls, physical: Tensor, level: int) -> Batched:
        shape = tuple(physical.shape)[1:]
        sample = _operator("empty")(shape, dtype=physical.dtype, device="meta")
        self = super().__new__(cls, sample)
        self.physical, self.level = physical, level
        return self

    def __init__(self, physical: Tensor, level: int) -> None:
        pass

    def __repr__(self) -> str:
        return f"Batched(level={self.level}, physical={self.physical!r})"

    def like(self, physical: Tensor) -> Batched:
        """Another tensor of this level."""
        return Batched(physical, self.level)

    # -- attributes ------------------------------------------------------------------------------

    @property
    def device(self) -> Any:
        return self.physical.device

    @property
    def requires_grad(self) -> bool:
        return self.physical.requires_grad

    @requires_grad.setter
    def requires_grad(self, on: bool) -> None:
        self.physical.requires_grad = on

    @property
    def is_leaf(self) -> bool:
        return self.physical.is_leaf

    @property
    def T(self) -> Tensor:
        return _operator("permute")(self, list(reversed(range(self.ndim))))

    @property
    def mT(self) -> Tensor:
        return _operator("transpose")(self, -2, -1)

    @property
    def mH(self) -> Tensor:
        return _operator("conj")(self.mT) if self.dtype.is_complex else self.mT

    @property
    def H(self) -> Tensor:
        if self.ndim != 2:
            raise AttributeError(f"H: expected a matrix of 2 axes, got {self.ndim}")
        return self.mH

    @property
    def grad(self) -> Tensor | None:
        raise _belongs_to_all("grad")

    @grad.setter
    def grad(self, value: Any) -> None:
        raise _belongs_to_all("grad")

    @property
    def grad_fn(self) -> str | None:
        return self.physical.grad_fn

    @property
    def data(self) -> Tensor:
        return self.detach()

    @data.setter
    def data(self, value: Any) -> None:
        raise _belongs_to_all("assigning data")

    @property
    def real(self) -> Tensor:
        return _operator("real")(self)

    @real.setter
    def real(self, value: Any) -> None:
        raise NotImplementedError("vmap: real is a copy; make a number of parts by tenon.complex")

    @property
    def imag(self) -> Tensor:
        return _operator("imag")(self)

    @imag.setter
    def imag(self, value: Any) -> None:
        raise NotImplementedError("vmap: imag is a copy; make a number of parts by tenon.complex")

    def detach(self) -> Tensor:
        return self.like(self.physical.detach())

    def requires_grad_(self, requires_grad: bool = True) -> Batched:
        self.physical.requires_grad_(requires_grad)
        return self

    def to(self, *args: Any, **kwargs: Any) -> Tensor:
        given: Any = [each.physical if isinstance(each, Batched) else each for each in args]
        return self.like(self.physical.to(*given, **kwargs))

    def cpu(self) -> Tensor:
        return self.like(self.physical.cpu())

    def to_device(self, device: Any, **kwargs: Any) -> Tensor:
        return self.like(self.physical.to_device(device, **kwargs))

    def register_hook(self, hook: Callable[[Tensor], Tensor | None]) -> Any:
        """Call `hook` with the gradient of a sample, which stands for those of all samples."""
        levels = levels_of(self)

        def hook_of_all(gradient: Tensor) -> Tensor | None:
            replaced = hook(of_levels(gradient, levels))
            return None if replaced is None else raw_of(gradient_like(replaced, levels))

        return raw_of(self).register_hook(hook_of_all)

    def register_post_accumulate_grad_hook(self, hook: Callable[[Tensor], object]) -> Any:
        raise _belongs_to_all("register_post_accumulate_grad_hook()")

    def retain_grad(self) -> None:
        raise _belongs_to_all("retain_grad()")

    # -- writing ---------------------------------------------------------------------------------

    def copy_(self, source: Any) -> Batched:
        value = _operator("expand")(_as_tensor(source, self), self.shape)
        if not isinstance(value, Batched) or value.level < self.level:
            value = _operator("unsqueeze")(value, [0])
        elif value.level == self.level:
            value = value.physical
        else:
            raise RuntimeError(
                "vmap: expected to write samples of this batch, got those of an inner vmap; write to "
                "a tensor that was made inside of it"
            )
        self.physical.copy_(value)
        return self

    def fill_(self, value: Any) -> Batched:
        return self.copy_(value)

    def zero_(self) -> Batched:
        return self.copy_(0)

    def __setitem__(self, key: Any, value: Any) -> None:
        part = self[key]
        if not _is_basic(key) or not isinstance(part, Batched):
            raise NotImplementedError(
                "vmap: writing by an index of tensors is not supported; use tenon.where, scatter or "
                "index_put, which give a new tensor"
            )
        part.copy_(value)

    # -- reading ---------------------------------------------------------------------------------

    def __getitem__(self, key: Any) -> Tensor:
        if _is_basic(key):
            whole = slice(None)
            return self.like(self.physical[(whole, *(key if isinstance(key, tuple) else (key,)))])
        if isinstance(key, Tensor) and not key.dtype.is_integer:
            raise NotImplementedError(
                "vmap: the samples of a batch may have different numbers of elements under a mask; use "
                "tenon.where"
            )
        positions = key if isinstance(key, tuple) else (key,)
        if not all(isinstance(each, (Tensor, int)) for each in positions):
            raise NotImplementedError(
                "vmap: an index of tensors and slices together is not supported; take the slices first"
            )
        tensors = [_as_tensor(each, self) for each in positions]
        return _operator("index")(self, tensors, 0)

    def __bool__(self) -> bool:
        _no_value("the truth")

    def __int__(self) -> int:
        _no_value("int()")

    def __float__(self) -> float:
        _no_value("float()")

    def __complex__(self) -> complex:
        _no_value("complex()")

    def __index__(self) -> int:
        _no_value("an index")

    def item(self) -> Any:
        _no_value("item()")

    def tolist(self) -> Any:
        _no_value("tolist()")

    def numpy(self) -> Any:
        _no_value("numpy()")

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        _no_value("a NumPy array")

    def __dlpack__(self, *args: Any, **kwargs: Any) -> Any:
        _no_value("__dlpack__()")

    def __format__(self, specification: str) -> str:
        return format(repr(self), specification)

    def __reduce__(self) -> Any:
        _no_value("copy.deepcopy() or pickle, use clone()")

    def data_ptr(self) -> int:
        _no_value("data_ptr()")

    def backward(self, *args: Any, **kwargs: Any) -> None:
        raise RuntimeError(
            "vmap: expected no backward() inside; use tenon.func.grad inside, or backward() outside"
        )

    # Comparing gives tensors, as for every Tensor; identity hashes.
    __hash__ = Tensor.__hash__


def _no_value(what: str) -> NoReturn:
    raise RuntimeError(
        f"vmap: expected a function that reads no values of its tensors, got {what}: there is one for "
        f"each sample; use tenon.where instead of branches"
    )


def _belongs_to_all(what: str) -> Exception:
    return RuntimeError(
        f"vmap: expected no {what} of a sample, which belongs to the tensor of all samples; use "
        f"tenon.func.grad inside, or the tensor outside"
    )


def _as_tensor(value: Any, like: Tensor) -> Tensor:
    if isinstance(value, Tensor):
        return value
    device = raw_of(like).device
    return _core.tensor(
        value, dtype=like.dtype if isinstance(value, float) else None, device=device
    )


def _is_basic(key: Any) -> bool:
    keys = key if isinstance(key, tuple) else (key,)
    return all(each is None or each is ... or isinstance(each, (int, slice)) for each in keys)


class _Running(threading.local):
    """Level and size of the vmap()s that are running on this thread, the outermost first."""

    def __init__(self) -> None:
        self.levels: list[tuple[int, int]] = []


RUNNING = _Running()  # of this thread


def running_levels() -> list[tuple[int, int]]:
    """Level and size of the vmap()s that are running on this thread, for running()."""
    return list(RUNNING.levels)


@contextlib.contextmanager
def running(levels: list[tuple[int, int]]) -> Iterator[None]:
    """Code that belongs to a call made inside of these vmap()s, and runs now: a backward pass, or
    a function that is computed again. Its vmap()s get levels of their own."""
    before, RUNNING.levels = RUNNING.levels, list(levels)
    try:
        yield
    finally:
        RUNNING.levels = before


def raw_of(x: Tensor) -> Tensor:
    """The tensor with the memory of all samples of all levels."""
    while isinstance(x, Batched):
        x = x.physical
    return x


def nest_like(raw: Tensor, x: Tensor) -> Tensor:
    """`raw`, in the levels of `x`."""
    return Batched(nest_like(raw, x.physical), x.level) if isinstance(x, Batched) else raw


def levels_of(x: Tensor) -> list[tuple[int, int]]:
    """Level and size of each batch that `x` has, the innermost vmap() first."""
    levels = []
    while isinstance(x, Batched):
        levels.append((x.level, x.physical.shape[0]))
        x = x.physical
    return levels


def with_levels(x: Tensor, levels: list[tuple[int, int]]) -> Tensor:
    """`x`, repeated along those batches of `levels` that it does not have."""
    if not levels:
        return x
    (level, size), rest = levels[0], levels[1:]
    if isinstance(x, Batched) and x.level > level:
        return Batched(with_levels(x.physical, levels), x.level)
    if isinstance(x, Batched) and x.level == level:
        return Batched(with_levels(x.physical, rest), level)
    repeated = _operator("expand")(_operator("unsqueeze")(x, [0]), (size, *x.shape))
    return Batched(with_levels(repeated, rest), level)


def of_levels(raw: Tensor, levels: list[tuple[int, int]]) -> Tensor:
    """`raw`, whose first axes are the batches of `levels` (the innermost vmap() first), as a sample
    of them."""
    for level, _ in reversed(levels):
        raw = Batched(raw, level)
    return raw


def common_levels(tensors: Iterable[Tensor]) -> list[tuple[int, int]]:
    """Level and size of each batch that any of `tensors` has, the innermost vmap() first."""
    return sorted({pair for x in tensors for pair in levels_of(x)}, reverse=True)


def gradient_like(gradient: Tensor, levels: list[tuple[int, int]]) -> Tensor:
    """A gradient by a tensor with the batches `levels`: the sum over what all samples share, and the
    same number for each sample where it does not depend on the sample."""
    return with_levels(_summed(gradient, {level for level, _ in levels}), levels)


def _summed(x: Tensor, kept: set[int]) -> Tensor:
    if not isinstance(x, Batched):
        return x
    if x.level in kept:
        return Batched(_summed(x.physical, kept), x.level)
    return _summed(_operator("sum")(x.physical, [0]), kept)


def _binary(name: str) -> Callable[[Any, Any], Any]:
    def method(self: Any, other: Any) -> Any:
        if not isinstance(other, (Tensor, bool, int, float, complex)):
            return NotImplemented
        return _operator(name)(self, other)

    return method


def _reflected(name: str) -> Callable[[Any, Any], Any]:
    def method(self: Any, other: Any) -> Any:
        if not isinstance(other, (Tensor, bool, int, float, complex)):
            return NotImplemented
        return _operator(name)(other, self)

    return method


def _in_place(name: str) -> Callable[[Any, Any], Any]:
    return lambda self, other: self.copy_(_operator(name)(self, other))


def _unary(name: str) -> Callable[[Any], Any]:
    return lambda self: _operator(name)(self)


_ARITHMETIC = {
    "add": "add",
    "sub": "subtract",
    "mul": "multiply",
    "truediv": "divide",
    "floordiv": "floor_divide",
    "mod": "remainder",
    "pow": "pow",
    "matmul": "matmul",
    "and": "bitwise_and",
    "or": "bitwise_or",
    "xor": "bitwise_xor",
    "lshift": "bitwise_left_shift",
    "rshift": "bitwise_right_shift",
}
_COMPARISONS = {
    "eq": "equal",
    "ne": "not_equal",
    "lt": "less",
    "le": "less_equal",
    "gt": "greater",
    "ge": "greater_equal",
}
_UNARY = {"neg": "negative", "pos": "positive", "abs": "abs", "invert": "bitwise_invert"}

# The slots of Tensor call operators without looking for a batch, so each has its method here.
for _short, _name in _ARITHMETIC.items():
    setattr(Batched, f"__{_short}__", _binary(_name))
    setattr(Batched, f"__r{_short}__", _reflected(_name))
    if _short != "matmul":
        setattr(Batched, f"__i{_short}__", _in_place(_name))
for _short, _name in _COMPARISONS.items():
    setattr(Batched, f"__{_short}__", _binary(_name))
for _short, _name in _UNARY.items():
    setattr(Batched, f"__{_short}__", _unary(_name))
