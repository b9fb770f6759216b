# SPDX-License-Identifier: Apache-2.0
"""Awkward programs whose answer hangs on containers, iterators and what helpers keep between calls."""

import collections
import dataclasses
import functools
import itertools
import operator

from awkward_programs import program
from awkward_state import changing

WEIGHTS = {"a": [1.0, 2.0], "b": {"c": 3.0}}


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
