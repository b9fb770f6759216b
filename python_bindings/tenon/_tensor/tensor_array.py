# SPDX-License-Identifier: Apache-2.0
"""Tensor arrays: lists of tensors that grow by one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import overload

from tenon import _core
from tenon._core import Tensor


class TensorArray:
    """A list of tensors of one dtype on one device, as loops make it; their shapes may differ.

    Elements keep their history: gradients of `stack()` and `concat()` reach what was written. Writing to
    an index replaces the element; it changes no memory. Writing one past the end appends.
    """

    def __init__(self, tensors: Iterable[Tensor] = ()) -> None:
        self._tensors: list[Tensor] = []
        for tensor in tensors:
            self.append(tensor)

    @classmethod
    def unstack(cls, x: Tensor, axis: int = 0) -> TensorArray:
        """The slices of `x` along `axis`, views."""
        return cls(_core.operator("unbind")(x, axis))

    def append(self, tensor: Tensor) -> None:
        self.write(len(self), tensor)

    def write(self, index: int | Tensor, tensor: Tensor) -> None:
        """`tensor` at `index`, which is from 0 to the length."""
        if not isinstance(tensor, Tensor):
            raise TypeError(f"TensorArray: expected a Tensor, got {type(tensor).__name__}")
        if self._tensors:
            first = self._tensors[0]
            if (tensor.dtype, tensor.device) != (first.dtype, first.device):
                raise TypeError(
                    f"TensorArray: expected a tensor of {first.dtype} on {first.device} like the others, got "
                    f"{tensor.dtype} on {tensor.device}"
                )
        index = int(index)
        if not 0 <= index <= len(self):
            raise IndexError(f"TensorArray: expected an index from 0 to {len(self)}, got {index}")
        self._tensors[index : index + 1] = [tensor]

    def read(self, index: int | Tensor) -> Tensor:
        """The element at `index`; negative ones count from the end."""
        at = int(index)
        if not -len(self) <= at < len(self):
            raise IndexError(f"TensorArray: expected an index below {len(self)}, got {at}")
        return self._tensors[at]

    def pop(self, index: int = -1) -> Tensor:
        """The element at `index`, which is taken out."""
        element = self.read(index)
        del self._tensors[index]
        return element

    def stack(self, axis: int = 0) -> Tensor:
        """All elements along a new axis; they have one shape."""
        return _core.operator("stack")(self._not_empty("stack"), axis)

    def concat(self, axis: int = 0) -> Tensor:
        """All elements one after the other along `axis`."""
        return _core.operator("concat")(self._not_empty("concat"), axis)

    def _not_empty(self, function: str) -> list[Tensor]:
        if not self._tensors:
            raise ValueError(f"TensorArray.{function}: expected at least one element, got none")
        return self._tensors

    def __len__(self) -> int:
        return len(self._tensors)

    def __iter__(self) -> Iterator[Tensor]:
        return iter(self._tensors)

    @overload
    def __getitem__(self, index: int | Tensor) -> Tensor: ...
    @overload
    def __getitem__(self, index: slice) -> TensorArray: ...
    def __getitem__(self, index: int | Tensor | slice) -> Tensor | TensorArray:
        return TensorArray(self._tensors[index]) if isinstance(index, slice) else self.read(index)

    def __setitem__(self, index: int | Tensor, tensor: Tensor) -> None:
        self.write(index, tensor)

    def __repr__(self) -> str:
        if not self._tensors:
            return "TensorArray()"
        shapes = ", ".join(str(list(tensor.shape)) for tensor in self._tensors[:8])
        more = ", ..." if len(self) > 8 else ""
        first = self._tensors[0]
        return f"TensorArray({len(self)} tensors of shapes {shapes}{more}, dtype={first.dtype}, device='{first.device}')"
