# SPDX-License-Identifier: Apache-2.0
"""Batch normalisation, in evaluation, as part of the layer before it."""

from __future__ import annotations

import copy
from typing import Any

import tenon

from ..parameter import Parameter


def fuse_conv_bn_eval(conv: Any, bn: Any, transpose: bool = False) -> Any:
    """A convolution that computes `bn(conv(x))` with the running statistics of `bn`."""
    return _fused(conv, bn, 1 if transpose else 0)


def fuse_linear_bn_eval(linear: Any, bn: Any) -> Any:
    """A linear layer that computes `bn(linear(x))` with the running statistics of `bn`."""
    return _fused(linear, bn, 0)


def _fused(layer: Any, bn: Any, axis: int) -> Any:
    if layer.training or bn.training:
        raise ValueError("expected both modules in evaluation; call eval() first")
    if bn.running_mean is None:
        raise ValueError("expected running statistics; they were switched off")
    fused = copy.deepcopy(layer)
    with tenon.no_grad():
        scale = tenon.rsqrt(bn.running_var + bn.eps)
        scale = scale if bn.weight is None else scale * bn.weight
        shape = [1] * layer.weight.ndim
        shape[axis] = -1
        bias = -bn.running_mean if layer.bias is None else layer.bias - bn.running_mean
        bias = bias * scale if bn.bias is None else bias * scale + bn.bias
        fused.weight = Parameter(layer.weight * scale.reshape(shape))
        fused.bias = Parameter(bias)
    return fused
