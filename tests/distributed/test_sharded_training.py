# SPDX-License-Identifier: Apache-2.0
"""Norms, loss scales and data parallel ranks beside sharded parameters: what trains is what one process trains."""

import math

import numpy as np
import pytest
import tenon
import tenon.distributed as dist
from tenon import amp, nn, optim

PLAN = {"up": dist.ColwiseParallel(), "down": dist.RowwiseParallel()}
X = np.random.default_rng(0).standard_normal((8, 6)).astype("f4")


def net():
    """Of 10 hidden units, which 4 ranks do not share evenly."""
    tenon.manual_seed(3)
    return nn.Sequential(
        {
            "norm": nn.LayerNorm(6),
            "up": nn.Linear(6, 10),
            "act": nn.GELU(),
            "down": nn.Linear(10, 6),
        }
    )


def numbers(tensor):
    tensor = tensor.detach()
    return (tensor.full_tensor() if isinstance(tensor, dist.DTensor) else tensor).numpy().copy()


def loss_of(model, rows=slice(None)):
    return (model(tenon.tensor(X[rows])) * tenon.tensor(X[rows])).square().mean()


def backward(model):
    loss_of(model).backward()


def close(got, want):
    np.testing.assert_allclose(got, want, rtol=2e-5, atol=1e-6)


@pytest.mark.parametrize("shape", [(2,), (4,), (2, 2)])
def test_norms_count_once(shape):
    """What is cut is added up over its axis, what is whole counts once."""

    def work():
        names = ("dp", "tp")[-len(shape) :]
        mesh = dist.init_device_mesh("cpu", shape, mesh_dim_names=names)
        model = dist.parallelize_module(net(), mesh["tp"], PLAN)
        backward(model)
        norms = [dist.clip_grad_norm_(model.parameters(), 0.01).item()]
        norms.append(dist.clip_grad_norm_(model.parameters(), 1.0).item())
        return norms, [numbers(p.grad) for p in model.parameters()]

    model = net()
    backward(model)
    norms = [nn.utils.clip_grad_norm_(model.parameters(), 0.01).item()]
    norms.append(nn.utils.clip_grad_norm_(model.parameters(), 1.0).item())
    assert norms[0] > 0.1
    with dist.local(math.prod(shape)) as ranks:
        told = ranks.run(work)
    assert len({tuple(got) for got, _ in told}) == 1  # the same bits on all ranks
    for got, grads in told:
        close(got, norms)
        for grad, p in zip(grads, model.parameters(), strict=True):
            close(grad, p.grad.numpy())


def test_norms_of_two_cuts_and_of_sums():
    """Of one axis that two axes of a mesh cut, and of gradients that are sums of parts."""
    values = np.arange(15, dtype="f4").reshape(5, 3)

    def work():
        mesh = dist.init_device_mesh("cpu", (2, 2), mesh_dim_names=("a", "b"))
        p = dist.distribute_tensor(tenon.ones([5, 3]), mesh, [dist.Shard(0), dist.Shard(0)])
        p.grad = dist.distribute_tensor(tenon.tensor(values), mesh, p.placements)
        q = dist.distribute_tensor(tenon.ones([5, 3]), mesh, [dist.Replicate(), dist.Shard(1)])
        part = tenon.tensor(values) * (dist.get_rank() + 1.0)
        q.grad = dist.from_local(part, mesh, [dist.Partial(), dist.Partial()])
        norm = dist.clip_grad_norm_([p, q], 1.0).item()
        return norm, p.grad.full_tensor().numpy(), q.grad.full_tensor().numpy()

    want = math.sqrt((values**2).sum() + ((10 * values) ** 2).sum())
    with dist.local(4) as ranks:
        for norm, first, second in ranks.run(work):
            close(norm, want)
            close(first, values / want)
            close(second, 10 * values / want)


def test_a_step_is_left_out_by_all_ranks():
    """An infinite element that one rank has."""

    def work():
        mesh = dist.init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))
        model = dist.parallelize_module(net(), mesh["tp"], PLAN)
        optimizer = optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
        scaler = dist.GradScaler(init_scale=8.0)
        history = []
        for is_broken in (False, True, False):
            optimizer.zero_grad()
            scaler.scale(loss_of(model)).backward()
            if is_broken and dist.get_rank() == 3:
                model.up.weight.grad.to_local()[0, 0] = math.inf
            scaler.unscale_(optimizer)
            dist.clip_grad_norm_(model.parameters(), 1e30)
            scaler.step(optimizer)
            scaler.update()
            history.append((scaler.get_scale(), [numbers(p) for p in model.parameters()]))
        return history

    model = net()
    optimizer = optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    want = []
    for _ in range(2):
        optimizer.zero_grad()
        backward(model)
        optimizer.step()
        want.append([p.detach().numpy().copy() for p in model.parameters()])
    with dist.local(4) as ranks:
        for history in ranks.run(work):
            assert [scale for scale, _ in history] == [8.0, 4.0, 4.0]
            for (_, got), expected in zip(history, (want[0], want[0], want[1]), strict=True):
                for one, other in zip(got, expected, strict=True):
                    np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)


def test_what_counts_elements_by_rank_is_refused():
    def work():
        mesh = dist.init_device_mesh("cpu", (2,), mesh_dim_names=("tp",))
        model = dist.parallelize_module(net(), mesh["tp"], PLAN)
        backward(model)
        before = [numbers(p.grad) for p in model.parameters()]
        with pytest.raises(ValueError, match=r"got both; use tenon\.distributed\.clip_grad_norm_"):
            nn.utils.clip_grad_norm_(model.parameters(), 0.01)
        assert all(
            (numbers(p.grad) == b).all() for p, b in zip(model.parameters(), before, strict=True)
        )
        optimizer = optim.SGD(model.parameters(), lr=0.1)
        with pytest.raises(ValueError, match=r"use tenon\.distributed\.GradScaler"):
            amp.GradScaler().unscale_(optimizer)
        alone = dist.world().split(dist.get_rank())
        with pytest.raises(ValueError, match=r"expected a process_group of all ranks .* \[0, 1\]"):
            dist.GradScaler(process_group=alone).unscale_(optimizer)
        # Where all are sharded, operators count each element once.
        whole = dist.clip_grad_norm_([model.up.weight], 1e9).item()
        return nn.utils.clip_grad_norm_([model.up.weight], 1e9).full_tensor().item(), whole

    with dist.local(2) as ranks:
        for one, other in ranks.run(work):
            close(one, other)


# -- data parallel ranks beside sharded parameters


def trained(model, rows=slice(None), steps=3, wrap=None):
    wrapped = wrap(model) if wrap else model
    optimizer = optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for _ in range(steps):
        optimizer.zero_grad()
        loss_of(wrapped, rows).backward()
        optimizer.step()
    return [numbers(p) for p in model.parameters()]


def on_a_grid(shape, wrap, plan=None):
    """(dp, tp): each line of ranks along tp has a part of the batch."""

    def work():
        mesh = dist.init_device_mesh("cpu", shape, mesh_dim_names=("dp", "tp"))
        tenon.manual_seed(dist.get_rank())  # DistributedDataParallel makes parameters equal
        model = net() if plan is None else plan(net(), mesh)
        if plan is None:
            dist.parallelize_module(model, mesh["tp"], PLAN)
        size = len(X) // shape[0]
        begin = mesh.get_local_rank("dp") * size
        return trained(model, slice(begin, begin + size), wrap=lambda m: wrap(m, mesh))

    with dist.local(shape[0] * shape[1]) as ranks:
        return ranks.run(work)


@pytest.mark.parametrize("shape", [(2, 2), (2, 3), (4, 1)])
@pytest.mark.parametrize("bucket_cap_mb", [25.0, 1e-6])
def test_data_and_tensor_parallel(shape, bucket_cap_mb):
    def wrap(model, mesh):
        return dist.DistributedDataParallel(
            model, mesh.get_group("dp"), bucket_cap_mb=bucket_cap_mb
        )

    want = trained(net())
    for got in on_a_grid(shape, wrap):
        for one, other in zip(got, want, strict=True):
            close(one, other)


def test_gradients_come_to_where_the_parameter_lies():
    """Parameters that were distributed without a plan have gradients that are sums of parts; some ranks have no element."""

    def plan(model, mesh):
        layers = (model.norm, [dist.Replicate()]), (model.up, [dist.Shard(1)])
        for layer, placements in (*layers, (model.down, [dist.Replicate()])):
            for name, p in list(layer.named_parameters(recurse=False)):
                where = placements if p.ndim == 2 else [dist.Replicate()]
                cut = dist.distribute_tensor(p.detach(), mesh["tp"], where)
                setattr(layer, name, nn.Parameter(cut))
        narrow = nn.Parameter(dist.distribute_tensor(tenon.ones([1]), mesh["tp"], [dist.Shard(0)]))
        model.down.narrow = narrow
        model.down.register_forward_hook(lambda m, _, y: (y * m.narrow).full_tensor())
        return model

    def wrap(model, mesh):
        return dist.DistributedDataParallel(model, mesh.get_group("dp"))

    model = net()
    model.down.narrow = nn.Parameter(tenon.ones([1]))
    model.down.register_forward_hook(lambda m, _, y: y * m.narrow)
    want = trained(model)
    for got in on_a_grid((2, 2), wrap, plan):
        for one, other in zip(got, want, strict=True):
            close(one, other)


class Branches(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = net()
        self.spare, self.unused = nn.Linear(6, 6), nn.Linear(6, 6)

    def forward(self, x, is_first):
        return self.net(self.spare(x) if is_first else x)


def test_gradients_that_add_up_and_branches():
    """A branch that one line of ranks takes, and one that none does."""

    def work():
        mesh = dist.init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))
        plan = {
            "net.up": dist.ColwiseParallel(),
            "net.down": dist.RowwiseParallel(),
            "spare": dist.ColwiseParallel(output_layouts=dist.Replicate()),
            "unused": dist.ColwiseParallel(),
        }
        model = dist.parallelize_module(Branches(), mesh["tp"], plan)
        ddp = dist.DistributedDataParallel(model, mesh.get_group("dp"), find_unused_parameters=True)
        rank = mesh.get_local_rank("dp")
        x = tenon.tensor(X[4 * rank : 4 * rank + 4])
        with ddp.no_sync():
            ddp(x, rank == 0).square().sum().backward()
        ddp(x, False).square().sum().backward()
        return [None if p.grad is None else numbers(p.grad) for p in model.parameters()]

    model = Branches()
    for rank in range(2):
        x = tenon.tensor(X[4 * rank : 4 * rank + 4])
        (model(x, rank == 0).square().sum() + model(x, False).square().sum()).backward()
    want = [None if p.grad is None else p.grad.numpy() / 2 for p in model.parameters()]
    assert want[-1] is None and want[-3] is not None
    with dist.local(4) as ranks:
        for got in ranks.run(work):
            for one, other in zip(got, want, strict=True):
                assert (one is None) == (other is None)
                if other is not None:
                    np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)


def test_groups_and_calls_that_do_not_fit_sharded_parameters():
    def work():
        mesh = dist.init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))
        model = dist.parallelize_module(net(), mesh["tp"], PLAN)
        for group in (None, mesh.get_group("tp")):
            with pytest.raises(
                ValueError,
                match=r"without other ranks of the mesh of up.weight.*mesh.get_group\('dp'\)",
            ):
                dist.DistributedDataParallel(model, group)
        with pytest.raises(
            ValueError,
            match=r"ZeroRedundancyOptimizer: .* without other ranks of the mesh of .* \(10, 6\)",
        ):
            dist.ZeroRedundancyOptimizer(
                model.parameters(), optim.SGD, lr=0.1, process_group=mesh.get_group("tp")
            )
        with pytest.raises(TypeError, match="expected plain tensors, got one of layout sharded"):
            dist.all_reduce(model.up.weight.detach())
        sums = dist.from_local(tenon.ones([2]), mesh["tp"], [dist.Partial()])
        model.sums = nn.Parameter(sums)
        with pytest.raises(ValueError, match=r"Shard\(dim\) and Replicate\(\) of a parameter, got"):
            dist.ZeroRedundancyOptimizer(
                model.parameters(), optim.SGD, lr=0.1, process_group=mesh.get_group("dp")
            )
        with pytest.raises(ValueError, match=r"Shard\(dim\) and Replicate\(\) of sums, got"):
            dist.DistributedDataParallel(model, mesh.get_group("dp"))
        # A plain parameter beside sharded activations.
        model = nn.Sequential({"first": nn.Linear(6, 6), "up": nn.Linear(6, 10)})
        cut = dist.distribute_tensor(model.up.weight.detach(), mesh["tp"], [dist.Shard(0)])
        model.up.weight = nn.Parameter(cut)
        ddp = dist.DistributedDataParallel(model, mesh.get_group("dp"))
        kinds = NotImplementedError, dist.CollectiveAborted  # of others, which are told
        with pytest.raises(kinds, match="got one of layout sharded, of a parameter"):
            ddp(tenon.ones([2, 6])).full_tensor().sum().backward()

    with dist.local(4) as ranks:
        ranks.run(work)
