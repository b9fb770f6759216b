# SPDX-License-Identifier: Apache-2.0
"""Arrays in .npy and .npz files, read row by row from memory-mapped files."""

from __future__ import annotations

import os
import zipfile
from collections.abc import Sequence
from typing import Any

import tenon
from tenon import Tensor

from .dataset import Dataset
from .optional import need

_LOCAL_HEADER_BYTES = 30  # of a member of a zip file, before its name


class NumpyDataset(Dataset):
    """Samples are rows of arrays in files: `dataset[i] == (a[i], b[i], ...)`.

    NumpyDataset("images.npy", "labels.npy")
    NumpyDataset("data.npz")                       all arrays of the file, in its order
    NumpyDataset("data.npz", names=["x", "y"])     these

    Files are memory-mapped: a row is read from disk when it is requested, and processes share the
    system's cache of the file. Compressed members of .npz files (numpy.savez_compressed) cannot be mapped
    and are refused. Objects are refused, as unpickling them can run code. Needs NumPy.
    """

    def __init__(self, *paths: str | os.PathLike, names: Sequence[str] | None = None) -> None:
        need("numpy", "numpy", "NumpyDataset")
        if not paths:
            raise ValueError("NumpyDataset: expected at least one file, got none")
        self.paths = [os.fspath(path) for path in paths]
        self.names = None if names is None else list(names)
        self._open()

    def _open(self) -> None:
        self.arrays = [array for path in self.paths for array in _arrays(path, self.names)]
        lengths = [len(array) for array in self.arrays]
        if len(set(lengths)) != 1:
            raise ValueError(f"NumpyDataset: expected arrays of equal length, got {lengths}")

    def __getstate__(self) -> dict[str, Any]:  # the files' names cross to other processes
        return {name: value for name, value in vars(self).items() if name != "arrays"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._open()

    def __len__(self) -> int:
        return len(self.arrays[0])

    def __getitem__(self, index: int) -> tuple[Tensor, ...]:
        import numpy

        # Copies, because arrays inside of a zip file need not be aligned.
        rows: list[Any] = [numpy.array(array[index]) for array in self.arrays]
        return tuple(map(tenon.from_numpy, rows))

    def batch(self, indices: Sequence[int]) -> list[Tensor]:
        rows = list(indices)
        return [tenon.from_numpy(array[rows]) for array in self.arrays]


def _arrays(path: str, names: Sequence[str] | None) -> list[Any]:
    import numpy

    if not zipfile.is_zipfile(path):
        return [numpy.load(path, mmap_mode="r", allow_pickle=False)]
    with zipfile.ZipFile(path) as archive:
        members = {member.filename.removesuffix(".npy"): member for member in archive.infolist()}
        wanted = list(members) if names is None else names
        for name in wanted:
            if name not in members:
                raise KeyError(
                    f"NumpyDataset: {path} has no array {name!r}; it has {list(members)}"
                )
        return [_map_member(path, members[name]) for name in wanted]


def _map_member(path: str, member: zipfile.ZipInfo) -> Any:
    import numpy

    if member.compress_type != zipfile.ZIP_STORED:
        raise ValueError(
            f"NumpyDataset: expected arrays that are stored as they are, got {member.filename} of "
            f"{path}, which is compressed; write the file with numpy.savez instead of savez_compressed"
        )
    with open(path, "rb") as file:
        file.seek(member.header_offset)
        header = file.read(_LOCAL_HEADER_BYTES)
        name_bytes, extra_bytes = header[26:28], header[28:30]
        file.seek(int.from_bytes(name_bytes, "little") + int.from_bytes(extra_bytes, "little"), 1)
        version = numpy.lib.format.read_magic(file)
        read = numpy.lib.format.read_array_header_1_0
        if version != (1, 0):
            read = numpy.lib.format.read_array_header_2_0
        shape, is_fortran, dtype = read(file)
        if dtype.hasobject:
            raise ValueError(
                f"NumpyDataset: expected numbers, got objects in {member.filename} of {path}"
            )
        order: Any = "F" if is_fortran else "C"
        return numpy.memmap(path, dtype, "r", file.tell(), shape, order)
