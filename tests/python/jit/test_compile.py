# SPDX-License-Identifier: Apache-2.0
"""tenon.compile: awkward programs give on every call what the function gives; and what it says of them."""

import ctypes
import threading
import types

import awkward_attributes  # noqa: F401 - registers its programs
import awkward_containers  # noqa: F401
import awkward_interpreter  # noqa: F401
import awkward_numbers  # noqa: F401
import awkward_tensors  # noqa: F401
import awkward_training  # noqa: F401
import numpy as np
import pytest
import tenon
from awkward_programs import PROGRAMS, rand
from tenon import nn
from tenon.jit import bytecode

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


SCALE = 2.0


def test_a_state_that_another_thread_changes_belongs_to_its_own_program(monkeypatch):
    compiled = tenon.compile(lambda x: x * SCALE)
    x = tenon.ones([1])
    for _ in range(3):
        assert compiled(x).item() == SCALE == 2.0
    globals()["SCALE"] = float("2.0")  # an equal number, so that the call looks at the state
    key_of, waiting = type(compiled)._key, [True]

    def key_and_then_another_thread(*args):
        found = key_of(*args)
        if waiting:  # another thread calls it, in another state, before this call goes on
            waiting.clear()
            globals()["SCALE"] = 3.0
            thread = threading.Thread(target=lambda: compiled(x))
            thread.start()
            thread.join()
        return found

    monkeypatch.setattr(type(compiled), "_key", key_and_then_another_thread)
    compiled(x)
    assert not waiting
    try:
        for _ in range(3):
            assert compiled(x).item() == SCALE == 3.0
    finally:
        globals()["SCALE"] = 2.0


def test_a_state_that_threads_change_is_seen_by_the_next_call():
    scales = types.SimpleNamespace(scale=1.0)
    compiled = tenon.compile(lambda x: x * scales.scale, limit=4)
    x, wrong = tenon.ones([1]), []
    stop = threading.Event()

    def work():
        while not stop.is_set():
            compiled(x)

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for i in range(400):
        scales.scale = float(i % 3 + 1)
        if compiled(x).item() != scales.scale:
            wrong.append(i)
    stop.set()
    for thread in threads:
        thread.join()
    assert not wrong and compiled.programs


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


def test_programs_that_write_several_results_look_at_every_call_too():
    weight, velocity = tenon.ones(8), tenon.zeros(8)

    @tenon.compile
    def function(x):
        tenon.momentum_update(weight, x, velocity, lr=0.1, momentum=0.5, out=(weight, velocity))
        return weight + 0

    for _ in range(3):
        function(tenon.ones(8))
    (recorded,) = function.programs
    assert "momentum_update" in str(recorded)
    assert recorded._native.effects() == (True, False, False)
    function(weight)
    assert "an argument is also reached in another way" in function.explain()


def test_what_a_program_does_beside_its_results():
    x = tenon.ones(3, requires_grad=True)

    def gradient(x):
        x.grad = None
        (x * 2).sum().backward()
        return x.grad + 1

    def loop(x):
        return tenon.jit.while_loop(lambda y: y.sum() < 10, lambda y: (y * 2,), (x,))

    def own_memory(x):
        y = x * 2
        y[0] = 1.0
        return y * 2

    def inner_view(x):
        x.T[0].mul_(2)
        return x + 1

    effects = lambda f, x: tenon.export(f, x)._native.effects()
    assert effects(gradient, x) == (False, True, False)
    assert effects(loop, x.detach()) == (False, False, True)
    assert effects(own_memory, x.detach()) == (False, False, False)
    assert effects(inner_view, tenon.ones(2, 2)) == (True, False, False)


def test_gradients_of_one_argument_that_is_given_twice():
    @tenon.compile
    def function(x, y):
        x.grad = y.grad = None
        (x * 2 + y * 3).sum().backward()
        return x.grad + 0

    make = lambda: tenon.ones(2, requires_grad=True)
    for _ in range(4):
        assert function(make(), make()).numpy().tolist() == [2, 2]
    x = make()
    assert function(x, x).numpy().tolist() == [5, 5]


def test_functions_that_ask_whether_two_arguments_are_one():
    compiled = tenon.compile(lambda x, y: x * (2 if x is y else 3) + y)
    for n in (2, 0):
        x, y = tenon.ones(n), tenon.ones(n)
        for _ in range(4):
            assert compiled(x, y).numpy().tolist() == [4] * n
        assert compiled(x, x).numpy().tolist() == [3] * n
    assert "2 calls without a program: two arguments share memory" in compiled.explain()


def test_gradients_that_the_function_finds_are_part_of_the_signature():
    weight = tenon.ones(2, requires_grad=True)
    step = tenon.optim.SGD([weight], lr=1.0)
    compiled = tenon.compile(step.step)
    for scale in [1.0] * 5 + [4.0]:  # gradients that are equal, and made anew by each backward pass
        with tenon.no_grad():
            weight.fill_(0.0)
        step.zero_grad()
        (weight * scale).sum().backward()
        compiled()
        assert weight.detach().numpy().tolist() == [-scale] * 2
    compiled = tenon.compile(lambda x: x * 2 if weight.grad is None else x * 3)
    for grad, factor in [(None, 2.0)] * 4 + [(tenon.ones(2), 3.0)] * 4 + [(None, 2.0)]:
        weight.grad = grad
        assert compiled(tenon.ones([1])).item() == factor
    assert compiled.programs


def test_gradients_of_arguments_are_not_read_from_a_program():
    compiled = tenon.compile(lambda x: x.grad * 2)
    for value in [1.0] * 4 + [5.0]:
        x = tenon.ones([1], requires_grad=True)
        x.grad = tenon.full([1], value)
        assert compiled(x).item() == 2 * value
    assert "it reads .grad of an argument" in compiled.explain()


def test_arguments_that_mean_more_than_their_value():
    class Scale(float):
        pass

    compiled = tenon.compile(lambda x, scale: x * scale.factor)
    scale = Scale(1.0)
    for scale.factor in (2.0, 2.0, 2.0, 5.0):
        assert compiled(tenon.ones([1]), scale).item() == scale.factor
    assert "plain values, got Scale" in compiled.explain()
    compiled = tenon.compile(lambda x: x["p"] * (2 if type(x["p"]) is tenon.Tensor else 3))
    for make, factor in [(tenon.ones, 2)] * 4 + [(lambda n: nn.Buffer(tenon.ones(n)), 3)] * 4:
        assert compiled({"p": make(1)}).item() == factor
    compiled = tenon.compile(lambda x: x["p"] * sum(k is True for k in x))
    for key, factor in [(1, 0)] * 4 + [(True, 1)] * 4:
        assert compiled({"p": tenon.ones([1]), key: 0}).item() == factor


def nest(depth):
    value = tenon.ones([1])
    for _ in range(depth):
        value = [value]
    return value


def bottom(value):
    while isinstance(value, list):
        value = value[0]
    return value


def test_deep_nests():
    compiled = tenon.compile(lambda x: bottom(x) + 1)
    for depth in (3, 3, 3, 3000):
        assert compiled(nest(depth)).item() == 2
    deep = "expected containers that lie at most 200 deep in others, got deeper ones"
    assert f"1 calls without a program: {deep}" in compiled.explain()
    returns = tenon.compile(lambda x: nest(3000))
    for _ in range(4):
        assert bottom(returns(tenon.ones(1))).item() == 1
    assert deep in returns.explain()
    with pytest.raises(ValueError, match=deep):
        tenon.export(lambda x: bottom(x) + 1, (nest(3000),))
    with pytest.raises(ValueError, match=deep):
        tenon.export(lambda x: nest(3000), tenon.ones(1))
    program = tenon.export(lambda x: bottom(x) + 1, (nest(3),))
    with pytest.raises(ValueError, match=deep):
        program(nest(3000))
    cyclic = []
    cyclic.append(cyclic)
    with pytest.raises(ValueError, match="does one contain itself?"):
        tenon.export(lambda x: tenon.ones(1), (cyclic,))


def test_deep_nests_are_not_saved(tmp_path):
    with pytest.raises(ValueError, match="save: the containers lie too deep in others, or one"):
        tenon.save(nest(3000), tmp_path / "deep")
    assert not list(tmp_path.iterdir())


def test_functions_stay_as_they_are_in_a_python_that_is_not_known(monkeypatch):
    assert bytecode.refusal((3, 10)) == bytecode.refusal((3, 14)) == ""
    reason = "the code of functions cannot be read in cpython 3.15; expected CPython 3.10 to 3.14"
    assert bytecode.refusal((3, 15)).startswith(reason)
    assert "pypy 3.11" in bytecode.refusal((3, 11), "pypy")
    assert "3.9" in bytecode.refusal((3, 9))
    refusal = bytecode.refusal
    monkeypatch.setattr(bytecode, "refusal", lambda: refusal((3, 15)))
    compiled = tenon.compile(lambda x: x * SCALE)
    for _ in range(4):
        assert compiled(tenon.ones([1])).item() == SCALE
    assert f"4 calls without a program: {reason}" in compiled.explain()
    assert not compiled.programs


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


def test_an_argument_that_is_returned_is_the_callers_own():
    compiled = tenon.compile(lambda x, y: ({"x": x, "sum": x + y}, y))
    alone = tenon.compile(lambda x: x)
    exported = tenon.export(lambda x, y: [y, x * y], (tenon.ones(2), tenon.ones(2)))
    for _ in range(5):
        x, y = tenon.ones(2), tenon.nn.Parameter(tenon.ones(2))
        first, second = compiled(x, y)
        assert (
            first["x"] is x and second is y and first["sum"].detach().numpy().tolist() == [2.0, 2.0]
        )
        assert compiled(x, y=y)[1] is y
        assert alone(y) is y
        with tenon.no_grad():
            assert exported(x, y)[0] is y
    assert compiled.programs and alone.programs
