# SPDX-License-Identifier: Apache-2.0
"""Models and optimizers with sharded parameters are saved on one mesh, and go on on another, or on one process."""

import numpy as np
import pytest
import tenon
import tenon.distributed as dist
from tenon import nn, optim
from tenon.distributed import Replicate, Shard, checkpoint

X = np.random.default_rng(0).standard_normal((4, 6)).astype("f4")


def in_ranks(size, work, *args):
    with dist.local(size, timeout=30.0) as ranks:
        return ranks.run(work, *args)


def made(size, kind, **options):
    """Of 10 hidden units, which 4 ranks do not share evenly; size 0: no mesh."""
    tenon.manual_seed(size)
    model = nn.Sequential(
        {
            "norm": nn.LayerNorm(6),
            "up": nn.Linear(6, 10),
            "act": nn.GELU(),
            "down": nn.Linear(10, 6),
        }
    )
    if size:
        mesh = dist.init_device_mesh("cpu", (size,))
        plan = {"up": dist.ColwiseParallel(), "down": dist.RowwiseParallel()}
        dist.parallelize_module(model, mesh, plan)
    return model, kind(model.parameters(), **options)


def steps(model, optimizer, count):
    for _ in range(count):
        optimizer.zero_grad()
        (model(tenon.tensor(X)) * tenon.tensor(X)).square().sum().backward()
        optimizer.step()
    return [
        (p.full_tensor() if isinstance(p, dist.DTensor) else p).detach().numpy().copy()
        for p in model.parameters()
    ]


@pytest.mark.parametrize(
    "kind, options, asynchronous",
    [
        (optim.AdamW, {"lr": 0.05}, False),
        (optim.SGD, {"lr": 0.01, "momentum": 0.9}, True),
    ],
)
def test_saved_on_two_loaded_on_any(tmp_path, kind, options, asynchronous):
    folder = tmp_path / "saved"

    def save(size):
        model, optimizer = made(size, kind, **options)
        steps(model, optimizer, 2)
        state = {"model": model, "optimizer": optimizer}
        pending = checkpoint.save(state, folder, asynchronous=asynchronous)
        if pending is not None:
            pending.wait()
        return steps(model, optimizer, 2)

    def load(size):
        model, optimizer = made(size, kind, **options)
        checkpoint.load({"model": model, "optimizer": optimizer}, folder)
        found = steps(model, optimizer, 2)
        for p in model.parameters():
            layouts = {
                v.layout
                for v in optimizer.state[p].values()
                if isinstance(v, tenon.Tensor) and v.ndim
            }
            assert layouts == {p.layout}
        return found

    want = in_ranks(2, save, 2)[0]
    for size in (0, 1, 2, 4):
        for got in in_ranks(size, load, size) if size else [load(0)]:
            for one, other in zip(got, want, strict=True):
                np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)
    save(0)  # and back
    want = load(0)
    for got in in_ranks(4, load, 4):
        for one, other in zip(got, want, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    "before, after",
    [
        ([Shard(0), Shard(0)], [Shard(1), Replicate()]),
        ([Replicate(), Shard(1)], [Shard(1), Shard(1)]),
        ([Shard(1), Shard(0)], [Shard(0), Shard(1)]),
    ],
)
def test_tensors_on_meshes_of_two_axes(tmp_path, before, after):
    """Uneven and empty parts among them."""
    shapes = [(5, 7), (1, 2), (0, 3)]
    values = [np.arange(a * b, dtype="f8").reshape(a, b) + 0.5 for a, b in shapes]

    def save():
        mesh = dist.init_device_mesh("cpu", (2, 2))
        state = [dist.distribute_tensor(tenon.tensor(v), mesh, before) for v in values]
        checkpoint.save({"x": state}, tmp_path / "saved")

    def load():
        mesh = dist.init_device_mesh("cpu", (3, 2))
        state = [
            dist.distribute_tensor(tenon.zeros(s, dtype="float64"), mesh, after) for s in shapes
        ]
        checkpoint.load({"x": state}, tmp_path / "saved")
        return [x.full_tensor().numpy() for x in state]

    in_ranks(4, save)
    for got in in_ranks(6, load):
        for one, other in zip(got, values, strict=True):
            assert (one == other).all() and one.shape == other.shape


def test_sums_of_parts_are_refused(tmp_path):
    def work():
        mesh = dist.init_device_mesh("cpu", (2,))
        x = dist.from_local(tenon.ones([2]), mesh, [dist.Partial()])
        with pytest.raises(
            ValueError, match=r"expected sharded tensors in Shard\(dim\) and Replicate\(\)"
        ):
            checkpoint.save({"x": x}, tmp_path / "saved")

    in_ranks(2, work)
