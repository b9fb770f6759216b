# SPDX-License-Identifier: Apache-2.0
"""Datasets, samplers, DataLoader, progress bar."""

import collections
import io
import math
import pickle
import threading

import numpy as np
import pytest
import tenon
from tenon import data
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
    assert batch["point"].x.tolist() == [1, 1, 1] and batch["point"].y.dtype == tenon.float64
    assert batch["name"] == ["a", "a", "a"]
    assert batch["row"].tolist() == [[0, 1]] * 3
    assert batch["list"][1].dtype == tenon.bool
    with pytest.raises(TypeError, match="object"):
        default_collate([object()])
    with pytest.raises(ValueError, match="differ in length"):
        default_collate([[1], [1, 2]])


def test_collate_keeps_the_digits_of_floats():
    """Times in seconds have more digits than float32."""
    times = default_collate([1700000001.0, 2, 0.1])
    assert times.tolist() == [1700000001.0, 2.0, 0.1]
    assert default_collate([np.float32(0.5), np.float32(1)]).dtype == tenon.float32


@pytest.mark.parametrize(
    "samples, text",
    [
        ([tenon.ones([1]), None], "one kind in a batch, got Tensor and NoneType; pass collate_fn"),
        ([1, "a"], "one kind in a batch, got int and str"),
        ([{"a": 1}, 2], "one kind in a batch, got dict and int"),
        ([np.ones(1), None], "one kind in a batch, got ndarray and NoneType"),
    ],
)
def test_collate_refuses_samples_of_several_kinds(samples, text):
    with pytest.raises(TypeError, match=text):
        default_collate(samples)
    with pytest.raises(ValueError, match=r"the same keys, got \['a'\] and \['a', 'b'\]"):
        default_collate([{"a": 1}, {"a": 1, "b": 2}])


class Holey(Dataset):
    """Its second sample is missing."""

    def __len__(self):
        return 2

    def __getitem__(self, index):
        return None if index else tenon.ones([1])


@pytest.mark.parametrize("workers", [0, 1])
def test_a_sample_that_is_missing_is_named(workers):
    with pytest.raises(TypeError, match="one kind in a batch, got Tensor and NoneType"):
        next(iter(DataLoader(Holey(), 2, num_workers=workers)))


class Tenfold(TensorDataset):
    def __getitem__(self, index):
        (x,) = super().__getitem__(index)
        return (x * 10,)


class Halved(Subset):
    def __getitem__(self, index):
        return super().__getitem__(index)[0] / 2


class Foreign:
    """A dataset of another library, whose method `batch` makes a dataset of batches."""

    def __len__(self):
        return 3

    def __getitem__(self, index):
        return index * 10

    def batch(self, batch_size):
        raise AssertionError("expected the loader to leave this alone")


def rows(loader):
    return [
        row for batch in loader for row in (batch[0] if isinstance(batch, list) else batch).tolist()
    ]


def test_the_loader_reads_what_getitem_gives():
    """A fast way to read a batch is taken only where it stands for the __getitem__ that there
    is."""
    numbers = tenon.arange(4)
    assert rows(DataLoader(Tenfold(numbers), 2)) == [0, 10, 20, 30]
    assert rows(DataLoader(Subset(Tenfold(numbers), [3, 1]), 2)) == [30, 10]
    assert rows(DataLoader(Subset(Subset(Tenfold(numbers), [3, 1]), [1]), 2)) == [10]
    assert rows(DataLoader(Halved(TensorDataset(numbers), [2, 0]), 2)) == [1, 0]
    assert rows(DataLoader(ConcatDataset([Tenfold(numbers), TensorDataset(numbers)]), 8))[3:6] == [
        30,
        0,
        1,
    ]
    assert rows(DataLoader(Foreign(), 2)) == [0, 10, 20]
    dataset = TensorDataset(numbers)
    dataset.batch = 32
    assert rows(DataLoader(dataset, 4)) == [0, 1, 2, 3]


def test_the_loader_asks_for_several_samples_at_once_where_that_stands_for_getitem():
    class Bulk(Dataset):
        def __len__(self):
            return 3

        def __getitem__(self, index):
            return index

        def __getitems__(self, indices):
            return [index + 100 for index in indices]

    class Negative(Bulk):
        def __getitem__(self, index):
            return -index

    class Wrapper:
        """Passes on what it does not have."""

        def __init__(self, inner):
            self.inner = inner

        def __len__(self):
            return len(self.inner)

        def __getitem__(self, index):
            return self.inner[index] * 7

        def __getattr__(self, name):
            return getattr(self.inner, name)

    assert rows(DataLoader(Bulk(), 3)) == [100, 101, 102]
    assert rows(DataLoader(Negative(), 3)) == [0, -1, -2]
    assert rows(DataLoader(Wrapper(Bulk()), 3)) == [0, 7, 14]


def test_batches_of_a_subset():
    subset = Subset(numbered(5), [4, 1])
    assert [x.tolist() for x in subset.batch([1, 0])] == [[1, 4], [10, 40]]
    assert Subset(Squares(5), [4, 1]).batch([1, 0])[0].tolist() == [1, 4]


def test_parts_of_a_dataset_can_be_pickled():
    """As spawned workers need."""
    part, _ = random_split(numbered(10), [6, 4], seed=0)
    again = pickle.loads(pickle.dumps(part))
    assert rows(DataLoader(again, 6)) == part.indices


def test_classes_take_types_in_brackets():
    class Numbers(Dataset[int]):
        def __len__(self):
            return 2

        def __getitem__(self, index):
            return index

    assert rows(DataLoader(Numbers(), 2)) == [0, 1]
    for each in (data.IterableDataset, data.Sampler, DataLoader):
        assert each[int] is not None


@pytest.mark.parametrize("workers", [0, 2])
def test_a_loader_without_a_batch_size_gives_samples(workers):
    dataset = Squares(5)
    loader = DataLoader(dataset, batch_size=None, num_workers=workers)
    assert list(loader) == [dataset[i] for i in range(5)] and len(loader) == 5
    doubled = DataLoader(
        dataset, None, collate_fn=lambda sample: sample[0] * 2, num_workers=workers
    )
    assert list(doubled) == [0, 2, 4, 6, 8]
    (array,) = DataLoader([{"x": np.arange(2)}], None)
    assert array["x"].tolist() == [0, 1]
    shuffled = DataLoader(numbered(5), None, shuffle=True, seed=1)
    assert sorted(x.item() for x, _ in shuffled) == [0, 1, 2, 3, 4]
    with pytest.raises(ValueError, match="leave out drop_last and batch_sampler"):
        DataLoader(dataset, None, drop_last=True)
    with pytest.raises(ValueError, match="expected batch_size >= 1 or None, got 0"):
        DataLoader(dataset, 0)


def test_samples_of_a_stream_without_a_batch_size():
    class Stream(data.IterableDataset):
        def __iter__(self):
            yield from ("a", "b")

    assert list(DataLoader(Stream(), None)) == ["a", "b"]


def test_random_sampler_with_replacement_and_of_other_lengths():
    sampler = RandomSampler(range(4), seed=1, replacement=True, num_samples=4000)
    counts = collections.Counter(sampler)
    assert len(sampler) == 4000 == sum(counts.values())
    assert all(abs(counts[i] - 1000) < 150 for i in range(4))  # five standard deviations
    twice = list(RandomSampler(range(5), seed=1, num_samples=12))
    assert sorted(twice[:5]) == sorted(twice[5:10]) == [0, 1, 2, 3, 4] and len(set(twice[10:])) == 2
    few = list(RandomSampler(range(5), seed=1, num_samples=2))
    assert len(few) == len(set(few)) == 2
    tenon.manual_seed(5)
    first = list(RandomSampler(range(9), replacement=True))
    tenon.manual_seed(5)
    assert list(RandomSampler(range(9), replacement=True)) == first
    with pytest.raises(TypeError, match="as seed, got True; pass replacement=True by its name"):
        RandomSampler(range(4), True)
    with pytest.raises(ValueError, match="expected num_samples >= 1, got 0"):
        RandomSampler(range(4), num_samples=0)
    with pytest.raises(ValueError, match="a sample or more to draw 3 from, got none"):
        iter(RandomSampler([], num_samples=3))


@pytest.mark.parametrize("scale", [1.0, 1e-4, 1e-300, 1e300])
@pytest.mark.parametrize("replacement", [False, True])
def test_weighted_samples_do_not_depend_on_the_scale_of_weights(scale, replacement):
    weights = [scale * weight for weight in [1.0, 0.0, 3.0] * 100]
    drawn = [
        index
        for seed in range(20)
        for index in data.WeightedRandomSampler(weights, 50, replacement, seed=seed)
    ]
    plain = [
        index
        for seed in range(20)
        for index in data.WeightedRandomSampler([1.0, 0.0, 3.0] * 100, 50, replacement, seed=seed)
    ]
    assert drawn == plain
    assert not any(index % 3 == 1 for index in drawn)
    assert abs(sum(index < 150 for index in drawn) - 500) < 80  # five standard deviations


def test_weighted_samples_of_the_smallest_weights():
    """A weight of 0 is never drawn, also where the sum of weights has one digit."""
    smallest = 5e-324
    for replacement in (False, True):
        sampler = data.WeightedRandomSampler([smallest, 0.0], 1, replacement)
        assert [list(sampler) for _ in range(20)] == [[0]] * 20
    with pytest.raises(ValueError, match="expected finite weights of at least 0"):
        data.WeightedRandomSampler([1.0, math.inf], 1)


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
