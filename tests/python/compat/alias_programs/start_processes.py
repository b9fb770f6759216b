# SPDX-License-Identifier: Apache-2.0
"""Processes by multiprocessing and workers of a loader, in which `import torch` is the same."""

import torch
import torch.multiprocessing as mp
from torch.utils.data import DataLoader, Dataset


class Squares(Dataset):
    def __len__(self):
        return 8

    def __getitem__(self, index):
        assert torch.tensor([index]).size(0) == 1
        return torch.tensor(float(index)) ** 2


def work(rank, queue):
    values, _ = torch.ones(2, 3).max(1)
    queue.put(
        (
            rank,
            torch.__version__,
            values.size(0),
            tuple(torch.Tensor([1, 3]).var().reshape(-1).tolist()),
        )
    )


if __name__ == "__main__":
    total = sum(batch.sum().item() for batch in DataLoader(Squares(), batch_size=2, num_workers=2))
    assert total == 140.0, total
    for method in ("spawn", "fork"):
        context = mp.get_context(method)
        queue = context.Queue()
        process = context.Process(target=work, args=(3, queue))
        process.start()
        assert queue.get(timeout=120) == (3, "2.15.0", 2, (2.0,))
        process.join()
        assert process.exitcode == 0
    print("done")
