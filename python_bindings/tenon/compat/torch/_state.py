# SPDX-License-Identifier: Apache-2.0
"""PyTorch's functions of files, memory from elsewhere, printing and vectorisation."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import tenon
from tenon import _core
from tenon._core import Tensor

__all__ = "from_dlpack frombuffer load save set_printoptions vmap".split()


def from_dlpack(ext_tensor: Any, *, device: Any = None, copy: bool | None = None) -> Tensor:
    """A tensor that shares the memory of an object with __dlpack__."""
    return _core.from_dlpack(ext_tensor, device=device, copy=copy)


def frombuffer(
    buffer: Any, *, dtype: Any, count: int = -1, offset: int = 0, requires_grad: bool = False
) -> Tensor:
    """A vector over the bytes of a buffer from byte `offset` on, of `count` elements, by default of all."""
    shape = None if count < 0 else [count]
    result = _core.frombuffer(buffer, dtype=dtype, shape=shape, offset=offset)
    return result.requires_grad_() if requires_grad else result


def _pickle(name: str, module: Any) -> None:
    if module is not None:
        raise NotImplementedError(
            f"{name}(): expected pickle_module=None, got {module!r}; files hold tensors and plain values alone"
        )


def _path(name: str, f: Any) -> Any:
    if not isinstance(f, (str, os.PathLike)):
        raise TypeError(f"{name}(): expected f, the path of a file, got {type(f).__name__}")
    return f


def save(obj: Any, f: Any, pickle_module: Any = None, pickle_protocol: int | None = None) -> None:
    """tenon.save of a state: tensors and plain values in dicts and lists."""
    _pickle("save", pickle_module)
    if pickle_protocol is not None:
        raise NotImplementedError(
            f"save(): expected pickle_protocol=None, got {pickle_protocol!r}; nothing is pickled"
        )
    tenon.save(obj, _path("save", f))


def load(
    f: Any,
    map_location: Any = None,
    pickle_module: Any = None,
    *,
    weights_only: bool | None = None,
    mmap: bool | None = None,
) -> Any:
    """tenon.load of a state, on the device `map_location` if one is given. Weights and plain values are all that is
    ever loaded, whatever `weights_only` allows."""
    _pickle("load", pickle_module)
    if weights_only not in (None, True, False):
        raise TypeError(f"load(): expected weights_only True, False or None, got {weights_only!r}")
    if callable(map_location) or isinstance(map_location, dict):
        raise NotImplementedError(
            f"load(): expected map_location to be a device or None, got {type(map_location).__name__}"
        )
    return tenon.load(_path("load", f), map_location, memory_map=bool(mmap))


def set_printoptions(
    precision: int | None = None,
    threshold: float | None = None,
    edgeitems: int | None = None,
    linewidth: int | None = None,
    profile: str | None = None,
    sci_mode: bool | None = None,
) -> None:
    """How tensors are printed."""
    tenon.set_printoptions(
        precision=precision,
        threshold=threshold,
        edgeitems=edgeitems,
        linewidth=linewidth,
        profile=profile,
        sci_mode=sci_mode,
    )


def vmap(
    func: Callable[..., Any],
    in_dims: Any = 0,
    out_dims: Any = 0,
    randomness: str = "error",
    *,
    chunk_size: int | None = None,
) -> Callable[..., Any]:
    """tenon.func.vmap. Random numbers are drawn for each sample, as `randomness` 'different' says; 'error' does not look for
    them."""
    if randomness == "same":
        raise NotImplementedError(
            "vmap(): expected randomness 'different' or 'error', got 'same'; draw the numbers outside of the function"
        )
    if randomness not in ("different", "error"):
        raise ValueError(
            f"vmap(): expected randomness 'different', 'same' or 'error', got {randomness!r}"
        )
    return tenon.func.vmap(func, in_dims, out_dims, chunk_size=chunk_size)
