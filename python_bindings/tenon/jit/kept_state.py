# SPDX-License-Identifier: Apache-2.0
"""Tensors as they were before a function was run to be recorded: what it wrote into them is put back."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import tenon
from tenon._core import Tensor


class KeptState:
    """The elements of tensors, and of their `.grad`, and which tensors these are."""

    def __init__(self, tensors: Iterable[Tensor]) -> None:
        every = {id(tensor): tensor for tensor in tensors}
        grads = [(tensor, tensor.grad) for tensor in every.values()]
        every |= {id(grad): grad for _, grad in grads if grad is not None}
        self._grads = grads
        self._elements: list[tuple[Tensor, Tensor, Any]] = [
            (tensor, tensor.detach().clone(), tensor._version) for tensor in every.values()
        ]

    def put_back(self) -> None:
        with tenon.no_grad():
            for i, (tensor, elements, version) in enumerate(self._elements):
                if tensor._version != version:
                    tensor.detach().copy_(elements)
                    self._elements[i] = tensor, elements, tensor._version
        for tensor, grad in self._grads:
            if tensor.grad is not grad:
                tensor.grad = grad
