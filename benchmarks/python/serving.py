# SPDX-License-Identifier: Apache-2.0
"""Servers of language models under load: `tenon serve` beside llama.cpp's server, which the wheel `xllamacpp` has.

    python serving.py [--quick] [--size 125M] [--format q8_0] [--clients 1,4,16] [--threads 2] [--json results.json]

Both read one random Llama and stream answers of 32 tokens to prompts of 64 over HTTP on this machine. Each client asks
again as soon as it has its answer; prompts differ, so that no server finds one in its cache. The servers are processes
that take turns: one is loaded while the other rests.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from dataclasses import dataclass, field
from pathlib import Path

PROMPT, ANSWER = 64, 32
LLAMA_CPP = """
import sys, time, xllamacpp
path, threads, clients, port = sys.argv[1], *map(int, sys.argv[2:])
settings = xllamacpp.CommonParams()
settings.model.path, settings.n_ctx, settings.n_parallel = path, 256 * clients, clients
settings.cpuparams.n_threads = settings.cpuparams_batch.n_threads = threads
settings.verbosity, settings.port = 0, port
server = xllamacpp.Server(settings)
time.sleep(1e6)
"""


@dataclass
class Times:
    """Seconds of the requests of all clients."""

    whole: float = 0.0
    first: list[float] = field(default_factory=list)
    between: list[float] = field(default_factory=list)

    def row(self) -> dict[str, float]:
        between = sorted(self.between)
        return {
            "requests_s": len(self.first) / self.whole,
            "tokens_s": (len(self.first) + len(self.between)) / self.whole,
            "first_ms": 1e3 * statistics.median(self.first),
            "between_ms": 1e3 * statistics.median(between),
            "between_p99_ms": 1e3 * between[int(0.99 * len(between))],
        }


async def answer(host: str, port: int, body: dict, times: Times) -> None:
    """One streamed request; the time of each event that has text."""
    reader, writer = await asyncio.open_connection(host, port)
    data = json.dumps(body).encode()
    head = (
        f"POST /v1/completions HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(data)}\r\nConnection: close\r\n\r\n"
    )
    start = last = time.perf_counter()
    writer.write(head.encode() + data)
    seen = 0
    status = await reader.readline()
    if b" 200 " not in status:
        raise RuntimeError(f"expected 200, got {status!r} {(await reader.read())[-500:]!r}")
    while line := await reader.readline():
        if not line.startswith(b"data: {"):
            continue
        event = json.loads(line[6:])
        if not event.get("choices") or not event["choices"][0].get("text"):
            continue
        now = time.perf_counter()
        (times.first if seen == 0 else times.between).append(now - (start if seen == 0 else last))
        last, seen = now, seen + 1
    writer.close()
    if seen < ANSWER // 2:
        raise RuntimeError(f"expected about {ANSWER} events of text, got {seen}")


async def load(host: str, port: int, clients: int, requests: int, extra: dict, seed: int) -> Times:
    times = Times()
    numbers = random.Random(seed)

    async def client() -> None:
        for _ in range(requests):
            prompt = [numbers.randrange(5, 900) for _ in range(PROMPT)]
            body = {
                "model": "model",
                "prompt": prompt,
                "max_tokens": ANSWER,
                "temperature": 0,
                "ignore_eos": True,
                "stream": True,
                **extra,
            }
            await answer(host, port, body, times)

    start = time.perf_counter()
    await asyncio.gather(*(client() for _ in range(clients)))
    times.whole = time.perf_counter() - start
    return times


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def started(command: list[str], port: int) -> subprocess.Popen:
    """A server that answers GET /health at the port."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    for _ in range(600):
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=1).read()
            return process
        except OSError:
            time.sleep(0.2)
        if process.poll() is not None:
            break
    process.kill()
    raise RuntimeError(
        f"expected {command[:4]} to serve on port {port}, got status {process.wait()}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="the small model, one round")
    parser.add_argument("--size", default="125M", help="25M or 125M")
    parser.add_argument("--format", default="q8_0")
    parser.add_argument("--clients", default="1,4,16")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    from generation import SIZES, model_of
    from tenon.llm import save_gguf

    counts = [int(each) for each in options.clients.split(",")]
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/model.gguf"
        size = "25M" if options.quick else options.size
        save_gguf(model_of(*SIZES[size]), path, options.format)
        threads = str(options.threads)
        ports = [free_port() for _ in range(3)]

        def serve(port: int) -> list[str]:
            where = ["--port", str(port), "--threads", threads, "--name", "model"]
            return [sys.executable, "-m", "tenon", "serve", path, *where]

        peer = [path, threads, str(max(counts)), str(ports[2])]
        commands = {
            "tenon": (serve(ports[0]), ports[0], {}),
            "tenon int8": ([*serve(ports[1]), "--activations", "int8"], ports[1], {}),
            "llama.cpp": (
                [sys.executable, "-c", LLAMA_CPP, *peer],
                ports[2],
                {"cache_prompt": False},
            ),
        }
        servers = {
            name: (started(command, port), "127.0.0.1", port, extra)
            for name, (command, port, extra) in commands.items()
        }
        try:
            for clients in counts:
                best: dict[str, dict[str, float]] = {}
                for turn in range(1 if options.quick else options.rounds):
                    for name, (_, host, port, extra) in servers.items():
                        asyncio.run(load(host, port, clients, 1, extra, 1000 + turn))  # warm
                        requests = max(2, 8 // clients)
                        times = asyncio.run(load(host, port, clients, requests, extra, turn))
                        row = times.row()
                        if name not in best or row["requests_s"] > best[name]["requests_s"]:
                            best[name] = row
                for name, row in best.items():
                    rows.append({"clients": clients, "server": name, **row})
                    print(
                        f"{clients:3} clients  {name:12} {row['requests_s']:7.2f} requests/s "
                        f"{row['tokens_s']:7.1f} tokens/s  first token {row['first_ms']:7.1f} ms  "
                        f"between {row['between_ms']:6.1f} ms, p99 {row['between_p99_ms']:6.1f} ms",
                        flush=True,
                    )
        finally:
            for process, *_ in servers.values():
                process.kill()
                process.wait()
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
