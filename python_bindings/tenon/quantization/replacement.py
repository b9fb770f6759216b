# SPDX-License-Identifier: Apache-2.0
"""The layers of a module that a recipe changes, and the calls that stand in for them."""

from __future__ import annotations

import copy
import fnmatch
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

import tenon
from tenon import Tensor, nn

M = TypeVar("M", bound=nn.Module)


def copy_of(module: M) -> M:
    """The same module with parameters of its own."""
    return copy.deepcopy(module)


def find_layers(
    module: nn.Module, kinds: tuple[type, ...], keep: Sequence[str]
) -> list[tuple[str, Any]]:
    """Names and layers of these kinds exactly, but for those whose name a pattern of `keep` fits. A
    pattern that fits no layer at all is an error."""
    if isinstance(keep, str):
        raise TypeError(f"keep: expected a list of patterns, got the text {keep!r}")
    names = [name for name, _ in module.named_modules()]
    for pattern in keep:
        if not fnmatch.filter(names, pattern):
            raise ValueError(f"keep: {pattern!r} fits no module; there are {', '.join(names[1:])}")
    return [
        (name, layer)
        for name, layer in module.named_modules()
        if type(layer) in kinds and not any(fnmatch.fnmatchcase(name, each) for each in keep)
    ]


def replace_layers(module: M, make: dict[str, nn.Module]) -> M:
    """`module` with other layers at these names; if it is itself the layer, that one. A layer that has
    several names is replaced under all of them."""
    if "" in make:
        return make[""]  # type: ignore[return-value]
    found = {id(module.get_submodule(name)): layer for name, layer in make.items()}
    for parent in list(module.modules()):
        for name, child in list(parent.named_children()):
            if id(child) in found:
                setattr(parent, name, found[id(child)])
    return module


def call_with(layer: Any, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """What a Linear or a convolution gives with other parameters."""
    if isinstance(layer, nn.Linear):
        return nn.functional.linear(x, weight, bias)
    if x.ndim == layer.axes + 1:  # without a batch
        return call_with(layer, x.unsqueeze(0), weight, bias).squeeze(0)
    if layer._margins:
        mode = "constant" if layer.padding_mode == "zeros" else layer.padding_mode
        x = nn.functional.pad(x, layer._margins, mode)
    return type(layer).function(
        x, weight, bias, layer.stride, layer._symmetric, layer.dilation, layer.groups
    )


def run(module: nn.Module, batches: Iterable[Any], function: str) -> int:
    """Calls `module` on each batch, a tensor or a tuple of arguments, without gradients, and counts them."""
    count = 0
    with tenon.no_grad():
        for batch in batches:
            arguments = batch if isinstance(batch, tuple) else (batch,)
            module(*arguments)
            count += 1
    if not count:
        raise ValueError(f"{function}: expected at least one batch, got none")
    return count


def with_inputs(
    module: nn.Module,
    layers: Iterable[nn.Module],
    batches: Iterable[Any],
    function: str,
    see: Callable[[nn.Module, Tensor], None],
) -> None:
    """Runs `module` on batches and gives `see` each layer with what it is called on."""
    handles = [
        layer.register_forward_pre_hook(lambda layer, args: see(layer, args[0])) for layer in layers
    ]
    try:
        run(module, batches, function)
    finally:
        for handle in handles:
            handle.remove()
