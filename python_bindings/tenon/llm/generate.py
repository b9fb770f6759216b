# SPDX-License-Identifier: Apache-2.0
"""Text from a model, one sequence at a time. Needs NumPy, as tokens are drawn in it."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import tenon
from tenon.llm.models.decoder import Decoder
from tenon.llm.sampling import Sampler, SamplingOptions
from tenon.llm.sequence import Sequence as Cached
from tenon.llm.template import ChatTemplate
from tenon.llm.tokenizer import AnswerText, Tokenizer


class LanguageModel:
    """A decoder with its tokenizer, its chat template and the sampling that its makers recommend.

    Each of the last three may be absent: a call that needs it says so. Calls from several threads are
    safe, as each has pools of its own.
    """

    def __init__(
        self,
        decoder: Decoder,
        tokenizer: Tokenizer | None = None,
        template: ChatTemplate | None = None,
        sampling: SamplingOptions | None = None,
    ) -> None:
        self.decoder = decoder
        self.tokenizer = tokenizer
        self.template = template
        self.sampling = sampling or SamplingOptions(temperature=0.0)

    def generate(self, prompt: str | Sequence[int], **options: Any) -> str:
        """The answer as one text; arguments as those of stream()."""
        return "".join(self.stream(prompt, **options))

    def chat(self, messages: Sequence[Mapping[str, Any]], **options: Any) -> str:
        """The answer to `messages`, each {"role": ..., "content": ...}; options of stream()."""
        return self.generate(self.chat_prompt(messages), **options)

    def chat_prompt(self, messages: Sequence[Mapping[str, Any]]) -> list[int]:
        """The tokens that the chat template makes of `messages`."""
        if self.template is None:
            raise ValueError("chat: expected a model with a chat template, this one has none")
        # The template itself writes the tokens around a text, such as BOS.
        return self._tokenizer("chat").encode(self.template.render(messages), special=False)

    def stream(
        self,
        prompt: str | Sequence[int],
        *,
        max_tokens: int | None = None,
        stop: str | Sequence[str] = (),
        **sampling: Any,
    ) -> Iterator[str]:
        """Pieces of the answer to `prompt`, a text or tokens.

        It ends before the first of the texts `stop`, at a token of `config.eos_token_ids`, or after
        `max_tokens` (default: what the context leaves). `sampling` are fields of SamplingOptions, in place of
        those of the model. What is wrong with an argument is raised by the call, before any piece.
        """
        tokenizer = self._tokenizer("stream")
        tokens = tokenizer.encode(prompt) if isinstance(prompt, str) else list(prompt)
        text = AnswerText(tokenizer, [stop] if isinstance(stop, str) else stop)
        return _pieces(self.tokens(tokens, max_tokens=max_tokens, **sampling), text)

    def tokens(
        self, prompt: Sequence[int], *, max_tokens: int | None = None, **sampling: Any
    ) -> Iterator[int]:
        """Tokens of the answer to the tokens `prompt`, without the one that ends it."""
        how = dataclasses.replace(self.sampling, **sampling)
        config, used = self.decoder.config, len(prompt)
        if not used:
            raise ValueError("prompt: expected at least one token, got none")
        most = config.max_positions - used
        wanted = most if max_tokens is None else max_tokens
        if type(wanted) is not int or wanted < 0 or wanted > most:
            raise ValueError(
                f"max_tokens: expected 0 to {most}, as the prompt has {used} of "
                f"{config.max_positions} positions, got {wanted}"
            )
        return self._answer(list(prompt), wanted, how)

    def embed(self, text: str | Sequence[int], pooling: str = "last") -> list[float]:
        """A vector of length one for a text or tokens: the hidden state behind the last token, or the
        "mean" of those behind all."""
        if pooling not in ("last", "mean"):
            raise ValueError(f"embed: expected 'last' or 'mean' as pooling, got '{pooling}'")
        tokens = self._tokenizer("embed").encode(text) if isinstance(text, str) else list(text)
        most = self.decoder.config.max_positions
        if not 1 <= len(tokens) <= most:
            raise ValueError(f"embed: expected 1 to {most} tokens, got {len(tokens)}")
        count = 1 if pooling == "last" else len(tokens)
        state = Cached(self.decoder, len(tokens)).embed(tokens, count).to(tenon.float64).mean(0)
        return (state / tenon.sqrt((state * state).sum())).tolist()

    def _answer(self, tokens: list[int], count: int, how: SamplingOptions) -> Iterator[int]:
        if count == 0:
            return
        run = Cached(self.decoder, len(tokens) + count)
        sampler = Sampler(how, tokens)
        logits = run.append(tokens)
        for place in range(len(tokens), len(tokens) + count):
            token, _, _ = sampler.draw(logits.numpy()[0], place)
            if token in self.decoder.config.eos_token_ids:
                return
            yield token
            if place + 1 < len(tokens) + count:
                logits = run.append([token])

    def _tokenizer(self, caller: str) -> Tokenizer:
        if self.tokenizer is None:
            raise ValueError(f"{caller}: expected a model with a tokenizer.json; use tokens()")
        return self.tokenizer


def _pieces(tokens: Iterator[int], text: AnswerText) -> Iterator[str]:
    for token in tokens:
        piece = text.add(token)
        if piece:
            yield piece
        if text.stopped:
            return
    piece = text.finish()
    if piece:
        yield piece
