# SPDX-License-Identifier: Apache-2.0
"""Tokenizers that need no training, and those of the library `tokenizers`."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any


class WhitespaceTokenizer:
    """What stands between spaces and line breaks."""

    def __call__(self, text: str) -> list[str]:
        return text.split()

    def join(self, tokens: Iterable[str]) -> str:
        """A text of tokens, with one space between them."""
        return " ".join(tokens)


class CharacterTokenizer:
    """Single characters."""

    def __call__(self, text: str) -> list[str]:
        return list(text)

    def join(self, tokens: Iterable[str]) -> str:
        """The text of the characters."""
        return "".join(tokens)


class WordTokenizer:
    """Words and numbers, with apostrophes inside, and every other character that is no space; in
    lower case unless `lowercase` is false."""

    _pattern = re.compile(r"\w+(?:['’]\w+)*|[^\w\s]")

    def __init__(self, lowercase: bool = True) -> None:
        self.lowercase = lowercase

    def __call__(self, text: str) -> list[str]:
        return self._pattern.findall(text.lower() if self.lowercase else text)


class LibraryTokenizer:
    """A tokenizer of the library `tokenizers`, read from its JSON file. Needs the library."""

    def __init__(self, path: str | Path) -> None:
        try:
            import tokenizers
        except ImportError as error:
            raise ImportError(
                "LibraryTokenizer: expected the library `tokenizers`; run `pip install tokenizers`, or "
                "train a BytePairTokenizer"
            ) from error
        self._tokenizer: Any = tokenizers.Tokenizer.from_file(str(path))

    def __len__(self) -> int:
        return self._tokenizer.get_vocab_size()

    def __call__(self, text: str) -> list[str]:
        return self._tokenizer.encode(text).tokens

    def encode(self, text: str) -> list[int]:
        """The numbers of the tokens of a text."""
        return self._tokenizer.encode(text).ids

    def decode(self, numbers: Iterable[int]) -> str:
        """The text of numbers."""
        return self._tokenizer.decode(list(numbers))
