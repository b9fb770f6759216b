# SPDX-License-Identifier: Apache-2.0
"""How well a model foretells a text, and how far what it foretells is from another model."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import tenon
from tenon import Tensor
from tenon.llm.generate import LanguageModel
from tenon.llm.sequence import Sequence as Cached


class Perplexity(NamedTuple):
    """`value` is exp of the mean of `-log p(token)` over `tokens` tokens, `standard_error` that of
    `value`, taking tokens as independent."""

    value: float
    standard_error: float
    tokens: int


class Divergence(NamedTuple):
    """Over `tokens` tokens: the mean of the Kullback-Leibler divergences, in nats, from the probabilities of
    another model to those of this one, its standard error, and the share of tokens where both hold the same
    token for the likeliest. `ratio` is the perplexity of this model divided by that of the other one, and
    `ratio_error` its standard error, from the differences of each token: far smaller than what the errors of
    two perplexities would give."""

    mean: float
    standard_error: float
    same_top: float
    tokens: int
    ratio: float
    ratio_error: float


def divergence(
    model: LanguageModel,
    beside: LanguageModel,
    text: str | Sequence[int],
    *,
    context: int = 512,
    kv_dtype: str = "float32",
) -> Divergence:
    """How far what `model` foretells of `text` is from what `beside` does: the mean of KL(beside || model) over
    the tokens that `perplexity` scores without a stride. `kv_dtype` is that of the first model's keys and values.
    Both need the same tokens, and texts are split by `beside`.
    """
    sizes = [each.decoder.config.vocab_size for each in (model, beside)]
    if sizes[0] != sizes[1]:
        raise ValueError(
            f"divergence: expected two models of one vocabulary, got {sizes[0]} and {sizes[1]} tokens; take a model "
            "that was trained with the same tokenizer"
        )
    most = model.decoder.config.max_positions
    if context > most:
        raise ValueError(f"divergence: expected a context of 2 to {most} tokens, got {context}")
    divergences, rises, same = _Mean(), _Mean(), _Mean()
    for window, scored in _windows("divergence", beside, text, context, None):
        ours = tenon.log_softmax(_logits(model, window, scored, kv_dtype).to(tenon.float64), 1)
        theirs = tenon.log_softmax(_logits(beside, window, scored).to(tenon.float64), 1)
        # A token that the other model excludes adds nothing, and not 0 * inf.
        terms = tenon.where(theirs > -math.inf, tenon.exp(theirs) * (theirs - ours), 0.0)
        divergences.add(terms.sum(1).tolist())
        targets = tenon.tensor(window[-scored:], dtype=tenon.int64).unsqueeze(1)
        rises.add(
            (tenon.gather(theirs, targets, 1) - tenon.gather(ours, targets, 1)).squeeze(1).tolist()
        )
        same.add((ours.argmax(1) == theirs.argmax(1)).to(tenon.float64).tolist())
    ratio = _exp(rises.mean)
    return Divergence(
        divergences.mean, divergences.error, same.mean, same.count, ratio, ratio * rises.error
    )


def perplexity(
    model: LanguageModel,
    text: str | Sequence[int],
    *,
    context: int = 512,
    stride: int | None = None,
    kv_dtype: str = "float32",
    progress: Callable[[int, int], None] | None = None,
) -> Perplexity:
    """The perplexity of `text`, or of tokens, in windows of `context` tokens.

    Without `stride` windows lie side by side, and the tokens of each one's second half are scored, as
    llama.cpp's `perplexity` does: what is left at the end is not used. With it a window begins each
    `stride` tokens, and its last `stride` tokens are scored. Where the tokenizer begins texts with BOS, so
    does each window, in place of its first token. Keys and values are kept in `kv_dtype`.
    `progress(done, windows)` is called after each.
    """
    lost = _Mean()
    windows = _windows("perplexity", model, text, context, stride)
    for done, (window, scored) in enumerate(windows, 1):
        lost.add(_lost(model, window, scored, kv_dtype))
        if progress is not None:
            progress(done, len(windows))
    value = _exp(lost.mean)
    return Perplexity(value, value * lost.error, lost.count)


class _Mean:
    """The mean of numbers, and its standard error."""

    def __init__(self) -> None:
        self.count, self._total, self._squares = 0, 0.0, 0.0

    def add(self, numbers: list[float]) -> None:
        self.count += len(numbers)
        self._total += sum(numbers)
        self._squares += sum(each * each for each in numbers)

    @property
    def mean(self) -> float:
        return self._total / self.count

    @property
    def error(self) -> float:
        variance = max(0.0, self._squares / self.count - self.mean**2)
        return math.sqrt(variance / max(1, self.count - 1))


def _exp(x: float) -> float:
    return math.exp(x) if x < 700 else math.inf


def _windows(
    caller: str,
    model: LanguageModel,
    text: str | Sequence[int],
    context: int,
    stride: int | None,
) -> list[tuple[list[int], int]]:
    """Windows of tokens, and how many of the last of each count."""
    tokens, begin = _tokens_of(model, text)
    most = model.decoder.config.max_positions
    if not 2 <= context <= most:
        raise ValueError(f"{caller}: expected a context of 2 to {most} tokens, got {context}")
    if stride is not None and not 1 <= stride < context:
        raise ValueError(f"{caller}: expected a stride of 1 to {context - 1}, got {stride}")
    if len(tokens) < context:
        raise ValueError(
            f"{caller}: expected at least one window of {context} tokens, got {len(tokens)}; give a "
            "longer text or a smaller context"
        )
    # A window's first half is there for what the second sees.
    scored = context - context // 2 - 1 if stride is None else stride
    if not scored:
        raise ValueError(f"{caller}: a context of {context} tokens scores none; give a larger one")
    starts = range(0, len(tokens) - context + 1, context if stride is None else stride)
    windows = []
    for start in starts:
        window = tokens[start : start + context]
        if begin is not None:
            window[0] = begin
        windows.append((window, scored))
    return windows


def _tokens_of(model: LanguageModel, text: str | Sequence[int]) -> tuple[list[int], int | None]:
    """The tokens, and BOS where texts begin with it."""
    if not isinstance(text, str):
        return list(text), None
    if model.tokenizer is None:
        raise ValueError("perplexity: expected a model with a tokenizer, or tokens")
    tokens = model.tokenizer.encode(text)
    begin = model.decoder.config.bos_token_id
    return tokens, begin if tokens[:1] == [begin] else None


def _logits(
    model: LanguageModel, window: list[int], scored: int, kv_dtype: str = "float32"
) -> Tensor:
    """Those of the last `scored` tokens of a window."""
    return Cached(model.decoder, len(window), kv_dtype).append(window[:-1], scored)


def _lost(model: LanguageModel, window: list[int], scored: int, kv_dtype: str) -> list[float]:
    """`-log p` of the last `scored` tokens of a window."""
    logits = _logits(model, window, scored, kv_dtype)
    targets = tenon.tensor(window[-scored:], dtype=tenon.int64).unsqueeze(1)
    chosen = tenon.gather(logits, targets, 1).squeeze(1)
    return (tenon.logsumexp(logits, 1) - chosen).to(tenon.float64).tolist()
