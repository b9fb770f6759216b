# SPDX-License-Identifier: Apache-2.0
"""Attention of several heads beside its definition in NumPy: projections, masks, layouts."""

import numpy as np
import pytest
import tenon
from tenon import nn

T = tenon.tensor
rng = np.random.default_rng(0)
HEADS, SIZE = 2, 4


def defined(layer, query, key, value, keep=None):
    """[batch, length, features]; `keep` [length, keys] or [batch, heads, length, keys] says what is seen."""

    def weights(name, index):
        separate = getattr(layer, f"{name}_proj_weight")
        if separate is not None:
            return separate.detach().numpy()
        return layer.in_proj_weight.detach().numpy()[index * SIZE : (index + 1) * SIZE]

    def heads(x, name, index):
        bias = 0.0
        if layer.in_proj_bias is not None:
            bias = layer.in_proj_bias.detach().numpy()[index * SIZE : (index + 1) * SIZE]
        made = x @ weights(name, index).T + bias
        return made.reshape(*made.shape[:2], HEADS, -1).transpose(0, 2, 1, 3)

    q, k, v = (heads(x, n, i) for i, (x, n) in enumerate(((query, "q"), (key, "k"), (value, "v"))))
    scores = q @ k.transpose(0, 1, 3, 2) / np.sqrt(SIZE // HEADS)
    if keep is not None:
        scores = np.where(keep, scores, -np.inf)
    shares = np.exp(scores - scores.max(-1, keepdims=True))
    shares = shares / shares.sum(-1, keepdims=True)
    joined = (shares @ v).transpose(0, 2, 1, 3).reshape(query.shape[0], query.shape[1], SIZE)
    bias = 0.0 if layer.out_proj.bias is None else layer.out_proj.bias.detach().numpy()
    return joined @ layer.out_proj.weight.detach().numpy().T + bias, shares


def close(got, want):
    np.testing.assert_allclose(got.detach().numpy(), want, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("sizes", [{}, {"kdim": 3, "vdim": 5}])
def test_projections_and_weights(bias, sizes):
    tenon.manual_seed(0)
    layer = nn.MultiheadAttention(
        SIZE, HEADS, bias=bias, batch_first=True, dtype=tenon.float64, **sizes
    )
    with tenon.no_grad():
        for each in layer.parameters():
            each.copy_(T(rng.standard_normal(tuple(each.shape))))
    query = rng.standard_normal((2, 3, SIZE))
    key = rng.standard_normal((2, 5, sizes.get("kdim", SIZE)))
    value = rng.standard_normal((2, 5, sizes.get("vdim", SIZE)))
    want, shares = defined(layer, query, key, value)
    out, weights = layer(T(query), T(key), T(value))
    close(out, want)
    close(weights, shares.mean(1))
    close(layer(T(query), T(key), T(value), average_attn_weights=False)[1], shares)
    out, weights = layer(T(query), T(key), T(value), need_weights=False)
    close(out, want)
    assert weights is None
    for need in (True, False):
        alone, weights = layer(T(query[0]), T(key[0]), T(value[0]), need_weights=need)
        close(alone, want[0])
        assert (weights is None) != need
    layer.batch_first = False
    turned = layer(*(T(x.transpose(1, 0, 2).copy()) for x in (query, key, value)))[0]
    close(turned, want.transpose(1, 0, 2))
    if not sizes:
        x = T(query)
        layer.batch_first = True
        close(layer(x, x, x)[0], defined(layer, query, query, query)[0])
        close(layer(x)[0], defined(layer, query, query, query)[0])


@pytest.mark.parametrize("need_weights", [True, False])
def test_masks_that_leave_out_and_masks_that_are_added(need_weights):
    tenon.manual_seed(0)
    layer = nn.MultiheadAttention(SIZE, HEADS, batch_first=True, dtype=tenon.float64)
    x = rng.standard_normal((2, 3, SIZE))
    hidden = np.array([[False, True, False], [False, False, False], [True, False, False]])
    padding = np.array([[False, False, True], [False, False, False]])
    every = hidden | padding[:, None, None, :]
    added = np.where(hidden, -np.inf, 0.0)
    options = {"need_weights": need_weights}
    for masks, keep in (
        ({"attn_mask": T(hidden)}, ~hidden),
        ({"attn_mask": T(added)}, ~hidden),
        ({"key_padding_mask": T(padding)}, ~padding[:, None, None, :]),
        ({"attn_mask": T(hidden), "key_padding_mask": T(padding)}, ~every),
        ({"attn_mask": T(added), "key_padding_mask": T(padding)}, ~every),
        ({"attn_mask": T(hidden.repeat(4, 0).reshape(3, 4, 3).transpose(1, 0, 2).copy())}, ~hidden),
        ({"is_causal": True}, np.tril(np.ones((3, 3), bool))),
        (
            {"is_causal": True, "key_padding_mask": T(padding)},
            np.tril(np.ones((3, 3), bool)) & ~padding[:, None, None, :],
        ),
    ):
        close(layer(T(x), T(x), T(x), **masks, **options)[0], defined(layer, x, x, x, keep)[0])


def test_keys_that_every_query_sees():
    tenon.manual_seed(0)
    layer = nn.MultiheadAttention(
        SIZE, HEADS, add_zero_attn=True, batch_first=True, dtype=tenon.float64
    )
    x = rng.standard_normal((1, 3, SIZE))
    hidden = np.ones((3, 3), bool)
    # Where every other key is hidden, the zero is all that is seen.
    out, weights = layer(T(x), T(x), T(x), attn_mask=T(hidden))
    close(weights, np.broadcast_to([0.0, 0.0, 0.0, 1.0], (1, 3, 4)))
    close(out, np.broadcast_to(layer.out_proj.bias.detach().numpy(), (1, 3, SIZE)))
    plain = layer(T(x), T(x), T(x))[1]
    assert plain.shape == (1, 3, 4) and (plain > 0).all().item()
    causal = layer(T(x), T(x), T(x), is_causal=True)[1]
    assert (causal[0] > 0).tolist() == [[i >= j or j == 3 for j in range(4)] for i in range(3)]
