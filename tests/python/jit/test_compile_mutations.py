# SPDX-License-Identifier: Apache-2.0
"""tenon.compile: what a function means changes after it was compiled, in a way that its signature has to see."""

import awkward_mutations_of_code  # noqa: F401 - registers its rows
import awkward_mutations_of_layers  # noqa: F401
import pytest
import tenon
from awkward_mutations import MUTATIONS
from awkward_programs import rand


def outcome(function, x):
    try:
        result = function(x.clone())
    except Exception as error:  # the same for both, whatever it is
        return type(error), str(error).splitlines()[0]
    elements = result.detach().to(tenon.float64).numpy().tobytes()
    return result.dtype, result.requires_grad, result.shape, elements


@pytest.mark.parametrize("name", MUTATIONS)
def test_a_change_after_compilation_is_seen(name):
    factory, compiles = MUTATIONS[name]
    function, change = factory()
    compiled = tenon.compile(function)
    x = rand(3, 4, seed=7)
    before = outcome(function, x)
    for _ in range(4):
        assert outcome(compiled, x) == before
    assert bool(compiled.programs) == compiles, compiled.explain()
    change()
    try:
        after = outcome(function, x)
        assert after != before, "the row changes nothing"
        for _ in range(4):
            assert outcome(compiled, x) == after, compiled.explain()
    finally:
        getattr(change, "undo", lambda: None)()
