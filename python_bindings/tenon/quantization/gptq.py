# SPDX-License-Identifier: Apache-2.0
"""GPTQ (Frantar et al., arXiv:2210.17323): weights are rounded one input after another, and what a rounding changes
in the results of calibration data is made up for by the weights that are not rounded yet."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import tenon
from tenon import Tensor, nn

from .layers import BlockLinear
from .program_layers import as_module
from .replacement import copy_of, find_layers, replace_layers, with_inputs
from .weight_only import BLOCK

if TYPE_CHECKING:
    import numpy as np
else:
    from tenon._tensor import numpy as np

M = TypeVar("M", bound=nn.Module)


class _Grid(NamedTuple):
    """The codes of a format; `has_offset`: a code stands for code * scale + the smallest weight."""

    levels: int
    zero: int
    has_offset: bool


_GRIDS = {"q4_0": _Grid(16, 8, False), "q4_1": _Grid(16, 0, True), "q8_0": _Grid(255, 127, False)}


def gptq(
    module: M,
    batches: Iterable[Any],
    format: str = "q4_0",
    *,
    damping: float = 0.01,
    activations: str = "float",
    keep: Sequence[str] = (),
) -> M:
    """A copy of `module` whose Linear layers hold their weights in blocks, 'q4_0', 'q4_1' or 'q8_0', that
    were chosen for what the layers are called on.

    Layers are rounded in the order of `named_modules`, each for what the layers before it give once they
    are rounded: `batches` is run once for each layer. `damping` times the mean of the squares of inputs
    is added to those of each. `activations` and `keep` are those of `quantize_weights`.
    """
    if format not in _GRIDS:
        raise ValueError(f"gptq: expected format 'q4_0', 'q4_1' or 'q8_0', got {format!r}")
    if isinstance(batches, Iterator):
        raise TypeError(
            f"gptq: expected a list of batches, which is run once for each layer, got "
            f"{type(batches).__name__}"
        )
    result = copy_of(as_module("gptq", module))
    layers = find_layers(result, (nn.Linear,), keep)
    if not layers:
        raise ValueError(f"gptq: {type(module).__name__} has no Linear layer")
    for name, layer in layers:
        squares = _squares_of_inputs(result, name, layer, batches)
        weight = layer.weight.detach().to("cpu").to(tenon.float64).numpy()
        blocks = _rounded(weight, squares, _GRIDS[format], damping)
        made = BlockLinear(
            tenon.tensor(blocks).to(layer.weight.device),
            format,
            layer.in_features,
            layer.bias,
            activations,
        )
        result = replace_layers(result, {name: made})
    return result


def _squares_of_inputs(
    module: nn.Module, name: str, layer: nn.Linear, batches: Iterable[Any]
) -> np.ndarray:
    """The sum of x x^T over the rows that a layer is called on."""
    total = np.zeros((layer.in_features, layer.in_features))
    rows = 0

    def see(_: nn.Module, x: Tensor) -> None:
        nonlocal total, rows
        flat = x.detach().to("cpu").to(tenon.float64).reshape([-1, layer.in_features])
        rows += flat.shape[0]
        total += tenon.matmul(flat.transpose(0, 1), flat).numpy()

    with_inputs(module, [layer], batches, "gptq", see)
    if not rows:
        raise ValueError(f"gptq: no batch reaches {name!r}; name it in `keep`")
    if not np.isfinite(total).all():
        raise ValueError(f"gptq: what {name!r} is called on is not finite")
    return total / rows


def _rounded(weight: np.ndarray, squares: np.ndarray, grid: _Grid, damping: float) -> np.ndarray:
    """The blocks [out, bytes] of `weight` [out, in]."""
    columns = weight.shape[1]
    missing = -columns % BLOCK
    weight = np.pad(weight, ((0, 0), (0, missing)))
    squares = np.pad(squares, ((0, missing), (0, missing)))
    diagonal = np.diagonal(squares).copy()
    unused = diagonal == 0
    weight[:, unused] = 0  # inputs that are always 0
    added = damping * float(diagonal.mean()) or 1.0
    squares[np.diag_indices_from(squares)] += np.where(unused, 1.0, added)
    # Row i of the upper factor of the inverse: how a change of input i is made up for by those after it.
    inverse = np.linalg.inv(squares)
    upper = np.linalg.cholesky((inverse + inverse.T) / 2).T
    parts = []
    for first in range(0, weight.shape[1], BLOCK):
        block = weight[:, first : first + BLOCK]
        scale, offset = _steps(block, grid)
        codes = np.zeros(block.shape, np.uint8)
        for i in range(BLOCK):
            column, factor = weight[:, first + i], upper[first + i]
            level = np.divide(column - offset, scale, out=np.zeros_like(column), where=scale != 0)
            code = np.clip(np.rint(level) + grid.zero, 0, grid.levels - 1)
            codes[:, i] = code.astype(np.uint8)
            error = (column - ((code - grid.zero) * scale + offset)) / factor[first + i]
            weight[:, first + i + 1 :] -= np.outer(error, factor[first + i + 1 :])
        parts.append(_packed(codes, scale, offset, grid))
    return np.concatenate(parts, 1)


def _steps(block: np.ndarray, grid: _Grid) -> tuple[np.ndarray, np.ndarray]:
    """The scale and offset of each row, as float16 stores them."""
    if grid.has_offset:
        low = np.minimum(block.min(1), 0.0)
        scale = (np.maximum(block.max(1), 0.0) - low) / (grid.levels - 1)
        return _stored(scale), _stored(low)
    largest = np.abs(block).max(1)
    signed = np.take_along_axis(block, np.abs(block).argmax(1)[:, None], 1)[:, 0]
    # Of 16 codes one more lies below zero than above: it is for the largest weight.
    scale = signed / -grid.zero if grid.levels == 16 else largest / grid.zero
    return _stored(scale), np.zeros(len(block))


def _stored(numbers: np.ndarray) -> np.ndarray:
    return numbers.astype(np.float16).astype(np.float64)


def _packed(codes: np.ndarray, scale: np.ndarray, offset: np.ndarray, grid: _Grid) -> np.ndarray:
    def halves(numbers: np.ndarray) -> np.ndarray:
        return numbers.astype("<f2").view(np.uint8).reshape(-1, 2)

    if grid.levels == 16:
        half = BLOCK // 2
        codes = codes[:, :half] | codes[:, half:] << 4
    else:
        codes = (codes.astype(np.int16) - grid.zero).astype(np.int8).view(np.uint8)
    head = [halves(scale), halves(offset)] if grid.has_offset else [halves(scale)]
    return np.concatenate([*head, codes], 1)
