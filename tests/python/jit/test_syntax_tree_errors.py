# SPDX-License-Identifier: Apache-2.0
"""Control flow over tensors in exported functions: what is refused, with the text that says so."""

import itertools

import pytest
import tenon
from program_agreement import X, agree, refused


def test_a_variable_of_one_branch_alone():
    def function(x):
        if x.sum() > 0:
            y = x * 2
        return y

    message = refused(function, "`y` has a value only where the test holds")
    line = function.__code__.co_firstlineno + 1
    assert (
        f"test_syntax_tree_errors.py:{line}" in message and "assign it before the `if`" in message
    )

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
