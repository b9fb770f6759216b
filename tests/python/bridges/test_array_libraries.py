# SPDX-License-Identifier: Apache-2.0
"""What einops, opt_einsum and SciPy ask of an array library."""

import numpy as np
import pytest
import tenon


def numbers(*shape):
    return tenon.arange(int(np.prod(shape)), dtype="float32").reshape(shape)


def test_transpose_takes_the_order_of_all_axes():
    x = numbers(2, 3, 4)
    assert tenon.transpose(x, (2, 0, 1)).shape == (4, 2, 3)
    assert tenon.transpose(x, axes=[1, 0, 2]).shape == (3, 2, 4)
    assert tenon.transpose(x, 0, 1).shape == (3, 2, 4)
    assert tenon.transpose(x).shape == (2, 4, 3)
    with pytest.raises(TypeError, match="got both"):
        tenon.transpose(x, (0, 1, 2), 1)


@pytest.mark.parametrize("axes", [0, 1, 2, ([0, 1], [0, 1]), (2, 2), ([1], [1])])
def test_tensordot_takes_numpys_axes(axes):
    x = numbers(2, 4, 4)
    y = numbers(*((4, 4, 2) if axes in (1, 2) else (2, 4, 4)))
    wanted = np.tensordot(x.numpy(), y.numpy(), axes=axes)
    np.testing.assert_allclose(tenon.tensordot(x, y, axes=axes).numpy(), wanted, rtol=1e-6)
    np.testing.assert_allclose(tenon.tensordot(x, y, axes).numpy(), wanted, rtol=1e-6)


def test_tensordot_says_what_it_expects():
    x = numbers(2, 3)
    assert tenon.tensordot(x, x, [0], [0]).shape == (3, 3)
    assert tenon.tensordot(x, x).item() == (x * x).sum().item()
    with pytest.raises(ValueError, match="expected 0 to 2 axes, got axes=3"):
        tenon.tensordot(x, x, axes=3)
    with pytest.raises(TypeError, match="got both"):
        tenon.tensordot(x, x, [0], [0], axes=1)
    with pytest.raises(ValueError, match="a number or a pair of axes"):
        tenon.tensordot(x, x, axes=[0, 1, 2])


def test_a_gradient_goes_through():
    x = numbers(2, 3).requires_grad_(True)
    tenon.tensordot(tenon.transpose(x, (1, 0)), x, axes=1).sum().backward()
    assert x.grad.shape == (2, 3)


def test_full_takes_a_tensor_without_axes():
    from tenon import array_api as xp

    found = xp.full((2, 2), tenon.tensor(1.5))
    assert found.tolist() == [[1.5, 1.5]] * 2
    found[0, 0] = 7.0  # its own memory
    assert found.tolist() == [[7.0, 1.5], [1.5, 1.5]]
    assert xp.full(3, tenon.tensor(2), dtype=xp.float32).dtype == xp.float32
    assert xp.full_like(found, tenon.tensor(2)).dtype == xp.float32
    with pytest.raises(ValueError, match=r"without axes as fill_value, got one of shape \(1,\)"):
        xp.full((2,), tenon.ones((1,)))


def test_einops():
    einops = pytest.importorskip("einops")
    from tenon.compat import einops as own

    x = numbers(2, 3, 4)
    for function in (
        lambda a: einops.rearrange(a, "b h w -> h (b w)"),
        lambda a: einops.reduce(a, "b h w -> h", "mean"),
        lambda a: einops.reduce(a, "b (h 3) w -> b w h", "max"),
        lambda a: einops.repeat(a, "b h w -> b h w c", c=2),
        lambda a: einops.einsum(a, a, "b h w, b k w -> b h k"),
        lambda a: einops.pack([a, a], "b * w")[0],
    ):
        np.testing.assert_allclose(function(x).numpy(), function(x.numpy()), rtol=1e-6)
    layers = tenon.nn.Sequential(
        own.Rearrange("b h w -> b (h w)"), tenon.nn.Linear(12, 2), own.Reduce("b c -> b", "sum")
    )
    assert layers(x).shape == (2,)
    mixed = own.EinMix("b h w -> b h o", weight_shape="w o", bias_shape="o", w=4, o=5)
    mixed(x).sum().backward()
    assert all(each.grad is not None for each in mixed.parameters())
    assert len(list(mixed.parameters())) == 2


def test_opt_einsum():
    opt_einsum = pytest.importorskip("opt_einsum")
    draw = np.random.default_rng(0)
    for equation, shapes in (
        ("ij,jk,kl->il", [(2, 3), (3, 4), (4, 5)]),
        ("abc,cd,bd->ad", [(2, 3, 4), (4, 5), (3, 5)]),
        ("abcd,cdef->abef", [(2, 3, 4, 5), (4, 5, 2, 3)]),
        ("a,b,c->abc", [(2,), (3,), (4,)]),
        ("ea,fb,abcd,gc,hd->efgh", [(2, 3), (2, 3), (3, 3, 3, 3), (2, 3), (2, 3)]),
        ("ij->ji", [(2, 3)]),
    ):
        arrays = [draw.normal(size=shape).astype("float32") for shape in shapes]
        found = opt_einsum.contract(equation, *map(tenon.tensor, arrays)).numpy()
        np.testing.assert_allclose(found, np.einsum(equation, *arrays), rtol=1e-4, atol=1e-5)
