# SPDX-License-Identifier: Apache-2.0
"""Functions of torch itself that nn.functional has with other parameters, beside PyTorch where it is installed."""

import numpy as np
import pytest
import tenon
from tenon.compat import torch

BESIDE_PYTORCH = """
torch.layer_norm(x, [4])
torch.layer_norm(x, (3, 4), eps=0.1, cudnn_enable=False)
torch.rms_norm(x, [4], eps=0.01)
torch.group_norm(x, 3)
torch.group_norm(x, 1, v[:3], v[1:4], 0.1, False)
torch.batch_norm(x, v[:3], v[1:4], None, None, True, 0.1, 1e-5, False)
torch.batch_norm(x, None, None, v[:3], v[:3] + 1, False, 0.1, 1e-3, True)
torch.instance_norm(x, None, None, None, None, True, 0.1, 1e-5, False)
torch.embedding(m, i)
torch.embedding(m, i, padding_idx=1)
torch.max_pool1d(x, 2)
torch.max_pool1d(x, 3, 1, 1, 1, True)
torch.max_pool2d(x, (2, 2), padding=1)
torch.max_pool3d(x.reshape(1, 2, 3, 4), 2, [1, 2, 1])
torch.rrelu(x)
torch.rrelu(x, 0.1, 0.5)
torch.alpha_dropout(x, 0.5, False)
torch.feature_dropout(x, 0.5, train=False)
torch.feature_alpha_dropout(x, 0.5, False)
torch.native_channel_shuffle(x.reshape(1, 6, 2, 2), 3)
torch.affine_grid_generator(x[:, :2, :3], [2, 1, 2, 2], False)
torch.grid_sampler(x[:, None], x[:, :2, :2].reshape(2, 1, 2, 2) / 9, 0, 0, False)
torch.grid_sampler(x[:, None], x[:, :2, :2].reshape(2, 1, 2, 2) / 9, 1, 2, align_corners=True)
torch.kl_div(-x.abs() - 1, x.abs() + 1)
torch.kl_div(-x.abs() - 1, x, 2, log_target=True)
torch.binary_cross_entropy_with_logits(x, (x > 0).to(x.dtype))
torch.binary_cross_entropy_with_logits(x, (x > 0).to(x.dtype), v[:4], v[:4], 0)
torch.hinge_embedding_loss(x, (x >= 0).to(x.dtype) * 2 - 1, 0.5)
torch.hinge_embedding_loss(x, (x >= 0).to(x.dtype) * 2 - 1, 0.5, 1)
torch.margin_ranking_loss(x, -x, x.sign())
torch.triplet_margin_loss(m, m * 2, m.flip([0]))
torch.ctc_loss(torch.log_softmax(x, 2), i.reshape(-1)[1:][:, None], [2, 2, 2], [1, 1, 1])
torch.margin_ranking_loss(x, -x, x.sign(), 0.5, 2)
torch.cosine_embedding_loss(m, m.flip([0]), v[:4].sign(), 0.1)
torch.triplet_margin_loss(m, m * 2, m.flip([0]), 2.0, swap=True, reduction=0)
torch.poisson_nll_loss(x, x.abs() * 3, True, True, 1e-8, 1)
torch.poisson_nll_loss(x.abs(), x.abs(), False, False, 1e-6, 0)
torch.rnn_tanh_cell(m, h, w[:3, :5], w[:3, 1:4])
torch.rnn_relu_cell(m, h, w[:3, :5], w[:3, 1:4], v[:3], v[1:4])
torch.gru_cell(m, h, w[:9, :5], w[:9, 1:4], w[:9, 0], w[:9, 2])
torch.lstm_cell(m, (h, h * 2), w[:, :5], w[:, 1:4], w[:, 0], w[:, 2])[0]
torch.lstm_cell(m, [h, h * 2], w[:, :5], w[:, 1:4])[1]
torch.frobenius_norm(x, [1, 2], True)
torch.frobenius_norm(x, 1)
torch.nuclear_norm(m)
torch.nuclear_norm(x, (1, 2), keepdim=True)
torch.norm_except_dim(x)
torch.norm_except_dim(x, 1, 2)
torch.norm_except_dim(x, 2, -1)
torch.rsub(x, 2)
torch.rsub(x, x * x, alpha=3)
torch.unsafe_split_with_sizes(x, [1, 3], 2)[1]
torch.rrelu_(x.clone(), 0.1, 0.5)
torch.feature_dropout_(x.clone(), 0.5, False)
"""


def values_of(line, library):
    grid = np.sin(np.arange(60.0, dtype="float32") * 1.7).round(3)
    wide = np.cos(np.arange(72.0, dtype="float32") * 2.3).round(3)
    given = {
        "x": (grid[:24] * 2).reshape(2, 3, 4),
        "m": grid[20:40].reshape(4, 5),
        "h": grid[30:42].reshape(4, 3),
        "w": wide.reshape(12, 6),
        "v": np.abs(wide[:6]) + 0.5,
        "i": np.array([[0, 3], [1, 2]]),
    }
    return eval(
        line, {"torch": library} | {name: library.as_tensor(each) for name, each in given.items()}
    )


@pytest.mark.parametrize("line", BESIDE_PYTORCH.strip().splitlines())
def test_beside_pytorch(line):
    pytorch = pytest.importorskip("torch")
    want, got = values_of(line, pytorch), values_of(line, torch)
    assert tuple(got.shape) == tuple(want.shape)
    np.testing.assert_allclose(got.numpy(), want.numpy(), rtol=2e-5, atol=2e-6)


def test_random_ones_keep_what_they_promise():
    tenon.manual_seed(3)
    x = torch.ones(4, 50, 3)
    dropped = torch.feature_dropout(x, 0.5, True)
    assert ((dropped == 0) | (dropped == 2)).all() and 0 < dropped.mean().item() < 2
    assert bool(tenon.all(dropped.min(axis=2) == dropped.max(axis=2)))  # whole channels
    slopes = torch.rrelu(-x, 0.1, 0.5, True)
    assert bool(tenon.all((slopes <= -0.1) & (slopes >= -0.5)))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda x: torch.kl_div(x, x, "mean"), r"reduction one of 0 \(none\), 1 \(mean\), 2 \(sum\), got 'mean'"),
        (lambda x: torch.kl_div(x, x, 3), "got 3"),
        (lambda x: torch.grid_sampler(x, x, 7, 0, True), r"interpolation_mode one of 0 \(bilinear\), .*, got 7"),
        (lambda x: torch.feature_dropout(x[0], 0.5, True), r"of two axes or more, got shape \(2,\)"),
    ],
)  # fmt: skip
def test_what_is_expected_is_said(call, message):
    with pytest.raises(ValueError, match=message):
        call(torch.ones(2, 2))
