# SPDX-License-Identifier: Apache-2.0
"""Limits for gradients, applied in place between backward and step."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeAlias

import tenon
from tenon import Tensor, _core
from tenon._tensor.complex_parts import parts

Parameters: TypeAlias = "Tensor | Iterable[Tensor]"


def get_total_norm(
    tensors: Sequence[Tensor], norm_type: float = 2.0, error_if_nonfinite: bool = False
) -> Tensor:
    """The norm of all elements together. Nothing waits for the device, unless an error is wanted."""
    if not tensors:
        return tenon.tensor(0.0)
    with tenon.no_grad():
        device = tensors[0].device
        if norm_type == 2.0:
            squares = [each.to(device) for each in _sums_of_squares(tensors)]
            norm = tenon.sqrt(tenon.sum(tenon.stack(squares)))
        else:
            norms = [tenon.norm(_flat(_widened(t)), norm_type).to(device) for t in tensors]
            norm = tenon.norm(tenon.stack(norms), norm_type)
        if error_if_nonfinite and not tenon.isfinite(norm).item():
            raise ValueError(
                f"the norm of order {norm_type} of the gradients is {norm.item()}; expected it to "
                "be finite; pass error_if_nonfinite=False to go on"
            )
    return norm


# Tensors of up to so many elements are computed with by calls for lists of them.
_SMALL = 1 << 16


def _are_small(tensors: Sequence[Tensor]) -> bool:
    """Whether one call for the list serves them, as they are dense, real, and no wider work is needed first."""
    return len(tensors) > 1 and all(
        type(t) is Tensor
        and t.numel() <= _SMALL
        and t.layout == "strided"
        and t.dtype in (tenon.float32, tenon.float64)
        for t in tensors
    )


def _sums_of_squares(tensors: Sequence[Tensor]) -> list[Tensor]:
    if not _are_small(tensors):
        return [tenon.sum(tenon.square(_widened(t))) for t in tensors]
    square, total = _core.operator("square"), _core.operator("sum")
    sums: list[Tensor] = []
    for start in range(0, len(tensors), 16):  # so that the squares stay in a cache
        part = list(tensors[start : start + 16])
        sums += _core.call_each(total, _core.call_each(square, part))
    return sums


def _flat(tensor: Tensor) -> Tensor:
    return tensor.reshape([-1]) if tensor.layout == "strided" else tensor


def _widened(tensor: Tensor) -> Tensor:
    """In float32 if it is narrower: squares of float16 are infinite from 256 on. Complex numbers as
    their absolute values."""
    if tensor.dtype.is_complex:
        return tenon.abs(tensor)
    return tensor.to(tenon.float32) if tensor.dtype.itemsize < 4 else tensor


def clip_grads_with_norm_(params: Parameters, max_norm: float, total_norm: Tensor) -> None:
    """Scale all gradients by `max_norm / total_norm`, if that is less than 1."""
    with tenon.no_grad():
        scale = tenon.minimum(max_norm / (total_norm + 1e-6), 1.0)
        grads = _grads(params)
        if _are_small(grads):
            kinds = {(grad.device, grad.dtype) for grad in grads}
            if len(kinds) == 1:
                ((device, dtype),) = kinds
                multiply = _core.operator("multiply")
                _core.call_each(multiply, grads, scale.to(device).to(dtype), out=grads)
                return
        for grad in grads:
            tenon.multiply(grad, scale.to(grad.device).to(grad.dtype), out=grad)


def clip_grad_norm_(
    params: Parameters,
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
) -> Tensor:
    """Scale all gradients together so that their norm is at most `max_norm`.

    Returns the norm before.
    """
    params = [params] if isinstance(params, Tensor) else list(params)
    for param in params:
        if getattr(param, "is_part", False) or getattr(param, "expert_place", None) is not None:
            raise ValueError(
                "clip_grad_norm_: expected parameters that all ranks have, got one of shape "
                f"{tuple(param.shape)} of which other ranks have other parts; use "
                "tenon.distributed.clip_grad_norm_, which counts each element once"
            )
        reference = getattr(param, "pipeline", None)
        if reference is not None and reference() is not None:
            raise ValueError(
                f"clip_grad_norm_: expected parameters of a whole model, got one of shape {tuple(param.shape)} of a "
                "pipeline, of which other ranks have other stages; use tenon.distributed.clip_grad_norm_"
            )
    layouts = {grad.layout for grad in _grads(params)}
    if "sharded" in layouts and len(layouts) > 1:
        raise ValueError(
            "clip_grad_norm_: expected gradients that all are sharded tensors, or none, got both; use "
            "tenon.distributed.clip_grad_norm_, which counts each element once"
        )
    norm = get_total_norm(_grads(params), norm_type, error_if_nonfinite)
    clip_grads_with_norm_(params, max_norm, norm)
    return norm


def clip_grad_norm_per_parameter_(
    params: Parameters, max_norm: float, norm_type: float = 2.0
) -> None:
    """Scale every gradient by itself so that its norm is at most `max_norm`."""
    for parameter in [params] if isinstance(params, Tensor) else params:
        clip_grad_norm_(parameter, max_norm, norm_type)


def clip_grad_value_(params: Parameters, limit: float) -> None:
    """Limit every element of the gradients to [-limit, limit], of complex ones both parts."""
    with tenon.no_grad():
        for grad in _grads(params):
            part = parts(grad)
            tenon.clip(part, -limit, limit, out=part)


class ClipGradByGlobalNorm:
    """clip_grad_norm_ as an object, which is called with the parameters before a step."""

    __module__ = "tenon.optim"

    def __init__(self, clip_norm: float = 1.0) -> None:
        self.clip_norm = clip_norm

    def __call__(self, params: Parameters) -> None:
        clip_grad_norm_(params, self.clip_norm)


class ClipGradByNorm(ClipGradByGlobalNorm):
    """clip_grad_norm_per_parameter_ as an object."""

    __module__ = "tenon.optim"

    def __call__(self, params: Parameters) -> None:
        clip_grad_norm_per_parameter_(params, self.clip_norm)


class ClipGradByValue:
    """Limits every element to [min, max]; by default min is -max."""

    __module__ = "tenon.optim"

    def __init__(self, max: float, min: float | None = None) -> None:
        self.max, self.min = max, -max if min is None else min

    def __call__(self, params: Parameters) -> None:
        with tenon.no_grad():
            for grad in _grads(params):
                part = parts(grad)
                tenon.clip(part, self.min, self.max, out=part)


def _grads(params: Parameters) -> list[Tensor]:
    params = [params] if isinstance(params, Tensor) else params
    return [parameter.grad for parameter in params if parameter.grad is not None]
