# SPDX-License-Identifier: Apache-2.0
"""Drafts change no token and no bit, whether they are right, wrong or both."""

import random

import pytest
from tenon.llm import DraftModel, Engine, PromptLookup
from test_engine import ASKED, BLOCK, PROMPTS, collect, llama
from tiny_decoder import TinyDecoder

SAMPLED = {**ASKED, "max_tokens": 24}
GREEDY = {**SAMPLED, "temperature": 0.0, "seed": 0}


class Told:
    """Guesses from the answers, of which some tokens are changed."""

    def __init__(self, answers, wrong, count=6):
        self.count = count
        self._answers = answers
        self._wrong = wrong
        self._numbers = random.Random(0)

    def start(self, most):
        return self

    def next(self, tokens, count):
        for prompt, answer in self._answers:
            if tokens[: len(prompt)] == prompt:
                whole = prompt + answer
                if tokens == whole[: len(tokens)]:
                    break
        else:
            return []
        guessed = whole[len(tokens) : len(tokens) + count]
        return [
            (token + 1) % 100 if self._numbers.random() < self._wrong else token
            for token in guessed
        ]


@pytest.fixture(scope="module")
def expected():
    with Engine(llama(), kv_cache="1MiB", max_sequences=1) as engine:
        return {
            number: collect(engine, [prompt], seed=number, **SAMPLED)[0]
            for number, prompt in enumerate(PROMPTS)
        }


@pytest.mark.parametrize("wrong", [0.0, 0.3, 1.0])
@pytest.mark.parametrize(
    "settings", [{}, {"kv_cache": 14 * BLOCK}, {"chunk_size": 3}, {"token_budget": 20}]
)
def test_tokens_and_bits_are_those_without(expected, wrong, settings):
    answers = [
        (prompt, [token.id for token in expected[number]]) for number, prompt in enumerate(PROMPTS)
    ]
    draft = Told(answers, wrong)
    with Engine(llama(), **{"kv_cache": "1MiB", "draft": draft, **settings}) as engine:
        for _ in range(2):  # the second time from cached prefixes
            assert collect(engine, PROMPTS, **SAMPLED) == expected
        assert engine.cache.used == 0
        if not settings:
            assert engine.drafted > 0 and (engine.accepted > 0) == (wrong < 1)
            assert (engine.accepted == engine.drafted) == (wrong == 0)


def test_right_guesses_save_steps(expected):
    answers = [(PROMPTS[3], [token.id for token in expected[3]])]
    steps = []
    for draft in (None, Told(answers, 1.0), Told(answers, 0.0)):
        with Engine(llama(), kv_cache="1MiB", draft=draft) as engine:
            assert collect(engine, [PROMPTS[3]], seed=3, **SAMPLED)[0] == expected[3]
        steps.append(engine.steps)  # counted behind a step's tokens: read when the engine has ended
    without, wrong, right = steps
    assert without == wrong == len(expected[3]) and right <= without / 4


@pytest.mark.parametrize("asked", [GREEDY, SAMPLED])
def test_look_ups_and_a_model(asked):
    answers = []
    for draft in (None, PromptLookup(), PromptLookup(3, 2, 1), DraftModel(llama(), 3)):
        with Engine(llama(), kv_cache="1MiB", draft=draft) as engine:
            answers.append(collect(engine, PROMPTS, **asked))
            if isinstance(draft, DraftModel):  # the same model, so greedy guesses are right
                assert engine.accepted > 0
                assert asked is SAMPLED or engine.accepted > 0.9 * engine.drafted
    assert answers[1:] == answers[:1] * 3


def test_a_look_up_finds_what_stood_behind():
    guesses = PromptLookup(4, 3, 2).start(100)
    assert guesses.next([1, 2, 3, 4, 5], 4) == []
    assert guesses.next([1, 2, 3, 4, 5, 2, 3], 4) == [4, 5, 2, 3]
    assert guesses.next([1, 2, 3, 4, 5, 2, 3, 9, 2, 3], 4) == [9, 2, 3]  # the latest
    assert guesses.next([1, 2, 3, 4, 5, 2, 3, 9, 2, 3, 4], 2) == [5, 2]  # the longest
    assert PromptLookup(2, 1, 1).start(9).next([7], 2) == []


def test_bad_arguments():
    with pytest.raises(ValueError, match="PromptLookup: expected a count of at least 1 and 1 <="):
        PromptLookup(4, 2, 3)
    with pytest.raises(ValueError, match="DraftModel: expected a count of at least 1, got 0"):
        DraftModel(llama(), 0)
    with pytest.raises(ValueError, match="expected a draft model of 260 tokens, got 100"):
        Engine(TinyDecoder(), kv_cache="1MiB", draft=DraftModel(llama()))
