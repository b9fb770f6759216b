# SPDX-License-Identifier: Apache-2.0
"""Sharded tensors that go from one mesh to another: every element is where it has to be, and nothing is sent that is there."""

import itertools

import numpy as np
import pytest
import tenon
import tenon.distributed as dist
from tenon.distributed import Partial, Replicate, Shard

WHOLE = np.arange(35, dtype="f4").reshape(5, 7)


def in_ranks(size, work):
    with dist.local(size, timeout=30.0) as ranks:
        return ranks.run(work)


def test_every_pair_of_placements():
    """From a grid of 2 x 2 to a line of 4 in another order, and back."""
    ways = [Shard(0), Shard(1), Replicate()]

    def work():
        grid = dist.init_device_mesh("cpu", (2, 2), mesh_dim_names=("a", "b"))
        line = dist.DeviceMesh("cpu", [3, 1, 0, 2])
        for first, second, to in itertools.product(ways, ways, ways):
            x = dist.distribute_tensor(tenon.tensor(WHOLE), grid, [first, second])
            y = x.redistribute(line, [to])
            assert y.device_mesh is line and y.placements == (to,)
            assert np.array_equal(y.full_tensor().numpy(), WHOLE)
            back = y.redistribute(grid, [first, second])
            assert back.placements == (first, second)
            assert np.array_equal(back.to_local().numpy(), x.to_local().numpy())

    in_ranks(4, work)


def test_axes_of_a_mesh():
    """mesh["b"] has some of the ranks: each line has the whole."""

    def work():
        grid = dist.init_device_mesh("cpu", (2, 2), mesh_dim_names=("a", "b"))
        x = dist.distribute_tensor(tenon.tensor(WHOLE), grid, [Shard(0), Shard(1)])
        y = x.redistribute(grid["b"], [Shard(0)])
        assert y.device_mesh is grid["b"]
        rows = slice(2) if grid.get_local_rank("b") == 0 else slice(2, 5)
        assert np.array_equal(y.to_local().numpy(), WHOLE[rows])
        with pytest.raises(
            NotImplementedError, match=r"one with ranks \[.*\], too; use from_local"
        ):
            y.redistribute(grid, [Shard(0), Replicate()])

    in_ranks(4, work)


@pytest.mark.parametrize("dtype", ["float16", "bool", "int64", "complex64"])
@pytest.mark.parametrize("shape", [(), (0, 3), (1,), (3, 1, 2)])
def test_dtypes_and_shapes(dtype, shape):
    count = int(np.prod(shape))
    whole = (np.arange(count).reshape(shape) % 2).astype(dtype)

    def work():
        one = dist.init_device_mesh("cpu", (3,))
        other = dist.DeviceMesh("cpu", [2, 0, 1])
        way = Shard(0) if shape else Replicate()
        x = dist.distribute_tensor(tenon.tensor(whole), one, [way])
        y = x.redistribute(other, [way])
        assert y.dtype == x.dtype and tuple(y.shape) == shape
        assert np.array_equal(y.full_tensor().numpy(), whole)

    in_ranks(3, work)


def test_gradients_come_back():
    def work():
        one = dist.init_device_mesh("cpu", (3,))
        other = dist.DeviceMesh("cpu", [2, 0, 1])
        x = dist.distribute_tensor(tenon.tensor(WHOLE, requires_grad=True), one, [Shard(0)])
        y = x.redistribute(other, [Shard(1)])
        weights = dist.distribute_tensor(tenon.tensor(WHOLE * 2), other, [Shard(1)])
        (y * weights).sum().backward()
        assert x.grad.device_mesh is one and x.grad.placements == (Shard(0),)
        assert np.array_equal(x.grad.full_tensor().numpy(), WHOLE * 2)

    in_ranks(3, work)


def test_sums_are_made_first():
    def work():
        one = dist.init_device_mesh("cpu", (2,))
        other = dist.DeviceMesh("cpu", [1, 0])
        x = dist.from_local(tenon.tensor(WHOLE), one, [Partial()], shape=WHOLE.shape)
        y = x.redistribute(other, [Shard(0)])
        assert np.array_equal(y.full_tensor().numpy(), 2 * WHOLE)
        with pytest.raises(
            ValueError, match=r"expected Shard\(dim\) or Replicate\(\) on another mesh"
        ):
            x.redistribute(other, [Partial()])

    in_ranks(2, work)


def test_what_is_there_is_not_sent():
    def work():
        one = dist.init_device_mesh("cpu", (2,))
        other = dist.DeviceMesh("cpu", [1, 0])
        x = dist.distribute_tensor(tenon.zeros([100, 100]), one, [Replicate()])
        before = dist.world().counters()["bytes_sent"]
        x.redistribute(other, [Shard(0)])
        return dist.world().counters()["bytes_sent"] - before

    assert all(sent < 200 for sent in in_ranks(2, work))
