# SPDX-License-Identifier: Apache-2.0
"""Paddle's functions that write over their first tensor, of those that are no operators: the result is computed, and takes its place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tenon
from tenon._core import Tensor
from tenon.compat.paddle import _arrays, _composed, _functions, _selection, _spelled

# Functions whose result has the shape and the dtype of the tensor, and those that give it another shape.
_SAME = """copysign cumprod cumsum divide floor_mod gammaln index_add index_fill index_put logit masked_fill masked_scatter
polygamma renorm scatter subtract""".split()
_SHAPED = "flatten reshape squeeze t transpose unsqueeze".split()

__all__ = [
    *(f"{name}_" for name in (*_SAME, *_SHAPED)),
    "addmm_",
    "cast_",
    "div_",
    "gammainc_",
    "gammaincc_",
    "scatter_add_",
    "sub_",
    "where_",
]


def _function(name: str) -> Callable[..., Tensor]:
    for module in (_functions, _arrays, _composed, _selection):
        if name in module.__all__:
            return getattr(module, name)
    return getattr(tenon, name)


def _written(name: str, x: Tensor, result: Tensor) -> Tensor:
    if result.dtype != x.dtype or result.shape != x.shape:
        raise ValueError(
            f"{name}_(): expected a result of dtype {x.dtype.name} and shape {tuple(x.shape)}, as the tensor has that it is written to, "
            f"got {result.dtype.name} and {tuple(result.shape)}; use {name}()"
        )
    return x.copy_(result)


def _over(name: str) -> Callable[..., Tensor]:
    function = _function(name)

    def in_place(x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        return _written(name, x, function(x, *args, **kwargs))

    in_place.__name__, in_place.__doc__ = f"{name}_", f"{name}(), written to the first tensor."
    return in_place


def _shaped(name: str) -> Callable[..., Tensor]:
    function = _function(name)

    def in_place(x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        if x.requires_grad:
            raise NotImplementedError(
                f"{name}_(): expected a tensor that requires no gradient, got one that does; write x = {name}(x, ...)"
            )
        x.data = function(x, *args, **kwargs)
        return x

    in_place.__name__ = f"{name}_"
    in_place.__doc__ = f"{name}(), of the tensor itself, which must not require a gradient."
    return in_place


globals().update({f"{name}_": _over(name) for name in _SAME})
globals().update({f"{name}_": _shaped(name) for name in _SHAPED})
sub_, div_ = _over("subtract"), _over("divide")


def addmm_(input: Tensor, x: Tensor, y: Tensor, beta: float = 1.0, alpha: float = 1.0) -> Tensor:
    """addmm(), written to `input`."""
    return _written("addmm", input, tenon.addmm(input, x, y, beta=beta, alpha=alpha))


def gammainc_(x: Tensor, y: Tensor) -> Tensor:
    """gammainc(), written to `x`."""
    return _written("gammainc", x, tenon.gammainc(x, y))


def gammaincc_(x: Tensor, y: Tensor) -> Tensor:
    """gammaincc(), written to `x`."""
    return _written("gammaincc", x, tenon.gammaincc(x, y))


def cast_(x: Tensor, dtype: Any) -> Tensor:
    """The tensor itself in another dtype; it must not require a gradient."""
    if x.requires_grad:
        raise NotImplementedError(
            "cast_(): expected a tensor that requires no gradient, got one that does; write x = cast(x, dtype)"
        )
    x.data = _functions.cast(x, dtype)
    return x


def where_(condition: Tensor, x: Tensor, y: Any) -> Tensor:
    """`y` is written to `x` where `condition` does not hold."""
    return _written("where", x, _functions.where(condition, x, y))


def scatter_add_(input: Tensor, dim: int, index: Tensor, src: Tensor) -> Tensor:
    """`src` is added to `input` at `index` along an axis."""
    return _written("scatter_add", input, _spelled.scatter_add(input, dim, index, src))
