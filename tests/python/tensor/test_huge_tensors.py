# SPDX-License-Identifier: Apache-2.0
"""Tensors of more than 2^31 elements, whose indices an int32 cannot hold: one test for each family
of operators.

They need up to 16 GiB of memory and minutes, so they run only on request:

    TENON_TEST_LARGE=1 python -m pytest -q tests/python/tensor/test_huge_tensors.py
"""

import gc
import os

import numpy as np
import pytest
import tenon

pytestmark = pytest.mark.skipif(
    os.environ.get("TENON_TEST_LARGE") != "1",
    reason="needs 16 GiB of memory and minutes; TENON_TEST_LARGE=1 runs it",
)

N = 2**31 + 4099  # odd, and no multiple of any block
ROWS, COLUMNS = 65_537, 32_771  # as many, and a few more
BLOCK = 2**28


@pytest.fixture(autouse=True)
def free_memory():
    yield
    gc.collect()
    tenon.memory.trim()


def bytes_of(count, seed=0, most=251):
    """`count` uint8 with a period that fits no power of two, so that a wrong index shows."""
    period = np.random.default_rng(seed).integers(0, most, 1_000_003, dtype=np.uint8)
    return np.resize(period, count)


def check(tensor, want):
    """Equal to want(begin, end) in blocks along the flat tensor."""
    array = tensor.reshape(-1).numpy()
    for begin in range(0, array.size, BLOCK):
        end = min(begin + BLOCK, array.size)
        expected = want(begin, end)
        if not np.array_equal(array[begin:end], expected):
            at = begin + int(np.flatnonzero(array[begin:end] != expected)[0])
            raise AssertionError(f"wrong from element {at} on")


def test_elementwise():
    array = bytes_of(N)
    x = tenon.from_numpy(array)
    check(x + x[::-1], lambda i, k: array[i:k] + array[::-1][i:k])
    check(tenon.maximum(x, 100), lambda i, k: np.maximum(array[i:k], 100))
    signed = tenon.from_numpy(array.view(np.int8))
    check(-signed, lambda i, k: -array.view(np.int8)[i:k])
    x += 1
    again = bytes_of(N)
    check(x, lambda i, k: again[i:k] + np.uint8(1))


def test_broadcast():
    rows, columns = bytes_of(ROWS), bytes_of(COLUMNS, 1)
    sums = tenon.from_numpy(rows)[:, None] + tenon.from_numpy(columns)
    for begin in range(0, ROWS, 8192):
        want = rows[begin : begin + 8192, None] + columns
        np.testing.assert_array_equal(sums[begin : begin + 8192].numpy(), want)


def test_comparison_and_logic():
    array = bytes_of(N)
    x = tenon.from_numpy(array)
    less = x < 100
    check(less, lambda i, k: array[i:k] < 100)
    check(tenon.logical_not(less), lambda i, k: array[i:k] >= 100)
    check(tenon.where(less, x, 7), lambda i, k: np.where(array[i:k] < 100, array[i:k], 7))
    check(tenon.masked_fill(x, less, 9), lambda i, k: np.where(array[i:k] < 100, 9, array[i:k]))


@pytest.mark.parametrize("dtype", ["bool", "int8", "int16", "float16"])
def test_casts(dtype):
    array = bytes_of(N)
    check(tenon.from_numpy(array).to(dtype), lambda i, k: array[i:k].astype(dtype))


def test_copies():
    array = bytes_of(N)
    x = tenon.from_numpy(array)
    check(tenon.clone(x), lambda i, k: array[i:k])
    check(tenon.clone(x.flip()), lambda i, k: array[::-1][i:k])
    check(tenon.clone(x[1::2]), lambda i, k: array[1::2][i:k])
    target = tenon.zeros((N + 5,), dtype="uint8")
    target[5:] = x
    check(target[5:], lambda i, k: array[i:k])
    assert target[:5].tolist() == [0] * 5


def test_transposed_copies():
    array = bytes_of(ROWS * COLUMNS).reshape(ROWS, COLUMNS)
    copy = tenon.clone(tenon.from_numpy(array).T).numpy()
    rng = np.random.default_rng(1)
    rows = np.concatenate([rng.integers(0, ROWS, 2_000_000), [0, ROWS - 1]])
    columns = np.concatenate([rng.integers(0, COLUMNS, 2_000_000), [0, COLUMNS - 1]])
    np.testing.assert_array_equal(copy[columns, rows], array[rows, columns])


def test_creation():
    check(tenon.full((N,), 7, dtype="int8"), lambda i, k: np.full(k - i, 7, np.int8))
    check(tenon.zeros((N,), dtype="bool"), lambda i, k: np.zeros(k - i, bool))
    check(tenon.ones((N,), dtype="uint8"), lambda i, k: np.ones(k - i, np.uint8))


@pytest.mark.parametrize("shape", [(N,), (3, 715_829_249), (715_829_249, 3)], ids=str)
def test_reductions(shape):
    array = bytes_of(int(np.prod(shape)), most=100).reshape(shape)
    array[(-1,) * len(shape)] = 200
    x = tenon.from_numpy(array)
    total = sum(
        int(array.reshape(-1)[i : i + BLOCK].sum(dtype=np.int64))
        for i in range(0, array.size, BLOCK)
    )
    assert x.sum().item() == total
    assert x.max().item() == 200 and x.min().item() == 0
    assert x.argmax().item() == array.size - 1
    assert tenon.count_nonzero(x).item() == np.count_nonzero(array)
    assert tenon.any(x == 200).item() and not tenon.all(x == 200).item()
    if len(shape) == 2:
        axis = int(shape[1] > 3)
        assert x.sum(axis).tolist() == array.sum(axis, dtype=np.int64).tolist()
        assert x.argmax(axis).tolist() == array.argmax(axis).tolist()
        assert x.max(axis).tolist() == array.max(axis).tolist()


def test_scans():
    # Sums are int64, or float32 on the way: of every eighth element, they fit the memory.
    array = np.zeros(N, np.uint8)
    x = tenon.from_numpy(array)[7::8]
    at_indices = [5, 2**28 - 2, 2**28 - 1, 2**28, x.size - 1]
    array[7::8][at_indices] = 1
    sums = tenon.cumsum(x, 0).numpy()
    np.testing.assert_array_equal(np.flatnonzero(np.diff(sums, prepend=0)), at_indices)
    assert sums[-1] == len(at_indices)


def test_joins():
    array = bytes_of(N)
    x = tenon.from_numpy(array)
    check(tenon.concat([x[: 2**30], x[2**30 :]]), lambda i, k: array[i:k])
    half = N // 2
    stacked = tenon.stack([x[:half], x[half : 2 * half]], 1)
    check(stacked[:, 0], lambda i, k: array[i:k])
    check(stacked[:, 1], lambda i, k: array[half + i : half + k])


def test_repetition():
    array = bytes_of(N // 3 + 1)
    check(tenon.tile(tenon.from_numpy(array), (3,)), lambda i, k: np.resize(array, k)[i:])


def test_rolled_and_padded():
    array = bytes_of(N)
    x = tenon.from_numpy(array)
    check(tenon.roll(x, 5, 0)[5:], lambda i, k: array[i:k])
    padded = tenon.pad(x, [2, 3])
    check(padded[2:-3], lambda i, k: array[i:k])
    assert padded[-3:].tolist() == [0, 0, 0]


def test_picks():
    array = bytes_of(N)
    x = tenon.from_numpy(array)
    rng = np.random.default_rng(1)
    at_indices = np.concatenate([rng.integers(-N, N, 1000), [2**31 - 1, 2**31, N - 1, -N]])
    at = tenon.from_numpy(at_indices)
    np.testing.assert_array_equal(x[at].numpy(), array[at_indices])
    np.testing.assert_array_equal(tenon.index_select(x, at, 0).numpy(), array[at_indices])
    np.testing.assert_array_equal(tenon.gather(x, at, 0).numpy(), array[at_indices])
    x[at] = tenon.full(at_indices.shape, 255, dtype="uint8")
    assert (array[at_indices] == 255).all() and np.count_nonzero(array == 255) == len(
        set(at_indices % N)
    )


def test_picks_of_rows():
    array = bytes_of(ROWS * COLUMNS).reshape(ROWS, COLUMNS)
    x = tenon.from_numpy(array)
    at_indices = np.random.default_rng(1).permutation(ROWS)
    picked = tenon.index_select(x, tenon.from_numpy(at_indices), 0)
    for begin in range(0, ROWS, 8192):
        want = array[at_indices[begin : begin + 8192]]
        np.testing.assert_array_equal(picked[begin : begin + 8192].numpy(), want)


def test_selection():
    array = np.zeros(N, np.uint8)
    at_indices = np.array([3, 2**31 - 1, 2**31, N - 2])
    array[at_indices] = [1, 2, 3, 4]
    x = tenon.from_numpy(array)
    assert tenon.nonzero(x).reshape(-1).tolist() == at_indices.tolist()
    mask = x != 0
    assert x[mask].tolist() == [1, 2, 3, 4]
    x[mask] = tenon.tensor([5, 6, 7, 8], dtype="uint8")
    assert array[at_indices].tolist() == [5, 6, 7, 8]
    check(x[tenon.logical_not(mask)], lambda i, k: np.zeros(k - i, np.uint8))


def test_sorts():
    # A row is sorted with indices of its elements: 16 bytes for each. The rows are short.
    array = bytes_of(N // 1023 * 1023).reshape(-1, 1023)
    got = tenon.sort(tenon.from_numpy(array), 1)
    for begin in (0, 2**20, len(array) - 10_000):
        part = slice(begin, begin + 10_000)
        np.testing.assert_array_equal(got[part].numpy(), np.sort(array[part], 1))


def test_largest():
    array = bytes_of(N // 1023 * 1023).reshape(-1, 1023)
    values, at = tenon.topk(tenon.from_numpy(array), 1, 1)
    for begin in (0, 2**20, len(array) - 100_000):
        part = slice(begin, begin + 100_000)
        want = array[part].max(1, keepdims=True)
        np.testing.assert_array_equal(values[part].numpy(), want)
        np.testing.assert_array_equal(np.take_along_axis(array[part], at[part].numpy(), 1), want)


def test_products():
    rows = N // 16 + 1
    array = bytes_of(rows * 16, most=3).reshape(rows, 16)
    weight = bytes_of(16 * 16, 1, 3).reshape(16, 16)
    product = tenon.matmul(tenon.from_numpy(array), tenon.from_numpy(weight))
    assert product.shape == (rows, 16)
    for begin in range(0, rows, 2**24):
        want = array[begin : begin + 2**24].astype(np.float32) @ weight.astype(np.float32)
        np.testing.assert_array_equal(product[begin : begin + 2**24].numpy(), want.astype(np.uint8))


def test_long_products():
    array = bytes_of(N, most=2).view(np.int8)
    x = tenon.from_numpy(array)
    product = tenon.matmul_integer(x[None], x[:, None])
    assert product.item() == np.count_nonzero(array)


def test_convolutions():
    height, width = 46_349, 46_341
    x = tenon.zeros((1, 1, height, width), dtype="float16")
    x[0, 0, -1, -1] = 2.0
    x[0, 0, 0, 0] = 3.0
    weight = tenon.tensor([[[[1.0, 2.0], [3.0, 4.0]]]], dtype="float16")
    result = tenon.conv2d(x, weight, stride=[7, 1])
    rows = (height - 2) // 7 + 1
    assert result.shape == (1, 1, rows, width - 1)
    last = 7 * (rows - 1)
    assert last + 1 == height - 1
    assert result[0, 0, -1, -2:].tolist() == [0.0, 8.0]
    assert result[0, 0, 0, :2].tolist() == [3.0, 0.0]
    assert result.sum().item() == 11.0


def test_pooling():
    x = tenon.zeros((1, 1, 46_348, 46_342), dtype="float16")
    x[0, 0, -1, -1] = 2.0
    result = tenon.max_pool2d(x, 4, 4)
    assert result.shape == (1, 1, 11_587, 11_585) and result.max().item() == 0.0
    x[0, 0, -1, 46_339] = 5.0
    result = tenon.max_pool2d(x, 4, 4)
    assert result[0, 0, -1, -1].item() == 5.0 and result.sum().item() == 5.0


def test_normalization():
    # The kernels of float16 work on a float32 copy: of every eighth row, it fits the memory.
    x = tenon.zeros((ROWS, COLUMNS), dtype="float16")
    x[-1, -1] = 5.0
    rows = x[::8]
    assert rows[-1, -1].item() == 5.0 and rows.size > 2**28
    result = tenon.softmax(rows, 0)
    want = np.exp(5.0) / (np.exp(5.0) + rows.shape[0] - 1)
    assert abs(result[-1, -1].item() - want) < 1e-4 and result[-1, 0].item() > 0
    del result
    result = tenon.layer_norm(rows)
    assert result[0].max().item() == 0.0 and result[-1, -1].item() > 100


@pytest.mark.parametrize("dtype", ["float16", "int8"])
def test_random_numbers(dtype):
    tenon.manual_seed(3)
    if dtype == "int8":
        x = tenon.randint(0, 100, (N,), dtype="int8")
    else:
        x = tenon.uniform((N,), dtype=dtype)
    top = 100 if dtype == "int8" else 1
    for part in (x[:1_000_000], x[2**31 - 500_000 : 2**31 + 4000], x[-1_000_000:]):
        values = part.numpy().astype(np.float64) / top
        assert abs(values.mean() - 0.5) < 0.01 and abs(values.std() - 12**-0.5) < 0.01
    assert not np.array_equal(x[:4000].numpy(), x[2**31 : 2**31 + 4000].numpy())


def test_views_and_printing():
    array = bytes_of(ROWS * COLUMNS)
    x = tenon.from_numpy(array)
    assert x[2**31 + 3].item() == array[2**31 + 3] and x[-1].item() == array[-1]
    rows = x.reshape(ROWS, COLUMNS)
    assert rows[-1, -2:].tolist() == array[-2:].tolist()
    assert rows.T[-1, -2:].tolist() == array.reshape(ROWS, COLUMNS).T[-1, -2:].tolist()
    assert x[2**31 :: 7][-1].item() == array[2**31 :: 7][-1]
    assert [part.shape[0] for part in tenon.split(x, 2**30)][:2] == [2**30, 2**30]
    assert tenon.split(x, 2**30)[-1][-1].item() == array[-1]
    wide = x[-2:].expand((2**31, 2))
    assert wide.size == 2**32 and wide[-1].tolist() == array[-2:].tolist()
    head, tail = map(str, array[:3].tolist()), map(str, array[-3:].tolist())
    text = [word.strip(" ,[]()") for word in repr(x).removeprefix("tensor").split(",")]
    assert text[:3] == list(head) and text[4:7] == list(tail)
    assert "..." in repr(rows)


def test_exchange():
    array = bytes_of(N)
    x = tenon.from_dlpack(tenon.from_numpy(array))
    assert x[-1].item() == array[-1] and x.numpy()[-1] == array[-1]
    assert tenon.frombuffer(memoryview(array), "uint8", None, 2**31)[0].item() == array[2**31]
