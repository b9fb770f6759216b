# SPDX-License-Identifier: Apache-2.0
"""Batches on a device, copied while the program works on the batch before."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import tenon
from tenon import Tensor


def map_tensors(function: Callable[[Tensor], Any], batch: Any) -> Any:
    """`batch` with `function` applied to its tensors; dicts, lists, tuples and named tuples are kept."""
    if isinstance(batch, Tensor):
        return function(batch)
    if isinstance(batch, Mapping):
        return {key: map_tensors(function, value) for key, value in batch.items()}
    if isinstance(batch, tuple) and hasattr(batch, "_fields"):
        return type(batch)(*(map_tensors(function, value) for value in batch))
    if isinstance(batch, (list, tuple)):
        return type(batch)(map_tensors(function, value) for value in batch)
    return batch


def copied_ahead(batches: Iterator[Any], device: Any) -> Iterator[Any]:
    """The batches with their tensors on `device`. Where it has streams, the next batch is copied on one
    of its own while the program computes; elsewhere each is copied as it is taken."""
    try:
        stream = tenon.Stream(device)
    except NotImplementedError:
        yield from (map_tensors(lambda tensor: tensor.to(device), batch) for batch in batches)
        return
    before: tuple[Any, Any, Any] | None = None
    for batch in batches:
        with stream:
            moved = map_tensors(lambda tensor: tensor.to(device), batch)
            event = stream.record()
        if before is not None:
            before[2].wait()
            yield before[1]
        before = batch, moved, event  # the host's tensors live until their copies are done
    if before is not None:
        before[2].wait()
        yield before[1]
