# SPDX-License-Identifier: Apache-2.0
"""Hundreds of requests, many of them broken: what a server holds does not grow."""

import asyncio
import gc
import random

import tenon
from tenon.llm import Engine
from tenon.llm.server import Application, ServedModel
from test_server import Client, decode, encode, render
from tiny_decoder import TinyDecoder


async def ask(client, numbers):
    """One request: whole, left in the middle, too long or no JSON."""
    body = {
        "model": "tiny",
        "prompt": "".join(numbers.choices("abcdef ", k=numbers.randrange(1, 40))),
        "max_tokens": numbers.randrange(1, 12),
        "stream": numbers.random() < 0.7,
        "n": numbers.randrange(1, 3),
    }
    kind = numbers.random()
    if kind < 0.4:
        await client.call("POST", "/v1/completions", body, leave_after=numbers.randrange(4))
    elif kind < 0.5:
        await client.call("POST", "/v1/completions", raw=b"{broken")
    elif kind < 0.6:
        await client.call("POST", "/v1/completions", {**body, "prompt": "x" * 500})
    else:
        await client.call("POST", "/v1/completions", body)


def test_nothing_is_held_after_broken_clients():
    numbers = random.Random(0)
    with Engine(TinyDecoder(), kv_cache="1MiB", max_sequences=8) as engine:
        client = Client(Application(ServedModel("tiny", engine, encode, decode, render)))

        async def several(count):
            for _ in range(count):
                await asyncio.gather(*(ask(client, numbers) for _ in range(8)))
            while engine.open_requests:
                await asyncio.sleep(0.01)

        held = []
        for _ in range(3):
            asyncio.run(several(6))
            gc.collect()
            assert engine.cache.used == 0
            held.append((len(gc.get_objects()), tenon.memory.stats()["live"]))
    # The first third fills the cache of blocks.
    assert held[2][0] - held[1][0] < 200 and held[2][1] == held[1][1], held
