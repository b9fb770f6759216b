# SPDX-License-Identifier: Apache-2.0
"""Tiles of transposed operands and columns side by side: around the sizes of tiles, with rows that
meet in one set of a cache, and of results that go around the caches."""

import numpy as np
import pytest
import tenon

DTYPES = ["uint8", "int16", "float32", "float64", "complex128"]
# Around tiles of 64 x 128 and of 16-byte pieces; less than a tile on one side; rows 4096 bytes apart, on one
# side and on both.
SHAPES = [(3, 5), (17, 33), (9, 200), (200, 9), (64, 128), (65, 257), (129, 100), (127, 143)]
SHAPES += [(64, 1024), (1024, 70), (1024, 1024)]


def numbers(shape, dtype):
    values = np.arange(np.prod(shape)).reshape(shape) * 7 % 251
    return (values + 1j * (values % 13) if dtype == "complex128" else values).astype(dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES)
def test_copies_of_transposed_tensors(shape, dtype):
    array = numbers(shape, dtype)
    x = tenon.tensor(array)
    np.testing.assert_array_equal(tenon.clone(x.T).numpy(), array.T)
    np.testing.assert_array_equal(tenon.clone(x[1:, 1:].T).numpy(), array[1:, 1:].T)
    three = tenon.tensor(np.stack([array, array + array.dtype.type(1)]))
    np.testing.assert_array_equal(
        tenon.clone(three.permute((0, 2, 1))).numpy(), three.numpy().transpose(0, 2, 1)
    )


# Of 16 MiB and more: to whole lines, to rows that do not begin with one, with rests on both sides.
@pytest.mark.parametrize("shape", [(2048, 2112), (2055, 2112), (2100, 2051)])
@pytest.mark.parametrize("threads", [1, 2])
def test_copies_of_large_transposed_tensors(shape, threads):
    array = numbers(shape, "float32")
    before = tenon.get_num_threads()
    tenon.set_num_threads(threads)
    try:
        copied = tenon.clone(tenon.tensor(array).T).numpy()
        bytes_ = numbers((shape[0] * 4, shape[1]), "uint8")
        copied_bytes = tenon.clone(tenon.tensor(bytes_).T).numpy()
        wide = numbers((shape[0] // 2, shape[1]), "float64")
        copied_wide = tenon.clone(tenon.tensor(wide).T).numpy()
        halves = tenon.tensor(numbers((2, shape[0], shape[1]), "int16"))
        copied_halves = tenon.clone(halves.permute((0, 2, 1))).numpy()
    finally:
        tenon.set_num_threads(before)
    np.testing.assert_array_equal(copied, array.T)
    np.testing.assert_array_equal(copied_bytes, bytes_.T)
    np.testing.assert_array_equal(copied_wide, wide.T)
    np.testing.assert_array_equal(copied_halves, halves.numpy().transpose(0, 2, 1))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES[:-1])
def test_arithmetic_on_transposed_tensors(shape, dtype):
    array, other = numbers(shape, dtype), numbers(shape[::-1], dtype)
    x, y = tenon.tensor(array), tenon.tensor(other)
    np.testing.assert_array_equal((x.T + y).numpy(), array.T + other)
    out = tenon.tensor(other)
    tenon.add(x.T, out, out=out)
    np.testing.assert_array_equal(out.numpy(), array.T + other)


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex128", "bfloat16"])
@pytest.mark.parametrize("shape", SHAPES[:-1])
def test_conditions_on_transposed_tensors(shape, dtype):
    """Tiles of bytes beside wider operands, which share their width."""
    array, other = numbers(shape, "float32"), numbers(shape[::-1], "float32") % 128
    chosen = array.T % 3 > 1
    x = (tenon.tensor(array) % 128).to(getattr(tenon, dtype))
    y = tenon.tensor(other).to(getattr(tenon, dtype))
    mask = tenon.tensor(np.ascontiguousarray(chosen.T)).T
    want = np.where(chosen, array.T % 128, other)
    got = tenon.where(mask, x.T, y).to(tenon.float64).numpy()
    np.testing.assert_array_equal(got, want)
    spread = tenon.tensor(np.repeat(other, 2, axis=1)).to(getattr(tenon, dtype))[:, ::2]
    got = tenon.where(mask, x.T, spread).to(tenon.float64).numpy()
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("rows", [1, 3, 4, 130, 263])
@pytest.mark.parametrize("columns", [1, 63, 65, 256, 257, 600])
def test_moments_of_columns(rows, columns, dtype):
    array = np.random.default_rng(rows).normal(3, 2, (rows, columns)).astype(dtype)
    tolerance = 1e-4 if dtype == "float32" else 1e-12
    x = tenon.tensor(array)
    exact = array.astype(np.float64)
    np.testing.assert_allclose(tenon.var(x, 0).numpy(), exact.var(0), tolerance, tolerance)
    if rows < 2:
        return
    weight, bias = exact[0] + 1, exact[1]
    out, mean, var = tenon.batch_norm(
        x, tenon.tensor(weight.astype(dtype)), tenon.tensor(bias.astype(dtype))
    )[:3]
    np.testing.assert_allclose(mean.numpy(), exact.mean(0), tolerance, tolerance)
    np.testing.assert_allclose(var.numpy(), exact.var(0), tolerance, tolerance)
    want = (exact - exact.mean(0)) / np.sqrt(exact.var(0) + 1e-5) * weight + bias
    np.testing.assert_allclose(out.numpy(), want, 20 * tolerance, 20 * tolerance)


# Rows in one task and in several, whole and in parts; few columns, more than are computed side by side.
COLUMNS = [(300, 3), (16390, 40), (263, 300), (999, 1000), (260, 1025), (130, 4100), (5, 700, 300)]


@pytest.mark.parametrize("shape", COLUMNS)
def test_reductions_of_columns(shape):
    array = numbers(shape, "float32") - 100  # whole numbers, whose sums are exact
    wide = numbers((*shape[:-1], 2 * shape[-1]), "float32")
    real = np.random.default_rng(1).standard_normal(shape, dtype=np.float32)
    axis, before, results = len(shape) - 2, tenon.get_num_threads(), []
    for threads in (1, 2, 3):
        tenon.set_num_threads(threads)
        try:
            x = tenon.tensor(array)
            np.testing.assert_array_equal(x.sum(axis).numpy(), array.sum(axis))
            np.testing.assert_array_equal(tenon.max(x, axis).numpy(), array.max(axis))
            np.testing.assert_array_equal((x == 7).any(axis).numpy(), (array == 7).any(axis))
            np.testing.assert_array_equal(x.to(tenon.int32).sum(axis).numpy(), array.sum(axis))
            spread = tenon.tensor(wide)[..., ::2]
            np.testing.assert_array_equal(spread.sum(axis).numpy(), wide[..., ::2].sum(axis))
            results.append(tenon.tensor(real).sum(axis).numpy())
        finally:
            tenon.set_num_threads(before)
    np.testing.assert_allclose(results[0], real.sum(axis, dtype=np.float64), 1e-4, 1e-4)
    for result in results[1:]:  # the order of additions does not depend on threads
        np.testing.assert_array_equal(result, results[0])


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64", "uint64"])
@pytest.mark.parametrize("name", ["argmax", "argmin"])
def test_first_of_equals_at_every_place(name, dtype):
    """Rows of four registers at a time, of one, and their rest."""
    function = getattr(tenon, name)
    for n in (8, 16, 31, 127, 300, 519):
        array = np.full((n, n), 3, dtype)
        best = 5 if name == "argmax" else 1
        array[np.arange(n), np.arange(n)] = best
        array[:, n - 1] = best  # a later equal
        np.testing.assert_array_equal(function(tenon.tensor(array), 1).numpy(), np.arange(n))
        same = tenon.tensor(np.full((2, n), 3, dtype))
        np.testing.assert_array_equal(function(same, 1).numpy(), [0, 0])
        if dtype.startswith("float"):
            array[:, n // 2] = np.nan
            want = getattr(np, name)(array, 1)
            np.testing.assert_array_equal(function(tenon.tensor(array), 1).numpy(), want)
