# SPDX-License-Identifier: Apache-2.0
"""Files that are written here, read by llama.cpp: the same tokens, and log-probabilities within rounding.

Runs where the wheel `xllamacpp` is (tried: 2026.10.11549).
"""

import dataclasses
import json

import numpy
import pytest
from tenon.llm import Decoder, LanguageModel, Tokenizer, load, save_gguf
from test_gguf_models import MODELS, decoder_of, logits_of
from tiny_model import byte_tokenizer

xllamacpp = pytest.importorskip("xllamacpp")
PROMPT = list(b"Hello!\na")
# Bytes that are no text by themselves: llama.cpp reports no probabilities of pieces of characters.
FORBIDDEN = [token for token in range(256) if not 32 <= token < 127]


@pytest.mark.parametrize("form, error", [("f32", 2e-4), ("q8_0", 1e-2)])
@pytest.mark.parametrize("name", MODELS)
def test_answers_are_those_of_llama_cpp(name, form, error, tmp_path):
    decoder = decoder_of(name)
    config = dataclasses.replace(decoder.config, eos_token_ids=(0,), bos_token_id=1)
    tokenizer = Tokenizer(text=json.dumps(byte_tokenizer()))
    path = str(tmp_path / "a.gguf")
    save_gguf(LanguageModel(Decoder(config, decoder.weights), tokenizer), path, form)
    ours = load(path)
    tokens = list(
        ours.tokens(PROMPT, max_tokens=8, logit_bias={token: -100.0 for token in FORBIDDEN})
    )

    settings = xllamacpp.CommonParams()
    settings.model.path, settings.n_ctx, settings.n_parallel = path, 64, 1
    settings.warmup, settings.cpuparams.n_threads = False, 1
    answer = xllamacpp.Server(settings).handle_completions(
        {
            "prompt": PROMPT,
            "n_predict": 8,
            "temperature": 0,
            "logit_bias": [[token, -100.0] for token in FORBIDDEN],
            "n_probs": 1,
        }
    )
    theirs = answer["choices"][0]["logprobs"]["content"]
    # In blocks llama.cpp rounds activations to 8 bits as well, so its choice may be another.
    assert form != "f32" or [each["id"] for each in theirs] == tokens
    whole = PROMPT + [each["id"] for each in theirs]
    logits = logits_of(ours.decoder, whole[:16]).astype(float)
    for place, each in enumerate(theirs[:8], len(PROMPT)):
        row = logits[place - 1]
        total = row.max() + numpy.log(numpy.exp(row - row.max()).sum())
        assert abs(row[whole[place]] - total - each["logprob"]) < error
