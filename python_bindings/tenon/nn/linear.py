# SPDX-License-Identifier: Apache-2.0
"""Linear and bilinear maps, and the identity."""

from __future__ import annotations

import math
from typing import Any

import tenon
from tenon import Tensor

from . import functional as F
from . import init
from .module import Module
from .parameter import Parameter


class Linear(Module):
    """`x @ weight.T + bias` over the last axis of x."""

    def __init__(
        self,
        in_features: int,
        out_features: int,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        self.in_features, self.out_features = in_features, out_features
        self.weight = Parameter(
            tenon.empty([out_features, in_features], device=device, dtype=dtype)
        )
        self.bias = (
            Parameter(tenon.empty([out_features], device=device, dtype=dtype)) if bias else None
        )
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Uniform within 1 / sqrt(in_features)."""
        bound = 1.0 / math.sqrt(self.in_features) if self.in_features else 0.0
        init.uniform_(self.weight, -bound, bound)
        if self.bias is not None:
            init.uniform_(self.bias, -bound, bound)

    def forward(self, x: Tensor) -> Tensor:
        return F.linear(x, self.weight, self.bias)

    def extra_repr(self) -> str:
        return f"{self.in_features}, {self.out_features}, bias={self.bias is not None}"


class Identity(Module):
    """Returns its input; takes and ignores any settings, so that it can stand in for a layer."""

    def __init__(self, *settings: Any, **more: Any) -> None:
        pass

    def forward(self, x: Any) -> Any:
        return x


class Bilinear(Module):
    """`x1 @ weight[o] @ x2 + bias[o]` for every output o."""

    def __init__(
        self,
        in1_features: int,
        in2_features: int,
        out_features: int,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        self.in1_features, self.in2_features = in1_features, in2_features
        self.out_features = out_features
        options = {"device": device, "dtype": dtype}
        self.weight = Parameter(tenon.empty([out_features, in1_features, in2_features], **options))
        self.bias = Parameter(tenon.empty([out_features], **options)) if bias else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Uniform within 1 / sqrt(in1_features)."""
        bound = 1.0 / math.sqrt(self.in1_features)
        init.uniform_(self.weight, -bound, bound)
        if self.bias is not None:
            init.uniform_(self.bias, -bound, bound)

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        return F.bilinear(x1, x2, self.weight, self.bias)

    def extra_repr(self) -> str:
        return (
            f"{self.in1_features}, {self.in2_features}, {self.out_features}, "
            f"bias={self.bias is not None}"
        )
