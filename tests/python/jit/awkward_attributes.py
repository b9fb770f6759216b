# SPDX-License-Identifier: Apache-2.0
"""Awkward programs whose answer hangs on attributes of objects, classes and functions: replaced, hidden, computed."""

import types

from awkward_programs import program
from awkward_state import Scaled, changing


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
