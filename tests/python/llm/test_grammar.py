# SPDX-License-Identifier: Apache-2.0
"""Answers that follow a grammar. Those that need `llguidance` run where it is."""

import json
import sys

import numpy
import pytest
from jsonschema import validate
from tenon.llm import Engine
from tenon.llm.grammar import Grammars
from tenon.llm.sampling import Sampler, SamplingOptions
from tenon.llm.server import Application, ServedModel
from test_server import CHAT, Client
from test_tools import CLOCK
from tiny_decoder import TinyDecoder
from tiny_model import byte_tokenizer
from told_grammar import Told

SCHEMA = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 8},
        "age": {"type": "integer", "minimum": 0, "maximum": 120},
        "kind": {"enum": ["cat", "dog"]},
    },
    "required": ["name", "age", "kind"],
    "additionalProperties": False,
}
END = 256


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_only_what_is_allowed_is_drawn(temperature):
    logits = numpy.random.default_rng(0).normal(0, 1, 50).astype(numpy.float32)
    sampler = Sampler(SamplingOptions(temperature=temperature, top_k=2), [], Told([7, 3, 49]))
    drawn = [sampler.draw(logits, position) for position in range(3)]
    assert [token for token, _, _ in drawn] == [7, 3, 49]
    # Log-probabilities are those of the model before the grammar.
    assert drawn[0][1] == pytest.approx(
        float(logits[7]) - numpy.log(numpy.exp(logits.astype(float)).sum()), rel=1e-6
    )
    with pytest.raises(RuntimeError, match="the grammar allows no token"):
        sampler.draw(logits, 3)


def test_without_the_library(monkeypatch):
    monkeypatch.setitem(sys.modules, "llguidance", None)
    with pytest.raises(ImportError, match=r"expected the library `llguidance`; run `pip install"):
        Grammars("{}", 9, 0)


def tokenizer_json():
    given = byte_tokenizer()
    end = {"id": END, "content": "<|end|>", "special": True, "normalized": False}
    rest = {"single_word": False, "lstrip": False, "rstrip": False}
    given["added_tokens"] = [{**end, **rest}]
    return json.dumps(given)


def encode(text, special):
    return list(text.encode())


def decode(tokens):
    return bytes(token for token in tokens if token < 256).decode("utf-8", "replace")


@pytest.fixture(scope="module")
def client():
    pytest.importorskip("llguidance")
    decoder = TinyDecoder(positions=256)
    decoder.config.eos_token_ids = (END,)
    grammars = Grammars(tokenizer_json(), decoder.config.vocab_size, END)
    with Engine(decoder, kv_cache="4MiB", max_sequences=8) as engine:
        served = ServedModel(
            "tiny",
            engine,
            encode,
            decode,
            lambda messages, tools=(): "x",
            takes_tools=True,
            grammars=lambda: grammars,
        )
        yield Client(Application(served))


def response_format(schema):
    return {"type": "json_schema", "json_schema": {"name": "x", "strict": True, "schema": schema}}


@pytest.mark.parametrize("seed", range(4))
def test_answers_are_json_of_a_schema(client, seed):
    body = {**CHAT, "seed": seed, "n": 3, "response_format": response_format(SCHEMA)}
    status, answer = client.json("/v1/chat/completions", {**body, "max_tokens": 200})
    assert status == 200
    for choice in answer["choices"]:
        assert choice["finish_reason"] == "stop"
        validate(json.loads(choice["message"]["content"]), SCHEMA)
    contents = [choice["message"]["content"] for choice in answer["choices"]]
    assert len(set(contents)) > 1  # choices are drawn, each in a state of its own
    events = client.events("/v1/chat/completions", {**body, "max_tokens": 200})
    texts = ["", "", ""]
    for event in events:
        (choice,) = event["choices"]
        texts[choice["index"]] += choice["delta"].get("content") or ""
    assert texts == contents


def test_any_object(client):
    body = {**CHAT, "response_format": {"type": "json_object"}, "max_tokens": 240}
    status, answer = client.json("/v1/chat/completions", {**body, "logit_bias": {"125": 50}})
    assert status == 200 and isinstance(
        json.loads(answer["choices"][0]["message"]["content"]), dict
    )


def test_a_call_that_must_be(client):
    towns = {"town": {"enum": ["Bonn", "Ulm"]}}
    parameters = {"properties": towns, "required": ["town"], "additionalProperties": False}
    weather = {"name": "weather", "parameters": {"type": "object", **parameters}}
    clock = {"name": "clock", "parameters": {"type": "object", "additionalProperties": False}}
    tools = [{"type": "function", "function": each} for each in (weather, clock)]
    body = {**CHAT, "tools": tools, "tool_choice": "required", "max_tokens": 240}
    status, answer = client.json("/v1/chat/completions", body)
    (choice,) = answer["choices"]
    assert status == 200 and choice["finish_reason"] == "tool_calls"
    (call,) = choice["message"]["tool_calls"]
    arguments = json.loads(call["function"]["arguments"])
    if call["function"]["name"] == "weather":
        assert arguments["town"] in ("Bonn", "Ulm")
    else:
        assert (call["function"]["name"], arguments) == ("clock", {})


@pytest.mark.parametrize(
    "change, text",
    [
        ({"response_format": {"type": "xml"}}, "expected text, json_object or json_schema"),
        ({"response_format": {"type": "json_schema"}}, "schema: expected a JSON schema, got None"),
        (
            {"response_format": response_format({"type": "klingon"})},
            "response_format: expected a JSON",
        ),
        (
            {"response_format": {"type": "json_object"}, "ignore_eos": True},
            "ignore_eos: expected false, as response_format ends the answer",
        ),
        (
            {
                "response_format": {"type": "json_object"},
                "tools": [CLOCK],
                "tool_choice": "required",
            },
            "response_format: expected text, as tool_choice wants a call",
        ),
    ],
)
def test_bad_requests(client, change, text):
    status, answer = client.json("/v1/chat/completions", {**CHAT, **change})
    assert status == 400 and text in answer["error"]["message"]


def test_a_server_without_the_library_says_so():
    def grammars():
        raise ImportError("expected the library `llguidance`")

    decoder = TinyDecoder()
    with Engine(decoder, kv_cache="1MiB") as engine:
        for made, text in ((grammars, "`llguidance`"), (None, "no token that ends texts")):
            served = ServedModel("tiny", engine, encode, decode, lambda m: "x", grammars=made)
            body = {**CHAT, "response_format": {"type": "json_object"}}
            status, answer = Client(Application(served)).json("/v1/chat/completions", body)
            assert status == 400 and text in answer["error"]["message"]
            assert answer["error"]["param"] == "response_format"
