# SPDX-License-Identifier: Apache-2.0
"""Files of PyTorch and Paddle: read without running what they hold, and refused when they lie."""

import collections
import io
import pickle
import random
import sys
import types
import zipfile

import numpy as np
import pytest
import tenon
from tenon.io.foreign_files import read_paddle, read_torch
from tenon.io.pickle_reader import PickleReader
from tenon.io.safetensors import FormatError

TYPES = {"float32": "Float", "float64": "Double", "int64": "Long", "uint8": "Byte", "bool": "Bool"}


class Storage:
    def __init__(self, key, array):
        self.key, self.array = key, array


class Part:
    """A tensor of a file: a part of a storage."""

    def __init__(self, storage, offset, shape, strides):
        self.fields = storage, offset, shape, strides

    def __reduce__(self):
        rebuild = sys.modules["torch._utils"]._rebuild_tensor_v2
        return rebuild, (*self.fields, False, collections.OrderedDict())


@pytest.fixture
def torch_names(monkeypatch):
    """Modules under the names that files of PyTorch use, which the pickler wants to find."""
    torch, utils = types.ModuleType("torch"), types.ModuleType("torch._utils")

    def _rebuild_tensor_v2(*arguments):
        raise AssertionError("a file ran code")

    def _rebuild_parameter(*arguments):
        raise AssertionError("a file ran code")

    for function in (_rebuild_tensor_v2, _rebuild_parameter):
        function.__module__, function.__qualname__ = "torch._utils", function.__name__
        setattr(utils, function.__name__, function)
    for name in TYPES.values():
        kind = type(f"{name}Storage", (), {"__module__": "torch"})
        setattr(torch, kind.__name__, kind)
    torch._utils = utils
    monkeypatch.setitem(sys.modules, "torch", torch)
    monkeypatch.setitem(sys.modules, "torch._utils", utils)
    return torch


class Pickler(pickle.Pickler):
    def persistent_id(self, value):
        if not isinstance(value, Storage):
            return None
        kind = getattr(sys.modules["torch"], TYPES[value.array.dtype.name] + "Storage")
        return "storage", kind, value.key, "cpu", value.array.size


def write_torch(path, state, storages, compression=zipfile.ZIP_STORED, folder="archive/", **more):
    out = io.BytesIO()
    Pickler(out, 2).dump(state)
    with zipfile.ZipFile(path, "w", compression) as archive:
        archive.writestr(folder + "data.pkl", out.getvalue())
        archive.writestr(folder + "byteorder", more.get("byteorder", "little"))
        for storage in storages:
            archive.writestr(f"{folder}data/{storage.key}", storage.array.tobytes())
    return path


def some_state():
    numbers = Storage("0", np.arange(12, dtype="float32"))
    flags = Storage("1", np.array([True, False]))
    state = collections.OrderedDict(
        dense=Part(numbers, 0, (3, 4), (4, 1)),
        part=Part(numbers, 5, (3,), (1,)),
        transposed=Part(numbers, 0, (4, 3), (1, 4)),
        gaps=Part(numbers, 1, (2, 3), (6, 2)),
        repeated=Part(numbers, 2, (3, 2), (0, 1)),
        scalar=Part(numbers, 7, (), ()),
        nothing=Part(numbers, 0, (0, 4), (4, 1)),
        flags=Part(flags, 0, (2,), (1,)),
        nested={"list": [1, 2.5, None, True], "tuple": (3, "text"), 7: {1, 2}},
    )
    state._metadata = collections.OrderedDict(version=1)
    return state, [numbers, flags]


@pytest.mark.parametrize("memory_map", [False, True])
def test_a_file_of_pytorch(tmp_path, torch_names, memory_map):
    path = write_torch(tmp_path / "x.pt", *some_state())
    back = tenon.load(path, memory_map=memory_map)
    numbers = np.arange(12, dtype="float32")
    expected = {
        "dense": numbers.reshape(3, 4),
        "part": numbers[5:8],
        "transposed": numbers.reshape(3, 4).T,
        "gaps": np.array([[1, 3, 5], [7, 9, 11]], "float32"),
        "repeated": np.array([[2, 3]] * 3, "float32"),
        "scalar": np.float32(7),
        "nothing": np.zeros((0, 4), "float32"),
        "flags": np.array([True, False]),
    }
    nested = back.pop("nested")
    assert nested == {"list": [1, 2.5, None, True], "tuple": (3, "text"), 7: {1, 2}}
    assert set(back) == set(expected)
    for name, array in expected.items():
        assert back[name].dtype.name == array.dtype.name
        np.testing.assert_array_equal(back[name].numpy(), array)
    back["dense"][0, 0] = 50.0  # tensors of one storage share it, as in the program that wrote them
    assert back["transposed"][0, 0].item() == 50.0
    assert tenon.load(path)["dense"][0, 0].item() == 0.0
    assert tenon.load(path, device="cpu")["nested"] == nested


def test_damage_of_archives_is_named(tmp_path, torch_names):
    numbers = Storage("0", np.arange(4, dtype="float32"))
    flags = Storage("0", np.array([1, 2], "uint8").view("bool"))

    def refuses(message, *arguments, **options):
        path = write_torch(tmp_path / "x.pt", *arguments, **options)
        for memory_map in (False, True):
            with pytest.raises(FormatError, match=message) as failure:
                tenon.load(path, memory_map=memory_map)
            assert "x.pt" in str(failure.value)

    refuses("reaches beyond its storage of 16 bytes", Part(numbers, 1, (4,), (1,)), [numbers])
    refuses("reaches beyond its storage", Part(numbers, 0, (1 << 50, 2), (1, 1)), [numbers])
    refuses("too large", Part(numbers, 0, (0, 1 << 40, 1 << 40), (1, 1, 1)), [numbers])
    refuses("share memory", Part(numbers, 0, (3, 2), (1, 1)), [numbers])
    refuses("no numbers >= 0", Part(numbers, 0, (4,), (-1,)), [numbers])
    refuses("no numbers >= 0", Part(numbers, "0", (4,), (1,)), [numbers])
    refuses("4 sizes and 1 strides", Part(numbers, 0, (1,) * 4, (1,)), [numbers])
    refuses("storage '0' is not in the archive", Part(numbers, 0, (4,), (1,)), [])
    refuses("compressed", Part(numbers, 0, (4,), (1,)), [numbers], zipfile.ZIP_DEFLATED)
    refuses("little-endian", Part(numbers, 0, (4,), (1,)), [numbers], byteorder="big")
    refuses("the bytes 0 or 1", Part(flags, 0, (2,), (1,)), [flags])
    short = Storage("0", np.arange(2, dtype="float32"))
    refuses("has 8 bytes, expected 4 elements", Part(numbers, 0, (4,), (1,)), [short])
    with zipfile.ZipFile(tmp_path / "other.pt", "w") as archive:
        archive.writestr("readme", "")
    with pytest.raises(FormatError, match="expected one data.pkl in the archive, got 0"):
        tenon.load(tmp_path / "other.pt")


def test_a_file_of_paddle(tmp_path):
    arrays = {
        "weight": np.arange(6, dtype="float32").reshape(2, 3),
        "fortran": np.asfortranarray(np.arange(6, dtype="int64").reshape(2, 3)),
        "scalar": np.array(2.5),
        "flags": np.array([True, False]),
        "empty": np.zeros((0, 2), "float32"),
        "half": np.array([1.5], "float16"),
    }
    for protocol in (2, 3, 4, 5):
        path = tmp_path / "x.pdparams"
        state = {
            **arrays,
            "number": np.float32(0.5),
            "StructuredToParameterName@@": {"weight": "linear_0.w_0"},
            "LR_Scheduler": {"last_epoch": 3, "name": b"bytes"},
        }
        path.write_bytes(pickle.dumps(state, protocol))
        back = tenon.load(path)
        assert back.pop("LR_Scheduler") == {"last_epoch": 3, "name": b"bytes"}
        assert back.pop("number") == 0.5
        assert set(back) == set(arrays)
        for name, array in arrays.items():
            assert back[name].dtype.name == array.dtype.name
            np.testing.assert_array_equal(back[name].numpy(), array)


class Call:
    def __init__(self, function, *arguments):
        self.function, self.arguments = function, arguments

    def __reduce__(self):
        return self.function, self.arguments


def test_a_tensor_of_paddle_is_a_call_of_tuple(tmp_path):
    path = tmp_path / "x.pdparams"
    pair = Call(tuple, ("linear_0.w_0", np.ones(2, "float32")))
    path.write_bytes(pickle.dumps({"weight": pair, "pair": Call(tuple, [1, 2])}, 4))
    back = tenon.load(path)
    assert back["weight"].tolist() == [1.0, 1.0] and back["pair"] == (1, 2)


FORBIDDEN = {
    "builtins.eval": Call(eval, "1"),
    "builtins.getattr": Call(getattr, 1, "real"),
    "posix.system": Call(__import__("os").system, "touch hacked"),
    "tests.nothing": b"\x80\x02ctests\nnothing\n)R.",
    "tests.stacked": b"\x80\x04\x8c\x05tests\x8c\x07stacked\x93)R.",
    "tests.made": b"\x80\x02ctests\nmade\n)\x81.",
    "builtins.exec": b"\x80\x02c__builtin__\nexec\n(X\x01\x00\x00\x001tR.",
}


@pytest.mark.parametrize("name", FORBIDDEN)
def test_names_that_run_code_are_refused(tmp_path, name, monkeypatch):
    monkeypatch.chdir(tmp_path)
    content = FORBIDDEN[name]
    content = content if isinstance(content, bytes) else pickle.dumps(content, 2)
    (tmp_path / "x.pdparams").write_bytes(content)
    with pytest.raises(FormatError, match=f"x.pdparams: byte .* names '{name}', which is neither"):
        tenon.load(tmp_path / "x.pdparams")
    with zipfile.ZipFile(tmp_path / "x.pt", "w") as archive:
        archive.writestr("x/data.pkl", content)
    with pytest.raises(FormatError, match=f"names '{name}'"):
        tenon.load(tmp_path / "x.pt")
    assert not (tmp_path / "hacked").exists()


DAMAGED = {
    "no end": (b"\x80\x02}", "0 bytes|1 bytes are announced"),
    "empty stack": (b"\x80\x02.", "damaged"),
    "no mark": (b"\x80\x02Nt.", "a mark is missing"),
    "mark as operand": (b"\x80\x02(.", "an operand is missing"),
    "protocol": (b"\x80\x02\x80\x09N.", "protocol 9; known are 0 to 5"),
    "opcode of objects": (b"\x80\x02(i__main__\nX\n.", "opcode INST is not one"),
    "unknown opcode": (b"\x80\x02\xff.", "opcode .* is not one"),
    "extension": (b"\x80\x02\x82\x01.", "opcode EXT1"),
    "huge bytes": (b"\x80\x02\x8e" + b"\xff" * 8 + b".", "announced, and the file ends before"),
    "memo": (b"\x80\x02h\x07.", "damaged"),
    "digits": (b"\x80\x02I" + b"9" * 5000 + b"\n.", "a number of 5000 digits"),
    "list as key": (b"\x80\x02}]Ns.", "a key of type list"),
    "deep key": (b"\x80\x02}N" + b"\x85" * 100_000 + b"Ns.", "a key of type tuple"),
    "deep value": (b"\x80\x02N" + b"\x85" * 100_000 + b".", "nested too deeply"),
    "items of a list": (b"\x80\x02]NNs.", "expected a container, got list"),
    "call of data": (b"\x80\x02N)R.", "a call of 'NoneType'"),
    "function as data": (b"\x80\x02ccollections\nOrderedDict\n.", "no data"),
    "function in a list": (b"\x80\x02]ccollections\nOrderedDict\na.", "in place of data"),
    "state of data": (b"\x80\x02]}b.", "a state for list"),
    "persistent id": (b"\x80\x02NQ.", "a persistent id, which only files of PyTorch have"),
    "array without content": (
        b"\x80\x02cnumpy.core.multiarray\n_reconstruct\nNNN\x87R.",
        "an array without content",
    ),
    "objects": (b"\x80\x02cnumpy\ndtype\nX\x02\x00\x00\x00O8\x85R.", "dtype 'O8'; expected num"),
    "no arguments": (b"\x80\x02cnumpy\ndtype\n)R.", "damaged"),
    "encoding": (
        b"\x80\x02c_codecs\nencode\nX\x01\x00\x00\x00aX\x03\x00\x00\x00rot\x86R.",
        "encod",
    ),
    "big parameters": (pickle.dumps({"UnpackBigParamInfor@@": {}}, 2), "again with protocol=4"),
    "PyTorch before 1.6": (bytes.fromhex("80028a0a6cfc9c46f9206aa850192e") + b".", "before 1.6"),
}


@pytest.mark.parametrize("case", DAMAGED)
def test_damaged_pickles_are_refused(tmp_path, case):
    content, message = DAMAGED[case]
    (tmp_path / "x.pdparams").write_bytes(content)
    with pytest.raises(FormatError, match=message):
        tenon.load(tmp_path / "x.pdparams")


def test_the_reader_agrees_with_python():
    shared = ["twice"]
    value = {
        "numbers": [0, -1, 255, 65535, -(2**31), 2**40, -(2**70), 0.5, -1e300, 2 + 3j],
        "text": ["", "a" * 300, "ü\n", b"", b"x" * 300, bytearray(b"y")],
        "containers": ({1: {2: []}}, frozenset({1}), {3}, (), (1,), (1, 2), (1, 2, 3), (1,) * 5),
        "shared": [shared, shared],
        (1, "key"): None,
        True: collections.OrderedDict(a=1),
    }
    for protocol in range(6):
        back = PickleReader(pickle.dumps(value, protocol), {"builtins.bytearray": bytes}).read()
        assert back == value, protocol
        assert back["shared"][0] is back["shared"][1]


def mutations(rng, content, count):
    for _ in range(count):
        mutated = bytearray(content)
        for _ in range(rng.choice((1, 1, 2, 4))):
            at = rng.randrange(len(mutated))
            kind = rng.randrange(4)
            if kind == 0:
                mutated[at] ^= 1 << rng.randrange(8)
            elif kind == 1:
                mutated[at] = rng.choice(b"\x00\xff.(RbQ\x93\x81cs")
            elif kind == 2:
                del mutated[at : at + rng.randrange(1, 9)]
            else:
                mutated[at:at] = mutated[at : at + rng.randrange(1, 20)]
            if not mutated:
                mutated = bytearray(content)
        yield bytes(mutated)


def archive_of(content):
    """An archive whose pickle is `content`, with the checksum that belongs to it."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("a/data.pkl", content)
        for storage in some_state()[1]:
            archive.writestr(f"a/data/{storage.key}", storage.array.tobytes())
    out.seek(0)
    return out


def test_mutated_files_are_read_or_refused(tmp_path, torch_names):
    rng = random.Random(5)
    good = write_torch(tmp_path / "good.pt", *some_state()).read_bytes()
    with zipfile.ZipFile(tmp_path / "good.pt") as archive:
        inside = archive.read("archive/data.pkl")
    arrays = {"w": np.arange(6, dtype="float32").reshape(2, 3), "n": np.float32(1), "k": [1, "a"]}
    readers = [
        (good, 1500, lambda content: read_torch(io.BytesIO(content), "x")),
        # Of these the archive's checksum is right, or few would reach the reader of pickles.
        (inside, 3000, lambda content: read_torch(archive_of(content), "x")),
        (pickle.dumps(arrays, 2), 1500, lambda content: read_paddle(content, "x")),
        (pickle.dumps(arrays, 4), 1500, lambda content: read_paddle(content, "x")),
    ]
    modules = set(sys.modules)
    for content, count, read in readers:
        refused = 0
        for mutated in mutations(rng, content, count):
            try:
                read(mutated)
            except FormatError:
                refused += 1
        assert 0.3 * count < refused < count
    assert set(sys.modules) == modules


def test_a_real_file_of_pytorch(tmp_path):
    torch = pytest.importorskip("torch", reason="needs torch, which is no dependency of Tenon")
    model = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.BatchNorm2d(4))
    model = model.to(memory_format=torch.channels_last)
    optimizer = torch.optim.Adam(model.parameters())
    model(torch.ones(1, 3, 5, 5)).sum().backward()
    optimizer.step()
    state = {
        "model": model.state_dict(),
        "optimizer": optimizer.state_dict(),
        "parameter": torch.nn.Parameter(torch.ones(2)),
        "half": torch.ones(2, dtype=torch.bfloat16),
        "dtype": torch.float16,
        "size": torch.Size([1, 2]),
    }
    torch.save(state, tmp_path / "x.pth")
    back = tenon.load(tmp_path / "x.pth")
    for name, tensor in state["model"].items():
        np.testing.assert_array_equal(back["model"][name].numpy(), tensor.numpy())
    moments = back["optimizer"]["state"][0]["exp_avg"].numpy()
    np.testing.assert_array_equal(moments, state["optimizer"]["state"][0]["exp_avg"].numpy())
    assert back["dtype"] == tenon.float16 and back["size"] == (1, 2)
    assert back["half"].dtype == tenon.bfloat16 and back["parameter"].tolist() == [1.0, 1.0]
    with pytest.raises(FormatError, match=r"names 'torch.nn.modules.container.Sequential'"):
        torch.save(model, tmp_path / "model.pt")
        tenon.load(tmp_path / "model.pt")
