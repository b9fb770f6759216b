# SPDX-License-Identifier: Apache-2.0
"""tenon.compile: small awkward programs give on every call what the function gives; and what it says of them."""

import collections
import math
import random
import threading

import numpy as np
import pytest
import tenon
from tenon import nn, optim
from tenon.nn import functional as F

CALLS = 5
PROGRAMS = {}  # name: (a factory of a function and its state, whether it becomes a program)
SCALE = 2.0
TABLE = {"scale": 3.0}


def rand(*shape, seed=0):
    return tenon.tensor(np.random.default_rng(seed).standard_normal(shape).astype("float32"))


def program(compiles):
    """Register a factory: it returns a function of (x, index of the call)."""

    def register(factory):
        PROGRAMS[factory.__name__] = factory, compiles
        return factory

    return register


@program(True)
def chain():
    return lambda x, i: ((x * 2 + 1).relu() - 0.5).exp().sum(1)


@program(True)
def views_and_writes():
    def function(x, i):
        y = x.clone()
        y[0] = 1.0
        y[:, 1:] += 2
        z = y.T
        z[0] *= 3
        return y, z

    return function


@program(True)
def write_into_the_argument():
    def function(x, i):
        tenon.add(x, 1.0, out=x)
        return x * 2

    return function


@program(True)
def dict_order():
    def function(x, i):
        parts = {"b": x + 1, "a": x - 1}
        return {"first": next(iter(parts.values())), "all": [parts[k] for k in sorted(parts)]}

    return function


@program(True)
def closure_number():
    scale = 4.0
    return lambda x, i: x * scale


@program(False)
def closure_number_changes_each_time():
    count = 0

    def function(x, i):
        nonlocal count
        count += 1
        return x * count

    return function


@program(True)
def closure_list_of_numbers_grows_late():
    factors = [1.0, 2.0]

    def function(x, i):
        for factor in factors:
            x = x * factor
        return x

    def driver(x, i):
        if i == 3:
            factors.append(5.0)
        return function, x

    function.driver = driver
    return function


@program(True)
def global_number_changes():
    def function(x, i):
        return x * SCALE

    def driver(x, i):
        globals()["SCALE"] = 2.0 if i < 3 else 7.0
        return function, x

    function.driver = driver
    return function


@program(True)
def global_dict_changes():
    def function(x, i):
        return x * TABLE["scale"]

    def driver(x, i):
        TABLE["scale"] = 3.0 if i < 3 else 0.25
        return function, x

    function.driver = driver
    return function


@program(True)
def helper_function_with_a_global():
    def helper(x):
        return x + SCALE

    return lambda x, i: helper(x) * helper(x)


@program(True)
def closure_tensor_is_replaced():
    box = {"w": rand(3, 4, seed=1)}

    def function(x, i):
        return x * box["w"]

    def driver(x, i):
        if i == 3:
            box["w"] = rand(3, 4, seed=2)
        return function, x

    function.driver = driver
    return function


@program(True)
def closure_tensor_is_written():
    w = rand(3, 4, seed=1)

    def function(x, i):
        tenon.multiply(w, 1.5, out=w)
        return x + w

    return function


@program(False)
def branch_on_data():
    return lambda x, i: x * 2 if float(x.sum().item()) > 0 else x - 1


@program(False)
def loop_on_data():
    def function(x, i):
        while float(x.abs().max().item()) > 0.1:
            x = x / 2
        return x

    return function


@program(False)
def shape_on_data():
    return lambda x, i: x[x > 0]


@program(True)
def branch_on_shape():
    return lambda x, i: x.sum() if x.shape[0] > 2 else x * 2


@program(False)
def branch_on_an_argument():
    """Every call has another number, and so a signature of its own."""

    def function(x, i):
        return x + i

    def driver(x, i):
        return function, x, i

    function.driver = driver
    return function


@program(False)
def random_of_python():
    generator = random.Random(0)
    return lambda x, i: x * generator.random()


@program(True)
def random_operators():
    return lambda x, i: x + tenon.normal([3, 4]) * tenon.uniform([4])


@program(False)
def through_numpy():
    return lambda x, i: tenon.tensor(np.tanh(x.numpy())) + x


@program(False)
def printing_reads_data():
    return lambda x, i: (str(x * 2), x + 1)[1]


@program(True)
def constant_from_a_list():
    return lambda x, i: x + tenon.tensor([1.0, 2.0, 3.0, 4.0])


@program(True)
def constant_from_numpy():
    table = np.arange(4, dtype=np.float32)
    return lambda x, i: x + tenon.tensor(table)


@program(True)
def comprehension():
    return lambda x, i: sum((x[j] * j for j in range(3)), tenon.zeros([4]))


@program(False)
def generator_function():
    def function(x, i):
        yield x + 1
        yield x * 2

    return lambda x, i: list(function(x, i)) if i < 99 and x.sum().item() is not None else None


@program(True)
def recursion():
    def power(x, n):
        return x if n == 0 else x * power(x, n - 1)

    return lambda x, i: power(x, 4)


@program(True)
def results_of_plain_values():
    return lambda x, i: {"y": x + 1, "n": 3, "name": "ok", "none": None, "pair": (x, 2.5)}


@program(False)
def result_is_an_object():
    class Box:
        def __init__(self, value):
            self.value = value

    def function(x, i):
        return Box(x * 2)

    function.unpack = lambda box: box.value
    return function


@program(False)
def result_number_changes():
    calls = []

    def function(x, i):
        calls.append(0)
        return x * 2, len(calls)

    return function


@program(True)
def argument_returned_as_it_is():
    return lambda x, i: (x, x.detach(), x.reshape(-1))


@program(True)
def nothing_returned():
    state = tenon.zeros([3, 4])

    def function(x, i):
        tenon.add(state, x, out=state)

    function.state = lambda: [state]
    return function


@program(True)
def exception_at_the_end_of_some_calls():
    limit = [10]

    def function(x, i):
        y = x * 2
        if limit[0] < 3:
            raise ValueError("too small")
        return y

    def driver(x, i):
        limit[0] = 1 if i == 1 else 10
        return function, x

    function.driver = driver
    return function


@program(True)
def module_in_training_and_not():
    tenon.manual_seed(3)
    model = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 2))

    def function(x, i):
        return model(x)

    def driver(x, i):
        model.train(i < 3)
        return function, x

    function.driver = driver
    function.state = lambda: [t for t in model.state_dict().values() if isinstance(t, tenon.Tensor)]
    return function


@program(True)
def module_attribute_changes():
    class Scale(nn.Module):
        def __init__(self):
            super().__init__()
            self.factor = 2.0
            self.inner = nn.Linear(4, 4, bias=False)

        def forward(self, x):
            return self.inner(x) * self.factor

    tenon.manual_seed(4)
    module = Scale()

    def function(x, i):
        return module(x)

    def driver(x, i):
        module.factor = 2.0 if i < 3 else 9.0
        return function, x

    function.driver = driver
    return function


@program(True)
def parameter_is_replaced():
    tenon.manual_seed(5)
    module = nn.Linear(4, 2)

    def function(x, i):
        return module(x)

    def driver(x, i):
        if i == 3:
            module.weight = nn.Parameter(rand(2, 4, seed=9))
        return function, x

    function.driver = driver
    return function


@program(True)
def training_step():
    tenon.manual_seed(6)
    model = nn.Sequential(nn.Linear(4, 8), nn.GELU(), nn.Linear(8, 2))
    optimizer = optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    target = rand(3, 2, seed=7)

    def function(x, i):
        optimizer.zero_grad()
        loss = F.mse_loss(model(x), target)
        loss.backward()
        optimizer.step()
        return loss.detach()

    function.state = lambda: list(model.state_dict().values())
    return function


@program(True)
def learning_rate_changes():
    tenon.manual_seed(6)
    model = nn.Linear(4, 2)
    optimizer = optim.SGD(model.parameters(), lr=0.1)

    def function(x, i):
        optimizer.zero_grad()
        model(x).square().sum().backward()
        optimizer.step()

    def driver(x, i):
        optimizer.param_groups[0]["lr"] = 0.1 if i < 3 else 0.001
        return function, x

    function.driver = driver
    function.state = lambda: list(model.state_dict().values())
    return function


@program(False)
def adam_counts_in_python():
    tenon.manual_seed(6)
    model = nn.Linear(4, 2)
    optimizer = optim.Adam(model.parameters(), lr=0.1)

    def function(x, i):
        optimizer.zero_grad()
        model(x).square().sum().backward()
        optimizer.step()

    function.state = lambda: list(model.state_dict().values())
    return function


@program(False)
def gradients_add_up():
    tenon.manual_seed(6)
    model = nn.Linear(4, 2)

    def function(x, i):
        model(x).square().sum().backward()

    function.state = lambda: [p.grad for p in model.parameters()]
    return function


@program(True)
def gradients_through_the_result():
    w = rand(4, 2, seed=3)
    w.requires_grad = True

    def function(x, i):
        return (x @ w).tanh()

    def after(y):
        w.grad = None
        (y * y).sum().backward()
        return w.grad

    function.unpack = after
    return function


@program(True)
def without_gradients_inside():
    w = rand(4, 2, seed=3)
    w.requires_grad = True

    def function(x, i):
        with tenon.no_grad():
            y = x @ w
        return y + (x @ w).detach()

    return function


@program(False)
def custom_function():
    class Double(tenon.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            return grad * 3

    w = rand(3, 4, seed=3)
    w.requires_grad = True

    def function(x, i):
        return Double.apply(w) * x

    def after(y):
        w.grad = None
        y.sum().backward()
        return w.grad

    function.unpack = after
    return function


@program(True)
def hook_on_a_module():
    tenon.manual_seed(8)
    module = nn.Linear(4, 4)
    module.register_forward_hook(lambda module, args, result: result * 2)
    return lambda x, i: module(x)


@program(True)
def hook_is_added_late():
    tenon.manual_seed(8)
    module = nn.Linear(4, 4)

    def function(x, i):
        return module(x)

    def driver(x, i):
        if i == 3:
            module.register_forward_hook(lambda module, args, result: result * 2)
        return function, x

    function.driver = driver
    return function


@program(True)
def default_argument():
    def function(x, i, scale=2.0):
        return x * scale

    return function


@program(True)
def control_flow_of_programs():
    return lambda x, i: tenon.jit.cond(x.sum() > 0, lambda x: x * 2, lambda x: x - 1, x)


@program(True)
def dropout():
    drop = nn.Dropout(0.5)
    return lambda x, i: drop(x)


@program(True)
def integers_and_comparisons():
    return lambda x, i: tenon.where(x > 0, x, -x).argmax(1)


@program(True)
def a_compiled_function_inside():
    inner = tenon.compile(lambda x: x * 3 + 1)
    return lambda x, i: inner(x) - inner(x + 1)


@program(True)
def unused_work():
    def function(x, i):
        x.exp().sum()
        return x + 1

    return function


@program(True)
def equal_work_twice():
    return lambda x, i: (x * 2).exp() + (x * 2).exp()


@program(True)
def the_argument_is_also_in_the_closure():
    """Until the fourth call, from which on a program is right."""
    box = []

    def function(x, i):
        return x * box[0]

    def driver(x, i):
        if i < 3:
            box[:] = [x]
        return function, x

    function.driver = driver
    return function


@program(True)
def mathematics_of_python():
    return lambda x, i: x * math.sqrt(2) + len("abc") ** 2


@program(True)
def several_dtypes():
    return lambda x, i: (x.to(tenon.bfloat16) * 2, x.to(tenon.int32) + 1, x > 0)


@program(True)
def empty_and_zero_dimensional():
    return lambda x, i: (x[:0].sum(), x.sum() * 2, tenon.zeros([0, 3]).mean(0))


@program(False)
def seed_inside():
    def function(x, i):
        tenon.manual_seed(5)
        return x + tenon.normal([4])

    return function


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
    assert len(PROGRAMS) >= 50


def test_the_third_call_runs_no_python():
    calls = collections.deque()  # a list that grows would be another signature each time

    @tenon.compile
    def function(x):
        calls.append(x.shape)
        return x + 1

    for _ in range(5):
        function(rand(2))
    assert len(calls) == 2
    for _ in range(5):
        function(rand(3))
    assert len(calls) == 4
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

    class Settings:
        def __init__(self):
            self.inner = {"deep": {"deeper": {"scale": [2.0]}}}

    settings = Settings()
    compiled = tenon.compile(lambda x: x * settings.inner["deep"]["deeper"]["scale"][0])
    for _ in range(3):
        compiled(rand(2))
    settings.inner["deep"]["deeper"]["scale"][0] = 3.0
    with pytest.raises(RuntimeError, match="no longer does what its program does"):
        compiled(rand(2))


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
