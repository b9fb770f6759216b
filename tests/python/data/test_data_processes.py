# SPDX-License-Identifier: Apache-2.0
"""Workers of the DataLoader: the same batches for any number of them, shared memory, and failures."""

import collections
import gc
import itertools
import multiprocessing
import os
import random
import re
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
import tenon
from tenon import data

# How batches may be read. Forked workers start soonest, so that most tests use them.
WAYS = {
    "here": {},
    "thread": {"num_workers": 2, "workers": "thread"},
    "1 forked": {"num_workers": 1, "multiprocessing_context": "fork"},
    "3 forked": {"num_workers": 3, "multiprocessing_context": "fork"},
    "2 spawned": {
        "num_workers": 2,
        "multiprocessing_context": "spawn",
        "persistent_workers": True,
    },
}
FORK = WAYS["1 forked"]
Point = collections.namedtuple("Point", "x y")


class Noise(data.Dataset):
    """Samples of all kinds, of which some are drawn."""

    def __len__(self):
        return 10

    def __getitem__(self, index):
        return {
            "row": np.arange(3) + index,
            "noise": data.sample_rng().random(),
            "point": Point(index, tenon.full([2], float(index))),
            "name": f"sample {index}",
        }


def listed(batch):
    if isinstance(batch, (tenon.Tensor, np.ndarray)):
        return str(batch.dtype), batch.tolist()
    if isinstance(batch, dict):
        return {key: listed(value) for key, value in batch.items()}
    if isinstance(batch, (list, tuple)):
        return type(batch).__name__, [listed(value) for value in batch]
    return batch


def passes(loader, count=2):
    return [[listed(batch) for batch in loader] for _ in range(count)]


@pytest.fixture(scope="module")
def expected():
    return passes(data.DataLoader(Noise(), 3, shuffle=True, seed=1))


@pytest.mark.parametrize("way", WAYS)
def test_batches_are_the_same_for_any_workers(way, expected):
    loader = data.DataLoader(Noise(), 3, shuffle=True, seed=1, **WAYS[way])
    assert passes(loader) == expected
    loader.close()
    assert len({str(batch["noise"]) for one in expected for batch in one}) == 8


def test_without_a_seed_manual_seed_decides(expected):
    tenon.manual_seed(5)
    drawn = passes(data.DataLoader(Noise(), 3, shuffle=True, **WAYS["3 forked"]))
    tenon.manual_seed(5)
    assert passes(data.DataLoader(Noise(), 3, shuffle=True)) == drawn
    assert drawn[0] != expected[0]


def test_a_pass_goes_on_after_every_batch(expected):
    for way, done in (("3 forked", 1), ("thread", 2), ("1 forked", 3), ("here", 4)):
        loader = data.DataLoader(Noise(), 3, shuffle=True, seed=1, **WAYS[way])
        loader.load_state_dict({"epoch": 1, "batches": done})
        assert passes(loader, 1) == [expected[1][done:]], way


def test_a_worker_draws_the_same_for_a_sample_in_any_batch_size():
    def noise(size):
        loader = data.DataLoader(Noise(), size, seed=1, **FORK)
        return [value for batch in loader for value in batch["noise"].tolist()]

    assert noise(10) == noise(4) == noise(1)


class Drawn(data.Dataset):
    """Draws from the generators that all code of a process shares."""

    def __len__(self):
        return 6

    def __getitem__(self, index):
        return [random.random(), float(np.random.rand()), tenon.rand([1]).item()]


def test_shared_generators_are_seeded_for_each_batch():
    drawn = passes(data.DataLoader(Drawn(), 2, seed=1, **FORK))
    assert len({value for one in drawn for batch in one for value in map(str, batch[1])}) == 18
    assert passes(data.DataLoader(Drawn(), 2, seed=1, **WAYS["3 forked"])) == drawn
    random.seed(0), np.random.seed(0), tenon.manual_seed(0)
    undisturbed = Drawn()[0]
    random.seed(0), np.random.seed(0), tenon.manual_seed(0)
    assert passes(data.DataLoader(Drawn(), 2, seed=1)) == drawn, "with a seed here, too"
    assert Drawn()[0] == undisturbed, "and the program's own state is as before"


def test_seeds_are_asked_for_in_samples_only():
    with pytest.raises(
        RuntimeError, match="expected to be called while a DataLoader reads a sample"
    ):
        data.sample_seed()


# -- what crosses ---------------------------------------------------------------------------------


class Custom:
    def __init__(self, tensor):
        self.tensor = tensor


def as_they_are(samples):
    return samples


KINDS = [
    tenon.arange(6).reshape([2, 3]).permute([1, 0]),
    tenon.ones([3], dtype=tenon.bfloat16),
    tenon.empty([0, 4]),
    tenon.tensor(2.5),
    tenon.tensor([1.0 + 2.0j]),
    tenon.tensor([1.0, 1.0], requires_grad=True),
    np.asfortranarray(np.arange(6.0).reshape(2, 3)),
    np.arange(8)[::-2],
    np.array(["a", "bc"]),
    np.array(["2020-01-01"], "M8[D]"),
    np.array([(1, 2.0)], [("a", "i4"), ("b", "f8")]),
    np.array([], np.float32),
    [True, None, "text", b"bytes", 2**70, {"a": (1,)}],
]


@pytest.mark.parametrize("context", ["fork", "spawn"])
def test_values_of_every_kind_cross(context):
    loader = data.DataLoader(
        KINDS, 1, num_workers=1, multiprocessing_context=context, collate_fn=as_they_are
    )
    for sent, (got,) in zip(KINDS, loader):
        assert type(got) is type(sent)
        if isinstance(sent, list):
            assert got == sent
            continue
        assert got.dtype == sent.dtype and tuple(got.shape) == tuple(sent.shape)
        if isinstance(sent, tenon.Tensor):
            assert got.requires_grad == sent.requires_grad
        assert got.tolist() == sent.tolist()


def test_tensors_inside_of_objects_are_not_pickled():
    big = tenon.arange(100_000)
    (batch,) = data.DataLoader([Custom(big)], 1, collate_fn=as_they_are, **FORK)
    assert (batch[0].tensor == big).all()


def test_large_texts_and_long_batches_do_not_block():
    texts = ["x" * 1_000_000] * 8
    loader = data.DataLoader(texts, 1, prefetch_factor=4, **FORK)
    assert [len(batch[0]) for batch in loader] == [1_000_000] * 8
    many = data.DataLoader(range(200_000), 100_000, prefetch_factor=2, **FORK)
    assert [len(batch) for batch in many] == [100_000] * 2
    far = data.DataLoader(range(8_000), 8, prefetch_factor=1_000, timeout=20, **FORK)
    assert [batch[0].item() for batch in far] == list(range(0, 8_000, 8)), "both buffers are full"


def test_tensors_on_other_devices_are_refused():
    with pytest.raises(TypeError, match=r"got one on meta:0; .* pass device= to the DataLoader"):
        list(data.DataLoader([tenon.empty([2], device="meta")], **FORK))


# -- memory ---------------------------------------------------------------------------------------


def rows(count=64, columns=1024):
    return data.TensorDataset(tenon.arange(count * columns).reshape([count, columns]))


def test_batches_stay_while_they_are_kept():
    batches = [x for (x,) in data.DataLoader(rows(), 4, **FORK)]
    assert len(batches) == 16
    everything = tenon.cat(batches)
    assert (everything == rows().tensors[0]).all()
    batches[0].add_(1)
    assert batches[0][0, 0].item() == 1, "a batch is the program's, and may be changed"


def test_batches_that_are_kept_keep_no_files_open():
    before, files, kept = shared_bytes(), open_files(), []
    for _ in range(20):
        kept.append(next(iter(data.DataLoader(rows(), 4, **FORK)))[0])
    assert open_files() == files and shared_bytes() > before
    assert all((batch == rows().tensors[0][:4]).all() for batch in kept)
    del kept
    assert shared_bytes() == before


def test_memory_is_used_again_without_a_copy():
    loader = data.DataLoader(rows(), 4, **FORK)
    addresses = [x.data_ptr() for (x,) in loader]
    assert len(set(addresses)) <= 6, "of 16 batches; two are read ahead"
    views = [x[1:] for (x,) in loader]
    assert all(
        (view == rows().tensors[0][4 * n + 1 : 4 * n + 4]).all() for n, view in enumerate(views)
    )


def open_files():
    return len(os.listdir("/proc/self/fd"))


def shared_bytes():
    """Shared memory that this process maps, when what only cycles of tracebacks hold is gone."""
    gc.collect()
    with open("/proc/self/smaps", encoding="ascii") as file:
        lines = file.read().split("\n")
    total, inside = 0, False
    for line in lines:
        if "-" in line.split(" ")[0]:
            inside = "memfd:tenon " in line
        elif inside and line.startswith("Size:"):
            total += int(line.split()[1])
    return total * 1024


def test_nothing_grows_over_many_passes_and_nothing_has_a_name():
    names, others = set(os.listdir("/dev/shm")), shared_bytes()
    persistent = data.DataLoader(rows(), 4, persistent_workers=True, **FORK)
    list(persistent)
    files, before = open_files(), shared_bytes()
    for _ in range(20):
        for (batch,) in persistent:
            del batch
    assert open_files() == files and shared_bytes() <= before + (1 << 17)
    assert before - others < 1 << 20
    for number in range(6):
        batches = iter(data.DataLoader(rows(), 4, **FORK))
        assert len(list(itertools.islice(batches, 1 if number % 2 else None)))
        del batches
    assert open_files() == files and shared_bytes() <= before + (1 << 17)
    persistent.close()
    assert open_files() < files and shared_bytes() == others
    assert set(os.listdir("/dev/shm")) <= names


class Full(data.Dataset):
    def __len__(self):
        return 4

    def __getitem__(self, index):
        def refuse(*_):
            raise OSError(28, "No space left on device")

        os.posix_fallocate = refuse  # in the worker, whose end is near
        return index


def test_a_full_memory_is_an_error():
    with pytest.raises(
        tenon.OutOfMemoryError, match="expected .* bytes of shared memory"
    ) as failure:
        list(data.DataLoader(Full(), 2, **FORK))
    assert "worker 0" in str(failure.value) and "samples 0, 1" in str(failure.value)


# -- failures -------------------------------------------------------------------------------------


class Unpicklable(Exception):
    def __init__(self, code, text):
        super().__init__(text)


class Failing(data.Dataset):
    """Sample 5 fails in the way of `how`."""

    def __init__(self, how):
        self.how = how

    def __len__(self):
        return 8

    def __getitem__(self, index):
        if index != 5:
            return index
        if self.how == "raise":
            raise OSError("disk on fire")
        if self.how == "unpicklable":
            raise Unpicklable(3, "of its own kind")
        if self.how == "lambda":
            return lambda: None
        if self.how == "exit":
            os._exit(3)
        if self.how == "sleep":
            time.sleep(5)
            return index
        os.kill(os.getpid(), signal.SIGKILL)
        return None


@pytest.mark.parametrize("context", ["fork", "spawn"])
def test_an_exception_keeps_its_type_and_says_where_it_was_raised(context):
    loader = data.DataLoader(Failing("raise"), 2, num_workers=2, multiprocessing_context=context)
    with pytest.raises(OSError, match="disk on fire") as failure:
        list(loader)
    assert "in __getitem__" in str(failure.value.__cause__), "the worker's traceback"
    notes = "\n".join(getattr(failure.value, "__notes__", [])) or str(failure.value.__cause__)
    assert "while reading sample 5 of the dataset" in notes
    if hasattr(failure.value, "__notes__"):
        assert "in worker 0 (process " in notes


def test_exceptions_and_batches_that_cannot_be_pickled():
    with pytest.raises(RuntimeError, match="Unpicklable: of its own kind"):
        list(data.DataLoader(Failing("unpicklable"), **FORK))
    with pytest.raises(Exception, match="pickle"):
        list(data.DataLoader(Failing("lambda"), collate_fn=as_they_are, **FORK))


@pytest.mark.parametrize("how, words", [("kill", "was ended by SIGKILL"), ("exit", "status 3")])
def test_a_worker_that_ends_is_named_with_its_sample(how, words):
    loader = data.DataLoader(Failing(how), 2, num_workers=2, multiprocessing_context="fork")
    batches = iter(loader)
    assert next(batches).tolist() == [0, 1] and next(batches).tolist() == [2, 3]
    with pytest.raises(data.WorkerError, match=words) as failure:
        next(batches)
    assert "while it read sample 5 of samples 4, 5" in str(failure.value)
    assert "worker 0 (process " in str(failure.value)
    assert failure.value.worker == 0 and failure.value.samples == [4, 5]


@pytest.mark.parametrize("workers", ["process", "thread"])
def test_a_worker_that_is_late_is_named(workers):
    loader = data.DataLoader(Failing("sleep"), 2, num_workers=2, workers=workers, timeout=0.3)
    begun = time.monotonic()
    with pytest.raises(data.WorkerError, match=r"worker 0 \(.*\) within 0.3 s") as failure:
        list(loader)
    assert "samples 4, 5" in str(failure.value) and time.monotonic() - begun < 30
    assert re.search(r"The worker is here:\n(.*\n)+.* in __getitem__", str(failure.value))


def test_after_a_failure_other_workers_are_started():
    dataset = Failing("raise")
    with data_loader(dataset, 2, persistent_workers=True, **FORK) as loader:
        for _ in range(2):
            with pytest.raises(OSError, match="disk on fire"):
                list(loader)
    with data_loader(Failing("kill"), 2, persistent_workers=True, **FORK) as loader:
        for _ in range(2):
            with pytest.raises(data.WorkerError, match="SIGKILL"):
                list(loader)


class data_loader:
    """A DataLoader that is closed."""

    def __init__(self, *arguments, **options):
        self.loader = data.DataLoader(*arguments, **options)

    def __enter__(self):
        return self.loader

    def __exit__(self, *_):
        self.loader.close()


PARENT = """
import os, time
from tenon import data

class Slow(data.Dataset):
    def __len__(self):
        return 4

    def __getitem__(self, index):
        os.write(1, b"%d\\n" % os.getpid())
        time.sleep(60)

if __name__ == "__main__":
    for _ in data.DataLoader(Slow(), num_workers=2, multiprocessing_context="{context}"):
        pass
"""


def is_alive(process):
    try:
        with open(f"/proc/{process}/stat", encoding="ascii") as file:
            return file.read().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


@pytest.mark.parametrize("context", ["fork", "spawn", "forkserver"])
def test_workers_end_with_the_program(context, tmp_path):
    script = tmp_path / "program.py"
    script.write_text(PARENT.format(context=context))
    program = subprocess.Popen([sys.executable, script], stdout=subprocess.PIPE, text=True)
    workers = [int(program.stdout.readline()) for _ in range(2)]
    assert all(map(is_alive, workers))
    program.kill()
    program.wait()
    program.stdout.close()
    until = time.monotonic() + 10
    while any(map(is_alive, workers)) and time.monotonic() < until:
        time.sleep(0.01)
    assert not any(map(is_alive, workers))


def test_leaving_a_loop_early_ends_the_workers():
    class Endless(Failing):
        def __len__(self):
            return 10**9

    began, children = time.monotonic(), multiprocessing.active_children()
    batches = iter(data.DataLoader(Endless("none"), 5, num_workers=2))
    next(batches)
    batches.close()
    assert multiprocessing.active_children() == children
    assert time.monotonic() - began < 30


# -- workers --------------------------------------------------------------------------------------


class Facts(data.Dataset):
    def __len__(self):
        return 8

    def __getitem__(self, index):
        info = data.get_worker_info()
        return [
            os.getpid(),
            info.id,
            info.num_workers,
            tenon.get_num_threads(),
            info.dataset is self,
        ]


@pytest.mark.parametrize("context", ["fork", "spawn"])
def test_workers_know_who_they_are_and_use_one_thread(context):
    loader = data.DataLoader(Facts(), 1, num_workers=2, multiprocessing_context=context)
    facts = [[column.item() for column in batch] for batch in loader]
    assert {tuple(fact[1:]) for fact in facts} == {(0, 2, 1, True), (1, 2, 1, True)}
    assert len({fact[0] for fact in facts} | {os.getpid()}) == 3
    assert data.get_worker_info() is None


def test_persistent_workers_serve_every_pass():
    def pids(loader):
        return {batch[0].item() for batch in loader}

    with data_loader(Facts(), 1, persistent_workers=True, **WAYS["3 forked"]) as loader:
        first = pids(loader)
        batches = iter(loader)
        next(batches)
        del batches  # with tasks in the queues
        assert pids(loader) == first and len(first) == 3
        outer = iter(loader)
        next(outer)
        assert pids(loader) == first
        with pytest.raises(RuntimeError, match="another pass has begun"):
            list(outer)
        assert pids(loader) == first
    assert not any(map(is_alive, first))


def test_a_forked_child_leaves_the_workers_alone():
    with data_loader(Facts(), 1, persistent_workers=True, **WAYS["3 forked"]) as loader:
        batches = iter(loader)
        next(batches)
        child = os.fork()
        if not child:
            batches.close()
            loader.close()
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        assert len(list(batches)) == 7


def fail_to_start(worker):
    raise LookupError(f"no licence for worker {worker}")


def note_worker(worker):
    os.environ["TENON_TEST_WORKER"] = str(worker)


class Environment(data.Dataset):
    def __len__(self):
        return 4

    def __getitem__(self, index):
        return int(os.environ["TENON_TEST_WORKER"]) == data.get_worker_info().id


@pytest.mark.parametrize("context", ["fork", "spawn"])
def test_a_function_that_workers_begin_with(context):
    options = {"num_workers": 2, "multiprocessing_context": context}
    loader = data.DataLoader(Environment(), worker_init_fn=note_worker, **options)
    assert all(batch.item() for batch in loader)
    with pytest.raises(LookupError, match="no licence for worker 0"):
        list(data.DataLoader(Environment(), worker_init_fn=fail_to_start, **options))


def test_forked_workers_may_use_the_operators():
    """While threads of the program are inside of operators: the pool and the allocator survive a fork."""
    x, stop = tenon.rand([256, 256]), threading.Event()

    def compute():
        while not stop.is_set():
            x @ x

    class Products(Failing):
        def __getitem__(self, index):
            tenon.set_num_threads(2)
            return (x @ x).sum()

    threads = [threading.Thread(target=compute) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(5):
            # Ends a worker that hangs; ten busy threads on two processors are slow, not stuck.
            loader = data.DataLoader(Products("none"), 2, num_workers=2, timeout=60)
            values = tenon.cat(list(loader))
            assert (values == values[0]).all()
    finally:
        stop.set()
        for thread in threads:
            thread.join()


# -- streams --------------------------------------------------------------------------------------


class Shared(data.IterableDataset):
    def __init__(self, count):
        self.count = count

    def __iter__(self):
        info = data.get_worker_info()
        yield from range(info.id if info else 0, self.count, info.num_workers if info else 1)


class Whole(data.IterableDataset):
    def __iter__(self):
        return iter(range(10))


def test_streams_are_divided_among_workers():
    for options in (WAYS["thread"], {**FORK, "num_workers": 2}):
        loader = data.DataLoader(Shared(9), 2, **options)
        assert [batch.tolist() for batch in loader] == [[0, 2], [1, 3], [4, 6], [5, 7], [8]]
        short = data.DataLoader(Shared(9), 2, drop_last=True, **options)
        assert [batch.tolist() for batch in short] == [[0, 2], [1, 3], [4, 6], [5, 7]]
    assert [batch.tolist() for batch in data.DataLoader(Shared(1), 1, **WAYS["3 forked"])] == [[0]]
    chained = data.ChainDataset([Shared(2), Shared(2)])
    assert [batch.tolist() for batch in data.DataLoader(chained, 2, **WAYS["thread"])] == [
        [0, 0],
        [1, 1],
    ]


def test_a_stream_that_every_worker_reads_is_refused():
    assert len(list(data.DataLoader(Whole(), 2, **FORK))) == 5, "one worker reads all of it"
    with pytest.raises(ValueError, match="expected the iterable dataset Whole to yield a share"):
        list(data.DataLoader(Whole(), 2, **WAYS["3 forked"]))


def divide(worker):
    info = data.get_worker_info()
    info.dataset.part = range(worker, 6, info.num_workers)


class Divided(data.IterableDataset):
    def __iter__(self):
        return iter(self.part)


def test_a_function_may_divide_the_stream():
    loader = data.DataLoader(Divided(), 3, worker_init_fn=divide, **{**FORK, "num_workers": 2})
    assert [batch.tolist() for batch in loader] == [[0, 2, 4], [1, 3, 5]]


class BrokenStream(data.IterableDataset):
    def __iter__(self):
        yield from range(3)
        raise OSError("the tape is torn")


def test_a_sample_of_a_stream_is_named():
    with pytest.raises(OSError, match="the tape is torn") as failure:
        list(data.DataLoader(BrokenStream(), 2, **FORK))
    if hasattr(failure.value, "__notes__"):
        assert any("sample 3 of the stream" in note for note in failure.value.__notes__)


# -- options --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options, words",
    [
        ({"workers": "fibre"}, "expected workers 'process' or 'thread', got 'fibre'"),
        ({"num_workers": 1, "timeout": -1}, "expected timeout >= 0"),
        ({"timeout": 1}, "timeout is for workers, got num_workers=0"),
        ({"prefetch_factor": 1}, "prefetch_factor is for workers"),
        ({"num_workers": 1, "prefetch_factor": 0}, "prefetch_factor >= 1"),
        ({"worker_init_fn": print}, "worker_init_fn is for workers"),
        (
            {"num_workers": 1, "workers": "thread", "persistent_workers": True},
            "persistent_workers is for processes, got num_workers=1 and workers='thread'",
        ),
        ({"num_workers": 1, "multiprocessing_context": "clone"}, "to be one of .*got 'clone'"),
    ],
)
def test_options_without_an_effect_are_refused(options, words):
    with pytest.raises(ValueError, match=words):
        data.DataLoader(Noise(), **options)
