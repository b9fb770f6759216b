# SPDX-License-Identifier: Apache-2.0
"""Calls of several ranks in PyTorch's and Paddle's spellings; PyTorch's are held beside PyTorch with Gloo."""

import datetime
import json
import os
import socket
import subprocess
import sys

import pytest
import tenon.distributed as dist
from tenon import nn
from tenon.compat import paddle, torch
from tenon.optim import SGD

SIZE = 3
# The same text runs with PyTorch and with Tenon: `torch` is one of them.
PROGRAM = """
def work(torch):
    d = torch.distributed
    rank, size = d.get_rank(), d.get_world_size()
    own = lambda *shape: torch.arange(1, 1 + shape[0] * shape[-1] if len(shape) > 1 else 1 + shape[0]).reshape(shape) * 1.0 + 10 * rank
    told = {"rank": rank, "size": size, "ready": d.is_initialized(), "available": d.is_available()}
    def note(name, *values):
        told[name] = [v.tolist() if hasattr(v, "tolist") else v for v in values]
    for op in ("SUM", "PRODUCT", "MIN", "MAX"):
        x = own(2, 2)
        note("all_reduce " + op, d.all_reduce(x, op=getattr(d.ReduceOp, op)), x)
    x = own(3)
    work = d.all_reduce(x, async_op=True)
    work.wait()
    note("async", x)
    x = own(2)
    note("reduce", d.reduce(x, 1), x if rank == 1 else None)
    x = own(2)
    note("broadcast", d.broadcast(x, src=2), x)
    parts = [torch.zeros(2) for _ in range(size)]
    note("all_gather", d.all_gather(parts, own(2)), *parts)
    x = torch.zeros(size * 2)
    note("all_gather_into_tensor", d.all_gather_into_tensor(x, own(2)), x)
    parts = [torch.zeros(2) for _ in range(size)] if rank == 0 else None
    note("gather", d.gather(own(2), parts), *(parts or ()))
    x = torch.zeros(2)
    given = [torch.ones(2) * i for i in range(size)] if rank == 1 else None
    note("scatter", d.scatter(x, given, src=1), x)
    x = torch.zeros(2)
    note("reduce_scatter", d.reduce_scatter(x, [own(2) + i for i in range(size)]), x)
    x = torch.zeros(2)
    note("reduce_scatter_tensor", d.reduce_scatter_tensor(x, own(size * 2)), x)
    x = torch.zeros(1, 2)
    note("reduce_scatter_tensor rows", d.reduce_scatter_tensor(x, own(size, 2)), x)
    parts = [torch.zeros(2) for _ in range(size)]
    note("all_to_all", d.all_to_all(parts, [own(2) + 100 * i for i in range(size)]), *parts)
    x = torch.zeros(size)
    note("all_to_all_single", d.all_to_all_single(x, own(size)), x)
    x = torch.zeros(sum(range(1, size + 1)) if rank == 0 else size)
    sizes = [1] * size
    x = torch.zeros(size)
    note("all_to_all_single sizes", d.all_to_all_single(x, own(size), sizes, sizes), x)
    x = torch.zeros(2)
    to, source = (rank + 1) % size, (rank - 1) % size
    later = [d.isend(own(2), to), d.irecv(x, source)]
    for each in later:
        each.wait()
    note("isend", x)
    x = torch.zeros(2)
    for each in d.batch_isend_irecv([d.P2POp(d.isend, own(2), to), d.P2POp(d.irecv, x, source)]):
        each.wait()
    note("batch", x)
    x = torch.zeros(2)
    if rank == 0:
        note("send", d.send(own(2), 1))
    elif rank == 1:
        note("recv", d.recv(x, 0), x)
    objects = [None] * size
    note("all_gather_object", d.all_gather_object(objects, {"rank": rank}), *objects)
    objects = [rank, "a"] if rank == 1 else [None, None]
    note("broadcast_object_list", d.broadcast_object_list(objects, src=1), *objects)
    objects = [None] * size if rank == 2 else None
    note("gather_object", d.gather_object(rank, objects, dst=2), objects)
    objects = [None]
    given = [f"for {i}" for i in range(size)] if rank == 0 else None
    note("scatter_object_list", d.scatter_object_list(objects, given), *objects)
    part = d.new_group([2, 0])
    inside = rank != 1
    note("new_group", part == d.GroupMember.NON_GROUP_MEMBER, d.get_rank(part), d.get_world_size(part))
    if inside:
        x = own(2)
        d.all_reduce(x, group=part)
        note("in a group", x, d.get_process_group_ranks(part), d.get_global_rank(part, 1), d.get_group_rank(part, 2))
        x = own(2)
        d.broadcast(x, group=part, group_src=1)
        note("by place in a group", x)
    parts = [own(2), own(3)]
    d.all_reduce_coalesced(parts)
    note("all_reduce_coalesced", *parts)
    outs = [[torch.zeros(2), torch.zeros(1)] for _ in range(size)]
    d.all_gather_coalesced(outs, [own(2), own(1)])
    note("all_gather_coalesced", *(x for of_rank in outs for x in of_rank))
    x = torch.zeros(size * 2)
    note("all_gather_single", d.all_gather_single(x, own(2)), x)
    x = torch.zeros(2)
    note("reduce_scatter_single", d.reduce_scatter_single(x, own(size * 2)), x)
    objects = [{"a": rank}, "b"] if rank == 0 else [None, None]
    if rank == 0:
        d.send_object_list(objects, 2)
    elif rank == 2:
        note("recv_object_list", d.recv_object_list(objects, 0), *objects)
    mine, every = d.new_subgroups_by_enumeration([[0, 2], [1]])
    none = d.GroupMember.NON_GROUP_MEMBER
    note("new_subgroups_by_enumeration", d.get_process_group_ranks(mine), [each == none for each in every])
    mine, every = d.new_subgroups(1)
    note("new_subgroups", d.get_process_group_ranks(mine), [each == none for each in every])
    d.monitored_barrier()
    note("what is there", d.is_gloo_available(), d.is_backend_available("gloo"), d.is_mpi_available(), d.is_ucc_available(),
         d.get_default_backend_for_device("cpu"), d.get_node_local_rank(5), str(d.Backend("gloo")), d.group.WORLD is None,
         d.supports_complex(d.ReduceOp.SUM), d.supports_complex(d.ReduceOp.MAX))
    d.barrier()
    return told
"""


def tenon_work():
    space = {}
    exec(PROGRAM, space)
    return space["work"](torch)


def test_torch():
    with dist.local(SIZE, timeout=30.0) as ranks:
        told = ranks.run(tenon_work)
    assert told[0]["all_reduce SUM"] == [None, [[33.0, 36.0], [39.0, 42.0]]]
    assert told[1]["new_group"] == [True, -1, -1] and told[2]["new_group"] == [False, 1, 2]
    assert told[2]["by place in a group"] == [[21.0, 22.0]]
    assert told[1]["recv"] == [0, [1.0, 2.0]]


def test_an_axis_of_ranks():
    """As NCCL has it; Gloo does not."""

    def work():
        d = torch.distributed
        x = torch.zeros(2, 3)
        d.all_gather_into_tensor(x, torch.ones(3) * d.get_rank())
        y = torch.zeros(3)
        d.reduce_scatter_tensor(y, x)
        z = torch.zeros(4) if d.get_rank() == 1 else None
        d.gather_single(torch.ones(2) * d.get_rank(), z, dst=1)
        return x.tolist(), y.tolist(), None if z is None else z.tolist()

    with dist.local(2) as ranks:
        for rank, told in enumerate(ranks.run(work)):
            gathered = [None, [0.0, 0.0, 1.0, 1.0]][rank]
            assert told == ([[0.0] * 3, [1.0] * 3], [2.0 * rank] * 3, gathered)


def test_torch_beside_torch(tmp_path):
    pytest.importorskip("torch")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    script = tmp_path / "peer.py"
    script.write_text(
        PROGRAM
        + """
import json, sys, torch
torch.distributed.init_process_group("gloo")
print("told", json.dumps(work(torch)))
torch.distributed.destroy_process_group()
"""
    )
    processes = [
        subprocess.Popen(
            [sys.executable, str(script)],
            env={
                **os.environ,
                "RANK": str(rank),
                "WORLD_SIZE": str(SIZE),
                "MASTER_ADDR": "127.0.0.1",
                "MASTER_PORT": str(port),
                "OMP_NUM_THREADS": "1",
            },
            stdout=subprocess.PIPE,
            text=True,
        )
        for rank in range(SIZE)
    ]
    lines = [process.communicate(timeout=120)[0].splitlines() for process in processes]
    theirs = [json.loads(next(x for x in each if x.startswith("told "))[5:]) for each in lines]
    with dist.local(SIZE, timeout=30.0) as ranks:
        ours = json.loads(json.dumps(ranks.run(tenon_work)))
    for mine, other in zip(ours, theirs, strict=True):
        assert mine.keys() == other.keys()
        for name in mine:
            assert mine[name] == other[name], name


def test_torch_groups_by_lists():
    def work():
        d = torch.distributed
        part = d.split_group(split_ranks=[[2, 0]])
        if d.get_rank() == 1:
            return part == d.GroupMember.NON_GROUP_MEMBER
        return d.get_process_group_ranks(part), part.rank

    with dist.local(SIZE) as ranks:
        assert ranks.run(work) == [([2, 0], 1), True, ([2, 0], 0)]


def test_torch_stores(monkeypatch):
    monkeypatch.setenv("TENON_JOB_SECRET", "12" * 16)
    monkeypatch.delenv("LOCAL_RANK", raising=False)
    d = torch.distributed
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    first = d.TCPStore("127.0.0.1", port, 2, is_master=True, wait_for_workers=False)
    soon = datetime.timedelta(seconds=1)
    with pytest.raises(TimeoutError, match="TCPStore/all/1"):
        d.TCPStore("127.0.0.1", port, 2, timeout=soon)
    assert isinstance(d.TCPStore("127.0.0.1", port, 2), d.Store)  # the second
    first.set("key", b"value")
    assert d.TCPStore("127.0.0.1", port).get("key", 10.0) == b"value"
    assert isinstance(d.HashStore(), d.Store)
    with pytest.raises(NotImplementedError, match="TCPStore: expected use_libuv to be left out"):
        d.TCPStore("127.0.0.1", port, use_libuv=True)
    with pytest.raises(RuntimeError, match="expected the variable LOCAL_RANK"):
        d.get_node_local_rank()
    from tenon.compat.torch._groups import servers

    while servers:
        servers.pop().close()


def test_what_torch_has_and_is_not_here():
    d = torch.distributed
    with pytest.raises(NotImplementedError, match="expected backend 'gloo' or 'nccl', got 'mpi'"):
        d.init_process_group("mpi")
    with pytest.raises(
        NotImplementedError, match="expected init_method 'env://' or 'tcp://host:port'"
    ):
        d.init_process_group("gloo", init_method="file:///tmp/x")
    with pytest.raises(
        ValueError, match="expected tcp://host:port, rank and world_size, got 'tcp://a', -1"
    ):
        d.init_process_group("gloo", init_method="tcp://a")

    def work():
        x = torch.ones(2)
        for call, text in (
            (lambda: d.isend(x, 0, tag=3), "isend: expected tag to be left out, got 3"),
            (lambda: d.new_group([0], device_id=1), "new_group: expected device_id to be left out"),
            (
                lambda: d.new_group([0], backend="ucc"),
                "expected backend 'gloo' or 'nccl', got 'ucc'",
            ),
            (lambda: d.barrier(timeout=1), "barrier: expected timeout to be left out"),
            (lambda: d.new_subgroups(), "new_subgroups: expected group_size, because"),
            (
                lambda: d.all_reduce_coalesced([x], async_op=True),
                "expected async_op to be left out",
            ),
            (
                lambda: d.monitored_barrier(wait_all_ranks=True),
                "expected wait_all_ranks to be left out",
            ),
        ):
            with pytest.raises(NotImplementedError, match=text):
                call()
        for call, text in (
            (
                lambda: d.all_reduce(x, d.ReduceOp.BAND),
                "expected a reduction out of sum, .*, got 'BAND'",
            ),
            (lambda: d.all_reduce(x, group=-100), "got NON_GROUP_MEMBER"),
            (lambda: d.broadcast(x), "expected one of src and group_src, got None and None"),
            (lambda: d.reduce_scatter(x, [x, x]), "expected 1 tensors of shape"),
            (lambda: d.P2POp(d.send, x, 0), "expected isend or irecv as op"),
            (lambda: d.get_global_rank(None, 3), "expected a rank from 0 to 0 of the group, got 3"),
            (lambda: d.get_group_rank(None, 3), "expected one of the ranks"),
            (lambda: d.new_subgroups(2), "a group_size that divides the 1 ranks, got 2"),
            (lambda: d.split_group(None, [[0, 0]]), "expected different ranks, and one at least"),
            (
                lambda: d.new_subgroups_by_enumeration([]),
                "expected different ranks, and one at least",
            ),
            (lambda: d.gather_single(x), "expected a gather_tensor on rank 0"),
            (lambda: d.get_default_backend_for_device("meta"), "expected cpu or cuda, got meta"),
        ):
            with pytest.raises(ValueError, match=text):
                call()

    with dist.local(1) as ranks:
        ranks.run(work)


def test_torch_by_address(monkeypatch):
    """init_method="tcp://...", as programs have it that were started by hand."""
    monkeypatch.setenv("TENON_JOB_SECRET", "12" * 16)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    program = f"""
import sys
from datetime import timedelta
from tenon.compat import torch
d = torch.distributed
d.init_process_group("gloo", init_method="tcp://127.0.0.1:{port}", rank=int(sys.argv[1]), world_size=2, timeout=timedelta(seconds=30))
x = torch.ones(2) * d.get_rank()
d.all_reduce(x)
print(x.tolist())
d.barrier()
d.destroy_process_group()
"""
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", program, str(rank)], stdout=subprocess.PIPE, text=True
        )
        for rank in range(2)
    ]
    assert [p.communicate(timeout=60)[0] for p in processes] == ["[1.0, 1.0]\n"] * 2


def test_paddle():
    d = paddle.distributed

    def own(count):
        return torch.arange(1, count + 1) * 1.0 + 10 * d.get_rank()

    def work():
        rank, size = d.get_rank(), d.get_world_size()
        assert d.init_parallel_env() is d.get_group() and d.is_initialized() and d.is_available()
        env = d.ParallelEnv()
        assert (env.rank, env.local_rank, env.world_size, env.nranks) == (rank, rank, size, size)
        told = {}
        for op in ("SUM", "MAX", "MIN", "PROD", "AVG"):
            x = own(2)
            d.all_reduce(x, op=getattr(d.ReduceOp, op)).wait()
            told[op] = x.tolist()
        x = own(2)
        d.all_reduce(x, sync_op=False).wait()
        assert x.tolist() == told["SUM"]
        parts = []
        d.all_gather(parts, own(2))
        told["all_gather"] = [p.tolist() for p in parts]
        parts = []
        d.gather(own(1), parts, dst=1)
        told["gather"] = [p.tolist() for p in parts]
        x = own(2)
        d.broadcast(x, 2)
        told["broadcast"] = x.tolist()
        x = own(2)
        d.reduce(x, 0)
        told["reduce"] = x.tolist() if rank == 0 else None
        x = torch.zeros(1)
        d.scatter(x, [torch.ones(1) * i for i in range(size)] if rank == 1 else None, src=1)
        told["scatter"] = x.tolist()
        x = torch.zeros(2)
        d.reduce_scatter(x, [own(2) + i for i in range(size)])
        told["reduce_scatter"] = x.tolist()
        out = []
        d.alltoall(out, [own(1) + 100 * i for i in range(size)])
        told["alltoall"] = [x.tolist() for x in out]
        x = torch.zeros(size)
        d.alltoall_single(x, own(size))
        told["alltoall_single"] = x.tolist()
        x = torch.zeros(1)
        if rank == 0:
            d.send(own(1), dst=1)
        elif rank == 1:
            d.recv(x, src=0)
        told["recv"] = x.tolist()
        to, source = (rank + 1) % size, (rank - 1) % size
        x = torch.zeros(1)
        tasks = d.batch_isend_irecv([d.P2POp(d.isend, own(1), to), d.P2POp(d.irecv, x, source)])
        for task in tasks:
            task.wait()
        told["batch"] = x.tolist()
        objects = []
        d.all_gather_object(objects, rank)
        given = [["a", rank]] if rank == 1 else [None]
        d.broadcast_object_list(given, 1)
        out = []
        d.scatter_object_list(out, [f"for {i}" for i in range(size)] if rank == 0 else None)
        told["objects"] = [objects, given, out]
        part = d.new_group([0, 2])
        assert (part is None) == (rank == 1) and d.get_backend() == "GLOO"
        d.wait(x)
        d.barrier()
        for call, text in (
            (lambda: d.spawn(work), "start the ranks with `tenon run"),
            (
                lambda: d.new_group([0], backend="mpi"),
                "expected backend 'gloo' or 'nccl', got 'mpi'",
            ),
            (lambda: d.new_group([0], timeout=3), "expected timeout to be left out"),
            (lambda: d.init_parallel_env(3), "expected nccl_config to be left out"),
        ):
            with pytest.raises(NotImplementedError, match=text):
                call()
        with pytest.raises(ValueError, match="expected an empty list, or 3 tensors, got 1"):
            d.all_gather([x], x)
        return told

    assert (d.get_rank(), d.get_world_size()) == (0, 1)  # before there are ranks
    with dist.local(SIZE, timeout=30.0) as ranks:
        told = ranks.run(work)
    assert told[0]["SUM"] == [33.0, 36.0] and told[0]["AVG"] == [11.0, 12.0]
    assert told[0]["PROD"] == [1.0 * 11 * 21, 2.0 * 12 * 22] and told[2]["MIN"] == [1.0, 2.0]
    assert told[1]["all_gather"] == [[1.0, 2.0], [11.0, 12.0], [21.0, 22.0]]
    assert told[1]["gather"] == [[1.0], [11.0], [21.0]] and told[0]["gather"] == []
    assert told[0]["broadcast"] == [21.0, 22.0] and told[0]["reduce"] == [33.0, 36.0]
    assert [each["scatter"] for each in told] == [[0.0], [1.0], [2.0]]
    assert told[1]["reduce_scatter"] == [36.0, 39.0]
    assert told[1]["alltoall"] == [[101.0], [111.0], [121.0]]
    assert told[1]["alltoall_single"] == [2.0, 12.0, 22.0]
    assert told[1]["recv"] == [1.0] and told[0]["batch"] == [21.0]
    for rank in range(SIZE):
        assert told[rank]["objects"] == [[0, 1, 2], [["a", 1]], [f"for {rank}"]]


def test_paddle_streams_and_objects(tmp_path):
    d = paddle.distributed

    def work():
        rank, size = d.get_rank(), d.get_world_size()
        x = torch.ones(2) * (rank + 1)
        d.stream.all_reduce(x, use_calc_stream=True)
        told = [x.tolist()]
        x = torch.zeros(size)
        d.stream.all_gather(x, torch.ones(1) * rank, sync_op=False).wait()
        parts = []
        d.stream.all_gather(parts, torch.ones(1) * rank)
        told += [x.tolist(), [p.tolist() for p in parts]]
        # Rank r sends r + 1 numbers to rank 0 and as many to rank 1; its own order of sizes is out, in.
        x = torch.zeros(3)
        d.stream.alltoall_single(x, torch.ones(2 * (rank + 1)) * rank, [1, 2], [rank + 1] * 2)
        told.append(x.tolist())
        with pytest.raises(RuntimeError, match="expected False with sync_op=False"):
            d.stream.all_reduce(x, sync_op=False, use_calc_stream=True)
        objects = ["a", {"b": 1}] if rank == 0 else [None, None]
        (d.send_object_list if rank == 0 else d.recv_object_list)(objects, 1 - rank)
        told.append(objects)
        if rank == 0:
            d.send_object_list([1, 2, 3], 1)
        else:
            with pytest.raises(
                ValueError, match="a list of 3 objects to overwrite, as rank 0 sent, got 1"
            ):
                d.recv_object_list([None], 0)
        d.save_state_dict({"x": torch.ones(2)}, tmp_path / "saved")
        loaded = torch.zeros(2)
        d.load_state_dict({"x": loaded}, tmp_path / "saved")
        told.append(loaded.tolist())
        with pytest.raises(NotImplementedError, match="unique_id and coordinator_rank to be left"):
            d.save_state_dict({}, tmp_path, coordinator_rank=1)
        with pytest.raises(NotImplementedError, match="unique_id, offload and coordinator_rank"):
            d.load_state_dict({}, tmp_path, offload=True)
        return told

    with dist.local(2) as ranks:
        for told in ranks.run(work):
            assert told == [
                [3.0, 3.0],
                [0.0, 1.0],
                [[0.0], [1.0]],
                [0.0, 1.0, 1.0],
                ["a", {"b": 1}],
                [1.0, 1.0],
            ]


def test_paddle_by_address(monkeypatch):
    monkeypatch.setenv("TENON_JOB_SECRET", "12" * 16)
    d = paddle.distributed
    with pytest.raises(ValueError, match="expected server_endpoint 'host:port', got 'a'"):
        d.gloo_init_parallel_env(0, 1, "a")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    d.gloo_init_parallel_env(0, 1, f"127.0.0.1:{port}")
    d.gloo_barrier()
    assert d.get_world_size() == 1 and d.is_initialized()
    d.gloo_release()
    assert not d.is_initialized()


def test_fleet():
    fleet = paddle.distributed.fleet

    def work():
        strategy = fleet.DistributedStrategy()
        strategy.hybrid_configs = {"dp_degree": 2, "mp_degree": 1}
        fleet.init(is_collective=True, strategy=strategy)
        rank = fleet.worker_index()
        assert (
            fleet.is_worker() and not fleet.is_server() and fleet.is_first_worker() == (rank == 0)
        )
        hybrid = fleet.get_hybrid_communicate_group()
        assert hybrid.get_data_parallel_group() is dist.world()
        assert hybrid.get_data_parallel_world_size() == 2 and hybrid.get_stage_id() == 0
        layer = nn.Linear(2, 1, bias=False)
        model = fleet.distributed_model(layer)
        optimizer = fleet.distributed_optimizer(SGD(layer.parameters(), lr=1.0))
        before = layer.weight.detach().clone()
        model(torch.ones(1, 2) * (rank + 1)).sum().backward()
        optimizer.step()
        fleet.barrier_worker()
        return fleet.worker_num(), (before - layer.weight.detach()).tolist()

    with dist.local(2) as ranks:
        for count, change in ranks.run(work):
            assert count == 2
            assert change[0] == pytest.approx([1.5, 1.5])

    def refused():
        strategy = fleet.DistributedStrategy()
        for call, text in (
            (lambda: fleet.init(), "expected is_collective=True and no role_maker"),
            (lambda: fleet.init(is_collective=True, log_level=3), "log_level to be left out"),
            (
                lambda: setattr(strategy, "hybrid_configs", {"pp_degree": 2}),
                "got pp_degree=2; use tenon.distributed.pipeline",
            ),
            (lambda: setattr(strategy, "amp", True), "or find_unused_parameters, got amp"),
            (lambda: fleet.distributed_optimizer(None, strategy), "at fleet.init"),
        ):
            with pytest.raises(NotImplementedError, match=text):
                call()
        strategy.hybrid_configs = {"dp_degree": 3}
        with pytest.raises(
            ValueError, match="expected a dp_degree of 1, as there are ranks, got 3"
        ):
            fleet.init(is_collective=True, strategy=strategy)

    with dist.local(1) as ranks:
        ranks.run(refused)


@pytest.mark.parametrize("name", ["to_static", "auto_tuner", "Strategy"])
def test_paddle_names_that_others_take_the_place_of(name):
    with pytest.raises(AttributeError, match=rf"does not have paddle.distributed.{name}: .*tenon"):
        getattr(paddle.distributed, name)
