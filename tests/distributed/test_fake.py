# SPDX-License-Identifier: Apache-2.0
"""Ranks that are not there: what one of them would send is what one that is there sends, and memory is that of its part."""

import functools
import gc

import pytest
import tenon
import tenon.distributed as dist
from tenon import nn, optim
from tenon.distributed import ColwiseParallel, RowwiseParallel

WIDTH = 48


def model_of(layers=4):
    tenon.manual_seed(0)
    return nn.Sequential(*[nn.Linear(WIDTH, WIDTH, bias=False) for _ in range(layers)])


def data_parallel(stage):
    model = model_of()
    called = dist.DistributedDataParallel(model) if stage in (0, 1) else model
    if stage in (1, 2):
        optimizer = dist.ZeroRedundancyOptimizer(model.parameters(), optim.AdamW, stage=stage)
    else:
        if stage == 3:
            for layer in model:
                dist.fully_shard(layer)
        optimizer = optim.AdamW(model.parameters())
    for _ in range(3):
        optimizer.zero_grad()
        called(tenon.ones([64, WIDTH], requires_grad=True)).square().mean().backward()
        optimizer.step()


def tensor_parallel():
    size = dist.get_world_size()
    mesh = dist.init_device_mesh("cpu", (2, size // 2), mesh_dim_names=("dp", "tp"))
    model = model_of(2)
    plan = {"0": ColwiseParallel(), "1": RowwiseParallel()}
    dist.parallelize_module(model, mesh["tp"], plan)
    called = dist.DistributedDataParallel(model, mesh.get_group("dp"))
    called(tenon.ones([64, WIDTH], requires_grad=True)).square().mean().backward()
    dist.clip_grad_norm_(model.parameters(), 1.0)
    return [mesh.get_group(0), mesh.get_group(1)]


def experts():
    layer = dist.MoELayer(
        nn.Linear(WIDTH, 4, bias=False), [nn.Linear(WIDTH, WIDTH) for _ in range(4)], k=4
    )
    layer(tenon.ones([64, WIDTH], requires_grad=True)).square().mean().backward()


def calls():
    """Each of them, small and large, in parts that are not equal, and to roots."""
    group = dist.world()
    group.all_reduce(tenon.ones([12_001]))
    for count in (8, 12_000, 12_004):
        x = tenon.ones([count])
        group.all_reduce(x), group.all_gather(x), group.reduce(x, 1), group.broadcast(x, 1)
        group.reduce_scatter(x), group.all_to_all(x), group.gather(x, 1)
        group.scatter(x if group.rank == 1 else None, 1, tenon.empty([count // group.size]))
        group.all_reduce(x, async_op=True).wait()
    group.barrier()


WORK = {
    "calls": calls,
    "tensor parallel": tensor_parallel,
    "experts": experts,
    **{f"stage {stage}": functools.partial(data_parallel, stage) for stage in range(4)},
}


@pytest.mark.parametrize("name", list(WORK))
def test_counters_are_those_of_ranks_that_are_there(name):
    def work():
        groups = [dist.world(), *(WORK[name]() or [])]
        told = [group.counters() for group in groups]
        return [sum(each[key] for each in told) for key in ("bytes_sent", "bytes_received")]

    with dist.local(4, timeout=30.0) as ranks:
        want = ranks.run(work)
    for rank in range(4):
        with dist.fake(4, rank):
            got = work()
        if name == "tensor parallel":
            # For each axis ranks tell each other two numbers, where their mesh is not known to all.
            got = [each + 2 * 3 * 16 for each in got]
        assert got == want[rank]


@pytest.mark.parametrize("size", [64, 1024])
def test_memory_and_volume_of_many_ranks(size):
    """float32 with Adam: 8 + 8 / n bytes a parameter in stage 1, and 3 (n - 1) / n W a step."""
    layers, width = 2, 1024
    total = layers * width * width
    gc.collect()
    with dist.fake(size, size - 1) as world:
        before = tenon.memory.stats()["current"]
        model = nn.Sequential(*[nn.Linear(width, width, bias=False) for _ in range(layers)])
        called = dist.DistributedDataParallel(model)
        optimizer = dist.ZeroRedundancyOptimizer(model.parameters(), optim.Adam, lr=1e-3)
        for _ in range(3):  # the first one agrees on an order
            optimizer.zero_grad()
            sent = world.counters()["bytes_sent"]
            called(tenon.ones([2, width])).sum().backward()
            optimizer.step()
        kept = (tenon.memory.stats()["current"] - before) / total
        sent = world.counters()["bytes_sent"] - sent
    assert kept == pytest.approx(8 + 8 / size, rel=0.03)
    assert sent == 3 * (size - 1) * 4 * total // size


def test_what_is_refused():
    with pytest.raises(ValueError, match="expected a world_size of 1 or more"):
        with dist.fake(4, 4):
            pass
    with dist.fake(4, 1) as world:
        assert (dist.get_rank(), dist.get_world_size()) == (1, 4)
        with pytest.raises(NotImplementedError, match="a message between two"):
            dist.send(tenon.ones([2]), 2)
        with pytest.raises(NotImplementedError, match=r"got split\(\), which asks the other ranks"):
            world.split(0)
        with pytest.raises(RuntimeError, match="that is no rank of another job"):
            with dist.fake(2):
                pass
        assert world.all_reduce(tenon.ones([2])).tolist() == [4.0, 4.0]
        assert world.part([0, 2]) is None and world.part([1, 2]).size == 2
    assert not dist.is_initialized()
