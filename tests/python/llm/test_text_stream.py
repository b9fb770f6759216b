# SPDX-License-Identifier: Apache-2.0
"""tenon.llm: tokens become text as they come."""

import json
import random

import pytest
from tenon.llm import StopStrings, TextStream, Tokenizer


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


def test_a_tokenizer_that_fails_says_so():
    pytest.importorskip("tokenizers")
    words = {"type": "WordPiece", "vocab": {"a": 0}, "unk_token": "[UNK]"}
    words |= {"continuing_subword_prefix": "##", "max_input_chars_per_word": 9}
    made = Tokenizer(text=json.dumps({"version": "1.0", "added_tokens": [], "model": words}))
    assert made.encode("a") == [0]
    with pytest.raises(ValueError, match="expected a text that it can split, got .*UNK"):
        made.encode("b")
    with pytest.raises(ValueError, match="tokenizer: expected tokens that it can join, got"):
        made.decode([-1])


def test_merges_that_would_cut_a_character_are_refused(tmp_path):
    """The library ends the process as it reports them."""
    pytest.importorskip("tokenizers")
    vocabulary = {"'": 0, "\u0120": 1, "a": 2, "'b": 3, "ab": 4}

    def written(merges):
        model = {
            "type": "BPE",
            "continuing_subword_prefix": "'",
            "vocab": vocabulary,
            "merges": merges,
        }
        path = tmp_path / "tokenizer.json"
        path.write_text(json.dumps({"version": "1.0", "added_tokens": [], "model": model}))
        return path

    assert len(Tokenizer(written([["a", "'b"]]))) == 5
    for merge in (["\u0120", "\u0120"], "\u0120 \u0120"):
        with pytest.raises(ValueError, match="second part does not begin with the prefix"):
            Tokenizer(written([merge]))
