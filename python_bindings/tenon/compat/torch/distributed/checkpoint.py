# SPDX-License-Identifier: Apache-2.0
"""torch.distributed.checkpoint: folders that any number of ranks loads (tenon.distributed.checkpoint), by PyTorch's names.

The format is Tenon's, not PyTorch's. Models and optimizers stand in the dict as they are, or as their state_dict().
"""

from __future__ import annotations

from typing import Any

from tenon.compat.torch._groups import expect_group, only
from tenon.distributed import checkpoint as _checkpoint
from tenon.distributed import is_initialized
from tenon.distributed.futures import Future

__all__ = ["async_save", "load", "save"]


def _group(process_group: Any) -> Any:
    return expect_group(process_group) if process_group or is_initialized() else None


def save(
    state_dict: dict[str, Any],
    *,
    checkpoint_id: Any = None,
    storage_writer: Any = None,
    planner: Any = None,
    process_group: Any = None,
    no_dist: bool = False,
    use_collectives: bool = True,
) -> None:
    """`checkpoint_id` is the folder."""
    _expect(
        "save",
        checkpoint_id,
        storage_writer=(storage_writer, None),
        planner=(planner, None),
        no_dist=(no_dist, False),
        use_collectives=(use_collectives, True),
    )
    _checkpoint.save(state_dict, checkpoint_id, group=_group(process_group))


def async_save(
    state_dict: dict[str, Any],
    *,
    checkpoint_id: Any = None,
    storage_writer: Any = None,
    planner: Any = None,
    process_group: Any = None,
) -> Future:
    """As save; the future is done when the folder is there."""
    _expect(
        "async_save", checkpoint_id, storage_writer=(storage_writer, None), planner=(planner, None)
    )
    group = _group(process_group)
    pending = _checkpoint.save(state_dict, checkpoint_id, group=group, asynchronous=True)
    assert pending is not None
    return Future(pending.wait)


def load(
    state_dict: dict[str, Any],
    *,
    checkpoint_id: Any = None,
    storage_reader: Any = None,
    planner: Any = None,
    process_group: Any = None,
    no_dist: bool = False,
) -> None:
    """Into the tensors and objects of `state_dict`; numbers and texts in it are replaced."""
    _expect(
        "load",
        checkpoint_id,
        storage_reader=(storage_reader, None),
        planner=(planner, None),
        no_dist=(no_dist, False),
    )
    # What the checkpoint has beside that is left alone, as in PyTorch.
    group = _group(process_group)
    found = _checkpoint.load(state_dict, checkpoint_id, group=group, strict=False)
    state_dict.update(found)


def _expect(call: str, folder: Any, **options: Any) -> None:
    only(f"checkpoint.{call}", **options)
    if folder is None:
        raise ValueError(f"checkpoint.{call}: expected a folder as checkpoint_id, got None")
