# SPDX-License-Identifier: Apache-2.0
"""tenon.compile: awkward programs give on every call what the function gives; and what it says of them."""

import ctypes
import threading

import awkward_state  # noqa: F401 - registers its programs
import awkward_training  # noqa: F401
import numpy as np
import pytest
import tenon
from awkward_programs import PROGRAMS, rand
from tenon import nn

CALLS = 5


def tensors_of(value):
    if isinstance(value, tenon.Tensor):
        return [value.detach().cpu().to(tenon.float64).numpy(), value.dtype, value.shape]
    if isinstance(value, dict):
        return [(k, tensors_of(v)) for k, v in value.items()]
    if isinstance(value, (tuple, list)):
        return [type(value), *(tensors_of(v) for v in value)]
    return value


def outcome(call, unpack):
    try:
        return tensors_of(unpack(call()))
    except ValueError as error:
        return repr(error)


def run(factory, wrap):
    """The results of every call, and the state at the end."""
    function = factory()
    wrapped = wrap(function)
    tenon.manual_seed(1)
    results = []
    unpack = getattr(function, "unpack", lambda value: value)
    for i in range(CALLS):
        x = rand(3, 4, seed=100 + i)
        args = (x, 0)
        if hasattr(function, "driver"):
            args = (*function.driver(x, i)[1:], 0)[:2]
        results.append(outcome(lambda args=args: wrapped(*args), unpack))
        results.append(tensors_of(x))
    state = getattr(function, "state", list)
    return [*results, tensors_of(state())], wrapped


def assert_equal(a, b):
    if isinstance(a, np.ndarray):
        np.testing.assert_array_equal(a, b)
    elif isinstance(a, (tuple, list)):
        assert len(a) == len(b)
        for x, y in zip(a, b):
            assert_equal(x, y)
    else:
        assert a == b


@pytest.mark.parametrize("mode", ["", "check"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_every_call_gives_what_the_function_gives(name, mode, monkeypatch):
    factory, compiles = PROGRAMS[name]
    want, _ = run(factory, lambda function: function)
    monkeypatch.setenv("TENON_GRAPH", mode)
    got, compiled = run(factory, tenon.compile)
    assert_equal(got, want)
    assert bool(compiled.programs) == compiles, compiled.explain()


def test_there_are_enough_awkward_programs():
    assert len(PROGRAMS) >= 150


def test_the_third_call_runs_no_python():
    calls = ctypes.c_int(0)  # whose value is not seen, as that of a list would be

    @tenon.compile
    def function(x):
        calls.value += 1
        return x + 1

    for _ in range(5):
        function(rand(2))
    assert calls.value == 2
    for _ in range(5):
        function(rand(3))
    assert calls.value == 4
    assert "float32[2]): 5 calls, a program of 1 steps" in function.explain()
    assert len(function.programs) == 2


def test_the_reason_names_file_and_line():
    compiled = tenon.compile(lambda x: x * 2 if x.sum().item() > 0 else x)
    compiled(rand(2))
    assert "without a program: export: item()" in compiled.explain()
    assert "test_compile.py:" in compiled.explain()


def test_beyond_the_limit_the_function_runs():
    compiled = tenon.compile(lambda x, n: x * n, limit=2)
    for n in (1, 2, 3, 3, 3):
        assert compiled(tenon.ones([1]), n).item() == n
    assert "3 calls without a program: there are 2 signatures already" in compiled.explain()


def test_modules_and_methods():
    model = nn.Linear(4, 2)
    compiled = tenon.compile(model)
    for i in range(4):
        x = rand(3, 4, seed=i)
        np.testing.assert_array_equal(compiled(x).detach().numpy(), model(x).detach().numpy())
    assert list(compiled.programs[0].leaves) == ["weight", "bias"]

    class Scaled:
        def __init__(self, scale):
            self.scale = scale

        @tenon.compile
        def run(self, x):
            return x * self.scale

    two, three = Scaled(2.0), Scaled(3.0)
    for _ in range(4):
        assert two.run(tenon.ones([1])).item() == 2 and three.run(tenon.ones([1])).item() == 3
    two.scale = 5.0
    assert two.run(tenon.ones([1])).item() == 5


def test_gradient_mode_is_part_of_the_signature():
    w = rand(2, 2)
    w.requires_grad = True
    compiled = tenon.compile(lambda x: x @ w)
    for _ in range(3):
        with tenon.no_grad():
            assert not compiled(rand(1, 2)).requires_grad
    for _ in range(4):
        assert compiled(rand(1, 2)).requires_grad


def test_arguments_that_share_memory_run_the_function():
    compiled = tenon.compile(lambda x, y: tenon.add(x, 1.0, out=x) + y)
    for _ in range(3):
        x = tenon.zeros([4])
        assert compiled(x, x[:]).numpy().tolist() == [2.0] * 4
    assert "two arguments share memory" in compiled.explain()


def test_autocast_around_it_runs_the_function():
    compiled = tenon.compile(lambda x: x @ x)
    for _ in range(3):
        with tenon.amp.autocast():
            assert compiled(rand(2, 2)).dtype == tenon.bfloat16
    assert "autocast region" in compiled.explain()


def test_threads():
    compiled = tenon.compile(lambda x: (x * 2 + 1).exp())
    wrong = []

    def work(seed):
        for i in range(50):
            x = rand(8, seed=seed * 100 + i)
            if not np.array_equal(compiled(x).numpy(), (x * 2 + 1).exp().numpy()):
                wrong.append((seed, i))

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong and compiled.programs


def test_check_finds_what_the_signature_does_not_show(monkeypatch):
    monkeypatch.setenv("TENON_GRAPH", "check")

    scale = ctypes.c_double(2.0)
    compiled = tenon.compile(lambda x: x * scale.value)
    for _ in range(3):
        compiled(rand(2))
    scale.value = 3.0
    with pytest.raises(RuntimeError, match="no longer does what its program does"):
        compiled(rand(2))


def test_many_shapes_make_few_programs_and_no_other_results():
    tenon.manual_seed(0)
    model = tenon.nn.LSTM(8, 8, batch_first=True)
    compiled = tenon.compile(lambda x: model(x)[0])
    shapes = np.random.default_rng(0).integers(1, 9, (150, 2))
    with tenon.no_grad():
        for batch, length in shapes.tolist():
            x = tenon.randn([batch, length, 8])
            assert compiled(x).numpy().tobytes() == model(x)[0].numpy().tobytes()
    assert 0 < len(compiled.programs) <= 8
    assert "there are 8 signatures already" in compiled.explain()


def test_modes(monkeypatch):
    calls = []
    monkeypatch.setenv("TENON_GRAPH", "off")
    compiled = tenon.compile(lambda x: (calls.append(0), x + 1)[1])
    for _ in range(4):
        compiled(rand(2))
    assert len(calls) == 4 and not compiled.programs
    monkeypatch.setenv("TENON_GRAPH", "sometimes")
    with pytest.raises(
        ValueError, match="TENON_GRAPH: expected 'check', 'off' or nothing, got 'so"
    ):
        tenon.compile(abs)


def test_what_is_no_function_is_refused():
    with pytest.raises(TypeError, match="compile: expected a function or a module, got 3"):
        tenon.compile(3)
    with pytest.raises(ValueError, match="limit of at least 1, got 0"):
        tenon.compile(limit=0)(abs)


def test_known_signatures_in_turns():
    @tenon.compile
    def function(x, y):
        return {"sum": x + y, "parts": (x * 2, [y, None], "text")}

    cases = [(tenon.ones(n), rand(n)) for n in (2, 3, 4)]
    for _ in range(6):
        for x, y in cases:
            result = function(x, y)
            assert list(result) == ["sum", "parts"]
            first, (second, nothing), text = result["parts"]
            assert (nothing, text, type(result["parts"])) == (None, "text", tuple)
            np.testing.assert_array_equal(result["sum"].numpy(), (x + y).numpy())
            np.testing.assert_array_equal(first.numpy(), (x * 2).numpy())
            np.testing.assert_array_equal(second.numpy(), y.numpy())
    assert function.explain().count(": 6 calls, a program of") == 3


def test_writing_programs_look_at_every_call_whether_arguments_overlap():
    @tenon.compile
    def function(x, y):
        x.add_(1)
        return x + y

    memory, y = tenon.zeros(8), tenon.ones(4)
    for _ in range(4):
        function(memory[:4], y)
    np.testing.assert_array_equal(memory.numpy(), [4] * 4 + [0] * 4)
    # The same description, but the second argument sees what the function writes.
    np.testing.assert_array_equal(function(memory[:4], memory[2:6]).numpy(), [10, 10, 5, 5])
    np.testing.assert_array_equal(memory.numpy(), [5] * 4 + [0] * 4)
    assert "two arguments share memory" in function.explain()


def test_steps_have_their_lines_also_in_backward_passes():
    def function(x):
        x.grad = None
        y = (x * 2).exp()
        loss = y.sum()
        loss.backward()
        return x.grad + 1

    first = function.__code__.co_firstlineno
    program = tenon.compile(function)
    x = tenon.ones(3, requires_grad=True)
    for _ in range(3):
        program(x)
    (recorded,) = program.programs
    lines = {}
    for line in str(recorded).splitlines():
        if f'"{__file__}":' in line:
            lines.setdefault(int(line.rpartition(":")[2]) - first, []).append(line)
    assert set(lines) <= {2, 3, 4, 5}
    assert any("exp" in line for line in lines[2])
    assert any("multiply" in line for line in lines[4])  # of the backward pass


def test_what_compiled_functions_hold_is_let_go():
    import gc
    import weakref

    def make():
        def function(x):
            return x + 1 if function is not None else x

        function.it = tenon.compile(function)
        return function

    function = make()
    for _ in range(4):
        function.it(tenon.ones(2))
    gone = weakref.ref(function)
    del function
    gc.collect()
    assert gone() is None
