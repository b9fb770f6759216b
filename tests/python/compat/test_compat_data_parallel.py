# SPDX-License-Identifier: Apache-2.0
"""Models on several ranks by PyTorch's names: DistributedDataParallel, fully_shard, hooks, checkpoints."""

import pytest
import tenon
import tenon.distributed as dist
from tenon import nn
from tenon.compat import torch
from tenon.compat.torch.distributed import checkpoint as dcp
from tenon.compat.torch.distributed.algorithms import ddp_comm_hooks
from tenon.compat.torch.distributed.fsdp import (
    CPUOffloadPolicy,
    FSDPModule,
    FullyShardedDataParallel,
    MixedPrecisionPolicy,
    fully_shard,
)
from tenon.compat.torch.distributed.optim import ZeroRedundancyOptimizer
from tenon.compat.torch.nn.parallel import DistributedDataParallel as DDP


def in_ranks(size, work, *args):
    with dist.local(size, timeout=20.0) as ranks:
        return ranks.run(work, *args)


def make_model():
    tenon.manual_seed(1)
    return nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 2))


def rows(step=0):
    return tenon.arange(8.0).reshape([2, 4]) * (dist.get_rank() + 1 + step) - 3


def test_a_training_script():
    def work():
        rank = dist.get_rank()
        model = DDP(make_model(), device_ids=None, gradient_as_bucket_view=False)
        model.register_comm_hook(None, ddp_comm_hooks.default_hooks.fp16_compress_hook)
        optimizer = ZeroRedundancyOptimizer(model.parameters(), torch.optim.AdamW, lr=1e-2)
        with model.join():
            for step in range(2 + rank):
                optimizer.zero_grad()
                model(rows(step)).sum().backward()
                if step < 2:
                    optimizer.step()
        optimizer.consolidate_state_dict(to=0)
        return [p.detach().numpy().tobytes() for p in model.parameters()]

    first, second = in_ranks(2, work)
    assert first == second


def test_a_hook_as_scripts_write_it():
    """Sums and divides by itself, as PyTorch's documentation has it."""

    def hook(state, bucket):
        work = torch.distributed.all_reduce(bucket.buffer(), async_op=True)
        return work.get_future().then(lambda future: future.value()[0] / dist.get_world_size())

    def own(state, bucket):
        future = torch.futures.Future()
        future.set_result(bucket.buffer())
        return future

    def work():
        grads = []
        for each in (hook, None, own):
            model = torch.nn.parallel.DistributedDataParallel(make_model())
            if each is not None:
                model.register_comm_hook(state=None, hook=each)
            model(rows()).sum().backward()
            grads.append(model.module[0].weight.grad.tolist())
        assert grads[0] == grads[1] != grads[2]

    in_ranks(2, work)
    futures = [torch.futures.Future() for _ in range(2)]
    for number, future in enumerate(futures):
        future.set_result(number)
    assert torch.futures.wait_all(futures) == [0, 1]
    assert [each.value() for each in torch.futures.collect_all(futures).wait()] == [0, 1]


def test_sharded_models(tmp_path):
    def work():
        mesh = torch.distributed.init_device_mesh("cpu", (2,))
        model = make_model()
        for layer in (model[0], model[2]):
            fully_shard(
                layer, mesh=mesh, mp_policy=MixedPrecisionPolicy(torch.bfloat16, torch.float32)
            )
        assert isinstance(model[0], FSDPModule)
        model[0].set_requires_gradient_sync(True)
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
        model(rows()).sum().backward()
        optimizer.step()
        state = {"model": model, "optimizer": optimizer, "step": 3}
        dcp.save(state, checkpoint_id=tmp_path / "a")
        dcp.async_save(state, checkpoint_id=tmp_path / "b").wait()
        with tenon.no_grad():
            kept = [p.detach().clone() for p in model.parameters()]
            for p in model.parameters():
                p.zero_()
        for name in "ab":
            loaded = {"model": model, "step": 0}
            dcp.load(loaded, checkpoint_id=tmp_path / name)
            assert loaded["step"] == 3
            for p, before in zip(model.parameters(), kept, strict=True):
                assert p.tolist() == before.tolist()

    in_ranks(2, work)


def test_what_is_refused():
    def work():
        model = make_model()
        for text, call in (
            (
                "gradient_as_bucket_view to be left out",
                lambda: DDP(model, gradient_as_bucket_view=True),
            ),
            ("static_graph to be left out", lambda: DDP(model, static_graph=True)),
            ("device_ids to be the one device of the module", lambda: DDP(model, device_ids=[3])),
            (
                "offload_policy to be left out",
                lambda: fully_shard(model, offload_policy=CPUOffloadPolicy()),
            ),
            (
                "output_dtype to be left out",
                lambda: fully_shard(model, mp_policy=MixedPrecisionPolicy(output_dtype=1)),
            ),
            ("expected a module, got list", lambda: fully_shard([model])),
            ("True or False, got 2", lambda: fully_shard(model, reshard_after_forward=2)),
            (
                "fully_shard\\(module\\), which took its place",
                lambda: FullyShardedDataParallel(model),
            ),
            (
                "overlap_with_ddp to be left out",
                lambda: ZeroRedundancyOptimizer([], None, overlap_with_ddp=True),
            ),
            ("planner to be left out", lambda: dcp.save({}, checkpoint_id="x", planner=1)),
        ):
            with pytest.raises(NotImplementedError, match=text):
                call()
        with pytest.raises(ValueError, match="expected a folder as checkpoint_id, got None"):
            dcp.save({})
        with pytest.raises(ValueError, match="one of process_group and device_mesh"):
            DDP(model, process_group=dist.world(), device_mesh=dist.init_device_mesh("cpu", (1,)))

    in_ranks(1, work)
