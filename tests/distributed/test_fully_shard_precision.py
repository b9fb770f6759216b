# SPDX-License-Identifier: Apache-2.0
"""ZeRO stage 3 whose whole parameters are of another dtype, that keeps gradients of micro-batches, and computes blocks again."""

import numpy as np
import pytest
import tenon
import tenon.distributed as dist
from tenon import nn, optim
from tenon.utils.checkpoint import checkpoint

X = np.random.default_rng(0).normal(size=(4, 8, 6)).astype("f4")


def in_ranks(size, work, *args):
    with dist.local(size, timeout=30.0) as ranks:
        return ranks.run(work, *args)


class Net(nn.Module):
    def __init__(self, again=False):
        super().__init__()
        tenon.manual_seed(1)
        self.blocks = nn.ModuleList([nn.Sequential(nn.Linear(6, 6), nn.GELU()) for _ in range(3)])
        self.head = nn.Linear(6, 2)
        self.again = again

    def forward(self, x):
        for block in self.blocks:
            x = checkpoint(block, x) if self.again else block(x)
        return self.head(x)


def shard(model, **options):
    for block in model.blocks:
        dist.fully_shard(block, **options)
    return dist.fully_shard(model, **options)


def own(step):
    rank, size = dist.get_rank(), dist.get_world_size()
    return tenon.tensor(X[step][8 * rank // size : 8 * (rank + 1) // size])


def whole(model):
    with dist.whole_parameters(model):
        found = {}
        for path, module in model.named_modules():
            for name, value in vars(module).items():
                if isinstance(value, tenon.Tensor):
                    found[f"{path}.{name}"] = value.detach().float().numpy().copy()
        return found


def train(model, steps=4):
    optimizer = optim.SGD(model.parameters(), lr=0.05)
    for step in range(steps):
        optimizer.zero_grad()
        model(own(step)).float().square().mean().backward()
        optimizer.step()


@pytest.mark.parametrize("reduce_dtype", [None, tenon.float32])
def test_bfloat16_on_the_way(reduce_dtype):
    """Rows and updates are float32, whole parameters and activations bfloat16, with half the bytes sent."""

    def work(dtype):
        model = shard(Net(), dtype=dtype, reduce_dtype=reduce_dtype if dtype else None)
        seen = []
        model.head.register_forward_hook(
            lambda module, args, out: seen.append((module.weight.dtype, args[0].dtype, out.dtype))
        )
        before = dist.world().counters()["bytes_sent"]
        train(model)
        sent = dist.world().counters()["bytes_sent"] - before
        assert set(seen) == {(dtype or tenon.float32,) * 3}
        assert {p.dtype for p in model.parameters()} == {tenon.float32}
        assert {p.grad.dtype for p in model.parameters()} == {tenon.float32}
        return whole(model), sent

    want, got = in_ranks(2, work, None), in_ranks(2, work, tenon.bfloat16)
    for (weights, sent), (close, all_bytes) in zip(got, want, strict=True):
        for name, value in close.items():
            np.testing.assert_allclose(weights[name], value, atol=2e-2)
        # Of three times the weights, two parts are gathered and one is gradients.
        assert sent == all_bytes / 2 if reduce_dtype is None else sent < 0.75 * all_bytes


def test_gradients_of_micro_batches_travel_once():
    def work(parts, syncs):
        model = shard(Net())
        optimizer = optim.SGD(model.parameters(), lr=0.05)
        sent = 0
        for step in range(3):
            optimizer.zero_grad()
            x = own(step)
            for part in range(parts):
                model.set_requires_gradient_sync(syncs or part == parts - 1)
                (model(x[part::parts]).square().mean() / parts).backward()
                if not syncs and part < parts - 1:
                    assert all(p.grad is None for p in model.parameters())
            calls = dist.world().counters()["bytes_sent"]
            optimizer.step()
            sent = calls
        return whole(model), sent

    once, each, plain = (in_ranks(2, work, *how) for how in ((2, False), (2, True), (1, True)))
    for (got, sent), (also, more), (want, least) in zip(once, each, plain, strict=True):
        assert least < sent < more
        for name, value in want.items():
            np.testing.assert_allclose(got[name], value, rtol=1e-4, atol=1e-6)
            np.testing.assert_allclose(also[name], value, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("dtype", [None, tenon.bfloat16])
def test_blocks_that_are_computed_again(dtype):
    def work(again):
        model = shard(Net(again), dtype=dtype)
        train(model)
        return whole(model)

    for got, want in zip(in_ranks(2, work, True), in_ranks(2, work, False), strict=True):
        for name, value in want.items():
            np.testing.assert_array_equal(got[name], value)


def test_autocast():
    """An autocast region around a sharded model is that of a whole one."""

    def work(wrap):
        model = wrap(Net())
        optimizer = optim.SGD(model.parameters(), lr=0.05)
        for step in range(3):
            optimizer.zero_grad()
            with tenon.amp.autocast(tenon.bfloat16):
                loss = model(own(step)).float().square().mean()
            loss.backward()
            optimizer.step()
        return whole(getattr(model, "module", model))

    pairs = zip(in_ranks(2, work, shard), in_ranks(2, work, dist.DistributedDataParallel))
    for got, want in pairs:
        for name, value in want.items():
            np.testing.assert_array_equal(got[name], value)


def test_what_is_refused():
    def work():
        with pytest.raises(TypeError, match="expected reduce_dtype to be a floating-point dtype"):
            dist.fully_shard(nn.Linear(2, 2), reduce_dtype=tenon.int32)

    in_ranks(1, work)
