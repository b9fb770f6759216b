# SPDX-License-Identifier: Apache-2.0
"""A module as a function of its parameters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

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
