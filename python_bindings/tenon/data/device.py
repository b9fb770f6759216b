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
    ahead: tuple[Any, Any, Any] | None = None
    try:
        for batch in batches:
            with stream:
                moved = map_tensors(lambda tensor: tensor.to(device), batch)
                event = stream.record()
            if ahead is not None:
                yield from _given(*ahead)
            ahead = batch, moved, event
        if ahead is not None:
            yield from _given(*ahead)
    finally:
        stream.synchronize()


def _given(batch: Any, moved: Any, copied: Any) -> Iterator[Any]:
    """The batch on the device. The host's memory under it is kept until it has been copied: a worker writes
    another batch there afterwards."""
    copied.wait()
    yield moved
    copied.synchronize()
