# SPDX-License-Identifier: Apache-2.0
"""tenon.compile of functions that read data: parts of them are programs, and Python runs what is between."""

import numpy as np
import pytest
import tenon
from tenon import nn

CALLS = 8
WEIGHT = tenon.tensor(np.linspace(-1, 1, 16, dtype=np.float32).reshape(4, 4))


def rand(*shape, seed=0):
    generator = np.random.default_rng(seed)
    return tenon.tensor(generator.standard_normal(shape).astype(np.float32))


def assert_same(a, b):
    if isinstance(a, tenon.Tensor):
        np.testing.assert_array_equal(a.detach().numpy(), b.detach().numpy())
    elif isinstance(a, (tuple, list)):
        assert type(a) is type(b) and len(a) == len(b)
        for x, y in zip(a, b):
            assert_same(x, y)
    elif isinstance(a, dict):
        assert_same([*a.items()], [*b.items()])
    else:
        assert a == b and type(a) is type(b)


def reads_in_the_middle(x):
    a = (x * 2 + 1).relu()
    b = a @ WEIGHT
    value = float(b.sum())
    c = b * 3
    if value > 2:
        d = c.exp()
        e = d + 1
    else:
        e = c.tanh()
    return e * a, value


def branches(x):
    if not x.sum() > 0:
        return (x - 1).relu()
    return (x * 2).exp()


def chooses(x):
    y = x * 2 if x.sum().item() > 0 else x - 1
    return y + x


def loops(x):
    total = 0.0
    for i in range(3):
        x = (x @ WEIGHT).tanh()
        total += x.mean().item() * i
        x = x * 0.5 + i
    return x, total


def loops_until(x):
    while True:
        x = (x @ WEIGHT) * 0.3
        if x.abs().max().item() < 0.1:
            break
    return x + 1


def collects(x):
    losses = []
    y = x * 2
    losses.append(float(y.sum()))
    z = y + 1
    losses.append(z)
    return z, losses


def keeps_another_name(x):
    a = b = [x * 2]
    a.append(float(x.sum()))
    b.append(x * 3)
    y = x.exp()
    return a, y


def computes_and_reads(x):
    return float((x * 2).sum()), x.exp()


def may_leave_it_unbound(x):
    y = x + 1
    if y.sum().item() > 0:
        z = y * 2
    try:
        return z * 2
    except UnboundLocalError:
        return y * 3


def without_gradients(x):
    with tenon.no_grad():
        y = x * 2
        n = int((y > 0).sum())
        z = y.exp()
    return z * n


def fills_a_list_of_numbers(x):
    found = [None] * 3
    for i in range(3):
        found[i] = (x * 2).exp()
        number = found[i].sum().item()
    found[0] = x * 5 + 1
    return found, number


def fills_what_a_call_has_made(x):
    made = dict.fromkeys("ab")
    inside = made["a"] = [x * 2]
    number = inside[0].sum().item()
    inside.append((x * 3).exp())
    y = (x + 1).exp()
    return made, number, y


def assigns_in_what_it_reads(x):
    y = (x + 1) * 2
    return x + (x := x * 2).sum().item() + y


def compares_what_is_not_reached(x):
    rows, y = x.shape[0], x * 2
    if 2 < rows < y[2].sum().item():
        return y
    return y * 3 + 1


def reads_the_pass_before(x):
    for is_first in (True, False, False):
        if is_first:
            y = x * 2
        else:
            y = (y * 0.5).exp()
        number = y.sum().item()
    return y, number


FUNCTIONS = [
    reads_in_the_middle,
    branches,
    lambda x: x * 2 if x.sum().item() > 0 else x - 1,
    chooses,
    loops,
    loops_until,
    collects,
    keeps_another_name,
    computes_and_reads,
    may_leave_it_unbound,
    without_gradients,
    fills_a_list_of_numbers,
    fills_what_a_call_has_made,
    reads_the_pass_before,
]


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.__name__)
def test_every_call_gives_what_the_function_gives(function):
    compiled = tenon.compile(function)
    for call in range(CALLS):
        x = rand(3, 4, seed=call)
        assert_same(compiled(x), function(x))
    assert compiled.programs, compiled.explain()
    assert "divided at test_divided_functions.py:" in compiled.explain()


def test_what_is_read_is_not_computed_at_another_time():
    for function in (assigns_in_what_it_reads, compares_what_is_not_reached):
        compiled = tenon.compile(function)
        for rows in (3, 3, 3, 2, 3, 2):
            x = rand(rows, 4, seed=rows)
            assert_same(compiled(x), function(x))


def test_a_list_that_is_an_argument_is_changed_in_every_call():
    def function(x, cache):
        cache.append(x * 2)
        return x + 1

    compiled = tenon.compile(function)
    for call in range(4):
        x, cache = rand(3, seed=call), []
        compiled(x, cache)
        assert_same(cache, [x * 2])
    assert "it changes a list or a dictionary that is an argument" in compiled.explain()


def test_explain_says_which_lines_are_parts():
    compiled = tenon.compile(reads_in_the_middle)
    for call in range(4):
        compiled(rand(3, 4, seed=call))
    first = reads_in_the_middle.__code__.co_firstlineno
    text = compiled.explain()
    assert (
        f"divided at test_divided_functions.py:{first + 3}, which Python runs, because of item()"
        in text
    )
    assert f"lines {first + 1} to {first + 3}, a part:" in text
    assert f"lines {first + 4} to {first + 4}, a part:" in text
    assert f"lines {first + 6} to {first + 7}, a part:" in text


class Gated(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(4, 8), nn.Linear(8, 1)

    def forward(self, x):
        hidden = self.first(x).tanh()
        if hidden.mean() > 0:
            hidden = hidden * 2
        return self.second(hidden).sum()


def test_gradients_pass_through_the_parts():
    tenon.manual_seed(0)
    model = Gated()
    compiled = tenon.compile(model)
    for call in range(CALLS):
        x = rand(5, 4, seed=call)
        found = []
        for function in (compiled, model):
            for parameter in model.parameters():
                parameter.grad = None
            function(x).backward()
            found.append([parameter.grad for parameter in model.parameters()])
        assert_same(*found)
    assert len(compiled.programs) >= 2, compiled.explain()


def test_hooks_of_a_module_are_called():
    model, seen = Gated(), []
    compiled = tenon.compile(model)
    for call in range(4):
        compiled(rand(5, 4, seed=call))
    model.register_forward_hook(lambda module, args, result: seen.append(result))
    compiled(rand(5, 4))
    assert len(seen) == 1


def trained(compile_):
    tenon.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
    optimizer = tenon.optim.Adam(model.parameters(), lr=0.01)
    log = []

    def step(x):
        loss = (model(x) ** 2).mean()
        optimizer.zero_grad()
        loss.backward()
        norm = sum((p.grad**2).sum() for p in model.parameters()).sqrt()
        if norm.item() < 2:
            optimizer.step()
        log.append(loss.item())
        return loss

    step = compile_(step)
    for call in range(CALLS):
        step(rand(6, 4, seed=call))
    return [*model.parameters()], log, step


def test_a_training_step_that_reads_its_norm():
    parameters, log, compiled = trained(tenon.compile)
    expected, expected_log, _ = trained(lambda function: function)
    assert log == expected_log
    assert_same(parameters, expected)
    assert compiled.programs, compiled.explain()


def stepped(compile_, clips, sometimes):
    tenon.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
    optimizer = tenon.optim.Adam(model.parameters(), lr=0.01)
    log = []

    def step(x):
        optimizer.zero_grad()
        loss = (model(x) ** 2).mean()
        loss.backward()
        log.append(loss.item())
        if clips:
            nn.utils.clip_grad_norm_(model.parameters(), 0.1)
        optimizer.step()

    step = compile_(step)
    for call in range(2 * CALLS):
        model[0].bias.requires_grad = not sometimes or call % 4 != 3
        step(rand(6, 4, seed=call))
    return [
        log,
        [*model.parameters()],
        [p.grad for p in model.parameters() if p.grad is not None],
    ], step


@pytest.mark.parametrize("sometimes", [False, True])
@pytest.mark.parametrize("clips", [False, True])
def test_what_is_behind_a_backward_pass_takes_gradients_as_arguments(clips, sometimes):
    found, compiled = stepped(tenon.compile, clips, sometimes)
    expected, _ = stepped(lambda function: function, clips, sometimes)
    assert_same(found, expected)
    given = "((float32[8, 4], float32[8], float32[1, 8], float32[1])): "
    calls = [line.split(given)[1] for line in compiled.explain().splitlines() if given in line]
    assert calls and all(", a program of " in each for each in calls), compiled.explain()


def added(compile_):
    weight = tenon.tensor([1.0, 2.0], requires_grad=True)
    found = []

    def add(x):
        (weight * x).sum().backward()
        return weight.grad * 2

    add = compile_(add)
    for call in range(2 * CALLS):
        weight.grad = None if call % 5 == 4 else rand(2, seed=call)
        found += [add(rand(2, seed=-call % 7)), weight.grad]
    return found, add


def test_a_backward_pass_that_adds_to_what_others_assign():
    found, compiled = added(tenon.compile)
    assert_same(found, added(lambda function: function)[0])
    assert "it adds to a .grad that it has not assigned" in compiled.explain()


class Scaled:
    def __init__(self, scale):
        self.__scale = scale

    @tenon.compile
    def run(self, x, *, shift=1.0):
        y = x * self.__scale
        if y.sum().item() > 0:
            return y + shift
        return y - shift


def test_methods_and_defaults():
    two, three = Scaled(2.0), Scaled(3.0)
    for call in range(CALLS):
        x = rand(4, seed=call)
        for each, scale in ((two, 2.0), (three, 3.0)):
            y = x * scale
            sign = 1 if y.sum().item() > 0 else -1
            assert_same(each.run(x), y + sign)
            assert_same(each.run(x, shift=0.5), y + sign * 0.5)
    assert two.run.programs and three.run.programs


def test_a_part_that_never_becomes_a_program_is_called_as_it_is():
    calls = []

    def function(x, n):
        y = x * float(x.sum())
        calls.append(n)
        return y * n + 1

    compiled = tenon.compile(function, limit=2)
    for n in range(60):
        x = rand(3, seed=n)
        assert_same(compiled(x, n + 0.5), (x * float(x.sum())) * (n + 0.5) + 1)


def outer(x):
    factor = 2.0
    scale = lambda t: t * factor
    y = scale(x)
    if y.sum().item() > 0:
        factor = 3.0
    return scale(y)


def test_reasons_why_it_is_not_divided():
    total = 0.0

    def assigns(x):
        nonlocal total
        total = total + float(x.sum())
        return x * 2

    for function, reason in (
        (outer, "a function inside reads its variable factor, which changes"),
        (assigns, "it assigns variables from outside"),
        (lambda x: x.sum().item(), ""),
    ):
        compiled = tenon.compile(function)
        for call in range(4):
            x = rand(3, seed=call)
            want = function(x)
            if reason.startswith("a function"):
                assert_same(compiled(x), want)
            else:
                compiled(x)
        if reason:
            assert f"it is not divided where it reads data: {reason}" in compiled.explain()


def test_sizes_are_left_open_in_parts():
    def function(x):
        y = (x * 2).exp()
        if y.sum().item() > 1e9:
            return y
        return y * 3

    compiled = tenon.compile(function, dynamic=True)
    for rows in (3, 5, 8, 4, 21):
        x = rand(rows, 2, seed=rows)
        assert_same(compiled(x), function(x))
    assert compiled.explain().count("a program of these sizes") == 2, compiled.explain()


def passes_gradients_to_what_it_has_made(x):
    y = x * 2
    number = y.sum().item()
    y.requires_grad_()
    (y**2).sum().backward()
    return y.grad * number


def requires_a_gradient_of_its_argument(x):
    x.requires_grad_()
    return (x * 2).detach()


def test_requires_grad_is_set_in_every_call():
    functions = (passes_gradients_to_what_it_has_made, requires_a_gradient_of_its_argument)
    for function in functions:
        compiled = tenon.compile(function)
        for call in range(CALLS):
            x, same = rand(3, 4, seed=call), rand(3, 4, seed=call)
            assert_same(compiled(x), function(same))
            assert x.requires_grad == same.requires_grad
    assert "it sets requires_grad of an argument, or detaches it" in compiled.explain()
