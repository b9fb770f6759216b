# SPDX-License-Identifier: Apache-2.0
"""Other values for a parameter of PyTorch's than its default, by its name and type."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from typing import Any

import torch

_WORDS: dict[str, tuple[Any, ...]] = {
    "reduction": ("none", "sum", "mean"),
    "rounding_mode": (None, "floor", "trunc"),
    "indexing": ("ij", "xy"),
    "norm": ("forward", "ortho", "backward"),
    "interpolation": ("linear", "lower", "higher", "nearest", "midpoint"),
    "side": ("left", "right"),
    "UPLO": ("L", "U"),
    "driver": ("gelsd", "gelsy", "gels", "gelss", "gesvd"),
    "approximate": ("none", "tanh"),
    "padding_mode": ("zeros", "border", "reflection"),
    "pad_mode": ("reflect", "constant", "replicate", "circular"),
    "compute_mode": ("use_mm_for_euclid_dist", "donot_use_mm_for_euclid_dist"),
    "reduce": ("sum", "prod", "mean", "amax", "amin", "add", "multiply"),
    "randomness": ("same", "different"),
}
_WORDS_OF: dict[str, dict[str, tuple[Any, ...]]] = {
    "nn.functional.interpolate": {"mode": ("nearest", "nearest-exact")},
    "nn.functional.upsample": {"mode": ("nearest",)},
    "nn.functional.pad": {"mode": ("constant", "reflect", "replicate", "circular")},
    "nn.functional.grid_sample": {"mode": ("bilinear", "nearest", "bicubic")},
    "nn.functional.embedding_bag": {"mode": ("sum", "mean", "max")},
    "linalg.qr": {"mode": ("reduced", "complete", "r")},
}
_NUMBERS: dict[str, tuple[Any, ...]] = {
    "p": (0, 1, 2.0, 3, float("inf"), "fro", "nuc"),
    "ord": (0, 1, 2, -1, float("inf"), -float("inf"), "fro", "nuc", None),
    "correction": (0, 2, 0.5, None),
    "decimals": (1, -1),
    "nan": (1.0, None),
    "posinf": (2.0,),
    "neginf": (-2.0,),
    "padding": (0, 1, "same", "valid"),
    "ignore_index": (0, 1),
    "padding_idx": (0, -1),
    "size": ((2,), 2, (2, 2), (4, 4)),
    "scale_factor": (2, 2.0, (2.0, 2.0)),
    "bins": (3, 5),
    "range": ((0.0, 1.0), (-1.0, 2.0)),
    "min": (-1, 0.5),
    "max": (1, -0.5),
    "low": (0, 2),
    "high": (3, 5),
    "k": (0, 1, 2, -1),
    "s": (None, (2,), (2, 2), (3, 2)),
    "dims": ((0,), (0, 1), (1, 0), 0, 1, -1),
    "shifts": (1, (1,), -1),
    "fill_value": (0, 2, 1.5, True),
    "beta": (0, 2, 0.5),
    "alpha": (0, 2, 0.5, 1.0),
    "spacing": (2, 0.5, (2.0,)),
    "eps": (1e-3, None),
    "momentum": (0.5, 0.0),
    "hop_length": (2, 4),
    "win_length": (2, 4),
    "length": (3, 8),
    "split_size_or_sections": (1, 2),
    "num_classes": (-1, 20),
    "dropout_p": (0.0,),
    "stride": (1, 2, (1,), (2, 2), None),
    "kernel_size": (1, 2, (2,), (2, 2)),
    "dilation": (1, 2, (2,), (2, 2)),
    "output_padding": (0, 1),
    "output_size": (1, 2, None, (2, 2)),
    "label_smoothing": (0.0, 0.1),
    "full_matrices": (True, False),
    "q": (1, 2),
    "niter": (1,),
}
_MEANINGLESS = ("_stacklevel", "_extra_files", "name", "names", "path")


def _tensors(arguments: dict[str, Any]) -> list[torch.Tensor]:
    found = []
    for value in arguments.values():
        if isinstance(value, torch.Tensor):
            found.append(value)
        elif isinstance(value, (tuple, list)):
            found += [each for each in value if isinstance(each, torch.Tensor)]
    return found


def alternatives(
    function: str, call: Callable[..., Any], parameter: inspect.Parameter, arguments: dict[str, Any]
) -> Iterator[Any]:
    """Values to try. Not all are served: what PyTorch refuses, Tenon may refuse too."""
    name, default, kind = parameter.name, parameter.default, str(parameter.annotation)
    words = _WORDS_OF.get(function, {}).get(name) or _WORDS.get(name)
    given = _tensors(arguments)
    ndim = given[0].ndim if given else 1
    if name in _MEANINGLESS:
        return
    if name == "out":
        yield from _out(call, arguments)
    elif name in ("dim", "axis") and "dim" in name:
        yield from (0, -1, 1, (0,), (0, 1), (), None, ndim)
    elif name in ("dim0", "dim1", "dim2", "start_dim", "end_dim", "source", "destination"):
        yield from (0, 1, -1)
    elif name == "dtype":
        yield from (torch.float64, torch.float32, torch.int64, torch.complex64, torch.bool)
    elif name == "device":
        yield from ("cpu", torch.device("cpu"), None)
    elif name == "layout":
        yield torch.strided
    elif name == "memory_format":
        yield from (torch.contiguous_format, torch.preserve_format)
    elif name == "pin_memory":
        yield False
    elif name == "generator":
        yield torch.Generator()
    elif words is not None:
        yield from words
    elif name in _NUMBERS:
        yield from _NUMBERS[name]
    elif isinstance(default, bool) or "bool" in kind:
        yield from (True, False)
    elif isinstance(default, float) or "float" in kind:
        yield from (0.0, 0.5, 2.0, -1.0)
    elif isinstance(default, int) or "int" in kind:
        yield from (0, 1, 2, 3, -1)
    elif "number" in kind or "Scalar" in kind:
        yield from (0, 2, 0.5)


_WIDER = {torch.bool: torch.uint8, torch.int64: torch.float32, torch.float32: torch.complex64}


def _out(call: Callable[..., Any], arguments: dict[str, Any]) -> Iterator[Any]:
    """Tensors for results: of their shape and dtype, and one of another dtype."""
    plain = {name: value for name, value in arguments.items() if name != "out"}
    try:
        found = call(**plain)
    except Exception:
        return
    if isinstance(found, torch.Tensor):
        yield torch.zeros_like(found)
        yield torch.zeros_like(found, dtype=_WIDER.get(found.dtype, torch.complex128))
        yield torch.zeros_like(found, dtype=torch.int32)
    elif isinstance(found, (tuple, list)) and all(isinstance(x, torch.Tensor) for x in found):
        yield tuple(torch.zeros_like(each) for each in found)
