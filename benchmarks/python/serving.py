# SPDX-License-Identifier: Apache-2.0
"""Servers of a language model under load: `tenon serve` beside llama.cpp's server, which the wheel `xllamacpp` has.

    python serving.py [--quick] [--threads 1] [--clients 1,8,32] [--only 125M] [--formats q8_0] [--json results.json]

Each server is a process of its own, with the same file of a random Llama (generation.py). Clients are coroutines of
this process, each of which asks for one answer after another: a prompt of 64 tokens that no other request has, 32
tokens back, one by one, over HTTP. "engine" is tenon's engine with the same requests and without HTTP. Libraries take
turns; a row is the round of the highest throughput. Both round what meets weights in blocks to 8 bits.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

from _report import row_parser, write_rows
from generation import SIZES, model_of

PROMPT, ANSWER = 64, 32
REQUESTS = {1: 6, 8: 3, 32: 2}  # of each client


def prompt_of(client: int, request: int, turn: int) -> list[int]:
    """None begins as another does, so that no server finds one among those that it remembers."""
    start = client * 7919 + request * 104729 + turn * 1299709
    return [5 + (start + place * 31) % 15000 for place in range(PROMPT)]


# -- a request ------------------------------------------------------------------------------------------------


async def ask(port: int, prompt: list[int]) -> list[float]:
    """When each token of an answer arrived, behind the time of the request."""
    body = {
        "model": "model",
        "prompt": prompt,
        "max_tokens": ANSWER,
        "temperature": 0,
        "ignore_eos": True,
        "stream": True,
    }
    sent = json.dumps(body).encode()
    head = (
        f"POST /v1/completions HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\nconnection: close\r\n"
        f"content-type: application/json\r\ncontent-length: {len(sent)}\r\n\r\n"
    )
    times = [time.perf_counter()]
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(head.encode() + sent)
    status = await reader.readline()
    if b" 200 " not in status:
        raise RuntimeError(f"the server answered {status!r}: {(await reader.read())[:400]!r}")
    while line := await reader.readline():
        if not line.startswith(b"data: {"):
            continue  # headers, the sizes of chunks, empty lines and [DONE]
        event = json.loads(line[6:])
        if "error" in event:
            raise RuntimeError(f"the server answered {event}")
        if event["choices"] and event["choices"][0].get("text"):
            times.append(time.perf_counter())
    writer.close()
    return times


async def load(clients: int, turn: int, one) -> dict[str, float]:
    """What `clients` clients see, each of which awaits `one(prompt)` some times."""

    async def client(number: int) -> list[list[float]]:
        count = REQUESTS.get(clients, 2)
        return [await one(prompt_of(number, request, turn)) for request in range(count)]

    began = time.perf_counter()
    seen = await asyncio.gather(*(client(number) for number in range(clients)))
    taken = time.perf_counter() - began
    answers = [times for each in seen for times in each]
    if any(len(times) != ANSWER + 1 for times in answers):
        counts = sorted({len(times) - 1 for times in answers})
        raise RuntimeError(f"expected answers of {ANSWER} tokens, got {counts}")
    first = sorted(times[1] - times[0] for times in answers)
    between = sorted(b - a for times in answers for a, b in zip(times[1:-1], times[2:]))
    return {
        "tokens/s": len(answers) * ANSWER / taken,
        "first p95": first[min(len(first) - 1, int(0.95 * len(first)))],
        "between p50": statistics.median(between),
        "between p99": between[min(len(between) - 1, int(0.99 * len(between)))],
    }


# -- servers --------------------------------------------------------------------------------------------------


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


class Server:
    """A process that listens on `port`, for the time of a `with`."""

    def __init__(self, command: list[str], port: int):
        self.port = port
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
        )

    def __enter__(self) -> Server:
        os.set_blocking(self.process.stderr.fileno(), False)
        for _ in range(600):
            if self.process.poll() is not None:
                raise RuntimeError(f"the server ended: {self.process.stderr.read()!r}")
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{self.port}/health", timeout=5).close()
                return self
            except (urllib.error.URLError, ConnectionError, TimeoutError):
                self.process.stderr.read()  # a pipe that is full would stop the server
                time.sleep(0.1)
        raise RuntimeError("the server does not answer")

    def __exit__(self, *exception: object) -> None:
        self.process.terminate()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def measure(self, clients: int, turn: int) -> dict[str, float]:
        return asyncio.run(load(clients, turn, lambda prompt: ask(self.port, prompt)))


def tenon_server(path: str, threads: int, activations: str) -> Server:
    port = free_port()
    command = [sys.executable, "-m", "tenon", "serve", path, "--port", str(port), "--name", "model"]
    command += ["--kv-cache", "1GiB", "--max-sequences", "32", "--threads", str(threads)]
    return Server([*command, "--activations", activations], port)


def llama_server(path: str, threads: int) -> Server:
    port = free_port()
    command = [sys.executable, __file__, "--serve-llama", path, "--port", str(port)]
    return Server([*command, "--threads", str(threads)], port)


def serve_llama(path: str, port: int, threads: int) -> None:
    """llama.cpp's server in this process, until it is ended."""
    import xllamacpp

    settings = xllamacpp.CommonParams()
    settings.model.path, settings.port = path, port
    settings.n_parallel, settings.n_ctx = 32, 32 * 512
    settings.cpuparams.n_threads = settings.cpuparams_batch.n_threads = threads
    settings.verbosity = 0
    server = xllamacpp.Server(settings)
    print(server.listening_address, flush=True)
    while True:
        time.sleep(3600)


class EngineAlone:
    """tenon's engine in this process, without a server."""

    def __init__(self, path: str, threads: int, activations: str):
        import tenon

        tenon.set_num_threads(threads)
        self._engine = tenon.llm.Engine(tenon.llm.load(path, activations=activations))

    def measure(self, clients: int, turn: int) -> dict[str, float]:
        async def one(prompt: list[int]) -> list[float]:
            times = [time.perf_counter()]
            stream = self._engine.stream(prompt, max_tokens=ANSWER, temperature=0.0, stop_tokens=())
            async for _ in stream:
                times.append(time.perf_counter())
            return times

        return asyncio.run(load(clients, turn, one))

    def __enter__(self) -> EngineAlone:
        return self

    def __exit__(self, *exception: object) -> None:
        self._engine.close()


def main() -> None:
    parser = row_parser(__doc__, "the small model, one round")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--clients", default="1,8,32")
    parser.add_argument("--only", default="125M", help="a size: 25M or 125M")
    parser.add_argument("--formats", default="q8_0")
    parser.add_argument("--serve-llama", help=argparse.SUPPRESS)
    parser.add_argument("--port", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve_llama:
        serve_llama(options.serve_llama, options.port, options.threads)
    import tenon

    size = "25M" if options.quick else options.only
    rows = []
    for form in options.formats.split(","):
        activations = "float" if form in ("f32", "f16", "bf16") else "int8"
        with tempfile.TemporaryDirectory() as folder:
            path = f"{folder}/model.gguf"
            tenon.llm.save_gguf(model_of(*SIZES[size]), path, form)
            with (
                tenon_server(path, options.threads, activations) as ours,
                llama_server(path, options.threads) as theirs,
                EngineAlone(path, options.threads, activations) as engine,
            ):
                made = {"engine": engine, "tenon": ours, "llama.cpp": theirs}
                for each in made.values():
                    each.measure(1, 0)  # the first requests find shapes that are not known yet
                turn = 0
                for clients in map(int, options.clients.split(",")):
                    best: dict[str, dict[str, float]] = {}
                    for _ in range(1 if options.quick else options.rounds):
                        turn += 1
                        for name, each in made.items():
                            found = each.measure(clients, turn)
                            if name not in best or found["tokens/s"] > best[name]["tokens/s"]:
                                best[name] = found
                    for name, found in best.items():
                        row = {"size": size, "format": form, "threads": options.threads}
                        rows.append(row | {"clients": clients, "library": name, **found})
                        print(
                            f"{size} {form} {clients:3} clients {name:10} {found['tokens/s']:7.1f} "
                            f"tokens/s, first p95 {1000 * found['first p95']:7.0f} ms, between p50 "
                            f"{1000 * found['between p50']:6.1f}, p99 {1000 * found['between p99']:6.1f}",
                            flush=True,
                        )
                    one, two = best["tenon"], best["llama.cpp"]
                    print(
                        f"  beside llama.cpp: tokens/s {one['tokens/s'] / two['tokens/s']:.2f} (bar "
                        f"1.2), first p95 {one['first p95'] / two['first p95']:.2f} (bar 0.7); p99 "
                        f"of {one['between p99'] / one['between p50']:.2f} medians (bar 2); over the "
                        f"engine {best['engine']['tokens/s'] / one['tokens/s'] - 1:+.1%} (bar 3 %)",
                        flush=True,
                    )
    write_rows(options, rows)


if __name__ == "__main__":
    main()
