# SPDX-License-Identifier: Apache-2.0
"""Tables on servers: numbers, modes, entries, what one worker orders, and errors."""

import re
import threading
import time

import pytest
import tenon
import tenon.distributed as dist
from tenon import nn, optim, sparse
from tenon.distributed import ps, rpc
from tenon.distributed.ps import LocalJob

IDS = 23


def batch_of(worker, step, count=11):
    """Ids with repetitions, other ones for each worker and step."""
    return (tenon.arange(count) * (worker + 2) + 5 * step) % IDS


def loss_of(rows, worker, step):
    weights = tenon.arange(rows.numel()).reshape(list(rows.shape)).to(tenon.float32)
    return ((weights * (0.013 * (worker + 1)) + step).sin() * rows).sum() + rows.square().sum()


OPTIMIZERS = {
    "sgd": (optim.SGD, {"lr": 0.3}),
    "adagrad": (optim.Adagrad, {"lr": 0.3, "initial_accumulator_value": 0.1}),
    "adam": (optim.Adam, {"lr": 0.3, "lazy": True}),
    "maximize": (optim.SGD, {"lr": 0.3, "maximize": True}),
}


@pytest.mark.parametrize("workers", [1, 2, 3])
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_sync_has_the_bits_of_a_dense_table(name, workers):
    optimizer, options = OPTIMIZERS[name]
    steps = 4

    def work():
        job = ps.current_job()
        table = ps.Table("t", 8, optimizer, job=job, seed=3, initial_range=0.5, **options)
        embed = ps.DistributedEmbedding(8, table)
        first = table.pull(tenon.arange(IDS))
        for step in range(steps):
            loss_of(embed(batch_of(job.worker, step)), job.worker, step).backward()
        return first, table.pull(tenon.arange(IDS))

    with LocalJob(workers, 2) as local:
        found = local.run(work)
    dense = nn.Embedding(IDS, 8, _weight=found[0][0].clone())
    reference = optimizer(dense.parameters(), **options)
    for step in range(steps):
        total = None
        for worker in range(workers):
            reference.zero_grad()
            loss_of(dense(batch_of(worker, step)), worker, step).backward()
            grad = dense.weight.grad
            total = grad if total is None else total + grad
        dense.weight.grad = total / workers
        if options.get("lazy"):  # rows without a gradient are left alone
            batches = [batch_of(worker, step) for worker in range(workers)]
            touched = tenon.unique(tenon.cat(batches))
            rows = tenon.index_select(dense.weight.grad, touched, 0)
            dense.weight.grad = sparse.coo(touched.reshape([1, -1]), rows, [IDS, 8])
        reference.step()
    for _, rows in found:
        assert rows.tolist() == dense.weight.tolist()
    assert found[0][0].tolist() != dense.weight.tolist()


def test_two_modules_and_two_passes_over_one_table():
    """Modules that read one table push once a pass; another pass over a graph pushes its own gradients alone."""
    with LocalJob(1, 2) as local:
        table = ps.Table("t", 2, optim.SGD, lr=1.0, job=local.jobs[0], initial_range=0.0)
        one, two = ps.DistributedEmbedding(2, table), ps.DistributedEmbedding(2, table)
        ids = tenon.tensor([[4, 5], [4, -6]])
        loss = one(ids).sum() + 10 * two(tenon.tensor([5])).sum()
        loss.backward(retain_graph=True)
        assert table.pull(tenon.tensor([4, 5, -6])).tolist() == [[-2, -2], [-11, -11], [-1, -1]]
        loss.backward()
        assert table.pull(tenon.tensor([4, 5, -6])).tolist() == [[-4, -4], [-22, -22], [-2, -2]]
        with tenon.no_grad():
            assert not one(ids).requires_grad
        one.eval()
        assert not one(ids).requires_grad
        with pytest.raises(ValueError, match="expected a table of dim 3, got 2"):
            ps.DistributedEmbedding(3, table)


@pytest.mark.parametrize("mode", ["sync", "async"])
def test_a_prefetched_batch_is_what_would_be_pulled(mode):
    def work(prefetches):
        job = ps.current_job()
        table = ps.Table("t", 4, optim.SGD, lr=0.1, job=job, mode=mode, initial_range=0.5)
        embed = ps.DistributedEmbedding(4, table)
        for step in range(5):
            rows = embed(batch_of(0, step))
            if prefetches and step != 2:
                embed.prefetch(batch_of(0, step + (1 if step < 3 else 2)))  # one that is not taken
            loss_of(rows, 0, step).backward()
        return table.pull(tenon.arange(IDS)).tolist()

    results = []
    for prefetches in (False, True):
        with LocalJob(1, 2) as local:
            results += local.run(work, prefetches)
    assert results[0] == results[1]


def test_async_pushes_are_updates_of_their_own():
    def work():
        job = ps.current_job()
        table = ps.Table("t", 2, optim.SGD, lr=1.0, mode="async", job=job, initial_range=0.0)
        for _ in range(10):
            table.push(tenon.tensor([1, 2]), tenon.ones([2, 2]))
        table.flush()

    with LocalJob(3, 2) as local:
        local.run(work)
        table = ps.Table(
            "t", 2, optim.SGD, lr=1.0, mode="async", job=local.jobs[0], initial_range=0.0
        )
        assert table.pull(tenon.tensor([[1], [2]])).tolist() == [[[-30.0, -30.0]]] * 2


def test_no_worker_reads_further_ahead_than_the_bound():
    made = {"mode": "async", "staleness": 2, "initial_range": 0.0, "lr": 1.0}
    ids, grad = tenon.tensor([3]), tenon.ones([1, 1])
    with LocalJob(2, 2) as local:
        fast, slow = (ps.Table("t", 1, optim.SGD, job=job, **made) for job in local.jobs)
        for _ in range(2):
            fast.push(ids, grad)
        assert fast.pull(ids).item() == -2.0
        fast.push(ids, grad)
        reads = threading.Event()
        got = []

        def read():
            got.append(fast.pull(ids).item())
            reads.set()

        thread = threading.Thread(target=read)
        thread.start()
        slow.push(ids, 10 * grad)  # the slowest is two behind now
        slow.flush()
        assert reads.wait(60) and got == [-13.0]
        thread.join()
    with LocalJob(2, 2, timeout=0.3) as local:
        fast, slow = (ps.Table("t", 1, optim.SGD, job=job, **made) for job in local.jobs)
        for _ in range(3):
            fast.push(ids, grad)
        with pytest.raises(
            rpc.RemoteError, match="expected push 0 of worker 1 within 0.3 s, got none"
        ):
            fast.pull(ids)


def test_sync_says_which_worker_is_late_or_gone():
    ids, grad = tenon.tensor([3]), tenon.ones([1, 1])
    with LocalJob(2, 1, timeout=0.3) as local:
        table, _ = (ps.Table("t", 1, optim.SGD, lr=1.0, job=job) for job in local.jobs)
        table.push(ids, grad)
        with pytest.raises(
            rpc.RemoteError, match="expected push 0 of worker 1 within 0.3 s, got none"
        ):
            table.flush()
    with LocalJob(2, 1) as local:
        table, _ = (ps.Table("t", 1, optim.SGD, lr=1.0, job=job) for job in local.jobs)
        table.push(ids, grad)
        local.jobs[1].agent.close()
        with pytest.raises(rpc.RemoteError, match="worker 1 is gone, of which push 0 was expected"):
            table.flush()


def test_a_worker_that_comes_by_another_connection_is_there_again():
    ids, grad = tenon.tensor([3]), tenon.ones([1, 1])
    with LocalJob(2, 1) as local:
        one, two = (
            ps.Table("t", 1, optim.SGD, lr=1.0, job=job, initial_range=0.0) for job in local.jobs
        )
        served = local.servers[0].table("t")
        served.lose(1)
        two.push(ids, grad)  # it waits for the other one, and is not lost
        end = time.monotonic() + 30.0
        while served._lost and time.monotonic() < end:  # the push travels by itself
            time.sleep(0.001)
        one.push(ids, grad)
        one.flush()
        two.flush()
        assert one.pull(ids).item() == -1.0


def test_workers_that_have_left_are_not_waited_for():
    """The mean is then that of those who are left."""

    def work():
        job = ps.current_job()
        table = ps.Table("t", 1, optim.SGD, lr=1.0, job=job, initial_range=0.0)
        for _ in range(1 + job.worker):
            table.push(tenon.tensor([3]), tenon.full([1, 1], 1.0 + job.worker))
        table.flush()
        value = table.pull(tenon.tensor([3])).item()
        job.close()
        return value

    with LocalJob(2, 1) as local:
        assert local.run(work)[1] == -1.5 - 2.0
        local.servers[0].wait()  # ends when all have left


def test_geo_adds_the_mean_of_what_workers_changed():
    def work():
        job = ps.current_job()
        table = ps.Table(
            "t", 1, optim.SGD, lr=1.0, mode="geo", geo_steps=3, job=job, initial_range=0.0
        )
        ids = tenon.tensor([7, 8 + job.worker])
        seen = []
        for _ in range(3):
            table.push(ids, tenon.full([2, 1], 1.0 + job.worker))
            seen.append(table.pull(ids)[1].item())
        return seen

    with LocalJob(2, 2) as local:
        # Own copies move at once; after a round they are the servers' rows.
        assert local.run(work) == [[-1.0, -2.0, -1.5], [-2.0, -4.0, -3.0]]
        table = ps.Table(
            "t",
            1,
            optim.SGD,
            lr=1.0,
            mode="geo",
            geo_steps=3,
            job=local.jobs[0],
            initial_range=0.0,
        )
        assert table.pull(tenon.tensor([7, 8, 9])).reshape([-1]).tolist() == [-4.5, -1.5, -3.0]


def test_ids_get_rows_by_the_rule_of_entry():
    with LocalJob(1, 2) as local:
        job = local.jobs[0]

        def pushed(table, clicks=None):
            embed = ps.DistributedEmbedding(2, table)
            embed(tenon.tensor([1, 1, 9]), clicks).sum().backward()
            counters = table.counters()
            return counters["rows"], counters["candidates"]

        made = {"lr": 1.0, "job": job, "initial_range": 0.5}
        table = ps.Table("count", 2, optim.SGD, entry=ps.CountEntry(3), **made)
        assert pushed(table) == (0, 2)
        assert table.pull(tenon.tensor([1])).tolist() == [[0.0, 0.0]]
        assert pushed(table) == (1, 1)  # 1 was shown four times
        assert table.pull(tenon.tensor([1])).tolist() != [[0.0, 0.0]]
        table = ps.Table("clicks", 2, optim.SGD, entry=ps.ShowClickEntry(1.3, 0.1, 1.0), **made)
        assert pushed(table, tenon.tensor([0, 1, 0])) == (0, 2)
        assert pushed(table, tenon.tensor(1)) == (1, 1)
        table = ps.Table("probability", 2, optim.SGD, entry=ps.ProbabilityEntry(1.0), **made)
        assert pushed(table) == (2, 0)
        with pytest.raises(ValueError, match="expected a probability above 0 and up to 1, got 0"):
            ps.ProbabilityEntry(0)
        with pytest.raises(ValueError, match="expected a count of 1 or more, got 0"):
            ps.CountEntry(0)


def test_rows_that_are_not_used_are_removed():
    with LocalJob(1, 2) as local:
        table = ps.Table("t", 1, optim.SGD, lr=1.0, job=local.jobs[0], decay=0.5)
        table.push(
            tenon.arange(10), tenon.ones([10, 1]), shows=tenon.arange(10).to(tenon.float32) * 10
        )
        table.day_end()  # scores are 0.5 * index now
        assert table.shrink(score=2.0) == 4
        table.day_end()
        table.push(tenon.tensor([9]), tenon.ones([1, 1]))
        assert table.shrink(unseen_days=1) == 5
        assert table.counters()["rows"] == 1


def test_cold_rows_lie_in_rocksdb(tmp_path):
    made = {"lr": 1.0, "hot_rows": 64, "initial_range": 0.0}
    with (
        LocalJob(1, 1) as local,
        pytest.raises(rpc.RemoteError, match="expected servers with a folder"),
    ):
        ps.Table("t", 2, optim.Adagrad, job=local.jobs[0], **made)
    with LocalJob(1, 1, folder=str(tmp_path)) as local:
        try:
            table = ps.Table("t", 2, optim.Adagrad, job=local.jobs[0], **made)
        except rpc.RemoteError as error:
            assert "a table with cold rows needs RocksDB's library" in str(error)
            pytest.skip("RocksDB is not installed")
        for _ in range(2):
            table.push(tenon.arange(1000), tenon.ones([1000, 2]))
        counters = table.counters()
        assert counters["rows"] <= 64 and counters["rows"] + counters["cold_rows"] == 1000
        rows = table.pull(tenon.arange(1000))
        assert bool((rows == rows[0]).all().item()) and rows[0, 0].item() < -1.5


def test_one_table_has_one_kind_of_settings():
    with LocalJob(1, 2) as local:
        job = local.jobs[0]
        ps.Table("t", 2, optim.SGD, lr=1.0, job=job)
        with pytest.raises(
            rpc.RemoteError,
            match=r"expected options=\{'lr': 1.0\}, with which the table was made, got",
        ):
            ps.Table("t", 2, optim.SGD, lr=0.5, job=job)


REFUSED = {
    "momentum": (
        {"optimizer": optim.SGD, "momentum": 0.9},
        "SGD with .* changes rows without a gradient",
    ),
    "optimizer": (
        {"optimizer": "Nothing"},
        "expected a class of tenon.optim as optimizer.*'Nothing'",
    ),
    "mode": ({"mode": "half"}, "expected mode 'sync', 'async' or 'geo', got 'half'"),
    "staleness": ({"staleness": 1}, "expected staleness of 0 or more with mode 'async'"),
    "entry": ({"mode": "geo", "entry": ps.CountEntry(2)}, "expected no entry with mode 'geo'"),
    "geo_steps": ({"mode": "geo", "geo_steps": 0}, "expected geo_steps of 1 or more, got 0"),
    "decay": ({"decay": 0.0}, "expected a decay above 0 and up to 1"),
    "name": ({"name": "../t"}, "expected a name of letters"),
}


@pytest.mark.parametrize("given,text", REFUSED.values(), ids=REFUSED.keys())
def test_settings_that_make_no_sense_are_refused(given, text):
    with LocalJob(1, 1) as local, pytest.raises(ValueError, match=text):
        ps.Table(**{"name": "t", "dim": 2, "job": local.jobs[0], "lr": 0.1, **given})


def test_what_is_no_gradient_or_id_is_refused():
    with LocalJob(1, 1) as local:
        table = ps.Table("t", 2, optim.SGD, lr=1.0, job=local.jobs[0])
        with pytest.raises(ValueError, match=r"expected gradients of shape \(3, 2\), got \(3,\)"):
            table.push(tenon.arange(3), tenon.ones([3]))
        with pytest.raises(TypeError, match="expected ids of an integer dtype, got float32"):
            table.pull(tenon.ones([3]))


class Halved(optim.SGD):
    """An optimizer of the test's own."""

    def update(self, param, grad, state, group):
        super().update(param, grad / 2, state, group)


def test_an_optimizer_of_your_own_updates_rows():
    ps.register_optimizer(Halved)
    with LocalJob(1, 1) as local:
        table = ps.Table("t", 1, Halved, lr=1.0, job=local.jobs[0], initial_range=0.0)
        table.push(tenon.tensor([1]), tenon.ones([1, 1]))
        assert table.pull(tenon.tensor([1])).item() == -0.5
    with pytest.raises(ValueError, match="expected a name of its own, got that of optim.SGD"):
        ps.register_optimizer(type("SGD", (optim.SGD,), {}))


def test_few_bytes_travel_beside_ids_and_numbers():
    def work():
        job = ps.current_job()
        table = ps.Table("t", 16, optim.SGD, lr=1.0, job=job)
        before = job.agent.counters()
        ids = tenon.arange(2000) * 7
        table.pull(ids)
        table.push(ids, tenon.ones([2000, 16]))
        table.flush()
        after = job.agent.counters()
        return sum(after[key] - before[key] for key in after)

    with LocalJob(2, 2) as local:
        payload = 2000 * (8 + 64 + 8 + 64)
        for count in local.run(work):
            assert payload < count < 1.02 * payload


def test_the_process_has_to_have_a_role():
    with pytest.raises(
        RuntimeError, match="got none in the variables of this process; start it with `tenon run"
    ):
        ps.init()
    with pytest.raises(RuntimeError, match=r"expected ps.init\(\) to be called first"):
        ps.Table("t", 1)
    assert ps.read_role(
        {"TENON_SERVERS": "2", "TENON_WORKERS": "3", "TENON_SERVER": "1", "RANK": "0"}
    ) == ps.Role(True, 1, 3, 2)
    assert isinstance(dist.rpc.PeerLost("x"), ConnectionError)


def test_compiled_functions_read_rows_as_they_are():
    """A program would keep the rows of the time at which it was recorded: such functions run as they are."""
    with LocalJob(1, 2) as local:
        table = ps.Table("t", 2, optim.SGD, lr=1.0, job=local.jobs[0], initial_range=0.0)
        embed, ids = ps.DistributedEmbedding(2, table), tenon.tensor([1, 2, 1])
        doubled = tenon.compile(lambda ids: embed(ids) * 2)
        found = [doubled(ids).tolist()]
        for _ in range(3):
            table.push(ids, tenon.ones([3, 2]))
            found.append(doubled(ids).tolist())
        assert [rows[1] for rows in found] == [[-2.0 * n] * 2 for n in range(4)]
        with pytest.raises(
            RuntimeError, match=r"DistributedEmbedding\(\) at .* reads or writes rows of servers"
        ):
            tenon.export(lambda ids: embed(ids), ids)


def test_memory_of_a_push_or_a_prefetch_may_be_used_again():
    with LocalJob(1, 1) as local:
        table = ps.Table("t", 1, optim.SGD, lr=1.0, job=local.jobs[0], initial_range=0.5)
        ids, shows = tenon.tensor([1, 2]), tenon.tensor([50.0, 50.0])
        before, behind = threading.Event(), threading.Event()
        table._pushing.submit(lambda: (before.set(), behind.wait(30)))  # the push waits for it
        before.wait(30)
        table.push(ids, tenon.zeros([2, 1]), shows=shows)
        shows.zero_()
        behind.set()
        assert table.shrink(score=4.0) == 0
        rows = table.pull(tenon.tensor([3, 4])).tolist()
        table.prefetch(ids)
        table.push(ids, tenon.zeros([2, 1]))
        table.flush()
        ids.copy_(tenon.tensor([3, 4]))
        assert table.pull(ids).tolist() == rows


def test_clicks_count_for_what_is_removed_by_its_score():
    with LocalJob(1, 1) as local:
        table = ps.Table("t", 1, optim.SGD, lr=1.0, job=local.jobs[0], initial_range=0.5)
        embed = ps.DistributedEmbedding(1, table)
        embed(tenon.tensor([1, 2]), tenon.tensor([0, 1])).sum().backward()
        assert table.shrink(score=0.5) == 1
        assert table.counters()["rows"] == 1


def test_geo_has_no_shows_and_clicks():
    with LocalJob(1, 1) as local:
        job = local.jobs[0]
        table = ps.Table("t", 1, optim.SGD, lr=1.0, mode="geo", decay=0.5, job=job)
        ids = tenon.tensor([1])
        ps.DistributedEmbedding(1, table)(ids).sum().backward()
        with pytest.raises(ValueError, match="expected no shows and clicks with mode 'geo'"):
            table.push(ids, tenon.ones([1, 1]), shows=tenon.ones([1]))


@pytest.mark.parametrize(
    "arguments, text",
    [
        ([0, 0, tenon.tensor([1.0]), tenon.ones([1, 2]), None, None], "ids as int64[n], got float32[1]"),
        ([0, 0, tenon.tensor([1]), tenon.ones([1, 3]), None, None], "gradients as float32[1, 2], got"),
        ([0, 0, tenon.tensor([1]), tenon.ones([1, 2]), [1.0], None], "shows as float32[1], got list"),
    ],
    ids=["ids", "gradients", "shows"],
)  # fmt: skip
def test_servers_keep_no_push_that_they_cannot_carry_out(arguments, text):
    with LocalJob(1, 1) as local:
        job = local.jobs[0]
        table = ps.Table("t", 2, optim.SGD, lr=1.0, job=job)
        with pytest.raises(rpc.RpcError, match=re.escape(f"expected {text}")):
            job.begin(0, "push", "t", arguments).wait()
        with pytest.raises(rpc.RpcError, match="expected a worker below 1, got 3"):
            job.begin(0, "leave", "", [3]).wait()
        with pytest.raises(rpc.RpcError, match="expected a name of letters, digits"):
            job.begin(0, "attach", "../t", [0, table.settings.words()]).wait()
        table.push(tenon.tensor([1]), tenon.ones([1, 2]))
        assert table.counters()["rows"] == 1
