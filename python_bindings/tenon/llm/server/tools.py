# SPDX-License-Identifier: Apache-2.0
"""Functions that a model may call: what requests say of them, and calls in the text of an answer.

Two formats are found. Hermes', which Qwen writes too: `<tool_call>{"name": ..., "arguments": ...}
</tool_call>`, any number of them behind some text. Llama 3's: the whole answer is an object with `name`
and `parameters`.
"""

from __future__ import annotations

import json
import secrets
from dataclasses import dataclass
from typing import Any

from .body import Fields
from .errors import ApiError, wrong

MOST_TOOLS = 128
_OPEN, _CLOSE = "<tool_call>", "</tool_call>"


@dataclass
class Tools:
    """What a request may call. `forced` are the functions of which one must be, () if none must."""

    definitions: list[dict[str, Any]]
    forced: tuple[str, ...] = ()
    most: int | None = None  # calls in an answer

    @property
    def names(self) -> set[str]:
        return {each["function"]["name"] for each in self.definitions}

    def schema(self) -> dict[str, Any]:
        """The JSON that an answer is which must call."""
        calls = [
            {
                "type": "object",
                "properties": {
                    "name": {"const": each["function"]["name"]},
                    "arguments": each["function"].get("parameters") or {"type": "object"},
                },
                "required": ["name", "arguments"],
                "additionalProperties": False,
            }
            for each in self.definitions
            if each["function"]["name"] in self.forced
        ]
        return calls[0] if len(calls) == 1 else {"anyOf": calls}


def take_tools(fields: Fields) -> Tools | None:
    """`tools`, `tool_choice` and `parallel_tool_calls`; None where nothing is to be called."""
    given = fields.take("tools", [])
    choice = fields.take("tool_choice", "auto" if given else "none")
    is_parallel = fields.boolean("parallel_tool_calls", True)
    if not isinstance(given, list) or len(given) > MOST_TOOLS:
        raise wrong("tools", f"a list of at most {MOST_TOOLS} functions", given)
    for place, tool in enumerate(given):
        _check_tool(f"tools[{place}]", tool)
    tools = Tools(given, most=None if is_parallel else 1)
    if choice in ("none", "auto"):
        return tools if given and choice == "auto" else None
    if choice == "required" and given:
        tools.forced = tuple(sorted(tools.names))
        return tools
    name = None
    if isinstance(choice, dict) and choice.get("type") == "function":
        function = choice.get("function")
        name = function.get("name") if isinstance(function, dict) else None
    if name not in tools.names:
        names = ", ".join(sorted(tools.names)) or "no function"
        raise wrong("tool_choice", f"none, auto, required or one of tools ({names})", choice)
    tools.forced = (str(name),)
    return tools


def _check_tool(name: str, tool: Any) -> None:
    if not isinstance(tool, dict) or tool.get("type") != "function":
        raise wrong(f"{name}.type", "'function'", tool)
    function = tool.get("function")
    if not isinstance(function, dict) or not isinstance(function.get("name"), str):
        raise wrong(f"{name}.function", "an object with a name", function)
    parameters = function.get("parameters")
    if parameters is not None and not isinstance(parameters, dict):
        raise wrong(f"{name}.function.parameters", "a JSON schema", parameters)


def take_calls(name: str, calls: Any) -> list[dict[str, Any]]:
    """`tool_calls` of an earlier message, their arguments as values, as templates expect them."""
    if not isinstance(calls, list) or not calls:
        raise wrong(name, "a list of calls", calls)
    taken = []
    for call in calls:
        function = call.get("function") if isinstance(call, dict) else None
        if not isinstance(function, dict) or not isinstance(function.get("name"), str):
            raise wrong(name, "calls with a function that has a name", call)
        arguments = function.get("arguments", "{}")
        if isinstance(arguments, str):
            try:
                arguments = json.loads(arguments or "{}")
            except (ValueError, RecursionError) as error:
                raise ApiError(400, f"{name}: expected arguments in JSON: {error}") from None
        kept = {"type": "function", "function": {"name": function["name"], "arguments": arguments}}
        if isinstance(call.get("id"), str):
            kept["id"] = call["id"]
        taken.append(kept)
    return taken


class CallText:
    """Splits the text of an answer that comes in pieces into content and calls.

    Content is told as soon as it cannot be a call. What begins like one and is none is content again.
    """

    def __init__(self, tools: Tools) -> None:
        self._tools = tools
        self._held = ""  # what may be a call
        self._told = ""

    def add(self, piece: str) -> str:
        """Content that is certain now."""
        self._held += piece
        if self._tools.forced or self._may_be_object():
            return ""
        place = self._held.find(_OPEN)
        if place < 0:  # of its last characters, those that may begin the mark stay
            place = len(self._held)
            for count in range(min(len(_OPEN) - 1, len(self._held)), 0, -1):
                if self._held.endswith(_OPEN[:count]):
                    place -= count
                    break
        told, self._held = self._held[:place], self._held[place:]
        self._told += told
        return told

    def finish(self) -> tuple[str, list[dict[str, Any]]]:
        """The rest of the content, and the calls."""
        calls = self._found(self._held)
        if calls is None:
            return self._held, []
        return "", calls[: self._tools.most]

    def _may_be_object(self) -> bool:
        whole = (self._told + self._held).lstrip()
        return not self._told.strip() and (not whole or whole.startswith("{"))

    def _found(self, text: str) -> list[dict[str, Any]] | None:
        """The calls that a text is; None if it is not calls alone."""
        parts = [text]
        if text.startswith(_OPEN):
            parts = [part.split(_CLOSE)[0] for part in text.split(_OPEN)[1:]]
        calls = []
        for part in parts:
            try:
                value = json.loads(part)
            except (ValueError, RecursionError):
                return None
            if not isinstance(value, dict) or value.get("name") not in self._tools.names:
                return None
            arguments = value.get("arguments", value.get("parameters", {}))
            if isinstance(arguments, str):  # JSON as a text already
                shown = arguments
            else:
                shown = json.dumps(arguments, ensure_ascii=False)
            calls.append(
                {
                    "id": f"call_{secrets.token_hex(12)}",
                    "type": "function",
                    "function": {"name": value["name"], "arguments": shown},
                }
            )
        return calls
