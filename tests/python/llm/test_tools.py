# SPDX-License-Identifier: Apache-2.0
"""Functions that a model may call: fields, templates, and calls found in answers."""

import json

import pytest
from tenon.llm import Engine
from tenon.llm.server import Application, ServedModel
from tenon.llm.server.body import Fields
from tenon.llm.server.errors import ApiError
from tenon.llm.server.tools import CallText, Tools, take_calls, take_tools
from test_server import CHAT, Client, decode, encode, engine  # noqa: F401
from tiny_decoder import TinyDecoder
from told_grammar import Told

WEATHER = {
    "type": "function",
    "function": {
        "name": "weather",
        "description": "The weather of a town.",
        "parameters": {"type": "object", "properties": {"town": {"type": "string"}}},
    },
}
CLOCK = {"type": "function", "function": {"name": "clock"}}
CALL = '{"name": "weather", "arguments": {"town": "Bonn"}}'


def split(pieces, **options):
    text = CallText(Tools([WEATHER, CLOCK], **options))
    told = [text.add(piece) for piece in pieces]
    rest, calls = text.finish()
    shown = [
        (call["function"]["name"], json.loads(call["function"]["arguments"])) for call in calls
    ]
    return "".join(told) + rest, shown


BONN = ("weather", {"town": "Bonn"})


@pytest.mark.parametrize(
    "answer, content, calls",
    [
        ("Hello there", "Hello there", []),
        (f"<tool_call>\n{CALL}\n</tool_call>", "", [BONN]),
        (f"Let me see. <tool_call>{CALL}</tool_call>", "Let me see. ", [BONN]),
        (
            f'<tool_call>{CALL}</tool_call>\n<tool_call>{{"name": "clock"}}</tool_call>',
            "",
            [BONN, ("clock", {})],
        ),
        ('{"name": "weather", "parameters": {"town": "Bonn"}}', "", [BONN]),
        (f" \n{CALL}", "", [BONN]),
        ('{"name": "other", "arguments": {}}', '{"name": "other", "arguments": {}}', []),
        ("a < b <tool", "a < b <tool", []),
        ("<tool_call>{broken</tool_call>", "<tool_call>{broken</tool_call>", []),
        ("{", "{", []),
        ("", "", []),
    ],
)
def test_calls_are_found_however_an_answer_is_cut(answer, content, calls):
    for size in (1, 2, 3, 7, 1000):
        pieces = [answer[at : at + size] for at in range(0, len(answer), size)]
        assert split(pieces) == (content, calls), size


def test_content_is_told_as_soon_as_it_is_none():
    text = CallText(Tools([WEATHER]))
    assert text.add("Hello <") == "Hello " and text.add("b> x") == "<b> x"


def test_one_call_at_a_time():
    both = f"<tool_call>{CALL}</tool_call><tool_call>{CALL}</tool_call>"
    assert split([both], most=1) == ("", [BONN])


def test_fields():
    def take(**fields):
        return take_tools(Fields(fields))

    assert (
        take() is None
        and take(tools=[]) is None
        and take(tools=[WEATHER], tool_choice="none") is None
    )
    assert take(tools=[WEATHER]).forced == ()
    assert take(tools=[WEATHER, CLOCK], tool_choice="required").forced == ("clock", "weather")
    named = {"type": "function", "function": {"name": "clock"}}
    tools = take(tools=[WEATHER, CLOCK], tool_choice=named, parallel_tool_calls=False)
    assert tools.forced == ("clock",) and tools.most == 1
    assert tools.schema()["properties"]["name"] == {"const": "clock"}
    assert len(take(tools=[WEATHER, CLOCK], tool_choice="required").schema()["anyOf"]) == 2


@pytest.mark.parametrize(
    "fields, text",
    [
        ({"tools": {}}, "tools: expected a list of at most 128 functions, got {}"),
        ({"tools": [{"type": "web_search"}]}, r"tools\[0\].type: expected 'function'"),
        ({"tools": [{"type": "function"}]}, r"tools\[0\].function: expected an object with a name"),
        (
            {"tools": [{"type": "function", "function": {"name": "a", "parameters": 3}}]},
            r"tools\[0\].function.parameters: expected a JSON schema, got 3",
        ),
        ({"tool_choice": "required"}, r"tool_choice: expected none, auto, .*\(no function\)"),
        (
            {"tools": [CLOCK], "tool_choice": {"type": "function", "function": {"name": "x"}}},
            r"one of tools \(clock\)",
        ),
    ],
)
def test_bad_fields(fields, text):
    with pytest.raises(ApiError, match=text):
        take_tools(Fields(fields))


def test_earlier_calls_have_values():
    call = {"id": "call_1", "type": "function", "function": {"name": "weather", "arguments": "{}"}}
    assert take_calls("c", [call])[0]["function"]["arguments"] == {}
    call["function"]["arguments"] = "{broken"
    with pytest.raises(ApiError, match="c: expected arguments in JSON"):
        take_calls("c", [call])


def test_templates_get_tools_and_calls(engine):  # noqa: F811
    seen = []

    def render(messages, tools=()):
        seen.append((messages, [each["function"]["name"] for each in tools]))
        return "x"

    served = ServedModel("tiny", engine, encode, decode, render, takes_tools=True)
    client = Client(Application(served))
    call = {"id": "1", "type": "function", "function": {"name": "weather", "arguments": '{"a": 1}'}}
    messages = [
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "1", "content": "rain"},
    ]
    body = {**CHAT, "messages": messages, "tools": [WEATHER], "max_tokens": 2}
    status, answer = client.json("/v1/chat/completions", body)
    assert status == 200 and answer["choices"][0]["finish_reason"] == "length"
    (messages, names) = seen[0]
    assert names == ["weather"] and messages[1]["content"] == ""
    assert messages[1]["tool_calls"][0]["function"]["arguments"] == {"a": 1}
    assert messages[2] == {"role": "tool", "content": "rain", "tool_call_id": "1"}


def test_a_template_without_tools_refuses_them(engine):  # noqa: F811
    served = ServedModel("tiny", engine, encode, decode, lambda messages: "x")
    body = {**CHAT, "tools": [WEATHER]}
    status, answer = Client(Application(served)).json("/v1/chat/completions", body)
    assert status == 400 and answer["error"]["param"] == "tools"
    assert "this model's template does not know them" in answer["error"]["message"]


class Written:
    """Grammars that allow one answer alone, and the end."""

    def __init__(self, answer):
        self._answer = answer

    def json(self, schema):
        assert schema["properties"]["name"] == {"const": "weather"}
        return Told([*self._answer.encode(), 256])


def test_calls_of_an_answer():
    decoder = TinyDecoder()
    decoder.config.eos_token_ids = (256,)
    with Engine(decoder, kv_cache="1MiB") as made:
        served = ServedModel(
            "tiny",
            made,
            encode,
            decode,
            lambda messages, tools: "x",
            takes_tools=True,
            grammars=lambda: Written(f"<tool_call>{CALL}</tool_call>"),
        )
        client = Client(Application(served))
        body = {**CHAT, "tools": [WEATHER], "tool_choice": "required"}
        status, whole = client.json("/v1/chat/completions", body)
        (choice,) = whole["choices"]
        assert status == 200 and choice["finish_reason"] == "tool_calls"
        assert choice["message"]["content"] is None
        (call,) = choice["message"]["tool_calls"]
        assert call["function"]["name"] == "weather" and call["id"].startswith("call_")
        events = client.events("/v1/chat/completions", body)
        assert events[-1]["choices"][0]["finish_reason"] == "tool_calls"
        deltas = [event["choices"][0]["delta"] for event in events]
        assert "".join(delta.get("content") or "" for delta in deltas) == ""
        (calls,) = [delta["tool_calls"] for delta in deltas if "tool_calls" in delta]
        assert calls[0]["index"] == 0
        assert json.loads(calls[0]["function"]["arguments"]) == {"town": "Bonn"}
        body["max_tokens"] = 20
        (choice,) = client.json("/v1/chat/completions", body)[1]["choices"]
        # A call that is cut is content.
        assert choice["finish_reason"] == "length" and "tool_calls" not in choice["message"]
        assert choice["message"]["content"] == f"<tool_call>{CALL}"[:20]
