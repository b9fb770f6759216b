# SPDX-License-Identifier: Apache-2.0
"""safetensors files: written, read back, and refused when they lie."""

import json
import struct

import numpy as np
import pytest
import tenon
from tenon import nn, optim
from tenon.io import safetensors

DTYPES = [
    "bool",
    "uint8",
    "int8",
    "uint16",
    "int16",
    "uint32",
    "int32",
    "uint64",
    "int64",
    "float16",
    "float32",
    "float64",
    "complex64",
]


def write_raw(path, header, data=b""):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)
    return path


def entry(dtype="F32", shape=(1,), offsets=(0, 4)):
    return {"dtype": dtype, "shape": list(shape), "data_offsets": list(offsets)}


@pytest.mark.parametrize("memory_map", [False, True])
def test_every_dtype_survives_a_round_trip(tmp_path, memory_map):
    arrays = {name: np.arange(6).reshape(2, 3).astype(name) for name in DTYPES}
    arrays["empty"], arrays["scalar"] = np.zeros((0, 4), "float32"), np.array(2.5)
    state = {name: tenon.tensor(array) for name, array in arrays.items()}
    state["half"] = tenon.tensor([1.5, -2.0]).to(tenon.bfloat16)
    tenon.save(state, tmp_path / "x.safetensors")
    back = tenon.load(tmp_path / "x.safetensors", memory_map=memory_map)
    assert set(back) == set(state)
    for name, array in arrays.items():
        assert back[name].dtype == state[name].dtype
        np.testing.assert_array_equal(back[name].numpy(), array)
    assert back["half"].dtype == tenon.bfloat16
    assert back["half"].to(tenon.float32).tolist() == [1.5, -2.0]


def test_file_layout_is_the_published_one(tmp_path):
    path = tmp_path / "x.safetensors"
    tenon.save(
        {"b": tenon.tensor([1.0, 2.0]), "a": tenon.tensor([True])}, path, metadata={"k": "v"}
    )
    content = path.read_bytes()
    (length,) = struct.unpack("<Q", content[:8])
    assert length % 8 == 0
    assert json.loads(content[8 : 8 + length]) == {
        "__metadata__": {"k": "v"},
        "b": entry("F32", [2], [0, 8]),
        "a": entry("BOOL", [1], [8, 9]),
    }
    assert content[8 + length :] == np.array([1, 2], "<f4").tobytes() + b"\x01"
    assert list(tmp_path.iterdir()) == [path]


def test_views_are_saved_by_value(tmp_path):
    x = tenon.tensor(np.arange(6.0).reshape(2, 3))
    tenon.save({"t": x.transpose()}, tmp_path / "x.safetensors")
    np.testing.assert_array_equal(tenon.load(tmp_path / "x.safetensors")["t"].numpy(), x.numpy().T)


def test_memory_mapped_tensors_do_not_write_to_the_file(tmp_path):
    path = tmp_path / "x.safetensors"
    tenon.save({"x": tenon.tensor([1.0, 2.0])}, path)
    before = path.read_bytes()
    x = tenon.load(path, memory_map=True)["x"]
    x += 1
    assert x.tolist() == [2.0, 3.0]
    assert path.read_bytes() == before


def test_a_tensor_that_is_not_aligned_in_the_file_is_read(tmp_path):
    data = b"\x01" + np.array([3.0], "<f8").tobytes()
    path = write_raw(
        tmp_path / "x", {"a": entry("BOOL", [1], [0, 1]), "b": entry("F64", [1], [1, 9])}, data
    )
    assert tenon.load(path)["b"].tolist() == [3.0]


def test_nested_state_survives(tmp_path):
    model = nn.Linear(2, 1)
    optimizer = optim.Adam(model.parameters(), lr=0.1)
    model(tenon.tensor([[1.0, 2.0]])).sum().backward()
    optimizer.step()
    state = {"optimizer": optimizer.state_dict(), "epoch": 3, "rates": (0.1, None), "name": "run"}
    tenon.save(state, tmp_path / "x")
    back = tenon.load(tmp_path / "x")
    assert back["epoch"] == 3 and back["rates"] == (0.1, None) and back["name"] == "run"
    other = optim.Adam(model.parameters(), lr=0.5)
    other.load_state_dict(back["optimizer"])
    assert other.param_groups[0]["lr"] == 0.1
    for param in model.parameters():
        for key, value in optimizer.state[param].items():
            got = other.state[param][key]
            assert (
                got.tolist() == value.tolist() if isinstance(value, tenon.Tensor) else got == value
            )


def test_a_failed_save_leaves_the_old_file(tmp_path):
    path = tmp_path / "x"
    tenon.save({"x": tenon.tensor([1.0])}, path)
    with pytest.raises(ValueError, match="complex128"):
        tenon.save({"x": tenon.tensor(np.zeros(1, "complex128"))}, path)
    assert tenon.load(path)["x"].tolist() == [1.0]
    assert list(tmp_path.iterdir()) == [path]


NESTS = {
    "a dot in a key": {"a.b": 1.0, "a": {"b": 2.0}},
    "an integer and its text": {1: 1.0, "1": 2.0, "list": [3.0], "list.0": 4.0},
    "integers alone": {0: 1.0, 1: 2.0},
    "the name of a tensor alone": {"": 1.0, "tensor": 2.0, "n": {}},
    "a name that was made": {"a.b": 1.0, "a": {"b": 2.0}, "a.b#2": 3.0},
    "tuples": {("a", 1): 1.0, "('a', 1)": 2.0, ("a", (None, 0.5)): {(): 3.0}},
    "None, booleans and floats": {None: 1.0, "None": 2.0, True: 3.0, 0.5: {"x": 4.0}},
}


@pytest.mark.parametrize("max_shard_size", [None, 8])
@pytest.mark.parametrize("nest", NESTS.values(), ids=NESTS)
def test_nests_come_back_whatever_their_keys_are(tmp_path, nest, max_shard_size):
    """Tensors are named by the path to them, and two paths may read alike."""

    def mapped(value, leaf, of):
        if isinstance(value, of):
            return leaf(value)
        if isinstance(value, dict):
            return {key: mapped(item, leaf, of) for key, item in value.items()}
        return [mapped(item, leaf, of) for item in value]

    path = tmp_path / "x.safetensors"
    tenon.save(
        mapped(nest, lambda x: tenon.tensor([x, x]), float), path, max_shard_size=max_shard_size
    )
    index = tmp_path / "x.safetensors.index.json"
    back = tenon.load(path if max_shard_size is None else index)
    assert mapped(back, lambda t: t[1].item(), tenon.Tensor) == nest


def test_checkpoints_hold_nests_whose_paths_read_alike(tmp_path):
    manager = tenon.utils.CheckpointManager(tmp_path)
    manager.save(
        1, {"a.b": tenon.tensor([1.0]), "a": {"b": tenon.tensor([2.0])}}, asynchronous=True
    )
    _, back = manager.load()
    assert back["a.b"].item() == 1 and back["a"]["b"].item() == 2


def test_names_in_files_are_paths(tmp_path):
    """So that files are readable to others, and to earlier versions."""
    tenon.save({"a": {"b": tenon.tensor([1.0])}, "c": [tenon.tensor([2.0]), 1]}, tmp_path / "x")
    tensors, metadata = safetensors.read(tmp_path / "x")
    assert set(tensors) == {"a.b", "c.0"}
    assert json.loads(metadata["tenon.structure"]) == {
        "$dict": [
            ["a", {"$dict": [["b", {"$tensor": "a.b"}]]}],
            ["c", [{"$tensor": "c.0"}, 1]],
        ]
    }


def test_keys_that_do_not_come_back_are_refused(tmp_path):
    x = tenon.tensor([1.0])
    with pytest.raises(TypeError, match="numbers, None or tuples of them, got bytes b'k' at 'a'"):
        tenon.save({"a": {b"k": x}}, tmp_path / "x")
    with pytest.raises(TypeError, match="tuples of them, got frozenset frozenset.* at 'the top'"):
        tenon.save({("t", frozenset()): x}, tmp_path / "x")
    with pytest.raises(ValueError, match="expected metadata without the key 'tenon.structure'"):
        tenon.save({"a": x}, tmp_path / "x", metadata={"tenon.structure": "[]"})
    assert not list(tmp_path.iterdir())


def test_objects_are_refused(tmp_path):
    with pytest.raises(TypeError, match="object at 'a.1'"):
        tenon.save({"a": [1, object()]}, tmp_path / "x")


HOSTILE = {
    "not JSON": (b"{nonsense", b"", "not JSON"),
    "not an object": (b"[]", b"", "begin with"),
    "not UTF-8": (b'{"\xff": 1}', b"", "UTF-8"),
    "key twice": (b'{"a": 1, "a": 2}', b"", "twice"),
    "nested deeply": (b'{"a": ' + b"[" * 100_000 + b"]" * 100_000 + b"}", b"", "deeply"),
    "number of many digits": (b'{"a": ' + b"9" * 10_000 + b"}", b"", "10000 digits"),
    "NaN": (b'{"a": NaN}', b"", "NaN"),
    "unknown dtype": ({"a": entry("F31")}, b"1234", "unknown dtype"),
    "missing field": ({"a": {"dtype": "F32", "shape": [1]}}, b"1234", "exactly"),
    "extra field": ({"a": {**entry(), "code": "rm"}}, b"1234", "exactly"),
    "negative size": ({"a": entry(shape=[-1])}, b"1234", "sizes >= 0"),
    "boolean size": ({"a": entry(shape=[True])}, b"1234", "sizes >= 0"),
    "float size": ({"a": entry(shape=[1.0])}, b"1234", "sizes >= 0"),
    "huge size": ({"a": entry(shape=[1 << 63])}, b"1234", "sizes >= 0"),
    "product overflows": ({"a": entry(shape=[1 << 40, 1 << 40])}, b"1234", "too large"),
    "product overflows without elements": (
        {"a": entry(shape=[0, 1 << 40, 1 << 40], offsets=[0, 0])},
        b"",
        "too large",
    ),
    "too many axes": ({"a": entry(shape=[1] * 33)}, b"1234", "at most 32"),
    "offset past the end": ({"a": entry(offsets=[0, 8])}, b"1234", "end at 8, but 4 bytes follow"),
    "offsets reversed": (
        {"a": entry(offsets=[4, 0])},
        b"1234",
        r"expected data_offsets \[begin, end\]",
    ),
    "size and offsets disagree": ({"a": entry(shape=[2])}, b"1234", "needs 8 bytes"),
    "overlap": ({"a": entry(), "b": entry()}, b"1234", "without gaps or overlap"),
    "gap": ({"a": entry(offsets=[4, 8])}, b"12345678", "without gaps or overlap"),
    "data left over": ({"a": entry()}, b"12345678", "the file has 8"),
    "metadata not text": ({"__metadata__": {"a": 1}}, b"", "strings to strings"),
    "bool of value 2": ({"a": entry("BOOL", [1], [0, 1])}, b"\x02", "0 or 1"),
}


@pytest.mark.parametrize("case", HOSTILE)
@pytest.mark.parametrize("memory_map", [False, True])
def test_hostile_header_is_refused(tmp_path, case, memory_map):
    header, data, message = HOSTILE[case]
    path = write_raw(tmp_path / "bad.safetensors", header, data)
    with pytest.raises(safetensors.FormatError, match=message) as failure:
        tenon.load(path, memory_map=memory_map)
    assert "bad.safetensors" in str(failure.value)


@pytest.mark.parametrize(
    "content", [b"", b"123", struct.pack("<Q", 100) + b"{}", struct.pack("<Q", 1 << 63) + b"{}"]
)
def test_cut_file_is_refused(tmp_path, content):
    (tmp_path / "x").write_bytes(content)
    with pytest.raises(safetensors.FormatError, match="cut short"):
        tenon.load(tmp_path / "x")


@pytest.mark.parametrize(
    "structure",
    [
        "nonsense",
        "[1, {}]",
        '{"$tensor": "missing"}',
        '{"$code": 1}',
        '{"$dict": [1]}',
        '{"a": 1, "b": 2}',
    ],
)
def test_hostile_structure_is_refused(tmp_path, structure):
    safetensors.write(tmp_path / "x", {}, {"tenon.structure": structure})
    with pytest.raises(ValueError, match="structure"):
        tenon.load(tmp_path / "x")
