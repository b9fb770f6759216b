# SPDX-License-Identifier: Apache-2.0
"""Awkward programs whose answer hangs on Python numbers, strings and operators that change between calls."""

import decimal
import fractions
import math
import types

import numpy as np
import tenon
from awkward_programs import program
from awkward_state import changing


@program(True)
def flag_toggles():
    flags = types.SimpleNamespace(double=True)
    return changing(
        lambda x, i: x * 2 if flags.double else x, lambda i: setattr(flags, "double", i % 2 == 0)
    )


@program(True)
def none_becomes_a_number():
    box = [None]
    return changing(
        lambda x, i: x if box[0] is None else x * box[0],
        lambda i: box.__setitem__(0, None if i < 3 else 4.0),
    )


@program(True)
def integer_becomes_a_float():
    box = [2]
    return changing(
        lambda x, i: x.to(tenon.int32) * box[0], lambda i: box.__setitem__(0, 2 if i < 3 else 2.0)
    )


@program(True)
def true_becomes_one():
    box = [True]
    return changing(
        lambda x, i: (x > 0) + box[0], lambda i: box.__setitem__(0, True if i < 3 else 1)
    )


@program(True)
def zero_changes_its_sign():
    box = [0.0]
    return changing(
        lambda x, i: tenon.copysign(x, box[0]), lambda i: box.__setitem__(0, 0.0 if i < 3 else -0.0)
    )


@program(True)
def number_becomes_nan():
    box = [1.0]
    return changing(
        lambda x, i: x * box[0], lambda i: box.__setitem__(0, 1.0 if i < 3 else math.nan)
    )


@program(True)
def numbers_of_other_kinds():
    half, third = fractions.Fraction(1, 2), decimal.Decimal("0.25")
    return lambda x, i: x * float(half) + float(third)


@program(True)
def large_integers():
    return lambda x, i: x.to(tenon.int64) + 2**62 - 2**61


@program(True)
def complex_number():
    box = [1 + 2j]
    return changing(
        lambda x, i: (x * box[0]).abs(), lambda i: box.__setitem__(0, 1 + 2j if i < 3 else 3j)
    )


@program(True)
def string_names_a_dtype():
    box = ["int32"]
    return changing(
        lambda x, i: x.to(box[0]), lambda i: box.__setitem__(0, "int32" if i < 3 else "int64")
    )


@program(True)
def numpy_number_changes():
    box = [np.float32(2)]
    return changing(
        lambda x, i: x * box[0], lambda i: box.__setitem__(0, np.float32(2 if i < 3 else 6))
    )


@program(True)
def numpy_array_is_written():
    array = np.ones((3, 4), "float32")

    def change(i):
        array[:] = 1 if i < 3 else 6

    return changing(lambda x, i: x * tenon.tensor(array), change)


@program(True)
def list_of_numbers_for_a_tensor_changes():
    numbers = [1.0, 2.0, 3.0, 4.0]
    return changing(
        lambda x, i: x * tenon.tensor(numbers),
        lambda i: numbers.__setitem__(0, 1.0 if i < 3 else 6.0),
    )


@program(True)
def axes_change():
    axes = [0]
    return changing(lambda x, i: x.sum(axes), lambda i: axes.append(1) if i == 3 else None)


@program(True)
def bounds_of_a_slice_change():
    box = [2]
    return changing(lambda x, i: x[:, : box[0]], lambda i: box.__setitem__(0, 2 if i < 3 else 3))


@program(True)
def positions_change():
    rows = [0, 1]
    return changing(lambda x, i: x[rows], lambda i: rows.__setitem__(0, 0 if i < 3 else 2))


@program(True)
def operator_by_name():
    box = ["relu"]
    return changing(
        lambda x, i: getattr(tenon, box[0])(x),
        lambda i: box.__setitem__(0, "relu" if i < 3 else "exp"),
    )
