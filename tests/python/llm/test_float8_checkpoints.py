# SPDX-License-Identifier: Apache-2.0
"""Folders whose matrices are float8 with scales, as compressed-tensors and DeepSeek's checkpoints name them."""

import json

import numpy
import pytest
import tenon
from tenon.io import safetensors
from tenon.llm import load
from tenon.llm.loading import read_decoder
from tenon.llm.models.float8 import Float8Weight
from tenon.quantization.float8 import float8_of
from test_decoder import step
from tiny_model import folder_of

IDS = [5, 9, 200, 31, 7]
FP8 = {"quant_method": "fp8", "fmt": "e4m3", "activation_scheme": "dynamic"}


def compressed(strategy, activations=True, **weights):
    numbers = {"num_bits": 8, "type": "float", "symmetric": True}
    rounded = {**numbers, "strategy": "token", "dynamic": True} if activations else None
    group = {
        "weights": {**numbers, "strategy": strategy, "dynamic": False, **weights},
        "input_activations": rounded,
        "targets": ["Linear"],
    }
    return {
        "quant_method": "compressed-tensors",
        "format": "float-quantized",
        "config_groups": {"group_0": group},
        "ignore": ["lm_head"],
        "quantization_status": "compressed",
    }


def rounded(kind, block_structure=None, **activations):
    """`compressed` with other words of what meets the matrices."""
    fields = compressed(kind, block_structure=block_structure)
    given = {"num_bits": 8, "type": "float", "symmetric": True, **activations}
    fields["config_groups"]["group_0"]["input_activations"] = given
    return fields


def scales_of(kind, weight):
    """A matrix as a checkpoint of this kind holds it: numbers, and the scale's name and shape."""
    if kind == "block":
        down, across = (-(-size // 16) for size in weight.shape)
        scale = tenon.full([down, across], 0.01)
        wide = tenon.repeat(tenon.repeat(scale, 16, 0), 16, 1)[: weight.shape[0], : weight.shape[1]]
        return (weight / wide).to("float8_e4m3"), "weight_scale_inv", scale
    numbers, scale = float8_of(weight, "float8_e4m3", kind)
    if kind == "tensor":
        scale = scale.reshape([1])
    return numbers, "weight_scale", scale.to("bfloat16") if kind == "row" else scale


CONFIGS = {
    "row": compressed("channel"),
    "tensor": compressed("tensor", activations=False),
    "block": {**FP8, "weight_block_size": [16, 16]},
}


def float8_folder(path, kind, fields=None, width=32):
    folder_of(path, width)
    file = path / "model.safetensors"
    tensors = dict(safetensors.read(str(file))[0])
    made = {}
    for name, tensor in tensors.items():
        if "_proj" not in name:
            made[name] = tensor
            continue
        numbers, scale_name, scale = scales_of(kind, tensor)
        made[name] = numbers
        made[name.removesuffix("weight") + scale_name] = scale
    safetensors.write(file, made)
    config = json.loads((path / "config.json").read_text())
    config["quantization_config"] = CONFIGS[kind] if fields is None else fields
    (path / "config.json").write_text(json.dumps(config))
    return path


def plain_of(decoder):
    """The same model with the floats that its matrices stand for."""
    weights = {
        name: weight.dequantized() if isinstance(weight, Float8Weight) else weight
        for name, weight in decoder.weights.items()
    }
    return type(decoder)(decoder.config, weights)


@pytest.mark.parametrize("kind", CONFIGS)
def test_folders_of_float8_compute_what_their_numbers_say(kind, tmp_path):
    decoder = read_decoder(float8_folder(tmp_path, kind))
    packed = [name for name, each in decoder.weights.items() if isinstance(each, Float8Weight)]
    assert len(packed) == 14 and "layers.0.query.weight" in packed
    got, want = (
        step(model, model.new_pools(2), [(IDS, 0, [1])]) for model in (decoder, plain_of(decoder))
    )
    numpy.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("kind", ["row", "block"])
def test_a_token_alone_has_the_bits_that_it_has_in_its_prompt(kind, tmp_path):
    float8_folder(tmp_path, kind)
    for activations in ("float", "float8"):
        decoder = read_decoder(tmp_path, activations=activations)
        whole = step(decoder, decoder.new_pools(2), [(IDS, 0, [1])])
        pools = decoder.new_pools(2)
        for at, token in enumerate(IDS):  # from the third on, a program
            alone = step(decoder, pools, [([token], at, [1])])[0]
            assert alone.tobytes() == whole[at].tobytes(), (activations, at)
    rounded = numpy.abs(
        whole - step(plain_of(decoder), decoder.new_pools(2), [(IDS, 0, [1])])
    ).max()
    assert 0 < rounded < 0.2 * numpy.abs(whole).max()


def test_models_of_float8_answer_and_are_converted(tmp_path):
    folder = tmp_path / "folder"
    folder.mkdir()
    model = load(float8_folder(folder, "row"), activations="float8")
    assert model.decoder.activations == "float8"
    assert isinstance(model.generate("abc", max_tokens=4), str)
    tenon.llm.save_gguf(load(folder), tmp_path / "plain.gguf")
    again = load(tmp_path / "plain.gguf")
    kept = again.decoder.weights["layers.1.mlp.up.weight"]
    want = load(folder).decoder.weights["layers.1.mlp.up.weight"].dequantized()
    assert (kept == want).all()


def test_fixed_scales_of_activations(tmp_path):
    float8_folder(tmp_path, "tensor", {**FP8, "activation_scheme": "static"})
    file = tmp_path / "model.safetensors"
    tensors = dict(safetensors.read(str(file))[0])
    for name in [name for name in tensors if name.endswith("_scale")]:
        tensors[name.replace("weight_scale", "input_scale")] = tenon.tensor([0.02])
    safetensors.write(file, tensors)
    decoder = read_decoder(tmp_path, activations="float8")
    weight = decoder.weights["layers.0.query.weight"]
    assert isinstance(weight, Float8Weight) and abs(weight.x_scale.item() - 0.02) < 1e-6
    x = tenon.randn([2, 32])
    near = (x / 0.02).to("float8_e4m3").to("float32") * 0.02
    numpy.testing.assert_allclose(
        weight.linear(x, None, "float8").numpy(),
        (near @ weight.dequantized().transpose(0, 1)).numpy(),
        rtol=1e-3,
        atol=1e-3,
    )


@pytest.mark.parametrize(
    "fields, pattern",
    [
        (
            {"quant_method": "gptq"},
            "expected quant_method 'fp8' or 'compressed-tensors', got 'gptq'",
        ),
        ("fp8", "expected quant_method"),
        ({**FP8, "fmt": "e5m2"}, "fmt: expected 'e4m3', got 'e5m2'"),
        ({**FP8, "activation_scheme": "none"}, "activation_scheme: expected 'dynamic' or 'static'"),
        ({**FP8, "weight_block_size": [0, 16]}, "a block of numbers above 0"),
        ({**FP8, "weight_block_size": 128}, "a block of two whole numbers"),
        (
            {**compressed("channel"), "format": "pack-quantized"},
            "format: expected 'float-quantized'",
        ),
        (
            {**compressed("channel"), "kv_cache_scheme": {"num_bits": 8}},
            "kv_cache_scheme: expected none",
        ),
        ({**compressed("channel"), "config_groups": {}}, "config_groups: expected one group"),
        (compressed("group"), "expected strategy 'tensor', 'channel' or 'block', got 'group'"),
        (compressed("channel", num_bits=4), "weights: num_bits: expected 8, got 4"),
        (
            rounded("channel", strategy="tensor", dynamic=True),
            "input_activations: strategy: expected 'token' with dynamic True and weights without blocks, got 'tensor'",
        ),
        (
            rounded("channel", strategy="token", dynamic=False),
            "strategy: expected 'tensor' with dynamic False and weights without blocks, got 'token'",
        ),
        (rounded("channel", strategy="token", dynamic="local"), "dynamic: expected true or false"),
        (
            rounded("block", block_structure=[16, 16], strategy="token", dynamic=True),
            "strategy: expected 'group' with dynamic True and weights in blocks, got 'token'",
        ),
        (
            rounded(
                "block", block_structure=[16, 16], strategy="group", group_size=32, dynamic=True
            ),
            "input_activations: group_size: expected 16, as many columns as a block .* got 32",
        ),
    ],
    ids=str,
)
def test_other_schemes_are_refused(fields, pattern, tmp_path):
    with pytest.raises(ValueError, match=pattern):
        read_decoder(float8_folder(tmp_path, "row", fields))


def test_matrices_whose_scales_do_not_fit_are_refused(tmp_path):
    float8_folder(tmp_path, "row")
    file = tmp_path / "model.safetensors"
    tensors = dict(safetensors.read(str(file))[0])
    name = "model.layers.0.mlp.up_proj"
    scale = tensors.pop(f"{name}.weight_scale")
    safetensors.write(file, tensors)
    with pytest.raises(ValueError, match=f"'{name}.weight': expected a matrix of float8 beside"):
        read_decoder(tmp_path)
    safetensors.write(file, {**tensors, f"{name}.weight_scale": scale[:5]})
    with pytest.raises(ValueError, match=r"expected scales of shape \(48, 1\), got \(5, 1\)"):
        read_decoder(tmp_path)
    with pytest.raises(
        ValueError, match="activations 'float' of a checkpoint that rounds weights alone"
    ):
        folder = tmp_path / "weights"
        folder.mkdir()
        read_decoder(float8_folder(folder, "tensor"), activations="float8")


@pytest.mark.parametrize(
    "fields",
    [
        rounded("tensor", strategy="tensor", dynamic=False),
        rounded("block", block_structure=[16, 16], strategy="group", group_size=16, dynamic=True),
    ],
    ids=["fixed", "groups"],
)
def test_other_words_of_what_meets_the_matrices(fields, tmp_path):
    kind = fields["config_groups"]["group_0"]["weights"]["strategy"]
    assert read_decoder(float8_folder(tmp_path, kind, fields), activations="float8")


@pytest.mark.parametrize(
    "scale, block",
    [
        (tenon.tensor(0.5), None),
        (tenon.arange(1, 8).reshape([7, 1]).to("float32"), None),
        (tenon.arange(1, 7).reshape([3, 2]).to("float32"), (3, 4)),
    ],
    ids=["one", "rows", "blocks"],
)
def test_rows_are_those_of_the_whole_matrix(scale, block):
    weight = Float8Weight(tenon.randn([7, 6]).to("float8_e4m3"), scale, block)
    for ids in (tenon.tensor([[6, 0, 3], [-1, -7, 2]]), tenon.tensor(5)):
        want = tenon.embedding(weight.dequantized(), ids)
        assert (weight.rows_at(ids) == want).all() and weight.rows_at(ids).shape == want.shape
    with pytest.raises(IndexError, match="expected positions from -7 to 6, got 7"):
        weight.rows_at(tenon.tensor([7]))
