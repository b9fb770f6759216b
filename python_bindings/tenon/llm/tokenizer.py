# SPDX-License-Identifier: Apache-2.0
"""Text to tokens and back, by the library `tokenizers`, and text from tokens as they come."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Sequence
from typing import Any

_REPLACEMENT = "\ufffd"
_PREFIX = re.compile(rb'"continuing_subword_prefix"\s*:\s*"[^"]')


class Tokenizer:
    """A tokenizer.json, by its path or as `text`. Needs the library `tokenizers`:
    `pip install 'tenon-dl[llm]'`."""

    def __init__(
        self, path: str | os.PathLike[str] | None = None, *, text: str | None = None
    ) -> None:
        try:
            import tokenizers
        except ImportError as error:
            raise ImportError(
                "Tokenizer: expected the library `tokenizers`; run `pip install 'tenon-dl[llm]'`"
            ) from error
        if (path is None) == (text is None):
            raise ValueError("Tokenizer: expected a path or a text, one of both")
        kind = tokenizers.Tokenizer
        try:
            _check_merges((text or "").encode() if path is None else _bytes_of(path))
            self._tokenizer: Any = (
                kind.from_str(text or "") if path is None else kind.from_file(str(path))
            )
        except BaseException as error:
            where = path or "tokenizer"
            raise _refusal(error, f"{where}: expected a tokenizer of the library") from None

    def __len__(self) -> int:
        return self._tokenizer.get_vocab_size()

    def encode(self, text: str, special: bool = True) -> list[int]:
        """Tokens of a text; `special` adds those that the tokenizer puts around it, such as BOS."""
        try:
            return self._tokenizer.encode(text, add_special_tokens=special).ids
        except BaseException as error:
            raise _refusal(error, "tokenizer: expected a text that it can split") from None

    def decode(self, tokens: Iterable[int]) -> str:
        """The text of tokens, without special ones."""
        tokens = list(tokens)
        try:
            return self._tokenizer.decode(tokens)
        except BaseException as error:
            raise _refusal(error, "tokenizer: expected tokens that it can join") from None

    def to_json(self) -> str:
        """The tokenizer as the text of a tokenizer.json."""
        return self._tokenizer.to_str()

    def token(self, text: str) -> int | None:
        """The token of this very text."""
        return self._tokenizer.token_to_id(text)


def _bytes_of(path: str | os.PathLike[str]) -> bytes:
    with open(path, "rb") as file:
        return file.read()


def _check_merges(content: bytes) -> None:
    """ValueError: a merge whose second part ends within a character once the prefix of inner pieces is cut off. The library
    cuts bytes there, and ends the process as it reports that."""
    if not _PREFIX.search(content):
        return
    model = json.loads(content)["model"]
    cut = len(model["continuing_subword_prefix"].encode())
    for merge in model.get("merges", ()):
        second = merge.split(" ", 1)[-1] if isinstance(merge, str) else merge[-1]
        try:
            second.encode()[cut:].decode()
        except UnicodeDecodeError:
            raise ValueError(
                f"the merge {merge!r}, whose second part does not begin with the prefix {model['continuing_subword_prefix']!r}"
            ) from None


def _refusal(error: BaseException, expected: str) -> BaseException:
    """A ValueError for what the library raises: plain Exceptions, and panics of Rust, which are none."""
    if isinstance(error, Exception) or type(error).__name__ == "PanicException":
        return ValueError(f"{expected}, got {type(error).__name__}: {error}")
    return error


class TextStream:
    """The text of tokens that come one by one.

    A character may take several tokens: its bytes are held back until it is whole. Pieces joined are
    the text of all tokens.
    """

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        self._tokens: list[int] = []
        self._context = 0  # where the tokens begin that a decoder needs before the next ones
        self._told = 0  # how many tokens are in pieces

    def add(self, token: int) -> str:
        """What is certain now and was not before."""
        self._tokens.append(token)
        piece = self._rest()
        if not piece or piece.endswith(_REPLACEMENT):
            return ""
        self._context, self._told = self._told, len(self._tokens)
        return piece

    def finish(self) -> str:
        """What was held back; incomplete characters are U+FFFD."""
        piece = self._rest()
        self._context, self._told = self._told, len(self._tokens)
        return piece

    def _rest(self) -> str:
        before = self._tokenizer.decode(self._tokens[self._context : self._told])
        return self._tokenizer.decode(self._tokens[self._context :])[len(before) :]


class StopStrings:
    """Ends a text before the first of some strings, which may lie across pieces."""

    def __init__(self, strings: Sequence[str] = ()) -> None:
        for text in strings:
            if not isinstance(text, str) or not text:
                raise ValueError(f"stop: expected texts that are not empty, got {text!r}")
        self._strings = list(strings)
        self._held = ""
        self.found = False

    def add(self, piece: str) -> str:
        """What no string can begin in any more; all is told once one is `found`."""
        if self.found:
            return ""
        self._held += piece
        indices = [place for text in self._strings if (place := self._held.find(text)) >= 0]
        if indices:
            self.found = True
            told, self._held = self._held[: min(indices)], ""
            return told
        keep = max((self._beginning(text) for text in self._strings), default=0)
        told = self._held[: len(self._held) - keep]
        self._held = self._held[len(self._held) - keep :]
        return told

    def finish(self) -> str:
        """What was held back."""
        told, self._held = self._held, ""
        return told

    def _beginning(self, text: str) -> int:
        """How many of the last characters may be the first of `text`."""
        for count in range(min(len(text) - 1, len(self._held)), 0, -1):
            if self._held.endswith(text[:count]):
                return count
        return 0


class AnswerText:
    """The text of an answer whose tokens come one by one, and which ends before a stop."""

    def __init__(self, tokenizer: Any, stops: Sequence[str] = ()) -> None:
        self._stream = TextStream(tokenizer)
        self._stops = StopStrings(stops)

    @property
    def stopped(self) -> bool:
        return self._stops.found

    def add(self, token: int) -> str:
        """What is certain now and was not before."""
        return self._stops.add(self._stream.add(token))

    def finish(self) -> str:
        """What was held back."""
        return self._stops.add(self._stream.finish()) + self._stops.finish()
