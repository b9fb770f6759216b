# SPDX-License-Identifier: Apache-2.0
"""Hooks of gradients: what travels in the place of the mean, and how far results are from it."""

import numpy as np
import pytest
import tenon
import tenon.distributed as dist
from tenon import nn, optim
from tenon.distributed import comm_hooks
from tenon.distributed.futures import Future

X = np.random.default_rng(0).normal(size=(6, 8, 12)).astype("f4")
Y = np.random.default_rng(1).normal(size=(6, 8, 10)).astype("f4")


def in_ranks(size, work, *args):
    with dist.local(size, timeout=30.0) as ranks:
        return ranks.run(work, *args)


def make_model():
    tenon.manual_seed(1)
    return nn.Sequential(nn.Linear(12, 16), nn.GELU(), nn.Linear(16, 10))


def loss_of(model, step, rank, size):
    own = slice(8 * rank // size, 8 * (rank + 1) // size)
    return ((model(tenon.tensor(X[step][own])) - tenon.tensor(Y[step][own])) ** 2).mean()


def gradients(make_hook, passes=1, bucket=25.0, compiles=False):
    """Of the last of these passes, and what a rank sent in it."""
    rank, size = dist.get_rank(), dist.get_world_size()
    model = dist.DistributedDataParallel(make_model(), bucket_cap_mb=bucket)
    if make_hook is not None:
        model.register_comm_hook(*make_hook())

    def step(number):
        model.zero_grad()
        loss_of(model, number, rank, size).backward()

    sent = 0
    for number in range(passes):
        sent = -dist.world().counters()["bytes_sent"]
        step(number)
        sent += dist.world().counters()["bytes_sent"]
    return {name: p.grad.numpy().copy() for name, p in model.module.named_parameters()}, sent


NUMBERS = 12 * 16 + 16 + 16 * 10 + 10


@pytest.mark.parametrize("bucket", [25.0, 1e-4])
@pytest.mark.parametrize(
    "hook, size, near",
    [
        (comm_hooks.allreduce_hook, 4, 0),
        (comm_hooks.fp16_compress_hook, 2, 2e-3),
        (comm_hooks.bf16_compress_hook, 2, 2e-2),
        (comm_hooks.fp16_compress_wrapper(comm_hooks.allreduce_hook), 2, 2e-3),
        (comm_hooks.bf16_compress_wrapper(comm_hooks.allreduce_hook), 2, 2e-2),
    ],
)
def test_hooks_of_one_call(hook, size, near, bucket):
    """`size` is that of a number on its way."""
    want = in_ranks(2, gradients, None, 2, bucket)
    got = in_ranks(2, gradients, lambda: (None, hook), 2, bucket)
    for (grads, sent), (whole, _) in zip(got, want, strict=True):
        for name, grad in whole.items():
            assert grads[name].dtype == grad.dtype
            np.testing.assert_allclose(grads[name], grad, rtol=0, atol=near)
        # Each rank sends a half to be added up, and a half of the sums; small calls all of it at once.
        assert sent == size * NUMBERS


def test_a_hook_of_ones_own():
    """It gets whole buckets of one dtype with their parameters, in order; what it returns may be a tensor, a Work or a Future."""
    seen = []

    def hook(state, bucket):
        assert state == "state" and bucket.buffer().ndim == 1
        shapes = [tuple(param.shape) for param in bucket.parameters()]
        assert shapes == [tuple(grad.shape) for grad in bucket.gradients()]
        if dist.get_rank() == 0:
            seen.append((bucket.index(), bucket.is_last(), shapes))
        work = dist.all_reduce(bucket.buffer(), async_op=True)
        if bucket.index() == 0:
            return work.get_future().then(lambda future: future.value()[0] / 2)
        if bucket.index() == 1:
            bucket.buffer().copy_(work.result() / 2)
            done = Future()
            done.set_result(bucket.buffer())
            return done
        work.wait()
        return bucket.buffer() / 2

    want = in_ranks(2, gradients, None, 1, 1e-5)
    got = in_ranks(2, gradients, lambda: ("state", hook), 1, 1e-5)
    for (grads, _), (whole, _) in zip(got, want, strict=True):
        for name, grad in whole.items():
            np.testing.assert_array_equal(grads[name], grad)
    assert [entry[:2] for entry in seen] == [(0, False), (1, False), (2, False), (3, True)]
    assert seen[0][2] == [(10,)] and seen[3][2] == [(16, 12)]


def test_noop_keeps_gradients_apart():
    got = in_ranks(2, gradients, lambda: (None, comm_hooks.noop_hook), 2)
    assert (got[0][0]["0.weight"] != got[1][0]["0.weight"]).any() and got[0][1] == 0


def test_power_sgd_of_full_rank_is_the_mean():
    """A matrix of rank 10 is the product of two of 10 columns; what is not worth it travels as it is."""

    def make():
        return comm_hooks.PowerSGDState(None, 10, 0, 0.1), comm_hooks.powerSGD_hook

    want = in_ranks(2, gradients, None, 3)
    for (grads, _), (whole, _) in zip(in_ranks(2, gradients, make, 3), want, strict=True):
        for name in ("2.weight", "0.bias", "2.bias"):
            np.testing.assert_allclose(grads[name], whole[name], rtol=1e-4, atol=1e-6)


def test_power_sgd_learns_with_a_part_of_the_bytes():
    def train(make_hook):
        rank, size = dist.get_rank(), dist.get_world_size()
        model = dist.DistributedDataParallel(make_model())
        if make_hook is not None:
            model.register_comm_hook(*make_hook())
        optimizer = optim.SGD(model.parameters(), lr=0.1)
        sent, losses = 0, []
        for step in range(60):
            optimizer.zero_grad()
            loss = loss_of(model, step % 2, rank, size)
            sent = -dist.world().counters()["bytes_sent"]
            loss.backward()
            sent += dist.world().counters()["bytes_sent"]
            optimizer.step()
            losses.append(dist.all_reduce(loss.detach().reshape([1]), "mean").item())
        return losses, sent, [p.detach().numpy().tobytes() for p in model.parameters()]

    def make():
        return comm_hooks.PowerSGDState(None, 2, 2), comm_hooks.powerSGD_hook

    (whole, all_bytes, _), *_ = in_ranks(2, train, None)
    (losses, sent, bits), (_, _, other) = in_ranks(2, train, make)
    assert bits == other  # ranks agree
    assert losses[:3] == whole[:3]  # the first passes send gradients as they are
    # Two columns lose much of a step, which later steps make good: without feedback the loss stays above.
    assert losses[-1] < 0.8 * losses[0] and losses[-1] < 1.2 * whole[-1], (losses, whole)
    assert sent == 4 * (2 * (12 + 16) + 2 * (16 + 10) + 16 + 10) < all_bytes / 2


def test_what_is_refused():
    def work():
        model = dist.DistributedDataParallel(make_model())
        with pytest.raises(TypeError, match="expected a callable hook"):
            model.register_comm_hook(None, 3)
        model.register_comm_hook(None, lambda state, bucket: bucket.buffer()[1:])
        with pytest.raises(RuntimeError, match="expected no hook of gradients, got a second one"):
            model.register_comm_hook(None, comm_hooks.allreduce_hook)
        with pytest.raises(ValueError, match=f"whose result is a tensor of {NUMBERS} numbers"):
            loss_of(model, 0, 0, 1).backward()
        other = dist.DistributedDataParallel(make_model())
        other.register_comm_hook(None, lambda state, bucket: None)
        with pytest.raises(
            TypeError, match="expected a tensor, a Work or a Future of one, got None"
        ):
            loss_of(other, 0, 0, 1).backward()
        with pytest.raises(ValueError, match="expected matrix_approximation_rank >= 1, got 0"):
            comm_hooks.PowerSGDState(None, 0)

    in_ranks(1, work)


def test_futures():
    future = Future()
    assert not future.done()
    later = future.then(lambda f: f.value() + 1)
    with pytest.raises(RuntimeError, match="expected a value, got none yet"):
        future.wait()
    future.set_result(2)
    assert future.done() and later.wait() == 3 and later.value() == 3
    failed = Future()
    failed.set_exception(KeyError("x"))
    with pytest.raises(KeyError):
        failed.wait()
    with pytest.raises(KeyError):
        failed.then(lambda f: f.value()).wait()
    assert failed.then(lambda f: 5).wait() == 5
