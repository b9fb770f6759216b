# SPDX-License-Identifier: Apache-2.0
"""Weights of other libraries."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import tenon
from tenon import Tensor

if TYPE_CHECKING:
    from tenon.nn import Module
    from tenon.nn.state import LoadReport


def load_torch_state_dict(
    model: Module, state: Any, strict: bool = True, mismatched: str = "refuse"
) -> LoadReport:
    """Copy the weights of a PyTorch module into `model`, whose state dict has the same names.

    state               a torch.nn.Module, its state_dict(), or any mapping from names to arrays: of PyTorch,
                        NumPy, JAX or another library that has DLPack or the buffer protocol
    strict, mismatched  as for Module.load_state_dict, which does the rest

    Arrays of a GPU are read if a plugin of Tenon serves that GPU.
    """
    if not isinstance(state, Mapping):
        if not hasattr(state, "state_dict"):
            raise TypeError(
                "load_torch_state_dict(): expected a mapping from names to arrays or a torch.nn.Module, "
                f"got {type(state).__name__}"
            )
        state = state.state_dict()
    tensors = {name: _tensor(name, value) for name, value in state.items()}
    return model.load_state_dict(tensors, strict, mismatched)


def _tensor(name: str, value: Any) -> Tensor:
    if isinstance(value, Tensor):
        return value
    if getattr(value, "requires_grad", False):  # parameters of torch are not exported otherwise
        value = value.detach()
    try:
        return tenon.from_dlpack(value) if hasattr(value, "__dlpack__") else tenon.asarray(value)
    except (TypeError, ValueError, BufferError, RuntimeError) as error:
        raise TypeError(
            f"load_torch_state_dict(): expected an array for {name!r}, got {type(value).__name__}: "
            f"{error}"
        ) from error
