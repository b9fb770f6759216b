# SPDX-License-Identifier: Apache-2.0
"""Text as numbers: tokenizers, vocabularies and padded batches; tensors of strings."""

from .bpe import BytePairTokenizer
from .pyramid_hash import pyramid_hash
from .sequences import pad_sequences, truncate
from .strings import StringTensor
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
    "StringTensor",
    "Vocabulary",
    "WhitespaceTokenizer",
    "WordTokenizer",
    "pad_sequences",
    "pyramid_hash",
    "truncate",
]
