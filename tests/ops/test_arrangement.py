# SPDX-License-Identifier: Apache-2.0
"""Parts of tensors picked, replaced and filled, at edges."""

import numpy as np
import pytest
import tenon
from running import skip_unserved


def host(x):
    return x.to("cpu").numpy()


@pytest.mark.parametrize("offset", [-5, -2, 0, 1, 4])
@pytest.mark.parametrize("shape", [(3, 3), (2, 5), (7, 3), (0, 3)])
def test_fill_diagonal(offset, shape, device):
    x = tenon.zeros(shape, device=device)
    want = np.eye(*shape, offset, dtype=np.float32) * 4
    np.testing.assert_array_equal(host(tenon.fill_diagonal(x, 4.0, offset)), want)


@pytest.mark.parametrize("shape", [(3, 3), (2, 5), (7, 3), (4, 3), (3, 3, 3)])
def test_fill_diagonal_that_wraps(shape, device):
    want = np.zeros(shape, np.float32)
    wrap = len(shape) == 2
    np.fill_diagonal(want, 4, wrap)
    got = tenon.fill_diagonal(tenon.zeros(shape, device=device), 4.0, 0, wrap)
    np.testing.assert_array_equal(host(got), want)


def test_scatters_are_what_assignments_do(device):
    array, part = np.arange(20.0).reshape(4, 5), np.array([[7.0], [8.0], [9.0], [6.0]])
    x, source = tenon.tensor(array, device=device), tenon.tensor(part, device=device)
    for start, stop, step in [(0, 5, 1), (-3, 9, 2), (4, 1, 1), (-9, -1, 3)]:
        want = array.copy()
        want[:, start:stop:step] = part
        np.testing.assert_array_equal(
            host(tenon.slice_scatter(x, source, 1, start, stop, step)), want
        )
    want = array.copy()
    want[:, -2] = part[:, 0]
    np.testing.assert_array_equal(host(tenon.select_scatter(x, source[:, 0], 1, -2)), want)
    assert tenon.select_scatter(x, 3, 0, 1).tolist()[1] == [3.0] * 5
    want = array.copy()
    want[range(1, 4), range(3)] = 1
    got = tenon.diagonal_scatter(x, tenon.tensor(1, device=device), -1)
    np.testing.assert_array_equal(host(got), want)


@pytest.mark.parametrize(
    "size, stride, offset",
    [([3, 4], [1, 2], 3), ([2, 2, 2], [0, -1, 4], 5), ([], [], 7), ([0], [99], 99)],
)
def test_as_strided(size, stride, offset, device):
    array = np.arange(24.0).reshape(4, 6)
    x = tenon.tensor(array, device=device)
    flat = array.ravel()
    want = np.zeros(size)
    for place in np.ndindex(*size):
        want[place] = flat[offset + sum(i * s for i, s in zip(place, stride, strict=True))]
    np.testing.assert_array_equal(host(tenon.as_strided(x, size, stride, offset)), want)
    # The order of elements is that of the tensor, however it lies in memory.
    np.testing.assert_array_equal(
        host(tenon.as_strided(x.T.contiguous().T, size, stride, offset)), want
    )


def test_errors_of_as_strided():
    x = tenon.zeros([2, 3])
    for arguments in [([4], [2]), ([2], [-1]), ([1], [0], 6), ([1], [0], -1)]:
        with pytest.raises(IndexError, match=r"expected elements 0 to 5 of shape \(2, 3\)"):
            tenon.as_strided(x, *arguments)
    with pytest.raises(IndexError, match="expected elements 0 to 5"):
        tenon.as_strided(x, [2**40, 2**40], [2**40, 2**40])
    with pytest.raises(ValueError, match=r"and a stride for each, got \(2,\) and \(1, 1\)"):
        tenon.as_strided(x, [2], [1, 1])
    with pytest.raises(ValueError, match="expected lengths of at least 0"):
        tenon.as_strided(x, [-1], [1])


def test_errors():
    x = tenon.zeros([2, 6])
    for sizes in ([4, 2], [-1, -1], [0, -1], [5, -1], []):
        with pytest.raises(ValueError, match="sizes whose product is 6, the length of axis 1"):
            tenon.unflatten(x, 1, sizes)
    with pytest.raises(IndexError, match="expected an index from -2 to 1, got 2"):
        tenon.select_scatter(x, 1.0, 0, 2)
    with pytest.raises(ValueError, match="expected a step of at least 1, got 0"):
        tenon.slice_scatter(x, 1.0, 0, 0, 1, 0)
    with pytest.raises(ValueError, match="expected a matrix, or more axes of one length"):
        tenon.fill_diagonal(tenon.zeros([2, 3, 2]), 1.0)
    with pytest.raises(
        IndexError, match="a part of axis 1, which has length 6, got 4 elements from 3"
    ):
        tenon.crop(x, [1, 4], [0, 3])
    with pytest.raises(ValueError, match=r"expected 2 extents and offsets for shape \(2, 6\)"):
        tenon.crop(x, [1])
    with pytest.raises(ValueError, match="shard below shards, got 9, 2 and 2"):
        tenon.shard_index(tenon.tensor([1]), 9, 2, 2)
    with pytest.raises(IndexError, match="expected indices from 0 to 8, got 9"):
        tenon.shard_index(tenon.tensor([9]), 9, 2, 1)
    with pytest.raises(TypeError, match="expected integers, got float32; convert with"):
        tenon.shard_index(tenon.tensor([1.0]), 9, 2, 1)
    with pytest.raises(ValueError, match="an index for each row"):
        tenon.multiplex([x, x], tenon.tensor([0]))
    with pytest.raises(ValueError, match=r"a last axis of length 2, .* got shape \(3,\)"):
        tenon.as_complex(tenon.zeros([3]))


def test_views_of_bits():
    x = tenon.tensor([[1.0, -2.0], [0.0, 3.5]])
    bits = tenon.view_dtype(x, "int32")
    np.testing.assert_array_equal(bits.numpy(), x.numpy().view(np.int32))
    bits[0, 0] = 0
    assert x[0, 0].item() == 0  # a view
    np.testing.assert_array_equal(tenon.view_dtype(x, "uint8").numpy(), x.numpy().view(np.uint8))
    np.testing.assert_array_equal(
        tenon.view_dtype(x, "float64").numpy(), x.numpy().view(np.float64)
    )
    assert tenon.view_dtype(tenon.tensor(1.0), "int32").item() == 0x3F800000
    with pytest.raises(ValueError, match="expected a dense last axis that 8-byte elements divide"):
        tenon.view_dtype(tenon.zeros([2, 3]), "float64")
    with pytest.raises(ValueError, match="expected a dense last axis"):
        tenon.view_dtype(tenon.zeros([2, 4]).T, "int8")
    with pytest.raises(ValueError, match="expected a dense last axis"):
        tenon.view_dtype(tenon.zeros([5])[1:], "float64")
    with pytest.raises(ValueError, match="expected a dense last axis"):
        tenon.view_dtype(tenon.tensor(1.0), "int8")


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "int64"])
def test_divisors(dtype, device):
    low = 0 if dtype == "uint8" else -100
    array = np.random.default_rng(2).integers(low, 100, (2, 40)).astype(dtype)
    a, b = (tenon.tensor(row, device=device) for row in array)
    for name in ("gcd", "lcm"):
        got = getattr(tenon, name)(a, b)
        assert got.dtype == a.dtype
        np.testing.assert_array_equal(host(got), getattr(np, name)(*array))


def test_divisors_of_edges(device):
    fibonacci = [1, 1]
    while fibonacci[-1] < 2**62:
        fibonacci.append(fibonacci[-1] + fibonacci[-2])
    x = tenon.tensor([fibonacci[-1], 0, 0, 2**62, -6], device=device)
    y = tenon.tensor([fibonacci[-2], 0, 7, 2**31, 4], device=device)
    assert tenon.gcd(x, y).tolist() == [1, 0, 7, 2**31, 2]
    assert tenon.gcd(x, 6).tolist()[-1] == 6 and tenon.lcm(4, 6).item() == 12
    assert tenon.gcd(tenon.zeros([0], dtype="int64", device=device), 3).shape == (0,)
    with pytest.raises(
        TypeError, match=r"expected one of uint8, .*, int64, got float32; convert with"
    ):
        tenon.gcd(tenon.tensor([1.0]), 2)
    with pytest.raises(TypeError, match="expected one of uint8, .*, got float32"):
        tenon.lcm(tenon.tensor([1]), 2.5)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_exponents(dtype, device):
    numpy_dtype = np.dtype(dtype)
    info = np.finfo(numpy_dtype)
    array = np.array(
        [1, -3, 0.1, info.max, -info.tiny, info.eps, 0.0, -0.0, np.inf, -np.inf, np.nan],
        numpy_dtype,
    )
    x = tenon.tensor(array, device=device)
    mantissa, exponent = tenon.frexp(x)
    want_mantissa, want_exponent = np.frexp(array)
    np.testing.assert_array_equal(host(mantissa), want_mantissa)
    finite = np.isfinite(array)
    np.testing.assert_array_equal(host(exponent)[finite], want_exponent[finite])
    assert exponent.dtype == tenon.int32
    np.testing.assert_array_equal(host(tenon.ldexp(mantissa, exponent)), array)
    powers = np.arange(-1100, 1100)
    got = host(tenon.ldexp(tenon.tensor(1.0, dtype="float64"), tenon.tensor(powers)))
    np.testing.assert_array_equal(got, np.ldexp(1.0, powers))


def test_powers_in_float64(device):
    skip_unserved(device, "float64")
    x = tenon.tensor([2, 3], device=device)
    assert tenon.float_power(x, -1).dtype == tenon.float64
    np.testing.assert_allclose(host(tenon.float_power(x, -1)), [0.5, 1 / 3], rtol=1e-15)
    assert tenon.float_power(2.0, x).tolist() == [4, 8]
    base = tenon.tensor([2.0], device=device, requires_grad=True)
    (first,) = tenon.grad([tenon.float_power(base, x).sum()], [base], create_graph=True)
    (second,) = tenon.grad([first.sum()], [base])
    assert (first.item(), second.item()) == (16, 14) and first.dtype == tenon.float32
    assert tenon.float_power(2, 3).item() == 8
    got = tenon.float_power(tenon.tensor([1j]), 2)
    assert got.dtype == tenon.complex128 and abs(got[0].item() + 1) < 1e-15


def test_complex_numbers_of_parts():
    re, im = tenon.tensor([1.0, float("inf")]), tenon.tensor([float("nan"), 2.0])
    z = tenon.complex(re, im)
    assert z.dtype == tenon.complex64 and z[1].item() == complex(np.inf, 2)
    assert z[0].item().real == 1 and np.isnan(z[0].item().imag)
    assert tenon.complex(re.to("float64"), 1.0).dtype == tenon.complex128
    assert tenon.complex(1.0, 2.0).item() == 1 + 2j
    assert tenon.complex(re.to("float16"), im.to("float16")).dtype == tenon.complex64
    with pytest.raises(TypeError, match="expected real numbers, got complex64"):
        tenon.complex(z, re)
    got = tenon.as_complex(tenon.as_real(tenon.tensor([1 + 2j, 3 - 4j])))
    assert got.tolist() == [1 + 2j, 3 - 4j]
    assert tenon.sgn(tenon.tensor([3 + 4j, 0j])).tolist() == pytest.approx([0.6 + 0.8j, 0])
    assert tenon.isreal(tenon.tensor([1 + 0j, 1j])).tolist() == [True, False]


def test_gradients_of_complex_numbers():
    x = tenon.tensor([[1.0, 2.0], [3.0, -4.0]], requires_grad=True)
    z = tenon.as_complex(x)
    tenon.as_real(z * z).sum().backward()  # re: a^2 - b^2, im: 2 a b
    assert x.grad.tolist() == [[6.0, -2.0], [-2.0, 14.0]]
    size = tenon.tensor([2.0], requires_grad=True)
    angle = tenon.tensor([0.5], requires_grad=True)
    tenon.real(tenon.polar(size, angle)).sum().backward()
    assert size.grad.item() == pytest.approx(np.cos(0.5))
    assert angle.grad.item() == pytest.approx(-2 * np.sin(0.5))
