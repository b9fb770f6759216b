# SPDX-License-Identifier: Apache-2.0
"""Models in GGUF files: written, read, and read where they claim to be what they are not."""

import dataclasses
import json
import random
import struct

import numpy
import pytest
import tenon
from tenon.cli import main
from tenon.llm import Decoder, Engine, LanguageModel, Tokenizer, load, save_gguf
from tenon.llm.loading import GgufError, GgufFile
from tenon.llm.loading.gguf_model import architectures
from tenon.llm.loading.gguf_writer import Entry, write_gguf
from tenon.llm.models import families
from tenon.llm.models.blocks import FORMATS, BlockWeight
from tenon.llm.quantize import quantize
from tiny_model import CONFIG, byte_tokenizer, folder_of

SIZES = {**CONFIG, "hidden_size": 64, "intermediate_size": 96}
EXPERTS = {"num_experts": 3, "moe_intermediate_size": 32, "num_experts_per_tok": 2}
LLAMA3 = {
    "rope_type": "llama3",
    "rope_theta": 500000.0,
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 32,
}
GPT2 = {"vocab_size": 256, "n_embd": 64, "n_layer": 2, "n_head": 4, "n_positions": 64}
GEMMA = {"head_dim": 16, "hidden_act": "gelu_pytorch_tanh", "tie_word_embeddings": True}
GEMMA2 = {
    **GEMMA,
    "sliding_window": 8,
    "query_pre_attn_scalar": 16,
    "final_logit_softcapping": 30.0,
}
# name: architecture, fields of config.json
MODELS = {
    "llama": ("llama", SIZES),
    "llama of two halves": ("llama", {**SIZES, "rope_theta": 1e6, "tie_word_embeddings": True}),
    "llama, biases": ("llama", {**SIZES, "attention_bias": True, "mlp_bias": True}),
    "llama3": ("llama", {**SIZES, "rope_theta": None, "rope_parameters": LLAMA3}),
    "mixtral": ("llama", {**SIZES, "num_local_experts": 3, "num_experts_per_tok": 2}),
    "qwen2": ("qwen2", SIZES),
    "qwen3": ("qwen3", {**SIZES, "head_dim": 24}),
    "qwen2_moe": ("qwen2moe", {**SIZES, **EXPERTS, "shared_expert_intermediate_size": 32}),
    "qwen3_moe": ("qwen3moe", {**SIZES, **EXPERTS, "norm_topk_prob": True}),
    "gemma": ("gemma", {**SIZES, **GEMMA}),
    "gemma2": ("gemma2", {**SIZES, **GEMMA2, "attn_logit_softcapping": 50.0}),
    "gemma3_text": ("gemma3", {**SIZES, **GEMMA2, "num_hidden_layers": 6}),
    "gpt2": ("gpt2", GPT2),
    "gpt_neox": (
        "gptneox",
        {
            **SIZES,
            "num_key_value_heads": None,
            "rms_norm_eps": None,
            "hidden_act": "gelu",
            "rotary_pct": 0.5,
        },
    ),
}


def decoder_of(name, seed=0):
    fields = {key: value for key, value in MODELS[name][1].items() if value is not None}
    family = "llama" if name.startswith("llama") else name
    config = families.config_of({**fields, "model_type": family})
    numbers = numpy.random.default_rng(seed)
    weights = {
        each: tenon.from_numpy(numbers.normal(0, 0.1, shape).astype(numpy.float32))
        for each, shape in config.weight_shapes().items()
    }
    return Decoder(config, weights)


def logits_of(decoder, tokens=(5, 6, 7, 250, 9, 1, 2, 3, 4, 11, 12, 13)):
    def int32(values):
        return tenon.tensor(list(values), dtype=tenon.int32)

    count = len(tokens)
    return decoder.forward(
        int32(tokens),
        int32(range(count)),
        int32(range(count)),
        int32([0, count]),
        int32([0]).reshape([1, 1]),
        int32([count]),
        int32(range(count)),
        decoder.new_pools(1),
    ).numpy()


@pytest.mark.parametrize("name", MODELS)
def test_a_model_is_read_as_it_was_written(name, tmp_path):
    decoder = decoder_of(name)
    counts = save_gguf(decoder, tmp_path / "a.gguf")
    assert set(counts) == {"F32"}
    with GgufFile(tmp_path / "a.gguf") as file:
        assert file.metadata["general.architecture"] == MODELS[name][0]
    read = load(tmp_path / "a.gguf")
    assert read.tokenizer is None
    wanted, found = logits_of(decoder), logits_of(read.decoder)
    if MODELS[name][0] == "llama":  # pairs of features lie side by side, and add in that order
        assert numpy.abs(wanted - found).max() < 1e-5 * numpy.abs(wanted).max()
    else:
        assert (wanted == found).all()


def test_every_architecture_but_what_is_only_read_is_written():
    assert {name for name, _ in MODELS.values()} == set(architectures()) - {"phi3"}


@pytest.mark.parametrize(
    "form, error",
    [("q8_0", 0.02), ("q5_1", 0.2), ("q5_0", 0.2), ("q4_1", 0.35), ("q4_0", 0.35), ("f16", 1e-3)],
)
def test_quantised_models_stay_in_their_blocks(form, error, tmp_path):
    decoder = decoder_of("qwen3")
    save_gguf(decoder, tmp_path / "a.gguf", form)
    read = load(tmp_path / "a.gguf").decoder
    packed = [name for name, each in read.weights.items() if isinstance(each, BlockWeight)]
    matrices = [name for name, shape in decoder.config.weight_shapes().items() if len(shape) == 2]
    assert packed == ([] if form == "f16" else packed) and len(packed) in (0, len(matrices))
    plain = {
        name: each.dequantized() if isinstance(each, BlockWeight) else each
        for name, each in read.weights.items()
    }
    found, same = logits_of(read), logits_of(Decoder(read.config, plain))
    assert numpy.abs(found - same).max() < 1e-5 * numpy.abs(same).max()
    wanted = logits_of(decoder)
    distance = numpy.linalg.norm(found - wanted) / numpy.linalg.norm(wanted)
    assert 0 < distance < error


def test_tensors_lie_in_the_file(tmp_path):
    save_gguf(decoder_of("qwen3"), tmp_path / "a.gguf", "q8_0")
    file = GgufFile(tmp_path / "a.gguf")
    first, again = (file.tensor("token_embd.weight").blocks for _ in range(2))
    assert first.data_ptr() == again.data_ptr()
    file.close()  # the mapping stays for the tensors
    assert first.tolist() == again.tolist()


def test_what_was_read_is_written_again(tmp_path):
    save_gguf(decoder_of("llama"), tmp_path / "a.gguf", "q8_0")
    first = load(tmp_path / "a.gguf")
    save_gguf(first, tmp_path / "b.gguf")
    assert (tmp_path / "a.gguf").read_bytes()[-4096:] == (tmp_path / "b.gguf").read_bytes()[-4096:]
    assert (logits_of(first.decoder) == logits_of(load(tmp_path / "b.gguf").decoder)).all()
    assert set(save_gguf(first, tmp_path / "c.gguf", "q4_0")) == {"F32", "Q4_0"}


def test_each_format_of_blocks_is_computed_in_place(tmp_path):
    numbers = numpy.random.default_rng(1)
    x = tenon.from_numpy(numbers.normal(0, 1, (3, 256)).astype(numpy.float32))
    entries = []
    for form, (elements, size) in FORMATS.items():
        blocks = numbers.integers(0, 60, (4, 256 // elements * size), dtype=numpy.uint8)
        entries.append(Entry(form, (4, 256), form.upper(), lambda blocks=blocks: blocks.tobytes()))
    write_gguf(tmp_path / "a.gguf", {"general.architecture": "llama"}, entries)
    with GgufFile(tmp_path / "a.gguf") as file:
        for form in FORMATS:
            weight = file.tensor(form)
            assert weight.shape == (4, 256) and weight.format == form
            made = tenon.linear_blocks(x, weight.blocks, weight.format).numpy()
            wanted = x.numpy() @ file.read(form).numpy().T
            assert numpy.abs(made - wanted).max() <= 1e-4 * numpy.abs(wanted).max()


def test_rows_that_are_no_blocks_stay_float16(tmp_path):
    decoder = decoder_of("qwen3", seed=1)
    config = dataclasses.replace(decoder.config, intermediate_size=40)
    weights = dict(decoder.weights)
    for layer in range(config.layers):
        weights[f"layers.{layer}.mlp.gate.weight"] = tenon.ones([40, 64])
        weights[f"layers.{layer}.mlp.up.weight"] = tenon.ones([40, 64])
        weights[f"layers.{layer}.mlp.down.weight"] = tenon.ones([64, 40])
    counts = save_gguf(Decoder(config, weights), tmp_path / "a.gguf", "q8_0")
    assert counts["F16"] == 2
    load(tmp_path / "a.gguf")


def test_an_engine_runs_a_file_in_blocks(tmp_path):
    save_gguf(decoder_of("llama"), tmp_path / "a.gguf", "q8_0")
    with Engine(load(tmp_path / "a.gguf"), kv_cache="1MiB", max_sequences=2) as engine:
        assert engine.vocab_size == 256


def test_the_command_writes_a_file(tmp_path, capsys):
    folder = folder_of(tmp_path)
    assert main(["quantize", str(folder), str(tmp_path / "a.gguf"), "--format", "f16"]) == 0
    assert "16 F16, 5 F32" in capsys.readouterr().out
    assert main(["generate", str(tmp_path / "a.gguf"), "abc", "--max-tokens", "3"]) == 0
    assert main(["quantize", str(folder), str(tmp_path / "a.gguf"), "--format", "q9"]) == 1
    assert (
        "expected one of f32, f16, bf16, q8_0, q4_0, q4_1, q5_0, q5_1, q2_K, q3_K, q4_K, q5_K, q6_K, iq4_nl, iq4_xs as quantization, got 'q9'"
        in (capsys.readouterr().err)
    )


@pytest.mark.parametrize(
    "change, message",
    [
        ({"attention_scale": 0.5}, "attention_scale would be read as"),
        ({"activation": "relu"}, "activation would be read as 'silu', not 'relu'"),
        ({"embedding_scale": 3.0}, "embedding_scale would be read as 1.0, not 3.0"),
    ],
)
def test_models_that_no_architecture_describes(change, message, tmp_path):
    decoder = decoder_of("llama")
    changed = Decoder(dataclasses.replace(decoder.config, **change), decoder.weights)
    with pytest.raises(ValueError, match=f"no architecture of llama.cpp says .*{message}"):
        save_gguf(changed, tmp_path / "a.gguf")
    assert not list(tmp_path.iterdir())


def test_quantised_numbers():
    x = tenon.tensor([[0.0] * 32, [127.0, -63.5, *[0.5] * 30]])
    assert quantize(x, "q8_0").dequantized().tolist()[1][:3] == [127.0, -64.0, 1.0]
    assert quantize(x, "q4_0").dequantized().tolist()[0] == [0.0] * 32
    with pytest.raises(ValueError, match="rows of a multiple of 32"):
        quantize(tenon.ones([2, 33]), "q8_0")
    with pytest.raises(ValueError, match="expected finite numbers"):
        quantize(tenon.full([1, 32], float("nan")), "q4_0")


# Files that are wrong.


def written(path, change=None, name="llama", drop=()):
    """A small file with its tokenizer, whose metadata `change` replaces; None removes."""
    model = LanguageModel(decoder_of(name), Tokenizer(text=json.dumps(byte_tokenizer())))
    save_gguf(model, path, "q8_0")
    with GgufFile(path) as file:
        metadata = {**file.metadata, **(change or {})}
        metadata = {key: value for key, value in metadata.items() if value is not None}
        entries = []
        for each in file.names():
            if each not in drop:
                tensor = file.tensor(each)
                tensor = tensor.blocks if isinstance(tensor, BlockWeight) else tensor
                content = bytes(tensor.numpy().tobytes())
                entries.append(
                    Entry(each, file.shape(each), file.kind(each), lambda content=content: content)
                )
    write_gguf(path, metadata, entries)
    return path


@pytest.mark.parametrize(
    "change, message",
    [
        (
            {"general.architecture": "mamba"},
            "general.architecture: expected one of gemma, .*'mamba'",
        ),
        ({"general.architecture": 7}, "general.architecture: expected one of"),
        (
            {"llama.block_count": 1 << 23},
            "block_count: expected at most the 21 tensors, got 8388608",
        ),
        ({"llama.block_count": 1 << 60}, "block_count: expected a whole number up to 16777216"),
        ({"llama.block_count": "two"}, "block_count: expected a whole number .*got 'two'"),
        ({"llama.block_count": None}, "block_count: expected a number above 0, got None"),
        ({"llama.block_count": 1}, "no part of the model takes the weights 'layers.1"),
        ({"llama.attention.head_count": 3}, "heads: expected a multiple|Decoder: weight"),
        ({"llama.attention.key_length": 1 << 24}, "value_length|Decoder: weight|whole number"),
        ({"llama.embedding_length": 65}, "token_embd.weight: expected rows of 65 numbers"),
        ({"llama.vocab_size": 9}, "vocab_size: expected the 256 rows of token_embd.weight, got 9"),
        ({"llama.context_length": 0}, "context_length: expected a number above 0"),
        ({"llama.rope.freq_base": float("nan")}, "rope.freq_base: expected a finite number"),
        ({"llama.rope.freq_base": 0.0}, "rope.freq_base: expected a number above 1"),
        (
            {"llama.rope.scaling.type": "longrope"},
            "rope.scaling.type: expected one of none, linear",
        ),
        ({"llama.rope.scaling.factor": -1.0}, "rope.scaling.factor: expected a number above 0"),
        ({"llama.rope.dimension_count": 18}, "rope.dimension_count: expected 2 to 16, got 18"),
        ({"llama.expert_count": 1 << 20}, "ffn_gate_exps.weight: expected 1048576 experts"),
        ({"llama.new_field": 1}, "llama.new_field: this architecture has no such field here"),
        ({"llama.attention.causal": False}, "attention.causal: expected True, got False"),
        ({"split.count": 3, "split.no": 0}, "expected a whole model, got part 0 of 3"),
        ({"tokenizer.ggml.model": "bert"}, "tokenizer.ggml.model: expected 'gpt2' or 'llama'"),
        ({"tokenizer.ggml.pre": "klingon"}, "tokenizer.ggml.pre: expected one of .*'klingon'"),
        ({"tokenizer.ggml.tokens": [1, 2]}, "tokenizer.ggml.tokens: expected a list of texts"),
        ({"tokenizer.ggml.tokens": ["a"] * 256}, "expected different texts, got 1 of 256"),
        ({"tokenizer.ggml.merges": ["a zz"]}, "merges: expected two tokens, got 'a zz'"),
        ({"tokenizer.ggml.merges": ["a"]}, "merges: expected two tokens, got 'a'"),
        ({"tokenizer.ggml.token_type": [1]}, "token_type: expected 256 numbers"),
        ({"tokenizer.ggml.eos_token_id": 256}, "eos_token_id: expected 0 to 255, got 256"),
        ({"tokenizer.ggml.model": "llama"}, "tokenizer.ggml.scores: expected 256 numbers"),
        ({"tokenizer.chat_template": "{% if %}"}, "chat template, line 1"),
        ({"tokenizer.chat_template": 3}, "chat_template: expected a text, got 3"),
    ],
)
def test_wrong_metadata(change, message, tmp_path):
    path = written(tmp_path / "a.gguf", change)
    with pytest.raises(GgufError, match=message) as caught:
        load(path)
    assert str(caught.value).startswith(str(path))


def test_tensors_that_are_missing_or_too_many(tmp_path):
    path = written(tmp_path / "a.gguf", drop=("blk.1.ffn_up.weight",))
    with pytest.raises(GgufError, match="expected a weight 'layers.1.mlp.up.weight' of shape"):
        load(path)
    path = written(tmp_path / "b.gguf")
    content = path.read_bytes().replace(b"blk.1.ffn_up.weight", b"blk.1.ffn_xx.weight")
    path.write_bytes(content)
    with pytest.raises(GgufError, match="of the architecture 'llama' takes .*'blk.1.ffn_xx.weight"):
        load(path)


def test_tensors_do_not_share_bytes(tmp_path):
    entries = [Entry(name, (2, 4), "F32", lambda: bytes(32)) for name in "ab"]
    write_gguf(tmp_path / "a.gguf", {"general.architecture": "llama"}, entries)
    content = (tmp_path / "a.gguf").read_bytes()
    old = struct.pack("<IQ", 0, 32)  # type and offset of the second
    assert content.count(old) == 1
    (tmp_path / "a.gguf").write_bytes(content.replace(old, struct.pack("<IQ", 0, 0)))
    with pytest.raises(GgufError, match="'b': expected bytes of its own .* belong to 'a'"):
        GgufFile(tmp_path / "a.gguf")


def test_changed_files_are_refused_or_read(tmp_path):
    path = written(tmp_path / "a.gguf", {"tokenizer.chat_template": "{{ messages }}"})
    content = path.read_bytes()
    with GgufFile(path) as file:
        head = min(len(content), file._places["token_embd.weight"].offset)
    numbers = random.Random(0)
    outcomes = {"read": 0, "refused": 0}
    for trial in range(150):
        changed = bytearray(content)
        for _ in range(numbers.randint(1, 3)):
            place = numbers.randrange(24, head)
            changed[place] = numbers.choice([0, 1, 7, 127, 128, 255, numbers.randrange(256)])
        if trial % 10 == 0:
            del changed[numbers.randrange(len(content)) :]
        path.write_bytes(changed)
        try:
            load(path)
            outcomes["read"] += 1
        except GgufError as error:
            assert str(error).startswith(str(path))
            outcomes["refused"] += 1
    assert min(outcomes.values()) > 10


@pytest.mark.parametrize("form", ["f32", "f16", "bf16", "q8_0", "q4_0"])
def test_the_wheel_reads_what_is_written(form, tmp_path):
    gguf = pytest.importorskip("gguf")
    decoder = decoder_of("qwen3")
    path = tmp_path / "a.gguf"
    save_gguf(LanguageModel(decoder, Tokenizer(text=json.dumps(byte_tokenizer()))), path, form)
    reader = gguf.GGUFReader(path)
    assert reader.fields["qwen3.block_count"].contents() == 2
    assert len(reader.fields["tokenizer.ggml.tokens"].contents()) == 256
    for tensor in reader.tensors:
        weight = load(path).decoder.weights if tensor.name == "token_embd.weight" else None
        kind = tensor.tensor_type
        assert kind.name == ("F32" if len(tensor.shape) == 1 else form.upper())
        if weight is not None:
            plain = decoder.weights["embedding.weight"].numpy()
            assert (gguf.quantize(plain, kind) == tensor.data).all()
            found = weight["embedding.weight"]
            found = found.dequantized() if isinstance(found, BlockWeight) else found
            assert (gguf.dequantize(tensor.data, kind) == found.numpy()).all()


def test_packed_projections_of_phi3(tmp_path):
    fields = {**SIZES, "model_type": "phi3", "sliding_window": 8}
    config = families.config_of({k: v for k, v in fields.items() if k != "hidden_act"})
    numbers = numpy.random.default_rng(2)
    weights = {
        name: numbers.normal(0, 0.1, shape).astype(numpy.float32)
        for name, shape in config.weight_shapes().items()
    }
    tensors = {
        "token_embd": weights["embedding.weight"],
        "output_norm": weights["final_norm.weight"],
        "output": weights["head.weight"],
    }
    for layer in range(2):

        def joined(*names, at=f"layers.{layer}"):
            return numpy.concatenate([weights[f"{at}.{name}.weight"] for name in names])

        tensors |= {
            f"blk.{layer}.attn_norm": joined("attention_norm"),
            f"blk.{layer}.attn_qkv": joined("query", "key", "value"),
            f"blk.{layer}.attn_output": joined("output"),
            f"blk.{layer}.ffn_norm": joined("mlp_norm"),
            f"blk.{layer}.ffn_up": joined("mlp.gate", "mlp.up"),
            f"blk.{layer}.ffn_down": joined("mlp.down"),
        }
    metadata = {
        "general.architecture": "phi3",
        **{
            f"phi3.{name}": value
            for name, value in {
                "context_length": 64,
                "embedding_length": 64,
                "block_count": 2,
                "feed_forward_length": 96,
                "attention.head_count": 4,
                "attention.head_count_kv": 2,
                "attention.layer_norm_rms_epsilon": 1e-6,
                "attention.sliding_window": 8,
                "rope.freq_base": 10000.0,
            }.items()
        },
    }
    entries = [
        Entry(f"{name}.weight", value.shape, "F32", lambda value=value: value.tobytes())
        for name, value in tensors.items()
    ]
    write_gguf(tmp_path / "a.gguf", metadata, entries)
    decoder = Decoder(config, {name: tenon.from_numpy(value) for name, value in weights.items()})
    read = load(tmp_path / "a.gguf").decoder
    assert read.config.window == 8
    assert (logits_of(decoder) == logits_of(read)).all()
    with pytest.raises(ValueError, match="save_gguf: no architecture of llama.cpp says"):
        save_gguf(decoder, tmp_path / "b.gguf")  # llama.cpp would not apply the window
