# SPDX-License-Identifier: Apache-2.0
"""torch.nn.functional of tenon.compat.torch: PyTorch's keywords and defaults. Values are computed by hand
or by Tenon's functions, which have tests of their own."""

import numpy as np
import pytest
import tenon
from tenon.compat import torch
from tenon.compat.torch.nn import functional as F

V = tenon.tensor([-1.0, 0.1, 30.0])


def test_layers_are_tenons():
    assert torch.nn.Linear is tenon.nn.Linear and torch.nn.functional is F
    assert {"Linear", "functional"} <= set(dir(torch.nn)) and {"gelu", "relu"} <= set(dir(F))
    with pytest.raises(AttributeError, match="no_such_layer"):
        torch.nn.no_such_layer
    with pytest.raises(AttributeError, match="no_such_function"):
        F.no_such_function


def test_keywords_of_activations():
    assert F.hardtanh(V, min_val=-0.5, max_val=2.0).tolist() == pytest.approx([-0.5, 0.1, 2.0])
    assert F.hardshrink(V, lambd=0.5).tolist() == [-1, 0, 30]
    assert F.softshrink(input=V, lambd=1.0).tolist() == [0, 0, 29]
    assert F.gelu(V, approximate="tanh").tolist() == tenon.gelu(V, True).tolist()
    assert F.gelu(V).tolist() == tenon.gelu(V).tolist()
    with pytest.raises(ValueError, match=r"expected approximate 'none' or 'tanh', got 'erf'"):
        F.gelu(V, "erf")


def test_softplus_is_linear_above_its_threshold():
    assert F.softplus(V, beta=2, threshold=0.1).tolist()[1:] == pytest.approx([0.1, 30.0])
    assert F.softplus(V)[0].item() == pytest.approx(np.log1p(np.exp(-1.0)))
    x = tenon.tensor([1000.0], requires_grad=True)
    F.softplus(x).sum().backward()
    assert x.grad.item() == 1


def test_dim_and_dtype():
    assert F.softmax(V, dim=0, dtype=torch.float64).dtype == tenon.float64
    assert F.softmin(V, 0).sum().item() == pytest.approx(1)
    assert F.cosine_similarity(V[None], V[None], dim=1).item() == pytest.approx(1)
    assert F.mse_loss(input=V, target=V).item() == 0
    with pytest.raises(TypeError, match=r"softmax\(\): expected dim, got none"):
        F.softmax(V)


def test_cosines_of_what_broadcasts():
    rng = np.random.default_rng(2)
    x, y = rng.normal(size=(1, 2, 3)), rng.normal(size=(2, 1, 3))
    both = np.broadcast_arrays(x, y)
    want = (x * y).sum(1) / np.prod([np.linalg.norm(each, axis=1) for each in both], axis=0)
    for axis in (1, -2):
        result = tenon.nn.functional.cosine_similarity(tenon.tensor(x), tenon.tensor(y), axis)
        np.testing.assert_allclose(result.numpy(), want, rtol=1e-12)


@pytest.mark.parametrize("axes", [1, 2, 3])
def test_convolutions_and_pools_without_a_batch(axes):
    x = tenon.rand(1, 2, *[4] * axes)
    weight = tenon.rand(2, 2, *[3] * axes)
    for name in (f"conv{axes}d", f"conv_transpose{axes}d"):
        call = getattr(F, name)
        assert call(x[0], weight, padding=1).tolist() == call(x, weight, padding=1)[0].tolist()
    pool = getattr(F, f"max_pool{axes}d")
    values, indices = pool(x, 2, return_indices=True)
    assert values.tolist() == pool(x, 2).tolist()
    flat = x.reshape(1, 2, -1)
    taken = tenon.take_along_axis(flat, indices.reshape(1, 2, -1), -1)
    assert taken.tolist() == values.reshape(1, 2, -1).tolist()
    assert pool(x[0], 2, return_indices=True)[1].tolist() == indices[0].tolist()


def test_one_hot():
    assert F.one_hot(tenon.tensor([0, 2])).tolist() == [[1, 0, 0], [0, 0, 1]]
    assert F.one_hot(tenon.tensor([1]), num_classes=2).dtype == tenon.int64
    with pytest.raises(ValueError, match="expected num_classes for a tensor without elements"):
        F.one_hot(tenon.zeros(0, dtype=tenon.int64))


def test_rms_norm_over_several_axes():
    x = np.random.default_rng(1).normal(size=(2, 3, 4))
    weight = np.arange(12.0).reshape(3, 4)
    want = x / np.sqrt((x * x).mean((1, 2), keepdims=True) + 0.5) * weight
    result = F.rms_norm(tenon.tensor(x), (3, 4), tenon.tensor(weight), eps=0.5)
    np.testing.assert_allclose(result.numpy(), want, rtol=1e-12)
    with pytest.raises(
        ValueError, match=r"expected input whose last axes are \(5,\), got shape \(2, 3, 4\)"
    ):
        F.rms_norm(tenon.tensor(x), (5,))


def test_attention():
    q, k, v = (tenon.rand(1, 2, 4, 8) for _ in range(3))
    causal = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    mask = tenon.tril(tenon.ones(4, 4)).to(tenon.bool)
    masked = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, dropout_p=0.0)
    # Float32: the sums of a row skip what is masked, or add zeros for it in another order.
    np.testing.assert_allclose(causal.numpy(), masked.numpy(), rtol=1e-5)
