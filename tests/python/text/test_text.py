# SPDX-License-Identifier: Apache-2.0
"""tenon.text: vocabularies, tokenizers, byte-pair encoding, padding."""

import sys
from collections import Counter

import pytest
from tenon import text

SENTENCE = "The cat isn't on the mat, is it?"


def test_simple_tokenizers():
    assert text.WhitespaceTokenizer()(" a  b\nc") == ["a", "b", "c"]
    assert text.WhitespaceTokenizer().join(["a", "b"]) == "a b"
    characters = text.CharacterTokenizer()
    assert characters.join(characters(SENTENCE)) == SENTENCE
    words = text.WordTokenizer()(SENTENCE)
    assert words == ["the", "cat", "isn't", "on", "the", "mat", ",", "is", "it", "?"]
    assert text.WordTokenizer(lowercase=False)(SENTENCE)[0] == "The"


def test_vocabularies(tmp_path):
    sentences = [["b", "a", "b"], ["c", "b", "a"]]
    vocabulary = text.Vocabulary.build(sentences, special_tokens=["<pad>"], unknown="<unk>")
    assert vocabulary.tokens == ["<pad>", "<unk>", "b", "a", "c"]
    assert vocabulary.encode(["a", "x"]) == [3, 1] and "x" not in vocabulary
    assert vocabulary.decode([2, 0]) == ["b", "<pad>"]
    assert list(text.Vocabulary.build(sentences, min_count=2)) == ["b", "a"]
    assert len(text.Vocabulary.build(sentences, max_size=2)) == 2
    vocabulary.save(tmp_path / "v.json")
    again = text.Vocabulary.load(tmp_path / "v.json")
    assert again.tokens == vocabulary.tokens and again.unknown == "<unk>"


def test_faults_of_vocabularies():
    with pytest.raises(KeyError, match="'x' is not among its 1 tokens; build it with unknown="):
        text.Vocabulary(["a"])["x"]
    with pytest.raises(ValueError, match="expected different tokens, got 'a' more than once"):
        text.Vocabulary(["a", "b", "a"])
    with pytest.raises(ValueError, match="expected the token '<unk>' for unknown ones among all"):
        text.Vocabulary(["a"], unknown="<unk>")


def slow_merges(pieces, count, min_count):
    """Byte-pair encoding as it is defined: all pairs are counted anew for each merge."""
    words = {tuple(piece.encode()): times for piece, times in pieces.items()}
    merges = []
    while len(merges) < count:
        pairs = Counter()
        for tokens, times in words.items():
            for pair in zip(tokens, tokens[1:]):
                pairs[pair] += times
        if not pairs or max(pairs.values()) < min_count:
            break
        best = min(pairs, key=lambda pair: (-pairs[pair], pair))
        merges.append(best)
        joined = Counter()
        for tokens, times in words.items():
            result, i = [], 0
            while i < len(tokens):
                if tokens[i : i + 2] == best:
                    result.append(255 + len(merges))
                    i += 2
                else:
                    result.append(tokens[i])
                    i += 1
            joined[tuple(result)] += times
        words = joined
    return merges


def test_training_equals_the_definition():
    corpus = [SENTENCE * 3, "aaaa aaa aa banana bandana", "Zoë naïve — über  \n\n x = x + 1"]
    pieces = Counter()
    for each in corpus:
        pieces.update(text.bpe._PIECES.findall(each))
    tokenizer = text.BytePairTokenizer.train(corpus, 400)
    assert tokenizer.merges == slow_merges(pieces, 144, 2)
    for each in [*corpus, "", "never seen: \U0001f600\t\r"]:
        assert tokenizer.decode(tokenizer.encode(each)) == each
    assert len(tokenizer.encode(corpus[0])) < len(corpus[0]) / 2
    assert tokenizer(" the cat") == [" the", " cat"]


def test_special_tokens_and_files(tmp_path):
    tokenizer = text.BytePairTokenizer.train([sys.copyright], 300, ["<end>"])
    end = tokenizer.special_tokens["<end>"]
    assert end == len(tokenizer) - 1 and end not in tokenizer.encode("<end>")
    assert tokenizer.decode([*tokenizer.encode("All"), end]) == "All<end>"
    tokenizer.save(tmp_path / "t.json")
    again = text.BytePairTokenizer.load(tmp_path / "t.json")
    assert again.merges == tokenizer.merges and len(again) == len(tokenizer)
    assert again.encode(sys.copyright) == tokenizer.encode(sys.copyright)


def test_faults_of_byte_pairs():
    with pytest.raises(ValueError, match="expected vocab_size of at least 257, bytes and special"):
        text.BytePairTokenizer.train(["a"], 256, ["<end>"])
    with pytest.raises(ValueError, match=r"merges of earlier tokens, got \(1, 300\) for token 256"):
        text.BytePairTokenizer([(1, 300)])


def test_batches_of_sequences():
    table, lengths = text.pad_sequences([[1, 2, 3], [4], []], padding_value=9)
    assert table.tolist() == [[1, 2, 3], [4, 9, 9], [9, 9, 9]] and lengths.tolist() == [3, 1, 0]
    assert text.pad_sequences([[1]], length=3)[0].tolist() == [[1, 0, 0]]
    assert text.pad_sequences([])[0].shape == (0, 0)
    assert text.truncate([1, 2, 3], 2) == [1, 2]
    with pytest.raises(ValueError, match="expected sequences of at most 2 numbers, got one of 3"):
        text.pad_sequences([[1, 2, 3]], length=2)


def test_tokenizers_of_the_library(tmp_path):
    try:
        import tokenizers
    except ImportError:
        with pytest.raises(
            ImportError, match="expected the library `tokenizers`; run `pip install"
        ):
            text.LibraryTokenizer(tmp_path / "t.json")
        return
    model = tokenizers.models.WordLevel({"a": 0, "b": 1, "?": 2}, unk_token="?")
    library = tokenizers.Tokenizer(model)
    library.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    library.save(str(tmp_path / "t.json"))
    ours = text.LibraryTokenizer(tmp_path / "t.json")
    assert ours.encode("b a x") == [1, 0, 2] and ours("b x") == ["b", "?"] and len(ours) == 3
