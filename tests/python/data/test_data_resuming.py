# SPDX-License-Identifier: Apache-2.0
"""Iterable and stacked datasets, weighted and distributed samplers, and passes that are resumed."""

from collections import Counter

import pytest
import tenon
from tenon import data


class Count(data.IterableDataset):
    def __init__(self, count):
        self.count = count

    def __iter__(self):
        return iter(range(self.count))


class Squares(data.Dataset):
    def __len__(self):
        return 10

    def __getitem__(self, index):
        if index == 7:
            raise OSError("the file is cut off")
        return index * index


def batches(loader):
    return [batch.tolist() for batch in loader]


def test_iterable_datasets():
    assert batches(data.DataLoader(Count(5), 2)) == [[0, 1], [2, 3], [4]]
    assert batches(data.DataLoader(Count(5), 2, drop_last=True)) == [[0, 1], [2, 3]]
    both = data.ChainDataset([Count(2), Count(3)])
    assert batches(data.DataLoader(both, 4)) == [[0, 1, 0, 1], [2]]
    with pytest.raises(TypeError, match="an iterable dataset has no length"):
        len(data.DataLoader(both))
    with pytest.raises(ValueError, match="an iterable dataset decides the order"):
        data.DataLoader(both, shuffle=True)
    with pytest.raises(NotImplementedError, match="IterableDataset must define __iter__"):
        iter(data.IterableDataset())


def test_stacked_datasets():
    assert data.StackDataset([1, 2], "ab")[1] == (2, "b")
    named = data.StackDataset(x=[1, 2], y="ab")
    assert named[0] == {"x": 1, "y": "a"} and len(named) == 2
    with pytest.raises(ValueError, match=r"expected datasets of equal length, got \[1, 2\]"):
        data.StackDataset([1], [1, 2])
    with pytest.raises(ValueError, match="and not both"):
        data.StackDataset([1], x=[2])


def test_weighted_samples():
    counts = Counter(data.WeightedRandomSampler([1, 0, 3], 8000, seed=0))
    assert counts[1] == 0 and abs(counts[2] / counts[0] - 3) < 0.3
    chosen = list(data.WeightedRandomSampler([1, 0, 3, 2], 3, replacement=False, seed=0))
    assert sorted(chosen) == [0, 2, 3]
    first = [next(iter(data.WeightedRandomSampler([1, 3], 1, False, seed=s))) for s in range(2000)]
    assert abs(sum(first) / 2000 - 0.75) < 0.05
    tenon.manual_seed(0)
    one = list(data.WeightedRandomSampler([1, 1], 20))
    tenon.manual_seed(0)
    assert list(data.WeightedRandomSampler([1, 1], 20)) == one
    with pytest.raises(ValueError, match="expected finite weights of at least 0, and one above"):
        data.WeightedRandomSampler([0, 0], 1)
    with pytest.raises(ValueError, match="expected num_samples from 1 to 2 without replacement"):
        data.WeightedRandomSampler([1, 0, 1], 3, replacement=False)


@pytest.mark.parametrize("drop_last", [False, True])
def test_processes_share_a_dataset(drop_last):
    samplers = [
        data.DistributedSampler(range(10), 4, rank, drop_last=drop_last) for rank in range(4)
    ]
    parts = [list(sampler) for sampler in samplers]
    assert {len(part) for part in parts} == {len(samplers[0])} == {2 if drop_last else 3}
    everything = sum(parts, [])
    assert len(set(everything)) == (8 if drop_last else 10)
    samplers[0].set_epoch(1)
    assert list(samplers[0]) != parts[0]
    samplers[0].set_epoch(0)
    assert list(samplers[0]) == parts[0]
    assert list(data.DistributedSampler(range(4), 2, 1, shuffle=False)) == [1, 3]
    assert list(data.DistributedSampler(range(1), 3, 2, shuffle=False)) == [0]
    with pytest.raises(ValueError, match="expected rank from 0 to 1, got 2"):
        data.DistributedSampler(range(4), 2, 2)


@pytest.mark.parametrize("workers", [0, 2])
def test_a_pass_goes_on_where_it_ended(workers):
    def make():
        return data.DataLoader(list(range(20)), 3, shuffle=True, seed=5, num_workers=workers)

    whole = make()
    passes = [batches(whole) for _ in range(3)]
    part = make()
    assert batches(part) == passes[0] and part.state_dict() == {"epoch": 1, "batches": 0}
    running = iter(part)
    assert [next(running).tolist() for _ in range(4)] == passes[1][:4]
    state = part.state_dict()
    assert state == {"epoch": 1, "batches": 4}
    other = make()
    other.load_state_dict(state)
    assert other.state_dict() == state
    assert batches(other) == passes[1][4:]
    assert batches(other) == passes[2]
    ordered = data.DataLoader(Count(5), 2)
    ordered.load_state_dict({"epoch": 0, "batches": 2})
    assert batches(ordered) == [[4]]


@pytest.mark.parametrize("workers", [0, 2])
def test_a_sample_that_fails_is_named(workers):
    loader = data.DataLoader(Squares(), 4, num_workers=workers)
    with pytest.raises(OSError, match="the file is cut off") as failure:
        list(loader)
    notes = getattr(failure.value, "__notes__", ["DataLoader: while reading sample 7"])
    assert any("while reading sample 7" in note for note in notes)


def test_a_pass_over_some_indices_in_random_order_is_resumed():
    def loader():
        return data.DataLoader(
            range(20), 2, sampler=data.SubsetRandomSampler([3, 5, 7, 11, 13, 17], seed=1)
        )

    whole = loader()
    list(whole)
    second = [batch.tolist() for batch in whole]
    running = loader()
    list(running)
    next(iter(running))
    resumed = loader()
    resumed.load_state_dict(running.state_dict())
    assert [batch.tolist() for batch in resumed] == second[1:]
