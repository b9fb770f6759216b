# SPDX-License-Identifier: Apache-2.0
"""GGUF files with 256 numbers in a block that are written here, and products of integers with them."""

import json

import numpy
import pytest
import tenon
from tenon.cli import main
from tenon.llm import Decoder, LanguageModel, Tokenizer, load, save_gguf
from test_decoder import IDS, config, step
from test_gguf_models import decoder_of
from tiny_model import byte_tokenizer, folder_of

LARGE = ["q2_K", "q3_K", "q4_K", "q5_K", "q6_K"]


def model_of_width_256():
    made = config(
        vocab_size=256,
        hidden_size=256,
        intermediate_size=256,
        head_dim=64,
        layer_options=(PLAIN,) * 2,
    )
    numbers = numpy.random.default_rng(5)
    weights = {
        name: tenon.from_numpy(numbers.normal(0, 0.08, shape).astype(numpy.float32))
        for name, shape in made.weight_shapes().items()
    }
    return Decoder(made, weights)


PLAIN = decoder_of("llama").config.layer_options[0]


@pytest.mark.parametrize("form", LARGE)
def test_files_of_large_blocks(form, tmp_path):
    decoder = model_of_width_256()
    path = tmp_path / "a.gguf"
    model = LanguageModel(decoder, Tokenizer(text=json.dumps(byte_tokenizer())))
    counts = save_gguf(model, path, form)
    assert counts[form.upper()] == 16 and set(counts) == {form.upper(), "F32"}
    made = load(path).decoder
    assert made.weights["layers.0.mlp.up.weight"].format == form
    wanted = step(decoder, decoder.new_pools(3), [(IDS, 0, [0, 1, 2])])
    rows = step(made, made.new_pools(3), [(IDS, 0, [0, 1, 2])])
    part = {"q2_K": 0.5, "q3_K": 0.25, "q4_K": 0.12, "q5_K": 0.06, "q6_K": 0.03}[form]
    assert numpy.abs(rows - wanted).std() < part * wanted.std()
    # The same blocks times integers, for one row and for many.
    fast = load(path, activations="int8").decoder
    whole = step(fast, fast.new_pools(3), [(IDS, 0, [0, 1, 2])])
    assert numpy.abs(whole - rows).std() < 0.03 * wanted.std()
    pools = fast.new_pools(3)
    for at, token in enumerate(IDS[:5]):
        assert step(fast, pools, [([token], at, [0, 1, 2])])[0].tobytes() == whole[at].tobytes()


@pytest.mark.parametrize("form", LARGE)
def test_the_wheel_reads_them(form, tmp_path):
    gguf = pytest.importorskip("gguf")
    path = tmp_path / "a.gguf"
    model = LanguageModel(model_of_width_256(), Tokenizer(text=json.dumps(byte_tokenizer())))
    save_gguf(model, path, form)
    kind = getattr(gguf.GGMLQuantizationType, form.upper())
    (stored,) = [each for each in gguf.GGUFReader(path).tensors if each.name == "output.weight"]
    assert stored.tensor_type == kind
    read = load(path).decoder.weights["head.weight"].dequantized().numpy()
    assert (gguf.dequantize(stored.data, kind) == read).all()


def test_rows_that_are_too_short_have_small_blocks(tmp_path):
    counts = save_gguf(decoder_of("llama"), tmp_path / "a.gguf", "q4_K")
    assert "Q5_0" in counts and "Q4_K" not in counts


def test_commands_take_activations(tmp_path, capsys):
    folder = folder_of(tmp_path)
    save_gguf(decoder_of("llama"), tmp_path / "a.gguf", "q8_0")
    with pytest.raises(ValueError, match="expected activations 'float' or 'float8' of a folder"):
        load(folder, activations="int8")
    assert main(["generate", str(folder), "abc", "--activations", "int8"]) == 1
    assert "expected activations 'float' or 'float8' of a folder" in capsys.readouterr().err
    with pytest.raises(
        ValueError, match="expected activations 'float', 'int8' or 'float8', got 'int4'"
    ):
        load(tmp_path / "a.gguf", activations="int4")
