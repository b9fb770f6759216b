# SPDX-License-Identifier: Apache-2.0
"""Control flow over tensors in exported functions: `if`, `while`, `for` and their kin, written as in any Python.

The function itself, called outside of an export, is the oracle: its program gives the same bits for values on each
way through it.
"""

import collections
import contextlib
import functools
import itertools
import re

import numpy as np
import pytest
import tenon
from tenon import nn
from tenon.jit import Dim

X = tenon.tensor([1.0, -2.0, 3.0])
# Sums of both signs, large and small, and elements of both signs in each place.
VALUES = [X, -X, X * 0, X * 40, X * -40, X - 5, X + 5, tenon.tensor([-1.0, 2.0, -0.5])]


def flat(tree):
    if isinstance(tree, (list, tuple)):
        return [leaf for item in tree for leaf in flat(item)]
    if isinstance(tree, dict):
        return [leaf for key in sorted(tree) for leaf in flat(tree[key])]
    return [tree]


def same(got, want):
    got, want = flat(got), flat(want)
    assert len(got) == len(want)
    for a, b in zip(got, want):
        if isinstance(b, tenon.Tensor):
            assert a.dtype == b.dtype and a.shape == b.shape
            np.testing.assert_array_equal(a.detach().numpy(), b.detach().numpy())
        else:  # a number that depends on a tensor is a tensor of the program
            assert (a.item() if isinstance(a, tenon.Tensor) else a) == b


def agree(function, *inputs, values=None):
    """The program of `function` does what the function does."""
    program = tenon.export(function, [x.clone() for x in inputs] if inputs else X.clone())
    for value in values or [(v, *inputs[1:]) for v in VALUES]:
        given = [v.clone() for v in value], [v.clone() for v in value]
        same(program(*given[0]), function(*given[1]))
        same(given[0], given[1])  # what was written into
    return program


def steps(program, kind):
    return len(re.findall(rf" = {kind}\(", str(program)))


# -- branches ------------------------------------------------------------------------------------------------


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


# -- loops ---------------------------------------------------------------------------------------------------


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


# -- modules -------------------------------------------------------------------------------------------------


class Base(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, 3)

    def forward(self, x):
        y = self.layer(x)
        return y if y.sum() > 0 else -y


class Gated(Base):
    def __init__(self):
        super().__init__()
        self.__hidden = 2
        self.blocks = nn.Sequential(Base(), nn.ReLU())
        self.register_forward_hook(lambda module, args, result: result + 1)

    def forward(self, x):
        y = super().forward(x)
        if y.max() > 1:
            y = super().forward(y) * self.__hidden
        return self.blocks(y) + self.twice(x)

    @staticmethod
    def scale(x):
        return x * 2 if x[0] > 0 else x * 3

    @classmethod
    def of(cls, x):
        return cls.scale(x) + 1 if x[1] > 0 else x

    def twice(self, x):
        return self.scale(x) + self.of(x)


class Stateful(nn.Module):
    def __init__(self):
        super().__init__()
        self.last = nn.Buffer(tenon.zeros(3))
        self.cache = {}

    def forward(self, x):
        if x.sum() > 0:
            self.last = self.last + x
            self.cache["x"] = x * 2
        else:
            self.cache["x"] = x * 3
        return self.last * 1, self.cache["x"]


def test_modules():
    model = Gated()
    agree(model)
    agree(model.twice)
    program = tenon.export(model, X)
    assert {"layer.weight", "blocks.0.layer.bias"} <= set(program.leaves)


def test_attributes_and_items_that_branches_set():
    def run(x):
        model = Stateful()
        return model(x), model(x + 1)

    agree(run)


def test_gradients_pass_through_the_program():
    model = Gated()
    program = tenon.export(model, X)
    for value in VALUES:
        a, b = value.clone().requires_grad_(), value.clone().requires_grad_()
        same(
            tenon.grad(program(a).sum(), [a, *model.parameters()]),
            tenon.grad(model(b).sum(), [b, *model.parameters()]),
        )


def test_a_training_step_takes_rows_one_by_one():
    weight = tenon.tensor([0.5, 1.0, 2.0], requires_grad=True)

    def step(x):
        weight.grad = None
        h = tenon.zeros(())
        for row in x * weight:
            h = h * 0.5 + row
        h.backward()
        return h.detach()

    program = tenon.export(step, X)
    assert steps(program, "scan") == 0
    program(X * 2)
    got = weight.grad.clone()
    step(X * 2)
    same(got, weight.grad)


def test_gradients_inside_of_an_exported_function_are_refused():
    weight = tenon.tensor([0.5, 1.0, 2.0], requires_grad=True)

    def step(x):
        loss = (x * weight).sum() if x.sum() > 0 else (x - weight).sum()
        return tenon.grad(loss, weight)[0]

    with pytest.raises(NotImplementedError, match="if: gradients through it inside an exported"):
        tenon.export(step, X)


# -- the programs --------------------------------------------------------------------------------------------


def everything(x):
    total, n = x * 0, 0
    while total.abs().sum() < 50 and n < 10:
        n += 1
        if x.sum() > 0:
            total = total + x
        elif x.sum() < -3:
            total = total - x * 2
            if n > 2:
                break
        else:
            continue
        for i in range((total > 0).sum()):
            total = total + i
    return total, n


def test_nested_control_flow_is_saved_and_loaded(tmp_path):
    program = agree(everything)
    program.save(tmp_path / "flow.tenon")
    loaded = tenon.jit.load(tmp_path / "flow.tenon")
    assert str(loaded) == str(program)
    for value in VALUES:
        same(loaded(value), everything(value))
        same(loaded.freeze()(value), everything(value))


def test_a_function_without_control_flow_over_tensors_has_the_program_that_it_had():
    def function(x, n=3, flag=True):
        parts = []
        for k in range(n):
            if k % 2 and flag:
                continue
            parts.append(
                x.abs()
                .sqrt()
                .sum()
                * k
            )  # fmt: skip
        while len(parts) < 5 and not parts == []:
            parts.append(
                tenon.where(
                    x > 0,
                    x,
                    x * 2,
                ).sum()
            )
        return [p if n > 2 else None for p in parts if 0 < n < 10]

    plain = tenon.export(tenon.jit.not_to_static(lambda x: function(x)), X)
    assert str(tenon.export(function, X)) == str(plain)
    model = nn.Sequential(nn.Linear(3, 4), nn.TransformerEncoderLayer(4, 2, 8).eval())
    x = tenon.rand(2, 5, 3)
    texts = [str(tenon.export(m, x)) for m in (model, tenon.jit.not_to_static(model))]
    assert texts[0] == texts[1]


def test_branches_are_steps_of_the_program():
    assert steps(agree(elifs), "cond") == 3
    assert steps(agree(while_counting), "while") == 1
    program = agree(rows)
    assert steps(program, "scan") == 1 and "select" not in str(program)
    assert steps(agree(rows_into_a_list), "scan") == 0


def test_steps_name_the_lines_of_the_function():
    program = tenon.export(if_else, X)
    first = if_else.__code__.co_firstlineno
    lines = [int(n) for n in re.findall(r'test_syntax_tree.py":(\d+)', str(program))]
    assert sorted({n - first for n in lines}) == [1, 2, 4]


def test_tracebacks_name_the_lines_of_the_function():
    def function(x):
        if x.sum() > 0:
            y = x @ tenon.ones(5)
        else:
            y = x
        return y

    with pytest.raises(ValueError) as caught:
        tenon.export(function, X)
    lines = [(e.path.name, e.lineno + 1) for e in caught.traceback]
    assert ("test_syntax_tree.py", function.__code__.co_firstlineno + 2) in lines


@pytest.mark.parametrize("function", [if_else, everything, rows, while_break, return_of_several])
def test_sizes_may_be_left_open(function):
    def padded(x):
        if x.shape[0] > 2:  # of a size: a requirement, no branch
            x = x * 1
        return function(x)

    dim = Dim("n", min=3, max=12)
    program = tenon.export(padded, X, dynamic_shapes=[{0: dim}])
    for n in (3, 4, 7, 12):
        for sign in (1, -1):
            x = tenon.arange(n, dtype="float32") * sign - 1.5
            same(program(x), padded(x))


def test_a_branch_on_a_size_is_required():
    def function(x):
        if x.shape[0] > 4:
            return x * 2
        return x if x.sum() > 0 else -x

    with pytest.raises(RuntimeError, match="the function does something else at another size"):
        tenon.export(function, X, dynamic_shapes=[{0: Dim("n", min=2, max=12)}])
    program = tenon.export(function, X, dynamic_shapes=[{0: Dim("n", min=2, max=4)}])
    assert "require n <= 4" in str(program)


def test_random_numbers_in_branches():
    def function(x):
        if x.sum() > 0:
            return x + tenon.rand(3)
        return x + tenon.randn(3)

    program = tenon.export(function, X)
    for value in VALUES:
        tenon.manual_seed(3)
        got = program(value)
        tenon.manual_seed(3)
        same(got, function(value))


def test_a_loop_that_would_not_end_on_the_other_side_is_not_run():
    def function(x):
        y = x
        if x.max() > 0:
            while y.max() < 100:
                y = y * 2
        while y.max() < 0:
            z = y
            while z.max() < 50:
                z = z - y
            y = z
        return y

    for example in (X * 0, X, X.abs() * -1):
        program = tenon.export(function, example)
        for value in VALUES:
            same(program(value), function(value))


# -- what is left as it is -----------------------------------------------------------------------------------


def test_not_to_static():
    @tenon.jit.not_to_static
    def function(x):
        return x if x.sum() > 0 else -x

    with pytest.raises(NotImplementedError, match="takes data past the program"):
        tenon.export(function, X)
    with pytest.raises(NotImplementedError, match="takes data past the program"):
        tenon.export(lambda x: function(x) + 1, X)
    module = tenon.jit.not_to_static(Base())
    with pytest.raises(NotImplementedError, match="takes data past the program"):
        tenon.export(module, X)


def test_generators_are_left_as_they_are():
    def parts(x):
        yield x
        if x.sum() > 0:
            yield x * 2

    with pytest.raises(NotImplementedError, match="takes data past the program"):
        tenon.export(lambda x: list(parts(x)), X)
    with pytest.raises(ValueError, match="parts is left as it is: it is a generator"):
        tenon.graph.rewritten_source(parts)

    def plain(x):
        yield x
        yield x * 2

    agree(lambda x: list(plain(x)))


def test_functions_without_source_are_left_as_they_are():
    space = {}
    exec("def function(x):\n    return x if x.sum() > 0 else -x", space)
    with pytest.raises(NotImplementedError, match="takes data past the program"):
        tenon.export(space["function"], X)
    with pytest.raises(ValueError, match="there is no source of <string>"):
        tenon.graph.rewritten_source(space["function"])


def test_a_file_that_was_edited_is_not_believed(tmp_path, monkeypatch):
    file = tmp_path / "edited_module.py"
    file.write_text("def function(x):\n    return x * 2 if x.sum() > 0 else x\n")
    monkeypatch.syspath_prepend(tmp_path)
    import edited_module

    file.write_text("def function(x):\n    return x * 5 if x.sum() > 0 else x\n")
    with pytest.raises(ValueError, match="is another one than when it was imported"):
        tenon.graph.rewritten_source(edited_module.function)
    with pytest.raises(NotImplementedError, match="takes data past the program"):
        tenon.export(edited_module.function, X)


def test_two_lambdas_on_a_line():
    one, two = (lambda x: x if x.sum() > 0 else -x), (lambda x: x * 2 if x.sum() > 0 else x * 3)
    agree(one)
    agree(two)


def test_rewritten_source():
    text = tenon.graph.rewritten_source(if_else)
    assert "_tenon.if_(" in text and "def _tenon_then_1():" in text and "y = x * 2" in text
    assert "_tenon.while_(" in tenon.graph.rewritten_source(while_counting)
    assert "super(__class__, self)" in tenon.graph.rewritten_source(Gated().forward)
    assert "super(__class__, self)" in tenon.graph.rewritten_source(Gated())


def test_the_function_itself_is_unchanged():
    code = if_else.__code__
    tenon.export(if_else, X)
    assert if_else.__code__ is code
    same(if_else(X), X * 2)


# -- errors --------------------------------------------------------------------------------------------------


def refused(function, text, error=ValueError, inputs=X):
    with pytest.raises(error, match=text) as caught:
        tenon.export(function, inputs)
    message = str(caught.value)
    assert re.search(r"test_syntax_tree\.py:\d+", message), message
    return message


def test_a_variable_of_one_branch_alone():
    def function(x):
        if x.sum() > 0:
            y = x * 2
        return y

    message = refused(function, "`y` has a value only where the test holds")
    line = function.__code__.co_firstlineno + 1
    assert f"test_syntax_tree.py:{line}" in message and "assign it before the `if`" in message

    def other(x):
        if x.sum() > 0:
            pass
        else:
            y = x
        return x + y

    refused(other, "`y` has a value only where the test does not hold")


def test_variables_of_two_kinds():
    def shapes(x):
        if x.sum() > 0:
            y = x
        else:
            y = x[:2]
        return y

    message = refused(shapes, r"`y` is a tensor float32\[3\] where the test at .*, and a tensor ")
    assert "float32[2] where it does not" in message and "of one shape, dtype and device" in message

    def dtypes(x):
        y = x if x.sum() > 0 else x.to("int64")
        return y

    refused(dtypes, r"the conditional expression is a tensor float32\[3\] .* int64\[3\]")

    def none(x):
        y = None
        if x.sum() > 0:
            y = x
        return y

    refused(none, r"`y` is a tensor float32\[3\] where .* None where it does not")

    def texts(x):
        mode = "a" if x.sum() > 0 else "b"
        return mode

    refused(texts, "is str 'a' where .* str 'b' where .* what depends on a tensor has to be one")

    def floats(x):
        scale = 0.5
        if x.sum() > 0:
            scale = 2.0
        return x * scale

    message = refused(floats, "`scale` is float 2.0 where .* float 0.5 where it does not")
    assert "make it a tensor of the dtype that you want, such as tenon.tensor(0.5)" in message

    def lists(x):
        made = [x]
        if x.sum() > 0:
            made.append(x)
        return made

    refused(lists, "`made` is a list of 2 items where .* a list of 1 items where it does not")

    def returned(x):
        if x.sum() > 0:
            return x
        return x.sum()

    refused(returned, r"what the function returns is a tensor float32\[3\] where")

    def falls_off(x):
        if x.sum() > 0:
            return x

    refused(falls_off, r"what the function returns is a tensor float32\[3\] where .* None where")


def test_what_is_never_read_may_be_of_two_kinds():
    def function(x):
        if x.sum() > 0:
            _mode, y = "a", x
        else:
            _mode, y = 0.5, x * 2
        return y

    agree(function)


def test_loops_keep_shapes():
    def grows(x):
        while x.sum().abs() < 100:
            x = tenon.concat([x, x + 1])
        return x

    message = refused(grows, r"`x` is a tensor float32\[3\] before the while at .*, and a tensor ")
    assert "float32[6] after one turn; expected a loop to keep shape and dtype" in message

    def dtype(x):
        n = tenon.tensor(0)
        while x.sum().abs() < 100:
            x = x * 2
            n = n + 0.5
        return x, n

    refused(dtype, r"`n` is a tensor int64\[\] before the while at")

    def first_in_the_loop(x):
        while x.sum().abs() < 100:
            x = x * 2
            last = x
        return last

    refused(first_in_the_loop, "`last` has a value only in the while at .* may have no turn")

    def floats(x):
        rate = 1.0
        while x.sum().abs() < 100:
            x = x * 2 + rate
            rate = rate / 2
        return x

    refused(floats, r"`rate` is float 1.0 before the while at .* float 0.5 after one turn")

    def appends(x):
        made = []
        while x.sum().abs() < 100:
            x = x * 2
            made.append(x)
        return made

    refused(appends, "`made` is a list of 0 items before the while at .* use tenon.jit.scan")

    def broadcast(x):
        total = 0
        while x.sum().abs() < 100:
            x = x * 2
            total = total + x
        return total

    refused(broadcast, r"`total` is int 0 before .* make both tensors, such as tenon.zeros\(\[3\]")


def test_what_a_program_cannot_do_is_refused():
    def raises(x):
        if x.sum() > 0:
            raise ValueError("negative")
        return x

    refused(raises, "raise at .* a program does not raise", NotImplementedError)

    def asserts(x):
        assert x.sum() > 0, "positive"
        return x

    refused(asserts, "assert at .* tests a tensor", NotImplementedError)

    def ambiguous(x):
        return x if x > 0 else -x

    refused(ambiguous, r"the truth of a tensor with 3 elements at .* ambiguous; use .any\(\)")

    def recursive(x):
        return recursive(x / 2) if x.sum() > 1 else x

    refused(recursive, "a function that calls itself until a tensor says stop", NotImplementedError)

    def endless(x):
        for k in itertools.count():
            x = x + k
            if x.sum() > 5:
                break
        return x

    refused(endless, "left by a test of a tensor and has more than 1000", NotImplementedError)

    def step(x):
        for _ in range(0, x.sum().to("int64"), x.sum().to("int64")):
            pass
        return x

    refused(step, "expected a step that is a number and not 0", NotImplementedError)

    def floats(x):
        for _ in range(x.sum()):
            pass
        return x

    refused(floats, r"range\(\) at .* expected integers, got a tensor float32\[\]", TypeError)


def test_memory_under_two_names_is_refused():
    def reads(x):
        y = x.clone()
        z = y[:2]
        if x.sum() > 0:
            y += 1
            w = z * 2
        else:
            w = z
        return w, y

    refused(reads, "reads its memory under another name", NotImplementedError)

    def writes(x):
        y = x.clone()

        def add():
            y.add_(1)

        if x.sum() > 0:
            add()
        return y

    refused(writes, "writes into a tensor from outside", NotImplementedError)

    def both(x):
        y = x.abs() + 1
        while y.sum() < 100:
            y *= 2
            y = y + 1
        return y

    refused(both, "writes into `y` and assigns it anew")


def test_asserts_and_raises_of_python_are_python():
    def function(x, n=3):
        assert n > 2, "more"
        if n > 5:
            raise KeyError(n)
        return x * n if x.sum() > 0 else x

    agree(function)
    with pytest.raises(KeyError, match="7"):
        tenon.export(lambda x: function(x, 7), X)
    with pytest.raises(AssertionError, match="more"):
        tenon.export(lambda x: function(x, 1), X)


def test_unbound_names_are_pythons():
    def function(x, n=3):
        if n > 5:
            y = x
        return y

    with pytest.raises(UnboundLocalError, match="cannot access local variable 'y'"):
        tenon.export(function, X)


# -- state that branches reach -------------------------------------------------------------------------------

counter = 0


def count():
    global counter
    counter += 1


class Slotted:
    __slots__ = ("value",)

    def __init__(self, value):
        self.value = value


def test_variables_of_other_functions():
    def function(x):
        turns = 0
        total = x * 0

        def bump(y):
            nonlocal turns, total
            turns += 1
            total = total + y

        if x.sum() > 0:
            bump(x)
        else:
            bump(x * 2)
            bump(x)
        return total, turns

    agree(function)


def test_globals():
    def function(x):
        global counter
        counter = 0
        if x.sum() > 0:
            count()
            count()
        else:
            counter = 7
        return x + counter

    agree(function)


def test_objects_with_slots_and_queues():
    def function(x):
        held, queue = Slotted(x), collections.deque([1])

        def put(y):
            held.value = y

        if x.sum() > 0:
            put(x * 2)
        return held.value, len(queue)

    agree(function)

    def grows(x):
        queue = collections.deque()
        if x.sum() > 0:
            queue.append(x)
        return x

    refused(grows, "`queue` is a deque where")


def test_iterators_are_refused():
    def function(x):
        values = iter([1, 2, 3])
        if x.sum() > 0:
            x = x + next(values)
        return x

    refused(function, "`values` is an iterator", NotImplementedError)


def test_memory_that_a_branch_hands_on():
    def reads(x, t):
        a, b = x * 2, x * 3
        c = a if t.sum() > 0 else b
        return c * 2, c + a

    agree(reads, X, X, values=[(X, X), (X, -X), (-X, X)])

    def writes_an_input(x):
        y = x if x.sum() > 0 else x * 2
        y += 1
        return y

    refused(writes_an_input, "a write at .* goes to what a branch or loop", NotImplementedError)

    def writes_what_is_read(x):
        a, b = x * 2, x * 3
        c = a if x.sum() > 0 else b
        c += 1
        return c, a + 1

    refused(writes_what_is_read, "a value is read at .* shared its memory", NotImplementedError)

    def writes_the_other(x):
        a, b = x * 2, x * 3
        if x.sum() > 0:
            c = a
        else:
            c = b
        a += 1
        return c

    refused(writes_the_other, "shared its memory", NotImplementedError)

    def writes_after_a_loop(x):
        y = x
        while y.abs().sum() < 10:
            y = y * 2 + 1
        y += 1
        return y

    refused(writes_after_a_loop, "a write at .* goes to what a branch or loop", NotImplementedError)

    def is_its_own(x):
        y = x * 1
        while y.abs().sum() < 10:
            y = y * 2 + 1
        y += 1
        z = y.clone() if x.sum() > 0 else y * 2
        z += 1
        return y, z

    agree(is_its_own)

    def by_hand(x):
        y = tenon.jit.cond(x.sum() > 0, lambda x: x, lambda x: x * 2, x)
        y += 1
        return y

    refused(by_hand, "a write at .* goes to what a branch or loop", NotImplementedError)


def test_views_of_what_a_branch_writes_into():
    def function(x):
        y = x.clone()
        if x.sum() > 0:
            y += 1
            z = y[:2]
        else:
            z = y[1:]
        return y, z

    agree(function)

    def then_writes(x):
        y = x.clone()
        if x.sum() > 0:
            y += 1
            z = y[:2]
        else:
            z = y[1:]
        z += 1
        return y, z

    refused(then_writes, "shared its memory", NotImplementedError)


def test_greedy_decoding():
    class Decoder(nn.Module):
        def __init__(self):
            super().__init__()
            self.embedding, self.out = nn.Embedding(8, 3), nn.Linear(3, 8)

        def forward(self, h):
            tokens, n = tenon.zeros(6, dtype="int64"), 0
            for i in range(6):
                token = self.out(h).argmax()
                if token == 3:
                    break
                tokens[i] = token
                h = h * 0.5 + self.embedding(token)
                n += 1
            return tokens, n

    tenon.manual_seed(1)
    agree(Decoder())


def test_writes_in_branches_in_each_other():
    def function(x):
        y, s = tenon.zeros(4), x.sum()
        if s < 10:
            y += 1
            if s < 5:
                y[0] = s
                if x[0] > 0:
                    y[1] = s
        return y

    agree(function)


def test_a_list_that_is_returned_and_changed():
    def function(x):
        kept = [x + 1, x * 0]
        if x[1] > 0.5:
            return kept, x
        for _ in range(2):
            kept[1] = kept[1] + 1
        return kept, x

    agree(function)


def test_a_tensor_that_is_written_into_and_put_into_a_list():
    def function(x):
        a, kept = x * 1, [x + 1, x * 0]
        if x[2] < 2 or x.max() > 10:
            a += 1
            if a.sum() > 0:
                kept[0] = a
        return a, kept

    agree(function)


def test_rows_that_are_written_into_while_they_are_taken():
    def function(x):
        a, b, n = x * 1, x - 1, 0
        while n < 3 and a.sum() > b.sum():
            n += 1
            for row in a:
                b = b * 0.5 + row
                a += 1
        return a, b

    agree(function)
