# SPDX-License-Identifier: Apache-2.0
"""The generator from which random numbers come where no other is given."""

from __future__ import annotations

from typing import Any

import tenon
from tenon import random

__all__ = ["default_generator"]


class DefaultGenerator(tenon.Generator):
    """The stream of the CPU as an object: what is set here is what manual_seed() sets."""

    def __init__(self) -> None:
        self.device = tenon.device("cpu")

    def get_state(self) -> tuple[int, int]:
        return random.get_state(self.device)

    def set_state(self, state: tuple[int, int]) -> None:
        random.set_state(state, self.device)

    def __enter__(self) -> DefaultGenerator:
        return self

    def __exit__(self, *exception: object) -> None:
        """Numbers come from it after the block, too."""

    def __reduce__(self) -> Any:
        return _of_process, ()


default_generator = DefaultGenerator()


def _of_process() -> DefaultGenerator:
    return default_generator
