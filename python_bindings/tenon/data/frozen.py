# SPDX-License-Identifier: Apache-2.0
"""A list whose items lie in one block of memory."""

from __future__ import annotations

import itertools
import pickle
from collections.abc import Iterable
from typing import Any

import tenon

from .dataset import Dataset


class FrozenList(Dataset):
    """A list of Python objects, which worker processes share.

    A list of many small objects grows in each forked worker: reading an object counts a reference to it,
    which writes to its page, which the system then copies. Here items are pickled into one block, and
    `frozen[i]` unpickles one: pages are only read, and stay shared. Items cannot be changed.
    """

    def __init__(self, items: Iterable[Any]) -> None:
        texts = [pickle.dumps(item, pickle.HIGHEST_PROTOCOL) for item in items]
        self._ends = tenon.tensor(
            list(itertools.accumulate(map(len, texts))) or [0], dtype=tenon.int64
        )
        self._block = tenon.frombuffer(bytearray(b"".join(texts)) or bytearray(1), tenon.uint8)
        self._count = len(texts)

    def __len__(self) -> int:
        return self._count

    @property
    def nbytes(self) -> int:
        """Bytes of the block."""
        return self._block.nbytes

    def __getitem__(self, index: int) -> Any:
        if not -self._count <= index < self._count:
            raise IndexError(f"FrozenList: index {index} is out of range for {self._count} items")
        index %= self._count
        ends = memoryview(self._ends)  # type: ignore[arg-type]
        block = memoryview(self._block)  # type: ignore[arg-type]
        return pickle.loads(block[ends[index - 1] if index else 0 : ends[index]])
