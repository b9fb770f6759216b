# SPDX-License-Identifier: Apache-2.0
"""Pooling, normalisation, losses and attention."""

import numpy as np
from case import Case, integers, normal, spread

from .arithmetic import softmax, softplus
from .products import pair


def pool_windows(x, size, stride, padding, dilation, ceil_mode):
    """(rows, columns) of the elements of every window that lie inside the image or its padding."""
    sides = []
    for side in range(2):
        extent, k, s, p, d = (
            x.shape[2 + side],
            size[side],
            stride[side],
            padding[side],
            dilation[side],
        )
        room = extent + 2 * p - d * (k - 1) - 1
        count = -(-room // s) + 1 if ceil_mode else room // s + 1
        if ceil_mode and (count - 1) * s >= extent + p:
            count -= 1
        sides.append([[i * s - p + j * d for j in range(k)] for i in range(count)])
    return sides


def max_pool2d(x, size, stride=None, padding=0, dilation=1, ceil_mode=False):
    size = pair(size)
    rows, columns = pool_windows(
        x, size, pair(stride or size), pair(padding), pair(dilation), ceil_mode
    )
    values = np.empty((*x.shape[:2], len(rows), len(columns)), x.dtype)
    indices = np.empty(values.shape, np.int64)
    h, w = x.shape[2:]
    for i, ys in enumerate(rows):
        for j, xs in enumerate(columns):
            inside = [(y, v) for y in ys for v in xs if 0 <= y < h and 0 <= v < w]
            flat = np.array([y * w + v for y, v in inside])
            seen = x.reshape(*x.shape[:2], -1)[:, :, flat]
            values[:, :, i, j] = seen.max(-1)
            indices[:, :, i, j] = flat[seen.argmax(-1)]
    return values, indices


def avg_pool2d(x, size, stride=None, padding=0, ceil_mode=False, count_include_pad=True):
    size, padding = pair(size), pair(padding)
    rows, columns = pool_windows(x, size, pair(stride or size), padding, (1, 1), ceil_mode)
    values = np.empty((*x.shape[:2], len(rows), len(columns)), x.dtype)
    h, w = x.shape[2:]
    for i, ys in enumerate(rows):
        for j, xs in enumerate(columns):
            inside = [(y, v) for y in ys for v in xs if 0 <= y < h and 0 <= v < w]
            counted = [(y, v) for y in ys for v in xs if y < h + padding[0] and v < w + padding[1]]
            total = sum(x[:, :, y, v] for y, v in inside)
            values[:, :, i, j] = total / len(counted if count_include_pad else inside)
    return values


def adaptive(function):
    def reference(x, size):
        oh, ow = pair(size)
        h, w = x.shape[2:]
        out = np.empty((*x.shape[:2], oh, ow), x.dtype)
        for i in range(oh):
            for j in range(ow):
                part = x[
                    :, :, i * h // oh : -(-(i + 1) * h // oh), j * w // ow : -(-(j + 1) * w // ow)
                ]
                out[:, :, i, j] = function(part, axis=(2, 3))
        return out

    return reference


def resize(x, size, mode="nearest", align_corners=False):
    for axis, count in zip((2, 3), size):
        extent = x.shape[axis]
        if mode == "nearest":
            x = np.take(x, [i * extent // count for i in range(count)], axis)
            continue
        if align_corners:
            at = np.arange(count) * (extent - 1) / max(count - 1, 1)
        else:
            at = np.clip((np.arange(count) + 0.5) * extent / count - 0.5, 0, extent - 1)
        low = np.floor(np.minimum(at, extent - 1)).astype(int)
        weight = (at - low).reshape([-1 if i == axis else 1 for i in range(4)])
        high = np.take(x, np.minimum(low + 1, extent - 1), axis)
        # A neighbour of weight 0 is left out, even if it is infinite.
        x = np.take(x, low, axis) * (1 - weight) + np.where(weight == 0, 0, high * weight)
    return x


def normalized(x, axes, eps):
    mean, var = x.mean(axes, keepdims=True), x.var(axes, keepdims=True)
    return (x - mean) / np.sqrt(var + eps), mean, var


def channels(vector, ndim):
    return vector.reshape(1, -1, *[1] * (ndim - 2))


def affine(x, weight, bias):
    x = x if weight is None else x * weight
    return x if bias is None else x + bias


def batch_norm(x, weight=None, bias=None, eps=1e-5):
    out, mean, var = normalized(x, (0, *range(2, x.ndim)), eps)
    vectors = [None if v is None else channels(v, x.ndim) for v in (weight, bias)]
    return affine(out, *vectors), mean.ravel(), var.ravel()


def batch_norm_inference(x, mean, var, weight=None, bias=None, eps=1e-5):
    mean, var, weight, bias = (
        None if v is None else channels(v, x.ndim) for v in (mean, var, weight, bias)
    )
    return affine((x - mean) / np.sqrt(var + eps), weight, bias)


def layer_norm(x, weight=None, bias=None, normalized_ndim=1, eps=1e-5):
    return affine(normalized(x, tuple(range(-normalized_ndim, 0)), eps)[0], weight, bias)


def group_norm(x, groups, weight=None, bias=None, eps=1e-5):
    out = normalized(x.reshape(x.shape[0], groups, -1), (2,), eps)[0].reshape(x.shape)
    return affine(out, *(None if v is None else channels(v, x.ndim) for v in (weight, bias)))


def rms_norm(x, weight=None, eps=1e-6):
    return affine(x / np.sqrt((x * x).mean(-1, keepdims=True) + eps), weight, None)


def reduce_loss(loss, reduction):
    return np.asarray({"none": lambda v: v, "sum": np.sum, "mean": np.mean}[reduction](loss))


def nll_loss(x, target, weight=None, ignore_index=-100, reduction="mean"):
    axis = 1 if x.ndim > 1 else 0
    counts = target != ignore_index
    safe = np.where(counts, target, 0)
    picked = np.take_along_axis(x, np.expand_dims(safe, axis), axis).squeeze(axis)
    w = counts * (np.ones(1) if weight is None else weight[safe])
    loss = -picked * w
    return np.asarray(loss.sum() / w.sum()) if reduction == "mean" else reduce_loss(loss, reduction)


def cross_entropy(x, target, weight=None, ignore_index=-100, reduction="mean", label_smoothing=0.0):
    axis = 1 if x.ndim > 1 else 0
    logs = np.log(softmax(x, axis))
    classes = x.shape[axis]
    w = np.ones(classes) if weight is None else weight
    if target.shape == x.shape:
        soft = target * (1 - label_smoothing) + label_smoothing / classes
        along = w.reshape([-1 if i == axis else 1 for i in range(x.ndim)])
        return reduce_loss(-(logs * soft * along).sum(axis), reduction)
    counts = target != ignore_index
    safe = np.where(counts, target, 0)
    soft = (
        np.moveaxis(np.eye(classes)[safe], -1, axis) * (1 - label_smoothing)
        + label_smoothing / classes
    )
    along = w.reshape([-1 if i == axis else 1 for i in range(x.ndim)])
    loss = -(logs * soft * along).sum(axis) * counts
    return (
        np.asarray(loss.sum() / (w[safe] * counts).sum())
        if reduction == "mean"
        else reduce_loss(loss, reduction)
    )


def attention(query, key, value, mask=None, dropout=0.0, causal=False, scale=None):
    scale = 1 / np.sqrt(query.shape[-1]) if scale is None else scale
    scores = query @ np.swapaxes(key, -1, -2) * scale
    if causal:
        scores = np.where(np.tri(*scores.shape[-2:], dtype=bool), scores, -np.inf)
    if mask is not None:
        scores = np.where(mask, scores, -np.inf) if mask.dtype == bool else scores + mask
    largest = scores.max(-1, keepdims=True)
    weights = np.exp(scores - np.where(np.isfinite(largest), largest, 0))
    total = weights.sum(-1, keepdims=True)
    return np.where(total > 0, weights / np.where(total > 0, total, 1), 0) @ value


_image = spread(2, 3, 6, 7)
_odd = spread(1, 2, 5, 8)
_max = {
    "plain": (_image, 2),
    "stride": (_image, [3, 2], [2, 1]),
    "padding": (_image, 3, 2, 1),
    "dilation": (_image, 2, 1, 0, [2, 3]),
    "ceil": (_odd, 2, 2, 0, 1, True),
    "ceil padding": (_odd, 3, 2, 1, 1, True),
}
_avg = {
    "plain": (_image, 2),
    "stride": (_image, [3, 2], [2, 1]),
    "padding": (_image, 3, 2, 1),
    "inside": (_image, 3, 2, 1, False, False),
    "ceil": (_odd, 2, 2, 0, True),
    "ceil padding": (_odd, 3, 2, 1, True),
    "ceil inside": (_odd, 3, 2, 1, True, False),
}
_x, _w, _b = normal(4, 3, 5), normal(3), normal(3)
_logits, _classes = normal(6, 4), integers(0, 4, 6)
_ignored = np.where(np.arange(6) == 2, -100, _classes)
_probabilities = softmax(normal(6, 4))
_weights = normal(4, low=0.5, high=2)
_binary = normal(3, 4, low=0.1, high=0.9)
_target = normal(3, 4, low=0.1, high=0.9)
_qkv = (normal(2, 3, 4), normal(2, 5, 4), normal(2, 5, 6))
_square = (normal(2, 4, 3), normal(2, 4, 3), normal(2, 4, 2))
_blind = np.array([[True, False, True, True, False], [False] * 5, [True] * 5])

CASES = [
    *(
        Case("max_pool2d_with_indices", args, reference=max_pool2d, label=label)
        for label, args in _max.items()
    ),
    Case("max_pool2d", (_image, 2), reference=lambda *a: max_pool2d(*a)[0]),
    Case(
        "max_pool1d",
        (spread(2, 3, 7), 3, 2, 1),
        reference=lambda x, k, s, p: max_pool2d(x[:, :, None], [1, k], [1, s], [0, p])[0][:, :, 0],
    ),
    *(Case("avg_pool2d", args, reference=avg_pool2d, label=label) for label, args in _avg.items()),
    Case(
        "avg_pool1d",
        (normal(2, 3, 7), 3, 2, 1),
        reference=lambda x, k, s, p: avg_pool2d(x[:, :, None], [1, k], [1, s], [0, p])[:, :, 0],
    ),
    *(
        Case("adaptive_avg_pool2d", (_image, size), reference=adaptive(np.mean), label=str(size))
        for size in (1, [3, 7], [4, 5])
    ),
    *(
        Case("adaptive_max_pool2d", (_image, size), reference=adaptive(np.max), label=str(size))
        for size in (1, [3, 7], [4, 5])
    ),
    *(
        Case(
            "interpolate2d",
            (normal(1, 2, 3, 4), size, *rest),
            reference=resize,
            label=f"{size}{rest}",
        )
        for size in ([6, 8], [2, 5])
        for rest in ((), ("bilinear",), ("bilinear", True))
    ),
    Case("batch_norm", (_x, _w, _b), reference=batch_norm, rtol=1e-9, smooth=1),
    Case("batch_norm", (normal(6, 2),), reference=batch_norm, label="plain", rtol=1e-9, smooth=1),
    Case(
        "batch_norm_inference",
        (_x, normal(3), normal(3, low=0.5, high=2), _w, _b),
        reference=batch_norm_inference,
    ),
    Case("layer_norm", (_x, normal(5), normal(5)), reference=layer_norm, rtol=1e-9),
    Case("layer_norm", (_x, None, None, 2), reference=layer_norm, label="two axes", rtol=1e-9),
    Case("group_norm", (normal(2, 4, 3), 2, normal(4), normal(4)), reference=group_norm, rtol=1e-9),
    Case("rms_norm", (_x, normal(5)), reference=rms_norm),
    Case(
        "normalize",
        (normal(3, 4),),
        reference=lambda x: x / np.linalg.norm(x, axis=1, keepdims=True),
    ),
    *(
        Case(
            "mse_loss",
            (_binary, _target, r),
            reference=lambda x, t, r: reduce_loss((x - t) ** 2, r),
            label=r,
        )
        for r in ("mean", "sum", "none")
    ),
    Case("l1_loss", (_binary, _target), reference=lambda x, t: reduce_loss(np.abs(x - t), "mean")),
    Case(
        "smooth_l1_loss",
        (spread(3, 4), np.zeros((3, 4)), "sum", 0.3),
        reference=lambda x, t, r, b: reduce_loss(
            np.where(np.abs(x) < b, x * x / (2 * b), np.abs(x) - b / 2), r
        ),
    ),
    Case(
        "huber_loss",
        (spread(3, 4), np.zeros((3, 4)), "sum", 0.3),
        reference=lambda x, t, r, d: reduce_loss(
            np.where(np.abs(x) < d, x * x / 2, d * (np.abs(x) - d / 2)), r
        ),
    ),
    Case(
        "binary_cross_entropy",
        (_binary, _target),
        reference=lambda x, t: reduce_loss(-(t * np.log(x) + (1 - t) * np.log(1 - x)), "mean"),
    ),
    Case(
        "binary_cross_entropy_with_logits",
        (normal(3, 4), _target),
        reference=lambda x, t: reduce_loss(softplus(x) - x * t, "mean"),
    ),
    Case(
        "binary_cross_entropy_with_logits",
        (normal(3, 4), _target, _binary, _weights, "sum"),
        label="weights",
        reference=lambda x, t, w, p, r: reduce_loss(
            w * (p * t * softplus(-x) + (1 - t) * softplus(x)), r
        ),
    ),
    *(
        Case(
            "nll_loss",
            (_logits, _ignored, w),
            {"reduction": r},
            nll_loss,
            label=f"{r}-{w is not None}",
        )
        for r in ("mean", "sum", "none")
        for w in (None, _weights)
    ),
    Case(
        "nll_loss", (normal(2, 4, 3), integers(0, 4, 2, 3)), reference=nll_loss, label="positions"
    ),
    Case("nll_loss", (normal(4), np.array(2)), reference=nll_loss, label="single"),
    *(
        Case(
            "cross_entropy",
            (_logits, _ignored, w),
            {"reduction": r, "label_smoothing": s},
            cross_entropy,
            label=f"{r}-{w is not None}-{s}",
            rtol=1e-10,
        )
        for r in ("mean", "none")
        for w in (None, _weights)
        for s in (0.0, 0.1)
    ),
    Case(
        "cross_entropy",
        (_logits, _probabilities, _weights),
        {"label_smoothing": 0.2},
        cross_entropy,
        label="soft",
        rtol=1e-10,
    ),
    Case(
        "cross_entropy",
        (normal(2, 4, 3), integers(0, 4, 2, 3)),
        reference=cross_entropy,
        label="positions",
        rtol=1e-10,
    ),
    *(
        Case(
            "cross_entropy",
            (
                normal(2, 5, 71),
                np.where(np.arange(142).reshape(2, 71) % 9, integers(0, 5, 2, 71), 7),
            ),
            {"reduction": r, "ignore_index": 7},
            cross_entropy,
            label=f"many positions-{r}",
            rtol=1e-9,
        )
        for r in ("mean", "sum", "none")
    ),
    Case(
        "cross_entropy",
        (normal(3, 131), integers(0, 131, 3, dtype=np.uint8)),
        reference=cross_entropy,
        label="many classes",
        rtol=1e-9,
    ),
    Case(
        "kl_div",
        (np.log(_probabilities), softmax(normal(6, 4)), "sum"),
        reference=lambda x, t, r: reduce_loss(t * (np.log(t) - x), r),
        rtol=1e-10,
    ),
    Case(
        "kl_div",
        (np.log(_probabilities), normal(6, 4), "none", True),
        label="logs",
        reference=lambda x, t, r, _: reduce_loss(np.exp(t) * (t - x), r),
        rtol=1e-10,
    ),
    Case("scaled_dot_product_attention", _qkv, reference=attention, rtol=1e-10),
    Case(
        "scaled_dot_product_attention",
        (*_qkv, normal(3, 5)),
        reference=attention,
        label="added mask",
        rtol=1e-10,
    ),
    Case(
        "scaled_dot_product_attention",
        (*_qkv, _blind),
        reference=attention,
        label="blind row",
        rtol=1e-10,
    ),
    Case(
        "scaled_dot_product_attention",
        _square,
        {"causal": True, "scale": 0.7},
        attention,
        label="causal",
        rtol=1e-10,
    ),
]
