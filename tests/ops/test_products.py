# SPDX-License-Identifier: Apache-2.0
"""Products and convolutions whose extents meet every edge of the tiles that kernels cut them into.

Operands are small whole numbers, so that sums are exact in every order and in every dtype.
"""

import numpy as np
import pytest
import tenon
from references.convolutions import conv2d
from running import (
    INSTRUCTION_SETS,
    assert_equal_sums,
    run_with_instruction_set,
    skip_unserved,
)

SHAPES = [
    (1, 1, 1),
    (1, 70, 40),
    (3, 5, 2),
    (12, 32, 16),
    (13, 33, 17),
    (8, 130, 257),
    (5, 1, 300),
    (65, 10, 128),
    (100, 77, 33),
    (31, 64, 600),
    (400, 48, 64),
    (30, 530, 20),
    (70, 20, 4200),
    (80, 1100, 33),
    (9, 530, 2101),
    (66, 63, 64),
    (18, 49, 70),
    (11, 112, 130),
    (400, 2113, 70),
    (33, 7, 150),
    (50, 8, 4300),
    (21, 11, 129),
    (4, 9, 0),
    (32, 32, 64),
    (33, 31, 96),
    (16, 48, 512),
    (48, 33, 1030),
    (400, 70, 1024),
    (5, 64, 192),
    (64, 80, 128),
    (70, 2100, 64),
    (17, 60, 784),
    (32, 145, 1600),
    (50, 130, 65),
    (64, 256, 784),
    (60, 700, 800),
    (130, 100, 64),
    (600, 100, 500),
    (850, 130, 400),
    (260, 330, 100),
    (40, 600, 1700),
    (300, 290, 1600),
    (1100, 40, 530),
    (2060, 20, 70),
]
DTYPES = ["float32", "float64", "bfloat16", "float16", "int8", "uint8", "int16", "int32", "int64"]


def whole(rng, shape, dtype):
    """Whole numbers as NumPy's and ours; sums of products stay exact in bfloat16 (below 256)."""
    array = (
        rng.integers(0, 2, shape)
        if dtype in ("bfloat16", "float16")
        else rng.integers(-4, 5, shape)
    )
    if dtype == "uint8":
        array = np.abs(array)
    array = array.astype(np.float32 if dtype == "bfloat16" else dtype)
    ours = tenon.tensor(array)
    return array, ours.to(tenon.bfloat16) if dtype == "bfloat16" else ours


@pytest.mark.parametrize("transposed", ["neither", "left", "right", "both"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", DTYPES)
def test_matmul_at_the_edges_of_tiles(dtype, shape, transposed, device):
    skip_unserved(device, dtype)
    m, n, k = shape
    rng = np.random.default_rng(m * n + k)
    left, right = transposed in ("left", "both"), transposed in ("right", "both")
    a, x = whole(rng, (k, m) if left else (m, k), dtype)
    b, y = whole(rng, (n, k) if right else (k, n), dtype)
    x, y = x.to(device), y.to(device)
    a, x = (a.T, x.T) if left else (a, x)
    b, y = (b.T, y.T) if right else (b, y)
    want = a @ b if "float" not in dtype else a.astype(np.float64) @ b.astype(np.float64)
    got = (x @ y).to("cpu")
    got = got.to(tenon.float64).numpy() if "float" in dtype else got.numpy()
    # bfloat16 holds whole numbers to 256, and then rounds to eight bits.
    np.testing.assert_allclose(got, want, rtol=2**-8 if dtype == "bfloat16" else 0)


@pytest.mark.parametrize("shape", [(20, 61, 1700), (64, 130, 300), (28, 700, 800)], ids=str)
@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "float16"])
def test_linear_with_few_rows_and_a_weight_that_lies_anyhow(dtype, shape, device):
    """The transposed product: sums are added to the bias in several passes, past rows that skip."""
    m, n, k = shape
    rng = np.random.default_rng(n)
    (a, x), (b, y), (c, bias) = (whole(rng, each, dtype) for each in ((m, k), (2 * n, k + 3), n))
    x, y, bias = (each.to(device) for each in (x, y, bias))
    for rows in (slice(0, n), slice(None, None, 2), slice(None, None, -2)):
        want = a.astype(np.float64) @ b[rows, 3:].T.astype(np.float64) + c
        got = tenon.linear(x, y[rows, 3:], bias).to("cpu").to(tenon.float64).numpy()
        tolerance = {"bfloat16": 2**-8, "float16": 2**-10}.get(dtype, 0)
        roundings = 1 if device == "cpu" else 2  # of the product, and of the sum with the bias
        np.testing.assert_allclose(got, want, rtol=roundings * tolerance)


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("shape", [(9, 530, 2101), (9, 265, 5000)], ids=str)
@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "uint8"])
def test_matmul_whose_last_tile_is_narrow(dtype, shape, transposed, device):
    """Threads pack into pieces of one block: a tile that goes a way of its own needs room for it."""
    m, n, k = shape
    rng = np.random.default_rng(0)
    x = tenon.tensor(rng.integers(0, 2, (m, k)).astype(np.uint8), device=device)
    y = tenon.tensor(rng.integers(0, 2, (n, k) if transposed else (k, n)).astype(np.uint8))
    x, y = (each.to(device).to(getattr(tenon, dtype)) for each in (x, y))
    y = y.T if transposed else y
    threads = tenon.get_num_threads()
    try:
        tenon.set_num_threads(1)
        want = (x @ y).to("cpu").to(tenon.float64).numpy()
        for count in (2, 3):
            tenon.set_num_threads(count)
            for _ in range(5):
                np.testing.assert_array_equal((x @ y).to("cpu").to(tenon.float64).numpy(), want)
    finally:
        tenon.set_num_threads(threads)


@pytest.mark.parametrize(
    "shape",
    [(1, 300, 290, 310), (1, 70, 1100, 1000), (1, 1030, 90, 1700), (1, 1, 4100, 300)]
    + [(1, 900, 1, 700), (3, 150, 170, 190), (5, 96, 96, 96)],
    ids=str,
)
@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "float16", "int8"])
def test_matmul_for_any_number_of_threads(dtype, shape, device):
    """C is cut into as many tiles as there are threads, and no element is left out."""
    batch, m, n, k = shape
    rng = np.random.default_rng(sum(shape))
    a, x = whole(rng, (batch, m, k), dtype)
    b, y = whole(rng, (batch, k, n), dtype)
    x, y = x.to(device), y.to(device)
    want = a.astype(np.float64) @ b.astype(np.float64)
    threads = tenon.get_num_threads()
    try:
        for count in (1, 2, 3, 5, 8):
            tenon.set_num_threads(count)
            got = (tenon.matmul_integer if dtype == "int8" else tenon.matmul)(x, y).to("cpu")
            tolerance = {"bfloat16": 2**-8, "float16": 2**-10}.get(dtype, 0)
            np.testing.assert_allclose(got.to(tenon.float64).numpy(), want, rtol=tolerance)
    finally:
        tenon.set_num_threads(threads)


@pytest.mark.parametrize("turned", ["neither", "left", "right"])
@pytest.mark.parametrize("shape", [(520, 700, 3100), (1030, 1300, 70), (700, 4200, 1030)], ids=str)
@pytest.mark.parametrize("dtype", ["bfloat16", "int8"])
def test_matmul_whose_result_no_cache_keeps(dtype, shape, turned, device):
    """C is written in the order of its rows, in passes over k and blocks of columns."""
    # Kernels of other devices know no caches, and take half a minute for the largest of these.
    m, n, k = shape if device.startswith("cpu") else (extent // 8 for extent in shape)
    rng = np.random.default_rng(sum(shape))
    a, x = whole(rng, (k, m) if turned == "left" else (m, k), dtype)
    b, y = whole(rng, (n, k) if turned == "right" else (k, n), dtype)
    a, x = (a.T, x.to(device).T) if turned == "left" else (a, x.to(device))
    b, y = (b.T, y.to(device).T) if turned == "right" else (b, y.to(device))
    threads = tenon.get_num_threads()
    try:
        tenon.set_num_threads(1)
        got = (tenon.matmul_integer if dtype == "int8" else tenon.matmul)(x, y).to("cpu")
    finally:
        tenon.set_num_threads(threads)
    tolerance = 2**-8 if dtype == "bfloat16" else 0
    want = a.astype(np.float64) @ b.astype(np.float64)
    np.testing.assert_allclose(got.to(tenon.float64).numpy(), want, rtol=tolerance)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
def test_matmul_of_reversed_and_repeated_rows(dtype, device):
    rng = np.random.default_rng(0)
    (a, x), (b, y) = whole(rng, (40, 30), dtype), whole(rng, (30, 50), dtype)
    x, y = x.to(device), y.to(device)
    got = (x[::-1] @ y[:, ::-2]).to("cpu").to(tenon.float32).numpy()
    np.testing.assert_array_equal(got, a[::-1] @ b[:, ::-2])
    wide = (tenon.expand(x[0], [20, 30]) @ y).to("cpu").to(tenon.float32).numpy()
    np.testing.assert_array_equal(wide, np.broadcast_to(a[0], (20, 30)) @ b)


@pytest.mark.parametrize("columns", [61, 64])
@pytest.mark.parametrize("begin, length", [(0, 32), (1, 32), (1, 33), (2, 58)])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16", "int8"])
def test_matmul_of_parts_that_begin_anywhere(dtype, begin, length, columns, device):
    """Kernels that read several elements at once meet none of their boundaries."""
    rng = np.random.default_rng(length)
    (a, x), (b, y) = whole(rng, (30, columns), dtype), whole(rng, (41, columns), dtype)
    part = slice(begin, begin + length)
    x, y = x.to(device)[:, part], y.to(device)[:, part]
    for got, want in (
        (x @ y.T, a[:, part] @ b[:, part].T),
        (x[:, :30] @ y[:30], a[:, part][:, :30] @ b[:30, part]),
    ):
        got = got.to("cpu")
        got = got.to(tenon.float32) if "float" in dtype else got
        np.testing.assert_array_equal(got.numpy(), want)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
@pytest.mark.parametrize("rows", [1, 5, 20])
def test_matmul_keeps_nan_and_infinity_in_their_rows(dtype, rows, device):
    a, b = np.ones((rows, 40), np.float32), np.ones((40, 30), np.float32)
    a[0, 7], b[3, 4], b[:, 9] = np.nan, np.inf, 0
    x, y = (tenon.tensor(each, device=device).to(getattr(tenon, dtype)) for each in (a, b))
    got = (x @ y).to("cpu").to(tenon.float32).numpy()
    np.testing.assert_array_equal(got, a @ b)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
@pytest.mark.parametrize("rows", [3, 30])
def test_products_of_small_floats_round_once(dtype, rows, device):
    # One unit more than the first number without room for it: a sum rounded on its way stays there.
    # Some sums are longer than one pass over the inner axis.
    kind, count = getattr(tenon, dtype), {"bfloat16": 512, "float16": 4096}[dtype]
    x = tenon.ones((rows, count), device=device).to(kind)
    got = (x @ tenon.ones((count, 20), device=device).to(kind)).to("cpu")
    np.testing.assert_array_equal(got.to(tenon.float32).numpy(), np.full((rows, 20), count))


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
@pytest.mark.parametrize("rows", [1, 4, 40])
def test_linear_of_small_floats_starts_from_its_bias(dtype, rows, device):
    kind, rng = getattr(tenon, dtype), np.random.default_rng(5)
    arrays = [rng.integers(-2, 3, shape) for shape in [(rows, 70), (37, 70), (37,)]]
    x, w, b = (tenon.tensor(each.astype(np.float32), device=device).to(kind) for each in arrays)
    got = tenon.linear(x, w, b).to("cpu").to(tenon.float32).numpy()
    np.testing.assert_array_equal(got, arrays[0] @ arrays[1].T + arrays[2])


@pytest.mark.parametrize("signed", [(True, True), (True, False), (False, True), (False, False)])
@pytest.mark.parametrize("transposed", ["neither", "left", "right", "both"])
@pytest.mark.parametrize("shape", [*SHAPES, (3, 8192, 7), (20, 40, 2500)], ids=str)
def test_matmul_integer_is_exact(signed, transposed, shape, device):
    m, n, k = shape
    rng = np.random.default_rng(m * n + k)
    left, right = transposed in ("left", "both"), transposed in ("right", "both")
    shapes = [(k, m) if left else (m, k), (n, k) if right else (k, n)]
    # All values that there are, and the extreme ones often.
    a, b = (
        rng.choice([*range(*limits), *[limits[0], limits[1] - 1] * 64], each).astype(dtype)
        for each, limits, dtype in (
            (each, (-128, 128) if is_signed else (0, 256), "int8" if is_signed else "uint8")
            for each, is_signed in zip(shapes, signed, strict=True)
        )
    )
    x, y = tenon.tensor(a, device=device), tenon.tensor(b, device=device)
    a, x = (a.T, x.T) if left else (a, x)
    b, y = (b.T, y.T) if right else (b, y)
    got = tenon.matmul_integer(x, y)
    assert got.dtype == tenon.int32
    np.testing.assert_array_equal(got.to("cpu").numpy(), a.astype(np.int32) @ b.astype(np.int32))


def test_matmul_integer_of_batches_vectors_and_strides(device):
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-128, 128, s).astype(np.int8) for s in [(2, 1, 30, 40), (3, 40, 50)])
    x, y = tenon.tensor(a, device=device), tenon.tensor(b, device=device)
    wide, other = a.astype(np.int32), b.astype(np.int32)

    def check(got, want):
        np.testing.assert_array_equal(got.to("cpu").numpy(), want)

    check(tenon.matmul_integer(x, y), wide @ other)
    check(tenon.matmul_integer(x[:, 0], y[0]), wide[:, 0] @ other[0])
    check(tenon.matmul_integer(x[0, 0, 3], y), wide[0, 0, 3] @ other)
    check(tenon.matmul_integer(x, y[1, :, 5]), wide @ other[1, :, 5])
    check(tenon.matmul_integer(x[0, 0, 3], y[1, :, 5]), wide[0, 0, 3] @ other[1, :, 5])
    check(
        tenon.matmul_integer(x[..., ::-2], y[:, 10:30, ::-3]),
        wide[..., ::-2] @ other[:, 10:30, ::-3],
    )
    row = tenon.expand(x[0, 0, 0], [25, 40])
    check(tenon.matmul_integer(row, y[0]), np.broadcast_to(wide[0, 0, 0], (25, 40)) @ other[0])
    check(tenon.matmul_integer(x[:, :, :0], y), wide[:, :, :0] @ other)


@pytest.mark.parametrize("signed", [(True, True), (True, False), (False, True), (False, False)])
@pytest.mark.parametrize(
    "columns, begin, length", [(64, 0, 48), (64, 1, 48), (63, 4, 48), (61, 3, 5)]
)
def test_matmul_integer_of_parts_that_begin_anywhere(signed, columns, begin, length, device):
    rng = np.random.default_rng(length)
    a, b = (
        rng.choice([-128, -1, 127] if is_signed else [0, 128, 255], (40, columns)).astype(
            "int8" if is_signed else "uint8"
        )
        for is_signed in signed
    )
    part = slice(begin, begin + length)
    x, y = (tenon.tensor(each, device=device)[:, part] for each in (a, b))
    wide, other = (each.astype(np.int32)[:, part] for each in (a, b))
    for got, want in (
        (tenon.matmul_integer(x, y.T), wide @ other.T),
        (tenon.matmul_integer(x[:30].T, y[:30]), wide[:30].T @ other[:30]),
        (tenon.matmul_integer(x[::-1], y.T), wide[::-1] @ other.T),
    ):
        np.testing.assert_array_equal(got.to("cpu").numpy(), want)


def test_matmul_integer_refuses_other_dtypes():
    x = tenon.ones((2, 2)).to(tenon.int8)
    with pytest.raises(TypeError, match="expected one of uint8, int8, got int32"):
        tenon.matmul_integer(x.to(tenon.int32), x)
    with pytest.raises(TypeError, match="expected y of dtype uint8|int8, got float32"):
        tenon.matmul_integer(x, tenon.ones((2, 2)))


CONVOLUTIONS = {
    # images, filters, stride, padding, dilation, groups
    "3x3": ((2, 8, 14, 14), (13, 8, 3, 3), 1, 1, 1, 1),
    "rows of many vectors": ((1, 2, 5, 70), (3, 2, 3, 3), 1, 1, 1, 1),
    "rows of few pixels": ((3, 5, 7, 7), (20, 5, 3, 3), 1, 1, 1, 1),
    "deep": ((2, 40, 6, 5), (14, 40, 3, 3), 1, 1, 1, 1),
    "wide kernel": ((2, 3, 9, 20), (5, 3, 2, 7), 1, [0, 3], 1, 1),
    "stride 2": ((2, 5, 14, 13), (6, 5, 3, 3), 2, 1, 1, 1),
    "pixels that no tap sees": ((2, 5, 14, 13), (6, 5, 1, 1), 2, 0, 1, 1),
    "single pixels, stride across": ((2, 5, 7, 13), (6, 5, 1, 1), [1, 2], 0, 1, 1),
    "single pixels, stride down": ((2, 5, 7, 13), (6, 5, 1, 1), [2, 1], 0, 1, 1),
    "stride beyond the kernel": ((1, 3, 20, 20), (4, 3, 2, 2), 3, 1, 1, 1),
    "dilation": ((2, 4, 15, 16), (6, 4, 3, 3), 1, 2, 2, 1),
    "stride and dilation": ((2, 4, 15, 16), (6, 4, 3, 3), 2, 2, 2, 1),
    "stride and odd dilation": ((2, 4, 21, 16), (6, 4, 3, 3), [2, 3], 3, [3, 2], 1),
    "more padding than kernel": ((1, 2, 4, 4), (3, 2, 2, 2), 1, 3, 1, 1),
    "groups": ((2, 8, 9, 9), (12, 2, 3, 3), 1, 1, 1, 4),
    "depthwise": ((2, 6, 18, 35), (6, 1, 3, 3), 1, 1, 1, 6),
    "depthwise, stride 2": ((2, 6, 18, 35), (6, 1, 3, 3), 2, 1, 1, 6),
    "depthwise, stride 2 over odd sides": ((1, 5, 17, 66), (5, 1, 5, 5), [3, 2], 2, 1, 5),
    "depthwise, stride 2 and dilation": ((2, 4, 21, 18), (4, 1, 3, 3), 2, 2, [1, 3], 4),
    "depthwise, stride 2 and even dilation": ((2, 4, 21, 18), (4, 1, 3, 3), 2, 1, 2, 4),
    "depthwise, stride 2 and small kernel": ((1, 3, 9, 33), (3, 1, 1, 1), 2, 0, 1, 3),
    "depthwise, stride 2 and much padding": ((1, 3, 5, 6), (3, 1, 2, 2), 2, 4, 1, 3),
    "depthwise, two filters each": ((2, 6, 9, 35), (12, 1, 3, 5), 1, [1, 2], 1, 6),
    "depthwise, dilation": ((1, 3, 20, 20), (3, 1, 3, 3), 1, 2, 2, 3),
    "depthwise, one wide row": ((1, 3, 1, 160), (3, 1, 3, 3), 1, 1, 1, 3),
    "depthwise, three wide rows": ((2, 3, 3, 64), (3, 1, 3, 3), 1, 1, 1, 3),
    "depthwise, five wide rows": ((1, 3, 5, 48), (3, 1, 5, 5), 1, 2, 1, 3),
    "depthwise, seven wide rows": ((1, 3, 7, 32), (3, 1, 7, 7), 1, 3, 1, 3),
    "depthwise, wide": ((2, 3, 40, 37), (3, 1, 5, 5), 1, 2, 1, 3),
    "depthwise, wide, part of a vector": ((2, 3, 12, 45), (3, 1, 3, 3), 1, 1, 1, 3),
    "depthwise, wide, no padding": ((2, 3, 18, 34), (3, 1, 5, 5), 1, 0, 1, 3),
    "depthwise, wide, much padding": ((1, 2, 10, 26), (2, 1, 3, 3), 1, [4, 3], 1, 2),
    "depthwise, wide, one channel more": ((2, 15, 9, 32), (15, 1, 3, 3), 1, 1, 1, 15),
    "depthwise, wide, two filters each": ((1, 2, 30, 48), (4, 1, 7, 7), 1, 3, 1, 2),
    "depthwise, wide, stride 2": ((2, 3, 50, 63), (3, 1, 3, 3), 2, 1, 1, 3),
    "depthwise, wide, stride 2, two filters each": ((1, 2, 28, 61), (4, 1, 5, 5), 2, [0, 2], 1, 2),
    "depthwise, wide, stride 2, no padding": ((1, 2, 40, 101), (2, 1, 7, 7), 2, 0, 1, 2),
    "depthwise, small": ((3, 37, 7, 7), (37, 1, 3, 3), 1, 1, 1, 37),
    "depthwise, few pixels": ((2, 5, 3, 2), (5, 1, 3, 3), 1, 1, 1, 5),
    "depthwise, many bands": ((1, 20, 70, 66), (20, 1, 7, 7), 2, 3, 1, 20),
    "depthwise, cut off": ((1, 4, 9, 9), (4, 1, 2, 2), 2, 4, 1, 4),
    "depthwise, vectors of channels": ((2, 32, 11, 14), (32, 1, 3, 3), 1, 1, 1, 32),
    "depthwise, vectors of channels, stride": ((2, 35, 18, 29), (35, 1, 3, 3), 2, 1, 1, 35),
    "depthwise, vectors of channels, two filters each": (
        (1, 33, 12, 27),
        (66, 1, 3, 5),
        [2, 1],
        [1, 2],
        [1, 2],
        33,
    ),
    "depthwise, vectors of channels, much padding": ((1, 16, 4, 12), (16, 1, 3, 3), 1, 4, 1, 16),
    "pointwise": ((2, 8, 7, 9), (5, 8, 1, 1), 1, 0, 1, 1),
    "pointwise, many pixels": ((2, 8, 13, 11), (5, 8, 1, 1), 1, 0, 1, 1),
    "pointwise, groups": ((3, 12, 12, 11), (6, 4, 1, 1), 1, 0, 1, 3),
    "pointwise, large planes": ((2, 4, 24, 23), (5, 4, 1, 1), 1, 0, 1, 1),
    "pointwise, stride": ((2, 8, 23, 25), (5, 8, 1, 1), 2, 0, 1, 1),
    "pointwise, stride over large planes": ((2, 4, 48, 45), (3, 4, 1, 1), [2, 1], 0, 1, 1),
    "pointwise, stride and groups": ((2, 12, 34, 36), (6, 4, 1, 1), [2, 3], 0, 1, 3),
    "pointwise, a product for each image": ((3, 24, 12, 13), (35, 24, 1, 1), 1, 0, 1, 1),
    "pointwise, a product for each group": ((2, 36, 14, 13), (34, 18, 1, 1), 1, 0, 1, 2),
    "pointwise, products and stride": ((2, 17, 23, 25), (18, 17, 1, 1), [2, 1], 0, 1, 1),
    "few filters": ((5, 1, 28, 28), (6, 1, 5, 5), 1, 2, 1, 1),
    "few filters, several channels": ((19, 6, 14, 14), (15, 6, 5, 5), 1, 0, 1, 1),
    "few filters, stride": ((3, 3, 21, 40), (7, 3, 3, 3), [1, 2], 1, 1, 1),
    "few filters, groups": ((2, 6, 20, 33), (9, 2, 3, 3), 1, 1, [2, 1], 3),
    "many filters": ((3, 33, 13, 11), (35, 33, 3, 3), 1, 1, 1, 1),
    "many filters, even sides": ((2, 32, 14, 40), (32, 32, 3, 3), 1, 1, 1, 1),
    "many filters, no padding": ((1, 32, 23, 22), (48, 32, 3, 3), 1, 0, 1, 1),
    "many filters, much padding": ((1, 40, 15, 9), (32, 40, 3, 3), 1, [2, 4], 1, 1),
    "many filters, small images": ((5, 33, 5, 3), (32, 33, 3, 3), 1, 1, 1, 1),
    "many filters, bands": ((2, 32, 30, 41), (34, 32, 3, 3), 1, 1, 1, 1),
    "many filters, wide rows": ((2, 32, 5, 75), (33, 32, 3, 3), 1, 1, 1, 1),
    "many filters, odd rows": ((1, 32, 9, 131), (32, 32, 3, 3), 1, [0, 3], 1, 1),
    "many filters, groups": ((2, 64, 12, 12), (70, 32, 3, 3), 1, 1, 1, 2),
    "blocks": ((2, 6, 17, 29), (17, 6, 5, 5), 1, 2, 1, 1),
    "blocks, several": ((3, 20, 9, 15), (65, 20, 3, 3), 1, [1, 0], 1, 1),
    "blocks, stride": ((2, 16, 21, 30), (33, 16, 3, 3), 2, 1, 1, 1),
    "blocks, dilation": ((2, 17, 16, 14), (16, 17, 3, 3), 1, 2, 2, 1),
    "blocks, channels of whole pages": ((2, 512, 5, 6), (18, 512, 2, 3), 1, 1, 1, 1),
    "blocks, bands": ((2, 24, 90, 100), (16, 24, 2, 3), [2, 1], 1, 1, 1),
    "blocks, groups": ((2, 40, 12, 9), (36, 20, 3, 3), [1, 2], 1, 1, 2),
    "blocks, much padding": ((1, 16, 4, 3), (16, 16, 2, 2), 1, 3, 1, 1),
    "blocks, small images": ((9, 16, 3, 2), (18, 16, 3, 3), 1, 1, 1, 1),
    "blocks, one row": ((2, 19, 1, 200), (32, 19, 1, 9), [1, 2], [0, 4], 1, 1),
    "lines, passes over channels": ((2, 100, 9, 8), (35, 100, 3, 3), 1, 1, 1, 1),
    "lines, passes over filters": ((2, 512, 4, 5), (70, 512, 3, 3), 1, 1, 1, 1),
    "lines, many taps": ((2, 17, 13, 15), (35, 17, 5, 5), 1, 2, 1, 1),
    "lines, many taps and parts": ((2, 16, 40, 42), (18, 16, 7, 7), [4, 3], 3, 1, 1),
    "lines, wide": ((1, 16, 3, 600), (17, 16, 2, 3), 1, [0, 1], 1, 1),
    "lines, no more seen than taps": ((2, 32, 16, 24), (16, 32, 8, 8), 8, 0, 1, 1),
    "lines, stride and even dilation": ((2, 32, 20, 21), (33, 32, 3, 3), 2, 2, 2, 1),
    "lines, stride and odd dilation": ((3, 48, 20, 21), (16, 48, 3, 3), [2, 3], 3, [3, 2], 1),
    "lines, groups of filters": ((2, 34, 9, 9), (34, 17, 3, 3), 1, 1, 1, 2),
    "lines, no images": ((0, 32, 5, 5), (32, 32, 3, 3), 1, 1, 1, 1),
    "no images": ((0, 3, 5, 5), (4, 3, 3, 3), 1, 1, 1, 1),
}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_convolution_and_gradients_are_exact(name, dtype, device):
    image, filters, *rest = CONVOLUTIONS[name]
    stride, padding, dilation = ([each] if isinstance(each, int) else each for each in rest[:3])
    settings = (stride, padding, dilation, rest[3])
    rng = np.random.default_rng(1)
    x, w, b = (rng.integers(-4, 5, s).astype(dtype) for s in (image, filters, filters[:1]))
    ours = [tenon.tensor(each, device=device) for each in (x, w, b)]
    got = tenon.conv2d(*ours, *settings).to("cpu").numpy()
    pairs = (value * 2 if len(value) == 1 else value for value in (stride, padding, dilation))
    want = conv2d(x, w, b, *pairs, rest[3]) if image[0] else got
    assert_equal_sums(got, want, device)

    # conv2d is linear in x and in w: its gradients are what pairs with any dx and any dw alike.
    g = rng.integers(-4, 5, got.shape).astype(dtype)
    grad = tenon.tensor(g, device=device)
    dx = tenon.conv2d_input_grad(grad, ours[1], list(image), *settings).to("cpu").numpy()
    dw = tenon.conv2d_weight_grad(grad, ours[0], list(filters), *settings).to("cpu").numpy()
    for _ in range(3):
        other = rng.integers(-4, 5, image).astype(dtype)
        moved = tenon.conv2d(tenon.tensor(other, device=device), ours[1], None, *settings)
        scale = np.abs(dx * other).sum()
        assert_equal_sums((moved.to("cpu").numpy() * g).sum(), (dx * other).sum(), device, scale)
        other = rng.integers(-4, 5, filters).astype(dtype)
        moved = tenon.conv2d(ours[0], tenon.tensor(other, device=device), None, *settings)
        scale = np.abs(dw * other).sum()
        assert_equal_sums((moved.to("cpu").numpy() * g).sum(), (dw * other).sum(), device, scale)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float8_e4m3", "float8_e5m2"])
@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_convolution_of_reduced_floats_rounds_once(name, dtype, device):
    """Against float32 kernels, on numbers whose sums they have exactly. Devices without a kernel
    round the sum before they add the bias."""
    if dtype.startswith("float8") and device != "cpu":
        pytest.skip("a bias added to a sum of two or three bits tells nothing")
    image, filters, *rest = CONVOLUTIONS[name]
    settings = [[each] if isinstance(each, int) else each for each in rest[:3]] + rest[3:]
    rng = np.random.default_rng(1)
    x, w, b = (
        tenon.tensor(rng.integers(-4, 5, shape).astype(np.float32), device=device)
        for shape in (image, filters, filters[:1])
    )
    out = tenon.conv2d(x, w, b, *settings)
    g = tenon.tensor(rng.integers(-2, 3, out.shape).astype(np.float32), device=device)

    def results(x, w, b, g):
        return (
            tenon.conv2d(x, w, b, *settings),
            tenon.conv2d_input_grad(g, w, list(image), *settings),
            tenon.conv2d_weight_grad(g, x, list(filters), *settings),
        )

    reduced = getattr(tenon, dtype)
    want = results(x, w, b, g)
    got = results(*(each.to(reduced) for each in (x, w, b, g)))
    for ours, exact in zip(got, want, strict=True):
        assert ours.dtype == reduced
        ours, exact = (
            each.to("cpu").to(tenon.float32).numpy() for each in (ours, exact.to(reduced))
        )
        unit = {"bfloat16": 2**-7, "float16": 2**-10}.get(dtype, 0)
        # What cuDNN's transforms in float32 leave where the sum is zero.
        residue = 1e-5 * np.abs(exact).max(initial=0) if device.startswith("cuda") else 0
        np.testing.assert_allclose(ours, exact, rtol=0 if device == "cpu" else unit, atol=residue)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("channels", [3, 40])
@pytest.mark.parametrize("column", [0, 8, 19])
def test_convolution_keeps_nan_and_infinity_in_their_windows(
    column, channels, value, dtype, device
):
    x, w = np.ones((1, channels, 20, 20), np.float32), np.ones((40, channels, 3, 3), np.float32)
    x[0, 1, 7, column] = value
    ours = (tenon.tensor(each, device=device).to(getattr(tenon, dtype)) for each in (x, w))
    got = tenon.conv2d(*ours, None, [1], [1]).to("cpu").to(tenon.float32).numpy()
    want = tenon.tensor(conv2d(x, w, None, 1, 1)).to(getattr(tenon, dtype))
    np.testing.assert_array_equal(got, want.to(tenon.float32).numpy())


def test_minimal_filtering_is_as_exact_as_sums(device):
    """Against float64, in units of float32's rounding of a typical result. cuDNN transforms larger tiles: the
    gradient of the weight was off by 303 units on an H100."""
    limit = 512 if device.startswith("cuda") else 64
    rng = np.random.default_rng(3)
    x, w = rng.standard_normal((4, 64, 28, 28)), rng.standard_normal((64, 64, 3, 3))
    g = rng.standard_normal((4, 64, 28, 28))

    def errors(run):
        exact, rounded = (
            run(*(tenon.tensor(each.astype(dtype), device=device) for each in (x, w, g)))
            .to("cpu")
            .numpy()
            for dtype in (np.float64, np.float32)
        )
        return np.abs(exact - rounded).max() / exact.std() / np.finfo(np.float32).eps

    assert errors(lambda x, w, g: tenon.conv2d(x, w, None, [1], [1])) < limit
    assert errors(lambda x, w, g: tenon.conv2d_input_grad(g, w, list(x.shape), [1], [1])) < limit
    assert errors(lambda x, w, g: tenon.conv2d_weight_grad(g, x, list(w.shape), [1], [1])) < limit


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("channels", [8, 40])  # both ways to do it
@pytest.mark.parametrize("corner", [0, 11])
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_weight_gradient_keeps_nan_and_infinity_in_their_taps(
    value, corner, channels, dtype, device
):
    # The corner is under one tap of a kernel of 3 x 3 without padding.
    shape = [channels, channels, 3, 3]
    x, g = np.ones((1, channels, 12, 12), np.float32), np.ones((1, channels, 10, 10), np.float32)
    x[0, 7, corner, corner] = value
    ours = (tenon.tensor(each, device=device).to(getattr(tenon, dtype)) for each in (g, x))
    got = tenon.conv2d_weight_grad(*ours, shape).to("cpu").to(tenon.float32).numpy()
    want = np.full(shape, 100, np.float32)
    want[:, 7, corner and 2, corner and 2] = value
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("corner", [0, 29])
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_weight_gradient_of_planes_keeps_nan_and_infinity_in_their_taps(value, corner, device):
    # Rows of gradients end within a vector, under which pixels go on.
    x, g = np.ones((2, 3, 30, 30), np.float32), np.ones((2, 3, 28, 28), np.float32)
    x[0, 1, corner, corner] = value
    ours = (tenon.tensor(each, device=device) for each in (g, x))
    got = tenon.conv2d_weight_grad(*ours, [3, 1, 3, 3], groups=3).to("cpu").numpy()
    want = np.full((3, 1, 3, 3), 2 * 28 * 28, np.float32)
    want[1, 0, corner and 2, corner and 2] = value
    np.testing.assert_array_equal(got, want)


def test_convolution_of_permuted_images(device):
    rng = np.random.default_rng(2)
    x = rng.integers(-4, 5, (2, 9, 10, 3)).astype(np.float32)
    w = rng.integers(-4, 5, (4, 3, 3, 3)).astype(np.float32)
    image = tenon.permute(tenon.tensor(x, device=device), [0, 3, 1, 2])
    got = tenon.conv2d(image, tenon.tensor(w, device=device), None, [1], [1]).to("cpu").numpy()
    np.testing.assert_array_equal(got, conv2d(x.transpose(0, 3, 1, 2), w, None, 1, 1))


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "float16"])
@pytest.mark.parametrize("name", [each for each in CONVOLUTIONS if CONVOLUTIONS[each][0][0] > 0])
def test_convolution_and_gradients_of_permuted_images(name, dtype, device):
    image, filters, *rest = CONVOLUTIONS[name]
    settings = [[each] if isinstance(each, int) else each for each in rest[:3]] + rest[3:]
    rng = np.random.default_rng(4)

    def numbers(shape):
        array = rng.integers(-2, 3, shape).astype(np.float32)
        return tenon.tensor(array, device=device).to(getattr(tenon, dtype))

    def permuted(x):
        return tenon.permute(tenon.permute(x, [0, 2, 3, 1]).contiguous(), [0, 3, 1, 2])

    x, w, b = numbers(image), numbers(filters), numbers(filters[:1])
    want = tenon.conv2d(x, w, b, *settings)
    g = numbers(want.shape)
    pairs = [(want, tenon.conv2d(permuted(x), w, b, *settings))]
    grads = tenon.conv2d_input_grad, tenon.conv2d_weight_grad
    for grad, other, shape in ((grads[0], w, image), (grads[1], x, filters)):
        same = other if other is w else permuted(other)
        expected = grad(g, other, list(shape), *settings)
        for one, another in ((permuted(g), same), (permuted(g), other), (g, same)):
            pairs.append((expected, grad(one, another, list(shape), *settings)))
    for expected, got in pairs:
        expected, got = (each.to("cpu").to(tenon.float64).numpy() for each in (expected, got))
        np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("isa", INSTRUCTION_SETS)
def test_every_instruction_set(isa):
    run_with_instruction_set(isa, __file__, "edges_of_tiles or integer_is_exact or rounds_once")
