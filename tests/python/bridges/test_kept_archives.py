# SPDX-License-Identifier: Apache-2.0
"""Kept `.pt2` files, read without PyTorch: whole ones, and archives that `zipfile` cannot unpack."""

import json
import pathlib
import struct
import zipfile

import pytest
import tenon
from tenon.torch import _archive_walk

KEPT = pathlib.Path(__file__).parent / "torch_models"


def load(path):
    return _archive_walk.load(str(path), name=None, gradients=False)


def test_kept_files_run():
    assert load(KEPT / "net.pt2")(tenon.zeros(3, 2, 4, 4), tenon.zeros(4))["y"].shape == (3, 3)
    tokens = tenon.zeros([2, 5], dtype=tenon.int64)
    assert load(KEPT / "words.pt2")(tokens, tenon.tensor([0, 3]))[0].shape == (2, 2, 4)


def directory_entry(data, name):
    """Where the central directory tells of a part."""
    place = data.rfind(name)
    assert data[place - 46 : place - 42] == b"PK\x01\x02"
    return place - 46


@pytest.mark.parametrize(
    "what, said",
    [
        ("stream", "cannot be unpacked: Error -3"),
        ("password", "cannot be unpacked: File .* is encrypted"),
        ("method", "cannot be unpacked: That compression method is not supported"),
        ("place", "cannot be unpacked: "),
    ],
)
def test_archives_that_cannot_be_unpacked(what, said, tmp_path):
    path = tmp_path / "net.pt2"
    data = bytearray((KEPT / "net.pt2").read_bytes())
    name = b"archive/models/model.json"
    entry = directory_entry(data, name)
    with zipfile.ZipFile(KEPT / "net.pt2") as whole:
        info = whole.getinfo(name.decode())
    if what == "stream":
        begin = info.header_offset + 30 + len(name)
        data[begin : begin + 64] = b"\xff" * 64
    elif what == "password":
        data[entry + 8] |= 1
    elif what == "method":
        struct.pack_into("<H", data, entry + 10, 77)
    else:
        struct.pack_into("<I", data, entry + 42, len(data) + 2**30)
    path.write_bytes(data)
    with pytest.raises((ValueError, NotImplementedError), match=said):
        load(path)


def test_files_that_are_missing(tmp_path):
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "none.pt2")


@pytest.mark.parametrize("bound", ["min_val", "max_val"])
def test_bounds_that_are_no_whole_numbers(bound, tmp_path):
    path = tmp_path / "net.pt2"
    with zipfile.ZipFile(KEPT / "net.pt2") as whole, zipfile.ZipFile(path, "w") as changed:
        for name in whole.namelist():
            data = whole.read(name)
            if name == "archive/models/model.json":
                model = json.loads(data)
                for each in model["range_constraints"].values():
                    each[bound] = 2.5
                data = json.dumps(model).encode()
            changed.writestr(name, data)
    with pytest.raises(
        ValueError, match=r"expected whole numbers as bounds of the dimension \w+, got 2\.5"
    ):
        load(path)
