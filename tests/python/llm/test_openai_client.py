# SPDX-License-Identifier: Apache-2.0
"""OpenAI's client against `tenon serve`: whole and streamed answers, calls, JSON, embeddings, errors.

Runs where `openai` (tried: 3.57), `uvicorn` and `llguidance` are.
"""

import dataclasses
import json
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request

import pytest
from tenon.llm import ChatTemplate, Decoder, LanguageModel, Tokenizer, save_gguf
from test_gguf_models import decoder_of
from test_tools import WEATHER
from tiny_model import byte_tokenizer

openai = pytest.importorskip("openai")
pytest.importorskip("uvicorn")
END = 255
TEMPLATE = (
    "{% if tools %}{{ tools | tojson }}{% endif %}"
    "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}"
)


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    """A server of a model of random weights in blocks, in a process of its own."""
    decoder = decoder_of("llama")
    config = dataclasses.replace(decoder.config, eos_token_ids=(END,), max_positions=512)
    given = byte_tokenizer()
    text = next(token for token, place in given["model"]["vocab"].items() if place == END)
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False}
    given["added_tokens"] = [{"id": END, "content": text, "special": True, **flags}]
    model = LanguageModel(
        Decoder(config, decoder.weights), Tokenizer(text=json.dumps(given)), ChatTemplate(TEMPLATE)
    )
    path = tmp_path_factory.mktemp("served") / "tiny.gguf"
    save_gguf(model, path, "q8_0")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    address = f"http://127.0.0.1:{port}"
    command = [sys.executable, "-m", "tenon", "serve", str(path), "--port", str(port)]
    command += ["--kv-cache", "8MiB", "--name", "tiny", "--api-key", "k", "--draft", "lookup"]
    command += ["--activations", "int8"]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    for _ in range(600):
        try:
            urllib.request.urlopen(f"{address}/ready").close()
            break
        except urllib.error.URLError:
            assert server.poll() is None
            time.sleep(0.1)
    yield openai.OpenAI(base_url=f"{address}/v1", api_key="k", max_retries=0)
    server.terminate()
    assert server.wait(60) in (0, -15)


ASKED = {"model": "tiny", "messages": [{"role": "user", "content": "hi"}], "seed": 5}


def test_models(client):
    assert [model.id for model in client.models.list()] == ["tiny"]
    assert client.models.retrieve("tiny").object == "model"
    with pytest.raises(openai.NotFoundError, match="there is no 'gpt-9'; there is 'tiny'"):
        client.models.retrieve("gpt-9")
    wrong = openai.OpenAI(base_url=client.base_url, api_key="no", max_retries=0)
    with pytest.raises(openai.AuthenticationError):
        wrong.models.list()


def test_chats_whole_and_streamed(client):
    options = {"n": 2, "max_tokens": 12, "logprobs": True, "top_logprobs": 2, "stop": ["\n\n\n"]}
    whole = client.chat.completions.create(**ASKED, **options)
    assert [choice.index for choice in whole.choices] == [0, 1]
    assert whole.usage.total_tokens == whole.usage.prompt_tokens + whole.usage.completion_tokens
    assert whole.system_fingerprint.startswith("tenon-")
    first = whole.choices[0].logprobs.content[0]
    assert first.logprob <= 0 and len(first.top_logprobs) == 2
    again = client.chat.completions.create(**ASKED, **options)
    assert [c.message.content for c in again.choices] == [c.message.content for c in whole.choices]
    texts, usage = ["", ""], None
    for chunk in client.chat.completions.create(
        **ASKED, **options, stream=True, stream_options={"include_usage": True}
    ):
        for choice in chunk.choices:
            texts[choice.index] += choice.delta.content or ""
        usage = chunk.usage or usage
    assert texts == [choice.message.content for choice in whole.choices]
    # A part of the prompt may come from the cache by now; the rest of the figures are the same.
    assert usage.completion_tokens == whole.usage.completion_tokens


def test_completions(client):
    made = client.completions.create(
        model="tiny", prompt=["a", "b"], max_tokens=5, logprobs=1, seed=1, temperature=0.5
    )
    assert [choice.finish_reason for choice in made.choices] == ["length", "length"]
    assert len(made.choices[1].logprobs.token_logprobs) == 5
    pieces = client.completions.create(
        model="tiny", prompt="b", max_tokens=5, seed=1, temperature=0, stream=True
    )
    text = (
        client.completions.create(model="tiny", prompt="b", max_tokens=5, seed=1, temperature=0)
        .choices[0]
        .text
    )
    assert "".join(piece.choices[0].text for piece in pieces) == text


def test_responses_whole_and_streamed(client):
    asked = {"model": "tiny", "input": "hi", "max_output_tokens": 12, "temperature": 0}
    whole = client.responses.create(**asked, instructions="Be brief.")
    assert whole.status == "incomplete" and whole.usage.output_tokens == 12
    text, last = "", None
    for event in client.responses.create(**asked, instructions="Be brief.", stream=True):
        if event.type == "response.output_text.delta":
            text += event.delta
        last = event
    assert last.type == "response.incomplete"
    assert text == whole.output_text == last.response.output_text
    with pytest.raises(openai.BadRequestError, match="previous_response_id: not there"):
        client.responses.create(**asked, previous_response_id="resp_1")


def test_embeddings(client):
    made = client.embeddings.create(model="tiny", input=["one", "two"])  # base64 by default
    plain = client.embeddings.create(model="tiny", input="one", encoding_format="float")
    assert len(made.data[0].embedding) == 64 and made.usage.total_tokens == 6
    assert made.data[0].embedding == pytest.approx(plain.data[0].embedding, abs=1e-6)
    assert sum(each * each for each in plain.data[0].embedding) == pytest.approx(1.0)


def test_json(client):
    pytest.importorskip("llguidance")
    schema = {
        "type": "object",
        "properties": {
            "kind": {"enum": ["cat", "dog"]},
            "count": {"type": "integer", "maximum": 9},
        },
        "required": ["kind", "count"],
        "additionalProperties": False,
    }
    made = client.chat.completions.create(
        **ASKED,
        max_tokens=200,
        response_format={"type": "json_schema", "json_schema": {"name": "pet", "schema": schema}},
    )
    pet = json.loads(made.choices[0].message.content)
    assert pet["kind"] in ("cat", "dog") and made.choices[0].finish_reason == "stop"


def test_calls(client):
    pytest.importorskip("llguidance")
    towns = {"town": {"enum": ["Bonn", "Ulm"]}}
    weather = {"name": "weather", "parameters": {"type": "object", "properties": towns}}
    weather["parameters"] |= {"required": ["town"], "additionalProperties": False}
    named = {"type": "function", "function": {"name": "weather"}}
    asked = {**ASKED, "max_tokens": 200, "tools": [{"type": "function", "function": weather}]}
    made = client.chat.completions.create(**asked, tool_choice=named)
    (call,) = made.choices[0].message.tool_calls
    assert made.choices[0].finish_reason == "tool_calls"
    assert json.loads(call.function.arguments)["town"] in ("Bonn", "Ulm")
    answered = client.chat.completions.create(
        model="tiny",
        messages=[
            *ASKED["messages"],
            made.choices[0].message.model_dump(exclude_none=True),
            {"role": "tool", "tool_call_id": call.id, "content": "rain"},
        ],
        tools=[WEATHER],
        max_tokens=4,
    )
    assert answered.choices[0].finish_reason in ("length", "stop")


def test_errors(client):
    with pytest.raises(
        openai.BadRequestError, match="temperature: expected a number from 0 to 100"
    ):
        client.chat.completions.create(**ASKED, temperature=-1)
    with pytest.raises(openai.BadRequestError) as caught:
        client.chat.completions.create(**ASKED, max_tokens=9999)
    assert caught.value.code == "context_length_exceeded"
