# SPDX-License-Identifier: Apache-2.0
"""Embeddings of runs of words by hashes."""

import struct

import numpy as np
import pytest
import tenon
from tenon.text.pyramid_hash import xxh32_of_words


def test_hashes_are_those_that_were_published():
    # XXH32 of python-xxhash's example begins with these, by its words: the values are of python-xxhash.
    xxhash = pytest.importorskip("xxhash")
    generator = np.random.default_rng(0)
    for count in (1, 2, 3, 4, 5, 8, 11):
        words = generator.integers(0, 2**32, (4, count), dtype=np.int64)
        for seed in (0, 1, 2**31):
            wanted = [
                xxhash.xxh32(struct.pack(f"<{count}I", *row), seed).intdigest()
                for row in words.tolist()
            ]
            assert xxh32_of_words(tenon.tensor(words), seed).tolist() == wanted


def test_known_hashes():
    # XXH32 of four and eight zero bytes with seed 0.
    assert xxh32_of_words(tenon.zeros([1, 1], dtype=tenon.int64)).tolist() == [0x08D6D969]


def test_runs_of_words():
    tenon.manual_seed(0)
    weight = tenon.randn([50]).requires_grad_()
    x = tenon.tensor([[3, 5, 3, 5], [7, 3, 5, 0], [9, 0, 0, 0]])
    rows, counts = tenon.text.pyramid_hash(x, tenon.tensor([4, 3, 1]), weight, 6, 2, 3)
    assert counts.tolist() == [5, 3, 0] and list(rows.shape) == [8, 6]
    # Runs of one sequence: (3 5), (5 3), (3 5), then those of three words.
    assert rows[0].tolist() == rows[2].tolist() == rows[6].tolist() != rows[1].tolist()
    rows.sum().backward()
    assert weight.grad.sum().item() == pytest.approx(48.0)
    for piece in range(3):
        start = int(xxh32_of_words(tenon.tensor([[3, 5]]), piece).item()) % 49
        assert rows[0, 2 * piece : 2 * piece + 2].tolist() == weight[start : start + 2].tolist()


def test_what_there_must_be():
    x, weight = tenon.zeros([1, 3], dtype=tenon.int64), tenon.zeros([4])
    with pytest.raises(ValueError, match="expected a weight of at least 5 numbers, got 4"):
        tenon.text.pyramid_hash(x, tenon.tensor([3]), weight, 5, 5)
    with pytest.raises(ValueError, match="expected features as a multiple of chunk"):
        tenon.text.pyramid_hash(x, tenon.tensor([3]), weight, 5, 2)
    with pytest.raises(ValueError, match="expected lengths from 0 to 3"):
        tenon.text.pyramid_hash(x, tenon.tensor([4]), weight, 4, 2)
    rows, counts = tenon.text.pyramid_hash(x[:, :1], tenon.tensor([1]), weight, 4, 2)
    assert list(rows.shape) == [0, 4] and counts.tolist() == [0]
