# SPDX-License-Identifier: Apache-2.0
"""A module as a function of its parameters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import tenon
from tenon import Tensor


def functional_call(
    module: Any,
    parameters: Mapping[str, Tensor],
    args: Any = (),
    kwargs: dict[str, Any] | None = None,
) -> Any:
    """`module(*args, **kwargs)` with `parameters` (by dotted path) in place of its own.

    Gradients reach the given tensors. The module is as before when the call ends.
    """
    replaced: list[tuple[Any, str, Any]] = []
    try:
        for path, tensor in parameters.items():
            owner_path, _, name = path.rpartition(".")
            owner = module.get_submodule(owner_path)
            if not isinstance(vars(owner).get(name), Tensor):
                raise KeyError(
                    f"functional_call: {type(module).__name__} has no parameter or buffer {path!r}"
                )
            replaced.append((owner, name, vars(owner)[name]))
            vars(owner)[name] = tensor  # past the check that keeps parameters parameters
        args = args if isinstance(args, tuple) else (args,)
        return module(*args, **(kwargs or {}))
    finally:
        for owner, name, before in reversed(replaced):
            vars(owner)[name] = before


def stack_module_state(models: Sequence[Any]) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """Parameters and buffers of several modules of one kind, each stacked along a new first axis: what vmap() of
    functional_call() takes for an ensemble. Parameters that are trained are leaves that require gradients."""
    models = list(models)
    if not models:
        raise ValueError("stack_module_state: expected at least one module, got none")
    for each in models[1:]:
        if type(each) is not type(models[0]):
            raise TypeError(
                f"stack_module_state: expected modules of one class, got {type(models[0]).__name__} and "
                f"{type(each).__name__}"
            )
        if each.training != models[0].training:
            raise ValueError(
                "stack_module_state: expected all modules in training or none, got both"
            )
    stacked = []
    for kind in ("named_parameters", "named_buffers"):
        states = [dict(getattr(each, kind)()) for each in models]
        if any(list(each) != list(states[0]) for each in states):
            raise ValueError("stack_module_state: expected modules with the same parts")
        found = {}
        for name, first in states[0].items():
            parts = [state[name] for state in states]
            if any(part.requires_grad != first.requires_grad for part in parts):
                raise ValueError(
                    f"stack_module_state: expected {name!r} to require gradients in all modules or in none"
                )
            with tenon.no_grad():
                whole = tenon.stack([part.detach() for part in parts], 0)
            found[name] = whole.requires_grad_(first.requires_grad)
        stacked.append(found)
    return stacked[0], stacked[1]


def replace_all_batch_norm_modules_(root: Any) -> Any:
    """Has all batch norms in `root` use the statistics of the batch alone, and keep none: running averages are changed in
    place, which a batch of calls cannot do. Returns `root`."""
    for module in root.modules():
        if hasattr(module, "track_running_stats") and hasattr(module, "running_mean"):
            module.running_mean = module.running_var = module.num_batches_tracked = None
            module.track_running_stats = False
    return root
