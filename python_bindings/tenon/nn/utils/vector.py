# SPDX-License-Identifier: Apache-2.0
"""Parameters as one vector, and back."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import tenon
from tenon import Tensor


def parameters_to_vector(parameters: Iterable[Tensor]) -> Tensor:
    """All elements in one vector."""
    return tenon.concat([parameter.reshape([-1]) for parameter in parameters])


def vector_to_parameters(vec: Tensor, parameters: Iterable[Tensor]) -> None:
    """Copy the elements of a vector into the parameters."""
    parameters = list(parameters)
    wanted = sum(parameter.numel() for parameter in parameters)
    if vec.ndim != 1 or vec.numel() != wanted:
        raise ValueError(
            f"vector_to_parameters: expected a vector of {wanted} elements, got shape "
            f"{tuple(vec.shape)}"
        )
    start = 0
    with tenon.no_grad():
        for parameter in parameters:
            part = vec[start : start + parameter.numel()]
            parameter.copy_(part.reshape([*parameter.shape]))
            start += parameter.numel()


def coalesce_tensors(
    tensors: Sequence[Tensor], copy_data: bool = True
) -> tuple[list[Tensor], Tensor]:
    """Tensors of one dtype as views of one vector, one behind the other, and the vector: what is done to all of them is done by one call.

    The tensors themselves stay where they are; with `copy_data` the views begin with their elements, else with zeros.
    """
    if not tensors or len({(x.dtype, str(x.device)) for x in tensors}) != 1:
        raise ValueError(
            "coalesce_tensors: expected tensors of one dtype on one device, at least one"
        )
    with tenon.no_grad():
        if copy_data:
            whole = tenon.concat([x.detach().reshape([-1]) for x in tensors])
            whole = whole if len(tensors) > 1 else whole.clone()
        else:
            size = sum(x.numel() for x in tensors)
            whole = tenon.zeros([size], dtype=tensors[0].dtype, device=tensors[0].device)
        views, start = [], 0
        for x in tensors:
            views.append(whole[start : start + x.numel()].reshape([*x.shape]))
            start += x.numel()
    return views, whole
