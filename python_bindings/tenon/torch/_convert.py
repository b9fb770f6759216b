# SPDX-License-Identifier: Apache-2.0
"""PyTorch's tensors, dtypes and devices as Tenon's."""

from __future__ import annotations

from typing import Any

import tenon
from tenon.jit.foreign_calls import Refused

_DTYPES = {
    name: name
    for name in (
        "bool uint8 uint16 uint32 uint64 int8 int16 int32 int64 float16 bfloat16 float32 float64 complex64 "
        "complex128"
    ).split()
}


def dtype_name(dtype: Any) -> str:
    """ "float32" of torch.float32. Raises Refused for dtypes that programs do not have."""
    name = str(dtype).removeprefix("torch.")
    if name not in _DTYPES:
        raise Refused(f"dtype {name} is none of {', '.join(_DTYPES)}")
    return _DTYPES[name]


def argument(value: Any) -> Any:
    """An argument of an ATen call that holds no value of the program."""
    kind = type(value).__module__.split(".")[0]
    if kind != "torch":
        return value
    name = type(value).__name__
    if name == "dtype":
        return getattr(tenon, dtype_name(value))
    if name == "device":
        if value.type != "cpu":
            raise Refused(
                f"it names the device {value}; export the model on the CPU, and the program runs on the device "
                f"that load() is given"
            )
        return None
    if name == "layout":
        if str(value) != "torch.strided":
            raise Refused(f"it asks for the layout {value}; only strided tensors can be told")
        return None
    if name == "memory_format":
        return None  # of strides alone
    raise Refused(f"its argument {value!r} is a {name}")


def resolved(tensor: Any) -> Any:
    """With what PyTorch puts off, conjugating and negating, done: DLPack says nothing of it. The same tensor where nothing is."""
    if tensor.is_conj() or tensor.is_neg():  # asking is cheaper than two calls that do nothing
        return tensor.resolve_conj().resolve_neg()
    return tensor


class Weights:
    """PyTorch's tensors as tensors over the same memory; one for each memory, so that tied weights stay one."""

    def __init__(self) -> None:
        self._known: dict[tuple[Any, ...], Any] = {}
        self.bytes = self.copied_bytes = 0
        self.copied: set[str] = set()  # those that are no memory of PyTorch's

    def __call__(self, tensor: Any, name: str) -> Any:
        if tensor.device.type != "cpu":
            raise ValueError(
                f"torch.load: expected weights on the CPU, got `{name}` on {tensor.device}; "
                f"move the model with model.cpu() before it is exported"
            )
        layout = str(tensor.layout)
        if layout != "torch.strided":
            raise ValueError(
                f"torch.load: expected strided weights, got `{name}` in layout {layout}; "
                f"convert it with to_dense()"
            )
        is_lazy = tensor.is_conj() or tensor.is_neg()
        if is_lazy:
            self.copied.add(name)
        key = (
            tensor.data_ptr(),
            tuple(tensor.shape),
            tuple(tensor.stride()),
            tensor.dtype,
            tensor.is_conj(),
            tensor.is_neg(),
        )
        if tensor.numel() == 0 or key not in self._known:
            self._known[key] = tenon.from_dlpack(resolved(tensor.detach()))
            size = tensor.numel() * tensor.element_size()
            if is_lazy:
                self.copied_bytes += size
            else:
                self.bytes += size
        return self._known[key]
