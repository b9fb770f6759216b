# SPDX-License-Identifier: Apache-2.0
"""Every operator in a program: the same bits as without one, forwards and backwards."""

import numpy as np
import pytest
import tenon
from case import differentiable, differentiable_results, map_arrays, results_of
from running import arguments, named, named_keywords, skip_unserved, to_tensor
from samples import CASES

SEED = 7


def bits(tensor):
    tensor = tensor.detach().to("cpu")
    if tensor.dtype in (tenon.bfloat16, tenon.float8_e4m3, tenon.float8_e5m2):
        tensor = tensor.to(tenon.float32)
    return tensor.numpy().tobytes()


def assert_same_bits(got, want):
    assert [(t.shape, t.dtype, t.device) for t in got] == [
        (t.shape, t.dtype, t.device) for t in want
    ]
    assert [bits(t) for t in got] == [bits(t) for t in want]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_forwards(case, device):
    skip_unserved(device, "float32")
    args, kwargs = arguments(case, device, "float32")

    def function(args, kwargs):
        return results_of(getattr(tenon, case.op)(*args, **kwargs))

    try:
        program = tenon.export(function, (args, kwargs))
    except NotImplementedError as error:
        assert "depends on data" in str(error)
        return
    tenon.manual_seed(SEED)
    want = function(args, kwargs)
    tenon.manual_seed(SEED)
    assert_same_bits(program(args, kwargs), want)
    again = tenon._core.program_parse(str(program))
    assert again.print() == str(program)


def tensors_to_differentiate(case, args):
    chosen = [args[i] for i in differentiable(case)]
    return [t for each in chosen for t in (each if isinstance(each, list) else [each])]


@pytest.mark.parametrize("case", [c for c in CASES if differentiable(c)], ids=str)
def test_backwards(case, device):
    """Gradients that the function takes itself, and those that pass through the program."""
    skip_unserved(device, "float64")

    def place(array, device):
        return to_tensor(array, device, requires_grad=array.dtype.kind == "f")

    args = [named(map_arrays(lambda a: place(a, device), value), device) for value in case.args]
    kwargs = {
        name: map_arrays(lambda a: to_tensor(a, device), value)
        for name, value in case.kwargs.items()
    }
    kwargs = named_keywords(kwargs, device)

    def forwards(args):
        return differentiable_results(case, getattr(tenon, case.op)(*args, **kwargs))

    def gradients(args, forwards=forwards):
        tenon.manual_seed(SEED) if forwards is not inner else None
        results = [r for r in forwards(args) if r.requires_grad]
        wanted = tensors_to_differentiate(case, args)
        found = tenon.grad(
            results, wanted, [tenon.ones_like(r) for r in results], allow_unused=True
        )
        return [g for g in found if g is not None]

    def inner(args):
        return differentiable_results(case, getattr(tenon, case.op)(*args, **kwargs))

    try:
        whole = tenon.export(lambda args: gradients(args, inner), (args,))
    except NotImplementedError as error:
        assert "depends on data" in str(error) or "custom function" in str(error)
        return
    want = gradients(args)
    tenon.manual_seed(SEED)
    assert_same_bits(whole(args), want)
    part = tenon.export(forwards, (args,))
    assert_same_bits(gradients(args, part), want)


def test_every_operator_is_here():
    assert len({case.op for case in CASES}) > 250
    assert np.mean([bool(differentiable(case)) for case in CASES]) > 0.5
