# SPDX-License-Identifier: Apache-2.0
"""tenon.llm: tokens become text as they come."""

import random

import pytest
from tenon.llm import StopStrings, TextStream


class Bytes:
    """A tokenizer whose tokens are bytes."""

    def decode(self, tokens):
        return bytes(tokens).decode("utf-8", "replace")


decode = Bytes().decode


def pieces(tokens, stops=()):
    stream, ends = TextStream(Bytes()), StopStrings(stops)
    found = []
    for token in tokens:
        found.append(ends.add(stream.add(token)))
        if ends.found:
            return found
    return [*found, ends.add(stream.finish()) + ends.finish()]


def test_characters_come_whole():
    assert pieces("a👍b".encode()) == ["a", "", "", "", "👍", "b", ""]
    assert pieces("👍".encode()[:3]) == ["", "", "", "\ufffd"]


@pytest.mark.parametrize("seed", range(20))
def test_pieces_join_to_the_text(seed):
    draw = random.Random(seed)
    text = "".join(draw.choice("aé👍 한\n") for _ in range(40)).encode()
    assert "".join(pieces(text)) == decode(text)
    broken = [draw.randrange(256) for _ in range(60)]
    assert "".join(pieces(broken)) == decode(broken)


def test_stops_over_several_tokens():
    assert "".join(pieces(b"one STOP two", ["STOP"])) == "one "
    assert "".join(pieces(b"one STO", ["STOP"])) == "one STO"
    assert "".join(pieces(b"aab", ["ab"])) == "a"
    assert "".join(pieces(b"xyz", ["zz", "yz"])) == "x"
    assert "".join(pieces("é👍!".encode(), ["👍"])) == "é"
