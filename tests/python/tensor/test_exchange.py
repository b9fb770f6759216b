# SPDX-License-Identifier: Apache-2.0
"""Memory shared with NumPy, PyTorch and whatever speaks DLPack or the buffer protocol."""

import array as python_array
import gc
import weakref

import numpy as np
import pytest
import tenon

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
    "complex128",
]


@pytest.mark.parametrize("name", DTYPES)
def test_numpy_both_ways_without_copies(name):
    array = np.array([[1, 0, 1], [0, 1, 1]]).astype(name)
    x = tenon.from_numpy(array)
    assert x.data_ptr() == array.ctypes.data and x.dtype == array.dtype
    back = x.numpy()
    assert back.dtype == array.dtype and back.ctypes.data == array.ctypes.data
    np.testing.assert_array_equal(back, array)
    array[0, 0] = 0
    assert not x[0, 0].item()


@pytest.mark.parametrize(
    "view", ["a.T", "a[::-1]", "a[:, ::2]", "a[1:1]", "a[0]", "a[0, 0]", "a[:, None]"]
)
def test_any_strides(view):
    a = np.arange(12.0).reshape(3, 4)  # noqa: F841
    array = np.asarray(eval(view))
    x = tenon.from_numpy(array)
    assert x.tolist() == array.tolist() and x.shape == array.shape
    np.testing.assert_array_equal(x.numpy(), array)


def test_what_numpy_cannot_share():
    with pytest.raises(TypeError, match=r"bfloat16 .* use .to\(tenon.float32\)"):
        tenon.zeros(2, dtype=tenon.bfloat16).numpy()
    x = tenon.tensor([1.0], requires_grad=True)
    with pytest.raises(TypeError, match=r"use .detach\(\).numpy\(\)"):
        x.numpy()
    with pytest.raises(TypeError, match=r"use .detach\(\).numpy\(\)"):
        np.asarray(x)
    assert np.asarray(x.detach()).tolist() == [1.0]


def test_what_cannot_be_imported():
    with pytest.raises(ValueError, match="element format"):
        tenon.from_numpy(np.zeros(2, ">f4"))
    with pytest.raises(ValueError, match="aligned"):
        tenon.from_numpy(np.frombuffer(bytes(9), np.uint8)[1:].view(np.float32))
    with pytest.raises(ValueError, match="strides"):
        packed = np.dtype([("a", "f4"), ("b", "u2")])
        tenon.from_numpy(np.zeros(2, packed)["a"])
    with pytest.raises(TypeError, match=r"from_numpy\(\): expected an array, got list"):
        tenon.from_numpy([1])


def test_numpy_functions_take_tensors():
    x = tenon.tensor([1.0, 4.0])
    assert np.sqrt(x).tolist() == [1.0, 2.0] and np.array(x, dtype=np.int64).tolist() == [1, 4]
    copied = np.array(x)
    copied[0] = 9
    assert x.tolist() == [1.0, 4.0]


def test_sharing_keeps_the_owner_alive():
    class Array(np.ndarray):
        pass

    array = np.arange(4.0).view(Array)
    gone = weakref.ref(array)
    x = tenon.from_numpy(array)[1:]
    del array
    gc.collect()
    assert gone() is not None and x.tolist() == [1.0, 2.0, 3.0]
    del x
    gc.collect()
    assert gone() is None

    x = tenon.tensor([1.0, 2.0])
    view = x.numpy()
    x.data = tenon.tensor([5.0])  # the export keeps the memory it was given
    del x
    assert view.tolist() == [1.0, 2.0]


def test_read_only_arrays():
    array = np.arange(3.0)
    array.flags.writeable = False
    x = tenon.from_numpy(array)
    assert not x.numpy().flags.writeable
    assert not np.from_dlpack(x).flags.writeable
    with pytest.raises(BufferError, match="read-only"):
        x.__dlpack__()


def test_buffer_protocol():
    x = tenon.tensor([[1, 2], [3, 4]], dtype=tenon.int32)
    view = memoryview(x)
    assert (view.shape, view.format, view.strides) == ((2, 2), "i", (8, 4)) and view.tolist() == [
        [1, 2],
        [3, 4],
    ]
    view[0, 0] = 9
    assert x[0, 0].item() == 9
    assert bytes(x[0]) == np.array([9, 2], np.int32).tobytes()
    with pytest.raises(BufferError, match="not contiguous"):
        python_array.array("i").frombytes(x.T)
    assert tenon.tensor(python_array.array("d", [1.0, 2.0])).tolist() == [1.0, 2.0]


def test_raw_bytes():
    x = tenon.tensor([1.0, -2.0], dtype=tenon.bfloat16)
    raw = x._bytes()
    assert raw.format == "B" and bytes(raw) == bytes([0x80, 0x3F, 0x00, 0xC0])
    with pytest.raises(ValueError, match="contiguous"):
        tenon.zeros((2, 3)).T._bytes()


def test_frombuffer():
    memory = bytearray(np.arange(6, dtype=np.float32).tobytes())
    x = tenon.frombuffer(memory, tenon.float32, (2, 2), offset=8)
    assert x.tolist() == [[2.0, 3.0], [4.0, 5.0]]
    x[0, 0] = 7
    assert np.frombuffer(memory, np.float32)[2] == 7
    assert tenon.frombuffer(b"ab").tolist() == [97, 98]
    with pytest.raises(ValueError, match="a buffer with 28 bytes from byte 0 on"):
        tenon.frombuffer(memory, tenon.float32, (7,))
    with pytest.raises(ValueError, match="offset"):
        tenon.frombuffer(memory, tenon.float32, (1,), offset=100)
    with pytest.raises(ValueError, match="read-only"):
        tenon.frombuffer(b"abcd").zero_()


@pytest.mark.parametrize("name", [*DTYPES, "bfloat16"])
def test_dlpack_round_trip(name):
    x = tenon.tensor([[1, 0], [1, 1]]).to(name)
    y = tenon.from_dlpack(x)
    assert y.data_ptr() == x.data_ptr() and y.dtype == x.dtype and y.tolist() == x.tolist()
    old = tenon.from_dlpack(x.__dlpack__())
    assert old.tolist() == x.tolist()
    if name != "bfloat16":
        assert np.from_dlpack(x).ctypes.data == x.data_ptr()
        array = np.array([[1, 2]]).astype(name)
        assert tenon.from_dlpack(array).data_ptr() == array.ctypes.data


def test_dlpack_capsules():
    x = tenon.zeros(3)
    assert x.__dlpack_device__() == (1, 0)
    capsule = x.__dlpack__(max_version=(1, 0))
    assert "dltensor_versioned" in repr(capsule)
    tenon.from_dlpack(capsule)
    with pytest.raises(TypeError, match="no consumer has taken"):
        tenon.from_dlpack(capsule)
    copied = tenon.from_dlpack(x.__dlpack__(copy=True))
    assert copied.data_ptr() != x.data_ptr()
    with pytest.raises(BufferError, match="requires grad"):
        tenon.tensor([1.0], requires_grad=True).__dlpack__()
    with pytest.raises(BufferError, match="meta"):
        tenon.empty(2, device="meta").__dlpack__()


def test_unused_capsules_free_what_they_hold():
    before = tenon.memory.stats()
    for _ in range(1000):
        tenon.zeros(1000).__dlpack__(max_version=(1, 0))
    after = tenon.memory.stats()
    key = next(k for k in ("current_bytes", "current") if k in before)
    assert after[key] <= before[key] + 100_000


def test_torch_both_ways():
    torch = pytest.importorskip("torch")
    t = torch.arange(6.0).reshape(2, 3).T
    x = tenon.from_dlpack(t)
    assert x.data_ptr() == t.data_ptr() and x.tolist() == t.tolist()
    assert tenon.tensor(t).data_ptr() != t.data_ptr()
    y = tenon.tensor([[1.0, 2.0]], dtype=tenon.bfloat16)
    back = torch.from_dlpack(y)
    assert back.dtype == torch.bfloat16 and back.data_ptr() == y.data_ptr()
    back[0, 0] = 5
    assert y[0, 0].item() == 5.0


def test_arrow_gives_its_memory():
    pyarrow = pytest.importorskip("pyarrow", reason="an optional package")
    array = pyarrow.array([1.0, 2.0, 3.0])
    x = tenon.from_dlpack(array)
    assert x.tolist() == [1.0, 2.0, 3.0] and x.dtype == tenon.float64
    assert x.data_ptr() == array.buffers()[1].address
    assert pyarrow.array(tenon.ones(3).numpy()).to_pylist() == [1.0] * 3
    with pytest.raises(TypeError, match="arrays with no nulls"):
        tenon.from_dlpack(pyarrow.array([1, None]))


def test_arrays_in_another_byte_order_are_refused_with_what_to_do():
    swapped = np.arange(3, dtype=np.dtype("f4").newbyteorder("S"))
    for take in (tenon.tensor, tenon.from_numpy, tenon.asarray):
        with pytest.raises(
            ValueError, match="this machine's byte order, got the element format .f; convert"
        ):
            take(swapped)
    assert tenon.tensor(swapped.astype(swapped.dtype.newbyteorder("="))).tolist() == [0, 1, 2]
