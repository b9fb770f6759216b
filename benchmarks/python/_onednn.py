# SPDX-License-Identifier: Apache-2.0
"""oneDNN called directly: matrix products through its C interface (version 3), with the library of
Paddle's wheel or one that is installed."""

from __future__ import annotations

import ctypes
import ctypes.util
import importlib.util
from pathlib import Path

DTYPES = {"float16": 1, "bfloat16": 2, "float32": 3, "int32": 4, "int8": 5, "uint8": 6}
ANY_LAYOUT, CPU, IN_ORDER = 1, 1, 1
SOURCE, DESTINATION, WEIGHTS = 1, 17, 33
WEIGHTS_LAYOUT = 131  # what a primitive says of itself

Handle = ctypes.c_void_p


class Argument(ctypes.Structure):
    _fields_ = [("which", ctypes.c_int), ("memory", Handle)]


def find():
    """The library, or None."""
    paddle = importlib.util.find_spec("paddle")
    path = paddle and Path(paddle.origin).parent / "libs" / "libdnnl.so.3"
    name = str(path) if path and path.exists() else ctypes.util.find_library("dnnl")
    library = ctypes.CDLL(name) if name else None
    if library is None or not hasattr(library, "dnnl_primitive_desc_query_md"):
        return None
    library.dnnl_primitive_desc_query_md.restype = Handle
    return library


class OneDnn:
    """Products [.., m, k] x [.., k, n] of memory that others own."""

    def __init__(self):
        self.library = find()
        if self.library is not None:
            self.engine = self.made("dnnl_engine_create", CPU, ctypes.c_size_t(0))
            self.stream = self.made("dnnl_stream_create", self.engine, IN_ORDER)

    def check(self, function, *arguments):
        status = getattr(self.library, function)(*arguments)
        if status:
            raise RuntimeError(f"{function}: status {status}")

    def made(self, function, *arguments):
        handle = Handle()
        self.check(function, ctypes.byref(handle), *arguments)
        return handle

    def layout(self, shape, dtype, strides=None):
        dims = (ctypes.c_int64 * len(shape))(*shape)
        if strides is None:
            tag = ANY_LAYOUT
            return self.made("dnnl_memory_desc_create_with_tag", len(shape), dims, dtype, tag)
        steps = (ctypes.c_int64 * len(shape))(*strides)
        return self.made("dnnl_memory_desc_create_with_strides", len(shape), dims, dtype, steps)

    def memory(self, layout, address):
        return self.made("dnnl_memory_create", layout, self.engine, Handle(address))

    def execute(self, primitive, *arguments):
        given = (Argument * len(arguments))(*(Argument(a, m) for a, m in arguments))
        run = self.library.dnnl_primitive_execute
        wait = self.library.dnnl_stream_wait
        stream, count = self.stream, len(arguments)

        def call():
            if run(primitive, stream, count, given) or wait(stream):
                raise RuntimeError("oneDNN: the product failed")

        return call

    def product(self, x, y, out, packed):
        """A call that computes out = x y, each an (address, shape, strides, dtype); `packed`: y is
        rearranged once, here, as a layer's weight can be. None where oneDNN has no such product."""
        (source, weights, destination) = (
            self.layout(shape, DTYPES[dtype], strides) for _, shape, strides, dtype in (x, y, out)
        )
        asked = self.layout(y[1], DTYPES[y[3]]) if packed else weights
        create = "dnnl_matmul_primitive_desc_create"
        try:
            description = self.made(create, self.engine, source, asked, None, destination, None)
        except RuntimeError:
            return None
        primitive = self.made("dnnl_primitive_create", description)
        memory = self.memory(weights, y[0])
        if packed:
            query = self.library.dnnl_primitive_desc_query_md
            wanted = Handle(query(description, WEIGHTS_LAYOUT, 0))
            memory, plain = self.memory(wanted, -1), memory  # -1: oneDNN allocates
            create = "dnnl_reorder_primitive_desc_create"
            reorder = self.made(create, weights, self.engine, wanted, self.engine, None)
            reorder = self.made("dnnl_primitive_create", reorder)
            self.execute(reorder, (SOURCE, plain), (DESTINATION, memory))()
        return self.execute(
            primitive,
            (SOURCE, self.memory(source, x[0])),
            (WEIGHTS, memory),
            (DESTINATION, self.memory(destination, out[0])),
        )
