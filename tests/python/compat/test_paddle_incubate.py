# SPDX-License-Identifier: Apache-2.0
"""paddle.incubate: against its definitions in NumPy, as Paddle has most of it for GPUs alone, and beside Paddle where it runs."""

import importlib

import numpy as np
import pytest
import tenon
from tenon.compat import paddle

I, F = paddle.incubate, paddle.incubate.nn.functional  # noqa: E741
RNG = np.random.default_rng(13)
T = tenon.tensor


def normal(*shape):
    return RNG.normal(size=shape).astype(np.float32)


def near(got, want):
    np.testing.assert_allclose(got.detach().numpy(), want, rtol=2e-4, atol=2e-5)


def layer_norm(x, weight, bias, axes=1, eps=1e-5):
    axis = tuple(range(-axes, 0))
    y = (x - x.mean(axis, keepdims=True)) / np.sqrt(x.var(axis, keepdims=True) + eps)
    return y * weight.reshape(x.shape[-axes:]) + bias.reshape(x.shape[-axes:])


def test_linear_layers():
    x, w, b = normal(2, 3, 4), normal(4, 5), normal(5)
    near(F.fused_linear(T(x), T(w), T(b)), x @ w + b)
    near(F.fused_linear(T(x), T(w.T.copy()), transpose_weight=True), x @ w)
    near(F.fused_matmul_bias(T(w), T(normal(4, 2) * 0 + 1), None, True), w.T @ np.ones((4, 2)))
    near(F.fused_linear_activation(T(x), T(w), T(b), activation="relu"), np.maximum(x @ w + b, 0))
    with pytest.raises(ValueError, match="activation 'gelu', 'relu' or None, got 'tanh'"):
        F.fused_linear_activation(T(x), T(w), T(b), activation="tanh")
    near(F.swiglu(T(x)), x[..., :2] / (1 + np.exp(-x[..., :2])) * x[..., 2:])
    near(F.fused_bias_act(T(x), T(x[0, 0]), act_method="relu"), np.maximum(x + x[0, 0], 0))
    with pytest.raises(ValueError, match="expected act_method 'gelu', "):
        F.fused_bias_act(T(x), act_method="cube")
    with pytest.raises((TypeError, NotImplementedError), match="quant_scale"):
        F.fused_bias_act(T(x), quant_scale=0.5)


def test_norms():
    x, r, b = normal(2, 3, 4), normal(2, 3, 4), normal(4)
    w, s = normal(4), normal(4)
    out, nothing, mean, inverse = F.fused_layer_norm(T(x), T(w), T(s), 1e-5, begin_norm_axis=2)
    near(out, layer_norm(x, w, s))
    near(mean, x.mean(-1).reshape(-1))
    near(inverse, 1 / np.sqrt(x.var(-1).reshape(-1) + 1e-5))
    assert nothing is None
    wide, shift = normal(12), normal(12)
    near(F.fused_layer_norm(T(x), T(wide), T(shift), 1e-5)[0], layer_norm(x, wide, shift, 2))
    out, total, *_ = F.fused_layer_norm(
        T(x), T(w), T(s), 1e-5, residual_alpha=0.5, begin_norm_axis=2, bias=T(b), residual=T(r)
    )
    near(total, x + b + 0.5 * r)
    near(out, layer_norm(x + b + 0.5 * r, w, s))
    found = F.fused_layer_norm(T(x), None, None, 1e-5, bias=T(b), residual=T(r))
    near(found[0], x + b + r)
    assert found[1:] == (None, None, None)
    assert F.fused_rms_norm(T(x), T(w), T(s), 1e-6, 2)[1] is None
    for call in (F.fused_layer_norm, F.fused_rms_norm):
        with pytest.raises(ValueError, match="expected a residual beside bias, got none"):
            call(T(x), T(w), T(s), 1e-6, begin_norm_axis=2, bias=T(b))
    out, total = F.fused_rms_norm(T(x), T(w), T(s), 1e-6, 2, residual=T(r))
    y = x + r
    near(out, y / np.sqrt((y * y).mean(-1, keepdims=True) + 1e-6) * w + s)
    near(total, y)
    with pytest.raises(ValueError, match="begin_norm_axis from 1 to 2, got 3"):
        F.fused_rms_norm(T(x), T(w), None, 1e-6, 3)
    near(
        F.fused_bias_dropout_residual_layer_norm(T(x), T(r), T(b), T(w), T(s), training=False),
        layer_norm(x + b + r, w, s),
    )
    near(F.fused_dropout_add(T(x), T(r), 0.9, training=False), x + r)
    near(F.fused_dropout_add(T(x), T(r), 0.9, False, "downscale_in_infer"), x * 0.1 + r)


def attention(x, weight, bias, heads, mask):
    """By its pseudo-code: queries, keys and values [batch, heads, length, size]."""
    batch, length, features = x.shape
    packed = np.einsum("blf,thdf->tbhld", x, weight) + bias[:, None, :, None, :]
    q, k, v = packed
    scores = np.einsum("bhld,bhkd->bhlk", q, k) / np.sqrt(features // heads) + mask
    powers = np.exp(scores - scores.max(-1, keepdims=True))
    out = np.einsum("bhlk,bhkd->blhd", powers / powers.sum(-1, keepdims=True), v)
    return out.reshape(batch, length, features)


@pytest.mark.parametrize("before", [False, True])
@pytest.mark.parametrize("packed", [False, True])
def test_attention(before, packed):
    x, mask = normal(2, 3, 4), normal(2, 1, 3, 3)
    weight, bias = normal(3, 2, 2, 4), normal(3, 2, 2)
    linear, shift, w, s = normal(4, 4), normal(4), normal(4), normal(4)
    inner = layer_norm(x, w, s) if before else x
    want = x + attention(inner, weight, bias, 2, mask) @ linear + shift
    want = want if before else layer_norm(want, w, s)
    norm = ("pre_ln_scale", "pre_ln_bias") if before else ("ln_scale", "ln_bias")
    given = weight.reshape(12, 4).T.copy() if packed else weight
    got = F.fused_multi_head_attention(
        T(x),
        T(given),
        T(linear),
        before,
        **dict(zip(norm, (T(w), T(s)), strict=True)),
        qkv_bias=T(bias.reshape(-1) if packed else bias),
        linear_bias=T(shift),
        attn_mask=T(mask),
        training=False,
        num_heads=2 if packed else -1,
        transpose_qkv_wb=packed,
    )
    near(got, want)
    with pytest.raises((TypeError, NotImplementedError), match="cache_kv"):
        F.fused_multi_head_attention(T(x), T(weight), T(linear), cache_kv=T(x))
    with pytest.raises(ValueError, match=r"expected qkv_weight \[3, heads, size of a head, 4\]"):
        F.fused_multi_head_attention(T(x), T(linear), T(linear))


def test_feedforward_and_layers():
    x, w1, w2, b1, b2 = normal(2, 3, 4), normal(4, 8), normal(8, 4), normal(8), normal(4)
    want = x + np.maximum(x @ w1 + b1, 0) @ w2 + b2
    args = T(x), T(w1), T(w2), T(b1), T(b2)
    one, zero = np.ones(4, np.float32), np.zeros(4, np.float32)
    near(F.fused_feedforward(*args, training=False), layer_norm(want, one, zero))
    near(
        F.fused_feedforward(*args, pre_layer_norm=True, add_residual=False, training=False),
        np.maximum(layer_norm(x, one, zero) @ w1 + b1, 0) @ w2 + b2,
    )
    for before in (False, True):
        layer = I.nn.FusedTransformerEncoderLayer(4, 2, 8, normalize_before=before).eval()
        out = layer(T(x))
        assert out.shape == (2, 3, 4)
        out.sum().backward()
        assert all(p.grad is not None for p in layer.parameters())
        assert len(layer.parameters()) == 12
    drop = I.nn.FusedBiasDropoutResidualLayerNorm(4).eval()
    near(drop(T(x), T(x)), layer_norm(2 * x, one, zero))
    assert I.nn.FusedLinear(4, 5, transpose_weight=True)(T(x)).shape == (2, 3, 5)
    near(I.nn.FusedDropoutAdd(0.3).eval()(T(x), T(x)), 2 * x)
    with pytest.raises(NotImplementedError, match="expected nranks=1 and ring_id=-1, got 2 and 0"):
        I.nn.FusedFeedForward(4, 8, nranks=2, ring_id=0)
    with pytest.raises(NotImplementedError, match="expected need_weights=False"):
        I.nn.FusedMultiHeadAttention(4, 2, need_weights=True)
    with pytest.raises(AttributeError, match="does not cover paddle.incubate.nn.FusedMultiTrans"):
        _ = I.nn.FusedMultiTransformer


@pytest.mark.parametrize("adjacent", [True, False])
@pytest.mark.parametrize("given", [True, False])
def test_rotary_embedding(adjacent, given):
    q, k = normal(2, 3, 2, 4), normal(2, 3, 1, 4)
    angle = np.arange(3)[:, None] * 10000.0 ** (-np.array([0.0, 0.5]))
    whole = np.repeat(angle, 2, 1) if adjacent else np.concatenate([angle, angle], 1)
    sin, cos = (f(whole).astype(np.float32) for f in (np.sin, np.cos))

    def turned(x, rows=slice(None)):
        if adjacent:
            other = np.stack([-x[..., 1::2], x[..., ::2]], -1).reshape(x.shape)
        else:
            other = np.concatenate([-x[..., 2:], x[..., :2]], -1)
        return x * cos[rows][..., None, :] + other * sin[rows][..., None, :]

    tables = {"sin": T(sin.reshape(1, 3, 1, 4)), "cos": T(cos)} if given else {}
    tables["use_neox_rotary_style"] = adjacent
    out_q, out_k, out_v = F.fused_rotary_position_embedding(T(q), T(k), **tables)
    near(out_q, turned(q))
    near(out_k, turned(k))
    assert out_v is None
    at = np.array([[2, 0, 1], [0, 0, 2]])
    moved = F.fused_rotary_position_embedding(T(q), position_ids=T(at), **tables)[0]
    near(moved, turned(q, at))
    major = F.fused_rotary_position_embedding(
        T(np.swapaxes(q, 0, 1).copy()), time_major=True, **tables
    )[0]
    near(tenon.transpose(major, 0, 1), turned(q))
    with pytest.raises(ValueError, match="expected both sin and cos, or none"):
        F.fused_rotary_position_embedding(T(q), sin=T(sin))


@pytest.mark.parametrize("causal", [False, True])
def test_attention_of_lengths(causal):
    q = normal(2, 2, 4, 3)
    mask = normal(2, 1, 4, 4)
    lengths = T([[4], [2]], dtype=tenon.int32)
    got = F.variable_length_memory_efficient_attention(
        T(q), T(q), T(q), lengths, lengths, T(mask), causal=causal
    ).numpy()
    for row, n in enumerate((4, 2)):
        part = T(q[row : row + 1, :, :n].copy())
        own = mask[row : row + 1, :, :n, :n]
        own = np.where(np.tril(np.ones((n, n))) > 0, own, -np.inf) if causal else own
        alone = tenon.scaled_dot_product_attention(part, part, part, T(own.astype(np.float32)))
        np.testing.assert_allclose(got[row, :, :n], alone[0].numpy(), atol=1e-5)
        assert not got[row, :, n:].any()


def test_graphs_and_losses():
    x = normal(4, 2)
    ids = T([0, 0, 2, 2])
    assert I.segment_sum(T(x), ids).shape == (3, 2)
    near(I.segment_mean(T(x), ids)[2], x[2:].mean(0))
    near(I.segment_max(T(x), ids)[1], [0.0, 0.0])
    src, dst = T([0, 1, 3]), T([1, 2, 1])
    got = I.graph_send_recv(T(x), src, dst)
    near(got, np.stack([x[0] * 0, x[0] + x[3], x[1], x[0] * 0]))
    assert I.graph_send_recv(T(x), src, dst, "max", 3).shape == (3, 2)
    with pytest.raises(ValueError, match="pool_type 'sum', 'mean', 'max' or 'min', got 'prod'"):
        I.graph_send_recv(T(x), src, dst, "prod")
    near(I.identity_loss(T(x), 1), x.mean())
    near(I.identity_loss(T(x)), x)
    scores = normal(1, 1, 3, 3)
    assert I.softmax_mask_fuse_upper_triangle(T(scores)).numpy()[0, 0, 0].tolist() == [1, 0, 0]
    near(I.softmax_mask_fuse(T(scores), T(scores)).sum(-1), np.ones((1, 1, 3)))
    parameter = paddle.nn.Parameter(tenon.ones([2]))
    inner = tenon.optim.SGD([parameter], lr=1.0)
    slow = I.LookAhead(inner, alpha=0.5, k=1)
    (parameter * 2.0).sum().backward()
    slow.step()
    assert parameter.tolist() == [0.0, 0.0]  # half of the way from 1 to -1
    with pytest.raises(AttributeError, match=r"does not cover paddle.incubate.ModelAverage"):
        _ = I.ModelAverage


def test_derivatives():
    x = T(normal(3).astype(np.float64))

    def function(x):
        return tenon.stack([x[0] * x[1], (x * x).sum()])

    jacobian = I.autograd.Jacobian(function, x)
    want = np.array([[x[1].item(), x[0].item(), 0.0], (2 * x.numpy()).tolist()])
    near(jacobian[:], want)
    assert tuple(jacobian.shape) == (2, 3)
    near(I.autograd.Hessian(lambda x: (x**3).sum(), x)[:], np.diag(6 * x.numpy()))
    batch = T(normal(4, 3).astype(np.float64))
    rows = I.autograd.Jacobian(lambda x: x * x, batch, is_batched=True)
    near(rows[:], np.stack([np.diag(2 * row) for row in batch.numpy()]))
    second = I.autograd.Hessian(lambda x: (x**3).sum(-1, keepdim=True), batch, is_batched=True)
    near(second[1], np.diag(6 * batch.numpy()[1]))
    out, product = I.autograd.vjp(function, x)
    near(product, want.sum(0))
    out, tangent = I.autograd.jvp(function, x)
    near(tangent, want.sum(1))
    near(out, function(x).numpy())
    with pytest.raises(ValueError, match="expected a function with one result"):
        I.autograd.Hessian(lambda x: x, x)[:]


def test_beside_paddle():
    pytest.importorskip("paddle.nn")  # the folder of tests is a package "paddle", too
    peer = importlib.import_module("paddle")
    P = peer.to_tensor
    x, mask = normal(1, 2, 8, 32), normal(1, 1, 8, 32)
    near(I.softmax_mask_fuse(T(x), T(mask)), peer.incubate.softmax_mask_fuse(P(x), P(mask)).numpy())
    rows, ids = normal(4, 3), np.array([0, 0, 2, 2])
    for name in ("segment_sum", "segment_mean", "segment_max", "segment_min"):
        want = getattr(peer.incubate, name)(P(rows), P(ids)).numpy()
        near(getattr(I, name)(T(rows), T(ids)), want)
    for pool in ("sum", "mean", "max", "min"):
        args = np.array([0, 1, 3]), np.array([1, 2, 1])
        want = peer.incubate.graph_send_recv(P(rows), *map(P, args), pool_type=pool).numpy()
        near(I.graph_send_recv(T(rows), *map(T, args), pool_type=pool), want)
    square = normal(3).astype(np.float64)
    want = peer.incubate.autograd.Jacobian(lambda x: x * x * x[0], P(square))[:].numpy()
    near(I.autograd.Jacobian(lambda x: x * x * x[0], T(square))[:], want)
    batch = normal(4, 3).astype(np.float64)
    theirs = peer.incubate.autograd.Hessian(
        lambda x: (x**3).sum(-1, keepdim=True), P(batch), is_batched=True
    )[:]
    near(
        I.autograd.Hessian(lambda x: (x**3).sum(-1, keepdim=True), T(batch), is_batched=True)[:],
        theirs.numpy(),
    )
    fused = peer.incubate.nn.functional
    x, r, b, w = normal(2, 3, 6), normal(2, 3, 6), normal(6), normal(6)
    for name in ("fused_layer_norm", "fused_rms_norm"):
        options = {"begin_norm_axis": 2}
        alone = [
            getattr(module, name)(*map(make, (x, w, w)), 1e-5, **options)
            for module, make in ((F, T), (fused, P))
        ]
        both = [
            getattr(module, name)(
                *map(make, (x, w, w)), 1e-5, **options, bias=make(b), residual=make(r)
            )
            for module, make in ((F, T), (fused, P))
        ]
        for ours, theirs in (alone, both):
            assert isinstance(ours, tuple) and len(ours) == len(theirs)
            for one, other in zip(ours, theirs, strict=True):
                if one is not None:
                    near(one, other.numpy())
    for before in (False, True):
        found = []
        for module in (paddle, peer):
            fill = module.nn.initializer.Constant
            attributes = [
                [module.ParamAttr(initializer=fill(value)) for value in pair]
                for pair in ((2.0, 3.0), (4.0, 5.0))
            ]
            layer = module.incubate.nn.FusedTransformerEncoderLayer(
                4, 2, 8, normalize_before=before, weight_attr=attributes[0], bias_attr=attributes[1]
            )
            found.append({name: float(p.detach().sum()) for name, p in layer.named_parameters()})
        assert found[0] == found[1]
    half = normal(2, 6)
    near(F.swiglu(T(half)), peer.incubate.nn.functional.swiglu(P(half)).numpy())
