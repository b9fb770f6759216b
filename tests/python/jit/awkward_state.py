# SPDX-License-Identifier: Apache-2.0
"""Awkward programs (awkward_programs.py) whose answer hangs on Python's state: attributes, containers, iterators,
modules, settings of Tenon, and what is read by way of them."""

import array
import collections
import contextlib
import contextvars
import copy
import dataclasses
import decimal
import fractions
import functools
import itertools
import math
import operator
import os
import sys
import threading
import types
import weakref

import numpy as np
import tenon
from awkward_programs import program, rand

FACTOR = 3.0
HELPER = lambda x: x + 1
WEIGHTS = {"a": [1.0, 2.0], "b": {"c": 3.0}}
COUNTER = itertools.count(1)
VARIABLE = contextvars.ContextVar("VARIABLE", default=2.0)
LOCAL = threading.local()


def changing(function, change):
    """`change(i)` runs before call i."""

    def driver(x, i):
        change(i)
        return function, x

    function.driver = driver
    return function


class Scaled:
    offset = 1.0

    def __init__(self, scale):
        self.scale = scale
        self.parts = [scale, scale + 1]

    def __call__(self, x):
        return x * self.scale + self.offset

    def method(self, x):
        return x * self.scale

    @property
    def doubled(self):
        return self.scale * 2

    def __len__(self):
        return int(self.scale)

    def __bool__(self):
        return self.scale > 2

    def __getitem__(self, key):
        return self.parts[key]


# -- attributes -----------------------------------------------------------------------------------


@program(True)
def attribute_changes():
    box = Scaled(2.0)
    return changing(
        lambda x, i: x * box.scale, lambda i: setattr(box, "scale", 2.0 if i < 3 else 9.0)
    )


@program(True)
def attribute_of_the_class_changes():
    class Box(Scaled):
        pass

    box = Box(2.0)
    return changing(lambda x, i: box(x), lambda i: setattr(Box, "offset", 1.0 if i < 3 else 9.0))


@program(True)
def attribute_hides_that_of_the_class():
    box = Scaled(2.0)

    def change(i):
        if i == 3:
            box.offset = 7.0

    return changing(lambda x, i: box(x), change)


@program(True)
def method_is_replaced():
    box = Scaled(2.0)

    def change(i):
        if i == 3:
            box.method = lambda x: x - 1

    return changing(lambda x, i: box.method(x), change)


@program(True)
def method_of_the_class_is_replaced():
    class Box(Scaled):
        pass

    box = Box(2.0)

    def change(i):
        if i == 3:
            Box.method = lambda self, x: x - self.scale

    return changing(lambda x, i: box.method(x), change)


@program(True)
def property_changes():
    box = Scaled(2.0)
    return changing(
        lambda x, i: x * box.doubled, lambda i: setattr(box, "scale", 1.0 if i < 3 else 5.0)
    )


@program(True)
def length_of_an_object_changes():
    box = Scaled(2.0)
    return changing(
        lambda x, i: x * len(box), lambda i: setattr(box, "scale", 2.0 if i < 3 else 5.0)
    )


@program(True)
def truth_of_an_object_changes():
    box = Scaled(1.0)
    return changing(
        lambda x, i: x + 1 if box else x - 1, lambda i: setattr(box, "scale", 1.0 if i < 3 else 5.0)
    )


@program(True)
def item_of_an_object_changes():
    box = Scaled(1.0)
    return changing(
        lambda x, i: x * box[1], lambda i: box.parts.__setitem__(1, 2.0 if i < 3 else 5.0)
    )


@program(True)
def attribute_by_a_name_that_changes():
    box = types.SimpleNamespace(a=2.0, b=5.0)
    name = ["a"]

    def change(i):
        name[0] = "a" if i < 3 else "b"

    return changing(lambda x, i: x * getattr(box, name[0]), change)


@program(True)
def attribute_that_appears_late():
    box = types.SimpleNamespace()

    def change(i):
        if i == 3:
            box.scale = 4.0

    return changing(lambda x, i: x * getattr(box, "scale", 2.0), change)


@program(True)
def attribute_that_vanishes():
    box = types.SimpleNamespace(scale=4.0)

    def change(i):
        if i == 3:
            del box.scale

    return changing(lambda x, i: x * box.scale if hasattr(box, "scale") else x, change)


@program(True)
def attribute_that_is_computed_on_demand():
    state = {"scale": 2.0}

    class Box:
        def __getattr__(self, name):
            return state[name]

    box = Box()
    return changing(lambda x, i: x * box.scale, lambda i: state.update(scale=2.0 if i < 3 else 6.0))


@program(True)
def descriptor_changes():
    state = [2.0]

    class Descriptor:
        def __get__(self, instance, owner):
            return state[0]

    class Box:
        scale = Descriptor()

    box = Box()
    return changing(
        lambda x, i: x * box.scale, lambda i: state.__setitem__(0, 2.0 if i < 3 else 6.0)
    )


@program(True)
def slots_change():
    class Box:
        __slots__ = ("scale",)

    box = Box()
    return changing(
        lambda x, i: x * box.scale, lambda i: setattr(box, "scale", 2.0 if i < 3 else 6.0)
    )


@program(False)
def object_in_the_closure_is_another():
    box = [Scaled(2.0)]
    return changing(
        lambda x, i: box[0](x), lambda i: box.__setitem__(0, Scaled(2.0 if i < 3 else 6.0))
    )


@program(True)
def attributes_three_deep():
    tree = types.SimpleNamespace(a=types.SimpleNamespace(b=types.SimpleNamespace(c=2.0)))
    return changing(
        lambda x, i: x * tree.a.b.c, lambda i: setattr(tree.a.b, "c", 2.0 if i < 3 else 6.0)
    )


@program(False)
def attribute_counts_calls():
    box = Scaled(0.0)

    def function(x, i):
        box.scale += 1
        return x * box.scale

    function.state = lambda: box.scale
    return function


@program(False)
def property_that_counts():
    class Box:
        count = 0

        @property
        def next(self):
            Box.count += 1
            return Box.count

    box = Box()
    return lambda x, i: x * box.next


# -- containers and iterators -----------------------------------------------------------------------


@program(True)
def nested_containers_change():
    def change(i):
        WEIGHTS["b"]["c"] = 3.0 if i < 3 else 8.0

    return changing(lambda x, i: x * WEIGHTS["b"]["c"] + WEIGHTS["a"][1], change)


@program(True)
def key_is_added_late():
    table = {"a": 1.0}

    def change(i):
        if i == 3:
            table["b"] = 2.0

    return changing(lambda x, i: x * sum(table.values()), change)


@program(True)
def order_of_a_dict_changes():
    table = {"a": 2.0, "b": 3.0}

    def change(i):
        if i == 3:
            table["a"] = table.pop("a")

    def function(x, i):
        for factor in table.values():
            x = x * factor + 1
        return x

    return changing(function, change)


@program(True)
def list_is_sorted_late():
    factors = [3.0, 1.0, 2.0]

    def function(x, i):
        for factor in factors:
            x = x * factor + 1
        return x

    return changing(function, lambda i: factors.sort() if i == 3 else None)


@program(True)
def zip_of_lists_of_unequal_length():
    a, b = [1.0, 2.0, 3.0], [4.0]

    def function(x, i):
        for p, q in zip(a, b):
            x = x * p + q
        return x

    return changing(function, lambda i: b.append(5.0) if i == 3 else None)


@program(False)
def list_is_popped():
    factors = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]

    def function(x, i):
        return x * factors.pop()

    function.state = lambda: list(factors)
    return function


@program(False)
def deque_is_turned():
    factors = collections.deque([1.0, 2.0, 3.0])

    def function(x, i):
        factors.rotate(1)
        return x * factors[0]

    return function


@program(False)
def iterator_is_used_up():
    factors = iter([1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
    return lambda x, i: x * next(factors)


@program(False)
def counter_of_the_module():
    counter = itertools.count(1)
    return lambda x, i: x * next(counter)


@program(False)
def generator_keeps_state():
    def numbers():
        value = 1.0
        while True:
            yield value
            value += 1

    generator = numbers()
    return lambda x, i: x * next(generator)


@program(False)
def cache_of_results():
    cache = {}

    def function(x, i):
        key = len(cache)
        cache[key] = key + 1.0
        return x * cache[key]

    return function


@program(True)
def memoised_helper():
    @functools.lru_cache
    def helper(n):
        return n * 2.0

    return lambda x, i: x * helper(3)


@program(False)
def default_argument_that_is_a_list():
    def function(x, i, seen=[]):  # noqa: B006 - that is what is tried
        seen.append(1.0)
        return x * len(seen)

    return function


@program(True)
def default_argument_is_replaced():
    def helper(x, scale=2.0):
        return x * scale

    def change(i):
        helper.__defaults__ = (2.0 if i < 3 else 6.0,)

    return changing(lambda x, i: helper(x), change)


@program(True)
def code_of_a_helper_is_replaced():
    def helper(x):
        return x * 2

    def other(x):
        return x - 5

    def change(i):
        if i == 3:
            helper.__code__ = other.__code__

    return changing(lambda x, i: helper(x), change)


@program(True)
def attribute_of_a_function():
    def helper(x):
        return x * helper.scale

    return changing(
        lambda x, i: helper(x), lambda i: setattr(helper, "scale", 2.0 if i < 3 else 6.0)
    )


@program(True)
def partial_with_keywords():
    def helper(x, scale):
        return x * scale

    part = functools.partial(helper, scale=2.0)
    return changing(
        lambda x, i: part(x), lambda i: part.keywords.update(scale=2.0 if i < 3 else 6.0)
    )


@program(True)
def reduce_and_map():
    factors = [1.0, 2.0, 3.0]
    return changing(
        lambda x, i: functools.reduce(operator.add, map(lambda f: x * f, factors)),
        lambda i: factors.append(4.0) if i == 3 else None,
    )


@program(True)
def sorted_by_a_key():
    table = {"a": 3.0, "b": 1.0}

    def function(x, i):
        for name in sorted(table, key=lambda k: table[k]):
            x = x * table[name] + 1
        return x

    return changing(function, lambda i: table.update(a=3.0 if i < 3 else 0.5))


@program(True)
def set_membership():
    names = {"double"}
    return changing(
        lambda x, i: x * 2 if "double" in names else x, lambda i: names.clear() if i == 3 else None
    )


@program(False)
def frozen_dataclass_is_replaced():
    @dataclasses.dataclass(frozen=True)
    class Options:
        scale: float = 2.0

    box = [Options()]
    return changing(
        lambda x, i: x * box[0].scale, lambda i: box.__setitem__(0, Options(2.0 if i < 3 else 6.0))
    )


@program(True)
def named_tuple_is_replaced():
    Point = collections.namedtuple("Point", "x y")
    box = [Point(2.0, 3.0)]
    return changing(
        lambda x, i: x * box[0].x + box[0].y,
        lambda i: box.__setitem__(0, Point(2.0, 3.0 if i < 3 else 6.0)),
    )


@program(True)
def chain_map():
    first, second = {}, {"scale": 2.0}
    table = collections.ChainMap(first, second)
    return changing(
        lambda x, i: x * table["scale"], lambda i: first.update(scale=6.0) if i == 3 else None
    )


@program(True)
def default_dict():
    table = collections.defaultdict(lambda: 2.0)
    return changing(
        lambda x, i: x * table["scale"], lambda i: table.update(scale=6.0) if i == 3 else None
    )


# -- globals, modules, the interpreter --------------------------------------------------------------


@program(True)
def global_function_is_replaced():
    def change(i):
        globals()["HELPER"] = (lambda x: x + 1) if i < 3 else (lambda x: x * 5)

    return changing(lambda x, i: HELPER(x), change)


@program(True)
def number_of_a_module_is_replaced():
    module = types.ModuleType("awkward")
    module.scale = 2.0
    return changing(
        lambda x, i: x * module.scale, lambda i: setattr(module, "scale", 2.0 if i < 3 else 6.0)
    )


@program(True)
def function_of_a_module_is_replaced():
    module = types.ModuleType("awkward")
    module.root = math.sqrt

    def change(i):
        module.root = math.sqrt if i < 3 else (lambda v: v)

    return changing(lambda x, i: x * module.root(9.0), change)


@program(True)
def import_inside():
    def function(x, i):
        import math as mathematics

        return x * mathematics.pi

    return function


@program(True)
def environment_variable():
    def change(i):
        os.environ["TENON_AWKWARD"] = "2" if i < 3 else "6"

    return changing(lambda x, i: x * float(os.environ["TENON_AWKWARD"]), change)


@program(False)
def setting_of_the_interpreter():
    def change(i):
        sys.setswitchinterval(0.005 if i < 3 else 0.01)

    return changing(lambda x, i: x * round(sys.getswitchinterval(), 3), change)


@program(True)
def context_variable():
    return changing(lambda x, i: x * VARIABLE.get(), lambda i: VARIABLE.set(2.0 if i < 3 else 6.0))


@program(True)
def local_of_the_thread():
    return changing(
        lambda x, i: x * LOCAL.scale, lambda i: setattr(LOCAL, "scale", 2.0 if i < 3 else 6.0)
    )


@program(False)
def weak_reference():
    class Box:
        scale = 2.0

    box = [Box()]
    reference = weakref.ref(box[0])

    def change(i):
        if i == 3:
            box.clear()

    return changing(lambda x, i: x * (reference().scale if reference() else 7.0), change)


@program(False)
def evaluated_text():
    text = ["x * 2"]
    return changing(
        lambda x, i: eval(text[0]), lambda i: text.__setitem__(0, "x * 2" if i < 3 else "x - 1")
    )


@program(True)
def exception_is_caught_inside():
    table = {}

    def function(x, i):
        try:
            return x * table["scale"]
        except KeyError:
            return x - 1

    return changing(function, lambda i: table.update(scale=4.0) if i == 3 else None)


@program(True)
def context_manager_of_python():
    @contextlib.contextmanager
    def scaled(value):
        yield value * 2

    def function(x, i):
        with scaled(2.0) as scale:
            return x * scale

    return function


@program(True)
def finally_clause():
    def function(x, i):
        try:
            y = x * 2
        finally:
            z = x + 1
        return y + z

    return function


@program(True)
def assertion():
    limit = [0]

    def function(x, i):
        assert x.shape[0] > limit[0]
        return x * 2

    return function


# -- numbers ------------------------------------------------------------------------------------------


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


# -- tensors and settings -----------------------------------------------------------------------------


@program(False)
def tensor_in_an_attribute_is_replaced():
    box = types.SimpleNamespace(w=rand(3, 4, seed=1))
    return changing(
        lambda x, i: x * box.w, lambda i: setattr(box, "w", rand(3, 4, seed=1 if i < 3 else 2))
    )


@program(False)
def tensor_in_an_attribute_has_another_shape():
    box = types.SimpleNamespace(w=rand(3, 4, seed=1))
    return changing(
        lambda x, i: x * box.w, lambda i: setattr(box, "w", rand(3, 4) if i < 3 else rand(4))
    )


@program(True)
def view_of_a_closure_is_written():
    base = rand(3, 4, seed=1)
    view = base[1]
    return changing(lambda x, i: x + base, lambda i: view.fill_(float(i)))


@program(True)
def write_into_a_view_of_the_argument():
    def function(x, i):
        x[1:] *= 2
        return x[0] + x[2]

    return function


@program(True)
def argument_is_not_contiguous():
    def function(x, i):
        return x.reshape(-1) * 2, x.is_contiguous()

    def driver(x, i):
        return function, x if i % 2 == 0 else rand(4, 3, seed=i).T

    function.driver = driver
    return function


@program(False)
def argument_overlaps_the_closure():
    base = rand(6, 4, seed=1)

    def function(x, i):
        x += 1
        return base.sum(0)

    def driver(x, i):
        return function, base[i % 3 : i % 3 + 3]

    function.driver = driver
    function.state = lambda: [base]
    return function


@program(True)
def shape_of_the_argument_changes():
    def function(x, i):
        return x.reshape(-1) * x.shape[0]

    def driver(x, i):
        return function, rand(*((3, 4), (4, 3))[i % 2], seed=i)

    function.driver = driver
    return function


@program(True)
def dtype_of_the_argument_changes():
    def function(x, i):
        return x * 2 if x.dtype == tenon.float32 else x - 1

    def driver(x, i):
        return function, x if i < 3 else x.to(tenon.float64)

    function.driver = driver
    return function


@program(True)
def gradients_are_switched():
    w = rand(3, 4, seed=1).requires_grad_()

    def function(x, i):
        return (x * w).requires_grad, x * w

    def driver(x, i):
        return function, x

    function.driver = driver
    return function


@program(True)
def gradient_mode_inside():
    w = rand(3, 4, seed=1).requires_grad_()

    def function(x, i):
        with tenon.no_grad():
            y = x * w
        return y, y.requires_grad

    return function


@program(False)
def deep_copy_inside():
    w = rand(3, 4, seed=1)

    def function(x, i):
        y = copy.deepcopy(w)
        y += x
        return y, w

    return function


@program(True)
def detached_memory_is_shared():
    w = rand(3, 4, seed=1).requires_grad_()

    def function(x, i):
        shared = w.detach()
        shared.add_(x)
        return w.sum().detach()

    function.state = lambda: [w.detach()]
    return function


@program(True)
def two_results_share_memory():
    def function(x, i):
        y = x * 2
        return y, y[0], y.T

    def unpack(result):
        result[0].add_(1)
        return result

    function.unpack = unpack
    return function


@program(True)
def result_is_written_by_the_caller():
    def function(x, i):
        return x * 0 + 1

    def unpack(result):
        before = result.clone()
        result.fill_(77)
        return before

    function.unpack = unpack
    return function


@program(True)
def constant_is_written_by_the_caller():
    w = rand(3, 4, seed=1)

    def function(x, i):
        return w

    def unpack(result):
        before = result.clone()
        result.add_(1)
        return before

    function.unpack = unpack
    return function


@program(True)
def new_tensor_is_written_by_the_caller():
    def function(x, i):
        return tenon.zeros([3])

    def unpack(result):
        before = result.clone()
        result.add_(1)
        return before

    function.unpack = unpack
    return function


@program(True)
def random_numbers_and_writes():
    state = tenon.zeros([4])

    def function(x, i):
        state.add_(tenon.rand([4]))
        return state + x.sum(0)

    function.state = lambda: [state]
    return function


@program(True)
def loop_over_rows():
    def function(x, i):
        total = tenon.zeros([4])
        for row in x:
            total = total * 0.5 + row
        return total

    return function


@program(True)
def unpacked_shape():
    def function(x, i):
        rows, columns = x.shape
        return x.sum() / (rows * columns)

    return function


@program(True)
def swapped_names():
    def function(x, i):
        a, b = x + 1, x * 2
        for _ in range(3):
            a, b = b, a + b
        return a

    return function


@program(True)
def operator_of_python_classes():
    class Pair:
        def __init__(self, a, b):
            self.a, self.b = a, b

        def __add__(self, other):
            return Pair(self.a + other.a, self.b + other.b)

    def function(x, i):
        total = Pair(x, x * 2) + Pair(x * 3, x * 4)
        return total.a, total.b

    return function


@program(True)
def identity_of_an_object():
    return lambda x, i: x * (id(x) % 1 + 2)


@program(True)
def containers_five_deep():
    settings = types.SimpleNamespace(inner={"deep": {"deeper": {"scale": [2.0]}}})

    def change(i):
        settings.inner["deep"]["deeper"]["scale"][0] = 2.0 if i < 3 else 3.0

    return changing(lambda x, i: x * settings.inner["deep"]["deeper"]["scale"][0], change)


@program(True)
def method_of_a_list_in_the_closure():
    numbers = [2.0]
    read = numbers.__getitem__
    return changing(
        lambda x, i: x * read(0), lambda i: numbers.__setitem__(0, 2.0 if i < 3 else 6.0)
    )


@program(True)
def bytes_that_change():
    numbers = array.array("d", [2.0])
    return changing(
        lambda x, i: x * numbers[0], lambda i: numbers.__setitem__(0, 2.0 if i < 3 else 6.0)
    )


@program(False)
def proxy_of_a_dict():
    table = {"scale": 2.0}
    proxy = types.MappingProxyType(table)
    return changing(
        lambda x, i: x * proxy["scale"], lambda i: table.update(scale=2.0 if i < 3 else 6.0)
    )


@program(False)
def large_array_of_numpy():
    numbers = np.ones(4096, "float32")

    def change(i):
        numbers[:] = 1 if i < 3 else 6

    return changing(lambda x, i: x * tenon.tensor(numbers[:4]), change)


@program(False)
def toggled_by_the_function():
    flags = types.SimpleNamespace(odd=False)

    def function(x, i):
        flags.odd = not flags.odd
        return x * 2 if flags.odd else x - 1

    function.state = lambda: flags.odd
    return function


@program(True)
def static_and_class_methods():
    class Box:
        scale = 2.0

        @staticmethod
        def twice(x):
            return x * FACTOR

        @classmethod
        def scaled(cls, x):
            return x * cls.scale

    box = Box()

    def change(i):
        Box.scale = 2.0 if i < 3 else 6.0
        globals()["FACTOR"] = 3.0 if i < 3 else 5.0

    return changing(lambda x, i: box.twice(x) + box.scaled(x), change)


@program(True)
def method_of_a_base_class():
    class Base:
        def scaled(self, x):
            return x * self.factor()

        def factor(self):
            return self.scale

    class Box(Base):
        scale = 2.0

    box = Box()
    return changing(
        lambda x, i: box.scaled(x), lambda i: setattr(Box, "scale", 2.0 if i < 3 else 6.0)
    )


@program(True)
def cached_property():
    class Box:
        scale = 2.0

        @functools.cached_property
        def doubled(self):
            return self.scale * 2

    box = Box()

    def change(i):
        if i == 3:
            box.doubled = 7.0

    return changing(lambda x, i: x * box.doubled, change)


@program(True)
def forward_of_a_module_is_replaced():
    class Net(tenon.nn.Module):
        def __init__(self):
            super().__init__()
            self.scale = 2.0

        def forward(self, x):
            return x * self.scale

    net = Net()

    def change(i):
        if i == 3:
            Net.forward = lambda self, x: x - self.scale

    return changing(lambda x, i: net(x), change)


@program(True)
def settings_of_a_module_change():
    class Net(tenon.nn.Module):
        def __init__(self):
            super().__init__()
            self.options = types.SimpleNamespace(scale=2.0)

        def forward(self, x):
            return x * self.options.scale

    net = Net()
    return changing(
        lambda x, i: net(x), lambda i: setattr(net.options, "scale", 2.0 if i < 3 else 6.0)
    )
