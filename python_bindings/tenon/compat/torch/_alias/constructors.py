# SPDX-License-Identifier: Apache-2.0
"""What torch.Tensor(...) makes, and torch.FloatTensor and its relatives: classes of no objects of their own, of which
tensors of one dtype are instances."""

from __future__ import annotations

from typing import Any

import tenon
from tenon._core import Tensor
from tenon.compat.torch._alias.shapes import Size

_DTYPES = {
    "FloatTensor": "float32",
    "DoubleTensor": "float64",
    "HalfTensor": "float16",
    "BFloat16Tensor": "bfloat16",
    "LongTensor": "int64",
    "IntTensor": "int32",
    "ShortTensor": "int16",
    "CharTensor": "int8",
    "ByteTensor": "uint8",
    "BoolTensor": "bool",
}
__all__ = sorted(_DTYPES)


def construct(
    *data: Any, dtype: Any = None, device: Any = None, requires_grad: bool = False
) -> Tensor:
    """Tensor(2, 3) is uninitialised memory of that shape, Tensor([2, 3]) a vector of two numbers, Tensor(tensor) the
    tensor without its history; of the default dtype unless one is given."""
    if len(data) == 1 and isinstance(data[0], Tensor):
        result = data[0].detach().to(dtype=dtype, device=device)
    elif len(data) == 1 and not isinstance(data[0], (int, Size)):
        result = tenon.tensor(data[0], dtype=dtype or tenon.get_default_dtype(), device=device)
    else:
        extents = data[0] if data and isinstance(data[0], Size) else data or (0,)
        if not all(isinstance(each, int) for each in extents):
            raise TypeError(
                f"Tensor(): expected extents, or one sequence, array or tensor, got {data!r}"
            )
        result = tenon.empty(list(extents), dtype=dtype or tenon.get_default_dtype(), device=device)
    return result.requires_grad_() if requires_grad else result


class _OfOneDtype(type):
    dtype: Any

    def __call__(cls, *data: Any, device: Any = None) -> Tensor:
        return construct(*data, dtype=cls.dtype, device=device).to(dtype=cls.dtype)

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, Tensor) and instance.dtype == cls.dtype


def _class_of(name: str, dtype: str) -> Any:
    return _OfOneDtype(
        name,
        (),
        {"dtype": getattr(tenon, dtype), "__module__": "torch", "__doc__": f"Tensors of {dtype}."},
    )


globals().update({name: _class_of(name, dtype) for name, dtype in _DTYPES.items()})


def dtype_of(target: Any) -> Any:
    """The dtype that x.type() is given: itself, its class, or the name of that, as "torch.LongTensor"."""
    if isinstance(target, _OfOneDtype):
        return target.dtype
    if isinstance(target, str) and target.removeprefix("torch.") in _DTYPES:
        return getattr(tenon, _DTYPES[target.removeprefix("torch.")])
    return target


def name_of(dtype: Any) -> str:
    """What x.type() says of a tensor of this dtype."""
    found = next((name for name, each in _DTYPES.items() if each == dtype.name), None)
    return f"torch.{found}" if found else f"torch.{dtype.name}"
