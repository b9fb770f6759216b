# SPDX-License-Identifier: Apache-2.0
"""Mistakes of programs that other libraries answer with wrong numbers or by hanging. Each one is told on every rank."""

import re

import numpy as np
import pytest
import tenon
import tenon.distributed as dist
from tenon.distributed import functional


def differing(*calls, error=dist.CollectiveMismatch):
    """calls[rank]() on each rank; the texts of the errors, which are of one class and the same everywhere."""
    texts = [None] * len(calls)

    def work():
        with pytest.raises(error) as caught:
            calls[dist.get_rank()]()
        texts[dist.get_rank()] = str(caught.value)

    with dist.local(len(calls), timeout=10.0) as ranks:
        ranks.run(work)
    return texts


def test_dtype_differs():
    texts = differing(
        lambda: dist.all_reduce(tenon.ones([8])),
        lambda: dist.all_reduce(tenon.ones([8], dtype=tenon.int32)),
    )
    for text in texts:
        assert "call 1 of world: rank 0 all_reduce(float32[8], sum) at test_traps.py:" in text
        assert "rank 1 all_reduce(int32[8], sum) at test_traps.py:" in text


def test_reduction_differs():
    for text in differing(
        lambda: dist.all_reduce(tenon.ones([8]), "sum"),
        lambda: dist.all_reduce(tenon.ones([8]), "max"),
        lambda: dist.all_reduce(tenon.ones([8]), "sum"),
    ):
        assert "rank 0 all_reduce(float32[8], sum)" in text
        assert "rank 1 all_reduce(float32[8], max)" in text
        assert "rank 2 all_reduce(float32[8], sum)" in text


def test_ranks_that_say_the_same_are_named_together():
    def same():
        dist.all_reduce(tenon.ones([8]))

    def other():
        dist.all_reduce(tenon.ones([9]))

    for text in differing(same, same, other):
        assert "ranks 0, 1 all_reduce(float32[8], sum)" in text
        assert "rank 2 all_reduce(float32[9], sum)" in text


def test_count_differs_then_swaps():
    # Bytes of one call must not be taken for those of the next, which would make up for it.
    def work(first, second):
        def calls():
            dist.all_reduce(tenon.ones([first]))
            dist.all_reduce(tenon.ones([second]))

        return calls

    for text in differing(work(4, 6), work(6, 4)):
        assert "call 1 of world" in text and "float32[4]" in text and "float32[6]" in text


def test_skipped_call():
    def all_of_them():
        dist.all_reduce(tenon.ones([8]))
        dist.all_gather_into_tensor(tenon.zeros([16]), tenon.ones([8]))

    def without_the_first():
        dist.all_gather_into_tensor(tenon.zeros([16]), tenon.ones([8]))

    for text in differing(all_of_them, without_the_first):
        assert "rank 0 all_reduce(float32[8], sum)" in text
        assert "rank 1 all_gather(float32[8])" in text


def test_skipped_call_of_the_same_kind_is_told_when_the_rank_leaves():
    def work():
        dist.all_reduce(tenon.ones([8]))
        if dist.get_rank() == 0:
            with pytest.raises(
                dist.PeerFailed, match="rank 1 is gone: it left its groups.*rank 0 was in call 2 of"
            ):
                dist.all_reduce(tenon.ones([8]))

    with dist.local(2, timeout=10.0) as ranks:
        ranks.run(work)


def test_root_differs():
    for text in differing(
        lambda: dist.broadcast(tenon.ones([8]), 0), lambda: dist.broadcast(tenon.ones([8]), 1)
    ):
        assert "broadcast(float32[8], root=0)" in text and "broadcast(float32[8], root=1)" in text


def test_messages_must_agree():
    for text in differing(
        lambda: (dist.send(tenon.ones([4]), 1), dist.barrier()),
        lambda: dist.recv(tenon.ones([4], dtype=tenon.int32), 0),
    ):
        assert "rank 1 expected a message of exchange(int32[4])" in text
        assert "by rank 0 of world, got exchange(float32[4])" in text


def test_a_message_is_no_collective():
    differing(
        lambda: (dist.send(tenon.ones([4]), 1), dist.barrier()),
        lambda: dist.all_reduce(tenon.ones([4])),
    )


def test_all_to_all_with_unequal_ideas_of_a_part():
    def expecting(rows):
        def call():
            into = [tenon.zeros([2 if rank == dist.get_rank() else rows]) for rank in range(2)]
            dist.all_to_all(into, [tenon.ones([2]), tenon.ones([2])])
            dist.barrier()  # who was given what it expects is told at its next call

        return call

    for text in differing(expecting(1), expecting(2)):
        assert "(expected " in text


@pytest.mark.parametrize("count", [5, 30_001, 1_000_003])
def test_order_by_position(count):
    # Numbers whose sum depends on the order: it must be that of ranks, wherever an element lies.
    rng = np.random.default_rng(0)
    parts = [
        (rng.normal(size=count) * 10.0 ** rng.integers(-6, 6, count)).astype("f4") for _ in range(3)
    ]
    expected = (parts[0] + parts[1]) + parts[2]

    def work():
        x = tenon.tensor(parts[dist.get_rank()])
        return dist.all_reduce(x).numpy(), dist.get_rank()

    with dist.local(3) as ranks:
        for result, _ in ranks.run(work):
            np.testing.assert_array_equal(result, expected)


def test_gradient_not_dropped():
    def work():
        x = tenon.ones([2], requires_grad=True)
        for call in (
            lambda: dist.all_reduce(x * 1),
            lambda: dist.broadcast(x * 1, 0),
            lambda: dist.all_gather_into_tensor(tenon.zeros([4]), x * 1),
        ):
            with pytest.raises(ValueError, match="expected tensors without gradient.*functional"):
                call()
        y = functional.all_reduce(x * (dist.get_rank() + 1.0))
        (y * tenon.tensor([1.0, 10.0])).sum().backward()
        return x.grad.tolist()

    with dist.local(2) as ranks:
        # The loss of both ranks together: each gets the gradient of both sums.
        assert ranks.run(work) == [[2.0, 20.0], [4.0, 40.0]]


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_half_sends_half_the_bytes(dtype):
    count = 100_000

    def work():
        group = dist.world()
        sent = []
        for kind in ("float32", dtype):
            before = group.counters()["bytes_sent"]
            dist.all_reduce(tenon.ones([count], dtype=kind))
            sent.append(group.counters()["bytes_sent"] - before)
        return sent

    with dist.local(2) as ranks:
        for wide, half in ranks.run(work):
            assert (wide, half) == (4 * count, 2 * count)  # 2 (n - 1) / n of the bytes, n = 2


def test_half_is_added_in_float32_and_rounded_once():
    values = [2048.0, 1.0, 1.0, 1.0, 1.0]  # in float16 2048 + 1 is 2048

    def work():
        x = tenon.full([3], values[dist.get_rank()], dtype=tenon.float16)
        return dist.all_reduce(x).tolist()

    with dist.local(5) as ranks:
        assert ranks.run(work) == [[2052.0] * 3] * 5


def test_half_overflows_before_mean():
    def work():
        return dist.all_reduce(tenon.full([3], 60000.0, dtype=tenon.float16), "mean").tolist()

    with dist.local(4) as ranks:
        assert ranks.run(work) == [[60000.0] * 3] * 4


def test_group_made_twice():
    def work():
        first, second = dist.new_group([0, 1], "a"), dist.new_group([0, 1], "a")
        if dist.get_rank() == 2:
            assert first is None and second is None
            return None
        # Each has its own connections: work of one does not wait for the other.
        mine = tenon.full([1], 1.0 + dist.get_rank())
        later = second.all_reduce(mine, async_op=True)
        total = first.all_reduce(mine * 10).item()
        return total, later.result().item()

    with dist.local(3) as ranks:
        assert ranks.run(work) == [(30.0, 3.0), (30.0, 3.0), None]


def test_groups_of_different_ranks_by_mistake():
    for text in differing(
        lambda: dist.new_group([0, 1]), lambda: dist.new_group([1, 0]), error=dist.CollectiveError
    ):
        assert re.search("name the same ranks for a new group", text)


def test_an_abort_reaches_split_groups():
    def work():
        with pytest.raises(dist.CollectiveAborted, match="rank 3 has seen enough"):
            part = dist.world().split(dist.get_rank() // 2)
            if dist.get_rank() == 3:
                part.abort("rank 3 has seen enough")
            while True:
                part.all_reduce(tenon.ones([1]))

    with dist.local(4, timeout=10.0) as ranks:
        ranks.run(work)


def test_the_exception_of_a_rank_is_told_to_the_others():
    def work():
        if dist.get_rank() == 1:
            raise KeyError("lost")
        dist.barrier()

    with pytest.raises(KeyError, match="lost"), dist.local(2, timeout=10.0) as ranks:
        ranks.run(work)


def test_program_replays_collectives():
    from tenon import jit

    def step(x):
        return dist.all_reduce(x * 2)

    def work():
        with pytest.raises(
            NotImplementedError, match="talks to other ranks, and a program does not"
        ):
            jit.export(step, tenon.ones([2]))
        return [tenon.compile(step)(tenon.full([2], float(i))).tolist() for i in range(2)]

    with dist.local(2) as ranks:
        assert ranks.run(work) == [[[0.0, 0.0], [4.0, 4.0]]] * 2
