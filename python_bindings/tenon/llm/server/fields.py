# SPDX-License-Identifier: Apache-2.0
"""What the fields of requests ask of the engine."""

from __future__ import annotations

import secrets
from dataclasses import dataclass

from ..grammar import Grammar
from ..sampling import SamplingOptions
from .body import Fields
from .errors import ApiError, wrong
from .tools import Tools, take_calls

MOST_CHOICES = 16
MOST_SEQUENCES = 64
MOST_MESSAGES = 2048
MOST_STOPS = 16
_ROLES = ("system", "developer", "user", "assistant", "tool")


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
    tools: Tools | None = None
    grammar: Grammar | None = None


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
    role, content = message.get("role"), message.get("content")
    known = ["role", "content", "name"]
    known += {"assistant": ["tool_calls", "refusal"], "tool": ["tool_call_id"]}.get(str(role), [])
    for field in message:
        if field not in known and message[field] is not None:
            raise ApiError(
                400, f"{name}.{field}: this server knows no such field, or not yet", param=name
            )
    if role not in _ROLES:
        raise wrong(f"{name}.role", f"one of {', '.join(_ROLES)}", role)
    if isinstance(content, list):  # parts, of which texts alone mean something here
        for part in content:
            if not isinstance(part, dict) or part.get("type") != "text":
                raise wrong(f"{name}.content", "a text or parts of type text", part)
            if not isinstance(part.get("text"), str):
                raise wrong(f"{name}.content", "a part with a text", part)
        content = "".join(part["text"] for part in content)
    calls = message.get("tool_calls")
    if content is None and calls is not None:
        content = ""
    if not isinstance(content, str):
        raise wrong(f"{name}.content", "a text or parts of type text", content)
    kept = {"role": role, "content": content}
    for field in ("name", "tool_call_id"):
        if message.get(field) is not None:
            kept[field] = message[field]
    if calls is not None:
        kept["tool_calls"] = take_calls(f"{name}.tool_calls", calls)
    return kept


def take_format(fields: Fields) -> dict | None:
    """The JSON schema of `response_format`; None for a text."""
    given = fields.take("response_format", {"type": "text"})
    kind = given.get("type") if isinstance(given, dict) else None
    if kind == "text":
        return None
    if kind == "json_object":
        return {"type": "object"}
    if kind != "json_schema":
        raise wrong("response_format.type", "text, json_object or json_schema", given)
    described = given.get("json_schema")
    schema = described.get("schema") if isinstance(described, dict) else None
    if not isinstance(schema, dict):
        raise wrong("response_format.json_schema.schema", "a JSON schema", described)
    return schema


def take_prompts(fields: Fields, name: str = "prompt") -> list[str | list[int]]:
    """The prompts of a completion, or what is to be embedded: texts, or tokens."""
    prompt = fields.take(name)
    expected = "a text, tokens, or a list of texts or of lists of tokens"
    if isinstance(prompt, str):
        return [prompt]
    if not isinstance(prompt, list) or not prompt:
        raise wrong(name, expected, prompt)
    if _is_tokens(prompt):
        return [prompt]
    if not all(
        isinstance(one, str) or (isinstance(one, list) and _is_tokens(one)) for one in prompt
    ):
        raise wrong(name, expected, prompt)
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
