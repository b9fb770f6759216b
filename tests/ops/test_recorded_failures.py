# SPDX-License-Identifier: Apache-2.0
"""Programs given other data than they were recorded with: they raise where the operator does, and give its bits where it does
not."""

import numpy as np
import pytest
import tenon
from case import results_of
from running import arguments, skip_unserved
from samples import CASES
from test_recorded import SEED, bits


def perturbed(array):
    """The array's elements replaced by others that many operators have no meaning for."""
    if array.dtype == bool or array.size == 0:
        return []
    if array.dtype.kind in "iu":
        limit = min(np.iinfo(array.dtype).max, 1000)
        return [np.full_like(array, limit), np.zeros_like(array)] + (
            [np.full_like(array, -limit)] if array.dtype.kind == "i" else []
        )
    if array.dtype.kind == "f":
        return [np.full_like(array, -3.0), np.full_like(array, np.nan)]
    return []


def outcome(call, *given):
    tenon.manual_seed(SEED)
    try:
        return [bits(t) for t in results_of(call(*given))]
    except Exception as error:
        return type(error)


def on_host(args, kwargs):
    def moved(value):
        if isinstance(value, (list, tuple)):
            return type(value)(map(moved, value))
        return value.cpu() if isinstance(value, tenon.Tensor) else value

    named = {name: moved(value) for name, value in kwargs.items()}
    return moved(args), named | ({"device": "cpu"} if "device" in named else {})


@pytest.mark.parametrize("case", CASES, ids=str)
def test_programs_fail_where_their_operator_does(case, device):
    skip_unserved(device, "float32")
    args, kwargs = arguments(case, device, "float32")

    def function(args, kwargs):
        return results_of(getattr(tenon, case.op)(*args, **kwargs))

    try:
        program = tenon.export(function, (args, kwargs))
    except NotImplementedError:
        return
    for i, value in enumerate(args):
        if not isinstance(value, tenon.Tensor) or value.dtype in (tenon.bfloat16, tenon.float16):
            continue
        for other in perturbed(value.detach().cpu().numpy()):
            changed = [*args]
            changed[i] = tenon.tensor(other).to(device)
            changed = type(args)(changed)
            want = outcome(function, changed, kwargs)
            got = outcome(program, changed, kwargs)
            if (
                got != want
                and device != "cpu"
                and isinstance(outcome(function, *on_host(changed, kwargs)), type)
            ):
                continue  # a device that cannot tell of a bad position may give anything for it
            assert got == want, f"argument {i}: {other.reshape(-1)[:3]}"
