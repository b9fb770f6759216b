# SPDX-License-Identifier: Apache-2.0
"""Kernels write their results and nothing beside them: results lie between guards that must stay."""

import numpy as np
import pytest
import tenon
from running import arguments, dtype_name, results_of, skip_unserved
from samples import CASES

GUARD = 48  # elements before and behind a result


def guarded(result, device):
    """A flat tensor whose middle has room for a result, and the view of that middle."""
    sentinel = True if dtype_name(result) == "bool" else 77
    count = int(np.prod(tuple(result.shape)))
    memory = tenon.full([count + 2 * GUARD], sentinel, dtype=result.dtype, device=device)
    return memory, memory[GUARD : GUARD + count].view(list(result.shape))


def assert_guards(memory, count):
    values = memory.to("cpu")
    values = (values.to(tenon.float32) if dtype_name(memory) == "bfloat16" else values).numpy()
    guards = np.concatenate([values[:GUARD], values[GUARD + count :]])
    wrong = np.flatnonzero(guards != guards.dtype.type(77 if guards.dtype != bool else True))
    assert wrong.size == 0, f"elements {wrong - GUARD} of the result's memory were written"


@pytest.mark.parametrize("dtype", ["float64", "float32", "bfloat16"])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_memory_beside_a_result_stays(case, dtype, device):
    skip_unserved(device, dtype)
    args, kwargs = arguments(case, device, dtype)
    function = getattr(tenon, case.op)
    try:
        results = function(*args, **kwargs)
    except TypeError:
        pytest.skip(f"it takes no {dtype}")
    if isinstance(results, list):
        pytest.skip("a list has no out= form")
    results = results_of(results)
    if any(not result.is_contiguous() for result in results):
        pytest.skip("a view has no memory of its own")
    rooms = [guarded(result, device) for result in results]
    outs = tuple(view for _, view in rooms)
    try:
        function(*args, **kwargs, out=outs if len(outs) > 1 else outs[0])
    except TypeError as error:
        assert "out" in str(error)
        pytest.skip("it has no out= form")
    for (memory, _), result in zip(rooms, results, strict=True):
        assert_guards(memory, int(np.prod(tuple(result.shape))))
