# SPDX-License-Identifier: Apache-2.0
"""The attributes real and imag: views that are read, written and differentiated."""

import numpy as np
import pytest
import tenon
from running import skip_unserved

rng = np.random.default_rng(3)


def host(x):
    return x.cpu().numpy()


def random(dtype, *shape):
    return (rng.normal(size=shape) + 1j * rng.normal(size=shape)).astype(dtype)


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 3), (2, 0, 3)], ids=str)
def test_parts_are_views_of_any_layout(dtype, shape, device):
    skip_unserved(device, dtype)
    array = random(dtype, *shape)
    z = tenon.tensor(array, device=device)
    layouts = [(z, array), (z.T, array.T)]
    if shape:
        layouts.append((z.flip([0]), array[::-1]))
    for tensor, want in layouts:
        np.testing.assert_array_equal(host(tensor.real), want.real)
        np.testing.assert_array_equal(host(tensor.imag), want.imag)
        np.testing.assert_array_equal(host(tenon.as_real(tensor))[..., 1], want.imag)
    assert z.real.strides == tuple(2 * stride for stride in z.strides)


def test_writes_reach_the_complex_numbers(device):
    skip_unserved(device, "complex64")
    array = random("complex64", 2, 3)
    z = tenon.tensor(array, device=device)
    array = array.copy()
    z.real[0] = 9
    array.real[0] = 9
    z.imag = tenon.tensor([1.0, 2.0, 3.0], device=device)
    array.imag = [1, 2, 3]
    z.imag.mul_(2)
    array.imag *= 2
    np.testing.assert_array_equal(host(z), array)


def test_real_numbers_are_their_own_real_parts(device):
    x = tenon.tensor([1.0, -2.0], device=device)
    assert x.real is x and x.imag.tolist() == [0, 0]
    x.real = 3
    assert x.tolist() == [3, 3]
    with pytest.raises(TypeError, match="imag: expected complex numbers to assign it, got float32"):
        x.imag = 1
    with pytest.raises(AttributeError, match="real cannot be deleted"):
        del x.real


def test_gradients_of_parts():
    z = tenon.tensor(random("complex128", 2, 3), requires_grad=True)
    assert tenon.autograd.gradcheck(lambda z: z.real * z.imag, [z])
    assert tenon.autograd.gradcheck(lambda z: tenon.as_real(z.T) ** 3, [z])
    assert tenon.autograd.gradcheck(lambda z: z * z.conj() + 1j * z, [z])
    with pytest.raises(AssertionError, match="expected .* by finite differences, got"):
        tenon.autograd.gradcheck(lambda z: z.real + z.imag.detach(), [z])
    made = z * 2
    with pytest.raises(NotImplementedError, match="another dtype than its base"):
        made.real[0] = 1.0


def test_programs_and_vmap_know_them():
    array = random("complex64", 4, 3)
    z = tenon.tensor(array)
    np.testing.assert_array_equal(
        tenon.compile(lambda z: z.real - z.imag)(z).numpy(), array.real - array.imag
    )
    got = tenon.func.vmap(lambda row: row.real + row.imag)(z)
    np.testing.assert_array_equal(got.numpy(), array.real + array.imag)


def test_sign_of_large_and_infinite_numbers(device):
    skip_unserved(device, "complex128")
    inf, nan, diagonal = np.inf, np.nan, np.sqrt(0.5)
    table = {
        complex(inf, 5): 1,
        complex(-inf, nan): -1,
        complex(5, -inf): -1j,
        complex(inf, -inf): complex(nan, nan),
        complex(nan, 1): complex(nan, nan),
        complex(1.7e308, -1.7e308): complex(diagonal, -diagonal),
        complex(0, 5e-324): 1j,
        complex(5e-324, 5e-324): complex(diagonal, diagonal),
        0j: 0,
    }
    found = host(tenon.sign(tenon.tensor(np.array(list(table)), device=device)))
    np.testing.assert_allclose(found, list(table.values()), rtol=1e-15)
    x = tenon.tensor([complex(inf, 1), 3 + 4j], device=device, requires_grad=True)
    np.testing.assert_allclose(host(tenon.grad(tenon.abs(x).sum(), [x])[0]), [1, 0.6 + 0.8j])


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_sigmoid_of_large_numbers(dtype, device):
    """exp(-x) overflows where the result is tiny, or its limit 0."""
    skip_unserved(device, dtype)
    x = np.array([-80 + 2j, -120 - 1j, -1000 + 3j, 80 - 2j, 1000 + 1j, -0.5 + 0.5j], dtype)
    y = tenon.sigmoid(tenon.tensor(x, device=device)).to("cpu").numpy()
    with np.errstate(over="ignore", invalid="ignore"):
        wide = x.astype(np.complex128)
        power = np.exp(np.where(wide.real < 0, wide, -wide))
        expected = np.where(wide.real < 0, power, 1) / (1 + power)
    np.testing.assert_allclose(y, expected.astype(dtype), rtol=1e-6, atol=1e-44)


def test_a_complex_number_is_no_element_of_a_real_tensor():
    """Without its imaginary part it would be another number."""
    x = tenon.tensor([1.0, 2.0])
    for call in (
        lambda: tenon.full([2], 1 + 2j, dtype="float32"),
        lambda: tenon.full([2], -2 + 0.5j, dtype="uint32"),
        lambda: tenon.full_like(x, 1 + 2j),
        lambda: tenon.pad(x, [1, 1], value=1 + 2j),
    ):
        with pytest.raises(ValueError, match=r"got the complex number .*i; convert to a complex"):
            call()
    with pytest.raises(TypeError, match="expected a real number for an element of a float32"):
        x[0] = 1 + 2j
    with pytest.raises(ValueError, match="expected a value that uint8 holds, got 300"):
        tenon.full([2], 300 + 0j, dtype="uint8")
    assert tenon.full([2], 3 + 0j, dtype="float32").tolist() == [3, 3]
    assert x.tolist() == [1, 2]
