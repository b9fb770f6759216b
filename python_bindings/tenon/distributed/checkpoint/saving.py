# SPDX-License-Identifier: Apache-2.0
"""save and load. Every rank of a group calls them, with what it has of the state."""

from __future__ import annotations

import os
from typing import Any

from tenon.io.safetensors import FormatError

from ..calls import all_gather_object
from ..group import ProcessGroup
from ..world import is_initialized, world
from .reader import Reader
from .states import Found, Names, Source, collect, restore
from .writer import Pending, make_plan, own_tensors, save_now

_pending: dict[int, Pending] = {}  # the last one of each rank of this process


def group_of(group: ProcessGroup | None) -> ProcessGroup | None:
    """By default that of all ranks; None where there is one rank and no group."""
    return world() if group is None and is_initialized() else group


def wait_for_last(group: ProcessGroup | None) -> None:
    """For this rank's last asynchronous save; raises what went wrong."""
    pending = _pending.pop(0 if group is None else group.rank, None)
    if pending is not None:
        pending.wait()


def save(
    state: Any,
    folder: str | os.PathLike,
    *,
    group: ProcessGroup | None = None,
    asynchronous: bool = False,
    timeout: float = 600.0,
) -> Pending | None:
    """Write `state` as the folder, which all ranks see; what was there before stays until the new one is whole.

    `state` is a dict of models, optimizers, tensors, Pieces, numbers, texts, containers of these, and objects with
    state_dict(). The name of a tensor is its path in the dict; tensors of one name are one tensor, of which each rank has
    a Piece or all, and every element has to be on some rank. The state of an optimizer lies beside its parameters, so
    that their model has to be in `state`, too. Of replicas one is written; buffers are those of the lowest rank that has
    them. Values are equal on all ranks that have them.

    `asynchronous=True` copies the tensors and returns a Pending, while a thread writes; the next save waits for it, and
    raises what went wrong. `timeout` limits, in seconds, how long a rank waits for the others' files then.
    """
    group = group_of(group)
    folder = os.path.abspath(os.fspath(folder))
    wait_for_last(group)
    found, error = Found(), None
    try:
        collect(state, "", Names(state), found)
    except Exception as caught:
        if group is None:
            raise
        found, error = Found(), caught
    plan = make_plan(found, None if error is None else f"{type(error).__name__}: {error}", group)
    rank = 0 if group is None else group.rank
    tensors = own_tensors(plan, found, rank)
    if not asynchronous:
        save_now(folder, plan, tensors, group)
        return None
    pending = _pending[rank] = Pending(folder, plan, tensors, group, timeout)
    return pending


def load(
    state: Any,
    folder: str | os.PathLike,
    *,
    group: ProcessGroup | None = None,
    strict: bool = True,
    verify: bool = True,
) -> Any:
    """Read a checkpoint into `state`, which is made as for save, with any number of ranks and any parts of tensors on
    them: tensors, models, optimizers and objects with load_state_dict() are overwritten; returned is `state` with the
    values of the checkpoint.

    Names that are missing or left over are errors, as are other shapes and dtypes, before anything is changed; with
    `strict=False` what is left over is not read. `verify` compares the bytes of each part with their digest. Whatever a
    rank raises, all raise; after a damaged file tensors are in part those of the checkpoint.
    """
    group = group_of(group)
    wait_for_last(group)
    folder = os.path.abspath(os.fspath(folder))
    source: Source | None = None
    result: Any = None
    error: Exception | None = None
    try:
        source = Source(Reader(folder, verify))
        result = restore(state, "", Names(state), source)
    except Exception as caught:
        error = caught
    asked = set() if source is None else source.asked
    problems = [] if source is None else source.problems
    told = _all_or_raise((asked, problems), error, group)
    assert source is not None
    names = {*source.reader.manifest.tensors, *source.reader.manifest.values}
    left = sorted(names.difference(*(rank_asked for rank_asked, _ in told)))
    wrong = list(dict.fromkeys(text for _, texts in told for text in texts))
    if strict:
        wrong += [f"left over: {name}" for name in left]
    if wrong:
        more = f"\n  and {len(wrong) - 20} more" if len(wrong) > 20 else ""
        raise ValueError(
            f"checkpoint: {folder} does not fit the state:\n  " + "\n  ".join(wrong[:20]) + more
        )
    try:
        source.finish()
    except Exception as caught:
        error = caught
    _all_or_raise(None, error, group)
    return result


def _all_or_raise(value: Any, error: Exception | None, group: ProcessGroup | None) -> list[Any]:
    """What all ranks say, unless one of them says an error: then all raise it."""
    if group is None:
        if error is not None:
            raise error
        return [value]
    told = all_gather_object((value, error if error is None else _plain(error)), group)
    if error is not None:
        raise error
    for rank, (_, other) in enumerate(told):
        if other is not None:
            kind, text = other
            raise _KINDS[kind](f"on rank {rank}: {text}")
    return [value for value, _ in told]


_KINDS = (
    FormatError,
    FileNotFoundError,
    OSError,
    TypeError,
    ValueError,
    NotImplementedError,
    Exception,
)


def _plain(error: Exception) -> tuple[int, str]:
    kinds = [place for place, kind in enumerate(_KINDS) if isinstance(error, kind)]
    text = str(error) if kinds[0] < len(_KINDS) - 1 else f"{type(error).__name__}: {error}"
    return kinds[0], text
