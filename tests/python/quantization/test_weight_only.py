# SPDX-License-Identifier: Apache-2.0
"""Weights in blocks: modules, states, GPTQ, AWQ and SmoothQuant."""

import numpy as np
import pytest
import tenon
from tenon import nn
from tenon import quantization as q


def network():
    tenon.manual_seed(0)
    return nn.Sequential(
        nn.LayerNorm(48), nn.Linear(48, 64), nn.GELU(), nn.Linear(64, 40, bias=False)
    )


def batches(count=4, rows=64, seed=1):
    """Rows whose features have unequal sizes and go together, as activations do."""
    rng = np.random.default_rng(seed)
    mixing = np.random.default_rng(5).standard_normal((12, 48))
    scale = np.exp(np.random.default_rng(6).uniform(-2, 2, 48))
    return [
        tenon.tensor((rng.standard_normal((rows, 12)) @ mixing * scale).astype(np.float32))
        for _ in range(count)
    ]


def error(wanted, got, data):
    with tenon.no_grad():
        return float(sum(((wanted(x) - got(x)) ** 2).mean() for x in data))


@pytest.mark.parametrize("format", ["q8_0", "q4_0", "q4_1", "q5_0", "q5_1", "mxfp4", "q4_K"])
@pytest.mark.parametrize("activations", ["float", "int8"])
def test_linear_layers_hold_blocks(format, activations):
    model = network()
    small = q.quantize_weights(model, format, activations=activations)
    assert isinstance(model[1], nn.Linear)  # the given one stays
    layer = small[1]
    assert isinstance(layer, q.BlockLinear) and layer.weight.dtype == tenon.uint8
    assert layer.float_weight().shape == (64, 48)  # 48 is no multiple of a block
    result = q.report(model, small, batches())
    assert [each.name for each in result.layers] == ["1", "3"]
    assert result.sqnr > {"q8_0": 34, "mxfp4": 12}.get(format, 15)
    assert f"activations={activations!r}" in repr(layer)


def test_embeddings_hold_blocks():
    model = nn.Sequential(nn.Embedding(10, 40), nn.Linear(40, 8))
    small = q.quantize_weights(model, "q8_0", embeddings=True)
    assert isinstance(small[0], q.BlockEmbedding)
    indices = tenon.tensor([[1, 9], [0, 3]])
    wanted, got = model[0](indices), small[0](indices)
    assert got.shape == (2, 2, 40) and float(tenon.abs(wanted - got).max()) < 0.03


def test_states_and_shared_layers():
    shared = nn.Linear(32, 32)
    model = nn.Sequential(shared, nn.ReLU(), shared)
    small = q.quantize_weights(model, "q4_0")
    assert small[0] is small[2]
    other = q.quantize_weights(
        nn.Sequential(nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 32)), "q4_0"
    )
    other.load_state_dict(small.state_dict())
    x = tenon.normal([3, 32])
    assert small(x).numpy().tobytes() == other(x).numpy().tobytes()


def test_gradients_flow_through_blocks():
    small = q.quantize_weights(network(), "q8_0")
    x = tenon.normal([2, 48]).requires_grad_(True)
    small(x).sum().backward()
    assert float(tenon.abs(x.grad).max()) > 0


@pytest.mark.parametrize("format", ["q4_0", "q4_1", "q8_0"])
def test_gptq_is_nearer_than_rounding(format):
    model, data = network(), batches()
    plain = error(model, q.quantize_weights(model, format), batches(seed=2))
    chosen = error(model, q.gptq(model, data, format), batches(seed=2))
    assert chosen < 0.8 * plain


def test_gptq_takes_dead_inputs_and_keeps_layers():
    model, data = network(), batches()
    with tenon.no_grad():
        model[0].weight[3] = 0.0
        model[0].bias[3] = 0.0
    made = q.gptq(model, data, keep=["3"])
    assert isinstance(made[1], q.BlockLinear) and isinstance(made[3], nn.Linear)
    assert error(model, made, data) < 1


def test_smoothing_changes_no_result_and_helps_eight_bits():
    model, data = network(), batches()
    with tenon.no_grad():
        model[0].weight[5] = 60.0  # an outlier of activations
    smooth = q.smooth(model, {"0": ["1"]}, data)
    with tenon.no_grad():
        for x in data:
            np.testing.assert_allclose(smooth(x).numpy(), model(x).numpy(), rtol=1e-3, atol=1e-4)
    errors = []
    for each in (model, smooth):
        seen = q.observe(each)
        [seen(x) for x in data]
        errors.append(error(model, q.convert(seen), data))
    assert errors[1] < 0.5 * errors[0]


def test_awq_helps_four_bits():
    model, data = network(), batches()
    with tenon.no_grad():
        model[0].weight[5] = 20.0
    plain = error(model, q.quantize_weights(model), data)
    scaled = q.awq(model, {"0": ["1"]}, data)
    assert error(model, scaled, data) < 1e-6
    assert error(model, q.quantize_weights(scaled), data) < 0.8 * plain


def test_what_is_refused():
    model = network()
    with pytest.raises(TypeError, match="expected a Module or a Program, got Tensor"):
        q.quantize_weights(tenon.zeros([3]))
    with pytest.raises(ValueError, match="keep: 'head' fits no module; there are 0, 1, 2, 3"):
        q.quantize_weights(model, keep=["head"])
    with pytest.raises(TypeError, match="keep: expected a list of patterns, got the text '3'"):
        q.quantize_weights(model, keep="3")
    with pytest.raises(ValueError, match="has no layer to quantise; expected Linear"):
        q.quantize_weights(nn.Sequential(nn.ReLU()))
    with pytest.raises(ValueError, match="expected format 'q8_0', .* got 'iq3_s'"):
        q.quantize_weights(model, "iq3_s")
    with pytest.raises(ValueError, match="expected activations 'float' or 'int8', got 'int4'"):
        q.quantize_weights(model, activations="int4")
    with pytest.raises(ValueError, match="gptq: expected format 'q4_0', 'q4_1' or 'q8_0'"):
        q.gptq(model, batches(), "mxfp4")
    with pytest.raises(TypeError, match="gptq: expected a list of batches, which is run once for"):
        q.gptq(model, iter(batches()))
    with pytest.raises(ValueError, match="gptq: expected at least one batch, got none"):
        q.gptq(model, [])
    with pytest.raises(TypeError, match="smooth: expected '2' to be a LayerNorm, .* got GELU"):
        q.smooth(model, {"2": ["3"]}, batches())
    with pytest.raises(TypeError, match="expected '3' to be a Linear of the 48 features of '0'"):
        q.smooth(model, {"0": ["3"]}, batches())
    with pytest.raises(ValueError, match="smooth: expected alpha from 0 to 1, got 2"):
        q.smooth(model, {"0": ["1"]}, batches(), alpha=2)
    with pytest.raises(ValueError, match="report: Sequential has no quantised layer"):
        q.report(model, model, batches())
