# SPDX-License-Identifier: Apache-2.0
"""quantize_float8: what is stored, how near results are, and what is refused."""

import numpy as np
import pytest
import tenon
from tenon import nn
from tenon import quantization as q


def network():
    tenon.manual_seed(0)
    return nn.Sequential(nn.LayerNorm(160), nn.Linear(160, 200), nn.GELU(), nn.Linear(200, 10))


def batches(count=3):
    rng = np.random.default_rng(1)
    return [tenon.tensor(rng.standard_normal((32, 160)).astype(np.float32)) for _ in range(count)]


@pytest.mark.parametrize("dtype, least", [("float8_e4m3", 24), ("float8_e5m2", 21)])
@pytest.mark.parametrize("scales", ["tensor", "row", "block"])
@pytest.mark.parametrize("activations", ["float", "dynamic", "static"])
def test_results_are_near_those_of_floats(dtype, least, scales, activations):
    model, data = network(), batches()
    given = data if activations == "static" else None
    small = q.quantize_float8(model, dtype, scales=scales, activations=activations, batches=given)
    assert isinstance(model[1], nn.Linear)  # the given one stays
    layer = small[1]
    assert isinstance(layer, q.Float8Linear) and layer.weight.dtype == getattr(tenon, dtype)
    shape = {"tensor": (), "row": (200, 1), "block": (2, 2)}[scales]
    assert tuple(layer.weight_scale.shape) == shape
    result = q.report(model, small, data)
    assert [each.name for each in result.layers] == ["1", "3"] and result.sqnr > least
    assert all(each.bytes < 0.3 * each.float_bytes for each in result.layers)
    assert f"activations={activations!r}" in repr(layer)


def test_the_largest_weight_of_each_part_is_the_largest_number():
    model = network()
    weight = q.quantize_float8(model)[1].weight.to("float32").abs()
    assert (weight.max([1]) == 448).all()
    zeros = nn.Linear(16, 4, bias=False)
    with tenon.no_grad():
        zeros.weight.copy_(tenon.zeros((4, 16)))
    assert (q.quantize_float8(zeros)(tenon.ones((1, 16))) == 0).all()


def test_states_are_read_again(tmp_path):
    model, data = network(), batches(1)
    small = q.quantize_float8(model, activations="static", batches=data)
    tenon.save(small.state_dict(), tmp_path / "small.safetensors")
    other = q.quantize_float8(nn.Sequential(*network()), activations="static", batches=batches(2))
    other.load_state_dict(tenon.load(tmp_path / "small.safetensors"))
    with tenon.no_grad():
        assert other(data[0]).numpy().tobytes() == small(data[0]).numpy().tobytes()


def test_what_is_refused():
    model = network()
    for pattern, options in {
        "dtype: expected 'float8_e4m3', 'float8_e5m2', got 'int8'": {"dtype": "int8"},
        "scales: expected 'tensor', 'row', 'block', got 'column'": {"scales": "column"},
        "activations: expected 'float', 'dynamic', 'static', got 'int8'": {"activations": "int8"},
        "expected batches with activations 'static'": {"activations": "static"},
        "and with these alone": {"batches": batches()},
        "keep: 'head' fits no module": {"keep": ["head"]},
    }.items():
        with pytest.raises(ValueError, match=pattern):
            q.quantize_float8(model, **options)
    with pytest.raises(ValueError, match="has no layer to quantise"):
        q.quantize_float8(nn.Sequential(nn.ReLU()))
