# SPDX-License-Identifier: Apache-2.0
"""Recipes for programs, and the search for layers that stay."""

import numpy as np
import pytest
import tenon
from tenon import nn
from tenon import quantization as q


@pytest.fixture(autouse=True)
def without_gradients(request):
    if "training" in request.node.name:
        yield
        return
    with tenon.no_grad():
        yield


class Network(nn.Module):
    """Convolutions, a product by matmul and one by linear, in a structure of results."""

    def __init__(self):
        tenon.manual_seed(0)
        self.first = nn.Conv2d(3, 16, 3, padding=1)
        self.norm = nn.BatchNorm2d(16)
        self.second = nn.Conv2d(16, 32, 3, stride=2, groups=2, bias=False)
        self.hidden = nn.Parameter(tenon.randn([32 * 9, 64]) * 0.1)
        self.head = nn.Linear(64, 10)

    def forward(self, x):
        x = tenon.relu(self.second(tenon.relu(self.norm(self.first(x)))))
        x = tenon.relu(x.reshape([x.shape[0], -1]) @ self.hidden)
        return {"scores": self.head(x)}


class Scores(nn.Module):
    def __init__(self):
        self.network = Network()

    def forward(self, x):
        return self.network(x)["scores"]


def batches(count=3, rows=8):
    rng = np.random.default_rng(1)
    return [
        tenon.tensor(rng.standard_normal((rows, 3, 8, 8)).astype(np.float32)) for _ in range(count)
    ]


def program(**options):
    return tenon.export(Scores().eval(), (batches(1)[0],), **options)


NAMES = ["conv2d_0", "conv2d_1", "matmul_2", "linear_3"]


def test_layers_of_a_program_compute_what_it_does():
    given, data = program(), batches()
    layers = q.ProgramLayers(given)
    assert [name for name, _ in layers.named_children()] == NAMES
    for x in data:
        np.testing.assert_allclose(layers(x).numpy(), given(x).numpy(), rtol=1e-5, atol=1e-5)
    again = layers.program()
    np.testing.assert_allclose(again(data[0]).numpy(), given(data[0]).numpy(), rtol=1e-5, atol=1e-5)


RECIPES = {
    "int8": (lambda model, data: q.convert(observed(model, data)), 28),
    "q8_0": (lambda model, data: q.quantize_weights(model, "q8_0"), 35),
    "q4_K": (lambda model, data: q.quantize_weights(model, "q4_K"), 12),
    "int8 activations": (
        lambda model, data: q.quantize_weights(model, "q8_0", activations="int8"),
        33,
    ),
    "float8": (lambda model, data: q.quantize_float8(model), 25),
    "float8 in blocks": (
        lambda model, data: q.quantize_float8(model, scales="block", activations="dynamic"),
        22,
    ),
    "gptq": (lambda model, data: q.gptq(model, data, "q4_0"), 14),
}


def observed(model, data):
    seen = q.observe(model)
    for x in data:
        seen(x)
    return seen


@pytest.mark.parametrize("recipe", RECIPES)
def test_recipes_take_programs_and_give_them_back(recipe):
    given, data = program(), batches()
    quantize, least = RECIPES[recipe]
    small = quantize(given, data)
    result = q.report(given, small, data)
    assert result.sqnr > least
    assert [each.name for each in result.layers] == (NAMES if recipe == "int8" else NAMES[2:])
    made = small.program()
    np.testing.assert_allclose(made(data[0]).numpy(), small(data[0]).numpy(), rtol=1e-4, atol=1e-4)
    assert made.input_names == given.input_names
    names = {step.name for step in made.graph}
    if recipe == "int8":
        assert {"tenon::conv2d_integer", "tenon::matmul_integer"} <= names
        assert not {"tenon::conv2d", "tenon::matmul", "tenon::linear"} & names


def test_programs_on_disk_and_of_open_sizes(tmp_path):
    given = program(dynamic_shapes=[{0: tenon.Dim("rows", max=64)}])
    small = q.quantize_float8(given)
    made = small.program()
    made.save(tmp_path / "small.tenon")
    again = tenon.jit.load(tmp_path / "small.tenon")
    x = batches(1, rows=5)[0]
    assert [dim.name for dim in again.dimensions] == ["rows"]
    assert again(x).numpy().tobytes() == made(x).numpy().tobytes()
    # float8_e4m3 has three bits of mantissa, in each of several layers.
    np.testing.assert_allclose(again(x).numpy(), given(x).numpy(), rtol=0.2, atol=0.3)


def test_training_with_rounded_numbers_of_a_program():
    trained = q.prepare_training(program())
    optimizer = tenon.optim.SGD(trained.parameters(), lr=0.01)
    losses = []
    for x in batches(1) * 8:
        loss = (trained(x) ** 2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(float(loss))
    assert losses[-1] < losses[0]
    made = q.convert(trained.eval()).program()
    assert {"tenon::conv2d_integer"} <= {step.name for step in made.graph}


def test_what_programs_are_refused():
    with pytest.raises(ValueError, match="expected a program with products of weights"):
        q.quantize_weights(tenon.export(lambda x: x + 1, (tenon.ones(3),)))
    layers = q.ProgramLayers(program())
    with pytest.raises(ValueError, match=r"expected an input of shape \(8, 3, 8, 8\)"):
        layers(tenon.ones((2, 3, 8, 8)))
    with pytest.raises(ValueError, match="expected arguments"):
        layers(tenon.ones((8, 3, 8, 8)), 1)
    with pytest.raises(
        TypeError, match="expected layer 'conv2d_0' to be converted, got a Observed"
    ):
        q.observe(program()).program()
    weight = tenon.randn([4, 4])

    def branches(x):
        y = x @ weight
        return y if y.sum() > 0 else -y

    with pytest.raises(NotImplementedError, match="expected a program of calls"):
        q.quantize_weights(tenon.export(branches, (tenon.ones((2, 4)),)))


def in_four_bits(model, keep):
    return q.quantize_weights(model, "q4_0", keep=keep)


@pytest.mark.parametrize("kind", ["module", "program"])
def test_search_keeps_as_few_as_it_must(kind):
    tenon.manual_seed(0)
    model = nn.Sequential(
        nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 8)
    )
    data = [tenon.randn([64, 64]) for _ in range(2)]
    given = model if kind == "module" else tenon.export(model, (data[0],))
    nothing = q.search(given, data, in_four_bits, sqnr=5.0)
    assert nothing.keep == [] and nothing.report.sqnr >= 5.0
    plain = nothing.report.sqnr
    found = q.search(given, data, in_four_bits, sqnr=plain + 1, budget=1)
    assert 1 <= len(found.keep) < 3 and found.report.sqnr >= plain + 1
    assert isinstance(found.module.get_submodule(found.keep[0]), nn.Linear)
    with pytest.raises(ValueError, match="expected results 200 dB above their error, got"):
        q.search(given, data, in_four_bits, sqnr=200, budget=0.6)
    everything = q.search(given, data, in_four_bits, sqnr=200, budget=1)
    assert len(everything.keep) == 3 and everything.report is None


def test_what_search_refuses():
    with pytest.raises(TypeError, match="expected a list of batches"):
        q.search(Scores(), iter(batches()), in_four_bits, sqnr=20)
    with pytest.raises(ValueError, match="expected a budget from 0 to 1, got 2"):
        q.search(Scores(), batches(), in_four_bits, sqnr=20, budget=2)


def test_sums_of_programs_beyond_sixteen_bits():
    model = nn.Sequential(nn.Conv2d(64, 64, 1), nn.Flatten(), nn.Linear(64, 3)).to("float16")
    for layer, weight in ((model[0], 1.0), (model[2], 0.5)):
        layer.weight.fill_(weight)
        layer.bias.fill_(2.0)
    x = tenon.ones([2, 64, 1, 1], dtype="float16")
    small = q.convert(observed(tenon.export(model.eval(), (x,)), [x]))
    wanted = model(x).to("float32").numpy()
    for each in (small, small.program()):
        out = each(x)
        assert out.dtype == tenon.float16
        # Steps of eight bits; an overflow would be infinite.
        np.testing.assert_allclose(out.to("float32").numpy(), wanted, rtol=1e-2)


def test_tables_of_programs_stay():
    model = nn.Sequential(nn.Embedding(5, 32), nn.Linear(32, 3))
    given = tenon.export(model.eval(), (tenon.tensor([1, 2]),))
    with pytest.raises(NotImplementedError, match="expected embeddings=False of a Program"):
        q.quantize_weights(given, embeddings=True)
