# SPDX-License-Identifier: Apache-2.0
"""Answers of completions and of chats, whole and as chunks of a stream."""

from __future__ import annotations

import secrets
import time

from .generation import Piece


class Format:
    """What both have in common. `decode` makes the text of one token for log-probabilities."""

    prefix = kind = chunk_kind = ""

    def __init__(self, model: str, fingerprint: str, decode, logprobs: bool):
        self.decode = decode
        self.logprobs = logprobs
        self.offsets: dict[int, int] = {}  # characters of each choice so far
        self.head = {
            "id": self.prefix + secrets.token_hex(12),
            "created": int(time.time()),
            "model": model,
            "system_fingerprint": fingerprint,
        }

    def whole(self, pieces: list[list[Piece]], usage: dict) -> dict:
        choices = []
        for index, parts in enumerate(pieces):
            tokens = [token for part in parts for token in part.tokens]
            text = "".join(part.text for part in parts)
            joined = Piece(index, text, tokens, parts[-1].finish_reason, parts[-1].calls)
            choices.append({"index": index, **self.answer(joined), **self._rest(joined)})
        return {**self.head, "object": self.kind, "choices": choices, "usage": usage}

    def chunk(self, piece: Piece, usage_follows: bool) -> dict:
        choice = {"index": piece.index, **self.part(piece), **self._rest(piece)}
        chunk = {**self.head, "object": self.chunk_kind, "choices": [choice]}
        return {**chunk, "usage": None} if usage_follows else chunk

    def usage_chunk(self, usage: dict) -> dict:
        return {**self.head, "object": self.chunk_kind, "choices": [], "usage": usage}

    def first_chunks(self, count: int) -> list[dict]:
        return []

    def _rest(self, piece):
        shown = self.shown_logprobs(piece) if self.logprobs else None
        return {"logprobs": shown, "finish_reason": piece.finish_reason}

    def answer(self, piece: Piece) -> dict:
        raise NotImplementedError

    part = answer

    def shown_logprobs(self, piece: Piece) -> dict:
        raise NotImplementedError


class CompletionFormat(Format):
    prefix, kind, chunk_kind = "cmpl-", "text_completion", "text_completion"

    def answer(self, piece):
        return {"text": piece.text}

    part = answer

    def shown_logprobs(self, piece):
        texts = [self.decode([token.id]) for token in piece.tokens]
        offset = self.offsets.get(piece.index, 0)
        offsets = []
        for text in texts:
            offsets.append(offset)
            offset += len(text)
        self.offsets[piece.index] = offset
        return {
            "tokens": texts,
            "token_logprobs": [_finite(token.logprob) for token in piece.tokens],
            "top_logprobs": [
                {self.decode([one]): _finite(logprob) for one, logprob in token.top}
                for token in piece.tokens
            ],
            "text_offset": offsets,
        }


class ChatFormat(Format):
    prefix, kind, chunk_kind = "chatcmpl-", "chat.completion", "chat.completion.chunk"

    def answer(self, piece):
        message = {"role": "assistant", "content": piece.text, "refusal": None}
        if piece.calls:
            message |= {"content": piece.text or None, "tool_calls": piece.calls}
        return {"message": message}

    def part(self, piece):
        delta: dict = {"content": piece.text} if piece.text else {}
        if piece.calls:
            delta["tool_calls"] = [
                {"index": index, **call} for index, call in enumerate(piece.calls)
            ]
        return {"delta": delta}

    def first_chunks(self, count):
        choice = {"delta": {"role": "assistant", "content": ""}, "logprobs": None}
        return [
            {
                **self.head,
                "object": self.chunk_kind,
                "choices": [{"index": index, **choice, "finish_reason": None}],
            }
            for index in range(count)
        ]

    def shown_logprobs(self, piece):
        return {
            "content": [
                {
                    **self._shown(token.id, token.logprob),
                    "top_logprobs": [self._shown(one, logprob) for one, logprob in token.top],
                }
                for token in piece.tokens
            ],
            "refusal": None,
        }

    def _shown(self, token, logprob):
        text = self.decode([token])
        return {"token": text, "logprob": _finite(logprob), "bytes": list(text.encode())}


def _finite(logprob):
    """JSON has no infinity; OpenAI's API writes -9999 for it."""
    return max(logprob, -9999.0)
