# SPDX-License-Identifier: Apache-2.0
"""tenon.vision.datasets on small files of the same formats."""

import gzip
import struct

import numpy as np
import pytest
import tenon
from tenon.data import DataLoader
from tenon.vision import datasets, transforms

RNG = np.random.default_rng(0)


def idx(array, code):
    header = bytes([0, 0, code, array.ndim]) + struct.pack(f">{array.ndim}I", *array.shape)
    return header + array.astype(array.dtype.newbyteorder(">")).tobytes()


@pytest.mark.parametrize(
    "code, dtype",
    [(8, "u1"), (9, "i1"), (11, "i2"), (12, "i4"), (13, "f4"), (14, "f8")],
)
def test_idx_files(tmp_path, code, dtype):
    array = (RNG.uniform(-100, 100, size=(3, 4, 2))).astype(dtype)
    (tmp_path / "a.idx").write_bytes(idx(array, code))
    (tmp_path / "a.idx.gz").write_bytes(gzip.compress(idx(array, code)))
    for name in ("a.idx", "a.idx.gz"):
        np.testing.assert_array_equal(datasets.read_idx(tmp_path / name).numpy(), array)


def test_broken_idx_files(tmp_path):
    path = tmp_path / "a.idx"
    path.write_bytes(b"PK34")
    with pytest.raises(ValueError, match="expected a file of the IDX format, got"):
        datasets.read_idx(path)
    path.write_bytes(idx(np.zeros((3, 4), "u1"), 8)[:-1])
    with pytest.raises(ValueError, match="expected 24 bytes in .*, got 23; it may be cut off"):
        datasets.read_idx(path)
    path.write_bytes(bytes([0, 0, 8, 3, 0]))
    with pytest.raises(ValueError, match="it may be cut off"):
        datasets.read_idx(path)


@pytest.mark.parametrize("folder, pack", [("", False), ("raw", True), ("MNIST/raw", False)])
def test_mnist(tmp_path, folder, pack):
    images = RNG.integers(0, 256, size=(6, 28, 28)).astype(np.uint8)
    labels = np.array([3, 1, 4, 1, 5, 9], np.uint8)
    (tmp_path / folder).mkdir(parents=True, exist_ok=True)
    for name, array in (("images-idx3", images), ("labels-idx1", labels)):
        for part, rows in (("train", array), ("t10k", array[:2])):
            content = idx(rows, 8)
            path = tmp_path / folder / f"{part}-{name}-ubyte"
            if pack:
                path.with_name(path.name + ".gz").write_bytes(gzip.compress(content))
            else:
                path.write_bytes(content)
    train = datasets.MNIST(tmp_path, transform=transforms.ConvertImageDtype(tenon.float32))
    image, label = train[2]
    assert image.shape == (1, 28, 28) and label == 4 and len(train) == 6
    np.testing.assert_allclose(image.numpy()[0], images[2] / 255, rtol=1e-6)
    assert len(datasets.MNIST(tmp_path, train=False, download=True)) == 2  # the files are there
    scaled = datasets.MNIST(tmp_path, True, transforms.ToTensor())[2][0]
    assert scaled.shape == (1, 28, 28) and scaled.tolist() == image.tolist()
    with pytest.raises(TypeError, match="MNIST: expected train to be True or False, got 'test'"):
        datasets.MNIST(tmp_path, "test")
    x, y = next(iter(DataLoader(train, batch_size=4)))
    assert x.shape == (4, 1, 28, 28) and y.tolist() == [3, 1, 4, 1]


def test_absent_files_are_named(tmp_path):
    with pytest.raises(
        FileNotFoundError, match="MNIST: expected one of train-images.*downloads nothing"
    ):
        datasets.MNIST(tmp_path)


def test_cifar(tmp_path):
    pixels = RNG.integers(0, 256, size=(4, 3072)).astype(np.uint8)
    fine, coarse = np.array([7, 0, 2, 9], np.uint8), np.array([1, 1, 1, 1], np.uint8)
    folder = tmp_path / "cifar-10-batches-bin"
    folder.mkdir()
    for i in range(1, 6):
        (folder / f"data_batch_{i}.bin").write_bytes(np.c_[fine, pixels].tobytes())
    train = datasets.CIFAR10(tmp_path, target_transform=lambda label: -label)
    assert len(train) == 20 and train[3][1] == -9
    np.testing.assert_array_equal(train[1][0].numpy(), pixels[1].reshape(3, 32, 32))
    (tmp_path / "test.bin").write_bytes(np.c_[coarse, fine, pixels].tobytes())
    assert datasets.CIFAR100(tmp_path, train=False).targets.tolist() == fine.tolist()
    (tmp_path / "test_batch.bin").write_bytes(b"123")
    with pytest.raises(ValueError, match="expected records of 3073 bytes in .*, got 3 bytes"):
        datasets.CIFAR10(tmp_path, train=False)


def test_digits():
    pytest.importorskip("sklearn")
    digits = datasets.Digits()
    image, label = digits[0]
    assert len(digits) == 1797 and image.shape == (1, 8, 8) and label == 0
    assert 0 <= digits.data.min().item() and digits.data.max().item() == 1.0


def test_arrays_must_fit():
    with pytest.raises(ValueError, match=r"expected images \[n, C, H, W\] and labels \[n\], got"):
        datasets.ImageArrays(tenon.zeros([3, 8, 8]), tenon.zeros([3]))
