# SPDX-License-Identifier: Apache-2.0
"""tenon.llm.engine: how a token is drawn from logits."""

import math
import os

import numpy as np
import pytest
import tenon
from scipy import stats
from tenon.llm.engine import Sampler, SamplingOptions, philox, uniform

E = math.e
LOGITS = np.log(np.array([0.4, 0.3, 0.2, 0.06, 0.04], np.float32))


DRAWS = 1_000_000 if os.environ.get("TENON_TEST_EXHAUSTIVE") == "1" else 4000
OF_SEED = 100  # draws of each seed, at different positions


def counts_of(draw):
    """How often each token comes in DRAWS draws of `draw(seed, position)`."""
    counts = np.zeros(LOGITS.size)
    for number in range(DRAWS):
        counts[draw(*divmod(number, OF_SEED))] += 1
    return counts


def shares(prompt=(), generated=(), **options):
    """The counts with `options` behind a prompt and tokens that were generated before."""
    only = [np.where(np.arange(LOGITS.size) == one, 0, -np.inf).astype("f4") for one in generated]
    counts_tokens = bool(generated) or "repetition_penalty" in options
    made = {}

    def draw(seed, position):
        if counts_tokens or seed not in made:
            made.clear()
            made[seed] = Sampler(SamplingOptions(seed=seed, **options), list(prompt))
            for place, row in enumerate(only):
                made[seed].draw(row, place)
        return made[seed].draw(LOGITS, len(only) + position)[0]

    return counts_of(draw)


def test_philox_is_the_published_one():
    ones = (1 << 64) - 1
    assert philox(0, 0) == (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)
    assert philox(ones, ones << 64 | ones) == (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)
    drawn = [uniform(7, position) for position in range(2000)]
    assert stats.kstest(drawn, "uniform").pvalue > 0.001
    assert uniform(1 << 64, 5) == uniform(0, 5) and uniform(1, 5) != uniform(2, 5)


@pytest.mark.parametrize(
    "options, expected",
    [
        ({}, [0.4, 0.3, 0.2, 0.06, 0.04]),
        ({"temperature": 0.5}, [0.16, 0.09, 0.04, 0.0036, 0.0016]),
        ({"top_k": 2}, [0.4, 0.3, 0, 0, 0]),
        ({"top_p": 0.75}, [0.4, 0.3, 0.2, 0, 0]),
        ({"min_p": 0.45}, [0.4, 0.3, 0.2, 0, 0]),
        ({"min_p": 0.45, "top_p": 0.5}, [0.4, 0.3, 0, 0, 0]),
        ({"min_p": 0.6, "top_k": 4, "top_p": 0.99}, [0.4, 0.3, 0, 0, 0]),
        ({"logit_bias": {4: math.log(10), 0: -100}}, [0, 0.3, 0.2, 0.06, 0.4]),
        ({"repetition_penalty": 2.0, "prompt": [0]}, [0.16, 0.3, 0.2, 0.06, 0.04]),
        (
            {"frequency_penalty": 0.5, "generated": [0, 0, 1]},
            [0.4 / E, 0.3 / E**0.5, 0.2, 0.06, 0.04],
        ),
        ({"presence_penalty": 1.0, "generated": [0, 0, 1]}, [0.4 / E, 0.3 / E, 0.2, 0.06, 0.04]),
        (
            {"temperature": 0.5, "presence_penalty": 0.5, "top_k": 3, "generated": [0]},
            [0.16 / E, 0.09, 0.04, 0, 0],
        ),
    ],
)
def test_draws_follow_the_options(options, expected):
    expected = np.array(expected) / np.sum(expected)
    counts = shares(**options)
    kept = expected > 0
    assert counts[~kept].sum() == 0
    assert stats.chisquare(counts[kept], DRAWS * expected[kept]).pvalue > 0.001


def test_draws_are_those_of_the_definition():
    """Over a vocabulary that is not sorted whole, against sorting it whole."""
    row = (3 * np.random.default_rng(0).standard_normal(3000)).astype(np.float32)
    for options in (
        {},
        {"top_p": 0.9},
        {"top_p": 0.999},
        {"min_p": 0.02},
        {"top_k": 50, "top_p": 0.8},
    ):
        chosen = SamplingOptions(seed=3, temperature=1.3, **options)
        for position in range(300):
            order = np.argsort(-row, kind="stable")[: chosen.top_k or None]
            weights = np.exp((row[order].astype(np.float64) - row.max()) / 1.3)
            sums = np.cumsum(weights)
            kept = (sums - weights < chosen.top_p * sums[-1]) & (weights >= chosen.min_p)
            sums = sums[: kept.sum()]
            expected = order[np.searchsorted(sums, uniform(3, position) * sums[-1], side="right")]
            assert Sampler(chosen, []).draw(row, position)[0] == expected


def test_uniform_numbers_are_those_of_tenon():
    for seed, position in ((0, 0), (7, 3), (1 << 63, 99)):
        generator = tenon.Generator(seed=0)
        generator.set_state((seed, position))
        with generator:
            drawn = tenon.uniform([1], 0.0, 1.0, dtype=tenon.float64).item()
        assert uniform(seed, position) == drawn


def test_greedy_and_its_limits():
    for options in ({"temperature": 0}, {"top_p": 0}, {"temperature": 1e-9}, {"top_k": 1}):
        token, logprob, _ = Sampler(SamplingOptions(**options), []).draw(LOGITS, 0)
        assert token == 0 and logprob == pytest.approx(math.log(0.4), abs=1e-6)


def test_penalties_count_what_was_generated():
    sampler = Sampler(SamplingOptions(temperature=0, frequency_penalty=0.2), [0, 0, 0])
    # 0.4 to 0.3 are 0.288 apart, so the second time after two draws of 0.
    assert [sampler.draw(LOGITS, place)[0] for place in range(4)] == [0, 0, 1, 0]
    sampler = Sampler(SamplingOptions(temperature=0, presence_penalty=0.5), [0])
    assert [sampler.draw(LOGITS, place)[0] for place in range(3)] == [0, 1, 0]


def test_logprobs_are_those_of_the_model():
    options = SamplingOptions(temperature=0, logprobs=2, logit_bias={4: 100})
    token, logprob, top = Sampler(options, []).draw(LOGITS, 0)
    assert token == 4 and logprob == pytest.approx(math.log(0.04), abs=1e-6)
    assert [one for one, _ in top] == [0, 1] and top[1][1] == pytest.approx(math.log(0.3), abs=1e-6)


def test_logits_of_no_use():
    for bad in (math.nan, math.inf):
        with pytest.raises(FloatingPointError, match="logits: expected finite numbers, got"):
            Sampler(SamplingOptions(), []).draw(np.array([0, bad], np.float32), 0)
    assert Sampler(SamplingOptions(), []).draw(np.array([-np.inf, 1], np.float32), 0)[0] == 1


@pytest.mark.parametrize(
    "options, text",
    [
        ({"temperature": -1}, "temperature: expected a finite number of at least 0, got -1"),
        ({"temperature": math.nan}, "temperature: expected a finite number"),
        ({"top_p": 1.5}, "top_p: expected a number from 0 to 1, got 1.5"),
        ({"top_k": -1}, "top_k: expected at least 0"),
        ({"min_p": 2}, "min_p: expected a number from 0 to 1"),
        ({"repetition_penalty": 0}, "repetition_penalty: expected more than 0"),
        ({"presence_penalty": 3}, "presence_penalty: expected a number from -2 to 2, got 3"),
        ({"logprobs": 21}, "logprobs: expected 0 to 20, or none, got 21"),
    ],
)
def test_options_out_of_range(options, text):
    with pytest.raises(ValueError, match=text):
        SamplingOptions(**options)
