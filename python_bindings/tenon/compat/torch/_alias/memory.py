# SPDX-License-Identifier: Apache-2.0
"""Methods of tensors about the order of their elements in memory, and of their axes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tenon
from tenon import multiprocessing
from tenon._core import Tensor
from tenon._core import operator as _operator
from tenon._tensor.arguments import one_sequence
from tenon.compat import torch as _torch
from tenon.compat.torch import _numbered, _options

__all__ = ["memory_attributes"]


def dim_order(self: Tensor, *, ambiguity_check: Any = False) -> tuple[int, ...]:
    """The axes, from the one whose elements are farthest apart in memory to the nearest."""
    if ambiguity_check is not False:
        raise NotImplementedError(
            f"dim_order(): expected ambiguity_check=False, got {ambiguity_check!r}"
        )
    strides = self.stride()
    return tuple(sorted(range(self.ndim), key=lambda axis: -strides[axis]))


def is_set_to(self: Tensor, tensor: Tensor) -> bool:
    """Whether both show the same memory in the same shape and order."""
    return (
        self.data_ptr() == tensor.data_ptr()
        and self.dtype == tensor.dtype
        and self.shape == tensor.shape
        and self.stride() == tensor.stride()
    )


def resize_(self: Tensor, *size: Any, memory_format: Any = None) -> Tensor:
    """The tensor itself in another shape. Elements stay as far as there are as many; a larger tensor has new memory, whose
    further elements are zeros. It must have no history."""
    if memory_format not in (None, _options.contiguous_format, _options.preserve_format):
        raise NotImplementedError(
            f"resize_(): expected memory_format contiguous_format or preserve_format, got {memory_format!r}"
        )
    if self.requires_grad:
        raise RuntimeError(
            "resize_(): expected a tensor that requires no gradient, got one that does; use x.data.resize_() or reshape()"
        )
    shape = [int(each) for each in one_sequence(size)] if size else []
    if any(each < 0 for each in shape):
        raise ValueError(f"resize_(): expected sizes of 0 or more, got {shape}")
    wanted = 1
    for each in shape:
        wanted *= each
    flat = _operator("contiguous")(self).reshape([-1])
    if wanted <= flat.numel():
        self.data = flat.narrow(0, 0, wanted).view(shape)
        return self
    larger = tenon.zeros([wanted], dtype=self.dtype, device=self.device)
    larger.narrow(0, 0, flat.numel()).copy_(flat)
    self.data = larger.view(shape)
    return self


def resize_as_(self: Tensor, the_template: Tensor, *, memory_format: Any = None) -> Tensor:
    """resize_() to the shape of another tensor."""
    return resize_(self, list(the_template.shape), memory_format=memory_format)


def new_empty_strided(
    self: Tensor,
    size: Any,
    stride: Any,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    layout: Any = None,
    pin_memory: bool = False,
) -> Tensor:
    """A tensor without elements of its own yet, of these strides."""
    made: Tensor = _torch.empty_strided(
        size,
        stride,
        dtype=self.dtype if dtype is None else dtype,
        device=self.device if device is None else device,
        layout=layout,
        pin_memory=pin_memory,
    )
    return made.requires_grad_() if requires_grad else made


def map_(self: Tensor, tensor: Tensor, callable: Callable[[Any, Any], Any]) -> Tensor:
    """Each element becomes what `callable` gives for it and for that of the other tensor, on the CPU."""
    if self.requires_grad:
        raise TypeError("map_(): expected a tensor that requires no gradient, got one that does")
    other = _operator("expand")(tensor, list(self.shape)).reshape([-1]).tolist()
    values = [
        callable(mine, theirs)
        for mine, theirs in zip(self.reshape([-1]).tolist(), other, strict=True)
    ]
    return self.copy_(tenon.tensor(values, dtype=self.dtype).reshape(list(self.shape)))


def rsub(self: Tensor, other: Any, alpha: Any = 1) -> Tensor:
    """`other` - `alpha` * the tensor."""
    return _numbered.rsub(self, other, alpha=alpha)


def __reversed__(self: Tensor) -> Tensor:
    """The rows from the last to the first; a tensor without axes as it is."""
    return _operator("flip")(self, [0]).clone() if self.ndim else self


def share_memory_(self: Tensor) -> Tensor:
    """The tensor itself in memory that other processes map; what one of them writes, all see."""
    if not is_shared(self):
        self.data = multiprocessing.share(self.detach())
    return self


def is_shared(self: Tensor) -> bool:
    """Whether its memory is that of share_memory_()."""
    return multiprocessing.is_shared(self)


def set_(self: Tensor, source: Any = None, *place: Any) -> Tensor:
    """The tensor itself, which shows the memory of another one from here on. It must have no history."""
    if place or not isinstance(source, Tensor):
        raise NotImplementedError(
            "set_(): expected one tensor, whose memory is shown; storages are not there"
        )
    self.data = source.detach()
    return self


def record_stream(self: Tensor, stream: Any) -> None:
    raise RuntimeError("record_stream(): expected a tensor of a device with streams")


def has_names(self: Tensor) -> bool:
    """Whether axes have names. Those of Tenon have none."""
    return False


def _constant(value: Callable[[Tensor], Any], doc: str) -> property:
    return property(value, doc=doc)


def memory_attributes() -> dict[str, Any]:
    """All of them, by name."""
    functions = (
        dim_order,
        is_set_to,
        resize_,
        resize_as_,
        new_empty_strided,
        map_,
        rsub,
        __reversed__,
        share_memory_,
        is_shared,
        set_,
        record_stream,
        has_names,
    )
    return {each.__name__: each for each in functions} | {
        "names": _constant(lambda self: (None,) * self.ndim, "Axes have no names."),
        "is_xla": _constant(lambda self: False, "No tensor is."),
        "is_ipu": _constant(lambda self: False, "No tensor is."),
    }
