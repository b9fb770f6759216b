# SPDX-License-Identifier: Apache-2.0
"""Tokens become text as they come."""

from __future__ import annotations

from collections.abc import Callable, Sequence


class TextStream:
    """Pieces of text whose sum is `decode` of all tokens, up to the first of `stops`.

    What is no whole character yet is held back, and so is what may be the beginning of a stop.
    `stopped` says that one was found; it is no part of the text.
    """

    def __init__(self, decode: Callable[[list[int]], str], stops: Sequence[str] = ()):
        self._decode = decode
        self._stops = stops
        self._tokens: list[int] = []
        self._start = 0  # from here on tokens are decoded again, as spaces depend on neighbours
        self._read = 0  # tokens whose text has left the decoder
        self._held = ""
        self.stopped = False

    def add(self, token: int) -> str:
        self._tokens.append(token)
        return self._pass(self._decoded(last=False), last=False)

    def finish(self) -> str:
        """What was held back; U+FFFD stands for a character that never became whole."""
        return "" if self.stopped else self._pass(self._decoded(last=True), last=True)

    def _decoded(self, last):
        before = self._decode(self._tokens[self._start : self._read])
        after = self._decode(self._tokens[self._start :])
        if not last and (len(after) <= len(before) or after.endswith("\ufffd")):
            return ""
        self._start, self._read = self._read, len(self._tokens)
        return after[len(before) :]

    def _pass(self, text, last):
        if not self._stops:
            return text
        text = self._held + text
        found = [place for place in (text.find(stop) for stop in self._stops) if place >= 0]
        if found:
            self.stopped = True
            self._held = ""
            return text[: min(found)]
        held = 0 if last else max(_overlap(text, stop) for stop in self._stops)
        self._held = text[len(text) - held :]
        return text[: len(text) - held]


def _overlap(text, stop):
    """How many characters at the end of `text` are the beginning of `stop`."""
    for length in range(min(len(stop) - 1, len(text)), 0, -1):
        if text.endswith(stop[:length]):
            return length
    return 0
