# SPDX-License-Identifier: Apache-2.0
"""Awkward programs whose answer hangs on tensors they keep, memory they share, and settings of Tenon."""

import array
import copy
import functools
import types

import numpy as np
import tenon
from awkward_programs import program, rand
from awkward_state import changing

FACTOR = 3.0


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
