# SPDX-License-Identifier: Apache-2.0
"""tenon.export of functions that name themselves, each other, or their class."""

import functools
from typing import Any

import pytest
import tenon
from program_agreement import agree, refused
from tenon import nn

COUNT = 0


def twice(x, n):
    if n > 0:
        return twice(x * 2, n - 1)
    return x


def even(x, n):
    return x + 1 if n == 0 else odd(x, n - 1)


def odd(x, n):
    return x - 1 if n == 0 else even(x * 3, n - 1)


def doubling(function):
    @functools.wraps(function)
    def outer(*args):
        return function(*args) * 2

    return outer


@doubling
def decorated(x, n):
    if n > 0:
        return decorated(x + 1, n - 1)
    return x


def with_default(x, n, function=None):
    function = function or with_default
    if n > 0:
        return function(x * 2, n - 1)
    return x


def with_keyword(x, *, n=2):
    if n > 0:
        return with_keyword(x * 2, n=n - 1)
    return x


def with_stars(x, *rest, **named):
    if rest:
        return with_stars(x * 2, *rest[1:], **named)
    return x


def in_a_comprehension(x, n):
    return sum([in_a_comprehension(x * 2, n - 1) for _ in range(2)], x) if n > 0 else x


def with_an_attribute(x, n):
    with_an_attribute.count = n
    if n > 0:
        return with_an_attribute(x * with_an_attribute.count, n - 1)
    return x


def with_a_global(x, n):
    global COUNT
    COUNT = n
    if n > 0:
        return with_a_global(x + COUNT, n - 1)
    return x


def with_a_walrus(x, n):
    if (m := n - 1) >= 0:
        return with_a_walrus(x * 2, m)
    return x


def in_a_try(x, n):
    try:
        if n > 0:
            return in_a_try(x * 2, n - 1)
    finally:
        pass
    return x


def rebound(x, n):
    if n > 0:
        return rebound(x * 2, n - 1)
    return x


FIRST = rebound


def rebound(x, n):  # type: ignore[no-redef]
    return x * 100


fibonacci: Any = lambda x, n: x if n < 2 else fibonacci(x, n - 1) + fibonacci(x, n - 2)


def flatten(nest):
    if isinstance(nest, (list, tuple)):
        return [leaf for part in nest for leaf in flatten(part)]
    return [nest]


def parts(x, n):
    yield x
    if n > 0:
        yield from parts(x * 2, n - 1)


def counting():
    count = 0

    def go(x, n):
        nonlocal count
        count += 1
        if n > 0:
            return go(x + count, n - 1)
        return x

    return go


class Tree:
    __hidden = 3.0

    def __init__(self, parts=()):
        self.parts = parts

    def total(self, x):
        if self.parts:
            return sum([Tree.total(part, x * 2) for part in self.parts], x)
        return x * self.__hidden

    @classmethod
    def made(cls, x, n):
        if n > 0:
            return cls.made(x + 1, n - 1)
        return x * Tree.__hidden

    @staticmethod
    def static(x, n):
        if n > 0:
            return Tree.static(x + 1, n - 1)
        return x


class Taller(Tree):
    def total(self, x):
        if self.parts:
            return super().total(x) + 1
        return super().total(x)

    def own(self, x):
        return x * 2 if isinstance(self, __class__) else x


class _Under(Tree):
    __hidden = 2.0

    def run(self, x):
        return x * self.__hidden * _Under.__hidden if self is not None else x


class Nested(nn.Module):
    def __init__(self, depth):
        self.inner = Nested(depth - 1) if depth else None
        self.linear = nn.Linear(3, 3)

    def forward(self, x):
        x = self.linear(x)
        return x if self.inner is None else self.inner(x)


NESTED = Nested(2)
FUNCTIONS = {
    "a function": lambda x: twice(x, 3),
    "two functions": lambda x: even(x, 3),
    "a decorated function": lambda x: decorated(x, 2),
    "a default": lambda x: with_default(x, 2),
    "a keyword": lambda x: with_keyword(x),
    "stars": lambda x: with_stars(x, 1, 2, named=3),
    "a comprehension": lambda x: in_a_comprehension(x, 2),
    "an attribute": lambda x: with_an_attribute(x, 2),
    "a global": lambda x: with_a_global(x, 2),
    "a walrus": lambda x: with_a_walrus(x, 2),
    "a try": lambda x: in_a_try(x, 2),
    "a name that is bound again": lambda x: FIRST(x, 2),
    "a lambda": lambda x: fibonacci(x, 4),
    "a nest": lambda x: sum(flatten([x, [x * 2, (x,)]])),
    "a generator": lambda x: sum(parts(x, 2)),
    "a nonlocal": lambda x: counting()(x, 2),
    "a partial": functools.partial(twice, n=3),
    "a method": lambda x: Tree([Tree(), Tree([Tree()])]).total(x),
    "a class method": lambda x: Tree.made(x, 2),
    "a static method": lambda x: Tree.static(x, 2),
    "super": lambda x: Taller([Taller()]).total(x),
    "the cell of a class": lambda x: Taller().own(x),
    "a private class": lambda x: _Under().run(x),
    "a module": lambda x: NESTED(x),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_that_name_themselves(name):
    agree(FUNCTIONS[name])


def test_the_name_in_tracebacks_is_the_function_s():
    def fails(x):
        y = None if x is None else x * 2
        raise KeyError(y.shape)

    with pytest.raises(KeyError) as caught:
        tenon.export(fails, tenon.ones(2))
    assert caught.traceback[-1].name == "fails"


def until(x, n):
    if x.sum() > 0:
        return until(x - 1, n)
    return x


def test_a_recursion_that_tensors_end_is_refused():
    refused(
        lambda x: until(x, 3), "a function that calls itself until a tensor", NotImplementedError
    )
