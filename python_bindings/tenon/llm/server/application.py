# SPDX-License-Identifier: Apache-2.0
"""OpenAI's API as an ASGI application: routes, bodies, answers and streams of events."""

from __future__ import annotations

import asyncio
import base64
import hmac
import logging
import struct
import time
from importlib import resources

import tenon

from .body import Fields, parse_json
from .errors import ApiError, wrong
from .exchange import JSON, ClientGone, Exchange, dumped, event
from .fields import (
    MOST_SEQUENCES,
    Generation,
    take_format,
    take_generation,
    take_messages,
    take_prompts,
)
from .formats import ChatFormat, CompletionFormat
from .generation import Choices
from .metrics import Metrics
from .responses import ResponseFormat, take_functions, take_input, take_text_format
from .served import ServedModel
from .tools import take_tools

_logger = logging.getLogger("tenon.llm.server")
_EVENTS = ((b"content-type", b"text/event-stream"), (b"cache-control", b"no-cache"))
MOST_INPUTS = 2048
_OPEN_PATHS = ("/", "/health", "/ready", "/version", "/metrics")


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
        self._embedding = asyncio.Lock()
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
            ("POST", "/v1/embeddings"): self._embeddings,
            ("POST", "/v1/responses"): self._responses,
            ("POST", "/tokenize"): self._tokenize,
            ("POST", "/detokenize"): self._detokenize,
        }

    async def __call__(self, scope, receive, send):
        if scope["type"] == "lifespan":
            await self._lifespan(receive, send)
            return
        if scope["type"] != "http":
            raise RuntimeError(f"expected HTTP, got {scope['type']}")
        exchange = Exchange(receive, send, self.metrics, self._write_timeout)
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
                await exchange.end(event(error.body()))
            else:
                await exchange.answer(error.status, dumped(error.body()), (JSON, *error.headers))
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
        schema = take_format(fields)
        tools = take_tools(fields)
        fields.only("modalities", (["text"],), "the answer is a text")
        most = fields.integer("max_tokens", None, 1)
        most = fields.integer("max_completion_tokens", most, 1)
        wanted = take_generation(fields, logprobs, most)
        fields.finish()
        await self._add_grammar(wanted, schema, tools)
        text = await self._render(messages, tools)
        tokens = await asyncio.to_thread(self.served.encode, text, False)
        await self._generate(exchange, [tokens], wanted, ChatFormat)

    async def _responses(self, exchange, fields):
        self._take_model(fields)
        messages = take_input(fields)
        schema, form = take_text_format(fields)
        tools, told = take_functions(fields)
        most = fields.integer("max_output_tokens", None, 1)
        wanted = take_generation(fields, None, most)
        fields.finish()
        await self._add_grammar(wanted, schema, tools, "text.format")
        text = await self._render(messages, tools)
        tokens = await asyncio.to_thread(self.served.encode, text, False)
        self._check_length(tokens, most, "max_output_tokens")
        told |= {
            "text": {"format": form},
            "max_output_tokens": most,
            "temperature": wanted.options.temperature,
            "top_p": wanted.options.top_p,
        }
        answer = ResponseFormat(self.served.name, told)
        choices = Choices(self.served, self.metrics, [tokens], wanted)
        try:
            work = self._stream_response if wanted.stream else self._whole_response
            await exchange.while_there(work(exchange, choices, answer))
        finally:
            choices.cancel()

    async def _whole_response(self, exchange, choices, answer):
        async for arrived in choices.pieces():
            for piece in arrived:
                answer.add(piece)
        await exchange.json(answer.whole(choices.usage()))

    async def _stream_response(self, exchange, choices, answer):
        await exchange.start(200, _EVENTS)
        await exchange.write(b"".join(answer.begin()))
        async for arrived in choices.pieces():
            parts = b"".join(part for piece in arrived for part in answer.part(piece))
            if parts:
                await exchange.write(parts)
        await exchange.write(b"".join(answer.end(choices.usage())), more=False)

    async def _add_grammar(self, wanted: Generation, schema, tools, name="response_format"):
        wanted.tools = tools
        if tools is not None and tools.forced:
            if schema is not None:
                raise ApiError(400, f"{name}: expected text, as tool_choice wants a call")
            name, schema = "tool_choice", tools.schema()
        if schema is None:
            return
        if wanted.ignore_eos:
            raise wrong("ignore_eos", f"false, as {name} ends the answer", True)
        if self.served.grammars is None:
            raise ApiError(400, f"{name}: this model has no token that ends texts", param=name)
        try:
            grammars = await asyncio.to_thread(self.served.grammars)
            wanted.grammar = await asyncio.to_thread(grammars.json, schema)
        except (ImportError, ValueError) as error:
            raise ApiError(400, f"{name}: {error}", param=name) from None

    async def _embeddings(self, exchange, fields):
        self._take_model(fields)
        inputs = take_prompts(fields, "input")
        encoding = fields.text("encoding_format", "float")
        if encoding not in ("float", "base64"):
            raise wrong("encoding_format", "float or base64", encoding)
        embed = self.served.embed
        size = fields.integer("dimensions", None, 1)
        fields.finish()
        if embed is None:
            raise ApiError(501, "this model has no embeddings", code="not_implemented")
        if len(inputs) > MOST_INPUTS:
            raise wrong("input", f"at most {MOST_INPUTS} texts", len(inputs))
        tokens = []
        for one in inputs:
            if isinstance(one, str):
                one = await asyncio.to_thread(self.served.encode, one, True)
            self._check_embedded(one)
            tokens.append(one)
        await exchange.while_there(self._embed(exchange, embed, tokens, encoding, size))

    def _check_embedded(self, tokens):
        limit, vocabulary = self.served.engine.max_length, self.served.engine.vocab_size
        if not 1 <= len(tokens) <= limit:
            raise ApiError(
                400,
                f"input: expected 1 to {limit} tokens of a text, got {len(tokens)}",
                param="input",
                code="context_length_exceeded" if tokens else None,
            )
        for token in tokens:
            if not 0 <= token < vocabulary:
                raise wrong("input", f"tokens from 0 to {vocabulary - 1}", token)

    async def _embed(self, exchange, embed, inputs, encoding, size):
        data = []
        for index, tokens in enumerate(inputs):
            async with self._embedding:  # one at a time, as each takes all threads
                vector = await asyncio.to_thread(embed, tokens)
            if size not in (None, len(vector)):
                raise wrong("dimensions", f"{len(vector)}, as this model has them", size)
            shown = vector
            if encoding == "base64":
                packed = struct.pack(f"<{len(vector)}f", *vector)
                shown = base64.b64encode(packed).decode()
            data.append({"object": "embedding", "index": index, "embedding": shown})
        count = sum(map(len, inputs))
        self.metrics.prompt_tokens += count
        usage = {"prompt_tokens": count, "total_tokens": count}
        head = {"object": "list", "model": self.served.name}
        await exchange.json({**head, "data": data, "usage": usage})

    def _take_model(self, fields):
        name = fields.text("model")
        if name is None:
            raise wrong("model", f"'{self.served.name}'", None)
        self._check_model(name)

    async def _render(self, messages, tools):
        if self.served.render is None:
            raise ApiError(
                400, "messages: this model has no template of chats; use /v1/completions"
            )
        variables = {}
        if tools is not None:
            if not self.served.takes_tools:
                raise ApiError(
                    400, "tools: this model's template does not know them", param="tools"
                )
            variables = {"tools": tools.definitions}
        try:
            text = await asyncio.wait_for(
                asyncio.to_thread(self.served.render, messages, **variables),
                self._template_timeout,
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

    def _check_length(self, prompt, max_tokens, name="max_tokens"):
        limit = self.served.engine.max_length
        asked = 1 if max_tokens is None else max_tokens
        if len(prompt) + asked > limit:
            raise ApiError(
                400,
                f"this model's context is {limit} tokens; the prompt has {len(prompt)}, and the "
                f"request wants {asked} more",
                param=name,
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
        first = b"".join(map(event, answers.first_chunks(count)))
        if first:
            await exchange.write(first)
        usage_follows = wanted.include_usage
        async for arrived in choices.pieces():
            await exchange.write(
                b"".join(event(answers.chunk(piece, usage_follows)) for piece in arrived)
            )
        last = event(answers.usage_chunk(choices.usage())) if usage_follows else b""
        await exchange.write(last + b"data: [DONE]\n\n", more=False)
