# SPDX-License-Identifier: Apache-2.0
"""Readers of files of PyTorch (.pt, .pth) and Paddle (.pdparams, .pdopt). No code of a file runs.

PyTorch's is a ZIP archive of a pickle, `data.pkl`, and one member per storage, `data/0` and so on,
to which the pickle refers by persistent ids. Paddle's is a pickle of NumPy arrays.
"""

from __future__ import annotations

import math
import mmap
import os
import struct
import sys
import zipfile
import zlib
from collections.abc import Callable
from typing import Any, BinaryIO, Final

import tenon
from tenon import Tensor
from tenon._tensor.dtypes import DTYPES
from tenon.io.pickle_reader import Built, Name, PickleError, PickleReader
from tenon.io.safetensors import FormatError, tensor_over

_STORAGES: Final = {
    "FloatStorage": "float32",
    "DoubleStorage": "float64",
    "HalfStorage": "float16",
    "BFloat16Storage": "bfloat16",
    "LongStorage": "int64",
    "IntStorage": "int32",
    "ShortStorage": "int16",
    "CharStorage": "int8",
    "ByteStorage": "uint8",
    "BoolStorage": "bool",
    "ComplexFloatStorage": "complex64",
    "ComplexDoubleStorage": "complex128",
    "Float8_e4m3fnStorage": "float8_e4m3",
    "Float8_e5m2Storage": "float8_e5m2",
}
_TORCH_DTYPES: Final = {
    **{name: name for name in DTYPES},
    **{row.alias: name for name, row in DTYPES.items() if row.alias},
}
_NUMPY_DTYPES: Final = {
    "b1": "bool",
    "u1": "uint8",
    "i1": "int8",
    "u2": "uint16",
    "i2": "int16",
    "u4": "uint32",
    "i4": "int32",
    "u8": "uint64",
    "i8": "int64",
    "f2": "float16",
    "f4": "float32",
    "f8": "float64",
    "c8": "complex64",
    "c16": "complex128",
}
_MAGIC_OF_OLD_FILES: Final = bytes.fromhex("80028a0a6cfc9c46f9206aa850192e")
_DAMAGE: Final = (
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    NotImplementedError,
    RuntimeError,  # an encrypted member
    EOFError,
    KeyError,
    ValueError,
    OverflowError,
    OSError,
)


def load_torch(path: str, memory_map: bool = False) -> Any:
    """What a file of torch.save holds, with tensors of Tenon on the host."""
    with open(path, "rb") as file:
        return read_torch(file, path, memory_map)


def read_torch(file: BinaryIO, path: str, memory_map: bool = False) -> Any:
    """The same for an open file; `path` is for messages."""
    try:
        return _TorchArchive(file, path, memory_map).load()
    except FormatError:
        raise
    except PickleError as error:
        raise FormatError(f"{path}: {error}") from None
    except _DAMAGE as error:
        raise FormatError(f"{path}: the archive is damaged ({error})") from None


def load_paddle(path: str) -> Any:
    """What a file of paddle.save holds, with tensors of Tenon on the host."""
    with open(path, "rb") as file:
        return read_paddle(file.read(), path)


def read_paddle(content: bytes, path: str) -> Any:
    """The same for the content of a file; `path` is for messages."""
    if content.startswith(_MAGIC_OF_OLD_FILES):
        raise FormatError(
            f"{path}: this is a file of PyTorch before 1.6; expected a ZIP archive: load it there "
            "and save it again"
        )
    try:
        state = _plain(PickleReader(content, _PADDLE_FUNCTIONS).read())
    except PickleError as error:
        raise FormatError(f"{path}: {error}") from None
    if isinstance(state, dict):
        if "UnpackBigParamInfor@@" in state:
            raise FormatError(
                f"{path}: parameters above 1 GiB are split in it; expected whole ones: save it "
                "again with protocol=4"
            )
        state.pop("StructuredToParameterName@@", None)
    return state


# -- PyTorch ---------------------------------------------------------------------------------------


class _Storage:
    """Memory that tensors of the file share."""

    def __init__(self, content: Any, start: int, size: int, dtype: Any) -> None:
        self.content, self.start, self.size, self.dtype = content, start, size, dtype

    def tensor(self, dtype: Any, offset: Any, shape: Any, strides: Any) -> Tensor:
        if not (_is_counts(shape) and _is_counts(strides) and _is_counts((offset,))):
            raise PickleError("a tensor whose shape, strides or offset are no numbers >= 0")
        if len(shape) != len(strides) or len(shape) > 32:
            raise PickleError(f"a tensor of {len(shape)} sizes and {len(strides)} strides")
        # Strides are products of sizes even where one size is 0 and no byte is needed.
        if math.prod(size for size in shape if size) >= 1 << 60:
            raise PickleError(f"a tensor of shape {shape}, which is too large")
        count = math.prod(shape)
        reach = sum((n - 1) * s for n, s in zip(shape, strides, strict=True)) + 1 if count else 0
        if (offset + reach) * dtype.itemsize > self.size:
            raise PickleError(
                f"a tensor of shape {shape} reaches beyond its storage of {self.size} bytes"
            )
        begin = self.start + offset * dtype.itemsize
        if count == 0:
            return tenon.empty(shape, dtype=dtype)
        # Axes by descending stride: of a permuted dense tensor these are the dense one's.
        order = sorted(range(len(shape)), key=lambda axis: (-strides[axis], shape[axis] == 1))
        step = 1
        for axis in reversed(order):
            if shape[axis] != 1 and strides[axis] != step:
                return self._gathered(dtype, begin, reach, shape, strides)
            step *= shape[axis]
        dense = tensor_over(self.content, dtype, tuple(shape[axis] for axis in order), begin)
        if order == list(range(len(shape))):
            return dense
        return dense.permute(*(order.index(axis) for axis in range(len(shape))))

    def _gathered(self, dtype: Any, begin: int, reach: int, shape: Any, strides: Any) -> Tensor:
        """A tensor with gaps, or one that repeats elements along axes of stride 0: a copy."""
        distinct = [1 if stride == 0 else size for size, stride in zip(shape, strides, strict=True)]
        if math.prod(distinct) > reach:
            raise PickleError(f"elements of a tensor of shape {shape} share memory")
        index = tenon.zeros([1] * len(shape), dtype=tenon.int64)
        for axis, (size, stride) in enumerate(zip(distinct, strides, strict=True)):
            along = [1] * len(shape)
            along[axis] = size
            index = index + (tenon.arange(size, dtype=tenon.int64) * stride).reshape(along)
        flat = tensor_over(self.content, dtype, (reach,), begin)
        return flat[index.reshape(-1)].reshape(distinct).expand(shape)


class _TorchArchive:
    def __init__(self, file: Any, path: str, memory_map: bool) -> None:
        self.path, self.file = path, file
        self.archive = zipfile.ZipFile(file)
        members = self.archive.infolist()
        self.members = {member.filename: member for member in members}
        if len(self.members) != len(members):
            raise FormatError(f"{path}: a member of the archive appears twice")
        self.map = (
            mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY) if memory_map and members else None
        )
        self.storages: dict[tuple, _Storage] = {}

    def load(self) -> Any:
        pickles = [name for name in self.members if name.rpartition("/")[2] == "data.pkl"]
        if len(pickles) != 1:
            raise FormatError(
                f"{self.path}: expected one data.pkl in the archive, got {len(pickles)}; "
                "is it a file of torch.save?"
            )
        self.folder = pickles[0].removesuffix("data.pkl")
        order = self.members.get(self.folder + "byteorder")
        if order and self._content(order)[:16] != sys.byteorder.encode():
            raise FormatError(f"{self.path}: expected {sys.byteorder}-endian numbers")
        content = self._content(self.members[pickles[0]])
        names = {f"torch.{name}": getattr(tenon, dtype) for name, dtype in _TORCH_DTYPES.items()}
        for name, dtype in _STORAGES.items():
            names[f"torch.{name}"] = names[f"torch.storage.{name}"] = getattr(tenon, dtype)
        names["torch.storage.UntypedStorage"] = names["torch.UntypedStorage"] = tenon.uint8
        return _plain(PickleReader(content, _TORCH_FUNCTIONS, names, self._storage).read())

    def _content(self, member: zipfile.ZipInfo) -> bytes:
        self._check(member)
        return self.archive.read(member)

    def _check(self, member: zipfile.ZipInfo) -> None:
        # A compressed member could announce any size.
        if member.compress_type != zipfile.ZIP_STORED or member.file_size != member.compress_size:
            raise PickleError(f"{member.filename} is compressed; expected it as it is")

    def _storage(self, id: Any) -> _Storage:
        if type(id) is not tuple or len(id) != 5 or id[0] != "storage" or type(id[2]) is not str:
            raise PickleError("a persistent id that is no storage")
        _, dtype, key, _, count = id
        if type(dtype) is not type(tenon.uint8) or not _is_counts((count,)):
            raise PickleError("a storage without dtype or size")
        known = self.storages.get((key, dtype.name))
        if known is None:
            known = self.storages[key, dtype.name] = self._read_storage(key, dtype)
        if count * dtype.itemsize > known.size:
            raise PickleError(f"storage {key!r} has {known.size} bytes, expected {count} elements")
        return known

    def _read_storage(self, key: str, dtype: Any) -> _Storage:
        member = self.members.get(f"{self.folder}data/{key}")
        if member is None:
            raise PickleError(f"storage {key!r} is not in the archive")
        self._check(member)
        if self.map is None:
            return _Storage(bytearray(self.archive.read(member)), 0, member.file_size, dtype)
        # The name and the extra field before the content are those of the local header.
        header = self.map[member.header_offset : member.header_offset + 30]
        if header[:4] != b"PK\x03\x04":
            raise PickleError(f"the header of {member.filename} is damaged")
        name, extra = struct.unpack("<HH", header[26:])
        start = member.header_offset + 30 + name + extra
        if start + member.file_size > len(self.map):
            raise PickleError(f"{member.filename} reaches beyond the file")
        end = start + member.file_size
        if start % dtype.itemsize:  # other writers need not align; elements must be
            return _Storage(bytearray(self.map[start:end]), 0, member.file_size, dtype)
        return _Storage(self.map, start, member.file_size, dtype)


def _rebuild_tensor(storage: Any, offset: Any, shape: Any, strides: Any, *rest: Any) -> Tensor:
    if type(storage) is not _Storage:
        raise PickleError("a tensor without a storage")
    return storage.tensor(storage.dtype, offset, shape, strides)


def _rebuild_tensor_of_bytes(
    storage: Any, offset: Any, shape: Any, strides: Any, grad: Any, hooks: Any, dtype: Any, *_: Any
) -> Tensor:
    if type(storage) is not _Storage or type(dtype) is not type(tenon.uint8):
        raise PickleError("a tensor without a storage or dtype")
    return storage.tensor(dtype, offset, shape, strides)


def _rebuild_parameter(tensor: Any, *_: Any) -> Tensor:
    if not isinstance(tensor, Tensor):
        raise PickleError("a parameter without a tensor")
    return tensor


def _size(items: Any = ()) -> tuple:
    if type(items) not in (list, tuple):
        raise PickleError("a torch.Size of something that is no list")
    return tuple(items)


def _device(kind: Any, index: Any = None) -> str:
    if type(kind) is not str or not (index is None or type(index) is int):
        raise PickleError("a device without a name")
    return kind if index is None else f"{kind}:{index}"


_TORCH_FUNCTIONS: Final[dict[str, Callable[..., Any]]] = {
    "torch._utils._rebuild_tensor": _rebuild_tensor,
    "torch._utils._rebuild_tensor_v2": _rebuild_tensor,
    "torch._utils._rebuild_tensor_v3": _rebuild_tensor_of_bytes,
    "torch._utils._rebuild_parameter": _rebuild_parameter,
    "torch.Size": _size,
    "torch.device": _device,
}

# -- NumPy, in files of Paddle ---------------------------------------------------------------------


class _NumpyDtype(Built):
    def __init__(self, kind: Any, *_: Any) -> None:
        if type(kind) is not str or kind.lstrip("<|=") not in _NUMPY_DTYPES:
            raise PickleError(f"an array of dtype {kind!r}; expected numbers")
        self.dtype = getattr(tenon, _NUMPY_DTYPES[kind.lstrip("<|=")])

    def set_state(self, state: Any) -> None:
        if type(state) is not tuple or len(state) < 2 or state[1] not in ("<", "|", "="):
            raise PickleError("an array of big-endian numbers or of records; expected plain ones")


class _NumpyArray(Built):
    tensor: Tensor | None = None

    def set_state(self, state: Any) -> None:
        if type(state) is not tuple or len(state) != 5:
            raise PickleError("an array without its five fields")
        _, shape, dtype, is_fortran, content = state
        if type(dtype) is not _NumpyDtype or type(content) is not bytes or not _is_counts(shape):
            raise PickleError("an array without shape, dtype or content")
        if len(shape) > 32 or math.prod(size for size in shape if size) >= 1 << 60:
            raise PickleError("an array with too many axes or elements")
        if math.prod(shape) * dtype.dtype.itemsize != len(content):
            raise PickleError(f"an array of shape {shape} with {len(content)} bytes")
        dims = tuple(reversed(shape)) if is_fortran is True else shape
        self.tensor = _over_bytes(dtype.dtype, dims, content)
        if is_fortran is True:
            self.tensor = self.tensor.permute(*reversed(range(len(shape))))


def _over_bytes(dtype: Any, shape: tuple, content: bytes) -> Tensor:
    if math.prod(shape) == 0:
        return tenon.empty(shape, dtype=dtype)
    return tensor_over(bytearray(content), dtype, shape, 0)


def _numpy_array(kind: Any, shape: Any, typecode: Any) -> _NumpyArray:
    return _NumpyArray()


def _numpy_scalar(dtype: Any, content: Any) -> Any:
    if type(dtype) is not _NumpyDtype or type(content) is not bytes:
        raise PickleError("a number without dtype or content")
    if len(content) != dtype.dtype.itemsize:
        raise PickleError(f"a number of {len(content)} bytes")
    return _over_bytes(dtype.dtype, (), content).item()


def _numpy_buffer(content: Any, dtype: Any, shape: Any, order: Any) -> _NumpyArray:
    """How NumPy writes an array with protocol 5."""
    array = _NumpyArray()
    array.set_state((1, shape, dtype, order == "F", content))
    return array


def _tensor_with_name(items: Any = ()) -> Any:
    """paddle.save writes a tensor as a call of tuple, of its name and array."""
    if type(items) not in (list, tuple):
        raise PickleError("a tuple of something that is no list")
    if len(items) == 2 and type(items[0]) is str and type(items[1]) is _NumpyArray:
        return items[1]
    return tuple(items)


_PADDLE_FUNCTIONS: Final[dict[str, Callable[..., Any]]] = {"builtins.tuple": _tensor_with_name}
for _module in ("numpy.core", "numpy._core"):
    _PADDLE_FUNCTIONS[f"{_module}.multiarray._reconstruct"] = _numpy_array
    _PADDLE_FUNCTIONS[f"{_module}.multiarray.scalar"] = _numpy_scalar
    _PADDLE_FUNCTIONS[f"{_module}.numeric._frombuffer"] = _numpy_buffer
_PADDLE_FUNCTIONS["numpy.dtype"] = _NumpyDtype
_PADDLE_FUNCTIONS["numpy.ndarray"] = _numpy_array
_TORCH_FUNCTIONS.update({k: f for k, f in _PADDLE_FUNCTIONS.items() if k.startswith("numpy")})


def _plain(value: Any) -> Any:
    """With a tensor for each array, in place; other objects of this module are refused."""
    seen: set[int] = set()

    def replaced(value: Any) -> Any:
        if type(value) is _NumpyArray:
            if value.tensor is None:
                raise PickleError("an array without content")
            return value.tensor
        if isinstance(value, (Name, Built, _Storage)):
            raise PickleError(f"a {type(value).__name__.strip('_')} in place of data")
        if type(value) is tuple:
            return tuple(replaced(item) for item in value)
        if type(value) in (dict, list) and id(value) not in seen:
            seen.add(id(value))
            items = value.items() if type(value) is dict else enumerate(value)
            for key, item in list(items):
                value[key] = replaced(item)
        return value

    try:
        return replaced(value)
    except RecursionError:
        raise PickleError("containers are nested too deeply") from None


def _is_counts(values: Any) -> bool:
    # `type is int`: True is an int for isinstance.
    return type(values) in (tuple, list) and all(
        type(n) is int and 0 <= n < 1 << 62 for n in values
    )


def kind_of(path: str | os.PathLike) -> str:
    """Which format a file has, by its first bytes: "safetensors", "torch" or "paddle"."""
    with open(path, "rb") as file:
        start = file.read(9)
        size = os.fstat(file.fileno()).st_size
    length = int.from_bytes(start[:8], "little")
    if start[8:] == b"{" and length <= size - 8:
        return "safetensors"
    if start.startswith(b"PK\x03\x04"):
        return "torch"
    if start[:1] == b"\x80" and start[1:2] in (b"\x02", b"\x03", b"\x04", b"\x05"):
        return "paddle"
    return "safetensors"  # whose reader says what is wrong
