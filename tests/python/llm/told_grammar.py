# SPDX-License-Identifier: Apache-2.0
"""A grammar of one answer, for tests of what follows grammars."""

import numpy
from tenon.llm.grammar import Grammar


class Told(Grammar):
    """Allows the tokens of a text one by one, then the end."""

    def __init__(self, tokens):
        self.tokens = list(tokens)

    def copy(self):
        return Told(self.tokens)

    def allowed(self):
        return numpy.array(self.tokens[:1])

    def accept(self, token):
        assert token == self.tokens.pop(0)
