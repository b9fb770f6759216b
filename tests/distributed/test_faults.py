# SPDX-License-Identifier: Apache-2.0
"""Ranks that die, hang or fail are named on the others within the time limit, with their last call."""

import os
import signal
import time

import pytest
import tenon.distributed as dist
from ranks import Processes

# All ranks meet and make two calls; rank 1 is then told by the test what happens to it.
STEPS = """
    all_have_started()
    dist.init_process_group(timeout={timeout})
    dist.all_reduce(tenon.ones([8]))
    if rank == 1:
        dist.all_gather_into_tensor(tenon.zeros([8 * size]), tenon.ones([8]), async_op=True)
        {first}
    began = time.monotonic()
    try:
        dist.all_gather_into_tensor(tenon.zeros([8 * size]), tenon.ones([8]))
        dist.all_reduce(tenon.ones([8]))
    except Exception as error:
        print(type(error).__name__, "after", time.monotonic() - began)
        print(error)
"""


def told(output, errors):
    assert output, errors
    name, _, seconds = output.splitlines()[0].split()
    return name, float(seconds), output


@pytest.mark.parametrize("transport", ["shared memory", "tcp"])
def test_killed_rank(transport):
    program = STEPS.format(
        timeout=30, first="time.sleep(0.5); os.kill(os.getpid(), signal.SIGKILL)"
    )
    with Processes(3, program, TENON_COLLECTIVES_TRANSPORT=transport) as processes:
        for output, errors in processes.finish(0, 2):
            name, seconds, text = told(output, errors)
            assert name == "PeerFailed" and seconds < 15, errors
            assert "rank 1 is gone: its process ended or its connection was lost" in text
            assert (
                "of world, all_gather(float32[8])" in text or "all_reduce(float32[8], sum)" in text
            )
            assert "in call 3 of world, all_reduce(float32[8], sum) at <string>:" in text


def test_stopped_rank():
    program = STEPS.format(timeout=2, first="os.kill(os.getpid(), signal.SIGSTOP)")
    with Processes(3, program) as processes:
        for output, errors in processes.finish(0, 2):
            name, seconds, text = told(output, errors)
            assert name == "CollectiveTimeout" and seconds < 20, errors
            assert "waited 2 s in call" in text and "of world" in text
            assert "rank 1 was last heard of" in text


def test_a_rank_that_computes_for_long_is_alive():
    program = STEPS.format(timeout=2, first="time.sleep(4)")
    with Processes(2, program) as processes:
        name, _, text = told(*processes.finish(0)[0])
        assert name == "CollectiveTimeout"
        assert "rank 1 is alive, after call 2 of world, all_gather(float32[8])" in text
        name, _, text = told(*processes.finish(1)[0])
        assert name == "CollectiveTimeout" and "rank 0 waited 2 s" in text


def test_an_uncaught_exception_ends_the_others_with_its_text():
    program = """
        dist.init_process_group(timeout=30)
        if rank == 1:
            raise ValueError("no such file")
        dist.barrier()
    """
    with Processes(3, program) as processes:
        for _, errors in processes.finish(0, 2):
            assert (
                "CollectiveAborted: rank 1 ended with ValueError: no such file at <string>:"
                in errors
            )


def test_a_rank_that_never_comes():
    program = "all_have_started(); dist.init_process_group(timeout=1.0)"
    with Processes(2, program, WORLD_SIZE="3") as processes:
        for rank, (_, errors) in enumerate(processes.finish()):
            if rank == 0:
                assert "rank 0 of 3 waited 1 s for ranks [2]" in errors
            assert processes.ranks[rank].returncode != 0


def test_killed_store_host():
    # Ranks that have met need the store no longer.
    program = """
        dist.init_process_group(timeout=20)
        store = dist.TcpStore("127.0.0.1", int(os.environ["MASTER_PORT"]))
        store.set(f"met{rank}", b"")
        time.sleep(1.0)
        part = dist.new_group([1, 0])
        print(part.all_reduce(tenon.ones([2])).tolist())
    """
    with Processes(2, program) as processes:
        processes.store.wait(["met0", "met1"], 40)
        processes.server.close()
        assert [output.strip() for output, _ in processes.finish()] == ["[2.0, 2.0]"] * 2


def test_interrupted_rank():
    program = """
        dist.init_process_group(timeout=30)
        dist.TcpStore("127.0.0.1", int(os.environ["MASTER_PORT"])).set(f"met{rank}", b"")
        if rank == 0:
            dist.recv(tenon.ones([1]), 1)
        time.sleep(20)
        dist.barrier()
    """
    with Processes(2, program) as processes:
        processes.store.wait(["met0", "met1"], 40)
        time.sleep(0.5)
        processes.ranks[0].send_signal(signal.SIGINT)
        _, errors = processes.finish(0)[0]
        assert "KeyboardInterrupt" in errors


def test_a_forked_process_is_no_rank_and_hides_no_death():
    program = """
        dist.init_process_group(timeout=30)
        dist.barrier()
        if rank == 1:
            if os.fork() == 0:
                try:
                    dist.barrier()
                except RuntimeError as error:
                    print(error, flush=True)
                time.sleep(5)
                os._exit(0)
            time.sleep(0.5)
            os.kill(os.getpid(), signal.SIGKILL)
        try:
            dist.barrier()
        except dist.PeerFailed as error:
            print(error)
    """
    began = time.monotonic()
    with Processes(2, program) as processes:
        output, errors = processes.finish(0)[0]
        assert "rank 1 is gone" in output, errors
        assert time.monotonic() - began < 30
        assert "made by fork and is no rank" in processes.finish(1)[0][0]


def test_an_interrupt_ends_the_call_before_its_memory_is_freed():
    program = """
        dist.init_process_group(timeout=30)
        count = 1 << 20
        store = dist.TcpStore("127.0.0.1", int(os.environ["MASTER_PORT"]))
        if rank == 1:
            store.wait(["interrupted"], 40)
            try:
                for _ in range(2):
                    dist.broadcast(tenon.full([count], 5.0), 1)
            except dist.CollectiveAborted as error:
                print(error)
        else:
            first = tenon.zeros([count])
            begun = dist.broadcast(first, 1, async_op=True)
            def interrupt(*_):
                raise InterruptedError("it rings")
            signal.signal(signal.SIGALRM, interrupt)
            second = tenon.zeros([count])
            try:
                signal.setitimer(signal.ITIMER_REAL, 1.0)
                dist.broadcast(second, 1)
            except InterruptedError as error:
                print(error, "done:", begun.is_completed())
            store.set("interrupted", b"")
            time.sleep(1.0)  # rank 1 would send now
            print(second.max().item())
    """
    with Processes(2, program) as processes:
        (own, errors), (other, _) = processes.finish()
        assert own == "it rings done: True\n0.0\n", errors
        assert "rank 0 was interrupted in broadcast(float32[1048576], root=1)" in other, other
        assert "behind calls that were started before it" in other


def test_the_record_of_calls():
    def work():
        dist.all_reduce(dist_ones(8))
        dist.broadcast(dist_ones(4), 1)
        return dist.dump()

    with dist.local(2) as ranks:
        for rank, told_by in enumerate(ranks.run(work)):
            first, second = told_by["calls"]
            assert told_by["rank"] == rank and told_by["size"] == 2
            assert (first["sequence"], first["kind"], first["count"]) == (1, "all_reduce", 8)
            assert (second["kind"], second["root"], second["dtype"]) == ("broadcast", 1, "float32")
            assert (
                first["site"].startswith("test_faults.py:") and first["end_ns"] > first["begin_ns"]
            )
            assert [peer["rank"] for peer in told_by["peers"]] == [1 - rank]


def dist_ones(count):
    import tenon

    return tenon.ones([count])


def test_two_ranks_with_one_number():
    program = "dist.init_process_group(timeout=3.0)"
    with Processes(1, program, RANK="0", WORLD_SIZE="2") as processes:
        other = Processes(
            1, program, RANK="0", WORLD_SIZE="2", MASTER_PORT=str(processes.server.port)
        )
        with other:
            errors = [processes.finish()[0][1], other.finish()[0][1]]
    assert any("rank 0 of world" in text and "come twice" in text for text in errors)


@pytest.mark.skipif(not os.path.isdir("/dev/shm"), reason="no shared memory")
def test_nothing_is_left_in_shared_memory():
    before = set(os.listdir("/dev/shm"))
    program = STEPS.format(timeout=20, first="os.kill(os.getpid(), signal.SIGKILL)")
    with Processes(2, program) as processes:
        processes.finish()
    assert {
        name for name in set(os.listdir("/dev/shm")) - before if name.startswith("tenon-")
    } == set()
