# SPDX-License-Identifier: Apache-2.0
"""Every algorithm of plugins/fft: lengths of all radices and beyond, single lines and groups of lines, lines that
lie together, beside each other, or apart. The exact transform is a sum in long double."""

import functools
import threading

import numpy as np
import pytest
import tenon

pytestmark = pytest.mark.skipif(
    bool(np.finfo(np.longdouble).eps > 1e-18), reason="long double is no wider than float64 here"
)

SMOOTH = [1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 12, 13, 15, 16, 25, 27, 32, 49, 60, 64, 77, 121, 125, 128,
          143, 169, 210, 256, 360, 512, 600]  # fmt: skip
OTHER = [
    17,
    19,
    34,
    37,
    41,
    53,
    82,
    97,
    127,
    251,
    311,
    521,
]  # prime radices, and Bluestein's algorithm


@functools.cache
def cosines_and_sines(n):
    k = np.arange(n)
    angles = np.outer(k, k) % n * (2 * np.arccos(np.longdouble(-1)) / n)
    return np.cos(angles), np.sin(angles)


def exact(x):
    """Real and imaginary parts of the transform along the last axis."""
    cosines, sines = cosines_and_sines(x.shape[-1])
    re, im = x.real.astype(np.longdouble), x.imag.astype(np.longdouble)
    return re @ cosines + im @ sines, im @ cosines - re @ sines


def error(got, want):
    """Root mean square of the error, relative to that of the result."""
    square = (got.real - want[0]) ** 2 + (got.imag - want[1]) ** 2
    return float(np.sqrt(square.sum() / (want[0] ** 2 + want[1] ** 2).sum()))


def numbers(shape, dtype, seed=1):
    generator = np.random.default_rng(seed)
    x = generator.standard_normal(shape) + 1j * generator.standard_normal(shape)
    return (x if np.dtype(dtype).kind == "c" else x.real).astype(dtype)


def fft(x, **options):
    return tenon.fft.fft(tenon.tensor(x), **options).numpy()


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("lines", [1, 3, 40])
def test_errors_grow_with_the_logarithm_of_the_length(dtype, lines):
    """The bounds are a tenth above what was measured with three instruction sets; pocketfft has 5 % more error."""
    for n in SMOOTH + OTHER:
        x = numbers((lines, n), dtype)
        bound = (
            np.finfo(dtype).eps * (0.5 + 0.13 * np.log2(n)) * (2 if n > 37 and n in OTHER else 1)
        )
        assert error(fft(x), exact(x)) <= bound, n


@pytest.mark.parametrize("n", [1, 2, 5, 12, 16, 37, 41, 96, 101, 144, 400, 1009, 4096])
def test_layouts_do_not_matter(n):
    x = numbers((3, 19, n), "complex64")
    want = np.fft.fft(x.astype("complex128"))
    near = {"rtol": 0, "atol": 1e-6 * np.abs(want).max()}
    together = tenon.tensor(x)
    beside = tenon.tensor(np.ascontiguousarray(x.transpose(2, 0, 1))).permute(1, 2, 0)
    wide = np.zeros((3, 19, 3 * n), "complex64")
    wide[..., ::3] = x
    apart = tenon.tensor(wide)[..., ::3]
    backwards = tenon.flip(tenon.tensor(np.ascontiguousarray(x[..., ::-1])), [2])
    for each in (together, beside, apart, backwards):
        np.testing.assert_allclose(tenon.fft.fft(each).numpy(), want, **near)
        back = tenon.fft.ifft(tenon.fft.fft(each)).numpy()
        np.testing.assert_allclose(back, x, rtol=0, atol=2e-6 * np.abs(x).max())
    down = tenon.fft.fft(tenon.tensor(np.ascontiguousarray(x.transpose(2, 0, 1))), axis=0).numpy()
    np.testing.assert_allclose(down.transpose(1, 2, 0), want, **near)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("n", [1, 2, 3, 4, 9, 14, 37, 38, 74, 82, 101, 360, 1000, 1009, 2048])
@pytest.mark.parametrize("shape", [(1,), (2,), (21,), (3, 5)], ids=str)
def test_real_lines_there_and_back(n, shape, dtype):
    x = numbers((*shape, n), dtype)
    want = np.fft.rfft(x.astype("float64"))
    eps = np.finfo(dtype).eps
    near = {"rtol": 0, "atol": 12 * eps * np.abs(want).max()}
    got = tenon.fft.rfft(tenon.tensor(x))
    np.testing.assert_allclose(got.numpy(), want, **near)
    down = tenon.tensor(np.ascontiguousarray(np.moveaxis(x, -1, 0)))
    np.testing.assert_allclose(
        np.moveaxis(tenon.fft.rfft(down, axis=0).numpy(), 0, -1), want, **near
    )
    back = {"rtol": 0, "atol": 12 * eps * np.abs(x).max()}
    np.testing.assert_allclose(tenon.fft.irfft(got, n).numpy(), x, **back)
    columns = tenon.fft.irfft(
        tenon.tensor(np.ascontiguousarray(np.moveaxis(want, -1, 0))), n, axis=0
    )
    np.testing.assert_allclose(np.moveaxis(columns.numpy(), 0, -1), x, **back)


@pytest.mark.parametrize("n", [8, 9])
def test_imaginary_parts_that_real_lines_cannot_have_do_not_count(n):
    x = numbers((2, n // 2 + 1), "complex128")
    real = x.copy()
    real[:, 0] = real[:, 0].real
    if n % 2 == 0:
        real[:, -1] = real[:, -1].real
    got, want = (tenon.fft.irfft(tenon.tensor(each), n).numpy() for each in (x, real))
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("n", [8, 15, 41, 500])
@pytest.mark.parametrize("transform", ["fft", "rfft"])
def test_lines_do_not_see_each_other(n, transform):
    """Lines that are in one vector: one has NaN, one is huge, and the others keep their numbers."""
    x = numbers((19, n), "float32" if transform == "rfft" else "complex64")
    function = getattr(tenon.fft, transform)
    want = function(tenon.tensor(x)).numpy()
    x[3] = np.nan
    x[4] *= 1e30
    got = function(tenon.tensor(x)).numpy()
    others = [i for i in range(19) if i not in (3, 4)]
    np.testing.assert_array_equal(got[others], want[others])
    assert np.isnan(got[3]).all()


def test_long_lines_are_transformed_in_panels():
    x = numbers(3 * 2**16, "complex64")
    want = np.fft.fft(x.astype("complex128"))
    np.testing.assert_allclose(fft(x), want, rtol=0, atol=3e-6 * np.abs(want).max())
    prime = numbers(65537, "complex128")
    np.testing.assert_allclose(fft(prime), np.fft.fft(prime), rtol=0, atol=1e-11)


def test_more_lengths_than_are_kept_from_several_threads():
    lengths = list(range(200, 280))
    lines = {n: numbers((2, n), "complex128") for n in lengths}
    wrong = []

    def run(offset):
        for n in lengths[offset:] + lengths[:offset]:
            if not np.allclose(fft(lines[n]), np.fft.fft(lines[n]), rtol=0, atol=1e-11):
                wrong.append(n)

    threads = [threading.Thread(target=run, args=(20 * i,)) for i in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert wrong == []
