# SPDX-License-Identifier: Apache-2.0
"""OpenAI's API as an ASGI application: routes, bodies, answers and streams of events."""

from __future__ import annotations

import asyncio
import hmac
import json
import logging
import time
from importlib import resources

import tenon

from .errors import ApiError, wrong
from .fields import (
    MOST_SEQUENCES,
    Fields,
    parse_json,
    take_generation,
    take_messages,
    take_prompts,
)
from .formats import ChatFormat, CompletionFormat
from .generation import Choices
from .metrics import Metrics
from .served import ServedModel

_logger = logging.getLogger("tenon.llm.server")
_JSON = (b"content-type", b"application/json")
_EVENTS = ((b"content-type", b"text/event-stream"), (b"cache-control", b"no-cache"))
_OPEN_PATHS = ("/", "/health", "/ready", "/version", "/metrics")


class ClientGone(Exception):
    """The client has left, or reads nothing."""


class Application:
    """`served` for HTTP. One application belongs to one event loop.

    With `api_key` paths under /v1 and the tokenizer need it. `max_body` bytes of a body are read;
    a client that takes nothing for `write_timeout` seconds is let go. Setting `draining` answers new
    requests with 503 while those that run go on.
    """

    def __init__(
        self,
        served: ServedModel,
        *,
        api_key: str | None = None,
        max_body: int = 8 << 20,
        write_timeout: float = 30.0,
        template_timeout: float = 1.0,
        max_rendered: int = 1 << 20,
    ):
        self.served = served
        self.metrics = Metrics()
        self.draining = False
        self._api_key = api_key
        self._max_body = max_body
        self._write_timeout = write_timeout
        self._template_timeout = template_timeout
        self._max_rendered = max_rendered
        self._created = int(time.time())
        self._page = resources.files(__package__).joinpath("page.html").read_bytes()
        self._routes = {
            ("GET", "/"): self._get_page,
            ("GET", "/health"): self._get_health,
            ("GET", "/ready"): self._get_ready,
            ("GET", "/version"): self._get_version,
            ("GET", "/metrics"): self._get_metrics,
            ("GET", "/v1/models"): self._get_models,
            ("POST", "/v1/completions"): self._completions,
            ("POST", "/v1/chat/completions"): self._chat,
            ("POST", "/v1/embeddings"): self._not_there,
            ("POST", "/v1/responses"): self._not_there,
            ("POST", "/tokenize"): self._tokenize,
            ("POST", "/detokenize"): self._detokenize,
        }

    async def __call__(self, scope, receive, send):
        if scope["type"] == "lifespan":
            await self._lifespan(receive, send)
            return
        if scope["type"] != "http":
            raise RuntimeError(f"expected HTTP, got {scope['type']}")
        exchange = _Exchange(receive, send, self.metrics, self._write_timeout)
        try:
            await self._handle(scope, exchange)
        except ClientGone:
            pass
        except ApiError as error:
            await self._answer_error(exchange, error)
        except Exception as error:
            _logger.exception("a request failed")
            await self._answer_error(
                exchange, ApiError(500, f"{type(error).__name__}: {error}", code="internal_error")
            )

    async def _answer_error(self, exchange, error):
        try:
            if exchange.started:  # a stream: its status is out, so an event says what happened
                await exchange.write(_event(error.body()), more=False)
            else:
                await exchange.answer(error.status, _dumped(error.body()), (_JSON, *error.headers))
        except ClientGone:
            pass

    async def _lifespan(self, receive, send):
        while True:
            message = await receive()
            if message["type"] == "lifespan.startup":
                await send({"type": "lifespan.startup.complete"})
            elif message["type"] == "lifespan.shutdown":
                await asyncio.to_thread(self.served.engine.close)
                await send({"type": "lifespan.shutdown.complete"})
                return

    async def _handle(self, scope, exchange):
        method, path = scope["method"], scope["path"]
        method = "GET" if method == "HEAD" else method
        route = self._routes.get((method, path))
        if route is None and path.startswith("/v1/models/") and method == "GET":
            self._check_key(scope)
            self._check_model(path.removeprefix("/v1/models/"))
            await exchange.json(self._model())
            return
        if route is None:
            allowed = sorted(one for one, known in self._routes if known == path)
            if allowed:
                raise ApiError(
                    405,
                    f"{path}: expected {' or '.join(allowed)}, got {method}",
                    headers=((b"allow", ", ".join(allowed).encode()),),
                )
            paths = ", ".join(sorted({known for _, known in self._routes}))
            raise ApiError(404, f"{path}: there is no such path; there are {paths}")
        if path not in _OPEN_PATHS:
            self._check_key(scope)
        if method == "POST":
            if self.draining:
                raise ApiError(503, "the server is about to stop", code="draining")
            fields = Fields(parse_json(await exchange.body(self._max_body)))
            await route(exchange, fields)
        else:
            await route(exchange)

    def _check_key(self, scope):
        if self._api_key is None:
            return
        given = dict(scope["headers"]).get(b"authorization", b"")
        expected = b"Bearer " + self._api_key.encode()
        if not hmac.compare_digest(given, expected):
            raise ApiError(
                401,
                "expected the header Authorization: Bearer and this server's key",
                code="invalid_api_key",
                headers=((b"www-authenticate", b"Bearer"),),
            )

    def _check_model(self, name):
        if name != self.served.name:
            raise ApiError(
                404,
                f"model: there is no '{name}'; there is '{self.served.name}'",
                param="model",
                code="model_not_found",
            )

    # Answers that need no step.

    async def _get_page(self, exchange):
        await exchange.answer(200, self._page, ((b"content-type", b"text/html; charset=utf-8"),))

    async def _get_health(self, exchange):
        engine = self.served.engine
        if engine.failure is not None:
            raise ApiError(503, f"the engine has died: {engine.failure}", code="engine_stopped")
        await exchange.json({"status": "ok", "last_error": engine.last_error or None})

    async def _get_ready(self, exchange):
        if self.draining:
            raise ApiError(503, "the server is about to stop", code="draining")
        await self._get_health(exchange)

    async def _get_version(self, exchange):
        await exchange.json({"version": tenon.__version__})

    async def _get_metrics(self, exchange):
        text = self.metrics.text(self.served.engine).encode()
        await exchange.answer(200, text, ((b"content-type", b"text/plain; version=0.0.4"),))

    def _model(self):
        return {
            "id": self.served.name,
            "object": "model",
            "created": self._created,
            "owned_by": "tenon",
            "max_model_len": self.served.engine.max_length,
        }

    async def _get_models(self, exchange):
        await exchange.json({"object": "list", "data": [self._model()]})

    async def _not_there(self, exchange, fields):
        raise ApiError(
            501,
            "this path is not there yet; /v1/completions and /v1/chat/completions are",
            code="not_implemented",
        )

    async def _tokenize(self, exchange, fields):
        fields.text("model")
        text = fields.text("prompt")
        if text is None:
            raise wrong("prompt", "a text", None)
        special = fields.boolean("add_special_tokens", True)
        fields.finish()
        tokens = await asyncio.to_thread(self.served.encode, text, special)
        limit = self.served.engine.max_length
        await exchange.json({"tokens": tokens, "count": len(tokens), "max_model_len": limit})

    async def _detokenize(self, exchange, fields):
        fields.text("model")
        tokens = fields.take("tokens")
        fields.finish()
        limit = self.served.engine.vocab_size
        if not isinstance(tokens, list):
            raise wrong("tokens", "a list of tokens", tokens)
        for token in tokens:
            if isinstance(token, bool) or not isinstance(token, int) or not 0 <= token < limit:
                raise wrong("tokens", f"integers from 0 to {limit - 1}", token)
        await exchange.json({"prompt": await asyncio.to_thread(self.served.decode, tokens)})

    # Generation.

    async def _completions(self, exchange, fields):
        self._take_model(fields)
        prompts = take_prompts(fields)
        logprobs = fields.integer("logprobs", None, 0, 20)
        for name, values in (("echo", (False,)), ("suffix", ("",)), ("best_of", (1,))):
            fields.only(name, values, "other values are not there yet")
        wanted = take_generation(fields, logprobs, fields.integer("max_tokens", 16, 1))
        fields.finish()
        tokens = []
        for prompt in prompts:
            if isinstance(prompt, str):
                prompt = await asyncio.to_thread(self.served.encode, prompt, True)
            tokens.append(prompt)
        await self._generate(exchange, tokens, wanted, CompletionFormat)

    async def _chat(self, exchange, fields):
        self._take_model(fields)
        messages = take_messages(fields)
        logprobs = None
        if fields.boolean("logprobs", False):
            logprobs = fields.integer("top_logprobs", 0, 0, 20)
        elif fields.take("top_logprobs") is not None:
            raise ApiError(400, "top_logprobs: expected logprobs to be true", param="top_logprobs")
        fields.only("response_format", ({"type": "text"},), "grammars are not there yet")
        fields.only("tool_choice", ("none", "auto"), "tools are not there yet")
        fields.only("tools", ([],), "tools are not there yet")
        fields.only("modalities", (["text"],), "the answer is a text")
        most = fields.integer("max_tokens", None, 1)
        most = fields.integer("max_completion_tokens", most, 1)
        wanted = take_generation(fields, logprobs, most)
        fields.finish()
        tokens = await asyncio.to_thread(self.served.encode, await self._render(messages), False)
        await self._generate(exchange, [tokens], wanted, ChatFormat)

    def _take_model(self, fields):
        name = fields.text("model")
        if name is None:
            raise wrong("model", f"'{self.served.name}'", None)
        self._check_model(name)

    async def _render(self, messages):
        if self.served.render is None:
            raise ApiError(
                400, "messages: this model has no template of chats; use /v1/completions"
            )
        try:
            text = await asyncio.wait_for(
                asyncio.to_thread(self.served.render, messages), self._template_timeout
            )
        except asyncio.TimeoutError:
            raise ApiError(
                400, f"messages: the template took more than {self._template_timeout:g} s"
            ) from None
        except Exception as error:
            line = getattr(error, "lineno", None)
            where = f" in line {line}" if line else ""
            raise ApiError(400, f"messages: the template raised{where}: {error}") from None
        if len(text) > self._max_rendered:
            raise ApiError(
                400,
                f"messages: expected at most {self._max_rendered} characters from the template, got "
                f"{len(text)}",
            )
        return text

    async def _generate(self, exchange, prompts, wanted, format_type):
        count = len(prompts) * wanted.choices
        if count > MOST_SEQUENCES:
            raise ApiError(
                400, f"n: expected at most {MOST_SEQUENCES} choices of all prompts, got {count}"
            )
        for prompt in prompts:
            self._check_length(prompt, wanted.max_tokens)
        served = self.served
        answers = format_type(served.name, served.fingerprint, served.decode, wanted.logprobs)
        choices = Choices(served, self.metrics, prompts, wanted)
        try:
            if wanted.stream:
                await exchange.while_there(self._stream(exchange, choices, answers, wanted, count))
            else:
                await exchange.while_there(self._collect(exchange, choices, answers, count))
        finally:
            choices.cancel()

    def _check_length(self, prompt, max_tokens):
        limit = self.served.engine.max_length
        asked = 1 if max_tokens is None else max_tokens
        if len(prompt) + asked > limit:
            raise ApiError(
                400,
                f"this model's context is {limit} tokens; the prompt has {len(prompt)}, and the "
                f"request wants {asked} more",
                param="max_tokens",
                code="context_length_exceeded",
            )

    async def _collect(self, exchange, choices, answers, count):
        pieces = [[] for _ in range(count)]
        async for arrived in choices.pieces():
            for piece in arrived:
                pieces[piece.index].append(piece)
        await exchange.json(answers.whole(pieces, choices.usage()))

    async def _stream(self, exchange, choices, answers, wanted, count):
        await exchange.start(200, _EVENTS)
        first = b"".join(map(_event, answers.first_chunks(count)))
        if first:
            await exchange.write(first)
        usage_follows = wanted.include_usage
        async for arrived in choices.pieces():
            await exchange.write(
                b"".join(_event(answers.chunk(piece, usage_follows)) for piece in arrived)
            )
        last = _event(answers.usage_chunk(choices.usage())) if usage_follows else b""
        await exchange.write(last + b"data: [DONE]\n\n", more=False)


class _Exchange:
    """One request and its response over ASGI's two functions."""

    def __init__(self, receive, send, metrics, write_timeout):
        self._receive = receive
        self._send = send
        self._metrics = metrics
        self._write_timeout = write_timeout
        self.started = False

    async def body(self, limit):
        parts, size = [], 0
        while True:
            message = await self._receive()
            if message["type"] == "http.disconnect":
                raise ClientGone
            part = message.get("body", b"")
            size += len(part)
            more = message.get("more_body", False)
            if size > limit:
                # A client that still writes when its connection is closed does not see the answer,
                # so what is a little too much is read, and forgotten.
                parts.clear()
                if more and size <= 8 * limit:
                    continue
                raise ApiError(413, f"body: expected at most {limit} bytes, got more")
            parts.append(part)
            if not more:
                return b"".join(parts)

    async def while_there(self, work):
        """Run `work`, or raise ClientGone as soon as the client has left."""
        task = asyncio.ensure_future(work)
        gone = asyncio.ensure_future(self._left())
        try:
            await asyncio.wait((task, gone), return_when=asyncio.FIRST_COMPLETED)
            if not task.done():
                raise ClientGone
            task.result()
        finally:
            for one in (task, gone):
                one.cancel()
            await asyncio.gather(task, gone, return_exceptions=True)

    async def _left(self):
        while (await self._receive())["type"] != "http.disconnect":
            pass

    async def start(self, status, headers):
        self.started = True
        self._metrics.responses[status] = self._metrics.responses.get(status, 0) + 1
        await self._put({"type": "http.response.start", "status": status, "headers": headers})

    async def write(self, data, more=True):
        await self._put({"type": "http.response.body", "body": data, "more_body": more})

    async def answer(self, status, body, headers):
        length = (b"content-length", str(len(body)).encode())
        await self.start(status, (*headers, length))
        await self.write(body, more=False)

    async def json(self, value):
        await self.answer(200, _dumped(value), (_JSON,))

    async def _put(self, message):
        try:
            await asyncio.wait_for(self._send(message), self._write_timeout)
        except (asyncio.TimeoutError, OSError):
            raise ClientGone from None


def _dumped(value):
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode(
        "utf-8", "replace"
    )


def _event(value):
    return b"data: " + _dumped(value) + b"\n\n"
