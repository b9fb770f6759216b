# SPDX-License-Identifier: Apache-2.0
"""The operators text_* on bytes and offsets against Python's str and against pyarrow, and StringTensor's exchange."""

import sys
import unicodedata

import numpy as np
import pyarrow
import pytest
import tenon
from pyarrow import compute
from tenon.text import StringTensor, Vocabulary

RNG = np.random.default_rng(5)
LETTERS = list("aΣσ.'AB\u0301\u3000 İßǅ日\U00010400")
WORDS = ["".join(RNG.choice(LETTERS, RNG.integers(0, 7))) for _ in range(3000)]
EVERY = [chr(code) for code in range(sys.maxunicode + 1) if not 0xD800 <= code < 0xE000]
# The table has the letters of one version of Unicode; those of an old one are the same in all.
KNOWN = [each for each in EVERY if unicodedata.ucd_3_2_0.category(each) != "Cn"]
TABLE_VERSION = "14.0.0"


def parts(words):
    encoded = [each.encode() for each in words]
    ends = np.cumsum([0, *map(len, encoded)])
    return tenon.tensor(np.frombuffer(b"".join(encoded), np.uint8).copy()), tenon.tensor(ends)


def strings(result):
    text, ends = result[0].numpy().tobytes(), result[1].tolist()
    return [text[begin:end].decode() for begin, end in zip(ends, ends[1:])]


@pytest.mark.parametrize("name", ["lower", "upper"])
def test_case_is_pythons(name):
    operator, method = getattr(tenon, f"text_{name}"), getattr(str, name)
    letters = EVERY if unicodedata.unidata_version == TABLE_VERSION else KNOWN
    assert strings(operator(*parts(letters))) == [method(each) for each in letters]
    assert strings(operator(*parts(WORDS))) == [method(each) for each in WORDS]
    plain = ["Hello", "", "wOrld zZ"]
    for mode in ("full", "simple", "ascii"):
        assert strings(operator(*parts(plain), mode)) == [method(each) for each in plain]


def test_simple_case_is_arrows():
    ours = strings(tenon.text_lower(*parts(KNOWN), "simple"))
    theirs = compute.utf8_lower(pyarrow.array(KNOWN)).to_pylist()
    differ = {each for each, x, y in zip(KNOWN, ours, theirs) if x != y}
    assert differ == set()
    ours = strings(tenon.text_upper(*parts(KNOWN), "simple"))
    theirs = compute.utf8_upper(pyarrow.array(KNOWN)).to_pylist()
    differ = {each for each, x, y in zip(KNOWN, ours, theirs) if x != y} - {"ß"}
    # Arrow makes U+1E9E of the sharp s, and knows capital letters that newer Unicode has.
    assert len(differ) < 20 and all(each.upper() == each for each in differ)
    assert strings(tenon.text_lower(*parts(["ÀB"]), "ascii")) == ["Àb"]


def test_a_sigma_at_the_end_of_a_word():
    words = ["ΑΣ", "ΑΣ.", "Σ", "ΑΣ'Α", ".Σ", "ΑΣ ΑΣ", "Α'Σ"]
    assert strings(tenon.text_lower(*parts(words))) == [each.lower() for each in words]
    assert words[0].lower()[-1] == "ς"


@pytest.mark.parametrize("separator", ["", "a", "aa", "Σ", "σ."])
@pytest.mark.parametrize("limit", [-1, 0, 1, 2])
def test_split_is_pythons(separator, limit):
    text, ends, counts = tenon.text_split(*parts(WORDS), separator, limit)
    expected = [each.split(separator or None, limit) for each in WORDS]
    assert strings((text, ends)) == [part for each in expected for part in each]
    assert counts.tolist() == [len(each) for each in expected]


@pytest.mark.parametrize("pattern", ["a", "Σ", "aΣ", "", "日"])
def test_find_counts_characters(pattern):
    assert tenon.text_find(*parts(WORDS), pattern).tolist() == [w.find(pattern) for w in WORDS]
    starts = tenon.text_find(*parts(WORDS), pattern, "start").tolist()
    assert starts == [0 if each.startswith(pattern) else -1 for each in WORDS]
    ends = tenon.text_find(*parts(WORDS), pattern, "end").tolist()
    expected = [len(w) - len(pattern) if w.endswith(pattern) else -1 for w in WORDS]
    assert ends == expected


def test_take_equal_lookup():
    indices = RNG.integers(-len(WORDS), len(WORDS), 400)
    taken = tenon.text_take(*parts(WORDS), tenon.tensor(indices))
    assert strings(taken) == [WORDS[i] for i in indices]
    other = [WORDS[(i * 7) % 50] for i in range(len(WORDS))]
    same = tenon.text_equal(*parts(WORDS), *parts(other)).tolist()
    assert same == [x == y for x, y in zip(WORDS, other)]
    keys = WORDS[:500]  # some of them twice
    found = tenon.text_lookup(*parts(WORDS), *parts(keys), -7).tolist()
    first = {word: number for number, word in reversed(list(enumerate(keys)))}
    assert found == [first.get(each, -7) for each in WORDS]


def test_hash_is_xxh64():
    # Published values of XXH64 with seed 0.
    known = {"": 0xEF46DB3751D8E999, "a": 0xD24EC4F1A98C6E5B, "abc": 0x44BC2CF5AD770999}
    hashes = tenon.text_hash(*parts(list(known))).numpy().astype(np.uint64).tolist()
    assert hashes == list(known.values())
    xxhash = pytest.importorskip("xxhash")
    words = ["x" * n + "é" for n in range(70)]
    for seed in (0, 11):
        expected = [xxhash.xxh64(each.encode(), seed=seed).intdigest() for each in words]
        got = tenon.text_hash(*parts(words), seed).numpy().astype(np.uint64).tolist()
        assert got == expected


@pytest.mark.parametrize(
    "data,position",
    [([0xFF], 0), ([0x61, 0xC3], 1), ([0xED, 0xA0, 0x80], 0), ([0xC0, 0x80], 0), ([97, 0x80], 1)],
)
def test_what_is_no_utf8_is_refused_by_position(data, position):
    text = tenon.tensor([*b"ab", *data, *b"c"], dtype=tenon.uint8)
    ends = tenon.tensor([0, 2, 2 + len(data), 3 + len(data)])
    byte = data[position]
    message = f"UTF-8, got the byte 0x{byte:02x} at position {position + 2}, in string 1"
    for call in (
        lambda: tenon.text_lower(text, ends),
        lambda: tenon.text_upper(text, ends),
        lambda: tenon.text_find(text, ends, "a"),
        lambda: tenon.text_split(text, ends),
    ):
        with pytest.raises(ValueError, match=message):
            call()
    assert tenon.text_lower(text, ends, "ascii")[0].tolist() == text.tolist()


def test_wrong_offsets_are_refused():
    text = tenon.tensor([97, 98], dtype=tenon.uint8)
    for ends, got in ([0, 5], "5 at position 1"), ([2, 1], "1 at position 1"), ([-1, 1], "-1 at"):
        with pytest.raises(ValueError, match=f"to at most the 2 bytes of the text, got {got}"):
            tenon.text_hash(text, tenon.tensor(ends))
    with pytest.raises(ValueError, match="one more offset than there are strings, got shapes"):
        tenon.text_hash(text, tenon.zeros([0], dtype=tenon.int64))
    with pytest.raises(ValueError, match="mode 'full', 'simple' or 'ascii', got 'loud'"):
        tenon.text_upper(text, tenon.tensor([0, 2]), "loud")
    with pytest.raises(ValueError, match="where 'anywhere', 'start' or 'end', got 'middle'"):
        tenon.text_find(text, tenon.tensor([0, 2]), "a", "middle")
    with pytest.raises(ValueError, match="as many strings on both sides or one on either, got 2"):
        tenon.text_equal(text, tenon.tensor([0, 1, 2]), text, tenon.tensor([0, 0, 1, 2]))
    with pytest.raises(IndexError, match="text_take"):
        tenon.text_take(text, tenon.tensor([0, 2]), tenon.tensor([1]))


@pytest.mark.parametrize(
    "name", ["text_lower", "text_upper", "text_split", "text_find", "text_hash"]
)
def test_no_offsets_are_refused(name):
    text, none = tenon.tensor([104, 105], dtype=tenon.uint8), tenon.zeros([0], dtype=tenon.int64)
    arguments = ["h"] if name == "text_find" else []
    with pytest.raises(ValueError, match="one more offset than there are strings, got shapes"):
        getattr(tenon, name)(text, none, *arguments)
    with pytest.raises(TypeError, match="expected offsets of dtype integer, got float32"):
        getattr(tenon, name)(text, tenon.tensor([0.0, 2.0]), *arguments)


def test_exchange_with_arrow_shares_memory():
    for kind in (pyarrow.string(), pyarrow.large_string()):
        array = pyarrow.array(["x", "Äb", "", "日本"], kind)
        ours = StringTensor.from_arrow(array[1:])
        assert ours.tolist() == ["Äb", "", "日本"] and ours.upper().tolist() == ["ÄB", "", "日本"]
        assert ours.bytes.data_ptr() == array.buffers()[2].address
        back = ours.to_arrow()
        assert back.type == kind and back.equals(array[1:])
        assert back.buffers()[2].address == array.buffers()[2].address
        joined = StringTensor.concat([ours, ours[:1], ours])
        assert joined.tolist() == ["Äb", "", "日本", "Äb", "Äb", "", "日本"]
    chunks = pyarrow.chunked_array([["a"], ["b", "c"]])
    assert StringTensor.from_arrow(chunks).tolist() == ["a", "b", "c"]
    assert StringTensor.from_arrow(pyarrow.array([], pyarrow.string())).tolist() == []
    with pytest.raises(TypeError, match="large_string without nulls, got string with 1 nulls"):
        StringTensor.from_arrow(pyarrow.array(["a", None]))
    with pytest.raises(TypeError, match="large_string without nulls, got int64 with 0 nulls"):
        StringTensor.from_arrow(pyarrow.array([1]))


def test_the_face_of_strings():
    words = StringTensor([["a b", "c"], ["", "d  e f"]])
    pieces, counts = words.split()
    assert pieces.tolist() == ["a", "b", "c", "d", "e", "f"] and counts.tolist() == [[2, 1], [0, 3]]
    assert words.find("b").tolist() == [[2, -1], [-1, -1]]
    assert words.hash().shape == (2, 2) and (words.hash(1) != words.hash()).all().item()
    vocabulary = Vocabulary(["c", "d"])
    assert words.lookup(vocabulary, 5).tolist() == [[5, 0], [5, 5]]
    assert words.lookup({"c": 9}).tolist() == [[-1, 9], [-1, -1]]
    assert words.lookup(StringTensor(["", "c"])).tolist() == [[-1, 1], [0, -1]]
    with pytest.raises(ValueError, match="expected a separator or None, got ''"):
        words.split("")
