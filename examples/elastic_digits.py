# SPDX-License-Identifier: Apache-2.0
"""Train a network on handwritten digits in a job that goes on when a rank dies, with fewer ranks if need be.

    tenon run -n 2:4 --max-restarts 3 elastic_digits.py --folder run
    tenon run -n 2:4 --max-restarts 3 elastic_digits.py --folder run --kill 30

The job begins on four ranks, whose optimizer is divided over them (ZeRO), and saves every tenth step while it goes on
computing. `--kill 30` has the last rank kill itself behind step 30. `tenon run` then starts three ranks, which load the last
checkpoint, written by four, and read on where it was: each step sees the same 48 images on any number of ranks. A job that was
ended as a whole goes on likewise when it is started again. The exit status is 1 if fewer than 95 % of the images that are left
for testing are recognised.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import tempfile

import tenon
import tenon.distributed as dist
from tenon import nn
from tenon.data import TensorDataset, random_split
from tenon.distributed import checkpoint
from tenon.optim import AdamW

GLOBAL_BATCH = 48  # 1, 2, 3 and 4 ranks divide it
SAVE_EVERY = 10
REQUIRED_ACCURACY = 0.95


def load_data(seed: int) -> tuple:
    from sklearn.datasets import load_digits

    digits = load_digits()
    images = tenon.tensor(digits.images / 16.0, dtype=tenon.float32).flatten(1)
    labels = tenon.tensor(digits.target, dtype=tenon.int64)
    return random_split(TensorDataset(images, labels), [0.8, 0.2], seed=seed)


def perceptron() -> nn.Module:
    return nn.Sequential(nn.Linear(64, 128), nn.GELU(), nn.Linear(128, 10))


def train(dataset, options: argparse.Namespace) -> nn.Module:
    rank, size = dist.get_rank(), dist.get_world_size()
    model = dist.DistributedDataParallel(perceptron())
    optimizer = dist.ZeroRedundancyOptimizer(model.parameters(), AdamW, lr=3e-3)
    batches = dist.DistributedBatchSampler(dataset, GLOBAL_BATCH // size, shuffle=True)
    saves = checkpoint.Steps(options.folder)
    state = {"model": model, "optimizer": optimizer, "epoch": 0, "batch": 0}
    step, state = saves.load(state)  # step 0, and the state as it is, where there is none
    epoch, batch = state["epoch"], state["batch"]
    if rank == 0:
        print(f"{size} ranks begin behind step {step}", flush=True)
    while epoch < options.epochs:
        batches.set_epoch(epoch, start=batch)
        for rows in batches:
            images, labels = (tenon.stack([dataset[i][k] for i in rows]) for k in (0, 1))
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(images), labels).backward()
            optimizer.step()
            step, batch = step + 1, batch + 1
            if step % SAVE_EVERY == 0:
                state = {"model": model, "optimizer": optimizer, "epoch": epoch, "batch": batch}
                saves.save(step, state, asynchronous=True)
            # A machine that fails; only once, or the job would never end.
            if step == options.kill and rank == size - 1 and os.environ.get("TENON_ATTEMPT") == "0":
                os.kill(os.getpid(), signal.SIGKILL)
        epoch, batch = epoch + 1, 0
    saves.wait()
    return model.module


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", help="of checkpoints; all ranks see it")
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--kill", type=int, default=-1, metavar="STEP")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--quick", action="store_true", help="three epochs")
    options = parser.parse_args(arguments)
    options.epochs = 3 if options.quick else options.epochs
    dist.init_process_group(timeout=30.0)
    if options.folder is None:
        if dist.get_world_size() > 1:
            raise SystemExit("expected --folder, which all ranks see, got none")
        options.folder = tempfile.mkdtemp(prefix="elastic-digits-")
    tenon.manual_seed(options.seed)
    training, test = load_data(options.seed)
    model = train(training, options)
    images, labels = (tenon.stack([test[i][k] for i in range(len(test))]) for k in (0, 1))
    with tenon.no_grad():  # all ranks have the same weights, and find the same
        accuracy = (model(images).argmax(axis=1) == labels).to(tenon.float32).mean().item()
    if dist.get_rank() == 0:
        print(f"accuracy on {len(test)} images, with {dist.get_world_size()} ranks: {accuracy:.2%}")
    return 0 if accuracy >= (0.85 if options.quick else REQUIRED_ACCURACY) else 1


if __name__ == "__main__":
    sys.exit(main())
