# SPDX-License-Identifier: Apache-2.0
"""torch.nn.functional's maxima of windows that begin at random steps (Graham, Fractional max-pooling, 2014)."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import tenon
from tenon._core import Tensor
from tenon.compat.torch._pooling import _batch, _unbatched
from tenon.nn import functional as _functional

__all__ = """fractional_max_pool2d fractional_max_pool2d_with_indices fractional_max_pool3d
fractional_max_pool3d_with_indices""".split()


def _fractional(name: str, axes: int, always: bool) -> Callable[..., Any]:
    pool = getattr(_functional, name)

    def function(
        input: Tensor,
        kernel_size: Any,
        output_size: Any = None,
        output_ratio: Any = None,
        return_indices: bool = False,
        _random_samples: Tensor | None = None,
    ) -> Any:
        x, alone = _batch(name, input, axes)
        if _random_samples is None:
            _random_samples = tenon.uniform([*x.shape[:2], axes], dtype=x.dtype, device=x.device)
        values = pool(x, kernel_size, output_size, output_ratio, _random_samples)
        if not (always or return_indices):
            return _unbatched(values, alone)
        # The same windows of the positions instead of the elements, in the order of the elements.
        extent = math.prod(x.shape[2:])
        flat = x.detach().reshape([*x.shape[:2], extent])
        order = tenon.argsort(flat, -1)
        ranks = tenon.argsort(order, -1).to(tenon.float64).reshape(list(x.shape))
        largest = pool(
            ranks, kernel_size, output_size, output_ratio, _random_samples.to(tenon.float64)
        )
        at = tenon.take_along_axis(order, largest.reshape([*x.shape[:2], -1]).to(tenon.int64), -1)
        return _unbatched((values, at.reshape(list(values.shape))), alone)

    function.__name__ = function.__qualname__ = f"{name}_with_indices" if always else name
    function.__doc__ = "The largest element of each window" + (
        ", and where it is." if always else "; with `return_indices` also where it is."
    )
    return function


fractional_max_pool2d, fractional_max_pool3d = (
    _fractional(f"fractional_max_pool{n}d", n, False) for n in (2, 3)
)
fractional_max_pool2d_with_indices, fractional_max_pool3d_with_indices = (
    _fractional(f"fractional_max_pool{n}d", n, True) for n in (2, 3)
)
