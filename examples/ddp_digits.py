# SPDX-License-Identifier: Apache-2.0
"""Train a convolutional network on handwritten digits, with the batch divided over ranks.

    tenon run -n 2 ddp_digits.py
    python ddp_digits.py

Every rank has the whole network and reads its part of each global batch of 64 images. Whatever the number of ranks, a step
sees the same images. Each rank tests a part of the images that are left; the exit status is 1 if fewer than 97 % of these are
recognised.
"""

from __future__ import annotations

import argparse
import sys

import tenon
import tenon.distributed as dist
from tenon import nn
from tenon.data import DataLoader, TensorDataset, random_split
from tenon.optim import AdamW
from tenon.optim.lr_scheduler import CosineAnnealingLR

GLOBAL_BATCH = 64
REQUIRED_ACCURACY = 0.97


def load_data(seed: int) -> tuple:
    from sklearn.datasets import load_digits

    digits = load_digits()
    images = tenon.tensor(digits.images / 16.0, dtype=tenon.float32).unsqueeze(1)  # [n, 1, 8, 8]
    labels = tenon.tensor(digits.target, dtype=tenon.int64)
    return random_split(TensorDataset(images, labels), [0.8, 0.2], seed=seed)  # as on all ranks


def convnet() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1),
        nn.ReLU(),
        nn.Conv2d(16, 32, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Dropout(0.3),
        nn.Linear(32 * 4 * 4, 10),
    )


def train(model: dist.DistributedDataParallel, dataset, epochs: int, rate: float) -> None:
    batches = dist.DistributedBatchSampler(
        dataset, GLOBAL_BATCH // dist.get_world_size(), shuffle=True, drop_last=True
    )
    loader = DataLoader(dataset, batch_sampler=batches)
    optimizer = AdamW(model.parameters(), lr=rate)
    scheduler = CosineAnnealingLR(optimizer, epochs * len(loader))
    for epoch in range(epochs):
        batches.set_epoch(epoch)  # another order, the same on all ranks
        total = 0.0
        for images, labels in loader:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(images), labels)
            loss.backward()  # gradients are now means over the ranks
            optimizer.step()
            scheduler.step()
            total += loss.item()
        mean = dist.all_reduce(tenon.tensor([total / len(loader)]), "mean").item()
        if dist.get_rank() == 0:
            print(f"epoch {epoch + 1:2}/{epochs}: loss {mean:.4f}", flush=True)


def accuracy(model: dist.DistributedDataParallel, dataset) -> float:
    """Of all ranks together; each takes every n-th image, some one more than others."""
    model.eval()
    own = range(dist.get_rank(), len(dataset), dist.get_world_size())
    images, labels = (tenon.stack([dataset[i][k] for i in own]) for k in (0, 1))
    with tenon.no_grad():
        right = (model(images).argmax(axis=1) == labels).sum().item()
    told = dist.all_reduce(tenon.tensor([float(right), float(len(own))]))
    return told[0].item() / told[1].item()


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=12)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--quick", action="store_true", help="seconds instead of a minute")
    options = parser.parse_args(arguments)
    dist.init_process_group()  # reads what tenon run, torchrun, mpirun or srun has set
    if GLOBAL_BATCH % dist.get_world_size():
        raise SystemExit(
            f"expected a number of ranks that divides {GLOBAL_BATCH}, got {dist.get_world_size()}"
        )
    tenon.manual_seed(options.seed + dist.get_rank())  # ranks drop different elements
    training, test = load_data(options.seed)
    model = dist.DistributedDataParallel(convnet())  # from here on, the weights of rank 0
    train(model, training, 3 if options.quick else options.epochs, 5e-3)
    found = accuracy(model, test)
    if dist.get_rank() == 0:
        print(f"accuracy on {len(test)} images, with {dist.get_world_size()} ranks: {found:.2%}")
    return 0 if found >= (0.85 if options.quick else REQUIRED_ACCURACY) else 1


if __name__ == "__main__":
    sys.exit(main())
