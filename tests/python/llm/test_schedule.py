# SPDX-License-Identifier: Apache-2.0
"""tenon.llm.engine: what steps are expected to take, and how many tokens of prompts they get by it."""

import math
import random

import pytest
from tenon.llm import Engine
from tenon.llm.engine import BlockCache, SamplingOptions
from tenon.llm.engine.cost import LEAST_TOKENS, StepCost
from tenon.llm.engine.requests import Request
from tenon.llm.engine.schedule import Scheduler
from test_engine import PROMPTS, collect
from tiny_decoder import TinyDecoder


def taken(rows, tokens, fixed=0.010, row=0.0015, token=0.0007):
    return fixed + row * rows + token * tokens


def learnt(steps, cost=None, noise=0.05, **costs):
    """A cost that has seen `steps` of (rows, tokens), whose times vary by `noise`."""
    cost, draw = cost or StepCost(), random.Random(0)
    for rows, tokens in steps:
        cost.learn(rows, tokens, taken(rows, tokens, **costs) * draw.uniform(1 - noise, 1 + noise))
    return cost


BURST = [(0, 64)] + [(rows, 16) for rows in range(1, 9) for _ in range(4)] + [(8, 0)] * 20


def test_costs_are_learnt_from_steps_of_both_kinds():
    cost = learnt(BURST)
    for rows, tokens in ((1, 0), (8, 0), (1, 16), (4, 32)):
        assert cost.seconds(rows, tokens) == pytest.approx(taken(rows, tokens), rel=0.15)


def test_costs_follow_a_machine_that_gets_slower():
    cost = learnt(BURST, learnt(BURST), fixed=0.03, row=0.005, token=0.002)
    assert cost.seconds(8, 16) == pytest.approx(0.03 + 0.04 + 0.032, rel=0.2)


def test_a_step_that_waited_counts_as_two():
    cost = learnt(BURST)
    before = cost.seconds(8, 0)
    cost.learn(8, 0, 100.0)
    assert before < cost.seconds(8, 0) < 2 * before


@pytest.mark.parametrize("costs", [{"token": 0.0}, {"row": 0.0}, {"fixed": 0.0}])
def test_a_number_that_was_nothing_is_found_again(costs):
    steps = [(1, 48), (5, 16), (2, 40), (8, 8), (3, 24), (8, 0), (3, 0)]
    cost = learnt(steps * 6, learnt(steps * 30, **costs))
    for rows, tokens in ((8, 0), (2, 64)):
        assert cost.seconds(rows, tokens) == pytest.approx(taken(rows, tokens), rel=0.15)


def test_what_no_step_tells_of_is_remembered():
    cost = learnt([(1, 0)] * 1000, learnt(BURST))
    assert cost.seconds(1, 64) - cost.seconds(1, 0) == pytest.approx(64 * 0.0007, rel=0.3)


def test_tokens_of_prompts_fit_the_time_that_is_left():
    cost = learnt(BURST, noise=0)
    for decoding, present, slowdown in ((1, 8, 2.0), (8, 8, 2.0), (8, 8, 1.5), (4, 8, 3.0)):
        tokens = cost.prompt_tokens(decoding, present, slowdown)
        most = slowdown * taken(present, 0)
        assert tokens % LEAST_TOKENS == 0
        assert taken(decoding, tokens) <= 1.05 * most
        assert taken(decoding, tokens + 2 * LEAST_TOKENS) > 0.95 * most
    assert cost.prompt_tokens(8, 8, 1.0) == LEAST_TOKENS  # a prompt goes on in every step
    for slowdown in (math.inf, 1e308):  # the second one is beyond floats in tokens
        assert cost.prompt_tokens(8, 8, slowdown) == math.inf
    assert StepCost().prompt_tokens(1, 1, 2.0) == math.inf  # nothing is known yet


def request(number, length, generated=0):
    one = Request([1] * length, SamplingOptions(), 20, frozenset(), None)
    one.number = number
    one.tokens += [2] * generated
    return one


def planned(scheduler):
    return {piece.request.number: piece.length for piece in scheduler.plan()}


def test_prompts_are_cut_while_others_decode():
    scheduler = Scheduler(BlockCache(100, 16), 8, 512, 256, max_slowdown=2.0)
    learnt(BURST, scheduler.cost, noise=0)
    first = request(1, 10)
    scheduler.add(first)
    scheduler.add(request(2, 100))
    assert planned(scheduler) == {1: 10, 2: 100}  # no request waits for a next token
    first.computed, first.tokens = 10, [*first.tokens, 7]
    scheduler.running[1].computed = 40
    scheduler.add(request(3, 100))
    expected = scheduler.cost.prompt_tokens(1, 3, 2.0)
    assert LEAST_TOKENS < expected < 60
    assert planned(scheduler) == {1: 1, 2: expected}  # the third waits: prompts come in order
    assert len(scheduler.waiting) == 1
    scheduler.running[1].computed = 100 - LEAST_TOKENS
    assert planned(scheduler) == {1: 1, 2: LEAST_TOKENS, 3: expected - LEAST_TOKENS}
    scheduler.max_slowdown = math.inf
    assert planned(scheduler) == {1: 1, 2: LEAST_TOKENS, 3: 100}


def test_an_engine_learns_and_answers_alike():
    expected = {}
    for slowdown in (math.inf, 1.0, 1.9):
        with Engine(TinyDecoder(), kv_cache="1MiB", max_slowdown=slowdown) as engine:
            answers = collect(engine, PROMPTS, max_tokens=6, logprobs=2)
            assert answers == (expected or answers)
            expected = answers
            assert 0 < engine.scheduler.cost.seconds(1, 0) < engine.step_seconds


@pytest.mark.parametrize("slowdown", [0.5, math.nan])
def test_slowdowns_that_are_refused(slowdown):
    with pytest.raises(ValueError, match=f"expected max_slowdown of at least 1, got {slowdown}"):
        Engine(TinyDecoder(), max_slowdown=slowdown)
