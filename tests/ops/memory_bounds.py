# SPDX-License-Identifier: Apache-2.0
"""Calls every operator with arguments that end where readable memory ends, also with extents of 0.

A kernel that reads or writes past an argument ends this process; the last line that it has written
names the call. test_memory_bounds.py runs it.
"""

import ctypes
import mmap
import sys

import numpy as np
import tenon
from case import as_dtype, map_arrays, results_of
from samples import CASES

PAGE, PROT_NONE = mmap.PAGESIZE, 0
LIBC = ctypes.CDLL(None, use_errno=True)
DTYPES = ["float64", "float32", "float16"]
mappings = []  # the memory of a call's arguments


def up_to_a_guard(array):
    """A copy of an array between a page that cannot be touched and, right behind it, another."""
    array = np.ascontiguousarray(array).reshape(array.shape)
    pages = -(-array.nbytes // PAGE) + 2
    memory = mmap.mmap(-1, pages * PAGE)
    mappings.append(memory)
    first = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    last = (pages - 1) * PAGE
    for page in (0, last):
        if LIBC.mprotect(ctypes.c_void_p(first + page), PAGE, PROT_NONE):
            raise OSError(ctypes.get_errno(), "mprotect")
    copy = np.ndarray(array.shape, array.dtype, memory, last - array.nbytes)
    copy[...] = array
    return tenon.from_numpy(copy)


def channels_last(array):
    """The same with the second axis stored last."""
    if array.ndim < 3:
        return up_to_a_guard(array)
    return tenon.movedim(up_to_a_guard(np.moveaxis(array, 1, -1)), -1, 1)


def arrays_of(case):
    for value in case.args:
        for each in value if isinstance(value, list) else [value]:
            if isinstance(each, np.ndarray):
                yield each


def without(array, is_emptied):
    """The part of an array that has an extent of 0 wherever is_emptied(axis, extent)."""
    return array[tuple(slice(0 if is_emptied(*each) else None) for each in enumerate(array.shape))]


def changes(case):
    """Names of what may happen to a case's arrays, and functions that do it."""
    yield "as it is", lambda array: array
    for extent in sorted({extent for array in arrays_of(case) for extent in array.shape}):
        yield f"{extent} -> 0", lambda array, e=extent: without(array, lambda _, n: n == e)
    for axis in range(4):
        yield f"axis {axis} -> 0", lambda array, a=axis: without(array, lambda i, _: i == a)


def call(case, change, dtype, place, records):
    def argument(array):
        tensor = place(change(array))
        return tensor.requires_grad_(records and tensor.dtype.is_floating_point)

    args = [map_arrays(argument, as_dtype(value, dtype)) for value in case.args]
    kwargs = {name: map_arrays(argument, value) for name, value in case.kwargs.items()}
    try:
        for result in results_of(getattr(tenon, case.op)(*args, **kwargs)):
            if result.requires_grad:
                result.sum().backward(retain_graph=True)
    except (ValueError, IndexError, TypeError, NotImplementedError):
        pass  # what is left of the arguments does not fit together
    mappings.clear()


def main():
    tenon.set_num_threads(1)
    for case in CASES:
        for change_name, change in changes(case):
            for dtype in DTYPES:
                for place in (up_to_a_guard, channels_last):
                    for records in (False, True):
                        words = "with gradients" if records else ""
                        print(case, change_name, dtype, place.__name__, words)
                        call(case, change, dtype, place, records)


if __name__ == "__main__":
    sys.stdout.reconfigure(line_buffering=True)
    main()
