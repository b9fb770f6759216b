# SPDX-License-Identifier: Apache-2.0
"""Which samples each rank reads."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

from tenon.data import Sampler

from .world import get_rank, get_world_size, is_initialized


class DistributedBatchSampler(Sampler):
    """Batches of one rank: its part of each global batch, so that all ranks together read the dataset once.

        loader = DataLoader(dataset, batch_sampler=DistributedBatchSampler(dataset, 32, shuffle=True))

    A global batch has `batch_size` samples for each rank, in one order for all of them: rank r takes the r-th run. On
    another number of ranks, with as many samples in a global batch, a step reads the same samples. The last global
    batch may be short: then it is filled with the first samples of the order until all ranks have equally many, because
    the mean over ranks of means over unequal parts is not the mean over all; with `drop_last` it is left out. With
    `shuffle` the order follows from `seed` and the epoch, on every rank alike: call `set_epoch` before each. A run that
    goes on within an epoch, also on another number of ranks, says how many batches were read: `set_epoch(3, start=40)`.
    """

    def __init__(
        self,
        dataset: Any,
        batch_size: int,
        num_replicas: int | None = None,
        rank: int | None = None,
        shuffle: bool = False,
        drop_last: bool = False,
        seed: int = 0,
    ) -> None:
        if batch_size < 1:
            raise ValueError(f"DistributedBatchSampler: expected batch_size >= 1, got {batch_size}")
        if (num_replicas is None) != (rank is None):
            raise ValueError(
                "DistributedBatchSampler: expected both num_replicas and rank, or neither"
            )
        if num_replicas is None:
            is_alone = not is_initialized()
            num_replicas, rank = (1, 0) if is_alone else (get_world_size(), get_rank())
        assert rank is not None
        if not 0 <= rank < num_replicas:
            raise ValueError(
                f"DistributedBatchSampler: expected a rank from 0 to {num_replicas - 1}, got {rank}"
            )
        self.dataset, self.batch_size = dataset, batch_size
        self.num_replicas, self.rank = num_replicas, rank
        self.shuffle, self.drop_last, self.seed = shuffle, drop_last, seed
        self.epoch = self.start = 0

    def set_epoch(self, epoch: int, start: int = 0) -> None:
        """The number of the next pass, from which its order follows, and the batch with which it begins."""
        if not 0 <= start <= len(self):
            raise ValueError(f"set_epoch: expected start from 0 to {len(self)}, got {start}")
        self.epoch, self.start = epoch, start

    def __iter__(self) -> Iterator[list[int]]:
        order = list(range(len(self.dataset)))
        if self.shuffle:
            # Strings are hashed alike by every process; numbers of one generator would repeat those of others.
            random.Random(f"{self.seed}/{self.epoch}").shuffle(order)
        size, whole = self.num_replicas, self.batch_size * self.num_replicas
        for start in range(self.start * whole, len(order), whole):
            batch = order[start : start + whole]
            if len(batch) < whole and self.drop_last:
                return
            missing = -len(batch) % size
            batch += [order[i % len(order)] for i in range(missing)]
            share = len(batch) // size
            yield batch[share * self.rank : share * (self.rank + 1)]

    def __len__(self) -> int:
        count, whole = len(self.dataset), self.batch_size * self.num_replicas
        return count // whole if self.drop_last else -(-count // whole)
