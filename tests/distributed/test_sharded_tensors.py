# SPDX-License-Identifier: Apache-2.0
"""Sharded tensors: placements, redistribution, gradients, what is refused."""

import itertools
import warnings

import numpy as np
import pytest
import tenon
import tenon.distributed as dist
from tenon.distributed import Partial, Replicate, Shard

X = np.random.default_rng(0).normal(size=(5, 7)).astype("f4")
PLACEMENTS = [Shard(0), Shard(1), Replicate(), Partial("sum"), Partial("max")]


def on_ranks(n, function, *args):
    with dist.local(n) as ranks:
        return ranks.run(function, *args)


def made(mesh, whole, placements):
    """A sharded tensor of the whole, also in placements that distribute_tensor refuses."""
    starts = [Replicate() if p.is_partial() else p for p in placements]
    x = dist.distribute_tensor(tenon.tensor(whole), mesh, starts)
    local = x.to_local().detach().clone()
    for axis, p in enumerate(placements):
        if not p.is_partial():
            continue
        rank, size = mesh.get_coordinate()[axis], mesh.shape[axis]
        if p.reduce_op == "sum":
            # Parts of both signs, which cancel to the whole.
            local = (
                local * 0.6 + 3.0 if rank == 0 else local * (0.4 / (size - 1)) - 3.0 / (size - 1)
            )
        elif p.reduce_op == "max":
            local = local if rank == size - 1 else local - 1.0 - rank
        elif p.reduce_op == "min":
            local = local if rank == 0 else local + 1.0 + rank
        else:
            local = local + (rank - (size - 1) / 2)
    return dist.from_local(local, mesh, placements, shape=whole.shape)


def redistribute_all(whole):
    size = dist.get_world_size()
    mesh = dist.init_device_mesh("cpu", (size,))
    for source in PLACEMENTS:
        x = made(mesh, whole, [source])
        np.testing.assert_allclose(x.full_tensor().numpy(), whole, atol=1e-5)
        for target in (Shard(0), Shard(1), Replicate()):
            y = x.redistribute([target])
            assert y.placements == (target,) and tuple(y.shape) == whole.shape
            np.testing.assert_allclose(y.full_tensor().numpy(), whole, atol=1e-5)


@pytest.mark.parametrize("size", [2, 3])
@pytest.mark.parametrize("shape", [(5, 7), (6, 6), (1, 4), (0, 3)])
def test_redistribution_on_one_axis(size, shape):
    on_ranks(size, redistribute_all, np.resize(X, shape).astype("f4"))


def redistribute_grid(whole):
    mesh = dist.init_device_mesh("cpu", (2, 2), mesh_dim_names=("a", "b"))
    kinds = [Shard(0), Shard(1), Replicate(), Partial("sum")]
    for source in itertools.product(kinds, kinds):
        x = made(mesh, whole, list(source))
        for target in itertools.product(kinds[:3], kinds[:3]):
            y = x.redistribute(list(target))
            assert y.placements == target
            np.testing.assert_allclose(y.full_tensor().numpy(), whole, atol=1e-5)


def test_redistribution_on_two_axes():
    on_ranks(4, redistribute_grid, X)


def gradients(whole):
    size = dist.get_world_size()
    mesh = dist.init_device_mesh("cpu", (size,))
    for source, target in itertools.product(PLACEMENTS[:3], PLACEMENTS[:3]):
        x = dist.distribute_tensor(tenon.tensor(whole, requires_grad=True), mesh, [source])
        loss = (x.redistribute([target]) * tenon.tensor(whole)).sum()
        loss.full_tensor().backward()
        assert x.grad.placements == (source,)
        np.testing.assert_allclose(x.grad.full_tensor().numpy(), whole, rtol=1e-6)
        leaf = tenon.tensor(np.array(x.to_local().detach().numpy()), requires_grad=True)
        dist.from_local(leaf, mesh, [source]).redistribute(
            [target]
        ).square().sum().full_tensor().backward()
        np.testing.assert_allclose(leaf.grad.numpy(), 2 * leaf.detach().numpy(), rtol=1e-6)


@pytest.mark.parametrize("size", [2, 3])
def test_gradients_come_back_in_the_placements_of_their_tensor(size):
    on_ranks(size, gradients, X)


def train_step(whole):
    """Composites, reductions, kernels, saved outputs, in-place updates, beside the same program on plain tensors."""
    mesh = dist.init_device_mesh("cpu", (dist.get_world_size(),))
    generator = np.random.default_rng(1)
    weight, bias = generator.normal(size=(4, 7)).astype("f4"), generator.normal(size=4).astype("f4")

    def loss_of(x, w, b):
        hidden = tenon.nn.functional.linear(x, w, b)
        hidden = tenon.softmax(tenon.tanh(hidden), -1) + tenon.nn.functional.gelu(hidden)
        return (hidden - hidden.mean(0)).square().mean()

    plain = [tenon.tensor(a, requires_grad=True) for a in (whole, weight, bias)]
    expected = loss_of(*plain)
    expected.backward()
    for kinds in itertools.product(
        [Shard(0), Shard(1), Replicate()],
        [Shard(0), Shard(1), Replicate()],
        [Shard(0), Replicate()],
    ):
        tensors = [
            dist.distribute_tensor(tenon.tensor(a, requires_grad=True), mesh, [p])
            for a, p in zip((whole, weight, bias), kinds, strict=True)
        ]
        loss = loss_of(*tensors)
        np.testing.assert_allclose(
            loss.full_tensor().detach().numpy(), expected.detach().numpy(), rtol=1e-5
        )
        loss.backward()
        for one, other in zip(tensors, plain, strict=True):
            np.testing.assert_allclose(
                one.grad.full_tensor().numpy(), other.grad.numpy(), rtol=1e-4, atol=1e-6
            )


@pytest.mark.parametrize("size", [2, 3])
def test_a_program_has_the_numbers_of_one_process(size):
    on_ranks(size, train_step, X)


def refusals(whole):
    mesh = dist.init_device_mesh("cpu", (2,))
    other = dist.DeviceMesh("cpu", [0, 1])
    x = dist.distribute_tensor(tenon.tensor(whole), mesh, [Shard(0)])
    with pytest.raises(ValueError, match="expected tensors on one mesh, got two"):
        x + dist.distribute_tensor(tenon.tensor(whole), other, [Shard(0)])
    with pytest.raises(
        NotImplementedError, match="expected a sharded tensor to write into, got a plain one"
    ):
        tenon.tensor(whole).add_(x)
    with pytest.raises(
        TypeError, match="redistribute: expected a tensor of layout sharded, got layout strided"
    ):
        tenon.tensor(whole).redistribute([Replicate()])
    assert not hasattr(tenon.tensor(whole), "placements")
    with pytest.raises(ValueError, match=r"for each of the 1 axes of the mesh, got \[\]"):
        x.redistribute([])
    with pytest.raises(IndexError, match="expected an axis of a tensor of 2 axes, got 2"):
        x.redistribute([Shard(2)])
    with pytest.raises(ValueError, match="expected parts of .* along axis 0 of a whole of 5, got"):
        dist.from_local(tenon.zeros([3 - dist.get_rank(), 2]), mesh, [Shard(0)])
    with pytest.raises(TypeError, match="expected a tensor that one process has"):
        import pickle

        pickle.dumps(x)
    assert isinstance(x, dist.DTensor) and not isinstance(tenon.tensor(whole), dist.DTensor)
    assert "Shard(0)" in repr(x) and x.device_mesh is mesh


def test_what_is_refused():
    on_ranks(2, refusals, X)


def test_partial_plus_number():
    """A number is added once, not once for each rank."""

    def work():
        mesh = dist.init_device_mesh("cpu", (2,))
        x = made(mesh, X, [Partial("sum")])
        np.testing.assert_allclose((x + 1).full_tensor().numpy(), X + 1, atol=1e-5)
        y = x * 2.0 + x
        assert y.placements == (Partial("sum"),)
        np.testing.assert_allclose(y.full_tensor().numpy(), 3 * X, atol=1e-5)

    on_ranks(2, work)


def test_uneven_mean():
    """Ranks with fewer rows count for less."""

    def work():
        mesh = dist.init_device_mesh("cpu", (3,))
        for rows in (4, 5):
            x = made(mesh, X[:rows], [Shard(0)])
            np.testing.assert_allclose(x.mean().full_tensor().numpy(), X[:rows].mean(), rtol=1e-5)
            np.testing.assert_allclose(tenon.max(x, [0]).full_tensor().numpy(), X[:rows].max(0))

    on_ranks(3, work)


def test_empty_shard():
    """Ranks without a row take part, and add nothing: neither 0 nor infinity."""

    def work():
        mesh = dist.init_device_mesh("cpu", (3,))
        for rows in (1, 2):
            x = made(mesh, X[:rows], [Shard(0)])
            np.testing.assert_allclose(x.mean().full_tensor().numpy(), X[:rows].mean(), rtol=1e-5)
            np.testing.assert_allclose(tenon.max(x, [0]).full_tensor().numpy(), X[:rows].max(0))
            np.testing.assert_allclose(
                tenon.softmax(x, 0).full_tensor().numpy(),
                tenon.softmax(tenon.tensor(X[:rows]), 0).numpy(),
                rtol=1e-5,
            )

    on_ranks(3, work)


def test_writing_through_views_and_in_place():
    def work():
        mesh = dist.init_device_mesh("cpu", (2,))
        x = made(mesh, X, [Shard(0)])
        x[:, 1:3] = 7.0
        x += 1.0
        x.transpose(0, 1).mul_(2.0)
        expected = X.copy()
        expected[:, 1:3] = 7.0
        np.testing.assert_allclose(x.full_tensor().numpy(), (expected + 1) * 2, rtol=1e-6)
        with pytest.raises(
            NotImplementedError, match="a copy that a view of a sharded tensor had to make"
        ):
            x[1:3].zero_()

    on_ranks(2, work)


def test_saved_outputs_that_are_overwritten_are_found():
    def work():
        mesh = dist.init_device_mesh("cpu", (2,))
        x = dist.distribute_tensor(tenon.tensor(X, requires_grad=True), mesh, [Shard(0)])
        y = tenon.exp(x)
        y.detach().add_(1.0)
        with pytest.raises(RuntimeError, match="modified|overwritten|in place|changed"):
            y.sum().backward()

    on_ranks(2, work)


def test_dropout_on_shards():
    def work():
        mesh = dist.init_device_mesh("cpu", (2,))
        tenon.manual_seed(3)
        expected = tenon.dropout(tenon.tensor(X), 0.5)
        tenon.manual_seed(3)
        y = tenon.dropout(made(mesh, X, [Shard(0)]), 0.5)
        np.testing.assert_array_equal(y.full_tensor().numpy(), expected.numpy())
        tenon.manual_seed(dist.get_rank())
        with pytest.raises(
            RuntimeError, match="expected the same state of random numbers on all ranks"
        ):
            tenon.dropout(made(mesh, X, [Shard(0)]), 0.5)

    on_ranks(2, work)


def test_what_has_no_rule_is_reported():
    def work():
        mesh = dist.init_device_mesh("cpu", (2,))
        x = made(mesh, X[:5, :5], [Shard(0)])
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            y = tenon.matrix_exp(x)
            tenon.matrix_exp(x)
        np.testing.assert_allclose(
            y.full_tensor().numpy(), tenon.matrix_exp(tenon.tensor(X[:5, :5])).numpy(), rtol=1e-5
        )
        rows = [row for row in dist.reshard_report() if row["operator"] == "matrix_exp"]
        assert (
            rows
            and not rows[0]["has_rule"]
            and rows[0]["line"].startswith("test_sharded_tensors.py:")
        )
        before = dist.reshard_policy("deny")
        try:
            with pytest.raises(
                NotImplementedError, match="no rule for it, and the policy is 'deny'"
            ):
                tenon.matrix_exp(x)
        finally:
            dist.reshard_policy(before)
        return [str(w.message) for w in seen]

    messages = sum(on_ranks(2, work), [])
    assert sum("[matrix_exp] of sharded tensors" in m for m in messages) <= 1


def test_the_names_of_paddle():
    def work():
        from tenon.compat import paddle

        names = paddle.distributed
        mesh = names.ProcessMesh([0, 1], dim_names=["x"])
        x = names.shard_tensor(X, mesh, [names.Shard(0)], stop_gradient=False)
        assert x.requires_grad and mesh.process_ids == [0, 1] and mesh.dim_names == ["x"]
        y = names.reshard(x * 2.0, mesh, [names.Replicate()])
        names.unshard_dtensor(y).sum().backward()
        np.testing.assert_array_equal(names.unshard_dtensor(x.grad).numpy(), np.full_like(X, 2))
        part = tenon.ones([2, 3])
        assert tuple(names.dtensor_from_local(part, mesh, [names.Shard(1)]).shape) == (2, 6)
        with pytest.raises(ValueError, match="expected mesh, or shape and process_ids"):
            names.ProcessMesh()

    on_ranks(2, work)


def test_a_whole_part_beside_sharded_tensors():
    """Its gradient comes sharded; that of a part which is no whole has no meaning."""

    def work():
        mesh = dist.init_device_mesh("cpu", (2,))
        w = dist.distribute_tensor(tenon.arange(8.0).reshape([4, 2]), mesh, [dist.Shard(1)])
        whole = dist.distribute_tensor(tenon.ones([3, 4]), mesh, [dist.Replicate()])
        whole.requires_grad_()
        (whole.to_local() @ w).full_tensor().sum().backward()
        rows = dist.distribute_tensor(tenon.ones([6, 4]), mesh, [dist.Shard(0)])
        rows.requires_grad_()
        with pytest.raises(ValueError, match="to_local: expected operators with plain tensors"):
            (rows.to_local() @ w).full_tensor().sum().backward()
        return whole.grad.full_tensor().tolist()

    with dist.local(2) as ranks:
        assert ranks.run(work) == [[[1.0, 5.0, 9.0, 13.0]] * 3] * 2


def test_results_whose_shape_depends_on_data():
    def work():
        mesh = dist.init_device_mesh("cpu", (2,))
        x = dist.distribute_tensor(tenon.tensor(X), mesh, [Shard(0)])
        mask = x > 0.0
        np.testing.assert_array_equal(x[mask].full_tensor().numpy(), X[X > 0])
        picked = tenon.masked_select(x, mask)
        assert tuple(picked.shape) == (int((X > 0).sum()),)
        np.testing.assert_array_equal(picked.full_tensor().numpy(), X[X > 0])
        none = tenon.masked_select(x, x > 100.0)
        assert tuple(none.shape) == (0,) and none.full_tensor().tolist() == []

    on_ranks(2, work)
