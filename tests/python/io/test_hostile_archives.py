# SPDX-License-Identifier: Apache-2.0
"""Files of PyTorch and Paddle, written opcode by opcode: what each function of theirs takes, and what it
refuses by name instead of failing later."""

import io
import json
import pickle
import struct
import zipfile

import numpy as np
import pytest
import tenon
from tenon.safetensors import FormatError


def data(value):
    """Opcodes of a plain value."""
    return pickle.dumps(value, 2)[2:-1]


def tuple_of(*parts):
    return b"(" + b"".join(parts) + b"t"


def name(full):
    module, _, last = full.rpartition(".")
    return b"c" + f"{module}\n{last}\n".encode()


def call(full, *parts):
    return name(full) + tuple_of(*parts) + b"R"


def state(made, *parts):
    return made + tuple_of(*parts) + b"b"


def storage(kind="torch.FloatStorage", key="0", count=6, first="storage"):
    return tuple_of(data(first), name(kind), data(key), data("cpu"), data(count)) + b"Q"


def tensor(shape=(2, 3), strides=(3, 1), offset=0, of=None):
    of = storage() if of is None else of
    parts = (of, data(offset), data(shape), data(strides), data(False), data(None))
    return call("torch._utils._rebuild_tensor_v2", *parts)


NUMBERS = np.arange(6, dtype="float32")


def torch_file(path, opcodes, storages=None, **options):
    storages = {"0": NUMBERS.tobytes()} if storages is None else storages
    with zipfile.ZipFile(path, "w", **options) as archive:
        archive.writestr("x/data.pkl", b"\x80\x02" + opcodes + b".", options.get("compression"))
        for key, content in storages.items():
            archive.writestr(f"x/data/{key}", content)
    return path


@pytest.fixture
def torch_load(tmp_path):
    def load(opcodes, storages=None, memory_map=False):
        path = torch_file(tmp_path / "x.pt", opcodes, storages)
        return tenon.load(path, memory_map=memory_map)

    return load


@pytest.fixture
def paddle_load(tmp_path):
    def load(opcodes):
        (tmp_path / "x.pdparams").write_bytes(b"\x80\x02" + opcodes + b".")
        return tenon.load(tmp_path / "x.pdparams")

    return load


# -- PyTorch ---------------------------------------------------------------------------------------

VIEWS = {
    "dense": ((2, 3), (3, 1), 0),
    "a part": ((2,), (1,), 3),
    "transposed": ((3, 2), (1, 3), 0),
    "permuted": ((1, 3, 2), (7, 1, 3), 0),
    "with gaps": ((3,), (2,), 0),
    "with gaps in two axes": ((2, 2), (3, 2), 0),
    "of a part with gaps": ((2, 2), (3, 1), 1),
    "repeated": ((4, 3), (0, 1), 2),
    "repeated with gaps": ((2, 2, 2), (2, 0, 1), 1),
    "a number": ((), (), 4),
    "empty": ((0, 3), (3, 1), 0),
}


@pytest.mark.parametrize("memory_map", [False, True])
@pytest.mark.parametrize("view", VIEWS)
def test_every_view_of_a_storage(torch_load, view, memory_map):
    shape, strides, offset = VIEWS[view]
    want = np.lib.stride_tricks.as_strided(NUMBERS[offset:], shape, [4 * s for s in strides])
    got = torch_load(tensor(shape, strides, offset), None, memory_map)
    assert got.shape == shape and got.dtype == tenon.float32
    assert got.tolist() == want.tolist()


def test_functions_of_pytorch(torch_load):
    parameter = call("torch._utils._rebuild_parameter", tensor(), data(True), data(None))
    assert torch_load(parameter).tolist() == NUMBERS.reshape(2, 3).tolist()
    assert torch_load(call("torch.Size", data([2, 3]))) == (2, 3)
    assert torch_load(call("torch.Size", data((2, 3)))) == (2, 3)
    assert torch_load(call("torch.Size")) == ()
    assert torch_load(call("torch.device", data("cuda"))) == "cuda"
    assert torch_load(call("torch.device", data("cuda"), data(1))) == "cuda:1"
    assert torch_load(call("torch.device", data("cuda"), data(0))) == "cuda:0"
    for kind, dtype in (("torch.uint16", "uint16"), ("torch.float8_e4m3fn", "float8_e4m3")):
        untyped = storage("torch.storage.UntypedStorage", count=24)
        parts = (untyped, data(1), data((2,)), data((1,)), data(False), data(None), name(kind))
        made = torch_load(call("torch._utils._rebuild_tensor_v3", *parts))
        assert made.dtype.name == dtype and made.shape == (2,)


def test_tensors_of_one_storage_share_its_memory(torch_load):
    both = torch_load(tuple_of(tensor(), tensor((6,), (1,))))
    both[0][0, 0] = 9.0
    assert both[1].tolist()[0] == 9.0


NO_STORAGE = "a persistent id that is no storage"
REFUSED = {
    "no storage": (tensor(of=data(3)), "a tensor without a storage"),
    "bytes without a storage": (
        call("torch._utils._rebuild_tensor_v3", data(3), *[data(())] * 5, name("torch.uint8")),
        "a tensor without a storage or dtype",
    ),
    "bytes without a dtype": (
        call("torch._utils._rebuild_tensor_v3", storage(), *[data(())] * 5, data(3)),
        "a tensor without a storage or dtype",
    ),
    "a parameter of a number": (
        call("torch._utils._rebuild_parameter", data(3), data(True)),
        "a parameter without a tensor",
    ),
    "a size of a number": (call("torch.Size", data(3)), "a torch.Size of something that is no list"),
    "a size of a text": (call("torch.Size", data("ab")), "something that is no list"),
    "a device of a number": (call("torch.device", data(3)), "a device without a name"),
    "a device with a text": (call("torch.device", data("a"), data("b")), "a device without a name"),
    "a device with a truth": (call("torch.device", data("a"), data(True)), "a device without a name"),
    "a negative size": (tensor((-1,), (1,)), "are no numbers >= 0"),
    "a negative stride": (tensor((2,), (-1,)), "are no numbers >= 0"),
    "a negative offset": (tensor((2,), (1,), -1), "are no numbers >= 0"),
    "a size that is a truth": (tensor((True,), (1,)), "are no numbers >= 0"),
    "a size that is a float": (tensor((2.0,), (1,)), "are no numbers >= 0"),
    "a size of 2 ** 62": (tensor((1 << 62,), (1,)), "are no numbers >= 0"),
    "a shape that is a number": (tensor(3, (1,)), "are no numbers >= 0"),
    "sizes without strides": (tensor((2, 3), (1,)), "a tensor of 2 sizes and 1 strides"),
    "too many axes": (tensor((1,) * 33, (1,) * 33), "a tensor of 33 sizes and 33 strides"),
    "too large": (tensor((0, 1 << 40, 1 << 40), (0, 0, 0)), "which is too large"),
    "beyond its storage": (tensor((7,), (1,)), r"of shape \(7,\) reaches beyond its storage of 24"),
    "beyond by its stride": (tensor((2,), (6,)), "reaches beyond its storage"),
    "beyond by its offset": (tensor((6,), (1,), 1), "reaches beyond its storage"),
    "elements that share memory": (tensor((2, 3), (1, 1)), "share memory"),
    "an id that is a number": (data(3) + b"Q", NO_STORAGE),
    "an id of another kind": (tensor(of=storage(first="module")), NO_STORAGE),
    "an id with a number as key": (tensor(of=storage(key=0)), NO_STORAGE),
    "an id of four": (tuple_of(*[data("storage")] * 4) + b"Q", NO_STORAGE),
    "a storage of a device": (
        tuple_of(data("storage"), data("float"), data("0"), data("cpu"), data(6)) + b"Q",
        "a storage without dtype or size",
    ),
    "a storage without a size": (tensor(of=storage(count=-1)), "a storage without dtype or size"),
    "a storage that is not there": (tensor(of=storage(key="1")), "storage '1' is not in the archive"),
    "a storage that is too small": (tensor(of=storage(count=7)), "has 24 bytes, expected 7 elements"),
    "a storage as data": (storage(), "a Storage in place of data"),
    "a function as data": (data([]) + name("torch.Size") + b"a", "a Name in place of data"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_what_no_file_of_pytorch_has_is_refused(torch_load, case):
    opcodes, text = REFUSED[case]
    with pytest.raises(FormatError, match=text) as error:
        torch_load(opcodes)
    assert "x.pt: " in str(error.value)


@pytest.mark.parametrize("memory_map", [False, True])
def test_archives_that_are_no_files_of_pytorch(tmp_path, memory_map):
    path = tmp_path / "x.pt"

    def refused(text):
        with pytest.raises(FormatError, match=text):
            tenon.load(path, memory_map=memory_map)

    torch_file(path, tensor(), compression=zipfile.ZIP_DEFLATED)
    refused(r"x/data.pkl is compressed; expected it as it is|damaged")
    for members, text in (
        (["a/other"], "expected one data.pkl in the archive, got 0; is it a file of torch.save"),
        (["a/data.pkl", "b/data.pkl"], "expected one data.pkl in the archive, got 2"),
    ):
        with zipfile.ZipFile(path, "w") as archive:
            for member in members:
                archive.writestr(member, b"\x80\x02N.")
        refused(text)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("x/data.pkl", b"\x80\x02N.")
        archive.writestr("x/byteorder", "big")
    refused("expected little-endian numbers")
    with zipfile.ZipFile(path, "w") as archive, pytest.warns(UserWarning, match="Duplicate name"):
        archive.writestr("x/data.pkl", b"\x80\x02N.")
        archive.writestr("x/data.pkl", b"\x80\x02N.")
    refused("a member of the archive appears twice")


def test_storages_that_are_not_aligned_are_copied(tmp_path):
    for shift in range(5):
        path = tmp_path / f"{shift}.pt"
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("x/data.pkl", b"\x80\x02" + tensor() + b".")
            archive.writestr("x/" + "p" * (shift + 1), b"")
            archive.writestr("x/data/0", NUMBERS.tobytes())
        for memory_map in (False, True):
            assert (
                tenon.load(path, memory_map=memory_map).tolist() == NUMBERS.reshape(2, 3).tolist()
            )


def test_a_mapped_file_whose_headers_lie(tmp_path):
    path = torch_file(tmp_path / "x.pt", tensor())
    whole = path.read_bytes()
    at = whole.index(b"PK\x03\x04", 4)
    for change, text in (
        ((at, b"XX"), "the header of x/data/0 is damaged"),
        ((at + 28, struct.pack("<H", 60000)), "x/data/0 reaches beyond the file"),
    ):
        broken = bytearray(whole)
        broken[change[0] : change[0] + 2] = change[1]
        path.write_bytes(broken)
        with pytest.raises(FormatError, match=text):
            tenon.load(path, memory_map=True)


# -- Paddle ----------------------------------------------------------------------------------------


def dtype(kind="f4", order="<"):
    fields = (data(3), data(order), *[data(None)] * 3, data(-1), data(-1), data(0))
    return state(call("numpy.dtype", data(kind), data(False), data(True)), *fields)


def array(shape=(2, 3), kind="f4", content=None, is_fortran=False, of=None, fields=None):
    content = NUMBERS.tobytes() if content is None else content
    made = call("numpy.core.multiarray._reconstruct", name("numpy.ndarray"), data((0,)), data(b"b"))
    of = dtype(kind) if of is None else of
    # Protocol 2 writes bytes as text of latin 1.
    text = call("_codecs.encode", data(content.decode("latin1")), data("latin1"))
    parts = [data(1), data(shape), of, data(is_fortran), text]
    return state(made, *(parts if fields is None else parts[:fields]))


def test_arrays_and_numbers_of_numpy(paddle_load):
    assert paddle_load(array()).tolist() == NUMBERS.reshape(2, 3).tolist()
    by_columns = paddle_load(array(is_fortran=True))
    assert by_columns.tolist() == NUMBERS.reshape(3, 2).T.tolist()
    assert paddle_load(array((0, 2), content=b"")).shape == (0, 2)
    assert paddle_load(array((), "i8", struct.pack("<q", 7))).item() == 7
    for kind in ("<f4", "|u1", "=i2", "b1"):
        size = int(kind[-1])
        got = paddle_load(array((1,), content=b"\x01" + b"\0" * (size - 1), of=dtype(kind)))
        assert got.dtype.itemsize == size
    text = call("_codecs.encode", data(struct.pack("<f", 2.5).decode("latin1")), data("latin1"))
    assert paddle_load(call("numpy.core.multiarray.scalar", dtype(), text)) == 2.5
    pair = call("builtins.tuple", tuple_of(data("w_0"), array()))
    assert paddle_load(pair).tolist() == NUMBERS.reshape(2, 3).tolist()
    for other in ((data("w"), data(1)), (data(1), array()), (data("w"), array(), data(1))):
        assert isinstance(paddle_load(call("builtins.tuple", tuple_of(*other))), tuple)
    listed = call("builtins.tuple", data([1, 2]))
    assert paddle_load(listed) == (1, 2) and paddle_load(call("builtins.tuple")) == ()


def test_names_of_parameters_are_left_out(paddle_load):
    table = {"w": 1, "StructuredToParameterName@@": {"w": "linear_0.w_0"}}
    assert paddle_load(data(table)) == {"w": 1}
    assert paddle_load(data({"w": 1})) == {"w": 1}
    assert paddle_load(data(["StructuredToParameterName@@"])) == ["StructuredToParameterName@@"]


NO_ARRAY = {
    "an unknown dtype": (array(of=call("numpy.dtype", data("U3"))), "an array of dtype 'U3'"),
    "a dtype of a number": (array(of=call("numpy.dtype", data(4))), "an array of dtype 4; expected"),
    "big-endian numbers": (array(of=dtype(order=">")), "big-endian numbers or of records"),
    "a dtype with a short state": (
        array(of=state(call("numpy.dtype", data("f4")), data(3))),
        "big-endian numbers or of records",
    ),
    "a dtype with a number as state": (
        array(of=call("numpy.dtype", data("f4")) + data(3) + b"b"),
        "big-endian numbers or of records",
    ),
    "four fields": (array(fields=4), "an array without its five fields"),
    "no dtype": (array(of=data("f4")), "an array without shape, dtype or content"),
    "a shape of floats": (array((2.0, 3)), "an array without shape, dtype or content"),
    "a negative size": (array((-2, 3)), "an array without shape, dtype or content"),
    "too few bytes": (array((2, 4)), r"an array of shape \(2, 4\) with 24 bytes"),
    "too many bytes": (array((5,)), r"an array of shape \(5,\) with 24 bytes"),
    "as many numbers as bytes": (array((24,)), r"an array of shape \(24,\) with 24 bytes"),
    "too many axes": (array((1,) * 33), "an array with too many axes or elements"),
    "too many elements": (array((0, 1 << 40, 1 << 40)), "an array with too many axes or elements"),
    "a number without a dtype": (
        call("numpy.core.multiarray.scalar", data("f4"), data("x")),
        "a number without dtype or content",
    ),
    "a number without content": (
        call("numpy.core.multiarray.scalar", dtype(), data(3)),
        "a number without dtype or content",
    ),
    "a number of too few bytes": (
        call("numpy.core.multiarray.scalar", dtype(), call("_codecs.encode", data("x"), data("latin1"))),
        "a number of 1 bytes",
    ),
    "a tuple of a number": (call("builtins.tuple", data(3)), "a tuple of something that is no list"),
    "a dtype as data": (dtype(), "in place of data"),
    "an array without content": (
        call("numpy.core.multiarray._reconstruct", data(0), data(0), data(0)),
        "an array without content",
    ),
    "big parameters": (data({"UnpackBigParamInfor@@": {}}), "parameters above 1 GiB are split in it"),
}  # fmt: skip


@pytest.mark.parametrize("case", NO_ARRAY)
def test_what_no_file_of_paddle_has_is_refused(paddle_load, case):
    opcodes, text = NO_ARRAY[case]
    with pytest.raises(FormatError, match=text) as error:
        paddle_load(opcodes)
    assert "x.pdparams: " in str(error.value)


def test_arrays_deep_in_containers(paddle_load):
    nest = paddle_load(
        b"}" + data("k") + b"]" + array() + b"a" + tuple_of(array(), data(1)) + b"a" + b"s"
    )
    assert nest["k"][0].shape == (2, 3) and nest["k"][1][0].shape == (2, 3) and nest["k"][1][1] == 1


# -- which format a file has -----------------------------------------------------------------------


def test_formats_are_told_by_their_first_bytes(tmp_path):
    path = tmp_path / "x"
    tenon.save({"w": tenon.ones(2)}, path)
    assert tenon.load(path)["w"].tolist() == [1.0, 1.0]
    # A header whose length is also that of a ZIP archive: what follows decides.
    text = json.dumps({"w": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}).encode()
    path.write_bytes(struct.pack("<Q", 1 << 40) + text + b"\0" * 4)
    with pytest.raises(
        FormatError, match="expected a header of 1099511627776 bytes, but the file has"
    ):
        tenon.load(path)
    for protocol in (2, 3, 4, 5):
        path.write_bytes(pickle.dumps({"w": [1, None]}, protocol))
        assert tenon.load(path) == {"w": [1, None]}
    path.write_bytes(pickle.dumps("a{b", 2))
    assert tenon.load(path) == "a{b"
    path.write_bytes(pickle.dumps({"w": 1}, 1))
    with pytest.raises(FormatError, match="cut short or not a safetensors file"):
        tenon.load(path)
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("x/data.pkl", b"\x80\x02N.")
    path.write_bytes(out.getvalue())
    assert tenon.load(path) is None


def test_sizes_of_shards(tmp_path):
    def files(size, tensors):
        folder = tmp_path / str(len(list(tmp_path.iterdir())))
        folder.mkdir()
        tenon.save(tensors, folder / "m.safetensors", max_shard_size=size)
        index = folder / "m.safetensors.index.json"
        back = tenon.load(index if index.exists() else folder / "m.safetensors")
        assert {k: v.tolist() for k, v in back.items()} == {
            k: v.tolist() for k, v in tensors.items()
        }
        return len([each for each in folder.iterdir() if each.suffix == ".safetensors"])

    tensors = {
        name: tenon.full([256], float(i)) for i, name in enumerate("abcd")
    }  # 1024 bytes each
    for size, count in (
        (4096, 1), (4095, 2), (2048, 2), (2047, 4), (1, 4), ("4KiB", 1), ("4KB", 2), ("2.5 kib", 2),
        ("0.002MB", 4), ("0.002 MiB", 2), ("1GB", 1), ("1 TiB", 1), (" 2048 ", 2), ("0.1", 4),
    ):  # fmt: skip
        assert files(size, tensors) == count, size
    for size in (0, -5, "0GB", "5 XB", "GB", "", "1e3", "-1KB", True):
        with pytest.raises(
            ValueError, match='max_shard_size: expected bytes, or text such as "500MB"'
        ):
            files(size, tensors)
