# SPDX-License-Identifier: Apache-2.0
"""tenon.compat.torch beside PyTorch."""

from __future__ import annotations

import inspect
import itertools
import types
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from typing import Any

import numpy as np
import tenon
import torch
from tenon.compat import torch as compat
from torch.testing._internal.common_methods_invocations import op_db

from .. import op_db as samples_of_torch
from . import torch_samples, torch_signatures, torch_values
from .torch_differences import DIFFERENCES

SPACES = ("", "nn.functional", "linalg", "fft", "special", "masked", "signal.windows")


def find(root: Any, name: str) -> Any:
    """An attribute by its dotted name, None if there is none."""
    for part in name.split("."):
        root = getattr(root, part, None)
        if root is None:
            return None
    return root


def _is_function(value: Any) -> bool:
    return callable(value) and not isinstance(value, (type, types.ModuleType))


class TorchLibrary:
    name = "PyTorch"
    differences = DIFFERENCES

    def functions(self) -> list[str]:
        found = []
        for space in SPACES:
            place = find(compat, space) if space else compat
            names = sorted({*dir(place), *(getattr(place, "__all__", ()))})
            found += [
                f"{space}.{each}" if space else each
                for each in names
                if not each.startswith("_") and _is_function(getattr(place, each))
            ]
        return found

    def theirs(self, function: str) -> Callable[..., Any] | None:
        return find(torch, function)

    def ours(self, function: str) -> Callable[..., Any]:
        return find(compat, function)

    def signatures(self, function: str) -> list[inspect.Signature]:
        return torch_signatures.signatures(function, find(torch, function))

    @cached_property
    def _entries(self) -> dict[str, list[Any]]:
        result: dict[str, list[Any]] = {}
        for entry in op_db:
            for name in (entry.name, *(alias.name for alias in entry.aliases)):
                result.setdefault(name, []).append(entry)
        return result

    def samples(self, function: str) -> Iterator[tuple[tuple[Any, ...], dict[str, Any]]]:
        base = function.removesuffix("_")
        own = torch_samples.SAMPLES.get(function) or torch_samples.SAMPLES.get(base, ())
        yield from (torch_samples.sample(each) for each in own)
        streams = [_of_entry(entry) for entry in self._entries.get(base, ())[:2]]
        # Turn by turn, so that a few samples come from every entry and dtype.
        for turn in itertools.zip_longest(*itertools.chain(*streams)):
            yield from (each for each in turn if each is not None)

    def alternatives(
        self, function: str, parameter: inspect.Parameter, arguments: dict[str, Any]
    ) -> Iterable[Any]:
        return torch_values.alternatives(function, find(torch, function), parameter, arguments)

    def fresh(self, value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            if value.layout is not torch.strided:
                return value
            copy = value.detach().clone()
            return copy.requires_grad_() if value.requires_grad else copy
        return _mapped(value, self.fresh)

    def recording(self, value: Any) -> Any:
        if isinstance(value, torch.Tensor) and value.layout is torch.strided:
            floats = value.dtype.is_floating_point or value.dtype.is_complex
            return value.detach().clone().requires_grad_() if floats else value
        return _mapped(value, self.recording)

    def to_ours(self, value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            try:
                held = samples_of_torch.to_tenon(value)
            except samples_of_torch.NotHeld as error:
                raise LookupError(str(error)) from error
            return held.requires_grad_() if value.requires_grad else held
        if isinstance(value, torch.dtype):
            return self._named(value)
        if isinstance(value, (torch.layout, torch.memory_format)):
            return self._named(value)
        if isinstance(value, torch.device):
            return value.type
        if isinstance(value, torch.Generator):
            return tenon.Generator()
        if value is None or isinstance(
            value, (bool, int, float, complex, str, slice, type(...), np.ndarray)
        ):
            return value
        if isinstance(value, (tuple, list, dict)):
            return _mapped(value, self.to_ours)
        if callable(value) and value in torch_samples.FUNCTIONS:
            return torch_samples.FUNCTIONS[value]
        raise LookupError(f"an argument of type {type(value).__name__}")

    def _named(self, value: Any) -> Any:
        found = getattr(compat, str(value).removeprefix("torch."), None)
        if found is None:
            raise LookupError(f"{value}")
        return found

    def difference(
        self, function: str, ours: Any, our_arguments: Any, theirs: Any, their_arguments: Any
    ) -> str | None:
        mine, other = tensors(our_arguments), tensors(their_arguments)
        undetermined = {*samples_of_torch.DRAWN, *torch_samples.DRAWN, *samples_of_torch.PRODUCTS}
        for index, (a, b) in enumerate(zip(mine, other, strict=True)):
            if _drawn(function) in undetermined:
                break
            found = samples_of_torch.difference(
                "", samples_of_torch.to_arrays(a), samples_of_torch.to_arrays(b)
            )
            if found is not None:
                return f"tensor {index} of the arguments after the call: {found}"
        return _structure(function, ours, theirs) or _shared(function, ours, mine, theirs, other)

    def describe(self, value: Any) -> str:
        if isinstance(value, torch.Tensor) and 0 < value.numel() <= 4:
            return f"tensor({value.tolist()}, {str(value.dtype).removeprefix('torch.')})"
        if isinstance(value, torch.Generator):
            return "Generator()"
        return samples_of_torch.describe(value)


def _drawn(function: str) -> str:
    """The name as the samples know it: in-place forms are drawn or compared as their base."""
    return "rand_like" if function in torch_samples.DRAWN else function.removesuffix("_")


def _of_entry(entry: Any) -> list[Iterator[Any]]:
    """A stream of samples for each of an entry's dtypes."""

    def stream(group: Any) -> Iterator[Any]:
        for _, each in samples_of_torch.samples(entry, 1000, [group]):
            yield (each.input, *each.args), dict(each.kwargs)

    return [stream(group) for group in samples_of_torch.DTYPE_GROUPS]


def _mapped(value: Any, change: Callable[[Any], Any]) -> Any:
    if isinstance(value, torch.Size):
        return tuple(value)
    if isinstance(value, (tuple, list)):
        changed = [change(each) for each in value]
        return changed if isinstance(value, list) else tuple(changed)
    if isinstance(value, dict):
        return {name: change(each) for name, each in value.items()}
    return value


def tensors(value: Any) -> list[Any]:
    """The tensors of arguments or results, in order."""
    if isinstance(value, (torch.Tensor, tenon.Tensor)):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (tuple, list)):
        return [each for part in value for each in tensors(part)]
    return []


def _structure(function: str, ours: Any, theirs: Any) -> str | None:
    if isinstance(theirs, torch.Tensor):
        if not isinstance(ours, tenon.Tensor):
            return f"{type(ours).__name__}, PyTorch gives a tensor"
    elif isinstance(theirs, (tuple, list)):
        if not isinstance(ours, (tuple, list)):
            return f"{type(ours).__name__}, PyTorch gives {type(theirs).__name__}"
        if isinstance(theirs, tuple) != isinstance(ours, tuple):
            return f"a {type(ours).__name__}, PyTorch gives a {type(theirs).__name__}"
        mine, other = _fields(ours), _fields(theirs)
        if other and mine != other:
            return f"fields {mine}, PyTorch's are {other}"
        if len(ours) != len(theirs):
            return f"{len(ours)} results, PyTorch gives {len(theirs)}"
    elif isinstance(theirs, torch.dtype):
        name = str(theirs).removeprefix("torch.")
        return None if str(ours) == name or getattr(compat, name, None) == ours else str(ours)
    elif isinstance(theirs, (bool, int, float, complex)):
        if type(ours) is not type(theirs):
            return f"a {type(ours).__name__}, PyTorch gives a {type(theirs).__name__}"
        if function in torch_samples.DRAWN:
            return None
    elif theirs is None:
        return None if ours is None else f"{type(ours).__name__}, PyTorch gives None"
    else:
        return None
    found = samples_of_torch.difference(
        _drawn(function), samples_of_torch.to_arrays(ours), samples_of_torch.to_arrays(theirs)
    )
    if found is not None:
        return found
    pairs = zip(tensors(ours), tensors(theirs), strict=True)
    for index, (a, b) in enumerate(pairs):
        if a.requires_grad != b.requires_grad:
            return (
                f"result {index}: requires_grad {a.requires_grad}, PyTorch gives {b.requires_grad}"
            )
    return None


def _fields(value: Any) -> tuple[str, ...]:
    return tuple(getattr(value, "_fields", ()) or getattr(type(value), "__match_args__", ()))


def _memory(x: Any) -> tuple[int, int]:
    """Where the elements of a tensor begin and end."""
    array = (
        x.detach().resolve_conj().resolve_neg().numpy()
        if isinstance(x, torch.Tensor)
        else np.asarray(x.detach().numpy())
    )
    low, high = np.lib.array_utils.byte_bounds(array)
    return low, high


def _shared(
    function: str, ours: Any, our_arguments: list[Any], theirs: Any, their_arguments: list[Any]
) -> str | None:
    """Which result is a view of an argument in one library alone."""
    for index, (mine, other) in enumerate(zip(tensors(ours), tensors(theirs), strict=True)):
        for place, (a, b) in enumerate(zip(our_arguments, their_arguments, strict=True)):
            if not mine.numel() or not b.numel():
                continue
            our_view, their_view = _overlap(mine, a), _overlap(other, b)
            if our_view != their_view:
                what = ("a view", "a copy") if our_view else ("a copy", "a view")
                return f"result {index} is {what[0]} of argument {place}, PyTorch gives {what[1]}"
    return None


def _overlap(x: Any, y: Any) -> bool:
    (low, high), (begin, end) = _memory(x), _memory(y)
    return low < end and begin < high


LIBRARY = TorchLibrary()
