# SPDX-License-Identifier: Apache-2.0
"""Changes of functions, modules of Python and containers (awkward_mutations.py)."""

import builtins
import collections
import contextvars
import decimal
import functools
import logging
import os
import pathlib
import random
import sys
import tempfile
import threading
import types

import numpy as np
from awkward_mutations import Scaled, mutation
from tenon import nn

MADE = None

# -- functions -----------------------------------------------------------------------------------


@mutation(True)
def code_of_the_function_itself():
    def function(x):
        return x * 2

    return function, lambda: setattr(function, "__code__", (lambda x: x - 1).__code__)


@mutation(True)
def code_of_a_method():
    class Box:
        def run(self, x):
            return x * 2

    box = Box()
    change = lambda: setattr(Box.run, "__code__", (lambda self, x: x - 1).__code__)
    return lambda x: box.run(x), change


@mutation(True)
def defaults_of_a_method():
    class Box:
        def run(self, x, scale=2.0):
            return x * scale

    box = Box()
    return lambda x: box.run(x), lambda: setattr(Box.run, "__defaults__", (7.0,))


@mutation(True)
def keyword_defaults_of_a_helper():
    def helper(x, *, scale=2.0):
        return x * scale

    return lambda x: helper(x), lambda: helper.__kwdefaults__.update(scale=7.0)


@mutation(True)
def contents_of_a_cell_of_a_helper():
    scale = 2.0

    def helper(x):
        return x * scale

    def change():
        helper.__closure__[0].cell_contents = 7.0

    return lambda x: helper(x), change


@mutation(True)
def cell_that_is_assigned_late():
    def make():
        def function(x):
            try:
                return x * later
            except NameError:
                return x - 1

        def assign():
            nonlocal later
            later = 7.0

        if False:
            later = 0.0
        return function, assign

    return make()


@mutation(True)
def function_that_a_decorator_keeps():
    def decorate(inner):
        @functools.wraps(inner)
        def outer(x):
            return outer.inner(x)

        outer.inner = inner
        return outer

    helper = decorate(lambda x: x * 2)
    return lambda x: helper(x), lambda: setattr(helper, "inner", lambda x: x - 1)


@mutation(True)
def cached_helper_is_cleared():
    options = types.SimpleNamespace(scale=2.0)

    @functools.cache
    def helper():
        return options.scale

    def change():
        options.scale = 7.0
        helper.cache_clear()

    return lambda x: x * helper(), change


@mutation(True)
def partial_of_a_function_with_state():
    def helper(options, x):
        return x * options["scale"]

    options = {"scale": 2.0}
    part = functools.partial(functools.partial(helper), options)
    return lambda x: part(x), lambda: options.update(scale=7.0)


@mutation(True)
def partial_method():
    options = {"scale": 2.0}

    class Box:
        def run(self, given, x):
            return x * given["scale"]

        bound = functools.partialmethod(run, options)

    box = Box()
    return lambda x: box.bound(x), lambda: options.update(scale=7.0)


@mutation(True)
def bound_method_of_an_object():
    box = Scaled()
    run = box.method
    return lambda x: run(x), lambda: setattr(box, "scale", 7.0)


@mutation(True)
def bound_method_of_an_object_of_another_class():
    box = Scaled()
    return box.__call__, lambda: setattr(box, "offset", 7.0)


@mutation(False)
def single_dispatch_gets_a_function():
    @functools.singledispatch
    def helper(it, x):
        return x * 2

    return lambda x: helper(3, x), lambda: helper.register(int, lambda it, x: x - 1)


@mutation(True)
def builtin_is_replaced():
    builtins.awkward_scale = 2.0
    return lambda x: x * awkward_scale, lambda: setattr(builtins, "awkward_scale", 7.0)  # noqa: F821


@mutation(True)
def global_hides_a_builtin():
    globals().pop("max", None)

    def change():
        globals()["max"] = lambda a, b: 7.0

    def function(x):
        try:
            return x * max(1.0, 2.0)
        finally:
            pass

    return function, change


@mutation(True)
def module_that_is_imported_inside():
    module = types.ModuleType("awkward_inside")
    module.scale = 2.0
    sys.modules["awkward_inside"] = module

    def function(x):
        import awkward_inside

        return x * awkward_inside.scale

    return function, lambda: setattr(module, "scale", 7.0)


@mutation(True)
def name_that_is_imported_inside():
    module = types.ModuleType("awkward_inside_too")
    module.scale = 2.0
    sys.modules["awkward_inside_too"] = module

    def function(x):
        from awkward_inside_too import scale

        return x * scale

    return function, lambda: setattr(module, "scale", 7.0)


@mutation(True)
def module_is_replaced():
    sys.modules["awkward_replaced"] = types.SimpleNamespace(scale=2.0)

    def function(x):
        import awkward_replaced

        return x * awkward_replaced.scale

    other = types.SimpleNamespace(scale=7.0)
    return function, lambda: sys.modules.__setitem__("awkward_replaced", other)


@mutation(True)
def module_of_a_module():
    outer, inner = types.ModuleType("outer"), types.ModuleType("inner")
    outer.inner, inner.scale = inner, 2.0
    return lambda x: x * outer.inner.scale, lambda: setattr(inner, "scale", 7.0)


@mutation(True)
def attribute_that_a_module_makes():
    module, state = types.ModuleType("awkward_made"), {"scale": 2.0}

    def made(name):
        if name in state:
            return state[name]
        raise AttributeError(name)

    module.__getattr__ = made
    sys.modules["awkward_made"] = module

    def function(x):
        return x * MADE.scale

    globals()["MADE"] = module
    return function, lambda: state.update(scale=7.0)


@mutation(True)
def attribute_of_an_argument_by_default():
    box = Scaled()

    def helper(x, it=box):
        return x * it.scale

    return lambda x: helper(x), lambda: setattr(box, "scale", 7.0)


# -- containers ----------------------------------------------------------------------------------


@mutation(True)
def objects_in_a_set():
    boxes = {Scaled(2.0)}
    return lambda x: x * sum(b.scale for b in boxes), lambda: setattr(
        next(iter(boxes)), "scale", 7.0
    )


@mutation(True)
def one_becomes_true_in_a_set():
    numbers = {1}

    def change():
        numbers.clear()
        numbers.add(True)

    return lambda x: x * 2 if next(iter(numbers)) is True else x, change


@mutation(True)
def method_of_a_class_of_lists():
    class Numbers(list):
        def total(self):
            return sum(self)

    numbers = Numbers([2.0])
    return lambda x: x * numbers.total(), lambda: setattr(Numbers, "total", lambda self: 7.0)


@mutation(True)
def attribute_of_a_class_of_dicts():
    class Table(dict):
        scale = 2.0

    table = Table()
    return lambda x: x * table.scale, lambda: setattr(table, "scale", 7.0)


@mutation(True)
def factory_of_a_default_dict():
    table = collections.defaultdict(lambda: 2.0)

    def function(x):
        try:
            return x * table["scale"]
        finally:
            del table["scale"]

    return function, lambda: setattr(table, "default_factory", lambda: 7.0)


@mutation(True)
def counter_of_things():
    counts = collections.Counter(a=2)
    return lambda x: x * counts["a"], lambda: counts.update(a=5)


@mutation(True)
def containers_twelve_deep():
    inner = last = {}
    for _ in range(12):
        last["next"] = [{}]
        last = last["next"][0]
    last["scale"] = 2.0

    def function(x):
        part = inner
        while "next" in part:
            part = part["next"][0]
        return x * part["scale"]

    return function, lambda: last.update(scale=7.0)


@mutation(True)
def settings_of_a_module_four_deep():
    class Net(nn.Module):
        def __init__(self):
            inner = types.SimpleNamespace(c=types.SimpleNamespace(scale=2.0))
            self.options = types.SimpleNamespace(a=types.SimpleNamespace(b=inner))

        def forward(self, x):
            return x * self.options.a.b.c.scale

    net = Net()
    return lambda x: net(x), lambda: setattr(net.options.a.b.c, "scale", 7.0)


@mutation(False)
def iterator_of_equal_numbers():
    numbers = iter([2.0] * 9 + [7.0] * 90)  # function and program take turns

    def change():
        while next(numbers) != 7.0:
            pass

    return lambda x: x * next(numbers), change


@mutation(False)
def view_of_a_dict():
    table = {"a": 2.0}
    values = table.values()
    return lambda x: x * sum(values), lambda: table.update(a=7.0)


@mutation(False)
def array_of_objects_of_numpy():
    numbers = np.array([{"scale": 2.0}], dtype=object)
    return lambda x: x * numbers[0]["scale"], lambda: numbers[0].update(scale=7.0)


@mutation(True)
def record_of_an_array_of_numpy():
    record = np.array([(2.0,)], dtype=[("scale", "f8")])[0]
    return lambda x: x * float(record["scale"]), lambda: record.__setitem__("scale", 7.0)


@mutation(True)
def shape_of_an_array_of_numpy():
    numbers = np.ones((1, 4), "float32")
    return lambda x: x * numbers.shape[0], lambda: setattr(numbers, "shape", (4, 1))


@mutation(True)
def variable_of_a_context():
    variable = contextvars.ContextVar("awkward")
    variable.set({"scale": 2.0})
    return lambda x: x * variable.get()["scale"], lambda: variable.set({"scale": 7.0})


# -- what hangs on the system, or cannot be told ------------------------------------------------------


@mutation(False)
def text_of_a_file():
    path = pathlib.Path(tempfile.mkdtemp()) / "scale"
    path.write_text("2.0")
    return lambda x: x * float(path.read_text()), lambda: path.write_text("7.0")


@mutation(False)
def file_that_is_there():
    path = os.path.join(tempfile.mkdtemp(), "flag")
    return lambda x: x * 2 if os.path.exists(path) else x - 1, lambda: open(path, "w").close()


@mutation(False)
def lock_that_is_held():
    lock = threading.Lock()
    return lambda x: x * 2 if lock.locked() else x - 1, lock.acquire


@mutation(False)
def name_of_the_thread():
    thread = threading.current_thread()
    before = thread.name
    change = lambda: setattr(thread, "name", "another")
    change.undo = lambda: setattr(thread, "name", before)
    return lambda x: x * len(threading.current_thread().name), change


@mutation(False)
def level_of_a_logger():
    logger = logging.getLogger("awkward")
    return (
        lambda x: x * 2 if logging.getLogger("awkward").isEnabledFor(10) else x - 1,
        lambda: logger.setLevel(5),
    )


@mutation(True)
def context_of_decimal_numbers():
    change = lambda: setattr(decimal.getcontext(), "prec", 2)
    change.undo = lambda: setattr(decimal.getcontext(), "prec", 28)
    return lambda x: x * float(decimal.Decimal(1) / decimal.Decimal(3)), change


@mutation(False)
def numbers_drawn_by_python():
    draw = random.Random(0)

    def function(x):
        state = draw.getstate()
        try:
            return x * draw.random()
        finally:
            draw.setstate(state)

    return function, draw.random
