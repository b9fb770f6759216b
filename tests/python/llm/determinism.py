# SPDX-License-Identifier: Apache-2.0
"""Answers of the engine, bit for bit, beside those that each request gets alone.

    PYTHONPATH=build/release/python python tests/python/llm/determinism.py [--seed 1] [--chunks 512] [--requests 64]

64 requests, many of which begin alike, greedy and drawn, are asked at once: in 10 orders, in chunks of 1 to 512
tokens, on 1 and 2 threads, with cached prefixes and without, with hardly more memory than one of them needs, so that
most are preempted, with drafts of two kinds, steps bounded by time and not, and in a new process. Seven of eight sizes
of chunks are those of 16 of the requests, the longest of which are always there, as others are cut by few sizes. Tokens, log-probabilities and the likeliest tokens
must be those that each request gets in an engine of its own, on one thread, with nothing cached. Decoders are a random
Llama in float32, the same in blocks with activations of 8 bits, and with keys and values of int8.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import itertools
import math
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import tenon
from tenon.llm import Decoder, DecoderConfig, DraftModel, Engine, PromptLookup
from tenon.llm.models import LayerOptions, Rotary
from tenon.llm.models.blocks import BlockWeight

LENGTH, VOCABULARY, ANSWER = 640, 200, 12
KINDS = ("float32", "q8_0", "int8 pools")
SOME = 16  # of the requests, which most engines are asked
DTYPES = {"int8 pools": "int8"}


def decoder_of(kind: str) -> Decoder:
    rotary = Rotary(tuple(10000.0 ** (-i / 8) for i in range(8)))
    config = DecoderConfig(
        vocab_size=VOCABULARY,
        hidden_size=64,
        intermediate_size=96,
        layers=2,
        heads=4,
        kv_heads=2,
        head_dim=16,
        max_positions=LENGTH,
        layer_options=(LayerOptions(rotary=rotary),) * 2,
    )
    numbers = np.random.default_rng(0)
    weights: dict[str, Any] = {
        name: tenon.asarray(0.3 * numbers.standard_normal(shape).astype(np.float32))
        for name, shape in config.weight_shapes().items()
    }
    if kind != "q8_0":
        return Decoder(config, weights)
    for name, weight in weights.items():
        if weight.ndim == 2:
            weights[name] = BlockWeight(tenon.quantize_blocks(weight, "q8_0"), "q8_0")
    return Decoder(config, weights, "int8")


def requests_of(count: int, longest: int = 560) -> list[dict[str, Any]]:
    """Prompts of 1 to `longest` tokens, of which some begin alike, and how to answer them."""
    draw = random.Random(7)
    shared = [draw.randrange(VOCABULARY) for _ in range(longest)]
    made = []
    for number in range(count):
        length = draw.choice((draw.randint(1, 24), draw.randint(1, 90), draw.randint(1, 90)))
        if number % 16 == 3:
            length = draw.randint(longest * 3 // 4, longest)
        alike = draw.randint(0, length) if number % 2 else 0
        prompt = shared[:alike] + [draw.randrange(VOCABULARY) for _ in range(length - alike)]
        options: dict[str, Any] = {
            "seed": number,
            "logprobs": 2,
            "max_tokens": draw.randint(2, ANSWER),
        }
        options["temperature"] = (0.0, 0.8, 1.3)[number % 3]
        if number % 5 == 0:
            options |= {"top_p": 0.9, "top_k": 40}
        if number % 7 == 0:
            options |= {"repetition_penalty": 1.2}
        made.append({"prompt": prompt, **options})
    return made


def answers(engine: Engine, requests: list[dict[str, Any]], order: list[int]) -> dict[int, list]:
    """What each request is answered when all are asked at once in `order`."""

    async def ask() -> dict[int, list]:
        async def one(number: int) -> tuple[int, list]:
            request = dict(requests[number])
            stream = engine.stream(request.pop("prompt"), **request)
            return number, [token async for token in stream]

        return dict(await asyncio.gather(*(one(number) for number in order)))

    return asyncio.run(ask())


def alone(kind: str, requests: list[dict[str, Any]]) -> dict[int, list]:
    tenon.set_num_threads(1)
    found = {}
    settings = {"kv_cache": "4MiB", "dtype": DTYPES.get(kind, "float32")}
    with Engine(decoder_of(kind), max_sequences=1, **settings) as engine:
        for number in range(len(requests)):
            found |= answers(engine, requests, [number])
            engine.cache.clear()
    return found


def digest(found: dict[int, list]) -> str:
    return hashlib.sha256(repr(sorted(found.items())).encode()).hexdigest()


def variations(
    kind: str, chunks: list[int], orders: int, requests: list[dict[str, Any]], seed: int
) -> Iterator[tuple[dict[str, Any], int, list[int]]]:
    """Settings of an engine, threads and an order: each chunk size, order, number of threads, kind of draft,
    bound of time and size of the cache comes, in random company."""
    draw, count = random.Random(seed), len(requests)
    by_length = sorted(range(count), key=lambda number: -len(requests[number]["prompt"]))
    longest = max(len(request["prompt"]) for request in requests) + ANSWER
    some = [random.Random(each).sample(range(count), count) for each in range(orders)]
    turns = itertools.count()
    drafts = (None, PromptLookup(), None, DraftModel(decoder_of("float32"), 3))
    row = 16 * (4 if kind != "int8 pools" else 1) + (4 if kind == "int8 pools" else 0)
    block = 2 * 2 * 2 * 16 * row  # bytes: keys and values, layers, heads, tokens
    for chunk in chunks:
        turn = next(turns)
        settings = {
            "chunk_size": chunk,
            "token_budget": draw.choice((chunk, 64 + chunk, 512 + chunk)),
            "draft": drafts[turn % len(drafts)],
            "kv_cache": (longest // 16 + 3) * block if turn % 3 == 2 else "4MiB",
            "max_length": longest,
            "max_sequences": draw.choice((2, 7, 32, 64)),
            "max_slowdown": draw.choice((1.0, 1.8, math.inf)),
            "dtype": DTYPES.get(kind, "float32"),
        }
        order = some[turn % orders]
        if turn % 8 and count > SOME:
            asked = {*by_length[: SOME // 4], *draw.sample(by_length[SOME // 4 :], SOME * 3 // 4)}
            order = [number for number in order if number in asked]
        yield settings, 1 + turn // 2 % 2, order


def check(
    kind: str, requests: list[dict[str, Any]], chunks: list[int], orders: int, seed: int
) -> dict[str, int]:
    """Raises AssertionError at the first answer that differs; counts what has happened on the way."""
    expected = alone(kind, requests)
    seen = {"engines": 0, "answers": 0, "preempted": 0, "cached tokens": 0, "accepted guesses": 0}
    decoder = decoder_of(kind)
    for settings, threads, order in variations(kind, chunks, orders, requests, seed):
        tenon.set_num_threads(threads)
        with Engine(decoder, max_waiting=len(requests), **settings) as engine:
            for time_ in ("first", "second"):  # the second time from cached prefixes
                found = answers(engine, requests, order)
                for number, answer in found.items():
                    assert answer == expected[number], (
                        f"{kind}: request {number}, for the {time_} time, on {threads} threads "
                        f"with {settings}: {answer} is not {expected[number]}"
                    )
                seen["answers"] += len(found)
            assert engine.cache.used == 0
            seen["engines"] += 1
            seen["preempted"] += engine.scheduler.preemptions
            seen["cached tokens"] += engine.cache.hits
            seen["accepted guesses"] += engine.accepted
    return seen


def check_restart(kind: str, count: int, longest: int) -> None:
    """A new process, on two threads, with requests side by side, has the same answers."""
    expected = digest(alone(kind, requests_of(count, longest)))
    command = [sys.executable, __file__, "--digest", kind, "--requests", str(count)]
    command += ["--longest", str(longest)]
    made = subprocess.run(command, capture_output=True, text=True, check=True)
    assert made.stdout.strip() == expected, f"{kind}: a new process answers differently"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--requests", type=int, default=64)
    parser.add_argument("--longest", type=int, default=560, help="tokens of a prompt")
    parser.add_argument("--chunks", type=int, default=512, help="sizes from 1 to this")
    parser.add_argument("--orders", type=int, default=10)
    parser.add_argument("--digest", help=argparse.SUPPRESS)
    options = parser.parse_args()
    requests = requests_of(options.requests, options.longest)
    if options.digest:
        tenon.set_num_threads(2)
        settings = {"kv_cache": "4MiB", "dtype": DTYPES.get(options.digest, "float32")}
        with Engine(decoder_of(options.digest), max_sequences=64, **settings) as engine:
            print(digest(answers(engine, requests, list(range(len(requests))))))
        return 0
    for kind in KINDS:
        began = time.monotonic()
        # The first kind has every size of chunks, the others each eighth.
        sizes = list(range(1, options.chunks + 1, 1 if kind == KINDS[0] else 8))
        seen = check(kind, requests, sizes, options.orders, options.seed)
        check_restart(kind, options.requests, options.longest)
        counts = ", ".join(f"{count} {name}" for name, count in seen.items())
        print(f"{kind}: {counts}; {time.monotonic() - began:.0f} s: all as alone", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
