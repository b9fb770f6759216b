# SPDX-License-Identifier: Apache-2.0
"""What ranks tell one another without all saying the same: by the device's group `exchange`, and through the host."""

import threading
import time

import numpy as np
import pytest
import reference_plugin
import tenon
import test_collective
from test_collective import in_ranks, values

pytestmark = reference_plugin.needs_reference
plugin, device = test_collective.plugin, test_collective.device  # fixtures


@pytest.mark.parametrize("size", [1, 2, 3])
def test_reduce_gather_and_scatter(device, size):
    arrays = [values(rank, (2 * size, 3)) for rank in range(size)]
    root = size - 1

    def work(comm, rank):
        x = tenon.tensor(arrays[rank]).to(device)
        total, gathered = comm.reduce(x, root), comm.gather(x, root)
        room = tenon.zeros([2, 3]).to(device)
        own = comm.scatter(x if rank == root else None, root, out=room)
        comm.barrier()
        host = [None if y is None else y.cpu().numpy() for y in (total, gathered, own)]
        return host

    for rank, (total, gathered, own) in enumerate(in_ranks(device, size, work)):
        np.testing.assert_array_equal(own, arrays[root][2 * rank : 2 * rank + 2])
        if rank != root:
            assert total is None and gathered is None
            continue
        np.testing.assert_array_equal(total, np.sum(arrays, axis=0))
        np.testing.assert_array_equal(gathered, np.concatenate(arrays))


@pytest.mark.parametrize("size", [1, 2, 4])
@pytest.mark.parametrize("dtype", ["float32", "bool", "complex64"])
def test_all_to_all(device, size, dtype):
    arrays = [values(rank, (3 * size, 2)).astype(dtype) for rank in range(size)]

    def work(comm, rank):
        return comm.all_to_all(tenon.tensor(arrays[rank]).to(device)).cpu().numpy()

    for rank, got in enumerate(in_ranks(device, size, work)):
        part = slice(3 * rank, 3 * rank + 3)
        np.testing.assert_array_equal(got, np.concatenate([array[part] for array in arrays]))


def test_all_to_all_of_unequal_parts(device):
    def shape(source, to):
        return [source + 1, 50_000 * to]  # nothing goes to rank 0

    def work(comm, rank):
        send = [tenon.full(shape(rank, to), 10.0 * rank + to).to(device) for to in range(3)]
        room = [tenon.zeros(shape(source, rank)).to(device) for source in range(3)]
        assert comm.all_to_all(send, room) is room
        return [x.cpu().numpy() for x in room]

    for rank, received in enumerate(in_ranks(device, 3, work)):
        for source, x in enumerate(received):
            np.testing.assert_array_equal(x, np.full(shape(source, rank), 10.0 * source + rank))


def test_messages_between_two_ranks_keep_their_order(device):
    def work(comm, rank):
        send = [tenon.full([n], float(n)).to(device) for n in (1, 70_000, 3)]
        room = [tenon.zeros([n]).to(device) for n in (1, 70_000, 3)]
        other = 1 - rank
        comm.exchange([(x, other) for x in send], [(x, other) for x in room])
        return [float(x.cpu().mean().item()) for x in room]

    assert in_ranks(device, 2, work) == [[1.0, 70_000.0, 3.0]] * 2


def test_split(device):
    def work(comm, rank):
        part = comm.split(color=rank % 2, key=-rank)
        with part:
            total = part.all_reduce(tenon.full([1], float(rank)).to(device)).item()
            first = part.broadcast(tenon.full([1], float(rank)).to(device)).item()
        alone = comm.split(color=7 if rank == 3 else -1)
        assert (alone is None) == (rank != 3)
        if alone:
            assert (alone.rank, alone.size) == (0, 1)
            alone.close()
        comm.barrier()
        return part.rank, part.size, total, first

    assert in_ranks(device, 5, work) == [
        (2, 3, 6.0, 4.0),
        (1, 2, 4.0, 3.0),
        (1, 3, 6.0, 4.0),
        (0, 2, 4.0, 3.0),
        (0, 3, 6.0, 4.0),
    ]


def test_check_tells_of_an_abort(device):
    ready = threading.Barrier(
        2
    )  # an abort may reach a rank that has not returned from comm.barrier()

    def work(comm, rank):
        comm.check()
        comm.barrier()
        ready.wait(10)
        if rank == 0:
            comm.abort()
        with pytest.raises(RuntimeError):
            for _ in range(1000):  # the other rank hears of it within 10 s
                comm.check()
                time.sleep(0.01)
        return True

    assert in_ranks(device, 2, work) == [True, True]


def test_wrong_arguments(device):
    def work(comm, rank):
        x = tenon.ones([3]).to(device)
        with pytest.raises(ValueError, match="first axis that 2 ranks can share"):
            comm.all_to_all(x)
        with pytest.raises(
            ValueError, match="lists of 2 tensors, to send and to write into, got 1 and"
        ):
            comm.all_to_all([x], [x])
        with pytest.raises(TypeError, match="tensors of one dtype, got .*float32.*int32"):
            comm.exchange([(x, 0), (tenon.ones([1], dtype=tenon.int32).to(device), 0)])
        with pytest.raises(ValueError, match="sends: expected a rank from 0 to 1, got 2"):
            comm.exchange([(x, 2)])
        with pytest.raises(ValueError, match="root: expected a rank from 0 to 1, got -1"):
            comm.reduce(x, -1)
        if rank == 1:
            with pytest.raises(ValueError, match="expected out=, because rank 1 is not the root"):
                comm.scatter(None, 0)
        else:
            with pytest.raises(ValueError, match="expected a tensor on rank 0, got None"):
                comm.scatter(None, 0)
        return True

    assert in_ranks(device, 2, work) == [True, True]


def test_lengths_that_differ_are_an_error_through_the_host():
    def work(comm, rank):
        room = tenon.zeros([3 if rank else 2])
        with pytest.raises((ValueError, RuntimeError), match="exchange.*aborted"):
            comm.exchange([(tenon.ones([2]), 1 - rank)], [(room, 1 - rank)])
            comm.barrier()
        return True

    assert in_ranks("cpu", 2, work) == [True, True]
