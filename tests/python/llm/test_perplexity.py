# SPDX-License-Identifier: Apache-2.0
"""Perplexity beside a plain computation by hand."""

import json
import sys

import numpy
import pytest
import tenon
from tenon.cli import main
from tenon.llm import Decoder, LanguageModel, divergence, load, perplexity
from test_gguf_models import logits_of
from tiny_model import CONFIG, byte_tokenizer, folder_of

TEXT = "It was the best of times, it was the worst of times. " * 3


def by_hand(model, tokens, windows):
    """exp of the mean of -log p: `windows` are (tokens of one window, how many of its last count)."""
    lost = []
    for window, scored in windows:
        logits = logits_of_long(model.decoder, window).astype(numpy.float64)
        for place in range(len(window) - scored, len(window)):
            row = logits[place - 1]
            largest = row.max()
            total = largest + numpy.log(numpy.exp(row - largest).sum())
            lost.append(total - row[window[place]])
    mean = numpy.mean(lost)
    return numpy.exp(mean), numpy.exp(mean) * numpy.std(lost) / numpy.sqrt(len(lost) - 1), len(lost)


def logits_of_long(decoder, tokens):
    """Row by row: each beginning of `tokens` alone, so that no cache is trusted."""
    return numpy.concatenate(
        [logits_of(decoder, tokens[: end + 1])[-1:] for end in range(len(tokens))]
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return folder_of(tmp_path_factory.mktemp("llm"))


def test_windows_side_by_side(folder):
    model = load(folder)
    tokens = list(TEXT.encode())
    windows = [(tokens[start : start + 12], 5) for start in range(0, len(tokens) - 11, 12)]
    value, error, count = by_hand(model, tokens, windows)
    found = perplexity(model, TEXT, context=12)
    assert found.tokens == count == 5 * (len(tokens) // 12)
    assert found.value == pytest.approx(value, rel=1e-5)
    assert found.standard_error == pytest.approx(error, rel=1e-4)
    assert perplexity(model, tokens, context=12) == found


def test_windows_that_overlap(folder):
    model = load(folder)
    tokens = list(TEXT.encode())[:60]
    windows = [(tokens[start : start + 16], 4) for start in range(0, len(tokens) - 15, 4)]
    value, _, count = by_hand(model, tokens, windows)
    seen = []
    found = perplexity(
        model, tokens, context=16, stride=4, progress=lambda *each: seen.append(each)
    )
    assert (found.tokens, found.value) == (count, pytest.approx(value, rel=1e-5))
    assert seen == [(done, 12) for done in range(1, 13)]


def test_each_window_begins_with_bos(tmp_path):
    folder = folder_of(tmp_path)
    (folder / "config.json").write_text(json.dumps({**CONFIG, "bos_token_id": 1}))
    name = byte_tokenizer()["model"]["vocab"]
    text = next(symbol for symbol, place in name.items() if place == 1)
    around = [{"SpecialToken": {"id": text, "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}]
    processor = {
        "type": "TemplateProcessing",
        "single": around,
        "pair": [*around, {"Sequence": {"id": "B", "type_id": 1}}],
        "special_tokens": {text: {"id": text, "ids": [1], "tokens": [text]}},
    }
    (folder / "tokenizer.json").write_text(
        json.dumps({**byte_tokenizer(), "post_processor": processor})
    )
    model = load(folder)
    tokens = [1, *TEXT.encode()]
    windows = [([1, *tokens[start + 1 : start + 10]], 4) for start in range(0, len(tokens) - 9, 10)]
    value, _, count = by_hand(model, tokens, windows)
    found = perplexity(model, TEXT, context=10)
    assert (found.tokens, found.value) == (count, pytest.approx(value, rel=1e-5))


def test_divergence(folder):
    model = load(folder)
    weights = {
        name: weight + 0.01 if name == "final_norm.weight" else weight
        for name, weight in model.decoder.weights.items()
    }
    other = LanguageModel(Decoder(model.decoder.config, weights), model.tokenizer)
    tokens = list(TEXT.encode())
    each, same = [], []
    for start in range(0, len(tokens) - 11, 12):
        rows = [
            logits_of_long(one.decoder, tokens[start : start + 11])[-5:].astype(numpy.float64)
            for one in (other, model)
        ]
        logs = [row - numpy.logaddexp.reduce(row, 1, keepdims=True) for row in rows]
        each += list((numpy.exp(logs[1]) * (logs[1] - logs[0])).sum(1))
        same += list(logs[0].argmax(1) == logs[1].argmax(1))
    found = divergence(other, model, TEXT, context=12)
    assert found.mean == pytest.approx(numpy.mean(each), rel=1e-3) and found.mean > 0
    assert (found.same_top, found.tokens) == (pytest.approx(numpy.mean(same)), len(each))
    ours, theirs = (perplexity(one, TEXT, context=12) for one in (other, model))
    assert found.ratio == pytest.approx(ours.value / theirs.value, rel=1e-5)
    # That of the differences, and not of two perplexities.
    assert 0 < found.ratio_error < ours.standard_error / theirs.value
    assert divergence(model, model, TEXT, context=12)[:3] == (0.0, 0.0, 1.0)
    small = divergence(model, model, TEXT, context=12, kv_dtype="int8")
    assert 0 < small.mean < 1e-2


def test_divergence_of_tokens_that_a_model_excludes(folder, monkeypatch):
    model = load(folder)
    excluded = tenon.arange(model.decoder.config.vocab_size) < 9
    module = sys.modules["tenon.llm.perplexity"]
    logits = module._logits
    monkeypatch.setattr(
        module, "_logits", lambda *args: tenon.where(excluded, -numpy.inf, logits(*args))
    )
    assert divergence(model, model, TEXT, context=12)[:3] == (0.0, 0.0, 1.0)


def test_errors_of_divergence(folder):
    model = load(folder)
    with pytest.raises(ValueError, match="divergence: expected a context of 2 to "):
        divergence(model, model, TEXT, context=10**6)
    with pytest.raises(ValueError, match="divergence: expected at least one window of 12 tokens"):
        divergence(model, model, [1, 2], context=12)


def test_chunks_change_nothing(folder, monkeypatch):
    model = load(folder)
    whole = perplexity(model, TEXT, context=40)
    monkeypatch.setattr("tenon.llm.sequence.CHUNK", 7)
    assert perplexity(model, TEXT, context=40).value == pytest.approx(whole.value, rel=1e-5)


@pytest.mark.parametrize(
    "options, message",
    [
        ({"context": 65}, "expected a context of 2 to 64 tokens, got 65"),
        ({"context": 1}, "expected a context of 2 to 64 tokens, got 1"),
        ({"context": 2}, "a context of 2 tokens scores none"),
        ({"context": 8, "stride": 8}, "expected a stride of 1 to 7, got 8"),
        ({"text": "short", "context": 8}, "expected at least one window of 8 tokens, got 5"),
    ],
)
def test_bad_arguments(folder, options, message):
    with pytest.raises(ValueError, match=message):
        perplexity(load(folder), **{"text": TEXT, **options})


def test_the_command(folder, tmp_path, capsys):
    (tmp_path / "text.txt").write_text(TEXT)
    arguments = ["perplexity", str(folder), str(tmp_path / "text.txt"), "--context", "16"]
    assert main([*arguments, "--beside", str(folder)]) == 0
    first, second, ratio, far = capsys.readouterr().out.splitlines()
    assert first == second and "over 63 tokens" in first and ratio == "ratio: 1.00000"
    assert far == "KL divergence: 0.000000 +/- 0.000000 nats, same likeliest token: 100.00%"
    assert main([*arguments, "--beside", str(folder), "--kv-dtype", "int8"]) == 0
    assert capsys.readouterr().out.splitlines()[0] != first
    assert main([*arguments[:-1], "900"]) == 1
    assert "expected a context of 2 to 64 tokens, got 900" in capsys.readouterr().err
