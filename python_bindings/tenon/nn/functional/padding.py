# SPDX-License-Identifier: Apache-2.0
"""Margins. Padding is written as in PyTorch: the last axis first, (before, after) for each."""

from __future__ import annotations

from collections.abc import Sequence

import tenon
from tenon import Tensor

_MODES = {"constant": "constant", "reflect": "reflect", "replicate": "edge", "circular": "wrap"}


def pad(x: Tensor, pad: Sequence[int], mode: str = "constant", value: float = 0.0) -> Tensor:
    """`x` with margins on its last axes; `pad` is (left, right, top, bottom, front, back).

    `mode` is 'constant' (filled with `value`), 'reflect', 'replicate' or 'circular'. Negative
    margins crop. `tenon.pad` is the operator; it counts axes from the first.
    """
    margins = list(pad)
    if mode not in _MODES:
        raise ValueError(f"pad: expected mode one of {', '.join(_MODES)}, got {mode!r}")
    if len(margins) % 2 or len(margins) > 2 * x.ndim:
        raise ValueError(
            f"pad: expected two numbers for each of at most {x.ndim} axes, got {len(margins)}"
        )
    pairs = [margins[i : i + 2] for i in range(0, len(margins), 2)]
    pairs += [[0, 0]] * (x.ndim - len(pairs))
    if mode == "replicate" and any(n < 0 for pair in pairs for n in pair):
        for axis, (before, after) in enumerate(reversed(pairs)):
            if before or after:  # the nearest element, also where all were cropped
                extent = x.shape[axis]
                index = tenon.arange(extent + before + after, device=x.device) - before
                x = tenon.index_select(x, tenon.clip(index, 0, extent - 1), axis)
        return x
    if mode != "constant" and any(n < 0 for pair in pairs for n in pair):
        for axis, (before, after) in enumerate(reversed(pairs)):
            start, stop = max(-before, 0), x.shape[axis] - max(-after, 0)
            x = x.narrow(axis, start, stop - start)
        pairs = [[max(before, 0), max(after, 0)] for before, after in pairs]
    return tenon.pad(x, [n for pair in reversed(pairs) for n in pair], _MODES[mode], value)


def zeropad2d(x: Tensor, padding: Sequence[int]) -> Tensor:
    """`x` with zeros around its last two axes: (left, right, top, bottom)."""
    return pad(x, padding)
