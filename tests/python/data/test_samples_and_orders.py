# SPDX-License-Identifier: Apache-2.0
"""Orders of samplers and kinds of samples, beside what they are by definition."""

import collections
import pickle

import numpy as np
import pytest
import tenon
from tenon import data


class Picture:
    """Memory that NumPy can read, as pictures of Pillow are: no array."""

    def __init__(self, array):
        self.array = array

    @property
    def __array_interface__(self):
        return self.array.__array_interface__


class Array(Picture):
    def __array__(self, dtype=None, copy=None):
        return self.array


@pytest.mark.parametrize("count", [1, 2, 7, 10])
@pytest.mark.parametrize("parts", [1, 3, 4])
@pytest.mark.parametrize("drop_last", [False, True])
def test_processes_divide_a_dataset(count, parts, drop_last):
    samplers = [
        data.DistributedSampler(range(count), parts, rank, False, drop_last=drop_last)
        for rank in range(parts)
    ]
    length = count // parts if drop_last else -(-count // parts)
    whole = (list(range(count)) * parts)[: length * parts]
    for rank, sampler in enumerate(samplers):
        assert len(sampler) == length and list(sampler) == whole[rank::parts]
    for epoch in (0, 1):
        shuffled = [
            data.DistributedSampler(range(count), parts, rank, seed=3, drop_last=drop_last)
            for rank in range(parts)
        ]
        for each in shuffled:
            each.set_epoch(epoch)
        drawn = [index for each in shuffled for index in each]
        assert len(drawn) == length * parts
        if not drop_last:
            assert set(drawn) == set(range(count))
    with pytest.raises(ValueError, match=f"expected rank from 0 to {parts - 1}, got {parts}"):
        data.DistributedSampler(range(count), parts, parts)
    assert list(data.DistributedSampler([], 2, 0)) == []


def test_lists_of_indices():
    for count, size in ((7, 3), (6, 3), (0, 2), (1, 5)):
        for drop_last in (False, True):
            batches = data.BatchSampler(range(count), size, drop_last)
            want = [list(range(i, min(i + size, count))) for i in range(0, count, size)]
            want = [batch for batch in want if len(batch) == size or not drop_last]
            assert list(batches) == want and len(batches) == len(want)
    with pytest.raises(ValueError, match="BatchSampler: expected batch_size >= 1, got 0"):
        data.BatchSampler(range(3), 0)


def test_seeds_of_the_program_decide_where_none_is_given():
    def drawn(seed, *more):
        tenon.manual_seed(seed)
        return [
            list(data.RandomSampler(range(30), *more)),
            list(data.RandomSampler(range(30), *more, replacement=True)),
            list(data.RandomSampler(range(30), *more, num_samples=9)),
            list(data.SubsetRandomSampler(range(30), *more)),
            list(data.WeightedRandomSampler([1.0] * 30, 9, True, *more)),
            list(data.WeightedRandomSampler([1.0] * 30, 9, False, *more)),
        ]

    assert drawn(1) == drawn(1)
    assert all(one != other for one, other in zip(drawn(1), drawn(2)))
    assert drawn(1, 5) == drawn(2, 5)
    for one, other in zip(drawn(1, 5), drawn(1, 6)):
        assert one != other
    lengths = (30, 30, 9, 30, 9, 9)
    assert [len(each) for each in drawn(1)] == list(lengths)


def test_weights_decide_how_often():
    drawn = collections.Counter(data.WeightedRandomSampler([1.0, 0.0, 3.0], 8000, seed=1))
    assert drawn[1] == 0 and abs(drawn[2] - 6000) < 200 and sum(drawn.values()) == 8000
    assert sorted(data.WeightedRandomSampler([1.0, 0.0, 3.0], 2, False)) == [0, 2]
    for weights, count, text in (
        ([], 1, "expected finite weights of at least 0, and one above, got"),
        ([0.0], 1, "one above"),
        ([1.0, -1.0], 1, "of at least 0"),
        ([1.0, float("nan")], 1, "finite weights"),
        ([1.0, 0.0], 0, "expected num_samples from 1 to 1 without replacement, got 0"),
        ([1.0, 0.0], 2, "expected num_samples from 1 to 1 without replacement, got 2"),
    ):
        with pytest.raises(ValueError, match=text):
            data.WeightedRandomSampler(weights, count, False)
    assert len(list(data.WeightedRandomSampler([1.0, 0.0], 5))) == 5


def test_arrays_of_other_libraries_become_tensors_and_pictures_stay():
    one, other = np.arange(3.0), np.arange(3.0) + 5
    batch = data.default_collate([Array(one), Array(other)])
    assert isinstance(batch, tenon.Tensor) and batch.tolist() == [one.tolist(), other.tolist()]
    (sample,) = data.DataLoader([{"x": Array(one), "y": (1, "text")}], None)
    assert sample["x"].tolist() == one.tolist() and sample["y"] == (1, "text")
    picture = Picture(one)
    (sample,) = data.DataLoader([(picture, 3)], None)
    assert sample[0] is picture
    with pytest.raises(
        TypeError, match="default_collate: expected .*, got Picture; pass collate_fn"
    ):
        data.default_collate([picture])
    mixed = data.default_collate([np.float32(1.5), 2, True])
    assert mixed.tolist() == [1.5, 2.0, 1.0]


class Seeds(data.Dataset):
    def __init__(self, keys):
        self.keys = keys

    def __len__(self):
        return len(self.keys)

    def __getitem__(self, index):
        return data.sample_seed()


def splitmix(*numbers):
    """SplitMix64 (Steele, Lea and Flood, 2014) over numbers, of which each is mixed into the state."""
    state, word = 0, 2**64 - 1
    for number in numbers:
        state = ((state ^ number) + 0x9E3779B97F4A7C15) & word
        state = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & word
        state = ((state ^ (state >> 27)) * 0x94D049BB133111EB) & word
        state ^= state >> 31
    return state >> 1


def test_seeds_of_samples_follow_from_seed_pass_and_index():
    """They are the same in every version, so that a pass may be resumed by another one."""

    def seeds(indices, **options):
        loader = data.DataLoader(Seeds(range(9)), None, sampler=indices, seed=7, **options)
        return [list(loader) for _ in range(2)]

    want = [[splitmix(7, epoch, index) for index in (3, 0, 8)] for epoch in (0, 1)]
    assert seeds([3, 0, 8]) == want and splitmix(0) == 0xE220A8397B1DCDAF >> 1
    assert seeds([np.int64(3), np.uint8(0), np.int32(8)]) == want
    names = seeds(["a", ("b", 1), ("b", np.int64(1))])
    assert names[0][1] == names[0][2] and len({*names[0], *names[1]}) == 4


def test_generators_outside_of_a_loader_differ():
    drawn = {data.reading.pass_rng().random() for _ in range(300)}
    assert len(drawn) == 300
    tenon.manual_seed(3)
    first = data.reading.pass_rng().random()
    tenon.manual_seed(3)
    assert data.reading.pass_rng().random() == first


Pair = collections.namedtuple("Pair", "a b")


def test_batches_keep_their_containers_on_a_device():
    def batch(samples):
        numbers = tenon.tensor(samples)
        return (numbers, [numbers, "text"], {"k": numbers}, Pair(numbers, (numbers, None)))

    for pin_memory in (False, True):
        options = {"collate_fn": batch, "device": "cpu", "pin_memory": pin_memory}
        (got,) = data.DataLoader(range(3), 3, **options)
        assert [type(each) for each in got] == [tenon.Tensor, list, dict, Pair]
        assert type(got) is tuple and type(got[3].b) is tuple and got[3].b[1] is None
        assert got[1][1] == "text" and got[2]["k"].tolist() == got[3].a.tolist() == [0, 1, 2]


def test_numbers_of_every_kind():
    for samples, dtype in (
        ([1, 2], tenon.int64),
        ([True, False], tenon.bool),
        ([1, 2.5], tenon.float64),
        ([np.int32(1), np.int32(2)], tenon.int32),
        ([b"a", b"b"], None),
        ([{"a": (1, [2.0])}, {"a": (3, [4.0])}], None),
    ):
        batch = data.default_collate(samples)
        if dtype is not None:
            assert batch.dtype == dtype and batch.tolist() == [float(each) for each in samples]
        elif isinstance(batch, dict):
            first, (second,) = batch["a"]
            assert first.tolist() == [1, 3] and second.tolist() == [2.0, 4.0]
        else:
            assert batch == samples


def test_tables_are_opened_again_where_they_are_unpickled(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    table = pyarrow.table({"n": [1, None, 3], "text": ["a", "b", "c"], "x": [0.5, 1.5, 2.5]})
    path = str(tmp_path / "t.arrow")
    with pyarrow.OSFile(path, "wb") as sink, pyarrow.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    for columns in (None, ["x", "n"]):
        dataset = data.ArrowDataset(path, columns)
        content = pickle.dumps(dataset)
        assert len(content) < 500 and b"_has_gaps" not in content
        again = pickle.loads(content)
        assert len(again) == 3 and [again[i] for i in range(3)] == [dataset[i] for i in range(3)]
        batch = again.batch([2, 0])
        assert batch["x"].tolist() == [2.5, 0.5] and batch["n"] == [3, 1]
        assert list(batch) == (columns or ["n", "text", "x"])
    with pytest.raises(IndexError, match="ArrowDataset: index -4 is out of range for 3 rows"):
        dataset[-4]


def test_datasets_side_by_side_and_one_after_another():
    rows = data.TensorDataset(tenon.arange(3), tenon.arange(3) * 10)
    side = data.StackDataset(rows, [7, 8, 9])
    assert len(side) == 3 and side[1][1] == 8 and [x.item() for x in side[1][0]] == [1, 10]
    named = data.StackDataset(a=[1, 2], b=[3, 4])
    assert len(named) == 2 and named[1] == {"a": 2, "b": 4}
    for make, text in (
        (lambda: data.StackDataset(), "expected datasets, or named datasets, and not both"),
        (
            lambda: data.StackDataset([1], b=[2]),
            "expected datasets, or named datasets, and not both",
        ),
        (lambda: data.StackDataset([1], [2, 3]), r"datasets of equal length, got \[1, 2\]"),
        (
            lambda: data.TensorDataset(),
            r"TensorDataset: expected tensors of equal length, got lengths \[\]",
        ),
    ):
        with pytest.raises(ValueError, match=text):
            make()
    both = data.ConcatDataset([[1, 2], [], [3]])
    assert len(both) == 3 and [both[i] for i in (0, 1, 2, -1, -3)] == [1, 2, 3, 3, 1]
    for index in (3, -4):
        with pytest.raises(IndexError, match=f"ConcatDataset: index {index} is out of range for 3"):
            both[index]
    assert len(data.ConcatDataset([])) == 0
    frozen = data.FrozenList(["a", (1, 2), None])
    assert [frozen[i] for i in (0, 1, 2, -1, -3)] == ["a", (1, 2), None, None, "a"]
    assert len(frozen) == 3 and len(data.FrozenList([])) == 0
    for index in (3, -4):
        with pytest.raises(
            IndexError, match=f"FrozenList: index {index} is out of range for 3 items"
        ):
            frozen[index]
    parts = data.random_split(range(10), [0.55, 0.45], seed=1)
    assert [len(part) for part in parts] == [6, 4]
    with pytest.raises(ValueError, match=r"expected lengths that sum to 10, got \[11, -1\]"):
        data.random_split(range(10), [11, -1])
