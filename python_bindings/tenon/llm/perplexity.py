# SPDX-License-Identifier: Apache-2.0
"""How well a model foretells a text."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import tenon
from tenon.llm.generate import LanguageModel
from tenon.llm.sequence import Sequence as Cached


class Perplexity(NamedTuple):
    """`value` is exp of the mean of `-log p(token)` over `tokens` tokens, `standard_error` that of
    `value`, taking tokens as independent."""

    value: float
    standard_error: float
    tokens: int


def perplexity(
    model: LanguageModel,
    text: str | Sequence[int],
    *,
    context: int = 512,
    stride: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Perplexity:
    """The perplexity of `text`, or of tokens, in windows of `context` tokens.

    Without `stride` windows lie side by side, and the tokens of each one's second half are scored, as
    llama.cpp's `perplexity` does: what is left at the end is not used. With it a window begins each
    `stride` tokens, and its last `stride` tokens are scored. Where the tokenizer begins texts with BOS, so
    does each window, in place of its first token. `progress(done, windows)` is called after each.
    """
    tokens, begin = _tokens_of(model, text)
    most = model.decoder.config.max_positions
    if not 2 <= context <= most:
        raise ValueError(f"perplexity: expected a context of 2 to {most} tokens, got {context}")
    if stride is not None and not 1 <= stride < context:
        raise ValueError(f"perplexity: expected a stride of 1 to {context - 1}, got {stride}")
    if len(tokens) < context:
        raise ValueError(
            f"perplexity: expected at least one window of {context} tokens, got {len(tokens)}; give a "
            "longer text or a smaller context"
        )
    # A window's first half is there for what the second sees.
    scored = context - context // 2 - 1 if stride is None else stride
    if not scored:
        raise ValueError(
            f"perplexity: a context of {context} tokens scores none; give a larger one"
        )
    starts = range(0, len(tokens) - context + 1, context if stride is None else stride)
    total = squares = 0.0
    for done, start in enumerate(starts, 1):
        window = tokens[start : start + context]
        if begin is not None:
            window[0] = begin
        lost = _lost(model, window, scored)
        total += sum(lost)
        squares += sum(each * each for each in lost)
        if progress is not None:
            progress(done, len(starts))
    count = scored * len(starts)
    mean = total / count
    variance = max(0.0, squares / count - mean * mean)
    value = math.exp(mean) if mean < 700 else math.inf
    return Perplexity(value, value * math.sqrt(variance / max(1, count - 1)), count)


def _tokens_of(model: LanguageModel, text: str | Sequence[int]) -> tuple[list[int], int | None]:
    """The tokens, and BOS where texts begin with it."""
    if not isinstance(text, str):
        return list(text), None
    if model.tokenizer is None:
        raise ValueError("perplexity: expected a model with a tokenizer, or tokens")
    tokens = model.tokenizer.encode(text)
    begin = model.decoder.config.bos_token_id
    return tokens, begin if tokens[:1] == [begin] else None


def _lost(model: LanguageModel, window: list[int], scored: int) -> list[float]:
    """`-log p` of the last `scored` tokens of a window."""
    run = Cached(model.decoder, len(window))
    logits = run.append(window[:-1], scored)
    targets = tenon.tensor(window[-scored:], dtype=tenon.int64).unsqueeze(1)
    chosen = tenon.gather(logits, targets, 1).squeeze(1)
    return (tenon.logsumexp(logits, 1) - chosen).to(tenon.float64).tolist()
