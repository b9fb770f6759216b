# SPDX-License-Identifier: Apache-2.0
"""Tensors of strings and arrays of tensors, against Python's lists."""

import pickle

import numpy as np
import pytest
import tenon
from tenon.text import StringTensor

WORDS = [["Äpfel", "", "eins"], ["zwei", "日本", "ZWEI"]]


@pytest.fixture
def words():
    return StringTensor(WORDS)


def test_what_strings_are(words):
    assert words.shape == (2, 3) and words.ndim == 2 and words.size == 6 and len(words) == 2
    assert words.tolist() == WORDS
    assert words.lengths.tolist() == [[5, 0, 4], [4, 2, 4]]
    assert words.byte_lengths.tolist() == [[6, 0, 4], [4, 6, 4]]
    assert str(words.bytes.dtype).endswith("uint8") and words.offsets.tolist()[-1] == 24
    assert repr(StringTensor(["a", "b"])) == "StringTensor(['a', 'b'])"
    assert pickle.loads(pickle.dumps(words)).tolist() == WORDS
    assert words.to("cpu").tolist() == WORDS
    assert StringTensor().shape == (0,) and StringTensor("ab").shape == ()
    assert StringTensor("ab").item() == "ab"


@pytest.mark.parametrize(
    "index",
    [0, -1, (1, 2), slice(None, None, -1), (slice(None), slice(1, None)), [1, 0, 1], (Ellipsis, 0)],
    ids=str,
)
def test_indices_take_what_numpy_takes(words, index):
    got, want = words[index], np.array(WORDS, object)[index]
    assert got.tolist() == (want if isinstance(want, str) else want.tolist())


def test_masks_and_rows(words):
    assert words[words.lengths == 4].tolist() == ["eins", "zwei", "ZWEI"]
    assert words[words.lengths > 9].tolist() == []
    assert [row.tolist() for row in words] == WORDS
    assert words.reshape([3, -1]).tolist() == [["Äpfel", ""], ["eins", "zwei"], ["日本", "ZWEI"]]


def test_comparison(words):
    flat = np.array(WORDS, object)
    np.testing.assert_array_equal((words == "zwei").numpy(), flat == "zwei")
    np.testing.assert_array_equal((words != "").numpy(), flat != "")
    row = ["Äpfel", "x", "ZWEI"]
    np.testing.assert_array_equal((words == StringTensor(row)).numpy(), flat == row)
    rng = np.random.default_rng(3)
    left, right = (
        ["".join(rng.choice(list("ab"), rng.integers(0, 3))) for _ in range(200)] for _ in "xy"
    )
    got = (StringTensor(left) == StringTensor(right)).numpy()
    np.testing.assert_array_equal(got, np.array(left, object) == np.array(right, object))


def test_functions_of_strings(words):
    assert words.lower().tolist()[0][0] == "äpfel"
    assert words.lower(ascii_only=True).tolist() == [
        ["Äpfel", "", "eins"],
        ["zwei", "日本", "zwei"],
    ]
    assert words.upper(ascii_only=True).tolist()[0] == ["ÄPFEL", "", "EINS"]
    assert StringTensor([" a ", "b\n"]).strip().tolist() == ["a", "b"]
    assert words.startswith("z").tolist() == [[False, False, False], [True, False, False]]
    assert words.endswith("s").tolist()[0] == [False, False, True]
    assert words.contains("本").tolist()[1] == [False, True, False]
    assert words.map(lambda each: each[::-1]).tolist()[1] == ["iewz", "本日", "IEWZ"]
    assert words.lookup({"eins": 1, "zwei": 2}).tolist() == [[-1, -1, 1], [2, -1, -1]]
    assert words.lookup(["eins", "zwei"], default=9).tolist() == [[9, 9, 0], [1, 9, 9]]
    joined = StringTensor.concat([words, words[:1]])
    assert joined.tolist() == [*WORDS, WORDS[0]]


def test_refusals_of_strings(words):
    with pytest.raises(
        TypeError, match="expected strings in nested lists of equal length, got int"
    ):
        StringTensor(["a", 1])
    with pytest.raises(ValueError, match=r"expected a shape of 6 strings, got \[4\]"):
        words.reshape([4])
    with pytest.raises(ValueError, match="expected one string, got 6"):
        words.item()
    with pytest.raises(ValueError, match="offsets that grow from 0 to at most 3"):
        StringTensor.from_parts(words.bytes[:3], tenon.tensor([0, 2, 1]))
    with pytest.raises(ValueError, match="a vector of bytes"):
        StringTensor.from_parts(tenon.zeros([3]), tenon.tensor([0, 2]))
    with pytest.raises(ValueError, match="differ in the first axis alone"):
        StringTensor.concat([words, StringTensor(["a"])])
    with pytest.raises(IndexError):
        words[2]
    with pytest.raises(TypeError, match="a 0-d tensor has no length"):
        len(StringTensor("a"))


def test_arrays_of_tensors_grow_and_keep_their_history():
    x = tenon.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    array = tenon.TensorArray()
    for row in x:
        array.append(row * 2)
    array[1] = array[0] + array[1]
    assert len(array) == 2 and array.read(-1).tolist() == [8, 12]
    assert array.stack().tolist() == [[2, 4], [8, 12]]
    assert array.concat().tolist() == [2, 4, 8, 12]
    array.stack().sum().backward()
    assert x.grad.tolist() == [[4, 4], [2, 2]]
    again = tenon.TensorArray.unstack(x.detach(), 1)
    assert [each.tolist() for each in again] == [[1, 3], [2, 4]]
    assert again[:1][0].tolist() == [1, 3] and again.pop().tolist() == [2, 4] and len(again) == 1
    again.write(tenon.tensor(1), tenon.zeros([5]))  # of another shape
    assert repr(again) == "TensorArray(2 tensors of shapes [2], [5], dtype=float32, device='cpu:0')"


def test_refusals_of_arrays():
    array = tenon.TensorArray([tenon.ones([2])])
    with pytest.raises(IndexError, match="expected an index from 0 to 1, got 2"):
        array.write(2, tenon.ones([2]))
    with pytest.raises(IndexError, match="expected an index below 1, got 1"):
        array.read(1)
    with pytest.raises(
        TypeError, match="expected a tensor of .*float32 on cpu:0 like the others, got"
    ):
        array.append(tenon.ones([2], dtype="int32"))
    with pytest.raises(TypeError, match="expected a Tensor, got float"):
        array.append(1.0)
    with pytest.raises(
        ValueError, match="TensorArray.stack: expected at least one element, got none"
    ):
        tenon.TensorArray().stack()
