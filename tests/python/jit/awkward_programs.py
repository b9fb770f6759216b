# SPDX-License-Identifier: Apache-2.0
"""Small functions that are awkward to compile. Each is made by a factory, so that it starts with fresh state.

A function may have attributes: `driver(x, i)`, called before call i, changes something and returns the function and its
arguments; `unpack(result)` makes of the result what is compared; `state()` is compared at the end."""

import math
import random

import numpy as np
import tenon

PROGRAMS = {}  # name: (a factory of a function and its state, whether it becomes a program, or parts of it do)
SCALE = 2.0
TABLE = {"scale": 3.0}


def rand(*shape, seed=0):
    return tenon.tensor(np.random.default_rng(seed).standard_normal(shape).astype("float32"))


def program(compiles):
    """Register a factory: it returns a function of (x, index of the call)."""

    def register(factory):
        PROGRAMS[factory.__name__] = factory, compiles
        return factory

    return register


@program(True)
def chain():
    return lambda x, i: ((x * 2 + 1).relu() - 0.5).exp().sum(1)


@program(True)
def views_and_writes():
    def function(x, i):
        y = x.clone()
        y[0] = 1.0
        y[:, 1:] += 2
        z = y.T
        z[0] *= 3
        return y, z

    return function


@program(True)
def write_into_the_argument():
    def function(x, i):
        tenon.add(x, 1.0, out=x)
        return x * 2

    return function


@program(True)
def dict_order():
    def function(x, i):
        parts = {"b": x + 1, "a": x - 1}
        return {"first": next(iter(parts.values())), "all": [parts[k] for k in sorted(parts)]}

    return function


@program(True)
def closure_number():
    scale = 4.0
    return lambda x, i: x * scale


@program(False)
def closure_number_changes_each_time():
    count = 0

    def function(x, i):
        nonlocal count
        count += 1
        return x * count

    return function


@program(True)
def closure_list_of_numbers_grows_late():
    factors = [1.0, 2.0]

    def function(x, i):
        for factor in factors:
            x = x * factor
        return x

    def driver(x, i):
        if i == 3:
            factors.append(5.0)
        return function, x

    function.driver = driver
    return function


@program(True)
def global_number_changes():
    def function(x, i):
        return x * SCALE

    def driver(x, i):
        globals()["SCALE"] = 2.0 if i < 3 else 7.0
        return function, x

    function.driver = driver
    return function


@program(True)
def global_dict_changes():
    def function(x, i):
        return x * TABLE["scale"]

    def driver(x, i):
        TABLE["scale"] = 3.0 if i < 3 else 0.25
        return function, x

    function.driver = driver
    return function


@program(True)
def helper_function_with_a_global():
    def helper(x):
        return x + SCALE

    return lambda x, i: helper(x) * helper(x)


@program(True)
def closure_tensor_is_replaced():
    box = {"w": rand(3, 4, seed=1)}

    def function(x, i):
        return x * box["w"]

    def driver(x, i):
        if i == 3:
            box["w"] = rand(3, 4, seed=2)
        return function, x

    function.driver = driver
    return function


@program(True)
def closure_tensor_is_written():
    w = rand(3, 4, seed=1)

    def function(x, i):
        tenon.multiply(w, 1.5, out=w)
        return x + w

    return function


@program(True)
def branch_on_data():
    return lambda x, i: x * 2 if float(x.sum().item()) > 0 else x - 1


@program(True)
def loop_on_data():
    def function(x, i):
        while float(x.abs().max().item()) > 0.1:
            x = x / 2
        return x

    return function


@program(False)
def shape_on_data():
    return lambda x, i: x[x > 0]


@program(True)
def branch_on_shape():
    return lambda x, i: x.sum() if x.shape[0] > 2 else x * 2


@program(False)
def branch_on_an_argument():
    """Every call has another number, and so a signature of its own."""

    def function(x, i):
        return x + i

    def driver(x, i):
        return function, x, i

    function.driver = driver
    return function


@program(False)
def random_of_python():
    generator = random.Random(0)
    return lambda x, i: x * generator.random()


@program(True)
def random_operators():
    return lambda x, i: x + tenon.normal([3, 4]) * tenon.uniform([4])


@program(False)
def through_numpy():
    return lambda x, i: tenon.tensor(np.tanh(x.numpy())) + x


@program(False)
def printing_reads_data():
    return lambda x, i: (str(x * 2), x + 1)[1]


@program(True)
def constant_from_a_list():
    return lambda x, i: x + tenon.tensor([1.0, 2.0, 3.0, 4.0])


@program(True)
def constant_from_numpy():
    table = np.arange(4, dtype=np.float32)
    return lambda x, i: x + tenon.tensor(table)


@program(True)
def comprehension():
    return lambda x, i: sum((x[j] * j for j in range(3)), tenon.zeros([4]))


@program(True)
def generator_function():
    def function(x, i):
        yield x + 1
        yield x * 2

    return lambda x, i: list(function(x, i)) if i < 99 and x.sum().item() is not None else None


@program(True)
def recursion():
    def power(x, n):
        return x if n == 0 else x * power(x, n - 1)

    return lambda x, i: power(x, 4)


@program(True)
def results_of_plain_values():
    return lambda x, i: {"y": x + 1, "n": 3, "name": "ok", "none": None, "pair": (x, 2.5)}


@program(False)
def result_is_an_object():
    class Box:
        def __init__(self, value):
            self.value = value

    def function(x, i):
        return Box(x * 2)

    function.unpack = lambda box: box.value
    return function


@program(False)
def result_number_changes():
    calls = []

    def function(x, i):
        calls.append(0)
        return x * 2, len(calls)

    return function


@program(True)
def argument_returned_as_it_is():
    return lambda x, i: (x, x.detach(), x.reshape(-1))


@program(True)
def nothing_returned():
    state = tenon.zeros([3, 4])

    def function(x, i):
        tenon.add(state, x, out=state)

    function.state = lambda: [state]
    return function


@program(True)
def exception_at_the_end_of_some_calls():
    limit = [10]

    def function(x, i):
        y = x * 2
        if limit[0] < 3:
            raise ValueError("too small")
        return y

    def driver(x, i):
        limit[0] = 1 if i == 1 else 10
        return function, x

    function.driver = driver
    return function


@program(True)
def default_argument():
    def function(x, i, scale=2.0):
        return x * scale

    return function


@program(True)
def control_flow_of_programs():
    return lambda x, i: tenon.jit.cond(x.sum() > 0, lambda x: x * 2, lambda x: x - 1, x)


@program(True)
def integers_and_comparisons():
    return lambda x, i: tenon.where(x > 0, x, -x).argmax(1)


@program(True)
def a_compiled_function_inside():
    inner = tenon.compile(lambda x: x * 3 + 1)
    return lambda x, i: inner(x) - inner(x + 1)


@program(True)
def unused_work():
    def function(x, i):
        x.exp().sum()
        return x + 1

    return function


@program(True)
def equal_work_twice():
    return lambda x, i: (x * 2).exp() + (x * 2).exp()


@program(True)
def the_argument_is_also_in_the_closure():
    """Until the fourth call, from which on a program is right."""
    box = []

    def function(x, i):
        return x * box[0]

    def driver(x, i):
        if i < 3:
            box[:] = [x]
        return function, x

    function.driver = driver
    return function


@program(True)
def mathematics_of_python():
    return lambda x, i: x * math.sqrt(2) + len("abc") ** 2


@program(True)
def several_dtypes():
    return lambda x, i: (x.to(tenon.bfloat16) * 2, x.to(tenon.int32) + 1, x > 0)


@program(True)
def empty_and_zero_dimensional():
    return lambda x, i: (x[:0].sum(), x.sum() * 2, tenon.zeros([0, 3]).mean(0))


@program(True)
def seed_inside():
    def function(x, i):
        tenon.manual_seed(5)
        return x + tenon.normal([4])

    return function
