# SPDX-License-Identifier: Apache-2.0
"""A minute of the fuzzer with a fixed seed, and that it finds faults that are put in."""

import re
import shlex
import subprocess
import sys

import numpy as np
import pytest

from . import differences
from .arrays import LAYOUTS, Array, applicable, numpy_of
from .call import Call, evaluate
from .cases import Cases
from .compare import close_difference, exact_difference
from .differences import DIFFERENCES, Difference, explanation
from .draw import draw_call
from .operators import table
from .oracles import is_refusal
from .report import Mismatch
from .shrink import shrink
from .supervise import ROOT, Settings, run

# Fixed, so that a failure is a failure tomorrow; as many cases as a slow machine runs in a minute.
SEED, CASES, SECONDS = 2026, 1500, 50


def test_no_mismatch_without_a_reason():
    outcome = run(Settings(SEED), SECONDS, most=CASES)
    assert outcome.cases > 50
    assert not outcome.mismatches, "\n\n".join(m.text() for m in outcome.mismatches)


def faulty(body, only, oracles=(), cases=60):
    """What the fuzzer says of operators for which `body` puts a kernel in."""
    setup = "import os, numpy, tenon\nnumpy.seterr(all='ignore')\n" + body
    return run(Settings(1, only, oracles), 60, 0, cases, setup=setup).mismatches


def oracles_of(found):
    return {m.oracle for m in found}


def test_tensors_stay_small():
    """The weight gradient of no channels was drawn with 35 million elements."""
    operators = table()
    for name in ("conv2d_weight_grad", "conv2d_input_grad", "conv2d", "conv_transpose2d"):
        rng = np.random.default_rng(1)
        for _ in range(300):
            call = draw_call(rng, operators[name], large=True)
            sizes = [a.values.size for a in call.arguments.values() if isinstance(a, Array)]
            assert max(sizes) <= 2**22, (name, sizes)


def test_a_wrong_kernel_is_found():
    kernel = "handle = tenon.kernel('tenon::tanh', 'cpu', dtypes='float32')"
    found = faulty(kernel + "(lambda x: numpy.tanh(x.numpy()) * numpy.float32(1.00001))", ("tanh",))
    assert {"numpy", "wide"} <= oracles_of(found)
    assert all(m.op == "tanh" for m in found)
    script = found[0].script
    assert re.search(r"tenon\.tanh\(tenon\.tensor\(.*dtype='float32'", script)


def test_a_kernel_that_is_wrong_for_special_values_is_found():
    found = faulty(
        "handle = tenon.kernel('tenon::maximum', 'cpu')"
        "(lambda x, y: numpy.fmax(*numpy.broadcast_arrays(x.numpy(), y.numpy())))",
        ("maximum",),
        ("numpy",),
        400,
    )
    assert oracles_of(found) == {"numpy"}
    assert "instead of nan" in found[0].detail


def test_a_wrong_gradient_is_found():
    found = faulty(
        "handle = tenon.kernel('tenon::cos', 'cpu', dtypes='float64')"  # what sin's gradient calls
        "(lambda x: numpy.cos(x.numpy()) + 0.01)",
        ("sin",),
        ("gradient", "second_gradient"),
        200,
    )
    assert oracles_of(found) == {"gradient"}
    assert "by differences" in found[0].detail and "tenon.grad" in found[0].script


def test_a_kernel_that_fails_in_an_unexpected_way_is_found():
    found = faulty(
        "@tenon.kernel('tenon::sinh', 'cpu')\ndef handle(x):\n  raise RuntimeError('broken')",
        ("sinh",),
    )
    assert any(m.oracle == "refusal" and "RuntimeError: broken" in m.detail for m in found)


def test_a_crash_is_found_and_the_run_goes_on():
    found = faulty(
        "@tenon.kernel('tenon::cosh', 'cpu')\ndef handle(x):\n"
        "  if x.size == 3: os.kill(os.getpid(), 11)\n  return numpy.cosh(x.numpy())",
        ("cosh",),
        ("numpy",),
        400,
    )
    crashes = [m for m in found if m.oracle == "crash"]
    assert len(crashes) > 1, "one crash must not end the run"
    assert "signal SIGSEGV" in crashes[0].detail and "tenon.cosh" in crashes[0].script


def test_a_reproduction_runs_alone():
    call = draw_call(np.random.default_rng(3), table()["matmul"], "float32")
    command = Mismatch("numpy", "matmul", "wrong", call.script()).text().splitlines()[1]
    words = shlex.split(command)
    assert words[:2] == ["python", "-c"]
    done = subprocess.run([sys.executable, *words[1:]], capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == repr(call.run()[0]).strip()


def test_cases_are_drawn_again_from_their_numbers():
    one, other = Cases(7), Cases(7)
    scripts = [one.script(one.draw(n)[1]) for n in range(40)]
    assert scripts == [other.script(other.draw(n)[1]) for n in range(40)]
    assert len(set(scripts)) > 35


@pytest.mark.parametrize("name", sorted(table()))
def test_calls_of_every_operator_are_served(name):
    """An operator whose calls are all refused is not tested: it needs a rule in draw/."""
    operator = table()[name]
    served, reasons = 0, []
    for i in range(12):
        dtype = "float32" if "float32" in operator.dtypes and i % 2 else None
        call = draw_call(np.random.default_rng([5, i]), operator, dtype, "ordinary", False)
        if any(0 in array.shape for _, _, array in call.arrays()):
            continue
        try:
            call.run()
            served += 1
        except Exception as error:
            assert is_refusal(error), call.script()
            reasons.append(f"{call.script()}: {error}")
    assert served, "\n".join(reasons)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("shape", [(), (3,), (2, 3), (2, 1, 3, 4), (0, 2), (70, 3)])
def test_layouts_hold_the_values(layout, shape):
    values = np.resize(np.arange(61) / 4 - 3, shape)
    if layout == "expanded" and values.ndim:
        values = np.broadcast_to(values[:1], shape).copy()
    if not applicable(layout, values):
        pytest.skip(f"an array of shape {shape} cannot be {layout}")
    array = Array(values, "float32", layout)
    assert exact_difference(numpy_of(evaluate(array.text())), values) is None
    if layout == "expanded" or values.size > 200:
        return
    period = tuple((np.arange(61) / 4 - 3).tolist())
    repeated = Array(np.resize(period, shape), "float32", layout, period)
    assert exact_difference(numpy_of(evaluate(repeated.text())), repeated.values) is None


def test_what_rounding_explains():
    one = np.array([1.0])
    assert close_difference(one * (1 + 2**-23), one, "float32") is None
    assert close_difference(one * (1 + 2**-18), one, "float32")
    assert close_difference(one * (1 + 2**-18), one, "float32", np.array([2.0**-20])) is None
    big = np.array([1e6])
    assert close_difference(np.array([np.inf]), big, "float16") is None
    assert close_difference(np.array([np.inf]), big, "float32")
    assert close_difference(np.array([np.nan]), one, "float32")
    assert close_difference(np.array([1]), np.array([2]), "int32")
    assert exact_difference(np.array([0.0]), np.array([-0.0]))
    assert exact_difference(np.array([np.nan]), np.array([np.nan])) is None
    assert exact_difference(np.zeros((2, 1)), np.zeros(2)) == "shape (2, 1) instead of (2,)"


def test_mismatches_are_made_small():
    values = np.arange(60.0).reshape(3, 4, 5)
    array = Array(values, "float64", "transposed")
    call = Call(table()["sum"], {"x": array, "axis": [0, 1], "keepdim": True})
    small = shrink(call, lambda c: float(c.arguments["x"].values.max(initial=0.0)) >= 58)
    x = small.arguments["x"]
    assert set(small.arguments) == {"x"} and x.layout == "plain" and x.values.size == 1


def test_rows_of_the_table_have_reasons_and_operators():
    for row in DIFFERENCES:
        assert row.reason.startswith("differs on purpose, because "), row
        assert any(re.fullmatch(row.operators, name) for name in table()), row.operators


def test_a_row_explains_only_what_it_names(monkeypatch):
    row = Difference("exp", "numpy", "differs on purpose, because", ".*float16.*", "inf instead")
    monkeypatch.setattr(differences, "DIFFERENCES", (row,))
    found = Mismatch("numpy", "exp", "inf instead of 1", "", ("float16",))
    assert explanation(found) is row
    for other in (
        Mismatch("numpy", "exp2", "inf instead of 1", "", ("float16",)),
        Mismatch("wide", "exp", "inf instead of 1", "", ("float16",)),
        Mismatch("numpy", "exp", "nan instead of 1", "", ("float16",)),
        Mismatch("numpy", "exp", "inf instead of 1", "", ("float32",)),
    ):
        assert explanation(other) is None
