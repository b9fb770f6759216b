# SPDX-License-Identifier: Apache-2.0
"""Parts of programs that a device's own compiler claims: the reference device's, and some that go wrong."""

import os
import pathlib
import subprocess
import sys
import textwrap
import threading

import numpy as np
import pytest
import tenon
from reference_plugin import PATH, load, needs_reference

pytestmark = needs_reference
DEVICE = "reference:0"


@pytest.fixture(autouse=True, scope="module")
def reference():
    load()


@pytest.fixture(autouse=True)
def no_gradients():
    with tenon.no_grad():
        yield


def randn(*shape, dtype="float32"):
    return tenon.randn(*shape).to(dtype=getattr(tenon, dtype)).to(DEVICE)


def bits(tensors):
    """Elements as NumPy has them; float32 holds every bfloat16."""
    tensors = tensors if isinstance(tensors, tuple) else (tensors,)
    return [
        (t.to(tenon.float32) if t.dtype == tenon.bfloat16 else t).cpu().numpy() for t in tensors
    ]


def check(function, *inputs, runs=4, claimed=1):
    """The program gives the function's bits in each run; as many of its parts are executables. Returns the program."""
    program = tenon.export(function, inputs)
    for _ in range(runs):
        inputs = tuple(randn(*x.shape, dtype=x.dtype.name) for x in inputs)
        want, got = bits(function(*inputs)), bits(program(*inputs))
        for a, b in zip(want, got, strict=True):
            np.testing.assert_array_equal(b, a, strict=True)
    assert program.plan().count(f"one executable of {DEVICE}") == claimed, program.plan()
    return program


def chain(x, y):
    return ((x + y) * x).maximum(0.25).exp() * y


def test_a_chain_is_one_executable():
    program = check(chain, randn(33, 65), randn(33, 65))
    line = program.plan().splitlines()[0]
    assert line.startswith("steps 0 to 4: one executable of reference:0; 4 of 5 results stay in it")


def test_before_the_first_run_nothing_is_compiled():
    x, y = randn(3, 5), randn(3, 5)
    program = tenon.export(chain, (x, y))
    assert "it is compiled when the program runs again" in program.plan()
    program(x, y)  # looked at, step by step
    assert "it is compiled when the program runs again" in program.plan()
    program(x, y)
    assert "it is compiled" not in program.plan()


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_dtypes(dtype):
    check(chain, randn(7, 9, dtype=dtype), randn(7, 9, dtype=dtype))


@pytest.mark.parametrize("shape", [(), (1,), (5,), (2, 3, 4), (300, 300)])
def test_shapes(shape):
    check(chain, randn(*shape), randn(*shape))


def test_operands_that_are_repeated():
    check(lambda x, row, column: (x + row) * column + row * 2, randn(6, 5), randn(5), randn(6, 1))


def test_numbers_of_every_kind():
    check(lambda x: (x * True + 3) * 0.1 + 1e-3, randn(40))
    x = tenon.arange(-5, 5).to(DEVICE)
    program = tenon.export(lambda x: (x + 7) * 3 + 2, (x,))
    for _ in range(3):
        np.testing.assert_array_equal(program(x).cpu().numpy(), (np.arange(-5, 5) + 7) * 3 + 2)


def test_a_layer_of_weights_by_reference():
    weight, bias = randn(24, 40), randn(40)
    program = check(lambda x: (x @ weight + bias).maximum(0.0), randn(17, 24))
    weight.fill_(0.5)  # the program reads weights as they are
    x = randn(17, 24)
    want = (x @ weight + bias).maximum(0.0)
    np.testing.assert_array_equal(program(x).cpu().numpy(), want.cpu().numpy())


def test_a_frozen_layer():
    weight, bias = randn(24, 40), randn(40)
    function = lambda x: (x @ weight + bias).maximum(0.0)
    x = randn(17, 24)
    want = bits(function(x))
    program = tenon.export(function, (x,)).freeze()
    weight.fill_(0.5)
    for _ in range(3):
        np.testing.assert_array_equal(bits(program(x)), want)
    assert "one executable" in program.plan()
    for leaf in program.leaves.values():  # constants, which the executable has copied
        leaf.fill_(0.25)
    weight.fill_(0.25)
    bias.fill_(0.25)
    np.testing.assert_array_equal(bits(program(x)), bits(function(x)))


def attention(q, k, v):
    scores = (q @ k.transpose(-2, -1)) * 0.375
    weights = (scores - scores.max(-1, keepdim=True)).exp()
    return (weights / weights.sum(-1, keepdim=True)) @ v


def test_attention():
    q, k, v = (randn(2, 3, 16, 8) for _ in range(3))
    program = tenon.export(attention, (q, k, v))
    for _ in range(4):
        np.testing.assert_array_equal(bits(program(q, k, v)), bits(attention(q, k, v)))
    assert program.plan().count("one executable") >= 2, program.plan()


def test_heads_are_split_and_joined():
    def function(x, w):
        y = (x @ w).reshape(4, 6, 2, 5).transpose(1, 2)
        return (y @ y.transpose(-2, -1) @ y).transpose(1, 2).reshape(4, 6, 10) * 0.5

    x, w = randn(4, 6, 10), randn(10, 10)
    program = tenon.export(function, (x, w))
    for _ in range(4):
        np.testing.assert_array_equal(bits(program(x, w)), bits(function(x, w)))
    assert "one executable" in program.plan()


def test_parts_with_others_between():
    program = check(lambda x, y: ((x + y) * 2).sin() * y + x, randn(20), randn(20), claimed=2)
    lines = program.plan().splitlines()
    assert lines[0].startswith("steps 0 to 1:") and lines[1].startswith("steps 3 to 4:")


def test_several_results():
    def function(x, y):
        a = x + y
        b = a * x
        return a, b, b.maximum(a)

    check(function, randn(8, 8), randn(8, 8))


def test_results_are_tensors_of_their_own():
    x, y = randn(9), randn(9)
    program = tenon.export(chain, (x, y))
    for _ in range(2):
        program(x, y)
    first = program(x, y)
    kept = bits(first)
    second = program(x + 1, y)
    assert first.data_ptr() != second.data_ptr()
    np.testing.assert_array_equal(bits(first), kept)


def test_views_that_callers_see_share_memory():
    def function(x):
        y = x * 2 + 1
        return y, y.transpose(0, 1)

    x = randn(4, 6)
    program = tenon.export(function, (x,))
    for _ in range(3):
        y, view = program(x)
        assert view.strides == (1, 6) and view.data_ptr() == y.data_ptr()
        y.fill_(3.0)
        assert (view.cpu().numpy() == 3).all()
    assert "one executable" in program.plan()


def test_writes_in_place_between_parts():
    state = randn(6, 6)

    def function(x):
        y = x * 2 + state
        state.add_(y)
        return state * y + 1

    twin, program = state.clone(), tenon.export(function, (randn(6, 6),))
    twin.copy_(state)
    for _ in range(4):
        x = randn(6, 6)
        y = x * 2 + twin
        twin.add_(y)
        want = bits(twin * y + 1)
        np.testing.assert_array_equal(bits(program(x)), want)
        np.testing.assert_array_equal(bits(state), bits(twin))
    assert program.plan().count("one executable") == 2, program.plan()


def test_random_operators_and_copies_are_left_out():
    program = tenon.export(lambda x: (x + tenon.rand(5, device=DEVICE)) * 2, (randn(5),))
    assert "steps 1 to 2: one executable" in program.plan(), program.plan()


def test_tensors_that_lie_in_another_way():
    x, y = randn(6, 6), randn(6, 6)
    program = tenon.export(chain, (x, y))
    for _ in range(3):
        program(x, y)
    for other in (randn(6, 6).transpose(0, 1), randn(6, 12)[:, ::2], randn(6, 6)):
        got, want = program(other, y), chain(other, y)
        np.testing.assert_array_equal(bits(got), bits(want))
        assert got.strides == want.strides


def test_results_that_lie_in_another_way():
    x = randn(6, 4).transpose(0, 1)
    function = lambda x: x * 2 + 1
    program = tenon.export(function, (x,))
    for _ in range(3):
        got, want = program(x), function(x)
        np.testing.assert_array_equal(bits(got), bits(want))
        assert got.strides == want.strides
    plan = program.plan()
    assert "one executable" in plan or "run by kernels: %" in plan and "is not row-major" in plan


def test_gradients_pass_step_by_step():
    weight = randn(5, 3)
    with tenon.enable_grad():
        weight.requires_grad = True
        function = lambda x: ((x @ weight) * 2).maximum(0.0).sum()
        x = randn(7, 5)
        program = tenon.export(function, (x,))
        for _ in range(3):
            program(x).backward()
            got = weight.grad.cpu().numpy()
            weight.grad = None
            function(x).backward()
            np.testing.assert_array_equal(got, weight.grad.cpu().numpy())
            weight.grad = None
    for _ in range(3):  # and as an executable where no gradient is recorded
        np.testing.assert_array_equal(bits(program(x)), bits(function(x)))
    assert "one executable" in program.plan()


def test_a_training_step():
    def make():
        w1, w2 = (tenon.full([8, 8], 0.1 * i, device=DEVICE) for i in (1, 2))
        for weight in (w1, w2):
            weight.requires_grad = True

        def step(x):
            loss = (((x @ w1).maximum(0.0) @ w2) * 0.5).mean()
            for weight, grad in zip((w1, w2), tenon.autograd.grad(loss, (w1, w2)), strict=True):
                with tenon.no_grad():
                    weight.sub_(grad * 0.1)
            return loss

        return step, (w1, w2)

    with tenon.enable_grad():
        (step, weights), (twin, others) = make(), make()
        compiled = tenon.compile(step)
        for _ in range(6):
            x = randn(4, 8)
            np.testing.assert_array_equal(bits(compiled(x).detach()), bits(twin(x).detach()))
            for a, b in zip(weights, others, strict=True):
                np.testing.assert_array_equal(bits(a.detach()), bits(b.detach()))
    assert "executable of reference:0" in compiled.explain(), compiled.explain()


def test_layers_see_the_steps():
    x, y = randn(9), randn(9)
    program = tenon.export(chain, (x, y))
    for _ in range(3):
        program(x, y)
    with tenon.profiler.profile() as profile:
        program(x, y)
    assert "exp" in str(profile.key_averages())


def test_streams():
    x, y = randn(64, 64), randn(64, 64)
    program = tenon.export(chain, (x, y))
    want = bits(chain(x, y))
    for _ in range(2):
        program(x, y)
    streams = [tenon.Stream(DEVICE) for _ in range(2)]
    results = []
    for i in range(8):
        with streams[i % 2]:
            results.append(program(x, y))
    for stream in streams:
        stream.synchronize()
    for result in results:
        np.testing.assert_array_equal(bits(result), want)


def test_switched_off(monkeypatch):
    monkeypatch.setenv("TENON_CLAIMS", "0")
    program = check(chain, randn(5), randn(5), claimed=0)
    assert "executable" not in program.plan()


def test_saved_and_loaded(tmp_path):
    x, y = randn(5, 5), randn(5, 5)
    tenon.export(chain, (x, y)).save(tmp_path / "chain.tenon")
    program = tenon.jit.load(tmp_path / "chain.tenon")
    for _ in range(3):
        np.testing.assert_array_equal(bits(program(x, y)), bits(chain(x, y)))
    assert "one executable" in program.plan()


def test_sizes_that_calls_choose():
    x, y = randn(6, 5), randn(6, 5)
    rows = tenon.Dim("rows", min=2, max=64)
    program = tenon.export(chain, (x, y), dynamic_shapes=[{0: rows}, {0: rows}])
    for size in (3, 3, 3, 9, 9, 9):
        x, y = randn(size, 5), randn(size, 5)
        np.testing.assert_array_equal(bits(program(x, y)), bits(chain(x, y)))


FAULTS = pathlib.Path(os.environ.get("TENON_BUILD_DIR", "build/release")) / (
    "conformance/reference/faults"
)


def run_with(fault, code):
    """Runs code in a process in which the device is one that is wrong; returns what it printed."""
    path = (FAULTS / f"libtenon_fault_{fault}.so").absolute()
    if not path.exists():
        pytest.skip(
            f"TENON_BUILD_DIR has no {path.name}"
        )  # faulty plugins are a target of their own
    preface = f"""
        import numpy as np, tenon
        tenon.load_plugin({str(path)!r})
        tenon.set_grad_enabled(False)
        def function(x, y):
            return ((x + y) * x).maximum(0.25) * y
        x, y = (tenon.randn(6, 7).to("reference:0") for _ in range(2))
        want = function(x, y).cpu().numpy()
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(preface) + textwrap.dedent(code)],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        ("executable_create_fails", "the compiler ended with code 3"),
        ("executable_reconsiders", "too many values for its memory"),
    ],
)
def test_a_compiler_that_fails_leaves_the_steps(fault, reason):
    text = run_with(
        fault,
        """
        program = tenon.export(function, (x, y))
        for _ in range(3):
            np.testing.assert_array_equal(program(x, y).cpu().numpy(), want)
        print(program.plan())
        """,
    )
    first, second = text.splitlines()[:2]
    assert first == f"steps 0 to 3: claimed by reference:0, and run by kernels: {reason}"
    assert second.startswith("steps 0 to 3: one by one over float32[6, 7] reference:0: no kernel")


def test_a_run_that_fails_is_done_step_by_step():
    text = run_with(
        "executable_run_fails",
        """
        program = tenon.export(function, (x, y))
        for _ in range(5):
            np.testing.assert_array_equal(program(x, y).cpu().numpy(), want)
        print(program.plan())
        """,
    )
    assert "a run failed, and kernels ran its steps: no room for its descriptors" in text


def test_other_bits_are_used_where_the_user_allows_them():
    text = run_with(
        "executable_other_bits",
        """
        for numerics in ("exact", "ulp", "fast"):
            program = tenon.export(function, (x, y), numerics=numerics)
            for _ in range(3):
                got = program(x, y).cpu().numpy()
            print(numerics, (got == want).all())
            print(program.plan())
        """,
    )
    exact, ulp, fast = (
        text.split("ulp ")[0],
        text.split("ulp ")[1].split("fast ")[0],
        text.split("fast ")[-1],
    )
    for text in (exact.removeprefix("exact "), ulp):
        assert text.startswith("True\n")
        assert 'other bits than the steps\' own kernels give, which numerics="fast" allows' in text
    assert fast.startswith("False\n") and "one executable of reference:0" in fast


def test_a_plugin_whose_executables_live_stays_loaded():
    code = f"""
        import tenon
        tenon.load_plugin({str(PATH)!r})
        tenon.set_grad_enabled(False)
        def function(x):
            return (x + 1) * 2
        x = tenon.ones(4).to("reference:0")
        program = tenon.export(function, (x,))
        for _ in range(2):
            program(x)
        del x
        try:
            tenon.plugins.unload("reference")
        except RuntimeError as error:
            assert "1 user of its `subgraph` group" in str(error), error
        else:
            raise AssertionError("unloaded")
        del program
        tenon.plugins.unload("reference")
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(code)], check=True, timeout=120)


def test_a_device_in_another_process_claims_nothing():
    code = f"""
        import numpy as np, tenon
        tenon.load_plugin({str(PATH)!r}, isolated=True)
        tenon.set_grad_enabled(False)
        def function(x):
            return (x + 1) * 2
        x = tenon.ones(4).to("reference:0")
        program = tenon.export(function, (x,))
        for _ in range(3):
            np.testing.assert_array_equal(program(x).cpu().numpy(), [4, 4, 4, 4])
        assert "executable" not in program.plan()
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(code)], check=True, timeout=120)


def test_an_executable_is_part_of_a_device_graph():
    x, y = randn(16, 16), randn(16, 16)
    program = tenon.export(chain, (x, y))
    for _ in range(2):
        program(x, y)
    graph = tenon.Graph(DEVICE)
    with graph.capture():
        result = program(x, y)
    for _ in range(3):
        x.copy_(randn(16, 16))
        graph.replay()
        np.testing.assert_array_equal(bits(result), bits(chain(x, y)))


def test_threads_run_one_program():
    x, y = randn(32, 32), randn(32, 32)
    program, want = tenon.export(chain, (x, y)), bits(chain(x, y))
    failures = []

    def work():
        with tenon.no_grad():
            for _ in range(20):
                if not np.array_equal(bits(program(x, y))[0], want[0]):
                    failures.append("other bits")

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert "one executable" in program.plan()
