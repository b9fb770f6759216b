# SPDX-License-Identifier: Apache-2.0
"""ZeRO stages 1 and 2 of parameters that are sharded tensors: rows of the parts of a tensor parallel model."""

import numpy as np
import pytest
import tenon
import tenon.distributed as dist
from tenon import nn, optim
from tenon.distributed import ColwiseParallel, RowwiseParallel, SequenceParallel, Shard, checkpoint

STEPS, WIDTH = 4, 6
X = np.random.default_rng(0).normal(size=(STEPS, 8, WIDTH)).astype("f4")
Y = np.random.default_rng(1).normal(size=(STEPS, 8, WIDTH)).astype("f4")
PLAN = {"up": ColwiseParallel(), "down": RowwiseParallel()}


def make_model():
    tenon.manual_seed(3)
    return nn.Sequential(
        {
            "norm": nn.LayerNorm(WIDTH),
            "up": nn.Linear(
                WIDTH, 10
            ),  # 5 rows on each of two ranks, 2 and 3 of them an optimizer's
            "act": nn.GELU(),
            "down": nn.Linear(10, WIDTH),
        }
    )


def meshed():
    mesh = dist.init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))
    return mesh, dist.parallelize_module(make_model(), mesh["tp"], PLAN)


def wholes(model):
    return {
        name: (p.full_tensor() if isinstance(p, dist.DTensor) else p).detach().numpy().copy()
        for name, p in model.named_parameters()
    }


def steps(called, optimizer, mesh, clip, count=STEPS, first=0):
    rows = slice(4 * mesh.get_coordinate()[0], 4 * mesh.get_coordinate()[0] + 4)
    norms = []
    for step in range(first, first + count):
        optimizer.zero_grad()
        x, y = tenon.tensor(X[step][rows]), tenon.tensor(Y[step][rows])
        (called(x) - y).square().mean().backward()
        norms.append(clip(0.5).item())
        optimizer.step()
    return norms


def train(stage, count=STEPS, make=optim.AdamW, folder=None):
    mesh, model = meshed()
    group = mesh.get_group("dp")
    called = dist.DistributedDataParallel(model, group) if stage < 2 else model
    if stage == 0:
        optimizer = make(model.parameters(), lr=0.02)
    else:
        optimizer = dist.ZeroRedundancyOptimizer(
            model.parameters(), make, stage=stage, process_group=group, lr=0.02
        )
    if folder is not None:
        checkpoint.load({"model": model, "optimizer": optimizer}, folder)
        return model, optimizer, mesh, called
    clip = (
        optimizer.clip_grad_norm_
        if stage == 2
        else lambda most: dist.clip_grad_norm_(model.parameters(), most)
    )
    norms = steps(called, optimizer, mesh, clip, count)
    return norms, wholes(model), optimizer, model


def in_ranks(work, *args):
    with dist.local(4, timeout=30.0) as ranks:
        return ranks.run(work, *args)


@pytest.mark.parametrize("make", [optim.AdamW, optim.SGD])
@pytest.mark.parametrize("stage", [1, 2])
def test_training_is_that_of_data_parallel_ranks(stage, make):
    for (norms, got, *_), (others, want, *_) in zip(
        in_ranks(train, stage, STEPS, make), in_ranks(train, 0, STEPS, make), strict=True
    ):
        np.testing.assert_allclose(norms, others, rtol=1e-6)
        for name, value in want.items():
            if stage == 1:
                np.testing.assert_array_equal(got[name], value)
            # Norms are added up by rows, which scales gradients by other last bits.
            np.testing.assert_allclose(got[name], value, rtol=1e-5, atol=1e-7)


def test_each_rank_keeps_state_for_its_rows():
    def work():
        _, _, optimizer, model = train(1, 1)
        rank = dist.get_rank() // 2
        kept = [state["m"].numel() for state in optimizer.inner.state_dict()["state"].values()]
        parts = [(p.to_local() if isinstance(p, dist.DTensor) else p) for p in model.parameters()]
        want = [
            (len(part) * (rank + 1) // 2 - len(part) * rank // 2) * (part.numel() // len(part))
            for part in parts
        ]
        assert kept == want

    in_ranks(work)


@pytest.mark.parametrize("stage", [1, 2])
def test_state_is_that_of_an_optimizer_of_sharded_parameters(stage):
    """state_dict() is loaded by an optimizer that is not divided, and by one that is."""

    def work():
        norms, values, optimizer, model = train(stage)
        state = optimizer.state_dict()
        plain = optim.AdamW(model.parameters(), lr=0.02)
        plain.load_state_dict(state)
        for own, param in zip(plain.state_dict()["state"].values(), model.parameters()):
            assert own["m"].layout == param.layout and own["m"].shape == param.shape
        again = dist.ZeroRedundancyOptimizer(
            model.parameters(), optim.AdamW, stage=stage, process_group=optimizer.group, lr=0.02
        )
        again.load_state_dict(state)
        for one, other in zip(
            again.inner.state_dict()["state"].values(),
            optimizer.inner.state_dict()["state"].values(),
            strict=True,
        ):
            np.testing.assert_array_equal(one["m"].numpy(), other["m"].numpy())

    in_ranks(work)


@pytest.mark.parametrize("stage", [1, 2])
def test_checkpoints_know_where_the_rows_lie(tmp_path, stage):
    """Saved by four ranks, loaded by one process, whose next step is the same."""
    folder = tmp_path / "c"

    def save():
        norms, values, optimizer, model = train(stage, STEPS - 1)
        checkpoint.save({"model": model, "optimizer": optimizer}, folder)

    def load_and_go_on():
        model, optimizer, mesh, called = train(stage, folder=folder)
        clip = (
            optimizer.clip_grad_norm_
            if stage == 2
            else lambda most: dist.clip_grad_norm_(model.parameters(), most)
        )
        steps(called, optimizer, mesh, clip, 1, STEPS - 1)
        return wholes(model)

    in_ranks(save)
    model = make_model()
    optimizer = optim.AdamW(model.parameters(), lr=0.02)
    checkpoint.load({"model": model, "optimizer": optimizer}, folder)
    (model(tenon.tensor(X[-1])) - tenon.tensor(Y[-1])).square().mean().backward()
    nn.utils.clip_grad_norm_(model.parameters(), 0.5)
    optimizer.step()
    for got in in_ranks(load_and_go_on):
        for name, value in wholes(model).items():
            np.testing.assert_allclose(got[name], value, rtol=1e-4, atol=1e-6)


def test_what_is_refused():
    def work():
        mesh, model = meshed()
        with pytest.raises(
            ValueError, match="without other ranks of the mesh of a sharded parameter"
        ):
            dist.ZeroRedundancyOptimizer(model.parameters(), optim.AdamW, lr=0.1)
        optimizer = dist.ZeroRedundancyOptimizer(
            model.parameters(), optim.SGD, process_group=mesh.get_group("dp"), lr=0.1
        )
        model.up.weight.grad = tenon.ones([10, WIDTH])
        with pytest.raises(NotImplementedError, match="a gradient of layout sharded .* strided"):
            optimizer.step()

    in_ranks(work)


def test_sequence_parallel_parameters():
    """Those of a norm are whole on every rank of the mesh, and sharded tensors, too."""

    def work():
        mesh = dist.init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))
        model = dist.parallelize_module(
            make_model(), mesh["tp"], {**PLAN, "norm": SequenceParallel(sequence_dim=0)}
        )
        optimizer = dist.ZeroRedundancyOptimizer(
            model.parameters(), optim.SGD, stage=2, process_group=mesh.get_group("dp"), lr=0.1
        )
        x = dist.distribute_tensor(tenon.tensor(X[0]), mesh["tp"], [dist.Shard(0)])
        model(x).square().mean().backward()
        norm = optimizer.clip_grad_norm_(1e9).item()
        optimizer.step()
        return norm, wholes(model)

    model = make_model()
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    model(tenon.tensor(X[0])).square().mean().backward()
    want = nn.utils.clip_grad_norm_(model.parameters(), 1e9).item()
    optimizer.step()
    for norm, got in in_ranks(work):
        assert norm == pytest.approx(want, rel=1e-5)
        for name, value in wholes(model).items():
            np.testing.assert_allclose(got[name], value, rtol=1e-5, atol=1e-6)


def test_ranks_that_have_other_parts():
    """Also one that is on no line of the mesh with this one, or on another mesh."""

    def work():
        groups = [dist.world().part(ranks) for ranks in ([0, 3], [1, 2])]
        group = next(each for each in groups if each is not None)
        _, model = meshed()  # on mesh["tp"], which rank 3 shares with rank 2
        with pytest.raises(ValueError, match="whose ranks have the same part of each sharded"):
            dist.ZeroRedundancyOptimizer(model.parameters(), optim.SGD, lr=0.1, process_group=group)
        with pytest.raises(ValueError, match="DistributedDataParallel: expected the same param"):
            dist.DistributedDataParallel(model, group)
        with pytest.raises(ValueError, match="fully_shard: expected the same parameters on all"):
            dist.fully_shard(model.up, group)
        mesh = dist.init_device_mesh("cpu", (2, 2), mesh_dim_names=("rows", "columns"))
        parameter = nn.Parameter(
            dist.distribute_tensor(tenon.ones([4, 4]), mesh, [Shard(0), Shard(1)])
        )
        with pytest.raises(ValueError, match="without other ranks of the mesh of a sharded"):
            dist.ZeroRedundancyOptimizer([parameter], optim.SGD, lr=0.1, process_group=group)

    in_ranks(work)
