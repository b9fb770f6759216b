# SPDX-License-Identifier: Apache-2.0
"""OpenAI's Responses API: what a request's items mean as messages of a chat, and answers as items.

Nothing is stored: a client sends all items of a conversation with each request. What has no meaning here
(earlier responses by their ids, tools of the provider, images, files) is refused by its name.
"""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Iterator
from typing import Any

from .body import Fields
from .errors import ApiError, wrong
from .fields import MOST_MESSAGES
from .generation import Piece
from .tools import Tools, take_calls, take_tools

_ROLES = ("system", "developer", "user", "assistant")
_TEXTS = ("input_text", "output_text", "text")
_ABSENT = {
    "previous_response_id": "nothing is stored; send the earlier items as input",
    "conversation": "nothing is stored; send the earlier items as input",
    "prompt": "there are no stored prompts; send instructions and input",
    "reasoning": "answers have no separate reasoning",
    "context_management": "nothing is left out of a conversation",
    "max_tool_calls": "this server calls no tools itself",
    "moderation": "this server moderates nothing",
}


def take_input(fields: Fields) -> list[dict[str, Any]]:
    """`instructions` and `input` as messages of a chat."""
    for name, why in _ABSENT.items():
        if fields.take(name) is not None:
            raise ApiError(400, f"{name}: not there, as {why}", param=name)
    fields.only("background", (False,), "an answer is made while its client waits")
    fields.only("include", ([],), "there is nothing more to include")
    fields.only("truncation", ("disabled",), "an input is never cut")
    fields.only("n", (1,), "a response is one answer")
    fields.only("stream_options", ({},), "usage is in the last event")
    fields.only("top_logprobs", (0,), "log-probabilities are those of /v1/chat/completions")
    instructions = fields.text("instructions")
    given = fields.take("input")
    messages = [] if instructions is None else [{"role": "system", "content": instructions}]
    if isinstance(given, str):
        return [*messages, {"role": "user", "content": given}]
    if not isinstance(given, list) or not given:
        raise wrong("input", "a text, or a list of at least one item", given)
    if len(given) > MOST_MESSAGES:
        raise ApiError(
            400, f"input: expected at most {MOST_MESSAGES} items, got {len(given)}", param="input"
        )
    for place, item in enumerate(given):
        _add_item(messages, f"input[{place}]", item)
    return messages


def _add_item(messages: list[dict[str, Any]], name: str, item: Any) -> None:
    if not isinstance(item, dict):
        raise wrong(name, "an item", item)
    kind = item.get("type", "message")
    if kind == "message":
        if item.get("role") not in _ROLES:
            raise wrong(f"{name}.role", f"one of {', '.join(_ROLES)}", item.get("role"))
        content = _text_of(f"{name}.content", item.get("content"))
        messages.append({"role": item["role"], "content": content})
    elif kind == "function_call":
        call = {"id": item.get("call_id"), "function": item}
        calls = take_calls(name, [call])
        # Calls of one answer are items side by side, and one message of a chat.
        if messages and messages[-1]["role"] == "assistant":
            messages[-1].setdefault("tool_calls", []).extend(calls)
        else:
            messages.append({"role": "assistant", "content": "", "tool_calls": calls})
    elif kind == "function_call_output":
        if not isinstance(item.get("call_id"), str):
            raise wrong(f"{name}.call_id", "a text", item.get("call_id"))
        content = _text_of(f"{name}.output", item.get("output"))
        messages.append({"role": "tool", "content": content, "tool_call_id": item["call_id"]})
    else:
        raise wrong(f"{name}.type", "message, function_call or function_call_output", kind)


def _text_of(name: str, content: Any) -> str:
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        raise wrong(name, "a text, or parts of a text", content)
    for place, part in enumerate(content):
        kind = part.get("type") if isinstance(part, dict) else None
        if kind not in _TEXTS:
            raise wrong(f"{name}[{place}].type", "input_text or output_text", kind)
        if not isinstance(part.get("text"), str):
            raise wrong(f"{name}[{place}].text", "a text", part.get("text"))
    return "".join(part["text"] for part in content)


def take_text_format(fields: Fields) -> tuple[dict[str, Any] | None, dict[str, Any]]:
    """The JSON schema of `text.format`, None for a text, and the format as it is told."""
    given = fields.take("text", {})
    if not isinstance(given, dict):
        raise wrong("text", "an object", given)
    for name in given:
        if name != "format":
            raise ApiError(
                400, f"text.{name}: this server knows no such field, or not yet", param="text"
            )
    form = given.get("format") or {"type": "text"}
    kind = form.get("type") if isinstance(form, dict) else None
    if kind == "text":
        return None, form
    if kind == "json_object":
        return {"type": "object"}, form
    if kind != "json_schema":
        raise wrong("text.format.type", "text, json_object or json_schema", kind)
    if not isinstance(form.get("schema"), dict):
        raise wrong("text.format.schema", "a JSON schema", form.get("schema"))
    return form["schema"], form


def take_functions(fields: Fields) -> tuple[Tools | None, dict[str, Any]]:
    """The functions that may be called, and the fields as they are told."""
    given = fields.take("tools", [])
    choice = fields.take("tool_choice", "auto")
    is_parallel = fields.boolean("parallel_tool_calls", True)
    if not isinstance(given, list):
        raise wrong("tools", "a list of functions", given)
    for place, tool in enumerate(given):
        if not isinstance(tool, dict) or tool.get("type") != "function":
            kind = tool.get("type") if isinstance(tool, dict) else tool
            raise wrong(f"tools[{place}].type", "'function', as this server has no tools", kind)
        if not isinstance(tool.get("name"), str):
            raise wrong(f"tools[{place}].name", "a text", tool.get("name"))
    nested: dict[str, Any] = {
        "tools": [
            {"type": "function", "function": {k: v for k, v in tool.items() if k != "type"}}
            for tool in given
        ],
        "parallel_tool_calls": is_parallel,
    }
    if given or choice != "auto":
        nested["tool_choice"] = choice
    if isinstance(choice, dict) and choice.get("type") == "function":
        nested["tool_choice"] = {"type": "function", "function": {"name": choice.get("name")}}
    told = {"tools": given, "tool_choice": choice, "parallel_tool_calls": is_parallel}
    return take_tools(Fields(nested)), told


class ResponseFormat:
    """One answer as items, whole and as events. `told` are fields of the request that it repeats."""

    def __init__(self, model: str, told: dict[str, Any]) -> None:
        self._head = {
            "id": _named("resp"),
            "object": "response",
            "created_at": int(time.time()),
            "model": model,
            "error": None,
            "previous_response_id": None,
            "store": False,
            "truncation": "disabled",
            **told,
        }
        self._message = _named("msg")
        self._text = ""
        self._calls: list[dict[str, Any]] = []
        self._reason: str | None = None
        self._has_message = False
        self._number = 0

    def add(self, piece: Piece) -> None:
        self._text += piece.text
        self._reason = piece.finish_reason or self._reason
        self._calls += [
            {
                "type": "function_call",
                "id": _named("fc"),
                "call_id": call["id"],
                "name": call["function"]["name"],
                "arguments": call["function"]["arguments"],
                "status": "completed",
            }
            for call in piece.calls
        ]

    def whole(self, usage: dict[str, Any]) -> dict[str, Any]:
        is_cut = self._reason == "length"
        output: list[dict[str, Any]] = []
        if self._text or not self._calls:
            output.append(self._message_item("incomplete" if is_cut else "completed"))
        return {
            **self._head,
            "status": "incomplete" if is_cut else "completed",
            "incomplete_details": {"reason": "max_output_tokens"} if is_cut else None,
            "output": output + self._calls,
            "usage": {
                "input_tokens": usage["prompt_tokens"],
                "input_tokens_details": usage["prompt_tokens_details"],
                "output_tokens": usage["completion_tokens"],
                "output_tokens_details": {"reasoning_tokens": 0},
                "total_tokens": usage["total_tokens"],
            },
        }

    # Events, in their order.

    def begin(self) -> Iterator[bytes]:
        response = {**self._head, "status": "in_progress", "incomplete_details": None}
        response |= {"output": [], "usage": None}
        yield self._event("response.created", response=response)
        yield self._event("response.in_progress", response=response)

    def part(self, piece: Piece) -> Iterator[bytes]:
        self.add(piece)
        if piece.text:
            yield from self._begin_message()
            yield self._event(
                "response.output_text.delta", **self._place(), delta=piece.text, logprobs=[]
            )

    def end(self, usage: dict[str, Any]) -> Iterator[bytes]:
        response = self.whole(usage)
        for index, item in enumerate(response["output"]):
            if item["type"] == "message":
                yield from self._begin_message()
                yield self._event(
                    "response.output_text.done", **self._place(), text=self._text, logprobs=[]
                )
                yield self._event(
                    "response.content_part.done", **self._place(), part=item["content"][0]
                )
            else:
                started = {**item, "arguments": "", "status": "in_progress"}
                yield self._event("response.output_item.added", output_index=index, item=started)
                at = {"item_id": item["id"], "output_index": index}
                arguments = item["arguments"]
                yield self._event("response.function_call_arguments.delta", **at, delta=arguments)
                yield self._event(
                    "response.function_call_arguments.done",
                    **at,
                    name=item["name"],
                    arguments=arguments,
                )
            yield self._event("response.output_item.done", output_index=index, item=item)
        yield self._event(f"response.{response['status']}", response=response)

    def _begin_message(self) -> Iterator[bytes]:
        if self._has_message:
            return
        self._has_message = True
        item = {**self._message_item("in_progress"), "content": []}
        yield self._event("response.output_item.added", output_index=0, item=item)
        yield self._event("response.content_part.added", **self._place(), part=_part(""))

    def _place(self) -> dict[str, Any]:
        return {"item_id": self._message, "output_index": 0, "content_index": 0}

    def _message_item(self, status: str) -> dict[str, Any]:
        return {
            "type": "message",
            "id": self._message,
            "status": status,
            "role": "assistant",
            "content": [_part(self._text)],
        }

    def _event(self, kind: str, **fields: Any) -> bytes:
        value = {"type": kind, "sequence_number": self._number, **fields}
        self._number += 1
        shown = json.dumps(value, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
        return f"event: {kind}\ndata: {shown}\n\n".encode("utf-8", "replace")


def _part(text: str) -> dict[str, Any]:
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}


def _named(prefix: str) -> str:
    return f"{prefix}_{secrets.token_hex(12)}"
