# SPDX-License-Identifier: Apache-2.0
"""The page of a server: it is served, and its script speaks the API. The script runs in Node.js, and all of it in Chromium."""

import asyncio
import json
import shutil
import subprocess
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import chromium
import pytest
from tenon.llm.server import Application, ServedModel
from test_server import CHAT, Client, decode, encode, engine, render  # noqa: F401

NODE = shutil.which("node")


@pytest.fixture(scope="module")
def address(engine):  # noqa: F811
    """The application behind the standard library's server, a thread for each request."""
    application = Application(ServedModel("tiny", engine, encode, decode, render), api_key="k")

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.0"

        def answer(self):
            asyncio.run(self.run_application())

        do_GET = do_POST = answer

        async def run_application(self):
            body = self.rfile.read(int(self.headers.get("content-length", 0)))
            messages = [{"type": "http.request", "body": body, "more_body": False}]

            async def receive():
                if messages:
                    return messages.pop()
                await asyncio.Event().wait()

            async def send(message):
                if message["type"] == "http.response.start":
                    self.send_response_only(message["status"])
                    for name, value in message["headers"]:
                        self.send_header(name.decode(), value.decode())
                    self.end_headers()
                else:
                    self.wfile.write(message["body"])
                    self.wfile.flush()

            headers = [(k.lower().encode(), v.encode()) for k, v in self.headers.items()]
            scope = {"type": "http", "method": self.command, "path": self.path, "headers": headers}
            await application(scope, receive, send)

        def log_message(self, *arguments):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    thread.join()
    server.server_close()


def test_the_page_is_served_and_loads_nothing_else(engine):  # noqa: F811
    client = Client(Application(ServedModel("tiny", engine, encode, decode, render)))
    status, headers, body = client("GET", "/")
    page = body.decode()
    assert status == 200 and headers[b"content-type"] == b"text/html; charset=utf-8"
    assert "://" not in page and "src=" not in page and "innerHTML" not in page


@pytest.mark.skipif(NODE is None, reason="Node.js runs the page's script")
@pytest.mark.parametrize("mode", ["chat", "complete"])
def test_the_script_speaks_the_api(address, engine, tmp_path, mode):  # noqa: F811
    client = Client(Application(ServedModel("tiny", engine, encode, decode, render)))
    page = tmp_path / "page.html"
    source = client("GET", "/")[2].decode()
    page.write_text(source.replace('id="key" type="password"', 'id="key" value="k"'))
    runner = Path(__file__).parent / "page_in_node.js"
    command = [NODE, runner, address, page, "hi", *(["complete"] if mode == "complete" else [])]
    shown = json.loads(subprocess.run(command, capture_output=True, check=True, timeout=60).stdout)
    if mode == "chat":
        body = {**CHAT, "max_tokens": 6, "temperature": 0}
        answer = client.json("/v1/chat/completions", body)[1]["choices"][0]["message"]["content"]
    else:
        body = {"model": "tiny", "prompt": "hi", "max_tokens": 6, "temperature": 0}
        answer = client.json("/v1/completions", body)[1]["choices"][0]["text"]
    assert shown == {"model": "tiny", "turns": [["turn user", "hi"], ["turn assistant", answer]]}


@pytest.mark.skipif(NODE is None, reason="Node.js runs the page's script")
def test_the_script_shows_errors(address, engine, tmp_path):  # noqa: F811
    client = Client(Application(ServedModel("tiny", engine, encode, decode, render)))
    page = tmp_path / "page.html"
    page.write_bytes(client("GET", "/")[2])  # which has no key
    runner = Path(__file__).parent / "page_in_node.js"
    made = subprocess.run(
        [NODE, runner, address, page, "hi"], capture_output=True, check=True, timeout=60
    )
    shown = json.loads(made.stdout)
    assert (
        shown["turns"][-1][0] == "turn error" and "Authorization: Bearer" in shown["turns"][-1][1]
    )


TURNS = "[...document.querySelectorAll('.turn')].map(t => [t.className, t.textContent])"
IDLE = "!document.getElementById('send').disabled"


@pytest.fixture
def page(address):
    if chromium.PATH is None:
        pytest.skip("Chromium shows the page: apt-get install chromium")
    with chromium.Page(address + "/") as shown:
        yield shown


def test_chromium_shows_the_page_and_its_answers(page, engine):  # noqa: F811
    client = Client(Application(ServedModel("tiny", engine, encode, decode, render)))
    # Without the key the page says what is missing.
    page.wait("document.getElementById('model').textContent !== '…'")
    assert "Authorization: Bearer" in page.value("document.getElementById('model').textContent")
    page.type("k", "#key")
    page.value("document.getElementById('temperature').value = '0'")
    page.value("document.getElementById('tokens').value = '6'")
    page.type("hi\n", "#text")
    page.wait(f"{IDLE} && document.querySelectorAll('.turn').length === 2")
    answer = client.json("/v1/chat/completions", {**CHAT, "max_tokens": 6, "temperature": 0})
    first = answer[1]["choices"][0]["message"]["content"]
    assert page.value(TURNS) == [["turn user", "hi"], ["turn assistant", first]]
    assert page.value("document.getElementById('model').textContent") == "tiny"
    # A second turn tells the first; markup is text; the button sends, too.
    page.type("<img src=x onerror=alert(1)>", "#text")
    page.click("#send")
    page.wait(f"{IDLE} && document.querySelectorAll('.turn').length === 4")
    messages = [
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": first},
        {"role": "user", "content": "<img src=x onerror=alert(1)>"},
    ]
    body = {**CHAT, "messages": messages, "max_tokens": 6, "temperature": 0}
    second = client.json("/v1/chat/completions", body)[1]["choices"][0]["message"]["content"]
    assert page.value(TURNS)[2:] == [
        ["turn user", messages[2]["content"]],
        ["turn assistant", second],
    ]
    assert page.value("document.querySelectorAll('img').length") == 0
    expected = "the server responded with a status of 401"  # of the look without a key
    assert [error for error in page.errors if expected not in error] == []


def test_chromium_stops_an_answer(page, engine):  # noqa: F811
    page.type("k", "#key")
    page.value("document.getElementById('tokens').value = '110'")
    gate = threading.Event()
    engine.decoder.delay = lambda: gate.wait(0.2)  # slow enough to be stopped
    try:
        page.type("hi\n", "#text")
        page.wait("document.querySelectorAll('.turn').length === 2")
        page.wait("document.querySelectorAll('.turn')[1].textContent.length > 0")
        page.click("#stop")
        page.wait(IDLE)
    finally:
        engine.decoder.delay = None
        gate.set()
    assert len(page.value(TURNS)) == 2  # no error is shown
    end = time.monotonic() + 20
    while engine.open_requests:  # the server has seen that its client left
        assert time.monotonic() < end
        time.sleep(0.01)
    assert engine.cache.used == 0
