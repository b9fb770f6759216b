# SPDX-License-Identifier: Apache-2.0
"""The DataLoader with worker processes, beside PyTorch's: one pass over a dataset, and its parts.

    python data.py [--rounds 11] [--only tokens] [--json results.json]

Both libraries read the same Python dataset of NumPy arrays, whose samples are copied out of a large array, with
the same options: two forked workers that persist, and two batches ahead of each. "at once" is the way in
which each fetches a whole batch by one call: `Dataset.batch` here, a list of indices as an index there.
The samples of a row with "start" are those of one batch; workers are started for it and ended.
"""

from __future__ import annotations

import argparse
import collections
import timeit

import numpy as np
from _libraries import Built, Case, compare
from _report import parser

WORKERS = 2
SHAPES = {
    # name: shape of a sample, dtype, batch size, number of samples
    "CIFAR-like": ((3, 32, 32), np.float32, 128, 12_800),
    "tokens": ((1025,), np.int64, 32, 6_400),
    "19 MB": ((3, 224, 224), np.uint8, 128, 1_280),
}


class Samples:
    """Rows of an array and their labels."""

    def __init__(self, shape: tuple[int, ...], dtype: type, count: int) -> None:
        self.rows = np.arange(256 * np.prod(shape)).reshape(256, *shape).astype(dtype)
        self.count = count

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> tuple[np.ndarray, int]:
        return self.rows[index % 256], index % 10


class AtOnce(Samples):
    def batch(self, indices: list[int]) -> list:
        import tenon

        chosen = np.asarray(indices)
        return [tenon.from_numpy(self.rows[chosen % 256]), tenon.from_numpy(chosen % 10)]


class AtOnceForTorch(Samples):
    # PyTorch hands a whole batch of indices to the one method there is.
    def __getitem__(self, indices: list[int]) -> list:  # type: ignore[override]
        import torch

        chosen = np.asarray(indices)
        return [torch.from_numpy(self.rows[chosen % 256]), torch.from_numpy(chosen % 10)]


def loader(library: str, case: Case, persistent: bool = True) -> object:
    shape, dtype, size, count = SHAPES[case.parameters["samples"]]
    at_once = case.parameters["at_once"]
    count = count if persistent else size
    options = {
        "num_workers": WORKERS,
        "persistent_workers": persistent,
        "multiprocessing_context": "fork",
    }
    if library == "tenon":
        from tenon import data

        return data.DataLoader(
            (AtOnce if at_once else Samples)(shape, dtype, count), size, **options
        )
    from torch.utils import data

    if not at_once:
        return data.DataLoader(Samples(shape, dtype, count), size, **options)
    dataset = AtOnceForTorch(shape, dtype, count)
    batches = data.BatchSampler(data.SequentialSampler(dataset), size, False)
    return data.DataLoader(dataset, sampler=batches, batch_size=None, **options)


def build(library: str, case: Case, options: argparse.Namespace) -> Built:
    def one_pass(batches) -> object:
        return collections.deque(batches, maxlen=1)[0]

    if case.parameters["start"]:
        run = lambda: one_pass(loader(library, case, persistent=False))  # noqa: E731
    else:
        kept = loader(library, case)
        run = lambda: one_pass(kept)  # noqa: E731
    return Built(timeit.Timer(run), lambda: [each.clone() for each in run()])


def cases() -> list[Case]:
    rows = []
    for name, (_, _, _, count) in SHAPES.items():
        for at_once in (False, True):
            case = f"{name}, at once" if at_once else name
            parameters = {"samples": name, "at_once": at_once, "start": False}
            rows.append(
                Case(case, "one pass, 2 workers", (count, "samples"), parameters=parameters)
            )
    parameters = {"samples": "CIFAR-like", "at_once": False, "start": True}
    rows.append(Case("start, one batch, end", "start", (128, "samples"), parameters=parameters))
    return rows


if __name__ == "__main__":
    compare("data", cases(), build, parser(__doc__, rounds=11, peers=("torch",)).parse_args())
