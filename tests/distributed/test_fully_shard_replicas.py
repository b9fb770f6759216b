# SPDX-License-Identifier: Apache-2.0
"""Rows that are divided inside of a part of the ranks, and that other parts have as well."""

import numpy as np
import pytest
import tenon
import tenon.distributed as dist
from tenon import nn, optim
from tenon.distributed import checkpoint

INPUTS = np.random.default_rng(0).normal(size=(4, 8, 6)).astype("f4")


def make_model():
    tenon.manual_seed(2)
    return nn.Sequential(
        nn.Sequential(nn.Linear(6, 7), nn.LayerNorm(7)), nn.GELU(), nn.Linear(7, 3)
    )


def ranks(size, work, *args):
    with dist.local(size, timeout=60.0) as processes:
        return processes.run(work, *args)


def divided(model, shape):
    mesh = dist.init_device_mesh("cpu", shape, mesh_dim_names=("replicas", "shards"))
    dist.fully_shard(model[0], mesh=mesh)
    return dist.fully_shard(model, mesh=mesh)


def weights(model):
    with dist.whole_parameters(model):
        return [
            value.detach().numpy().copy()
            for module in model.modules()
            for value in vars(module).values()
            if isinstance(value, tenon.Tensor)
        ]


def train(wrap, steps=3):
    rank, size = dist.get_rank(), dist.get_world_size()
    model = make_model()
    with tenon.no_grad():  # what counts is the model of rank 0
        for parameter in model.parameters():
            parameter.add_(float(rank))
    wrapped = wrap(model)
    optimizer = optim.AdamW(model.parameters(), lr=0.01)
    norms = []
    for step in range(steps):
        optimizer.zero_grad()
        own = tenon.tensor(INPUTS[step][8 * rank // size : 8 * (rank + 1) // size])
        wrapped(own).square().mean().backward()
        norms.append(dist.clip_grad_norm_(model.parameters(), 0.5).item())
        optimizer.step()
    return weights(model), norms


@pytest.mark.parametrize("shape", [(2, 2), (4, 1), (1, 4)])
def test_training_is_that_of_data_parallel(shape):
    expected, norms = ranks(4, train, dist.DistributedDataParallel)[0]
    for got, own in ranks(4, train, lambda model: divided(model, shape)):
        np.testing.assert_allclose(own, norms, rtol=1e-5)
        # Adam's steps, of gradients that are added in another order.
        for a, b in zip(got, expected, strict=True):
            np.testing.assert_allclose(a, b, atol=2e-6)


def by_groups(model, *modules):
    world, rank = dist.world(), dist.get_rank()
    shards, replicas = world.split(rank // 2), world.split(rank % 2)
    for each in modules:
        dist.fully_shard(each, shards, replicas=replicas)
    return model


def test_groups_say_what_a_mesh_says():
    def equal(a, b):
        return all(np.array_equal(x, y) for x, y in zip(a[0], b[0], strict=True))

    by_mesh = ranks(4, train, lambda model: divided(model, (2, 2)))
    assert all(
        map(equal, by_mesh, ranks(4, train, lambda model: by_groups(model, model[0], model)))
    )
    assert all(equal(by_mesh[0], each) for each in by_mesh)


def test_data_parallel_averages_what_is_left():
    expected, _ = ranks(4, train, dist.DistributedDataParallel)[0]
    got = ranks(4, train, lambda m: dist.DistributedDataParallel(by_groups(m, m[0])))
    for each, _ in got:
        for a, b in zip(each, expected, strict=True):
            np.testing.assert_allclose(a, b, atol=2e-6)


def test_weights_travel_inside_of_a_part():
    def bytes_sent(shape):
        def build():
            model = divided(make_model(), shape)
            return lambda: model(tenon.ones([2, 6])).sum().backward()

        return dist.trace_step(build, ranks=4).sent_by_group()

    sent = bytes_sent((2, 2))
    assert set(sent) == {"replicas", "shards"}
    rows = 2 * (6 * 7 + 7 + 7 + 7 + 7 * 3 + 3)  # bytes of half of the numbers
    assert rows <= sent["replicas"] < 1.3 * rows < sent["shards"]


def test_checkpoints_are_of_any_number_of_ranks(tmp_path):
    def work(name, load, shape):
        model = make_model()
        if shape:
            divided(model, shape)
        optimizer = optim.AdamW(model.parameters(), lr=0.05)
        state = {"model": model, "optimizer": optimizer}
        if load:
            checkpoint.load(state, tmp_path / load)
        # All ranks have the whole batch: means of equal numbers, so that bits do not depend on their number.
        optimizer.zero_grad()
        model(tenon.tensor(INPUTS[0])).square().mean().backward()
        optimizer.step()
        checkpoint.save(state, tmp_path / name)
        return weights(model)

    ranks(4, work, "a", None, (2, 2))
    ranks(1, work, "b", "a", None)
    last = ranks(4, work, "c", "b", (2, 2))
    for name, load in (("d", None), ("e", "d"), ("f", "e")):
        expected = ranks(1, work, name, load, None)
    for got in last:
        assert all(np.array_equal(a, b) for a, b in zip(got, expected[0], strict=True))


def test_what_is_refused():
    def work():
        mesh = dist.init_device_mesh("cpu", (2, 1))
        with pytest.raises(ValueError, match="expected a mesh or groups, got both"):
            dist.fully_shard(make_model(), dist.world(), mesh=mesh)
        three = dist.init_device_mesh("cpu", (2, 1, 1))
        with pytest.raises(ValueError, match="expected a mesh of one axis, or of two.* one of 3"):
            dist.fully_shard(make_model(), mesh=three)
        model = make_model()
        if dist.get_rank():
            model[2] = nn.Linear(7, 4)
        with pytest.raises(ValueError, match="expected the same parameters on all ranks"):
            dist.fully_shard(model, mesh=mesh)
        model = make_model()
        dist.fully_shard(model, mesh.get_group(1))
        with pytest.raises(ValueError, match=r"expected parts of 0.0.weight on ranks \[0, 1\]"):
            dist.DistributedDataParallel(model)

    ranks(2, work)
