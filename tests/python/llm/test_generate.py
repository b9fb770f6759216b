# SPDX-License-Identifier: Apache-2.0
"""Sampling, text from tokens, folders and the command."""

import json
import math

import pytest
import tenon
from tenon.llm import LanguageModel, StopStrings, load
from tenon.llm.models import families
from tiny_model import folder_of


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return folder_of(tmp_path_factory.mktemp("llm"))


def test_a_prompt_goes_on_the_same_way_each_time(folder):
    model = load(folder)
    first = list(model.tokens([1, 2, 3], max_tokens=12))
    assert len(first) == 12 and first == list(model.tokens([1, 2, 3], max_tokens=12))
    assert first == list(model.tokens([1, 2, 3], max_tokens=12, temperature=1e-9))
    assert first == list(model.tokens([1, 2, 3], max_tokens=12, temperature=3.0, top_p=0.0))
    drawn = [
        list(model.tokens([1], max_tokens=12, temperature=1.0, seed=s)) for s in (5, 5, 2**64 + 6)
    ]
    assert drawn[0] == drawn[1] != drawn[2]
    assert first[:1] == list(model.tokens([1, 2, 3], max_tokens=1))
    assert [] == list(model.tokens([1, 2, 3], max_tokens=0))


def test_embeddings_are_hidden_states_of_length_one(folder):
    model = load(folder)
    last, mean = model.embed([1, 2, 3]), model.embed([1, 2, 3], pooling="mean")
    assert len(last) == 16 and last != mean
    for vector in (last, mean, model.embed("abc")):
        assert math.isclose(sum(each * each for each in vector), 1.0, rel_tol=1e-9)
    # The head makes logits of what is embedded.
    head = model.decoder.weights["head.weight"].numpy()
    likeliest = int((head @ last).argmax())
    assert [likeliest] == list(model.tokens([1, 2, 3], max_tokens=1))
    with pytest.raises(ValueError, match="expected 'last' or 'mean' as pooling, got 'cls'"):
        model.embed("a", pooling="cls")
    with pytest.raises(ValueError, match="embed: expected 1 to 64 tokens, got 0"):
        model.embed([])


def test_an_end_token_ends(folder):
    model = load(folder)
    tokens = list(model.tokens([1, 2, 3], max_tokens=12))
    fields = json.loads((folder / "config.json").read_text())
    config = families.config_of({**fields, "eos_token_id": [90, tokens[4]]})
    ended = type(model.decoder)(config, model.decoder.weights)
    assert list(LanguageModel(ended).tokens([1, 2, 3])) == tokens[: tokens.index(tokens[4])]


def test_prompts_must_fit(folder):
    model = load(folder)
    with pytest.raises(ValueError, match="max_tokens: expected 0 to 61, as the prompt has 3 of 64"):
        model.tokens([1, 2, 3], max_tokens=62)
    with pytest.raises(ValueError, match="prompt: expected at least one token, got none"):
        model.tokens([])
    assert list(model.tokens([1] * 64)) == []


def test_a_model_without_an_answer_says_so(folder):
    model = load(folder)
    weights = dict(model.decoder.weights)
    weights["final_norm.weight"] = tenon.full([16], math.nan)
    spoiled = LanguageModel(type(model.decoder)(model.decoder.config, weights))
    with pytest.raises(FloatingPointError, match="expected finite numbers, got nan"):
        list(spoiled.tokens([1, 2], max_tokens=1))
    with pytest.raises(ValueError, match="top_k: expected at least 0"):
        model.tokens([1], top_k=-1)


def test_stop_strings_lie_across_pieces():
    stops = StopStrings(["END", "<x>"])
    assert [stops.add(piece) for piece in ("ab E", "N", "E E", "ND cd")] == ["ab ", "", "ENE ", ""]
    assert stops.found and stops.finish() == ""
    stops = StopStrings(["END"])
    assert stops.add("to EN") + stops.finish() == "to EN"
    with pytest.raises(ValueError, match="texts that are not empty"):
        StopStrings([""])


def test_pieces_joined_are_the_text(folder):
    pytest.importorskip("tokenizers")
    tokenizer = load(folder).tokenizer
    text = "naïve 👩‍👩‍👧 日本語"
    tokens = tokenizer.encode(text)
    assert len(tokens) > len(text)  # bytes
    stream = tenon.llm.TextStream(tokenizer)
    pieces = [stream.add(token) for token in tokens]
    assert "".join(pieces) == text and not any("\ufffd" in piece for piece in pieces)
    stream = tenon.llm.TextStream(tokenizer)
    assert "".join(map(stream.add, tokens[:-1])) + stream.finish() == tokenizer.decode(tokens[:-1])


def test_the_command_prints_an_answer(folder, capsys):
    pytest.importorskip("tokenizers")
    from tenon.cli import main

    assert main(["generate", str(folder), "abc", "--max-tokens", "5"]) == 0
    assert capsys.readouterr().out == load(folder).generate("abc", max_tokens=5) + "\n"
    assert main(["generate", str(folder), "abc", "--max-tokens", "9999"]) == 1
    assert "max_tokens: expected 0 to" in capsys.readouterr().err


@pytest.mark.parametrize(
    "fields, message",
    [
        ({"auto_map": {}}, "names code of the folder, which is never run"),
        ({"model_type": "mamba"}, "model_type: expected one of gemma"),
        ({"residual_multiplier": 2.0}, "has no field 'residual_multiplier'"),
        ({"is_encoder_decoder": True}, "'is_encoder_decoder': expected False, got True"),
        ({"hidden_act": "quick_gelu"}, "activation: expected one of silu"),
        ({"rope_parameters": {"rope_type": "longrope"}}, "rope_type: expected one of default"),
        ({"rope_parameters": {"rope_type": "linear"}}, "expected 'factor'"),
        ({"rope_parameters": {"mscale": 1}}, "'mscale' has no meaning here"),
        ({"vocab_size": "7"}, "whole number as 'vocab_size', got '7'"),
        ({"eos_token_id": "x"}, "eos_token_id: expected numbers of tokens"),
        ({"num_key_value_heads": 3}, "a multiple of the 3 heads of keys"),
    ],
)
def test_configs_that_would_mean_something_else(folder, fields, message):
    whole = {**json.loads((folder / "config.json").read_text()), **fields}
    with pytest.raises(ValueError, match=message):
        families.config_of(whole)


def test_tensors_that_no_family_takes(folder):
    fields = json.loads((folder / "config.json").read_text())
    with pytest.raises(
        ValueError, match="no part of the model takes the tensor 'model.adapter.weight'"
    ):
        families.weights_of(
            "llama", families.config_of(fields), {"model.adapter.weight": tenon.ones([1])}
        )


def test_every_family_has_a_config_of_defaults():
    sizes = {"vocab_size": 7, "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2}
    for name in families.names():
        entry = families.family(name)
        fields = {"model_type": name, "max_position_embeddings": 16, **sizes}
        if name == "gpt2":
            fields = {"model_type": name, "vocab_size": 7, "n_embd": 16, "n_layer": 2, "n_head": 2}
            fields["n_positions"] = 16
        for source in entry["experts"].values():
            fields[source[0] if isinstance(source, list) else source] = 2
        if isinstance(entry.get("windows"), dict):
            fields["sliding_window"] = 4
        config = families.config_of(fields)
        assert config.layers == 2 and config.hidden_size == 16
