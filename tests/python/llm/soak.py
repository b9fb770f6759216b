# SPDX-License-Identifier: Apache-2.0
"""A server at work for a long time with clients of every kind: right answers, and memory that does not grow.

    PYTHONPATH=build/release/python python tests/python/llm/soak.py [--minutes 10] [--seed 1]

`tenon serve` runs as a process of its own. Clients, eight at a time, ask for whole answers and streams, leave before
or in the middle of an answer, reset the connection, write or read slowly, send what is no HTTP, no JSON or too large,
and fields of wrong types. Now and then one asks what was asked before, and must get the same answer. Memory (RSS) is
looked at from a quarter of the time on: the line through it may rise by 2 percent in the time that is left. At the end
no request is open, no block is used, and the server ends in order.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
CLIENTS = 8
FIXED = {"model": "tiny", "prompt": "The same", "max_tokens": 12, "temperature": 0.9, "seed": 11}
TEMPLATE = "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}"
WORDS = [f"w{number}" for number in range(300)]  # few: the tokenizer remembers words


class Broken(Exception):
    """The server did what it must not."""


class Soak:
    def __init__(self, folder: Path, seed: int):
        from tiny_model import folder_of

        folder_of(folder, width=32)
        (folder / "tokenizer_config.json").write_text(json.dumps({"chat_template": TEMPLATE}))
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        command = [sys.executable, "-m", "tenon", "serve", str(folder), "--port", str(self.port)]
        command += [
            "--name",
            "tiny",
            "--kv-cache",
            "4MiB",
            "--max-sequences",
            "8",
            "--threads",
            "1",
        ]
        command += ["--max-waiting", "32", "--draft", "lookup"]
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        self.seed = seed
        self.end = threading.Event()
        self.failures: list[str] = []
        self.counts: Counter[str] = Counter()
        self.statuses: Counter[int] = Counter()
        self.lock = threading.Lock()
        for _ in range(600):
            try:
                if self.status(self.get("/ready")) == 200:
                    break
            except OSError:
                if self.process.poll() is not None:
                    raise RuntimeError("the server ended; its message is above") from None
            time.sleep(0.1)
        self.expected = self.text(self.post("/v1/completions", FIXED))

    # -- HTTP

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), timeout=60)

    def request(self, method: str, path: str, body: bytes = b"") -> bytes:
        head = f"{method} {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: {len(body)}\r\n\r\n"
        return head.encode() + body

    def exchange(self, sent: bytes) -> bytes:
        with self.connect() as connection:
            connection.sendall(sent)
            parts = []
            while part := connection.recv(1 << 16):
                parts.append(part)
        return b"".join(parts)

    def get(self, path: str) -> bytes:
        return self.exchange(self.request("GET", path))

    def post(self, path: str, body: object) -> bytes:
        return self.exchange(self.request("POST", path, json.dumps(body).encode()))

    def status(self, answer: bytes) -> int:
        if not answer.startswith(b"HTTP/1.1 "):
            raise Broken(f"expected an answer of HTTP, got {answer[:100]!r}")
        status = int(answer.split()[1])
        with self.lock:
            self.statuses[status] += 1
        return status

    def text(self, answer: bytes) -> str:
        if self.status(answer) != 200:
            raise Broken(f"expected an answer, got {answer[:400]!r}")
        return json.loads(answer.partition(b"\r\n\r\n")[2])["choices"][0]["text"]

    def metrics(self) -> dict[str, float]:
        lines = self.get("/metrics").partition(b"\r\n\r\n")[2].decode().splitlines()
        pairs = [line.rsplit(" ", 1) for line in lines if line and line[0] != "#"]
        return {name: float(value) for name, value in pairs}

    # -- clients

    def body(self, draw: random.Random) -> dict:
        prompt = " ".join(draw.choices(WORDS, k=draw.randint(1, 8)))
        return {
            "model": "tiny",
            "prompt": prompt,
            "max_tokens": draw.randint(1, 24),
            "n": draw.choice((1, 1, 2, 4)),
            "temperature": draw.choice((0, 0.7, 1.5)),
            "stream": draw.random() < 0.6,
        }

    def same(self, draw: random.Random) -> None:
        answer = self.post("/v1/completions", FIXED)
        if self.status(answer) == 429:  # as many wait as may
            return
        if (found := self.text(answer)) != self.expected:
            raise Broken(f"the same request was answered {self.expected!r} and {found!r}")

    def whole(self, draw: random.Random) -> None:
        if draw.random() < 0.3:
            messages = [{"role": "user", "content": draw.choice(WORDS)}]
            body = {"model": "tiny", "messages": messages, "max_tokens": draw.randint(1, 20)}
            answer = self.post("/v1/chat/completions", body)
        else:
            answer = self.post("/v1/completions", self.body(draw))
        status = self.status(answer)
        if status not in (200, 400, 429):
            raise Broken(f"expected an answer, got {answer[:400]!r}")
        if b"event-stream" in answer and status == 200 and b"data: [DONE]" not in answer:
            raise Broken(f"a stream has no end: {answer[-200:]!r}")

    def leaves(self, draw: random.Random) -> None:
        """In the middle of an answer, or before it, with a reset or without."""
        sent = self.request("POST", "/v1/completions", json.dumps(self.body(draw)).encode())
        with self.connect() as connection:
            connection.sendall(sent[: len(sent) - draw.choice((0, 0, 0, 7))])
            for _ in range(draw.randrange(4)):
                connection.recv(200)
            if draw.random() < 0.5:
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    def slow(self, draw: random.Random) -> None:
        """Writes in pieces, and reads in small ones."""
        sent = self.request("POST", "/v1/completions", json.dumps(self.body(draw)).encode())
        with self.connect() as connection:
            for start in range(0, len(sent), 40):
                connection.sendall(sent[start : start + 40])
                time.sleep(draw.random() * 0.02)
            while connection.recv(64):
                time.sleep(draw.random() * 0.01)

    def no_http(self, draw: random.Random) -> None:
        sent = draw.choice(
            (
                draw.randbytes(draw.randint(1, 400)),
                b"GET / HTTP/9.9\r\n\r\n",
                b"POST /v1/completions HTTP/1.1\r\ncontent-length: -5\r\n\r\n",
                b"POST /v1/completions HTTP/1.1\r\ncontent-length: 99999999999999999999\r\n\r\n{}",
                b"POST /v1/completions HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n{}",
                b"POST /v1/completions HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n"
                b"content-length: 3\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
                b"GET /" + b"a" * draw.randint(1, 70000) + b" HTTP/1.1\r\n\r\n",
                b"GET / HTTP/1.1\r\n" + b"x: y\r\n" * draw.randint(1, 3000) + b"\r\n",
                b"GET /\x00 HTTP/1.1\r\nhost: \xff\xfe\r\n\r\n",
            )
        )
        with self.connect() as connection:
            connection.settimeout(0.3)  # what waits for more is left
            try:
                connection.sendall(sent)
                connection.recv(1 << 16)
            except OSError:
                pass

    def no_json(self, draw: random.Random) -> None:
        body = draw.choice(
            (b"", b"{", b"[1]", b"nul", b'{"a": NaN}', b"[" * 100000, draw.randbytes(50), b'"\xff"')
        )
        answer = self.exchange(self.request("POST", "/v1/completions", body))
        if self.status(answer) != 400:
            raise Broken(f"{body[:40]!r} was answered {answer[:300]!r}")

    def wrong_fields(self, draw: random.Random) -> None:
        others = (None, [], {}, "x", -1, 1e99, True, "\ud800", [[]], 2**70, ["\ud800"], "é" * 5000)
        body = {**self.body(draw), "stream": False}
        for name in draw.sample(sorted(body), 2):
            body[name] = draw.choice(others)
        status = self.status(answer := self.post("/v1/completions", body))
        if status not in (200, 400, 404, 429):
            raise Broken(f"{body} was answered {answer[:300]!r}")

    def too_large(self, draw: random.Random) -> None:
        body = b'{"model": "tiny", "prompt": "' + b"x" * (9 << 20) + b'"}'
        if (
            status := self.status(self.exchange(self.request("POST", "/v1/completions", body)))
        ) != 413:
            raise Broken(f"a body of 9 MiB was answered {status}")

    def work(self, index: int) -> None:
        draw = random.Random(self.seed * 100 + index)
        kinds = {
            self.same: 6, self.whole: 40, self.leaves: 25, self.slow: 5, self.no_http: 8,
            self.no_json: 6, self.wrong_fields: 10, self.too_large: 0.05,
        }  # fmt: skip
        while not self.end.is_set():
            (kind,) = draw.choices(list(kinds), list(kinds.values()))
            try:
                kind(draw)
            except (TimeoutError, ConnectionError) as error:
                if kind not in (self.leaves, self.too_large):
                    self.fail(f"{kind.__name__}: {type(error).__name__}: {error}")
            except Exception as error:
                self.fail(f"{kind.__name__}: {type(error).__name__}: {error}")
            with self.lock:
                self.counts[kind.__name__] += 1

    def fail(self, text: str) -> None:
        self.failures.append(text)
        self.end.set()

    # -- the whole

    def rss(self) -> int:
        """KiB of the server."""
        text = Path(f"/proc/{self.process.pid}/statm").read_text()
        return int(text.split()[1]) * os.sysconf("SC_PAGE_SIZE") // 1024

    def run(self, minutes: float) -> float:
        """The part of itself by which memory rises in the time that is measured."""
        threads = [threading.Thread(target=self.work, args=(i,)) for i in range(CLIENTS)]
        for thread in threads:
            thread.start()
        began, seconds, samples = time.monotonic(), 60 * minutes, []
        while (now := time.monotonic() - began) < seconds and not self.end.is_set():
            if self.process.poll() is not None:
                self.fail(f"the server ended with {self.process.poll()}")
                break
            if now > seconds / 4:
                samples.append((now, self.rss()))
            self.end.wait(min(1.0, seconds / 100))
        self.end.set()
        for thread in threads:
            thread.join()
        self.finish()
        print(
            f"{sum(self.counts.values())} clients: {dict(self.counts)}; statuses {dict(self.statuses)}"
        )
        if len(samples) < 2:
            return 0.0
        at, memory = np.array(samples).T
        rise = float(np.polyfit(at, memory, 1)[0] * (at[-1] - at[0]) / memory.mean())
        print(f"RSS {memory[0] / 1024:.1f} MiB, then {memory[-1] / 1024:.1f}, rise {rise:+.2%}")
        return rise

    def finish(self) -> None:
        if self.process.poll() is not None:
            return
        for _ in range(400):
            found = self.metrics()
            held = {
                name: value
                for name, value in found.items()
                if value and name.startswith(("tenon:num_requests_", "tenon:kv_cache_usage"))
            }
            if not held:
                break
            time.sleep(0.1)
        else:
            self.failures.append(f"forty seconds after the last client there are {held}")
        self.process.terminate()
        try:
            if (code := self.process.wait(60)) not in (0, -15):
                self.failures.append(f"the server ended with {code}")
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.failures.append("the server did not end within a minute")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        soak = Soak(Path(folder), options.seed)
        rise = soak.run(options.minutes)
    for failure in soak.failures:
        print(failure)
    return bool(soak.failures) or rise > 0.02


if __name__ == "__main__":
    sys.exit(main())
