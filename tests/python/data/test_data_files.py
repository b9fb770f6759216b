# SPDX-License-Identifier: Apache-2.0
"""Datasets of files: NumPy and tar; and packages that are absent."""

import io
import pickle
import sys
import tarfile

import numpy as np
import pytest
import tenon
from tenon import data

FORK = {"num_workers": 2, "multiprocessing_context": "fork"}


def values(loader):
    return [[column.tolist() for column in batch] for batch in loader]


# -- NumPy ----------------------------------------------------------------------------------------

ROWS = np.arange(20, dtype=np.float32).reshape(10, 2)
LABELS = np.arange(10) * 3


@pytest.fixture
def files(tmp_path):
    np.save(tmp_path / "x.npy", ROWS)
    np.save(tmp_path / "y.npy", LABELS)
    np.savez(tmp_path / "both.npz", x=np.asfortranarray(ROWS), y=LABELS)
    np.savez_compressed(tmp_path / "small.npz", x=ROWS)
    return tmp_path


def test_numpy_files_are_mapped(files):
    expected = [[ROWS[i : i + 4].tolist(), LABELS[i : i + 4].tolist()] for i in (0, 4, 8)]
    for dataset in (
        data.NumpyDataset(files / "x.npy", files / "y.npy"),
        data.NumpyDataset(files / "both.npz"),
    ):
        assert len(dataset) == 10
        assert all(isinstance(array, np.memmap) for array in dataset.arrays)
        x, y = dataset[-1]
        assert x.tolist() == [18.0, 19.0] and y.tolist() == 27 and x.dtype == tenon.float32
        for options in ({}, FORK):
            assert values(data.DataLoader(dataset, 4, **options)) == expected
        copy = pickle.loads(pickle.dumps(dataset))
        assert len(pickle.dumps(dataset)) < 500 and copy[3][1].tolist() == 9
    (only,) = data.NumpyDataset(files / "both.npz", names=["y"])[2]
    assert only.tolist() == 6


def test_numpy_files_that_cannot_be_mapped(files):
    with pytest.raises(ValueError, match="which is compressed; write the file with numpy.savez"):
        data.NumpyDataset(files / "small.npz")
    with pytest.raises(KeyError, match=r"has no array 'z'; it has \['x', 'y'\]"):
        data.NumpyDataset(files / "both.npz", names=["z"])
    with pytest.raises(ValueError, match=r"expected arrays of equal length, got \[10, 3\]"):
        np.save(files / "short.npy", np.zeros(3))
        data.NumpyDataset(files / "x.npy", files / "short.npy")
    np.savez(files / "objects.npz", x=np.array([{}, []], object))
    with pytest.raises(ValueError, match="expected numbers, got objects in x.npy"):
        data.NumpyDataset(files / "objects.npz")
    with pytest.raises(ValueError, match="expected at least one file"):
        data.NumpyDataset()


# -- tar ------------------------------------------------------------------------------------------


def write_tar(path, members):
    with tarfile.open(path, "w") as archive:
        for name, content in members:
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))


@pytest.fixture
def shards(tmp_path):
    for shard in range(4):
        write_tar(
            tmp_path / f"part-{shard:02}.tar",
            [
                (f"dir/{shard}{number}.{field}", content)
                for number in range(3)
                for field, content in (
                    ("cls", b"%d" % number),
                    ("input.TXT", b"text"),
                    ("json", b'{"a": [1, 2]}'),
                    ("bin", b"\x01\x02"),
                )
            ],
        )
    return str(tmp_path / "part-{00..03}.tar")


def test_samples_of_tar_files(shards):
    dataset = data.WebDataset(shards)
    samples = list(dataset)
    assert [sample["__key__"] for sample in samples] == [
        f"dir/{shard}{number}" for shard in range(4) for number in range(3)
    ]
    assert samples[1] == {
        "__key__": "dir/01",
        "cls": 1,
        "input.txt": "text",
        "json": {"a": [1, 2]},
        "bin": b"\x01\x02",
    }


def key(sample):
    return sample["__key__"]


def test_tar_files_are_divided_and_shuffled(shards):
    def keys(**options):
        dataset = data.WebDataset([shards], transform=key, shuffle_shards=True)
        loader = data.DataLoader(dataset, 3, seed=1, **options)
        return [batch for _ in range(2) for batch in loader]

    here = keys()
    assert here[:4] != here[4:] and sorted(sum(here[:4], [])) == sorted(sum(here[4:], []))
    assert len(set(sum(here[:4], []))) == 12
    assert keys(**FORK) == here, "a batch is a file, and workers take files in turn"


def test_tar_files_that_are_damaged(tmp_path):
    (tmp_path / "a.tar").write_bytes(b"no tar file" * 100)
    with pytest.raises(OSError, match="a.tar: "):
        list(data.WebDataset(tmp_path / "a.tar"))
    with pytest.raises(FileNotFoundError):
        list(data.WebDataset(tmp_path / "b.tar"))
    with pytest.raises(ValueError, match="expected at least one tar file"):
        data.WebDataset([])


@pytest.mark.parametrize("form", [tarfile.PAX_FORMAT, tarfile.GNU_FORMAT])
@pytest.mark.parametrize("compression", ["", "gz", "bz2", "xz"])
def test_long_names_and_compression(tmp_path, form, compression):
    stem = "folder/" * 30 + "ä" * 60
    path = tmp_path / "a.tar"
    with tarfile.open(path, f"w:{compression}", format=form) as archive:
        archive.addfile(tarfile.TarInfo("empty_folder/"))
        for name, content in ((f"{stem}.txt", b"text"), (f"{stem}.bin", b"x" * 70_000)):
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    samples = [s for s in data.WebDataset(path) if "txt" in s]
    assert samples == [{"__key__": stem, "txt": "text", "bin": b"x" * 70_000}]


@pytest.mark.parametrize("compression", ["", "gz", "bz2", "xz"])
def test_tar_files_that_are_cut_off_or_changed(tmp_path, compression):
    path = tmp_path / "a.tar"
    content = np.random.default_rng(0).bytes(50_000)
    with tarfile.open(path, f"w:{compression}") as archive:
        for number in range(3):
            info = tarfile.TarInfo(f"{number}.bin")
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(OSError, match="a.tar: "):
        list(data.WebDataset(path))
    if compression:  # which has checksums
        at = len(whole) // 2
        path.write_bytes(whole[:at] + bytes(64) + whole[at + 64 :])
        with pytest.raises(OSError, match="a.tar: "):
            list(data.WebDataset(path))


def test_a_class_that_is_no_number(tmp_path):
    with tarfile.open(tmp_path / "a.tar", "w") as archive:
        info = tarfile.TarInfo("x.cls")
        info.size = 3
        archive.addfile(info, io.BytesIO(b"cat"))
    with pytest.raises(OSError, match="a.tar: x.cls: invalid literal for int"):
        list(data.WebDataset(tmp_path / "a.tar"))


# -- packages that may be absent ------------------------------------------------------------------


@pytest.mark.parametrize(
    "module, package, make",
    [
        ("numpy", "numpy", lambda: data.NumpyDataset("x.npy")),
        ("PIL.Image", "pillow", lambda: data.ImageFolder(".")),
        ("pyarrow", "pyarrow", lambda: data.ArrowDataset("x.arrow")),
        ("pyarrow.parquet", "pyarrow", lambda: data.ParquetDataset("x.parquet")),
    ],
)
def test_a_package_that_is_absent_is_named(monkeypatch, module, package, make):
    monkeypatch.setitem(sys.modules, module, None)  # importing it fails
    with pytest.raises(
        ImportError, match=f"expected the package {package}, .*pip install {package}"
    ):
        make()


# -- frozen ---------------------------------------------------------------------------------------


def test_frozen_lists():
    items = [{"number": i, "name": f"item {i}"} for i in range(5)]
    frozen = data.FrozenList(items)
    assert len(frozen) == 5 and [frozen[i] for i in range(5)] == items and frozen[-1] == items[4]
    assert len(data.FrozenList([])) == 0
    with pytest.raises(IndexError, match="out of range for 5 items"):
        frozen[5]
    (batch,) = data.DataLoader(frozen, 5, num_workers=1, multiprocessing_context="spawn")
    assert batch["number"].tolist() == [0, 1, 2, 3, 4]


def private_bytes():
    """Memory of this process that it shares with no other."""
    with open("/proc/self/smaps_rollup", encoding="ascii") as file:
        return sum(int(line.split()[1]) for line in file if line.startswith("Private_Dirty")) * 1024


class Growth(data.Dataset):
    """How much the memory of a worker grows as it reads all of a list."""

    def __init__(self, items):
        self.items = items

    def __len__(self):
        return 1

    def __getitem__(self, index):
        before = private_bytes()
        for place in range(len(self.items)):
            self.items[place]
        return private_bytes() - before


def test_reading_a_frozen_list_copies_no_pages():
    frozen = data.FrozenList({"number": i, "text": "x" * 100} for i in range(40_000))
    (growth,) = data.DataLoader(Growth(frozen), num_workers=1, multiprocessing_context="fork")
    assert growth.item() < frozen.nbytes / 4 and frozen.nbytes > 4_000_000


def test_a_subclass_of_files_is_read_by_its_getitem(tmp_path):
    class Doubled(data.NumpyDataset):
        def __getitem__(self, index):
            (row,) = super().__getitem__(index)
            return (row * 2,)

    np.save(tmp_path / "x.npy", np.arange(4))
    plain, doubled = (kind(tmp_path / "x.npy") for kind in (data.NumpyDataset, Doubled))
    for dataset, want in ((plain, [3, 0]), (doubled, [6, 0])):
        ((rows,),) = data.DataLoader(data.Subset(dataset, [3, 0]), 2)
        assert rows.tolist() == want
