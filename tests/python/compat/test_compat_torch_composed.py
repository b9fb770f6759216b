# SPDX-License-Identifier: Apache-2.0
"""Functions of PyTorch that are made of Tenon's."""

import numpy as np
import pytest
import tenon
from tenon.compat import torch
from tenon.compat.torch import linalg
from tenon.nn import functional as F

functional = torch.nn.functional


def normal(*shape, seed=0, dtype=np.float64):
    return tenon.tensor(np.random.default_rng(seed).normal(size=shape).astype(dtype))


def close(got, expected, rtol=1e-10):
    np.testing.assert_allclose(got.numpy(), expected, rtol=rtol, atol=rtol)


def test_sum_to_size():
    x = normal(2, 3, 4)
    close(torch.sum_to_size(x, 3, 1), x.numpy().sum(0).sum(-1, keepdims=True))
    close(torch.sum_to_size(x, (2, 1, 4)), x.numpy().sum(1, keepdims=True))
    close(torch.sum_to_size(x, []), x.numpy().sum())
    assert torch.sum_to_size(x, 2, 3, 4).shape == (2, 3, 4)
    with pytest.raises(
        ValueError, match=r"expected a shape that broadcasts to \(2, 3, 4\), got \(2, 4\)"
    ):
        torch.sum_to_size(x, 2, 4)


def test_slice_is_a_view():
    x = normal(5, 4)
    close(torch.slice(x, 1, 1, 4, 2), x.numpy()[:, 1:4:2])
    assert torch.slice(x).data_ptr() == x.data_ptr()


def test_tensordot_of_axes_of_length_one():
    a, b = normal(1, 3, 2), normal(4, 3, 5, seed=1)
    close(torch.tensordot(a, b, ((0, 1), (0, 1))), np.einsum("ijk,ljm->km", a.numpy(), b.numpy()))


def test_ldexp_of_complex_numbers():
    x = normal(3) + 1j * normal(3, seed=1)
    n = tenon.tensor([1, -2, 3])
    close(torch.ldexp(x, n), x.numpy() * 2.0 ** n.numpy())
    close(torch.ldexp(normal(3), n), np.ldexp(normal(3).numpy(), n.numpy()))


def test_cdist_takes_a_mode():
    x, y = normal(4, 3), normal(5, 3, seed=1)
    expected = np.linalg.norm(x.numpy()[:, None] - y.numpy(), axis=-1)
    close(torch.cdist(x, y, 2.0, "donot_use_mm_for_euclid_dist"), expected)
    with pytest.raises(ValueError, match="expected compute_mode among .*, got 'fast'"):
        torch.cdist(x, y, compute_mode="fast")


@pytest.mark.parametrize("onesided", [True, False])
def test_short_time_transforms(onesided):
    x = normal(3, 100)
    window = torch.hann_window(16, dtype=torch.float64)
    spectra = torch.stft(x, 16, window=window, onesided=onesided, return_complex=True)
    pairs = torch.stft(x, 16, window=window, onesided=onesided, return_complex=False)
    close(pairs[..., 0] + 1j * pairs[..., 1], spectra.numpy())
    close(torch.istft(spectra, 16, window=window, length=100), x.numpy())
    with pytest.raises(
        ValueError, match="expected return_complex=True or False for real numbers, got None"
    ):
        torch.stft(x, 16)


def test_complex_windows_are_inverted():
    x = normal(100) + 1j * normal(100, seed=1)
    window = normal(16, seed=2) + 1j * normal(16, seed=3)
    spectra = tenon.signal.stft(x, 16, window=window)
    back = tenon.signal.istft(spectra, 16, window=window, length=100, return_complex=True)
    close(back, x.numpy())


def test_margins_that_crop_all_repeat_the_nearest():
    x = tenon.tensor([[1.0, 2.0, 3.0]])
    assert F.pad(x, (-3, 5), "replicate").tolist() == [[3.0] * 5]
    assert F.pad(x, (2, -3), "replicate").tolist() == [[1.0, 1.0]]
    assert F.pad(x, (-1, 2), "replicate").tolist() == [[2.0, 3.0, 3.0, 3.0]]
    assert F.pad(x, (1, 1), "replicate").tolist() == [[1.0, 1.0, 2.0, 3.0, 3.0]]


@pytest.mark.parametrize("shape", [(), (4,), (3, 4)])
@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
def test_margin_losses_without_a_batch(shape, reduction):
    x = normal(*shape)
    rows = x.numpy().reshape(-1, shape[-1] if shape else 1)
    target = np.arange(len(rows)) % rows.shape[1]
    expected = np.array(
        [
            sum(max(0, 1 - row[t] + v) for i, v in enumerate(row) if i != t) / len(row)
            for row, t in zip(rows, target)
        ]
    )
    expected = expected if len(shape) == 2 else expected[0]
    if reduction != "none":
        expected = getattr(np, reduction)(expected)
    given = tenon.tensor(target if len(shape) == 2 else target[0])
    got = F.multi_margin_loss(x, given, reduction=reduction)
    assert got.shape == np.shape(expected)
    close(got, expected)
    lists = np.full(rows.shape, -1)
    lists[:, 0] = target
    got = F.multilabel_margin_loss(x, tenon.tensor(lists.reshape(shape)), reduction)
    assert got.shape == np.shape(expected)
    close(got, expected)


def test_polar_and_root():
    for a in (normal(2, 5, 3), normal(4, 4) + 1j * normal(4, 4, seed=1)):
        u, h = linalg.polar(a)
        close(u @ h, a.numpy())
        columns = u.numpy()
        close(h, np.conj(np.swapaxes(h.numpy(), -1, -2)))
        eye = np.conj(np.swapaxes(columns, -1, -2)) @ columns
        np.testing.assert_allclose(eye, np.broadcast_to(np.eye(a.shape[-1]), eye.shape), atol=1e-10)
        assert (np.linalg.eigvalsh(h.numpy()) > -1e-10).all()
        square = h @ h
        close(linalg.matrix_sqrth(square), h.numpy(), 1e-7)
    with pytest.raises(ValueError, match="at least as many rows as columns, got shape"):
        linalg.polar(normal(2, 3))


def test_embedding_limits_norms_in_place():
    weight = normal(5, 4) * 3.0
    before = weight.numpy().copy()
    rows = functional.embedding(tenon.tensor([[1, 3], [3, 1]]), weight, max_norm=1.0)
    norms = np.linalg.norm(before, axis=1, keepdims=True)
    expected = np.where(norms > 1, before / (norms + 1e-7), before)
    close(rows, expected[[[1, 3], [3, 1]]], 1e-6)
    close(weight[0], before[0])
    close(weight[3], expected[3], 1e-6)
    functional.embedding(tenon.tensor([1]), weight.requires_grad_(), sparse=True).sum().backward()
    assert weight.grad.layout == "coo" and weight.grad.nnz == 1


def test_gradients_of_an_embedding_are_means_over_its_places():
    weight = normal(4, 3).requires_grad_()
    indices = tenon.tensor([[0, 2], [2, 2]])
    grad = np.arange(12, dtype=np.float32).reshape(2, 2, 3)
    layer = tenon.nn.Embedding(4, 3, scale_grad_by_freq=True)
    layer.weight.data = weight
    for rows, table in (
        (functional.embedding(indices, weight, scale_grad_by_freq=True), weight),
        (layer(indices), layer.weight),
    ):
        np.testing.assert_array_equal(
            rows.detach().numpy(), weight.detach().numpy()[indices.numpy()]
        )
        rows.backward(tenon.tensor(grad))
        want = [grad[0, 0], np.zeros(3), (grad[0, 1] + grad[1, 0] + grad[1, 1]) / 3, np.zeros(3)]
        np.testing.assert_allclose(table.grad.numpy(), want, rtol=1e-6)


def test_linear_cross_entropy():
    x, weight, bias = normal(6, 4), normal(3, 4, seed=1), normal(3, seed=2)
    target = tenon.tensor([0, 1, 2, 2, -100, 1])
    got = functional.linear_cross_entropy(x, weight, target, linear_bias=bias, label_smoothing=0.1)
    expected = F.cross_entropy(tenon.linear(x, weight, bias), target, label_smoothing=0.1)
    close(got, expected.numpy())


def test_attention_with_projections_is_that_of_the_module():
    tenon.manual_seed(0)
    module = tenon.nn.MultiheadAttention(8, 2)
    q, k = tenon.randn([5, 3, 8]), tenon.randn([6, 3, 8])
    hidden = tenon.tensor(np.random.default_rng(1).random((3, 6)) < 0.3)
    hidden[:, 0] = False
    state = module.state_dict()
    arguments = (8, 2, state["in_proj_weight"], state["in_proj_bias"], None, None, False, 0.0)
    out, weights = functional.multi_head_attention_forward(
        q,
        k,
        k,
        *arguments,
        state["out_proj.weight"],
        state["out_proj.bias"],
        key_padding_mask=hidden,
    )
    expected, expected_weights = module(q, k, k, key_padding_mask=hidden)
    close(out, expected.detach().numpy(), 1e-5)
    close(weights, expected_weights.detach().numpy(), 1e-5)
    alone, none = functional.multi_head_attention_forward(
        q,
        k,
        k,
        *arguments,
        state["out_proj.weight"],
        state["out_proj.bias"],
        key_padding_mask=hidden,
        need_weights=False,
    )
    assert none is None
    close(alone, out.numpy(), 1e-5)


def test_gradient_of_complex_numbers_and_distances():
    values = np.array([1 + 1j, 4, 9 - 2j], np.complex64)
    points = np.array([1 + 1j, 2, 4], np.complex64)
    (plain,) = torch.gradient(tenon.tensor(values))
    assert str(plain.dtype) == "complex64"
    np.testing.assert_allclose(plain.numpy(), np.gradient(values), rtol=1e-6)
    (slopes,) = torch.gradient(tenon.tensor(values.real.copy()), spacing=(tenon.tensor(points),))
    np.testing.assert_allclose(slopes.numpy(), [1.5 + 1.5j, 1.6 + 0.7j, 2.5], rtol=1e-5)
