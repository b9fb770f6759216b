# SPDX-License-Identifier: Apache-2.0
"""Answers that can only be JSON, or JSON of a schema: which tokens may follow.

The library `llguidance` follows the grammar (docs/decisions/0154-grammars-are-masks-of-llguidance.md):
`pip install 'tenon-dl[grammar]'`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
else:
    from tenon._tensor import numpy as np

ANY_OBJECT: dict[str, Any] = {"type": "object"}


class Grammars:
    """Makes grammars over the tokens of a tokenizer.json, given as `text`, and of a model with
    `vocab_size` logits that ends answers with the token `end`. Raises ImportError without `llguidance`."""

    def __init__(self, text: str, vocab_size: int, end: int) -> None:
        try:
            import llguidance
        except ImportError as error:
            raise ImportError(
                "Grammars: expected the library `llguidance`; run `pip install 'tenon-dl[grammar]'`"
            ) from error
        self._library: Any = llguidance
        self._size = vocab_size
        self._tokens = llguidance.LLTokenizer(text, n_vocab=vocab_size, eos_token=end)

    def json(self, schema: Mapping[str, Any] = ANY_OBJECT) -> Grammar:
        """An answer that is JSON of `schema`. Raises ValueError for one that is no schema, or has what
        the library does not follow."""
        matcher_type = self._library.LLMatcher
        try:
            text = matcher_type.grammar_from_json_schema(json.dumps(schema))
        except ValueError as error:
            raise ValueError(f"expected a JSON schema: {error}") from None
        matcher = matcher_type(self._tokens, text, log_level=0)
        if matcher.is_error():
            raise ValueError(f"expected a JSON schema that can be followed: {matcher.get_error()}")
        return Grammar(matcher, self._size)


class Grammar:
    """How far one answer is in its grammar. One thread at a time."""

    def __init__(self, matcher: Any, size: int) -> None:
        self._matcher = matcher
        self._size = size

    def copy(self) -> Grammar:
        """The same state for another answer."""
        return Grammar(self._matcher.deep_copy(), self._size)

    def allowed(self) -> np.ndarray:
        """The tokens that may follow, ascending: the end of text alone once the grammar is complete."""
        bits = np.frombuffer(self._matcher.compute_bitmask(), np.uint8)
        self._check()
        return np.flatnonzero(np.unpackbits(bits, bitorder="little")[: self._size])

    def accept(self, token: int) -> None:
        """Go on behind `token`, one of those allowed."""
        self._matcher.consume_token(token)
        self._check()

    def _check(self) -> None:
        if self._matcher.is_error():
            raise RuntimeError(f"the grammar cannot go on: {self._matcher.get_error()}")
