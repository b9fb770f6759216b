# SPDX-License-Identifier: Apache-2.0
"""Rules of operators whose tensors have related shapes, written as templates.

`x: "n g*c h"` and `weight: "g*o c"` say that letters are extents; see shapes.from_templates. A rule
may name the domain of a tensor's values, and draws what attributes depend on the letters. Operators
without a rule get tensors that broadcast against each other.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace


@dataclass(frozen=True)
class Template:
    """`shapes`: sets of templates. `indices`: the letter that bounds a tensor's values."""

    shapes: tuple[dict[str, str], ...]
    domains: dict[str, str] = field(default_factory=dict)
    indices: dict[str, str] = field(default_factory=dict)
    attributes: object = None  # function of (drawer, letters)
    fixed: object = None  # function of drawer: letters that have values of their own


def _template(*shapes, domains=None, indices=None, attributes=None, fixed=None):
    return Template(shapes, domains or {}, indices or {}, attributes, fixed)


def _some(d, **values):
    """A random choice of keywords."""
    return {name: value for name, value in values.items() if d.chance(0.6)}


def _pair(d, low, high):
    if d.chance(0.3):
        return d.integer(low, high)
    return [d.integer(low, high), d.integer(low, high)]


def _convolution(d, letters):
    named = _some(d, stride=_pair(d, 1, 3), padding=_pair(d, 0, 2), dilation=_pair(d, 1, 2))
    return {**named, "groups": letters["g"]}


def _convolution1d(d, letters):
    named = _some(d, stride=d.integer(1, 3), padding=d.integer(0, 2), dilation=d.integer(1, 2))
    return {**named, "groups": letters["g"]}


def _transposed_convolution(d, letters):
    named = _some(d, stride=2, padding=_pair(d, 0, 1), output_padding=_pair(d, 0, 1))
    if "stride" not in named:
        named.pop("output_padding", None)
    return {**named, "groups": letters["g"]}


def _kernel(d):
    return {"kh": d.integer(1, 3), "kw": d.integer(1, 3), "g": d.choice([1, 1, 1, 2, 3])}


def _pool(d, letters):
    named = _some(d, stride=_pair(d, 1, 3), ceil_mode=d.chance(0.5))
    if d.operator.name.startswith("avg"):
        named |= _some(d, count_include_pad=d.chance(0.5))
    elif d.chance(0.4):
        named["dilation"] = _pair(d, 1, 2)
    size = _pair(d, 2, 3)
    if d.chance(0.4):
        named["padding"] = d.choice([0, 1])
    return {"kernel_size": size, **named}


def _pool1d(d, letters):
    named = _some(d, stride=d.integer(1, 3), padding=d.integer(0, 1), ceil_mode=d.chance(0.5))
    return {"kernel_size": d.integer(2, 3), **named}


def _resized(d, letters):
    spatial = sum(letter in letters for letter in "dhw")
    modes = (["linear"], ["bilinear", "bicubic"], ["trilinear"])[spatial - 1]
    mode = d.choice(["nearest", "area", *modes])
    named = {"size": [d.integer(1, 9) for _ in range(spatial)], "mode": mode}
    if mode in modes:
        named |= _some(d, align_corners=d.chance(0.5))
    if mode in ("bilinear", "bicubic"):
        named |= _some(d, antialias=d.chance(0.5))
    return named


def _sampled(d, letters):
    return _some(
        d,
        mode=d.choice(["bilinear", "nearest", "bicubic"]),
        padding_mode=d.choice(["zeros", "border", "reflection"]),
        align_corners=d.chance(0.5),
    )


def _classes(d, letters):
    return _some(d, reduction=d.choice(["none", "mean", "sum"]), ignore_index=d.choice([-100, 0]))


def _smoothed(d, letters):
    return {**_classes(d, letters), **_some(d, label_smoothing=d.choice([0.0, 0.1]))}


def _attention(d, letters):
    return _some(d, causal=d.chance(0.5), scale=d.choice([0.3, 1.0]))


def _normalised(d, letters):
    return _some(d, eps=d.choice([1e-5, 1e-3]))


def _counted(d, letters):
    """Steps in a tensor of one number."""
    return {"step": float(d.integer(1, 100)), **_some(d, weight_decay=0.1, decoupled=d.chance(0.5))}


_MATMUL = (
    {"x": "*b m k", "y": "*b k n"},
    {"x": "*b m k", "y": "k n"},
    {"x": "m k", "y": "*b k n"},
    {"x": "k", "y": "*b k n"},
    {"x": "*b m k", "y": "k"},
    {"x": "k", "y": "k"},
    {"x": "n 1 m k", "y": "3 k 2"},
)
_STATE = {"param": "*b i", "grad": "*b i", "velocity": "*b i", "m": "*b i", "v": "*b i"}
_UPDATE = _template(_STATE, domains=dict.fromkeys(_STATE, "ordinary") | {"v": "positive"})
_POOL = _template({"x": "n c h+3 w+3"}, attributes=_pool)
_POOL1D = _template({"x": "n c h+3"}, attributes=_pool1d)

TEMPLATES = {
    "glu": _template({"x": "*b 2*h"}),
    "matmul": _template(*_MATMUL),
    "matmul_integer": _template(*_MATMUL),
    "linear": _template({"x": "*b i", "weight": "o i", "bias": "o"}),
    "dot": _template({"x": "i", "y": "i"}),
    "vecdot": _template({"x": "*b i", "y": "*b i"}, {"x": "*b i", "y": "i"}),
    "outer": _template({"x": "i", "y": "j"}),
    "inner": _template({"x": "i k", "y": "*b k"}, {"x": "k", "y": "k"}, {"x": "*b i", "y": ""}),
    "conv2d": _template(
        {"x": "n g*c h+4 w+4", "weight": "g*o c kh kw", "bias": "g*o"},
        attributes=_convolution,
        fixed=_kernel,
    ),
    "conv1d": _template(
        {"x": "n g*c h+4", "weight": "g*o c kw", "bias": "g*o"},
        attributes=_convolution1d,
        fixed=_kernel,
    ),
    "conv_transpose2d": _template(
        {"x": "n g*c h w", "weight": "g*c o kh kw", "bias": "g*o"},
        attributes=_transposed_convolution,
        fixed=_kernel,
    ),
    "max_pool2d": _POOL,
    "max_pool2d_with_indices": _POOL,
    "avg_pool2d": _POOL,
    "max_pool1d": _POOL1D,
    "avg_pool1d": _POOL1D,
    "adaptive_avg_pool2d": _template(
        {"x": "n c h+1 w+1"}, attributes=lambda d, _: {"output_size": _pair(d, 1, 4)}
    ),
    "adaptive_max_pool2d": _template(
        {"x": "n c h+1 w+1"}, attributes=lambda d, _: {"output_size": _pair(d, 1, 4)}
    ),
    "interpolate2d": _template(
        {"x": "n c h+1 w+1"},
        attributes=lambda d, _: {
            "size": [d.integer(1, 9), d.integer(1, 9)],
            **_some(d, mode=d.choice(["nearest", "bilinear"]), align_corners=d.chance(0.5)),
        },
    ),
    "interpolate": _template(
        {"x": "n c w+1"}, {"x": "n c h+1 w+1"}, {"x": "n c d+1 h+1 w+1"}, attributes=_resized
    ),
    "grid_sample": _template(
        {"x": "n c h+1 w+1", "grid": "n i j p"},
        domains={"grid": "ordinary"},
        attributes=_sampled,
        fixed=lambda d: {"p": 2},
    ),
    "batch_norm": _template({"x": "n+1 c *d", "weight": "c", "bias": "c"}, attributes=_normalised),
    "batch_norm_inference": _template(
        {"x": "n c *d", "mean": "c", "var": "c", "weight": "c", "bias": "c"},
        domains={"var": "positive"},
        attributes=_normalised,
    ),
    "layer_norm": _template({"x": "*b i h", "weight": "h", "bias": "h"}, attributes=_normalised),
    "group_norm": _template(
        {"x": "n g*c *d", "weight": "g*c", "bias": "g*c"},
        attributes=lambda d, letters: {"groups": letters["g"], **_normalised(d, letters)},
        fixed=lambda d: {"g": d.integer(1, 3)},
    ),
    "rms_norm": _template({"x": "*b h", "weight": "h"}, attributes=_normalised),
    "add_rms_norm": _template(
        {"x": "*b h", "residual": "*b h", "weight": "h"}, attributes=_normalised
    ),
    "add_layer_norm": _template(
        {"x": "*b h", "residual": "*b h", "weight": "h", "bias": "h"}, attributes=_normalised
    ),
    "affine_channel": _template({"x": "n c *d", "scale": "c", "bias": "c"}),
    "normalize": _template(
        {"x": "*b h i"},
        attributes=lambda d, _: {
            **_some(d, p=d.choice([1.0, 2.0, 3.0, 0.5, float("inf")])),
            "axis": d.choice([-1, 0, 1]),
        },
    ),
    "embedding": _template({"weight": "v+1 *d", "indices": "*b i"}, indices={"indices": "v+1"}),
    "one_hot": _template(
        {"indices": "*b i"},
        indices={"indices": "v+1"},
        fixed=lambda d: {"v": d.integer(0, 5)},
        attributes=lambda d, letters: {"count": letters["v"] + 1},
    ),
    "nll_loss": _template(
        {"x": "n c+1 *d", "target": "n *d", "weight": "c+1"},
        domains={"weight": "positive"},
        indices={"target": "c+1"},
        attributes=_classes,
    ),
    "cross_entropy": _template(
        {"x": "n c+1 *d", "target": "n *d", "weight": "c+1"},
        domains={"weight": "positive"},
        indices={"target": "c+1"},
        attributes=_smoothed,
    ),
    "binary_cross_entropy": _template(
        {"x": "*b i", "target": "*b i", "weight": "*b i"},
        domains={"x": "unit", "target": "unit", "weight": "positive"},
    ),
    "binary_cross_entropy_with_logits": _template(
        {"x": "*b i", "target": "*b i", "weight": "*b i", "pos_weight": "i"},
        domains={"target": "unit", "weight": "positive", "pos_weight": "positive"},
    ),
    "log_loss": _template({"x": "*b i", "target": "*b i"}, domains={"x": "unit", "target": "unit"}),
    "sigmoid_focal_loss": _template(
        {"x": "*b i", "target": "*b i", "normalizer": ""},
        domains={"target": "unit", "normalizer": "positive"},
    ),
    "gaussian_nll_loss": _template(
        {"x": "*b i", "target": "*b i", "variance": "*b i"},
        {"x": "*b i", "target": "*b i", "variance": "*b"},
    ),
    "multilabel_soft_margin_loss": _template(
        {"x": "*b i", "target": "*b i", "weight": "i"},
        domains={"target": "unit", "weight": "positive"},
    ),
    "kl_div": _template({"x": "*b i", "target": "*b i"}, domains={"target": "unit"}),
    "scaled_dot_product_attention": _template(
        {"query": "*b q d+1", "key": "*b k d+1", "value": "*b k e", "mask": "q k"},
        domains={"query": "ordinary", "key": "ordinary", "mask": "ordinary"},
        attributes=_attention,
    ),
    "lstm_recurrence": _template(
        {"x": "t b 4*h", "weight": "4*h h", "h": "b h", "c": "b h"}, domains={"weight": "small"}
    ),
    "gru_recurrence": _template(
        {"x": "t b 3*h", "weight": "3*h h", "bias": "3*h", "h": "b h"}, domains={"weight": "small"}
    ),
    "sgd_update": _UPDATE,
    "momentum_update": _UPDATE,
    "adam_update": _UPDATE,
    "adamw_update": _UPDATE,
    "adam_update_counted": replace(_UPDATE, attributes=_counted),
    "rmsprop_update": _UPDATE,
    "adagrad_update": _UPDATE,
    "decayed_adagrad_update": _UPDATE,
    "trace": _template({"x": "*b i j"}),
    "diagflat": _template({"x": "i"}),
    "tril": _template({"x": "*b i j"}),
    "triu": _template({"x": "*b i j"}),
    "bernoulli": _template({"p": "*b i"}, domains={"p": "unit"}),
    "multinomial": _template(
        {"weights": "*b i+2"},
        domains={"weights": "positive"},
        attributes=lambda d, _: {"count": d.integer(1, 2)},
    ),
    "top_p_sampling": _template(
        {"probabilities": "*b i+2", "p": "*b"}, domains={"probabilities": "positive", "p": "unit"}
    ),
    "check_finite_and_unscale": _template(
        {"grad": "*b i", "inverse_scale": "1", "found_inf": "1"}, domains={"found_inf": "unit"}
    ),
    "diff": _template({"x": "*b i j"}),
    "cross": _template({"x": "*b 3", "y": "*b 3"}, {"x": "*b 3", "y": "3"}),
    "cdist": _template({"x": "*b m i", "y": "*b n i"}),
    "vander": _template(
        {"x": "*b i"},
        attributes=lambda d, _: {"n": d.integer(0, 4), **_some(d, increasing=d.chance(0.5))},
    ),
}
