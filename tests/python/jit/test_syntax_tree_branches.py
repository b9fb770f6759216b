# SPDX-License-Identifier: Apache-2.0
"""Branches over tensors in exported functions: `if`, conditional expressions, `and`, `or`, `not`."""

import contextlib
import functools

import pytest
import tenon
from program_agreement import agree


def if_else(x):
    if x.sum() > 0:
        y = x * 2
    else:
        y = -x
    return y


def if_alone(x):
    y = x + 1
    if x.sum() > 0:
        y = x * 2
    return y


def elifs(x):
    s = x.sum()
    if s > 100:
        y = x / 2
    elif s > 0:
        y = x * 2
    elif s < -100:
        y = x - 1
    else:
        y = -x
    return y


def nested(x):
    if x.sum() > 0:
        if x[0] > 2:
            y = x * 2
        else:
            y = x * 3
    elif x[1] > 0:
        y = x * 5
    else:
        y = x * 7
    return y + 1


def no_bool_test(x):
    if x.sum():
        return x + 1
    return x - 1


def expression(x):
    return x * 2 if x.sum() > 0 else -x


def expressions_in_each_other(x):
    return (x * 2 if x[0] > 0 else x * 3) if x.sum() > 0 else (x * 5 if x[1] > 0 else x * 7)


def early_return(x):
    if x.sum() > 0:
        return x * 2
    y = x - 1
    if y.sum() < -100:
        return y * 3
    return y


def return_in_one_branch_of_two(x):
    if x.sum() > 0:
        if x[0] > 2:
            return x * 2
        x = x + 1
    else:
        x = x - 1
    return x * 10


def return_in_nested_branches(x):
    if x[0] > 0:
        if x[1] > 0:
            return x
        else:
            if x[2] > 0:
                return x * 2
    x = x + 1
    if x.sum() > 3:
        return x * 3
    return x * 4


def return_of_several(x):
    if x.sum() > 0:
        return x * 2, {"a": x + 1, "b": [x.sum()]}
    return x * 3, {"a": x - 1, "b": [x.max()]}


def return_in_with(x):
    with tenon.no_grad():
        if x.sum() > 0:
            return x * 2
        x = x + 1
    return x


def return_in_try(x):
    try:
        if x.sum() > 0:
            return x * 2
        x = x + 1
    except ValueError:
        x = x - 1
    finally:
        x = x + 0
    return x


def and_or_not(x):
    if x[0] > 0 and x[1] > 0 or not x[2] > 0:
        return x * 2
    return x * 3


def and_with_python(x, flag=True):
    if flag and x.sum() > 0:
        x = x + 1
    if x.sum() > 0 and flag:
        x = x + 2
    if not flag or x.sum() > 0:
        x = x * 3
    return x


def value_of_and_or(x):
    return (x.sum() and x.max()), (x.sum() or x.min())


def chain(x):
    y = x + 1 if 0 < x[0] < 3 else x - 1
    if -10 < x.sum() <= x.max() < 1000:
        y = y * 2
    return y


def chain_calls_once(x):
    calls = []

    def middle():
        calls.append(1)
        return x.sum()

    y = x * 2 if 0 < middle() < 100 else x
    return y, len(calls)


def walrus_in_a_test(x):
    if (s := x.sum()) > 0:
        return x * s
    return x - s


def numbers(x):
    n, flag = 1, False
    if x.sum() > 0:
        n, flag = 3, True
    return x * n, x + flag, n


def numbers_keep_the_dtype(x):
    n = 2
    if x.sum() > 0:
        n = 3
    i = tenon.tensor([1, 2], dtype="int32")
    return x * n, i * n, n + i, i / n, n - x, n**2, -n, n // 2, n % 2, n / 2


def equal_numbers_stay(x):
    if x.sum() > 0:
        n, y = 2, x
    else:
        n, y = 2, -x
    return y.reshape(-1)[:n]


def structures(x):
    if x.sum() > 0:
        state = {"h": x, "pair": (x + 1, [x * 2])}
    else:
        state = {"h": -x, "pair": (x - 1, [x * 3])}
    return state["h"] + state["pair"][0] * state["pair"][1][0]


def list_items(x):
    kept = [x, x + 1]
    alias = kept
    if x.sum() > 0:
        kept[0] = x * 2
    else:
        kept[1] = kept[0] - 1
    return alias


def dictionary_items(x):
    state = {"h": x, "c": x + 1}
    if x.sum() > 0:
        state["h"] = state["c"] * 2
    return state


def appended_on_both_sides(x):
    made = []
    if x.sum() > 0:
        made.append(x * 2)
    else:
        made.append(x * 3)
    return made


def in_place(x):
    y = x * 1
    alias = y
    if x.sum() > 0:
        y += 1
    else:
        y[0] = 5
    return y, alias


def in_place_to_the_argument(x):
    if x.sum() > 0:
        x *= 2
    return x + 1


def in_place_method(x):
    y = x.clone()
    if x.sum() > 0:
        y.mul_(2).add_(1)
    return y


def in_place_by_out(x):
    y = x.clone()
    if x.sum() > 0:
        tenon.add(x, 1, out=y)
    return y


def in_place_then_assigned(x):
    y = x.clone()
    z = y
    if x.sum() > 0:
        y += 1
        y = y * 2
    return y, z


def in_place_nested(x):
    y = x.clone()
    if x.sum() > 0:
        y += 1
        if x[0] > 10:
            y *= 2
        y -= 3
    return y


def temporaries_of_other_shapes(x):
    if x.sum() > 0:
        part = x[:2]
        y = part.sum()
    else:
        part = x
        y = part.max()
    return y


def names_of_one_branch(x):
    y = x
    if x.sum() > 0:
        only = x * 2
        y = only + 1
    return y


def deleted(x):
    t = x * 2
    y = x
    if x.sum() > 0:
        y = t + 1
        del t
    return y


def with_in_a_branch(x):
    if x.sum() > 0:
        with contextlib.suppress(ValueError):
            y = x * 2
    else:
        try:
            y = x * 3
        finally:
            y = y + 1
    return y


def match_in_a_branch(x, mode="b"):
    if x.sum() > 0:
        match mode:
            case "a":
                y = x
            case "b":
                y = x * 2
    else:
        y = x * 3
    return y


def python_stays_python(x, mode="a"):
    if mode == "a" and x.shape[0] == 3:
        names = [n for n in ("p", "q") if n != "p"]
    else:
        names = None
    return x * len(names) if names is not None else x


def f_string(x):
    key = f"{'a' if x.shape[0] > 2 else 'b'}{x.ndim!r}"
    return {key: x * 2 if x.sum() > 0 else x}


def comprehension(x):
    return sum([x * 2 if x[i] > 0 else x * 3 for i in range(3)])


def comprehension_with_own_names(x):
    if x.sum() > 0:
        parts = {k: v * 2 for k, v in {"a": x, "b": x + 1}.items()}
    else:
        parts = {k: v * 3 for k, v in {"a": x, "b": x + 1}.items()}
    return parts


def inner_function(x):
    def scale(y, k=2):
        if y.sum() > 0:
            return y * k
        return y

    return scale(x) + scale(-x, k=3)


def inner_nonlocal(x):
    total = x * 0

    def add(y):
        nonlocal total
        if y.sum() > 0:
            total = total + y

    add(x)
    add(-x)
    add(x + 1)
    return total


def inner_lambda(x):
    relu = lambda y: y if y.sum() > 0 else y * 0
    return relu(x) + relu(-x)


def mapped(x):
    return list(map(lambda y: y * 2 if y > 0 else y, [x[0], x[1]]))


def helper(y, *more, scale=2.0, **named):
    """Called from others."""
    if y.sum() > 0:
        return y * scale
    return y + sum(more) + named.get("shift", 0)


def calls_a_helper(x):
    return helper(x) + helper(-x, 1, 2, shift=3) + functools.partial(helper, scale=3.0)(x)


def decorate(function):
    @functools.wraps(function)
    def inner(*args):
        return function(*args) if args[0].sum() > 0 else function(*args) + 1

    return inner


@decorate
def decorated(x):
    if x[0] > 0:
        return x * 2
    return x


@tenon.no_grad()
def decorated_by_tenon(x):
    if x[0] > 0:
        return x * 2
    return x


def starred(x, *rest, **named):
    a, *b = [x, x + 1, x + 2]
    if x.sum() > 0:
        (a, b[0]), c = (b[1], a), x
    else:
        c = a
    return a, b, c


BRANCHES = [
    if_else,
    if_alone,
    elifs,
    nested,
    no_bool_test,
    expression,
    expressions_in_each_other,
    early_return,
    return_in_one_branch_of_two,
    return_in_nested_branches,
    return_of_several,
    return_in_with,
    return_in_try,
    and_or_not,
    and_with_python,
    value_of_and_or,
    chain,
    chain_calls_once,
    walrus_in_a_test,
    numbers,
    numbers_keep_the_dtype,
    equal_numbers_stay,
    structures,
    list_items,
    dictionary_items,
    appended_on_both_sides,
    in_place,
    in_place_to_the_argument,
    in_place_method,
    in_place_by_out,
    in_place_then_assigned,
    in_place_nested,
    temporaries_of_other_shapes,
    names_of_one_branch,
    deleted,
    with_in_a_branch,
    match_in_a_branch,
    python_stays_python,
    f_string,
    comprehension,
    comprehension_with_own_names,
    inner_function,
    inner_nonlocal,
    inner_lambda,
    mapped,
    calls_a_helper,
    decorated,
    decorated_by_tenon,
    starred,
]


@pytest.mark.parametrize("function", BRANCHES, ids=lambda f: f.__name__)
def test_branches(function):
    agree(function)
