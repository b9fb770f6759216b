# SPDX-License-Identifier: Apache-2.0
"""torch.save and torch.load under the alias: files of PyTorch's format, which PyTorch reads, too.

A file is a ZIP archive of a pickle, `data.pkl`, and the bytes of each tensor, to which the pickle refers. Without code of
a program in it (layers, data classes) it is read by tenon.io, which runs none.
"""

from __future__ import annotations

import io
import os
import pickle
import sys
import zipfile
from collections import OrderedDict
from typing import Any

import tenon
from tenon import nn
from tenon._core import Tensor
from tenon.compat.torch import _operands
from tenon.io import foreign_files

from .absent import absent_class

__all__ = [
    "add_safe_globals",
    "clear_safe_globals",
    "get_safe_globals",
    "load",
    "safe_globals",
    "save",
]

# Classes that name the dtype of a tensor's bytes in a file.
STORAGES = {
    name: absent_class(f"torch.{name}")
    for name in """FloatStorage DoubleStorage HalfStorage BFloat16Storage LongStorage IntStorage ShortStorage CharStorage
    ByteStorage BoolStorage ComplexFloatStorage ComplexDoubleStorage""".split()
}
_DTYPES = """float32 float64 float16 bfloat16 int64 int32 int16 int8 uint8 bool complex64 complex128""".split()
_STORAGE_OF = dict(zip(_DTYPES, STORAGES.values(), strict=True))
_DTYPE_OF = dict(zip(STORAGES, _DTYPES, strict=True))


class _Memory:
    """The elements of one tensor in a file."""

    def __init__(self, tensor: Tensor) -> None:
        self.tensor = tensor


def _rebuild_tensor_v2(
    storage: Any,
    offset: int,
    size: Any,
    stride: Any,
    requires_grad: bool,
    hooks: Any,
    metadata: Any = None,
) -> Tensor:
    if metadata:  # the conjugate and the negative bit of views
        raise NotImplementedError(f"load: a tensor with {sorted(metadata)} in its metadata")
    result = _operands.as_strided(storage, tuple(size), tuple(stride), offset)
    return result.clone().requires_grad_(requires_grad)


def _rebuild_parameter(data: Tensor, requires_grad: bool, hooks: Any) -> Tensor:
    return nn.Parameter(data, requires_grad)


class Rebuilding:
    """torch._utils: what pickles of tensors call."""

    _rebuild_tensor_v2 = staticmethod(_rebuild_tensor_v2)
    _rebuild_parameter = staticmethod(_rebuild_parameter)


for _function in (_rebuild_tensor_v2, _rebuild_parameter):
    _function.__module__ = "torch._utils"  # where a file says that they are


class _Pickler(pickle.Pickler):
    """Writes tensors as PyTorch does, and keeps what they refer to."""

    def __init__(self, file: Any, protocol: int) -> None:
        super().__init__(file, protocol)
        self.contents: dict[
            tuple[int, int], tuple[str, Tensor]
        ] = {}  # by address and bytes: shared ones once

    def reducer_override(self, obj: Any) -> Any:
        if type(obj) is nn.Parameter:
            return _rebuild_parameter, (obj.detach(), obj.requires_grad, OrderedDict())
        if type(obj) is nn.Buffer:
            return nn.Buffer, (obj.detach(), obj.persistent, obj.optional)
        if type(obj) is not Tensor:
            return NotImplemented
        if obj.dtype.name not in _STORAGE_OF:
            raise NotImplementedError(
                f"save(): expected a dtype of PyTorch's files, got {obj.dtype}"
            )
        if obj.requires_grad and not obj.is_leaf:
            raise RuntimeError(
                "save(): expected tensors without a history, got one; save x.detach()"
            )
        dense = obj.detach().cpu()
        dense = dense if dense.is_contiguous() else dense.contiguous()
        layout = (0, tuple(dense.shape), tuple(dense.strides))
        no_hooks: OrderedDict[Any, Any] = OrderedDict()
        return _rebuild_tensor_v2, (_Memory(dense), *layout, obj.requires_grad, no_hooks)

    def persistent_id(self, obj: Any) -> Any:
        if type(obj) is not _Memory:
            return None
        tensor = obj.tensor
        place = (tensor.data_ptr(), tensor.nbytes) if tensor.nbytes else (-1, len(self.contents))
        key, _ = self.contents.setdefault(place, (str(len(self.contents)), tensor))
        return "storage", _STORAGE_OF[tensor.dtype.name], key, "cpu", tensor.numel()


# What files name besides the classes of their program.
_OURS = {
    ("collections", "OrderedDict"),
    ("tenon._tensor.pickling", "operator"),
    ("tenon.nn.parameter", "Buffer"),
    ("tenon", "dtype"),
    ("tenon", "device"),
    ("torch", "Size"),
    ("torch._utils", "_rebuild_tensor_v2"),
    ("torch._utils", "_rebuild_parameter"),
    *(("torch", name) for name in STORAGES),
}


class _Unpickler(pickle.Unpickler):
    """Reads files that name classes of programs, whose code runs: all of them, or those of a list."""

    def __init__(self, archive: zipfile.ZipFile, allowed: list[Any] | None) -> None:
        self._allowed = allowed
        name = next((each for each in archive.namelist() if each.endswith("data.pkl")), None)
        if name is None:
            raise RuntimeError(
                "load(): expected a file of torch.save, got an archive without data.pkl"
            )
        self._archive, self._folder = archive, name.removesuffix("data.pkl")
        self._known: dict[str, Tensor] = {}
        super().__init__(io.BytesIO(archive.read(name)))

    def find_class(self, module: str, name: str) -> Any:
        found = super().find_class(module, name) if self._may_import(module, name) else None
        if found is None or not (
            self._allowed is None or (module, name) in _OURS or found in self._allowed
        ):
            raise pickle.UnpicklingError(
                f"load(): the file names {module}.{name}; expected tensors, plain values and classes given to "
                f"torch.serialization.safe_globals; with weights_only=False its code runs"
            )
        return found

    def _may_import(self, module: str, name: str) -> bool:
        """Importing a module runs it, too: of a list, those that are there already."""
        return self._allowed is None or module in sys.modules or (module, name) in _OURS

    def persistent_load(self, pid: Any) -> Tensor:
        _, kind, key, _, count = pid
        if key not in self._known:
            content = bytearray(self._archive.read(f"{self._folder}data/{key}"))
            dtype = getattr(tenon, _DTYPE_OF[kind.__name__])
            empty = tenon.empty([0], dtype=dtype)
            self._known[key] = tenon.frombuffer(content, dtype=dtype) if count else empty
        return self._known[key]


def save(
    obj: Any,
    f: Any,
    pickle_module: Any = None,
    pickle_protocol: int = 2,
    _use_new_zipfile_serialization: bool = True,
) -> None:
    """Write `obj` to a path or a file. Tensors are copied from their devices; those of the same memory stay shared, views
    of parts of others do not."""
    if pickle_module not in (None, pickle) or not _use_new_zipfile_serialization:
        raise NotImplementedError(
            "save(): expected the module pickle and the format of ZIP archives"
        )
    text = io.BytesIO()
    pickler = _Pickler(text, pickle_protocol)
    pickler.dump(obj)
    target = f if hasattr(f, "write") else os.fspath(f)
    with zipfile.ZipFile(target, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr("archive/data.pkl", text.getvalue())
        archive.writestr("archive/byteorder", sys.byteorder)
        for key, tensor in pickler.contents.values():
            content = tensor._bytes()  # type: ignore[attr-defined]
            archive.writestr(f"archive/data/{key}", bytes(content))
        archive.writestr("archive/version", "3\n")


def load(
    f: Any,
    map_location: Any = None,
    pickle_module: Any = None,
    *,
    weights_only: bool | None = None,
    mmap: bool | None = None,
) -> Any:
    """What a file of torch.save holds. With `weights_only`, which is the default, tensors and plain values alone are read;
    without it the code of what was saved runs. `map_location` moves tensors to a device; a function or a dictionary of
    devices is not needed, because tensors come to the host first."""
    if pickle_module not in (None, pickle):
        raise NotImplementedError(f"load(): expected the module pickle, got {pickle_module!r}")
    file = f if hasattr(f, "read") else open(f, "rb")
    try:
        if (weights_only is None or weights_only) and not _safe:
            found = foreign_files.read_torch(file, getattr(file, "name", "the file"), False)
        else:
            with zipfile.ZipFile(file) as archive:
                found = _Unpickler(archive, None if weights_only is False else list(_safe)).load()
    finally:
        if file is not f:
            file.close()
    if map_location is None or callable(map_location) or isinstance(map_location, dict):
        return found
    device = tenon.device(map_location)
    return found if device == tenon.device("cpu") else _moved(found, device)


def _moved(value: Any, device: Any) -> Any:
    if isinstance(value, (Tensor, nn.Module)):
        return value.to(device=device)
    if isinstance(value, dict):
        return type(value)((key, _moved(each, device)) for key, each in value.items())
    return (
        type(value)(_moved(each, device) for each in value)
        if type(value) in (list, tuple)
        else value
    )


_safe: list[Any] = []


class safe_globals:
    """torch.serialization.safe_globals: classes of programs that files of weights may name inside of the block."""

    def __init__(self, safe_globals: Any) -> None:
        self._added = list(safe_globals)

    def __enter__(self) -> None:
        _safe.extend(self._added)

    def __exit__(self, *exception: Any) -> None:
        del _safe[len(_safe) - len(self._added) :]


def get_safe_globals() -> list[Any]:
    """The classes that are allowed."""
    return list(_safe)


def clear_safe_globals() -> None:
    _safe.clear()


def add_safe_globals(safe_globals: Any) -> None:
    """As safe_globals, for good."""
    _safe.extend(safe_globals)
