# SPDX-License-Identifier: Apache-2.0
"""Text from a model, one sequence at a time."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import tenon
from tenon import Tensor
from tenon.llm.models.decoder import Decoder
from tenon.llm.sample import Sampling
from tenon.llm.template import ChatTemplate
from tenon.llm.tokenizer import StopStrings, TextStream, Tokenizer

BLOCK = 16  # tokens
CHUNK = 512  # tokens of a prompt in one step


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
        sampling: Sampling | None = None,
    ) -> None:
        self.decoder = decoder
        self.tokenizer = tokenizer
        self.template = template
        self.sampling = sampling or Sampling()

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
        `max_tokens` (default: what the context leaves). `sampling` are fields of Sampling, in place of
        those of the model. What is wrong with an argument is raised by the call, before any piece.
        """
        tokenizer = self._tokenizer("stream")
        tokens = tokenizer.encode(prompt) if isinstance(prompt, str) else list(prompt)
        stops = StopStrings([stop] if isinstance(stop, str) else stop)
        answer = self.tokens(tokens, max_tokens=max_tokens, **sampling)
        return _pieces(answer, TextStream(tokenizer), stops)

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

    def _answer(self, tokens: list[int], count: int, how: Sampling) -> Iterator[int]:
        if count == 0:
            return
        run = _Sequence(self.decoder, len(tokens) + count)
        logits = run.append(tokens)
        for made in range(count):
            token = how.choose(logits, tokens, len(tokens))
            if token in self.decoder.config.eos_token_ids:
                return
            tokens.append(token)
            yield token
            if made + 1 < count:
                logits = run.append([token])

    def _tokenizer(self, caller: str) -> Tokenizer:
        if self.tokenizer is None:
            raise ValueError(f"{caller}: expected a model with a tokenizer.json; use tokens()")
        return self.tokenizer


class _Sequence:
    """One sequence in pools of its own, which grow to at most `most` tokens."""

    def __init__(self, decoder: Decoder, most: int) -> None:
        self._decoder = decoder
        self._blocks = -(-most // BLOCK)
        self._pools = decoder.new_pools(self._blocks, BLOCK)
        self._length = 0

    def append(self, tokens: Sequence[int]) -> Tensor:
        """Logits [vocab] after the last of `tokens`."""
        for first in range(0, len(tokens), CHUNK):
            logits = self._step(tokens[first : first + CHUNK])
        return logits[0]

    def _step(self, tokens: Sequence[int]) -> Tensor:
        rows = len(tokens)
        positions = tenon.arange(self._length, self._length + rows, dtype=tenon.int32)
        self._length += rows
        return self._decoder.forward(
            _int32(tokens),
            positions,
            positions,  # blocks in order: a token's slot is its position
            _int32([0, rows]),
            tenon.arange(self._blocks, dtype=tenon.int32).unsqueeze(0),
            _int32([self._length]),
            _int32([rows - 1]),
            self._pools,
        )


def _int32(values: Sequence[int]) -> Tensor:
    return tenon.tensor(list(values), dtype=tenon.int32)


def _pieces(tokens: Iterator[int], text: TextStream, stops: StopStrings) -> Iterator[str]:
    for token in tokens:
        piece = stops.add(text.add(token))
        if piece:
            yield piece
        if stops.found:
            return
    piece = stops.add(text.finish()) + stops.finish()
    if piece:
        yield piece
