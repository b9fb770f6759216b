# SPDX-License-Identifier: Apache-2.0
"""What the calls compute, on ranks that are threads: the code is that of processes."""

import time

import numpy as np
import pytest
import tenon
import tenon.distributed as dist
from ranks import Processes
from tenon.distributed import functional


def in_ranks(size, work, **options):
    with dist.local(size, **options) as ranks:
        return ranks.run(work)


def own(shape=(4, 2), dtype="float32"):
    return tenon.tensor(
        (np.arange(np.prod(shape)).reshape(shape) + 10 * dist.get_rank()).astype(dtype)
    )


@pytest.mark.parametrize("size, transport", [(1, ""), (2, ""), (3, ""), (3, "tcp")])
def test_every_call(size, transport, monkeypatch):
    monkeypatch.setenv("TENON_COLLECTIVES_TRANSPORT", transport)
    arrays = [np.arange(12 * size).reshape(6 * size, 2).astype("f4") + 100 * r for r in range(size)]

    def work():
        rank, last = dist.get_rank(), size - 1
        x = tenon.tensor(arrays[rank])
        out = {}
        for op in ("sum", "prod", "min", "max", "mean"):
            y = x.clone()
            assert dist.all_reduce(y, op) is y
            out[op] = y
        out["reduced"] = dist.reduce(x.clone(), last)
        out["broadcast"] = dist.broadcast(x.clone(), last)
        out["gathered"] = dist.all_gather_into_tensor(tenon.zeros([6 * size * size, 2]), x)
        parts = [tenon.zeros([6 * size, 2]) for _ in range(size)]
        dist.all_gather(parts, x)
        out["parts"] = tenon.concat(parts, 0)
        out["scattered"] = dist.reduce_scatter_tensor(tenon.zeros([6, 2]), x)
        out["all_to_all"] = dist.all_to_all_single(tenon.zeros([6 * size, 2]), x)
        room = [tenon.zeros([6 * size, 2]) for _ in range(size)] if rank == last else None
        got = dist.gather(x, room, last)
        out["gather"] = tenon.concat(got, 0) if rank == last else tenon.zeros([0])
        whole = [tenon.full([3], float(r)) for r in range(size)] if rank == last else None
        out["scatter"] = dist.scatter(tenon.zeros([3]), whole, last)
        dist.barrier()
        return {name: value.numpy() for name, value in out.items()}

    reductions = {"sum": np.sum, "prod": np.prod, "min": np.min, "max": np.max, "mean": np.mean}
    for rank, got in enumerate(in_ranks(size, work)):
        for op, reduce in reductions.items():
            np.testing.assert_allclose(got[op], reduce(arrays, axis=0), rtol=1e-6, err_msg=op)
        np.testing.assert_array_equal(got["broadcast"], arrays[-1])
        for name in ("gathered", "parts"):
            np.testing.assert_array_equal(got[name], np.concatenate(arrays))
        part = slice(6 * rank, 6 * rank + 6)
        np.testing.assert_array_equal(got["scattered"], np.sum(arrays, axis=0)[part])
        np.testing.assert_array_equal(got["all_to_all"], np.concatenate([a[part] for a in arrays]))
        np.testing.assert_array_equal(got["scatter"], np.full(3, rank))
        if rank == size - 1:
            np.testing.assert_array_equal(got["reduced"], np.sum(arrays, axis=0))
            np.testing.assert_array_equal(got["gather"], np.concatenate(arrays))


@pytest.mark.parametrize("kind", ["all_reduce", "reduce", "reduce_scatter"])
@pytest.mark.parametrize(
    "count, transport", [(0, ""), (1, ""), (1025, ""), (700_001, ""), (700_001, "tcp")]
)
def test_sizes_of_reductions(kind, count, transport, monkeypatch):
    monkeypatch.setenv("TENON_COLLECTIVES_TRANSPORT", transport)

    def work():
        group, x = dist.world(), tenon.full([3 * count], 1.0 + dist.get_rank())
        before = x.clone()
        if kind == "reduce_scatter":
            result = group.reduce_scatter(x)
        elif kind == "reduce":
            result = group.reduce(x, 1)
        else:
            result = group.all_reduce(x)
        assert (x.numpy() == before.numpy()).all()
        return result if result is None else result.numpy()

    for rank, result in enumerate(in_ranks(3, work)):
        if kind == "reduce" and rank != 1:
            assert result is None
        else:
            assert result.size == (count if kind == "reduce_scatter" else 3 * count)
            assert (result == 6.0).all()


@pytest.mark.parametrize(
    "dtype",
    "uint8 int8 uint16 int16 uint32 int32 uint64 int64 float16 bfloat16 float64 complex64 complex128 "
    "float8_e4m3 float8_e5m2".split(),
)
def test_dtypes_are_reduced_as_themselves(dtype):
    def work():
        x = tenon.tensor([1.0, 2.0, 0.5 if "float" in dtype or "complex" in dtype else 3.0]).to(
            dtype
        )
        y = dist.all_reduce(x)
        assert y.dtype.name == dtype
        return y.to("complex64" if "complex" in dtype else "float32").tolist()

    third = 1.0 if "float" in dtype or "complex" in dtype else 6.0
    assert in_ranks(2, work) == [[2.0, 4.0, third]] * 2


@pytest.mark.parametrize("dtype", ["bool", "float8_e8m0", "float8_e4m3fnuz"])
def test_dtypes_that_are_moved_only(dtype):
    def work():
        x = tenon.tensor([1.0, 2.0]).to(dtype)
        with pytest.raises(TypeError, match="has no meaning; convert the tensor first"):
            dist.all_reduce(x)
        y = dist.all_gather_into_tensor(tenon.empty([4], dtype=x.dtype), x)
        return y.to("float32").tolist()

    one, two = (1.0, 1.0) if dtype == "bool" else (1.0, 2.0)
    assert in_ranks(2, work) == [[one, two] * 2] * 2


def test_nan_stays():
    def work():
        x = tenon.tensor([float("nan") if dist.get_rank() == 1 else 1.0, 2.0])
        return [str(dist.all_reduce(x.clone(), op).tolist()) for op in ("min", "max", "sum")]

    assert in_ranks(3, work) == [["[nan, 2.0]", "[nan, 2.0]", "[nan, 6.0]"]] * 3


def test_works_go_on_by_themselves():
    def work():
        rank = dist.get_rank()
        if rank == 0:
            early = dist.all_reduce(tenon.full([200_000], 1.0), async_op=True)
            assert not early.is_completed()
            with pytest.raises(TimeoutError, match="not done after 0.05 s; it goes on"):
                early.wait(0.05)
        else:
            time.sleep(0.3)
            early = dist.all_reduce(tenon.full([200_000], 1.0), async_op=True)
        # A call that waits comes behind those that were begun before it.
        total = dist.all_reduce(tenon.full([1], 5.0)).item()
        assert early.wait() and early.is_completed() and early.exception() is None
        return total, float(early.result()[-1].item())

    assert in_ranks(2, work) == [(10.0, 2.0)] * 2


def test_the_exception_of_a_work():
    def work():
        count = 4 + dist.get_rank()
        failing = dist.all_reduce(tenon.ones([count]), async_op=True)
        error = failing.exception()
        assert isinstance(error, dist.CollectiveMismatch)
        with pytest.raises(dist.CollectiveMismatch, match="call 1 of world"):
            failing.wait()

    in_ranks(2, work)


def test_messages():
    def work():
        rank, size = dist.get_rank(), dist.get_world_size()
        after, before = (rank + 1) % size, (rank - 1) % size
        into = [tenon.zeros([3]), tenon.zeros([50_000])]
        works = dist.batch_isend_irecv(
            [
                dist.P2POp(dist.isend, tenon.full([3], float(rank)), after),
                dist.P2POp(dist.irecv, into[0], before),
                dist.P2POp(dist.isend, tenon.full([50_000], 10.0 * rank), after),
                dist.P2POp(dist.irecv, into[1], before),
            ]
        )
        for each in works:
            each.wait()
        if rank == 0:
            dist.isend(tenon.ones([2]), 2).wait()
        if rank == 2:
            assert dist.irecv(tenon.zeros([2]), 0).result().tolist() == [1.0, 1.0]
        return [into[0][0].item(), into[1][-1].item()]

    assert in_ranks(3, work) == [[2.0, 20.0], [0.0, 0.0], [1.0, 10.0]]


def test_memory_that_overlaps_is_refused():
    def work():
        rank, world = dist.get_rank(), dist.world()
        memory = tenon.ones([9])
        first, behind = memory[:4], memory[1:5]
        with pytest.raises(
            ValueError,
            match="expected an input and an output that share no memory or are the same, got one of 16 bytes that "
            "begins 4 bytes before one of 16; pass a copy of one of them",
        ):
            world.all_reduce(first, "sum", behind)
        with pytest.raises(ValueError, match="share no memory but this rank's own part"):
            world.all_gather(memory[1:5], memory[:8])
        with pytest.raises(ValueError, match="share no memory but this rank's own part"):
            world.reduce_scatter(memory[:8], "sum", memory[1:5])
        with pytest.raises(ValueError, match="tensors to send and to receive into that share no"):
            world.all_to_all(memory[:8], memory[:8])
        with pytest.raises(
            ValueError, match="tensors to receive into that share no memory, got one"
        ):
            world.exchange([], [(first, 1 - rank), (behind, 1 - rank)])
        assert memory.tolist() == [1.0] * 9  # and the group goes on
        world.all_reduce(first, "sum", first)
        whole = tenon.zeros([4])
        own = whole[2 * rank : 2 * rank + 2]
        own.copy_(first[:2] + rank)
        world.all_gather(own, whole)
        gathered = whole.tolist()
        world.reduce_scatter(whole, "sum", own)
        world.scatter(whole if rank == 0 else None, 0, own if rank == 0 else own)
        return gathered, own.tolist()

    told = in_ranks(2, work)
    assert told[0] == ([2.0, 2.0, 3.0, 3.0], [4.0, 4.0])
    assert told[1] == ([2.0, 2.0, 3.0, 3.0], [3.0, 3.0])


@pytest.mark.parametrize("transport", ["shared memory", "tcp"])
def test_parts_of_parts_without_end(transport, monkeypatch):
    monkeypatch.setenv("TENON_COLLECTIVES_TRANSPORT", transport)

    def work():
        groups = [dist.world()._host]
        for _ in range(40):
            groups.append(groups[-1].part("part", [0, 1]))
        x = tenon.ones([2])
        groups[-1].call(0, x, x)
        return x.tolist()

    assert in_ranks(2, work) == [[2.0, 2.0]] * 2


def test_ranks_of_groups_are_those_of_the_job():
    def work():
        group = dist.new_group([2, 0], "reversed")
        if group is None:
            return None
        assert dist.get_rank(group) == {2: 0, 0: 1}[dist.get_rank()]
        x = tenon.full([1], float(dist.get_rank()))
        with pytest.raises(ValueError, match=r"src: expected one of the ranks \[2, 0\], got 1"):
            dist.broadcast(x, 1, group)
        return dist.broadcast(x, 2, group).item()

    assert in_ranks(3, work) == [2.0, None, 2.0]


def test_objects():
    def work():
        values = dist.all_gather_object({"rank": dist.get_rank()})
        return values, dist.broadcast_object("x" * (dist.get_rank() + 1), 1)

    assert in_ranks(2, work) == [([{"rank": 0}, {"rank": 1}], "xx")] * 2


def test_gradients():
    def work():
        rank = dist.get_rank()
        x = tenon.tensor([1.0 + rank, 2.0], requires_grad=True)
        weight = tenon.tensor([1.0, 2.0, 3.0, 4.0])
        out = {}
        for name, y in {
            "all_reduce": functional.all_reduce(x),
            "mean": functional.all_reduce(x, "mean"),
            "all_gather": functional.all_gather(x),
            "reduce_scatter": functional.reduce_scatter(x),
            "all_to_all": functional.all_to_all(x),
            "broadcast": functional.broadcast(x, 1),
        }.items():
            x.grad = None
            (y * weight[: y.size] * (rank + 1)).sum().backward()
            out[name] = x.grad.tolist()
        # Twice: the gradient of a gradient passes, too.
        y = functional.all_reduce(x * x)
        (first,) = tenon.grad(y.sum(), [x], create_graph=True)
        (second,) = tenon.grad(first.sum(), [x])
        out["second"] = second.tolist()
        return out

    first, second = in_ranks(2, work)
    for got in (first, second):
        assert got["all_reduce"] == [3.0, 6.0] and got["mean"] == [1.5, 3.0]
        assert got["reduce_scatter"] == [1.0, 2.0]
        assert got["second"] == [4.0, 4.0]  # of 2 ranks' losses: 2 (2 x)
    assert first["all_gather"] == [3.0, 6.0] and second["all_gather"] == [9.0, 12.0]
    assert first["all_to_all"] == [1.0, 2.0] and second["all_to_all"] == [2.0, 4.0]
    assert first["broadcast"] == [0.0, 0.0] and second["broadcast"] == [3.0, 6.0]


def test_local_ranks_run_in_their_order():
    seen = []

    def work():
        for step in range(3):
            seen.append((step, dist.get_rank()))
            dist.barrier()
        return tenon.rand([2]).tolist()

    tenon.manual_seed(3)
    first = in_ranks(3, work)
    assert seen == [(step, rank) for step in range(3) for rank in range(3)]
    tenon.manual_seed(3)
    assert tenon.rand([2]).tolist() == first[0] == first[1] == first[2]


def test_without_a_group():
    with pytest.raises(RuntimeError, match="call tenon.distributed.init_process_group"):
        dist.all_reduce(tenon.ones([1]))
    with pytest.raises(
        NotImplementedError, match="expected backend None, 'host' or 'mpi', got 'nccl'"
    ):
        dist.init_process_group("nccl")


def test_one_rank_needs_no_launcher():
    program = """
        for name in ("RANK", "WORLD_SIZE"): del os.environ[name]
        dist.init_process_group()
        print(dist.get_world_size(), dist.all_reduce(tenon.ones([2])).tolist())
        dist.destroy_process_group()
        dist.init_process_group()
        print(dist.get_rank(), dist.is_initialized())
    """
    with Processes(1, program) as processes:
        assert processes.finish()[0][0] == "1 [1.0, 1.0]\n0 True\n"


@pytest.mark.parametrize("size", [2, 24])
@pytest.mark.parametrize("transport", ["shared memory", "tcp"])
def test_a_ring_that_sends_before_it_receives(size, transport, monkeypatch):
    # More than fits between two ranks, which is little where they are many. Each rank has two messages under way when
    # it begins to receive, and the message of no element and the one to itself are among them.
    monkeypatch.setenv("TENON_COLLECTIVES_TRANSPORT", transport)
    count = 1_500_000 if size == 2 else 30_000

    def work():
        rank = dist.get_rank()
        following, preceding = (rank + 1) % size, (rank - 1) % size
        sends = [
            dist.isend(tenon.full([n], rank + n / count), following) for n in (count, 0, count // 2)
        ]
        whole, half = tenon.zeros([count]), tenon.zeros([count // 2])
        dist.recv(whole, preceding)
        dist.recv(tenon.zeros([0]), preceding)
        later = dist.irecv(half, preceding)
        for one in (*sends, later):
            one.wait()
        total = dist.all_reduce(tenon.ones([1])).item()
        kinds = [call["kind"] for call in dist.dump()["calls"]]
        assert kinds == ["exchange"] * 6 + ["all_reduce"]
        assert all(call["status"] == 0 and call["end_ns"] for call in dist.dump()["calls"])
        return [*{*whole.tolist()}, *{*half.tolist()}, total]

    with dist.local(size, timeout=20.0) as ranks:
        for rank, told in enumerate(ranks.run(work)):
            before = (rank - 1) % size
            assert told == [before + 1.0, before + 0.5, float(size)]


def test_messages_under_way_end_with_their_group():
    def work():
        rank = dist.get_rank()
        if rank == 1:
            dist.recv(tenon.zeros([3]), 0)
            with pytest.raises(dist.CollectiveMismatch):
                dist.recv(tenon.zeros([4]), 0)
            return
        large = tenon.ones([1_000_000])
        first, second, third = (dist.isend(x, 1) for x in (tenon.ones([3]), large, tenon.ones([2])))
        first.wait()
        for one in (second, third):
            with pytest.raises(dist.CollectiveMismatch, match="rank 1 expected a message of"):
                one.wait()
        with pytest.raises(dist.CollectiveMismatch):
            dist.isend(large, 1)

    with dist.local(2, timeout=20.0) as ranks:
        ranks.run(work)
