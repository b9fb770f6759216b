# SPDX-License-Identifier: Apache-2.0
"""ZeRO stage 3 of parameters that are sharded tensors already: rows of the parts of a tensor parallel model."""

import numpy as np
import pytest
import tenon
import tenon.distributed as dist
from tenon import nn, optim
from tenon.distributed import ColwiseParallel, Replicate, RowwiseParallel, Shard, checkpoint

STEPS, WIDTH = 4, 6
X = np.random.default_rng(0).normal(size=(STEPS, 8, WIDTH)).astype("f4")
Y = np.random.default_rng(1).normal(size=(STEPS, 8, WIDTH)).astype("f4")
PLAN = {"*.up": ColwiseParallel(), "*.down": RowwiseParallel()}


def make_model():
    tenon.manual_seed(3)
    blocks = [
        nn.Sequential(
            {
                "norm": nn.LayerNorm(WIDTH),
                "up": nn.Linear(WIDTH, 10),  # 5 rows on each of two ranks, 2 and 3 of them a unit's
                "act": nn.GELU(),
                "down": nn.Linear(10, WIDTH),
            }
        )
        for _ in range(2)
    ]
    return nn.Sequential(*blocks)


def train(model, rows=slice(None), clip=None, make=optim.AdamW):
    optimizer = make(model.parameters(), lr=0.02)
    losses, norms = [], []
    for step in range(STEPS):
        optimizer.zero_grad()
        x, y = tenon.tensor(X[step][rows]), tenon.tensor(Y[step][rows])
        loss = (model(x) - y).square().mean()
        loss.backward()
        if clip:
            norms.append(clip(model.parameters(), 0.5).item())
        optimizer.step()
        losses.append(loss.item())
    return losses, norms, optimizer


def values(model):
    modules = dict(model.named_modules())
    names = [name for name, _ in model.named_parameters()]
    with dist.whole_parameters(model), tenon.no_grad():
        wholes = {}
        for name in names:
            path, _, last = name.rpartition(".")
            p = getattr(modules[path], last)
            whole = p.full_tensor() if isinstance(p, dist.DTensor) else p
            wholes[name] = whole.detach().numpy().copy()
        return wholes


def shard_twice(model, reshard=True):
    """Each block a unit of the ranks that have the same part of the weights."""
    mesh = dist.init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))
    dist.parallelize_module(model, mesh["tp"], PLAN)
    for block in model:
        dist.fully_shard(block, mesh.get_group("dp"), reshard_after_forward=reshard)
    return mesh


@pytest.mark.parametrize("reshard", [True, False])
def test_training_is_that_of_one_process(reshard):
    want = make_model()
    want_losses, want_norms, _ = train(want, clip=nn.utils.clip_grad_norm_)

    def work():
        model = make_model()
        mesh = shard_twice(model, reshard)
        # 5 x 6 numbers of the 10 x 6 of `up` are this tensor parallel rank's, and rows of those this rank's.
        shard = model[0].up.weight
        part = mesh.get_local_rank("dp")
        assert tuple(shard.shape) == ((2, 3)[part], WIDTH) and shard.whole_shape == (10, WIDTH)
        assert shard.offset == (5 * mesh.get_local_rank("tp") + (0, 2)[part], 0)
        losses, norms, _ = train(model, slice(4 * part, 4 * part + 4), dist.clip_grad_norm_)
        mean = mesh.get_group("dp").all_reduce(tenon.tensor(losses), "mean").tolist()
        return mean, norms, values(model)

    with dist.local(4) as ranks:
        for losses, norms, weights in ranks.run(work):
            np.testing.assert_allclose(losses, want_losses, rtol=1e-5)
            np.testing.assert_allclose(norms, want_norms, rtol=1e-5)
            for name, p in want.named_parameters():
                np.testing.assert_allclose(
                    weights[name], p.detach().numpy(), rtol=1e-4, atol=1e-5, err_msg=name
                )


def test_checkpoints_know_where_the_rows_lie(tmp_path):
    folder = tmp_path / "c"

    def save():
        model = make_model()
        shard_twice(model)
        _, _, optimizer = train(model)
        checkpoint.save({"model": model, "optimizer": optimizer}, folder)
        return values(model)

    with dist.local(4) as ranks:
        want = ranks.run(save)[0]

    def load():
        tenon.manual_seed(dist.get_rank())
        model = make_model()
        shard_twice(model)
        with tenon.no_grad():
            for p in model.parameters():
                p.zero_()
        optimizer = optim.AdamW(model.parameters(), lr=0.02)
        checkpoint.load({"model": model, "optimizer": optimizer}, folder)
        train_on = values(model)
        moments = [
            value.square().sum().item()
            for p in model.parameters()
            if p.numel()
            for value in optimizer.state[p].values()
            if isinstance(value, tenon.Tensor)
        ]
        return train_on, moments

    with dist.local(4) as ranks:
        for got, moments in ranks.run(load):
            assert all(np.array_equal(got[name], want[name]) for name in want)
            assert min(moments) > 0
    # One process has the same numbers of it.
    whole = make_model()
    checkpoint.load({"model": whole}, folder, strict=False)
    for name, p in whole.named_parameters():
        assert np.array_equal(p.detach().numpy(), want[name])


def test_what_is_refused():
    def work():
        mesh = dist.init_device_mesh("cpu", (2,), mesh_dim_names=("tp",))
        model = dist.parallelize_module(make_model(), mesh, PLAN)
        with pytest.raises(
            ValueError, match=r"have the same part of a sharded parameter of shape \(10, 6\)"
        ):
            dist.fully_shard(model[0].up, dist.world())
        loss = model[1](tenon.ones([2, WIDTH])).sum()
        loss.backward()
        with pytest.raises(
            ValueError, match="without other ranks of the mesh of a sharded parameter"
        ):
            dist.ZeroRedundancyOptimizer(model.parameters(), optim.AdamW, lr=0.1)

    with dist.local(2) as ranks:
        ranks.run(work)


def test_a_scaler_needs_all_ranks_that_have_parts():
    def work():
        model = make_model()
        mesh = shard_twice(model)
        optimizer = optim.AdamW(model.parameters(), lr=0.02)
        scaler = dist.GradScaler(process_group=mesh.get_group("dp"))
        (model(tenon.ones([2, WIDTH])).sum() * scaler.get_scale()).backward()
        with pytest.raises(
            ValueError, match="expected a process_group of all ranks that have parts"
        ):
            scaler.unscale_(optimizer)
        scaler = dist.GradScaler()
        scaler.step(optimizer)

    with dist.local(4) as ranks:
        ranks.run(work)


# What reads more of a parameter than its elements, or its norm; these have to be refused, or give what one process has.
NAMES = sorted(
    name
    for name, kind in vars(optim).items()
    if isinstance(kind, type) and issubclass(kind, optim.Optimizer) and kind is not optim.Optimizer
)
OPTIONS = {"LookAhead": None, "LBFGS": {"lr": 0.1}, "SparseAdam": None}


@pytest.mark.parametrize("name", NAMES)
def test_every_optimizer_on_sharded_parameters(name):
    """Equal to one process, or refused by name; nothing else."""
    kind, options = getattr(optim, name), OPTIONS.get(name, {"lr": 0.01})
    if options is None:
        pytest.skip("wraps another optimizer, or takes gradients of rows")

    def steps(model):
        optimizer = kind([p for p in model.parameters() if p.ndim == 2], **options)
        for step in range(3):

            def closure(step=step):
                optimizer.zero_grad()
                loss = (model(tenon.tensor(X[step])) - tenon.tensor(Y[step])).square().mean()
                loss.backward()
                return loss

            if name == "LBFGS":
                optimizer.step(closure)
            else:
                closure()
                optimizer.step()
        return model

    want = values(steps(make_model()))

    def work():
        mesh = dist.init_device_mesh("cpu", (2,), mesh_dim_names=("tp",))
        model = dist.parallelize_module(make_model(), mesh, PLAN)
        try:
            steps(model)
        except (NotImplementedError, ValueError, TypeError) as error:
            return str(error)
        return values(model)

    before = dist.reshard_policy("allow")
    try:
        with dist.local(2) as ranks:
            results = ranks.run(work)
    finally:
        dist.reshard_policy(before)
    for got in results:
        if isinstance(got, str):
            assert name in got and "sharded" in got, got
            continue
        for key, value in want.items():
            np.testing.assert_allclose(got[key], value, rtol=2e-4, atol=2e-5, err_msg=key)


def test_placements_of_a_mesh_of_two_axes():
    """Rows of a part that two axes of the mesh have cut."""

    def work():
        mesh = dist.init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))
        layer = nn.Linear(8, 8, bias=False)
        with tenon.no_grad():
            layer.weight.copy_(tenon.arange(64).reshape([8, 8]).to(tenon.float32))
        layer.weight = nn.Parameter(
            dist.distribute_tensor(layer.weight.detach(), mesh["tp"], [Shard(1)])
        )
        dist.fully_shard(layer, mesh.get_group("dp"))
        x = dist.distribute_tensor(tenon.ones([2, 8]), mesh["tp"], [Replicate()])
        y = layer(x)
        y.sum().backward()
        column = 4 * mesh.get_local_rank("tp")
        assert layer.weight.offset == (4 * mesh.get_local_rank("dp"), column)
        assert layer.weight.grad.tolist() == [[2.0] * 4] * 4
        return y.full_tensor()[0].tolist()

    with dist.local(4) as ranks:
        want = [float(sum(range(8 * row, 8 * row + 8))) for row in range(8)]
        assert ranks.run(work) == [want] * 4
