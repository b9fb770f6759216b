# SPDX-License-Identifier: Apache-2.0
"""Steps of one row: a decoder of floats needs no padding, and answers as it does among others."""

import queue

import numpy
import pytest
import tenon
from tenon.llm import Decoder, DecoderConfig, Engine
from tenon.llm.models import LayerOptions, Rotary

ROTARY = Rotary(tuple(10000.0 ** (-2 * pair / 16) for pair in range(8)))


def decoder(dtype="float32"):
    config = DecoderConfig(
        vocab_size=97,
        hidden_size=64,
        intermediate_size=96,
        layers=2,
        heads=4,
        kv_heads=2,
        head_dim=16,
        max_positions=64,
        layer_options=(LayerOptions(None, ROTARY),) * 2,
    )
    numbers = numpy.random.default_rng(0)
    return Decoder(
        config,
        {
            name: tenon.tensor(numbers.normal(0, 0.2, shape), dtype=dtype)
            for name, shape in config.weight_shapes().items()
        },
    )


def answers(model, prompts, **options):
    """Tokens and log-probabilities of requests that run at once."""
    made = [queue.Queue() for _ in prompts]
    with Engine(model, kv_cache="4MiB", max_sequences=8, **options) as engine:
        for prompt, each in zip(prompts, made):
            engine.submit(prompt, each.put, max_tokens=12, stop_tokens=())
        results = []
        for each in made:
            tokens = [each.get(timeout=60) for _ in range(12)]
            results.append([(token.id, token.logprob) for token in tokens])
    return results


PROMPTS = [[3, 1, 4], [1, 5, 9, 2, 6, 5], [35], [8, 9, 7, 9, 3, 2, 3, 8]]


def test_a_decoder_of_floats_needs_no_padding():
    model = decoder()
    assert model.minimum_rows == 1
    together = answers(model, PROMPTS)
    assert answers(model, PROMPTS, minimum_rows=24) == together
    for prompt, wanted in zip(PROMPTS, together):
        assert answers(model, [prompt]) == [wanted]


def test_a_decoder_of_bfloat16_is_filled_up():
    assert decoder("bfloat16").minimum_rows == 24


def test_a_decoder_whose_products_depend_on_their_rows_is_refused(monkeypatch):
    monkeypatch.setattr(tenon, "linear_batch_invariant", tenon.linear, raising=False)
    with pytest.raises(NotImplementedError, match="depend on what runs beside a sequence"):
        answers(decoder(), PROMPTS)
