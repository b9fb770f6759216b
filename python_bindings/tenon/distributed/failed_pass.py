# SPDX-License-Identifier: Apache-2.0
"""Backward passes that raised with gradients on their way."""

from __future__ import annotations

from collections.abc import Sequence

import tenon

from .errors import CollectiveError, CollectiveMismatch
from .futures import Future
from .group import ProcessGroup
from .work import Work


def settle_failed_pass(owner: str, group: ProcessGroup, works: Sequence[Work | Future]) -> None:
    """Called by the pass behind one that raised after it had started `works`.

    Where the pass raised on all ranks, at the same place, their calls agree and training goes on. A rank on which it did
    not raise makes another call than the one here, of gradients, and both are told: it must not take the gradients of
    one pass for those of another.
    """
    started = len(works)
    try:
        for work in works:
            work.wait()
        with tenon.no_grad():
            of_ranks = group.all_gather(
                tenon.tensor([started], dtype=tenon.int64, device="cpu")
            ).tolist()
    except CollectiveError as error:
        raise type(error)(
            f"{owner}: the backward pass before this one raised on rank {group.rank} and not at the same place on all "
            f"ranks, whose gradients do not belong together any more; start again from a checkpoint: {error}"
        ) from error
    if any(other != started for other in of_ranks):
        text = (
            f"{owner}: the backward pass before this one raised on all ranks, behind {of_ranks} buckets of gradients, "
            "which do not belong together; start again from a checkpoint"
        )
        group.abort(text)
        raise CollectiveMismatch(text)
