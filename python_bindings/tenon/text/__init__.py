# SPDX-License-Identifier: Apache-2.0
"""Text as numbers: tokenizers, vocabularies and padded batches."""

from .bpe import BytePairTokenizer
from .sequences import pad_sequences, truncate
from .tokenizers import (
    CharacterTokenizer,
    LibraryTokenizer,
    WhitespaceTokenizer,
    WordTokenizer,
)
from .vocabulary import Vocabulary

__all__ = [
    "BytePairTokenizer",
    "CharacterTokenizer",
    "LibraryTokenizer",
    "Vocabulary",
    "WhitespaceTokenizer",
    "WordTokenizer",
    "pad_sequences",
    "truncate",
]
