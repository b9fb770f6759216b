# SPDX-License-Identifier: Apache-2.0
"""Parameters as one vector, and back."""

from __future__ import annotations

from collections.abc import Iterable

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
