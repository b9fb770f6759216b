# SPDX-License-Identifier: Apache-2.0
"""Predict clicks with a wide and deep network whose embeddings lie on parameter servers.

    tenon run -n 2 --servers 2 wide_and_deep.py
    tenon run -n 2 --servers 2 --max-restarts 3 wide_and_deep.py --folder run --mode async

Impressions are drawn at random: a user, an item and a context, of a hundred thousand ids each, of which few are frequent.
Workers share the dense part of the network as data parallel ranks, and read and update the rows of the ids in their part of
a batch. The exit status is 1 if the area under the curve on impressions of another day is less than 0.7.
"""

from __future__ import annotations

import argparse
import sys

import tenon
import tenon.distributed as dist
from tenon import nn, optim
from tenon.distributed import ps

FIELDS, IDS, DIM, BATCH = 3, 100_000, 8, 256
REQUIRED_AUC = 0.7


def impressions(day: int, count: int) -> tuple:
    """Ids [count, FIELDS] and clicks [count]: the same for all who draw them."""
    generator = tenon.Generator(seed=1000 + day)
    skewed = tenon.rand([count, FIELDS], generator=generator).pow(6.0)
    ids = (skewed * IDS).to(tenon.int64) + tenon.arange(FIELDS) * IDS
    taste = (ids.to(tenon.float32) * 12.9898).sin().sum(1)  # what an id adds, whenever it is seen
    chance = tenon.sigmoid(2.0 * taste - 0.5)
    clicks = (tenon.rand([count], generator=generator) < chance).to(tenon.float32)
    return ids, clicks


class WideAndDeep(nn.Module):
    """A weight for each id, and a network over what ids stand for."""

    def __init__(self, wide: ps.Table, deep: ps.Table) -> None:
        self.wide = ps.DistributedEmbedding(1, wide)
        self.deep = ps.DistributedEmbedding(DIM, deep)
        self.network = nn.Sequential(
            nn.Flatten(), nn.Linear(FIELDS * DIM, 32), nn.ReLU(), nn.Linear(32, 1)
        )

    def forward(self, ids):
        return self.wide(ids).sum(1).squeeze(1) + self.network(self.deep(ids)).squeeze(1)

    def prefetch(self, ids) -> None:
        self.wide.prefetch(ids)
        self.deep.prefetch(ids)


def area_under_curve(scores, clicks) -> float:
    """How often an impression with a click has a higher score than one without."""
    order = tenon.argsort(scores)
    ranks = tenon.empty_like(scores)
    tenon.index_copy(ranks, 0, order, tenon.arange(scores.numel()).to(tenon.float32) + 1, out=ranks)
    clicked = clicks.sum().item()
    above = (ranks * clicks).sum().item() - clicked * (clicked + 1) / 2
    return above / (clicked * (clicks.numel() - clicked))


def work(options: argparse.Namespace) -> int:
    tenon.manual_seed(0)
    job = ps.init()
    dist.init_process_group()
    made = {"mode": options.mode, "staleness": 4 if options.mode == "async" else None}
    wide = ps.Table("wide", 1, optim.Adagrad, lr=0.1, initial_range=0.0, **made)
    deep = ps.Table("deep", DIM, optim.Adagrad, lr=0.1, initial_range=0.1, **made)
    model = WideAndDeep(wide, deep)
    parallel = dist.DistributedDataParallel(model)
    optimizer = optim.AdamW(model.parameters(), lr=1e-2)
    for day in range(options.days):
        ids, clicks = impressions(day, options.steps * BATCH * job.workers)
        ids, clicks = (
            x.reshape([options.steps, job.workers, BATCH, -1])[:, job.worker] for x in (ids, clicks)
        )
        total = 0.0
        for step in range(options.steps):
            loss = nn.functional.binary_cross_entropy_with_logits(
                parallel(ids[step]), clicks[step].reshape([-1])
            )
            if step + 1 < options.steps:
                model.prefetch(ids[step + 1])
            optimizer.zero_grad()
            loss.backward()  # pushes the gradients of rows
            optimizer.step()
            total += loss.item()
        print(f"day {day}: loss {total / options.steps:.4f}", flush=True)
        if job.worker == 0:
            deep.day_end()
    model.eval()
    ids, clicks = impressions(1000, 4096)
    with tenon.no_grad():
        area = area_under_curve(model(ids), clicks)
    if job.worker == 0:
        counters = deep.counters()
        print(
            f"area under the curve {area:.3f}, {counters['rows']} rows on {job.servers} servers",
            flush=True,
        )
    dist.destroy_process_group()
    ps.close()
    return int(area < REQUIRED_AUC)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--days", type=int, default=3)
    parser.add_argument("--steps", type=int, default=60, help="in a day")
    parser.add_argument("--mode", choices=("sync", "async", "geo"), default="sync")
    parser.add_argument(
        "--folder", help="where servers keep what they took; default: in memory alone"
    )
    parser.add_argument("--quick", action="store_true", help="one short day")
    options = parser.parse_args()
    if options.quick:
        options.days, options.steps = 2, 25
    if ps.is_server():
        ps.serve(options.folder)
        return 0
    return work(options)


if __name__ == "__main__":
    sys.exit(main())
