# SPDX-License-Identifier: Apache-2.0
"""Four ranks, each on a device of its own, by the vendor's library of collectives."""

import textwrap

import pytest

pytestmark = pytest.mark.parametrize("kind", ["ascend", "cuda", "hip"], indirect=True)

COMMON = """
import threading
import numpy as np
from tenon import collective

RANKS = 4

def in_ranks(work):
    id = collective.create_id(f"{KIND}:0")
    results, problems = [None] * RANKS, []

    def body(rank):
        try:
            device = f"{KIND}:{rank}"
            with collective.Communicator(device, id, rank, RANKS, 60.0) as comm:
                results[rank] = work(comm, rank, device)
        except BaseException as error:
            problems.append(error)

    threads = [threading.Thread(target=body, args=(rank,)) for rank in range(RANKS)]
    [thread.start() for thread in threads]
    [thread.join(100) for thread in threads]
    assert not problems, problems
    return results
"""


def program(code):
    return COMMON + textwrap.dedent(code)


@pytest.fixture
def passes(run, kind):
    """Runs the code. Where every operator of training is on the device, none may run on the host."""

    def check(code):
        fallback = "allow" if kind == "ascend" else "deny"
        devices = {"SIMULATED_DEVICES": "4", "SIMULATED_ASCEND_DEVICES": "4"}
        result = run(program(code), TENON_FALLBACK=fallback, **devices)
        assert result.returncode == 0, result.stderr

    return check


def test_every_collective(passes):
    code = """
        def work(comm, rank, device):
            x = tenon.arange(8, device=device).to(tenon.float32) * (rank + 1)
            total = comm.all_reduce(x)
            gathered = comm.all_gather(x)
            part = comm.reduce_scatter(x)
            copied = comm.broadcast(x, root=2)
            # Each of these waits for the other ranks, whose threads need the GIL meanwhile.
            return total.cpu().numpy(), np.array(gathered.tolist()), tenon.to_device(part, "cpu").numpy(), copied.cpu().numpy()

        base = np.arange(8, dtype="float32")
        for rank, (total, gathered, part, copied) in enumerate(in_ranks(work)):
            np.testing.assert_array_equal(total, base * 10)
            np.testing.assert_array_equal(gathered.reshape(-1), np.concatenate([base * (r + 1) for r in range(4)]))
            np.testing.assert_array_equal(part, base[2 * rank : 2 * rank + 2] * 10)
            np.testing.assert_array_equal(copied, base * 3)
    """
    passes(code)


def test_data_parallel_training_equals_one_process(passes):
    code = """
        rng = np.random.default_rng(0)
        data = rng.standard_normal((16, 6)).astype("float32")
        target = rng.standard_normal((16, 3)).astype("float32")
        start = (rng.standard_normal((3, 6)) / 3).astype("float32")

        def train(device, rows, average):
            w = tenon.tensor(start).to(device)
            x, y = tenon.tensor(data[rows]).to(device), tenon.tensor(target[rows]).to(device)
            for _ in range(5):
                w = w.detach()
                w.requires_grad = True
                (tenon.linear(x, w) - y).square().mean().backward()
                w = w.detach() - 0.1 * average(w.grad)
            return w.cpu().numpy()

        def work(comm, rank, device):
            rows = slice(4 * rank, 4 * rank + 4)
            return train(device, rows, lambda g: comm.all_reduce(g, "mean"))

        alone = train(f"{KIND}:0", slice(None), lambda g: g)
        parts = in_ranks(work)
        for part in parts:
            np.testing.assert_array_equal(part, parts[0])
            np.testing.assert_allclose(part, alone, rtol=1e-5, atol=1e-6)
    """
    passes(code)


def test_exchanges_and_parts(passes):
    code = """
        def work(comm, rank, device):
            x = tenon.arange(8, device=device).to(tenon.float32) + 100 * rank
            swapped = comm.all_to_all(x)
            part = comm.split(color=rank % 2, key=-rank)
            total = part.all_reduce(x)
            place = part.rank
            part.close()
            root = comm.reduce(x, root=1)
            comm.check()
            return swapped.cpu().numpy(), total.cpu().numpy(), place, None if root is None else root.cpu().numpy()

        base = np.arange(8, dtype="float32")
        for rank, (swapped, total, place, root) in enumerate(in_ranks(work)):
            own = base[2 * rank : 2 * rank + 2]
            np.testing.assert_array_equal(swapped, np.concatenate([own + 100 * r for r in range(4)]))
            np.testing.assert_array_equal(total, 2 * base + 100 * (rank + (rank + 2) % 4))
            assert place == (1 if rank < 2 else 0)
            assert (root is None) == (rank != 1)
            if rank == 1:
                np.testing.assert_array_equal(root, 4 * base + 600)
    """
    passes(code)
