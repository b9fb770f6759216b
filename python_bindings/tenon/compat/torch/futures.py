# SPDX-License-Identifier: Apache-2.0
"""torch.futures: values that come later, as hooks of gradients return them."""

from collections.abc import Sequence
from typing import Any

from tenon.distributed.futures import Future

__all__ = ["Future", "collect_all", "wait_all"]


def wait_all(futures: Sequence[Future]) -> list[Any]:
    return [future.wait() for future in futures]


def collect_all(futures: Sequence[Future]) -> Future:
    """A future of these, which are done when it is."""
    given = list(futures)

    def make() -> list[Future]:
        wait_all(given)
        return given

    return Future(make)
