# SPDX-License-Identifier: Apache-2.0
"""tenon.export and tenon.jit: what a program holds, what it does when it is called, and what is
refused with a reason."""

import gc
import json
import os
import pathlib
import random
import re
import subprocess
import sys

import numpy as np
import pytest
import tenon
from tenon import nn
from tenon.nn import functional as F


def rand(*shape):
    return tenon.tensor(np.random.default_rng(len(shape)).standard_normal(shape).astype("float32"))


def same(a, b):
    return np.array_equal(a.detach().numpy(), b.detach().numpy())


def mlp():
    tenon.manual_seed(1)
    return nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))


# -- recording and running ----------------------------------------------------------------------------


def test_a_model_runs_on_other_data():
    model, x = mlp(), rand(2, 4)
    program = tenon.export(model, (x,))
    other = x * 3 - 1
    assert same(program(other), model(other))
    assert list(program.leaves) == ["0.weight", "0.bias", "2.weight", "2.bias"]


def test_weights_are_used_by_reference():
    model, x = mlp(), rand(2, 4)
    program = tenon.export(model, x)
    with tenon.no_grad():
        for parameter in model.parameters():
            parameter.mul_(2.0) if hasattr(parameter, "mul_") else tenon.multiply(
                parameter, 2.0, out=parameter
            )
    assert same(program(x), model(x))


def test_structures_of_arguments_and_results():
    def function(pair, scale, options):
        a, b = pair
        return {"sum": a + b * scale, "list": [a, (b, options["c"])], "n": 3}

    a, b, c = rand(2), rand(2) + 1, rand(3)
    program = tenon.export(function, ((a, b), 2.5, {"c": c}))
    got = program((b, a), 2.5, {"c": c})
    want = function((b, a), 2.5, {"c": c})
    assert got["n"] == 3 and same(got["sum"], want["sum"]) and same(got["list"][1][1], c)
    with pytest.raises(ValueError, match=re.escape("expected arguments ((Tensor, Tensor), 2.5")):
        program((b, a), 3.5, {"c": c})
    with pytest.raises(ValueError, match="got"):
        program((b, a))


def test_other_shapes_are_refused():
    program = tenon.export(lambda x: x + 1, rand(2, 3))
    with pytest.raises(ValueError, match=re.escape("input 0: expected float32[2, 3] cpu:0, got")):
        program(rand(3, 2))
    with pytest.raises(ValueError, match="float64"):
        program(rand(2, 3).to(tenon.float64))


def test_python_runs_and_is_not_needed_again():
    calls = []

    def function(x):
        calls.append(1)
        return x * 2

    program = tenon.export(function, rand(2))
    before = len(calls)
    program(rand(2))
    assert before == 2 and len(calls) == 2


def test_in_place_writes_and_views():
    def function(x):
        y = x.clone()
        y[0] = 7.0
        y[:, 1] += x[:, 0]
        row = y[1]
        tenon.multiply(row, 10.0, out=row)
        return y, row

    x = rand(2, 3)
    program = tenon.export(function, x)
    other = x + 5
    for got, want in zip(program(other), function(other)):
        assert same(got, want)
    y, row = program(other)
    y[1] = 0.0  # they share memory, as the function's do
    assert same(row, tenon.zeros(3))


def test_single_elements():
    def function(x):
        y = x * 1.0
        y[0] = 5.0
        y[1] += y[2]
        return y, y[2]

    program = tenon.export(function, rand(3))
    x = tenon.tensor([1.0, 2.0, 3.0])
    assert program(x)[0].tolist() == [5.0, 5.0, 3.0] and program(x)[1].item() == 3.0


def test_writes_into_an_input_reach_the_caller():
    def function(x):
        tenon.add(x, 1.0, out=x)
        return x * 1.0

    program = tenon.export(function, rand(2))
    x = tenon.zeros(2)
    assert same(program(x), tenon.ones(2)) and same(x, tenon.ones(2))


def test_state_outside_is_written():
    count = tenon.zeros(1)

    def function(x):
        tenon.add(count, 1.0, out=count)
        return x + count

    program = tenon.export(function, rand(1))
    before = count.item()
    program(rand(1)), program(rand(1))
    assert count.item() == before + 2


def test_data_made_inside_is_a_constant_of_each_run():
    def function(x):
        table = tenon.tensor([1.0, 2.0])
        tenon.add(table, x, out=table)
        return table

    program = tenon.export(function, rand(2))
    x = rand(2)
    first, second = program(x), program(x)
    assert same(first, second) and same(first, function(x))
    first[0] = 99.0
    assert same(program(x), second)


def test_numpy_tables_are_constants():
    table = np.arange(3, dtype="float32")
    program = tenon.export(lambda x: x + tenon.tensor(table), rand(3))
    assert same(program(tenon.zeros(3)), tenon.tensor(table))


def test_random_operators_draw_anew():
    program = tenon.export(lambda x: F.dropout(x, 0.5), tenon.ones(64))
    x = tenon.ones(64)
    tenon.manual_seed(5)
    first, second = program(x), program(x)
    tenon.manual_seed(5)
    assert same(first, F.dropout(x, 0.5)) and same(second, F.dropout(x, 0.5))
    assert not same(first, second)


def test_unused_work_is_dropped_and_repeated_work_done_once():
    def function(x):
        x.exp()
        return x.sin() + x.sin()

    assert str(tenon.export(function, rand(2))).count("= tenon::") == 3
    assert str(tenon.export(function, rand(2), passes=())).count("= tenon::") == 4
    with tenon.no_grad():  # in no other order can gradients be summed
        assert str(tenon.export(function, rand(2))).count("= tenon::") == 2


def test_composites_with_a_kernel_stay_whole():
    x = rand(2, 4)
    text = str(tenon.export(lambda x: F.gelu(F.layer_norm(x, (4,))), x))
    assert text.count("= tenon::") == 2


def test_a_detached_tensor_is_another_value():
    x = rand(3)
    program = tenon.export(lambda x: (x * x.detach()).sum(), x)
    x.requires_grad_()
    program(x).backward()
    assert same(x.grad, x.detach())


def test_the_text_names_the_line():
    program = tenon.export(lambda x: x.exp(), rand(2))
    assert f'{__file__}":' in str(program)
    assert "1 steps, 1 inputs, 0 leaves, 1 results" in repr(program)
    assert "tenon::exp" in program.to_dot() and "->" in program.to_dot()


def test_errors_of_a_run_name_the_step():
    index = tenon.tensor([0, 1])
    table = rand(3)
    program = tenon.export(lambda i: table[i], index)
    line = program(index) is None or str(program).split('":')[-1].split("\n")[0]
    with pytest.raises(IndexError, match=rf"program: tenon::\w+\(.*test_programs.py:{line} > "):
        program(tenon.tensor([0, 9]))


def test_a_program_inside_a_function_is_recorded_with_it():
    inner = tenon.export(lambda x: x * 2, rand(2))
    outer = tenon.export(lambda x: inner(x) + 1, rand(2))
    assert "tenon::multiply" in str(outer) and same(outer(tenon.ones(2)), tenon.full([2], 3.0))


def test_an_operator_of_ones_own():
    @tenon.op("mine::twice_for_programs(Tensor x) -> Tensor")
    def twice_for_programs(x):
        return x + x

    program = tenon.export(lambda x: tenon.ops.mine.twice_for_programs(x), rand(2))
    assert same(program(tenon.ones(2)), tenon.full([2], 2.0))


def test_watchers_see_a_run():
    program = tenon.export(lambda x: x.exp().sin(), rand(4))
    before = tenon._core.validation_calls()
    with tenon.validation():
        program(rand(4))
    assert tenon._core.validation_calls() == before + 2
    with (
        tenon.validation(nan="error"),
        pytest.raises(tenon.InternalError, match="program: tenon::"),
    ):
        tenon.export(lambda x: x.log(), tenon.ones(2))(-tenon.ones(2))


def test_programs_run_in_threads():
    from concurrent.futures import ThreadPoolExecutor

    model, x = mlp(), rand(2, 4)
    program = tenon.export(model, x)
    want = model(x)
    with ThreadPoolExecutor(4) as pool:
        assert all(same(got, want) for got in pool.map(lambda _: program(x), range(200)))


def test_nothing_stays_alive():
    def alive():
        gc.collect()
        return tenon.memory.stats()["current"]

    x = rand(64, 64)
    program = tenon.export(lambda x: (x @ x).relu().sum(), x)
    program(x)
    before = alive()
    for _ in range(10):
        program(x)
        with pytest.raises(NotImplementedError):
            tenon.export(lambda x: x.sum().item(), x)
    assert alive() == before


# -- gradients ------------------------------------------------------------------------------------------


def test_gradients_pass_through_a_program():
    model, x = mlp(), rand(2, 4)
    program = tenon.export(model, x)
    want = tenon.grad(model(x).square().sum(), list(model.parameters()))
    got = tenon.grad(program(x).square().sum(), list(model.parameters()))
    assert all(map(same, got, want))
    with tenon.no_grad():
        assert not program(x).requires_grad


@pytest.mark.parametrize("name", ["SGD", "Momentum", "RMSprop", "Adagrad", "Adam", "AdamW"])
def test_a_training_step_is_one_program(name):
    steps = []  # of the eager and of the recorded one, each from its own copy of the model

    def setup(log):
        model = mlp()
        options = {"capturable": True} if name.startswith("Adam") else {}
        optimizer = getattr(tenon.optim, name)(model.parameters(), lr=0.05, **options)

        def step(x, y):
            log.append(1)
            loss = F.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            return loss

        return model, step

    x, y = rand(8, 4), tenon.tensor([0, 1, 2, 0, 1, 2, 0, 1])
    (model, step), (other, eager) = setup(steps), setup([])
    program = tenon.export(step, (x, y))
    for _ in steps:  # the recording was real
        eager(x, y)
    for _ in range(4):
        assert same(program(x, y), eager(x, y))
    assert all(map(same, model.parameters(), other.parameters()))
    assert not program(x, y).requires_grad


def test_adam_with_a_tensor_as_step_is_adam():
    def train(**options):
        model = mlp()
        optimizer = tenon.optim.Adam(model.parameters(), lr=0.01, weight_decay=0.1, **options)
        for _ in range(5):
            optimizer.zero_grad()
            model(rand(8, 4)).square().mean().backward()
            optimizer.step()
        other = tenon.optim.Adam(model.parameters(), **options)
        other.load_state_dict(optimizer.state_dict())
        return [p.detach().numpy() for p in model.parameters()]

    for got, want in zip(train(capturable=True), train()):
        np.testing.assert_allclose(got, want, 1e-5, 1e-6)
    with pytest.raises(ValueError, match="capturable without amsgrad"):
        train(capturable=True, amsgrad=True)


def test_an_optimizer_that_counts_in_python_is_named():
    model = mlp()
    optimizer = tenon.optim.AdamW(model.parameters())

    def step(x):
        model(x).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()

    with pytest.raises(RuntimeError, match="AdamW count their steps in one with capturable=True"):
        tenon.export(step, (rand(8, 4),))


def test_a_step_by_tenon_grad():
    model, x = mlp(), rand(4, 4)
    parameters = list(model.parameters())

    def step(x):
        loss = model(x).square().mean()
        for parameter, grad in zip(parameters, tenon.grad(loss, parameters)):
            with tenon.no_grad():
                tenon.subtract(parameter, grad * 0.1, out=parameter)
        return loss.detach()

    program = tenon.export(step, x)
    losses = [program(x).item() for _ in range(4)]
    assert losses == sorted(losses, reverse=True) and losses[0] > losses[-1]


def test_second_derivatives_inside():
    def function(x):
        (first,) = tenon.grad((x**3).sum(), x, create_graph=True)
        return tenon.grad(first.sum(), x)[0]

    x = rand(3).requires_grad_()
    program = tenon.export(function, x)
    other = (x.detach() + 1).requires_grad_()
    assert same(program(other), function(other))


def training(order):
    model = mlp()
    optimizer = tenon.optim.SGD(model.parameters(), lr=0.1)

    def step(x):
        if order == "first":
            optimizer.zero_grad()
        model(x).square().sum().backward()
        optimizer.step()
        if order == "last":
            optimizer.zero_grad()

    return model, optimizer, step


@pytest.mark.parametrize("order", ["first", "last"])
def test_grad_is_what_it_is_after_the_function(order, tmp_path):
    (model, _, step), (other, _, eager) = training(order), training(order)
    x = rand(2, 4)
    program = tenon.export(step, x)
    eager(x), eager(x)
    for _ in range(3):
        program(x), eager(x)
    for got, want in zip(model.parameters(), other.parameters()):
        assert same(got, want)
        if order == "last":
            assert got.grad is None and want.grad is None
        else:
            assert same(got.grad, want.grad)
    program.save(tmp_path / "step.tenon")
    loaded = tenon.jit.load(tmp_path / "step.tenon")
    loaded(x), eager(x)
    for leaf, want in zip(loaded.leaves.values(), other.parameters()):
        assert same(leaf, want) and (order == "last" or same(leaf.grad, want.grad))


def test_gradients_that_a_function_leaves():
    weight = rand(3).requires_grad_()

    def function(x):
        (x * weight).sum().backward()

    program = tenon.export(function, rand(3))
    assert weight.grad is None  # as the recording found it
    x = rand(3) + 1
    program(x)
    assert same(weight.grad, x)
    with pytest.raises(RuntimeError, match=r"expected no \.grad in the tensor float32\[3\]"):
        program(x)
    weight.grad = None
    program(x)
    assert same(weight.grad, x)


def test_gradients_that_add_up_in_place():
    weight = rand(3).requires_grad_()
    weight.grad = tenon.zeros(3)

    def function(x):
        (x * weight).sum().backward()

    program = tenon.export(function, tenon.ones(3))
    weight.grad.zero_()
    program(tenon.ones(3)), program(tenon.ones(3))
    assert same(weight.grad, tenon.full([3], 2.0))
    weight.grad = None
    with pytest.raises(RuntimeError, match=r"its \.grad is not what it was"):
        program(tenon.ones(3))


def test_gradients_of_an_input():
    def function(x):
        x.grad = None
        x.square().sum().backward()

    program = tenon.export(function, rand(2).requires_grad_())
    x = (rand(2) + 1).requires_grad_()
    program(x), program(x)
    assert same(x.grad, 2 * x)
    x = rand(2).requires_grad_()
    x.grad = tenon.ones(2)
    with pytest.raises(NotImplementedError, match="adds to .grad of an input"):
        tenon.export(lambda x: x.square().sum().backward(), x)


def test_custom_functions_have_no_gradient_in_a_program():
    class Double(tenon.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            return grad * 2

    x = rand(3).requires_grad_()
    program = tenon.export(lambda x: Double.apply(x) + 1, x)
    with pytest.raises(NotImplementedError, match="cannot be recorded through it.*Double"):
        program(x)
    with tenon.no_grad():
        assert same(program(x), x.detach() * 2 + 1)


# -- what is refused ------------------------------------------------------------------------------------


READS = {
    "item": lambda x: x.sum().item(),
    "bool": lambda x: bool(x.sum() > 0),
    "if": lambda x: 1 if x.sum() > 0 else 2,
    "float": lambda x: float(x.sum()),
    "int": lambda x: int(x.sum()),
    "tolist": lambda x: x.tolist(),
    "numpy": lambda x: x.numpy(),
    "asarray": lambda x: np.asarray(x),
    "memoryview": lambda x: memoryview(x),
    "dlpack": lambda x: np.from_dlpack(x),
    "data_ptr": lambda x: x.data_ptr(),
    "tensor": lambda x: tenon.tensor([x[0], x[1]]),
    "repr": lambda x: repr(x),
    "format": lambda x: f"{x.sum():.3f}",
    "index": lambda x: [1, 2, 3][x.to(tenon.int64)[0]],
    "set data": lambda x: setattr(x, "data", tenon.zeros(2)),
    "caught": lambda x: pytest.raises(NotImplementedError, x.sum().item),
}


@pytest.mark.parametrize("name", READS)
def test_data_do_not_leave_the_program(name):
    read = READS[name]

    def function(x):
        read(x)
        return x + 1

    with pytest.raises((NotImplementedError, BufferError), match="takes data past the program"):
        tenon.export(function, rand(2))
    x = rand(2)
    if name not in ("set data", "caught"):
        read(x)  # outside, nothing is refused


def test_the_refusal_names_the_line():
    def function(x):
        return x if x.sum() > 0 else -x

    line = function.__code__.co_firstlineno + 1
    with pytest.raises(NotImplementedError, match=rf"{re.escape(__file__)}:{line} takes data"):
        tenon.export(function, rand(2))


def test_python_state_is_found_by_recording_twice():
    state = {"step": 0}

    def counter(x):
        state["step"] += 1
        return x * state["step"]

    with pytest.raises(RuntimeError, match=r"(?s)first\n.*multiply\(%0, y=2\).*and then\n.*y=3\)"):
        tenon.export(counter, rand(2))
    with pytest.raises(RuntimeError, match="does something else when it is called again"):
        tenon.export(lambda x: x * random.random(), rand(2))
    with pytest.raises(RuntimeError, match="with other elements"):
        tenon.export(lambda x: x * tenon.tensor([random.random()] * 2), rand(2))


def test_state_that_the_first_call_sets_up():
    state = {}

    def function(x):
        if "sum" not in state:
            state["sum"] = tenon.zeros(2)
        tenon.add(state["sum"], x, out=state["sum"])
        return state["sum"] * 1.0

    x = tenon.ones(2)
    program = tenon.export(function, x)
    before = state["sum"].clone()
    assert same(program(x), before + 1) and same(state["sum"], before + 1)


def test_state_in_variables_is_refused():
    state = {"last": tenon.zeros(2)}

    def function(x):
        y = x + state["last"]
        state["last"] = x * 2
        return y

    with pytest.raises(RuntimeError, match="keeps a tensor float32.*write into a tensor"):
        tenon.export(function, rand(2))


def test_shapes_that_depend_on_data_are_refused():
    for function in (lambda x: x.nonzero(), lambda x: x[x > 0], lambda x: tenon.unique_values(x)):
        with pytest.raises(NotImplementedError, match="depends on data"):
            tenon.export(function, rand(4))


def test_seeds_are_refused():
    def function(x):
        tenon.manual_seed(3)
        return x

    with pytest.raises(NotImplementedError, match="sets the seed"):
        tenon.export(function, rand(1))


def test_one_recording_at_a_time():
    with pytest.raises(RuntimeError, match="cannot export another one"):
        tenon.export(lambda x: tenon.export(lambda y: y, x)(x), rand(1))
    with pytest.raises(ValueError, match="each input once"):
        x = rand(1)
        tenon.export(lambda a, b: a + b, (x, x))


def test_a_failed_recording_leaves_nothing_behind():
    def function(x):
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        tenon.export(function, rand(1))
    assert rand(1).item() is not None and not tenon._core.is_recording()


# -- files ----------------------------------------------------------------------------------------------


def test_saved_programs_run_in_another_process(tmp_path):
    model, x = mlp(), rand(2, 4)
    program = tenon.export(model, x)
    path = tmp_path / "model.tenon"
    program.save(path)
    tenon.save({"x": x, "y": model(x).detach()}, tmp_path / "data.safetensors")
    code = (
        "import sys, tenon, numpy as np; program = tenon.jit.load(sys.argv[1]);"
        "data = tenon.load(sys.argv[2]); got = program(data['x']);"
        "assert np.array_equal(got.numpy(), data['y'].numpy()); print(repr(program))"
    )
    arguments = [sys.executable, "-c", code, str(path), str(tmp_path / "data.safetensors")]
    done = subprocess.run(arguments, capture_output=True, text=True, timeout=60, env=os.environ)
    assert done.returncode == 0, done.stderr
    assert "4 leaves" in done.stdout or "4 leaves" in repr(program)
    tensors, _ = tenon.safetensors.read(path)  # as any reader of the format
    assert set(tensors) == {f"leaf.{i}" for i in range(4)}
    assert str(tenon.jit.load(path)) == str(program)


def test_a_saved_training_step_goes_on(tmp_path):
    weight = tenon.ones(2)

    def step(x):
        tenon.subtract(weight, x * 0.5, out=weight)
        return {"weight": weight * 1.0}

    x = tenon.ones(2)
    program = tenon.export(step, x)
    program.save(tmp_path / "step.tenon")
    loaded = tenon.jit.load(tmp_path / "step.tenon")
    first, second = loaded(x)["weight"], loaded(x)["weight"]
    assert same(first - second, tenon.full([2], 0.5))
    assert same(
        tenon.jit.load(tmp_path / "step.tenon")(x)["weight"], first
    )  # the file is as it was


def test_files_that_are_no_programs(tmp_path):
    path = tmp_path / "x.tenon"
    tenon.save({"a": rand(2)}, path)
    with pytest.raises(ValueError, match="holds tensors and no program"):
        tenon.jit.load(path)
    path.write_bytes(b"")
    with pytest.raises(ValueError, match="no file with a program"):
        tenon.jit.load(path)
    with pytest.raises(tenon.NotFoundError, match="No such file"):
        tenon.jit.load(tmp_path / "none")
    tenon.export(lambda x: x + 1, rand(2)).save(path)
    contents = path.read_bytes()
    length = int.from_bytes(contents[:8], "little")
    header = json.loads(contents[8 : 8 + length])
    for broken in ('[["tuple", []], ["tensor"]]', '[["tuple", [["tensor"]]], ["what"]]', "[]", "7"):
        header["__metadata__"]["tenon.structure"] = broken
        text = json.dumps(header).encode()
        path.write_bytes(len(text).to_bytes(8, "little") + text + contents[8 + length :])
        with pytest.raises(ValueError, match="structure of arguments is not valid"):
            tenon.jit.load(path)


KEPT_Y = [[0.54822654, 0.45177346], [0.5794228, 0.4205772]]
KEPT_ROW = [0.22115947, 0.02765176]


def test_kept_programs_run():
    """Files of every version, which tests/python/kept/make_program.py wrote."""
    folder = pathlib.Path(__file__).parent / "kept"
    files = sorted(folder.glob("*.tenon"))
    assert files
    x, n = tenon.tensor([[1.0, -2.0, 0.5], [0.0, 3.0, -1.0]]), tenon.tensor(3)
    for file in files:
        got = tenon.jit.load(file)(x, n)
        np.testing.assert_allclose(got["y"].numpy(), KEPT_Y, 1e-5)
        np.testing.assert_allclose(got["row"].numpy(), KEPT_ROW, 1e-5)


def test_what_json_cannot_hold_is_not_saved(tmp_path):
    program = tenon.export(lambda x, c: x, (rand(1), 1 + 2j))
    with pytest.raises(TypeError, match="what JSON can hold"):
        program.save(tmp_path / "x.tenon")


# -- control flow ---------------------------------------------------------------------------------------


def test_cond():
    weight = rand(3)

    def function(x):
        return tenon.jit.cond(x.sum() > 0, lambda x: x * weight, lambda x: {0: -x}[0], x)

    x = tenon.ones(3)
    program = tenon.export(function, x)
    for value in (x, -x):
        assert same(program(value), function(value))
    x = tenon.ones(3).requires_grad_()
    assert same(*(tenon.grad(f(x).sum(), x)[0] for f in (program, function)))


def test_while_loop():
    step = tenon.tensor(3.0)

    def function(x):
        return tenon.jit.while_loop(
            lambda n, x: x.sum() < 100, lambda n, x: (n + 1, x * 2 + step), (tenon.tensor(0), x)
        )

    program = tenon.export(function, rand(3))
    for x in (tenon.ones(3), tenon.full([3], 40.0), tenon.full([3], 1000.0)):
        got, want = program(x), function(x)
        assert got[0].item() == want[0].item() and same(got[1], want[1])


def test_a_loop_that_starts_from_one_tensor_twice():
    def function(x):
        return tenon.jit.while_loop(lambda a, b: a.sum() < 9, lambda a, b: (a + b, b + x), (x, x))

    program = tenon.export(function, tenon.ones(1))
    x = tenon.full([1], 2.0)
    assert all(map(same, program(x), function(x)))


def test_scan():
    decay = rand(2)

    def function(start, xs):
        def body(state, x):
            state = state * decay + x["a"]
            return state, {"s": state.sum(), "x": x["b"]}

        return tenon.jit.scan(body, start, xs)

    start, xs = rand(2), {"a": rand(5, 2), "b": rand(5)}
    program = tenon.export(function, (start, xs))
    got, want = program(start + 1, xs), function(start + 1, xs)
    assert same(got[0], want[0]) and all(same(got[1][k], want[1][k]) for k in ("s", "x"))
    start.requires_grad_()
    gradients = [tenon.grad(f(start, xs)[1]["s"].sum(), start)[0] for f in (program, function)]
    assert same(*gradients)


def test_control_flow_nests_and_saves(tmp_path):
    def body(n, x):
        return n + 1, tenon.jit.cond(x.sum() > 10, lambda x: x / 2, lambda x: x * 3, x)

    def function(x):
        return tenon.jit.while_loop(lambda n, x: n < 6, body, (tenon.tensor(0), x))[1]

    program = tenon.export(function, tenon.ones(2))
    program.save(tmp_path / "loop.tenon")
    loaded = tenon.jit.load(tmp_path / "loop.tenon")
    for x in (tenon.ones(2), tenon.full([2], 9.0)):
        assert same(program(x), function(x)) and same(loaded(x), function(x))


def test_control_flow_without_recording():
    x = tenon.ones(2)
    assert same(tenon.jit.cond(x.sum() > 0, lambda x: x, lambda x: -x, x), x)
    with pytest.raises(ValueError, match="first axis of at least one element"):
        tenon.jit.scan(lambda c, x: (c, x), x, tenon.zeros(0, 2))
    with pytest.raises(ValueError, match="keep the carried shapes"):
        tenon.jit.while_loop(lambda x: x.sum() < 9, lambda x: (tenon.concat([x, x]),), (x,))


def refused(function, text, error=NotImplementedError):
    with pytest.raises(error, match=text):
        tenon.export(function, rand(2))


def test_what_control_flow_cannot_do_is_refused():
    weight = rand(2)
    kept = []

    def write(x):
        tenon.add(weight, x, out=weight)
        return x

    refused(
        lambda x: tenon.jit.cond(x.sum() > 0, write, lambda x: x, x),
        "writes into a tensor from outside",
    )

    def keep(x):
        kept.append(x * 2)
        return x

    refused(
        lambda x: (tenon.jit.cond(x.sum() > 0, keep, keep, x), kept[-1] + 1)[1],
        "used outside of it",
    )
    refused(
        lambda x: tenon.jit.cond(x.sum(), lambda x: x, lambda x: x, x), "bool tensor", ValueError
    )
    refused(
        lambda x: tenon.jit.cond(x.sum() > 0, lambda x: x, lambda x: x.sum(), x),
        "same shapes and dtypes",
        ValueError,
    )
    trained = rand(2).requires_grad_()

    def through(x):
        loss = tenon.jit.cond(
            x.sum() > 0, lambda x: (x * trained).sum(), lambda x: (x - trained).sum(), x
        )
        return tenon.grad(loss, trained)[0]

    refused(through, "cond: gradients through it inside an exported function")


# -- whole models ---------------------------------------------------------------------------------------


def batch_norm():
    return nn.Sequential(nn.Conv2d(3, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU()), rand(
        2, 3, 6, 6
    )


def transformer():
    layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)
    return layer, rand(2, 5, 8)


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(4, 6, num_layers=2)

    def forward(self, x):
        return self.lstm(x)[0]


MODELS = {
    "batch norm": batch_norm,
    "transformer": transformer,
    "lstm": lambda: (Recurrent(), rand(5, 2, 4)),
    "embedding": lambda: (nn.Embedding(5, 3), tenon.tensor([[1, 4], [0, 2]])),
}


@pytest.mark.parametrize("name", MODELS)
def test_models_run_and_train_as_programs(name, tmp_path):
    def setup():
        tenon.manual_seed(3)
        model, x = MODELS[name]()
        optimizer = tenon.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)

        def step(x):
            loss = model(x).square().mean()
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            return loss

        return model, x, step

    (model, x, step), (other, _, eager) = setup(), setup()
    calls = []

    def counted(x):
        calls.append(1)
        return step(x)

    program = tenon.export(counted, x)
    for _ in calls:
        eager(x)
    for _ in range(3):
        assert same(program(x), eager(x))
    for (key, got), want in zip(model.state_dict().items(), other.state_dict().values()):
        assert same(got, want), key
    model.eval(), other.eval()
    with tenon.no_grad():
        forward = tenon.export(model, x)
        assert same(forward(x), other(x))
        forward.save(tmp_path / "model.tenon")
        assert same(tenon.jit.load(tmp_path / "model.tenon")(x), other(x))


OPTIMIZERS = [name for name in dir(tenon.optim) if name[0].isupper() and name != "Optimizer"]


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_every_optimizer_is_recorded_right_or_refused(name):
    cls = getattr(tenon.optim, name)
    if not (isinstance(cls, type) and issubclass(cls, tenon.optim.Optimizer)):
        return

    def setup():
        tenon.manual_seed(1)
        model = nn.Sequential(nn.Linear(4, 4, bias=False), nn.ReLU(), nn.Linear(4, 3, bias=False))
        optimizer = cls(model.parameters(), lr=0.01)

        def step(x):
            model(x).square().mean().backward()
            optimizer.step()
            optimizer.zero_grad()
            return x

        return model, step

    (model, step), (other, eager) = setup(), setup()
    calls = []
    x = rand(4, 4)
    try:
        program = tenon.export(lambda x: (calls.append(1), step(x))[1], x)
    except (RuntimeError, NotImplementedError, TypeError) as error:
        assert re.search("called again|past the program|depends on data|closure", str(error)), error
        return
    for _ in calls:
        eager(x)
    for _ in range(3):
        program(x), eager(x)
    assert all(map(same, model.parameters(), other.parameters()))
