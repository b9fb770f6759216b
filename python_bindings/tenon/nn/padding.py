# SPDX-License-Identifier: Apache-2.0
"""Layers that add margins: constant, zero, reflected, repeated and circular, over 1 to 3 axes.

`padding` is one number, or (left, right, top, bottom, front, back) as far as there are axes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tenon import Tensor

from . import functional as F
from .module import Module


class _Pad(Module):
    axes = 1
    mode = "constant"

    def __init__(self, padding: int | Sequence[int], value: float = 0.0) -> None:
        sizes = [padding] * (2 * self.axes) if isinstance(padding, int) else list(padding)
        if len(sizes) != 2 * self.axes:
            raise ValueError(
                f"{type(self).__name__}: expected padding of one number or {2 * self.axes}, got "
                f"{padding}"
            )
        self.padding, self.value = tuple(sizes), value

    def forward(self, x: Tensor) -> Tensor:
        return F.pad(x, self.padding, self.mode, self.value)

    def extra_repr(self) -> str:
        return f"{self.padding}"


def _family(kind: str, mode: str, text: str) -> list[type[_Pad]]:
    result = []
    for axes in (1, 2, 3):
        layout = ["[N, C, L]", "[N, C, H, W]", "[N, C, D, H, W]"][axes - 1]
        body: dict[str, Any] = {
            "axes": axes,
            "mode": mode,
            "__module__": __name__,
            "__doc__": f"{text} {layout}.",
        }
        if kind != "Constant":
            body["__init__"] = lambda self, padding: _Pad.__init__(self, padding)
        result.append(type(f"{kind}Pad{axes}d", (_Pad,), body))
    return result


ConstantPad1d, ConstantPad2d, ConstantPad3d = _family(
    "Constant", "constant", "Margins filled with `value` around"
)
ZeroPad1d, ZeroPad2d, ZeroPad3d = _family("Zero", "constant", "Margins of zeros around")
ReflectionPad1d, ReflectionPad2d, ReflectionPad3d = _family(
    "Reflection", "reflect", "Margins mirrored at the edge elements of"
)
ReplicationPad1d, ReplicationPad2d, ReplicationPad3d = _family(
    "Replication", "replicate", "Margins that repeat the edge elements of"
)
CircularPad1d, CircularPad2d, CircularPad3d = _family(
    "Circular", "circular", "Margins that continue at the other end of"
)
