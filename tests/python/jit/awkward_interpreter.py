# SPDX-License-Identifier: Apache-2.0
"""Awkward programs whose answer hangs on globals, modules, exceptions and the interpreter's settings."""

import contextlib
import contextvars
import math
import os
import sys
import threading
import types
import weakref

from awkward_programs import program
from awkward_state import changing

HELPER = lambda x: x + 1
VARIABLE = contextvars.ContextVar("VARIABLE", default=2.0)
LOCAL = threading.local()


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
