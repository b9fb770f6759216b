# SPDX-License-Identifier: Apache-2.0
"""tenon.llm.server: OpenAI's API, what it answers to bad input, and clients that leave."""

import asyncio
import base64
import json
import struct
import sys
import threading
import time

import pytest
from tenon.llm import Engine
from tenon.llm.server import Application, ServedModel, serve
from tiny_decoder import TinyDecoder


def encode(text, special):
    return ([256] if special else []) + list(text.encode())


def decode(tokens):
    return bytes(token for token in tokens if token < 256).decode("utf-8", "replace")


def render(messages):
    return "".join(f"{one['role'][0]}:{one['content']}\n" for one in messages)


class Client:
    """Calls an application as an ASGI server does."""

    def __init__(self, application):
        self.application = application
        self.loop = None  # of the newest call

    def __call__(self, method, path, body=None, headers=(), leave_after=None, raw=None):
        """(status, headers, body). The client leaves after `leave_after` parts of the body."""
        return asyncio.run(self.call(method, path, body, headers, leave_after, raw))

    async def call(self, method, path, body=None, headers=(), leave_after=None, raw=None):
        self.loop = asyncio.get_running_loop()
        sent = raw if raw is not None else b"" if body is None else json.dumps(body).encode()
        left = asyncio.Event()
        messages = [{"type": "http.request", "body": sent, "more_body": False}]
        out = {"status": None, "headers": {}, "parts": []}

        async def receive():
            if messages:
                return messages.pop()
            await left.wait()
            return {"type": "http.disconnect"}

        async def send(message):
            if message["type"] == "http.response.start":
                out["status"] = message["status"]
                out["headers"] = dict(message["headers"])
            else:
                out["parts"].append(message["body"])
                if leave_after is not None and len(out["parts"]) > leave_after:
                    left.set()

        scope = {"type": "http", "method": method, "path": path, "headers": list(headers)}
        await self.application(scope, receive, send)
        return out["status"], out["headers"], b"".join(out["parts"])

    def json(self, path, body, **rest):
        status, _, answer = self("POST", path, body, **rest)
        return status, json.loads(answer)

    def events(self, path, body):
        status, headers, answer = self("POST", path, {**body, "stream": True})
        assert status == 200 and headers[b"content-type"] == b"text/event-stream"
        events = answer.decode().split("\n\n")
        assert events[-2:] == ["data: [DONE]", ""]
        return [json.loads(event.removeprefix("data: ")) for event in events[:-2]]


@pytest.fixture(scope="module")
def engine():
    with Engine(TinyDecoder(), kv_cache="2MiB", max_sequences=8, max_waiting=64) as made:
        yield made


@pytest.fixture
def client(engine):
    return Client(Application(ServedModel("tiny", engine, encode, decode, render)))


CHAT = {"model": "tiny", "messages": [{"role": "user", "content": "hi"}], "seed": 5}
COMPLETION = {"model": "tiny", "prompt": "hi", "seed": 5}


def test_a_completion(client):
    status, answer = client.json("/v1/completions", {**COMPLETION, "max_tokens": 8})
    assert status == 200 and answer["object"] == "text_completion"
    (choice,) = answer["choices"]
    assert choice["finish_reason"] == "length" and isinstance(choice["text"], str)
    assert answer["usage"]["prompt_tokens"] == 3 and answer["usage"]["completion_tokens"] == 8
    assert answer["usage"]["total_tokens"] == 11
    assert client.json("/v1/completions", {**COMPLETION, "max_tokens": 8})[1]["choices"] == [choice]
    # The prompt as tokens is the same prompt.
    tokens = {**COMPLETION, "prompt": encode("hi", True), "max_tokens": 8}
    assert client.json("/v1/completions", tokens)[1]["choices"] == [choice]


def test_streams_join_to_the_answer(client):
    for path, body in (("/v1/completions", COMPLETION), ("/v1/chat/completions", CHAT)):
        body = {**body, "max_tokens": 40, "n": 3}
        _, whole = client.json(path, body)
        texts = {}
        reasons = {}
        for event in client.events(path, body):
            assert event["id"].startswith(("cmpl-", "chatcmpl-")) and event["model"] == "tiny"
            for choice in event["choices"]:
                text = choice.get("text", choice.get("delta", {}).get("content", ""))
                texts[choice["index"]] = texts.get(choice["index"], "") + text
                if choice["finish_reason"]:
                    reasons[choice["index"]] = choice["finish_reason"]
        for choice in whole["choices"]:
            expected = choice["text"] if "text" in choice else choice["message"]["content"]
            assert texts[choice["index"]] == expected
            assert reasons[choice["index"]] == choice["finish_reason"]
        assert len({*texts.values()}) == 3  # the choices differ


def test_usage_of_a_stream(client):
    body = {**CHAT, "max_tokens": 4, "stream_options": {"include_usage": True}}
    events = client.events("/v1/chat/completions", body)
    assert events[-1]["choices"] == [] and events[-1]["usage"]["completion_tokens"] == 4
    assert all(event.get("usage") is None for event in events[:-1])


def test_logprobs(client):
    body = {**COMPLETION, "max_tokens": 5, "logprobs": 2}
    shown = client.json("/v1/completions", body)[1]["choices"][0]["logprobs"]
    assert len(shown["tokens"]) == len(shown["token_logprobs"]) == len(shown["text_offset"]) == 5
    assert all(value < 0 for value in shown["token_logprobs"])
    body = {**CHAT, "max_tokens": 5, "logprobs": True, "top_logprobs": 3}
    content = client.json("/v1/chat/completions", body)[1]["choices"][0]["logprobs"]["content"]
    assert len(content) == 5 and all(len(one["top_logprobs"]) == 3 for one in content)
    streamed = [
        one
        for event in client.events("/v1/chat/completions", body)
        for choice in event["choices"]
        if choice["logprobs"]
        for one in choice["logprobs"]["content"]
    ]
    assert streamed == content


def test_stops_are_cut_off(client):
    free = {**COMPLETION, "max_tokens": 60, "temperature": 0, "logit_bias": {"65": 9, "66": 8.5}}
    text = client.json("/v1/completions", free)[1]["choices"][0]["text"]
    stop = text[5:8]
    answer = client.json("/v1/completions", {**free, "stop": [stop]})[1]["choices"][0]
    assert answer["text"] == text[: text.index(stop)] and answer["finish_reason"] == "stop"
    streamed = "".join(
        event["choices"][0]["text"]
        for event in client.events("/v1/completions", {**free, "stop": stop})
    )
    assert streamed == answer["text"]


def test_bias_decides(client):
    body = {**COMPLETION, "max_tokens": 4, "temperature": 0, "logit_bias": {"65": 100}}
    assert client.json("/v1/completions", body)[1]["choices"][0]["text"] == "AAAA"


def test_other_paths(client, engine):
    status, _, page = client("GET", "/")
    assert status == 200 and b"<title>Tenon</title>" in page and b"://" not in page
    assert json.loads(client("GET", "/v1/models")[2])["data"][0]["id"] == "tiny"
    assert json.loads(client("GET", "/v1/models/tiny")[2])["max_model_len"] == 128
    assert client("GET", "/health")[0] == client("GET", "/ready")[0] == 200
    assert "version" in json.loads(client("GET", "/version")[2])
    assert client.json("/tokenize", {"prompt": "ab"})[1]["tokens"] == [256, 97, 98]
    assert client.json("/detokenize", {"tokens": [97, 98]})[1] == {"prompt": "ab"}


def test_metrics(client):
    client.json("/v1/completions", {**COMPLETION, "max_tokens": 3})
    lines = client("GET", "/metrics")[2].decode().splitlines()
    samples = dict(line.rsplit(" ", 1) for line in lines if not line.startswith("#"))
    assert samples["tenon:generation_tokens_total"] == "3"
    assert samples["tenon:num_requests_running"] == "0"
    assert samples['tenon:request_success_total{finished_reason="length"}'] == "1"
    assert samples["tenon:time_to_first_token_seconds_count"] == "1"
    assert samples['tenon:inter_token_latency_seconds_bucket{le="+Inf"}'] == "2"


@pytest.mark.parametrize(
    "path, change, status, text",
    [
        ("completions", {"model": "other"}, 404, "model: there is no 'other'; there is 'tiny'"),
        ("completions", {"model": None}, 400, "model: expected 'tiny', got None"),
        ("completions", {"prompt": None}, 400, "prompt: expected a text, tokens, or a list of"),
        ("completions", {"prompt": [1, "a"]}, 400, "prompt: expected a text, tokens"),
        ("completions", {"prompt": [[]]}, 400, "prompt: expected at least one token, got none"),
        (
            "completions",
            {"prompt": [999]},
            400,
            "prompt: expected tokens from 0 to 259, got 999 at 0",
        ),
        (
            "completions",
            {"max_tokens": 0},
            400,
            "max_tokens: expected an integer of at least 1, got 0",
        ),
        ("completions", {"max_tokens": True}, 400, "max_tokens: expected an integer"),
        (
            "completions",
            {"max_tokens": 126},
            400,
            "context is 128 tokens; the prompt has 3, and the request wants 126 more",
        ),
        ("completions", {"n": 17}, 400, "n: expected 1 to 16, got 17"),
        ("completions", {"n": 16, "prompt": ["a"] * 5}, 400, "n: expected at most 64 choices"),
        ("completions", {"temperature": "hot"}, 400, "temperature: expected a number, got 'hot'"),
        (
            "completions",
            {"temperature": -1},
            400,
            "temperature: expected a number from 0 to 100, got -1",
        ),
        ("completions", {"top_p": 2}, 400, "top_p: expected a number from 0 to 1, got 2"),
        ("completions", {"seed": 0.5}, 400, "seed: expected an integer, got 0.5"),
        ("completions", {"stream": "yes"}, 400, "stream: expected true or false, got 'yes'"),
        (
            "completions",
            {"stop": [""]},
            400,
            "stop: expected a text, or a list of texts that are not",
        ),
        ("completions", {"stop": ["a"] * 17}, 400, "stop: expected at most 16 texts, got 17"),
        ("completions", {"logprobs": 21}, 400, "logprobs: expected 0 to 20, got 21"),
        ("completions", {"logit_bias": {"x": 1}}, 400, "logit_bias: expected tokens as names"),
        ("completions", {"logit_bias": {"1": 101}}, 400, "logit_bias: expected numbers from -100"),
        (
            "completions",
            {"logit_bias": {"999": 1}},
            400,
            "logit_bias: expected tokens from 0 to 259",
        ),
        (
            "completions",
            {"echo": True},
            400,
            "echo: expected false, as other values are not there yet",
        ),
        (
            "completions",
            {"best_of": 4},
            400,
            "best_of: expected 1, as other values are not there yet",
        ),
        ("completions", {"suffix": "x"}, 400, 'suffix: expected "", as other values are not there'),
        ("completions", {"stream_options": {"include_usage": True}}, 400, "as stream is false"),
        (
            "completions",
            {"grammar": "x"},
            400,
            "grammar: this server knows no such field, or not yet",
        ),
        (
            "chat/completions",
            {"messages": []},
            400,
            "messages: expected a list of at least one message",
        ),
        ("chat/completions", {"messages": ["x"]}, 400, "messages[0]: expected an object"),
        (
            "chat/completions",
            {"messages": [{"role": "user", "content": "x"}] * 2049},
            400,
            "messages: expected at most 2048, got 2049",
        ),
        (
            "chat/completions",
            {"messages": [{"role": "judge", "content": "x"}]},
            400,
            "messages[0].role: expected one of system, developer, user, assistant, tool, got 'judge'",
        ),
        (
            "chat/completions",
            {"messages": [{"role": "user", "content": [{"type": "image_url"}]}]},
            400,
            "messages[0].content: expected a text or parts of type text",
        ),
        (
            "chat/completions",
            {"tools": [{}]},
            400,
            "tools[0].type: expected 'function', got {}",
        ),
        (
            "chat/completions",
            {"response_format": {"type": "json_object"}},
            400,
            "response_format: this model has no token that ends texts",
        ),
        (
            "chat/completions",
            {"top_logprobs": 2},
            400,
            "top_logprobs: expected logprobs to be true",
        ),
        ("nothing", {}, 404, "/v1/nothing: there is no such path; there are /, "),
    ],
    ids=lambda value: str(value)[:40],
)
def test_bad_requests(client, path, change, status, text):
    body = {**(CHAT if path.startswith("chat") else COMPLETION), **change}
    got, answer = client.json(f"/v1/{path}", body)
    assert got == status and text in answer["error"]["message"]
    assert set(answer["error"]) == {"message", "type", "param", "code"}
    if "context is" in text:
        assert answer["error"]["code"] == "context_length_exceeded"


@pytest.mark.parametrize(
    "raw, text",
    [
        (b"{", "body: expected JSON, got something else"),
        (b"[1]", "body: expected a JSON object, got list"),
        (b"\xff", "body: expected JSON"),
        (b'{"temperature": NaN}', "NaN is no number of JSON"),
        (b'{"a":' + b"[" * 100_000, "body: expected JSON"),
        (b'{"seed":' + b"9" * 10_000 + b"}", "body: expected JSON"),
        (b'{"prompt": "a\\uD800"}', "body: expected texts of Unicode, got half a surrogate pair"),
        (b'{"prompt": "a\xed\xa0\x80"}', "body: expected JSON, got something else: 'utf-8' codec"),
        (
            '{"prompt": "a"}'.encode("utf-16"),
            "body: expected JSON, got something else: 'utf-8' codec",
        ),
    ],
    ids=["cut", "list", "bytes", "nan", "deep", "digits", "surrogate", "bytes of one", "utf-16"],
)
def test_bodies_that_are_no_json(client, raw, text):
    status, _, answer = client("POST", "/v1/completions", raw=raw)
    assert status == 400 and text in json.loads(answer)["error"]["message"]


def test_surrogate_pairs_are_characters(client):
    raw = b'{"model": "tiny", "prompt": "\\ud835\\udd18", "max_tokens": 1}'
    status, _, answer = client("POST", "/v1/completions", raw=raw)
    assert status == 200 and json.loads(answer)["usage"]["prompt_tokens"] == 1 + 4


def embed(tokens):
    return [float(len(tokens)), float(sum(tokens)), 0.5]


def test_embeddings(engine):
    client = Client(Application(ServedModel("tiny", engine, encode, decode, embed=embed)))
    body = {"model": "tiny", "input": ["ab", [1, 2, 3]]}
    status, answer = client.json("/v1/embeddings", body)
    assert status == 200 and answer["object"] == "list" and answer["model"] == "tiny"
    assert [each["index"] for each in answer["data"]] == [0, 1]
    assert answer["data"][0]["embedding"] == [3.0, 451.0, 0.5]
    assert answer["data"][1]["embedding"] == [3.0, 6.0, 0.5]
    assert answer["usage"] == {"prompt_tokens": 6, "total_tokens": 6}
    body = {"model": "tiny", "input": "ab", "encoding_format": "base64", "dimensions": 3}
    packed = base64.b64decode(client.json("/v1/embeddings", body)[1]["data"][0]["embedding"])
    assert struct.unpack("<3f", packed) == (3.0, 451.0, 0.5)
    for change, text in (
        ({"input": ""}, None),
        ({"input": []}, "input: expected a text, tokens, or a list"),
        ({"input": [[]]}, "input: expected 1 to 128 tokens of a text, got 0"),
        ({"input": [[260]]}, "input: expected tokens from 0 to 259, got 260"),
        ({"input": "x" * 200}, "input: expected 1 to 128 tokens of a text, got 201"),
        ({"input": ["x"] * 2049}, "input: expected at most 2048 texts, got 2049"),
        ({"dimensions": 2}, "dimensions: expected 3, as this model has them, got 2"),
        ({"encoding_format": "int8"}, "encoding_format: expected float or base64, got 'int8'"),
        ({"pooling": "cls"}, "pooling: this server knows no such field"),
    ):
        status, answer = client.json("/v1/embeddings", {"model": "tiny", "input": "ab", **change})
        assert status == (200 if text is None else 400), answer
        assert text is None or text in answer["error"]["message"]
    client = Client(Application(ServedModel("tiny", engine, encode, decode)))
    status, answer = client.json("/v1/embeddings", {"model": "tiny", "input": "x"})
    assert status == 501 and "this model has no embeddings" in answer["error"]["message"]


def test_harmless_fields_are_ignored(client):
    assert client.json("/v1/completions", {**COMPLETION, "user": "someone"})[0] == 200


def test_keys_methods_and_sizes(engine):
    served = ServedModel("tiny", engine, encode, decode, render)
    client = Client(Application(served, api_key="secret", max_body=100))
    status, headers, answer = client("POST", "/v1/completions", COMPLETION)
    assert status == 401 and json.loads(answer)["error"]["code"] == "invalid_api_key"
    key = [(b"authorization", b"Bearer secret")]
    assert client("POST", "/v1/completions", {**COMPLETION, "max_tokens": 1}, headers=key)[0] == 200
    assert client("GET", "/v1/models")[0] == 401 and client("GET", "/health")[0] == 200
    assert client("POST", "/v1/completions", raw=b" " * 101, headers=key)[0] == 413
    status, headers, _ = client("GET", "/v1/completions", headers=key)
    assert status == 405 and headers[b"allow"] == b"POST"


def test_templates_that_fail(engine):
    def ask(render, **settings):
        application = Application(ServedModel("tiny", engine, encode, decode, render), **settings)
        status, answer = Client(application).json("/v1/chat/completions", CHAT)
        return status, answer["error"]["message"]

    class Fault(ValueError):
        lineno = 3

    def raises(messages):
        raise Fault("roles must alternate")

    assert ask(raises) == (400, "messages: the template raised in line 3: roles must alternate")
    status, text = ask(lambda messages: time.sleep(0.3), template_timeout=0.05)
    assert status == 400 and text == "messages: the template took more than 0.05 s"
    status, text = ask(lambda messages: "x" * 50, max_rendered=40)
    assert status == 400 and "at most 40 characters from the template, got 50" in text
    status, text = ask(None)
    assert status == 400 and "this model has no template of chats" in text


def test_a_full_queue_and_an_end():
    decoder = TinyDecoder()
    with Engine(decoder, kv_cache="1MiB", max_sequences=1, max_waiting=1) as engine:
        application = Application(ServedModel("tiny", engine, encode, decode, render))
        client = Client(application)
        gate = threading.Event()
        decoder.delay = gate.wait
        for _ in range(2):
            engine.submit([1], lambda answer: None, max_tokens=1)
        status, headers, answer = client("POST", "/v1/completions", COMPLETION)
        assert status == 429 and headers[b"retry-after"] == b"1"
        assert json.loads(answer)["error"]["type"] == "rate_limit_error"
        gate.set()
        application.draining = True
        assert client("POST", "/v1/completions", COMPLETION)[0] == 503
        assert client("GET", "/ready")[0] == 503 and client("GET", "/health")[0] == 200
        application.draining = False
    status, answer = client.json("/v1/completions", COMPLETION)
    assert status == 503 and "the engine was closed" in answer["error"]["message"]
    engine.failure = RuntimeError("no memory")
    status, _, answer = client("GET", "/health")
    assert status == 503 and b"the engine has died: no memory" in answer


def test_a_failed_step_is_an_error_of_the_request():
    decoder = TinyDecoder()
    with Engine(decoder, kv_cache="1MiB") as engine:
        client = Client(Application(ServedModel("tiny", engine, encode, decode, render)))
        decoder.fault, decoder.faulty = RuntimeError("linear: no memory"), ord("!")
        status, answer = client.json("/v1/completions", {**COMPLETION, "prompt": "!"})
        assert status == 500 and "linear: no memory" in answer["error"]["message"]
        status, _, answer = client(
            "POST", "/v1/completions", {**COMPLETION, "prompt": "!", "stream": True}
        )
        assert status == 200 and b"linear: no memory" in answer and b"[DONE]" not in answer
        assert client.json("/v1/completions", COMPLETION)[0] == 200


def wait_until_free(engine):
    end = time.monotonic() + 10
    while engine.cache.used or engine.open_requests:
        assert time.monotonic() < end, "blocks are still held"
        time.sleep(0.001)


def let_run(loop):
    """Wait until the loop has done some times over what is ready, or has ended. An engine that does this for each token does not
    have all of them before a busy machine runs the client, nor does it join many of them to one part."""
    for _ in range(4):
        seen = threading.Event()
        try:
            loop.call_soon_threadsafe(seen.set)
        except RuntimeError:  # it is closed
            return
        while not seen.wait(0.05) and not loop.is_closed():
            pass


def test_clients_that_leave_are_let_go(client, engine):
    body = {**CHAT, "max_tokens": 100, "stream": True}
    for parts in (0, 1, 3):
        before = engine.steps
        engine.decoder.delay = lambda: let_run(client.loop)
        client("POST", "/v1/chat/completions", body, leave_after=parts)
        wait_until_free(engine)
        assert engine.steps - before < 100
    engine.decoder.delay = None

    async def leave():
        task = asyncio.ensure_future(
            client.call("POST", "/v1/chat/completions", {**body, "stream": False})
        )
        while not engine.open_requests:
            await asyncio.sleep(0.001)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    asyncio.run(leave())
    wait_until_free(engine)


def test_clients_that_read_nothing_are_let_go(engine):
    application = Application(
        ServedModel("tiny", engine, encode, decode, render), write_timeout=0.05
    )

    async def ask():
        sent = []

        async def receive():
            if not sent:
                sent.append(1)
                body = json.dumps({**CHAT, "max_tokens": 100, "stream": True}).encode()
                return {"type": "http.request", "body": body, "more_body": False}
            await asyncio.Event().wait()

        async def send(message):
            if message["type"] == "http.response.body":
                await asyncio.Event().wait()

        scope = {"type": "http", "method": "POST", "path": "/v1/chat/completions", "headers": []}
        await asyncio.wait_for(application(scope, receive, send), 10)

    asyncio.run(ask())
    wait_until_free(engine)


def test_a_server_needs_uvicorn(engine, monkeypatch):
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    served = ServedModel("tiny", engine, encode, decode, render)
    with pytest.raises(RuntimeError, match="serving needs uvicorn .*install it with pip install"):
        serve(Application(served), "127.0.0.1", 8000)
