# SPDX-License-Identifier: Apache-2.0
"""Bodies of requests: JSON, its fields, and what they ask of the engine."""

from __future__ import annotations

import json
import logging
import secrets
from dataclasses import dataclass

from ..engine.sampling import SamplingOptions
from .errors import ApiError, wrong

MOST_CHOICES = 16
MOST_SEQUENCES = 64
MOST_MESSAGES = 2048
MOST_STOPS = 16

# Fields that change no answer here, for which clients need no error.
HARMLESS = frozenset(
    ["user", "metadata", "store", "service_tier", "safety_identifier", "prompt_cache_key"]
)
_ROLES = ("system", "developer", "user", "assistant")
_logger = logging.getLogger("tenon.llm.server")
_told: set[str] = set()


def parse_json(body: bytes) -> dict:
    def refuse(name):
        raise ValueError(f"{name} is no number of JSON")

    try:
        value = json.loads(body, parse_constant=refuse)
    except (ValueError, RecursionError) as error:
        raise ApiError(400, f"body: expected JSON, got something else: {error}") from None
    if not isinstance(value, dict):
        raise ApiError(400, f"body: expected a JSON object, got {type(value).__name__}")
    return value


class Fields:
    """Takes the fields of a body one by one; null is an absent field. `finish` refuses the others."""

    def __init__(self, body: dict):
        self._rest = {name: value for name, value in body.items() if value is not None}

    def take(self, name, default=None):
        return self._rest.pop(name, default)

    def integer(self, name, default, least, most=None):
        value = self.take(name, default)
        if value is default:
            return value
        expected = f"an integer of at least {least}" if most is None else f"{least} to {most}"
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise wrong(name, expected, value)
        if most is not None and value > most:
            raise wrong(name, expected, value)
        return value

    def number(self, name, default, least, most):
        value = self.take(name, default)
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise wrong(name, "a number", value)
        if not least <= value <= most:
            raise wrong(name, f"a number from {least} to {most}", value)
        return float(value)

    def boolean(self, name, default):
        value = self.take(name, default)
        if not isinstance(value, bool):
            raise wrong(name, "true or false", value)
        return value

    def text(self, name, default=None):
        value = self.take(name, default)
        if value is not default and not isinstance(value, str):
            raise wrong(name, "a text", value)
        return value

    def only(self, name, values, why):
        """A field whose other values are not there yet."""
        value = self.take(name, values[0])
        if value not in values or isinstance(value, bool) != isinstance(values[0], bool):
            shown = " or ".join(json.dumps(one) for one in values)
            raise wrong(name, f"{shown}, as {why}", value)

    def finish(self):
        for name in self._rest:
            if name not in HARMLESS:
                raise ApiError(
                    400, f"{name}: this server knows no such field, or not yet", param=name
                )
            if name not in _told:
                _told.add(name)
                _logger.warning("the field '%s' of a request has no effect here", name)


@dataclass
class Generation:
    """What a request asks for: `choices` answers to each prompt."""

    options: SamplingOptions
    seed: int
    choices: int
    max_tokens: int | None
    stops: tuple[str, ...]
    stream: bool
    include_usage: bool
    logprobs: bool
    priority: int
    salt: str
    ignore_eos: bool


def take_generation(fields: Fields, logprobs: int | None, max_tokens: int | None) -> Generation:
    """The fields that chat and completions share; `finish` is the caller's."""
    stream = fields.boolean("stream", False)
    stream_options = fields.take("stream_options", {})
    if not isinstance(stream_options, dict) or set(stream_options) - {"include_usage"}:
        raise wrong("stream_options", "an object with include_usage alone", stream_options)
    if stream_options and not stream:
        raise wrong("stream_options", "nothing, as stream is false", stream_options)
    include_usage = stream_options.get("include_usage", False)
    if not isinstance(include_usage, bool):
        raise wrong("stream_options.include_usage", "true or false", include_usage)
    seed = fields.take("seed", secrets.randbits(63))
    if isinstance(seed, bool) or not isinstance(seed, int):
        raise wrong("seed", "an integer", seed)
    options = SamplingOptions(
        temperature=fields.number("temperature", 1.0, 0, 100),
        top_k=max(0, fields.integer("top_k", 0, -1)),
        top_p=fields.number("top_p", 1.0, 0, 1),
        min_p=fields.number("min_p", 0.0, 0, 1),
        repetition_penalty=fields.number("repetition_penalty", 1.0, 0.01, 100),
        frequency_penalty=fields.number("frequency_penalty", 0.0, -2, 2),
        presence_penalty=fields.number("presence_penalty", 0.0, -2, 2),
        logit_bias=_take_bias(fields),
        logprobs=logprobs,
    )
    return Generation(
        options=options,
        seed=seed,
        choices=fields.integer("n", 1, 1, MOST_CHOICES),
        max_tokens=max_tokens,
        stops=_take_stops(fields),
        stream=stream,
        include_usage=include_usage,
        logprobs=logprobs is not None,
        priority=fields.integer("priority", 0, -(1 << 31), 1 << 31),
        salt=fields.text("cache_salt", ""),
        ignore_eos=fields.boolean("ignore_eos", False),
    )


def take_messages(fields: Fields) -> list[dict]:
    messages = fields.take("messages")
    if not isinstance(messages, list) or not messages:
        raise wrong("messages", "a list of at least one message", messages)
    if len(messages) > MOST_MESSAGES:
        raise ApiError(
            400,
            f"messages: expected at most {MOST_MESSAGES}, got {len(messages)}",
            param="messages",
        )
    return [_message(f"messages[{place}]", one) for place, one in enumerate(messages)]


def _message(name, message):
    if not isinstance(message, dict):
        raise wrong(name, "an object with role and content", message)
    for field in message:
        if field not in ("role", "content", "name") and message[field] is not None:
            raise ApiError(
                400, f"{name}.{field}: this server knows no such field, or not yet", param=name
            )
    role, content = message.get("role"), message.get("content")
    if role not in _ROLES:
        raise wrong(f"{name}.role", f"one of {', '.join(_ROLES)}", role)
    if isinstance(content, list):  # parts, of which texts alone mean something here
        for part in content:
            if not isinstance(part, dict) or part.get("type") != "text":
                raise wrong(f"{name}.content", "a text or parts of type text", part)
            if not isinstance(part.get("text"), str):
                raise wrong(f"{name}.content", "a part with a text", part)
        content = "".join(part["text"] for part in content)
    if not isinstance(content, str):
        raise wrong(f"{name}.content", "a text or parts of type text", content)
    kept = {"role": role, "content": content}
    if message.get("name") is not None:
        kept["name"] = message["name"]
    return kept


def take_prompts(fields: Fields) -> list[str | list[int]]:
    """The prompts of a completion: texts, or tokens."""
    prompt = fields.take("prompt")
    expected = "a text, tokens, or a list of texts or of lists of tokens"
    if isinstance(prompt, str):
        return [prompt]
    if not isinstance(prompt, list) or not prompt:
        raise wrong("prompt", expected, prompt)
    if _is_tokens(prompt):
        return [prompt]
    if not all(
        isinstance(one, str) or (isinstance(one, list) and _is_tokens(one)) for one in prompt
    ):
        raise wrong("prompt", expected, prompt)
    return prompt


def _is_tokens(value):
    return all(isinstance(one, int) and not isinstance(one, bool) for one in value)


def _take_stops(fields):
    stops = fields.take("stop", [])
    stops = [stops] if isinstance(stops, str) else stops
    if not isinstance(stops, list) or not all(isinstance(one, str) and one for one in stops):
        raise wrong("stop", "a text, or a list of texts that are not empty", stops)
    if len(stops) > MOST_STOPS:
        raise wrong("stop", f"at most {MOST_STOPS} texts", len(stops))
    return tuple(stops)


def _take_bias(fields):
    bias = fields.take("logit_bias", {})
    if not isinstance(bias, dict):
        raise wrong("logit_bias", "an object from tokens to numbers", bias)
    taken = {}
    for token, value in bias.items():
        if not token.isascii() or not token.isdigit() or len(token) > 9:
            raise wrong("logit_bias", "tokens as names of fields", token)
        if isinstance(value, bool) or not isinstance(value, (int, float)) or abs(value) > 100:
            raise wrong("logit_bias", "numbers from -100 to 100", value)
        taken[int(token)] = float(value)
    return taken
