# SPDX-License-Identifier: Apache-2.0
"""Does the program of a function do what the function does? Both get the same values, and must give the same bits."""

import re

import numpy as np
import pytest
import tenon

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


def refused(function, text, error=ValueError, inputs=X):
    with pytest.raises(error, match=text) as caught:
        tenon.export(function, inputs)
    message = str(caught.value)
    assert re.search(r"\w+\.py:\d+", message), message
    return message
