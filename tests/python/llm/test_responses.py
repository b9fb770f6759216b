# SPDX-License-Identifier: Apache-2.0
"""/v1/responses: items in and out, events of a stream, and what is refused by name."""

import json

import pytest
from tenon.llm import Engine
from tenon.llm.server import Application, ServedModel
from test_server import Client, client, decode, encode, engine  # noqa: F401
from test_tools import CALL, WEATHER, Written
from tiny_decoder import TinyDecoder

ASKED = {"model": "tiny", "input": "hi", "seed": 5}
FLAT = {"type": "function", **WEATHER["function"]}


def events_of(client, body):  # noqa: F811
    status, headers, answer = client("POST", "/v1/responses", {**body, "stream": True})
    assert status == 200 and headers[b"content-type"] == b"text/event-stream"
    found = []
    for part in answer.decode().split("\n\n")[:-1]:
        name, data = part.split("\n")
        event = json.loads(data.removeprefix("data: "))
        assert name == f"event: {event['type']}" and event["sequence_number"] == len(found)
        found.append(event)
    return found


def test_a_response(client):  # noqa: F811
    status, answer = client.json("/v1/responses", {**ASKED, "max_output_tokens": 8})
    assert status == 200 and answer["object"] == "response" and answer["model"] == "tiny"
    assert answer["status"] == "incomplete"
    assert answer["incomplete_details"] == {"reason": "max_output_tokens"}
    (item,) = answer["output"]
    assert item["type"] == "message" and item["role"] == "assistant"
    (part,) = item["content"]
    chat = {"model": "tiny", "messages": [{"role": "user", "content": "hi"}], "seed": 5}
    wanted = client.json("/v1/chat/completions", {**chat, "max_tokens": 8})[1]
    assert part["text"] == wanted["choices"][0]["message"]["content"]
    usage = answer["usage"]
    assert usage["input_tokens"] == wanted["usage"]["prompt_tokens"]
    assert usage["output_tokens"] == 8 and usage["total_tokens"] == usage["input_tokens"] + 8


def test_events_join_to_the_response(client):  # noqa: F811
    body = {**ASKED, "max_output_tokens": 30}
    whole = client.json("/v1/responses", body)[1]
    events = events_of(client, body)
    kinds = [event["type"] for event in events]
    assert kinds[:4] == [
        "response.created",
        "response.in_progress",
        "response.output_item.added",
        "response.content_part.added",
    ]
    assert kinds[-4:] == [
        "response.output_text.done",
        "response.content_part.done",
        "response.output_item.done",
        "response.incomplete",
    ]
    deltas = [event["delta"] for event in events if event["type"] == "response.output_text.delta"]
    assert len(deltas) > 3
    text = whole["output"][0]["content"][0]["text"]
    assert "".join(deltas) == text == events[-4]["text"]
    assert events[-1]["response"]["output"][0]["content"][0]["text"] == text


def served_with(decoder, seen):
    def render(messages, tools=()):
        seen.append((messages, [each["function"]["name"] for each in tools]))
        return "x"

    return lambda made: Client(
        Application(
            ServedModel(
                "tiny",
                made,
                encode,
                decode,
                render,
                takes_tools=True,
                grammars=lambda: Written(f"<tool_call>{CALL}</tool_call>"),
            )
        )
    )


def test_calls_go_out_and_come_back():
    decoder = TinyDecoder()
    decoder.config.eos_token_ids = (256,)
    seen = []
    with Engine(decoder, kv_cache="1MiB") as made:
        tools_client = served_with(decoder, seen)(made)
        body = {**ASKED, "tools": [FLAT], "tool_choice": {"type": "function", "name": "weather"}}
        answer = tools_client.json("/v1/responses", body)[1]
        assert answer["status"] == "completed" and answer["tools"] == [FLAT]
        (call,) = answer["output"]
        assert call["type"] == "function_call" and call["name"] == "weather"
        assert json.loads(call["arguments"]) == {"town": "Bonn"}
        kinds = [event["type"] for event in events_of(tools_client, body)]
        assert kinds[2:] == [
            "response.output_item.added",
            "response.function_call_arguments.delta",
            "response.function_call_arguments.done",
            "response.output_item.done",
            "response.completed",
        ]
        back = {"type": "function_call_output", "call_id": call["call_id"], "output": "rain"}
        question = {"role": "user", "content": [{"type": "input_text", "text": "hi"}]}
        follow = {**ASKED, "tools": [FLAT], "instructions": "Be brief.", "max_output_tokens": 2}
        status, _ = tools_client.json("/v1/responses", {**follow, "input": [question, call, back]})
        assert status == 200
        messages, names = seen[-1]
        assert names == ["weather"]
        assert [message["role"] for message in messages] == ["system", "user", "assistant", "tool"]
        assert messages[2]["tool_calls"][0]["function"]["arguments"] == {"town": "Bonn"}
        assert messages[3]["tool_call_id"] == messages[2]["tool_calls"][0]["id"]


@pytest.mark.parametrize(
    "change, text",
    [
        ({"input": []}, "input: expected a text, or a list of at least one item"),
        ({"input": [{"type": "reasoning"}]}, "input[0].type: expected message, function_call"),
        (
            {"input": [{"role": "user", "content": [{"type": "input_image"}]}]},
            "input[0].content[0].type: expected input_text or output_text, got 'input_image'",
        ),
        ({"previous_response_id": "resp_1"}, "previous_response_id: not there, as nothing is"),
        ({"background": True}, "background: expected false"),
        ({"truncation": "auto"}, 'truncation: expected "disabled"'),
        ({"tools": [{"type": "web_search"}]}, "tools[0].type: expected 'function'"),
        ({"text": {"verbosity": "low"}}, "text.verbosity: this server knows no such field"),
        ({"text": {"format": {"type": "xml"}}}, "text.format.type: expected text, json_object"),
        ({"text": {"format": {"type": "json_object"}}}, "text.format: this model has no token"),
        ({"max_output_tokens": 100000}, "the request wants 100000 more"),
        ({"messages": []}, "messages: this server knows no such field"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_what_is_refused_is_named(client, change, text):  # noqa: F811
    status, answer = client.json("/v1/responses", {**ASKED, **change})
    assert status == 400 and text in answer["error"]["message"]
