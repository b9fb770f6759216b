# SPDX-License-Identifier: Apache-2.0
"""Who holds the memory of a device: the tensors that Python can reach, and what refers to them."""

from __future__ import annotations

import dataclasses
import gc
import os
import sys
import types
from typing import Any

import tenon
from tenon._core import Tensor
from tenon._tensor.batched import Batched

_MAX_HOLDERS = 8  # that are named for each piece of memory
_MAX_DEPTH = 3  # containers inside one another, from the tensor outwards


@dataclasses.dataclass(frozen=True)
class Holding:
    """A piece of memory: tensors that share it, and what holds them."""

    bytes: int
    tensors: tuple[str, ...]  # "float32[64, 10]"
    holders: tuple[str, ...]


@dataclasses.dataclass(frozen=True)
class HolderReport:
    """`holdings`, the largest first; `seen`, their bytes; `in_use`, all bytes in use on the device. The
    difference is held where Python sees nothing: mostly by what backward passes have saved."""

    device: str
    holdings: tuple[Holding, ...]
    seen: int
    in_use: int

    def __str__(self) -> str:
        lines = [
            f"{self.device}: {_size(self.in_use)} in use, {_size(self.seen)} of it in tensors of Python",
            *(
                f"{_size(each.bytes):>10}  {', '.join(each.tensors)}\n"
                + "\n".join(f"{'':>12}{holder}" for holder in each.holders)
                for each in self.holdings
            ),
        ]
        if self.in_use > self.seen:
            rest = _size(self.in_use - self.seen)
            lines.append(
                f"{rest:>10}  that no object of Python holds: saved for backward passes, by threads' caches, or by plugins"
            )
        return "\n".join(lines)


def holders(device: Any = None, top: int = 10) -> HolderReport:
    """A report of the `top` largest pieces of memory of a device that tensors of Python hold, and of what
    holds these: variables of functions that run, globals, attributes, containers, gradients. It looks
    at every object that Python's garbage collector knows, which takes a second for a million of them.

        print(tenon.runtime.memory.holders("cuda"))
    """
    device = tenon.device(device or "cpu")
    # What is composed of others has no memory but theirs.
    found = [t for t in _tensors() if t.device == device and t.layout == "strided" and t.nbytes]
    pieces = _pieces(found)
    pieces.sort(key=lambda piece: -piece[0])
    frames = _frames()
    # What this module has made itself.
    own = {id(found), id(pieces), id(frames)}
    for piece in pieces:
        own |= {id(piece), id(piece[1])}
    for frame in frames:
        if frame.f_code.co_name != "<module>":  # whose variables are globals
            own.add(id(frame.f_locals))
    leaves = [t for t in found if t.requires_grad and t.is_leaf]
    gradients = {
        t.grad.data_ptr(): t
        for t in leaves
        if t.grad is not None and t.grad.layout == "strided"  # not composed of others
    }
    own.add(id(leaves))
    own.add(id(gradients))
    holdings = []
    for size, tensors in pieces[:top]:
        shapes = tuple(dict.fromkeys(map(_type_text, tensors)))
        holdings.append(Holding(size, shapes, _holders_of(tensors, frames, gradients, own)))
    in_use = tenon.runtime.memory.stats(device)["current"]
    return HolderReport(str(device), tuple(holdings), sum(size for size, _ in pieces), in_use)


def _tensors() -> list[Tensor]:
    """Every tensor that an object known to the garbage collector refers to, and gradients."""
    known: dict[int, Tensor] = {}
    for container in gc.get_objects():
        for referent in gc.get_referents(container):
            if isinstance(referent, Tensor):
                known[id(referent)] = referent
    for frame in _frames():
        for value in frame.f_locals.values():
            if isinstance(value, Tensor):
                known[id(value)] = value
    for tensor in list(known.values()):
        if tensor.requires_grad and tensor.is_leaf and tensor.grad is not None:
            known[id(tensor.grad)] = tensor.grad
    # A sample of vmap has no memory of its own; the batch that it stands for is known as well.
    tensors = [tensor for tensor in known.values() if not isinstance(tensor, Batched)]
    known.clear()  # it would be found as a holder for as long as something keeps this frame
    return tensors


def _frames() -> list[types.FrameType]:
    """Of functions of the program that run, in all threads."""
    frames = []
    innermost = list(sys._current_frames().values())
    here: types.FrameType | None = None
    while innermost:
        here = innermost.pop()
        while here is not None:
            if here.f_globals is not globals():
                frames.append(here)
            here = here.f_back
    # No variable is left that refers to this function's own frame: such a cycle keeps its callers' variables, which
    # hold tensors, until the next collection.
    return frames


def _pieces(tensors: list[Tensor]) -> list[tuple[int, list[Tensor]]]:
    """Tensors whose memory overlaps, together, with its bytes."""
    spans = sorted(
        ((t.data_ptr(), t.data_ptr() + _extent(t), t) for t in tensors), key=lambda s: s[:2]
    )
    pieces: list[tuple[int, list[Tensor]]] = []
    begin = end = 0
    for low, high, tensor in spans:
        if pieces and low < end:
            end = max(end, high)
            pieces[-1] = (end - begin, [*pieces[-1][1], tensor])
        else:
            begin, end = low, high
            pieces.append((end - begin, [tensor]))
    return pieces


def _extent(tensor: Tensor) -> int:
    """Bytes from the first element to the last, for strides of at least 0."""
    reach = sum((n - 1) * abs(s) for n, s in zip(tensor.shape, tensor.stride(), strict=True))
    return (reach + 1) * tensor.dtype.itemsize


# No comprehension below names what is looked for: it would hold it in a cell, and be found itself.


def _holders_of(
    tensors: list[Tensor],
    frames: list[types.FrameType],
    gradients: dict[int, Tensor],
    own: set[int],
) -> tuple[str, ...]:
    texts: dict[str, None] = {}
    for tensor in tensors:
        for frame in frames:
            if frame.f_code.co_name == "<module>":
                continue  # its variables are globals
            for name, value in frame.f_locals.items():
                if value is tensor:
                    texts[f"`{name}` in {frame.f_code.co_name} ({_where(frame)})"] = None
        texts |= dict.fromkeys(_referrers(tensor, own, _MAX_DEPTH))
        leaf = gradients.get(tensor.data_ptr())
        if leaf is not None:
            of = _referrers(leaf, own, _MAX_DEPTH) or ["a tensor"]
            texts[f"the gradient of {of[0]}"] = None
    if not texts:
        return ("an object that Python's garbage collector does not know",)
    shown = list(texts)
    more = len(shown) - _MAX_HOLDERS
    return (*shown[:_MAX_HOLDERS], f"and {more} more") if more > 0 else tuple(shown)


def _referrers(target: Any, own: set[int], depth: int) -> list[str]:
    """What refers to it, in words, from the inside out."""
    texts: list[str] = []
    referrers = gc.get_referrers(target)
    own = own | {id(referrers)}
    for holder in referrers:
        if id(holder) in own or isinstance(holder, (types.FrameType, types.MethodType)):
            continue
        if isinstance(holder, dict):
            for key, value in list(holder.items()):
                if value is target:
                    texts.append(_in_dict(holder, key, own, depth))
        elif isinstance(holder, (list, tuple, set, frozenset)):
            kind = f"an element of a {type(holder).__name__}"
            outside = _referrers(holder, own, depth - 1)[:2] if depth > 1 else []
            for text in outside:
                texts.append(f"{kind}: {text}")
            if not outside:
                texts.append(kind)
        elif isinstance(holder, types.CellType):
            texts.append("a variable that an inner function closes over")
        elif not isinstance(holder, types.ModuleType):
            names = [""]
            for name, value in getattr(holder, "__dict__", {}).items():
                if value is target:
                    names.append(f"`{name}` ")
            texts.append(f"attribute {names[-1]}of {type(holder).__name__}")
    return texts


def _in_dict(holder: dict, key: Any, own: set[int], depth: int) -> str:
    module = holder.get("__name__")
    if isinstance(module, str) and sys.modules.get(module) is not None:
        if vars(sys.modules[module]) is holder:
            return f"global `{key}` of {module}"
    for owner in gc.get_referrers(holder):
        if id(owner) in own:
            continue
        if getattr(owner, "__dict__", None) is holder:
            return f"attribute `{key}` of {type(owner).__name__}"
        if isinstance(owner, dict) and depth > 1:
            for name, value in owner.items():
                if value is holder and name in ("_parameters", "_buffers"):
                    noun = "parameter" if name == "_parameters" else "buffer"
                    return f"{noun} `{key}` of {_owner_name(owner, own)}"
    outside = _referrers(holder, own, depth - 1) if depth > 1 else []
    return f"item {key!r} of a dict" + (f": {outside[0]}" if outside else "")


def _owner_name(attributes: dict, own: set[int]) -> str:
    for owner in gc.get_referrers(attributes):
        if id(owner) not in own and getattr(owner, "__dict__", None) is attributes:
            return type(owner).__name__
    return "a module"


def _where(frame: types.FrameType) -> str:
    return f"{os.path.basename(frame.f_code.co_filename)}:{frame.f_lineno}"


def _type_text(tensor: Tensor) -> str:
    return f"{tensor.dtype}{list(tensor.shape)}".removeprefix("tenon.")


def _size(count: int) -> str:
    return f"{count / 2**20:.1f} MiB" if count >= 2**20 else f"{count / 1024:.1f} KiB"
