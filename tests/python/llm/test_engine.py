# SPDX-License-Identifier: Apache-2.0
"""tenon.llm.Engine: many requests at once, each as if it were alone."""

import asyncio
import threading

import numpy as np
import pytest
import tenon
from tenon.llm import Decoder, DecoderConfig, Engine
from tenon.llm.engine import EngineStopped, QueueFull, RequestError, SamplingOptions, parse_bytes
from tenon.llm.models import LayerOptions, Rotary
from tiny_decoder import TinyDecoder

BLOCK = 2 * 2 * 2 * 16 * 16 * 4  # bytes of a block of the tiny decoder

# 16 requests of different lengths, many of which begin alike.
PROMPTS = [[1, 2, 3] * (1 + n % 6) + list(range(40, 60 + 7 * (n % 4))) + [n] for n in range(16)]

ASKED = {"max_tokens": 10, "logprobs": 2}


def collect(engine, prompts, order=None, **arguments):
    """What each prompt is answered when all are asked at once in `order`."""

    async def ask():
        async def one(number):
            seed = arguments.get("seed", number)
            rest = {name: value for name, value in arguments.items() if name != "seed"}
            return number, [
                token async for token in engine.stream(prompts[number], seed=seed, **rest)
            ]

        return dict(await asyncio.gather(*(one(n) for n in order or range(len(prompts)))))

    return asyncio.run(ask())


@pytest.fixture(scope="module")
def alone():
    """The answers of PROMPTS, each by itself with nothing cached."""
    answers = {}
    with Engine(TinyDecoder(), kv_cache="1MiB", max_sequences=1) as engine:
        for number, prompt in enumerate(PROMPTS):
            answers[number] = collect(engine, [prompt], seed=number, **ASKED)[0]
            engine.cache.clear()
    return answers


@pytest.mark.parametrize(
    "settings, threads, orders",
    [
        ({}, 2, [range(16), [*range(15, -1, -1)], [5 * n % 16 for n in range(16)]]),
        ({"max_sequences": 3, "chunk_size": 7, "token_budget": 30}, 1, [range(16)] * 2),
        ({"chunk_size": 1}, 2, [range(16)] * 2),
        # Hardly more than one sequence of 128 tokens: many are preempted.
        ({"kv_cache": 14 * BLOCK}, 1, [range(16)] * 2),
        ({"minimum_rows": 40}, 1, [range(16)] * 2),
    ],
    ids=["orders", "few", "single", "preempted", "rows"],
)
def test_answers_do_not_depend_on_neighbours(alone, settings, threads, orders):
    before = tenon.get_num_threads()
    tenon.set_num_threads(threads)
    try:
        with Engine(TinyDecoder(), **{"kv_cache": "1MiB", **settings}) as engine:
            for order in orders:
                # Tokens and log-probabilities, bit for bit.
                assert collect(engine, PROMPTS, order, **ASKED) == alone
            assert engine.cache.used == 0 and engine.cache.hits > 0
            assert (engine.scheduler.preemptions > 0) == ("kv_cache" in settings)
    finally:
        tenon.set_num_threads(before)


def llama():
    """A decoder of tenon.llm with random weights."""
    rotary = Rotary(tuple(10000.0 ** (-i / 8) for i in range(8)))
    config = DecoderConfig(
        vocab_size=100,
        hidden_size=64,
        intermediate_size=128,
        layers=2,
        heads=4,
        kv_heads=2,
        head_dim=16,
        max_positions=128,
        layer_options=(LayerOptions(rotary=rotary),) * 2,
    )
    generator = np.random.default_rng(0)
    return Decoder(
        config,
        {
            name: tenon.asarray(0.3 * generator.standard_normal(shape).astype(np.float32))
            for name, shape in config.weight_shapes().items()
        },
    )


def test_a_decoder_of_a_family_answers_alike():
    decoder = llama()
    with Engine(decoder, kv_cache="1MiB", max_sequences=1) as engine:
        expected = {}
        for number, prompt in enumerate(PROMPTS):
            expected[number] = collect(engine, [prompt], seed=number, **ASKED)[0]
            engine.cache.clear()
    for settings in ({}, {"chunk_size": 5, "max_sequences": 5}, {"kv_cache": 14 * BLOCK}):
        with Engine(decoder, **{"kv_cache": "1MiB", **settings}) as engine:
            assert collect(engine, PROMPTS, **ASKED) == expected
            assert (engine.scheduler.preemptions > 0) == ("kv_cache" in settings)


def test_a_small_step_would_differ():
    """The reason for minimum_rows: with a row for each token, the check at the start refuses."""
    with pytest.raises(
        NotImplementedError, match="row 0 alone and among 6 differ with minimum_rows=1"
    ):
        Engine(TinyDecoder(head_dim=64), kv_cache="16MiB", minimum_rows=1)


def test_a_prompt_that_is_cached_is_not_computed_again():
    with Engine(TinyDecoder(), kv_cache="2MiB") as engine:
        prompt = list(range(100))
        first = collect(engine, [prompt], max_tokens=4)[0]
        assert collect(engine, [prompt], max_tokens=4)[0] == first
        assert engine.cache.hits == 96  # its full blocks
        answers = collect(engine, [prompt], max_tokens=4, salt="another tenant")[0]
        assert answers == first and engine.cache.hits == 96


def test_priorities_come_first():
    finished = []
    decoder = TinyDecoder()
    gate = threading.Event()
    decoder.delay = gate.wait
    gate.set()
    with Engine(decoder, kv_cache="2MiB", max_sequences=1) as engine:
        gate.clear()
        done = threading.Semaphore(0)

        def put(name):
            def deliver(answer):
                if answer.finish_reason:
                    finished.append(name)
                    done.release()

            return deliver

        engine.submit([1], put("first"), max_tokens=2)
        while engine.scheduler.running == []:
            pass
        engine.submit([2], put("later"), max_tokens=2, priority=1)
        engine.submit([3], put("sooner"), max_tokens=2, priority=0)
        gate.set()
        for _ in range(3):
            assert done.acquire(timeout=20)
    assert finished == ["first", "sooner", "later"]


def test_stop_tokens_and_lengths():
    with Engine(TinyDecoder(), kv_cache="2MiB") as engine:
        tokens = collect(engine, [[1, 2, 3]], max_tokens=9)[0]
        assert [token.finish_reason for token in tokens] == [None] * 8 + ["length"]
        stop = tokens[3].id
        tokens = collect(engine, [[1, 2, 3]], max_tokens=9, stop_tokens=[stop])[0]
        assert tokens[-1].id == stop and tokens[-1].finish_reason == "stop"
        assert (
            len(collect(engine, [[1] * 127], max_tokens=1)[0]) == 1
        )  # a prompt of just the context


def test_a_step_that_fails_takes_its_requests_alone():
    decoder = TinyDecoder()
    with Engine(decoder, kv_cache="2MiB", max_sequences=1) as engine:
        decoder.fault, decoder.faulty = RuntimeError("paged_attention: no memory"), 99
        with pytest.raises(
            RequestError, match="a step of the model failed: paged_attention: no memory"
        ):
            collect(engine, [[1, 99]], max_tokens=3)
        assert engine.cache.used == 0 and "no memory" in engine.last_error
        assert len(collect(engine, [[1, 2]], max_tokens=3)[0]) == 3


def test_logits_that_are_no_numbers_fail_their_own_request():
    decoder = TinyDecoder()
    with Engine(decoder, kv_cache="2MiB") as engine:
        decoder.spoiled = 99

        async def ask():
            async def one(prompt):
                return [token async for token in engine.stream(prompt, max_tokens=5)]

            return await asyncio.gather(one([1, 99]), one([1, 2]), return_exceptions=True)

        bad, good = asyncio.run(ask())
        assert isinstance(bad, RequestError) and "expected finite numbers, got nan" in str(bad)
        assert len(good) == 5 and engine.cache.used == 0


def test_leaving_a_stream_frees_its_blocks():
    with Engine(TinyDecoder(), kv_cache="2MiB") as engine:

        async def leave():
            stream = engine.stream([1, 2, 3])
            async for _ in stream:
                break
            await stream.aclose()
            steps = engine.steps
            while engine.open_requests:
                await asyncio.sleep(0.001)
            return engine.steps - steps

        assert asyncio.run(leave()) <= 1 + 1  # the step that was under way, and none or one more
        assert engine.cache.used == 0


def test_too_many_and_too_late():
    decoder = TinyDecoder()
    gate = threading.Event()
    with Engine(decoder, kv_cache="2MiB", max_sequences=1, max_waiting=1) as engine:
        decoder.delay = gate.wait
        answers = []
        for _ in range(2):
            engine.submit([1], answers.append, max_tokens=1)
        with pytest.raises(QueueFull, match="2 requests run or wait, as many as may"):
            engine.submit([1], answers.append)
        gate.set()
    with Engine(TinyDecoder(), kv_cache="2MiB") as engine:
        with pytest.raises(RequestError, match="the request's time is over"):
            collect(engine, [[1]], timeout=0.0)
    with pytest.raises(EngineStopped, match="the engine was closed"):
        engine.submit([1], answers.append)


def test_what_cannot_be_asked():
    with Engine(TinyDecoder(), kv_cache="2MiB") as engine:
        for arguments, text in [
            (([],), "prompt: expected at least one token, got none"),
            (([1, 260],), "prompt: expected tokens from 0 to 259, got 260 at 1"),
            (([1] * 128,), "max_tokens: expected at least 1 beside a prompt of 128 tokens"),
        ]:
            with pytest.raises(ValueError, match=text):
                engine.submit(*arguments, print)
        with pytest.raises(
            ValueError, match="a prompt of 3 tokens and 126 more exceed the context of 128"
        ):
            engine.submit([1, 2, 3], print, max_tokens=126)
        with pytest.raises(ValueError, match="logit_bias: expected tokens from 0 to 259, got 300"):
            engine.submit([1], print, options=SamplingOptions(logit_bias={300: 1.0}))


def test_engines_that_cannot_be():
    with pytest.raises(
        ValueError, match="expected kv_cache of at least .* for one sequence of 128 tokens"
    ):
        Engine(TinyDecoder(), kv_cache="1KiB")
    with pytest.raises(
        ValueError, match="expected max_length of at most the model's 128 positions, got 300"
    ):
        Engine(TinyDecoder(), max_length=300)
    with pytest.raises(
        ValueError, match="expected bytes such as 2GiB, 500MB or a number, got '2 apples'"
    ):
        Engine(TinyDecoder(), kv_cache="2 apples")
    decoder = TinyDecoder()
    decoder.config.window = 64
    with pytest.raises(
        NotImplementedError, match="a window of 64 tokens, and sliding windows are not"
    ):
        Engine(decoder)
    assert parse_bytes("1.5 KiB") == 1536 and parse_bytes(7) == 7
