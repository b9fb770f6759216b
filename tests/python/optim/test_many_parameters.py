# SPDX-License-Identifier: Apache-2.0
"""Small parameters are updated together, by calls for lists of them: the bits and the state are those of single updates."""

import numpy as np
import pytest
import tenon
from tenon import _core, nn, optim

SHAPES = [(3, 4), (64,), (), (0, 5), (2, 3, 2), (300, 300), (1,)]

KINDS = {
    "sgd": lambda p, **k: optim.SGD(p, lr=0.1, weight_decay=0.1, **k),
    "momentum": lambda p, **k: optim.SGD(p, lr=0.1, momentum=0.9, dampening=0.2, **k),
    "nesterov": lambda p, **k: optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True, **k),
    "maximize": lambda p, **k: optim.SGD(p, lr=0.1, maximize=True, **k),
    "adam": lambda p, **k: optim.Adam(p, lr=0.1, weight_decay=0.1, **k),
    "adam, counted in Python": lambda p, **k: optim.Adam(p, lr=0.1, capturable=False, **k),
    "amsgrad": lambda p, **k: optim.Adam(p, lr=0.1, amsgrad=True, weight_decay=0.1, **k),
    "adamw": lambda p, **k: optim.AdamW(p, lr=0.1, **k),
    "adamw amsgrad": lambda p, **k: optim.AdamW(p, lr=0.1, amsgrad=True, **k),
    "rmsprop": lambda p, **k: optim.RMSprop(p, lr=0.1, weight_decay=0.1, **k),
    "rmsprop, centered": lambda p, **k: optim.RMSprop(p, momentum=0.9, centered=True, **k),
    "adagrad": lambda p, **k: optim.Adagrad(p, lr=0.1, lr_decay=0.1, **k),
    "adadelta": lambda p, **k: optim.Adadelta(p, weight_decay=0.1, **k),
    "rprop": lambda p, **k: optim.Rprop(p, **k),
    "asgd": lambda p, **k: optim.ASGD(p, t0=2, weight_decay=0.1, **k),
    "ftrl": lambda p, **k: optim.Ftrl(p, lr=0.1, l1=0.01, l2=0.02, **k),
    "adamax": lambda p, **k: optim.Adamax(p, weight_decay=0.1, **k),
    "nadam": lambda p, **k: optim.NAdam(p, weight_decay=0.1, decoupled_weight_decay=True, **k),
    "radam": lambda p, **k: optim.RAdam(p, weight_decay=0.1, **k),
    "lars": lambda p, **k: optim.Lars(p, lr=0.1, **k),
    "lamb": lambda p, **k: optim.Lamb(p, lr=0.1, **k),
    "adafactor": lambda p, **k: optim.Adafactor(p, **k),
}


def values(tensors):
    return [t.detach().numpy().tobytes() for t in tensors]


def parameters(dtypes=("float32", "float64", "float16")):
    rng = np.random.default_rng(3)
    return [
        nn.Parameter(tenon.tensor(rng.standard_normal(shape)).to(dtype))
        for dtype in dtypes
        for shape in SHAPES
    ]


def set_gradients(params, seed, leave_out=()):
    rng = np.random.default_rng(seed)
    for i, p in enumerate(params):
        grad = tenon.tensor(rng.standard_normal(tuple(p.shape)), dtype=p.dtype)
        p.grad = None if i in leave_out else grad


@pytest.fixture
def calls(monkeypatch):
    """The sizes of the lists that were handed over at once."""
    sizes, call_each = [], _core.call_each

    def counted(op, *args, **keywords):
        sizes.append(next(len(each) for each in args if isinstance(each, list)))
        return call_each(op, *args, **keywords)

    monkeypatch.setattr(_core, "call_each", counted)
    return sizes


@pytest.mark.parametrize("name", KINDS)
def test_bits_and_states_are_those_of_single_updates(name, calls):
    together, alone = parameters(), parameters()
    first = KINDS[name](together)
    second = KINDS[name](alone)
    second.updates_together = False
    for step in range(4):
        for params, optimizer in ((together, first), (alone, second)):
            # A parameter that has no gradient in one step counts another number of steps.
            set_gradients(params, step, leave_out=(2,) if step == 1 else ())
            before = len(calls)
            optimizer.step()
            if optimizer is second:
                assert len(calls) == before
        assert values(together) == values(alone)
    assert bool(calls) == first.takes_lists, "each optimizer says whether it takes lists"
    assert not calls or max(calls) >= 10
    a, b = first.state_dict(), second.state_dict()
    assert a["state"].keys() == b["state"].keys()
    for index, state in a["state"].items():
        other = b["state"][index]
        assert list(state) == list(other)
        for key, value in state.items():
            assert type(value) is type(other[key])
            same = (
                values([value]) == values([other[key]])
                if hasattr(value, "numpy")
                else value == other[key]
            )
            assert same, (index, key)
    # A state that was saved by one way goes on by the other.
    second.load_state_dict(a)
    for params, optimizer in ((together, first), (alone, second)):
        set_gradients(params, 9)
        optimizer.step()
    assert values(together) == values(alone)


def test_an_update_of_ones_own_is_called_for_each_parameter():
    seen = []

    class Own(optim.Adam):
        def update(self, param, grad, state, group):
            seen.append(tuple(param.shape))
            super().update(param, grad, state, group)

    params = [nn.Parameter(tenon.ones([n])) for n in (1, 2, 3)]
    optimizer = Own(params)
    set_gradients(params, 0)
    optimizer.step()
    assert seen == [(1,), (2,), (3,)] and not Own.takes_lists and optim.Adam.takes_lists


def test_other_parameters_fall_back(calls):
    """Large, complex and low-precision parameters, and sparse gradients, are updated alone."""

    def made():
        tenon.manual_seed(0)
        table = nn.Embedding(5, 3, sparse=True)
        plain = [
            nn.Parameter(tenon.ones([3])),
            nn.Parameter(tenon.ones([3], dtype=tenon.complex64)),
        ]
        return [*table.parameters(), *plain, nn.Parameter(tenon.ones([4]))], table

    results = []
    for together in (True, False):
        params, table = made()
        optimizer = optim.SGD(params, lr=0.1)
        optimizer.updates_together = together
        for _ in range(2):
            optimizer.zero_grad()
            loss = table(tenon.tensor([1, 1, 4])).sum() + sum(
                tenon.abs(p * p).sum() for p in params[1:]
            )
            loss.backward()
            optimizer.step()
        results.append(values(params))
    assert results[0] == results[1] and set(calls) == {2}


def test_a_program_holds_the_update():
    model = nn.Sequential(*(nn.Linear(4, 4) for _ in range(3)))
    optimizer = optim.AdamW(model.parameters(), lr=0.01)

    def step(x):
        optimizer.zero_grad()
        loss = (model(x) ** 2).sum()
        loss.backward()
        optimizer.step()
        return loss

    train, x = tenon.compile(step), tenon.ones([2, 4])
    copy = nn.Sequential(*(nn.Linear(4, 4) for _ in range(3)))
    copy.load_state_dict(model.state_dict())
    other = optim.AdamW(copy.parameters(), lr=0.01)
    for _ in range(6):
        got = train(x)
        other.zero_grad()
        want = (copy(x) ** 2).sum()
        want.backward()
        other.step()
        assert got.item() == want.item()
    assert "program" in train.explain()
    assert values(model.parameters()) == values(copy.parameters())


def test_gradients_are_clipped_together(calls):
    params, others = parameters(("float32",)), parameters(("float32",))
    small = [i for i, p in enumerate(params) if p.numel() <= 1 << 16]
    for each in (params, others):
        set_gradients(each, 5)
    norm = nn.utils.clip_grad_norm_([params[i] for i in small], 0.5)
    grads = [others[i].grad for i in small]
    want = tenon.sqrt(tenon.sum(tenon.stack([tenon.sum(tenon.square(g)) for g in grads])))
    scale = tenon.minimum(0.5 / (want + 1e-6), 1.0)
    assert calls and norm.item() == want.item()
    assert values([params[i].grad for i in small]) == values([g * scale for g in grads])
    set_gradients(params, 5)
    norm = nn.utils.clip_grad_norm_(params, 0.5)  # with a large one
    np.testing.assert_allclose(
        nn.utils.get_total_norm([p.grad for p in params]).item(), 0.5, rtol=1e-5
    )
    assert norm.item() > 0.5


def test_calls_for_lists_say_what_they_take():
    add, x = _core.operator("add"), tenon.ones([2])
    assert [t.tolist() for t in _core.call_each(add, [x, x * 2], 1.0)] == [[2.0, 2.0], [3.0, 3.0]]
    assert [t.tolist() for t in _core.call_each(add, x, [x, x * 3])] == [[2.0, 2.0], [4.0, 4.0]]
    out = [tenon.zeros([2]), tenon.zeros([2])]
    assert _core.call_each(add, [x, x], y=[x, x], out=out) == [] and out[1].tolist() == [2.0, 2.0]
    assert _core.call_each(add, [], []) == []
    values_and_places = _core.call_each(_core.operator("topk"), [x, x], 1)
    assert [len(each) for each in values_and_places] == [2, 2]
    for arguments, keywords, text in [
        ((add, x, x), {}, "add: expected a list of tensors among the arguments, got none"),
        ((add, [x], [x, x]), {}, "expected lists of one length"),
        ((add, [x], [1.0]), {}, "expected lists of tensors, got float at index 0"),
        ((add, [x], x), {"out": [x, x]}, "expected lists of one length"),
        ((add, [x], x), {"out": x}, "expected a list for each result as `out`"),
        ((add, [x], x), {"z": 1}, "unknown keyword"),
        (
            (_core.operator("sum"), x),
            {"axis": [x]},
            "expected lists for parameters that are tensors",
        ),
        ((_core.operator("concat"), [x]), {}, "expected an operator of tensors"),
        ((abs, [x]), {}, "expected an operator, got builtin_function_or_method"),
    ]:
        with pytest.raises(TypeError, match=text):
            _core.call_each(*arguments, **keywords)
    with pytest.raises(ValueError, match="add"):
        _core.call_each(add, [x, x], [x, tenon.ones([3])])


def test_an_operator_is_not_replaced_while_it_is_called_for_lists():
    def define(body):
        return tenon.op("manyops::shifted(Tensor x, int n) -> Tensor")(body)

    define(lambda x, n: x + n)
    op, x = _core.operator("manyops::shifted"), tenon.ones([2])

    class Replaces:
        def __index__(self):
            define(lambda x, n: x * 0)
            return 1

    for _ in range(2):  # a call that fails is over
        with pytest.raises(RuntimeError, match="manyops::shifted is being called; define it anew"):
            _core.call_each(op, [x, x], Replaces())
    assert [t.tolist() for t in _core.call_each(op, [x, x], 1)] == [[2.0, 2.0]] * 2
    define(lambda x, n: x - n)
    assert [t.tolist() for t in _core.call_each(op, [x, x], 1)] == [[0.0, 0.0]] * 2
