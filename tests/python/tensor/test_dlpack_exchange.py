# SPDX-License-Identifier: Apache-2.0
"""DLPack's table of C functions: ours, called as another library would, and that of others."""

import ctypes

import numpy as np
import pytest
import tenon


class DLTensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


class Managed(ctypes.Structure):
    pass


DELETER = ctypes.CFUNCTYPE(None, ctypes.POINTER(Managed))
Managed._fields_ = [
    ("major", ctypes.c_uint32),
    ("minor", ctypes.c_uint32),
    ("manager", ctypes.c_void_p),
    ("deleter", DELETER),
    ("flags", ctypes.c_uint64),
    ("tensor", DLTensor),
]
SET_ERROR = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_char_p)
OUT = ctypes.POINTER(ctypes.POINTER(Managed))


class Table(ctypes.Structure):
    """With functions that hold the GIL and hand on Python's errors."""

    _fields_ = [
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("previous", ctypes.c_void_p),
        (
            "allocate",
            ctypes.PYFUNCTYPE(
                ctypes.c_int, ctypes.POINTER(DLTensor), OUT, ctypes.c_void_p, SET_ERROR
            ),
        ),
        ("managed_from_object", ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, OUT)),
        (
            "object_from_managed",
            ctypes.PYFUNCTYPE(
                ctypes.c_int, ctypes.POINTER(Managed), ctypes.POINTER(ctypes.py_object)
            ),
        ),
        (
            "borrowed_from_object",
            ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.POINTER(DLTensor)),
        ),
        (
            "current_stream",
            ctypes.PYFUNCTYPE(
                ctypes.c_int, ctypes.c_int32, ctypes.c_int32, ctypes.POINTER(ctypes.c_void_p)
            ),
        ),
    ]


def table():
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype = ctypes.c_void_p
    pointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
    address = pointer(tenon.Tensor.__dlpack_c_exchange_api__, b"dlpack_exchange_api")
    return Table.from_address(address)


def taken(tensor):
    managed = ctypes.POINTER(Managed)()
    table().managed_from_object(tensor, ctypes.byref(managed))
    return managed


def test_the_table_is_of_version_one():
    assert (table().major, table().previous) == (1, None)


def test_memory_goes_out_and_comes_back():
    x = tenon.arange(6.0).reshape([2, 3])[:, 1:]
    managed = taken(x)
    head = managed.contents.tensor
    assert (head.ndim, list(head.shape[:2]), list(head.strides[:2])) == (2, [2, 2], [3, 1])
    assert (head.code, head.bits, head.device_type) == (2, 32, 1)
    back = ctypes.py_object()
    assert table().object_from_managed(managed, ctypes.byref(back)) == 0
    again = back.value
    assert again.data_ptr() == x.data_ptr()
    again[0, 0] = 9.0
    del again, back
    assert x.tolist() == [[9.0, 2.0], [4.0, 5.0]]


def test_borrowed_memory_and_what_is_not_taken():
    x = tenon.ones([3], dtype="int64")
    head = DLTensor()
    assert table().borrowed_from_object(x, ctypes.byref(head)) == 0
    assert head.data + head.byte_offset == x.data_ptr() and head.shape[0] == 3
    managed = taken(x)
    managed.contents.deleter(managed)  # a consumer that changed its mind


def test_new_memory():
    prototype = DLTensor()
    table().borrowed_from_object(tenon.ones([2, 5], dtype="int16"), ctypes.byref(prototype))
    told = []
    tell = SET_ERROR(lambda context, kind, message: told.append((kind, message)))
    managed = ctypes.POINTER(Managed)()
    assert table().allocate(ctypes.byref(prototype), ctypes.byref(managed), None, tell) == 0
    back = ctypes.py_object()
    table().object_from_managed(managed, ctypes.byref(back))
    assert back.value.shape == (2, 5) and str(back.value.dtype).endswith("int16")
    prototype.bits = 7
    assert table().allocate(ctypes.byref(prototype), ctypes.byref(managed), None, tell) == -1
    assert told[0][0] == b"BufferError" and b"expected a dtype" in told[0][1]


def test_what_is_refused():
    with pytest.raises(BufferError, match="cannot share a tensor that requires grad"):
        taken(tenon.ones([2], requires_grad=True))
    with pytest.raises(BufferError, match="a meta tensor has no memory to share"):
        taken(tenon.empty([2], device="meta"))
    with pytest.raises(TypeError, match="expected a tenon.Tensor, got numpy.ndarray"):
        taken(np.ones(2))


def test_numpy_has_no_table_and_works_as_before():
    array = np.arange(4.0)
    assert tenon.from_dlpack(array).data_ptr() == array.ctypes.data
    assert tenon.from_dlpack(tenon.ones([2])).tolist() == [1.0, 1.0]


def test_pytorch_hands_out_and_takes():
    torch = pytest.importorskip("torch", exc_type=ImportError)
    x = torch.arange(6.0).reshape(2, 3).t()
    ours = tenon.from_dlpack(x)
    assert ours.data_ptr() == x.data_ptr() and ours.tolist() == x.tolist()
    assert torch.from_dlpack(ours).data_ptr() == x.data_ptr()
    for refused in (torch.nn.Parameter(x), x.clone().requires_grad_()):
        with pytest.raises((BufferError, RuntimeError), match="require"):
            tenon.from_dlpack(refused)
    conjugate = torch.tensor([1 + 2j]).conj()
    with pytest.raises((BufferError, RuntimeError), match="conjugate"):
        tenon.from_dlpack(conjugate)


def test_memory_as_a_tensor_of_another_library():
    x = tenon.ones([2])
    again = tenon._core.dlpack_exchange(x, tenon.Tensor)
    assert again is not x and again.data_ptr() == x.data_ptr()
    assert tenon._core.dlpack_exchange(x, np.ndarray) is None
    with pytest.raises(BufferError, match="cannot share a tensor that requires grad"):
        tenon._core.dlpack_exchange(tenon.ones([2], requires_grad=True), tenon.Tensor)
    torch = pytest.importorskip("torch", exc_type=ImportError)
    theirs = tenon._core.dlpack_exchange(x, torch.Tensor)
    assert isinstance(theirs, torch.Tensor) and theirs.data_ptr() == x.data_ptr()
