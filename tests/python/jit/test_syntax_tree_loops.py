# SPDX-License-Identifier: Apache-2.0
"""Loops over tensors in exported functions: `while`, `for`, `break` and `continue`."""

import itertools

import pytest
import tenon
from program_agreement import VALUES, agree


def while_(x):
    y = x.abs() + 1
    while y.sum() < 100:
        y = y * 2
    return y


def while_counting(x):
    n, y = 0, x.abs() + 1
    while y.sum() < 100:
        y = y * 2
        n += 1
    return y, n


def while_with_and(x):
    n, y = 0, x.abs() + 1
    while y.sum() < 1000 and n < 4:
        y, n = y * 2, n + 1
    return y, n


def while_break(x):
    n, y = 0, x.abs() + 1
    while n < 10:
        if y.sum() > 50:
            break
        y = y * 2
        n += 1
    return y, n


def while_true(x):
    y = x.abs() + 1
    while True:
        y = y * 2
        if y.sum() > 50:
            break
    return y


def while_continue(x):
    n, y = 0, x
    while y.abs().sum() < 100 and n < 8:
        n += 1
        if n % 2 == 0:
            continue
        y = y * 3
    return y, n


def while_else(x):
    n, y = 0, x.abs()
    while n < 5 and y.sum() < 60:
        n += 1
        y = y + 3
        if y[0] > 12:
            break
    else:
        y = -y
    return y, n


def while_return(x):
    y = x.abs() + 1
    while y.sum() < 200:
        y = y * 2
        if y[0] > 20:
            return y, y.sum()
    return y - 1, y.max()


def while_walrus(x):
    y = x.abs() + 1
    while (s := y.sum()) < 100:
        y = y + s
    return y


def while_with_numbers_that_stay(x):
    scale, name = 2.5, "x"
    y = x.abs() + 1
    while y.sum() < 100:
        y = y * scale + len(name)
    return y


def while_starting_from_a_number(x):
    total, y = 0.0, x.abs() + 1
    while y.sum() < 100:
        total = total + y.sum()
        y = y * 2
    return y + total


def while_keeping_the_last(x):
    last, n = -1, 0
    y = x.abs() + 1
    while y.sum() < 100:
        last = n
        n += 1
        y = y * 2
    return y, last, n


def while_in_place(x):
    y = x.abs() + 1
    z = y
    while y.sum() < 100:
        y *= 2
    return z


def while_in_while(x):
    y, n = x.abs() + 1, 0
    while y.sum() < 300:
        z = y
        while z.max() < 30:
            z = z * 2
            n += 1
        y = y + z
    return y, n


def while_if(x):
    y = x
    while y.abs().sum() < 100:
        if y.sum() > 0:
            y = y * 2 + 1
        else:
            y = y * 3 - 1
    return y


def while_with_temporaries(x):
    y, part = x.abs() + 1, x
    while y.sum() < 100:
        part = y[:2]
        y = y + part.sum()
    return y


def while_with_structures(x):
    state = {"h": x.abs() + 1, "n": (x.sum(), 0)}
    while state["h"].sum() < 100:
        state = {"h": state["h"] * 2, "n": (state["n"][0] + 1, state["n"][1] + 1)}
    return state["h"], state["n"]


def while_writing_items(x):
    kept = [x.abs() + 1, x]
    while kept[0].sum() < 100:
        kept[0] = kept[0] * 2
        kept[1] = kept[1] + 1
    return kept


def range_of_a_tensor(x):
    for i in range((x > 0).sum()):
        x = x * 2 + i
    return x


def range_of_three(x):
    total = x * 0
    for i in range(1, (x > 0).sum() * 3 + 1, 2):
        total = total + i
    for i in range((x > 0).sum(), -1, -1):
        total = total * 2 + i
    return total


def range_break_else(x):
    y = x.abs()
    for i in range((x > 0).sum() * 4):
        y = y + i
        if y.sum() > 20:
            break
    else:
        y = -y
    return y


def range_indexing(x):
    y = x.clone()
    for i in range((x > 0).sum()):
        y[i] = y[i] * 2 + i
    return y


def range_return(x):
    for i in range((x > 0).sum()):
        if x[i] > 2:
            return x[i] * 2, i
    return x.sum(), -1


def rows(x):
    h = tenon.zeros(())
    for row in x:
        h = h * 0.5 + row
    return h


def rows_with_a_break(x):
    h = tenon.zeros(())
    for row in x:
        if row < -1:
            break
        h = h * 0.5 + row
    return h


def rows_into_a_list(x):
    made = []
    for row in x:
        if row > 0:
            made.append(row * 2)
        else:
            made.append(row)
    return made


def rows_enumerated(x):
    h = tenon.zeros(())
    for i, row in enumerate(x):
        h = h + row * i
    return h


def python_loop_with_a_break(x):
    n = 0
    for k in range(6):
        if x.sum() > 20:
            break
        x = x + k
        n = k
    return x, n


def python_loop_with_continue(x):
    for k in range(4):
        if x[k % 3] > 0:
            continue
        x = x * (k + 1)
    return x


def python_loop_with_return(x):
    for k in range(4):
        x = x + k
        if x.sum() > 5:
            return x * 10
    return x


def python_loops_in_each_other(x):
    for i in range(3):
        for j in range(3):
            if x[j] > 4 - i:
                break
            x = x + 1
        else:
            x = x * 2
    return x


def python_iterator(x):
    for k in itertools.count():
        x = x + k
        if k == 3:
            break
    return x


def zipped(x):
    total = x * 0
    for row, k in zip(x, (1, 2, 3)):
        total = total + (row * k if row > 0 else row)
    return total


LOOPS = [
    while_,
    while_counting,
    while_with_and,
    while_break,
    while_true,
    while_continue,
    while_else,
    while_return,
    while_walrus,
    while_with_numbers_that_stay,
    while_starting_from_a_number,
    while_keeping_the_last,
    while_in_place,
    while_in_while,
    while_if,
    while_with_temporaries,
    while_with_structures,
    while_writing_items,
    range_of_a_tensor,
    range_of_three,
    range_break_else,
    range_indexing,
    range_return,
    rows,
    rows_with_a_break,
    rows_into_a_list,
    rows_enumerated,
    python_loop_with_a_break,
    python_loop_with_continue,
    python_loop_with_return,
    python_loops_in_each_other,
    python_iterator,
    zipped,
]


@pytest.mark.parametrize("function", LOOPS, ids=lambda f: f.__name__)
def test_loops(function):
    # x = 0 would never grow in the loops that multiply x itself
    values = [(v,) for v in VALUES if function not in (while_if,) or v.abs().sum() > 0]
    agree(function, values=values)
