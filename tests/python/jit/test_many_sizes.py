# SPDX-License-Identifier: Apache-2.0
"""Exported programs whose inputs' sizes each call chooses."""

import math
import threading

import numpy as np
import pytest
import tenon
from tenon import nn
from tenon.jit import Dim

F = nn.functional


def agree(function, shape, axis, dim, sizes):
    """The program of `function` gives its bits at all `sizes`."""
    with tenon.no_grad():
        program = tenon.export(function, tenon.rand(*shape), dynamic_shapes=[{axis: dim}])
        for size in sizes:
            other = list(shape)
            other[axis] = size
            x = tenon.rand(*other)
            np.testing.assert_array_equal(program(x).numpy(), function(x).numpy())
    return program


def requirements(program):
    return [line[8:] for line in str(program).splitlines() if line.startswith("require ")]


def convolutions():
    return nn.Sequential(
        nn.Conv2d(3, 4, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(4, 4, 3, stride=2, padding=1),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(4, 3),
    )


def encoder():
    return nn.TransformerEncoderLayer(16, 4, 32).eval()


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.project = nn.Linear(16, 48)

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = self.project(x).reshape(batch, length, 3, 2, 8).permute(2, 0, 3, 1, 4)
        scores = q @ k.transpose(-1, -2) / math.sqrt(8)
        seen = tenon.tril(tenon.ones(length, length)) > 0
        weights = tenon.where(seen, scores, -1e9).softmax(-1)
        return (weights @ v).transpose(1, 2).reshape(batch * length, width)


@pytest.mark.parametrize(
    ("function", "shape", "axis", "dim", "sizes"),
    [
        (nn.Sequential(nn.Linear(8, 16), nn.ReLU()), (4, 8), 0, Dim("n", max=64), (1, 2, 64)),
        (nn.Linear(8, 2), (1, 8), 0, Dim("n", max=64), (1, 2, 64)),
        (convolutions(), (2, 3, 16, 16), 0, Dim("n", max=8), (1, 3, 8)),
        (convolutions(), (2, 3, 16, 16), 3, Dim("w", min=8, max=64), (8, 9, 10, 11, 63, 64)),
        (encoder(), (3, 6, 16), 0, Dim("n", max=20), (1, 2, 20)),
        (encoder(), (3, 6, 16), 1, Dim("t", max=20), (1, 2, 20)),
        (Attention(), (3, 6, 16), 1, Dim("t", max=20), (1, 2, 20)),
        (lambda x: x[-1] * 2, (4, 3), 0, Dim("n", max=64), (1, 5, 64)),
        (lambda x: x.reshape(-1)[1:] + 1, (4, 3), 0, Dim("n", max=64), (1, 5, 64)),
        (lambda x: x.sum(0) / x.shape[0], (4, 3), 0, Dim("n", max=64), (1, 5, 64)),
        (lambda x: x * x.size + x.numel(), (4, 3), 0, Dim("n", max=64), (1, 5, 64)),
        (lambda x: x.flip([0])[::2] * 2, (4, 3), 0, Dim("n", max=64), (1, 2, 5, 64)),
        (lambda x: tenon.sort(x, 0), (4, 3), 0, Dim("n", max=64), (1, 2, 64)),
        (
            lambda x: tenon.arange(x.shape[0] * (x.shape[0] + 1) // 2),
            (4,),
            0,
            Dim("n", max=9),
            (1, 9),
        ),
        (lambda x: tenon.ones([3 * x.shape[0] - 2]), (4,), 0, Dim("n", max=9), (1, 9)),
        (lambda x: x * 2, (3, 2), 0, Dim("n", min=3, max=5), (3, 4, 5)),
        (lambda x: x * 2, (4, 2), 0, Dim("n", min=4, max=9, multiple_of=4), (4, 8)),
    ],
)
def test_results_are_the_functions_bits_at_every_size(function, shape, axis, dim, sizes):
    agree(function, shape, axis, dim, sizes)


def test_a_network_with_state():
    lstm = nn.LSTM(5, 4, batch_first=True)
    program = agree(lambda x: lstm(x)[0], (3, 6, 5), 1, Dim("t", max=20), (1, 2, 20))
    assert "t != 0" in requirements(program)


def test_two_sizes_and_their_products(tmp_path):
    layer = Attention()
    n, t = Dim("n", max=16), Dim("t", min=2, max=12)
    with tenon.no_grad():
        program = tenon.export(layer, tenon.rand(3, 6, 16), dynamic_shapes=[{0: n, 1: t}])
    text = str(program)
    assert "dimension n from 1 to 16 by 1 at 3" in text
    assert "float32[n*t, 16]" in text and "shape=[n, t, 3, 2, 8]" in text
    assert [repr(d) for d in program.dimensions] == [
        "Dim('n', min=1, max=16)",
        "Dim('t', min=2, max=12)",
    ]
    assert "Dim('n', min=1, max=16), Dim('t', min=2, max=12)" in repr(program)
    program.save(tmp_path / "attention.tenon")
    loaded = tenon.jit.load(tmp_path / "attention.tenon")
    assert str(loaded) == text
    faster = loaded.optimize(numerics="fast")
    assert [d.name for d in faster.dimensions] == ["n", "t"]
    with tenon.no_grad():
        for sizes in [(1, 2), (16, 12), (5, 5), (2, 11), (16, 12)]:
            x = tenon.rand(*sizes, 16)
            expected = layer(x).numpy()
            for each in (program, loaded):
                np.testing.assert_array_equal(each(x).numpy(), expected)
            np.testing.assert_allclose(faster(x).numpy(), expected, rtol=1e-5, atol=1e-6)


def test_leaves_are_those_of_the_function():
    layer = nn.Linear(4, 2)
    program = tenon.export(layer, tenon.rand(3, 4), dynamic_shapes=[{0: Dim("n", max=8)}])
    x = tenon.rand(5, 4)
    before = program(x).detach().numpy().copy()
    with tenon.no_grad():
        layer.weight.mul_(2)
        layer.bias.zero_()
    after = program(x).detach().numpy()
    np.testing.assert_array_equal(after, layer(x).detach().numpy())
    assert (before != after).any()
    assert set(program.leaves) == {"weight", "bias"}


def test_a_training_step_of_any_batch():
    def trained(compiled):
        tenon.manual_seed(5)
        model = nn.Sequential(nn.Linear(6, 8), nn.GELU(), nn.Linear(8, 3))
        optimizer = tenon.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)

        def step(x, y):
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
            return loss.detach()

        state = {name: value.clone() for name, value in model.state_dict().items()}
        n = Dim("n", max=32)
        example = (tenon.rand(4, 6), tenon.tensor([0, 1, 2, 1]))
        run = tenon.export(step, example, dynamic_shapes=[{0: n}, {0: n}]) if compiled else step
        if not compiled:
            step(*example)
        model.load_state_dict(state)
        with tenon.no_grad():
            for group in optimizer.state.values():
                for value in group.values():
                    if isinstance(value, tenon.Tensor):
                        value.zero_()
        tenon.manual_seed(6)
        return [
            run(tenon.rand(size, 6), tenon.randint(0, 3, (size,))).item()
            for size in (3, 32, 1, 17, 3, 9)
        ]

    assert trained(True) == trained(False)


def test_gradients_pass_through_it():
    model = nn.Sequential(nn.Linear(6, 8), nn.Tanh())
    program = tenon.export(model, tenon.rand(4, 6), dynamic_shapes=[{0: Dim("n", max=32)}])
    x = tenon.rand(9, 6, requires_grad=True)
    got = tenon.grad((program(x) ** 2).sum(), [x, *model.parameters()])
    want = tenon.grad((model(x) ** 2).sum(), [x, *model.parameters()])
    for a, b in zip(got, want, strict=True):
        np.testing.assert_array_equal(a.numpy(), b.numpy())


def test_loops_and_branches_on_tensors():
    dim = Dim("n", max=20)

    def summed(x):
        def body(i, total):
            return i + 1, total + x.sum(0)

        start = (tenon.tensor(0), tenon.zeros(3))
        return tenon.jit.while_loop(lambda i, total: i < 3, body, start)[1]

    agree(summed, (4, 3), 0, dim, (1, 20))
    agree(
        lambda x: tenon.jit.scan(lambda c, row: (c + row, c * 2), tenon.zeros(3), x)[1],
        (4, 3),
        0,
        dim,
        (1, 7, 20),
    )


def test_any_thread_and_more_sizes_than_are_kept():
    model = nn.Linear(4, 4)
    wrong = []
    with tenon.no_grad():
        program = tenon.export(model, tenon.rand(3, 4), dynamic_shapes=[{0: Dim("n", max=99)}])

    def run(seed):
        with tenon.no_grad():
            for size in np.random.default_rng(seed).permutation(99) + 1:
                x = tenon.ones(int(size), 4)
                if not (program(x) == model(x)).all().item():
                    wrong.append(size)

    threads = [threading.Thread(target=run, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


# -- what is asked of sizes ---------------------------------------------------------------------------


def test_comparisons_become_requirements():
    dim = Dim("n", max=8)
    program = agree(lambda x: x * 2 if x.shape[0] <= 8 else x * 3, (4, 3), 0, dim, (1, 8))
    assert requirements(program) == ["n <= 8"]
    program = agree(
        lambda x: x[: x.shape[0] // 2] * 2,
        (4, 3),
        0,
        Dim("n", min=2, max=64, multiple_of=2),
        (2, 64),
    )
    assert requirements(program) == ["n % 2 == 0"]
    halves = tenon.export(
        lambda x: x * 2 if x.shape[0] != 1 else x, tenon.rand(4), dynamic_shapes=[{0: dim}]
    )
    assert halves(tenon.ones(2)).tolist() == [2, 2]
    with pytest.raises(
        ValueError, match=r"recorded for sizes with `n != 1`, got n = 1; export the function"
    ):
        halves(tenon.ones(1))


def table(x):
    return {4: x}.get(x.shape[0], x * 2)


@pytest.mark.parametrize(
    ("function", "text"),
    [
        (lambda x: x * 2 if x.shape[0] > 8 else x, r"does something else.*n = 4\n    4 <= 8\n.*n = 64\n    64 > 8"),
        (lambda x: x if x.shape[0] == 3 else x * 2, r"does something else"),
        (lambda x: x[: min(x.shape[0], 6)] + 0, r"does something else.*\n    4 <= 6"),
        (lambda x: x[:10] * 2, r"at another size"),
        (lambda x: x[: x.shape[0] // 2] * 2, r"no expression of the sizes.*\n    4 % 2 == 0"),
        (lambda x: F.pad(x, [0, -x.shape[0] % 4]), r"no expression of the sizes"),
        (lambda x: x.reshape(len(x), -1) * 2, r"len\(\) at \".*test_many_sizes.py\":\d+ gives Python a plain"),
        (lambda x: x * int(x.shape[0]), r"int\(\) at .* 4 at n = 4 and 2 at n = 2. Use sizes as x.shape"),
        (lambda x: x * (1 / x.shape[0]), r"rtruediv\(\) at"),
        (lambda x: x * math.sqrt(x.shape[0]), r"float\(\) at"),
        (lambda x: x * 2 if x.shape[0] > 3.5 else x, r"a comparison with a float"),
        (lambda x: x * 2 if f"{x.shape[0]}" == "9" else x, r"format\(\) at"),
        (table, r"hash\(\) at"),
        (lambda x: x * tenon.tensor(np.ones(x.shape)), r"a tensor float64\[4, 3\] cpu:0 from outside at n = 4"),
        (lambda x: sum(x[i] for i in range(x.shape[0])), r"does something else at another size"),
        (lambda x: (x, x.shape[0]), r"the function returns \(Tensor, 2\) at n = 2, and \(Tensor, 4\) at n = 4"),
        (lambda x: list(x), r"len\(\) at"),
    ],
)  # fmt: skip
def test_what_cannot_be_told_is_refused(function, text):
    with pytest.raises(RuntimeError, match=f"(?s)export: .*{text}"):
        tenon.export(function, tenon.rand(4, 3), dynamic_shapes=[{0: Dim("n", max=64)}])


def test_an_operator_that_makes_something_else_at_a_size_is_found():
    with tenon.no_grad():
        program = tenon.export(
            lambda x: x.unsqueeze(1).squeeze(),
            tenon.rand(4, 3),
            dynamic_shapes=[{0: Dim("n", max=9)}],
        )
    assert program(tenon.rand(2, 3)).shape == (2, 3)
    with pytest.raises(ValueError, match=r"for n = 1, `tenon::squeeze` at .* makes float32\[3\]"):
        program(tenon.rand(1, 3))


def test_inputs_of_other_sizes_are_refused():
    n = Dim("n", min=2, max=8, multiple_of=2)
    program = tenon.export(
        lambda x, y: x + y, (tenon.rand(4, 3), tenon.rand(4, 3)), dynamic_shapes=[{0: n}, {0: n}]
    )

    def call(*shapes):
        return program(*(tenon.ones(shape) for shape in shapes))

    assert call((6, 3), (6, 3)).shape == (6, 3)
    with pytest.raises(
        ValueError, match="axis 0 of size n from 2 to 8, multiples of 2, got float32"
    ):
        call((5, 3), (5, 3))
    with pytest.raises(
        ValueError, match="input 1: expected axis 0 of size n = 4 as in other inputs"
    ):
        call((4, 3), (6, 3))
    with pytest.raises(ValueError, match="input 0: expected 2 axes"):
        call((4,), (4, 3))
    with pytest.raises(
        ValueError, match=r"input 1: expected float32\[4, 3\] cpu:0, got float32\[4, 2\]"
    ):
        call((4, 3), (4, 2))


def test_arguments_of_export():
    n, x = Dim("n", max=8), tenon.rand(4, 3)

    def export(*args, shapes):
        return tenon.export(lambda *a: a[0] + 1, args, dynamic_shapes=shapes)

    with pytest.raises(ValueError, match="an entry for each of 1 inputs, got 2"):
        export(x, shapes=[{0: n}, None])
    with pytest.raises(ValueError, match="with axes of 2, got 2: Dim"):
        export(x, shapes=[{2: n}])
    with pytest.raises(ValueError, match="expected dynamic_shapes such as"):
        export(x, shapes=[{0: "n"}])
    with pytest.raises(ValueError, match="expected a tenon.Dim in dynamic_shapes, got none"):
        export(x, shapes=[None])
    with pytest.raises(ValueError, match=r"expected an example of Dim\('n', min=1, max=3\)"):
        export(x, shapes=[{0: Dim("n", max=3)}])
    with pytest.raises(ValueError, match="is 4 and 3 in the example; expected one size"):
        export(x, shapes=[{0: n, 1: n}])
    with pytest.raises(ValueError, match="expected one Dim called 'n', got two"):
        export(x, shapes=[{0: n, 1: Dim("n", max=9)}])
    with pytest.raises(ValueError, match="cannot be called 'nan'|another name for a dimension"):
        export(x, shapes=[{0: Dim("nan", max=9)}])
    for wrong in (
        {"name": "1n", "max": 3},
        {"name": "n", "min": 0, "max": 3},
        {"name": "n", "max": 2**31},
    ):
        with pytest.raises(ValueError, match="Dim: expected"):
            Dim(**wrong)
    pair = tenon.export(
        lambda a: a["x"][0] + a["x"][1],
        ({"x": [x, x + 1]},),
        dynamic_shapes=[[{0: n}, {-2: n}]],
    )
    assert pair({"x": [tenon.ones(7, 3), tenon.ones(7, 3)]}).shape == (7, 3)
    with pytest.raises(ValueError, match="an entry for each of 2 tensors of an input"):
        tenon.export(lambda a: a[0], ([x, x + 1],), dynamic_shapes=[[{0: n}]])


def test_sizes_are_plain_numbers_again_afterwards():
    with pytest.raises(RuntimeError):
        tenon.export(
            lambda x: x * float(x.shape[0]), tenon.rand(4), dynamic_shapes=[{0: Dim("n", max=9)}]
        )
    assert type(tenon.ones(3).shape[0]) is int and type(tenon.ones(3).size) is int


def test_regions_of_mixed_precision_do_not_change_what_a_size_needs():
    linear = nn.Linear(8, 4)
    with tenon.no_grad():
        program = tenon.export(
            lambda x: linear(x).relu(), tenon.rand(4, 8), dynamic_shapes=[{0: Dim("n", max=16)}]
        )
        x = tenon.rand(7, 8)
        with tenon.amp.autocast(dtype="bfloat16"):
            first = program(x)  # made for this size here
        expected = program(x)
    np.testing.assert_allclose(
        first.to(tenon.float32).numpy(), expected.numpy(), rtol=0.02, atol=0.02
    )
