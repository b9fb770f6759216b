# SPDX-License-Identifier: Apache-2.0
"""Steps of data parallel training as programs: what DistributedDataParallel's hooks send is a step of each rank's program."""

import numpy as np
import pytest
import tenon
import tenon.distributed as dist
from tenon import nn, optim
from tenon.distributed import comm_hooks

STEPS = 6
X = np.random.default_rng(0).normal(size=(STEPS, 8, 5)).astype("f4")
Y = np.random.default_rng(1).normal(size=(STEPS, 8, 3)).astype("f4")


def in_ranks(size, work, *args):
    with dist.local(size, timeout=30.0) as ranks:
        return ranks.run(work, *args)


def make_model():
    tenon.manual_seed(1)
    return nn.Sequential(nn.Linear(5, 8), nn.BatchNorm1d(8), nn.GELU(), nn.Linear(8, 3))


def own(data, step):
    rank, size = dist.get_rank(), dist.get_world_size()
    return tenon.tensor(data[step][8 * rank // size : 8 * (rank + 1) // size])


def train(compiles, make=optim.AdamW, hook=None, clip=False, **options):
    """Losses, weights, gradients and bytes that were sent in the last step; and the compiled function."""
    model = dist.DistributedDataParallel(make_model(), **options)
    if hook is not None:
        model.register_comm_hook(None, hook)
    optimizer = make(model.parameters(), lr=0.05)

    def step(x, y):
        optimizer.zero_grad()
        loss = (model(x) - y).square().mean()
        loss.backward()
        if clip:
            dist.clip_grad_norm_(model.parameters(), 0.5)
        optimizer.step()
        return loss

    called, losses, sent = tenon.compile(step) if compiles else step, [], 0
    for number in range(STEPS):
        before = dist.world().counters()["bytes_sent"]
        losses.append(called(own(X, number), own(Y, number)).item())
        sent = dist.world().counters()["bytes_sent"] - before
    weights = {name: x.numpy().tobytes() for name, x in model.state_dict().items()}
    grads = {name: p.grad.numpy().tobytes() for name, p in model.named_parameters()}
    return (losses, weights, grads, sent), called


@pytest.mark.parametrize("make", [optim.SGD, optim.AdamW])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"bucket_cap_mb": 1e-4},
        {"broadcast_buffers": False},
        {"clip": True},
        {"hook": comm_hooks.bf16_compress_hook},
    ],
    ids=lambda options: "-".join(options) or "defaults",
)
def test_bits_of_the_function(make, options):
    """Buckets, buffers of the first rank, clipped norms and what travels as bfloat16."""

    def work(compiles):
        told, called = train(compiles, make, **options)
        if compiles:
            assert len(called.programs) == 1, called.explain()
            text = str(called.programs[0])
            assert "all_reduce" in text
            assert ("broadcast" in text) == options.get("broadcast_buffers", True)
        return told

    for got, want in zip(in_ranks(2, work, True), in_ranks(2, work, False), strict=True):
        assert got == want


def test_backward_passes_that_stay_calls():
    """Which parameters have gradients is known behind a pass; PowerSGD keeps a state of its own. What comes before is a program."""

    def work(compiles, options):
        told, called = train(compiles, **options)
        if compiles:
            # The second one has gradients that the calls between have assigned as arguments.
            assert 1 <= len(called.programs) <= 2
            assert "all_reduce" not in "".join(map(str, called.programs))
            assert "which Python runs, because of ProcessGroup.all_reduce()" in called.explain()
        return told

    for options in (
        {"find_unused_parameters": True},
        {"hook": lambda state, bucket: dist.all_reduce(bucket.buffer(), "mean", async_op=True)},
    ):
        assert in_ranks(2, work, True, options) == in_ranks(2, work, False, options)


def test_no_sync_in_a_program():
    """Micro-batches inside of the function: gradients travel once."""

    def work(compiles):
        model = dist.DistributedDataParallel(make_model(), broadcast_buffers=False)
        optimizer = optim.SGD(model.parameters(), lr=0.05)

        def step(x, y):
            optimizer.zero_grad()
            with model.no_sync():
                (model(x[:2]) - y[:2]).square().mean().backward()
            loss = (model(x[2:]) - y[2:]).square().mean()
            loss.backward()
            optimizer.step()
            return loss

        called = tenon.compile(step) if compiles else step
        losses = [called(own(X, n), own(Y, n)).item() for n in range(STEPS)]
        if compiles:
            assert len(called.programs) == 1, called.explain()
        return losses, [p.detach().numpy().tobytes() for p in model.parameters()]

    assert in_ranks(2, work, True) == in_ranks(2, work, False)


def test_a_compiled_model_with_a_step_around_it():
    """The backward pass is outside of the program: hooks run as they do without one."""

    def work(compiles):
        model = make_model()
        called = tenon.compile(model) if compiles else model
        wrapped = dist.DistributedDataParallel(model, broadcast_buffers=False)
        optimizer = optim.SGD(model.parameters(), lr=0.05)
        losses = []
        for n in range(STEPS):
            optimizer.zero_grad()
            loss = (called(own(X, n)) - own(Y, n)).square().mean()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        del wrapped
        return losses, [p.detach().numpy().tobytes() for p in model.parameters()]

    assert in_ranks(2, work, True) == in_ranks(2, work, False)
