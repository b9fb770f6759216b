# SPDX-License-Identifier: Apache-2.0
"""tenon.export and tenon.jit: what a program holds, what it does when it is called, and what is
refused with a reason."""

import gc
import random
import re

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


# -- what is refused ------------------------------------------------------------------------------------


READS = {
    "item": lambda x: x.sum().item(),
    "bool": lambda x: bool(x.sum() > 0),
    "if": tenon.jit.not_to_static(lambda x: 1 if x.sum() > 0 else 2),
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
    @tenon.jit.not_to_static
    def function(x):
        return x if x.sum() > 0 else -x

    line = function.__code__.co_firstlineno + 2
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
