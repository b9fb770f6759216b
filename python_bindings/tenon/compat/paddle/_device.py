# SPDX-License-Identifier: Apache-2.0
"""Device plugins: libraries with InitPlugin."""

import ctypes
import functools
import json
import os
import warnings

import tenon
from tenon import _core

_SINK = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint64)

# Statuses of tenon/abi.h, as operators raise them.
_EXCEPTIONS = {
    3: ValueError,
    5: tenon.NotFoundError,
    6: ValueError,
    7: tenon.PolicyError,
    8: tenon.OutOfMemoryError,
    9: RuntimeError,
    11: IndexError,
    12: NotImplementedError,
    13: tenon.InternalError,
    14: tenon.DeviceError,
    17: TypeError,
}


def load_device_plugin(path):
    """Load the device plugin `path`; its devices then exist under the name that it gives them.

    Loading it again does nothing. What is wrong with it is raised: a missing function by name,
    another layout of the interface, symbols of the C++ interface. The rules for plugins' files hold
    (docs/plugins.md): PolicyError if another user can change the file, or a policy forbids it."""
    _load(path, False)


def _load(path, is_found):
    path = _path_bytes(path)
    _core.load()
    library = _library()
    load = (
        library.tenon_paddle_load_found_device_text
        if is_found
        else library.tenon_paddle_load_device_text
    )
    status, text = _collect(lambda sink: load(path, sink, None))
    if status != 0:
        raise _EXCEPTIONS.get(status, RuntimeError)(text)


def _path_bytes(path):
    """`path` for a function of C, which would take what follows a NUL for nothing."""
    text = os.fsencode(path)
    if b"\0" in text:
        raise ValueError(f"path: expected one without NUL, got {os.fspath(path)!r}")
    return text


def load_all(folder=None):
    """Load every `*.so` of `folder`, by default the environment variable CUSTOM_DEVICE_ROOT.

    Returns a dict from path to None, or to the exception that says why it was not loaded: one bad
    library does not keep the others out. Without a folder there is nothing to load. As with plugins
    in folders, TENON_PLUGIN_TRUST=any does not apply."""
    folder = os.environ.get("CUSTOM_DEVICE_ROOT", "") if folder is None else os.fspath(folder)
    if not folder:
        return {}
    result = {}
    for name in sorted(os.listdir(folder)):
        if not name.endswith(".so"):
            continue
        path = os.path.join(folder, name)
        try:
            _load(path, True)
            result[path] = None
        except Exception as error:
            result[path] = error
    return result


def _load_for_unknown_device(folder):
    """Called when a device is named that no plugin provides, with CUSTOM_DEVICE_ROOT."""
    for path, error in load_all(folder).items():
        if error is not None:
            warnings.warn(f"CUSTOM_DEVICE_ROOT: {path} was not loaded: {error}", stacklevel=2)


def device_plugins():
    """The plugins loaded so: a list of dicts with device, path, version, registrations, streams,
    refusals, and for each kernel name what became of it: `mapped` to an operator, `partly` (in some
    dtypes), `refused` (its parameters differ from what the operator needs) or `unused`."""
    return json.loads(_collect(lambda sink: _library().tenon_paddle_describe(sink, None))[1])


def kernel_table():
    """The kernels of Paddle that Tenon knows how to call: a list of dicts with kernel, operator,
    signature (of the operator that the row was written for), and the dtypes in which both agree."""
    sink = _library().tenon_paddle_describe_kernel_table
    return json.loads(_collect(lambda out: sink(out, None))[1])


@functools.cache
def _library():
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "base", "libpaddle.so")
    library = ctypes.CDLL(path)
    for load in (
        library.tenon_paddle_load_device_text,
        library.tenon_paddle_load_found_device_text,
    ):
        load.restype = ctypes.c_int32
        load.argtypes = [ctypes.c_char_p, _SINK, ctypes.c_void_p]
    library.tenon_paddle_describe.restype = None
    library.tenon_paddle_describe.argtypes = [_SINK, ctypes.c_void_p]
    library.tenon_paddle_describe_kernel_table.restype = None
    library.tenon_paddle_describe_kernel_table.argtypes = [_SINK, ctypes.c_void_p]
    return library


def _collect(call):
    """What `call` returns, and the text that it wrote to the sink it was given."""
    pieces = []
    sink = _SINK(lambda _, text, size: pieces.append(ctypes.string_at(text, size)))
    result = call(sink)
    return result, b"".join(pieces).decode(errors="replace")
