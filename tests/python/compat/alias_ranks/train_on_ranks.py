# SPDX-License-Identifier: Apache-2.0
"""A training script of several ranks as users of PyTorch write it: by a launcher's variables, or by processes of its own.

It runs with PyTorch, too, and prints the same losses there: no number is drawn.
"""

import argparse
import os
import socket

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler


def numbers(*shape, phase=0.0):
    count = torch.Size(shape).numel()
    return torch.sin(torch.arange(count, dtype=torch.float32) * 0.7 + phase).view(*shape)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 4, 3, padding=1)
        self.norm = nn.BatchNorm2d(4)
        self.fc = nn.Linear(4 * 16, 3)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.norm(self.conv(x))), 2)
        return self.fc(x.view(x.size(0), -1))


def make(rank):
    """Ranks differ, until DDP gives them what rank 0 has."""
    model = Net()
    with torch.no_grad():
        for index, p in enumerate(model.parameters()):
            p.copy_(numbers(*p.shape, phase=index + rank) * 0.3)
    return model


def reduce_mean(tensor):
    total = tensor.clone()
    dist.all_reduce(total, op=dist.ReduceOp.SUM)
    return total / dist.get_world_size()


def train(rank, world_size, args):
    dist.init_process_group(backend="gloo", init_method="env://", rank=rank, world_size=world_size)
    assert (dist.get_rank(), dist.get_world_size()) == (rank, world_size) and dist.is_initialized()
    data = TensorDataset(numbers(44, 1, 8, 8), torch.arange(44) % 3)
    sampler = DistributedSampler(data, shuffle=False)
    loader = DataLoader(data, batch_size=8, sampler=sampler, num_workers=0)
    model = DDP(make(rank), find_unused_parameters=False)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.2, momentum=0.9)
    losses = []
    for epoch in range(args.epochs):
        sampler.set_epoch(epoch)
        model.train()
        for step, (x, y) in enumerate(loader):
            optimizer.zero_grad()
            if step == 0:  # two parts of one step
                with model.no_sync():
                    F.cross_entropy(model(x[:4]), y[:4]).backward()
            loss = F.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
            losses.append(reduce_mean(loss.detach()).item())
        dist.barrier()
    gathered = [torch.zeros(3) for _ in range(world_size)]
    dist.all_gather(gathered, model.module.fc.bias.detach())
    assert all(torch.equal(each, gathered[0]) for each in gathered)
    told = [None] * world_size
    dist.all_gather_object(told, {"rank": rank, "samples": len(sampler)})
    assert [each["rank"] for each in told] == list(range(world_size))
    best = torch.tensor([min(losses)]) if rank == 0 else torch.zeros(1)
    dist.broadcast(best, src=0)
    assert best.item() > 0 and list(model.state_dict())[0] == "module.conv.weight"
    if rank == 0:
        print("losses", *(f"{each:.8f}" for each in losses), flush=True)
    dist.destroy_process_group()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=3)
    args = parser.parse_args()
    if "RANK" in os.environ:
        train(int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"]), args)
        return
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(free.getsockname()[1]))
    mp.spawn(train, args=(2, args), nprocs=2, join=True)


if __name__ == "__main__":
    main()
