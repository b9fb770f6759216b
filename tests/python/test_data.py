# SPDX-License-Identifier: Apache-2.0
"""Datasets, samplers, DataLoader, progress bar."""

import collections
import io
import threading

import numpy as np
import pytest
import tenon
from tenon.data import (
    BatchSampler,
    ConcatDataset,
    DataLoader,
    Dataset,
    RandomSampler,
    SequentialSampler,
    Subset,
    SubsetRandomSampler,
    TensorDataset,
    default_collate,
    random_split,
)
from tenon.utils import progress


class Squares(Dataset):
    def __init__(self, count):
        self.count = count

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        return index, float(index * index)


def numbered(count):
    return TensorDataset(tenon.arange(count), tenon.arange(count) * 10)


def test_tensor_dataset_rows_and_batches():
    dataset = numbered(5)
    assert len(dataset) == 5
    assert [x.item() for x in dataset[3]] == [3, 30]
    assert [x.tolist() for x in dataset.batch([4, 0])] == [[4, 0], [40, 0]]
    with pytest.raises(ValueError, match=r"lengths \[2, 3\]"):
        TensorDataset(tenon.zeros([2]), tenon.zeros([3]))


def test_subset_and_concat():
    subset = Subset(Squares(10), [7, 2])
    assert [subset[i] for i in range(len(subset))] == [(7, 49.0), (2, 4.0)]
    both = ConcatDataset([subset, Squares(3)])
    assert len(both) == 5
    assert [both[i][0] for i in range(5)] == [7, 2, 0, 1, 2]
    assert both[-1] == (2, 4.0)
    with pytest.raises(IndexError, match="5 samples"):
        both[5]


def test_random_split_is_disjoint_complete_and_repeatable():
    parts = random_split(Squares(11), [0.7, 0.3], seed=1)
    assert [len(part) for part in parts] == [8, 3]
    assert sorted(i for part in parts for i in part.indices) == list(range(11))
    again = random_split(Squares(11), [8, 3], seed=1)
    assert again[0].indices == parts[0].indices
    assert random_split(Squares(11), [8, 3], seed=2)[0].indices != parts[0].indices
    with pytest.raises(ValueError, match="sum to 11"):
        random_split(Squares(11), [8, 2])
    with pytest.raises(ValueError, match="sum to 1"):
        random_split(Squares(11), [0.8, 0.3])


def test_manual_seed_decides_the_order():
    tenon.manual_seed(3)
    first = [list(RandomSampler(Squares(20))), list(RandomSampler(Squares(20)))]
    tenon.manual_seed(3)
    assert [list(RandomSampler(Squares(20))), list(RandomSampler(Squares(20)))] == first
    assert first[0] != first[1]
    assert sorted(first[0]) == list(range(20))


def test_seeded_sampler_changes_from_pass_to_pass_and_repeats_from_run_to_run():
    a, b = RandomSampler(Squares(20), seed=5), RandomSampler(Squares(20), seed=5)
    passes = [list(a), list(a)]
    assert passes[0] != passes[1]
    assert [list(b), list(b)] == passes


def test_samplers():
    assert list(SequentialSampler(Squares(3))) == [0, 1, 2]
    assert sorted(SubsetRandomSampler([5, 7, 9], seed=0)) == [5, 7, 9]
    assert list(BatchSampler(range(5), 2)) == [[0, 1], [2, 3], [4]]
    assert list(BatchSampler(range(5), 2, drop_last=True)) == [[0, 1], [2, 3]]
    assert len(BatchSampler(range(5), 2)) == 3 and len(BatchSampler(range(5), 2, True)) == 2


def test_collate_keeps_structure():
    Point = collections.namedtuple("Point", "x y")
    samples = [
        {
            "image": tenon.ones([2]),
            "point": Point(1, 2.0),
            "name": "a",
            "row": np.arange(2),
            "list": [1, True],
        }
        for _ in range(3)
    ]
    batch = default_collate(samples)
    assert tuple(batch["image"].shape) == (3, 2)
    assert batch["point"].x.tolist() == [1, 1, 1] and batch["point"].y.dtype == tenon.float32
    assert batch["name"] == ["a", "a", "a"]
    assert batch["row"].tolist() == [[0, 1]] * 3
    assert batch["list"][1].dtype == tenon.bool
    with pytest.raises(TypeError, match="object"):
        default_collate([object()])
    with pytest.raises(ValueError, match="differ in length"):
        default_collate([[1], [1, 2]])


@pytest.mark.parametrize("workers", [0, 3])
def test_loader_yields_batches_in_order(workers):
    loader = DataLoader(Squares(10), batch_size=4, num_workers=workers)
    assert len(loader) == 3
    for _ in range(2):
        batches = [(x.tolist(), y.tolist()) for x, y in loader]
        assert [x for x, _ in batches] == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]
        assert batches[2][1] == [64.0, 81.0]


@pytest.mark.parametrize("workers", [0, 2])
def test_shuffled_loader_sees_every_sample_once_per_pass(workers):
    loader = DataLoader(numbered(50), batch_size=8, shuffle=True, seed=0, num_workers=workers)
    passes = [[i for x, _ in loader for i in x.tolist()] for _ in range(2)]
    assert passes[0] != passes[1]
    assert sorted(passes[0]) == sorted(passes[1]) == list(range(50))


def test_subset_of_tensors_is_fetched_in_one_go():
    training, _ = random_split(numbered(10), [6, 4], seed=0)
    ((x, y),) = DataLoader(training, batch_size=6)
    assert x.tolist() == training.indices
    assert y.tolist() == [10 * i for i in training.indices]


def test_workers_run_ahead_but_not_without_bound():
    fetched = []

    class Slow(Squares):
        def __getitem__(self, index):
            fetched.append(index)
            return threading.get_ident()

    batches = iter(DataLoader(Slow(100), num_workers=2, workers="thread", prefetch_factor=2))
    assert next(batches).item() != threading.get_ident()
    assert len(fetched) <= 5
    batches.close()
    assert len(fetched) <= 10


@pytest.mark.parametrize("workers", [0, 2])
def test_an_error_in_a_sample_reaches_the_loop(workers):
    class Broken(Squares):
        def __getitem__(self, index):
            if index == 3:
                raise OSError("disk on fire")
            return index

    with pytest.raises(OSError, match="disk on fire"):
        list(DataLoader(Broken(8), num_workers=workers))


def test_contradictory_options_are_refused():
    with pytest.raises(ValueError, match="leave out shuffle"):
        DataLoader(Squares(3), sampler=[0], shuffle=True)
    with pytest.raises(ValueError, match="replaces"):
        DataLoader(Squares(3), batch_sampler=[[0]], drop_last=True)
    with pytest.raises(ValueError, match="num_workers >= 0"):
        DataLoader(Squares(3), num_workers=-1)
    with pytest.raises(ValueError, match="batch_size >= 1"):
        DataLoader(Squares(3), batch_size=0)


def test_progress_writes_one_line_to_a_file():
    out = io.StringIO()
    bar = progress(range(4), "epoch 1/2", file=out)
    for value in bar:
        bar.update(loss=value)
    text = out.getvalue()
    assert text.startswith("epoch 1/2  4/4  loss 1.5000  ")
    assert text.count("\n") == 1 and "\r" not in text


def test_progress_redraws_on_a_terminal():
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    out = Terminal()
    bar = progress(iter("abc"), total=3, file=out)
    bar.redraw_seconds = 0.0
    assert list(bar) == ["a", "b", "c"]
    lines = out.getvalue().split("\r\x1b[K")
    assert "1/3" in lines[1] and "left" in lines[1] and "[=" in lines[-1]
    assert out.getvalue().endswith("\n")
