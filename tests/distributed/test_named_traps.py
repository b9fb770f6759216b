# SPDX-License-Identifier: Apache-2.0
"""Faults that libraries of distributed training have shipped, each with a test of its name: those that stand in no other
file of this folder, and the list of all."""

import gc
import pathlib
import re

import numpy as np
import pytest
import tenon
import tenon.distributed as dist
from tenon import nn, optim
from tenon.distributed import ColwiseParallel, Replicate, RowwiseParallel, Shard, checkpoint
from tenon.nn import functional as F

TRAPS = """partial_plus_number expert_gradient_over_batch_shards norm_counts_once_under_tp_ep divisor_is_not_world_size
cp_loss_scale dtype_in_the_plan_key killed_rank killed_store_host optimizer_state_other_n load_needs_a_shard uneven_mean
empty_shard bias_once frozen tied_over_stages short_last_batch unused_in_a_branch group_made_twice dropout_on_shards
mixed_dtypes_in_a_bucket half_overflows_before_mean composite_reads_a_wrapper program_replays_collectives
saved_hooks_under_zero3 dtype_differs reduction_differs count_differs_then_swaps skipped_call root_differs order_by_position
gradient_not_dropped half_sends_half_the_bytes""".split()

X = np.random.default_rng(0).normal(size=(8, 6)).astype("f4")
Y = np.random.default_rng(1).normal(size=(8, 6)).astype("f4")


def in_ranks(size, work, *args):
    with dist.local(size, timeout=30.0) as ranks:
        return ranks.run(work, *args)


def test_every_trap_has_a_test():
    folder = pathlib.Path(__file__).parent
    texts = "".join(path.read_text() for path in folder.glob("test_*.py"))
    tests = set(re.findall(r"^def test_(\w+)\(", texts, re.MULTILINE))
    assert len(TRAPS) == 32 and [name for name in TRAPS if name not in tests] == []


def test_norm_counts_once_under_tp_ep():
    """Parameters that are cut over an axis, experts over all ranks, and whole ones beside them: each element counts once."""

    def work():
        rank = dist.get_rank()
        mesh = dist.init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))
        experts = dist.ExpertParallel([nn.Linear(2, 2, bias=False) for _ in range(4)])
        experts.mark()
        plain = nn.Parameter(tenon.zeros([3]))
        cut = dist.distribute_tensor(tenon.zeros([5, 2]), mesh["tp"], [Shard(0)])
        plain.grad = tenon.full([3], 2.0)
        cut.grad = dist.distribute_tensor(tenon.full([5, 2], 3.0), mesh["tp"], [Shard(0)])
        params = [p for p in experts.parameters()]
        for p in params:
            p.grad = tenon.full([2, 2], 4.0 + rank)
        return dist.clip_grad_norm_([plain, cut, *params], 1.0).item()

    want = np.sqrt(3 * 4 + 10 * 9 + sum(4 * (4.0 + rank) ** 2 for rank in range(4)))
    norms = in_ranks(4, work)
    assert len(set(norms)) == 1
    assert norms[0] == pytest.approx(want, rel=1e-6)


def test_divisor_is_not_world_size():
    """Of four ranks, two have parts of the batch, and two parts of the weights: gradients are means over two."""
    plan = {"0": ColwiseParallel(), "1": RowwiseParallel()}

    def model_of():
        tenon.manual_seed(0)
        return nn.Sequential(nn.Linear(6, 4), nn.Linear(4, 6))

    def work():
        mesh = dist.init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))
        model = dist.parallelize_module(model_of(), mesh["tp"], plan)
        wrapped = dist.DistributedDataParallel(model, mesh.get_group("dp"))
        rows = slice(4 * mesh.get_coordinate()[0], 4 * mesh.get_coordinate()[0] + 4)
        F.mse_loss(wrapped(tenon.tensor(X[rows])), tenon.tensor(Y[rows])).backward()
        return [p.grad.full_tensor().numpy() for p in model.parameters()]

    model = model_of()
    F.mse_loss(model(tenon.tensor(X)), tenon.tensor(Y)).backward()
    for grads in in_ranks(4, work):
        for grad, p in zip(grads, model.parameters(), strict=True):
            np.testing.assert_allclose(grad, p.grad.numpy(), rtol=1e-5, atol=1e-6)


def test_dtype_in_the_plan_key():
    """What is known of a call is not taken for one of another dtype, or of a number of another type."""

    def work():
        mesh = dist.init_device_mesh("cpu", (2,))
        for dtype in ("float32", "int32", "float64", "bool", "float16", "float32"):
            whole = tenon.tensor((X > 0) if dtype == "bool" else X.round()).to(dtype)
            x = dist.distribute_tensor(whole, mesh, [Shard(0)])
            for call in (
                lambda t: t.sum(0),
                lambda t: t * 2,
                lambda t: t * 2.5,
                lambda t: t + True,
                lambda t: t @ t.transpose(0, 1) if t.dtype.is_floating_point else t == 1,
            ):
                got, want = call(x), call(whole)
                assert got.dtype == want.dtype
                np.testing.assert_allclose(
                    got.full_tensor().to(tenon.float32).numpy(),
                    want.to(tenon.float32).numpy(),
                    # float16 has 11 bits, and ranks round their parts of a sum.
                    rtol=1e-2 if dtype == "float16" else 1e-5,
                )

    in_ranks(2, work)


def test_load_needs_a_shard(tmp_path):
    """Of a checkpoint that holds a large tensor, and its optimizer's state, a rank reads its part into its part's memory."""
    count = 1 << 20
    folder = tmp_path / "c"
    checkpoint.save({"x": tenon.arange(count), "y": tenon.arange(count)}, folder)

    def load(rank, ranks):
        own = count // ranks
        state = {
            name: checkpoint.Piece(tenon.zeros([own], dtype=tenon.int64), (count,), (rank * own,))
            for name in "xy"
        }
        gc.collect()  # what earlier tests left would be freed in between
        tenon.memory.reset_peak()
        before = tenon.memory.stats()["current"]
        checkpoint.load(state, folder)
        peak = tenon.memory.stats()["peak"] - before
        for piece in state.values():
            np.testing.assert_array_equal(
                piece.tensor.numpy(), np.arange(rank * own, (rank + 1) * own)
            )
        return peak

    assert load(3, 16) <= 1.1 * 8 * count / 16
    assert (
        8 * count / 2 <= load(1, 2) <= 1.1 * 8 * count / 2
    )  # what is measured grows with the part


@pytest.mark.parametrize("size", [2, 3])
def test_bias_once(size):
    """The ranks' products are summands, and a bias is added to their sum, not to each."""

    def work():
        mesh = dist.init_device_mesh("cpu", (size,))
        x = dist.distribute_tensor(tenon.tensor(X), mesh, [Shard(1)])
        w = dist.distribute_tensor(tenon.tensor(Y), mesh, [Shard(1)])
        b = dist.distribute_tensor(tenon.arange(8.0), mesh, [Replicate()])
        b.requires_grad_()
        y = F.linear(x, w, b)
        y.full_tensor().sum().backward()
        return y.full_tensor().detach().numpy(), b.grad.full_tensor().tolist()

    for y, grad in in_ranks(size, work):
        np.testing.assert_allclose(y, X @ Y.T + np.arange(8), rtol=1e-5, atol=1e-5)
        assert grad == [8.0] * 8


def test_short_last_batch():
    """Ranks make as many steps, so that none waits for one that has no batch left, and every sample is read."""
    count = 17

    def work():
        model = dist.DistributedDataParallel(nn.Linear(1, 1))
        optimizer = optim.SGD(model.parameters(), lr=0.01)
        batches = dist.DistributedBatchSampler(range(count), batch_size=4)
        read, lengths = [], []
        for rows in batches:
            optimizer.zero_grad()
            x = tenon.tensor([[float(row)] for row in rows])
            model(x).square().mean().backward()
            optimizer.step()
            read += rows
            lengths.append(len(rows))
        return read, lengths, model.module.weight.tolist()

    told = in_ranks(2, work)
    assert set(told[0][0]) | set(told[1][0]) == set(range(count))
    assert told[0][1] == told[1][1] and told[0][1][-1] < 4
    assert told[0][2] == told[1][2]


def test_composite_reads_a_wrapper():
    """Operators that come apart see the tensor's device, shape and dtype; what reads its elements refuses."""

    def work():
        mesh = dist.init_device_mesh("cpu", (2,))
        x = dist.distribute_tensor(tenon.tensor(X), mesh, [Shard(0)])
        target = dist.distribute_tensor(tenon.arange(8) % 6, mesh, [Shard(0)])
        for call in (
            lambda t, y: F.cross_entropy(t, y),
            lambda t, y: F.layer_norm(t, [6]),
            lambda t, y: tenon.var(t, 0),
            lambda t, y: F.normalize(t),
            lambda t, y: tenon.zeros_like(t) + F.one_hot(y, 6),
        ):
            got, want = call(x, target), call(tenon.tensor(X), tenon.arange(8) % 6)
            assert isinstance(got, dist.DTensor)
            np.testing.assert_allclose(
                got.full_tensor().numpy(), want.numpy(), rtol=1e-5, atol=1e-6
            )
        for read in (lambda: x.sum().item(), lambda: x.numpy(), lambda: x.tolist()):
            with pytest.raises(Exception, match="full_tensor"):
                read()

    in_ranks(2, work)


@pytest.mark.parametrize("reshard", [True, False])
def test_saved_hooks_under_zero3(reshard):
    """What a program hangs on saved tensors sees whole weights, and gradients are those without it."""

    def work(hooked):
        tenon.manual_seed(1)
        model = nn.Sequential(nn.Linear(6, 4), nn.GELU(), nn.Linear(4, 6))
        dist.fully_shard(model[0], reshard_after_forward=reshard)
        dist.fully_shard(model[2], reshard_after_forward=reshard)
        packed = []

        def pack(t):
            packed.append(tuple(t.shape))
            return t.detach().clone()

        x = tenon.tensor(X, requires_grad=True)
        if hooked:
            with tenon.autograd.saved_tensors_hooks(pack, lambda kept: kept):
                loss = F.mse_loss(model(x), tenon.tensor(Y))
        else:
            loss = F.mse_loss(model(x), tenon.tensor(Y))
        loss.backward()
        assert not hooked or packed
        return x.grad.numpy(), [p.grad.numpy() for p in model.parameters()]

    for (x, grads), (want, wanted) in zip(in_ranks(2, work, True), in_ranks(2, work, False)):
        np.testing.assert_array_equal(x, want)
        for grad, other in zip(grads, wanted, strict=True):
            np.testing.assert_array_equal(grad, other)
